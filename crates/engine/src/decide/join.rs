//! Gateways that wait for what can still come: inclusive joins, and complex gateways. They are asked when nothing else in
//! the instance goes on, and only in a scope in which something moved.

use std::collections::BTreeSet;

use tidegate_model::ElementInstanceKey;

use crate::decide::{Step, Turn};
use crate::element::{Active, Shape};
use crate::event::{Event, Resume};
use crate::reach::nothing_more_comes;
use crate::state::{ElementInstance, Scope, Stage};

impl Turn<'_> {
    /// Asks the late joins of a scope; the first that is ready goes on.
    pub(crate) fn join(&mut self, scope_key: ElementInstanceKey) {
        let (definition, instance) = (self.definition, self.instance);
        let Some(scope) = instance.scope(scope_key).filter(|_| !instance.is_cancelling()) else {
            return;
        };
        let open = scope.children.iter().filter_map(|key| {
            let state = instance.elements.get(key)?;
            matches!(state.stage, Stage::Joined { open: true, .. }).then_some((*key, state))
        });
        let open: Vec<(ElementInstanceKey, &ElementInstance)> = open.collect();
        for &(key, state) in &open {
            if state.incident.is_none() && self.is_over(scope, state) {
                return self.reset(key);
            }
        }
        let mut asked = BTreeSet::new();
        for (flow, _) in scope.tokens() {
            let gateway = definition.flow(*flow).target;
            let info = definition.element(gateway);
            if info.behaviour.shape() != Shape::Late
                || !asked.insert(gateway)
                || open.iter().any(|(_, state)| state.element == gateway)
            {
                continue;
            }
            match info.behaviour.is_ready(self, scope_key, scope, gateway) {
                Ok(false) => {}
                Ok(true) => {
                    if self.is_full(gateway) {
                        return;
                    }
                    let key = self.next_key();
                    self.event(Event::ElementActivated {
                        key,
                        element: gateway,
                        parent: scope_key,
                        flow: Some(*flow),
                    });
                    return self.then(Step::Activate(key));
                }
                Err(failure) => {
                    let stopped = |state: &crate::state::IncidentState| {
                        state.element == gateway && state.resume == Resume::Tokens
                    };
                    if !instance.incidents.values().any(stopped) {
                        self.incident(ElementInstanceKey::ROOT, gateway, Resume::Tokens, *failure);
                    }
                }
            }
        }
    }

    /// True if nothing can come any more to the flows that an open complex gateway still waits for.
    fn is_over(&self, scope: &Scope, state: &ElementInstance) -> bool {
        match &state.stage {
            Stage::Joined { taken, .. } => {
                nothing_more_comes(self.definition, self.instance, scope, state.element, taken)
            }
            Stage::Entered
            | Stage::Job { .. }
            | Stage::UserTask { .. }
            | Stage::Waiting
            | Stage::Running
            | Stage::Call(_)
            | Stage::Leaving { .. } => false,
        }
    }

    /// An open complex gateway takes the rest of its tokens, and is left by what its flows say of that.
    pub(crate) fn reset(&mut self, key: ElementInstanceKey) {
        let Some(state) = self.instance.elements.get(&key) else {
            return;
        };
        let (element, parent) = (state.element, state.parent);
        let me = Active {
            key,
            element,
            info: self.definition.element(element),
            state,
            locals: &state.variables,
        };
        let flows = match me.info.behaviour.leave(self, &me) {
            Ok(flows) => flows,
            Err(failure) => return self.incident(key, element, Resume::Completion, *failure),
        };
        self.event(Event::GatewayReset { key, element });
        self.event(Event::ElementCompleted { key, element });
        self.take_all(parent, flows, 1);
    }
}
