//! What callers ask of a runtime and what they get.

use std::time::Duration;

use serde::Serialize;
use tidegate_model::{
    DefinitionKey, DeploymentKey, Diagnostic, ElementInstanceKey, InstanceKey, MessageKey, Obstacle, Plan,
    StimulusKey, SubStatus, Timestamp, Variables,
};

/// The default tenant.
pub const DEFAULT_TENANT: &str = "<default>";

/// One file to deploy.
#[derive(Debug, Clone)]
pub struct Resource {
    /// Its name, for example `order.bpmn`.
    pub name: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// What a deployment brought.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Deployment {
    /// Its key.
    pub deployment_key: DeploymentKey,
    /// The definitions, in the order of the resources.
    pub definitions: Vec<DeployedDefinition>,
    /// What is doubtful in them.
    pub warnings: Vec<Diagnostic>,
}

/// One definition of a deployment.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeployedDefinition {
    /// Its key.
    pub definition_key: DefinitionKey,
    /// Its BPMN id.
    pub process_id: String,
    /// Its version, from 1.
    pub version: u32,
    /// Its name.
    pub name: Option<String>,
}

/// Which definition to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Definition {
    /// Exactly this one.
    Key(DefinitionKey),
    /// The newest version of a process id.
    Latest(String),
    /// This version of a process id.
    Version(String, u32),
}

/// A request to start an instance.
#[derive(Debug, Clone)]
pub struct StartRequest {
    /// What to start.
    pub definition: Definition,
    /// Start variables.
    pub variables: Variables,
    /// The caller's own name for the instance.
    pub business_key: Option<String>,
    /// The tenant; [`DEFAULT_TENANT`] if none.
    pub tenant: Option<String>,
    /// The same key twice starts one instance.
    pub idempotency_key: Option<String>,
    /// Wait this long for the end.
    pub await_completion: Option<Duration>,
    /// Who asks.
    pub actor: String,
    /// The ingress source through which it comes; none for a library call.
    pub source: Option<&'static str>,
}

impl StartRequest {
    /// Starts the newest version of `process_id`.
    pub fn latest(process_id: impl Into<String>) -> Self {
        Self::new(Definition::Latest(process_id.into()))
    }

    /// Starts `definition`.
    pub fn new(definition: Definition) -> Self {
        Self {
            definition,
            variables: Variables::new(),
            business_key: None,
            tenant: None,
            idempotency_key: None,
            await_completion: None,
            actor: "library".to_owned(),
            source: None,
        }
    }

    /// With start variables.
    #[must_use]
    pub fn variables(mut self, variables: Variables) -> Self {
        self.variables = variables;
        self
    }

    /// Wait for the end, at most this long.
    #[must_use]
    pub fn wait(mut self, at_most: Duration) -> Self {
        self.await_completion = Some(at_most);
        self
    }
}

/// A started (or accepted) instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Started {
    /// Its key: final, also while it is pending.
    pub instance: InstanceKey,
    /// Its definition.
    pub definition: DefinitionKey,
    /// The definition's process id.
    pub process_id: String,
    /// The definition's version.
    pub version: u32,
    /// What it is doing, as of the commit that this answers.
    pub sub_status: SubStatus,
    /// The queued stimulus, when it was accepted and not executed.
    pub accepted: Option<StimulusKey>,
    /// The variables at its end, when the end was waited for.
    pub variables: Option<Variables>,
}

/// What became of a stimulus for an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acceptance {
    /// It was executed; the instance has moved.
    Done,
    /// It is durable in the queue and takes effect later.
    Queued(StimulusKey),
}

/// A message to publish.
#[derive(Debug, Clone)]
pub struct MessageRequest {
    /// Its name.
    pub name: String,
    /// Its correlation key; empty for none.
    pub correlation_key: String,
    /// Its payload.
    pub variables: Variables,
    /// How long it waits for a taker; none for the runtime's default.
    pub ttl: Option<Duration>,
    /// The sender's own id: the same id twice (by name and correlation key) is one message.
    pub message_id: Option<String>,
    /// The tenant; [`DEFAULT_TENANT`] if none.
    pub tenant: Option<String>,
    /// Who asks.
    pub actor: String,
    /// The ingress source through which it comes.
    pub source: Option<&'static str>,
}

/// A signal to broadcast.
#[derive(Debug, Clone)]
pub struct SignalRequest {
    /// Its name.
    pub name: String,
    /// Its payload.
    pub variables: Variables,
    /// The tenant; [`DEFAULT_TENANT`] if none.
    pub tenant: Option<String>,
    /// Who asks.
    pub actor: String,
    /// The ingress source through which it comes.
    pub source: Option<&'static str>,
}

/// What became of a message or signal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    /// Its key; 0 for a signal.
    pub message: MessageKey,
    /// Instances that take it: waiting ones, and ones it starts.
    pub delivered_to: Vec<InstanceKey>,
    /// Those of them that are held: they take it when they are let go.
    pub deferred_for: Vec<InstanceKey>,
    /// True if it waits for a taker.
    pub is_buffered: bool,
    /// The queued stimulus, when it was accepted and not matched yet.
    pub accepted: Option<StimulusKey>,
}

