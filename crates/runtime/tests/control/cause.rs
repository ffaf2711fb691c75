//! What ended or cut an instance can be told apart from its row, its history, the audit and the figures.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tidegate::clock::ManualClock;
use tidegate::model::{InstanceKey, SubStatus};
use tidegate::status::DrainTrigger;
use tidegate::store::faulty::FaultyStore;
use tidegate::store::{Page, Store};
use tidegate::{CancelRequest, Options};

use crate::support::model::{boundary, call, model};
use crate::support::{BEGINNING, Stand, eventually, slow, stand_on, stores, waits_for_message};

const LONG: Duration = Duration::from_secs(20);

async fn generation(store: Arc<dyn Store>, clock: &ManualClock) -> Stand {
    stand_on(store, clock.clone(), |builder| {
        builder.options(Options {
            owners: 2,
            drain_deadline: Duration::from_millis(10),
            quarantine_after: 1,
            ..Options::default()
        })
    })
    .await
}

/// The cause of the last of these events, and what the event says.
async fn last(stand: &Stand, key: InstanceKey, event: &str) -> (Value, Value) {
    let items = stand.runtime.history(key, 0, 10_000).await.unwrap();
    let item = items.iter().rfind(|item| item.event == event);
    let item = item.unwrap_or_else(|| {
        panic!(
            "no {event} in {:?}",
            items.iter().map(|i| i.event).collect::<Vec<_>>()
        )
    });
    (serde_json::to_value(&item.cause).unwrap(), item.payload.clone())
}

fn recovered(stand: &Stand, cause: &str) -> u64 {
    let figures = stand.runtime.figures();
    let of = figures
        .iter()
        .find(|figure| figure.name == "tidegate_recovered_total" && figure.label == Some(("cause", cause)));
    of.unwrap().value
}

