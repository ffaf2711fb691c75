//! Small work by the way: messages that nobody took in their time are removed, in small batches.

use std::sync::Arc;

use tidegate_store::{Commit, Write};
use tokio_util::sync::CancellationToken;

use crate::shared::{Counters, Shared};

/// How often it looks.
const EVERY_MS: i64 = 10_000;
/// How many messages one commit removes.
const HANDFUL: usize = 1_000;

/// Works until `stop`. The time to live of buffered messages stands still while the gate is closed: nothing is
/// removed then.
pub(crate) async fn run(shared: Arc<Shared>, stop: CancellationToken) {
    loop {
        let next = shared.now().plus_ms(EVERY_MS);
        while shared.now() < next {
            tokio::select! {
                () = stop.cancelled() => return,
                () = shared.clock.sleep_until(next) => {}
            }
        }
        if shared.gate.read().is_accepting() {
            expire(&shared).await;
        }
    }
}

async fn expire(shared: &Shared) {
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
