//! Why the runtime refuses a call.

use tidegate_model::{DefinitionKey, Diagnostic, IncidentKey, InstanceKey, Rejection};

use crate::status::RuntimeStatus;

/// A refused or failed call. Every kind has a stable code.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// No definition with this process id (and version).
    #[error("no process definition `{process_id}`{}", .version.map(|v| format!(" of version {v}")).unwrap_or_default())]
    NoSuchProcess {
        /// The process id.
        process_id: String,
        /// The version asked for.
        version: Option<u32>,
    },
    /// No definition with this key.
    #[error("no process definition {0}")]
    NoSuchDefinition(DefinitionKey),
    /// No instance with this key.
    #[error("no process instance {0}")]
    NoSuchInstance(InstanceKey),
    /// No job with this key.
    #[error("job {0} is not open")]
    NoSuchJob(u64),
    /// No user task with this key.
    #[error("user task {0} is not open")]
    NoSuchUserTask(u64),
    /// The user task belongs to somebody else.
    #[error("user task {task} is claimed by another person; it must be given back first")]
    UserTaskClaimed {
        /// The task.
        task: u64,
    },
    /// No incident with this key.
    #[error("incident {0} is not open")]
    NoSuchIncident(IncidentKey),
    /// The worker's lease has ended and somebody else has the job, or it was never its own.
    #[error("the lease of job {0} is not yours any more; activate it again")]
    StaleLease(u64),
    /// The instance refused the command.
    #[error("{0}")]
    Rejected(#[from] Rejection),
    /// A resource cannot be deployed.
    #[error("{}", deployment_refused(.0))]
    NotDeployable(Vec<Diagnostic>),
    /// The runtime drains, and this is not served while it does.
    #[error("the runtime is draining; ask the next one")]
    Draining,
    /// Resume was asked for while a drain is on.
    #[error("the runtime is draining and cannot be resumed")]
    ResumeWhileDraining(Box<RuntimeStatus>),
    /// Force was asked for while a graceful drain is on, and the runtime is set to reject that.
    #[error("a drain is in progress")]
    DrainInProgress(Box<RuntimeStatus>),
    /// The queue is at its limit and the overflow policy is Reject.
    #[error("the stimulus queue holds {depth} stimuli, its limit; try again later")]
    QueueFull {
        /// How many it holds.
        depth: u64,
    },
    /// The pause or its end could not be made durable; nothing has changed.
    #[error("the pause record could not be written: {0}")]
    PauseNotPersisted(String),
    /// No ingress source with this name.
    #[error("no ingress source `{0}`")]
    NoSuchSource(String),
    /// The source runs, so there is nothing to force.
    #[error("ingress source `{0}` is running; pause the runtime first")]
    SourceNotPaused(String),
    /// Its definition or its tenant is paused; the instance goes on when that ends.
    #[error("the process `{0}` or its tenant is paused")]
    PartPaused(String),
    /// An operator holds the instance: nothing of it goes on until it is let go.
    #[error("instance {0} is held by an operator; let it go first")]
    InstanceHeld(InstanceKey),
    /// The wait for the end of a cancelled instance ran out. The request stands, and the instance will end.
    #[error("instance {} has not stopped yet ({}); the request to cancel it stands", .0.key, .0.sub_status.word())]
    StillCancelling(Box<tidegate_store::InstanceRow>),
    /// A source was registered after the activation.
    #[error(
        "ingress source `{0}` cannot be added to a runtime that is active: it takes effect at the next activation"
    )]
    SourcesAreFixed(String),
    /// No dead letter with this key.
    #[error("no dead letter {0}")]
    NoSuchDeadLetter(u64),
    /// The wait for the end ran out. The instance goes on.
    #[error("the wait for the end of instance {0} ran out; the instance goes on")]
    WaitRanOut(InstanceKey),
    /// The process has as many live instances as it may, and starts beyond them are skipped.
    #[error("process `{process_id}` has {limit} live instances, as many as it may; the start is skipped")]
    TooManyInstances {
        /// The process id.
        process_id: String,
        /// How many it may have.
        limit: u32,
    },
    /// The instance was forgotten.
    #[error("process instance {0} has ended and was forgotten")]
    InstanceForgotten(InstanceKey),
    /// The instance is live, and only what has ended can be forgotten. Nothing was forgotten.
    #[error("process instance {0} has not ended, so nothing was forgotten; leave it out, or cancel it first")]
    InstanceLive(InstanceKey),
    /// No operation on many with this key.
    #[error("no batch {0}")]
    NoSuchBatch(u64),
    /// The request itself is wrong.
    #[error("{message}")]
    Invalid {
        /// Stable code.
        code: &'static str,
        /// What is wrong and what to do.
        message: String,
    },
    /// The store failed.
    #[error("{0}")]
    Store(#[from] tidegate_store::Error),
    /// The engine was not run yet.
    #[error("the engine is not started; run it first")]
    NotStarted,
    /// The engine runs already, or is being started.
    #[error("the engine is started already")]
    AlreadyStarted,
    /// The runtime was stopped.
    #[error("the runtime is stopped")]
    Stopped,
    /// A shutdown could not do what it was asked for within its deadline. The engine is stopped all the same, and
    /// nothing is lost: a later shutdown waits for what is left.
    #[error("{}", not_settled(.0))]
    NotSettled(Box<NotSettled>),
}

