//! Cancelling: in every state, rung by rung, in bounded steps.

use std::sync::Arc;
use std::time::Duration;

use tidegate::clock::ManualClock;
use tidegate::model::{InstanceKey, LifecycleState, SubStatus, Variables};
use tidegate::status::DrainTrigger;
use tidegate::store::{Page, Queries};
use tidegate::{CancelRequest, Error, SuspendRequest};

use super::hold::held;
use crate::support::model::{MESSAGE, ON_MESSAGE, boundary, call, flows, model, work};
use crate::support::{
    BEGINNING, Stand, eventually, line, process, slow, stand, stand_on, stores, task, waits_for_message,
};

const LONG: Duration = Duration::from_secs(20);

fn within(wait: Duration) -> CancelRequest {
    CancelRequest {
        reason: Some("enough".to_owned()),
        ..CancelRequest::by("op", wait)
    }
}

fn at_once() -> CancelRequest {
    CancelRequest {
        patience: Some(Duration::ZERO),
        ..within(LONG)
    }
}

async fn cancelled(stand: &Stand, key: InstanceKey) {
    let row = stand.runtime.cancel_and_wait(key, within(LONG)).await.unwrap();
    assert_eq!(
        (row.sub_status, row.sub_status.lifecycle()),
        (SubStatus::Cancelled, LifecycleState::Terminated)
    );
    let ends = stand.events(key).await;
    let ends: Vec<_> = ends
        .iter()
        .filter(|event| {
            ["InstanceCompleted", "InstanceCancelled", "InstanceFaulted"].contains(&event.as_str())
        })
        .collect();
    assert_eq!(ends, ["InstanceCancelled"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn n01_cancel_stops_everything_and_is_answered_again_at_once() {
    for (store, _folder) in stores() {
        let stand = stand_on(store, ManualClock::new(BEGINNING), |b| b).await;
        stand.deploy(slow("inner", "demo.sleep", "PT1H")).await;
        let body = format!(
            r#"<startEvent id="s"/><parallelGateway id="f"/>{}{}{}<receiveTask id="r" messageRef="m"/>"#,
            call("c", "inner"),
            work("ext"),
            r#"<serviceTask id="own"><extensionElements><zeebe:taskDefinition type="demo.sleep"/><zeebe:taskHeaders><zeebe:header key="duration" value="PT1H"/></zeebe:taskHeaders></extensionElements></serviceTask>"#,
        );
        stand
            .deploy(model("outer", MESSAGE, &body, "s>f>c f>ext f>own f>r"))
            .await;
        let key = stand.start("outer", r#"{"key": "k"}"#).await.instance;
        eventually("the child works", async || {
            let children = stand.children(key).await;
            match children.first() {
                Some(child) => {
                    stand.runtime.instance(*child).await.unwrap().row.sub_status == SubStatus::Executing
                }
                None => false,
            }
        })
        .await;
        let child = stand.children(key).await[0];
        cancelled(&stand, key).await;
        // It ends behind what it has called.
        let child = stand.runtime.instance(child).await.unwrap().row;
        assert_eq!(child.sub_status, SubStatus::Cancelled);
        let again = stand
            .runtime
            .cancel_and_wait(key, within(Duration::ZERO))
            .await
            .unwrap();
        assert_eq!(again.sub_status, SubStatus::Cancelled);
        stand.idle().await;
        assert_eq!(stand.runtime.status().await.unwrap().stimulus_queue.depth, 0);
        let published = stand.publish("go", "k", "{}").await;
        assert!(published.delivered_to.is_empty(), "its wait is gone");
        let audited = stand.audited().await;
        assert_eq!(
            audited.iter().filter(|a| *a == "InstanceCancelRequested").count(),
            1
        );
        let rows = stand.runtime.audit(Page::first(1)).await.unwrap();
        assert_eq!(
            (rows[0].actor.as_str(), rows[0].reason.as_deref()),
            ("op", Some("enough"))
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn n02_case_129_what_ignores_the_request_is_waited_for_then_abandoned_and_each_rung_is_recorded() {
    let stand = stand().await;
    stand.deploy(slow("stubborn", "demo.stubborn", "PT1H")).await;
    let key = stand.start("stubborn", "{}").await.instance;
    let Err(Error::StillCancelling(row)) = stand
        .runtime
        .cancel_and_wait(key, within(Duration::from_millis(50)))
        .await
    else {
        panic!("it cannot have stopped");
    };
    assert_eq!(
        (row.sub_status, row.sub_status.lifecycle()),
        (SubStatus::Cancelling, LifecycleState::Terminating)
    );
    let detail = stand.runtime.instance(key).await.unwrap();
    assert_eq!(detail.cancellation.unwrap().reason.as_deref(), Some("enough"));
    let suspend = stand.runtime.suspend(key, held()).await.unwrap_err();
    assert_eq!(suspend.code(), "instance-cancelling");
    let row = stand.runtime.cancel_and_wait(key, at_once()).await.unwrap();
    assert_eq!(row.sub_status, SubStatus::Cancelled);
    let events = stand.events(key).await;
    let rungs: Vec<_> = events
        .iter()
        .filter(|event| event.contains("Cancel") || event.contains("Abandoned"))
        .map(String::as_str)
        .collect();
    assert_eq!(
        rungs,
        [
            "CancelRequested",
            "CancelRequested",
            "ActivityAbandoned work",
            "InstanceCancelled"
        ]
    );
    stand.idle().await;
    assert_eq!(stand.runtime.quiescence().live(), 0, "its slot is free");
}

#[tokio::test(flavor = "multi_thread")]
async fn n02_the_request_stands_and_lands_when_the_activity_ends() {
    let stand = stand().await;
    stand.deploy(slow("stubborn", "demo.stubborn", "PT0.3S")).await;
    let key = stand.start("stubborn", "{}").await.instance;
    let early = stand.runtime.cancel_and_wait(key, within(Duration::ZERO)).await;
    assert_eq!(early.unwrap_err().code(), "wait-ran-out");
    let ended = stand.runtime.wait(key, LONG).await.unwrap();
    assert_eq!(ended.sub_status, SubStatus::Cancelled);
    assert_eq!(
        stand.times(key, "JobCompleted work").await,
        0,
        "its result is not taken"
    );
    assert_eq!(stand.times(key, "ActivityAbandoned work").await, 0);

    // The runtime's own patience abandons without being asked again.
    let key = stand.start("stubborn", "{}").await.instance;
    let impatient = CancelRequest {
        patience: Some(Duration::from_millis(20)),
        ..within(LONG)
    };
    stand.runtime.cancel_and_wait(key, impatient).await.unwrap();
    assert_eq!(stand.times(key, "ActivityAbandoned work").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn n03_case_083_cancel_lands_in_every_state() {
    for (store, _folder) in stores() {
        let stand = stand_on(store, ManualClock::new(BEGINNING), |b| b).await;
        stand.deploy(waits_for_message("waits", 1)).await;
        stand
            .deploy(line("fails", &[("t", task("t", "demo.panic", &[]))]))
            .await;
        stand.deploy(slow("slow", "demo.sleep", "PT1H")).await;

        let parked = stand.start("waits", r#"{"key": "parked"}"#).await.instance;
        cancelled(&stand, parked).await;

        let suspended = stand.start("waits", r#"{"key": "held"}"#).await.instance;
        stand.runtime.suspend(suspended, held()).await.unwrap();
        stand.publish("go", "held", "{}").await;
        cancelled(&stand, suspended).await;

        let troubled = stand.start("fails", "{}").await.instance;
        stand.incident().await;
        cancelled(&stand, troubled).await;
        assert_eq!(
            stand.runtime.instance(troubled).await.unwrap().row.incident_count,
            0
        );

        let executing = stand.start("slow", "{}").await.instance;
        cancelled(&stand, executing).await;

        let cut = stand.start("slow", "{}").await.instance;
        let request = SuspendRequest { now: true, ..held() };
        stand.runtime.suspend(cut, request).await.unwrap();
        cancelled(&stand, cut).await;

        let parked = stand.start("waits", r#"{"key": "paused"}"#).await.instance;
        stand.runtime.pause(None, None, "op").await.unwrap();
        let pending = stand.start("waits", r#"{"key": "new"}"#).await.instance;
        cancelled(&stand, pending).await;
        cancelled(&stand, parked).await;
        stand.runtime.resume("op").await.unwrap();
        eventually("the queue is empty", async || {
            stand.runtime.status().await.unwrap().stimulus_queue.depth == 0
        })
        .await;

        let parked = stand.start("waits", r#"{"key": "drained"}"#).await.instance;
        stand.runtime.drain(DrainTrigger::HostStopSignal).await;
        cancelled(&stand, parked).await;
        stand.runtime.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn n03_a_call_tree_is_cancelled_also_while_the_runtime_is_paused() {
    let stand = stand().await;
    stand
        .deploy(line("leaf", &[("pay", task("pay", "pay", &[]))]))
        .await;
    for (id, called) in [("middle", "leaf"), ("root", "middle")] {
        let body = format!(r#"<startEvent id="s"/>{}<endEvent id="e"/>"#, call("c", called));
        stand.deploy(model(id, "", &body, "s>c>e")).await;
    }
    let root = stand.start("root", "{}").await.instance;
    let job = stand.job("pay").await;
    stand.runtime.pause(None, None, "op").await.unwrap();
    // What the leaf has to tell stands in the queue, behind the closed gate.
    let done = stand
        .runtime
        .complete_job(job.job, &job.lease_token, Variables::new())
        .await;
    assert!(done.is_ok());
    cancelled(&stand, root).await;
    for key in [job.instance, stand.children(root).await[0]] {
        assert_eq!(
            stand.runtime.instance(key).await.unwrap().row.sub_status,
            SubStatus::Cancelled
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn n04_n05_the_end_is_told_once_behind_the_record_and_to_late_subscribers_at_once() {
    for (store, _folder) in stores() {
        let stand = Arc::new(stand_on(store, ManualClock::new(BEGINNING), |b| b).await);
        stand
            .deploy(line("pays", &[("pay", task("pay", "pay", &[]))]))
            .await;
        for _ in 0..100 {
            let key = stand.start("pays", "{}").await.instance;
            let job = stand.job("pay").await;
            let waiting = stand.clone();
            let waits = tokio::spawn(async move {
                let ended = waiting.runtime.wait(key, LONG).await.unwrap();
                // What it was told is on record already.
                let row = waiting.store.instance(key).unwrap().unwrap();
                assert_eq!(row.sub_status, ended.sub_status);
                ended.sub_status
            });
            let reporting = stand.clone();
            let report = tokio::spawn(async move {
                reporting
                    .runtime
                    .complete_job(job.job, &job.lease_token, Variables::new())
                    .await
                    .is_ok()
            });
            let row = stand.runtime.cancel_and_wait(key, within(LONG)).await.unwrap();
            let was_taken = report.await.unwrap();
            let told = waits.await.unwrap();
            assert_eq!(told, row.sub_status);
            assert!(was_taken || told == SubStatus::Cancelled);
            let late = stand.runtime.wait(key, Duration::from_secs(20)).await.unwrap();
            assert_eq!(late.sub_status, told);
            let events = stand.events(key).await;
            let ends = events
                .iter()
                .filter(|event| *event == "InstanceCompleted" || *event == "InstanceCancelled");
            assert_eq!(ends.count(), 1);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn n04_case_126_a_call_is_interrupted_while_its_child_completes_and_one_path_is_taken() {
    let rounds = if cfg!(debug_assertions) { 200 } else { 1_000 };
    let rounds = std::env::var("TIDEGATE_LONG").map_or(rounds, |_| 1_000);
    let stand = Arc::new(stand().await);
    stand
        .deploy(line("child", &[("pay", task("pay", "pay", &[]))]))
        .await;
    let body = format!(
        r#"<startEvent id="s"/>{}{}<endEvent id="e"/><endEvent id="b"/>"#,
        call("c", "child"),
        boundary("cut", "c", ON_MESSAGE)
    );
    stand.deploy(model("parent", MESSAGE, &body, "s>c>e cut>b")).await;
    for round in 0..rounds {
        let parent = stand
            .start("parent", &format!(r#"{{"key": "{round}"}}"#))
            .await
            .instance;
        let job = stand.job("pay").await;
        let interrupting = stand.clone();
        let interrupt = tokio::spawn(async move {
            interrupting.publish("go", &round.to_string(), "{}").await;
        });
        let report = stand
            .runtime
            .complete_job(job.job, &job.lease_token, Variables::new());
        let (_, interrupt) = tokio::join!(report, interrupt);
        interrupt.unwrap();
        let ended = stand.runtime.wait(parent, LONG).await.unwrap();
        assert_eq!(ended.sub_status, SubStatus::Finished);
        let child = stand.runtime.wait(job.instance, LONG).await.unwrap();
        let events = stand.events(parent).await;
        let ends = [("e", SubStatus::Finished), ("b", SubStatus::Cancelled)]
            .map(|(end, _)| events.contains(&format!("ElementCompleted {end}")));
        assert!(ends[0] != ends[1], "round {round}: {events:?}");
        if child.sub_status == SubStatus::Cancelled {
            assert!(ends[1], "round {round}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn case_130_a_cancel_is_durable_and_a_restart_goes_on_with_it() {
    for (store, _folder) in stores() {
        let clock = ManualClock::new(BEGINNING);
        let first = stand_on(store.clone(), clock.clone(), |b| b).await;
        first.deploy(slow("stubborn", "demo.stubborn", "PT1H")).await;
        let body = format!(
            r#"<startEvent id="s"/>{}<endEvent id="e"/>"#,
            call("c", "stubborn")
        );
        first.deploy(model("parent", "", &body, "s>c>e")).await;
        let key = first.start("parent", "{}").await.instance;
        eventually("the child works", async || {
            !first.listed(SubStatus::Executing).await.is_empty() && !first.children(key).await.is_empty()
        })
        .await;
        let child = first.children(key).await[0];
        first
            .until(child, |d| d.row.sub_status == SubStatus::Executing)
            .await;
        let asked = first.runtime.cancel_and_wait(key, within(Duration::ZERO)).await;
        assert_eq!(asked.unwrap_err().code(), "wait-ran-out");
        first
            .until(child, |d| d.row.sub_status == SubStatus::Cancelling)
            .await;
        // A new generation takes hold of the store: the old one is as good as dead, and fenced. It may even be paused.
        let next = stand_on(store, clock, |b| b).await;
        for key in [child, key] {
            let ended = next.runtime.wait(key, LONG).await.unwrap();
            assert_eq!(ended.sub_status, SubStatus::Cancelled);
            assert_eq!(next.times(key, "CrashRecovered").await, 0);
        }
    }
}

/// A process that has so many tokens at once, each at a job.
async fn wide(stand: &Stand, tokens: usize) -> InstanceKey {
    let each = format!(
        r#"<startEvent id="s"/><serviceTask id="w"><extensionElements><zeebe:taskDefinition type="w"/></extensionElements>
        <multiInstanceLoopCharacteristics><loopCardinality>{tokens}</loopCardinality></multiInstanceLoopCharacteristics></serviceTask><endEvent id="e"/>"#
    );
    stand.deploy(model("wide", "", &each, "s>w>e")).await;
    let key = stand.start("wide", "{}").await.instance;
    stand.until(key, |d| d.waiting_for.len() == tokens).await;
    key
}

#[tokio::test(flavor = "multi_thread")]
async fn case_127_a_huge_instance_is_cancelled_in_chunks_while_others_go_on() {
    let tokens = if std::env::var_os("TIDEGATE_LONG").is_some() {
        50_000
    } else {
        5_000
    };
    let stand = stand().await;
    let key = wide(&stand, tokens).await;
    stand
        .deploy(line("quick", &[("t", task("t", "demo.noop", &[]))]))
        .await;
    let before = stand.runtime.instance(key).await.unwrap().row.revision;
    let began = std::time::Instant::now();
    let asked = stand.runtime.ask_to_cancel(key, &within(LONG)).await.unwrap();
    assert_eq!(
        asked.sub_status,
        SubStatus::Cancelling,
        "the answer does not wait for it"
    );
    let answered = began.elapsed();
    stand.run("quick", "{}").await;
    let ended = stand.runtime.wait(key, 3 * LONG).await.unwrap();
    assert_eq!(ended.sub_status, SubStatus::Cancelled);
    println!(
        "cancel of {tokens} tokens: asked in {answered:?}, ended in {:?}",
        began.elapsed()
    );
    let commits = stand.runtime.instance(key).await.unwrap().row.revision - before;
    let chunks = (tokens / 1_000) as u64;
    assert!((chunks..=chunks + 2).contains(&commits), "{commits} commits");
}

#[tokio::test(flavor = "multi_thread")]
async fn case_127_a_deep_instance_is_cancelled() {
    const DEEP: usize = 1_000;
    let stand = stand().await;
    let mut body = format!(
        r#"<startEvent id="s0"/>{}<sequenceFlow id="f0" sourceRef="s0" targetRef="w"/>"#,
        work("w")
    );
    for level in 1..DEEP {
        body = format!(
            r#"<startEvent id="s{level}"/><subProcess id="p{level}">{body}</subProcess><sequenceFlow id="f{level}" sourceRef="s{level}" targetRef="p{level}"/>"#
        );
    }
    stand.deploy(model("deep", "", &body, &flows(""))).await;
    let key = stand.start("deep", "{}").await.instance;
    stand.until(key, |d| d.tokens.len() == DEEP).await;
    cancelled(&stand, key).await;
    assert_eq!(stand.times(key, "ElementTerminated w").await, 1);
    assert_eq!(stand.times(key, "ElementTerminated p1").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn case_127_a_thousand_calls_inside_each_other_are_cancelled_while_others_go_on() {
    const DEEP: usize = 1_000;
    let stand = stand().await;
    // It calls itself for ever: as deep as calls may be, that is an incident.
    let body = format!(r#"<startEvent id="s"/>{}<endEvent id="e"/>"#, call("c", "again"));
    stand.deploy(model("again", "", &body, "s>c>e")).await;
    stand
        .deploy(line("quick", &[("t", task("t", "demo.noop", &[]))]))
        .await;
    let root = stand.start("again", "{}").await.instance;
    let incident = stand.incident().await;
    stand.idle().await;
    let rows = async || {
        let filter = tidegate::store::InstanceFilter {
            process_id: Some("again".to_owned()),
            ..Default::default()
        };
        let page = Page::first(2 * DEEP);
        stand.runtime.instances(filter, page).await.unwrap()
    };
    let before = rows().await;
    assert_eq!(before.len(), DEEP + 1);
    let deepest = before.iter().find(|row| row.key == incident.instance).unwrap();
    assert_eq!(deepest.depth as usize, DEEP);

    let asked = stand.runtime.ask_to_cancel(root, &within(LONG)).await.unwrap();
    assert_eq!(
        asked.sub_status,
        SubStatus::Cancelling,
        "the answer does not wait for it"
    );
    stand.run("quick", "{}").await;
    let ended = stand.runtime.wait(root, 3 * LONG).await.unwrap();
    assert_eq!(ended.sub_status, SubStatus::Cancelled);
    for (before, after) in before.iter().zip(rows().await) {
        assert_eq!((before.key, after.sub_status), (after.key, SubStatus::Cancelled));
        let commits = after.revision - before.revision;
        assert!(commits <= 4, "{commits} commits for one level");
    }
    assert!(
        stand
            .runtime
            .incidents(Default::default(), Page::first(1))
            .await
            .unwrap()
            .is_empty()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn case_127_how_deep_calls_may_be_is_set() {
    let few = tidegate::Options {
        deepest_call: 3,
        ..tidegate::Options::default()
    };
    let stand = crate::support::stand_with(|builder| builder.options(few)).await;
    let body = format!(r#"<startEvent id="s"/>{}<endEvent id="e"/>"#, call("c", "again"));
    stand.deploy(model("again", "", &body, "s>c>e")).await;
    stand.start("again", "{}").await;
    let incident = stand.incident().await;
    assert!(incident.message.contains("3 levels deep"), "{}", incident.message);
    stand.idle().await;
    assert_eq!(stand.listed(SubStatus::Suspended).await.len(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn n01_n06_an_instance_with_many_children_is_suspended_and_cancelled_in_bounded_steps() {
    let many = if std::env::var_os("TIDEGATE_LONG").is_some() {
        10_000
    } else {
        300
    };
    let stand = stand().await;
    stand
        .deploy(line("child", &[("pay", task("pay", "pay", &[]))]))
        .await;
    let each = format!(
        r#"<startEvent id="s"/><callActivity id="c"><extensionElements><zeebe:calledElement processId="child"/></extensionElements>
        <multiInstanceLoopCharacteristics><loopCardinality>{many}</loopCardinality></multiInstanceLoopCharacteristics></callActivity><endEvent id="e"/>"#
    );
    stand.deploy(model("parent", "", &each, "s>c>e")).await;
    let key = stand.start("parent", "{}").await.instance;
    let counts =
        async |sub_status: SubStatus| stand.runtime.counts().await.unwrap()[usize::from(sub_status.code())];
    let deadline = std::time::Instant::now() + Duration::from_secs(300);
    while counts(SubStatus::Suspended).await != many + 1 {
        assert!(std::time::Instant::now() < deadline);
        tokio::task::yield_now().await;
    }
    let began = std::time::Instant::now();
    let request = SuspendRequest {
        wait: 15 * LONG,
        ..held()
    };
    let suspension = stand.runtime.suspend(key, request).await.unwrap();
    assert_eq!(suspension.held_instances as u64, many + 1);
    println!("suspended {many} children in {:?}", began.elapsed());
    let before = stand.runtime.instance(key).await.unwrap().row.revision;
    let began = std::time::Instant::now();
    let row = stand
        .runtime
        .cancel_and_wait(key, within(15 * LONG))
        .await
        .unwrap();
    assert_eq!(row.sub_status, SubStatus::Cancelled);
    println!("cancelled {many} children in {:?}", began.elapsed());
    assert_eq!(counts(SubStatus::Cancelled).await, many + 1);
    // One for each piece of news at most, and one for each chunk of calls that are asked to end.
    assert!(row.revision - before <= many + many.div_ceil(1_000) + 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn n01_n06_a_loop_of_many_turns_is_suspended_and_cancelled() {
    const TURNS: usize = 10_000;
    let stand = stand().await;
    let each = format!(
        r#"<startEvent id="s"/><serviceTask id="w"><extensionElements><zeebe:taskDefinition type="demo.noop"/></extensionElements>
        <multiInstanceLoopCharacteristics isSequential="true"><loopCardinality>{TURNS}</loopCardinality></multiInstanceLoopCharacteristics></serviceTask>
        <endEvent id="e"/>"#
    );
    stand.deploy(model("loops", "", &each, "s>w>e")).await;
    let key = stand.start("loops", "{}").await.instance;
    match stand.runtime.suspend(key, held()).await {
        Ok(suspension) => {
            assert!(suspension.is_effective);
            stand.runtime.progress().await;
            let turns = stand.times(key, "LoopTurnActivated w").await;
            stand.runtime.progress().await;
            assert_eq!(
                stand.times(key, "LoopTurnActivated w").await,
                turns,
                "no turn follows"
            );
            cancelled(&stand, key).await;
        }
        // It was quicker.
        Err(error) => assert_eq!(error.code(), "instance-ended"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn n09_a_terminate_end_event_ends_the_instance_and_tells_siblings_to_stop() {
    let stand = stand().await;
    let sleeps = task("sleeps", "demo.sleep", &[("duration", "PT1H")]);
    let body = format!(
        r#"<bpmn:startEvent id="s"/><bpmn:parallelGateway id="f"/>{sleeps}{}
        <bpmn:endEvent id="t"><bpmn:terminateEventDefinition/></bpmn:endEvent>{}{}{}{}"#,
        task("pay", "pay", &[]),
        crate::support::flow("s", "f"),
        crate::support::flow("f", "sleeps"),
        crate::support::flow("f", "pay"),
        crate::support::flow("pay", "t"),
    );
    stand.deploy(process("ends", &body)).await;
    let key = stand.start("ends", "{}").await.instance;
    stand.complete("pay", "{}").await;
    // The permit is given back only when the sibling has been told and nothing of it runs.
    stand.finished(key).await;
    assert_eq!(stand.times(key, "ElementTerminated sleeps").await, 1);
}

/// Only to have the trait in scope where rows are read beside the runtime.
#[allow(dead_code)]
fn reads(store: &dyn Queries) -> bool {
    store.counts().is_ok()
}
