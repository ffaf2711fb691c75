//! The runtime stops cleanly: pause, drain, cut, force, and recovery of what was left.

mod support;

use std::sync::Arc;
use std::time::Duration;

use support::{
    BEGINNING, Stand, flow, line, process, stand, stand_on, stand_with, task, waits_for_message,
    waits_for_timer,
};
use tidegate::clock::ManualClock;
use tidegate::model::{InstanceKey, SubStatus, Variables};
use tidegate::status::{DrainResult, DrainTrigger, Fate};
use tidegate::store::{InstanceFilter, Page, Store};
use tidegate::{Options, PausePersistence};

fn deadline(deadline: Duration) -> Options {
    Options {
        drain_deadline: deadline,
        owners: 2,
        ..Options::default()
    }
}

fn slow(id: &str, job_type: &str, duration: &str) -> tidegate::api::Resource {
    line(id, &[("work", task("work", job_type, &[("duration", duration)]))])
}

/// Every kind of store that this test can have, with what keeps it alive.
fn stores() -> Vec<(Arc<dyn Store>, Option<tempfile::TempDir>)> {
    let folder = tempfile::tempdir().unwrap();
    let sqlite = tidegate::store::open(&format!("sqlite:{}", folder.path().join("t.db").display())).unwrap();
    vec![
        (Arc::new(tidegate::store::memory::MemoryStore::new()), None),
        (sqlite, Some(folder)),
    ]
}

