//! Recovery on activation: interrupted instances resume by themselves, and those that a crash left executing are
//! brought back from their last commit, and cancelled ones go on ending. Nothing at rest is touched.

use std::sync::Arc;
use std::time::Duration;

use tidegate_model::{InstanceKey, SubStatus};
use tidegate_store::{InstanceFilter, InstanceRow, Page};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::owner::{Message, Owners};
use crate::shared::Shared;

/// How long a read that failed rests before the next try.
const AGAIN: Duration = Duration::from_secs(1);

/// What recovery looks for.
const WAITING: [SubStatus; 3] = [
    SubStatus::Executing,
    SubStatus::Interrupted,
    SubStatus::Cancelling,
];

/// Recovers what an earlier generation left, in batches; waits while the gate is closed.
pub(crate) async fn run(shared: Arc<Shared>, owners: Owners, stop: CancellationToken) {
    end_cancelled(&shared, &owners).await;
    let mut after: Option<InstanceKey> = None;
    // The crashed ones, and the interrupted ones.
    let mut done = [0_u64; 2];
    // What this generation starts meanwhile may be counted along; it is not waited for.
    let store = shared.store.clone();
    let all = match crate::tasks::blocking(move || store.counts()).await {
        Ok(Ok(counts)) => WAITING.iter().map(|of| counts[usize::from(of.code())]).sum(),
        Ok(Err(_)) | Err(_) => 0,
    };
    shared.recovering.store(0, all);
    loop {
        if !wait_until_open(&shared, &stop).await {
            return;
        }
        let store = shared.store.clone();
        let limit = shared.options.recovery_batch;
        let page = crate::tasks::blocking(move || store.recoverable(after, limit)).await;
        let rows = match page {
            Ok(Ok(rows)) => rows,
            Ok(Err(error)) => {
                tracing::error!("the instances to recover could not be read, trying again: {error}");
                tokio::select! {
                    biased;
                    () = stop.cancelled() => return,
                    () = tokio::time::sleep(AGAIN) => continue,
                }
            }
            Err(_) => return,
        };
        // Instances of this generation are above the floor and none of recovery's business. The rows come by their keys.
        let rows: Vec<InstanceRow> = rows
            .into_iter()
            .filter(|row| row.key.get() <= shared.key_floor)
            .collect();
        if rows.is_empty() {
            break;
        }
        let mut last = after;
        let mut refused_from = None;
        let mut waiting = Vec::with_capacity(rows.len());
        for row in rows {
            let key = row.key;
            let was_interrupted = row.sub_status == SubStatus::Interrupted;
            let (sender, receiver) = oneshot::channel();
            owners.send(key, Message::Recover(Box::new(row), sender));
            waiting.push((key, was_interrupted, receiver));
        }
        for (key, was_interrupted, receiver) in waiting {
            match receiver.await {
                Ok(true) | Err(_) => {
                    done[usize::from(was_interrupted)] += 1;
                }
                Ok(false) => refused_from = refused_from.or(Some(last)),
            }
            shared.recovering.store(done.iter().sum(), all);
            last = Some(key);
        }
        // Where the gate closed meanwhile, that part is done again after the next opening.
        after = refused_from.unwrap_or(last);
    }
    shared.recovering.end();
    let [crashed, interrupted] = done;
    tracing::info!(interrupted, crashed, "recovery is done");
    shared.tick();
}

/// Instances whose cancellation was asked for go on ending at once, whatever the gate says: that starts nothing.
async fn end_cancelled(shared: &Arc<Shared>, owners: &Owners) {
    let mut before = None;
    loop {
        let store = shared.store.clone();
        let filter = InstanceFilter {
            sub_statuses: vec![SubStatus::Cancelling],
            ..InstanceFilter::default()
        };
        let page = Page {
            after: before,
            limit: shared.options.recovery_batch,
        };
        let rows = match crate::tasks::blocking(move || store.instances(&filter, page)).await {
            Ok(Ok(rows)) => rows,
            Ok(Err(error)) => {
                tracing::error!("the cancelled instances could not be read: {error}");
                return;
            }
            Err(_) => return,
        };
        let Some(last) = rows.last() else { return };
        before = Some(last.key.get());
        for row in rows {
            let (done, _) = oneshot::channel();
            owners.send(row.key, Message::Recover(Box::new(row), done));
        }
        owners.barrier().await;
    }
}

async fn wait_until_open(shared: &Shared, stop: &CancellationToken) -> bool {
    let mut changed = shared.watch();
    loop {
        if shared.gate.read().is_accepting() && shared.switches.recovery.is_on() {
            return true;
        }
        tokio::select! {
            biased;
            () = stop.cancelled() => return false,
            change = changed.changed() => if change.is_err() { return false },
        }
    }
}
