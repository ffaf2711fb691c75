//! The live state as a value: what the engine reads to decide and changes to apply.

use std::collections::{BTreeMap, BTreeSet};

use minicbor::{Decode, Encode};
use tidegate_model::{
    DefinitionKey, ElementIndex, ElementInstanceKey, IncidentKey, InstanceKey, SubStatus, Variables,
};

use crate::definition::Definition;
use crate::element::WhenInterrupted;
use crate::event::Resume;
use crate::state::{CompletedActivities, Control, ElementInstance, Role, Scope, Stage, Wait, WaitFor};

/// The live state of one instance: tokens, scopes, variables, waits, incidents.
#[derive(Debug, Clone, PartialEq)]
pub struct Instance {
    pub(crate) key: InstanceKey,
    pub(crate) phase: Phase,
    pub(crate) sequence: u64,
    pub(crate) variables: Variables,
    pub(crate) root: Scope,
    pub(crate) elements: BTreeMap<ElementInstanceKey, ElementInstance>,
    pub(crate) incidents: BTreeMap<IncidentKey, IncidentState>,
    pub(crate) last_completed: Option<(ElementInstanceKey, ElementIndex)>,
    /// What the instance itself waits for: the starts of the event sub-processes at the top.
    pub(crate) waits: Vec<Wait>,
    /// Who waits for a signal or a condition. Derived from the waits.
    pub(crate) listening: BTreeSet<ElementInstanceKey>,
    /// The scopes, but for the root, that have tokens on flows. Derived.
    pub(crate) with_tokens: BTreeSet<ElementInstanceKey>,
    /// What can be compensated.
    pub(crate) completed: CompletedActivities,
    /// The definition it began with, where it has changed to another since.
    pub(crate) origin: Option<DefinitionKey>,
    /// What operators did that stands.
    pub(crate) control: Control,
}

/// Where an instance is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub(crate) enum Phase {
    #[n(0)]
    New,
    #[n(1)]
    Running,
    #[n(2)]
    Completed,
    #[n(3)]
    Cancelled,
    #[n(4)]
    Faulted,
}

/// An open incident.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IncidentState {
    /// The element instance it stopped; none when it stopped tokens on flows.
    pub element_instance: Option<ElementInstanceKey>,
    /// The element.
    pub element: ElementIndex,
    /// What is tried again when it is resolved.
    pub resume: Resume,
    /// Stable code.
    pub code: String,
    /// What happened, with what to do.
    pub message: String,
}

impl Instance {
    /// The instance before its first event.
    pub fn new(key: InstanceKey) -> Self {
        Self {
            key,
            phase: Phase::New,
            sequence: 0,
            variables: Variables::new(),
            root: Scope::default(),
            elements: BTreeMap::new(),
            incidents: BTreeMap::new(),
            last_completed: None,
            waits: Vec::new(),
            listening: BTreeSet::new(),
            with_tokens: BTreeSet::new(),
            completed: CompletedActivities::default(),
            origin: None,
            control: Control::default(),
        }
    }

    /// Its key.
    pub fn key(&self) -> InstanceKey {
        self.key
    }

    /// How it ended, if it has.
    pub fn ended(&self) -> Option<SubStatus> {
        match self.phase {
            Phase::New | Phase::Running => None,
            Phase::Completed => Some(SubStatus::Finished),
            Phase::Cancelled => Some(SubStatus::Cancelled),
            Phase::Faulted => Some(SubStatus::Faulted),
        }
    }

    /// True once it was started.
    pub fn is_started(&self) -> bool {
        self.phase != Phase::New
    }

    /// How many events it is made of, [`crate::Event::Caused`] left out.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// The definition that its journal begins with, where it has changed to another since.
    pub fn origin(&self) -> Option<DefinitionKey> {
        self.origin
    }

    /// The variables of the instance itself.
    pub fn variables(&self) -> &Variables {
        &self.variables
    }

    /// The variables that `scope` holds itself; none if it is not alive.
    pub fn variables_of(&self, scope: ElementInstanceKey) -> Option<&Variables> {
        if scope == ElementInstanceKey::ROOT {
            return Some(&self.variables);
        }
        self.elements.get(&scope).map(|element| &element.variables)
    }

    /// The open incidents by key.
    pub fn incidents(&self) -> impl ExactSizeIterator<Item = (IncidentKey, &IncidentState)> {
        self.incidents.iter().map(|(key, incident)| (*key, incident))
    }

