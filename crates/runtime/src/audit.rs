//! The audit trail's way into the store. An entry is written at once where that works; where it does not, it is logged,
//! kept in a bounded buffer, and written when the store takes commits again. Nobody waits long for it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tidegate_store::{AuditRow, Batch, Commit, Write};
use tokio::sync::{Notify, oneshot};
use tokio_util::sync::CancellationToken;

use crate::shared::{Counters, Shared};

/// How many entries wait for the store; beyond it the oldest is in the log only.
const MOST: usize = 1_000;
/// How long whoever caused an entry waits for it.
const PATIENCE: Duration = Duration::from_millis(250);
/// How long a failed entry rests before it is tried again.
const REST: Duration = Duration::from_millis(500);

/// The entries that the store has not taken yet, in their order.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    waiting: Mutex<VecDeque<AuditRow>>,
    came: Notify,
}

impl Outbox {
    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        self.waiting.lock().len()
    }

    /// Keeps an entry. True if an older one had to make room.
    fn keep(&self, row: AuditRow) -> Option<AuditRow> {
        let dropped = {
            let mut waiting = self.waiting.lock();
            waiting.push_back(row);
            if waiting.len() > MOST {
                waiting.pop_front()
            } else {
                None
            }
        };
        self.came.notify_one();
        dropped
    }
}

/// Tells the log of an entry, and gives what it was told.
pub(crate) fn log(row: &AuditRow) -> String {
    let text = serde_json::to_string(row).unwrap_or_default();
    tracing::info!(event = "Audit", audit = text, "audit");
    text
}

impl Shared {
    /// Writes an audit entry: durable when this returns, or logged and kept for later. For what has no commit of its own
    /// that could take it along.
    pub(crate) async fn write_audit(&self, row: AuditRow) {
        let text = log(&row);
        self.observers.tell_audit(&row);
        if self.outbox.len() > 0 {
            // Behind those that wait: the trail keeps its order.
            return self.keep_audit(row);
        }
        let (sender, told) = oneshot::channel();
        let (outbox, kept) = (self.outbox.clone(), row.clone());
        self.store.submit(Batch {
            epoch: self.epoch,
            key_high: 0,
            commits: vec![Commit {
                expect: Vec::new(),
                writes: vec![Write::Audit(Box::new(row))],
            }],
            done: Box::new(move |results| {
                if results.iter().any(Result::is_err) {
                    tracing::error!(audit = text, "an audit entry could not be stored yet");
                    outbox.keep(kept);
                }
                // Whoever caused it may have lost patience.
                let _ = sender.send(());
            }),
        });
        if tokio::time::timeout(PATIENCE, told).await.is_err() {
            tracing::warn!("an audit entry is still being written");
        }
    }

    fn keep_audit(&self, row: AuditRow) {
        if let Some(dropped) = self.outbox.keep(row) {
            Counters::add(&self.counters.audit_lost, 1);
            let text = serde_json::to_string(&dropped).unwrap_or_default();
            tracing::error!(
                audit = text,
                "too many audit entries wait for the store: this one stays in the log only"
            );
        }
    }

    /// Writes what waits. True if nothing is left.
    pub(crate) async fn write_kept_audit(&self) -> bool {
        let rows: Vec<AuditRow> = self.outbox.waiting.lock().iter().cloned().collect();
        if rows.is_empty() {
            return true;
        }
        let count = rows.len();
        let writes = rows.into_iter().map(|row| Write::Audit(Box::new(row))).collect();
        if self
            .commit(Commit {
                expect: Vec::new(),
                writes,
            })
            .await
            .is_err()
        {
            return false;
        }
        let mut waiting = self.outbox.waiting.lock();
        let written = count.min(waiting.len());
        waiting.drain(..written);
        waiting.is_empty()
    }
}

/// Writes kept entries when the store takes them, until `stop`.
pub(crate) async fn run(shared: Arc<Shared>, stop: CancellationToken) {
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = shared.outbox.came.notified() => {}
        }
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = tokio::time::sleep(REST) => {}
            }
            if shared.write_kept_audit().await {
                break;
            }
        }
    }
}
