//! Deciding: from the state and one step to events and the steps that follow. Changes nothing.

mod command;
mod condition;
mod control;
mod end;
mod error;
mod escalation;
mod event;
mod join;
mod modify;
mod token;
mod turn;

use std::sync::Arc;

use tidegate_model::{Command, ElementIndex, ElementInstanceKey, Variables};

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
    /// A sub-process in which something was begun from outside: what surrounds its content begins too.
    EnterScope(ElementInstanceKey),
    /// A scope may have ended.
    CloseScope(ElementInstanceKey),
    /// A scope begins to listen for the starts of its event sub-processes.
    Listen(ElementInstanceKey),
    /// An event with several definitions waits for them, `except` for one that has come already.
    Arm {
        /// Who waits.
        owner: ElementInstanceKey,
        /// The event.
        event: ElementIndex,
        /// The definition that has come.
        except: Option<ElementIndex>,
    },
    /// A signal reaches everything in the instance that waits for it.
    Signal {
        /// Its name.
        name: Arc<str>,
        /// Its payload.
        variables: Variables,
    },
    /// A signal reaches one of those that wait for it.
    CatchSignal {
        /// Who waits.
        owner: ElementInstanceKey,
        /// The signal event.
        element: ElementIndex,
        /// Its payload.
        variables: Variables,
    },
    /// An escalation goes outward from the element instance that throws it.
    Escalate {
        /// The element instance.
        key: ElementInstanceKey,
        /// The escalation code.
        code: Arc<str>,
        /// Variables for the scope that catches it.
        variables: Variables,
    },
    /// An activity whose work was interrupted fails.
    FailInterrupted(ElementInstanceKey),
    /// What an element instance throws has been delivered.
    Thrown(ElementInstanceKey),
    /// Variables have changed: every condition is looked at again.
    Conditions,
    /// One condition is looked at again.
    Condition {
        /// Who waits.
        owner: ElementInstanceKey,
        /// The conditional event.
        element: ElementIndex,
    },
    /// Nothing else goes on: the gateways of a scope that wait for what can still come are asked.
    Join(ElementInstanceKey),
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
