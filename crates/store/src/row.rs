//! The rows of a store.

use std::sync::Arc;

use serde::Serialize;
use tidegate_model::{
    Cause, DefinitionKey, DeploymentKey, ElementIndex, ElementInstanceKey, IncidentKey, InstanceKey,
    MessageKey, StimulusKey, SubStatus, TaskDetails, Timestamp,
};

/// A process instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceRow {
    /// Its key.
    pub key: InstanceKey,
    /// Its definition.
    pub definition: DefinitionKey,
    /// The definition's process id.
    pub process_id: Arc<str>,
    /// The definition's version.
    pub version: u32,
    /// Its tenant.
    pub tenant: Arc<str>,
    /// The business key it was started with.
    pub business_key: Option<String>,
    /// The instance that called it.
    pub parent: Option<InstanceKey>,
    /// The call activity's element instance in the caller.
    pub parent_element: Option<ElementInstanceKey>,
    /// How many callers are above it.
    pub depth: u32,
    /// The number of commits made for it; the first is 1.
    pub revision: u64,
    /// What it is doing.
    pub sub_status: SubStatus,
    /// Open incidents.
    pub incident_count: u32,
    /// How often in a row it was found executing after a crash.
    pub attempts: u32,
    /// When it was started (accepted).
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
}

/// The changing part of an instance's row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceUpdate {
    /// Which instance.
    pub key: InstanceKey,
    /// The revision this update makes. The row must have exactly `revision - 1`, else the whole commit is
    /// refused as [`crate::Refusal::Revision`]. This is the fence of law 3 and needs no extra expectation.
    pub revision: u64,
    /// What it is doing.
    pub sub_status: SubStatus,
    /// Open incidents.
    pub incident_count: u32,
    /// How often in a row it was found executing after a crash.
    pub attempts: u32,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// The encoded state as of this revision; `None` leaves the stored one, which the journal rows after it
    /// bring up to date.
    pub state: Option<Vec<u8>>,
}

/// An instance with what is needed to bring it back to life.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredInstance {
    /// Its row.
    pub row: InstanceRow,
    /// The encoded state, if one was written.
    pub state: Option<Vec<u8>>,
    /// The journal rows after the state's revision, in order.
    pub journal: Vec<JournalRow>,
    /// The revision up to which the journal was trimmed; 0 if it is whole.
    pub trimmed: u64,
}

/// The journal entry of one commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalRow {
    /// Whose it is.
    pub instance: InstanceKey,
    /// The instance's revision that the commit made.
    pub revision: u64,
    /// The sequence number of its first event (the first event of an instance is 1).
    pub first_sequence: u64,
    /// The encoded events.
    pub payload: Vec<u8>,
}

/// An armed timer. `instance` is `None` for the timer start event of a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimerRow {
    /// When it is due.
    pub due_at: Timestamp,
    /// Who waits: the element instance, or the definition's key for a start event.
    pub owner: u64,
    /// The timer event.
    pub element: ElementIndex,
    /// The instance.
    pub instance: Option<InstanceKey>,
    /// How often it has fired (timer start events only).
    pub fired: u32,
}

/// What an open subscription waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Awaited {
    /// A message of its name and correlation key: one taker for each process id.
    Message,
    /// A signal of its name: all who wait take it.
    Signal,
}

/// An open message or signal subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubscriptionRow {
    /// What it waits for.
    pub awaited: Awaited,
    /// Who waits.
    pub owner: ElementInstanceKey,
    /// The message event.
    pub element: ElementIndex,
    /// The instance.
    pub instance: InstanceKey,
    /// The process id of its definition: a message is taken at most once for each process id.
    pub process_id: Arc<str>,
    /// The tenant.
    pub tenant: Arc<str>,
    /// Name of the message or signal.
    pub message_name: Arc<str>,
    /// Evaluated correlation key; empty for a signal.
    pub correlation_key: String,
    /// True if the first message ends the wait.
    pub once: bool,
}

