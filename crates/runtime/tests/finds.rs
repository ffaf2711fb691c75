//! What the simulation found, each as a test of its own.

mod support;

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use support::*;
use tidegate::activity::{Activity, ActivityContext, ActivityError, ActivityFuture};
use tidegate::ingress::{IngressSource, Transition};
use tidegate::model::SubStatus;
use tidegate::status::{DrainResult, DrainTrigger, SourceState};
use tidegate::stepped::{self, Step, Steps};
use tidegate::store::Write;
use tidegate::store::faulty::FaultyStore;
use tidegate::store::memory::MemoryStore;
use tidegate::{CommitPolicy, Options, Runtime};
use tokio::sync::Semaphore;

/// A source that panics whatever it is asked.
struct Throws;

impl IngressSource for Throws {
    fn name(&self) -> &str {
        "throws"
    }

    fn pause(&self) -> Transition {
        panic!("the broker's client is broken")
    }

    fn resume(&self) -> Transition {
        Box::pin(async { panic!("the broker's client is broken") })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_panics_has_failed_and_neither_pause_nor_drain_end_by_it() {
    let stand = stand_with(|builder| builder.source(Arc::new(Throws))).await;
    stand.runtime.pause(None, None, "op").await.unwrap();
    let source = stand.source("throws").await;
    assert_eq!(source.state, SourceState::PauseFailed);
    let error = source.last_error.unwrap();
    assert!(error.contains("the broker's client is broken"), "{error}");
    stand.runtime.resume("op").await.unwrap();
    assert_eq!(stand.source("throws").await.state, SourceState::ResumeFailed);
    let outcome = stand.runtime.drain(DrainTrigger::HostStopSignal).await;
    assert_eq!(outcome.overall_result, DrainResult::CompletedWithinDeadline);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_activity_whose_commit_failed_runs_again_though_another_stimulus_came_first() {
    let store = faulty();
    let stand = stand_on(store.clone(), clock(), |builder| builder).await;
    let fork = format!(
        r#"<bpmn:startEvent id="s"/><bpmn:parallelGateway id="split"/><bpmn:parallelGateway id="join"/><bpmn:endEvent id="e"/>{}{}{}{}{}{}{}{}"#,
        task("in", "demo.sleep", &[("duration", "PT0.2S")]),
        task("out", "external", &[]),
        flow("s", "split"),
        flow("split", "in"),
        flow("split", "out"),
        flow("in", "join"),
        flow("out", "join"),
        flow("join", "e"),
    );
    stand.deploy(process("fork", &fork)).await;
    let instance = stand.start("fork", "{}").await.instance;
    let job = stand.job("external").await;
    // The result of the handler is lost; the worker comes before the owner tries again.
    store.fail_commits(|commit| {
        let is_update = |write: &Write| matches!(write, Write::UpdateInstance(_));
        commit.writes.iter().any(is_update).then(unreachable)
    });
    eventually("the result is lost", async || store.failed() > 0).await;
    store.mend();
    let variables = tidegate::model::Variables::new();
    stand
        .runtime
        .complete_job(job.job, &job.lease_token, variables)
        .await
        .unwrap();
    stand.finished(instance).await;
}

/// Panics in its first run. Each run needs a permit.
struct PanicsFirst {
    runs: AtomicI64,
    go: Arc<Semaphore>,
}

impl Activity for PanicsFirst {
    fn run(&self, _: ActivityContext) -> ActivityFuture {
        let run = self.runs.fetch_add(1, Ordering::SeqCst);
        let go = self.go.clone();
        Box::pin(async move {
            go.acquire().await.map_err(|_| ActivityError::Stopped)?.forget();
            assert!(run > 0, "the first run panics");
            Ok(tidegate::model::Variables::new())
        })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_outlives_the_late_answer_to_the_commit_of_its_incident() {
    let store = faulty();
    let activity = Arc::new(PanicsFirst {
        runs: AtomicI64::new(0),
        go: Arc::new(Semaphore::new(0)),
    });
    let options = Options {
        commit_policy: CommitPolicy::Cycle,
        ..Options::default()
    };
    let stand = stand_on(store.clone(), clock(), |builder| {
        builder.options(options).activity("moody", activity.clone())
    })
    .await;
    stand
        .deploy(line("moody", &[("work", task("work", "moody", &[]))]))
        .await;
    let instance = stand.start("moody", "{}").await.instance;
    eventually("the first run begins", async || {
        activity.runs.load(Ordering::SeqCst) == 1
    })
    .await;
    store.hold_answers();
    activity.go.add_permits(1);
    let incident = stand.incident().await.key;
    let runtime = stand.runtime.clone();
    let retry = tokio::spawn(async move { runtime.retry_incident(incident, None, "op").await });
    eventually("the retry begins", async || {
        activity.runs.load(Ordering::SeqCst) == 2
    })
    .await;
    store.mend();
    retry.await.unwrap().unwrap();
    activity.go.add_permits(1);
    stand.finished(instance).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_instance_whose_recovery_failed_is_recovered_later() {
    let inner = Arc::new(MemoryStore::new());
    let options = Options {
        owners: 2,
        drain_deadline: Duration::from_millis(1),
        ..Options::default()
    };
    let stand = stand_on(inner.clone(), clock(), |b| b.options(options.clone())).await;
    stand.deploy(slow("slow", "demo.sleep", "PT0.5S")).await;
    let instance = stand.start("slow", "{}").await.instance;
    stand.runtime.drain(DrainTrigger::HostStopSignal).await;
    stand
        .until(instance, |d| d.row.sub_status == SubStatus::Interrupted)
        .await;
    assert!(stand.runtime.release().await);
    let store = Arc::new(FaultyStore::new(Arc::new(inner.reopen())));
    store.fail_commits(|commit| {
        let is_update = |write: &Write| matches!(write, Write::UpdateInstance(_));
        commit.writes.iter().any(is_update).then(unreachable)
    });
    let stand = stand_on(store.clone(), clock(), |b| b.options(options)).await;
    eventually("a commit failed", async || store.failed() > 0).await;
    store.mend();
    stand.finished(instance).await;
}

/// Lets the read fail before which so many others were done.
struct FailsAt {
    store: Arc<FaultyStore>,
    left: AtomicI64,
}

impl Steps for FailsAt {
    fn before(&self, step: Step) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        if step == Step::Read {
            match self.left.fetch_sub(1, Ordering::Relaxed) {
                0 => self.store.fail_reads(unreachable()),
                _ => self.store.mend(),
            }
        }
        Box::pin(std::future::ready(()))
    }
}

#[tokio::test(start_paused = true)]
async fn a_start_that_fails_leaves_no_owner_behind() {
    let mut failed = 0;
    for reads in 0..6 {
        let store = faulty();
        let fails = FailsAt {
            store: store.clone(),
            left: AtomicI64::new(reads),
        };
        let _stepping = stepped::on_this_thread(Arc::new(fails));
        match Runtime::builder().store(store).start().await {
            Ok(runtime) => assert!(runtime.release().await),
            Err(_) => failed += 1,
        }
        // Those that were told to end get their turn.
        tokio::time::sleep(Duration::from_secs(1)).await;
        let alive = tokio::runtime::Handle::current().metrics().num_alive_tasks();
        assert_eq!(alive, 0, "after {reads} reads");
    }
    assert!(failed >= 2, "only {failed} reads of a start can fail it");
}

#[tokio::test(start_paused = true)]
async fn timers_that_could_not_be_read_are_read_again() {
    let memory = Arc::new(MemoryStore::new());
    let store = Arc::new(FaultyStore::new(memory));
    let fails = Arc::new(FailsAt {
        store: store.clone(),
        left: AtomicI64::new(i64::MAX),
    });
    let _stepping = stepped::on_this_thread(fails.clone());
    let clock = clock();
    let stand = stand_on(store, clock.clone(), |builder| builder).await;
    stand.deploy(waits_for_timer("waits", "PT90S")).await;
    let instance = stand.start("waits", "{}").await.instance;
    // The next read is that of the timers of the next minute.
    fails.left.store(0, Ordering::Relaxed);
    for _ in 0..10 {
        clock.advance(10_000);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    stand.finished(instance).await;
}

fn clock() -> tidegate::clock::ManualClock {
    tidegate::clock::ManualClock::new(BEGINNING)
}