    /// How many incidents are open.
    pub fn incident_count(&self) -> usize {
        self.incidents.len()
    }

    /// True if this job may be worked on: it is open and no incident has stopped it.
    pub fn has_job(&self, job: ElementInstanceKey) -> bool {
        self.elements.get(&job).is_some_and(ElementInstance::has_open_job)
    }

    /// True if the model has more to say about this open job, should its work be interrupted, than that it is done again.
    pub fn is_unsafe_to_rerun(&self, definition: &Definition, job: ElementInstanceKey) -> bool {
        let open = self.elements.get(&job).filter(|state| state.has_open_job());
        open.is_some_and(|state| definition.element(state.element).when_interrupted != WhenInterrupted::Rerun)
    }

    /// True if work was interrupted and it is still to be decided what becomes of it.
    pub fn has_interrupted_jobs(&self) -> bool {
        self.elements.values().any(ElementInstance::is_interrupted)
    }

    /// The name under which the root scope waits: unlike the root's own key, it is unique among all instances.
    pub(crate) fn as_owner(&self, scope: ElementInstanceKey) -> ElementInstanceKey {
        match scope {
            ElementInstanceKey::ROOT => ElementInstanceKey(self.key.0),
            key => key,
        }
    }

    /// The scope that waits under the name of `owner`.
    pub(crate) fn of_owner(&self, owner: ElementInstanceKey) -> ElementInstanceKey {
        if owner.0 == self.key.0 {
            ElementInstanceKey::ROOT
        } else {
            owner
        }
    }

    /// What `owner` waits for; none if it is not alive.
    pub(crate) fn waits_of(&self, owner: ElementInstanceKey) -> Option<&[Wait]> {
        if owner.0 == self.key.0 {
            return Some(&self.waits);
        }
        self.elements.get(&owner).map(|state| state.waits.as_slice())
    }

    pub(crate) fn wait_of(&self, owner: ElementInstanceKey, element: ElementIndex) -> Option<&Wait> {
        self.waits_of(owner)?.iter().find(|wait| wait.element == element)
    }

    /// Changes what `owner` waits for.
    pub(crate) fn change_waits(&mut self, owner: ElementInstanceKey, change: impl FnOnce(&mut Vec<Wait>)) {
        let waits = if owner.0 == self.key.0 {
            &mut self.waits
        } else if let Some(state) = self.elements.get_mut(&owner) {
            &mut state.waits
        } else {
            return;
        };
        change(waits);
        if waits.iter().any(|wait| wait.kind.is_internal()) {
            self.listening.insert(owner);
        } else {
            self.listening.remove(&owner);
        }
    }

    /// Everything that waits for a signal or a condition, the oldest owner first.
    pub(crate) fn internal_waits(&self) -> impl Iterator<Item = (ElementInstanceKey, &Wait)> {
        let of = |owner: &ElementInstanceKey| {
            let owner = *owner;
            self.waits_of(owner)
                .into_iter()
                .flatten()
                .map(move |wait| (owner, wait))
        };
        self.listening
            .iter()
            .flat_map(of)
            .filter(|(_, wait)| wait.kind.is_internal())
    }

    /// True if a condition is waited for.
    pub(crate) fn has_conditions(&self) -> bool {
        self.internal_waits()
            .any(|(_, wait)| matches!(wait.kind, WaitFor::Condition { .. }))
    }

    pub(crate) fn scope(&self, key: ElementInstanceKey) -> Option<&Scope> {
        if key == ElementInstanceKey::ROOT {
            return Some(&self.root);
        }
        self.elements.get(&key)?.scope.as_deref()
    }

    pub(crate) fn scope_mut(&mut self, key: ElementInstanceKey) -> Option<&mut Scope> {
        if key == ElementInstanceKey::ROOT {
            return Some(&mut self.root);
        }
        self.elements.get_mut(&key)?.scope.as_deref_mut()
    }

    /// Changes the tokens on the flows of a scope.
    pub(crate) fn change_tokens(&mut self, key: ElementInstanceKey, change: impl FnOnce(&mut Scope)) {
        let Some(scope) = self.scope_mut(key) else { return };
        change(scope);
        let has_none = scope.tokens().is_empty();
        if key == ElementInstanceKey::ROOT {
            return;
        }
        if has_none {
            self.with_tokens.remove(&key);
        } else {
            self.with_tokens.insert(key);
        }
    }

