//! What a decision works with, and the verbs that elements share.

use tidegate_model::{ElementIndex, ElementInstanceKey, IncidentKey, KeyGenerator, Timestamp, Variables};

use crate::decide::{Decision, Step};
use crate::definition::{Definition, FlowIndex};
use crate::element::{Active, Trigger};
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
            if let Some(trigger) = self.trigger(boundary) {
                trigger.arm(self, me, boundary)?;
            }
        }
        Ok(())
    }

    /// The event that `element` receives.
    pub(crate) fn trigger(&self, element: ElementIndex) -> Option<&'a Trigger> {
        self.definition.element(element).behaviour.trigger()
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
                condition.truth(&format!("the condition of flow `{}`", flow.id), &scope)
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
