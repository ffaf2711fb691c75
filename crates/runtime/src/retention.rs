//! Retention: finished instances that are older, or more, than their definition keeps are forgotten, in small batches by
//! key. It is ordinary background work: it stops with the gate, between two batches. Only one of its batches is with the
//! store at a time, in the line like everybody's commits: the busier the store is, the fewer there are, and nobody waits for
//! more than one. Every batch is a commit, so a restart loses nothing of its progress.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tidegate_model::{InstanceKey, Timestamp};
use tidegate_store::{Commit, EndedRow, Page, Write};
use tokio_util::sync::CancellationToken;

use crate::builder::blocking;
use crate::error::Error;
use crate::forget::{JournalFate, SLICE, forget, with_called};
use crate::owner::Owners;
use crate::shared::Shared;

/// How many instances one batch forgets at most.
pub(crate) const BATCH: usize = 250;
/// How many fences whose time has come, and rows of long journals, go with a batch: as much as comes, and more.
const SWEPT: usize = 2 * BATCH;
/// How long it rests after a batch while anything else is live.
const REST: Duration = Duration::from_millis(5);
/// How often an operation on many that is over is looked at.
const OPERATIONS_PAGE: usize = 100;

/// Works until `stop`.
pub(crate) async fn run(shared: Arc<Shared>, owners: Owners, stop: CancellationToken) {
    let every = i64::try_from(shared.options.retention.every.as_millis()).unwrap_or(i64::MAX / 4);
    loop {
        let next = shared.now().plus_ms(every);
        let sweeper = Sweeper {
            shared: &shared,
            owners: &owners,
            stop: &stop,
        };
        if let Err(error) = sweeper.pass().await {
            tracing::warn!("retention goes on at its next turn: {error}");
        }
        while shared.now() < next {
            tokio::select! {
                () = stop.cancelled() => return,
                () = shared.swept.notified() => break,
                () = shared.clock.sleep_until(next) => {}
            }
        }
        if stop.is_cancelled() {
            return;
        }
    }
}

struct Sweeper<'a> {
    shared: &'a Arc<Shared>,
    owners: &'a Owners,
    stop: &'a CancellationToken,
}

