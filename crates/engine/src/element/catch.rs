//! What an event catches, and the parts of an event that has several definitions.

use crate::decide::{Step, Turn};
use crate::definition::StarterTrigger;
use crate::element::{Active, Behaviour, ErrorCatch, Trigger};
use crate::text::Failure;

/// One event definition that catches.
#[derive(Debug)]
pub(crate) enum Catch {
    Trigger(Trigger),
    Error(ErrorCatch),
    Escalation(ErrorCatch),
}

impl Catch {
    pub(crate) fn trigger(&self) -> Option<&Trigger> {
        match self {
            Self::Trigger(trigger) => Some(trigger),
            Self::Error(_) | Self::Escalation(_) => None,
        }
    }

    pub(crate) fn error(&self) -> Option<&ErrorCatch> {
        match self {
            Self::Error(error) => Some(error),
            Self::Trigger(_) | Self::Escalation(_) => None,
        }
    }

    pub(crate) fn escalation(&self) -> Option<&ErrorCatch> {
        match self {
            Self::Escalation(escalation) => Some(escalation),
            Self::Trigger(_) | Self::Error(_) => None,
        }
    }
}

/// One of several definitions of an event. It is never activated: its event is.
#[derive(Debug)]
pub(crate) struct EventPart {
    pub(crate) catch: Catch,
    /// True if it comes only once.
    pub(crate) once: bool,
    /// True if it creates instances.
    pub(crate) starts: bool,
}

impl Behaviour for EventPart {
    fn activate(&self, turn: &mut Turn<'_>, me: &Active<'_>) -> Result<(), Box<Failure>> {
        turn.then(Step::Complete(me.key));
        Ok(())
    }

    fn starter(&self) -> Option<StarterTrigger> {
        self.catch.trigger().filter(|_| self.starts)?.starter()
    }

    fn trigger(&self) -> Option<&Trigger> {
        self.catch.trigger()
    }

    fn catches(&self) -> Option<&ErrorCatch> {
        self.catch.error()
    }

    fn catches_escalation(&self) -> Option<&ErrorCatch> {
        self.catch.escalation()
    }

    fn is_interrupting(&self) -> bool {
        self.once
    }
}
