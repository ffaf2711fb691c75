//! Escalations go outward from where they are thrown until an event catches them; nobody has to.

use tidegate_model::{ElementInstanceKey, Json, Variables};

use crate::decide::{Step, Turn};
use crate::event::Event;

impl Turn<'_> {
    /// Throws an escalation from an element instance: caught by the nearest event of that code, an event for every code
    /// coming after one for this code; ignored otherwise. The thrower goes on, unless the catch ends it.
    pub(crate) fn escalate(&mut self, key: ElementInstanceKey, code: &str, mut variables: Variables) {
        let Some(thrower) = self.instance.elements.get(&key) else {
            return;
        };
        let element = thrower.element;
        let code = code.to_owned();
        self.event(Event::EscalationThrown {
            key,
            element,
            code: code.clone(),
        });
        let catches = |behaviour: &dyn crate::element::Behaviour, wanted: Option<&str>| {
            behaviour
                .catches_escalation()
                .is_some_and(|catch| catch.code.as_deref() == wanted)
        };
        let Some((place, source)) = self.catcher_of(key, &code, &catches) else {
            return self.event(Event::EscalationUncaught {
                key,
                element,
                code,
                variables,
            });
        };
        let behaviour = &self.definition.element(source).behaviour;
        if let Some(name) = behaviour
            .catches_escalation()
            .and_then(|catch| catch.code_variable.as_deref())
        {
            variables.set(name, Json::of(&code));
        }
        let event = self.definition.event_of(source);
        let caught = self.caught_at(place, event);
        self.event(Event::EscalationCaught {
            key: caught,
            element: event,
            code,
            variables,
        });
        if self.definition.element(event).behaviour.is_interrupting() {
            self.interrupt_at(place, event);
        }
        self.then(Step::Complete(caught));
    }
}
