//! Looks whether a live instance can cross to another version, and works out what becomes of everything in it.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::{Discriminant, discriminant};
use std::sync::Arc;

use tidegate_model::{
    ElementIndex, ElementInstanceKey, IncidentKey, KeyGenerator, Obstacle, Rejection, Timestamp,
};

use crate::decide::{Decision, Turn};
use crate::definition::{Definition, ElementInfo, FlowIndex};
use crate::element::{Shape, Trigger};
use crate::event::Resume;
use crate::repair::Change;
use crate::state::{ElementInstance, Instance, Role, Scope, Stage};

/// What becomes of everything that lives.
#[derive(Debug, Default)]
pub(super) struct Passage {
    pub(super) elements: Vec<(ElementIndex, ElementIndex)>,
    pub(super) flows: Vec<(FlowIndex, FlowIndex)>,
    /// Events of the old version that are no longer waited for.
    pub(super) closed: Vec<(ElementInstanceKey, ElementIndex)>,
    /// Incidents about something that the new version does not have.
    pub(super) gone: Vec<IncidentKey>,
    /// Events of the new version that are waited for from now on.
    pub(super) armed: Vec<(ElementInstanceKey, ElementIndex)>,
}

/// The two versions side by side.
pub(super) struct Crossing<'a> {
    change: &'a Change<'a>,
    old: &'a Definition,
    new: &'a Definition,
    instance: &'a Instance,
    ids: BTreeMap<&'a str, ElementIndex>,
    flow_ids: BTreeMap<&'a str, FlowIndex>,
    elements: BTreeMap<ElementIndex, ElementIndex>,
    flows: BTreeMap<FlowIndex, FlowIndex>,
    obstacles: Vec<Obstacle>,
    told: BTreeSet<(&'static str, Arc<str>)>,
}

impl<'a> Crossing<'a> {
    pub(super) fn new(change: &'a Change<'a>, instance: &'a Instance) -> Self {
        let Change { old, new, .. } = *change;
        Self {
            change,
            old,
            new,
            instance,
            ids: ids(new),
            flow_ids: flow_ids(new),
            elements: BTreeMap::new(),
            flows: BTreeMap::new(),
            obstacles: Vec::new(),
            told: BTreeSet::new(),
        }
    }

    /// # Errors
    /// Every reason against it.
    pub(super) fn look(mut self, now: Timestamp, keys: &mut KeyGenerator) -> Result<Passage, Rejection> {
        let instance = self.instance;
        let mut passage = Passage::default();
        self.check_mapping();
        if !instance.is_started() {
            let message = "the instance was accepted and has not begun; wait until it runs";
            self.refuse("not-started", &"".into(), None, message.to_owned());
        }
        for (key, state) in &instance.elements {
            self.check_live(*key, state);
        }
        self.check_tokens(&instance.root);
        for state in instance.elements.values() {
            if let Some(scope) = state.scope.as_deref() {
                self.check_tokens(scope);
            }
            if let Stage::Joined { taken, .. } = &state.stage {
                taken.iter().for_each(|flow| self.check_flow(*flow));
            }
        }
        self.check_completed();
        let own = instance.as_owner(ElementInstanceKey::ROOT);
        self.cross_waits(own, None, &mut passage);
        for (key, state) in &instance.elements {
            self.cross_waits(*key, Some(state), &mut passage);
        }
        let stopped = instance.incidents.iter();
        for (&incident, state) in stopped.filter(|(_, state)| state.element_instance.is_none()) {
            if !self.note(state.element) {
                passage.gone.push(incident);
            }
        }
        if let Some((_, element)) = instance.last_completed {
            self.note(element);
        }
        if !self.obstacles.is_empty() {
            return Err(Rejection::Obstructed(self.obstacles));
        }
        self.find_new_events(&mut passage, now, keys);
        passage.elements = self.elements.into_iter().collect();
        passage.flows = self.flows.into_iter().collect();
        Ok(passage)
    }

    fn refuse(
        &mut self,
        code: &'static str,
        id: &Arc<str>,
        key: Option<ElementInstanceKey>,
        message: String,
    ) {
        // A thousand instances of one element have one reason.
        if self.told.insert((code, Arc::clone(id))) {
            self.obstacles.push(Obstacle {
                code,
                element_id: Some(id.to_string()).filter(|id| !id.is_empty()),
                element_instance_key: key,
                message,
            });
        }
    }