/// A message, being published or buffered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageRow {
    /// Its key.
    pub key: MessageKey,
    /// The tenant.
    pub tenant: Arc<str>,
    /// Its name.
    pub name: String,
    /// Its correlation key.
    pub correlation_key: String,
    /// The payload: a JSON object.
    pub variables: String,
    /// When it stops waiting for a taker.
    pub expires_at: Timestamp,
    /// Who sent it.
    pub from: Option<Cause>,
}

/// Where a job stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum JobState {
    /// May be leased, from `not_before` on.
    Available,
    /// Leased until `lease_until`.
    Leased,
    /// Its outcome is accepted and waits in the stimulus queue.
    Reported,
    /// Its instance is held: it is not offered.
    Withheld,
    /// Its instance is held. Who leased it may still report its outcome, also when the lease has ended: nobody else gets
    /// it.
    LeasedWithheld,
}

/// A job for external workers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobRow {
    /// The element instance that asks for it.
    pub key: ElementInstanceKey,
    /// The instance.
    pub instance: InstanceKey,
    /// The instance's definition.
    pub definition: DefinitionKey,
    /// The definition's process id.
    pub process_id: Arc<str>,
    /// The tenant.
    pub tenant: Arc<str>,
    /// The element's BPMN id.
    pub element_id: Arc<str>,
    /// Its type.
    pub job_type: Arc<str>,
    /// Static headers: a JSON object.
    pub headers: String,
    /// Variables visible to it: a JSON object.
    pub variables: String,
    /// Tries left.
    pub retries: u32,
    /// Where it stands.
    pub state: JobState,
    /// Not before this time.
    pub not_before: Timestamp,
    /// Who has it.
    pub worker: Option<String>,
    /// The secret of the lease.
    pub lease_token: Option<String>,
    /// When the lease ends.
    pub lease_until: Option<Timestamp>,
}

/// A request to lease jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseRequest {
    /// Which jobs.
    pub job_type: String,
    /// The tenant.
    pub tenant: Arc<str>,
    /// Who wants them.
    pub worker: String,
    /// Process ids whose jobs stay where they are.
    pub except: Vec<String>,
    /// How many at most.
    pub limit: usize,
    /// The secret that completes them.
    pub lease_token: String,
    /// The present time: leases that ended by now are free again.
    pub now: Timestamp,
    /// When the lease ends.
    pub lease_until: Timestamp,
}

/// An open user task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserTaskRow {
    /// The element instance that asks for it.
    pub key: ElementInstanceKey,
    /// The instance.
    pub instance: InstanceKey,
    /// The definition's process id.
    pub process_id: Arc<str>,
    /// The tenant.
    pub tenant: Arc<str>,
    /// The element's BPMN id.
    pub element_id: Arc<str>,
    /// The element's name.
    pub name: Option<String>,
    /// Who has it.
    pub assignee: Option<String>,
    /// Groups that may take it.
    pub candidate_groups: Vec<String>,
    /// What else the model says of it.
    pub details: TaskDetails,
    /// Since when.
    pub created_at: Timestamp,
}

/// An open incident.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IncidentRow {
    /// Its key.
    pub key: IncidentKey,
    /// The instance.
    pub instance: InstanceKey,
    /// The definition's process id.
    pub process_id: Arc<str>,
    /// The tenant.
    pub tenant: Arc<str>,
    /// The element's BPMN id.
    pub element_id: Option<String>,
    /// The element instance it stopped.
    pub element_instance: Option<ElementInstanceKey>,
    /// Stable code.
    pub code: String,
    /// What happened.
    pub message: String,
    /// Since when.
    pub raised_at: Timestamp,
}

/// A queued stimulus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StimulusRow {
    /// Its key: given by the store, growing in the order of acceptance. 0 in a row to be written.
    pub key: StimulusKey,
    /// What must stay in order with it, for example `instance/42` or `message/NAME/KEY`.
    pub domain: String,
    /// The ingress source that accepted it.
    pub source: String,
    /// The encoded stimulus.
    pub payload: Vec<u8>,
    /// When it was accepted.
    pub accepted_at: Timestamp,
    /// How often executing it failed.
    pub attempts: u32,
}

