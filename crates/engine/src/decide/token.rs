//! The life of a token: it enters an element, the element does its work, and the token leaves.

use std::sync::Arc;

use tidegate_model::{ElementIndex, ElementInstanceKey, Json, Variables};

use crate::decide::{Step, Turn};
use crate::definition::{ElementInfo, FlowIndex};
use crate::element::{Active, Shape, Waiter};
use crate::event::{Event, Resume};
use crate::mapping;
use crate::state::{ElementInstance, Phase, Scope, Stage};
use crate::text::Failure;

/// An element instance as its element sees it, with the variables that it has.
fn active<'a>(key: ElementInstanceKey, info: &'a ElementInfo, state: &'a ElementInstance) -> Active<'a> {
    Active {
        key,
        element: state.element,
        info,
        state,
        locals: &state.variables,
    }
}

impl<'a> Turn<'a> {
    /// A token on a flow reaches the flow's target. Nothing happens if the token is gone, or if the target waits for
    /// more of them.
    pub(crate) fn enter(&mut self, scope_key: ElementInstanceKey, flow: FlowIndex) {
        let Some(scope) = self.instance.scope(scope_key) else {
            return;
        };
        let element = self.definition.flow(flow).target;
        if scope.tokens_on(flow) == 0 || !self.is_ready(scope, element) {
            return;
        }
        if self.is_full(element) {
            return;
        }
        let key = self.next_key();
        self.event(Event::ElementActivated {
            key,
            element,
            parent: scope_key,
            flow: Some(flow),
        });
        self.then(Step::Activate(key));
    }

    /// True, with an incident, if one more element instance before `element` would be too many.
    pub(crate) fn is_full(&mut self, element: ElementIndex) -> bool {
        let full = self.instance.elements.len() >= self.definition.limits.live_elements;
        if full {
            self.too_many("too-many-elements", "has too many live elements", element);
        }
        full
    }

    /// Stops the tokens that stand on flows, once for all of them.
    pub(crate) fn too_many(&mut self, code: &'static str, what: &str, element: ElementIndex) {
        if self
            .instance
            .incidents
            .values()
            .any(|incident| incident.resume == Resume::Tokens)
        {
            return;
        }
        let message = format!(
            "the instance {what}, which looks like a loop without an end; its tokens were stopped before `{}`. \
             Correct the variables or cancel it, or retry to let it go on.",
            self.definition.element(element).id
        );
        self.incident(
            ElementInstanceKey::ROOT,
            element,
            Resume::Tokens,
            Failure { code, message },
        );
    }

    fn is_ready(&self, scope: &Scope, element: ElementIndex) -> bool {
        let info = self.definition.element(element);
        match info.behaviour.shape() {
            Shape::Join => scope.has_each(&info.incoming),
            // It is asked when nothing else goes on.
            Shape::Late => false,
            Shape::Plain | Shape::Scope if info.start_quantity > 1 => {
                let waiting = info.incoming.iter().map(|flow| u64::from(scope.tokens_on(*flow)));
                waiting.sum::<u64>() >= u64::from(info.start_quantity)
            }
            Shape::Plain | Shape::Scope => true,
        }
    }

    /// An element instance begins: input mappings, attached events, then what it does.
    pub(crate) fn activate(&mut self, key: ElementInstanceKey) {
        let Some(state) = self.at_work(key) else { return };
        match state.stage {
            Stage::Entered | Stage::Joined { open: false, .. } => {}
            Stage::Job { .. }
            | Stage::UserTask { .. }
            | Stage::Waiting
            | Stage::Running
            | Stage::Call(_)
            | Stage::Leaving { .. }
            | Stage::Joined { open: true, .. } => return,
        }
        let element = state.element;
        let mark = self.out.mark();
        if let Err(failure) = self.try_activate(key, state) {
            self.out.back_to(mark);
            self.incident(key, element, Resume::Activation, *failure);
        }
    }

    fn try_activate(&mut self, key: ElementInstanceKey, state: &ElementInstance) -> Result<(), Box<Failure>> {
        let info = self.definition.element(state.element);
        if let Some(repetition) = info.repetition.as_deref().filter(|_| state.turn().is_none()) {
            let me = active(key, info, state);
            self.arm_boundaries(&me)?;
            return repetition.begin(self, &me);
        }
        let inputs = self.inputs(key, state)?;
        let locals = inputs.as_ref().unwrap_or(&state.variables);
        let me = Active {
            key,
            element: state.element,
            info,
            state,
            locals,
        };
        if state.turn().is_none() {
            self.arm_boundaries(&me)?;
        }
        if state.turns().is_none() {
            self.arm_listeners(&info.listeners, &Waiter::of(&me))?;
        }
        info.behaviour.activate(self, &me)
    }

