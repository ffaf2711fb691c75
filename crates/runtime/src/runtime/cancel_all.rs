//! Cancelling many instances at once: all of an engine that is shut down, or all of a definition that is unregistered.

use std::time::Duration;

use tidegate_model::{Cancellation, InstanceKey, Status, SubStatus};
use tidegate_store::{InstanceFilter, InstanceRow, Page};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::Runtime;
use crate::builder::blocking;
use crate::error::Error;
use crate::owner::{CancelOrder, Message};

/// How many instances one step takes.
const PAGE: usize = 1_000;
/// How long the end of what was cancelled is waited for before more is looked for.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

impl Runtime {
    /// Cancels what lives of `filter`, or everything if there is none, until nothing does, or until `until`. Where all is
    /// cancelled, calls end with their callers; what does not is cancelled itself. Answers how many it ended.
    pub(crate) async fn cancel_all(
        &self,
        filter: Option<&InstanceFilter>,
        reason: &str,
        until: Instant,
    ) -> u64 {
        let mut spares_calls = filter.is_none();
        let everything = InstanceFilter::default();
        let filter = filter.unwrap_or(&everything);
        let mut ended = 0;
        loop {
            let mut after = None;
            let mut open = None;
            loop {
                let page = match self.live(filter, after, PAGE).await {
                    Ok(page) => page,
                    Err(error) => {
                        tracing::error!("instances cannot be read to be cancelled: {error}");
                        return ended;
                    }
                };
                let is_last = page.len() < PAGE;
                after = page.last().map(|row| row.key.get());
                let rows = page
                    .into_iter()
                    .filter(|row| !spares_calls || row.parent.is_none());
                let (done, one_open) = self.cancel_page(rows.collect(), reason, until).await;
                ended += done;
                open = open.or(one_open);
                if is_last || Instant::now() >= until {
                    break;
                }
            }
            spares_calls = false;
            let open = match open {
                Some(open) => open,
                None => match self
                    .live(filter, None, 1)
                    .await
                    .ok()
                    .and_then(|rows| Some(rows.first()?.key))
                {
                    Some(open) => open,
                    None => return ended,
                },
            };
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return ended;
            }
            // Its end, or a new look: whichever is first.
            if let Err(Error::Stopped) = self.wait(open, left.min(LOOK_AGAIN)).await {
                return ended;
            }
        }
    }

    /// Cancels these. Answers how many have ended, and one that has not.
    async fn cancel_page(
        &self,
        rows: Vec<InstanceRow>,
        reason: &str,
        until: Instant,
    ) -> (u64, Option<InstanceKey>) {
        // Handlers that do not stop are abandoned early enough for the ends to become durable.
        let left = until.saturating_duration_since(Instant::now());
        let patience = self.shared().options.cancel_patience.min(left / 2);
        let mut waiting = Vec::with_capacity(rows.len());
        for row in rows {
            let order = Box::new(CancelOrder {
                instance: row.key,
                cancellation: Cancellation {
                    since: self.shared().now(),
                    actor: "runtime".to_owned(),
                    reason: Some(reason.to_owned()),
                    is_unheard: false,
                    patience_ms: u64::try_from(patience.as_millis()).ok(),
                },
                audit: None,
            });
            let (sender, receiver) = oneshot::channel();
            self.inner().owners.send(row.key, Message::Cancel(order, sender));
            waiting.push((row.key, receiver));
        }
        let (mut ended, mut open) = (0, None);
        for (key, receiver) in waiting {
            match tokio::time::timeout_at(until, receiver).await {
                Ok(Ok(Ok(row))) if row.sub_status.is_finished() => ended += 1,
                Ok(Ok(Err(error))) => {
                    tracing::warn!(instance = %key, "an instance could not be cancelled yet: {error}");
                    open = Some(key);
                }
                Ok(_) | Err(_) => open = Some(key),
            }
        }
        (ended, open)
    }

    /// Instances that match and have not ended, newest first.
    pub(crate) async fn live(
        &self,
        filter: &InstanceFilter,
        after: Option<u64>,
        limit: usize,
    ) -> Result<Vec<InstanceRow>, Error> {
        let running = |sub_status: &SubStatus| sub_status.status() == Status::Running;
        let filter = InstanceFilter {
            sub_statuses: SubStatus::ALL.into_iter().filter(running).collect(),
            ..filter.clone()
        };
        let store = self.shared().store.clone();
        blocking(move || store.instances(&filter, Page { limit, after })).await
    }
}
