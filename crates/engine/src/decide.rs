//! Deciding: from the state and one step to events and the steps that follow. Changes nothing.

mod command;
mod end;
mod error;
mod event;
mod token;
mod turn;

use tidegate_model::{Command, ElementInstanceKey};

use crate::definition::FlowIndex;
use crate::event::Event;
pub(crate) use turn::Turn;

/// One step of the loop.
#[derive(Debug, Clone)]
pub enum Step {
    /// What was asked from outside; always the first step.
    Command(Command),
    /// A token on a flow reaches the flow's target.
    Enter {
        /// The scope the token is in.
        scope: ElementInstanceKey,
        /// The flow.
        flow: FlowIndex,
    },
    /// An element instance begins what it does.
    Activate(ElementInstanceKey),
    /// An element instance has done what it does: its results go out.
    Complete(ElementInstanceKey),
    /// An element instance is left by its outgoing flows.
    Leave(ElementInstanceKey),
    /// Something ended inside an element instance that decides what comes next: a turn, a handler, an activity.
    Next(ElementInstanceKey),
    /// A call activity calls once more.
    Call(ElementInstanceKey),
    /// A scope may have ended.
    CloseScope(ElementInstanceKey),
}

/// What one step comes to.
#[derive(Debug, Default)]
pub struct Decision {
    /// What happened, to be applied in this order.
    pub events: Vec<Event>,
    /// What is to be decided next, after the events are applied.
    pub follow_ups: Vec<Step>,
}

impl Decision {
    /// How far it is, to come back to.
    pub(crate) fn mark(&self) -> (usize, usize) {
        (self.events.len(), self.follow_ups.len())
    }

    /// Forgets everything after the mark.
    pub(crate) fn back_to(&mut self, (events, follow_ups): (usize, usize)) {
        self.events.truncate(events);
        self.follow_ups.truncate(follow_ups);
    }
}