async fn listed(stand: &Stand, sub_status: SubStatus) -> Vec<InstanceKey> {
    let filter = InstanceFilter {
        sub_statuses: vec![sub_status],
        ..Default::default()
    };
    let rows = stand.runtime.instances(filter, Page::first(1_000)).await.unwrap();
    rows.into_iter().map(|row| row.key).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn b01_b02_b09_a_pause_stops_everything_and_keeps_the_order() {
    for (store, _folder) in stores() {
        let stand = stand_on(store, ManualClock::new(BEGINNING), |b| b).await;
        stand.deploy(waits_for_message("waits", 101)).await;
        stand.deploy(waits_for_timer("naps", "PT1M")).await;
        stand
            .deploy(line("new", &[("t", task("t", "demo.noop", &[]))]))
            .await;
        let waiting = stand.start("waits", r#"{"key": "k"}"#).await.instance;
        let napping = stand.start("naps", "{}").await.instance;
        let status = stand
            .runtime
            .pause(Some("maintenance".into()), None, "op")
            .await
            .unwrap();
        assert!(
            status
                .sources
                .iter()
                .all(|s| s.state == tidegate::status::SourceState::Paused),
            "{status:?}"
        );

        for n in 0..100 {
            let published = stand
                .publish("go", "k", &format!(r#"{{"n{n}": {n}, "last": {n}}}"#))
                .await;
            assert!(published.accepted.is_some());
        }
        stand.clock.advance(120_000);
        let pending = stand.start("new", "{}").await;
        assert_eq!(
            (pending.sub_status, pending.accepted.is_some()),
            (SubStatus::Pending, true)
        );
        let journal = stand.events(waiting).await.len();
        let status = stand.runtime.status().await.unwrap();
        assert_eq!(
            (status.stimulus_queue.depth, status.active_execution_cycle_count),
            (101, 0)
        );
        assert_eq!(
            stand.runtime.instance(napping).await.unwrap().row.sub_status,
            SubStatus::Suspended
        );
        assert_eq!(
            stand.events(waiting).await.len(),
            journal,
            "nothing ran while paused"
        );

        stand.runtime.resume("op").await.unwrap();
        stand
            .runtime
            .wait(napping, Duration::from_secs(20))
            .await
            .unwrap();
        stand
            .runtime
            .wait(pending.instance, Duration::from_secs(20))
            .await
            .unwrap();
        stand
            .until(waiting, |d| {
                d.waiting_for.iter().any(|w| w.element_id == "catch100")
            })
            .await;
        // In the order of acceptance: the journal has them one after the other.
        let items = stand.runtime.history(waiting, 0, 100_000).await.unwrap();
        let order: Vec<&str> = items
            .iter()
            .filter(|item| item.event == "MessageCorrelated")
            .filter_map(|item| item.element_id.as_deref())
            .collect();
        assert_eq!(order, (0..100).map(|n| format!("catch{n}")).collect::<Vec<_>>());
        let detail = stand.runtime.instance(waiting).await.unwrap();
        assert_eq!(detail.variables.get("last").unwrap().text(), "99");
        stand.publish("go", "k", r#"{"last": 100}"#).await;
        let ended = stand
            .runtime
            .wait(waiting, Duration::from_secs(20))
            .await
            .unwrap();
        assert_eq!(ended.variables.unwrap().get("last").unwrap().text(), "100");
        assert_eq!(stand.runtime.status().await.unwrap().stimulus_queue.depth, 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn d05_d09_d10_case_001_a_drain_lets_a_running_activity_come_to_rest() {
    for (store, _folder) in stores() {
        let stand = stand_on(store, ManualClock::new(BEGINNING), |b| b).await;
        stand.deploy(slow("slow", "demo.sleep", "PT0.3S")).await;
        let started = stand.start("slow", "{}").await;
        let draining = stand.runtime.clone();
        let drain = tokio::spawn(async move { draining.drain(DrainTrigger::HostStopSignal).await });
        while !stand.runtime.quiescence().is_draining() {
            tokio::task::yield_now().await;
        }
        let refused = stand.start("slow", "{}").await;
        assert_eq!(
            refused.sub_status,
            SubStatus::Pending,
            "nothing starts after the signal"
        );
        let outcome = drain.await.unwrap();
        assert_eq!(outcome.overall_result, DrainResult::CompletedWithinDeadline);
        assert_eq!(
            (
                outcome.execution_cycles_completed_count,
                outcome.execution_cycles_force_cancelled_count
            ),
            (1, 0)
        );
        let row = stand.runtime.instance(started.instance).await.unwrap().row;
        assert_eq!(
            row.sub_status,
            SubStatus::Finished,
            "at rest in the store before the drain is over"
        );
        assert_eq!(
            stand.runtime.drain(DrainTrigger::HostStopSignal).await,
            outcome,
            "d09"
        );
        assert_eq!(
            stand.runtime.force_drain(None, "op").await.unwrap(),
            outcome,
            "d10"
        );
        stand.runtime.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn d06_r01_r07_case_027_at_the_deadline_cycles_are_cut_and_resume_by_themselves() {
    for (store, _folder) in stores() {
        let clock = ManualClock::new(BEGINNING);
        let stand = stand_on(store.clone(), clock.clone(), |b| {
            b.options(deadline(Duration::from_millis(50)))
        })
        .await;
        stand.deploy(slow("slow", "demo.sleep", "PT1H")).await;
        let key = stand.start("slow", r#"{"v": 1}"#).await.instance;
        let outcome = stand.runtime.drain(DrainTrigger::HostStopSignal).await;
        assert_eq!(outcome.overall_result, DrainResult::DeadlineExceeded);
        assert_eq!(outcome.force_cancelled_instance_ids, [key]);
        assert_eq!(outcome.cycles[0].activity.as_deref(), Some("work"));
        assert_eq!(outcome.cycles[0].fate, Fate::Interrupted);
        assert_eq!(listed(&stand, SubStatus::Interrupted).await, [key]);
        let items = stand.runtime.history(key, 0, 1_000).await.unwrap();
        let records: Vec<_> = items
            .iter()
            .filter(|item| item.event == "WorkflowInterrupted")
            .collect();
        assert_eq!(records.len(), 1);
        let record = &records[0].payload;
        for field in [
            "interruptedAt",
            "reason",
            "generationId",
            "lastActivityId",
            "lastActivityNodeId",
        ] {
            assert!(!record[field].is_null(), "{field} in {record}");
        }
        assert!(record.get("executionCycleDuration").is_some(), "{record}");
        assert!(record.get("ingressSourceName").is_some(), "{record}");
        assert_eq!(
            (&record["reason"], &record["lastActivityNodeId"]),
            (&"DeadlineBreach".into(), &"work".into())
        );
        let retries = |items: &[tidegate::engine::HistoryItem]| {
            items.iter().filter(|item| item.event == "JobFailed").count()
        };
        assert_eq!(retries(&items), 0, "no retry is used up");
        stand.runtime.close().await;
        if store.recoverable(None, 10).is_err() {
            // A closed store of a file is opened anew in the test of the binary.
            continue;
        }

        let next = stand_on(store, clock, |b| b).await;
        let detail = next
            .until(key, |d| d.row.sub_status == SubStatus::Executing)
            .await;
        assert_eq!(detail.row.attempts, 0);
        assert!(next.events(key).await.contains(&"WorkflowInterrupted".to_owned()));
        assert!(!next.events(key).await.contains(&"CrashRecovered".to_owned()));
        next.runtime.cancel(key, None, "op").await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn d15_case_007_case_008_an_activity_that_ignores_cancel_is_abandoned_and_fenced() {
    let stand = stand_with(|b| b.options(deadline(Duration::from_millis(20)))).await;
    stand.deploy(slow("deaf", "demo.stubborn", "PT1H")).await;
    let key = stand.start("deaf", "{}").await.instance;
    let outcome = stand.runtime.drain(DrainTrigger::HostStopSignal).await;
    assert_eq!(
        (outcome.execution_cycles_abandoned_count, outcome.cycles[0].fate),
        (1, Fate::Abandoned)
    );
    assert_eq!(listed(&stand, SubStatus::Interrupted).await, [key]);
    stand.idle().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d07_d08_d11_force_cuts_at_once_and_hurries_a_drain() {
    let stand = stand().await;
    stand.deploy(slow("slow", "demo.sleep", "PT1H")).await;
    let key = stand.start("slow", "{}").await.instance;
    let draining = stand.runtime.clone();
    let graceful = tokio::spawn(async move { draining.drain(DrainTrigger::HostStopSignal).await });
    while !stand.runtime.quiescence().is_draining() {
        tokio::task::yield_now().await;
    }
    let forced = stand.runtime.force_drain(Some("now".into()), "op").await.unwrap();
    assert_eq!(
        (
            forced.overall_result,
            forced.force_cancelled_instance_ids.as_slice()
        ),
        (DrainResult::Forced, &[key][..])
    );
    assert_eq!(graceful.await.unwrap(), forced);
    let record = stand.runtime.history(key, 0, 100).await.unwrap();
    let record = record
        .iter()
        .find(|item| item.event == "WorkflowInterrupted")
        .unwrap();
    assert_eq!(record.payload["reason"], "OperatorForce");

    let idle = support::stand().await;
    let forced = idle.runtime.force_drain(None, "op").await.unwrap();
    assert_eq!(
        (
            forced.overall_result,
            forced.execution_cycles_force_cancelled_count
        ),
        (DrainResult::Forced, 0)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn r05_what_a_crash_left_executing_is_recovered_and_says_so() {
    let stand = stand().await;
    let work = [
        ("first", task("first", "demo.noop", &[])),
        ("second", task("second", "demo.stubborn", &[("duration", "PT1H")])),
    ];
    stand.deploy(line("dies", &work)).await;
    let key = stand.start("dies", "{}").await.instance;
    stand
        .until(key, |d| d.tokens.iter().any(|t| t.element_id == "second"))
        .await;
    // A new generation takes hold of the store: the old one is as good as dead, and fenced.
    let next = stand_on(stand.store.clone(), stand.clock.clone(), |b| b).await;
    next.until(key, |d| d.row.attempts == 1).await;
    let events = next.events(key).await;
    assert_eq!(events.iter().filter(|e| *e == "CrashRecovered").count(), 1);
    assert_eq!(
        events.iter().filter(|e| *e == "JobCompleted first").count(),
        1,
        "what was committed is not run again"
    );
    assert!(listed(&next, SubStatus::Interrupted).await.is_empty());
    let late = stand
        .runtime
        .set_variables(key, Variables::parse(r#"{"late": 1}"#).unwrap(), "old")
        .await;
    assert_eq!(late.unwrap_err().code(), "store-fenced");
    let mut at_once = tidegate::CancelRequest::by("op", Duration::from_secs(20));
    at_once.patience = Some(Duration::ZERO);
    let row = next.runtime.cancel_and_wait(key, at_once).await.unwrap();
    assert_eq!(row.sub_status, SubStatus::Cancelled);
}

#[tokio::test(flavor = "multi_thread")]
async fn r11_case_042_what_kills_the_process_again_and_again_becomes_an_incident() {
    let first = stand().await;
    first.deploy(slow("killer", "demo.stubborn", "PT1H")).await;
    let key = first.start("killer", "{}").await.instance;
    for attempt in 1..=3 {
        let next = stand_on(first.store.clone(), first.clock.clone(), |b| b).await;
        next.until(key, |d| d.row.attempts == attempt).await;
    }
    let last = stand_on(first.store.clone(), first.clock.clone(), |b| b).await;
    let detail = last.until(key, |d| d.row.incident_count == 1).await;
    assert_eq!(detail.row.sub_status, SubStatus::Suspended);
}

#[tokio::test(flavor = "multi_thread")]
async fn r09_case_079_nothing_is_recovered_while_a_kept_pause_is_on() {
    let kept = || Options {
        pause_persistence: PausePersistence::AcrossReactivations,
        ..deadline(Duration::from_millis(20))
    };
    let stand = stand_with(|b| b.options(kept())).await;
    stand.deploy(slow("slow", "demo.sleep", "PT1H")).await;
    let key = stand.start("slow", "{}").await.instance;
    stand
        .runtime
        .pause(Some("night".into()), None, "ann")
        .await
        .unwrap();
    stand.runtime.drain(DrainTrigger::HostStopSignal).await;
    let next = stand_on(stand.store.clone(), stand.clock.clone(), |b| b.options(kept())).await;
    let status = next.runtime.status().await.unwrap();
    assert_eq!(status.state.reason, "AdministrativePause");
    assert_eq!(status.state.pause_requested_by.as_deref(), Some("ann"));
    assert_eq!(status.state.pause_reason_text.as_deref(), Some("night"));
    assert_eq!(listed(&next, SubStatus::Interrupted).await, [key]);
    next.runtime.resume("ann").await.unwrap();
    next.until(key, |d| d.row.sub_status == SubStatus::Executing)
        .await;
    next.runtime.cancel(key, None, "op").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn q03_q04_q05_q06_pause_and_resume_are_idempotent() {
    let stand = stand().await;
    let first = stand
        .runtime
        .pause(Some("one".into()), None, "ann")
        .await
        .unwrap();
    let second = stand
        .runtime
        .pause(Some("two".into()), None, "bob")
        .await
        .unwrap();
    assert_eq!(first.state, second.state);
    let resumed = stand.runtime.resume("bob").await.unwrap();
    assert_eq!(
        (resumed.state.reason.as_str(), resumed.state.paused_at),
        ("None", None)
    );
    stand.runtime.resume("bob").await.unwrap();
    let actions: Vec<_> = stand
        .runtime
        .audit(Page::first(10))
        .await
        .unwrap()
        .into_iter()
        .map(|row| row.action)
        .collect();
    assert_eq!(
        actions,
        ["RuntimeResumeRequested", "RuntimePauseRequested"],
        "repeats write no audit"
    );
    stand.runtime.pause(None, None, "ann").await.unwrap();
    stand.runtime.drain(DrainTrigger::HostStopSignal).await;
    let status = stand.runtime.status().await.unwrap();
    assert_eq!(status.state.reason, "AdministrativePause, Drain");
}

#[tokio::test(flavor = "multi_thread")]
async fn q13_a_pause_with_an_end_ends_by_itself() {
    let stand = stand().await;
    let until = BEGINNING.plus_ms(60_000);
    stand.runtime.pause(None, Some(until), "ann").await.unwrap();
    stand.clock.advance(60_000);
    let mut changes = stand.runtime.watch();
    while !stand.runtime.quiescence().is_accepting() {
        changes.changed().await.unwrap();
    }
    assert_eq!(stand.runtime.status().await.unwrap().state.paused_until, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn n01_cancel_tells_activities_to_stop_and_takes_all_waits_away() {
    let stand = stand().await;
    let body = format!(
        r#"<bpmn:startEvent id="s"/><bpmn:parallelGateway id="fork"/>{}{}
        <bpmn:intermediateCatchEvent id="nap"><bpmn:timerEventDefinition><bpmn:timeDuration>PT1H</bpmn:timeDuration></bpmn:timerEventDefinition></bpmn:intermediateCatchEvent>
        {}{}{}{}"#,
        task("work", "demo.sleep", &[("duration", "PT1H")]),
        task("external", "pay", &[]),
        flow("s", "fork"),
        flow("fork", "work"),
        flow("fork", "external"),
        flow("fork", "nap"),
    );
    stand.deploy(process("busy", &body)).await;
    let key = stand.start("busy", "{}").await.instance;
    for _ in 0..2 {
        let row = stand
            .runtime
            .cancel(key, Some("enough".into()), "op")
            .await
            .unwrap();
        assert_eq!(row.sub_status, SubStatus::Cancelled);
    }
    stand.idle().await;
    assert!(
        stand
            .store
            .timers(BEGINNING.plus_ms(i64::from(i32::MAX)), None, 10)
            .unwrap()
            .is_empty()
    );
    let jobs = stand
        .runtime
        .activate_jobs(support::jobs("pay", Duration::ZERO))
        .await
        .unwrap();
    assert!(jobs.is_empty());
    assert_eq!(
        stand
            .events(key)
            .await
            .iter()
            .filter(|e| *e == "InstanceCancelled")
            .count(),
        1
    );
}
