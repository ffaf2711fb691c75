//! The life of an engine: run, shut down, and what is left of it.

mod support;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use support::sources::{Does, TestSource};
use support::{
    BEGINNING, eventually, faulty, line, message, process, slow, stand_on, task, unreachable,
    waits_for_message,
};
use tidegate::activity::{Activity, ActivityContext, ActivityFuture};
use tidegate::api::StartRequest;
use tidegate::clock::ManualClock;
use tidegate::ingress::Offer;
use tidegate::model::{InstanceKey, SubStatus, Variables};
use tidegate::store::memory::MemoryStore;
use tidegate::store::{InstanceFilter, Page, Queries, Store};
use tidegate::{Builder, Engine, EngineState, Error, Options, Runtime, ShutdownMode};

const AMPLE: Duration = Duration::from_secs(20);

fn builder(store: Arc<dyn Store>) -> Builder {
    let options = Options {
        owners: 2,
        ..Options::default()
    };
    Runtime::builder().store(store).options(options).demo_activities()
}

fn engine() -> Engine {
    builder(Arc::new(MemoryStore::new())).build()
}

async fn deploy(runtime: &Runtime, resource: tidegate::api::Resource) {
    runtime.deploy(vec![resource], None, "test").await.unwrap();
}

async fn start(runtime: &Runtime, process_id: &str) -> InstanceKey {
    runtime
        .start(StartRequest::latest(process_id))
        .await
        .unwrap()
        .instance
}

/// A kind of store with a way to look at it after its runtime has closed it.
struct Kept {
    store: Arc<dyn Store>,
    again: Box<dyn Fn() -> Arc<dyn Store>>,
}

fn kept() -> Vec<Kept> {
    let memory = Arc::new(MemoryStore::new());
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("t.db").display());
    vec![
        Kept {
            store: memory.clone(),
            again: Box::new(move || Arc::new(memory.reopen())),
        },
        Kept {
            store: tidegate::store::open(&url).unwrap(),
            again: Box::new(move || {
                let _folder = &folder;
                tidegate::store::open(&url).unwrap()
            }),
        },
    ]
}

fn sub_statuses(store: &dyn Store) -> Vec<SubStatus> {
    let rows = store
        .instances(&InstanceFilter::default(), Page::first(10_000))
        .unwrap();
    let mut found: Vec<_> = rows.into_iter().map(|row| row.sub_status).collect();
    found.sort();
    found
}

/// An activity that holds a thread of the async runtime until it is let go.
#[derive(Default)]
struct Deaf {
    has_begun: AtomicBool,
    may_end: Mutex<bool>,
    changed: Condvar,
}

impl Deaf {
    fn let_go(&self) {
        *self.may_end.lock().unwrap() = true;
        self.changed.notify_all();
    }
}

struct DeafActivity(Arc<Deaf>);

impl Activity for DeafActivity {
    fn run(&self, _: ActivityContext) -> ActivityFuture {
        let deaf = self.0.clone();
        Box::pin(async move {
            deaf.has_begun.store(true, Ordering::SeqCst);
            let mut may_end = deaf.may_end.lock().unwrap();
            while !*may_end {
                may_end = deaf.changed.wait(may_end).unwrap();
            }
            Ok(Variables::new())
        })
    }
}

/// A runtime with an instance in a deaf activity.
async fn deaf(store: Arc<dyn Store>) -> (Runtime, InstanceKey, Arc<Deaf>) {
    let deaf = Arc::new(Deaf::default());
    let runtime = builder(store)
        .activity("deaf", Arc::new(DeafActivity(deaf.clone())))
        .start()
        .await
        .unwrap();
    deploy(&runtime, line("deaf", &[("work", task("work", "deaf", &[]))])).await;
    let instance = start(&runtime, "deaf").await;
    eventually("the activity begins", async || {
        deaf.has_begun.load(Ordering::SeqCst)
    })
    .await;
    (runtime, instance, deaf)
}

