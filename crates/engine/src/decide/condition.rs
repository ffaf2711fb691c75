//! Conditional events: the instance itself looks at them when variables change.

use tidegate_model::{ElementIndex, ElementInstanceKey};

use crate::decide::{Step, Turn};
use crate::element::Trigger;
use crate::event::Event;
use crate::state::WaitFor;

impl Turn<'_> {
    /// Variables have changed.
    pub(crate) fn conditions(&mut self) {
        for (owner, wait) in self.instance.internal_waits() {
            if let WaitFor::Condition { .. } = wait.kind {
                self.then(Step::Condition {
                    owner,
                    element: wait.element,
                });
            }
        }
    }

    /// Looks at one condition: it counts when it becomes true, not while it stays so. One that cannot be evaluated yet
    /// is not true.
    pub(crate) fn condition(&mut self, owner: ElementInstanceKey, element: ElementIndex) {
        let Ok(WaitFor::Condition { held }) = self.waited_for(owner, element) else {
            return;
        };
        let held = *held;
        let Some(Trigger::Condition(condition)) = self.definition.element(element).behaviour.trigger() else {
            return;
        };
        let scope = self.visible(self.instance.of_owner(owner), None);
        let holds = condition.is_met(&scope).unwrap_or(false);
        if holds == held {
            return;
        }
        if held {
            return self.event(Event::ConditionLapsed { owner, element });
        }
        if let Ok(into) = self.receiver(owner, element) {
            self.event(Event::ConditionMet { owner, element, into });
            self.received(owner, element, into);
        }
    }
}
