//! What an instance can be told.

use minicbor::{Decode, Encode};
use serde::Serialize;

use crate::{
    Beginning, Cancellation, Cause, ElementIndex, ElementInstanceKey, Hold, IncidentKey, InstanceKey,
    MessageKey, Modification, Timestamp, Variables,
};

/// A command with its cause.
#[derive(Debug, Clone)]
pub struct Command {
    /// What to do.
    pub kind: CommandKind,
    /// Who or what wants it.
    pub cause: Cause,
}

impl Command {
    /// A command and its cause.
    pub fn new(kind: CommandKind, cause: Cause) -> Self {
        Self { kind, cause }
    }
}

/// What to do with an instance.
#[derive(Debug, Clone)]
pub enum CommandKind {
    /// Begin: the first command of every instance.
    Start {
        /// The start event; none for the definition's none start event (or its only start).
        element: Option<ElementIndex>,
        /// The variables it begins with.
        variables: Variables,
    },
    /// Begin in the middle, in the place of [`CommandKind::Start`]: an instance that takes over from another one.
    StartAt {
        /// Where it begins.
        begin: Vec<Beginning>,
        /// The variables it begins with.
        variables: Variables,
    },
    /// A job succeeded.
    CompleteJob {
        /// The job.
        job: ElementInstanceKey,
        /// Its results.
        variables: Variables,
    },
    /// A job failed technically.
    FailJob {
        /// The job.
        job: ElementInstanceKey,
        /// What went wrong.
        message: String,
        /// Tries left; none takes one off. At zero an incident is raised.
        retries: Option<u32>,
        /// When it may be tried again; none at once.
        retry_at: Option<Timestamp>,
    },
    /// A job ended in a BPMN error.
    ThrowError {
        /// The job.
        job: ElementInstanceKey,
        /// The error code.
        code: String,
        /// What went wrong.
        message: String,
        /// Variables for the catching scope.
        variables: Variables,
    },
    /// A person took a user task, or gave it back.
    AssignUserTask {
        /// The task.
        task: ElementInstanceKey,
        /// Who has it now; none gives it back.
        assignee: Option<String>,
    },
    /// A person completed a user task.
    CompleteUserTask {
        /// The task.
        task: ElementInstanceKey,
        /// The results.
        variables: Variables,
    },
    /// An armed timer fell due.
    TriggerTimer {
        /// The element instance that waits (the host, for a boundary event).
        owner: ElementInstanceKey,
        /// The timer event.
        element: ElementIndex,
        /// The due time it was armed for.
        due_at: Timestamp,
    },
    /// A message was matched with an open subscription.
    CorrelateMessage {
        /// The element instance that waits (the host, for a boundary event).
        owner: ElementInstanceKey,
        /// The message event or receive task.
        element: ElementIndex,
        /// The message.
        message: MessageKey,
        /// Its payload.
        variables: Variables,
    },
    /// A signal was thrown that the instance waits for.
    CatchSignal {
        /// The element instance that waits (the host, for a boundary event).
        owner: ElementInstanceKey,
        /// The signal event.
        element: ElementIndex,
        /// Its payload.
        variables: Variables,
    },
    /// Change variables from outside.
    SetVariables {
        /// The scope; [`ElementInstanceKey::ROOT`] for the instance itself.
        scope: ElementInstanceKey,
        /// New values.
        variables: Variables,
    },
    /// Try what an incident stopped once more.
    RetryIncident {
        /// The incident.
        incident: IncidentKey,
        /// Tries to give the job; none gives one.
        retries: Option<u32>,
    },
    /// Correct variables, and try what an incident stopped once more.
    ResolveIncident {
        /// The incident.
        incident: IncidentKey,
        /// Tries to give the job; none gives one.
        retries: Option<u32>,
        /// The scope of the variables; [`ElementInstanceKey::ROOT`] for the instance itself.
        scope: ElementInstanceKey,
        /// Their new values.
        variables: Variables,
    },
    /// Move tokens.
    Modify(Box<Modification>),
    /// Put an in-process job aside as an incident: it panicked, or kills the process again and again.
    QuarantineJob {
        /// The job.
        job: ElementInstanceKey,
        /// What happened.
        message: String,
    },
    /// An in-process job was under way when its cycle was cut or the process went away. A record where the model wants
    /// more than that it is done again, and nothing else.
    InterruptJob {
        /// The job.
        job: ElementInstanceKey,
    },
    /// Whoever did a job is gone: what the model says about interrupted work happens at once. Where that is to do it
    /// again, nothing changes.
    LoseJob {
        /// The job.
        job: ElementInstanceKey,
    },
    /// The instance goes on after an interruption: what the model says happens to the jobs that were interrupted.
    ResumeInterrupted,
    /// The instance that a call activity started has completed.
    ChildCompleted {
        /// The call activity's instance.
        owner: ElementInstanceKey,
        /// The child.
        child: InstanceKey,
        /// The child's variables at its end.
        variables: Variables,
    },
    /// The child ended by an error that nothing in it caught.
    ChildFaulted {
        /// The call activity's instance.
        owner: ElementInstanceKey,
        /// The child.
        child: InstanceKey,
        /// The error code.
        code: String,
        /// What went wrong.
        message: String,
        /// Variables for the scope that catches it.
        variables: Variables,
    },
    /// The child threw an escalation that nothing in it caught. The child may live on.
    ChildEscalated {
        /// The call activity's instance.
        owner: ElementInstanceKey,
        /// The child.
        child: InstanceKey,
        /// The escalation code.
        code: String,
        /// Variables for the scope that catches it.
        variables: Variables,
    },
    /// An operator cancelled the child.
    ChildCancelled {
        /// The call activity's instance.
        owner: ElementInstanceKey,
        /// The child.
        child: InstanceKey,
    },
    /// The child could not be started: there is no such process, or it has no fitting start.
    ChildNotStarted {
        /// The call activity's instance.
        owner: ElementInstanceKey,
        /// The child that was asked for.
        child: InstanceKey,
        /// Why, with what to do.
        message: String,
    },
    /// An operator suspends the instance. A second hold of the same origin takes the first one's place.
    Hold(Box<Hold>),
    /// An operator lets it go.
    Release {
        /// Whose holds end; empty for all.
        origins: Vec<InstanceKey>,
    },
    /// End the instance as cancelled, at once and as a whole. Lawful in every state that has not ended.
    Cancel,
    /// Ask for the end of the instance: from now on nothing of it goes on. Lawful in every state that has not ended.
    RequestCancel(Box<Cancellation>),
    /// End so much of an instance whose cancellation was asked for; when nothing is left it is cancelled.
    ContinueCancel {
        /// So many element instances at most.
        most: usize,
        /// Jobs whose handlers were told to stop and have not yet: they are waited for.
        running: Vec<ElementInstanceKey>,
    },
    /// A handler did not stop in its time: it is no longer waited for.
    AbandonActivity {
        /// Its job.
        job: ElementInstanceKey,
    },
    /// What a client was told is accepted cannot be done any more: a person has to know.
    RefuseStimulus {
        /// What was refused, and why.
        message: String,
    },
    /// Record that the runtime cut the cycle.
    Interrupt(Box<Interruption>),
    /// Record that the instance was found executing after a crash.
    RecoverCrashed {
        /// The generation that recovered it.
        generation: String,
        /// How many times in a row it was found so.
        attempt: u32,
    },
}

