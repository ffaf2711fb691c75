//! Small work by the way: messages that nobody took in their time are removed, in small batches.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tidegate_store::{Batch, Commit, Write};
use tokio_util::sync::CancellationToken;

use crate::owner::Owners;
use crate::shared::{Counters, Shared};
use crate::slots;

/// How often it looks.
const EVERY_MS: i64 = 10_000;
/// How many messages one commit removes.
const HANDFUL: usize = 1_000;

/// Works until `stop`. The time to live of buffered messages stands still while the gate is closed: nothing is
/// removed then.
pub(crate) async fn run(shared: Arc<Shared>, owners: Owners, stop: CancellationToken) {
    loop {
        let next = shared.now().plus_ms(EVERY_MS);
        while shared.now() < next {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = shared.clock.sleep_until(next) => {}
            }
        }
        if shared.gate.read().is_accepting() {
            expire(&shared).await;
            slots::reconcile(&shared, &owners).await;
        }
    }
}

impl Shared {
    /// Lets buffered messages wait longer, behind everything that was committed and before everything that will be. What
    /// the store does not take is owed, and done before the next expiry.
    pub(crate) fn extend_messages(self: &Arc<Self>, by_ms: i64) {
        if by_ms == 0 {
            return;
        }
        let shared = self.clone();
        self.store.submit(Batch {
            epoch: self.epoch,
            key_high: 0,
            commits: vec![Commit {
                expect: Vec::new(),
                writes: vec![Write::ExtendMessages { by_ms }],
            }],
            done: Box::new(move |results| {
                if results.iter().any(Result::is_err) {
                    shared.owed_ms.fetch_add(by_ms, Ordering::Relaxed);
                }
            }),
        });
    }
}

async fn expire(shared: &Arc<Shared>) {
    let owed = shared.owed_ms.swap(0, Ordering::Relaxed);
    if owed != 0 {
        let writes = vec![Write::ExtendMessages { by_ms: owed }];
        if shared
            .commit(Commit {
                expect: Vec::new(),
                writes,
            })
            .await
            .is_err()
        {
            shared.owed_ms.fetch_add(owed, Ordering::Relaxed);
            return;
        }
    }
    loop {
        let writes = vec![Write::ExpireMessages {
            now: shared.now(),
            limit: HANDFUL,
        }];
        let Ok(outcome) = shared
            .commit(Commit {
                expect: Vec::new(),
                writes,
            })
            .await
        else {
            return;
        };
        Counters::add(&shared.counters.messages_expired, outcome.expired.len() as u64);
        for message in &outcome.expired {
            tracing::info!(%message, event = "MessageExpired", "a message found no taker in its time");
        }
        if outcome.expired.len() < HANDFUL {
            return;
        }
    }
}
