//! What an instance asks of the world around it.
//!
//! Effects leave after the commit of the events that caused them, and can be derived again from the
//! committed state.

use std::sync::Arc;

use minicbor::{Decode, Encode};
use serde::Serialize;

use crate::{
    ElementIndex, ElementInstanceKey, Hold, IncidentKey, InstanceKey, SubStatus, TaskDetails, Timestamp,
    Variables,
};

/// One thing that should be under way from now on, or no longer.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Work for a handler or a worker.
    RunJob(Job),
    /// The job is done with: completed, failed for good, or its element left.
    JobGone(ElementInstanceKey),
    /// Work for a person.
    OpenUserTask(UserTask),
    /// The user task is done with.
    CloseUserTask(ElementInstanceKey),
    /// A timer to arm (or to re-arm, replacing the one of the same owner and element).
    ArmTimer(Timer),
    /// The timer is no longer wanted, or has fired for the last time.
    DisarmTimer {
        /// Who waited.
        owner: ElementInstanceKey,
        /// The timer event.
        element: ElementIndex,
    },
    /// A message or signal to wait for.
    Subscribe(Subscription),
    /// The message or signal is no longer wanted, or has come.
    Unsubscribe {
        /// Who waited.
        owner: ElementInstanceKey,
        /// The message event or receive task.
        element: ElementIndex,
    },
    /// An incident to show.
    RaiseIncident(Incident),
    /// The incident is gone.
    CloseIncident(IncidentKey),
    /// A message that the instance sends. It happens once, with the commit, and is not part of what is outstanding.
    PublishMessage {
        /// Its name.
        name: String,
        /// Its correlation key; empty when the model gives none.
        correlation_key: String,
        /// Its payload.
        variables: Variables,
        /// How long it may wait for a taker, in milliseconds; none for the host's own limit.
        ttl_ms: Option<i64>,
        /// A message with the id of an earlier one of the same name and key does nothing.
        message_id: Option<String>,
    },
    /// A signal that the instance throws. It happens once, with the commit, and is not part of what is outstanding.
    /// The instance that throws it has taken it already: it goes to every other one, and to the start events.
    BroadcastSignal {
        /// Its name.
        name: String,
        /// Its payload.
        variables: Variables,
    },
    /// An instance of another process to start, whose end the owner waits for.
    StartChild(Child),
    /// The child is no longer wanted: the call activity was ended before it. Nothing comes back from it any more, unless it
    /// is awaited.
    CancelChild {
        /// The child.
        instance: InstanceKey,
        /// The call activity's instance.
        owner: ElementInstanceKey,
        /// True if the caller is being cancelled itself and waits for the child's end.
        is_awaited: bool,
        /// How long its handlers may take to stop, in milliseconds; none for the runtime's own measure.
        patience_ms: Option<u64>,
    },
    /// The child is held with the instance that called it.
    HoldChild {
        /// The child.
        instance: InstanceKey,
        /// The hold.
        hold: Hold,
    },
    /// Holds of the child end with those of the instance that called it.
    ReleaseChild {
        /// The child.
        instance: InstanceKey,
        /// Whose holds end.
        origins: Vec<InstanceKey>,
    },
    /// An escalation that nothing in this instance caught: the call activity that started it may catch it.
    EscalateToParent {
        /// The escalation code.
        code: String,
        /// Variables for the scope that catches it.
        variables: Variables,
    },
    /// The instance has ended.
    Ended(SubStatus),
}

/// An instance that a call activity starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Child {
    /// Its key, in the shard of its parent. A second start with this key is the same start.
    pub instance: InstanceKey,
    /// The call activity's instance.
    pub owner: ElementInstanceKey,
    /// The BPMN id of the process.
    pub process_id: String,
    /// Which version of it.
    pub binding: Binding,
    /// The variables it begins with.
    pub variables: Variables,
    /// Its business key.
    pub business_key: Option<String>,
}

/// Which version of a process is called.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Binding {
    /// The latest version at the time of the call.
    #[n(0)]
    Latest,
    /// This version.
    #[n(1)]
    Version(#[n(0)] u32),
    /// The latest version with this version tag.
    #[n(2)]
    VersionTag(#[n(0)] String),
    /// The version that was deployed together with the caller.
    #[n(3)]
    Deployment,
}

/// One piece of work.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// The element instance that asks for it.
    pub key: ElementInstanceKey,
    /// The element.
    pub element: ElementIndex,
    /// The element's BPMN id.
    pub element_id: Arc<str>,
    /// Which handler or worker does it.
    pub job_type: Arc<str>,
    /// Static headers of the model.
    pub headers: Arc<[(Arc<str>, Arc<str>)]>,
    /// Tries left.
    pub retries: u32,
    /// Not before this time (back-off after a failure).
    pub not_before: Option<Timestamp>,
    /// The variables visible to it.
    pub variables: Variables,
}

/// Work for a person.
#[derive(Debug, Clone, PartialEq)]
pub struct UserTask {
    /// The element instance that asks for it.
    pub key: ElementInstanceKey,
    /// The element.
    pub element: ElementIndex,
    /// The element's BPMN id.
    pub element_id: Arc<str>,
    /// The element's name.
    pub name: Option<Arc<str>>,
    /// Who has it.
    pub assignee: Option<String>,
    /// Groups that may take it.
    pub candidate_groups: Vec<String>,
    /// What else the model says of it.
    pub details: TaskDetails,
}

/// A timer to arm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timer {
    /// Who waits (the host, for a boundary event).
    pub owner: ElementInstanceKey,
    /// The timer event.
    pub element: ElementIndex,
    /// When it is due.
    pub due_at: Timestamp,
}

/// What a subscription waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SubscriptionKind {
    /// A message, which one taker gets.
    #[default]
    Message,
    /// A signal, which everyone gets who waits for it.
    Signal,
}

/// A message or signal to wait for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscription {
    /// Which of the two.
    pub kind: SubscriptionKind,
    /// Who waits (the host, for a boundary event).
    pub owner: ElementInstanceKey,
    /// The message event or receive task.
    pub element: ElementIndex,
    /// The name of the message or signal.
    pub message_name: Arc<str>,
    /// The evaluated correlation key; empty when the model gives none.
    pub correlation_key: String,
    /// True if the first message ends the wait; false for a non-interrupting boundary event.
    pub once: bool,
}

/// A problem that a person must resolve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incident {
    /// Its key.
    pub key: IncidentKey,
    /// The element instance it stopped, if any.
    pub element_instance: Option<ElementInstanceKey>,
    /// The element's BPMN id.
    pub element_id: Option<Arc<str>>,
    /// Stable code, for example `job-no-retries`, `expression-failed`, `no-flow-taken`.
    pub code: String,
    /// What happened, with what to do.
    pub message: String,
}
