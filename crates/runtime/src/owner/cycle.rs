//! A live execution cycle.

use tidegate_model::InstanceKey;
use tokio::time::Instant;

use crate::gate::{Live, Permit};

use super::Owner;

/// The run of one instance from the moment it is woken until it rests. It exists only with a permit, stands in the
/// registry for as long, and gives the permit back when it is dropped.
#[derive(Debug)]
pub(super) struct Cycle {
    _live: Live<Running>,
    /// The source that woke it; none for a library call.
    pub(super) source: Option<&'static str>,
    pub(super) began: Instant,
}

/// What the registry knows of a live cycle: enough to save its interruption when nobody else can be asked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Running {
    pub(crate) instance: InstanceKey,
    pub(crate) source: Option<&'static str>,
    pub(crate) began: Instant,
}

impl Owner {
    /// Makes a cycle of a permit.
    pub(super) fn cycle(&self, instance: InstanceKey, permit: Permit, source: Option<&'static str>) -> Cycle {
        let began = Instant::now();
        let running = Running {
            instance,
            source,
            began,
        };
        Cycle {
            _live: self.shared.registry.enter(self.index, permit, running),
            source,
            began,
        }
    }
}