    fn check_mapping(&mut self) {
        let (known, known_flows) = (ids(self.old), flow_ids(self.old));
        for (from, to) in &self.change.migration.mapping {
            let is_element = known.contains_key(&**from);
            let is_flow = known_flows.contains_key(&**from);
            if !is_element && !is_flow {
                let message =
                    format!("the mapping names `{from}`, which the instance's version does not have");
                self.refuse("unknown-source", &from.as_str().into(), None, message);
            }
            let fits = (is_element && self.ids.contains_key(&**to))
                || (is_flow && self.flow_ids.contains_key(&**to));
            if (is_element || is_flow) && !fits {
                let message =
                    format!("the mapping leads `{from}` to `{to}`, which the new version does not have");
                self.refuse("unknown-target", &from.as_str().into(), None, message);
            }
        }
    }

    /// What an element is in the new version.
    fn counterpart(&self, element: ElementIndex) -> Option<ElementIndex> {
        let event = self.old.event_of(element);
        let info = self.old.element(event);
        let mapped = self.change.migration.mapping.get(&*info.id);
        let found = *self.ids.get(mapped.map_or(&*info.id, String::as_str))?;
        if event == element {
            return Some(found);
        }
        let place = info.parts.iter().position(|part| *part == element)?;
        self.new.element(found).parts.get(place).copied()
    }

    /// Remembers the counterpart. False if there is none.
    fn note(&mut self, element: ElementIndex) -> bool {
        let counterpart = self.counterpart(element);
        self.elements.extend(counterpart.map(|found| (element, found)));
        counterpart.is_some()
    }

    /// True if both stand in the same place: at the top, or in what is the same scope.
    fn is_in_same_place(&self, old: &ElementInfo, new: &ElementInfo) -> bool {
        match (old.parent, new.parent) {
            (None, None) => true,
            (Some(old), Some(new)) => self.counterpart(old) == Some(new),
            (None, Some(_)) | (Some(_), None) => false,
        }
    }

    /// True if both wait for the same kinds of events, in the same order.
    fn is_same_event(&self, old: ElementIndex, new: ElementIndex) -> bool {
        kinds(self.old, old) == kinds(self.new, new)
            && self.old.element(old).behaviour.needs_all_parts()
                == self.new.element(new).behaviour.needs_all_parts()
    }

    fn check_live(&mut self, key: ElementInstanceKey, state: &ElementInstance) {
        let old = self.old.element(state.element);
        let (id, at) = (&old.id, Some(key));
        let Some(found) = self.counterpart(state.element) else {
            let message = format!(
                "`{id}` is alive, and the new version has no such element; map it, or move its token first"
            );
            return self.refuse("unmapped-element", id, at, message);
        };
        self.elements.insert(state.element, found);
        let new = self.new.element(found);
        let is_handler = |role: &Role| matches!(role, Role::Compensates(_) | Role::Detached);
        if state.handles.is_some() || is_handler(&state.role) {
            let message = format!("`{id}` takes part in compensation; migrate when that is over");
            self.refuse("compensation-runs", id, at, message);
        }
        let does = |info: &ElementInfo| {
            let behaviour = &info.behaviour;
            (info.kind, behaviour.is_listener(), info.is_for_compensation)
        };
        let goes_on = match &state.stage {
            Stage::Job { .. } => new.behaviour.job().is_some(),
            Stage::Call(_) => new.behaviour.call().is_some(),
            Stage::Entered
            | Stage::UserTask { .. }
            | Stage::Waiting
            | Stage::Running
            | Stage::Leaving { .. }
            | Stage::Joined { .. } => true,
        };
        if does(old) != does(new) || !goes_on {
            let message = format!(
                "`{id}` is a {} that is at work, and `{}` is a {} that does something else; map it to one of its kind",
                old.kind, new.id, new.kind
            );
            return self.refuse("type-changed", id, at, message);
        }
        if !self.is_in_same_place(old, new) {
            let message =
                format!("`{id}` stands inside another scope in the new version; move its token instead");
            self.refuse("scope-changed", id, at, message);
        }
        let repeats = match (old.repetition.as_deref(), new.repetition.as_deref()) {
            (None, None) => true,
            (Some(old), Some(new)) => old.is_like(new),
            (Some(_), None) | (None, Some(_)) => false,
        };
        if !repeats {
            let message = format!(
                "`{id}` is repeated in another way in the new version; let it end, or move its token"
            );
            self.refuse("repetition-changed", id, at, message);
        }
        let waits_itself = state
            .waits
            .iter()
            .any(|wait| self.old.event_of(wait.element) == state.element);
        if waits_itself && !self.is_same_event(state.element, found) {
            let message =
                format!("`{id}` waits for another kind of event in the new version; move its token instead");
            self.refuse("event-changed", id, at, message);
        }
    }