    /// The root, and the other scopes that have tokens on flows.
    pub(crate) fn scopes_with_tokens(&self) -> impl Iterator<Item = (ElementInstanceKey, &Scope)> {
        let inner = self.with_tokens.iter();
        let inner = inner.filter_map(|key| Some((*key, self.scope(*key)?)));
        std::iter::once((ElementInstanceKey::ROOT, &self.root)).chain(inner)
    }

    /// The scope around `key` and `key` itself, from the inside out, the root last.
    pub(crate) fn outward(&self, from: ElementInstanceKey) -> impl Iterator<Item = ElementInstanceKey> {
        let mut next = Some(from);
        std::iter::from_fn(move || {
            let here = next?;
            next = match here {
                ElementInstanceKey::ROOT => None,
                key => Some(
                    self.elements
                        .get(&key)
                        .map_or(ElementInstanceKey::ROOT, |e| e.parent),
                ),
            };
            Some(here)
        })
    }

    /// Where a result named `name` belongs: the innermost scope from `from` outward that has it, else the instance.
    pub(crate) fn home_of(&self, from: ElementInstanceKey, name: &str) -> ElementInstanceKey {
        let has = |scope: &ElementInstanceKey| {
            self.variables_of(*scope)
                .is_some_and(|variables| variables.get(name).is_some())
        };
        self.outward(from).find(has).unwrap_or(ElementInstanceKey::ROOT)
    }

    /// The scope whose completed activities an event inside `from` compensates: the one it stands in, or what a
    /// sub-process that was begun by an event belongs to.
    pub(crate) fn compensated_scope(
        &self,
        from: ElementInstanceKey,
        definition: &Definition,
    ) -> ElementInstanceKey {
        let Some(state) = self.elements.get(&from) else {
            return from;
        };
        if let Some(inside) = state.handles.as_ref().and_then(|handles| handles.inside) {
            return inside;
        }
        match &state.role {
            Role::Compensates(scope) => *scope,
            Role::Plain if definition.element(state.element).behaviour.is_listener() => state.parent,
            Role::Plain | Role::Loop(_) | Role::Turn(_) | Role::AdHoc(_) | Role::Detached => from,
        }
    }

    /// Everything visible from `from`, the innermost value of each name.
    pub(crate) fn visible(&self, from: ElementInstanceKey) -> Variables {
        let mut all = self.variables.clone();
        let inner: Vec<_> = self
            .outward(from)
            .filter(|key| *key != ElementInstanceKey::ROOT)
            .collect();
        for key in inner.into_iter().rev() {
            if let Some(variables) = self.variables_of(key)
                && !variables.is_empty()
            {
                all.merge(variables.clone());
            }
        }
        all
    }

    /// About how much memory it takes, for the budget of a cache.
    pub fn bytes(&self) -> usize {
        const INSTANCE: usize = 512;
        const ELEMENT: usize = 256;
        const INCIDENT: usize = 192;
        let of = |variables: &Variables| -> usize {
            variables
                .iter()
                .map(|(name, value)| name.len() + value.text().len() + 80)
                .sum()
        };
        let elements = self.elements.values().map(|element| {
            let results = match &element.stage {
                Stage::Leaving { results } => of(results),
                Stage::Call(call) => of(&call.variables) + 96,
                Stage::Entered
                | Stage::Job { .. }
                | Stage::UserTask { .. }
                | Stage::Waiting
                | Stage::Running
                | Stage::Joined { .. } => 0,
            };
            let turns = match &element.role {
                Role::Loop(turns) => {
                    let items = turns.items.iter().flatten();
                    let values = items.chain(turns.outputs.iter().flatten());
                    values.map(|value| value.text().len() + 40).sum()
                }
                Role::Plain | Role::Turn(_) | Role::Compensates(_) | Role::AdHoc(_) | Role::Detached => 0,
            };
            ELEMENT + of(&element.variables) + results + turns + element.waits.len() * 96
        });
        let incidents = self
            .incidents
            .values()
            .map(|incident| INCIDENT + incident.message.len());
        INSTANCE
            + self.completed.bytes()
            + of(&self.variables)
            + elements.sum::<usize>()
            + incidents.sum::<usize>()
    }
}
