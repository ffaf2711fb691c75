//! Tidegate as a library: a durable BPMN 2.0 workflow runtime that stops cleanly.
//!
//! ```
//! # use tidegate::{Runtime, api::{Resource, StartRequest}, status::DrainTrigger};
//! # #[tokio::main] async fn main() -> Result<(), tidegate::Error> {
//! let runtime = Runtime::builder().demo_activities().start().await?;
//! let bytes = br#"<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" targetNamespace="example">
//!   <process id="hello" isExecutable="true">
//!     <startEvent id="start"/><sequenceFlow id="f" sourceRef="start" targetRef="end"/><endEvent id="end"/>
//!   </process></definitions>"#;
//! let file = Resource { name: "hello.bpmn".into(), bytes: bytes.to_vec() };
//! runtime.deploy(vec![file], None, "example").await?;
//! let started = runtime.start(StartRequest::latest("hello").wait(std::time::Duration::from_secs(5))).await?;
//! assert!(started.sub_status.is_finished());
//! runtime.drain(DrainTrigger::HostStopSignal).await;
//! runtime.close().await;
//! # Ok(()) }
//! ```

pub mod activity;
pub mod api;
mod audit;
pub mod batch;
mod builder;
pub mod clock;
mod dead_letter;
mod definitions;
mod deploy;
mod drain;
pub mod error;
pub mod export;
pub mod figures;
pub mod forget;
/// The gate, from its own crate: no async runtime, model-checked.
pub mod gate {
    pub use tidegate_gate::{Closing, Entering, Gate, Live, Permit, Quiescence, Refused, Registry};
}
pub mod ingress;
pub mod instance_control;
mod janitor;
mod jobs;
pub mod options;
mod owner;
mod pace;
pub mod parts;
mod pause;
pub mod plan;
mod query;
mod recovery;
pub mod request;
mod retention;
mod runtime;
pub mod settings;
mod shared;
pub mod shell;
mod slots;
mod spill;
pub mod status;
pub mod stepped;
mod tasks;
pub mod why;

pub use tidegate_engine as engine;
pub use tidegate_model as model;
pub use tidegate_store as store;

pub use api::{Check, Grade};
pub use builder::Builder;
pub use error::Error;
pub use instance_control::{CancelRequest, SuspendRequest, Suspension};
pub use options::{CommitPolicy, ForceDuringDrain, Options, PausePersistence};
pub use query::Subject;
pub use runtime::Runtime;
pub use settings::Retention;
pub use shell::{Blueprint, Shell, ShellError};
pub use status::OverflowPolicy;