    fn check_tokens(&mut self, scope: &Scope) {
        for (flow, _) in scope.tokens() {
            self.check_flow(*flow);
        }
    }

    fn check_flow(&mut self, flow: FlowIndex) {
        let old = self.old.flow(flow);
        let mapped = self.change.migration.mapping.get(&*old.id);
        let by_id = self
            .flow_ids
            .get(mapped.map_or(&*old.id, String::as_str))
            .copied();
        let Some(found) = by_id.or_else(|| self.flow_between(old.source, old.target)) else {
            let message = format!(
                "a token waits on flow `{}`, and the new version has no such flow; map it, or move the token first",
                old.id
            );
            return self.refuse("unmapped-flow", &old.id, None, message);
        };
        let (source, new) = (self.old.element(old.source), self.new.flow(found));
        if !self.is_in_same_place(source, self.new.element(new.source)) {
            let message = format!("flow `{}` stands inside another scope in the new version", old.id);
            return self.refuse("scope-changed", &old.id, None, message);
        }
        self.flows.insert(flow, found);
    }

    /// The only flow of the new version that joins the same two elements.
    fn flow_between(&self, source: ElementIndex, target: ElementIndex) -> Option<FlowIndex> {
        let (source, target) = (self.counterpart(source)?, self.counterpart(target)?);
        let outgoing = self.new.element(source).outgoing.iter().copied();
        let mut fitting = outgoing.filter(|flow| self.new.flow(*flow).target == target);
        fitting.next().filter(|_| fitting.next().is_none())
    }

    /// What has completed and may still be undone.
    fn check_completed(&mut self) {
        let handled =
            |info: &ElementInfo| info.compensation.is_some() || info.compensation_sub_process.is_some();
        for (_, _, completed) in self.instance.completed.iter() {
            let old = self.old.element(completed.element);
            let found = self.counterpart(completed.element);
            let is_undone = found.is_some_and(|found| handled(self.new.element(found)));
            if found.is_none() || (handled(old) && !is_undone) {
                let message = format!(
                    "`{}` has completed and can be compensated, which the new version cannot; map it to an activity \
                     with a compensation handler",
                    old.id
                );
                self.refuse("compensation-lost", &old.id, Some(completed.key), message);
            }
            self.note(completed.element);
        }
    }

    /// What is waited for stays, or is no longer waited for.
    fn cross_waits(
        &mut self,
        owner: ElementInstanceKey,
        state: Option<&ElementInstance>,
        passage: &mut Passage,
    ) {
        let waits = self.instance.waits_of(owner).unwrap_or_default();
        let events: BTreeSet<ElementIndex> =
            waits.iter().map(|wait| self.old.event_of(wait.element)).collect();
        for event in events {
            let stays = self.counterpart(event).filter(|found| {
                self.is_same_event(event, *found) && self.is_waited_for_by(state, event, *found)
            });
            if stays.is_none() {
                passage.closed.push((owner, event));
                continue;
            }
            self.note(event);
            for source in self.old.sources(&event) {
                self.note(*source);
            }
        }
    }

    /// True if `new` is awaited by the counterpart of what awaits `old`.
    fn is_waited_for_by(
        &self,
        state: Option<&ElementInstance>,
        old: ElementIndex,
        new: ElementIndex,
    ) -> bool {
        let there = self.new.element(new);
        if let Some(host) = self.old.element(old).host {
            return there.host.is_some() && there.host == self.counterpart(host);
        }
        if let Some(listener) = self.old.listener_of(old) {
            return self.new.listener_of(new).is_some_and(|found| {
                self.counterpart(listener) == Some(found)
                    && self.is_in_same_place(self.old.element(listener), self.new.element(found))
            });
        }
        let Some(state) = state.filter(|state| state.element != old) else {
            return there.host.is_none() && self.new.listener_of(new).is_none();
        };
        let Some(gateway) = self.counterpart(state.element) else {
            return false;
        };
        let mut behind = self.new.element(gateway).outgoing.iter();
        behind.any(|flow| self.new.flow(*flow).target == new)
    }

