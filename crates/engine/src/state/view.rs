//! What people and the runtime ask of the state.

use std::sync::Arc;

use tidegate_model::{ElementIndex, ElementInstanceKey, InstanceKey, Timestamp};

use crate::definition::Definition;
use crate::element::{Shape, Trigger};
use crate::state::{ElementInstance, Instance, Stage, Wait, WaitFor};

/// One token: a live element instance, or a token on a flow that waits for others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenView {
    /// The element's BPMN id.
    pub element_id: Arc<str>,
    /// The element.
    pub element: ElementIndex,
    /// The element instance; none for a token that waits on a flow into the element.
    pub element_instance: Option<ElementInstanceKey>,
    /// How it is.
    pub state: TokenState,
}

/// How a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenState {
    /// It works, or elements inside it do.
    Active,
    /// It waits for an event, a worker or a person, or for other tokens.
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
pub struct WaitView {
    /// The element that goes on when it comes.
    pub element_id: Arc<str>,
    /// That element.
    pub element: ElementIndex,
    /// The element instance that waits.
    pub element_instance: ElementInstanceKey,
    /// What it waits for.
    pub kind: WaitKind,
}

/// What is waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WaitKind {
    /// A job of this type.
    Job(Arc<str>),
    /// A person, by name where one has taken it.
    UserTask(Option<String>),
    /// A timer that is due then.
    Timer(Timestamp),
    /// A message.
    Message {
        /// Its name.
        name: Arc<str>,
        /// Its correlation key.
        correlation_key: String,
    },
    /// A signal of this name.
    Signal(Arc<str>),
    /// A condition, by its text.
    Condition(Arc<str>),
    /// The instance that a call activity started.
    Child {
        /// Its key.
        instance: InstanceKey,
        /// The process it is of.
        process_id: String,
    },
}

impl WaitKind {
    /// The word for the API.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Job(_) => "job",
            Self::UserTask(_) => "userTask",
            Self::Timer(_) => "timer",
            Self::Message { .. } => "message",
            Self::Signal(_) => "signal",
            Self::Condition(_) => "condition",
            Self::Child { .. } => "child",
        }
    }

    /// The detail as text: job type, assignee, due time, name and key, or condition.
    pub fn detail(&self) -> String {
        match self {
            Self::Job(job_type) => job_type.to_string(),
            Self::UserTask(assignee) => assignee.clone().unwrap_or_default(),
            Self::Timer(due_at) => due_at.to_string(),
            Self::Message {
                name,
                correlation_key,
            } if correlation_key.is_empty() => name.to_string(),
            Self::Message {
                name,
                correlation_key,
            } => format!("{name} / {correlation_key}"),
            Self::Signal(name) | Self::Condition(name) => name.to_string(),
            Self::Child { instance, process_id } => format!("{process_id} {instance}"),
        }
    }
}

impl Instance {
    /// The live element instances, oldest first, then the tokens that wait on flows.
    pub fn tokens(&self, definition: &Definition) -> Vec<TokenView> {
        let view = |element: ElementIndex, element_instance, state| TokenView {
            element_id: Arc::clone(&definition.element(element).id),
            element,
            element_instance,
            state,
        };
        let live = self.elements.iter().map(|(key, instance)| {
            let state = match (&instance.stage, instance.incident) {
                (_, Some(_)) => TokenState::Incident,
                (
                    Stage::Entered
                    | Stage::Running
                    | Stage::Leaving { .. }
                    | Stage::Joined { open: false, .. },
                    None,
                ) => TokenState::Active,
                (
                    Stage::Job { .. }
                    | Stage::UserTask { .. }
                    | Stage::Waiting
                    | Stage::Call(_)
                    | Stage::Joined { open: true, .. },
                    None,
                ) => TokenState::Waiting,
            };
            view(instance.element, Some(*key), state)
        });
        let inner = self
            .elements
            .values()
            .filter_map(|instance| instance.scope.as_deref());
        let on_flows = std::iter::once(&self.root)
            .chain(inner)
            .flat_map(|scope| scope.tokens())
            .map(|(flow, _)| {
                let element = definition.flow(*flow).target;
                let info = definition.element(element);
                let joins = match info.behaviour.shape() {
                    Shape::Join | Shape::Late => true,
                    Shape::Plain | Shape::Scope => info.start_quantity > 1,
                };
                view(
                    element,
                    None,
                    if joins {
                        TokenState::Waiting
                    } else {
                        TokenState::Incident
                    },
                )
            });
        live.chain(on_flows).collect()
    }

