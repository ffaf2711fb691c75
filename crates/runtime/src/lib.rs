//! Tidegate as a library: a durable BPMN 2.0 workflow runtime that stops cleanly.
//!
//! A program builds a [`Runtime`], registers processes, starts instances and holds them by their [`InstanceHandle`]; what
//! waits needs no memory, and what was told is on disk. At its end it shuts the runtime down: what runs comes to rest, or
//! is interrupted and goes on at the next start.
//!
//! ```
//! # use std::time::Duration;
//! # use tidegate::{Runtime, ShutdownMode, Start, api::Resource};
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), tidegate::Error> {
//! let runtime = Runtime::builder().demo_activities().start().await?;
//! let bytes = br#"<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" targetNamespace="example">
//!   <process id="hello" isExecutable="true">
//!     <startEvent id="start"/><sequenceFlow id="f" sourceRef="start" targetRef="end"/><endEvent id="end"/>
//!   </process></definitions>"#;
//! let hello = runtime.register(Resource { name: "hello.bpmn".into(), bytes: bytes.to_vec() }).await?;
//! let instance = hello.start(Start::new().business_key("greeting-1")).await?;
//! let ended = instance.wait(Duration::from_secs(5)).await?;
//! assert!(ended.sub_status.is_finished());
//! runtime.shutdown(ShutdownMode::Drain, Duration::from_secs(10)).await?;
//! # Ok(()) }
//! ```
//!
//! Every error is an [`Error`] that can be matched, with a stable [`Error::code`]:
//!
//! ```
//! # use tidegate::{Error, Runtime, Start};
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Error> {
//! # let runtime = Runtime::builder().start().await?;
//! match runtime.start_version("order", 3, Start::new()).await {
//!     Err(Error::NoSuchProcess { process_id, version }) => {
//!         assert_eq!((process_id.as_str(), version), ("order", Some(3)));
//!     }
//!     Err(Error::Stopped) => println!("ask the next one"),
//!     other => panic!("{other:?}"),
//! }
//! # runtime.shutdown(Default::default(), std::time::Duration::from_secs(10)).await?;
//! # Ok(()) }
//! ```
//!
//! Where to go on: [`Builder`] for stores, handlers ([`activity::Activity`]), sources ([`ingress::IngressSource`]), the
//! clock, limits and the commit policy ([`Options`]); [`Engine`] for a runtime that is run later; [`observe`] for what
//! happens as it happens; [`unregister`] for versions that come and go; [`Shell`] for several runtimes in one program that
//! are reloaded. Whole programs are in `examples/embedded`.

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
pub mod handle;
pub mod ingress;
pub mod instance_control;
mod janitor;
mod jobs;
mod life;
pub mod observe;
pub mod options;
mod owner;
mod pace;
pub mod parts;
mod pause;
pub mod plan;
mod query;
mod recovery;
pub mod request;
pub mod restart;
mod retention;
mod runtime;
pub mod settings;
mod shared;
pub mod shell;
mod shutdown;
mod slots;
mod spill;
mod start;
pub mod status;
pub mod stepped;
mod tasks;
pub mod unregister;
mod versions;
pub mod why;

pub use tidegate_engine as engine;
pub use tidegate_model as model;
pub use tidegate_store as store;

pub use api::{Check, Grade};
pub use builder::Builder;
pub use error::Error;
pub use handle::InstanceHandle;
pub use instance_control::{CancelRequest, SuspendRequest, Suspension};
pub use life::{Engine, EngineState};
pub use options::{CommitPolicy, ForceDuringDrain, Options, PausePersistence};
pub use query::Subject;
pub use runtime::Runtime;
pub use settings::Retention;
pub use shell::{Blueprint, Shell, ShellError};
pub use shutdown::{ShutdownMode, ShutdownReport};
pub use start::{DefinitionHandle, Start};
pub use status::OverflowPolicy;
