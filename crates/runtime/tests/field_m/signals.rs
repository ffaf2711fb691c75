//! Broadcasts: who starts, who fails.

use std::time::Duration;

use tidegate::api::{Published, SignalRequest};
use tidegate::model::{SubStatus, Variables};
use tidegate::store::{InstanceFilter, Page};

use crate::support::model::model;
use crate::support::{Stand, stand, stand_with};

const SIGNAL: &str = r#"<signal id="sig" name="alarm"/>"#;
const ON_SIGNAL: &str = r#"<signalEventDefinition signalRef="sig"/>"#;

async fn broadcast(stand: &Stand) -> Published {
    let request = SignalRequest {
        name: "alarm".to_owned(),
        variables: Variables::new(),
        tenant: None,
        actor: "test".to_owned(),
        source: None,
    };
    stand.runtime.broadcast(request).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn case_159_a_signal_starts_one_instance_of_each_definition() {
    // As many owners as a machine with many cores has.
    let owners = |builder: tidegate::Builder| {
        builder.options(tidegate::Options {
            owners: 8,
            ..Default::default()
        })
    };
    let stand = stand_with(owners).await;
    let body = format!(r#"<startEvent id="s">{ON_SIGNAL}</startEvent><endEvent id="e"/>"#);
    for process in ["p", "q"] {
        // A second version takes the place of the first.
        for version in ["1", "2"] {
            let task = format!(r#"{body}<task id="v{version}"/>"#);
            stand
                .deploy(model(process, SIGNAL, &task, &format!("s>v{version}>e")))
                .await;
        }
    }
    assert_eq!(broadcast(&stand).await.delivered_to.len(), 2);
    stand.idle().await;
    let all = stand
        .runtime
        .instances(InstanceFilter::default(), Page::first(100))
        .await
        .unwrap();
    let mut processes: Vec<_> = all.iter().map(|row| row.process_id.to_string()).collect();
    processes.sort();
    assert_eq!(processes, ["p", "q"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn case_161_a_receiver_that_fails_takes_nobody_with_it() {
    const WAITING: usize = 1_000;
    let stand = stand().await;
    let body = format!(
        r#"<startEvent id="s"/><intermediateCatchEvent id="c">{ON_SIGNAL}</intermediateCatchEvent><exclusiveGateway id="g"/><endEvent id="e"/>{}"#,
        crate::support::model::flow_if("g", "e", "=not(bad)")
    );
    stand.deploy(model("p", SIGNAL, &body, "s>c>g")).await;
    let mut waiting = Vec::new();
    for number in 0..WAITING {
        let bad = number == WAITING / 2;
        waiting.push(stand.start("p", &format!(r#"{{"bad": {bad}}}"#)).await.instance);
    }
    let thrown = broadcast(&stand).await;
    assert_eq!(thrown.delivered_to.len(), WAITING);
    let incident = stand.incident().await;
    assert_eq!(incident.instance, waiting[WAITING / 2]);
    for (number, instance) in waiting.into_iter().enumerate() {
        if number != WAITING / 2 {
            let ended = stand
                .runtime
                .wait(instance, Duration::from_secs(20))
                .await
                .unwrap();
            assert_eq!(ended.sub_status, SubStatus::Finished);
        }
    }
}