/// What a shutdown left behind at its deadline.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NotSettled {
    /// Instances that did not come to rest (drain), could not be saved (park), or did not end (cancel).
    pub instances: Vec<InstanceKey>,
    /// Tasks and threads that have not ended, by name; those of abandoned activities are fenced.
    pub tasks: Vec<String>,
}

impl Error {
    /// Stable code, kebab-case.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoSuchProcess { .. } => "process-not-found",
            Self::NoSuchDefinition(_) => "definition-not-found",
            Self::NoSuchInstance(_) => "instance-not-found",
            Self::NoSuchJob(_) => "job-not-found",
            Self::NoSuchUserTask(_) => "user-task-not-found",
            Self::UserTaskClaimed { .. } => "user-task-claimed",
            Self::NoSuchIncident(_) => "incident-not-found",
            Self::StaleLease(_) => "stale-lease",
            Self::Rejected(rejection) => rejection.code(),
            Self::NotDeployable(_) => "not-deployable",
            Self::Draining | Self::ResumeWhileDraining(_) => "runtime-draining",
            Self::DrainInProgress(_) => "drain-in-progress",
            Self::QueueFull { .. } => "stimulus-queue-full",
            Self::PauseNotPersisted(_) => "pause-not-persisted",
            Self::NoSuchSource(_) => "source-not-found",
            Self::SourceNotPaused(_) => "not-paused",
            Self::PartPaused(_) => "part-paused",
            Self::InstanceHeld(_) => "instance-held",
            Self::StillCancelling(_) => "wait-ran-out",
            Self::SourcesAreFixed(_) => "sources-are-fixed",
            Self::NoSuchDeadLetter(_) => "dead-letter-not-found",
            Self::WaitRanOut(_) => "wait-ran-out",
            Self::TooManyInstances { .. } => "too-many-instances",
            Self::InstanceForgotten(_) => "instance-forgotten",
            Self::InstanceLive(_) => "instance-live",
            Self::NoSuchBatch(_) => "batch-not-found",
            Self::Invalid { code, .. } => code,
            Self::Store(error) => error.kind().code(),
            Self::NotStarted => "runtime-not-started",
            Self::AlreadyStarted => "runtime-already-started",
            Self::Stopped => "runtime-stopped",
            Self::NotSettled(_) => "shutdown-not-settled",
        }
    }

    pub(crate) fn not_settled(instances: Vec<InstanceKey>, tasks: Vec<String>) -> Self {
        Self::NotSettled(Box::new(NotSettled { instances, tasks }))
    }
}

fn not_settled(left: &NotSettled) -> String {
    let mut text = "the shutdown did not settle everything within its deadline".to_owned();
    if !left.instances.is_empty() {
        let keys: Vec<_> = left.instances.iter().map(ToString::to_string).collect();
        text += &format!("; instances: {}", keys.join(", "));
    }
    if !left.tasks.is_empty() {
        text += &format!("; still running: {}", left.tasks.join(", "));
    }
    text
}

fn deployment_refused(diagnostics: &[Diagnostic]) -> String {
    let errors = diagnostics.iter().filter(|d| d.is_error()).count();
    format!(
        "the deployment was refused: {errors} {}",
        if errors == 1 { "error" } else { "errors" }
    )
}
