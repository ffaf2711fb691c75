//! Suspending and letting go.

use std::sync::Arc;
use std::time::Duration;

use tidegate::SuspendRequest;
use tidegate::api::{Acceptance, StartRequest};
use tidegate::clock::ManualClock;
use tidegate::model::{
    ElementInstanceKey, HeldTimers, HoldScope, InstanceKey, LifecycleState, SubStatus, Variables,
};
use tidegate::status::DrainTrigger;
use tidegate::store::{InstanceFilter, Page};

use crate::support::model::{MESSAGE, ON_MESSAGE, boundary, call, model, work};
use crate::support::{
    BEGINNING, Stand, eventually, jobs, line, slow, stand, stand_on, stores, task, waits_for_message,
    waits_for_timer,
};

const LONG: Duration = Duration::from_secs(20);

pub fn held() -> SuspendRequest {
    SuspendRequest {
        reason: Some("audit".to_owned()),
        wait: LONG,
        ..SuspendRequest::by("ann")
    }
}

impl Stand {
    async fn suspend(&self, instance: InstanceKey) {
        let suspension = self.runtime.suspend(instance, held()).await.unwrap();
        assert!(suspension.is_effective);
        assert_eq!(suspension.row.sub_status, SubStatus::Held);
    }

    async fn release(&self, instance: InstanceKey) {
        self.runtime.resume_instance(instance, None, "ann").await.unwrap();
    }

    async fn sub_status(&self, instance: InstanceKey) -> SubStatus {
        self.runtime.instance(instance).await.unwrap().row.sub_status
    }

