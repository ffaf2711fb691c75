//! Instances run from start to end: activities, messages, timers, jobs, user tasks, incidents.

mod support;

use std::time::Duration;

use support::{jobs, line, process, stand, stand_with, task, waits_for_message, waits_for_timer};
use tidegate::model::{SubStatus, Variables};
use tidegate::{CommitPolicy, Options};

#[tokio::test(flavor = "multi_thread")]
async fn ten_tasks_run_to_the_end_under_both_policies() {
    for commit_policy in [CommitPolicy::Activity, CommitPolicy::Cycle] {
        let stand = stand_with(|b| {
            b.options(Options {
                commit_policy,
                owners: 2,
                ..Options::default()
            })
        })
        .await;
        let ids: Vec<String> = (0..10).map(|n| format!("t{n}")).collect();
        let tasks: Vec<_> = ids
            .iter()
            .map(|id| (id.as_str(), task(id, "demo.noop", &[])))
            .collect();
        stand.deploy(line("ten", &tasks)).await;
        let ended = stand.run("ten", r#"{"a": 1.50}"#).await;
        assert_eq!(ended.sub_status, SubStatus::Finished);
        assert_eq!(ended.variables.unwrap().to_json(), r#"{"a":1.50}"#);
        let events = stand.events(ended.instance).await;
        assert_eq!(
            events.iter().filter(|e| e.starts_with("JobCompleted")).count(),
            10
        );
        assert_eq!(events.first().unwrap(), "InstanceStarted start");
        assert_eq!(events.last().unwrap(), "InstanceCompleted");
        let detail = stand.runtime.instance(ended.instance).await.unwrap();
        assert_eq!(
            detail.row.revision,
            if commit_policy == CommitPolicy::Activity {
                11
            } else {
                1
            }
        );
        stand.idle().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_and_failing_activities_come_to_their_ends() {
    let stand = stand().await;
    let tasks = [
        ("sleep", task("sleep", "demo.sleep", &[("duration", "PT0.01S")])),
        ("fail", task("fail", "demo.fail", &[("times", "2")])),
    ];
    stand.deploy(line("slow", &tasks)).await;
    let ended = stand.run("slow", "{}").await;
    assert_eq!(ended.sub_status, SubStatus::Finished);
    let events = stand.events(ended.instance).await;
    assert_eq!(events.iter().filter(|e| *e == "JobFailed fail").count(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn c04_a_panic_hurts_only_its_own_instance() {
    let stand = stand().await;
    stand
        .deploy(line("panics", &[("boom", task("boom", "demo.panic", &[]))]))
        .await;
    stand
        .deploy(line("calm", &[("quiet", task("quiet", "demo.noop", &[]))]))
        .await;
    let hurt = stand.start("panics", "{}").await;
    let detail = stand.until(hurt.instance, |d| d.row.incident_count == 1).await;
    assert_eq!(detail.row.sub_status, SubStatus::Suspended);
    let incidents = stand
        .runtime
        .incidents(Default::default(), tidegate::store::Page::first(10))
        .await
        .unwrap();
    assert!(
        incidents[0].message.contains("demo.panic was asked to panic"),
        "{}",
        incidents[0].message
    );
    assert_eq!(stand.run("calm", "{}").await.sub_status, SubStatus::Finished);
    stand.idle().await;
    // An operator ends it.
    let row = stand
        .runtime
        .cancel(hurt.instance, Some("no use".into()), "op")
        .await
        .unwrap();
    assert_eq!(row.sub_status, SubStatus::Cancelled);
    assert!(
        stand
            .runtime
            .incidents(Default::default(), tidegate::store::Page::first(10))
            .await
            .unwrap()
            .is_empty()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_find_those_that_wait_and_wait_for_those_that_come() {
    let stand = stand().await;
    stand.deploy(waits_for_message("waits", 2)).await;
    let started = stand.start("waits", r#"{"key": "k1"}"#).await;
    assert_eq!(started.sub_status, SubStatus::Suspended);
    let first = stand.publish("go", "k1", r#"{"first": true}"#).await;
    assert_eq!(first.delivered_to, [started.instance]);
    assert!(stand.publish("go", "other", "{}").await.is_buffered);
    stand
        .until(started.instance, |d| {
            d.waiting_for.iter().any(|w| w.element_id == "catch1")
        })
        .await;
    stand.publish("go", "k1", r#"{"second": true}"#).await;
    let ended = stand
        .runtime
        .wait(started.instance, Duration::from_secs(20))
        .await
        .unwrap();
    assert_eq!(
        ended.variables.unwrap().to_json(),
        r#"{"first":true,"key":"k1","second":true}"#
    );
    // Buffered first, then taken by who comes.
    let late = stand.start("waits", r#"{"key": "other"}"#).await;
    stand
        .until(late.instance, |d| {
            d.waiting_for.iter().any(|w| w.element_id == "catch1")
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timer_fires_when_the_clock_says_so() {
    let stand = stand().await;
    stand.deploy(waits_for_timer("naps", "PT1H")).await;
    let started = stand.start("naps", "{}").await;
    let barely = 3_599_999;
    stand.clock.advance(barely);
    assert_eq!(
        stand
            .runtime
            .instance(started.instance)
            .await
            .unwrap()
            .row
            .sub_status,
        SubStatus::Suspended
    );
    stand.clock.advance(1);
    let ended = stand
        .runtime
        .wait(started.instance, Duration::from_secs(20))
        .await
        .unwrap();
    assert_eq!(ended.sub_status, SubStatus::Finished);
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_lease_complete_fail_and_throw() {
    let stand = stand().await;
    stand
        .deploy(line("external", &[("work", task("work", "pay", &[("a", "b")]))]))
        .await;
    let started = stand.start("external", r#"{"sum": 7}"#).await;
    assert_eq!(started.sub_status, SubStatus::Suspended);
    let leased = stand
        .runtime
        .activate_jobs(jobs("pay", Duration::ZERO))
        .await
        .unwrap();
    assert_eq!(leased.len(), 1);
    let job = &leased[0];
    assert_eq!(
        (job.variables.as_str(), job.headers.as_str()),
        (r#"{"sum":7}"#, r#"{"a":"b"}"#)
    );
    assert!(
        stand
            .runtime
            .activate_jobs(jobs("pay", Duration::ZERO))
            .await
            .unwrap()
            .is_empty()
    );
    let wrong = stand
        .runtime
        .complete_job(job.job, "not-mine", Variables::new())
        .await
        .unwrap_err();
    assert_eq!(wrong.code(), "stale-lease");
    stand
        .runtime
        .fail_job(job.job, &job.lease_token, "no money".into(), Some(1), None)
        .await
        .unwrap();
    let again = stand
        .runtime
        .activate_jobs(jobs("pay", Duration::from_secs(20)))
        .await
        .unwrap();
    assert_eq!(again[0].retries, 1);
    // The last try fails: an incident, which an operator retries.
    stand
        .runtime
        .fail_job(job.job, &again[0].lease_token, "still none".into(), None, None)
        .await
        .unwrap();
    let incidents = stand
        .runtime
        .incidents(Default::default(), tidegate::store::Page::first(10))
        .await
        .unwrap();
    assert_eq!(incidents.len(), 1);
    assert!(
        stand
            .runtime
            .activate_jobs(jobs("pay", Duration::ZERO))
            .await
            .unwrap()
            .is_empty()
    );
    stand
        .runtime
        .retry_incident(incidents[0].key, Some(2), "op")
        .await
        .unwrap();
    let last = stand
        .runtime
        .activate_jobs(jobs("pay", Duration::from_secs(20)))
        .await
        .unwrap();
    let done = Variables::parse(r#"{"paid": true}"#).unwrap();
    stand
        .runtime
        .complete_job(last[0].job, &last[0].lease_token, done)
        .await
        .unwrap();
    let ended = stand
        .runtime
        .wait(started.instance, Duration::from_secs(20))
        .await
        .unwrap();
    assert_eq!(ended.variables.unwrap().to_json(), r#"{"paid":true,"sum":7}"#);
    let gone = stand
        .runtime
        .complete_job(last[0].job, &last[0].lease_token, Variables::new())
        .await
        .unwrap_err();
    assert_eq!(gone.code(), "job-not-found");
}

#[tokio::test(flavor = "multi_thread")]
async fn people_claim_and_complete_user_tasks() {
    let stand = stand().await;
    stand.deploy(process("asks", r#"<bpmn:startEvent id="s"/><bpmn:userTask id="ask" name="Ask"/><bpmn:endEvent id="e"/>
        <bpmn:sequenceFlow id="f1" sourceRef="s" targetRef="ask"/><bpmn:sequenceFlow id="f2" sourceRef="ask" targetRef="e"/>"#)).await;
    let started = stand.start("asks", "{}").await;
    let tasks = stand
        .runtime
        .user_tasks(Default::default(), tidegate::store::Page::first(10))
        .await
        .unwrap();
    assert_eq!(tasks.len(), 1);
    stand
        .runtime
        .claim_user_task(tasks[0].key, Some("ann".into()), "ann")
        .await
        .unwrap();
    let taken = stand
        .runtime
        .claim_user_task(tasks[0].key, Some("bob".into()), "bob")
        .await
        .unwrap_err();
    assert_eq!(taken.code(), "user-task-claimed");
    let answer = Variables::parse(r#"{"answer": "yes"}"#).unwrap();
    stand
        .runtime
        .complete_user_task(tasks[0].key, answer, "ann")
        .await
        .unwrap();
    let ended = stand
        .runtime
        .wait(started.instance, Duration::from_secs(20))
        .await
        .unwrap();
    assert_eq!(ended.sub_status, SubStatus::Finished);
}

#[tokio::test(flavor = "multi_thread")]
async fn b08_case_062_the_same_idempotency_key_starts_one_instance() {
    let stand = stand().await;
    stand.deploy(waits_for_message("once", 1)).await;
    let request = || {
        let mut request = tidegate::api::StartRequest::latest("once");
        request.variables = Variables::parse(r#"{"key": "k"}"#).unwrap();
        request.idempotency_key = Some("order-7".into());
        request
    };
    let (a, b) = tokio::join!(stand.runtime.start(request()), stand.runtime.start(request()));
    let (a, b) = (a.unwrap(), b.unwrap());
    assert_eq!(a.instance, b.instance);
    stand.publish("go", "k", "{}").await;
    stand
        .runtime
        .wait(a.instance, Duration::from_secs(20))
        .await
        .unwrap();
    let after = stand.runtime.start(request()).await.unwrap();
    assert_eq!(
        (after.instance, after.sub_status),
        (a.instance, SubStatus::Finished)
    );
}
