//! Gateways that wait for what can still come: inclusive joins, and complex gateways. They are asked when nothing else in
//! the instance goes on, and only in a scope in which something moved.

use std::collections::BTreeSet;

use tidegate_model::{ElementIndex, ElementInstanceKey, IncidentKey};

use crate::decide::{Step, Turn};
use crate::element::{Active, Shape};
use crate::event::{Event, Resume};
use crate::reach::nothing_more_comes;
use crate::state::{ElementInstance, Instance, Scope, Stage};

/// The code of a condition that could not be evaluated.
const EXPRESSION_FAILED: &str = "expression-failed";

impl Turn<'_> {
    /// Asks the late joins of a scope; the first that is ready goes on.
    pub(crate) fn join(&mut self, scope_key: ElementInstanceKey) {
        let (definition, instance) = (self.definition, self.instance);
        let Some(scope) = instance.scope(scope_key).filter(|_| !instance.is_cancelling()) else {
            return;
        };
        let open: Vec<(ElementInstanceKey, &ElementInstance)> = match definition.has_complex_gateways {
            true => open_in(instance, scope).collect(),
            false => Vec::new(),
        };
        for &(key, state) in &open {
            if state.incident.is_none() && self.is_over(scope, state) {
                return self.reset(key);
            }
        }
        let mut asked = BTreeSet::new();
        let mut last = None;
        for (flow, _) in scope.tokens() {
            let gateway = definition.flow(*flow).target;
            if last.replace(gateway) == Some(gateway) {
                continue;
            }
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
                    self.can_be_asked(gateway, scope_key);
                    return self.then(Step::Activate(key));
                }
                Err(failure) => {
                    if self.cannot_be_asked(gateway).next().is_none() {
                        self.incident(ElementInstanceKey::ROOT, gateway, Resume::Tokens, *failure);
                    }
                }
            }
        }
    }

    /// The incidents about a condition of `gateway` that could not be evaluated.
    fn cannot_be_asked(&self, gateway: ElementIndex) -> impl Iterator<Item = IncidentKey> {
        let incidents = self.instance.incidents.iter();
        let stopped = incidents.filter(move |(_, state)| {
            state.element == gateway && state.resume == Resume::Tokens && state.code == EXPRESSION_FAILED
        });
        stopped.map(|(incident, _)| *incident)
    }

    /// The condition of `gateway` holds in one scope: what was said of it is settled, or is said again of another scope.
    fn can_be_asked(&mut self, gateway: ElementIndex, scope: ElementInstanceKey) {
        let (instance, definition) = (self.instance, self.definition);
        let settled: Vec<IncidentKey> = self.cannot_be_asked(gateway).collect();
        if settled.is_empty() {
            return;
        }
        for incident in settled {
            self.event(Event::IncidentResolved { incident });
        }
        let waits = |scope: &Scope| {
            let mut tokens = scope.tokens().iter();
            tokens.any(|(flow, _)| definition.flow(*flow).target == gateway)
        };
        for (other, tokens) in instance.scopes_with_tokens() {
            if other != scope && waits(tokens) {
                self.then(Step::Join(other));
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

/// The complex gateways in `scope` that wait for the rest of their tokens.
fn open_in<'a>(
    instance: &'a Instance,
    scope: &'a Scope,
) -> impl Iterator<Item = (ElementInstanceKey, &'a ElementInstance)> {
    scope.children.iter().filter_map(|key| {
        let state = instance.elements.get(key)?;
        matches!(state.stage, Stage::Joined { open: true, .. }).then_some((*key, state))
    })
}
