//! One activation of a flow node.

use std::collections::BTreeSet;

use minicbor::{Decode, Encode};
use tidegate_model::effect::Binding;
use tidegate_model::{
    ElementIndex, ElementInstanceKey, IncidentKey, InstanceKey, Json, TaskDetails, Timestamp, Variables,
};

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
    /// What it is besides an activation of its element.
    pub(crate) role: Role,
    /// For the handler of a completed activity, what it handles.
    pub(crate) handles: Option<Box<Handles>>,
    /// For an ad-hoc sub-process, how many of its activities have begun; [`ALL_BEGUN`] where no more of them begin.
    pub(crate) ad_hoc: Option<u32>,
}

/// What the handler of a completed activity handles. Its own variables are what the activity saw when it completed.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub(crate) struct Handles {
    /// The scope in which the activity completed.
    #[n(0)]
    pub(crate) scope: ElementInstanceKey,
    /// Its place in the order of completion.
    #[n(1)]
    pub(crate) order: u64,
    /// For a handler inside the activity, the activity: the handler compensates what completed in it.
    #[n(2)]
    pub(crate) inside: Option<ElementInstanceKey>,
    /// Names of variables that end with the handler.
    #[n(3)]
    pub(crate) own: BTreeSet<String>,
    /// Names of variables that were written inside it, and go to the live scopes around it when it ends.
    #[n(4)]
    pub(crate) written: BTreeSet<String>,
}

impl Handles {
    /// A variable of the handler is written: before anything runs inside it, that makes the variable its own.
    pub(crate) fn note(&mut self, name: &str, runs: bool) {
        if self.own.contains(name) || self.written.contains(name) {
            return;
        }
        let names = if runs { &mut self.written } else { &mut self.own };
        names.insert(name.to_owned());
    }
}

/// The count of an ad-hoc sub-process that begins no more activities.
pub(crate) const ALL_BEGUN: u32 = u32::MAX;

/// What an element instance is besides an activation of its element.
#[derive(Debug, Clone, Default, PartialEq, Encode, Decode)]
pub(crate) enum Role {
    #[default]
    #[n(0)]
    Plain,
    /// The whole of a repeated activity: its turns run inside it.
    #[n(1)]
    Loop(#[n(0)] Box<Turns>),
    /// One turn of a repeated activity, counted from 1.
    #[n(2)]
    Turn(#[n(0)] u32),
    /// An event sub-process that compensates this scope, which has ended. States of today say so in `handles`.
    #[n(3)]
    Compensates(#[n(0)] ElementInstanceKey),
    /// An ad-hoc sub-process that has begun so many of its activities. States of today say so in `ad_hoc`.
    #[n(4)]
    AdHoc(#[n(0)] u32),
    /// An event that asked for compensation and does not wait for it: its tokens have left.
    #[n(5)]
    Detached,
}

/// How far a repeated activity is.
#[derive(Debug, Clone, Default, PartialEq, Encode, Decode)]
pub(crate) struct Turns {
    /// How many turns there are at most; none for as many as the condition wants.
    #[n(0)]
    pub(crate) total: Option<u32>,
    #[n(1)]
    pub(crate) begun: u32,
    /// Turns that came to their end.
    #[n(2)]
    pub(crate) completed: u32,
    /// The collection that gives each turn its item.
    #[n(3)]
    pub(crate) items: Option<Vec<Json>>,
    /// What the turns gave, by turn.
    #[n(4)]
    pub(crate) outputs: Vec<Option<Json>>,
}

/// A call under way.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub(crate) struct Call {
    #[n(0)]
    pub(crate) child: InstanceKey,
    #[n(1)]
    pub(crate) process_id: String,
    #[n(2)]
    pub(crate) binding: Binding,
    #[n(3)]
    pub(crate) variables: Variables,
    #[n(4)]
    pub(crate) business_key: Option<String>,
    /// True once the called instance was asked to end, because its caller is being cancelled.
    #[n(6)]
    #[cbor(default)]
    pub(crate) is_cancelled: bool,
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
        /// The work was interrupted, and it is not decided yet what becomes of it.
        #[n(3)]
        #[cbor(default)]
        is_interrupted: bool,
    },
    /// A user task is open.
    #[n(2)]
    UserTask {
        #[n(0)]
        assignee: Option<String>,
        #[n(1)]
        candidate_groups: Vec<String>,
        #[n(2)]
        details: Option<Box<TaskDetails>>,
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
    /// An instance of another process runs for it.
    #[n(60)]
    Call(#[n(0)] Box<Call>),
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
    /// The whole of a repeated activity.
    pub(crate) fn turns(&self) -> Option<&Turns> {
        match &self.role {
            Role::Loop(turns) => Some(turns),
            Role::Plain | Role::Turn(_) | Role::Compensates(_) | Role::AdHoc(_) | Role::Detached => None,
        }
    }

    /// Which turn of a repeated activity it is.
    pub(crate) fn turn(&self) -> Option<u32> {
        match self.role {
            Role::Turn(turn) => Some(turn),
            Role::Plain | Role::Loop(_) | Role::Compensates(_) | Role::AdHoc(_) | Role::Detached => None,
        }
    }

    /// The call under way, if one is.
    pub(crate) fn call(&self) -> Option<&Call> {
        match &self.stage {
            Stage::Call(call) => Some(call),
            Stage::Entered
            | Stage::Job { .. }
            | Stage::UserTask { .. }
            | Stage::Waiting
            | Stage::Running
            | Stage::Joined { .. }
            | Stage::Leaving { .. } => None,
        }
    }

    /// True if its work was interrupted and waits for what the model says about that.
    pub(crate) fn is_interrupted(&self) -> bool {
        matches!(
            self.stage,
            Stage::Job {
                is_interrupted: true,
                ..
            }
        ) && self.incident.is_none()
    }

    /// True if its job may be worked on.
    pub(crate) fn has_open_job(&self) -> bool {
        matches!(self.stage, Stage::Job { .. }) && self.incident.is_none()
    }
}
