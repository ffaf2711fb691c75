//! Why an instance does not move.

use std::time::Duration;

use tidegate::model::{InstanceKey, Variables};
use tidegate::parts::PauseScope;
use tidegate::why::{What, Why};

use super::hold::held;
use crate::support::model::{call, model};
use crate::support::{Stand, jobs, line, slow, stand, task, waits_for_message, waits_for_timer};

async fn why(stand: &Stand, key: InstanceKey) -> Why {
    stand.runtime.why(key).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn n06_why_says_what_an_instance_waits_for() {
    let stand = stand().await;
    stand.deploy(waits_for_message("waits", 1)).await;
    let waits = stand.start("waits", r#"{"key": "k7"}"#).await.instance;
    let answer = why(&stand, waits).await;
    let What::Message {
        name,
        correlation_key,
    } = &answer.reasons[0].what
    else {
        panic!("{answer:?}");
    };
    assert_eq!((name.as_str(), correlation_key.as_str()), ("go", "k7"));
    assert_eq!(answer.reasons[0].element_id.as_deref(), Some("catch0"));
    assert_eq!(answer.reasons[0].since, Some(crate::support::BEGINNING));
    assert!(
        answer.answer.contains("`go`") && answer.answer.contains("`k7`"),
        "{}",
        answer.answer
    );

    stand.deploy(waits_for_timer("naps", "PT1H")).await;
    let naps = stand.start("naps", "{}").await.instance;
    let answer = why(&stand, naps).await;
    assert!(
        matches!(
            answer.reasons[0].what,
            What::Timer {
                is_overdue: false,
                ..
            }
        ),
        "{answer:?}"
    );

    stand.runtime.suspend(waits, held()).await.unwrap();
    stand.publish("go", "k7", "{}").await;
    stand.runtime.progress().await;
    let answer = why(&stand, waits).await;
    let What::Held { hold } = &answer.reasons[0].what else {
        panic!("{answer:?}")
    };
    assert_eq!(
        (hold.actor.as_str(), hold.reason.as_deref()),
        ("ann", Some("audit"))
    );
    assert!(
        answer
            .reasons
            .iter()
            .any(|r| matches!(r.what, What::Queued { stimuli: 1 })),
        "{answer:?}"
    );
    stand.runtime.resume_instance(waits, None, "ann").await.unwrap();
    stand.finished(waits).await;
    assert!(matches!(
        why(&stand, waits).await.reasons[0].what,
        What::Ended { .. }
    ));
    let unknown = stand.runtime.why(InstanceKey(5)).await.unwrap_err();
    assert_eq!(unknown.code(), "instance-not-found");
}

#[tokio::test(flavor = "multi_thread")]
async fn n06_why_knows_workers_leases_and_retries() {
    let stand = stand().await;
    stand
        .deploy(line("pays", &[("pay", task("pay", "pay", &[]))]))
        .await;
    let key = stand.start("pays", "{}").await.instance;
    let answer = why(&stand, key).await;
    assert!(
        matches!(
            answer.reasons[0].what,
            What::JobOffered {
                is_polled: false,
                last_polled_at: None,
                ..
            }
        ),
        "{answer:?}"
    );
    assert!(answer.answer.contains("no worker"), "{}", answer.answer);
    let mut other = jobs("other", Duration::ZERO);
    other.worker = "w1".to_owned();
    stand.runtime.activate_jobs(other).await.unwrap();
    let job = stand.job("pay").await;
    let answer = why(&stand, key).await;
    let What::JobLeased {
        worker, has_ended, ..
    } = &answer.reasons[0].what
    else {
        panic!("{answer:?}")
    };
    assert_eq!((worker.as_str(), *has_ended), ("test", false));
    stand.clock.advance(3_600_000);
    let answer = why(&stand, key).await;
    assert!(
        matches!(answer.reasons[0].what, What::JobLeased { has_ended: true, .. }),
        "{answer:?}"
    );
    let back_off = Some(Duration::from_secs(60));
    stand
        .runtime
        .fail_job(
            job.job,
            &job.lease_token,
            "no money".to_owned(),
            Some(2),
            back_off,
        )
        .await
        .unwrap();
    let answer = why(&stand, key).await;
    assert!(
        matches!(answer.reasons[0].what, What::RetryBackoff { .. }),
        "{answer:?}"
    );
    stand.clock.advance(60_000);
    let answer = why(&stand, key).await;
    let What::JobOffered { last_worker, .. } = &answer.reasons[0].what else {
        panic!("{answer:?}")
    };
    assert_eq!(last_worker.as_deref(), Some("test"));
    let job = stand.job("pay").await;
    stand
        .runtime
        .fail_job(
            job.job,
            &job.lease_token,
            "no money at all".to_owned(),
            Some(0),
            None,
        )
        .await
        .unwrap();
    stand.incident().await;
    let answer = why(&stand, key).await;
    let What::Incident { message, .. } = &answer.reasons[0].what else {
        panic!("{answer:?}")
    };
    assert_eq!(message, "no money at all");
}

#[tokio::test(flavor = "multi_thread")]
async fn n06_why_looks_into_children_gates_and_handlers() {
    let stand = stand().await;
    stand
        .deploy(line("leaf", &[("pay", task("pay", "pay", &[]))]))
        .await;
    let body = format!(r#"<startEvent id="s"/>{}<endEvent id="e"/>"#, call("c", "leaf"));
    stand.deploy(model("root", "", &body, "s>c>e")).await;
    let root = stand.start("root", "{}").await.instance;
    let leaf = stand.job("pay").await;
    let answer = why(&stand, root).await;
    let What::Child {
        child_key,
        why: Some(inner),
        ..
    } = &answer.reasons[0].what
    else {
        panic!("{answer:?}")
    };
    assert_eq!(*child_key, leaf.instance);
    assert!(
        matches!(inner.reasons[0].what, What::JobLeased { .. }),
        "{inner:?}"
    );
    assert!(answer.answer.contains("worker `test`"), "{}", answer.answer);

    let reason = Some("stocktaking".to_owned());
    stand
        .runtime
        .pause_definition("root", PauseScope::Everything, reason.clone(), None, "cleo")
        .await
        .unwrap();
    stand.runtime.pause(reason, None, "dan").await.unwrap();
    let answer = why(&stand, root).await;
    let closed: Vec<_> = answer
        .reasons
        .iter()
        .filter_map(|reason| match &reason.what {
            What::GateClosed { scope, closed_by, .. } => Some((*scope, closed_by.as_deref())),
            _ => None,
        })
        .collect();
    assert_eq!(closed, [("runtime", Some("dan")), ("definition", Some("cleo"))]);
    assert!(answer.answer.contains("stocktaking"));
    stand.runtime.resume("dan").await.unwrap();

    stand.deploy(slow("slow", "demo.sleep", "PT1H")).await;
    let slow = stand.start("slow", "{}").await.instance;
    stand.runtime.progress().await;
    let answer = why(&stand, slow).await;
    assert!(
        matches!(answer.reasons[0].what, What::ActivityRuns { .. }),
        "{answer:?}"
    );
    let json = serde_json::to_value(&answer).unwrap();
    assert_eq!(json["reasons"][0]["kind"], "activityRuns");
    let _ = stand
        .runtime
        .ask_to_cancel(slow, &tidegate::CancelRequest::by("op", Duration::ZERO))
        .await;
    drop(Variables::new());
}
