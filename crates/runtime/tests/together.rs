//! Instances that have to do with each other: calls, signals, messages they send, and what becomes of them in a crash, a
//! pause and a cancel.

mod support;

use std::time::Duration;

use support::{Stand, flow, line, process_with, stand, stand_on, task, waits_for_message};
use tidegate::api::{Resource, SignalRequest};
use tidegate::model::{InstanceKey, SubStatus, Variables};
use tidegate::store::{InstanceFilter, Page};

fn caller(id: &str, called: &str) -> Resource {
    let call = format!(
        r#"<bpmn:callActivity id="call"><bpmn:extensionElements><zeebe:calledElement processId="{called}" propagateAllChildVariables="true"/></bpmn:extensionElements></bpmn:callActivity>"#
    );
    line(id, &[("call", call)])
}

async fn children(stand: &Stand, parent: InstanceKey) -> Vec<tidegate::store::InstanceRow> {
    let filter = InstanceFilter {
        parent: Some(parent),
        ..Default::default()
    };
    stand.runtime.instances(filter, Page::first(100)).await.unwrap()
}

async fn the_child(stand: &Stand, parent: InstanceKey) -> InstanceKey {
    loop {
        if let [child] = children(stand, parent).await.as_slice() {
            return child.key;
        }
        tokio::task::yield_now().await;
    }
}

