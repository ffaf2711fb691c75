//! Batches in transactions: all that gathered in one, and one by one when that one fails.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::wal::CheckpointMode;

use super::error::{Stop, Trouble};
use super::names::{Names, Tables};
use super::totals::{Totals, fenced};
use super::{Options, commit, open};
use crate::Activation;
use crate::commit::{Batch, Commit, CommitError, CommitResult};
use crate::error::{Error, ErrorKind};

/// A replay gives up after this many commits in a row that found no space: the rest will not find any either.
const FULL_IN_A_ROW: u32 = 3;

/// What was written so far.
#[derive(Default)]
pub(super) struct Tally {
    pub commits: AtomicU64,
    pub transactions: AtomicU64,
}

/// The writing connection, the stores it writes for and what it has written.
pub(super) struct Writer {
    conn: Connection,
    path: PathBuf,
    options: Options,
    spaces: Vec<Space>,
    wal_pages: Arc<AtomicU32>,
    tally: Arc<Tally>,
}

/// One of the stores in the file.
struct Space {
    names: Arc<Names>,
    totals: Totals,
}

/// Why a transaction did not happen.
struct Failure {
    trouble: Trouble,
    is_in_doubt: bool,
}

impl<T: Into<Trouble>> From<T> for Failure {
    fn from(cause: T) -> Self {
        Self {
            trouble: cause.into(),
            is_in_doubt: false,
        }
    }
}

impl Writer {
    pub fn new(conn: Connection, path: PathBuf, options: Options) -> Result<Self, Trouble> {
        let mut writer = Self {
            conn,
            path,
            options,
            spaces: Vec::new(),
            wal_pages: Arc::default(),
            tally: Arc::default(),
        };
        writer.watch_wal()?;
        Ok(writer)
    }

    /// Brings a store in the file up to date and writes for it from now on, under the number of its lane. A former one of
    /// this number is over.
    pub fn join(&mut self, lane: usize, names: Arc<Names>) -> Result<(), Trouble> {
        let bytes = std::fs::metadata(&self.path).map_or(0, |file| file.len());
        open::prepare_store(&self.conn, &self.path, bytes, &names)?;
        let totals = Totals::read(&Tables::new(&self.conn, &names))?;
        let space = Space { names, totals };
        match self.spaces.get_mut(lane) {
            Some(former) => *former = space,
            None => self.spaces.push(space),
        }
        self.make_room();
        Ok(())
    }

    /// Room for the statements of every store.
    fn make_room(&self) {
        let room = open::STATEMENTS * self.spaces.len().max(1);
        self.conn.set_prepared_statement_cache_capacity(room);
    }

    /// How many pages the WAL held after the last commit.
    pub fn wal_pages(&self) -> u32 {
        self.wal_pages.load(Ordering::Relaxed)
    }

    /// Moves everything into the file and empties its WAL, so that the file alone is the whole store. What cannot be
    /// moved (a disk without space, another program that reads) stays in the WAL, where the next start finds it.
    pub fn finish(self) {
        // A stop does not wait for somebody who reads.
        let _ = self.conn.busy_timeout(Duration::ZERO);
        let _ = self
            .conn
            .wal_checkpoint_v2(None::<&str>, CheckpointMode::TRUNCATE);
    }

    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    pub fn limit_pages(&self, pages: u32) -> Result<(), Error> {
        open::limit_pages(&self.conn, pages).map_err(|trouble| trouble.into_error(&self.path))
    }

    pub fn activate(&mut self, lane: usize) -> Result<Activation, Error> {
        let before = self.totals();
        let activated = self.in_transaction(|conn, spaces| {
            let Space { names, totals } = &mut spaces[lane];
            Ok(totals.activate(&Tables::new(conn, names))?)
        });
        activated.map_err(|failure| {
            self.undo(&before);
            failure.trouble.into_error(&self.place(lane))
        })
    }

    /// Runs the batches, each with the lane of its store, and gives the outcome of each commit of each batch.
    pub fn run(&mut self, batches: &[(usize, Batch)]) -> Vec<Vec<CommitResult>> {
        let results = self.write(batches);
        let made = results.iter().flatten().filter(|result| result.is_ok()).count();
        self.tally.commits.fetch_add(made as u64, Ordering::Relaxed);
        results
    }

