//! A live execution cycle.

use std::time::Instant;

use crate::gate::Permit;

/// The run of one instance from the moment it is woken until it rests. It exists only with a permit, and gives
/// it back when it is dropped.
#[derive(Debug)]
pub(super) struct Cycle {
    _permit: Permit,
    /// The source that woke it; none for a library call.
    pub(super) source: Option<&'static str>,
    pub(super) began: Instant,
}

impl Cycle {
    pub(super) fn new(permit: Permit, source: Option<&'static str>) -> Self {
        Self {
            _permit: permit,
            source,
            began: Instant::now(),
        }
    }
}
