//! Why a command was refused by an instance.

use crate::{ElementInstanceKey, IncidentKey, Obstacle, SubStatus};

/// A command that does not fit the state. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// The instance has ended.
    #[error("the instance has ended ({})", .0.word())]
    Ended(SubStatus),
    /// The instance is being cancelled: nothing of it goes on.
    #[error("the instance is being cancelled")]
    Cancelling,
    /// The instance was started before.
    #[error("the instance has already been started")]
    AlreadyStarted,
    /// The definition has no start event that fits.
    #[error("the definition has no start event that can be started this way")]
    NoStart,
    /// The job is not there (any more).
    #[error("job {0} is not open")]
    NoSuchJob(ElementInstanceKey),
    /// The user task is not there (any more).
    #[error("user task {0} is not open")]
    NoSuchUserTask(ElementInstanceKey),
    /// Nothing waits there (any more): the timer or message came too late.
    #[error("element instance {0} no longer waits for this event")]
    NotWaiting(ElementInstanceKey),
    /// The incident is not there (any more).
    #[error("incident {0} is not open")]
    NoSuchIncident(IncidentKey),
    /// The scope is not there (any more).
    #[error("scope {0} is not active")]
    NoSuchScope(ElementInstanceKey),
    /// The element instance does not wait for this child (any more).
    #[error("element instance {0} does not wait for this child")]
    NoSuchChild(ElementInstanceKey),
    /// The instance cannot be put right this way: every reason at once.
    #[error("{}", told(.0))]
    Obstructed(Vec<Obstacle>),
}

fn told(obstacles: &[Obstacle]) -> String {
    /// Beyond this the list is for programs.
    const SHOWN: usize = 5;
    let mut text = String::from("the instance cannot be changed this way: ");
    let shown: Vec<&str> = obstacles
        .iter()
        .take(SHOWN)
        .map(|found| found.message.as_str())
        .collect();
    text.push_str(&shown.join("; "));
    if obstacles.len() > SHOWN {
        text.push_str(&format!("; and {} more", obstacles.len() - SHOWN));
    }
    text
}

impl Rejection {
    /// Stable code.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Ended(_) => "instance-ended",
            Self::Cancelling => "instance-cancelling",
            Self::AlreadyStarted => "already-started",
            Self::NoStart => "no-start-event",
            Self::NoSuchJob(_) => "job-not-found",
            Self::NoSuchUserTask(_) => "user-task-not-found",
            Self::NotWaiting(_) => "not-waiting",
            Self::NoSuchIncident(_) => "incident-not-found",
            Self::NoSuchScope(_) => "scope-not-found",
            Self::NoSuchChild(_) => "child-not-found",
            Self::Obstructed(_) => "repair-obstructed",
        }
    }
}