    /// Events that the new version added beside what lives. One that both have keeps what it has come to: a boundary
    /// event that has fired once does not fire again.
    fn find_new_events(&self, passage: &mut Passage, now: Timestamp, keys: &mut KeyGenerator) {
        let instance = self.instance;
        let mut nothing = Decision::default();
        let turn = Turn {
            definition: self.old,
            instance,
            now,
            keys,
            out: &mut nothing,
        };
        if !turn.is_interrupted(ElementInstanceKey::ROOT) {
            let owner = instance.as_owner(ElementInstanceKey::ROOT);
            let added = starts(self.new, &self.new.listeners);
            self.add_new(owner, None, added, starts(self.old, &self.old.listeners), passage);
        }
        for (&key, state) in &instance.elements {
            let Some(found) = self.elements.get(&state.element) else {
                continue;
            };
            let (old, new) = (self.old.element(state.element), self.new.element(*found));
            let has_begun = match &state.stage {
                Stage::Job { .. }
                | Stage::UserTask { .. }
                | Stage::Waiting
                | Stage::Running
                | Stage::Call(_) => true,
                // It arms them itself, or is about to be left.
                Stage::Entered | Stage::Leaving { .. } | Stage::Joined { .. } => false,
            };
            if !has_begun {
                continue;
            }
            if state.turn().is_none() {
                self.add_new(
                    key,
                    Some(state),
                    new.boundaries.clone(),
                    old.boundaries.clone(),
                    passage,
                );
            }
            let is_scope = new.behaviour.shape() == Shape::Scope && state.turns().is_none();
            if is_scope && !turn.is_interrupted(key) {
                let added = starts(self.new, &new.listeners);
                self.add_new(key, Some(state), added, starts(self.old, &old.listeners), passage);
            }
            if new.kind == "eventBasedGateway" && !state.waits.is_empty() {
                let behind = |definition: &Definition, info: &ElementInfo| -> Vec<ElementIndex> {
                    let flows = info.outgoing.iter();
                    flows.map(|flow| definition.flow(*flow).target).collect()
                };
                self.add_new(
                    key,
                    Some(state),
                    behind(self.new, new),
                    behind(self.old, old),
                    passage,
                );
            }
        }
    }

    fn add_new(
        &self,
        owner: ElementInstanceKey,
        state: Option<&ElementInstance>,
        new: Vec<ElementIndex>,
        old: Vec<ElementIndex>,
        passage: &mut Passage,
    ) {
        for event in new {
            let was_there = old.iter().any(|old| {
                self.counterpart(*old) == Some(event)
                    && self.is_same_event(*old, event)
                    && self.is_waited_for_by(state, *old, event)
            });
            if !was_there && !kinds(self.new, event).is_empty() {
                passage.armed.push((owner, event));
            }
        }
    }
}

fn starts(definition: &Definition, listeners: &[ElementIndex]) -> Vec<ElementIndex> {
    let all = listeners.iter();
    all.flat_map(|listener| definition.element(*listener).starts.iter().copied())
        .collect()
}

/// The kinds of events that it waits for; none where nothing has to be armed for it.
fn kinds(definition: &Definition, event: ElementIndex) -> Vec<Discriminant<Trigger>> {
    let sources = definition.sources(&event).iter();
    sources
        .filter_map(|source| definition.element(*source).behaviour.trigger().map(discriminant))
        .collect()
}

fn ids(definition: &Definition) -> BTreeMap<&str, ElementIndex> {
    let elements = definition.elements.iter().enumerate();
    elements
        .filter(|(_, info)| info.part_of.is_none())
        .map(|(position, info)| (&*info.id, ElementIndex(position as u32)))
        .collect()
}

fn flow_ids(definition: &Definition) -> BTreeMap<&str, FlowIndex> {
    let flows = definition.flows.iter().enumerate();
    flows
        .map(|(position, flow)| (&*flow.id, FlowIndex(position as u32)))
        .collect()
}

impl Instance {
    /// True if an incident holds the tokens that stand on flows.
    pub(super) fn has_stopped_tokens(&self) -> bool {
        self.incidents
            .values()
            .any(|incident| incident.resume == Resume::Tokens)
    }
}
