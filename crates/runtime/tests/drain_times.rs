//! How long each step of a drain takes, to the millisecond: on simulated time, with every deadline at its own moment.

mod support;

use std::time::Duration;

use support::log::Log;
use support::simulated::{ms, simulated};
use support::sources::{Does, TestSource};
use support::{BEGINNING, Stand, faulty, flow, line, process, slow, stand_on, stand_with, task, unreachable};
use tidegate::clock::ManualClock;
use tidegate::model::SubStatus;
use tidegate::plan::DrainPlan;
use tidegate::status::{DrainOutcome, DrainResult, DrainTrigger, Fate};
use tidegate::store::{Page, Write};
use tidegate::{CancelRequest, Options};

const STOP: DrainTrigger = DrainTrigger::HostStopSignal;
/// Cycles may run for a second, and half a second is kept for their outcomes.
fn strictly() -> Options {
    Options {
        host_grace: Some(ms(1_500)),
        owners: 2,
        ..Options::default()
    }
}

/// Pause, wait, settle, persist.
fn phases(outcome: &DrainOutcome) -> [Duration; 4] {
    [
        outcome.pause_phase_duration,
        outcome.wait_phase_duration,
        outcome.settle_phase_duration,
        outcome.persist_phase_duration,
    ]
}

async fn begun(stand: &Stand) -> tokio::task::JoinHandle<DrainOutcome> {
    let runtime = stand.runtime.clone();
    let drain = tokio::spawn(async move { runtime.drain(STOP).await });
    while !stand.runtime.quiescence().is_draining() {
        tokio::task::yield_now().await;
    }
    drain
}

