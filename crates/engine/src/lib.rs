//! The pure BPMN state machine.
//!
//! [`compile`] turns a document into [`Definition`]s. [`advance`] takes one command, lets [`decide`] and [`apply`]
//! alternate on the live state until nothing follows, and hands back the events to commit and the effects that may
//! leave after the commit. [`outstanding`] derives again, from the state alone, what should be under way.
//!
//! Nothing here reads a clock, does I/O, draws a random number or waits: the same input gives the same output.

mod advance;
mod apply;
mod codec;
mod compile;
mod decide;
mod definition;
mod effects;
mod element;
mod event;
mod history;
mod mapping;
mod reach;
mod repair;
mod replay;
mod state;
mod text;
mod timer;
mod visible;

pub use advance::{advance, decide};
pub use apply::apply;
pub use codec::{CorruptState, decode_events, encode_events};
pub use compile::{
    CompileOptions, Compiled, Limits, ProcessSettings, ReadScript, ScriptCheck, ScriptFault, WhenFull,
    compile,
};
pub use decide::{Decision, Step};
pub use definition::{Definition, ElementInfo, Flow, FlowIndex, Starter, StarterTrigger};
pub use effects::outstanding;
pub use event::{ChildOutcome, Event, Resume};
pub use history::{HistoryItem, history, history_across};
pub use repair::{Change, migrate, rehearse, rehearse_migration};
pub use replay::replay;
pub use state::{IncidentState, Instance, TokenState, TokenView, WaitKind, WaitView};
pub use timer::{Period, Repeat};