impl Sweeper<'_> {
    fn may_go_on(&self) -> bool {
        self.shared.gate.read().is_accepting() && !self.stop.is_cancelled()
    }

    /// Forgets what is due, process by process, and sweeps up what forgetting leaves.
    async fn pass(&self) -> Result<(), Error> {
        self.sweep().await?;
        let mut after: Option<(String, String)> = None;
        while self.may_go_on() {
            let store = self.shared.store.clone();
            let found = blocking(move || {
                let after = after.as_ref().map(|(id, tenant)| (id.as_str(), tenant.as_str()));
                store.next_ended_process(after)
            });
            let Some(process) = found.await? else { break };
            self.process(&process).await?;
            after = Some(process);
        }
        self.operations().await
    }

    async fn process(&self, process: &(String, String)) -> Result<(), Error> {
        let (process_id, tenant) = process;
        let state = self.shared.definitions.processes.of(tenant, process_id);
        let settings = state.effective();
        let now = self.shared.now();
        let age = settings
            .retention_ms
            .map(|ms| i64::try_from(ms).unwrap_or(i64::MAX / 4));
        let by_age = age.map(|age| now.plus_ms(-age));
        let by_count = match settings.retention_count {
            None => None,
            Some(keep) => {
                let (store, process) = (self.shared.store.clone(), process.clone());
                let keep = usize::try_from(keep).unwrap_or(usize::MAX);
                blocking(move || store.ended_beyond((&process.0, &process.1), keep)).await?
            }
        };
        // Everything up to the later of the two cuts goes.
        let Some(until) = by_age.max(by_count.map(|(at, _)| at)) else {
            return Ok(());
        };
        let goes = move |row: &EndedRow| {
            by_age.is_some_and(|cut| row.ended_at <= cut)
                || by_count.is_some_and(|cut| (row.ended_at, row.key) <= cut)
        };
        let mut after: Option<(Timestamp, InstanceKey)> = None;
        let mut forgotten = 0_usize;
        while self.may_go_on() {
            let (shared, process) = (self.shared.clone(), process.clone());
            let read = blocking(move || {
                let rows = shared
                    .store
                    .ended((&process.0, &process.1), until, after, BATCH)?;
                let rows: Vec<EndedRow> = rows.into_iter().filter(goes).collect();
                let last = rows.last().map(|row| (row.ended_at, row.key));
                let due: BTreeSet<InstanceKey> = rows.iter().map(|row| row.key).collect();
                Ok((last, batches(&shared, due)?))
            });
            let (last, batches) = read.await?;
            let Some(last) = last else { break };
            after = Some(last);
            for batch in batches {
                if !self.may_go_on() {
                    return Ok(());
                }
                forgotten += self.forget(batch).await?;
            }
            self.rest().await;
        }
        if forgotten > 0 {
            tracing::debug!(
                process_id,
                tenant,
                forgotten,
                event = "RetentionApplied",
                "finished instances were forgotten"
            );
        }
        Ok(())
    }

    /// Forgets a batch; what is still called by a live instance, or calls one, stays for a later pass.
    async fn forget(&self, batch: Vec<InstanceKey>) -> Result<usize, Error> {
        let count = batch.len();
        let sweep = Write::SweepForgotten {
            now: self.shared.now(),
            limit: SWEPT,
        };
        let answer = forget(self.shared, self.owners, batch, JournalFate::Dropped, Some(sweep)).await;
        match answer {
            Ok(_) => Ok(count),
            Err(Error::InstanceLive(_) | Error::NoSuchInstance(_)) => Ok(0),
            Err(error) => Err(error),
        }
    }

    /// Slices of long journals, and fences whose time has come.
    async fn sweep(&self) -> Result<(), Error> {
        while self.may_go_on() {
            let writes = vec![Write::SweepForgotten {
                now: self.shared.now(),
                limit: SLICE,
            }];
            if self.commit(writes).await? < SLICE as u64 {
                break;
            }
            self.rest().await;
        }
        Ok(())
    }

    /// Operations on many that are over for as long as finished instances are kept go too.
    async fn operations(&self) -> Result<(), Error> {
        let Some(age) = self.shared.options.retention.age else {
            return Ok(());
        };
        let age = i64::try_from(age.as_millis()).unwrap_or(i64::MAX / 4);
        let cut = self.shared.now().plus_ms(-age);
        let mut page = Page::first(OPERATIONS_PAGE);
        while self.may_go_on() {
            let store = self.shared.store.clone();
            let rows = blocking(move || store.operations(page)).await?;
            page.after = rows.last().map(|row| row.key);
            let is_last = rows.len() < OPERATIONS_PAGE;
            for row in rows {
                let is_due = row.ended_at.is_some_and(|at| at <= cut);
                while is_due && self.may_go_on() {
                    let (key, limit) = (row.key, SLICE);
                    let removed = self.commit(vec![Write::RemoveOperation { key, limit }]).await?;
                    if removed < SLICE as u64 {
                        break;
                    }
                    self.rest().await;
                }
            }
            if is_last {
                break;
            }
        }
        Ok(())
    }

    async fn commit(&self, writes: Vec<Write>) -> Result<u64, Error> {
        let commit = Commit {
            expect: Vec::new(),
            writes,
        };
        match self.shared.commit(commit).await {
            Ok(outcome) => Ok(outcome.removed),
            Err(error) => Err(crate::owner::problem_of(&error)),
        }
    }

    async fn rest(&self) {
        if self.shared.gate.read().live() == 0 {
            return tokio::task::yield_now().await;
        }
        tokio::select! {
            () = self.stop.cancelled() => {}
            () = tokio::time::sleep(REST) => {}
        }
    }
}

/// Cuts what is due into batches of at most [`BATCH`], each with all that its instances called. What called too many goes in
/// a later pass, after those that it called.
fn batches(
    shared: &Shared,
    due: BTreeSet<InstanceKey>,
) -> Result<Vec<Vec<InstanceKey>>, tidegate_store::Error> {
    let mut batches = Vec::new();
    let mut batch: BTreeSet<InstanceKey> = BTreeSet::new();
    let mut alone = Vec::new();
    for key in due {
        if batch.contains(&key) {
            continue;
        }
        let Some(tree) = with_called(shared, BTreeSet::from([key]), BATCH)? else {
            continue;
        };
        if is_any_live(shared, &tree)? {
            continue;
        }
        if tree.len() > 1 {
            // Its own batch: one that cannot go yet keeps nobody else back.
            alone.push(tree);
            continue;
        }
        batch.insert(key);
        if batch.len() >= BATCH {
            batches.push(std::mem::take(&mut batch).into_iter().collect());
        }
    }
    let of_trees: BTreeSet<InstanceKey> = alone.iter().flatten().copied().collect();
    batch.retain(|key| !of_trees.contains(key));
    if !batch.is_empty() {
        batches.push(batch.into_iter().collect());
    }
    batches.extend(alone);
    Ok(batches)
}

/// Whether one of a call tree has not ended: then it stays whole for now.
fn is_any_live(shared: &Shared, tree: &[InstanceKey]) -> Result<bool, tidegate_store::Error> {
    if tree.len() == 1 {
        return Ok(false);
    }
    for key in tree {
        if let Some(row) = shared.store.instance(*key)?
            && !row.sub_status.is_finished()
        {
            return Ok(true);
        }
    }
    Ok(false)
}