#[tokio::test(flavor = "multi_thread")]
async fn e01_not_started_started_stopped_are_seen_in_order() {
    let engine = engine();
    let mut life = engine.watch();
    assert_eq!(*life.borrow_and_update(), EngineState::NotStarted);
    assert!(matches!(engine.runtime(), Err(Error::NotStarted)));
    let runtime = engine.run().await.unwrap();
    assert!(life.has_changed().unwrap());
    assert_eq!(*life.borrow_and_update(), EngineState::Started);
    assert_eq!(engine.runtime().unwrap().generation(), runtime.generation());
    let report = runtime.shutdown(ShutdownMode::Drain, AMPLE).await.unwrap();
    assert!(life.has_changed().unwrap());
    assert_eq!(*life.borrow_and_update(), EngineState::Stopped);
    assert_eq!(
        (runtime.state(), report.mode),
        (EngineState::Stopped, ShutdownMode::Drain)
    );
    assert!(matches!(engine.runtime(), Err(Error::Stopped)));
}

#[tokio::test(flavor = "multi_thread")]
async fn e02_a_shutdown_before_the_run_stops_it() {
    let engine = engine();
    assert_eq!(engine.shutdown(ShutdownMode::Drain, AMPLE).await.unwrap(), None);
    assert_eq!(engine.state(), EngineState::Stopped);
    let error = engine.run().await.unwrap_err();
    assert_eq!(
        (error.code(), matches!(error, Error::Stopped)),
        ("runtime-stopped", true)
    );
    assert_eq!(engine.shutdown(ShutdownMode::Cancel, AMPLE).await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn e03_shutdowns_at_once_are_one_teardown() {
    let memory = Arc::new(MemoryStore::new());
    let runtime = builder(memory.clone()).start().await.unwrap();
    deploy(&runtime, slow("slow", "demo.sleep", "PT0.1S")).await;
    let instance = start(&runtime, "slow").await;
    let racing: Vec<_> = (0..8)
        .map(|_| {
            let runtime = runtime.clone();
            tokio::spawn(async move {
                let report = runtime.shutdown(ShutdownMode::Drain, AMPLE).await.unwrap();
                // All of it is over when it is answered.
                (report, runtime.survivors())
            })
        })
        .collect();
    let mut reports = Vec::new();
    for one in racing {
        let (report, survivors) = one.await.unwrap();
        assert_eq!(survivors, Vec::<String>::new());
        reports.push(report);
    }
    reports.push(runtime.shutdown(ShutdownMode::Drain, AMPLE).await.unwrap());
    assert!(reports.windows(2).all(|pair| pair[0] == pair[1]), "{reports:?}");
    let store = memory.reopen();
    assert_eq!(
        store.instance(instance).unwrap().unwrap().sub_status,
        SubStatus::Finished
    );
    let audit = store.audit(Page::first(100)).unwrap();
    let times = |action: &str| audit.iter().filter(|row| row.action == action).count();
    assert_eq!(
        (times("RuntimeShutdownRequested"), times("RuntimeDrained")),
        (1, 1)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn e04_after_the_end_everything_is_refused_by_type() {
    let engine = engine();
    let runtime = engine.run().await.unwrap();
    deploy(&runtime, waits_for_message("waits", 1)).await;
    runtime.shutdown(ShutdownMode::Park, AMPLE).await.unwrap();
    let again = runtime
        .deploy(vec![waits_for_message("other", 1)], None, "test")
        .await;
    assert!(matches!(again, Err(Error::Stopped)), "{again:?}");
    let started = runtime.start(StartRequest::latest("waits")).await;
    assert!(matches!(started, Err(Error::Stopped)), "{started:?}");
    let published = runtime.publish(message("go", "k", "{}")).await;
    assert!(matches!(published, Err(Error::Stopped)), "{published:?}");
    assert!(matches!(engine.run().await, Err(Error::Stopped)));
}

#[tokio::test(flavor = "multi_thread")]
async fn e05_of_runs_at_once_one_wins() {
    let engine = engine();
    let racing: Vec<_> = (0..8)
        .map(|_| {
            let engine = engine.clone();
            tokio::spawn(async move { engine.run().await })
        })
        .collect();
    let mut generations = Vec::new();
    for one in racing {
        match one.await.unwrap() {
            Ok(runtime) => generations.push(runtime.generation().to_owned()),
            Err(error) => assert!(matches!(error, Error::AlreadyStarted), "{error}"),
        }
    }
    assert_eq!(generations.len(), 1);
    assert_eq!(engine.runtime().unwrap().generation(), generations[0]);
    engine.shutdown(ShutdownMode::Drain, AMPLE).await.unwrap();
}

/// A process that calls one which waits.
fn calls(id: &str, called: &str) -> tidegate::api::Resource {
    line(
        id,
        &[(
            "call",
            format!(
                r#"<bpmn:callActivity id="call"><bpmn:extensionElements><zeebe:calledElement processId="{called}"/></bpmn:extensionElements></bpmn:callActivity>"#
            ),
        )],
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn e06_no_mode_but_cancel_ends_an_instance() {
    use SubStatus::{Cancelled, Finished, Interrupted, Suspended};
    let expected = [
        (
            ShutdownMode::Drain,
            vec![Suspended, Suspended, Suspended, Finished],
        ),
        (
            ShutdownMode::Park,
            vec![Suspended, Suspended, Suspended, Interrupted],
        ),
        (
            ShutdownMode::Cancel,
            vec![Cancelled, Cancelled, Cancelled, Cancelled],
        ),
    ];
    for (mode, expected) in expected {
        for Kept { store, again } in kept() {
            let runtime = builder(store).start().await.unwrap();
            // Long enough to be running when it is parked or cancelled.
            let duration = if mode == ShutdownMode::Drain {
                "PT0.05S"
            } else {
                "PT60S"
            };
            let wait = r#"<bpmn:startEvent id="s"/><bpmn:userTask id="u"/><bpmn:sequenceFlow id="f" sourceRef="s" targetRef="u"/>"#;
            deploy(&runtime, process("waits", wait)).await;
            deploy(&runtime, calls("caller", "waits")).await;
            deploy(&runtime, slow("slow", "demo.sleep", duration)).await;
            start(&runtime, "waits").await;
            start(&runtime, "caller").await;
            eventually("the called instance waits", async || {
                let tasks = runtime
                    .user_tasks(Default::default(), Page::first(10))
                    .await
                    .unwrap();
                tasks.len() == 2
            })
            .await;
            start(&runtime, "slow").await;
            let report = runtime.shutdown(mode, AMPLE).await.unwrap();
            let cancelled = if mode == ShutdownMode::Cancel {
                3..=4
            } else {
                0..=0
            };
            assert!(cancelled.contains(&report.cancelled), "{report:?}");
            let store = again();
            let mut found = sub_statuses(&*store);
            found.sort();
            let mut expected = expected.clone();
            expected.sort();
            assert_eq!(found, expected, "{mode:?}");
            // The next generation goes on with what was kept.
            let next = builder(store).start().await.unwrap();
            next.recovered().await;
            if mode == ShutdownMode::Park {
                let counts = next.counts().await.unwrap();
                assert_eq!(counts[usize::from(Interrupted.code())], 0, "it goes on by itself");
            }
            next.shutdown(ShutdownMode::Park, AMPLE).await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn e07_e11_a_deadline_names_what_is_left_and_a_later_shutdown_waits_for_it() {
    let memory = Arc::new(MemoryStore::new());
    let (runtime, instance, deaf) = deaf(memory.clone()).await;
    let error = runtime
        .shutdown(ShutdownMode::Drain, Duration::from_millis(600))
        .await
        .unwrap_err();
    let Error::NotSettled(left) = &error else {
        panic!("{error}")
    };
    assert_eq!(left.instances, [instance]);
    assert!(
        matches!(left.tasks.as_slice(), [name] if name.starts_with("activity work of job")),
        "{left:?}"
    );
    assert!(error.to_string().contains(&instance.to_string()), "{error}");
    assert_eq!(runtime.state(), EngineState::Stopped);
    assert_eq!(
        runtime.survivors(),
        left.tasks,
        "only what was abandoned survives"
    );
    let again = runtime
        .shutdown(ShutdownMode::Drain, Duration::from_millis(1))
        .await;
    assert!(matches!(again, Err(Error::NotSettled(_))), "{again:?}");

    let later = tokio::spawn({
        let runtime = runtime.clone();
        async move { runtime.shutdown(ShutdownMode::Drain, AMPLE).await }
    });
    deaf.let_go();
    later.await.unwrap().unwrap();
    assert_eq!(runtime.survivors(), Vec::<String>::new());
    // Its late result is fenced: the store has the mark and nothing after it.
    assert_eq!(
        memory.reopen().instance(instance).unwrap().unwrap().sub_status,
        SubStatus::Interrupted
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn e08_what_is_born_during_a_shutdown_is_settled_or_refused() {
    for Kept { store, again } in kept() {
        let runtime = builder(store).start().await.unwrap();
        let wait = r#"<bpmn:startEvent id="s"/><bpmn:userTask id="u"/><bpmn:sequenceFlow id="f" sourceRef="s" targetRef="u"/>"#;
        deploy(&runtime, process("waits", wait)).await;
        let born = Arc::new(Mutex::new(Vec::new()));
        let starting: Vec<_> = (0..4)
            .map(|_| {
                let (runtime, born) = (runtime.clone(), born.clone());
                tokio::spawn(async move {
                    loop {
                        match runtime.start(StartRequest::latest("waits")).await {
                            Ok(started) => born.lock().unwrap().push(started.instance),
                            Err(error) => return error,
                        }
                    }
                })
            })
            .collect();
        eventually("some are born", async || born.lock().unwrap().len() > 20).await;
        runtime
            .shutdown(ShutdownMode::Cancel, Duration::from_secs(60))
            .await
            .unwrap();
        for one in starting {
            let error = one.await.unwrap();
            assert!(matches!(error, Error::Stopped), "{error}");
        }
        let store = again();
        for instance in born.lock().unwrap().iter() {
            let row = store
                .instance(*instance)
                .unwrap()
                .expect("what was told is there");
            assert_eq!(row.sub_status, SubStatus::Cancelled);
        }
        assert!(
            sub_statuses(&*store).iter().all(|s| *s == SubStatus::Cancelled),
            "none is left"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn e09_a_failed_start_can_be_tried_again_and_leaves_nothing_behind() {
    for failing in ["activate", "definitions", "queue", "stimuli"] {
        let store = faulty();
        let engine = builder(store.clone()).build();
        store.fail_reads_of(failing, unreachable());
        let before = alive();
        match engine.run().await {
            Err(Error::Store(_)) => {}
            other => panic!("{failing}: {other:?}"),
        }
        assert_eq!(engine.state(), EngineState::NotStarted);
        assert!(matches!(engine.runtime(), Err(Error::NotStarted)));
        eventually("nothing of it runs", async || alive() <= before).await;
        store.mend();
        let runtime = engine.run().await.unwrap();
        assert_eq!(engine.state(), EngineState::Started);
        runtime.shutdown(ShutdownMode::Drain, AMPLE).await.unwrap();
    }
}

/// Tasks of this test's async runtime.
fn alive() -> usize {
    tokio::runtime::Handle::current().metrics().num_alive_tasks()
}

#[tokio::test(flavor = "multi_thread")]
async fn e11_no_task_survives_a_shutdown() {
    let before = alive();
    for mode in [ShutdownMode::Drain, ShutdownMode::Park, ShutdownMode::Cancel] {
        let clock = ManualClock::new(BEGINNING);
        let stand = stand_on(Arc::new(MemoryStore::new()), clock, |builder| {
            builder.source(TestSource::new("mine", Does::Well).shared())
        })
        .await;
        stand.deploy(slow("slow", "demo.sleep", "PT60S")).await;
        stand.deploy(waits_for_message("waits", 1)).await;
        stand.start("slow", "{}").await;
        stand.start("waits", r#"{"key": "k"}"#).await;
        let survivors = stand.runtime.survivors();
        for name in [
            "timer",
            "recovery",
            "pause",
            "audit",
            "janitor",
            "tidegate-owner-0",
            "tidegate-owner-1",
        ] {
            let has_ended_early = name == "recovery";
            assert!(
                has_ended_early || survivors.iter().any(|s| s == name),
                "{name} of {survivors:?}"
            );
        }
        let deadline = if mode == ShutdownMode::Drain {
            Duration::from_millis(520)
        } else {
            AMPLE
        };
        let outcome = stand.runtime.shutdown(mode, deadline).await;
        assert_eq!(outcome.is_err(), mode == ShutdownMode::Drain, "{outcome:?}");
        eventually("the cut activity ends", async || {
            stand.runtime.survivors().is_empty()
        })
        .await;
        eventually("no task of the async runtime is left", async || alive() <= before).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn e10_sources_whose_stop_fails_or_hangs_are_removed_anyway() {
    let sources = [
        TestSource::new("fails", Does::Fail).shared(),
        TestSource::new("hangs", Does::Hang).forced(Does::Hang).shared(),
        TestSource::new("well", Does::Well).shared(),
    ];
    let mut builder = builder(Arc::new(MemoryStore::new()));
    for source in &sources {
        builder = builder.source(source.clone());
    }
    let runtime = builder.start().await.unwrap();
    deploy(&runtime, waits_for_message("waits", 1)).await;
    let report = runtime.shutdown(ShutdownMode::Drain, AMPLE).await.unwrap();
    let failed: Vec<_> = report
        .drain
        .sources
        .iter()
        .filter(|source| source.last_error.is_some())
        .map(|source| source.name.as_str())
        .collect();
    assert_eq!(failed, ["fails", "hangs"]);
    for source in sources {
        let ingress = source.ingress.get().unwrap();
        let offered = ingress.offer(Offer::Start(StartRequest::latest("waits"))).await;
        assert!(matches!(offered, Err(Error::Stopped)), "{offered:?}");
        let offered = ingress.accept(Offer::Message(message("go", "k", "{}"))).await;
        assert!(matches!(offered, Err(Error::Stopped)), "{offered:?}");
    }
    assert!(matches!(
        runtime.register_source(&*TestSource::new("late", Does::Well).shared()),
        Err(Error::SourcesAreFixed(_))
    ));
    assert_eq!(runtime.survivors(), Vec::<String>::new());
    runtime.shutdown(ShutdownMode::Drain, AMPLE).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn e07_e10_a_waiter_that_never_ends_is_an_error_at_the_deadline() {
    let store = faulty();
    let runtime = builder(store.clone()).start().await.unwrap();
    deploy(&runtime, waits_for_message("waits", 1)).await;
    runtime.recovered().await;
    // An owner hangs in the store.
    store.hang_reads();
    let before = store.reads_of("value");
    let asked = tokio::spawn({
        let runtime = runtime.clone();
        async move {
            let request = StartRequest {
                idempotency_key: Some("once".to_owned()),
                ..StartRequest::latest("waits")
            };
            runtime.start(request).await
        }
    });
    eventually("an owner asks the store", async || {
        store.reads_of("value") > before
    })
    .await;
    let error = runtime
        .shutdown(ShutdownMode::Park, Duration::from_millis(100))
        .await
        .unwrap_err();
    let Error::NotSettled(left) = &error else {
        panic!("{error}")
    };
    assert!(
        left.tasks.iter().any(|name| name.starts_with("tidegate-owner-")),
        "{left:?}"
    );
    assert_eq!(runtime.state(), EngineState::Stopped);
    store.mend();
    runtime.shutdown(ShutdownMode::Park, AMPLE).await.unwrap();
    assert_eq!(runtime.survivors(), Vec::<String>::new());
    // Whoever asked is answered, one way or the other.
    let _ = asked.await.unwrap();
}