/// A worker's request for jobs.
#[derive(Debug, Clone)]
pub struct ActivateJobs {
    /// Which jobs.
    pub job_type: String,
    /// Who wants them.
    pub worker: String,
    /// How many at most.
    pub max_jobs: usize,
    /// How long the lease lasts.
    pub lease: Duration,
    /// How long to wait for a first job.
    pub wait: Duration,
    /// The tenant; [`DEFAULT_TENANT`] if none.
    pub tenant: Option<String>,
}

/// A leased job.
#[derive(Debug, Clone, PartialEq)]
pub struct LeasedJob {
    /// Its key.
    pub job: ElementInstanceKey,
    /// The secret that completes it.
    pub lease_token: String,
    /// Its type.
    pub job_type: String,
    /// The instance.
    pub instance: InstanceKey,
    /// The instance's definition.
    pub definition: DefinitionKey,
    /// The definition's process id.
    pub process_id: String,
    /// The element's BPMN id.
    pub element_id: String,
    /// Variables visible to it: a JSON object.
    pub variables: String,
    /// Static headers: a JSON object.
    pub headers: String,
    /// Tries left.
    pub retries: u32,
    /// When the lease ends.
    pub lease_until: Timestamp,
}

/// An event registration that will create an instance.
#[derive(Debug, Clone, Serialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct StarterView {
    /// The process id.
    pub process_id: String,
    /// The tenant.
    pub tenant_id: String,
    /// The version that owns it.
    pub version: u32,
    /// The start event.
    pub start_element_id: String,
    /// `message`, `signal` or `timer`.
    pub kind: String,
    /// The message's name, or the timer's text.
    pub trigger: String,
    /// The definition's key.
    pub key: DefinitionKey,
}

/// An instance as an operator sees it.
#[derive(Debug, Clone)]
pub struct InstanceDetail {
    /// Its row.
    pub row: tidegate_store::InstanceRow,
    /// Its tokens.
    pub tokens: Vec<Token>,
    /// What it waits for.
    pub waiting_for: Vec<Wait>,
    /// The holds on it.
    pub holds: Vec<tidegate_model::Hold>,
    /// The request to cancel it that stands.
    pub cancellation: Option<tidegate_model::Cancellation>,
    /// The variables of the instance.
    pub variables: Variables,
}

/// Where a token is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Token {
    /// The element's BPMN id.
    pub element_id: String,
    /// The element instance; none for a token that waits before a join.
    pub element_instance_key: Option<ElementInstanceKey>,
    /// What it does there.
    pub state: &'static str,
}

/// What an instance waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Wait {
    /// The element's BPMN id.
    pub element_id: String,
    /// The element instance.
    pub element_instance_key: ElementInstanceKey,
    /// `job`, `userTask`, `timer` or `message`.
    pub kind: &'static str,
    /// The job type, the due time, or the message's name and key.
    pub detail: String,
}

/// How well a part is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Grade {
    /// It works.
    Healthy,
    /// It works, but not as it should, or by somebody's wish not at all.
    Degraded,
    /// It does not work.
    Unhealthy,
}

/// One readiness check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What was looked at.
    pub name: &'static str,
    /// How well it is.
    pub grade: Grade,
    /// Why it is not healthy.
    pub reason: Option<String>,
}

/// How an incident is resolved: with what is tried again.
#[derive(Debug, Clone, Default)]
pub struct Resolution {
    /// Tries to give the job; none gives one.
    pub retries: Option<u32>,
    /// The scope of the variables; none for the instance itself.
    pub scope: Option<ElementInstanceKey>,
    /// New values, set before it is tried again.
    pub variables: Variables,
    /// Why, in the operator's own words.
    pub reason: Option<String>,
}

/// A repair that was done, or waits for the gate.
#[derive(Debug, Clone, PartialEq)]
pub struct Repaired {
    /// Whether it was done.
    pub acceptance: Acceptance,
    /// What it does, as planned on the instance as it was stored.
    pub plan: Plan,
}

/// What stands in the way of a change of many instances to another version.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MigrationCheck {
    /// The definition; none if it is not deployed.
    pub definition_key: Option<DefinitionKey>,
    /// Its version, or the one that it would get.
    pub version: u32,
    /// Instances that have it already.
    pub there_already: u64,
    /// Instances that could change to it as they are now.
    pub can_change: u64,
    /// Those that could not.
    pub obstructed: Vec<Obstructed>,
    /// The last instance that was looked at, where there may be more behind it.
    pub next: Option<InstanceKey>,
}

/// An instance that could not change to another version.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Obstructed {
    /// The instance.
    pub instance_key: InstanceKey,
    /// The version it has.
    pub version: u32,
    /// Every reason.
    pub reasons: Vec<Obstacle>,
}
