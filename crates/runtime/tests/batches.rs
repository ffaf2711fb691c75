//! Operations on many instances.

mod support;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use support::{BEGINNING, Stand, line, stand, stand_on, stand_with, task, waits_for_message};
use tidegate::batch::{Batch, BatchMigration, BatchRequest, BatchState, ItemOutcome, Selection, Verb};
use tidegate::clock::ManualClock;
use tidegate::instance_control::SuspendRequest;
use tidegate::model::{InstanceKey, SubStatus};
use tidegate::status::DrainTrigger;
use tidegate::store::faulty::FaultyStore;
use tidegate::store::memory::MemoryStore;
use tidegate::store::{InstanceFilter, Page, Write};

const PATIENCE: Duration = Duration::from_secs(60);

fn request(verb: Verb, process_id: &str) -> BatchRequest {
    BatchRequest {
        verb,
        selection: Selection {
            process_id: Some(process_id.to_owned()),
            ..Selection::default()
        },
        dry_run: false,
        keeps_journal: false,
        migration: None,
        reason: Some("cleaning up".to_owned()),
        actor: "eve".to_owned(),
    }
}

async fn done(stand: &Stand, request: BatchRequest) -> Batch {
    let batch = stand.runtime.create_batch(request).await.unwrap();
    stand.runtime.batch_over(batch.batch_key, PATIENCE).await.unwrap()
}

async fn outcomes(stand: &Stand, batch: &Batch) -> BTreeMap<InstanceKey, String> {
    let items = stand
        .runtime
        .batch_items(batch.batch_key, None, None, 10_000)
        .await
        .unwrap();
    items
        .into_iter()
        .map(|item| (item.instance, item.outcome))
        .collect()
}

