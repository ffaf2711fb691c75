//! The drain: it ends in time whatever the store and the activities do, and every cycle is accounted for.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use support::sources::{Does, TestSource};
use support::{
    BEGINNING, Stand, eventually, faulty, flow, line, process, slow, stand, stand_on, stand_with, stores,
    task,
};
use support::{unreachable, waits_for_message};
use tidegate::activity::{Activity, ActivityContext, ActivityError, ActivityFuture};
use tidegate::clock::ManualClock;
use tidegate::model::{InstanceKey, SubStatus, Variables};
use tidegate::status::{DrainOutcome, DrainResult, DrainTrigger, Fate, SourceState};
use tidegate::store::faulty::FaultyStore;
use tidegate::store::{Commit, Store, Write};
use tidegate::{ForceDuringDrain, Options, Runtime};

const STOP: DrainTrigger = DrainTrigger::HostStopSignal;

fn within(deadline: Duration) -> Options {
    Options {
        drain_deadline: deadline,
        owners: 2,
        reported_ids: 5_000,
        ..Options::default()
    }
}

/// As `within`, for a host that waits no longer than the deadline and the reserve.
fn strictly(deadline: Duration) -> Options {
    Options {
        host_grace: Some(deadline + Duration::from_millis(500)),
        ..within(deadline)
    }
}

async fn on(store: Arc<FaultyStore>, options: Options) -> Stand {
    stand_on(store, ManualClock::new(BEGINNING), |b| b.options(options)).await
}

fn draining(stand: &Stand) -> tokio::task::JoinHandle<DrainOutcome> {
    let runtime = stand.runtime.clone();
    tokio::spawn(async move { runtime.drain(STOP).await })
}

async fn has_begun(stand: &Stand) {
    eventually("the drain begins", async || {
        stand.runtime.quiescence().is_draining()
    })
    .await;
}

async fn interruptions(stand: &Stand, instance: InstanceKey) -> Vec<serde_json::Value> {
    let items = stand.runtime.history(instance, 0, 10_000_000).await.unwrap();
    items
        .into_iter()
        .filter(|item| item.event == "WorkflowInterrupted")
        .map(|item| item.payload)
        .collect()
}

/// An activity that ends when it is let go, however often it is told to stop.
struct Held {
    go: Arc<tokio::sync::Semaphore>,
    runs: Arc<AtomicUsize>,
}

impl Held {
    fn new() -> (Arc<Self>, Arc<tokio::sync::Semaphore>, Arc<AtomicUsize>) {
        let (go, runs) = (
            Arc::new(tokio::sync::Semaphore::new(0)),
            Arc::new(AtomicUsize::new(0)),
        );
        (
            Arc::new(Self {
                go: go.clone(),
                runs: runs.clone(),
            }),
            go,
            runs,
        )
    }
}

impl Activity for Held {
    fn run(&self, _: ActivityContext) -> ActivityFuture {
        self.runs.fetch_add(1, Ordering::SeqCst);
        let go = self.go.clone();
        Box::pin(async move {
            let permit = go.acquire().await.map_err(|_| ActivityError::Stopped)?;
            permit.forget();
            Ok(Variables::new())
        })
    }
}

/// What must not wait for a deadline that is far away, or for what never comes.
async fn soon<T>(it: impl Future<Output = T>) -> T {
    const PATIENCE: Duration = Duration::from_secs(60);
    tokio::time::timeout(PATIENCE, it)
        .await
        .expect("it comes to its end")
}

