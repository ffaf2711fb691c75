//! Cancelling many instances at once: all of an engine that is shut down, or all of a definition that is unregistered.

use std::collections::BTreeSet;
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
        // Whom it was asked of: handlers that stop and called instances take a while, so the end comes later.
        let mut asked = BTreeSet::new();
        loop {
            let mut after = None;
            let mut open = None;
            loop {
                let page = match self.live(filter, after, PAGE).await {
                    Ok(page) => page,
                    Err(error) => {
                        tracing::error!("instances cannot be read to be cancelled: {error}");
                        return self.ended_of(filter, &asked).await;
                    }
                };
                let is_last = page.len() < PAGE;
                after = page.last().map(|row| row.key.get());
                let rows = page
                    .into_iter()
                    .filter(|row| !spares_calls || row.parent.is_none());
                let one_open = self.cancel_page(rows.collect(), reason, until, &mut asked).await;
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
                    None => return asked.len() as u64,
                },
            };
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return self.ended_of(filter, &asked).await;
            }
            // Its end, or a new look: whichever is first.
            if let Err(Error::Stopped) = self.wait(open, left.min(LOOK_AGAIN)).await {
                return self.ended_of(filter, &asked).await;
            }
        }
    }

    /// How many of these live no more.
    async fn ended_of(&self, filter: &InstanceFilter, asked: &BTreeSet<InstanceKey>) -> u64 {
        let (mut after, mut live) = (None, 0);
        while let Ok(page) = self.live(filter, after, PAGE).await {
            live += page.iter().filter(|row| asked.contains(&row.key)).count();
            after = page.last().map(|row| row.key.get());
            if page.len() < PAGE {
                break;
            }
        }
        asked.len().saturating_sub(live) as u64
    }

    /// Cancels these, and notes whom it could ask. Answers one that has not ended.
    async fn cancel_page(
        &self,
        rows: Vec<InstanceRow>,
        reason: &str,
        until: Instant,
        asked: &mut BTreeSet<InstanceKey>,
    ) -> Option<InstanceKey> {
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
                    caller: None,
                },
                audit: None,
            });
            let (sender, receiver) = oneshot::channel();
            self.inner().owners.send(row.key, Message::Cancel(order, sender));
            waiting.push((row.key, receiver));
        }
        let mut open = None;
        for (key, receiver) in waiting {
            match tokio::time::timeout_at(until, receiver).await {
                Ok(Ok(Ok(row))) => {
                    asked.insert(key);
                    if !row.sub_status.is_finished() {
                        open = Some(key);
                    }
                }
                Ok(Ok(Err(error))) => {
                    tracing::warn!(instance = %key, "an instance could not be cancelled yet: {error}");
                    open = Some(key);
                }
                Ok(_) | Err(_) => open = Some(key),
            }
        }
        open
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
