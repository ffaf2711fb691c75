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
}

impl TaskDetails {
    /// The priority of a task whose model gives none.
    pub const USUAL_PRIORITY: i32 = 50;

    /// None where the model says nothing.
    pub fn boxed(self) -> Option<Box<Self>> {
        (self != Self::default()).then(|| Box::new(self))
    }
}
