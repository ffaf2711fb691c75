//! What people and the runtime ask of the state.

use std::sync::Arc;

use tidegate_model::{ElementIndex, ElementInstanceKey, Timestamp};

use crate::definition::Definition;
use crate::element::Trigger;
use crate::state::{Instance, Stage, WaitFor};

/// One live element instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenView<'a> {
    /// The element's BPMN id.
    pub element_id: &'a str,
    /// The element.
    pub element: ElementIndex,
    /// The element instance.
    pub element_instance: ElementInstanceKey,
    /// How it is.
    pub state: TokenState,
}

/// How a live element instance is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenState {
    /// It works, or elements inside it do.
    Active,
    /// It waits for an event, a worker or a person.
    Waiting,
    /// An incident stopped it.
    Incident,
}

impl TokenState {
    /// The word for the API.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Waiting => "waiting",
            Self::Incident => "incident",
        }
    }
}

/// One thing that an instance waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitView<'a> {
    /// The element that goes on when it comes.
    pub element_id: &'a str,
    /// That element.
    pub element: ElementIndex,
    /// The element instance that waits.
    pub element_instance: ElementInstanceKey,
    /// What it waits for.
    pub kind: WaitKind<'a>,
}

/// What is waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WaitKind<'a> {
    /// A job of this type.
    Job(&'a str),
    /// A person, by name where one has taken it.
    UserTask(Option<&'a str>),
    /// A timer that is due then.
    Timer(Timestamp),
    /// A message.
    Message {
        /// Its name.
        name: &'a str,
        /// Its correlation key.
        correlation_key: &'a str,
    },
}

impl WaitKind<'_> {
    /// The word for the API.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Job(_) => "job",
            Self::UserTask(_) => "userTask",
            Self::Timer(_) => "timer",
            Self::Message { .. } => "message",
        }
    }

    /// The detail as text: job type, assignee, due time, or name and key.
    pub fn detail(&self) -> String {
        match self {
            Self::Job(job_type) => (*job_type).to_owned(),
            Self::UserTask(assignee) => assignee.unwrap_or_default().to_owned(),
            Self::Timer(due_at) => due_at.to_string(),
            Self::Message { name, correlation_key: "" } => (*name).to_owned(),
            Self::Message { name, correlation_key } => format!("{name} / {correlation_key}"),
        }
    }
}

impl Instance {
    /// The live element instances, oldest first.
    pub fn tokens<'a>(&'a self, definition: &'a Definition) -> Vec<TokenView<'a>> {
        let view = |(key, instance): (&ElementInstanceKey, &'a super::ElementInstance)| {
            let state = match (&instance.stage, instance.incident) {
                (_, Some(_)) => TokenState::Incident,
                (Stage::Entered | Stage::Running | Stage::Leaving { .. }, None) => TokenState::Active,
                (Stage::Job { .. } | Stage::UserTask { .. } | Stage::Waiting, None) => TokenState::Waiting,
            };
            TokenView {
                element_id: &definition.element(instance.element).id,
                element: instance.element,
                element_instance: *key,
                state,
            }
        };
        self.elements.iter().map(view).collect()
    }

    /// Everything the instance waits for, oldest first.
    pub fn waiting_for<'a>(&'a self, definition: &'a Definition) -> Vec<WaitView<'a>> {
        let mut all = Vec::new();
        for (key, instance) in &self.elements {
            let mut push = |element: ElementIndex, kind| {
                let element_id = &*definition.element(element).id;
                all.push(WaitView { element_id, element, element_instance: *key, kind });
            };
            if instance.incident.is_none() {
                match &instance.stage {
                    Stage::Job { job_type, .. } => {
                        let fixed = definition.element(instance.element).behaviour.job();
                        let fixed = fixed.and_then(|job| job.job_type.literal());
                        let job_type = job_type.as_deref().or(fixed.map(|text| &**text));
                        push(instance.element, WaitKind::Job(job_type.unwrap_or_default()));
                    }
                    Stage::UserTask { assignee, .. } => {
                        push(instance.element, WaitKind::UserTask(assignee.as_deref()));
                    }
                    Stage::Entered | Stage::Waiting | Stage::Running | Stage::Leaving { .. } => {}
                }
            }
            for wait in &instance.waits {
                let kind = match &wait.kind {
                    WaitFor::Timer { due_at, .. } => WaitKind::Timer(*due_at),
                    WaitFor::Message { name, correlation_key } => WaitKind::Message {
                        name: match name {
                            Some(computed) => computed,
                            None => fixed_name(definition, wait.element).map_or("", |name| name),
                        },
                        correlation_key,
                    },
                };
                push(wait.element, kind);
            }
        }
        all
    }

    /// The latest-started activity that still runs, else the one that completed last.
    pub fn last_activity<'a>(&self, definition: &'a Definition) -> Option<(ElementInstanceKey, &'a str)> {
        let running = self.elements.iter().rev().map(|(key, instance)| (*key, instance.element));
        running
            .filter(|(_, element)| definition.element(*element).is_activity)
            .chain(self.last_completed)
            .next()
            .map(|(key, element)| (key, &*definition.element(element).id))
    }
}

/// The fixed name of the message that `element` receives.
pub(crate) fn message_name(definition: &Definition, element: ElementIndex) -> Arc<str> {
    let fixed = fixed_name(definition, element);
    fixed.map_or_else(|| "".into(), Arc::clone)
}

fn fixed_name(definition: &Definition, element: ElementIndex) -> Option<&Arc<str>> {
    match definition.element(element).behaviour.trigger()? {
        Trigger::Message(message) => message.name.literal(),
        Trigger::Timer(_) => None,
    }
}
