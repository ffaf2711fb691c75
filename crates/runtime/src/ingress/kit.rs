//! The conformance kit of ingress sources: what every source promises, one check a promise.
//!
//! A [`Probe`] makes the source and plays its outside world; [`run`] walks through all of it on a runtime of its own and
//! panics, with the name of the promise, at the first one that is broken.

use std::sync::Arc;
use std::time::Duration;

use tidegate_store::memory::MemoryStore;
use tidegate_store::{Page, Store};

use super::{IngressSource, Transition};
use crate::api::Resource;
use crate::options::Options;
use crate::runtime::Runtime;
use crate::status::{DrainTrigger, SourceState, SourceStatus};

/// One source with its outside world, for the kit. Each item from outside becomes one message of the name
/// [`MESSAGE`], published under a message id of its own.
pub trait Probe: Send + Sync {
    /// A fresh source, which delivers nothing yet.
    fn source(&self) -> Arc<dyn IngressSource>;

    /// `count` items arrive from outside.
    fn arrive(&self, count: usize);

    /// How many items the source has acknowledged to the outside world so far.
    fn acknowledged(&self) -> usize;
}

/// The name of the messages that a probe's source publishes.
pub const MESSAGE: &str = "ingress-kit";

/// Each message starts an instance, so that it can be counted.
const STARTED_BY_MESSAGE: &str = r#"<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" targetNamespace="urn:kit">
  <message id="m" name="ingress-kit"/>
  <process id="kit" isExecutable="true">
    <startEvent id="start"><messageEventDefinition messageRef="m"/></startEvent>
    <sequenceFlow id="f" sourceRef="start" targetRef="end"/><endEvent id="end"/>
  </process></definitions>"#;

/// How long an item may take from its arrival to its acknowledgement.
const PATIENCE: Duration = Duration::from_secs(20);
/// How often a step lets everything else run before it looks.
const ROUNDS: usize = 1_000;
/// How many items a step lets arrive.
const ITEMS: usize = 20;

/// Walks through every promise.
///
/// # Panics
/// A promise is broken; the message names it.
pub async fn run(make: impl Fn() -> Box<dyn Probe>) {
    it_delivers_and_acknowledges_what_is_durable(&*make()).await;
    paused_it_delivers_nothing_and_loses_nothing(&*make()).await;
    its_transitions_are_idempotent(&*make()).await;
    many_transitions_at_once_leave_one_state(&*make()).await;
    a_drain_ends_it(&*make()).await;
}

struct Subject {
    runtime: Runtime,
    store: Arc<dyn Store>,
    source: Arc<dyn IngressSource>,
}

async fn subject(probe: &dyn Probe) -> Subject {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let source = probe.source();
    let options = Options {
        owners: 1,
        ingress_pause_timeout: Duration::from_secs(5),
        ..Options::default()
    };
    let runtime = Runtime::builder()
        .store(store.clone())
        .source(source.clone())
        .options(options)
        .start()
        .await;
    let runtime = runtime.expect("a runtime with the source starts");
    let file = Resource {
        name: "kit.bpmn".to_owned(),
        bytes: STARTED_BY_MESSAGE.as_bytes().to_vec(),
    };
    runtime
        .deploy(vec![file], None, "kit")
        .await
        .expect("the kit's process deploys");
    assert_eq!(
        source.name(),
        source.name(),
        "the name of a source does not change"
    );
    Subject {
        runtime,
        store,
        source,
    }
}

impl Subject {
    async fn status(&self) -> SourceStatus {
        let status = self.runtime.status().await.expect("the status can be read");
        let name = self.source.name();
        status
            .sources
            .into_iter()
            .find(|source| source.name == name)
            .expect("the source is in the status")
    }

    /// Items that are durable: in the queue, or published, which starts an instance each. One that moves from here to
    /// there meanwhile is counted twice, never not at all.
    async fn durable(&self) -> u64 {
        let queued = self.store.stimuli(None, 100_000).expect("the queue can be read");
        let started: u64 = self
            .store
            .counts()
            .expect("the instances can be counted")
            .iter()
            .sum();
        started
            + queued
                .iter()
                .filter(|row| row.source == self.source.name())
                .count() as u64
    }

    async fn until(&self, what: &str, is: impl AsyncFn() -> bool) {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        while !is().await {
            assert!(
                tokio::time::Instant::now() < deadline,
                "{}: {what}",
                self.source.name()
            );
            tokio::task::yield_now().await;
        }
    }