    fn write(&mut self, batches: &[(usize, Batch)]) -> Vec<Vec<CommitResult>> {
        let before = self.totals();
        let together = self.in_transaction(|conn, spaces| {
            let results = batches
                .iter()
                .map(|(lane, batch)| run_batch(conn, &mut spaces[*lane], batch))
                .collect::<Result<_, _>>()?;
            write_totals(conn, spaces, batches)?;
            Ok(results)
        });
        match together {
            Ok(results) => results,
            Err(failure) => {
                self.undo(&before);
                let commits: usize = batches.iter().map(|(_, batch)| batch.commits.len()).sum();
                let is_of_a_part = failure.trouble.is_of_one_commit()
                    || failure.trouble.is_of_one_store() && is_of_several(batches);
                if commits <= 1 || failure.is_in_doubt || !is_of_a_part {
                    self.fail_all(batches, failure)
                } else {
                    self.replay(batches)
                }
            }
        }
    }

    /// Each commit in a transaction of its own, so that a poisonous one harms only itself.
    fn replay(&mut self, batches: &[(usize, Batch)]) -> Vec<Vec<CommitResult>> {
        // Why nothing more is tried: for one store, or for all.
        let mut hopeless: Vec<Option<Error>> = vec![None; self.spaces.len()];
        let mut full_in_a_row = 0;
        let mut results = Vec::with_capacity(batches.len());
        for (lane, batch) in batches {
            let mut of_batch = Vec::with_capacity(batch.commits.len());
            for commit in &batch.commits {
                if let Some(error) = &hopeless[*lane] {
                    of_batch.push(Err(failed(error.clone(), false)));
                    continue;
                }
                let before = self.totals();
                let alone = self.in_transaction(|conn, spaces| {
                    let Space { names, totals } = &mut spaces[*lane];
                    let tables = Tables::new(conn, names);
                    let result = run_commit(&tables, totals, batch, commit)?;
                    totals.write(&tables)?;
                    Ok(result)
                });
                of_batch.push(match alone {
                    Ok(result) => {
                        full_in_a_row = 0;
                        result
                    }
                    Err(Failure { trouble, is_in_doubt }) => {
                        self.undo(&before);
                        let is_of_one_commit = trouble.is_of_one_commit() && !is_in_doubt;
                        let is_of_one_store = trouble.is_of_one_store() && !is_in_doubt;
                        let error = trouble.into_error(&self.place(*lane));
                        full_in_a_row = if error.kind() == ErrorKind::Full {
                            full_in_a_row + 1
                        } else {
                            0
                        };
                        if is_of_one_store {
                            hopeless[*lane] = Some(error.clone());
                        } else if !is_of_one_commit || full_in_a_row >= FULL_IN_A_ROW {
                            hopeless.fill(Some(error.clone()));
                        }
                        Err(failed(error, is_in_doubt))
                    }
                });
            }
            results.push(of_batch);
        }
        results
    }

    fn fail_all(&self, batches: &[(usize, Batch)], failure: Failure) -> Vec<Vec<CommitResult>> {
        let Failure { trouble, is_in_doubt } = failure;
        let place = match batches {
            [(lane, _), ..] if !is_of_several(batches) => self.place(*lane),
            _ => self.path.clone(),
        };
        let error = trouble.into_error(&place);
        batches
            .iter()
            .map(|(_, batch)| {
                batch
                    .commits
                    .iter()
                    .map(|_| Err(failed(error.clone(), is_in_doubt)))
                    .collect()
            })
            .collect()
    }

    fn in_transaction<T>(
        &mut self,
        work: impl FnOnce(&Connection, &mut [Space]) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        self.statement("BEGIN IMMEDIATE")?;
        // A panic is a bug of ours. It is of the commit that meets it, like every other failure there: what shares the
        // transaction is written without it.
        let worked = catch_unwind(AssertUnwindSafe(|| work(&self.conn, &mut self.spaces)));
        let result = worked.unwrap_or_else(|_| {
            let what = "the writer panicked; the panic message has the cause";
            Err(Trouble::Own(Error::new(ErrorKind::Internal, what)).into())
        })?;
        self.statement("COMMIT").map_err(|cause| {
            let trouble = Trouble::from(cause);
            Failure {
                is_in_doubt: trouble.leaves_commit_in_doubt(),
                trouble,
            }
        })?;
        self.tally.transactions.fetch_add(1, Ordering::Relaxed);
        Ok(result)
    }

