//! Tokens that an operator moves: what ends, and where the instance goes on. Everything is looked at before anything
//! happens, and every reason against it is told at once.

use std::collections::{BTreeMap, BTreeSet};

use tidegate_model::{
    Beginning, ElementIndex, ElementInstanceKey, Ending, Modification, Obstacle, Place, Rejection, Variables,
};

use crate::decide::{Step, Turn};
use crate::definition::{Definition, ElementInfo, FlowIndex};
use crate::event::{Event, Resume};
use crate::state::{ElementInstance, Phase};

/// Places that one request may name: beyond it somebody's program is wrong, and the answer would be unreadable.
const MOST_PLACES: usize = 1_000;

/// What a modification comes to, as far as it is looked at.
#[derive(Default)]
struct Draft {
    obstacles: Vec<Obstacle>,
    /// Element instances that are ended; what is inside them ends with them.
    ended: BTreeSet<ElementInstanceKey>,
    /// The same with everything inside them.
    gone: BTreeSet<ElementInstanceKey>,
    taken: Vec<(ElementInstanceKey, FlowIndex, u32)>,
    /// Live scopes in which something begins.
    receives: BTreeSet<ElementInstanceKey>,
    /// Sub-processes that begin for what begins inside them.
    opened: BTreeMap<ElementIndex, ElementInstanceKey>,
    events: Vec<Event>,
    steps: Vec<Step>,
}

impl Draft {
    fn refuse(
        &mut self,
        code: &'static str,
        id: Option<&str>,
        key: Option<ElementInstanceKey>,
        message: String,
    ) {
        self.obstacles.push(Obstacle {
            code,
            element_id: id.map(str::to_owned),
            element_instance_key: key,
            message,
        });
    }
}