    pub async fn children(&self, parent: InstanceKey) -> Vec<InstanceKey> {
        let filter = InstanceFilter {
            parent: Some(parent),
            ..InstanceFilter::default()
        };
        let rows = self.runtime.instances(filter, Page::first(10_000)).await.unwrap();
        rows.into_iter().map(|row| row.key).collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn n06_n07_case_071_messages_for_a_held_instance_are_answered_at_once_and_come_in_order() {
    for (store, _folder) in stores() {
        let clock = ManualClock::new(BEGINNING);
        let first = stand_on(store.clone(), clock.clone(), |b| b).await;
        first.deploy(waits_for_message("waits", 21)).await;
        let key = first.start("waits", r#"{"key": "k"}"#).await.instance;
        first.suspend(key).await;
        let row = first.runtime.instance(key).await.unwrap().row;
        assert_eq!(row.sub_status.lifecycle(), LifecycleState::Suspended);
        let journal = first.events(key).await.len();
        for n in 0..10 {
            let published = first.publish("go", "k", &format!(r#"{{"last": {n}}}"#)).await;
            // The first is matched; those behind it wait for the next catch event.
            assert_eq!(published.deferred_for, published.delivered_to);
            assert_eq!(published.delivered_to.len(), usize::from(n == 0));
        }
        assert_eq!(first.events(key).await.len(), journal, "nothing moves");
        first.runtime.drain(DrainTrigger::HostStopSignal).await;
        assert!(first.runtime.release().await);

        // A restart changes nothing.
        let next = stand_on(store, clock, |b| b).await;
        next.runtime.recovered().await;
        for n in 10..20 {
            next.publish("go", "k", &format!(r#"{{"last": {n}}}"#)).await;
        }
        next.idle().await;
        assert_eq!(next.sub_status(key).await, SubStatus::Held);
        next.release(key).await;
        next.until(key, |d| d.waiting_for.iter().any(|w| w.element_id == "catch20"))
            .await;
        let items = next.runtime.history(key, 0, 100_000).await.unwrap();
        let order: Vec<_> = items
            .iter()
            .filter(|item| item.event == "MessageCorrelated")
            .collect();
        assert_eq!(order.len(), 20);
        let detail = next.runtime.instance(key).await.unwrap();
        assert_eq!(detail.variables.get("last").unwrap().text(), "19");
        assert!(detail.holds.is_empty());
        next.publish("go", "k", "{}").await;
        next.finished(key).await;
        next.runtime.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn n06_n07_case_073_a_due_timer_of_a_held_instance_leaves_the_scan_and_fires_once() {
    for (store, _folder) in stores() {
        let stand = stand_on(store, ManualClock::new(BEGINNING), |b| b).await;
        stand.deploy(waits_for_timer("naps", "PT1M")).await;
        let key = stand.start("naps", "{}").await.instance;
        stand.suspend(key).await;
        let journal = stand.events(key).await.len();
        for _ in 0..100 {
            stand.clock.advance(60_000);
            stand.runtime.progress().await;
            let far = stand.clock_now().plus_ms(1_000_000);
            assert!(stand.store.timers(far, None, 10).unwrap().is_empty());
        }
        assert_eq!(stand.events(key).await.len(), journal);
        assert_eq!(stand.store.queue().unwrap().depth, 0);
        stand.release(key).await;
        stand.finished(key).await;
        assert_eq!(stand.times(key, "TimerFired wait").await, 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn n06_case_077_the_clock_of_a_held_instance_keeps_running_or_stands_still_as_was_said() {
    const HOUR: i64 = 3_600_000;
    let stand = stand().await;
    stand.deploy(waits_for_timer("hour", "PT1H")).await;
    let runs = stand.start("hour", "{}").await.instance;
    let stops = stand.start("hour", "{}").await.instance;
    stand.clock.advance(HOUR / 2);
    for (key, timers) in [(runs, HeldTimers::KeepRunning), (stops, HeldTimers::StandStill)] {
        let request = SuspendRequest {
            timers: Some(timers),
            ..held()
        };
        assert_eq!(stand.runtime.suspend(key, request).await.unwrap().timers, timers);
    }
    assert_eq!(
        stand.runtime.instance(stops).await.unwrap().holds[0].timers,
        HeldTimers::StandStill
    );
    stand.clock.advance(2 * HOUR);
    stand.release(runs).await;
    stand.release(stops).await;
    stand.finished(runs).await;
    // Half an hour is left of it.
    stand.runtime.progress().await;
    let left = stand.runtime.instance(stops).await.unwrap();
    let due = BEGINNING.plus_ms(3 * HOUR).to_string();
    assert_eq!(left.waiting_for[0].detail, due);
    stand.clock.advance(HOUR / 2);
    stand.finished(stops).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn n06_case_075_a_job_that_is_out_may_complete_and_its_consequence_waits() {
    for (store, _folder) in stores() {
        let stand = stand_on(store, ManualClock::new(BEGINNING), |b| b).await;
        let steps = [
            ("pay", task("pay", "pay", &[])),
            ("pack", task("pack", "pack", &[])),
        ];
        stand.deploy(line("order", &steps)).await;
        let out = stand.start("order", "{}").await.instance;
        let job = stand.job("pay").await;
        let offered = stand.start("order", "{}").await.instance;
        stand.suspend(out).await;
        stand.suspend(offered).await;
        // Nobody gets a job of theirs, also when the lease has ended.
        stand.clock.advance(3_600_000);
        let none = stand
            .runtime
            .activate_jobs(jobs("pay", Duration::ZERO))
            .await
            .unwrap();
        assert_eq!(none, []);
        let variables = Variables::parse(r#"{"paid": true}"#).unwrap();
        let taken = stand
            .runtime
            .complete_job(job.job, &job.lease_token, variables.clone())
            .await;
        assert!(matches!(taken, Ok(Acceptance::Queued(_))), "{taken:?}");
        let twice = stand
            .runtime
            .complete_job(job.job, &job.lease_token, variables)
            .await;
        assert_eq!(twice.unwrap_err().code(), "stale-lease");
        stand.runtime.progress().await;
        assert_eq!(stand.times(out, "JobCompleted pay").await, 0);
        stand.release(out).await;
        stand.complete("pack", "{}").await;
        let ended = stand.finished(out).await;
        assert_eq!(ended.variables.unwrap().get("paid").unwrap().text(), "true");
        assert_eq!(stand.times(out, "JobCreated pay").await, 1);
        assert_eq!(stand.times(out, "JobCompleted pay").await, 1);
        stand.release(offered).await;
        stand.complete("pay", "{}").await;
        stand.complete("pack", "{}").await;
        stand.finished(offered).await;
    }
}

/// A parent with a call, and with three instances of another call; each child does a job, then the parent does one.
async fn family(stand: &Stand) -> (InstanceKey, Vec<InstanceKey>) {
    stand
        .deploy(model(
            "child",
            "",
            &format!(r#"<startEvent id="s"/>{}<endEvent id="e"/>"#, work("chore")),
            "s>chore>e",
        ))
        .await;
    let each = r#"<callActivity id="each"><extensionElements><zeebe:calledElement processId="child"/></extensionElements>
        <multiInstanceLoopCharacteristics><loopCardinality>3</loopCardinality></multiInstanceLoopCharacteristics></callActivity>"#;
    let body = format!(
        r#"<startEvent id="s"/><parallelGateway id="f"/>{}{each}<parallelGateway id="j"/><endEvent id="e"/>"#,
        call("one", "child")
    );
    stand
        .deploy(model("parent", "", &body, "s>f>one>j>e f>each>j"))
        .await;
    let parent = stand.start("parent", "{}").await.instance;
    eventually("all children wait", async || {
        let children = stand.children(parent).await;
        let mut waiting = 0;
        for child in &children {
            waiting += stand.runtime.instance(*child).await.unwrap().waiting_for.len();
        }
        children.len() == 4 && waiting == 4
    })
    .await;
    let children = stand.children(parent).await;
    (parent, children)
}

#[tokio::test(flavor = "multi_thread")]
async fn n06_case_076_the_whole_call_tree_is_held_or_the_instance_alone() {
    for (store, _folder) in stores() {
        let stand = stand_on(store, ManualClock::new(BEGINNING), |b| b).await;
        let (parent, children) = family(&stand).await;
        let tree = stand.runtime.suspend(parent, held()).await.unwrap();
        assert_eq!(
            (tree.scope, tree.is_effective, tree.held_instances),
            (HoldScope::Tree, true, 5)
        );
        for child in &children {
            let detail = stand.runtime.instance(*child).await.unwrap();
            assert_eq!(detail.row.sub_status, SubStatus::Held);
            assert_eq!(
                (detail.holds[0].origin, detail.holds[0].actor.as_str()),
                (parent, "ann")
            );
        }
        let none = stand
            .runtime
            .activate_jobs(jobs("chore", Duration::ZERO))
            .await
            .unwrap();
        assert_eq!(none, []);
        stand.release(parent).await;
        eventually("the children are let go", async || {
            stand.listed(SubStatus::Held).await.is_empty()
        })
        .await;

        let request = SuspendRequest {
            scope: HoldScope::Alone,
            ..held()
        };
        let alone = stand.runtime.suspend(parent, request).await.unwrap();
        assert_eq!((alone.scope, alone.held_instances), (HoldScope::Alone, 1));
        for _ in 0..4 {
            stand.complete("chore", "{}").await;
        }
        for child in &children {
            stand.finished(*child).await;
        }
        stand.runtime.progress().await;
        assert_eq!(stand.sub_status(parent).await, SubStatus::Held);
        assert_eq!(stand.times(parent, "ChildEnded one").await, 0, "the news waits");
        stand.release(parent).await;
        stand.finished(parent).await;
    }
}

/// User tasks, all at once, and one behind them.
async fn review(stand: &Stand, tasks: usize) -> (InstanceKey, Vec<ElementInstanceKey>) {
    let key = stand.start("review", "{}").await.instance;
    let detail = stand.until(key, |d| d.waiting_for.len() == tasks).await;
    let open = detail.waiting_for.iter().map(|wait| wait.element_instance_key);
    (key, open.collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn case_070_buffered_commands_are_executed_in_order_and_a_bad_one_becomes_an_incident() {
    const TASKS: usize = 10_000;
    const BAD: usize = 36;
    let stand = stand().await;
    let each = format!(
        r#"<startEvent id="s"/><userTask id="t"><multiInstanceLoopCharacteristics><loopCardinality>{TASKS}</loopCardinality></multiInstanceLoopCharacteristics></userTask>
        <userTask id="last"/><endEvent id="e"/>"#
    );
    stand.deploy(model("review", "", &each, "s>t>last>e")).await;
    let (key, tasks) = review(&stand, TASKS).await;
    stand.suspend(key).await;
    for (n, task) in tasks.iter().enumerate() {
        let variables = Variables::parse(&format!(r#"{{"last": {n}}}"#)).unwrap();
        let taken = stand.runtime.complete_user_task(*task, variables, "bob").await;
        assert!(matches!(taken, Ok(Acceptance::Queued(_))));
        if n == BAD {
            // Once more: by then it is done.
            let none = Variables::new();
            let again = stand.runtime.complete_user_task(*task, none, "eve").await;
            assert!(matches!(again, Ok(Acceptance::Queued(_))));
        }
    }
    let before = stand.runtime.instance(key).await.unwrap().row.revision;
    let began = std::time::Instant::now();
    stand.release(key).await;
    let detail = stand
        .until(key, |d| d.waiting_for.iter().any(|w| w.element_id == "last"))
        .await;
    println!("{TASKS} buffered commands were executed in {:?}", began.elapsed());
    let commits = detail.row.revision - before;
    assert!(commits <= (TASKS / 100) as u64, "they share commits: {commits}");
    let incident = stand.incident().await;
    assert_eq!(
        (incident.code.as_str(), incident.instance),
        ("stimulus-refused", key)
    );
    assert!(
        incident.message.contains(&tasks[BAD].to_string()) && incident.message.contains("eve"),
        "{}",
        incident.message
    );
    let items = stand.runtime.history(key, 0, 10_000_000).await.unwrap();
    let done = items.iter().filter(|item| item.event == "UserTaskCompleted");
    let done: Vec<_> = done.filter_map(|item| item.element_instance_key).collect();
    assert!(
        done.iter()
            .map(|key| key.get())
            .eq(tasks.iter().map(|key| key.get())),
        "in order, each once"
    );

    // The same without a suspension comes to the same.
    let (twin, tasks) = review(&stand, TASKS).await;
    for (n, task) in tasks.iter().enumerate() {
        let variables = Variables::parse(&format!(r#"{{"last": {n}}}"#)).unwrap();
        let taken = stand.runtime.complete_user_task(*task, variables, "bob").await;
        assert_eq!(taken.unwrap(), Acceptance::Done);
    }
    let twin = stand.runtime.instance(twin).await.unwrap();
    assert_eq!(twin.variables.to_json(), detail.variables.to_json());
    let places = |detail: &tidegate::api::InstanceDetail| {
        let places = detail.tokens.iter().map(|token| token.element_id.clone());
        places.collect::<Vec<_>>()
    };
    assert_eq!(places(&twin), places(&detail));

    stand
        .runtime
        .retry_incident(incident.key, None, "op")
        .await
        .unwrap();
    let last = detail.waiting_for[0].element_instance_key;
    stand
        .runtime
        .complete_user_task(last, Variables::new(), "bob")
        .await
        .unwrap();
    stand.finished(key).await;
    assert_eq!(stand.runtime.instance(key).await.unwrap().row.incident_count, 0);
    assert_eq!(stand.runtime.status().await.unwrap().stimulus_queue.depth, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn case_064_freezing_stops_at_the_next_durable_point_and_says_who_froze() {
    let stand = stand().await;
    let steps = [
        ("one", task("one", "demo.sleep", &[("duration", "PT0.05S")])),
        ("two", task("two", "demo.noop", &[])),
    ];
    stand.deploy(line("steps", &steps)).await;
    let key = stand.start("steps", "{}").await.instance;
    stand.suspend(key).await;
    let events = stand.events(key).await;
    assert!(
        !events.iter().any(|event| event.starts_with("JobCompleted")),
        "{events:?}"
    );
    // What the running one brought is kept, and its consequence waits.
    eventually("its result is kept", async || {
        stand.store.queue().unwrap().depth == 1
    })
    .await;
    assert_eq!(stand.runtime.instance(key).await.unwrap().holds[0].actor, "ann");
    let status = stand.runtime.status().await.unwrap();
    assert!(
        status.state.is_accepting_new_work,
        "the runtime itself is not paused"
    );
    stand.release(key).await;
    stand.finished(key).await;
    assert_eq!(
        (
            stand.times(key, "JobCompleted one").await,
            stand.times(key, "JobCompleted two").await
        ),
        (1, 1)
    );
}

/// Counts how often it runs.
struct Counted(Arc<std::sync::atomic::AtomicUsize>);

impl tidegate::activity::Activity for Counted {
    fn run(&self, _: tidegate::activity::ActivityContext) -> tidegate::activity::ActivityFuture {
        let runs = self.0.clone();
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(30)).await;
            runs.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            Ok(Variables::new())
        })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn n06_what_a_handler_brought_to_a_held_instance_survives_a_restart_and_is_not_done_again() {
    for (store, _folder) in stores() {
        let clock = ManualClock::new(BEGINNING);
        let runs = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let counted = || Arc::new(Counted(runs.clone()));
        let first = stand_on(store.clone(), clock.clone(), |b| b.activity("counted", counted())).await;
        first
            .deploy(line("once", &[("one", task("one", "counted", &[]))]))
            .await;
        let key = first.start("once", "{}").await.instance;
        first.suspend(key).await;
        eventually("its result is kept", async || {
            first.store.queue().unwrap().depth == 1
        })
        .await;
        first.runtime.drain(DrainTrigger::HostStopSignal).await;
        assert!(first.runtime.release().await);
        let next = stand_on(store, clock, |b| b.activity("counted", counted())).await;
        next.runtime.recovered().await;
        next.runtime.progress().await;
        assert_eq!(next.sub_status(key).await, SubStatus::Held);
        next.release(key).await;
        next.finished(key).await;
        assert_eq!(runs.load(std::sync::atomic::Ordering::Relaxed), 1);
        next.runtime.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn n06_a_hold_at_once_cuts_what_runs_and_uses_up_no_try() {
    for (store, _folder) in stores() {
        let clock = ManualClock::new(BEGINNING);
        let stand = stand_on(store.clone(), clock.clone(), |b| b).await;
        stand.deploy(slow("stubborn", "demo.stubborn", "PT0.3S")).await;
        let key = stand.start("stubborn", "{}").await.instance;
        stand
            .until(key, |d| d.row.sub_status == SubStatus::Executing)
            .await;
        let request = SuspendRequest { now: true, ..held() };
        let suspension = stand.runtime.suspend(key, request).await.unwrap();
        assert_eq!(suspension.row.sub_status, SubStatus::Held);
        let items = stand.runtime.history(key, 0, 100).await.unwrap();
        let cut = items
            .iter()
            .find(|item| item.event == "WorkflowInterrupted")
            .unwrap();
        assert_eq!(
            (cut.payload["reason"].as_str(), cut.payload["reasonText"].as_str()),
            (Some("OperatorForce"), Some("audit"))
        );
        stand.idle().await;
        assert_eq!(stand.times(key, "JobFailed work").await, 0);
        stand.release(key).await;
        stand.finished(key).await;
        assert_eq!(stand.times(key, "JobCompleted work").await, 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn r10_what_is_held_and_interrupted_resumes_only_when_it_is_let_go() {
    for (store, _folder) in stores() {
        let clock = ManualClock::new(BEGINNING);
        let brief = tidegate::Options {
            drain_deadline: Duration::from_millis(10),
            owners: 2,
            ..tidegate::Options::default()
        };
        let first = stand_on(store.clone(), clock.clone(), |b| b.options(brief)).await;
        first.deploy(slow("slow", "demo.sleep", "PT0.2S")).await;
        first.deploy(slow("long", "demo.sleep", "PT1H")).await;
        let key = first.start("long", "{}").await.instance;
        // It is asked for while the activity runs, and not yet effective.
        let request = SuspendRequest {
            wait: Duration::ZERO,
            ..held()
        };
        let asked = first.runtime.suspend(key, request).await.unwrap();
        assert!(!asked.is_effective && asked.row.sub_status == SubStatus::Executing);
        first.runtime.drain(DrainTrigger::HostStopSignal).await;
        assert_eq!(first.sub_status(key).await, SubStatus::Held, "held wins");
        assert_eq!(
            first.times(key, "WorkflowInterrupted").await,
            1,
            "the record stays"
        );
        assert!(first.runtime.release().await);

        let next = stand_on(store, clock, |b| b).await;
        next.runtime.recovered().await;
        next.runtime.progress().await;
        assert_eq!(next.sub_status(key).await, SubStatus::Held);
        next.release(key).await;
        next.until(key, |d| d.row.sub_status == SubStatus::Executing)
            .await;
        let mut at_once = tidegate::CancelRequest::by("op", LONG);
        at_once.patience = Some(Duration::ZERO);
        next.runtime.cancel_and_wait(key, at_once).await.unwrap();
        next.runtime.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn n07_let_go_while_the_runtime_is_paused_the_work_follows_at_its_resume() {
    let stand = stand().await;
    stand.deploy(slow("slow", "demo.sleep", "PT0.02S")).await;
    stand.runtime.pause(None, None, "op").await.unwrap();
    let key = stand.start("slow", "{}").await.instance;
    stand.suspend(key).await;
    stand.runtime.resume("op").await.unwrap();
    stand.runtime.progress().await;
    assert_eq!(stand.sub_status(key).await, SubStatus::Held, "it has not begun");
    stand.runtime.pause(None, None, "op").await.unwrap();
    stand.release(key).await;
    stand.runtime.resume("op").await.unwrap();
    stand.finished(key).await;

    let key = stand.start("slow", "{}").await.instance;
    let request = SuspendRequest { now: true, ..held() };
    stand.runtime.suspend(key, request).await.unwrap();
    stand.runtime.pause(None, None, "op").await.unwrap();
    stand.release(key).await;
    stand.until(key, |d| d.row.sub_status != SubStatus::Held).await;
    stand.runtime.resume("op").await.unwrap();
    stand.finished(key).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn n08_suspend_and_resume_are_idempotent_and_audited_once() {
    let stand = stand().await;
    stand.deploy(waits_for_message("waits", 1)).await;
    let key = stand.start("waits", r#"{"key": "k"}"#).await.instance;
    stand.release(key).await;
    for actor in ["ann", "bob"] {
        let request = SuspendRequest {
            actor: actor.to_owned(),
            ..held()
        };
        stand.runtime.suspend(key, request).await.unwrap();
    }
    assert_eq!(
        stand.runtime.instance(key).await.unwrap().holds[0].actor,
        "ann",
        "the first stays"
    );
    let calls: Vec<_> = (0..16)
        .map(|n| {
            let runtime = stand.runtime.clone();
            tokio::spawn(async move {
                match n % 2 {
                    0 => runtime.suspend(key, held()).await.map(drop),
                    _ => runtime.resume_instance(key, None, "bob").await.map(drop),
                }
            })
        })
        .collect();
    for call in calls {
        call.await.unwrap().unwrap();
    }
    stand.release(key).await;
    let audited = stand.audited().await;
    let of = |action: &str| audited.iter().filter(|a| *a == action).count();
    assert_eq!(of("InstanceSuspendRequested"), of("InstanceResumeRequested"));
    assert_eq!(
        stand.times(key, "InstanceHeld").await,
        of("InstanceSuspendRequested")
    );
    stand.publish("go", "k", "{}").await;
    stand.finished(key).await;
    let ended = stand.runtime.suspend(key, held()).await.unwrap_err();
    assert_eq!(ended.code(), "instance-ended");
    let unknown = stand
        .runtime
        .resume_instance(InstanceKey(1), None, "ann")
        .await
        .unwrap_err();
    assert_eq!(unknown.code(), "instance-not-found");
}

#[tokio::test(flavor = "multi_thread")]
async fn n06_a_boundary_message_of_a_held_host_waits_and_what_is_started_waits_too() {
    let stand = stand().await;
    let body = format!(
        r#"<startEvent id="s"/>{}{}<endEvent id="e"/><endEvent id="b"/>"#,
        work("pay"),
        boundary("cut", "pay", ON_MESSAGE)
    );
    stand
        .deploy(model("guarded", MESSAGE, &body, "s>pay>e cut>b"))
        .await;
    let key = stand.start("guarded", r#"{"key": "k"}"#).await.instance;
    stand.suspend(key).await;
    stand.publish("go", "k", "{}").await;
    let set = stand
        .runtime
        .set_variables(key, Variables::parse(r#"{"v": 1}"#).unwrap(), "op")
        .await;
    assert!(matches!(set, Ok(Acceptance::Queued(_))));
    stand.runtime.progress().await;
    assert_eq!(stand.sub_status(key).await, SubStatus::Held);
    stand.release(key).await;
    stand.finished(key).await;
    assert_eq!(stand.times(key, "ElementCompleted b").await, 1);

    // A start that waits for an end does not hang on a held instance.
    let waits = StartRequest::latest("guarded").wait(Duration::from_millis(20));
    assert_eq!(
        stand.runtime.start(waits).await.unwrap_err().code(),
        "wait-ran-out"
    );
}

impl Stand {
    fn clock_now(&self) -> tidegate::model::Timestamp {
        use tidegate::clock::Clock;
        self.clock.now()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn case_065_a_hold_races_with_a_result_and_the_status_agrees_with_it() {
    const ROUNDS: usize = 1_000;
    let stand = Arc::new(stand().await);
    stand
        .deploy(line("pays", &[("pay", task("pay", "pay", &[]))]))
        .await;
    for round in 0..ROUNDS {
        let key = stand.start("pays", "{}").await.instance;
        let job = stand.job("pay").await;
        let reporting = stand.clone();
        let report = tokio::spawn(async move {
            reporting
                .runtime
                .complete_job(job.job, &job.lease_token, Variables::new())
                .await
        });
        let suspended = stand.runtime.suspend(key, held()).await;
        report.await.unwrap().expect("the result is accepted");
        let detail = stand.runtime.instance(key).await.unwrap();
        let is_held = detail.row.sub_status == SubStatus::Held;
        assert_eq!(
            is_held,
            !detail.holds.is_empty() && !detail.row.sub_status.is_finished(),
            "round {round}"
        );
        match suspended {
            Ok(_) => stand.release(key).await,
            Err(error) => assert_eq!(error.code(), "instance-ended"),
        }
        stand.finished(key).await;
    }
}