#[tokio::test(flavor = "multi_thread")]
async fn case_197_an_ordered_stop_and_a_lost_run_can_be_told_apart() {
    for (inner, _folder) in stores() {
        let clock = ManualClock::new(BEGINNING);
        let faulty = Arc::new(FaultyStore::new(inner.clone()));
        let stand = generation(inner.clone(), &clock).await;
        stand.deploy(waits_for_message("waits", 1)).await;
        stand.deploy(slow("runs", "demo.sleep", "PT1H")).await;
        let calls = format!(r#"<startEvent id="s"/>{}<endEvent id="e"/>"#, call("c", "waits"));
        stand.deploy(model("calls", "", &calls, "s>c>e")).await;
        let timeout = r#"<timerEventDefinition><timeDuration>PT1M</timeDuration></timerEventDefinition>"#;
        let patient = format!(
            r#"<startEvent id="s"/>{}{}<endEvent id="e"/><endEvent id="b"/>"#,
            call("c", "waits"),
            boundary("late", "c", timeout)
        );
        stand.deploy(model("patient", "", &patient, "s>c>e late>b")).await;
        let child_of = async |parent: InstanceKey| {
            eventually("it calls", async || !stand.children(parent).await.is_empty()).await;
            let child = stand.children(parent).await[0];
            stand
                .until(child, |d| d.row.sub_status == SubStatus::Suspended)
                .await;
            child
        };

        // By a person, and by that the called one by its caller.
        let parent = stand.start("calls", r#"{"key": "1"}"#).await.instance;
        let by_parent = child_of(parent).await;
        let request = CancelRequest {
            reason: Some("wrong order".to_owned()),
            ..CancelRequest::by("ann", LONG)
        };
        stand.runtime.cancel_and_wait(parent, request).await.unwrap();
        // By a timeout of its caller.
        let patient = stand.start("patient", r#"{"key": "2"}"#).await.instance;
        let by_timeout = child_of(patient).await;
        clock.advance(61_000);
        stand.finished(patient).await;
        stand.until(by_timeout, |d| d.row.sub_status.is_finished()).await;
        // By a drain.
        let cut = stand.start("runs", "{}").await.instance;
        stand
            .until(cut, |d| d.row.sub_status == SubStatus::Executing)
            .await;
        stand.runtime.drain(DrainTrigger::HostStopSignal).await;

        let mut cancelled = stand.listed(SubStatus::Cancelled).await;
        cancelled.sort();
        let mut ordered = vec![parent, by_parent, by_timeout];
        ordered.sort();
        assert_eq!(cancelled, ordered);
        assert_eq!(stand.listed(SubStatus::Interrupted).await, [cut]);
        let (cause, _) = last(&stand, parent, "CancelRequested").await;
        assert_eq!(
            cause,
            json!({ "kind": "operator", "actor": "ann", "reason": "wrong order" })
        );
        for (child, caller) in [(by_parent, parent), (by_timeout, patient)] {
            let (cause, _) = last(&stand, child, "InstanceCancelled").await;
            assert_eq!(cause, json!({ "kind": "parent", "instance": caller.get() }));
        }
        let (cause, _) = last(&stand, patient, "ElementTerminated").await;
        assert_eq!(
            cause,
            json!({ "kind": "timer" }),
            "why the call of the timed-out one ended"
        );
        let (cause, payload) = last(&stand, cut, "WorkflowInterrupted").await;
        assert_eq!(cause, json!({ "kind": "deadline" }));
        assert_eq!(payload["reason"], "DeadlineBreach");
        let audit = stand.runtime.audit(Page::first(10)).await.unwrap();
        let cancels: Vec<_> = audit
            .iter()
            .filter(|row| row.action == "InstanceCancelRequested")
            .collect();
        assert_eq!(
            cancels.len(),
            1,
            "what a person did, and nothing that a machine did"
        );
        assert_eq!(
            (cancels[0].actor.as_str(), &cancels[0].subject),
            ("ann", &Some(parent.to_string()))
        );
        assert!(stand.runtime.release().await);

        // The next generation resumes what was cut; then its process is lost while another one runs.
        let lost = generation(faulty.clone(), &clock).await;
        lost.runtime.recovered().await;
        lost.until(cut, |d| d.row.sub_status == SubStatus::Executing)
            .await;
        assert_eq!(
            (recovered(&lost, "interruption"), recovered(&lost, "crash")),
            (1, 0)
        );
        lost.runtime.cancel(cut, None, "ann").await.unwrap();
        let crashed = lost.start("runs", "{}").await.instance;
        lost.until(crashed, |d| d.row.sub_status == SubStatus::Executing)
            .await;
        faulty.hang();
        let next = generation(inner.clone(), &clock).await;
        next.runtime.recovered().await;
        next.until(crashed, |d| d.row.sub_status == SubStatus::Executing)
            .await;
        assert_eq!(
            (recovered(&next, "interruption"), recovered(&next, "crash")),
            (0, 1)
        );
        assert!(next.listed(SubStatus::Interrupted).await.is_empty());
        assert!(!next.listed(SubStatus::Cancelled).await.contains(&crashed));
        let (cause, payload) = last(&next, crashed, "CrashRecovered").await;
        assert_eq!(cause, json!({ "kind": "crashRecovery" }));
        assert_eq!(payload["attempt"], 1);

        // And once more: what was lost too often is set aside, still live, and says why.
        let dying = Arc::new(FaultyStore::new(inner.clone()));
        drop(next);
        let third = generation(dying.clone(), &clock).await;
        third.runtime.recovered().await;
        let incident = third.incident().await;
        assert_eq!(incident.instance, crashed);
        assert!(
            incident.message.contains("crashes of the process"),
            "{}",
            incident.message
        );
        let (cause, _) = last(&third, crashed, "IncidentRaised").await;
        assert_eq!(cause, json!({ "kind": "crashRecovery" }));
        let row = third.runtime.instance(crashed).await.unwrap().row;
        assert_eq!((row.sub_status, row.incident_count), (SubStatus::Suspended, 1));
        faulty.mend();
        third.runtime.close().await;
    }
}
