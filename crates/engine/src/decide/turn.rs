//! What a decision works with, and the verbs that elements share.

use tidegate_model::{ElementIndex, ElementInstanceKey, IncidentKey, KeyGenerator, Timestamp, Variables};

use crate::decide::{Decision, Step};
use crate::definition::{Definition, FlowIndex};
use crate::element::{Active, Waiter};
use crate::event::{Event, Resume};
use crate::state::Instance;
use crate::text::Failure;
use crate::visible::Visible;

/// One decision under way.
pub(crate) struct Turn<'a> {
    pub(crate) definition: &'a Definition,
    pub(crate) instance: &'a Instance,
    pub(crate) now: Timestamp,
    pub(crate) keys: &'a mut KeyGenerator,
    pub(crate) out: &'a mut Decision,
}

impl<'a> Turn<'a> {
    pub(crate) fn event(&mut self, event: Event) {
        self.out.events.push(event);
    }

    pub(crate) fn then(&mut self, step: Step) {
        self.out.follow_ups.push(step);
    }

    pub(crate) fn next_key(&mut self) -> ElementInstanceKey {
        ElementInstanceKey(self.keys.next_key())
    }

    /// What is visible from `from`, with `front` before it.
    pub(crate) fn visible<'v>(
        &'v self,
        from: ElementInstanceKey,
        front: Option<&'v Variables>,
    ) -> Visible<'v> {
        Visible {
            instance: self.instance,
            from,
            front,
            now: self.now,
        }
    }

    /// Activates an element that no token on a flow leads to.
    pub(crate) fn spawn(&mut self, element: ElementIndex, parent: ElementInstanceKey) -> ElementInstanceKey {
        let key = self.next_key();
        self.event(Event::ElementActivated {
            key,
            element,
            parent,
            flow: None,
        });
        key
    }

    /// Arms the events attached to an activity.
    pub(crate) fn arm_boundaries(&mut self, me: &Active<'_>) -> Result<(), Box<Failure>> {
        for &boundary in &me.info.boundaries {
            self.arm(boundary, &Waiter::of(me), None)?;
        }
        Ok(())
    }

    /// Arms the starts of event sub-processes.
    pub(crate) fn arm_listeners(
        &mut self,
        listeners: &[ElementIndex],
        waiter: &Waiter<'_>,
    ) -> Result<(), Box<Failure>> {
        let definition = self.definition;
        for &listener in listeners {
            for &start in &definition.element(listener).starts {
                self.arm(start, waiter, None)?;
            }
        }
        Ok(())
    }

    /// Arms an event with all its definitions, but not `except`.
    pub(crate) fn arm(
        &mut self,
        event: ElementIndex,
        waiter: &Waiter<'_>,
        except: Option<ElementIndex>,
    ) -> Result<(), Box<Failure>> {
        let definition = self.definition;
        for &source in definition.sources(&event) {
            if Some(source) != except
                && self.instance.wait_of(waiter.owner, source).is_none()
                && let Some(trigger) = definition.element(source).behaviour.trigger()
            {
                trigger.arm(self, waiter, source)?;
            }
        }
        Ok(())
    }

    /// A scope begins to listen for the starts of its event sub-processes.
    pub(crate) fn listen(&mut self, scope: ElementInstanceKey) {
        let (definition, instance) = (self.definition, self.instance);
        let element = instance.elements.get(&scope).map(|state| state.element);
        let is_alive = scope == ElementInstanceKey::ROOT && instance.ended().is_none();
        if (element.is_none() && !is_alive) || self.is_interrupted(scope) {
            return;
        }
        let waiter = Waiter {
            owner: instance.as_owner(scope),
            from: scope,
            locals: None,
        };
        let mark = self.out.mark();
        let listeners = definition.listeners(element);
        if let Err(failure) = self.arm_listeners(listeners, &waiter) {
            self.out.back_to(mark);
            // The scope itself goes on: only what it should listen for is stopped.
            let at = listeners.first().copied().or(element).unwrap_or(ElementIndex(0));
            self.incident(ElementInstanceKey::ROOT, at, Resume::Listeners, *failure);
        }
    }

    /// An event with several definitions waits for them (again).
    pub(crate) fn arm_again(
        &mut self,
        owner: ElementInstanceKey,
        event: ElementIndex,
        except: Option<ElementIndex>,
    ) {
        let scope = self.instance.of_owner(owner);
        if self.instance.waits_of(owner).is_none() || self.instance.ended().is_some() {
            return;
        }
        let waiter = Waiter {
            owner,
            from: scope,
            locals: None,
        };
        let mark = self.out.mark();
        if let Err(failure) = self.arm(event, &waiter, except) {
            self.out.back_to(mark);
            self.incident(ElementInstanceKey::ROOT, event, Resume::Listeners, *failure);
        }
    }

    /// The implicit split: every flow without a condition, every flow whose condition holds, and the default flow
    /// where no condition holds.
    pub(crate) fn split(&self, me: &Active<'_>) -> Result<Vec<FlowIndex>, Box<Failure>> {
        let mut taken = Vec::with_capacity(me.info.outgoing.len());
        let mut chosen = false;
        for &flow in &me.info.outgoing {
            if me.info.default == Some(flow) {
                continue;
            }
            match self.definition.flow(flow).condition {
                None => taken.push(flow),
                Some(_) if self.holds(me, flow)? => {
                    chosen = true;
                    taken.push(flow);
                }
                Some(_) => {}
            }
        }
        match me.info.default {
            Some(default) if !chosen => taken.push(default),
            Some(_) | None => {}
        }
        if taken.is_empty() && !me.info.outgoing.is_empty() {
            return Err(self.no_flow(me));
        }
        Ok(taken)
    }

    /// Whether the condition of `flow` holds; a flow without one is always open.
    pub(crate) fn holds(&self, me: &Active<'_>, flow: FlowIndex) -> Result<bool, Box<Failure>> {
        let flow = self.definition.flow(flow);
        match &flow.condition {
            None => Ok(true),
            Some(condition) => {
                let scope = self.visible(me.key, None);
                let what = format!("the condition of flow `{}` from `{}`", flow.id, me.info.id);
                condition.truth(&what, &scope)
            }
        }
    }

    /// No condition holds and there is no default flow.
    pub(crate) fn no_flow(&self, me: &Active<'_>) -> Box<Failure> {
        let scope = self.visible(me.key, None);
        let mut saw: Vec<String> = Vec::new();
        for &flow in &me.info.outgoing {
            let flow = self.definition.flow(flow);
            if let Some(condition) = &flow.condition {
                let values = condition.values(&scope);
                let values = if values.is_empty() {
                    String::new()
                } else {
                    format!(" with {values}")
                };
                saw.push(format!("`{}` of flow `{}`{values}", condition.text, flow.id));
            }
        }
        Failure::new(
            "no-flow-taken",
            format!(
                "no condition holds and `{}` has no default flow: {}. Correct the variables and retry, or give it a \
                 default flow.",
                me.info.id,
                saw.join("; ")
            ),
        )
    }

    /// Raises an incident on an element instance.
    pub(crate) fn incident(
        &mut self,
        element_instance: ElementInstanceKey,
        element: ElementIndex,
        resume: Resume,
        failure: Failure,
    ) {
        let incident = IncidentKey(self.keys.next_key());
        let Failure { code, message } = failure;
        self.event(Event::IncidentRaised {
            incident,
            element_instance,
            element,
            resume,
            code: code.to_owned(),
            message,
        });
    }
}
