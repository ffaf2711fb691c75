//! Timers and messages that come: for the element itself, for a boundary event, or behind an event-based gateway.

use tidegate_model::{ElementIndex, ElementInstanceKey, MessageKey, Rejection, Timestamp, Variables};

use crate::decide::{Step, Turn};
use crate::event::Event;
use crate::state::{ElementInstance, WaitFor};

impl<'a> Turn<'a> {
    /// An armed timer fell due.
    pub(crate) fn timer(
        &mut self,
        owner: ElementInstanceKey,
        element: ElementIndex,
        due_at: Timestamp,
    ) -> Result<(), Rejection> {
        let state = self.waiting(owner)?;
        let repeat = match state.wait(element).map(|wait| &wait.kind) {
            Some(WaitFor::Timer {
                due_at: armed,
                repeat,
            }) if *armed == due_at => *repeat,
            Some(WaitFor::Timer { .. } | WaitFor::Message { .. }) | None => {
                return Err(Rejection::NotWaiting(owner));
            }
        };
        let (missed, next) = match repeat {
            Some(repeat) => {
                let turn = repeat.after(due_at, self.now);
                (turn.missed, turn.next)
            }
            None => (0, None),
        };
        let into = self.receiver(owner, state, element)?;
        self.event(Event::TimerFired {
            owner,
            element,
            into,
            due_at,
            missed,
            next,
        });
        self.received(owner, element, into);
        Ok(())
    }

    /// A message was matched.
    pub(crate) fn message(
        &mut self,
        owner: ElementInstanceKey,
        element: ElementIndex,
        message: MessageKey,
        variables: Variables,
    ) -> Result<(), Rejection> {
        let state = self.waiting(owner)?;
        match state.wait(element).map(|wait| &wait.kind) {
            Some(WaitFor::Message { .. }) => {}
            Some(WaitFor::Timer { .. }) | None => return Err(Rejection::NotWaiting(owner)),
        }
        let into = self.receiver(owner, state, element)?;
        self.event(Event::MessageCorrelated {
            owner,
            element,
            into,
            message,
            variables,
        });
        self.received(owner, element, into);
        Ok(())
    }

    fn waiting(&self, owner: ElementInstanceKey) -> Result<&'a ElementInstance, Rejection> {
        self.instance
            .elements
            .get(&owner)
            .ok_or(Rejection::NotWaiting(owner))
    }

    /// The element instance that goes on: the owner itself, or a new one of the event that received.
    fn receiver(
        &mut self,
        owner: ElementInstanceKey,
        state: &ElementInstance,
        element: ElementIndex,
    ) -> Result<ElementInstanceKey, Rejection> {
        let definition = self.definition;
        if state.element == element {
            return Ok(owner);
        }
        if definition.element(element).host == Some(state.element) {
            return Ok(self.spawn(element, state.parent));
        }
        let outgoing = &definition.element(state.element).outgoing;
        let flow = outgoing
            .iter()
            .copied()
            .find(|flow| definition.flow(*flow).target == element);
        let flow = flow.ok_or(Rejection::NotWaiting(owner))?;
        self.event(Event::ElementCompleted {
            key: owner,
            element: state.element,
        });
        self.event(Event::SequenceFlowTaken {
            scope: state.parent,
            flow,
        });
        let key = self.next_key();
        self.event(Event::ElementActivated {
            key,
            element,
            parent: state.parent,
            flow: Some(flow),
        });
        Ok(key)
    }

    fn received(&mut self, owner: ElementInstanceKey, element: ElementIndex, into: ElementInstanceKey) {
        let info = self.definition.element(element);
        if info.host.is_some() && info.behaviour.is_interrupting() {
            self.terminate(owner);
        }
        self.then(Step::Complete(into));
    }
}