impl Turn<'_> {
    /// Moves tokens.
    pub(crate) fn modify(&mut self, modification: Modification) -> Result<(), Rejection> {
        let Modification {
            variables,
            end,
            begin,
        } = modification;
        let mut draft = Draft::default();
        self.not_too_many(&mut draft, end.len() + begin.len());
        if self.instance.phase == Phase::New {
            let message = "the instance was accepted and has not begun; wait until it runs".to_owned();
            draft.refuse("not-started", None, None, message);
        }
        if !draft.obstacles.is_empty() {
            return Err(Rejection::Obstructed(draft.obstacles));
        }
        for ending in &end {
            self.end_one(&mut draft, ending);
        }
        self.note_gone(&mut draft);
        for beginning in begin {
            self.begin_one(&mut draft, beginning);
        }
        self.end_what_is_empty(&mut draft);
        self.has_room(&mut draft);
        if !draft.obstacles.is_empty() {
            return Err(Rejection::Obstructed(draft.obstacles));
        }
        self.carry_out(draft, variables);
        Ok(())
    }

    /// Begins in the middle.
    pub(crate) fn start_at(&mut self, begin: Vec<Beginning>, variables: Variables) -> Result<(), Rejection> {
        if self.instance.phase != Phase::New {
            return Err(Rejection::AlreadyStarted);
        }
        if begin.is_empty() {
            return Err(Rejection::NoStart);
        }
        let mut draft = Draft::default();
        self.not_too_many(&mut draft, begin.len());
        if draft.obstacles.is_empty() {
            for beginning in begin {
                self.begin_one(&mut draft, beginning);
            }
            self.has_room(&mut draft);
        }
        if !draft.obstacles.is_empty() {
            return Err(Rejection::Obstructed(draft.obstacles));
        }
        self.event(Event::InstanceStarted {
            element: None,
            variables,
        });
        if !self.definition.listeners.is_empty() {
            self.then(Step::Listen(ElementInstanceKey::ROOT));
        }
        self.out.events.extend(draft.events);
        self.out.follow_ups.extend(draft.steps);
        Ok(())
    }

    fn not_too_many(&self, draft: &mut Draft, places: usize) {
        if places > MOST_PLACES {
            let message = format!("at most {MOST_PLACES} places can be named at once; send several requests");
            draft.refuse("too-many-places", None, None, message);
        }
    }

    fn has_room(&self, draft: &mut Draft) {
        let room = self.definition.limits.live_elements;
        let begun = draft.events.len();
        if self.instance.elements.len() - draft.gone.len() + begun > room {
            let message = format!("more than {room} element instances would be alive; begin fewer");
            draft.refuse("too-many-elements", None, None, message);
        }
    }

    fn carry_out(&mut self, draft: Draft, variables: Variables) {
        if !variables.is_empty() {
            let scope = ElementInstanceKey::ROOT;
            self.event(Event::VariablesSet { scope, variables });
        }
        let all_tokens = self.instance.scopes_with_tokens();
        let standing = all_tokens.map(|(key, scope)| match draft.gone.contains(&key) {
            true => 0,
            false => scope.tokens().len(),
        });
        if standing.sum::<usize>() == draft.taken.len() && !draft.taken.is_empty() {
            let stopped = self.instance.incidents.iter();
            let stopped = stopped.filter(|(_, incident)| incident.resume == Resume::Tokens);
            for (&incident, _) in stopped {
                self.event(Event::IncidentResolved { incident });
            }
        }
        for (scope, flow, count) in draft.taken {
            self.event(Event::TokensTaken { scope, flow, count });
        }
        for key in draft.ended {
            self.terminate(key);
        }
        self.out.events.extend(draft.events);
        self.out.follow_ups.extend(draft.steps);
        let instance = self.instance;
        for key in draft.gone.iter().filter_map(|key| instance.elements.get(key)) {
            // An ad-hoc sub-process looks for what to begin next.
            let around = instance.elements.get(&key.parent);
            let decides = around.is_some_and(|state| state.ad_hoc.is_some());
            if decides && !draft.gone.contains(&key.parent) {
                self.then(Step::Next(key.parent));
            }
        }
    }

    fn end_one(&self, draft: &mut Draft, ending: &Ending) {
        let instance = self.instance;
        match ending {
            Ending::Instance(key) => match instance.elements.get(key) {
                Some(state) => self.may_end(draft, *key, state),
                None => {
                    let message =
                        format!("element instance {key} is not alive; look at the instance's tokens");
                    draft.refuse("not-active", None, Some(*key), message);
                }
            },
            Ending::Element(id) => {
                let Some(element) = self.definition.element_by_id(id) else {
                    return unknown(draft, "element", id);
                };
                let live = instance.elements.iter();
                let live = live.filter(|(_, state)| state.element == element && state.turn().is_none());
                let mut found = 0;
                for (key, state) in live {
                    found += 1;
                    self.may_end(draft, *key, state);
                }
                for (scope, tokens) in instance.scopes_with_tokens() {
                    for &(flow, count) in tokens.tokens() {
                        if self.definition.flow(flow).target == element {
                            found += 1;
                            draft.taken.push((scope, flow, count));
                        }
                    }
                }
                if found == 0 {
                    let message = format!("nothing of `{id}` is alive, and no token waits before it");
                    draft.refuse("not-active", Some(id), None, message);
                }
            }
        }
    }

    fn may_end(&self, draft: &mut Draft, key: ElementInstanceKey, state: &ElementInstance) {
        let id = &self.definition.element(state.element).id;
        if state.turn().is_some() {
            let message = format!(
                "{key} is one turn of the repeated activity `{id}`; end the whole, {}",
                state.parent
            );
            draft.refuse("multi-instance-turn", Some(id), Some(key), message);
        } else if state.handles.is_some() {
            let message = format!(
                "`{id}` undoes another activity; end what asked for that, {}",
                state.parent
            );
            draft.refuse("compensation-runs", Some(id), Some(key), message);
        } else {
            draft.ended.insert(key);
        }
    }

    /// Follows what ends to everything inside it; what ends inside another is not ended once more.
    fn note_gone(&self, draft: &mut Draft) {
        let instance = self.instance;
        let inside = |key: &ElementInstanceKey, ended: &BTreeSet<ElementInstanceKey>| {
            instance
                .outward(*key)
                .skip(1)
                .any(|around| ended.contains(&around))
        };
        let ended = draft.ended.clone();
        draft.ended.retain(|key| !inside(key, &ended));
        draft.gone.clone_from(&draft.ended);
        let live = instance.elements.keys();
        draft.gone.extend(live.filter(|key| inside(key, &draft.ended)));
        let gone = &draft.gone;
        draft.taken.retain(|(scope, _, _)| !gone.contains(scope));
        draft.taken.sort_unstable();
        draft.taken.dedup();
    }

    fn begin_one(&mut self, draft: &mut Draft, beginning: Beginning) {
        let definition = self.definition;
        let Beginning {
            place,
            scope,
            variables,
        } = beginning;
        let flow = match &place {
            Place::Before(id) => return self.begin_before(draft, id, scope, variables),
            Place::After(id) => {
                let Some(element) = definition.element_by_id(id) else {
                    return unknown(draft, "element", id);
                };
                match definition.element(element).outgoing.as_slice() {
                    [only] => *only,
                    flows => {
                        let named = flows
                            .iter()
                            .map(|flow| format!("`{}`", definition.flow(*flow).id));
                        let named: Vec<String> = named.collect();
                        let message = match named.is_empty() {
                            true => format!("no flow leaves `{id}`; name an element to begin before"),
                            false => format!("several flows leave `{id}`; name one: {}", named.join(", ")),
                        };
                        return draft.refuse("flow-ambiguous", Some(id), None, message);
                    }
                }
            }
            Place::Flow(id) => match definition.flows.iter().position(|flow| *flow.id == **id) {
                Some(position) => FlowIndex(u32::try_from(position).unwrap_or(u32::MAX)),
                None => return unknown(draft, "flow", id),
            },
        };
        let source = definition.element(definition.flow(flow).source);
        let Some(scope) = self.scope_for(draft, source, scope) else {
            return;
        };
        if !variables.is_empty() {
            draft.events.push(Event::VariablesSet { scope, variables });
        }
        draft.events.push(Event::SequenceFlowTaken { scope, flow });
        draft.steps.push(Step::Enter { scope, flow });
    }

    fn begin_before(
        &mut self,
        draft: &mut Draft,
        id: &str,
        scope: Option<ElementInstanceKey>,
        variables: Variables,
    ) {
        let definition = self.definition;
        let element = definition.element_by_id(id);
        let Some(element) = element.filter(|element| definition.element(*element).part_of.is_none()) else {
            return unknown(draft, "element", id);
        };
        let info = definition.element(element);
        let behaviour = &info.behaviour;
        let problem = if behaviour.is_listener() {
            Some("an event sub-process begins with its event; begin an element inside the scope it stands in")
        } else if info.is_for_compensation || behaviour.is_compensation() || compensates(definition, element)
        {
            Some("only compensation begins it")
        } else if behaviour.is_cancel() {
            Some("only the cancelling of its transaction begins it")
        } else if info.kind == "complexGateway" {
            Some("a complex gateway counts its tokens; name the flow that a token comes on")
        } else {
            None
        };
        if let Some(problem) = problem {
            let message = format!("`{id}` cannot be begun: {problem}");
            return draft.refuse("not-startable", Some(id), None, message);
        }
        let Some(scope) = self.scope_for(draft, info, scope) else {
            return;
        };
        let key = self.open(draft, element, scope);
        if !variables.is_empty() {
            draft.events.push(Event::VariablesSet {
                scope: key,
                variables,
            });
        }
        draft.steps.push(Step::Activate(key));
    }

    fn open(
        &mut self,
        draft: &mut Draft,
        element: ElementIndex,
        parent: ElementInstanceKey,
    ) -> ElementInstanceKey {
        let key = self.next_key();
        draft.events.push(Event::ElementActivated {
            key,
            element,
            parent,
            flow: None,
        });
        key
    }

    /// The live scope for something that stands where `info` does; sub-processes around it begin where they must.
    fn scope_for(
        &mut self,
        draft: &mut Draft,
        info: &ElementInfo,
        wanted: Option<ElementInstanceKey>,
    ) -> Option<ElementInstanceKey> {
        let (definition, instance) = (self.definition, self.instance);
        let wanted =
            wanted.filter(|wanted| wanted.0 != instance.key.0 && *wanted != ElementInstanceKey::ROOT);
        if let Some(wanted) = wanted
            && (!instance.elements.contains_key(&wanted) || draft.gone.contains(&wanted))
        {
            let message = format!("scope {wanted} is not alive, or ends with this request");
            draft.refuse("scope-not-found", Some(&info.id), Some(wanted), message);
            return None;
        }
        let Some(around) = info.parent else {
            if let Some(wanted) = wanted {
                let message = format!("`{}` does not stand inside {wanted}", info.id);
                draft.refuse("scope-not-found", Some(&info.id), Some(wanted), message);
                return None;
            }
            draft.receives.insert(ElementInstanceKey::ROOT);
            return Some(ElementInstanceKey::ROOT);
        };
        let live: Vec<(ElementInstanceKey, &ElementInstance)> = instance
            .elements
            .iter()
            .filter(|(key, state)| {
                state.element == around
                    && state.turns().is_none()
                    && !draft.gone.contains(key)
                    && wanted.is_none_or(|wanted| instance.outward(**key).any(|here| here == wanted))
            })
            .map(|(key, state)| (*key, state))
            .collect();
        let id = &definition.element(around).id;
        match live.as_slice() {
            [] => {}
            [(key, state)] if state.incident.is_some() => {
                let message = format!("an incident stopped `{id}`; resolve it first");
                draft.refuse("scope-stopped", Some(id), Some(*key), message);
                return None;
            }
            [(key, _)] => {
                draft.receives.insert(*key);
                return Some(*key);
            }
            several => {
                let keys: Vec<String> = several.iter().map(|(key, _)| key.to_string()).collect();
                let message = format!(
                    "`{id}` is alive several times; name the scope: {}",
                    keys.join(", ")
                );
                draft.refuse("scope-ambiguous", Some(id), None, message);
                return None;
            }
        }
        if let Some(key) = draft.opened.get(&around) {
            return Some(*key);
        }
        let outer = definition.element(around);
        let problem = if outer.repetition.is_some() {
            Some("it is repeated; begin the whole of it")
        } else if outer.behaviour.is_listener()
            || outer.is_for_compensation
            || compensates(definition, around)
        {
            Some("it begins with its event")
        } else if outer.kind == "adHocSubProcess" {
            Some("it chooses what begins in it; begin the whole of it")
        } else {
            None
        };
        if let Some(problem) = problem {
            let message = format!("`{id}` is not alive, and cannot be begun from inside: {problem}");
            draft.refuse("scope-not-startable", Some(id), None, message);
            return None;
        }
        let parent = self.scope_for(draft, outer, wanted)?;
        let key = self.open(draft, around, parent);
        draft.events.push(Event::ScopeEntered { key, element: around });
        draft.steps.push(Step::EnterScope(key));
        draft.opened.insert(around, key);
        Some(key)
    }

    /// Sub-processes that have nothing left end too; the instance itself may not.
    fn end_what_is_empty(&self, draft: &mut Draft) {
        let instance = self.instance;
        loop {
            let parents = draft.gone.iter().filter_map(|key| instance.elements.get(key));
            let parents = parents.map(|state| state.parent);
            let touched: BTreeSet<ElementInstanceKey> = parents
                .chain(draft.taken.iter().map(|(scope, _, _)| *scope))
                .collect();
            let mut empty = None;
            for key in touched.into_iter().filter(|key| !draft.gone.contains(key)) {
                let Some(scope) = instance.scope(key) else {
                    continue;
                };
                let is_left = |(flow, _): &&(FlowIndex, u32)| {
                    !draft
                        .taken
                        .iter()
                        .any(|(at, taken, _)| *at == key && taken == flow)
                };
                let lives = scope.children.iter().any(|child| !draft.gone.contains(child))
                    || scope.tokens().iter().any(|token| is_left(&token))
                    || draft.receives.contains(&key);
                let decides = instance
                    .elements
                    .get(&key)
                    .is_some_and(|state| state.ad_hoc.is_some());
                if !lives && !decides {
                    empty = Some(key);
                    break;
                }
            }
            let Some(key) = empty else { return };
            let Some(state) = instance.elements.get(&key) else {
                let message =
                    "nothing would be left of the instance; cancel it, or say where it goes on".to_owned();
                return draft.refuse("nothing-left", None, None, message);
            };
            if state.turn().is_some() || state.handles.is_some() {
                return self.may_end(draft, key, state);
            }
            draft.ended.insert(key);
            self.note_gone(draft);
        }
    }
}

/// True for an event sub-process that undoes the sub-process it stands in.
fn compensates(definition: &Definition, element: ElementIndex) -> bool {
    let mut all = definition.elements.iter();
    all.any(|info| info.compensation_sub_process == Some(element))
}

fn unknown(draft: &mut Draft, what: &str, id: &str) {
    let message = format!("the version of this instance has no {what} `{id}`");
    draft.refuse(
        if what == "flow" {
            "unknown-flow"
        } else {
            "unknown-element"
        },
        Some(id),
        None,
        message,
    );
}
