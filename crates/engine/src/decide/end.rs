//! Ends from outside: of an element instance, of a scope's content, of the whole instance.

use tidegate_model::ElementInstanceKey;

use crate::decide::Turn;
use crate::event::Event;

impl Turn<'_> {
    /// Ends an element instance with everything inside it, the innermost first.
    pub(crate) fn terminate(&mut self, key: ElementInstanceKey) {
        let instance = self.instance;
        let mut found = vec![key];
        let mut position = 0;
        while let Some(here) = found.get(position) {
            if let Some(scope) = instance.scope(*here) {
                found.extend(&scope.children);
            }
            position += 1;
        }
        for key in found.into_iter().rev() {
            let Some(state) = instance.elements.get(&key) else {
                continue;
            };
            if let Some(incident) = state.incident {
                self.event(Event::IncidentResolved { incident });
            }
            self.event(Event::ElementTerminated {
                key,
                element: state.element,
            });
        }
    }

    /// Ends everything inside a scope, but not `except`.
    pub(crate) fn empty_scope(&mut self, scope_key: ElementInstanceKey, except: Option<ElementInstanceKey>) {
        let instance = self.instance;
        let Some(scope) = instance.scope(scope_key) else {
            return;
        };
        for &child in &scope.children {
            if Some(child) != except {
                self.terminate(child);
            }
        }
        if !scope.tokens().is_empty() {
            self.event(Event::TokensRemoved { scope: scope_key });
        }
    }

    /// Ends everything, before one of the events that end the instance.
    pub(crate) fn end_everything(&mut self) {
        self.close_listeners(self.instance.as_owner(ElementInstanceKey::ROOT));
        self.empty_scope(ElementInstanceKey::ROOT, None);
        self.resolve_token_incidents();
    }

    /// The root scope came to its end.
    pub(crate) fn completed(&mut self) {
        self.close_listeners(self.instance.as_owner(ElementInstanceKey::ROOT));
        self.resolve_token_incidents();
        self.event(Event::InstanceCompleted);
    }

    pub(crate) fn resolve_token_incidents(&mut self) {
        for (&incident, state) in &self.instance.incidents {
            if state.element_instance.is_none() {
                self.event(Event::IncidentResolved { incident });
            }
        }
    }
}
