//! The cause travels: a journal names who sent what moved the instance, however long that waited; and what an operator
//! did to an instance and the audit of it are one commit.

mod support;

use serde_json::{Value, json};
use support::{Stand, faulty, flow, line, message, process_with, stand, stand_on, stores, task, unreachable};
use tidegate::api::{Resource, SignalRequest};
use tidegate::clock::ManualClock;
use tidegate::model::{InstanceKey, SubStatus, Variables};
use tidegate::parts::{Part, PauseScope};
use tidegate::store::Write;

/// The causes of these events, in their order.
async fn causes(stand: &Stand, instance: InstanceKey, event: &str) -> Vec<Value> {
    let items = stand.runtime.history(instance, 0, 1_000).await.unwrap();
    let items = items.iter().filter(|item| item.event == event);
    items
        .map(|item| serde_json::to_value(&item.cause).unwrap())
        .collect()
}

fn ada() -> Value {
    json!({ "kind": "client", "actor": "ada" })
}

async fn publish(stand: &Stand, name: &str, key: &str) {
    let mut message = message(name, key, "{}");
    message.actor = "ada".to_owned();
    stand.runtime.publish(message).await.unwrap();
}

async fn throw(stand: &Stand, name: &str) {
    let request = SignalRequest {
        name: name.to_owned(),
        variables: Variables::new(),
        tenant: None,
        actor: "ada".to_owned(),
        source: None,
    };
    stand.runtime.broadcast(request).await.unwrap();
}

/// Begins with the message `begin` or the signal `alarm`, then waits for the message `go` and the signal `alarm`.
fn listener(id: &str, begins: &str) -> Resource {
    let around = r#"<bpmn:message id="b" name="begin"/><bpmn:signal id="s" name="alarm"/>
<bpmn:message id="m" name="go"><bpmn:extensionElements><zeebe:subscription correlationKey="=&quot;k&quot;"/></bpmn:extensionElements></bpmn:message>"#;
    let flows = [("start", "told"), ("told", "warned"), ("warned", "end")].map(|(from, to)| flow(from, to));
    let body = format!(
        r#"<bpmn:startEvent id="start">{begins}</bpmn:startEvent>
<bpmn:intermediateCatchEvent id="told"><bpmn:messageEventDefinition messageRef="m"/></bpmn:intermediateCatchEvent>
<bpmn:intermediateCatchEvent id="warned"><bpmn:signalEventDefinition signalRef="s"/></bpmn:intermediateCatchEvent>
<bpmn:endEvent id="end"/>{}"#,
        flows.concat()
    );
    process_with(id, around, &body)
}