    fn totals(&self) -> Vec<Totals> {
        self.spaces.iter().map(|space| space.totals).collect()
    }

    fn place(&self, lane: usize) -> PathBuf {
        self.spaces[lane].names.place(&self.path)
    }

    fn statement(&self, sql: &str) -> rusqlite::Result<()> {
        self.conn.prepare_cached(sql)?.execute([]).map(drop)
    }

    /// Leaves the connection outside of any transaction, with the totals as they were. SQLite may have rolled back
    /// by itself; where it cannot be made to, a new connection does the same.
    fn undo(&mut self, before: &[Totals]) {
        for (space, totals) in self.spaces.iter_mut().zip(before) {
            space.totals = *totals;
        }
        if !self.conn.is_autocommit() {
            let _ = self.statement("ROLLBACK");
        }
        if self.conn.is_autocommit() {
            return;
        }
        if let Ok(conn) = open::writer(&self.path, &self.options) {
            self.conn = conn;
            self.make_room();
            let _ = self.watch_wal();
        }
    }

    /// After a panic inside a transaction.
    pub fn recover(&mut self) {
        let totals = self.totals();
        self.undo(&totals);
        for space in &mut self.spaces {
            if let Ok(totals) = Totals::read(&Tables::new(&self.conn, &space.names)) {
                space.totals = totals;
            }
        }
    }

    fn watch_wal(&mut self) -> Result<(), Trouble> {
        let wal_pages = Arc::clone(&self.wal_pages);
        self.conn
            .wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, pages: i32| {
                wal_pages.store(pages.max(0) as u32, Ordering::Relaxed);
                Ok(())
            }))?;
        Ok(())
    }
}

fn is_of_several(batches: &[(usize, Batch)]) -> bool {
    batches.windows(2).any(|pair| pair[0].0 != pair[1].0)
}

/// The totals of every store that something was written for, once each.
fn write_totals(conn: &Connection, spaces: &[Space], batches: &[(usize, Batch)]) -> Result<(), Failure> {
    for (lane, space) in spaces.iter().enumerate() {
        if batches.iter().any(|(of, _)| *of == lane) {
            space.totals.write(&Tables::new(conn, &space.names))?;
        }
    }
    Ok(())
}

fn run_batch(conn: &Connection, space: &mut Space, batch: &Batch) -> Result<Vec<CommitResult>, Failure> {
    let tables = Tables::new(conn, &space.names);
    batch
        .commits
        .iter()
        .map(|commit| run_commit(&tables, &mut space.totals, batch, commit))
        .collect()
}

fn run_commit(
    tables: &Tables<'_>,
    totals: &mut Totals,
    batch: &Batch,
    commit: &Commit,
) -> Result<CommitResult, Failure> {
    if batch.epoch as i64 != totals.epoch {
        return Ok(Err(failed(fenced(batch.epoch), false)));
    }
    totals.key_high = totals.key_high.max(batch.key_high as i64);
    match commit::run(tables, totals, commit) {
        Ok(outcome) => Ok(Ok(outcome)),
        Err(Stop::Refused(refusal)) => Ok(Err(CommitError::Refused(refusal))),
        Err(Stop::Trouble(trouble)) => Err(trouble.into()),
    }
}

fn failed(error: Error, may_have_happened: bool) -> CommitError {
    CommitError::Failed {
        error,
        may_have_happened,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::namespace::Namespace;

    #[test]
    fn a_panic_is_of_one_commit_and_the_next_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let (path, options) = (folder.path().join("t.db"), Options::default());
        let conn = open::writer(&path, &options).unwrap();
        let mut writer = Writer::new(conn, path, options).unwrap();
        let names = Names::of(Namespace::default());
        writer.join(0, Arc::new(names)).unwrap();
        let before = writer.totals();
        let failed = writer.in_transaction(|_, spaces| -> Result<(), Failure> {
            spaces[0].totals.queued += 1;
            panic!("a bug of ours")
        });
        let failure = failed.expect_err("it is a failure");
        assert!(failure.trouble.is_of_one_commit() && !failure.is_in_doubt);
        writer.undo(&before);
        assert_eq!(writer.totals()[0].queued, before[0].queued);
        assert!(writer.activate(0).is_ok());
    }
}
