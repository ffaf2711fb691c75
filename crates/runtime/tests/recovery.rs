//! What an earlier generation left is taken up by the next one: all of it, and nothing twice.

mod support;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use support::log::Log;
use support::simulated::{ms, simulated};
use support::sources::{Does, TestSource};
use support::{BEGINNING, Stand, faulty, slow, stand, stand_on, stand_with, unreachable};
use tidegate::api::Grade;
use tidegate::clock::ManualClock;
use tidegate::model::{InstanceKey, SubStatus};
use tidegate::store::faulty::FaultyStore;
use tidegate::store::{Commit, Store, Write};
use tidegate::{CancelRequest, Options, PausePersistence};

/// Recovers two at a time.
fn in_pairs() -> Options {
    Options {
        recovery_batch: 2,
        owners: 2,
        ..Options::default()
    }
}

fn kept() -> Options {
    Options {
        pause_persistence: PausePersistence::AcrossReactivations,
        ..in_pairs()
    }
}

/// What the readiness says of recovery.
fn recovering(stand: &Stand) -> Option<String> {
    let checks = stand.runtime.readiness();
    let check = checks.into_iter().find(|check| check.name == "recovery").unwrap();
    assert_eq!(check.grade, Grade::Healthy);
    check.reason
}

/// Leaves five instances behind: two that look as after a crash, since their marks failed, and three that are marked.
async fn left_behind() -> (Arc<FaultyStore>, ManualClock, Vec<InstanceKey>) {
    let store = faulty();
    let stand = stand_on(store.clone(), ManualClock::new(BEGINNING), |b| {
        b.options(in_pairs())
    })
    .await;
    stand.deploy(slow("slow", "demo.sleep", "PT1H")).await;
    let mut keys = Vec::new();
    for _ in 0..5 {
        keys.push(stand.start("slow", "{}").await.instance);
    }
    keys.sort_unstable();
    let unmarked: BTreeSet<InstanceKey> = keys[..2].iter().copied().collect();
    let is_of =
        move |write: &Write| matches!(write, Write::UpdateInstance(update) if unmarked.contains(&update.key));
    store.fail_commits(move |commit: &Commit| commit.writes.iter().any(&is_of).then(unreachable));
    let outcome = stand.runtime.force_drain(None, "op").await.unwrap();
    assert_eq!(
        (
            outcome.persistence_failure_count,
            outcome.execution_cycles_force_cancelled_count
        ),
        (2, 3)
    );
    store.mend();
    (store, stand.clock, keys)
}

