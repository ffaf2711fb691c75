//! Timers, messages, signals and conditions that come: for the element itself, for a boundary event, for an event
//! sub-process, or behind an event-based gateway.

use std::sync::Arc;

use tidegate_model::{ElementIndex, ElementInstanceKey, MessageKey, Rejection, Timestamp, Variables};

use crate::decide::{Step, Turn};
use crate::element::Trigger;
use crate::event::Event;
use crate::state::WaitFor;
use crate::timer;

impl Turn<'_> {
    /// An armed timer fell due.
    pub(crate) fn timer(
        &mut self,
        owner: ElementInstanceKey,
        element: ElementIndex,
        due_at: Timestamp,
    ) -> Result<(), Rejection> {
        let repeat = match self.waited_for(owner, element)? {
            WaitFor::Timer {
                due_at: armed,
                repeat,
            } if *armed == due_at => *repeat,
            WaitFor::Timer { .. }
            | WaitFor::Message { .. }
            | WaitFor::Signal { .. }
            | WaitFor::Condition { .. } => return Err(Rejection::NotWaiting(owner)),
        };
        let turn = match repeat {
            Some(repeat) if repeat.period.is_zero() => self.next_by_calendar(owner, element, repeat, due_at),
            Some(repeat) => repeat.after(due_at, self.now),
            None => timer::Turn {
                missed: 0,
                next: None,
            },
        };
        let into = self.receiver(owner, element)?;
        self.event(Event::TimerFired {
            owner,
            element,
            into,
            due_at,
            missed: turn.missed,
            next: turn.next,
        });
        self.received(owner, element, into);
        Ok(())
    }

    /// The turn after `due_at` of a timer that the model gives as a calendar expression.
    fn next_by_calendar(
        &self,
        owner: ElementInstanceKey,
        element: ElementIndex,
        repeat: timer::Repeat,
        due_at: Timestamp,
    ) -> timer::Turn {
        let scope = self.visible(self.instance.of_owner(owner), None);
        let schedule = match self.definition.element(element).behaviour.trigger() {
            Some(Trigger::Timer(timer)) => timer.schedule(&scope).ok(),
            Some(Trigger::Message(_) | Trigger::Signal(_) | Trigger::Condition(_)) | None => None,
        };
        let ended = repeat.left == Some(0);
        schedule.filter(|_| !ended).map_or(
            timer::Turn {
                missed: 0,
                next: None,
            },
            |schedule| schedule.following(due_at, self.now),
        )
    }

    /// A message was matched.
    pub(crate) fn message(
        &mut self,
        owner: ElementInstanceKey,
        element: ElementIndex,
        message: MessageKey,
        variables: Variables,
    ) -> Result<(), Rejection> {
        let WaitFor::Message { .. } = self.waited_for(owner, element)? else {
            return Err(Rejection::NotWaiting(owner));
        };
        let into = self.receiver(owner, element)?;
        self.keep(owner, into, &variables);
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

    /// A signal came to one of those that wait for it.
    pub(crate) fn signal(
        &mut self,
        owner: ElementInstanceKey,
        element: ElementIndex,
        variables: Variables,
    ) -> Result<(), Rejection> {
        let WaitFor::Signal { .. } = self.waited_for(owner, element)? else {
            return Err(Rejection::NotWaiting(owner));
        };
        let into = self.receiver(owner, element)?;
        self.keep(owner, into, &variables);
        self.event(Event::SignalCaught {
            owner,
            element,
            into,
            variables,
        });
        self.received(owner, element, into);
        Ok(())
    }

    /// A signal was thrown inside the instance: everything that waits for it now will catch it.
    pub(crate) fn signal_here(&mut self, name: &Arc<str>, variables: &Variables) {
        for (owner, wait) in self.instance.internal_waits() {
            let WaitFor::Signal { name: computed } = &wait.kind else {
                continue;
            };
            let fits = match computed {
                Some(computed) => **computed == **name,
                None => crate::state::awaited_name(self.definition, wait.element) == *name,
            };
            if fits {
                self.then(Step::CatchSignal {
                    owner,
                    element: wait.element,
                    variables: variables.clone(),
                });
            }
        }
    }

    /// What `owner` waits for under `element`.
    pub(crate) fn waited_for(
        &self,
        owner: ElementInstanceKey,
        element: ElementIndex,
    ) -> Result<&WaitFor, Rejection> {
        let wait = self.instance.wait_of(owner, element);
        wait.map(|wait| &wait.kind).ok_or(Rejection::NotWaiting(owner))
    }

    /// The element instance that goes on: the owner itself, or a new one of the event that received. The root scope
    /// stands for none, where the event waits for others too.
    pub(crate) fn receiver(
        &mut self,
        owner: ElementInstanceKey,
        source: ElementIndex,
    ) -> Result<ElementInstanceKey, Rejection> {
        let definition = self.definition;
        let event = definition.event_of(source);
        if self.misses_others(owner, source) {
            return Ok(ElementInstanceKey::ROOT);
        }
        if let Some(listener) = definition.listener_of(event) {
            return Ok(self.begin_listener(self.instance.of_owner(owner), listener, event));
        }
        let state = self.instance.elements.get(&owner);
        let state = state.ok_or(Rejection::NotWaiting(owner))?;
        if state.element == event {
            return Ok(owner);
        }
        if definition.element(event).host == Some(state.element) {
            return Ok(self.spawn(event, state.parent));
        }
        let outgoing = &definition.element(state.element).outgoing;
        let flow = outgoing
            .iter()
            .copied()
            .find(|flow| definition.flow(*flow).target == event);
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
            element: event,
            parent: state.parent,
            flow: Some(flow),
        });
        Ok(key)
    }

    /// True if `source` is one of several definitions that must all come, and others have not.
    fn misses_others(&self, owner: ElementInstanceKey, source: ElementIndex) -> bool {
        let definition = self.definition;
        let event = definition.event_of(source);
        let is_other =
            |wait: &crate::state::Wait| wait.element != source && definition.event_of(wait.element) == event;
        definition.element(event).behaviour.needs_all_parts()
            && self
                .instance
                .waits_of(owner)
                .is_some_and(|waits| waits.iter().any(is_other))
    }

    /// Keeps what came with an event that waits for others too.
    fn keep(&mut self, owner: ElementInstanceKey, into: ElementInstanceKey, variables: &Variables) {
        if into != ElementInstanceKey::ROOT {
            return;
        }
        let scope = self.instance.of_owner(owner);
        let around = self
            .instance
            .elements
            .get(&scope)
            .map_or(scope, |state| state.parent);
        for (name, value) in variables.iter() {
            let mut one = Variables::new();
            one.set(name.clone(), value.clone());
            let scope = self.instance.home_of(around, name);
            self.event(Event::VariablesSet {
                scope,
                variables: one,
            });
        }
    }

    /// Begins an event sub-process: the instance of its start event.
    pub(crate) fn begin_listener(
        &mut self,
        scope: ElementInstanceKey,
        listener: ElementIndex,
        start: ElementIndex,
    ) -> ElementInstanceKey {
        let inside = self.spawn(listener, scope);
        if !self.definition.element(listener).listeners.is_empty() {
            self.then(Step::Listen(inside));
        }
        self.spawn(start, inside)
    }

    /// What follows when an event came to `into`.
    pub(crate) fn received(
        &mut self,
        owner: ElementInstanceKey,
        source: ElementIndex,
        into: ElementInstanceKey,
    ) {
        if into == ElementInstanceKey::ROOT {
            return;
        }
        let definition = self.definition;
        let event = definition.event_of(source);
        let info = definition.element(event);
        let listens = definition.listener_of(event).is_some();
        if !listens && info.host.is_none() {
            // The event itself goes on, and no other of its definitions is waited for any more.
            if into == owner && info.parts.len() > 1 {
                self.event(Event::WaitsClosed {
                    owner,
                    element: event,
                });
            }
        } else if info.behaviour.is_interrupting() {
            self.interrupt(owner, listens);
        } else if info.behaviour.needs_all_parts() {
            self.then(Step::Arm {
                owner,
                event,
                except: None,
            });
        }
        self.then(Step::Complete(into));
    }

    /// Ends what an interrupting event puts an end to: the activity it is attached to, or what lives in the scope it
    /// stands in.
    pub(crate) fn interrupt(&mut self, owner: ElementInstanceKey, listens: bool) {
        if !listens {
            return self.terminate(owner);
        }
        self.close_listeners(owner);
        let scope = self.instance.of_owner(owner);
        if let Some(state) = self.instance.elements.get(&scope)
            && state.ad_hoc.is_some()
        {
            let (key, element) = (scope, state.element);
            self.event(Event::AdHocClosed { key, element });
        }
        self.empty_scope(scope, None);
    }

    /// A scope no longer listens for the starts of its event sub-processes.
    pub(crate) fn close_listeners(&mut self, owner: ElementInstanceKey) {
        let definition = self.definition;
        let mut closed: Vec<ElementIndex> = Vec::new();
        for wait in self.instance.waits_of(owner).into_iter().flatten() {
            let event = definition.event_of(wait.element);
            if definition.listener_of(event).is_some() && !closed.contains(&event) {
                closed.push(event);
            }
        }
        for element in closed {
            self.event(Event::WaitsClosed { owner, element });
        }
    }
}
