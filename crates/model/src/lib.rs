//! The vocabulary of Tidegate, shared by every part.
//!
//! Ids, times, JSON values, the neutral BPMN document, diagnostics, the commands an instance takes and
//! the effects it asks for. Nothing here does anything: no I/O, no clock, no semantics.

pub mod cause;
pub mod command;
pub mod control;
pub mod diagnostic;
pub mod document;
pub mod effect;
pub mod id;
pub mod rejection;
pub mod repair;
pub mod status;
pub mod stimulus;
pub mod task;
pub mod time;
pub mod variables;

pub use cause::Cause;
pub use command::{Command, CommandKind, Interruption, InterruptionReason};
pub use control::{Cancellation, HeldTimers, Hold, HoldScope};
pub use diagnostic::{Diagnostic, Severity};
pub use effect::Effect;
pub use id::{
    DefinitionKey, DeploymentKey, ElementIndex, ElementInstanceKey, IncidentKey, InstanceKey, KeyGenerator,
    MessageKey, StimulusKey,
};
pub use rejection::Rejection;
pub use repair::{Beginning, Ending, Migration, Modification, Moved, Obstacle, Place, Plan, Planned};
pub use status::{LifecycleState, Status, SubStatus};
pub use stimulus::Stimulus;
pub use task::TaskDetails;
pub use time::Timestamp;
pub use variables::{Json, Variables};