async fn signal(stand: &Stand, name: &str) -> tidegate::api::Published {
    let request = SignalRequest {
        name: name.to_owned(),
        variables: Variables::parse(r#"{"by": "signal"}"#).unwrap(),
        tenant: None,
        actor: "test".to_owned(),
        source: None,
    };
    stand.runtime.broadcast(request).await.unwrap()
}

fn waits_for_signal(id: &str) -> Resource {
    let body = format!(
        r#"<bpmn:startEvent id="start"/><bpmn:intermediateCatchEvent id="catch"><bpmn:signalEventDefinition signalRef="sig"/></bpmn:intermediateCatchEvent><bpmn:endEvent id="end"/>{}{}"#,
        flow("start", "catch"),
        flow("catch", "end")
    );
    process_with(id, r#"<bpmn:signal id="sig" name="alarm"/>"#, &body)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_runs_the_called_process_and_takes_its_results() {
    let stand = stand().await;
    stand.deploy(caller("outer", "inner")).await;
    stand
        .deploy(line("inner", &[("work", task("work", "pay", &[]))]))
        .await;
    let outer = stand.start("outer", r#"{"sum": 3}"#).await.instance;
    let inner = the_child(&stand, outer).await;
    let jobs = stand
        .runtime
        .activate_jobs(support::jobs("pay", Duration::from_secs(20)))
        .await
        .unwrap();
    assert_eq!(
        (jobs[0].instance, jobs[0].variables.as_str()),
        (inner, r#"{"sum":3}"#)
    );
    let paid = Variables::parse(r#"{"paid": true}"#).unwrap();
    stand
        .runtime
        .complete_job(jobs[0].job, &jobs[0].lease_token, paid)
        .await
        .unwrap();
    let ended = stand.runtime.wait(outer, Duration::from_secs(20)).await.unwrap();
    assert_eq!(ended.variables.unwrap().to_json(), r#"{"paid":true,"sum":3}"#);
    assert_eq!(
        stand.runtime.instance(inner).await.unwrap().row.sub_status,
        SubStatus::Finished
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_of_nothing_is_an_incident_that_can_be_retried() {
    let stand = stand().await;
    stand.deploy(caller("outer", "inner")).await;
    let outer = stand.start("outer", "{}").await.instance;
    stand.until(outer, |d| d.row.incident_count == 1).await;
    let incident = stand
        .runtime
        .incidents(Default::default(), Page::first(10))
        .await
        .unwrap()
        .remove(0);
    assert!(incident.message.contains("`inner`"), "{}", incident.message);
    stand
        .deploy(line("inner", &[("t", task("t", "demo.noop", &[]))]))
        .await;
    stand
        .runtime
        .retry_incident(incident.key, None, "op")
        .await
        .unwrap();
    let ended = stand.runtime.wait(outer, Duration::from_secs(20)).await.unwrap();
    assert_eq!(ended.sub_status, SubStatus::Finished);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_calls_itself_for_ever_comes_to_rest_with_an_incident() {
    let stand = stand().await;
    stand.deploy(caller("again", "again")).await;
    stand.start("again", "{}").await;
    loop {
        let incidents = stand
            .runtime
            .incidents(Default::default(), Page::first(10))
            .await
            .unwrap();
        if let [incident] = incidents.as_slice() {
            assert!(incident.message.contains("1000 levels"), "{}", incident.message);
            break;
        }
        tokio::task::yield_now().await;
    }
    stand.idle().await;
    let all = stand
        .runtime
        .instances(Default::default(), Page::first(2_000))
        .await
        .unwrap();
    assert_eq!(all.len(), 1_001);
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelling_a_caller_cancels_the_whole_tree_and_a_cancelled_child_is_an_incident() {
    let stand = stand().await;
    stand.deploy(caller("outer", "middle")).await;
    stand.deploy(caller("middle", "inner")).await;
    stand
        .deploy(line("inner", &[("work", task("work", "pay", &[]))]))
        .await;
    let outer = stand.start("outer", "{}").await.instance;
    let middle = the_child(&stand, outer).await;
    let inner = the_child(&stand, middle).await;
    stand
        .until(inner, |d| d.row.sub_status == SubStatus::Suspended)
        .await;
    stand.runtime.cancel(inner, None, "op").await.unwrap();
    stand.until(middle, |d| d.row.incident_count == 1).await;
    stand.runtime.cancel(outer, None, "op").await.unwrap();
    stand
        .until(middle, |d| d.row.sub_status == SubStatus::Cancelled)
        .await;
    assert_eq!(
        stand.runtime.instance(inner).await.unwrap().row.sub_status,
        SubStatus::Cancelled
    );
    stand.idle().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn case_052_a_call_survives_a_crash_between_its_end_and_the_news_of_it() {
    let stand = stand().await;
    stand.deploy(caller("outer", "inner")).await;
    stand.deploy(waits_for_message("inner", 1)).await;
    let outer = stand.start("outer", r#"{"key": "k"}"#).await.instance;
    let inner = the_child(&stand, outer).await;
    stand
        .until(inner, |d| d.row.sub_status == SubStatus::Suspended)
        .await;
    // What comes while paused is accepted; the next generation executes it.
    stand.runtime.pause(None, None, "op").await.unwrap();
    stand.publish("go", "k", r#"{"x": 1}"#).await;
    let next = stand_on(stand.store.clone(), stand.clock.clone(), |b| b).await;
    let ended = next.runtime.wait(outer, Duration::from_secs(20)).await.unwrap();
    assert_eq!(ended.sub_status, SubStatus::Finished);
    assert_eq!(ended.variables.unwrap().get("x").unwrap().text(), "1");
    let events = next.events(outer).await;
    assert_eq!(events.iter().filter(|e| *e == "InstanceCompleted").count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_reaches_all_who_wait_and_begins_instances() {
    let stand = stand().await;
    stand.deploy(waits_for_signal("waits")).await;
    let body = format!(
        r#"<bpmn:startEvent id="start"><bpmn:signalEventDefinition signalRef="sig"/></bpmn:startEvent><bpmn:endEvent id="end"/>{}"#,
        flow("start", "end")
    );
    stand
        .deploy(process_with(
            "begun",
            r#"<bpmn:signal id="sig" name="alarm"/>"#,
            &body,
        ))
        .await;
    let mut waiting = Vec::new();
    for _ in 0..5 {
        waiting.push(stand.start("waits", "{}").await.instance);
    }
    let thrown = signal(&stand, "alarm").await;
    assert_eq!(thrown.delivered_to.len(), 6);
    for instance in waiting {
        let ended = stand
            .runtime
            .wait(instance, Duration::from_secs(20))
            .await
            .unwrap();
        assert_eq!(ended.variables.unwrap().to_json(), r#"{"by":"signal"}"#);
    }
    let starters = stand.runtime.starters().await.unwrap();
    assert!(
        starters
            .iter()
            .any(|s| s.kind == "signal" && s.trigger == "alarm")
    );
    assert!(signal(&stand, "nobody").await.delivered_to.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thrown_message_reaches_another_instance() {
    let stand = stand().await;
    stand.deploy(waits_for_message("waits", 1)).await;
    let message = r#"<bpmn:message id="m" name="go"><bpmn:extensionElements><zeebe:subscription correlationKey="=key"/></bpmn:extensionElements></bpmn:message>"#;
    let body = format!(
        r#"<bpmn:startEvent id="start"/><bpmn:intermediateThrowEvent id="throw"><bpmn:extensionElements><zeebe:publishMessage correlationKey="=key"/></bpmn:extensionElements><bpmn:messageEventDefinition messageRef="m"/></bpmn:intermediateThrowEvent><bpmn:endEvent id="end"/>{}{}"#,
        flow("start", "throw"),
        flow("throw", "end")
    );
    stand.deploy(process_with("throws", message, &body)).await;
    let waiting = stand.start("waits", r#"{"key": "k7"}"#).await.instance;
    stand.run("throws", r#"{"key": "k7"}"#).await;
    let ended = stand
        .runtime
        .wait(waiting, Duration::from_secs(20))
        .await
        .unwrap();
    assert_eq!(ended.sub_status, SubStatus::Finished);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_an_instance_sends_twice_under_one_id_arrives_once() {
    let stand = stand().await;
    stand.deploy(waits_for_message("waits", 2)).await;
    let sends = |id: &str| {
        format!(
            r#"<bpmn:sendTask id="{id}" messageRef="m"><bpmn:extensionElements><zeebe:publishMessage correlationKey="=key" messageId="=&quot;order-&quot; + key"/></bpmn:extensionElements></bpmn:sendTask>"#
        )
    };
    let body = format!(
        r#"<bpmn:startEvent id="start"/>{}{}<bpmn:endEvent id="end"/>{}{}{}"#,
        sends("first"),
        sends("second"),
        flow("start", "first"),
        flow("first", "second"),
        flow("second", "end")
    );
    let message = r#"<bpmn:message id="m" name="go"/>"#;
    stand.deploy(process_with("sends", message, &body)).await;
    let waiting = stand.start("waits", r#"{"key": "k7"}"#).await.instance;
    let sender = stand.run("sends", r#"{"key": "k7"}"#).await.instance;
    assert_eq!(stand.times(sender, "MessagePublished second").await, 1);
    // What comes from outside stands behind them in the line, and is known by the same id.
    let mut again = support::message("go", "k7", "{}");
    again.message_id = Some("order-k7".to_owned());
    stand.runtime.publish(again).await.unwrap();
    let one = |events: &[String]| {
        events
            .iter()
            .filter(|e| e.starts_with("MessageCorrelated"))
            .count()
    };
    support::eventually("the first one arrives", async || {
        one(&stand.events(waiting).await) == 1
    })
    .await;
    // One without an id is another message, and comes behind all of them.
    stand.publish("go", "k7", r#"{"last": true}"#).await;
    stand.finished(waiting).await;
    let ended = stand.runtime.instance(waiting).await.unwrap();
    assert_eq!(
        ended.variables.get("last").map(|value| value.text()),
        Some("true")
    );
    assert_eq!(one(&stand.events(waiting).await), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_without_a_key_is_correlated_by_the_properties_of_the_model() {
    let stand = stand().await;
    let xml = r#"<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" targetNamespace="urn:tests">
  <message id="m" name="paid"/>
  <correlationProperty id="order"><correlationPropertyRetrievalExpression messageRef="m"><messagePath>orderId</messagePath></correlationPropertyRetrievalExpression></correlationProperty>
  <collaboration id="c"><participant id="p" processRef="waits"/><correlationKey id="k"><correlationPropertyRef>order</correlationPropertyRef></correlationKey></collaboration>
  <process id="waits" isExecutable="true">
    <correlationSubscription id="s" correlationKeyRef="k"><correlationPropertyBinding correlationPropertyRef="order"><dataPath>id</dataPath></correlationPropertyBinding></correlationSubscription>
    <startEvent id="start"/><intermediateCatchEvent id="catch"><messageEventDefinition messageRef="m"/></intermediateCatchEvent><endEvent id="end"/>
    <sequenceFlow id="a" sourceRef="start" targetRef="catch"/><sequenceFlow id="b" sourceRef="catch" targetRef="end"/>
  </process></definitions>"#;
    stand
        .deploy(Resource {
            name: "waits.bpmn".to_owned(),
            bytes: xml.as_bytes().to_vec(),
        })
        .await;
    let seven = stand.start("waits", r#"{"id": "o7"}"#).await.instance;
    let eight = stand.start("waits", r#"{"id": "o8"}"#).await.instance;
    let published = stand.publish("paid", "", r#"{"orderId": "o8"}"#).await;
    assert_eq!(published.delivered_to, [eight]);
    stand.runtime.wait(eight, Duration::from_secs(20)).await.unwrap();
    assert_eq!(
        stand.runtime.instance(seven).await.unwrap().row.sub_status,
        SubStatus::Suspended
    );
}