#[tokio::test(start_paused = true)]
async fn r01_r05_the_log_says_how_many_were_interrupted_and_how_many_had_crashed() {
    let (_pace, _stepping) = simulated();
    let (store, clock, keys) = left_behind().await;
    let (log, _taking) = Log::taken();
    let next = stand_on(store, clock, |b| b.options(in_pairs())).await;
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(
        log.lines("recovery is done"),
        ["INFO recovery is done interrupted=3 crashed=2"]
    );
    assert_eq!(recovering(&next), None);
    assert_eq!(next.listed(SubStatus::Executing).await.len(), keys.len());
    for (at, key) in keys.into_iter().enumerate() {
        let attempts = next.runtime.instance(key).await.unwrap().row.attempts;
        assert_eq!(attempts, u32::from(at < 2));
    }
    next.runtime.force_drain(None, "op").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_store_that_cannot_be_read_is_asked_again_each_second() {
    let (_pace, _stepping) = simulated();
    let (store, clock, _) = left_behind().await;
    store.fail_reads_of("recoverable", unreachable());
    let before = store.reads_of("recoverable");
    let next = stand_on(store.clone(), clock, |b| b.options(in_pairs())).await;
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    assert_eq!(store.reads_of("recoverable") - before, 3);
    assert_eq!(recovering(&next).as_deref(), Some("recovering 0 of 5"));
    store.mend();
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert_eq!(recovering(&next), None);
    assert_eq!(next.listed(SubStatus::Executing).await.len(), 5);
    next.runtime.force_drain(None, "op").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn r09_behind_a_kept_pause_recovery_waits_and_does_nothing() {
    let (_pace, _stepping) = simulated();
    let (store, clock, _) = left_behind().await;
    let paused = stand_on(store.clone(), clock.clone(), |b| b.options(kept())).await;
    paused.runtime.pause(None, None, "op").await.unwrap();
    let reads = store.reads_of("recoverable");
    let next = stand_on(store.clone(), clock, |b| b.options(kept())).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(
        store.reads_of("recoverable"),
        reads,
        "the store is left alone meanwhile"
    );
    assert_eq!(recovering(&next).as_deref(), Some("recovering 0 of 5"));
    next.runtime.resume("op").await.unwrap();
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(recovering(&next), None);
    assert_eq!(next.listed(SubStatus::Executing).await.len(), 5);
    next.runtime.force_drain(None, "op").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn r09_recovery_waits_for_the_gate_while_another_source_takes_its_time_to_resume() {
    let (_pace, _stepping) = simulated();
    let (store, clock, _) = left_behind().await;
    let paused = stand_on(store.clone(), clock.clone(), |b| b.options(kept())).await;
    paused.runtime.pause(None, None, "op").await.unwrap();
    let slow = TestSource::new("broker", Does::Well)
        .resuming(Does::Hang)
        .shared();
    let next = stand_on(store.clone(), clock, |b| b.options(kept()).source(slow)).await;
    tokio::time::sleep(ms(1)).await;
    let reads = store.reads_of("recoverable");
    let runtime = next.runtime.clone();
    let resuming = tokio::spawn(async move { runtime.resume("op").await });
    tokio::time::sleep(ms(20)).await;
    assert!(!next.runtime.quiescence().is_accepting());
    assert_eq!(store.reads_of("recoverable"), reads);
    resuming.await.unwrap().unwrap();
    tokio::time::sleep(ms(1)).await;
    assert_eq!(next.listed(SubStatus::Executing).await.len(), 5);
    next.runtime.force_drain(None, "op").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn n03_what_was_being_cancelled_goes_on_ending_behind_a_kept_pause_and_nothing_else_does() {
    let stand = stand_with(|b| b.options(kept())).await;
    stand.deploy(slow("deaf", "demo.stubborn", "PT1H")).await;
    let patient = CancelRequest::by("op", Duration::from_secs(3_600));
    let mut cancelled = Vec::new();
    for _ in 0..4 {
        let key = stand.start("deaf", "{}").await.instance;
        let row = stand.runtime.ask_to_cancel(key, &patient).await.unwrap();
        assert_eq!(row.sub_status, SubStatus::Cancelling);
        cancelled.push(key);
    }
    let other = stand.start("deaf", "{}").await.instance;
    stand.runtime.pause(None, None, "op").await.unwrap();
    // As good as killed: the next one takes the store from it.
    let next = stand_on(stand.store.clone(), stand.clock.clone(), |b| b.options(kept())).await;
    for key in cancelled {
        next.until(key, |d| d.row.sub_status == SubStatus::Cancelled)
            .await;
    }
    let detail = next.runtime.instance(other).await.unwrap();
    assert_eq!(
        (detail.row.sub_status, detail.row.attempts),
        (SubStatus::Executing, 0)
    );
    next.runtime.resume("op").await.unwrap();
    next.until(other, |d| d.row.attempts == 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn recovery_ends_beside_any_number_of_newer_instances() {
    let first = stand().await;
    first.deploy(slow("slow", "demo.stubborn", "PT1H")).await;
    let old = first.start("slow", "{}").await.instance;
    let store: Arc<dyn Store> = first.store.clone();
    let next = stand_on(store, first.clock.clone(), |b| b.options(in_pairs())).await;
    for _ in 0..5 {
        next.start("slow", "{}").await;
    }
    next.until(old, |d| d.row.attempts == 1).await;
    support::eventually("recovery is done", async || recovering(&next).is_none()).await;
    assert_eq!(next.listed(SubStatus::Executing).await.len(), 6);
}