    async fn end(self) {
        self.runtime.drain(DrainTrigger::ShellDeactivation).await;
        self.runtime.close().await;
    }
}

async fn it_delivers_and_acknowledges_what_is_durable(probe: &dyn Probe) {
    let subject = subject(probe).await;
    assert_eq!(subject.status().await.state, SourceState::Running);
    probe.arrive(ITEMS);
    subject
        .until("what arrives is delivered and acknowledged", async || {
            let acknowledged = probe.acknowledged() as u64;
            let durable = subject.durable().await;
            assert!(
                acknowledged <= durable,
                "{acknowledged} are acknowledged and only {durable} are durable"
            );
            acknowledged == ITEMS as u64
        })
        .await;
    subject.end().await;
}

async fn paused_it_delivers_nothing_and_loses_nothing(probe: &dyn Probe) {
    let subject = subject(probe).await;
    subject
        .runtime
        .pause(None, None, "kit")
        .await
        .expect("the runtime can be paused");
    let status = subject.status().await;
    assert_eq!(status.state, SourceState::Paused, "{:?}", status.last_error);
    let before = subject.durable().await;
    probe.arrive(ITEMS);
    // A liar gets its chance, and another whole round of pausing passes behind what arrived.
    for _ in 0..ROUNDS {
        tokio::task::yield_now().await;
    }
    subject
        .source
        .pause()
        .await
        .expect("pausing again changes nothing");
    let status = subject.status().await;
    assert_eq!(
        status.state,
        SourceState::Paused,
        "it delivered while it was paused: {:?}",
        status.last_error
    );
    assert!(subject.durable().await >= before, "what was durable is lost");
    subject
        .runtime
        .resume("kit")
        .await
        .expect("the runtime can be resumed");
    assert_eq!(subject.status().await.state, SourceState::Running);
    subject
        .until("after the pause what arrived is delivered", async || {
            probe.acknowledged() == ITEMS
        })
        .await;
    subject
        .until("each item is taken once", async || {
            subject.durable().await == ITEMS as u64
        })
        .await;
    subject.end().await;
}

async fn its_transitions_are_idempotent(probe: &dyn Probe) {
    let subject = subject(probe).await;
    let twice = |step: &dyn Fn() -> Transition| [step(), step()];
    for pausing in twice(&|| subject.source.pause()) {
        pausing.await.expect("pausing succeeds, also again");
    }
    for resuming in twice(&|| subject.source.resume()) {
        resuming.await.expect("resuming succeeds, also again");
    }
    probe.arrive(1);
    subject
        .until("it delivers after all of it", async || probe.acknowledged() == 1)
        .await;
    subject.end().await;
}

async fn many_transitions_at_once_leave_one_state(probe: &dyn Probe) {
    let subject = subject(probe).await;
    let mut steps = Vec::new();
    for turn in 0..100 {
        let runtime = subject.runtime.clone();
        steps.push(tokio::spawn(async move {
            match turn % 2 {
                0 => runtime.pause(None, None, "kit").await.map(drop),
                _ => runtime.resume("kit").await.map(drop),
            }
        }));
    }
    for step in steps {
        step.await
            .expect("no transition panics")
            .expect("every transition is answered");
    }
    subject
        .runtime
        .resume("kit")
        .await
        .expect("the runtime can be resumed");
    assert_eq!(subject.status().await.state, SourceState::Running);
    probe.arrive(1);
    subject
        .until("it delivers after all of it", async || probe.acknowledged() == 1)
        .await;
    subject.end().await;
}

async fn a_drain_ends_it(probe: &dyn Probe) {
    let subject = subject(probe).await;
    probe.arrive(ITEMS);
    subject.runtime.drain(DrainTrigger::ShellDeactivation).await;
    let state = subject.status().await;
    assert_eq!(state.state, SourceState::Paused, "{:?}", state.last_error);
    assert!(
        probe.acknowledged() as u64 <= subject.durable().await,
        "what is acknowledged is durable"
    );
    let after = subject.durable().await;
    probe.arrive(ITEMS);
    subject
        .source
        .pause()
        .await
        .expect("pausing again changes nothing");
    assert_eq!(
        subject.durable().await,
        after,
        "after its drain it brings nothing more"
    );
    let letters = subject
        .runtime
        .dead_letters(Page::first(1))
        .await
        .expect("dead letters can be read");
    assert!(letters.is_empty(), "{letters:?}");
    subject.runtime.close().await;
}