#[tokio::test(start_paused = true)]
async fn d06_d15_a_deaf_activity_is_waited_for_until_its_result_would_no_longer_count() {
    let (_pace, _stepping) = simulated();
    let stand = stand_with(|b| b.options(strictly())).await;
    stand.deploy(slow("deaf", "demo.stubborn", "PT1H")).await;
    stand.start("deaf", "{}").await;
    tokio::time::sleep(ms(7)).await;
    let outcome = stand.runtime.drain(STOP).await;
    assert_eq!(phases(&outcome), [ms(0), ms(1_000), ms(250), ms(0)]);
    assert_eq!(
        (outcome.overall_result, outcome.trigger),
        (DrainResult::DeadlineExceeded, STOP)
    );
    assert_eq!(
        (outcome.cycles[0].fate, outcome.cycles[0].age_ms),
        (Fate::Abandoned, 1_257)
    );
    assert_eq!(
        (
            outcome.execution_cycles_completed_count,
            outcome.execution_cycles_force_cancelled_count,
            outcome.execution_cycles_abandoned_count
        ),
        (0, 1, 1)
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_being_cancelled_at_the_deadline_is_ended_and_not_resumed() {
    let (_pace, _stepping) = simulated();
    let stand = stand_with(|b| b.options(strictly())).await;
    stand.deploy(slow("deaf", "demo.stubborn", "PT1H")).await;
    let key = stand.start("deaf", "{}").await.instance;
    let patient = CancelRequest::by("op", ms(3_600_000));
    let asked = stand.runtime.ask_to_cancel(key, &patient).await.unwrap();
    assert_eq!(asked.sub_status, SubStatus::Cancelling);
    let outcome = stand.runtime.drain(STOP).await;
    assert_eq!(phases(&outcome), [ms(0), ms(1_000), ms(250), ms(0)]);
    assert_eq!(stand.listed(SubStatus::Cancelled).await, [key]);
    assert_eq!(
        (
            outcome.execution_cycles_force_cancelled_count,
            outcome.persistence_failure_count
        ),
        (0, 0)
    );
}

#[tokio::test(start_paused = true)]
async fn d06_what_stops_when_told_to_ends_the_settling_at_once() {
    let (_pace, _stepping) = simulated();
    let stand = stand_with(|b| b.options(strictly())).await;
    stand.deploy(slow("slow", "demo.sleep", "PT1H")).await;
    stand.deploy(slow("short", "demo.sleep", "PT0.4S")).await;
    stand.start("slow", "{}").await;
    stand.start("short", "{}").await;
    let outcome = stand.runtime.drain(STOP).await;
    assert_eq!(phases(&outcome), [ms(0), ms(1_000), ms(0), ms(0)]);
    assert_eq!(
        (
            outcome.execution_cycles_completed_count,
            outcome.execution_cycles_force_cancelled_count,
            outcome.execution_cycles_abandoned_count
        ),
        (1, 1, 0)
    );
}

#[tokio::test(start_paused = true)]
async fn d16_a_store_that_hangs_has_until_four_fifths_of_the_reserve() {
    let (_pace, _stepping) = simulated();
    let store = faulty();
    let stand = stand_on(store.clone(), ManualClock::new(BEGINNING), |b| {
        b.options(strictly())
    })
    .await;
    stand.deploy(slow("slow", "demo.sleep", "PT1H")).await;
    stand.start("slow", "{}").await;
    store.hang();
    let outcome = stand.runtime.drain(STOP).await;
    // The entry in the audit trail is waited for a little while, too.
    assert_eq!(phases(&outcome), [ms(0), ms(1_000), ms(0), ms(400)]);
    assert_eq!(
        (
            outcome.persistence_failure_count,
            outcome.execution_cycles_completed_count
        ),
        (1, 0)
    );
    assert_eq!(
        outcome.cycles[0].activity.as_deref(),
        Some("work"),
        "its owner spoke for it"
    );
    assert_eq!(outcome.overall_result, DrainResult::DeadlineExceeded);
    store.mend();
}

#[tokio::test(start_paused = true)]
async fn a_drain_that_needed_more_than_is_kept_for_its_outcomes_warns() {
    let (_pace, _stepping) = simulated();
    let (log, _taking) = Log::taken();
    // Results count until half of the reserve is gone; the store then has as long as is kept for it, and no longer.
    for (activity, warnings) in [("demo.stubborn", 0), ("demo.sleep", 1)] {
        let store = faulty();
        let stand = stand_on(store.clone(), ManualClock::new(BEGINNING), |b| {
            b.options(strictly())
        })
        .await;
        stand.deploy(slow("slow", activity, "PT1H")).await;
        stand.start("slow", "{}").await;
        store.hang();
        stand.runtime.drain(STOP).await;
        let told = log.lines("make `persist-reserve` larger");
        assert_eq!(told.len(), warnings, "{told:?}");
        store.mend();
    }
    assert_eq!(log.lines("INFO the outcomes of cut cycles").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn d16_where_nobody_says_how_long_the_host_waits_a_slow_store_has_two_seconds() {
    let (_pace, _stepping) = simulated();
    let store = faulty();
    let options = Options {
        host_grace: None,
        drain_deadline: ms(1_000),
        ..strictly()
    };
    let stand = stand_on(store.clone(), ManualClock::new(BEGINNING), |b| b.options(options)).await;
    stand.deploy(slow("slow", "demo.sleep", "PT1H")).await;
    stand.start("slow", "{}").await;
    store.hang();
    let outcome = stand.runtime.drain(STOP).await;
    assert_eq!(phases(&outcome), [ms(0), ms(1_000), ms(0), ms(2_000)]);
    store.mend();
}

#[tokio::test(start_paused = true)]
async fn d16_an_owner_that_does_not_answer_is_spoken_for_a_moment_later() {
    let (pace, _stepping) = simulated();
    let options = Options {
        owners: 1,
        ..strictly()
    };
    let stand = stand_with(|b| b.options(options)).await;
    stand.deploy(slow("slow", "demo.sleep", "PT1H")).await;
    let key = stand.start("slow", "{}").await.instance;
    pace.stick(0);
    let outcome = stand.runtime.drain(STOP).await;
    // The queue cannot be paused without its owner. An owner may take 20 ms longer than it was told.
    assert_eq!(phases(&outcome), [ms(1_000), ms(0), ms(250), ms(170)]);
    let [line] = outcome.cycles.as_slice() else {
        panic!("{outcome:?}")
    };
    assert_eq!(
        (line.instance_id, line.fate, line.source.as_deref(), line.age_ms),
        (key, Fate::PersistenceFailed, None, 1_420)
    );
    assert_eq!(outcome.persistence_failure_count, 1);
    assert!(outcome.force_cancelled_instance_ids.is_empty());
}

#[tokio::test(start_paused = true)]
async fn d23_case_033_a_commit_that_fails_in_a_drain_is_tried_again_every_25_ms_until_the_marks_must_be_there()
 {
    let (_pace, _stepping) = simulated();
    let store = faulty();
    let stand = stand_on(store.clone(), ManualClock::new(BEGINNING), |b| {
        b.options(strictly())
    })
    .await;
    stand.deploy(slow("slow", "demo.sleep", "PT0.5S")).await;
    stand.start("slow", "{}").await;
    let drain = begun(&stand).await;
    store.fail_all(unreachable());
    tokio::time::sleep(ms(499)).await;
    assert_eq!(store.failed(), 0);
    tokio::time::sleep(ms(2)).await;
    assert_eq!(store.failed(), 1, "the activity has ended");
    tokio::time::sleep(ms(23)).await;
    assert_eq!(store.failed(), 1);
    tokio::time::sleep(ms(2)).await;
    assert_eq!(store.failed(), 2);
    tokio::time::sleep(ms(100)).await;
    assert_eq!(store.failed(), 6);
    let outcome = drain.await.unwrap();
    assert_eq!(phases(&outcome), [ms(0), ms(1_000), ms(0), ms(400)]);
    assert_eq!(outcome.persistence_failure_count, 1);
}

/// Two tasks at once.
fn two_at_once(a: &str, b: &str) -> tidegate::api::Resource {
    let sleeps = |id, duration| task(id, "demo.sleep", &[("duration", duration)]);
    let body = format!(
        r#"<bpmn:startEvent id="s"/><bpmn:parallelGateway id="fork"/>{}{}{}{}{}"#,
        sleeps("a", a),
        sleeps("b", b),
        flow("s", "fork"),
        flow("fork", "a"),
        flow("fork", "b"),
    );
    process("two", &body)
}

fn ends(write: &Write) -> bool {
    matches!(write, Write::UpdateInstance(update) if update.sub_status.is_finished())
}

#[tokio::test(start_paused = true)]
async fn d23_case_033_what_stands_on_a_commit_that_failed_is_tried_again_behind_it() {
    let (_pace, _stepping) = simulated();
    let store = faulty();
    let stand = stand_on(store.clone(), ManualClock::new(BEGINNING), |b| {
        b.options(strictly())
    })
    .await;
    stand.deploy(two_at_once("PT0.3S", "PT0.4S")).await;
    let key = stand.start("two", "{}").await.instance;
    let drain = begun(&stand).await;
    // The first one fails, the second one was made to stand on it; both are told late.
    store.hold_answers();
    store.fail_commits(|commit| (!commit.writes.iter().any(ends)).then(unreachable));
    tokio::time::sleep(ms(500)).await;
    assert_eq!(store.failed(), 1);
    store.mend();
    let outcome = drain.await.unwrap();
    assert_eq!(phases(&outcome), [ms(0), ms(525), ms(0), ms(0)]);
    assert_eq!(outcome.overall_result, DrainResult::CompletedWithinDeadline);
    assert_eq!(stand.listed(SubStatus::Finished).await, [key]);
    for job in ["JobCompleted a", "JobCompleted b"] {
        assert_eq!(stand.times(key, job).await, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn d23_case_033_what_follows_while_a_commit_is_tried_again_waits_behind_it() {
    let (_pace, _stepping) = simulated();
    let store = faulty();
    let stand = stand_on(store.clone(), ManualClock::new(BEGINNING), |b| {
        b.options(strictly())
    })
    .await;
    stand.deploy(two_at_once("PT0.3S", "PT0.41S")).await;
    let key = stand.start("two", "{}").await.instance;
    let drain = begun(&stand).await;
    store.fail_all(unreachable());
    tokio::time::sleep(ms(440)).await;
    assert_eq!(
        store.failed(),
        1 + 5 + 1,
        "the first one at once and five times more, then both"
    );
    store.mend();
    let outcome = drain.await.unwrap();
    assert_eq!(phases(&outcome), [ms(0), ms(450), ms(0), ms(0)]);
    assert_eq!(outcome.overall_result, DrainResult::CompletedWithinDeadline);
    assert_eq!(stand.listed(SubStatus::Finished).await, [key]);
    assert_eq!(stand.times(key, "JobCompleted b").await, 1);
}

#[tokio::test(start_paused = true)]
async fn d23_what_stood_on_a_lost_commit_of_before_the_drain_does_not_delay_its_mark() {
    let (_pace, _stepping) = simulated();
    let store = faulty();
    let stand = stand_on(store.clone(), ManualClock::new(BEGINNING), |b| {
        b.options(strictly())
    })
    .await;
    stand.deploy(two_at_once("PT0.3S", "PT0.4S")).await;
    let key = stand.start("two", "{}").await.instance;
    tokio::time::sleep(ms(1)).await;
    store.hold_answers();
    store.fail_all(unreachable());
    tokio::time::sleep(ms(349)).await;
    assert_eq!(store.failed(), 1, "made while the gate was open");
    let drain = begun(&stand).await;
    tokio::time::sleep(ms(150)).await;
    assert_eq!(store.failed(), 2);
    store.mend();
    let outcome = drain.await.unwrap();
    assert_eq!(phases(&outcome), [ms(0), ms(150), ms(0), ms(0)]);
    assert_eq!(outcome.cycles[0].fate, Fate::Interrupted);
    assert_eq!(stand.listed(SubStatus::Interrupted).await, [key]);
}

#[tokio::test(start_paused = true)]
async fn a_drain_of_a_generation_that_lost_the_store_does_not_try_again() {
    let (_pace, _stepping) = simulated();
    let stand = stand_with(|b| b.options(strictly())).await;
    stand.deploy(slow("slow", "demo.sleep", "PT0.5S")).await;
    stand.start("slow", "{}").await;
    let drain = begun(&stand).await;
    stand.store.activate().unwrap();
    let outcome = drain.await.unwrap();
    assert_eq!(phases(&outcome), [ms(0), ms(500), ms(0), ms(0)]);
    assert_eq!(
        (outcome.persistence_failure_count, outcome.cycles[0].fate),
        (1, Fate::PersistenceFailed)
    );
}

#[tokio::test(start_paused = true)]
async fn c05_what_rests_and_waits_only_for_its_commit_at_the_deadline_is_not_cut() {
    let (_pace, _stepping) = simulated();
    let store = faulty();
    let stand = stand_on(store.clone(), ManualClock::new(BEGINNING), |b| {
        b.options(strictly())
    })
    .await;
    let steps = [
        ("work", task("work", "demo.sleep", &[("duration", "PT0.5S")])),
        ("pay", task("pay", "pay", &[])),
    ];
    stand.deploy(line("pays", &steps)).await;
    stand.deploy(slow("ends", "demo.sleep", "PT0.5S")).await;
    let rests = stand.start("pays", "{}").await.instance;
    let ends = stand.start("ends", "{}").await.instance;
    let drain = begun(&stand).await;
    store.hang();
    tokio::time::sleep(ms(1_200)).await;
    store.mend();
    let outcome = drain.await.unwrap();
    assert_eq!(phases(&outcome), [ms(0), ms(1_000), ms(0), ms(200)]);
    assert_eq!(
        (
            outcome.execution_cycles_completed_count,
            outcome.execution_cycles_force_cancelled_count
        ),
        (2, 0)
    );
    assert_eq!(outcome.overall_result, DrainResult::CompletedWithinDeadline);
    assert_eq!(stand.listed(SubStatus::Suspended).await, [rests]);
    assert_eq!(stand.listed(SubStatus::Finished).await, [ends]);
}

#[tokio::test(start_paused = true)]
async fn d04_a_source_that_hangs_takes_its_timeout_and_no_more_than_the_deadline() {
    let (_pace, _stepping) = simulated();
    let hanging = || TestSource::new("broker", Does::Hang).within(ms(5_000)).shared();
    // A drain waits for it until the deadline; one that is forced gives it half of the reserve.
    let stand = stand_with(|b| b.options(strictly()).source(hanging())).await;
    let outcome = stand.runtime.drain(STOP).await;
    assert_eq!(phases(&outcome), [ms(1_000), ms(0), ms(0), ms(0)]);
    let stand = stand_with(|b| b.options(strictly()).source(hanging())).await;
    let outcome = stand.runtime.force_drain(None, "op").await.unwrap();
    assert_eq!(phases(&outcome), [ms(250), ms(0), ms(0), ms(0)]);
    assert_eq!(
        (outcome.overall_result, outcome.trigger),
        (DrainResult::Forced, DrainTrigger::OperatorForce)
    );
}

#[tokio::test(start_paused = true)]
async fn d08_force_in_the_middle_waits_neither_for_sources_nor_for_cycles() {
    let (_pace, _stepping) = simulated();
    let hanging = TestSource::new("broker", Does::Hang).within(ms(5_000)).shared();
    let stand = stand_with(|b| b.options(strictly()).source(hanging)).await;
    stand.deploy(slow("slow", "demo.sleep", "PT1H")).await;
    stand.start("slow", "{}").await;
    let drain = begun(&stand).await;
    tokio::time::sleep(ms(100)).await;
    stand.runtime.force_drain(None, "op").await.unwrap();
    let outcome = drain.await.unwrap();
    assert_eq!(phases(&outcome), [ms(100), ms(0), ms(0), ms(0)]);
    assert_eq!(outcome.cycles[0].fate, Fate::Interrupted);
}

#[tokio::test(start_paused = true)]
async fn d08_of_two_who_force_the_first_is_written_down() {
    let (_pace, _stepping) = simulated();
    let stand = stand_with(|b| b.options(strictly())).await;
    stand.deploy(slow("deaf", "demo.stubborn", "PT1H")).await;
    let key = stand.start("deaf", "{}").await.instance;
    let force = |reason: &str, actor: &'static str| {
        let (runtime, reason) = (stand.runtime.clone(), Some(reason.to_owned()));
        tokio::spawn(async move { runtime.force_drain(reason, actor).await.unwrap() })
    };
    let first = force("fire", "ann");
    tokio::time::sleep(ms(100)).await;
    let second = force("again", "bob");
    let outcome = first.await.unwrap();
    assert_eq!(second.await.unwrap(), outcome);
    assert_eq!(phases(&outcome), [ms(0), ms(0), ms(250), ms(0)]);
    let items = stand.runtime.history(key, 0, 1_000).await.unwrap();
    let record = items
        .iter()
        .find(|item| item.event == "WorkflowInterrupted")
        .unwrap();
    assert_eq!(
        (&record.payload["reason"], &record.payload["reasonText"]),
        (&"OperatorForce".into(), &"fire".into()),
        "{}",
        record.payload
    );
    let audit = stand.runtime.audit(Page::first(100)).await.unwrap();
    let forces: Vec<_> = audit
        .iter()
        .filter(|row| row.action == "RuntimeForceDrainRequested")
        .map(|row| (row.actor.as_str(), row.reason.as_deref()))
        .collect();
    assert_eq!(forces, [("ann", Some("fire"))]);
}

#[tokio::test(start_paused = true)]
async fn the_status_says_when_a_drain_began_and_when_it_cuts() {
    let (_pace, _stepping) = simulated();
    let stand = stand_with(|b| b.options(strictly())).await;
    stand.deploy(slow("slow", "demo.sleep", "PT1H")).await;
    stand.start("slow", "{}").await;
    let times = async || {
        let state = stand.runtime.status().await.unwrap().state;
        (state.drain_started_at, state.drain_deadline_at)
    };
    assert_eq!(times().await, (None, None));
    stand.clock.advance(40);
    let drain = begun(&stand).await;
    let began = BEGINNING.plus_ms(40);
    let expected = (Some(began), Some(began.plus_ms(1_000)));
    assert_eq!(times().await, expected);
    stand.clock.advance(1_300);
    let outcome = drain.await.unwrap();
    assert_eq!(
        (outcome.started_at, outcome.completed_at),
        (began, began.plus_ms(1_300))
    );
    assert_eq!(times().await, expected);
    assert_eq!(stand.listed(SubStatus::Interrupted).await.len(), 1);

    let forced = stand_with(|b| b.options(strictly())).await;
    forced.runtime.force_drain(None, "op").await.unwrap();
    let state = forced.runtime.status().await.unwrap().state;
    assert_eq!(
        (state.drain_started_at, state.drain_deadline_at),
        (Some(BEGINNING), Some(BEGINNING)),
        "what is forced has no time to run"
    );
}

#[test]
fn the_plan_has_the_times_that_the_drain_keeps_to() {
    let until = |options: &Options| -> Vec<u64> {
        DrainPlan::of(options, &[])
            .steps
            .iter()
            .map(|step| step.until_ms)
            .collect()
    };
    assert_eq!(until(&strictly()), [0, 1_000, 1_000, 1_250, 1_400, 1_500, 1_500]);
    let long = Options {
        persist_reserve: ms(1_000),
        host_grace: Some(ms(9_000)),
        ingress_pause_timeout: ms(3_000),
        ..strictly()
    };
    assert_eq!(until(&long), [0, 3_000, 8_000, 8_500, 8_800, 9_000, 9_000]);
    let patient = Options {
        host_grace: None,
        drain_deadline: ms(1_000),
        ..strictly()
    };
    let plan = DrainPlan::of(&patient, &[]);
    assert_eq!(until(&patient), [0, 1_000, 1_000, 1_250, 3_000, 3_100, 3_100]);
    assert_eq!(
        (plan.at_most_ms, plan.host_grace_ms, plan.reserve),
        (3_100, None, None)
    );
}
