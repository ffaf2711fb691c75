//! The whole live state of one instance.

mod bytes;
mod carry;
mod completed;
mod control;
mod element;
mod instance;
mod past;
mod scope;
mod view;

pub(crate) use completed::{Completed, CompletedActivities, LARGE};
pub(crate) use control::Control;
pub(crate) use element::{ALL_BEGUN, Call, ElementInstance, Handles, Role, Stage, Turns, Wait, WaitFor};
pub(crate) use instance::Phase;
pub use instance::{IncidentState, Instance};
pub(crate) use past::{Earlier, Past};
pub(crate) use scope::Scope;
pub(crate) use view::awaited_name;
pub use view::{TokenState, TokenView, WaitKind, WaitView};