/// Why a cycle was cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, Serialize)]
#[cbor(index_only)]
pub enum InterruptionReason {
    /// A drain's deadline passed.
    #[n(0)]
    DeadlineBreach,
    /// An operator forced the drain.
    #[n(1)]
    OperatorForce,
    /// The cycle had completed and its commit failed.
    #[n(2)]
    PersistenceFailure,
}

/// The record of a cut cycle.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Interruption {
    /// When.
    #[n(0)]
    pub interrupted_at: Timestamp,
    /// Why.
    #[n(1)]
    pub reason: InterruptionReason,
    /// The generation that cut it.
    #[n(2)]
    pub generation_id: String,
    /// The element instance that was last active.
    #[n(3)]
    pub last_activity_id: Option<ElementInstanceKey>,
    /// That element's BPMN id.
    #[n(4)]
    pub last_activity_node_id: Option<String>,
    /// The ingress source that woke the cycle; none for a library call.
    #[n(5)]
    pub ingress_source_name: Option<String>,
    /// How long the cycle had run, in milliseconds; `hh:mm:ss.fffffff` in JSON.
    #[n(6)]
    #[serde(rename = "executionCycleDuration", serialize_with = "as_clock")]
    pub cycle_ms: u64,
    /// The operator's own words.
    #[n(7)]
    pub reason_text: Option<String>,
}

fn as_clock<S: serde::Serializer>(ms: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    let seconds = ms / 1_000;
    serializer.collect_str(&format_args!(
        "{:02}:{:02}:{:02}.{:03}0000",
        seconds / 3_600,
        seconds / 60 % 60,
        seconds % 60,
        ms % 1_000
    ))
}
