//! Observers see what happens, in order, and hold nothing up.

mod support;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use support::{
    Stand, eventually, faulty, line, process, stand, stand_on, task, unreachable, waits_for_message,
};
use tidegate::clock::ManualClock;
use tidegate::observe::{DEFAULT_QUEUE, MOST_OBSERVERS, Notice, ObserveOptions, ObservedKind, Observing};
use tidegate::{Error, ShutdownMode, Start};

const AMPLE: Duration = Duration::from_secs(20);

/// A start, a job of a handler and one that fails into an incident.
async fn deploy(stand: &Stand) {
    let tasks = [
        ("a", task("a", "demo.noop", &[])),
        ("b", task("b", "demo.fail", &[("times", "9")])),
    ];
    stand.deploy(line("p", &tasks)).await;
    stand.deploy(waits_for_message("waits", 1)).await;
}

fn line_of(notice: &Notice) -> String {
    let event = &notice.event;
    match &event.element_id {
        Some(id) => format!("{} {id}", event.name),
        None => event.name.to_string(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn o01_observers_of_one_instance_and_of_the_runtime_see_everything_in_order() {
    let stand = stand().await;
    deploy(&stand).await;
    let mut of_all = stand.runtime.observe(ObserveOptions::new()).unwrap();
    let with_key = Start::new().variables(tidegate::model::Variables::parse(r#"{"key": "k"}"#).unwrap());
    let waiting = stand.runtime.start_latest("waits", with_key).await.unwrap();
    let mut of_one = waiting.observe(ObserveOptions::new()).unwrap();
    let failing = stand.start("p", "{}").await.instance;
    stand.incident().await;
    stand.runtime.cancel(failing, None, "test").await.unwrap();
    stand.runtime.pause(None, None, "op").await.unwrap();
    stand.runtime.resume("op").await.unwrap();
    stand.runtime.cancel(waiting.key(), None, "test").await.unwrap();
    let journals = [
        (failing, stand.events(failing).await),
        (waiting.key(), stand.events(waiting.key()).await),
    ];
    stand.runtime.shutdown(ShutdownMode::Drain, AMPLE).await.unwrap();

    let mut seen = Vec::new();
    while let Some(notice) = of_all.next().await {
        assert_eq!(notice.dropped_before, 0);
        seen.push(notice);
    }
    for (instance, journal) in &journals {
        let of_it: Vec<_> = seen
            .iter()
            .filter(|n| n.event.instance_key == Some(*instance))
            .collect();
        let lines: Vec<_> = of_it.iter().map(|notice| line_of(notice)).collect();
        assert_eq!(&lines, journal, "the journal, in its order");
        let places: Vec<_> = of_it.iter().filter_map(|notice| notice.event.sequence).collect();
        assert_eq!(places, (1..=journal.len() as u64).collect::<Vec<_>>());
    }
    for kind in [
        ObservedKind::Lifecycle,
        ObservedKind::Element,
        ObservedKind::Job,
        ObservedKind::Incident,
    ] {
        assert!(seen.iter().any(|notice| notice.event.kind == kind), "{kind:?}");
    }
    let of_runtime: Vec<_> = seen
        .iter()
        .filter(|notice| notice.event.kind == ObservedKind::Runtime)
        .map(|notice| notice.event.name.to_string())
        .filter(|name| name.starts_with("Runtime"))
        .collect();
    assert_eq!(
        of_runtime,
        [
            "RuntimePauseRequested",
            "RuntimeResumeRequested",
            "RuntimeShutdownRequested",
            "RuntimeDraining",
            "RuntimeDrained",
            "RuntimeStopped"
        ]
    );

    // Of its instance alone, from the moment it was asked for.
    let mut seen = Vec::new();
    while let Some(notice) = of_one.next().await {
        assert_eq!(notice.event.instance_key, Some(waiting.key()));
        seen.push(line_of(&notice));
    }
    assert_eq!(seen.last().map(String::as_str), Some("InstanceCancelled"));
    assert!(!seen.contains(&"InstanceStarted start".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn o01_what_did_not_become_durable_is_not_told() {
    let store = faulty();
    let stand = stand_on(store.clone(), ManualClock::new(support::BEGINNING), |b| b).await;
    deploy(&stand).await;
    let mut seen = stand
        .runtime
        .observe(ObserveOptions::new().kind(ObservedKind::Lifecycle))
        .unwrap();
    store.fail_all(unreachable());
    stand
        .runtime
        .start_latest("waits", Start::new())
        .await
        .unwrap_err();
    store.mend();
    let second = stand.runtime.start_latest("waits", Start::new()).await.unwrap();
    assert_eq!(seen.next().await.unwrap().event.instance_key, Some(second.key()));
}

/// An observer that reports what it gets and then waits to be let go.
fn blocked(stand: &Stand, options: ObserveOptions) -> (Observing, mpsc::Receiver<Notice>, mpsc::Sender<()>) {
    let (tell, told) = mpsc::channel();
    let (let_go, may_go) = mpsc::channel();
    let observing = stand.runtime.observe_with(options, move |notice| {
        let _ = tell.send(notice.clone());
        // An end of the test lets it go too.
        let _ = may_go.recv();
    });
    (observing.unwrap(), told, let_go)
}

#[tokio::test(flavor = "multi_thread")]
async fn o02_a_blocked_observer_holds_nothing_up_and_what_it_misses_is_counted() {
    const QUEUE: usize = 4;
    const INSTANCES: usize = 50;
    let stand = stand().await;
    stand
        .deploy(line("quick", &[("a", task("a", "demo.noop", &[]))]))
        .await;
    let options = ObserveOptions::new().queue(QUEUE).kind(ObservedKind::Lifecycle);
    let (observing, told, let_go) = blocked(&stand, options);
    let mut other = stand
        .runtime
        .observe(ObserveOptions::new().kind(ObservedKind::Lifecycle))
        .unwrap();
    for _ in 0..INSTANCES {
        assert!(stand.run("quick", "{}").await.sub_status.is_finished());
    }
    // Started and completed: one is being delivered, or about to be, and as many wait as may.
    let all = 2 * INSTANCES as u64;
    eventually("what does not fit is counted", async || {
        observing.dropped() >= all - QUEUE as u64 - 1
    })
    .await;
    assert_eq!(stand.runtime.observer_counts().dropped, observing.dropped());
    assert_eq!(other.dropped(), 0);
    for _ in 0..all {
        assert_eq!(other.next().await.unwrap().dropped_before, 0);
    }
    // It goes on with what waited, and learns how much it missed: all of it behind what waited, but for what came before
    // its first was taken from the queue.
    let missed = observing.dropped();
    let mut learned = 0;
    for _ in 0..all - missed {
        learned += told.recv_timeout(AMPLE).unwrap().dropped_before;
        let_go.send(()).unwrap();
    }
    stand.run("quick", "{}").await;
    let behind = told.recv_timeout(AMPLE).unwrap().dropped_before;
    assert!(behind > 0);
    assert_eq!(learned + behind, missed);
    drop(let_go);
    observing.cancel().await;
    assert_eq!(stand.runtime.observer_counts().observers, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn o02_a_shutdown_names_an_observer_that_does_not_return() {
    let stand = stand().await;
    deploy(&stand).await;
    let (_observing, told, let_go) = blocked(&stand, ObserveOptions::new());
    stand.start("waits", "{}").await;
    told.recv_timeout(AMPLE).unwrap();
    let error = stand
        .runtime
        .shutdown(ShutdownMode::Drain, Duration::from_millis(50))
        .await
        .unwrap_err();
    let Error::NotSettled(left) = error else {
        panic!("{error}")
    };
    assert_eq!(
        (left.instances, left.tasks),
        (vec![], vec!["observer-0".to_owned()])
    );
    drop(let_go);
    stand.runtime.shutdown(ShutdownMode::Drain, AMPLE).await.unwrap();
    assert_eq!(stand.runtime.survivors(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn o03_a_panic_is_contained_and_counted_and_others_see_everything() {
    let stand = stand().await;
    deploy(&stand).await;
    let seen = Arc::new(AtomicU64::new(0));
    let counting = seen.clone();
    let panicking = stand
        .runtime
        .observe_with(ObserveOptions::new(), move |_| {
            counting.fetch_add(1, Ordering::SeqCst);
            panic!("the test's own");
        })
        .unwrap();
    let mut other = stand.runtime.observe(ObserveOptions::new()).unwrap();
    let instance = stand.start("waits", "{}").await.instance;
    stand.runtime.cancel(instance, None, "test").await.unwrap();
    let journal = stand.events(instance).await;
    for expected in &journal {
        assert_eq!(&line_of(&other.next().await.unwrap()), expected);
    }
    eventually("it goes on after each panic", async || {
        panicking.panics() >= journal.len() as u64
    })
    .await;
    assert!(seen.load(Ordering::SeqCst) >= journal.len() as u64);
    stand.runtime.shutdown(ShutdownMode::Drain, AMPLE).await.unwrap();
    assert_eq!(stand.runtime.observer_counts().panics, panicking.panics());
}

#[tokio::test(flavor = "multi_thread")]
async fn o04_a_cancelled_observation_is_over_when_the_call_returns() {
    let stand = stand().await;
    deploy(&stand).await;
    let (observing, told, let_go) = blocked(&stand, ObserveOptions::new());
    stand.start("waits", "{}").await;
    told.recv_timeout(AMPLE).unwrap();
    // The first delivery is under way and others wait.
    let mut cancelling = Box::pin(observing.cancel());
    let is_over =
        std::future::poll_fn(|context| std::task::Poll::Ready(cancelling.as_mut().poll(context).is_ready()));
    assert!(!is_over.await, "a delivery is under way");
    let_go.send(()).unwrap();
    cancelling.await;
    stand.start("waits", "{}").await;
    assert!(told.try_recv().is_err(), "nothing comes after the last delivery");
    // Again, and again at once.
    observing.cancel().await;
    tokio::join!(observing.cancel(), observing.cancel());
    assert_eq!(stand.runtime.observer_counts().observers, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn o04_an_observation_may_be_cancelled_from_inside() {
    let stand = stand().await;
    deploy(&stand).await;
    let itself: Arc<Mutex<Option<Observing>>> = Arc::default();
    let deliveries = Arc::new(AtomicU64::new(0));
    let (inside, counting) = (itself.clone(), deliveries.clone());
    let (over, is_over) = mpsc::channel();
    let handle = tokio::runtime::Handle::current();
    let observing = stand.runtime.observe_with(ObserveOptions::new(), move |_| {
        counting.fetch_add(1, Ordering::SeqCst);
        if let Some(observing) = inside.lock().unwrap().as_ref() {
            // It even waits for it.
            handle.block_on(observing.cancel());
            let _ = over.send(());
        }
    });
    *itself.lock().unwrap() = Some(observing.unwrap());
    stand.start("waits", "{}").await;
    is_over.recv_timeout(AMPLE).unwrap();
    let outside = itself.lock().unwrap().take().unwrap();
    outside.cancel().await;
    let seen = deliveries.load(Ordering::SeqCst);
    stand.start("waits", "{}").await;
    assert_eq!((deliveries.load(Ordering::SeqCst), seen), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn o05_values_are_told_to_those_alone_who_ask_for_them() {
    const SECRET: &str = "4711-secret";
    let stand = stand().await;
    deploy(&stand).await;
    stand
        .deploy(process(
            "person",
            r#"<bpmn:startEvent id="s"/><bpmn:userTask id="u"><bpmn:extensionElements><zeebe:assignmentDefinition assignee="=key"/></bpmn:extensionElements></bpmn:userTask>
            <bpmn:sequenceFlow id="f" sourceRef="s" targetRef="u"/>"#,
        ))
        .await;
    // A condition that quotes what it saw when it fails.
    let fails = r#"<bpmn:startEvent id="s"/><bpmn:exclusiveGateway id="g"/><bpmn:endEvent id="e"/>
        <bpmn:sequenceFlow id="f" sourceRef="s" targetRef="g"/>
        <bpmn:sequenceFlow id="h" sourceRef="g" targetRef="e"><bpmn:conditionExpression xsi:type="bpmn:tFormalExpression">=key</bpmn:conditionExpression></bpmn:sequenceFlow>"#;
    stand.deploy(process("fails", fails)).await;
    let mut plain = stand.runtime.observe(ObserveOptions::new()).unwrap();
    let mut with_values = stand
        .runtime
        .observe(ObserveOptions::new().with_values())
        .unwrap();
    let variables = format!(r#"{{"key": "{SECRET}"}}"#);
    for process_id in ["waits", "person", "fails"] {
        stand.start(process_id, &variables).await;
    }
    stand.publish("go", SECRET, &variables).await;
    stand.incident().await;
    eventually("the message is caught", async || {
        stand.listed(tidegate::model::SubStatus::Finished).await.len() == 1
    })
    .await;
    stand.runtime.shutdown(ShutdownMode::Drain, AMPLE).await.unwrap();
    let mut names = Vec::new();
    while let Some(notice) = plain.next().await {
        let text = serde_json::to_string(&*notice.event).unwrap();
        assert!(!text.contains(SECRET), "{text}");
        names.push(notice.event.name.to_string());
    }
    for name in [
        "MessageSubscribed",
        "MessageCorrelated",
        "UserTaskCreated",
        "IncidentRaised",
        "InstanceStarted",
    ] {
        assert!(names.iter().any(|seen| seen == name), "{name} of {names:?}");
    }
    let mut quoted = 0;
    while let Some(notice) = with_values.next().await {
        quoted += usize::from(serde_json::to_string(&*notice.event).unwrap().contains(SECRET));
    }
    assert!(quoted >= 4, "{quoted}");
}

#[tokio::test(flavor = "multi_thread")]
async fn o02_observers_are_limited_and_none_is_taken_after_the_end() {
    let stand = stand().await;
    let many: Vec<_> = (0..MOST_OBSERVERS)
        .map(|_| {
            stand
                .runtime
                .observe(ObserveOptions::new().queue(DEFAULT_QUEUE))
                .unwrap()
        })
        .collect();
    let refused = stand.runtime.observe(ObserveOptions::new()).unwrap_err();
    assert_eq!(refused.code(), "too-many-observers");
    drop(many);
    let mut last = stand.runtime.observe(ObserveOptions::new()).unwrap();
    stand.runtime.shutdown(ShutdownMode::Park, AMPLE).await.unwrap();
    while last.next().await.is_some() {}
    let refused = stand.runtime.observe(ObserveOptions::new());
    assert!(matches!(refused, Err(Error::Stopped)), "{refused:?}");
}