async fn parked(stand: &Stand, count: usize) -> Vec<InstanceKey> {
    let mut keys = Vec::new();
    for turn in 0..count {
        keys.push(
            stand
                .start("parked", &format!(r#"{{"key":"{turn}"}}"#))
                .await
                .instance,
        );
    }
    keys
}

async fn live(stand: &Stand) -> usize {
    let rows = stand
        .runtime
        .instances(InstanceFilter::running(), Page::first(10_000))
        .await;
    rows.unwrap().len()
}

/// Ten active ones, five suspended, and five that have not begun: each has its outcome, and each is cancelled.
#[tokio::test]
async fn case_083_a_bulk_cancel_passes_nobody_over() {
    let stand = stand().await;
    stand.deploy(waits_for_message("parked", 1)).await;
    let mut all = parked(&stand, 15).await;
    for key in &all[..5] {
        let held = stand
            .runtime
            .suspend(*key, SuspendRequest::by("test"))
            .await
            .unwrap();
        assert_eq!(held.row.sub_status, SubStatus::Held);
    }
    stand.runtime.pause(None, None, "test").await.unwrap();
    // Accepted and not begun.
    for turn in 0..5 {
        all.push(
            stand
                .start("parked", &format!(r#"{{"key":"late{turn}"}}"#))
                .await
                .instance,
        );
    }
    let batch = stand
        .runtime
        .create_batch(request(Verb::Cancel, "parked"))
        .await
        .unwrap();
    for _ in 0..5 {
        stand.runtime.progress().await;
    }
    // It goes under the gate.
    let waiting = stand.runtime.batch(batch.batch_key).await.unwrap();
    assert_eq!((waiting.state, waiting.counts.done), (BatchState::Running, 0));
    stand.runtime.resume("test").await.unwrap();
    let over = stand.runtime.batch_over(batch.batch_key, PATIENCE).await.unwrap();
    assert_eq!(over.state, BatchState::Completed);
    assert_eq!(
        (over.counts.selected, over.counts.done, over.counts.pending),
        (20, 20, 0)
    );
    let outcomes = outcomes(&stand, &over).await;
    assert_eq!(outcomes.len(), 20);
    for key in &all {
        assert_eq!(outcomes[key], "done");
        let row = stand.runtime.instance(*key).await.unwrap().row;
        assert_eq!(row.sub_status, SubStatus::Cancelled);
    }
    let audit = stand.runtime.audit(Page::first(100)).await.unwrap();
    let of_batch: Vec<_> = audit.iter().filter(|row| row.scope == "batch").collect();
    assert_eq!(of_batch.len(), 1);
    assert_eq!(
        (of_batch[0].actor.as_str(), of_batch[0].reason.as_deref()),
        ("eve", Some("cleaning up"))
    );
    assert!(of_batch[0].after.as_deref().unwrap().contains("\"done\":20"));
    assert!(!audit.iter().any(|row| row.action == "InstanceCancelRequested"));
    let history = stand.runtime.history(all[0], 0, 100).await.unwrap();
    let cause = serde_json::to_string(&history.last().unwrap().cause).unwrap();
    assert!(cause.contains("eve") && cause.contains("cleaning up"), "{cause}");
}

#[tokio::test]
async fn a_dry_run_says_what_would_be_done_and_does_nothing() {
    let stand = stand().await;
    stand.deploy(waits_for_message("parked", 1)).await;
    let keys = parked(&stand, 3).await;
    stand.runtime.cancel(keys[0], None, "test").await.unwrap();
    let mut dry = request(Verb::Forget, "parked");
    dry.dry_run = true;
    let over = done(&stand, dry).await;
    assert_eq!(
        (
            over.counts.selected,
            over.counts.would_be_done,
            over.counts.failed
        ),
        (3, 1, 2)
    );
    assert!(stand.runtime.instance(keys[0]).await.is_ok());
    let failed = stand
        .runtime
        .batch_items(over.batch_key, Some(ItemOutcome::Failed), None, 10)
        .await
        .unwrap();
    assert_eq!(failed.len(), 2);
    assert!(
        failed
            .iter()
            .all(|item| item.detail.as_deref() == Some("it has not ended"))
    );
    let over = done(&stand, request(Verb::Forget, "parked")).await;
    assert_eq!((over.counts.done, over.counts.failed), (1, 2));
    assert!(stand.runtime.instance(keys[0]).await.is_err());
    assert_eq!(live(&stand).await, 2);
}

#[tokio::test]
async fn incidents_of_many_are_retried() {
    let stand = stand_with(|builder| builder).await;
    stand
        .deploy(line("fails", &[("work", task("work", "external", &[]))]))
        .await;
    let mut keys = Vec::new();
    for _ in 0..3 {
        keys.push(stand.start("fails", "{}").await.instance);
        let job = stand.job("external").await;
        stand
            .runtime
            .fail_job(job.job, &job.lease_token, "no".to_owned(), Some(0), None)
            .await
            .unwrap();
    }
    let over = done(&stand, request(Verb::Retry, "fails")).await;
    assert_eq!((over.counts.selected, over.counts.done), (3, 3));
    for _ in 0..3 {
        stand.complete("external", "{}").await;
    }
    let over = done(&stand, request(Verb::Retry, "fails")).await;
    // Those that have ended are not live any more.
    assert_eq!(over.counts.selected, 0);
}

/// A drain in the middle, and a store that loses the end of a step: the next generation goes on, and each instance has one
/// outcome.
#[tokio::test]
async fn a_batch_goes_on_after_a_restart_and_loses_nobody() {
    let memory = Arc::new(MemoryStore::new());
    let clock = ManualClock::new(BEGINNING);
    let faulty = Arc::new(FaultyStore::new(memory.clone()));
    let first = stand_on(faulty.clone(), clock.clone(), |builder| builder).await;
    first.deploy(waits_for_message("parked", 1)).await;
    let keys = parked(&first, 130).await;
    // The outcomes of the second step are never written, though what they tell of was done.
    let steps = std::sync::atomic::AtomicUsize::new(0);
    faulty.fail_commits(move |commit| {
        let tells = commit
            .writes
            .iter()
            .any(|write| matches!(write, Write::PutOperationItem(item) if item.outcome == "done"));
        let step = if tells {
            steps.fetch_add(1, std::sync::atomic::Ordering::SeqCst)
        } else {
            0
        };
        (step >= 1).then(|| tidegate::store::Error::new(tidegate::store::ErrorKind::Unavailable, "gone"))
    });
    let batch = first
        .runtime
        .create_batch(request(Verb::Cancel, "parked"))
        .await
        .unwrap();
    for _ in 0..20_000 {
        if live(&first).await <= 30 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(live(&first).await > 0);
    first.runtime.drain(DrainTrigger::HostStopSignal).await;
    first.runtime.release().await;

    let next = stand_on(Arc::new(memory.reopen()), clock, |builder| builder).await;
    let over = next.runtime.batch_over(batch.batch_key, PATIENCE).await.unwrap();
    assert_eq!((over.counts.selected, over.counts.pending), (130, 0));
    assert_eq!(over.counts.done + over.counts.unchanged, 130);
    let outcomes = outcomes(&next, &over).await;
    assert!(
        keys.iter()
            .all(|key| outcomes[key] == "done" || outcomes[key] == "unchanged")
    );
    assert_eq!(outcomes.len(), 130);
    assert_eq!(live(&next).await, 0);
}

#[tokio::test]
async fn a_batch_can_be_paused_and_ended() {
    let stand = stand().await;
    stand.deploy(waits_for_message("parked", 1)).await;
    parked(&stand, 10).await;
    stand.runtime.pause(None, None, "test").await.unwrap();
    let batch = stand
        .runtime
        .create_batch(request(Verb::Cancel, "parked"))
        .await
        .unwrap();
    let key = batch.batch_key;
    assert_eq!(
        stand.runtime.pause_batch(key).await.unwrap().state,
        BatchState::Paused
    );
    assert_eq!(
        stand.runtime.pause_batch(key).await.unwrap().state,
        BatchState::Paused
    );
    stand.runtime.resume("test").await.unwrap();
    for _ in 0..10 {
        stand.runtime.progress().await;
    }
    assert_eq!(live(&stand).await, 10);
    assert_eq!(
        stand.runtime.resume_batch(key).await.unwrap().state,
        BatchState::Running
    );
    let over = stand.runtime.batch_over(key, PATIENCE).await.unwrap();
    assert_eq!(over.counts.done, 10);
    // Over is over.
    assert_eq!(
        stand.runtime.cancel_batch(key).await.unwrap().state,
        BatchState::Completed
    );
    stand.runtime.pause(None, None, "test").await.unwrap();
    let other = stand
        .runtime
        .create_batch(request(Verb::Cancel, "parked"))
        .await
        .unwrap();
    let ended = stand.runtime.cancel_batch(other.batch_key).await.unwrap();
    assert_eq!(ended.state, BatchState::Cancelled);
    let listed = stand.runtime.batches(Page::first(10)).await.unwrap();
    assert_eq!(listed.len(), 2);
    let unknown = stand.runtime.batch(77).await.unwrap_err();
    assert_eq!(unknown.code(), "batch-not-found");
}

#[test]
fn every_verb_has_its_word() {
    for verb in Verb::all() {
        assert_eq!(Verb::from_word(verb.word()), Some(verb));
        assert_eq!(serde_json::to_value(verb).unwrap(), verb.word());
    }
}

#[tokio::test]
async fn many_are_suspended_and_let_go() {
    let stand = stand().await;
    stand.deploy(waits_for_message("parked", 1)).await;
    let keys = parked(&stand, 6).await;
    stand
        .runtime
        .suspend(keys[0], SuspendRequest::by("test"))
        .await
        .unwrap();
    let over = done(&stand, request(Verb::Suspend, "parked")).await;
    assert_eq!((over.counts.done, over.counts.unchanged), (5, 1));
    for key in &keys {
        let row = stand.runtime.instance(*key).await.unwrap().row;
        assert_eq!(row.sub_status, SubStatus::Held);
    }
    stand
        .runtime
        .resume_instance(keys[0], None, "test")
        .await
        .unwrap();
    let over = done(&stand, request(Verb::Resume, "parked")).await;
    assert_eq!((over.counts.done, over.counts.unchanged), (5, 1));
    for key in &keys {
        let row = stand.runtime.instance(*key).await.unwrap().row;
        assert_eq!(row.sub_status, SubStatus::Suspended);
    }
    let audit = stand.runtime.audit(Page::first(100)).await.unwrap();
    let requests = |action: &str| audit.iter().filter(|row| row.action == action).count();
    // One of each by hand; the batches have their own entries.
    assert_eq!(requests("InstanceSuspendRequested"), 1);
    assert_eq!(requests("InstanceResumeRequested"), 1);
    assert_eq!(requests("BatchCompleted"), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_change_to_another_version_and_a_dry_run_says_which_could() {
    let stand = stand().await;
    let steps = |ids: &[&str]| {
        let tasks: Vec<(&str, String)> = ids.iter().map(|id| (*id, task(id, id, &[]))).collect();
        line("steps", &tasks)
    };
    stand.deploy(steps(&["a", "b"])).await;
    let mut keys = Vec::new();
    for _ in 0..6 {
        keys.push(stand.start("steps", "{}").await.instance);
    }
    for _ in 0..2 {
        stand.complete("a", "{}").await;
    }
    stand.deploy(steps(&["a", "c"])).await;
    let newest = stand.start("steps", "{}").await;
    let to = |mapping: &[(&str, &str)]| BatchRequest {
        selection: Selection::default(),
        migration: Some(BatchMigration {
            definition_key: newest.definition,
            mapping: mapping
                .iter()
                .map(|(a, b)| ((*a).to_owned(), (*b).to_owned()))
                .collect(),
        }),
        ..request(Verb::Migrate, "steps")
    };
    let versions = async || {
        let mut versions = Vec::new();
        for key in &keys {
            versions.push(stand.runtime.instance(*key).await.unwrap().row.version);
        }
        versions.sort_unstable();
        versions
    };
    let dry = BatchRequest {
        dry_run: true,
        ..to(&[])
    };
    let over = done(&stand, dry).await;
    let counts = over.counts;
    assert_eq!(
        (
            counts.selected,
            counts.would_be_done,
            counts.failed,
            counts.unchanged
        ),
        (7, 4, 2, 1)
    );
    let items = stand
        .runtime
        .batch_items(over.batch_key, Some(ItemOutcome::Failed), None, 10)
        .await
        .unwrap();
    assert!(
        items
            .iter()
            .all(|item| item.detail.as_deref().unwrap().contains("`b`")),
        "{items:?}"
    );
    assert_eq!(versions().await, [1; 6]);

    let over = done(&stand, to(&[])).await;
    assert_eq!(
        (over.counts.done, over.counts.failed, over.counts.unchanged),
        (4, 2, 1)
    );
    assert_eq!(versions().await, [1, 1, 2, 2, 2, 2]);
    let over = done(&stand, to(&[("b", "c")])).await;
    assert_eq!((over.counts.done, over.counts.unchanged), (2, 5));
    assert_eq!(versions().await, [2; 6]);
    let history = stand.runtime.history(keys[0], 0, 1_000).await.unwrap();
    let moved = history.iter().find(|item| item.event == "Migrated").unwrap();
    let cause = serde_json::to_value(&moved.cause).unwrap();
    assert_eq!(
        (&cause["actor"], &cause["reason"]),
        (&"eve".into(), &"cleaning up".into())
    );
    for step in ["a", "a", "a", "a", "a", "c", "c", "c", "c", "c", "c", "c"] {
        stand.complete(step, "{}").await;
    }
    for key in &keys {
        stand.finished(*key).await;
    }

    // Without a target, with one for another verb, or of another process, there is no such batch.
    let none = BatchRequest {
        migration: None,
        ..to(&[])
    };
    let wrong = BatchRequest {
        verb: Verb::Cancel,
        ..to(&[])
    };
    let other = BatchRequest {
        selection: request(Verb::Migrate, "other").selection,
        ..to(&[])
    };
    for refused in [none, wrong, other] {
        let refused = stand.runtime.create_batch(refused).await.unwrap_err();
        assert_eq!(refused.code(), "invalid-migration");
    }
}