    /// What an element instance begins with: declared data without a value, and the input mappings. Gives all its own
    /// variables then, where that changed them.
    fn inputs(
        &mut self,
        key: ElementInstanceKey,
        state: &ElementInstance,
    ) -> Result<Option<Variables>, Box<Failure>> {
        let info = self.definition.element(state.element);
        let declared = info
            .declared
            .iter()
            .filter(|name| state.variables.get(name).is_none());
        let declared: Variables = declared
            .map(|name| (Arc::clone(name), Json::trusted("null")))
            .collect();
        Ok(match info.mapping.as_deref() {
            Some(mapping) if !mapping.inputs.is_empty() => {
                let mut inputs = declared;
                inputs.merge(mapping::inputs(mapping, self, key)?);
                self.event(Event::VariablesSet {
                    scope: key,
                    variables: inputs.clone(),
                });
                let mut locals = state.variables.clone();
                locals.merge(inputs);
                Some(locals)
            }
            Some(_) | None if declared.is_empty() => None,
            Some(_) | None => {
                let mut locals = state.variables.clone();
                locals.merge(declared.clone());
                self.event(Event::VariablesSet {
                    scope: key,
                    variables: declared,
                });
                Some(locals)
            }
        })
    }

    /// Something was begun inside a sub-process from outside: input mappings, attached events and event sub-processes,
    /// but not what it would begin with itself.
    pub(crate) fn enter_scope(&mut self, key: ElementInstanceKey) {
        let Some(state) = self.at_work(key) else { return };
        let element = state.element;
        let mark = self.out.mark();
        if let Err(failure) = self.try_enter_scope(key, state) {
            self.out.back_to(mark);
            self.incident(key, element, Resume::Activation, *failure);
        }
        // Its content may have ended while an incident stopped it.
        self.then(Step::CloseScope(key));
    }

    fn try_enter_scope(
        &mut self,
        key: ElementInstanceKey,
        state: &ElementInstance,
    ) -> Result<(), Box<Failure>> {
        let info = self.definition.element(state.element);
        let inputs = self.inputs(key, state)?;
        let me = Active {
            key,
            element: state.element,
            info,
            state,
            locals: inputs.as_ref().unwrap_or(&state.variables),
        };
        self.arm_boundaries(&me)?;
        self.arm_listeners(&info.listeners, &Waiter::of(&me))
    }

    /// Something ended inside an element instance that decides what comes next.
    pub(crate) fn next(&mut self, key: ElementInstanceKey) {
        let Some(state) = self.at_work(key) else { return };
        let info = self.definition.element(state.element);
        let me = active(key, info, state);
        let mark = self.out.mark();
        let next = match (state.turns(), info.repetition.as_deref()) {
            (Some(_), Some(repetition)) => repetition.next(self, &me),
            (Some(_) | None, _) => info.behaviour.next(self, &me),
        };
        if let Err(failure) = next {
            self.out.back_to(mark);
            self.incident(key, me.element, Resume::Next, *failure);
        }
    }

    /// What a call activity does, once more.
    pub(crate) fn again(&mut self, key: ElementInstanceKey) {
        let Some(state) = self.at_work(key) else { return };
        let info = self.definition.element(state.element);
        let me = active(key, info, state);
        let mark = self.out.mark();
        if let Err(failure) = info.behaviour.activate(self, &me) {
            self.out.back_to(mark);
            self.incident(key, me.element, Resume::Call, *failure);
        }
    }

    /// Stops a repeated activity that goes on without waiting.
    pub(crate) fn too_many_turns(&mut self, key: ElementInstanceKey) {
        let Some(state) = self.at_work(key) else { return };
        let message = format!(
            "`{}` took too many turns without waiting, which looks like a loop without an end. Correct the variables \
             or cancel the instance, or retry to let it go on.",
            self.definition.element(state.element).id
        );
        let code = "too-many-steps";
        self.incident(key, state.element, Resume::Next, Failure { code, message });
    }

    /// An element instance has done what it does: its results go where they belong.
    pub(crate) fn complete(&mut self, key: ElementInstanceKey) {
        let Some(state) = self.at_its_end(key) else { return };
        if matches!(state.stage, Stage::Joined { open: true, .. }) {
            return self.reset(key);
        }
        let mark = self.out.mark();
        match self.results(key, state) {
            Ok(()) if self.out.mark() == mark => self.leave(key),
            // Conditions see the results, so the flows are chosen after these are applied.
            Ok(()) => self.then(Step::Leave(key)),
            Err(failure) => {
                let element = state.element;
                self.out.back_to(mark);
                self.incident(key, element, Resume::Completion, *failure);
            }
        }
    }