    /// Everything the instance waits for, oldest first.
    pub fn waiting_for(&self, definition: &Definition) -> Vec<WaitView> {
        let mut all = Vec::new();
        let view = |key: ElementInstanceKey, element: ElementIndex, kind| {
            let element_id = Arc::clone(&definition.element(element).id);
            WaitView {
                element_id,
                element,
                element_instance: key,
                kind,
            }
        };
        let own = self.as_owner(ElementInstanceKey::ROOT);
        let awaited = |key, wait: &Wait| view(key, wait.element, awaited(definition, wait));
        all.extend(self.waits.iter().map(|wait| awaited(own, wait)));
        for (key, instance) in &self.elements {
            all.extend(work(definition, instance).map(|kind| view(*key, instance.element, kind)));
            all.extend(instance.waits.iter().map(|wait| awaited(*key, wait)));
        }
        all
    }

    /// True if `owner` waits for a message or signal of this name, which `element` receives.
    pub fn awaits(
        &self,
        definition: &Definition,
        owner: ElementInstanceKey,
        element: ElementIndex,
        name: &str,
    ) -> bool {
        let wait = self.wait_of(owner, element);
        wait.is_some_and(|wait| match awaited(definition, wait) {
            WaitKind::Message { name: awaited, .. } | WaitKind::Signal(awaited) => *awaited == *name,
            WaitKind::Job(_)
            | WaitKind::UserTask(_)
            | WaitKind::Timer(_)
            | WaitKind::Condition(_)
            | WaitKind::Child { .. } => false,
        })
    }

    /// The latest-started activity that still runs, else the one that completed last.
    pub fn last_activity<'a>(&self, definition: &'a Definition) -> Option<(ElementInstanceKey, &'a str)> {
        let running = self
            .elements
            .iter()
            .rev()
            .map(|(key, instance)| (*key, instance.element));
        running
            .filter(|(_, element)| definition.element(*element).is_activity)
            .chain(self.last_completed)
            .next()
            .map(|(key, element)| (key, &*definition.element(element).id))
    }
}

/// The job or person that an element instance waits for.
fn work(definition: &Definition, instance: &ElementInstance) -> Option<WaitKind> {
    if instance.incident.is_some() {
        return None;
    }
    match &instance.stage {
        Stage::Job { job_type, .. } => {
            let fixed = definition.element(instance.element).behaviour.job();
            let fixed = fixed.and_then(|job| job.job_type.literal());
            let computed = job_type.as_deref().map(Arc::from);
            Some(WaitKind::Job(
                computed.or(fixed.map(Arc::clone)).unwrap_or_else(|| "".into()),
            ))
        }
        Stage::UserTask { assignee, .. } => Some(WaitKind::UserTask(assignee.clone())),
        Stage::Call(call) => Some(WaitKind::Child {
            instance: call.child,
            process_id: call.process_id.clone(),
        }),
        Stage::Entered | Stage::Waiting | Stage::Running | Stage::Leaving { .. } | Stage::Joined { .. } => {
            None
        }
    }
}

fn awaited(definition: &Definition, wait: &Wait) -> WaitKind {
    match &wait.kind {
        WaitFor::Timer { due_at, .. } => WaitKind::Timer(*due_at),
        WaitFor::Message {
            name,
            correlation_key,
        } => WaitKind::Message {
            name: match name {
                Some(computed) => computed.as_str().into(),
                None => awaited_name(definition, wait.element),
            },
            correlation_key: correlation_key.clone(),
        },
        WaitFor::Signal { name } => WaitKind::Signal(match name {
            Some(computed) => computed.as_str().into(),
            None => awaited_name(definition, wait.element),
        }),
        WaitFor::Condition { .. } => WaitKind::Condition(awaited_name(definition, wait.element)),
    }
}

/// The fixed name of the message or signal that `element` receives, or the text of its condition.
pub(crate) fn awaited_name(definition: &Definition, element: ElementIndex) -> Arc<str> {
    let fixed = match definition.element(element).behaviour.trigger() {
        Some(Trigger::Message(message)) => message.name.literal(),
        Some(Trigger::Signal(signal)) => signal.name.literal(),
        Some(Trigger::Condition(condition)) => Some(&condition.text),
        Some(Trigger::Timer(_)) | None => None,
    };
    fixed.map_or_else(|| "".into(), Arc::clone)
}
