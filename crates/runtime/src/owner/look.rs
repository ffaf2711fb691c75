//! What only an owner knows of an instance: what runs in it at this moment, and what waits for it.

use std::sync::Arc;
use std::time::Duration;

use tidegate_model::{ElementInstanceKey, InstanceKey};
use tokio::sync::oneshot;

use super::Owner;
use super::pending::Domain;

/// What an owner sees of an instance.
#[derive(Debug, Clone, Default)]
pub(crate) struct Look {
    /// The activities whose handlers run.
    pub(crate) running: Vec<(ElementInstanceKey, Arc<str>)>,
    /// How long its cycle has run, if it has one.
    pub(crate) cycle: Option<Duration>,
    /// How many stimuli and due timers wait for their turn in it.
    pub(crate) queued: u32,
    /// True if a commit of it failed and is tried again.
    pub(crate) is_stalled: bool,
}

impl Owner {
    pub(super) fn look(&mut self, key: InstanceKey, reply: oneshot::Sender<Look>) {
        let mut look = Look {
            queued: self.pending.count(&Domain::Instance(key)),
            is_stalled: self.stalled.values().any(|keys| keys.contains(&key)),
            ..Look::default()
        };
        if let Some(resident) = self.residents.get(&key) {
            let running = resident.running.iter();
            look.running = running.map(|r| (r.job, r.element_id.clone())).collect();
            look.cycle = resident.cycle.as_ref().map(|cycle| cycle.began.elapsed());
        }
        // Whoever asked may have gone.
        let _ = reply.send(look);
    }
}
