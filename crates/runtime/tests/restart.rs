//! Doing again what a finished instance did, from an element on, as one act.

mod support;

use support::model::model;
use support::{BEGINNING, Stand, faulty, line, stand, stand_on, stand_with, stores, task, unreachable};
use tidegate::Error;
use tidegate::api::{Definition, StartRequest};
use tidegate::clock::ManualClock;
use tidegate::model::{Beginning, InstanceKey, Place, Rejection, SubStatus, Variables};
use tidegate::restart::RestartRequest;
use tidegate::store::{Page, Write};

fn before(id: &str) -> Vec<Beginning> {
    vec![Beginning {
        place: Place::Before(id.to_owned()),
        scope: None,
        variables: Variables::new(),
    }]
}

fn steps() -> tidegate::api::Resource {
    let steps = ["a", "b", "c"].map(|id| (id, task(id, id, &[])));
    line("steps", &steps)
}

/// An instance that went through all of it.
async fn finished(stand: &Stand) -> InstanceKey {
    let mut request = StartRequest::latest("steps").variables(Variables::parse(r#"{"x": 1}"#).unwrap());
    request.business_key = Some("order 7".to_owned());
    let key = stand.runtime.start(request).await.unwrap().instance;
    for step in ["a", "b", "c"] {
        stand.complete(step, "{}").await;
    }
    stand.finished(key).await;
    key
}

fn request(key: InstanceKey, at: &str) -> RestartRequest {
    RestartRequest {
        variables: Variables::parse(r#"{"y": 2}"#).unwrap(),
        reason: Some("wrong parcel".to_owned()),
        ..RestartRequest::from(key, before(at), "ann")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_finished_instance_is_done_again_from_an_element_on() {
    for (store, _folder) in stores() {
        let stand = stand_on(store, ManualClock::new(BEGINNING), |b| b).await;
        stand.deploy(steps()).await;
        let old = finished(&stand).await;
        let history = stand.events(old).await;

        let plan = stand.runtime.plan_restart(request(old, "b")).await.unwrap();
        let begins: Vec<_> = plan
            .started
            .iter()
            .map(|line| line.element_id.as_deref())
            .collect();
        assert_eq!(begins, [Some("b")]);
        assert_eq!(
            stand.runtime.counts().await.unwrap().iter().sum::<u64>(),
            1,
            "a dry run begins nothing"
        );

        let done = stand.runtime.restart(request(old, "b")).await.unwrap();
        assert_eq!((done.plan, done.started.accepted), (plan, None));
        let new = done.started.instance;
        let job = stand.job("b").await;
        assert_eq!((job.instance, job.variables.as_str()), (new, r#"{"x":1,"y":2}"#));
        let none = Variables::new();
        stand
            .runtime
            .complete_job(job.job, &job.lease_token, none)
            .await
            .unwrap();
        stand.complete("c", "{}").await;
        stand.finished(new).await;
        assert_eq!(stand.times(new, "ElementActivated a").await, 0);
        assert_eq!(stand.times(new, "ElementActivated start").await, 0);
        let row = stand.runtime.instance(new).await.unwrap().row;
        assert_eq!((row.business_key.as_deref(), row.version), (Some("order 7"), 1));

        // What has ended stays as it is, and who did it is known on both sides.
        assert_eq!(stand.events(old).await, history);
        let items = stand.runtime.history(new, 0, 10).await.unwrap();
        assert_eq!(items[0].event, "InstanceStarted");
        let cause = serde_json::to_value(&items[0].cause).unwrap();
        assert_eq!(
            (&cause["kind"], &cause["actor"]),
            (&"operator".into(), &"ann".into())
        );
        let words = format!("restart of instance {old}: wrong parcel");
        assert_eq!(cause["reason"], words.as_str());
        let audit = stand.runtime.audit(Page::first(1)).await.unwrap();
        assert_eq!(audit[0].action, "InstanceRestartRequested");
        assert_eq!(
            (
                audit[0].subject.clone(),
                audit[0].before.as_deref(),
                audit[0].after.clone()
            ),
            (
                Some(old.to_string()),
                Some("finished"),
                Some(format!("instance {new}"))
            )
        );
        assert_eq!(audit[0].reason.as_deref(), Some("wrong parcel"));
        stand.runtime.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_gate_is_closed_a_restart_is_accepted_and_waits_also_for_the_next_process() {
    for (store, _folder) in stores() {
        let clock = ManualClock::new(BEGINNING);
        let stand = stand_on(store.clone(), clock.clone(), |b| b).await;
        stand.deploy(steps()).await;
        let old = finished(&stand).await;
        stand.runtime.pause(None, None, "op").await.unwrap();
        let done = stand.runtime.restart(request(old, "c")).await.unwrap();
        assert!(done.started.accepted.is_some());
        assert_eq!(done.started.sub_status, SubStatus::Pending);
        assert!(
            stand
                .audited()
                .await
                .contains(&"InstanceRestartRequested".to_owned())
        );
        stand
            .runtime
            .drain(tidegate::status::DrainTrigger::HostStopSignal)
            .await;
        assert!(stand.runtime.release().await);
        let next = stand_on(store, clock, |b| b).await;
        next.complete("c", "{}").await;
        next.finished(done.started.instance).await;
        assert_eq!(next.times(done.started.instance, "ElementActivated b").await, 0);
        next.runtime.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_that_cannot_be_is_refused_and_leaves_nothing() {
    let stand = stand().await;
    stand.deploy(steps()).await;
    let old = finished(&stand).await;
    let live = stand.start("steps", "{}").await.instance;
    let refused = stand.runtime.restart(request(live, "b")).await.unwrap_err();
    assert_eq!(refused.code(), "instance-not-ended");
    let refused = stand
        .runtime
        .restart(request(InstanceKey(1), "b"))
        .await
        .unwrap_err();
    assert_eq!(refused.code(), "instance-not-found");
    match stand.runtime.restart(request(old, "nowhere")).await {
        Err(Error::Rejected(Rejection::Obstructed(reasons))) => {
            assert_eq!(reasons[0].code, "unknown-element")
        }
        other => panic!("{other:?}"),
    }
    stand.deploy(line("other", &[("a", task("a", "a", &[]))])).await;
    let elsewhere = RestartRequest {
        definition: Some(Definition::Latest("other".to_owned())),
        ..request(old, "a")
    };
    assert_eq!(
        stand.runtime.restart(elsewhere).await.unwrap_err().code(),
        "other-process"
    );
    assert_eq!(stand.runtime.counts().await.unwrap().iter().sum::<u64>(), 2);
    assert!(
        !stand
            .audited()
            .await
            .contains(&"InstanceRestartRequested".to_owned())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_and_its_audit_are_one_commit() {
    let store = faulty();
    let stand = stand_on(store.clone(), ManualClock::new(BEGINNING), |b| b).await;
    stand.deploy(steps()).await;
    let old = finished(&stand).await;
    store.fail_commits(|commit| {
        let is_audit = |write: &Write| matches!(write, Write::Audit(_));
        commit.writes.iter().any(is_audit).then(unreachable)
    });
    assert!(stand.runtime.restart(request(old, "b")).await.is_err());
    store.mend();
    stand.idle().await;
    assert_eq!(stand.runtime.counts().await.unwrap().iter().sum::<u64>(), 1);
    stand.runtime.restart(request(old, "b")).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_goes_into_sub_processes_and_listens_to_what_the_process_listens_to() {
    let stand = stand_with(|b| b).await;
    let listens = r#"<subProcess id="l" triggeredByEvent="true"><startEvent id="ls" isInterrupting="false"><messageEventDefinition messageRef="m"/></startEvent><task id="heard"/><sequenceFlow id="lf" sourceRef="ls" targetRef="heard"/></subProcess>"#;
    let inner = support::model::work("pay");
    let body = format!(
        r#"<startEvent id="s"/><subProcess id="sub"><startEvent id="is"/>{inner}<sequenceFlow id="if" sourceRef="is" targetRef="pay"/></subProcess>{listens}<endEvent id="e"/>"#
    );
    stand
        .deploy(model("steps", support::model::MESSAGE, &body, "s>sub>e"))
        .await;
    let old = stand.start("steps", r#"{"key": "k"}"#).await.instance;
    stand.complete("pay", "{}").await;
    stand.finished(old).await;
    let done = stand
        .runtime
        .restart(RestartRequest::from(old, before("pay"), "ann"))
        .await
        .unwrap();
    let new = done.started.instance;
    stand.publish("go", "k", "{}").await;
    support::eventually("it is heard", async || {
        stand.times(new, "ElementCompleted heard").await == 1
    })
    .await;
    stand.complete("pay", "{}").await;
    stand.finished(new).await;
    assert_eq!(stand.times(new, "ElementCompleted sub").await, 1);
    assert_eq!(stand.times(new, "ElementActivated is").await, 0);

    // Without a place it begins at its start.
    let again = stand
        .runtime
        .restart(RestartRequest::from(old, Vec::new(), "ann"))
        .await
        .unwrap();
    stand.complete("pay", "{}").await;
    stand.finished(again.started.instance).await;
    assert_eq!(
        stand.times(again.started.instance, "ElementActivated is").await,
        1
    );
}