    fn results(&mut self, key: ElementInstanceKey, state: &ElementInstance) -> Result<(), Box<Failure>> {
        let results = match &state.stage {
            Stage::Leaving { results } => Some(results),
            Stage::Entered
            | Stage::Job { .. }
            | Stage::UserTask { .. }
            | Stage::Waiting
            | Stage::Call(_)
            | Stage::Running
            | Stage::Joined { .. } => None,
        };
        let info = self.definition.element(state.element);
        // The mappings of a repeated activity belong to its turns.
        let mapping = info.mapping.as_deref().filter(|_| state.turns().is_none());
        if let Some(call) = info.behaviour.call().filter(|_| state.turns().is_none())
            && mapping.is_none_or(|mapping| mapping.outputs.is_empty())
            && let Some(returned) = results.filter(|results| !results.is_empty())
            && let Some(variables) = call.results(self, key, returned)?
        {
            for (scope, variables) in mapping::by_home(self, state.parent, variables) {
                self.event(Event::VariablesSet { scope, variables });
            }
            return Ok(());
        }
        match mapping {
            Some(mapping) if !mapping.outputs.is_empty() => {
                for (scope, variables) in mapping::outputs(mapping, self, key, state.parent, results)? {
                    self.event(Event::VariablesSet { scope, variables });
                }
            }
            Some(_) | None => {
                if results.is_some_and(|results| !results.is_empty()) {
                    self.event(Event::ResultsMerged {
                        key,
                        element: state.element,
                    });
                }
            }
        }
        if let Some(handles) = state.handles.as_deref().filter(|_| state.scope.is_some())
            && mapping.is_none_or(|mapping| mapping.outputs.is_empty())
        {
            let written = handles.written.iter();
            let written = written.filter_map(|name| Some((&**name, state.variables.get(name)?.clone())));
            for (scope, variables) in mapping::by_home(self, state.parent, written.collect()) {
                self.event(Event::VariablesSet { scope, variables });
            }
        }
        if let Some(mapping) = mapping.filter(|mapping| !mapping.associated.is_empty()) {
            for (scope, variables) in mapping::associated(mapping, self, key, state.parent, results)? {
                self.event(Event::VariablesSet { scope, variables });
            }
        }
        Ok(())
    }

    /// An element instance is left by its outgoing flows; without one its token ends.
    pub(crate) fn leave(&mut self, key: ElementInstanceKey) {
        let Some(state) = self.at_its_end(key) else { return };
        if state.turn().is_some() {
            return self.leave_turn(key, state);
        }
        let (element, parent) = (state.element, state.parent);
        let info = self.definition.element(element);
        let me = Active {
            key,
            element,
            info,
            state,
            locals: &state.variables,
        };
        let flows = match info.behaviour.leave(self, &me) {
            Ok(flows) => flows,
            Err(failure) => return self.incident(key, element, Resume::Completion, *failure),
        };
        match info.behaviour.stays(&me) {
            true => self.event(Event::GatewayOpened { key, element }),
            false => self.event(Event::ElementCompleted { key, element }),
        }
        self.take_all(parent, flows, info.completion_quantity);
    }

    /// Puts tokens on flows; without a flow the scope may have ended.
    pub(crate) fn take_all(&mut self, scope: ElementInstanceKey, flows: Vec<FlowIndex>, count: u32) {
        let ends = flows.is_empty();
        for flow in flows {
            self.take(scope, flow, count);
        }
        if self.is_watchful(scope) {
            self.then(Step::Next(scope));
        } else if ends {
            self.then(Step::CloseScope(scope));
        }
    }

    /// Puts tokens on a flow.
    fn take(&mut self, scope: ElementInstanceKey, flow: FlowIndex, count: u32) {
        for _ in 0..count {
            self.event(Event::SequenceFlowTaken { scope, flow });
            self.then(Step::Enter { scope, flow });
        }
    }

    /// Ends a scope in which nothing lives any more.
    pub(crate) fn close_scope(&mut self, key: ElementInstanceKey) {
        let empty = self.instance.scope(key).is_some_and(Scope::is_empty);
        if !empty || self.instance.phase != Phase::Running {
            return;
        }
        match key {
            ElementInstanceKey::ROOT => self.completed(),
            key if self.is_watchful(key) => self.then(Step::Next(key)),
            key => self.then(Step::Complete(key)),
        }
    }

    /// True if `scope` decides itself what comes next when something inside it ends.
    fn is_watchful(&self, scope: ElementInstanceKey) -> bool {
        let Some(state) = self.instance.elements.get(&scope) else {
            return false;
        };
        state.turns().is_some() || self.definition.element(state.element).behaviour.is_watchful()
    }

    /// The element instance, if nothing has ended or stopped it and nothing lives in it: an event sub-process may have
    /// begun since its scope was found empty, and then its end comes later.
    fn at_its_end(&self, key: ElementInstanceKey) -> Option<&'a ElementInstance> {
        self.at_work(key)
            .filter(|state| state.scope.as_deref().is_none_or(Scope::is_empty))
    }

    /// The element instance, if nothing has ended or stopped it.
    fn at_work(&self, key: ElementInstanceKey) -> Option<&'a ElementInstance> {
        self.instance
            .elements
            .get(&key)
            .filter(|state| state.incident.is_none())
    }
}
