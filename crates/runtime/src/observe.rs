//! Observation: following what happens to one instance, or in the whole runtime, as it happens.
//!
//! What is observed has been committed: it is told in the order of the journal of each instance, after it is durable.
//! An observer never holds up an instance. Each has a bounded queue; what does not fit is dropped and counted.
//! Details are ids, names and codes. Values (variables, correlation keys, texts that may quote them) are told to those
//! alone who ask for them.
//!
//! ```
//! # use tidegate::{Runtime, ShutdownMode, Start, api::Resource, observe::ObserveOptions};
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), tidegate::Error> {
//! # let bytes = br#"<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" targetNamespace="example">
//! #   <process id="hello" isExecutable="true">
//! #     <startEvent id="start"/><sequenceFlow id="f" sourceRef="start" targetRef="end"/><endEvent id="end"/>
//! #   </process></definitions>"#.to_vec();
//! let runtime = Runtime::builder().start().await?;
//! let hello = runtime.register(Resource { name: "hello.bpmn".into(), bytes }).await?;
//! let mut observation = runtime.observe(ObserveOptions::new())?;
//! hello.start(Start::new()).await?;
//! let first = observation.next().await.expect("the runtime lives");
//! assert_eq!(first.event.name, "InstanceStarted");
//! # runtime.shutdown(ShutdownMode::Drain, std::time::Duration::from_secs(10)).await?;
//! # Ok(()) }
//! ```

mod queue;
mod read;

use std::borrow::Cow;
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value};
use tidegate_model::{Cause, DefinitionKey, ElementInstanceKey, InstanceKey, Timestamp};

use crate::error::Error;
use crate::runtime::Runtime;

pub(crate) use queue::Observers;
use queue::Queue;
pub(crate) use read::Told;

/// What an event is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ObservedKind {
    /// The instance as a whole: started, ended, interrupted, held, calling and called.
    Lifecycle,
    /// An element, a flow, a gateway, a loop.
    Element,
    /// A job of a handler or a worker.
    Job,
    /// A user task.
    UserTask,
    /// An incident.
    Incident,
    /// A timer, message, signal, error, escalation or condition.
    Event,
    /// That variables changed.
    Variables,
    /// The runtime itself: what its audit trail tells, and its end.
    Runtime,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObservedEvent {
    /// When it was decided.
    pub time: Timestamp,
    /// What it is about.
    pub kind: ObservedKind,
    /// What happened, as the journal or the audit trail names it, for example `ElementActivated`.
    pub name: Cow<'static, str>,
    /// The instance; none for the runtime's own events, as with all that follows.
    pub instance_key: Option<InstanceKey>,
    /// Its definition.
    pub definition_key: Option<DefinitionKey>,
    /// Its process id.
    pub process_id: Option<Arc<str>>,
    /// Its version.
    pub version: Option<u32>,
    /// Its tenant.
    pub tenant_id: Option<Arc<str>>,
    /// The place in its journal, from 1; the journal has everything that an observer has missed.
    pub sequence: Option<u64>,
    /// The element's BPMN id.
    pub element_id: Option<Arc<str>>,
    /// The element instance.
    pub element_instance_key: Option<ElementInstanceKey>,
    /// Who or what caused it.
    pub cause: Option<Cause>,
    /// Ids, names, codes, counts and times, by name.
    pub details: Map<String, Value>,
    /// Everything, values included, where it was asked for.
    pub values: Option<Value>,
}

/// An event as it comes to an observer.
#[derive(Debug, Clone, PartialEq)]
pub struct Notice {
    /// What happened.
    pub event: Arc<ObservedEvent>,
    /// How many events were dropped right before it because the observer's queue was full.
    pub dropped_before: u64,
}

/// What an observer wants to know.
#[derive(Debug, Clone, Default)]
pub struct ObserveOptions {
    instance: Option<InstanceKey>,
    tenant: Option<Arc<str>>,
    kinds: Vec<ObservedKind>,
    queue: Option<usize>,
    with_values: bool,
}

/// How many events wait for an observer unless it says otherwise.
pub const DEFAULT_QUEUE: usize = 1_024;
/// The most that may wait for one.
pub const LONGEST_QUEUE: usize = 65_536;
/// How many observers a runtime has at most.
pub const MOST_OBSERVERS: usize = 1_024;

