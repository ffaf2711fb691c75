//! One activation of a flow node.

use minicbor::{Decode, Encode};
use tidegate_model::{ElementIndex, ElementInstanceKey, IncidentKey, Timestamp, Variables};

use crate::definition::FlowIndex;
use crate::state::Scope;
use crate::timer::Repeat;

/// A live element instance.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ElementInstance {
    pub(crate) element: ElementIndex,
    pub(crate) parent: ElementInstanceKey,
    pub(crate) stage: Stage,
    /// Its own variables: input mappings, and what a sub-process holds.
    pub(crate) variables: Variables,
    /// Only a sub-process has one.
    pub(crate) scope: Option<Box<Scope>>,
    /// What it waits for, also for its boundary events or the events behind an event-based gateway.
    pub(crate) waits: Vec<Wait>,
    /// The incident that stopped it.
    pub(crate) incident: Option<IncidentKey>,
}

/// How far an element instance is.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub(crate) enum Stage {
    /// Activated; what it does has not begun, or takes no time.
    #[n(0)]
    Entered,
    /// A job is open.
    #[n(1)]
    Job {
        #[n(0)]
        retries: u32,
        #[n(1)]
        not_before: Option<Timestamp>,
        #[n(2)]
        job_type: Option<String>,
    },
    /// A user task is open.
    #[n(2)]
    UserTask {
        #[n(0)]
        assignee: Option<String>,
        #[n(1)]
        candidate_groups: Vec<String>,
    },
    /// It waits for an event of its own.
    #[n(3)]
    Waiting,
    /// Elements run inside it.
    #[n(4)]
    Running,
    /// What it does is done; these are the results that have not left it yet.
    #[n(5)]
    Leaving {
        #[n(0)]
        results: Variables,
    },
    /// A complex gateway took a token from each of these flows; once `open`, it waits for the rest.
    #[n(10)]
    Joined {
        #[n(0)]
        taken: Vec<FlowIndex>,
        #[n(1)]
        open: bool,
    },
}

/// One event that is waited for, named by the element that receives it.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub(crate) struct Wait {
    #[n(0)]
    pub(crate) element: ElementIndex,
    #[n(1)]
    pub(crate) kind: WaitFor,
}

/// What is waited for.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub(crate) enum WaitFor {
    #[n(0)]
    Timer {
        #[n(0)]
        due_at: Timestamp,
        #[n(1)]
        repeat: Option<Repeat>,
    },
    #[n(1)]
    Message {
        #[n(0)]
        name: Option<String>,
        #[n(1)]
        correlation_key: String,
    },
    #[n(10)]
    Signal {
        #[n(0)]
        name: Option<String>,
    },
    #[n(11)]
    Condition {
        /// True where it has been met and has not lapsed since.
        #[n(0)]
        held: bool,
    },
}

impl WaitFor {
    /// True if the instance itself must look for it when it changes.
    pub(crate) fn is_internal(&self) -> bool {
        match self {
            Self::Signal { .. } | Self::Condition { .. } => true,
            Self::Timer { .. } | Self::Message { .. } => false,
        }
    }
}

impl ElementInstance {
    /// True if its job may be worked on.
    pub(crate) fn has_open_job(&self) -> bool {
        matches!(self.stage, Stage::Job { .. }) && self.incident.is_none()
    }
}
