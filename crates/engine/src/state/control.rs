//! What operators did to the instance and what stands: holds, and a request to cancel.

use minicbor::{Decode, Encode};
use tidegate_model::{Cancellation, ElementInstanceKey, HeldTimers, Hold, InstanceKey, Timestamp};

use crate::state::{Instance, Stage, Wait, WaitFor};

/// Holds and the cancellation.
#[derive(Debug, Clone, Default, PartialEq, Encode, Decode)]
pub(crate) struct Control {
    /// One of each origin.
    #[n(0)]
    pub(crate) holds: Vec<Hold>,
    /// Since when the clock of the timers stands still.
    #[n(1)]
    pub(crate) still_since: Option<Timestamp>,
    #[n(2)]
    pub(crate) cancellation: Option<Cancellation>,
}

impl Control {
    pub(crate) fn is_empty(&self) -> bool {
        self.holds.is_empty() && self.cancellation.is_none()
    }

    pub(crate) fn hold(&mut self, hold: &Hold) {
        self.holds.retain(|other| other.origin != hold.origin);
        self.holds.push(hold.clone());
        if hold.timers == HeldTimers::StandStill {
            self.still_since.get_or_insert(hold.since);
        }
        if !self.stands_still() {
            self.still_since = None;
        }
    }

    pub(crate) fn release(&mut self, origins: &[InstanceKey]) {
        self.holds.retain(|hold| !origins.contains(&hold.origin));
        if !self.stands_still() {
            self.still_since = None;
        }
    }

    fn stands_still(&self) -> bool {
        self.holds
            .iter()
            .any(|hold| hold.timers == HeldTimers::StandStill)
    }

    /// By how much the timers are late when the holds of `origins` end now, in milliseconds.
    pub(crate) fn stood_still(&self, origins: &[InstanceKey], now: Timestamp) -> Option<i64> {
        let since = self.still_since?;
        let mut left = self.holds.iter().filter(|hold| !origins.contains(&hold.origin));
        let goes_on = left.any(|hold| hold.timers == HeldTimers::StandStill);
        (!goes_on)
            .then(|| now.since(since).max(0))
            .filter(|shift| *shift > 0)
    }
}

impl Instance {
    /// The holds on it. It is held as long as there is one.
    pub fn holds(&self) -> &[Hold] {
        &self.control.holds
    }

    /// True while an operator holds it: nothing of it goes on. One that is being cancelled is held no longer.
    pub fn is_held(&self) -> bool {
        !self.control.holds.is_empty() && self.control.cancellation.is_none() && self.ended().is_none()
    }

    /// The request to cancel it that stands.
    pub fn cancellation(&self) -> Option<&Cancellation> {
        self.control.cancellation.as_ref()
    }

    /// True once its cancellation was asked for, until it has ended.
    pub fn is_cancelling(&self) -> bool {
        self.control.cancellation.is_some() && self.ended().is_none()
    }

    /// Since when the clock of its timers stands still.
    pub fn stands_still_since(&self) -> Option<Timestamp> {
        self.control.still_since
    }

    /// The instances it has called and that have not said that they ended.
    pub fn children(&self) -> impl Iterator<Item = InstanceKey> {
        self.elements
            .values()
            .filter_map(|state| state.call().map(|call| call.child))
    }

    /// When a job may be tried again after a failure.
    pub fn job_not_before(&self, job: ElementInstanceKey) -> Option<Timestamp> {
        match &self.elements.get(&job)?.stage {
            Stage::Job { not_before, .. } => *not_before,
            Stage::Entered
            | Stage::UserTask { .. }
            | Stage::Waiting
            | Stage::Running
            | Stage::Call(_)
            | Stage::Leaving { .. }
            | Stage::Joined { .. } => None,
        }
    }

    /// Moves everything that is due at a time.
    pub(crate) fn shift(&mut self, by_ms: i64) {
        let later = |waits: &mut Vec<Wait>| {
            for wait in waits {
                if let WaitFor::Timer { due_at, .. } = &mut wait.kind {
                    *due_at = due_at.plus_ms(by_ms);
                }
            }
        };
        later(&mut self.waits);
        for state in self.elements.values_mut() {
            later(&mut state.waits);
            if let Stage::Job {
                not_before: Some(at), ..
            } = &mut state.stage
            {
                *at = at.plus_ms(by_ms);
            }
        }
    }
}
