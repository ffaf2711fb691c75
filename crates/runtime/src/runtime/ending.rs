//! The end of a runtime: drain, then close.

use std::sync::Arc;
use std::time::Duration;

use tidegate_store::Store;

use super::Runtime;
use crate::builder::blocking;
use crate::owner::Message;
use crate::status::{DrainOutcome, DrainTrigger};

/// How long kept audit entries rest before the next try.
const BETWEEN_TRIES: Duration = Duration::from_millis(25);

impl Runtime {
    /// Drains: forward-only, ends this generation. A second call waits for the first and answers the same.
    pub async fn drain(&self, trigger: DrainTrigger) -> DrainOutcome {
        (*self.inner.drain.run(trigger).await).clone()
    }

    /// Ends the runtime after a drain: joins its tasks and threads, then closes the store. Idempotent.
    pub async fn close(&self) {
        let at_most = self.shared().options.reserve();
        self.close_within(at_most).await;
    }

    pub(crate) async fn close_within(&self, at_most: Duration) {
        if !self.release_within(at_most).await {
            tracing::error!("the store is not closed: a thread of the runtime still works in it");
            return;
        }
        close_store(self.shared().store.clone(), at_most).await;
    }

    /// Ends the runtime after a drain and leaves its store open, for the next generation. False if something of it
    /// still works in the store. Idempotent.
    pub async fn release(&self) -> bool {
        let at_most = self.shared().options.reserve();
        self.release_within(at_most).await
    }

    /// A store that hangs must not hold the process for good: what does not end within `at_most` is left, by name.
    async fn release_within(&self, at_most: Duration) -> bool {
        self.shared().life.stop();
        self.inner.stop.cancel();
        self.inner.owners.tell_all(|| Message::Stop);
        let kept = async {
            while !self.shared().write_kept_audit().await {
                tokio::time::sleep(BETWEEN_TRIES).await;
            }
        };
        if tokio::time::timeout(at_most / 4, kept).await.is_err() {
            tracing::error!(
                entries = self.shared().outbox.len(),
                "audit entries stay in the log only"
            );
        }
        if !self.shared().observers.is_closed() {
            let now = self.shared().now();
            let details = serde_json::json!({ "generationId": &*self.shared().generation });
            self.shared()
                .observers
                .tell_runtime(now, "RuntimeStopped".into(), details);
            self.shared().observers.close();
        }
        self.inner.tasks.join(at_most).await
    }
}

/// Closes the store of a runtime that has been released. One that hangs is left, by name.
pub(crate) async fn close_store(store: Arc<dyn Store>, at_most: Duration) {
    let closing = blocking(move || {
        store.close();
        Ok(())
    });
    match tokio::time::timeout(at_most, closing).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::error!("the store could not be closed: {error}"),
        Err(_) => tracing::error!("the store did not close in time; the next start finds all of it"),
    }
}
