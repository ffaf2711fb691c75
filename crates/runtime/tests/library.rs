//! The library as a program uses it: handles.

mod support;

use std::time::Duration;

use support::{Stand, line, process, stand, task, waits_for_message};
use tidegate::api::Resource;
use tidegate::model::{LifecycleState, Status, SubStatus, Variables};
use tidegate::store::{InstanceFilter, Page};
use tidegate::unregister::{DefinitionState, LiveInstances};
use tidegate::{Error, InstanceHandle, ShutdownMode, Start};

const AMPLE: Duration = Duration::from_secs(20);

fn variables(text: &str) -> Variables {
    Variables::parse(text).unwrap()
}

async fn instances(stand: &Stand, filter: InstanceFilter) -> usize {
    stand
        .runtime
        .instances(filter, Page::first(100))
        .await
        .unwrap()
        .len()
}

#[tokio::test(flavor = "multi_thread")]
async fn f11_a_start_carries_variables_business_key_idempotency_key_and_tenant() {
    let stand = stand().await;
    let waits = stand
        .runtime
        .register_for(waits_for_message("waits", 1), Some("acme".to_owned()))
        .await
        .unwrap();
    let start = || {
        Start::new()
            .variables(variables(r#"{"key": "k", "amount": 12}"#))
            .business_key("order-1")
            .idempotency_key("once")
            .actor("shop")
    };
    let of_tenant = || start().tenant("acme");
    let started = [
        waits.start(start()).await.unwrap(),
        stand.runtime.start_latest("waits", of_tenant()).await.unwrap(),
        stand
            .runtime
            .start_version("waits", 1, of_tenant())
            .await
            .unwrap(),
    ];
    let keys: Vec<_> = started.iter().map(InstanceHandle::key).collect();
    assert!(
        keys.windows(2).all(|pair| pair[0] == pair[1]),
        "one instance: {keys:?}"
    );
    let [instance, ..] = &started;
    let row = instance.row().await.unwrap();
    assert_eq!(
        (&*row.tenant, row.business_key.as_deref()),
        ("acme", Some("order-1"))
    );
    assert_eq!(
        instance.variables().await.unwrap(),
        variables(r#"{"key": "k", "amount": 12}"#)
    );
    let history = instance.history(0, 1).await.unwrap();
    assert_eq!(
        history[0].cause,
        tidegate::model::Cause::Client {
            actor: "shop".to_owned()
        }
    );
    let by_key = InstanceFilter {
        business_key: Some("order-1".to_owned()),
        tenant: Some("acme".to_owned()),
        ..InstanceFilter::default()
    };
    assert_eq!(instances(&stand, by_key).await, 1);
    // The same idempotency key in another tenant is another one; and there is no such process.
    let other = stand.runtime.start_latest("waits", start()).await;
    assert!(matches!(other, Err(Error::NoSuchProcess { .. })), "{other:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn f08_f06_handles_start_their_own_version_and_the_newest_is_the_next() {
    let stand = stand().await;
    let first = stand
        .runtime
        .register(waits_for_message("waits", 1))
        .await
        .unwrap();
    let again = stand
        .runtime
        .register(waits_for_message("waits", 1))
        .await
        .unwrap();
    assert_eq!(
        (first.version(), again.version(), again.key()),
        (1, 1, first.key())
    );
    let second = stand
        .runtime
        .register(waits_for_message("waits", 2))
        .await
        .unwrap();
    assert_eq!((second.version(), second.process_id()), (2, "waits"));
    let version =
        async |instance: Result<InstanceHandle, Error>| instance.unwrap().row().await.unwrap().version;
    assert_eq!(version(first.start(Start::new()).await).await, 1);
    assert_eq!(
        version(stand.runtime.start_latest("waits", Start::new()).await).await,
        2
    );
    assert_eq!(
        version(stand.runtime.start_version("waits", 1, Start::new()).await).await,
        1
    );
    for unknown in [0, 3] {
        let refused = stand.runtime.start_version("waits", unknown, Start::new()).await;
        assert!(matches!(refused, Err(Error::NoSuchProcess { version: Some(v), .. }) if v == unknown));
    }
    assert_eq!(first.state().await.unwrap(), DefinitionState::Active);
    let gone = first
        .unregister(LiveInstances::AreCancelled(AMPLE))
        .await
        .unwrap();
    assert_eq!((gone.state, gone.cancelled), (DefinitionState::Deleted, 2));
    let refused = first.start(Start::new()).await;
    assert!(
        matches!(refused, Err(Error::NoSuchDefinition(key)) if key == first.key()),
        "{refused:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn e04_what_cannot_be_registered_says_why() {
    let stand = stand().await;
    let two = Resource {
        name: "two.bpmn".to_owned(),
        bytes: br#"<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" targetNamespace="t">
            <process id="a" isExecutable="true"><startEvent id="s"/></process>
            <process id="b" isExecutable="true"><startEvent id="t"/></process></definitions>"#
            .to_vec(),
    };
    assert_eq!(
        stand.runtime.register(two).await.unwrap_err().code(),
        "not-one-process"
    );
    let refused = stand.runtime.register(process("bad", "<bpmn:startEvent/>")).await;
    assert!(matches!(refused, Err(Error::NotDeployable(_))), "{refused:?}");
    let definitions = stand
        .runtime
        .definitions(Default::default(), Page::first(10))
        .await
        .unwrap();
    assert!(definitions.is_empty(), "nothing was registered");
    stand.runtime.shutdown(ShutdownMode::Drain, AMPLE).await.unwrap();
    let refused = stand.runtime.register(waits_for_message("waits", 1)).await;
    assert!(matches!(refused, Err(Error::Stopped)), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handle_tells_what_its_instance_does_until_its_end() {
    let stand = stand().await;
    let waits = stand
        .runtime
        .register(waits_for_message("waits", 1))
        .await
        .unwrap();
    let start = Start::new().variables(variables(r#"{"key": "k"}"#));
    let instance = waits.start(start.clone()).await.unwrap();
    stand.idle().await;
    let state = instance.state().await.unwrap();
    assert_eq!(
        (state.status, state.sub_status),
        (Status::Running, SubStatus::Suspended)
    );
    assert_eq!(
        (state.lifecycle, state.has_ended()),
        (LifecycleState::Active, false)
    );
    assert_eq!(instance.tokens().await.unwrap()[0].element_id, "catch0");
    assert_eq!(instance.waiting_for().await.unwrap()[0].kind, "message");
    assert!(matches!(
        instance.wait(Duration::from_millis(1)).await,
        Err(Error::WaitRanOut(_))
    ));
    stand.publish("go", "k", r#"{"answer": 42}"#).await;
    let ended = instance.wait(AMPLE).await.unwrap();
    assert_eq!(ended.variables, Some(variables(r#"{"key": "k", "answer": 42}"#)));
    assert!(instance.state().await.unwrap().has_ended());
    // The end of what has ended is answered at once, and cancelling it changes nothing.
    assert_eq!(
        instance.wait(Duration::ZERO).await.map(|e| e.sub_status).ok(),
        Some(SubStatus::Finished)
    );
    assert_eq!(
        instance.cancel(AMPLE).await.unwrap().sub_status,
        SubStatus::Finished
    );

    let held = waits.start(start.clone()).await.unwrap();
    assert!(held.suspend().await.unwrap().is_effective);
    assert_eq!(held.state().await.unwrap().lifecycle, LifecycleState::Suspended);
    assert_eq!(held.resume().await.unwrap().sub_status, SubStatus::Suspended);
    assert_eq!(held.cancel(AMPLE).await.unwrap().sub_status, SubStatus::Cancelled);

    let cancelled = waits.start(start).await.unwrap();
    assert_eq!(
        cancelled.cancel(AMPLE).await.unwrap().sub_status,
        SubStatus::Cancelled
    );
    assert_eq!(
        cancelled.cancel(AMPLE).await.unwrap().lifecycle,
        LifecycleState::Terminated
    );
    let unknown = stand.runtime.handle(tidegate::model::InstanceKey(1));
    assert!(matches!(unknown.state().await, Err(Error::NoSuchInstance(_))));
    assert!(matches!(
        unknown.cancel(AMPLE).await,
        Err(Error::NoSuchInstance(_))
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handle_shows_incidents_and_tries_them_again() {
    let stand = stand().await;
    let fails = stand
        .runtime
        .register(line("fails", &[("b", task("b", "demo.fail", &[("times", "9")]))]))
        .await
        .unwrap();
    let instance = fails.start(Start::new()).await.unwrap();
    stand.incident().await;
    let incidents = instance.incidents().await.unwrap();
    assert_eq!((incidents.len(), incidents[0].instance), (1, instance.key()));
    assert_eq!(instance.state().await.unwrap().incident_count, 1);
    instance.retry(incidents[0].key).await.unwrap();
}