#[tokio::test(flavor = "multi_thread")]
async fn d01_with_nothing_to_do_a_drain_is_quick() {
    let stand = stand_with(|b| b.options(within(Duration::from_secs(3_600)))).await;
    let outcome = soon(stand.runtime.drain(STOP)).await;
    assert_eq!(outcome.overall_result, DrainResult::CompletedWithinDeadline);
    assert!(outcome.cycles.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn d02_d03_d04_sources_are_asked_once_and_bad_ones_spoil_nothing() {
    let sources = [("a", Does::Well), ("b", Does::Fail), ("c", Does::Hang)]
        .map(|(name, does)| TestSource::new(name, does).shared());
    let [a, b, c] = sources.clone();
    let stand = stand_with(|builder| builder.source(a).source(b).source(c)).await;
    let outcome = stand.runtime.drain(STOP).await;
    assert_eq!(outcome.overall_result, DrainResult::CompletedWithinDeadline);
    let states: Vec<_> = outcome
        .sources
        .iter()
        .filter(|s| s.name.len() == 1)
        .map(|source| source.state)
        .collect();
    assert_eq!(
        states,
        [
            SourceState::Paused,
            SourceState::PauseFailed,
            SourceState::PauseFailed
        ]
    );
    assert!(sources.iter().all(|source| source.pauses() == 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn d05_d22_what_rests_in_time_is_not_cut_and_stands_in_the_report() {
    for (store, _folder) in stores() {
        let (held, go, _) = Held::new();
        let stand = stand_on(store, ManualClock::new(BEGINNING), |b| b.activity("held", held)).await;
        stand.deploy(slow("h", "held", "")).await;
        stand
            .deploy(line(
                "two",
                &[
                    ("work", task("work", "held", &[])),
                    ("more", task("more", "pay", &[])),
                ],
            ))
            .await;
        let (ends, rests) = (
            stand.start("h", "{}").await.instance,
            stand.start("two", "{}").await.instance,
        );
        let drain = draining(&stand);
        has_begun(&stand).await;
        go.add_permits(2);
        let outcome = drain.await.unwrap();
        assert_eq!(outcome.overall_result, DrainResult::CompletedWithinDeadline);
        assert_eq!(
            (
                outcome.execution_cycles_completed_count,
                outcome.execution_cycles_force_cancelled_count
            ),
            (2, 0)
        );
        let mut told: Vec<_> = outcome
            .cycles
            .iter()
            .map(|cycle| (cycle.instance_id, cycle.fate))
            .collect();
        told.sort_by_key(|(instance, _)| *instance);
        let mut expected = vec![(ends, Fate::Rested), (rests, Fate::Rested)];
        expected.sort_by_key(|(instance, _)| *instance);
        assert_eq!(told, expected, "every cycle has its line");
        assert_eq!(
            stand.runtime.instance(ends).await.unwrap().row.sub_status,
            SubStatus::Finished
        );
        assert_eq!(
            stand.runtime.instance(rests).await.unwrap().row.sub_status,
            SubStatus::Suspended
        );
        stand.runtime.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn case_002_what_a_running_cycle_needs_next_is_still_there_in_a_drain() {
    let (held, go, _) = Held::new();
    let stand = stand_with(|b| b.activity("held", held)).await;
    let steps = [
        ("work", task("work", "held", &[])),
        ("next", task("next", "demo.sleep", &[("duration", "PT0.01S")])),
        ("last", task("last", "demo.noop", &[])),
    ];
    stand.deploy(line("h", &steps)).await;
    let key = stand.start("h", "{}").await.instance;
    let drain = draining(&stand);
    has_begun(&stand).await;
    go.add_permits(1);
    assert_eq!(
        drain.await.unwrap().overall_result,
        DrainResult::CompletedWithinDeadline
    );
    assert_eq!(
        stand.runtime.instance(key).await.unwrap().row.sub_status,
        SubStatus::Finished
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn c05_the_permit_is_held_until_the_last_write_is_durable() {
    let store = faulty();
    let (held, go, _) = Held::new();
    let stand = stand_on(store.clone(), ManualClock::new(BEGINNING), |b| {
        b.activity("held", held)
    })
    .await;
    stand.deploy(slow("h", "held", "")).await;
    let instance = stand.start("h", "{}").await.instance;
    store.hang();
    go.add_permits(1);
    eventually("the last commit waits for the store", async || store.held() > 0).await;
    let drain = draining(&stand);
    has_begun(&stand).await;
    assert_eq!(
        stand.runtime.quiescence().live(),
        1,
        "it is not at rest before it is durable"
    );
    assert!(!drain.is_finished());
    store.mend();
    let outcome = drain.await.unwrap();
    assert_eq!(
        outcome.cycles.iter().map(|c| c.fate).collect::<Vec<_>>(),
        [Fate::Rested]
    );
    assert_eq!(
        stand.runtime.instance(instance).await.unwrap().row.sub_status,
        SubStatus::Finished
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn c01_c02_c03_a_cycle_names_its_source_and_is_cancelled_once() {
    let stand = stand_with(|b| b.options(within(Duration::from_millis(10)))).await;
    stand.deploy(slow("slow", "demo.sleep", "PT1H")).await;
    let ended = stand.start("slow", "{}").await.instance;
    for _ in 0..2 {
        let row = stand.runtime.cancel(ended, None, "op").await.unwrap();
        assert_eq!(row.sub_status, SubStatus::Cancelled);
    }
    stand.idle().await;
    let library = stand.start("slow", "{}").await.instance;
    let mut request = tidegate::api::StartRequest::latest("slow");
    request.source = Some("http.trigger");
    let http = stand.runtime.start(request).await.unwrap().instance;
    let outcome = stand.runtime.drain(STOP).await;
    assert_eq!(outcome.cycles.len(), 2);
    let source = |key| {
        outcome
            .cycles
            .iter()
            .find(|c| c.instance_id == key)
            .unwrap()
            .source
            .clone()
    };
    assert_eq!(
        (source(library), source(http).as_deref()),
        (None, Some("http.trigger"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn c06_what_fails_while_it_commits_gives_its_permit_back_and_keeps_the_first_error() {
    let store = faulty();
    let stand = on(
        store.clone(),
        Options {
            owners: 1,
            ..Options::default()
        },
    )
    .await;
    stand.deploy(slow("n", "demo.noop", "")).await;
    store.fail_all(tidegate::store::Error::new(
        tidegate::store::ErrorKind::Full,
        "the first error",
    ));
    let error = stand
        .runtime
        .start(tidegate::api::StartRequest::latest("n"))
        .await
        .unwrap_err();
    assert_eq!(
        (error.code(), error.to_string().as_str()),
        ("store-full", "the first error")
    );
    stand.idle().await;
    store.mend();
    stand.run("n", "{}").await;
}

/// Tells whether it was stopped, and how much time it was given.
struct Watches(Arc<parking_lot::Mutex<Option<Duration>>>);

impl Activity for Watches {
    fn run(&self, context: ActivityContext) -> ActivityFuture {
        let seen = self.0.clone();
        Box::pin(async move {
            context.stop.stopped().await;
            *seen.lock() = context.stop.time_left();
            Err(ActivityError::Stopped)
        })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn c07_the_cut_reaches_the_activity_with_the_time_left() {
    let seen = Arc::new(parking_lot::Mutex::new(None));
    let watches = Arc::new(Watches(seen.clone()));
    let stand = stand_with(|b| {
        b.options(within(Duration::from_millis(10)))
            .activity("watches", watches)
    })
    .await;
    stand.deploy(slow("w", "watches", "")).await;
    stand.start("w", "{}").await;
    let outcome = stand.runtime.drain(STOP).await;
    assert_eq!(outcome.cycles[0].fate, Fate::Interrupted);
    let left = seen.lock().expect("its stop token fired");
    assert!(
        left > Duration::ZERO && left <= Duration::from_millis(250),
        "{left:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn d11_force_during_a_drain_is_refused_where_the_runtime_is_set_to() {
    let options = Options {
        force_during_drain: ForceDuringDrain::Reject,
        ..within(Duration::from_secs(30))
    };
    let idle = stand_with(|b| b.options(options.clone())).await;
    let forced = idle.runtime.force_drain(None, "op").await.unwrap();
    assert_eq!(
        forced.overall_result,
        DrainResult::Forced,
        "where none is under way"
    );
    let stand = stand_with(|b| b.options(options)).await;
    stand.deploy(slow("slow", "demo.sleep", "PT1H")).await;
    let key = stand.start("slow", "{}").await.instance;
    let drain = draining(&stand);
    has_begun(&stand).await;
    let refused = stand.runtime.force_drain(None, "op").await.unwrap_err();
    assert_eq!(refused.code(), "drain-in-progress");
    stand.runtime.cancel(key, None, "op").await.unwrap();
    assert_eq!(
        drain.await.unwrap().overall_result,
        DrainResult::CompletedWithinDeadline
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn d12_a_caller_of_force_who_hangs_up_changes_nothing() {
    let stand = stand().await;
    stand.deploy(slow("slow", "demo.sleep", "PT1H")).await;
    let key = stand.start("slow", "{}").await.instance;
    {
        let mut force = Box::pin(stand.runtime.force_drain(Some("now".into()), "op"));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(force.as_mut().poll(&mut context).is_pending());
        // Hung up.
    }
    eventually("the audit of force is there", async || {
        stand
            .audited()
            .await
            .contains(&"RuntimeForceDrainRequested".to_owned())
    })
    .await;
    assert_eq!(stand.listed(SubStatus::Interrupted).await, [key]);
    assert!(stand.audited().await.contains(&"RuntimeDrained".to_owned()));
    stand.runtime.force_drain(None, "again").await.unwrap();
    let forces = stand
        .audited()
        .await
        .into_iter()
        .filter(|a| a == "RuntimeForceDrainRequested");
    assert_eq!(forces.count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn d13_a_cycle_that_never_rests_is_cut_at_the_deadline() {
    for (store, _folder) in stores() {
        let options = within(Duration::from_millis(100));
        let stand = stand_on(store, ManualClock::new(BEGINNING), |b| b.options(options)).await;
        let body = format!(
            r#"<bpmn:startEvent id="s"/><bpmn:exclusiveGateway id="again"/>{}{}{}{}"#,
            task("work", "demo.noop", &[]),
            flow("s", "again"),
            flow("again", "work"),
            flow("work", "again"),
        );
        stand.deploy(process("loops", &body)).await;
        let key = stand.start("loops", "{}").await.instance;
        let outcome = soon(stand.runtime.drain(STOP)).await;
        assert_eq!(outcome.overall_result, DrainResult::DeadlineExceeded);
        assert_eq!(outcome.force_cancelled_instance_ids, [key]);
        assert_eq!(interruptions(&stand, key).await.len(), 1);
        stand.runtime.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn d14_case_016_two_thousand_at_the_deadline_are_all_marked() {
    for (store, _folder) in stores() {
        let options = within(Duration::from_millis(1));
        let stand = stand_on(store, ManualClock::new(BEGINNING), |b| b.options(options)).await;
        stand.deploy(slow("slow", "demo.sleep", "PT1H")).await;
        let start = |runtime: Runtime| async move {
            runtime.start(tidegate::api::StartRequest::latest("slow")).await
        };
        let starts: Vec<_> = (0..2_000)
            .map(|_| tokio::spawn(start(stand.runtime.clone())))
            .collect();
        for started in starts {
            started.await.unwrap().unwrap();
        }
        let outcome = soon(stand.runtime.drain(STOP)).await;
        assert_eq!(outcome.persistence_failure_count, 0);
        let cut = outcome.execution_cycles_force_cancelled_count;
        assert_eq!(cut + outcome.execution_cycles_completed_count, 2_000);
        assert_eq!(stand.listed(SubStatus::Interrupted).await.len() as u64, cut);
        assert_eq!(outcome.cycles.len(), 2_000);
        stand.runtime.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn d16_case_124_a_store_that_fails_at_the_deadline_is_counted_and_recovered_from() {
    for has_reads in [true, false] {
        let store = faulty();
        let stand = on(store.clone(), strictly(Duration::from_millis(10))).await;
        stand.deploy(slow("slow", "demo.sleep", "PT1H")).await;
        let key = stand.start("slow", "{}").await.instance;
        store.fail_all(unreachable());
        if !has_reads {
            store.fail_reads(unreachable());
        }
        let outcome = soon(stand.runtime.drain(STOP)).await;
        assert_eq!(outcome.overall_result, DrainResult::DeadlineExceeded);
        assert_eq!(
            (outcome.persistence_failure_count, outcome.cycles[0].fate),
            (1, Fate::PersistenceFailed)
        );
        assert!(
            outcome.force_cancelled_instance_ids.is_empty(),
            "a clean drain is never claimed"
        );
        store.mend();
        // Without a spill file crash recovery finds it, from its last commit.
        let next = stand_on(store, stand.clock.clone(), |b| b).await;
        let detail = next.until(key, |d| d.row.attempts == 1).await;
        assert_eq!(detail.row.sub_status, SubStatus::Executing);
        assert!(next.events(key).await.contains(&"CrashRecovered".to_owned()));
        next.runtime.cancel(key, None, "op").await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn d23_what_the_store_did_not_take_is_spilled_and_becomes_the_mark() {
    let folder = tempfile::tempdir().unwrap();
    let spill = || Options {
        spill: Some(folder.path().join("spill")),
        ..strictly(Duration::from_millis(10))
    };
    // The store fails at once, or does not answer at all.
    for hangs in [false, true] {
        let store = faulty();
        let stand = on(store.clone(), spill()).await;
        stand.deploy(slow("slow", "demo.sleep", "PT1H")).await;
        let key = stand.start("slow", "{}").await.instance;
        let other = stand.start("slow", "{}").await.instance;
        if hangs {
            store.hang()
        } else {
            store.fail_all(unreachable())
        }
        let outcome = soon(stand.runtime.drain(STOP)).await;
        assert_eq!(outcome.persistence_failure_count, 2);
        assert!(folder.path().join("spill").exists());
        // What was handed to a store that hangs never arrives: the next generation fences it.
        store.activate().unwrap();
        store.mend();
        let next = stand_on(store, stand.clock.clone(), |b| b.options(spill())).await;
        for key in [key, other] {
            next.until(key, |d| {
                d.row.sub_status == SubStatus::Executing && d.row.revision > 2
            })
            .await;
            let records = interruptions(&next, key).await;
            assert_eq!(
                (records.len(), &records[0]["reason"]),
                (1, &"PersistenceFailure".into())
            );
            let events = next.events(key).await;
            assert!(
                !events.contains(&"CrashRecovered".to_owned()),
                "it is not taken for crashed: {events:?}"
            );
            next.runtime.cancel(key, None, "op").await.unwrap();
        }
        assert!(
            !folder.path().join("spill").exists(),
            "the file is gone once its marks are durable"
        );
        next.runtime.drain(STOP).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn d23_the_spill_file_stays_until_each_of_its_marks_is_durable() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("spill");
    let spill = || Options {
        spill: Some(path.clone()),
        ..strictly(Duration::from_millis(10))
    };
    let store = faulty();
    let stand = on(store.clone(), spill()).await;
    stand.deploy(slow("slow", "demo.sleep", "PT1H")).await;
    let first = stand.start("slow", "{}").await.instance;
    let second = stand.start("slow", "{}").await.instance;
    store.fail_all(unreachable());
    assert_eq!(stand.runtime.drain(STOP).await.persistence_failure_count, 2);
    store.mend();
    // The mark of one of them fails again.
    let is_of = move |write: &Write| matches!(write, Write::UpdateInstance(update) if update.key == second && update.sub_status == SubStatus::Interrupted);
    store.fail_commits(move |commit| commit.writes.iter().any(is_of).then(unreachable));
    let next = on(store.clone(), spill()).await;
    assert!(path.exists());
    next.until(second, |d| d.row.attempts == 1).await;
    assert_eq!(interruptions(&next, first).await.len(), 1);
    store.mend();
    let last = on(store, spill()).await;
    assert!(!path.exists());
    assert_eq!(
        interruptions(&last, first).await.len(),
        1,
        "what is marked is not marked again"
    );
    last.runtime.force_drain(None, "op").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn d23_what_came_to_rest_after_all_is_not_marked_by_its_spilled_record() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("spill");
    let spill = || Options {
        spill: Some(path.clone()),
        ..strictly(Duration::from_millis(10))
    };
    let store = faulty();
    let (held, go, _) = Held::new();
    let stand = stand_on(store.clone(), ManualClock::new(BEGINNING), |b| {
        b.options(spill()).activity("held", held)
    })
    .await;
    let steps = [
        ("work", task("work", "held", &[])),
        ("pay", task("pay", "pay", &[])),
    ];
    stand.deploy(line("pays", &steps)).await;
    let key = stand.start("pays", "{}").await.instance;
    store.hang();
    go.add_permits(1);
    eventually("its commit waits for the store", async || store.held() > 0).await;
    let outcome = stand.runtime.drain(STOP).await;
    assert_eq!(outcome.persistence_failure_count, 1);
    assert!(path.exists());
    // It was late, and it came.
    store.mend();
    assert_eq!(stand.listed(SubStatus::Suspended).await, [key]);
    let next = on(store, spill()).await;
    assert!(!path.exists());
    assert_eq!(next.listed(SubStatus::Suspended).await, [key]);
    assert!(interruptions(&next, key).await.is_empty());
    next.runtime.drain(STOP).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d23_case_033_a_commit_that_fails_in_a_drain_is_tried_again_and_nothing_is_lost() {
    let store = faulty();
    let (held, go, runs) = Held::new();
    let stand = stand_on(store.clone(), ManualClock::new(BEGINNING), |b| {
        b.activity("held", held)
    })
    .await;
    stand.deploy(slow("h", "held", "")).await;
    let key = stand.start("h", "{}").await.instance;
    let drain = draining(&stand);
    has_begun(&stand).await;
    store.fail_all(unreachable());
    go.add_permits(1);
    eventually("it has failed more than once", async || store.failed() > 2).await;
    store.mend();
    let outcome = drain.await.unwrap();
    assert_eq!(outcome.overall_result, DrainResult::CompletedWithinDeadline);
    assert_eq!(
        stand.runtime.instance(key).await.unwrap().row.sub_status,
        SubStatus::Finished
    );
    assert_eq!(
        (runs.load(Ordering::SeqCst), outcome.persistence_failure_count),
        (1, 0)
    );
}

fn is_completion(commit: &Commit) -> bool {
    let ended =
        |write: &Write| matches!(write, Write::UpdateInstance(update) if update.sub_status.is_finished());
    commit.writes.iter().any(ended)
}

#[tokio::test(flavor = "multi_thread")]
async fn d23_case_035_a_completed_cycle_that_cannot_be_saved_is_marked_with_its_cause() {
    let store = faulty();
    let (held, go, runs) = Held::new();
    let options = within(Duration::from_millis(200));
    let stand = stand_on(store.clone(), ManualClock::new(BEGINNING), |b| {
        b.options(options).activity("held", held.clone())
    })
    .await;
    let two = [
        ("first", task("first", "demo.noop", &[])),
        ("work", task("work", "held", &[])),
    ];
    stand.deploy(line("h", &two)).await;
    let key = stand.start("h", "{}").await.instance;
    stand
        .until(key, |d| d.tokens.iter().any(|t| t.element_id == "work"))
        .await;
    eventually("the handler runs", async || runs.load(Ordering::SeqCst) == 1).await;
    let drain = draining(&stand);
    has_begun(&stand).await;
    // Only this commit cannot be taken: the mark can.
    store.fail_commits(|commit| is_completion(commit).then(unreachable));
    go.add_permits(1);
    let outcome = drain.await.unwrap();
    assert_eq!(
        (outcome.persistence_failure_count, outcome.cycles[0].fate),
        (0, Fate::Interrupted)
    );
    assert_eq!(stand.listed(SubStatus::Interrupted).await, [key]);
    assert_eq!(
        interruptions(&stand, key).await[0]["reason"],
        "PersistenceFailure"
    );
    store.mend();
    let next = stand_on(store, stand.clock.clone(), |b| b.activity("held", held)).await;
    go.add_permits(1);
    next.runtime.wait(key, Duration::from_secs(20)).await.unwrap();
    let events = next.events(key).await;
    assert_eq!(
        events.iter().filter(|e| *e == "JobCompleted first").count(),
        1,
        "not from its beginning"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_hangs_does_not_hold_the_process() {
    let store = faulty();
    let stand = on(store.clone(), strictly(Duration::from_millis(10))).await;
    stand.deploy(slow("slow", "demo.sleep", "PT1H")).await;
    stand.start("slow", "{}").await;
    store.hang();
    let outcome = soon(stand.runtime.drain(STOP)).await;
    assert_eq!(outcome.persistence_failure_count, 1);
    soon(stand.runtime.close()).await;
    store.mend();
}

#[tokio::test(flavor = "multi_thread")]
async fn d20_case_094_a_step_of_the_clock_changes_no_deadline() {
    let stand = stand_with(|b| b.options(within(Duration::from_millis(300)))).await;
    stand.deploy(slow("slow", "demo.sleep", "PT1H")).await;
    let key = stand.start("slow", "{}").await.instance;
    let began = Instant::now();
    let drain = draining(&stand);
    has_begun(&stand).await;
    stand.clock.advance(3_600_000);
    stand.clock.advance(-7_200_000);
    let outcome = soon(drain).await.unwrap();
    assert!(began.elapsed() >= Duration::from_millis(300), "not sooner either");
    assert_eq!(outcome.force_cancelled_instance_ids, [key]);
}

#[tokio::test(flavor = "multi_thread")]
async fn d21_force_deletes_nothing() {
    for (store, _folder) in stores() {
        let stand = stand_on(store, ManualClock::new(BEGINNING), |b| b).await;
        stand.deploy(waits_for_message("waits", 1)).await;
        stand.deploy(support::waits_for_timer("naps", "PT1H")).await;
        stand
            .deploy(line("pays", &[("work", task("work", "pay", &[]))]))
            .await;
        stand.deploy(slow("slow", "demo.sleep", "PT1H")).await;
        let waiting = stand.start("waits", r#"{"key": "k"}"#).await.instance;
        for process in ["naps", "pays", "slow"] {
            stand.start(process, "{}").await;
        }
        stand.runtime.pause(None, None, "op").await.unwrap();
        stand.publish("go", "k", "{}").await;
        stand.runtime.force_drain(None, "op").await.unwrap();
        assert_eq!(stand.runtime.status().await.unwrap().stimulus_queue.depth, 1);
        let far = BEGINNING.plus_ms(i64::from(i32::MAX));
        assert_eq!(stand.store.timers(far, None, 10).unwrap().len(), 1);
        assert_eq!(stand.listed(SubStatus::Suspended).await.len(), 3);
        stand.runtime.close().await;
        if stand.store.recoverable(None, 1).is_err() {
            continue;
        }
        let next = stand_on(stand.store.clone(), stand.clock.clone(), |b| b).await;
        next.runtime.wait(waiting, Duration::from_secs(20)).await.unwrap();
        let jobs = next
            .runtime
            .activate_jobs(support::jobs("pay", Duration::ZERO))
            .await
            .unwrap();
        assert_eq!(jobs.len(), 1);
        next.runtime.force_drain(None, "op").await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn case_029_an_end_that_races_the_deadline_leaves_one_truth() {
    for round in [0, 5, 10, 15, 19, 20] {
        let store: Arc<dyn Store> = Arc::new(tidegate::store::memory::MemoryStore::new());
        let (held, go, _) = Held::new();
        let options = within(Duration::from_millis(20));
        let stand = stand_on(store.clone(), ManualClock::new(BEGINNING), |b| {
            b.options(options).activity("held", held.clone())
        })
        .await;
        stand.deploy(slow("h", "held", "")).await;
        let mut keys = Vec::new();
        for _ in 0..20 {
            keys.push(stand.start("h", "{}").await.instance);
        }
        let drain = draining(&stand);
        has_begun(&stand).await;
        // Some end before the deadline, some in the settling, some not at all.
        for _ in 0..round {
            go.add_permits(1);
            tokio::task::yield_now().await;
        }
        let outcome = drain.await.unwrap();
        let finished = stand.listed(SubStatus::Finished).await;
        let interrupted = stand.listed(SubStatus::Interrupted).await;
        assert_eq!(finished.len() + interrupted.len(), keys.len());
        assert_eq!(
            outcome.execution_cycles_force_cancelled_count as usize,
            interrupted.len()
        );
        for key in finished {
            assert!(interruptions(&stand, key).await.is_empty());
        }
        go.add_permits(100);
        let next = stand_on(store, stand.clock.clone(), |b| b.activity("held", held)).await;
        for key in keys {
            next.runtime.wait(key, Duration::from_secs(20)).await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn case_031_case_032_what_waits_is_left_alone() {
    let stand = stand().await;
    stand.deploy(waits_for_message("waits", 1)).await;
    let mut waiting = Vec::new();
    for n in 0..5 {
        waiting.push(
            stand
                .start("waits", &format!(r#"{{"key": "k{n}"}}"#))
                .await
                .instance,
        );
    }
    let outcome = stand.runtime.drain(STOP).await;
    assert_eq!(outcome.overall_result, DrainResult::CompletedWithinDeadline);
    let next = stand_on(stand.store.clone(), stand.clock.clone(), |b| b).await;
    assert_eq!(next.listed(SubStatus::Suspended).await.len(), 5);
    next.publish("go", "k3", "{}").await;
    next.runtime
        .wait(waiting[3], Duration::from_secs(20))
        .await
        .unwrap();
}

/// As long as a test may ever take, so that nobody waits for it.
const NEVER: Duration = Duration::from_secs(3_600);

#[tokio::test(flavor = "multi_thread")]
async fn d06_d13_settling_ends_with_the_last_handler_and_not_with_the_reserve() {
    let options = Options {
        persist_reserve: NEVER,
        ..within(Duration::from_millis(10))
    };
    let stand = stand_with(|b| b.options(options)).await;
    stand.deploy(slow("slow", "demo.sleep", "PT1H")).await;
    // Of these one stops in the middle of an instance that has more to do.
    let steps = [
        ("a", task("a", "demo.sleep", &[("duration", "PT1H")])),
        ("b", task("b", "demo.noop", &[])),
    ];
    stand.deploy(line("two", &steps)).await;
    for process in ["slow", "two", "slow"] {
        stand.start(process, "{}").await;
    }
    let outcome = stand.runtime.drain(STOP).await;
    assert_eq!(outcome.execution_cycles_force_cancelled_count, 3);
    assert_eq!(outcome.execution_cycles_abandoned_count, 0);
    // The reserve would have been an hour: that this is reached is the point.
    assert!(outcome.settle_phase_duration < NEVER / 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_plan_says_whether_the_reserve_is_enough_for_what_is_live() {
    let stand = stand_with(|b| b.options(strictly(Duration::from_secs(1)))).await;
    let reserve = stand.runtime.drain_plan().reserve.unwrap();
    assert_eq!(reserve.live_cycles, 0);
    assert_eq!(
        reserve.kept_ms, 150,
        "results count for half of it, the last fifth is for the way out"
    );
    stand.deploy(slow("slow", "demo.sleep", "PT1H")).await;
    let key = stand.start("slow", "{}").await.instance;
    let plan = stand.runtime.drain_plan();
    let reserve = plan.reserve.clone().unwrap();
    assert_eq!(reserve.live_cycles, 1);
    let expected = reserve.expected_ms.expect("a commit was measured");
    assert_eq!(reserve.is_enough, Some(expected <= reserve.kept_ms));
    assert!(
        plan.to_string().contains("Saving the outcomes of 1 live cycles"),
        "{plan}"
    );
    stand.runtime.cancel(key, None, "op").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_plan_can_be_printed_and_lies_inside_the_grace() {
    let options = Options {
        host_grace: Some(Duration::from_secs(10)),
        ..Options::default()
    };
    let runtime = Runtime::builder().options(options).start().await.unwrap();
    let plan = runtime.drain_plan();
    let names: Vec<_> = plan.steps.iter().map(|step| step.name).collect();
    assert_eq!(names, ["close", "pause", "wait", "cut", "mark", "spill", "leave"]);
    assert!(plan.steps.iter().map(|step| step.until_ms).is_sorted());
    assert_eq!((plan.at_most_ms, plan.host_grace_ms), (10_000, Some(10_000)));
    let text = plan.to_string();
    assert!(
        text.contains("3. wait") && text.contains("host's grace of 10000 ms"),
        "{text}"
    );
    assert!(text.contains("http.api, queue, recovery"), "{text}");
}
