//! Places among the live instances of a process whose number is limited, and what is forgotten.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tidegate_model::{Cancellation, InstanceKey, SubStatus, Timestamp};
use tidegate_store::InstanceRow;
use tokio::sync::oneshot;

use crate::error::Error;
use crate::shared::Counters;
use crate::slots::{Process, Turn};

use super::pending::{Domain, Item};
use super::{CancelOrder, Message, Owner};

impl Owner {
    /// Whether an instance may begin now. False: it waits. Whoever has to go for it is being cancelled.
    pub(super) fn turn(
        &self,
        process: &Arc<Process>,
        instance: InstanceKey,
        place: Option<(Timestamp, u64)>,
    ) -> Result<bool, Error> {
        match process.turn(instance, place) {
            Turn::Taken => Ok(true),
            Turn::Wait(victims) => {
                for victim in victims {
                    self.replace(victim);
                }
                Ok(false)
            }
            Turn::Refused(limit) => {
                Counters::add(&self.shared.counters.starts_skipped, 1);
                let process_id = process.process_id.to_string();
                tracing::info!(%instance, process_id, limit, event = "StartSkipped", "a start is skipped: its process has as many instances as it may");
                Err(Error::TooManyInstances { process_id, limit })
            }
        }
    }

    fn replace(&self, victim: InstanceKey) {
        let order = Box::new(CancelOrder {
            instance: victim,
            cancellation: Cancellation {
                since: self.now(),
                actor: "runtime".to_owned(),
                reason: Some("replaced by a newer start: the number of live instances is limited".to_owned()),
                is_unheard: false,
                patience_ms: None,
                caller: None,
            },
            audit: None,
        });
        // Nobody waits for the answer: the place is free when the end is told.
        let (reply, _) = oneshot::channel();
        self.owners.send(victim, Message::Cancel(order, reply));
    }

    /// An instance has ended, or never came to be: its place is given on.
    pub(super) fn free_place(&mut self, row: &InstanceRow) {
        if self.shared.definitions.processes.has_limits() {
            let process = self.shared.definitions.processes.of(&row.tenant, &row.process_id);
            self.free_place_of(&process, row.key);
        }
    }

    pub(super) fn free_place_of(&mut self, process: &Process, instance: InstanceKey) {
        for key in process.release(instance) {
            self.owners.send(key, Message::TurnCame(key));
        }
        // It may have waited for its turn.
        self.pending.unpark_domain(&Domain::Instance(instance));
    }

    /// After a commit that did not happen: the place goes if there is no instance.
    pub(super) fn check_place(&mut self, row: &InstanceRow) {
        if !self.shared.definitions.processes.has_limits() {
            return;
        }
        match self.shared.store.instance(row.key) {
            Ok(None) => self.free_place(row),
            Ok(Some(found)) if found.sub_status.is_finished() => self.free_place(row),
            // It goes on, or the reconciler looks again.
            Ok(Some(_)) | Err(_) => {}
        }
    }

    /// A start that will never be executed gives its place on.
    pub(super) fn start_is_dead(&mut self, domain: &Domain) {
        let Domain::Instance(key) = domain else { return };
        if !self.shared.definitions.processes.has_limits() {
            return;
        }
        if let Ok(Some(row)) = self.shared.store.instance(*key)
            && row.sub_status == SubStatus::Pending
        {
            self.free_place(&row);
        }
    }

    /// Instances are gone, and so are the stimuli that were queued for them.
    pub(super) fn forgotten(&mut self, keys: &[InstanceKey]) {
        for key in keys {
            if let Some(mut resident) = self.residents.remove(key)
                && let Some(since) = resident.idle_since.take()
            {
                self.idle.remove(&since);
                self.cache_bytes = self.cache_bytes.saturating_sub(resident.counted_bytes);
            }
            for item in self.pending.take_domain(&Domain::Instance(*key)) {
                match item {
                    Item::Stimulus(row) => {
                        Counters::add(&self.shared.counters.stimuli_refused, 1);
                        self.shared.queue_depth.fetch_sub(1, Ordering::Relaxed);
                        tracing::warn!(stimulus = %row.key, instance = %key, event = "StimulusRefused", "a queued stimulus went with its instance, which was forgotten");
                    }
                    // Its row went with the instance.
                    Item::Timer(_) => {}
                }
            }
        }
    }
}