/// A stimulus that failed again and again and was put aside. It is executed again only when somebody asks for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetterRow {
    /// The stimulus, with the key it had in the queue: that is the dead letter's key too.
    pub stimulus: StimulusRow,
    /// Stable code of the last error.
    pub code: String,
    /// The last error, in words.
    pub error: String,
    /// When it was put aside.
    pub died_at: Timestamp,
}

/// What a definition defines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DefinitionKind {
    /// A process.
    Process,
    /// A decision.
    Decision,
}

/// A process or decision definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefinitionRow {
    /// Its key.
    pub key: DefinitionKey,
    /// What it defines.
    pub kind: DefinitionKind,
    /// The deployment that brought it.
    pub deployment: DeploymentKey,
    /// The resource it stands in.
    pub resource: u64,
    /// The resource's name.
    pub resource_name: String,
    /// SHA-256 of the resource, hexadecimal.
    pub checksum: String,
    /// Its BPMN id, or the decision's id.
    pub process_id: Arc<str>,
    /// Its version, from 1, by (process id, tenant).
    pub version: u32,
    /// Its name.
    pub name: Option<String>,
    /// The tenant.
    pub tenant: Arc<str>,
    /// When it was deployed.
    pub deployed_at: Timestamp,
    /// True once it was unregistered: no longer listed, its live instances go on.
    pub is_deleted: bool,
}

/// An audit entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditRow {
    /// Its key: given by the store in the order of entry. 0 in a row to be written.
    pub key: u64,
    /// When.
    pub time: Timestamp,
    /// What, for example `RuntimePauseRequested`.
    pub action: String,
    /// Who.
    pub actor: String,
    /// Why, in the actor's words.
    pub reason: Option<String>,
    /// Which shell.
    pub shell: String,
    /// What it concerned, for example an instance's key.
    pub subject: Option<String>,
    /// The state before.
    pub before: Option<String>,
    /// The state after.
    pub after: Option<String>,
    /// What became of it.
    pub outcome: String,
    /// How far it reached: `runtime`, `instance`, `source` and the like.
    pub scope: String,
    /// The request that asked for it.
    pub request_id: Option<String>,
}

/// Which instances.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InstanceFilter {
    /// Any of these sub-statuses; empty for all.
    pub sub_statuses: Vec<SubStatus>,
    /// Of this process id.
    pub process_id: Option<String>,
    /// Of this definition.
    pub definition: Option<DefinitionKey>,
    /// With this business key.
    pub business_key: Option<String>,
    /// Called by this instance.
    pub parent: Option<InstanceKey>,
    /// With, or without, an open incident.
    pub has_incident: Option<bool>,
    /// Started at or after this time.
    pub started_after: Option<Timestamp>,
    /// Started before this time.
    pub started_before: Option<Timestamp>,
    /// Of this tenant.
    pub tenant: Option<String>,
}

/// Which definitions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DefinitionFilter {
    /// Of this kind.
    pub kind: Option<DefinitionKind>,
    /// Of this process id.
    pub process_id: Option<String>,
    /// Only the newest version of each process id.
    pub latest: bool,
    /// Of this tenant.
    pub tenant: Option<String>,
}

/// Which incidents.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IncidentFilter {
    /// Of this instance.
    pub instance: Option<InstanceKey>,
    /// Of this process id.
    pub process_id: Option<String>,
    /// Of this tenant.
    pub tenant: Option<String>,
}

/// Which user tasks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UserTaskFilter {
    /// Of this instance.
    pub instance: Option<InstanceKey>,
    /// Held by this person.
    pub assignee: Option<String>,
    /// Of this tenant.
    pub tenant: Option<String>,
}

/// A page of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    /// The key of the last row of the page before.
    pub after: Option<u64>,
    /// How many rows at most.
    pub limit: usize,
}

impl Page {
    /// The first `limit` rows.
    pub const fn first(limit: usize) -> Self {
        Self { after: None, limit }
    }
}

/// The stimulus queue in two numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueueDepth {
    /// How many stimuli wait.
    pub depth: u64,
    /// Since when the oldest does.
    pub oldest_accepted_at: Option<Timestamp>,
}
