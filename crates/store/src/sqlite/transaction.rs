//! Batches in transactions: all that gathered in one, and one by one when that one fails.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use rusqlite::Connection;

use super::error::{Stop, Trouble};
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

/// The writing connection and what it has written.
pub(super) struct Writer {
    conn: Connection,
    path: PathBuf,
    options: Options,
    totals: Totals,
    wal_pages: Arc<AtomicU32>,
    tally: Arc<Tally>,
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
        let totals = Totals::read(&conn)?;
        let mut writer = Self {
            conn,
            path,
            options,
            totals,
            wal_pages: Arc::default(),
            tally: Arc::default(),
        };
        writer.watch_wal()?;
        Ok(writer)
    }

    /// How many pages the WAL held after the last commit.
    pub fn wal_pages(&self) -> u32 {
        self.wal_pages.load(Ordering::Relaxed)
    }

    pub fn tally(&self) -> &Arc<Tally> {
        &self.tally
    }

    pub fn limit_pages(&self, pages: u32) -> Result<(), Error> {
        open::limit_pages(&self.conn, pages).map_err(|trouble| trouble.into_error(&self.path))
    }

    pub fn activate(&mut self) -> Result<Activation, Error> {
        let before = self.totals;
        let activated = self.in_transaction(|conn, totals| Ok(totals.activate(conn)?));
        activated.map_err(|failure| {
            self.undo(before);
            failure.trouble.into_error(&self.path)
        })
    }

    /// Runs the batches and gives the outcome of each commit of each batch.
    pub fn run(&mut self, batches: &[Batch]) -> Vec<Vec<CommitResult>> {
        let results = self.write(batches);
        let made = results.iter().flatten().filter(|result| result.is_ok()).count();
        self.tally.commits.fetch_add(made as u64, Ordering::Relaxed);
        results
    }

    fn write(&mut self, batches: &[Batch]) -> Vec<Vec<CommitResult>> {
        let before = self.totals;
        let together = self.in_transaction(|conn, totals| {
            let results = batches
                .iter()
                .map(|batch| run_batch(conn, totals, batch))
                .collect::<Result<_, _>>()?;
            totals.write(conn)?;
            Ok(results)
        });
        match together {
            Ok(results) => results,
            Err(failure) => {
                self.undo(before);
                let commits: usize = batches.iter().map(|batch| batch.commits.len()).sum();
                if commits <= 1 || failure.is_in_doubt || !failure.trouble.is_of_one_commit() {
                    self.fail_all(batches, failure)
                } else {
                    self.replay(batches)
                }
            }
        }
    }

    /// Each commit in a transaction of its own, so that a poisonous one harms only itself.
    fn replay(&mut self, batches: &[Batch]) -> Vec<Vec<CommitResult>> {
        let mut hopeless: Option<Error> = None;
        let mut full_in_a_row = 0;
        let mut results = Vec::with_capacity(batches.len());
        for batch in batches {
            let mut of_batch = Vec::with_capacity(batch.commits.len());
            for commit in &batch.commits {
                if let Some(error) = &hopeless {
                    of_batch.push(Err(failed(error.clone(), false)));
                    continue;
                }
                let before = self.totals;
                let alone = self.in_transaction(|conn, totals| {
                    let result = run_commit(conn, totals, batch, commit)?;
                    totals.write(conn)?;
                    Ok(result)
                });
                of_batch.push(match alone {
                    Ok(result) => {
                        full_in_a_row = 0;
                        result
                    }
                    Err(Failure { trouble, is_in_doubt }) => {
                        self.undo(before);
                        let is_of_one_commit = trouble.is_of_one_commit() && !is_in_doubt;
                        let error = trouble.into_error(&self.path);
                        full_in_a_row = if error.kind() == ErrorKind::Full {
                            full_in_a_row + 1
                        } else {
                            0
                        };
                        if !is_of_one_commit || full_in_a_row >= FULL_IN_A_ROW {
                            hopeless = Some(error.clone());
                        }
                        Err(failed(error, is_in_doubt))
                    }
                });
            }
            results.push(of_batch);
        }
        results
    }

    fn fail_all(&self, batches: &[Batch], failure: Failure) -> Vec<Vec<CommitResult>> {
        let Failure { trouble, is_in_doubt } = failure;
        let error = trouble.into_error(&self.path);
        batches
            .iter()
            .map(|batch| {
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
        work: impl FnOnce(&Connection, &mut Totals) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        self.statement("BEGIN IMMEDIATE")?;
        let result = work(&self.conn, &mut self.totals)?;
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

    fn statement(&self, sql: &str) -> rusqlite::Result<()> {
        self.conn.prepare_cached(sql)?.execute([]).map(drop)
    }

    /// Leaves the connection outside of any transaction, with the totals as they were. SQLite may have rolled back
    /// by itself; where it cannot be made to, a new connection does the same.
    fn undo(&mut self, before: Totals) {
        self.totals = before;
        if !self.conn.is_autocommit() {
            let _ = self.statement("ROLLBACK");
        }
        if self.conn.is_autocommit() {
            return;
        }
        if let Ok(conn) = open::writer_again(&self.path, &self.options) {
            self.conn = conn;
            let _ = self.watch_wal();
        }
    }

    /// After a panic inside a transaction.
    pub fn recover(&mut self) {
        let totals = self.totals;
        self.undo(totals);
        if let Ok(totals) = Totals::read(&self.conn) {
            self.totals = totals;
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

fn run_batch(conn: &Connection, totals: &mut Totals, batch: &Batch) -> Result<Vec<CommitResult>, Failure> {
    batch
        .commits
        .iter()
        .map(|commit| run_commit(conn, totals, batch, commit))
        .collect()
}

fn run_commit(
    conn: &Connection,
    totals: &mut Totals,
    batch: &Batch,
    commit: &Commit,
) -> Result<CommitResult, Failure> {
    if batch.epoch as i64 != totals.epoch {
        return Ok(Err(failed(fenced(batch.epoch), false)));
    }
    totals.key_high = totals.key_high.max(batch.key_high as i64);
    match commit::run(conn, totals, commit) {
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