async fn only_instance(stand: &Stand) -> InstanceKey {
    let mut found = Vec::new();
    while found.is_empty() {
        found = stand.listed(SubStatus::Suspended).await;
        tokio::task::yield_now().await;
    }
    assert_eq!(found.len(), 1);
    found[0]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_and_a_signal_name_the_client_who_sent_them_at_once_and_after_a_wait() {
    for (store, _folder) in stores() {
        for is_paused in [false, true] {
            let stand = stand_on(store.clone(), ManualClock::new(support::BEGINNING), |b| b).await;
            let begins = r#"<bpmn:messageEventDefinition messageRef="b"/>"#;
            stand.deploy(listener("by-message", begins)).await;
            if is_paused {
                stand.runtime.pause(None, None, "op").await.unwrap();
            }
            publish(&stand, "begin", "").await;
            // Nobody waits for it yet: it is buffered, or stands in the queue.
            publish(&stand, "go", "k").await;
            if is_paused {
                stand.runtime.resume("op").await.unwrap();
            }
            let key = only_instance(&stand).await;
            stand
                .until(key, |detail| {
                    detail.tokens.iter().any(|token| token.element_id == "warned")
                })
                .await;
            if is_paused {
                stand.runtime.pause(None, None, "op").await.unwrap();
            }
            throw(&stand, "alarm").await;
            if is_paused {
                stand.runtime.resume("op").await.unwrap();
            }
            stand.finished(key).await;
            for event in ["InstanceStarted", "MessageCorrelated", "SignalCaught"] {
                let found = causes(&stand, key, event).await;
                assert_eq!(found.len(), 1, "{event}");
                assert_eq!(found[0]["from"], ada(), "{event} {is_paused}: {}", found[0]);
                let kind = if event == "SignalCaught" {
                    "signal"
                } else {
                    "message"
                };
                assert_eq!(found[0]["kind"], kind, "{event}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_start_names_the_client_and_what_an_instance_throws_names_the_instance() {
    let stand = stand().await;
    let begins = r#"<bpmn:signalEventDefinition signalRef="s"/>"#;
    stand.deploy(listener("by-signal", begins)).await;
    throw(&stand, "alarm").await;
    let started = only_instance(&stand).await;
    let found = causes(&stand, started, "InstanceStarted").await;
    assert_eq!(found, [json!({ "kind": "signal", "from": ada() })]);

    let throws = r#"<bpmn:signal id="s" name="alarm"/>"#;
    let body = format!(
        r#"<bpmn:startEvent id="start"/><bpmn:endEvent id="thrown"><bpmn:signalEventDefinition signalRef="s"/></bpmn:endEvent>{}"#,
        flow("start", "thrown")
    );
    stand.deploy(process_with("thrower", throws, &body)).await;
    let thrower = stand.run("thrower", "{}").await.instance;
    let mut all = Vec::new();
    while all.len() < 2 {
        all = stand.listed(SubStatus::Suspended).await;
        tokio::task::yield_now().await;
    }
    let second = all.into_iter().find(|key| *key != started).unwrap();
    let found = causes(&stand, second, "InstanceStarted").await;
    let from = json!({ "kind": "instance", "instance": thrower.get() });
    assert_eq!(found, [json!({ "kind": "signal", "from": from })]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a07_what_an_operator_does_to_an_instance_and_its_audit_are_one_commit() {
    let store = faulty();
    let stand = stand_on(store.clone(), ManualClock::new(support::BEGINNING), |b| b).await;
    let work = [("work", task("work", "=nothing", &[]))];
    stand.deploy(line("stuck", &work)).await;
    let key = stand.start("stuck", "{}").await.instance;
    let incident = stand.incident().await.key;
    let before = stand.audited().await;
    // Without its audit nothing of it happens.
    store.fail_commits(|commit| {
        let is_audit = |write: &Write| matches!(write, Write::Audit(_));
        commit.writes.iter().any(is_audit).then(unreachable)
    });
    assert!(stand.runtime.retry_incident(incident, None, "op").await.is_err());
    assert!(stand.runtime.cancel(key, None, "op").await.is_err());
    store.mend();
    assert_eq!(stand.audited().await, before);
    assert_eq!(stand.incident().await.key, incident);

    stand.runtime.retry_incident(incident, None, "op").await.unwrap();
    stand
        .runtime
        .cancel(key, Some("enough".into()), "op")
        .await
        .unwrap();
    // Again: it has ended, and nothing changes.
    stand.runtime.cancel(key, None, "op").await.unwrap();
    let mut after = before.clone();
    after.extend(["IncidentRetryRequested", "InstanceCancelRequested"].map(str::to_owned));
    assert_eq!(stand.audited().await, after);
    let rows = stand
        .runtime
        .audit(tidegate::store::Page::first(1))
        .await
        .unwrap();
    let cancelled = &rows[0];
    assert_eq!(
        (cancelled.before.as_deref(), cancelled.after.as_deref()),
        (Some("suspended"), Some("cancelled"))
    );
    assert_eq!(
        (
            cancelled.actor.as_str(),
            cancelled.reason.as_deref(),
            cancelled.subject.as_deref()
        ),
        ("op", Some("enough"), Some(key.to_string().as_str()))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a07_a_retry_that_is_only_accepted_is_audited_as_it_is_accepted() {
    let stand = stand().await;
    let work = [("work", task("work", "=nothing", &[]))];
    stand.deploy(line("stuck", &work)).await;
    stand.start("stuck", "{}").await;
    let incident = stand.incident().await.key;
    let part = Part::definition("stuck");
    let paused = stand
        .runtime
        .pause_part(part, PauseScope::Everything, None, None, "op");
    paused.await.unwrap();
    stand.runtime.retry_incident(incident, None, "op").await.unwrap();
    assert_eq!(
        stand.audited().await,
        ["RuntimePauseRequested", "IncidentRetryRequested"]
    );
}
