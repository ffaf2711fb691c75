//! What people see of a user task besides who has it.

use minicbor::{Decode, Encode};
use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// Who may take a user task, by which form it is done, until when, and how urgent it is: what the model says, as it was
/// when the task was opened.
#[derive(Debug, Clone, PartialEq, Eq, Default, Encode, Decode, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TaskDetails {
    /// Users that may take it.
    #[n(0)]
    pub candidate_users: Vec<String>,
    /// The key of a form that the task list knows.
    #[n(1)]
    pub form_key: Option<String>,
    /// The id of a form that was deployed by itself.
    #[n(2)]
    pub form_id: Option<String>,
    /// A form of another program, in words of that program.
    #[n(3)]
    pub external_form_reference: Option<String>,
    /// Until when it should be done. Nothing happens by itself when it is not.
    #[n(4)]
    pub due_date: Option<Timestamp>,
    /// From when somebody should look at it.
    #[n(5)]
    pub follow_up_date: Option<Timestamp>,
    /// How urgent it is; a higher number is more urgent.
    #[n(6)]
    pub priority: Option<i32>,
    /// Which version of the form with this id is meant; none where the model does not say.
    #[n(7)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub form_binding: Option<FormBinding>,
}

/// Which version of a form a task means.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FormBinding {
    /// The latest.
    #[n(0)]
    Latest,
    /// The one that was deployed together with the process.
    #[n(1)]
    Deployment,
    /// The latest with this version tag.
    #[n(2)]
    VersionTag(#[n(0)] String),
    /// This one.
    #[n(3)]
    Version(#[n(0)] u32),
}

impl FormBinding {
    /// What the kind of binding is called.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Latest => "latest",
            Self::Deployment => "deployment",
            Self::VersionTag(_) => "versionTag",
            Self::Version(_) => "version",
        }
    }

    /// The version that is meant by its number.
    pub const fn version(&self) -> Option<u32> {
        match self {
            Self::Version(version) => Some(*version),
            Self::Latest | Self::Deployment | Self::VersionTag(_) => None,
        }
    }

    /// The version tag that is meant.
    pub fn version_tag(&self) -> Option<&str> {
        match self {
            Self::VersionTag(tag) => Some(tag),
            Self::Latest | Self::Deployment | Self::Version(_) => None,
        }
    }
}

impl TaskDetails {
    /// The priority of a task whose model gives none.
    pub const USUAL_PRIORITY: i32 = 50;

    /// None where the model says nothing.
    pub fn boxed(self) -> Option<Box<Self>> {
        (self != Self::default()).then(|| Box::new(self))
    }
}