impl ObserveOptions {
    /// Everything that happens in the runtime, without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Of this instance alone.
    #[must_use]
    pub fn instance(mut self, key: InstanceKey) -> Self {
        self.instance = Some(key);
        self
    }

    /// Of this tenant's instances alone.
    #[must_use]
    pub fn tenant(mut self, tenant: impl Into<Arc<str>>) -> Self {
        self.tenant = Some(tenant.into());
        self
    }

    /// Of this kind, and of the others that are named so.
    #[must_use]
    pub fn kind(mut self, kind: ObservedKind) -> Self {
        self.kinds.push(kind);
        self
    }

    /// How many events may wait; held to 1 and [`LONGEST_QUEUE`].
    #[must_use]
    pub fn queue(mut self, events: usize) -> Self {
        self.queue = Some(events);
        self
    }

    /// With [`ObservedEvent::values`].
    #[must_use]
    pub fn with_values(mut self) -> Self {
        self.with_values = true;
        self
    }
}

/// An observation that is read by [`Observation::next`]. It ends when it is dropped.
#[derive(Debug)]
pub struct Observation {
    queue: Arc<Queue>,
    observers: Arc<Observers>,
}

impl Observation {
    /// The next event. None when the runtime has ended and everything was told. Cancel safe.
    pub async fn next(&mut self) -> Option<Notice> {
        self.queue.next().await
    }

    /// How many events were dropped so far.
    pub fn dropped(&self) -> u64 {
        self.queue.dropped()
    }
}

impl Drop for Observation {
    fn drop(&mut self) {
        self.observers.leave(&self.queue);
    }
}

/// An observation that calls a function, one event after the other, on a thread of its own. It ends when this is
/// dropped.
#[derive(Debug)]
pub struct Observing {
    queue: Arc<Queue>,
    observers: Arc<Observers>,
}

impl Observing {
    /// Ends the observation: no delivery begins after this call. The returned future ends after the last delivery has;
    /// called from inside a delivery, where that would be for ever, it ends at once. Idempotent.
    pub fn cancel(&self) -> impl Future<Output = ()> + Send + use<> {
        self.observers.leave(&self.queue);
        let queue = self.queue.clone();
        async move { queue.delivered().await }
    }

    /// How many events were dropped so far.
    pub fn dropped(&self) -> u64 {
        self.queue.dropped()
    }

    /// How often the function has panicked. A panic is contained and costs the one delivery.
    pub fn panics(&self) -> u64 {
        self.queue.panics()
    }
}

impl Drop for Observing {
    fn drop(&mut self) {
        self.observers.leave(&self.queue);
    }
}

impl Runtime {
    /// Follows what happens from now on.
    ///
    /// # Errors
    /// [`Error::Stopped`]; `too-many-observers` beyond [`MOST_OBSERVERS`].
    pub fn observe(&self, options: ObserveOptions) -> Result<Observation, Error> {
        let queue = self.new_observer(options)?;
        Ok(Observation {
            queue,
            observers: self.shared().observers.clone(),
        })
    }

    /// Calls `observer` with what happens from now on. It may block and panic: the engine and the other observers go on.
    /// A shutdown waits for it within its deadline, and names it if it does not return.
    ///
    /// # Errors
    /// As [`Runtime::observe`]; a thread could not be made.
    pub fn observe_with(
        &self,
        options: ObserveOptions,
        observer: impl Fn(&Notice) + Send + 'static,
    ) -> Result<Observing, Error> {
        let queue = self.new_observer(options)?;
        let observing = Observing {
            queue: queue.clone(),
            observers: self.shared().observers.clone(),
        };
        let name = format!("observer-{}", queue.number());
        self.inner()
            .tasks
            .thread(name, move || queue.deliver(&observer))
            .map_err(|error| Error::Invalid {
                code: "no-thread",
                message: format!("no thread could be started for the observer: {error}"),
            })?;
        Ok(observing)
    }

    fn new_observer(&self, options: ObserveOptions) -> Result<Arc<Queue>, Error> {
        self.must_live()?;
        self.shared().observers.join(options)
    }

    /// How many observers there are, how many events they have missed, and how many of their panics were contained.
    pub fn observer_counts(&self) -> ObserverCounts {
        self.shared().observers.counts()
    }
}

/// The observers of a runtime in figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObserverCounts {
    /// Observers that there are.
    pub observers: u64,
    /// Events that found a full queue, since the start.
    pub dropped: u64,
    /// Panics of observers, since the start.
    pub panics: u64,
}
