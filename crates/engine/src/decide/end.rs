//! Ends from outside: of an element instance, of a scope's content, of the whole instance.

use std::collections::BTreeSet;

use tidegate_model::ElementInstanceKey;

use crate::decide::Turn;
use crate::event::Event;

impl Turn<'_> {
    /// Ends an element instance with everything inside it, the innermost first.
    pub(crate) fn terminate(&mut self, key: ElementInstanceKey) {
        self.end(key, false);
    }

    /// Ends it; `keeps` where what completed inside it, or was being compensated, will be compensated.
    fn end(&mut self, key: ElementInstanceKey, keeps: bool) {
        let instance = self.instance;
        let mut found = vec![key];
        let mut position = 0;
        while let Some(here) = found.get(position) {
            if let Some(scope) = instance.scope(*here) {
                found.extend(&scope.children);
            }
            position += 1;
        }
        let keeps = keeps && !instance.completed.is_empty();
        // The scopes in which something that is ended now is kept.
        let mut holding = BTreeSet::new();
        for key in found.into_iter().rev() {
            let Some(state) = instance.elements.get(&key) else {
                continue;
            };
            let element = state.element;
            if let Some(incident) = state.incident {
                self.event(Event::IncidentResolved { incident });
            }
            let is_handler = state.handles.is_some();
            if keeps && (is_handler || instance.completed.has(key) || holding.contains(&key)) {
                self.event(Event::CompensationKept { key, element });
                if !is_handler {
                    holding.insert(state.parent);
                }
            }
            self.event(Event::ElementTerminated { key, element });
        }
    }

    /// Ends everything inside a scope, but not `except`.
    pub(crate) fn empty_scope(&mut self, scope: ElementInstanceKey, except: Option<ElementInstanceKey>) {
        self.empty(scope, false, |key| Some(key) == except);
    }

    /// Ends everything inside a transaction that is cancelled, but not `except`: what completed will be compensated,
    /// also inside what is ended.
    pub(crate) fn abort_scope(&mut self, scope: ElementInstanceKey, except: ElementInstanceKey) {
        self.empty(scope, true, |key| key == except);
    }

    /// Ends everything inside a scope but its event sub-processes.
    pub(crate) fn empty_but_listeners(&mut self, scope: ElementInstanceKey) {
        let (instance, definition) = (self.instance, self.definition);
        self.empty(scope, false, |key| {
            let state = instance.elements.get(&key);
            state.is_some_and(|state| definition.element(state.element).behaviour.is_listener())
        });
    }

    fn empty(
        &mut self,
        scope_key: ElementInstanceKey,
        keeps: bool,
        lives_on: impl Fn(ElementInstanceKey) -> bool,
    ) {
        let instance = self.instance;
        let Some(scope) = instance.scope(scope_key) else {
            return;
        };
        for &child in scope.children.iter().filter(|child| !lives_on(**child)) {
            self.end(child, keeps);
        }
        if !scope.tokens().is_empty() {
            self.event(Event::TokensRemoved { scope: scope_key });
        }
    }

    /// A scope is about to end abnormally: nothing that completed in it will be compensated, and it will not be either.
    pub(crate) fn give_up_compensation(&mut self, scope: ElementInstanceKey) {
        let Some(state) = self.instance.elements.get(&scope) else {
            return;
        };
        let info = self.definition.element(state.element);
        let has_handler = info.compensation.is_some() || info.compensation_sub_process.is_some();
        if has_handler || self.instance.completed.has(scope) {
            self.event(Event::CompensationEnded { scope, order: None });
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
