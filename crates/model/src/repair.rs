//! What an operator asks for to put an instance right: tokens that move, and a change to another version.
//!
//! Elements and flows are named by their BPMN ids, so that a request that waits in the queue says the same when it is
//! executed.

use std::collections::BTreeMap;

use minicbor::{Decode, Encode};
use serde::Serialize;

use crate::{DefinitionKey, ElementInstanceKey, SubStatus, Variables};

/// How the tokens of an instance are to move. Everything happens, or nothing.
#[derive(Debug, Clone, Default, PartialEq, Encode, Decode)]
pub struct Modification {
    /// Variables of the instance itself, set before anything else.
    #[n(0)]
    pub variables: Variables,
    /// What ends.
    #[n(1)]
    pub end: Vec<Ending>,
    /// Where it goes on.
    #[n(2)]
    pub begin: Vec<Beginning>,
}

/// What ends without being completed.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum Ending {
    /// One element instance, with everything inside it.
    #[n(0)]
    Instance(#[n(0)] ElementInstanceKey),
    /// Every instance of this element, and the tokens that wait before it.
    #[n(1)]
    Element(#[n(0)] String),
}

/// One place where the instance goes on.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub struct Beginning {
    /// Where.
    #[n(0)]
    pub place: Place,
    /// In which scope, where several would do: an element instance, or one around it.
    #[n(1)]
    pub scope: Option<ElementInstanceKey>,
    /// For [`Place::Before`], variables of the new element instance alone; else variables of the scope.
    #[n(2)]
    pub variables: Variables,
}

/// A place in a model.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum Place {
    /// The element begins.
    #[n(0)]
    Before(#[n(0)] String),
    /// A token leaves the element by its only flow, as if it had completed.
    #[n(1)]
    After(#[n(0)] String),
    /// A token is put on this flow.
    #[n(2)]
    Flow(#[n(0)] String),
}

/// To which version an instance is to change, and what its elements are called there.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Migration {
    /// The definition.
    #[n(0)]
    pub definition: DefinitionKey,
    /// Ids of elements and flows of today, each with its id there. What is not named keeps its id.
    #[n(1)]
    pub mapping: BTreeMap<String, String>,
}

/// One reason why an instance cannot be put right this way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Obstacle {
    /// Stable code, kebab-case.
    pub code: &'static str,
    /// The element or flow, by its BPMN id.
    pub element_id: Option<String>,
    /// The element instance.
    pub element_instance_key: Option<ElementInstanceKey>,
    /// What is in the way, and what to do.
    pub message: String,
}

/// What a repair comes to, up to the point where the instance waits again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// Element instances that are alive now and then no more.
    pub ended: Vec<Planned>,
    /// Elements that are alive then and not now.
    pub started: Vec<Planned>,
    /// What is waited for then and not now: timers, messages, signals, conditions, jobs, user tasks, called instances.
    pub armed: Vec<Planned>,
    /// What is waited for now and then no more.
    pub disarmed: Vec<Planned>,
    /// Live element instances whose element has another id then.
    pub moved: Vec<Moved>,
    /// Incidents that it would raise.
    pub incidents: Vec<Planned>,
    /// Messages and signals that it would send.
    pub sent: Vec<Planned>,
    /// How the instance would end, if it would.
    pub ends: Option<SubStatus>,
}

/// One line of a plan.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Planned {
    /// The element, by its BPMN id.
    pub element_id: Option<String>,
    /// The element instance that is alive now; none for one that is yet to come.
    pub element_instance_key: Option<ElementInstanceKey>,
    /// Its tag, or what is waited for: `timer`, `message`, `signal`, `condition`, `job`, `userTask`, `child`.
    pub kind: String,
    /// When a timer is due, what a message is called, a job's type, what an incident says.
    pub detail: String,
}

/// A live element instance under another id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Moved {
    /// The element instance.
    pub element_instance_key: ElementInstanceKey,
    /// Its element's id now.
    pub from_element_id: String,
    /// Its element's id then.
    pub to_element_id: String,
}
