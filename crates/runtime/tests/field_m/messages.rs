//! Messages: before the wait, together, and while versions change.

use std::time::Duration;

use tidegate::model::SubStatus;
use tidegate::store::{InstanceFilter, Page};

use crate::support::model::{MESSAGE, ON_MESSAGE, boundary, model, work};
use crate::support::{message, stand, waits_for_message};

#[tokio::test(flavor = "multi_thread")]
async fn case_153_an_answer_before_the_wait_is_kept_and_taken_once() {
    let stand = stand().await;
    let body = format!(
        r#"<startEvent id="s"/>{}<intermediateCatchEvent id="first">{ON_MESSAGE}</intermediateCatchEvent><intermediateCatchEvent id="second">{ON_MESSAGE}</intermediateCatchEvent><endEvent id="e"/>"#,
        work("ask")
    );
    stand
        .deploy(model("p", MESSAGE, &body, "s>ask>first>second>e"))
        .await;
    let instance = stand.start("p", r#"{"key": "k"}"#).await.instance;
    // The step that asks runs still when the answer comes.
    let job = stand.job("ask").await;
    let early = stand.publish("go", "k", r#"{"answer": 1}"#).await;
    assert!(early.is_buffered && early.delivered_to.is_empty());
    let done = stand
        .runtime
        .complete_job(job.job, &job.lease_token, Default::default());
    done.await.unwrap();
    let is_second = |d: &tidegate::api::InstanceDetail| matches!(d.waiting_for.as_slice(), [wait] if wait.element_id == "second");
    let detail = stand.until(instance, is_second).await;
    assert_eq!(
        detail.variables.get("answer").map(|value| value.text()),
        Some("1")
    );
    stand.idle().await;
    assert_eq!(stand.times(instance, "MessageCorrelated first").await, 1);
    assert_eq!(stand.times(instance, "MessageCorrelated second").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn case_153_a_message_without_time_to_live_says_that_it_was_not_delivered() {
    let stand = stand().await;
    stand.deploy(waits_for_message("p", 1)).await;
    let mut now_or_never = message("go", "k", "{}");
    now_or_never.ttl = Some(Duration::ZERO);
    let published = stand.runtime.publish(now_or_never).await.unwrap();
    assert!(published.delivered_to.is_empty() && !published.is_buffered);
    let instance = stand.start("p", r#"{"key": "k"}"#).await.instance;
    stand
        .until(instance, |d| d.row.sub_status == SubStatus::Suspended)
        .await;
    stand.publish("go", "k", "{}").await;
    stand.finished(instance).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn case_154_every_message_for_a_boundary_event_that_does_not_interrupt_is_handled() {
    let stand = stand().await;
    let event =
        boundary("b", "work", ON_MESSAGE).replace("attachedToRef", r#"cancelActivity="false" attachedToRef"#);
    let body = format!(
        r#"<startEvent id="s"/>{}{event}<task id="handler"/><endEvent id="e"/>"#,
        work("work")
    );
    stand
        .deploy(model("p", MESSAGE, &body, "s>work>e b>handler"))
        .await;
    for messages in [2, 1_000] {
        let key = format!("k{messages}");
        let instance = stand.start("p", &format!(r#"{{"key": "{key}"}}"#)).await.instance;
        stand
            .until(instance, |d| d.row.sub_status == SubStatus::Suspended)
            .await;
        let mut published = tokio::task::JoinSet::new();
        for _ in 0..messages {
            let runtime = stand.runtime.clone();
            let request = message("go", &key, "{}");
            published.spawn(async move { runtime.publish(request).await });
        }
        while let Some(answer) = published.join_next().await {
            answer.unwrap().unwrap();
        }
        while stand.times(instance, "ElementCompleted handler").await < messages {
            tokio::task::yield_now().await;
        }
        stand.complete("work", "{}").await;
        stand.finished(instance).await;
        assert_eq!(stand.times(instance, "ElementCompleted handler").await, messages);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn case_156_every_message_starts_one_instance_while_new_versions_are_deployed() {
    const VERSIONS: usize = 10;
    let stand = stand().await;
    let version = |number: usize| {
        let body = format!(
            r#"<startEvent id="s">{ON_MESSAGE}</startEvent><task id="t{number}"/><endEvent id="e"/>"#
        );
        model("p", MESSAGE, &body, &format!("s>t{number}>e"))
    };
    stand.deploy(version(0)).await;
    let stop = tokio_util::sync::CancellationToken::new();
    let publisher = {
        let (runtime, stop) = (stand.runtime.clone(), stop.clone());
        tokio::spawn(async move {
            let mut sent = 0;
            while !stop.is_cancelled() {
                let published = runtime.publish(message("go", "", "{}")).await.unwrap();
                assert_eq!(published.delivered_to.len(), 1, "message {sent}");
                sent += 1;
                tokio::task::yield_now().await;
            }
            sent
        })
    };
    for number in 1..=VERSIONS {
        stand.deploy(version(number)).await;
    }
    stop.cancel();
    let sent: usize = publisher.await.unwrap();
    stand.idle().await;
    let started = stand
        .runtime
        .instances(InstanceFilter::default(), Page::first(1_000_000))
        .await
        .unwrap();
    assert!(sent > 0);
    assert_eq!(started.len(), sent);
}
