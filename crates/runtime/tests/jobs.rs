//! Jobs for external workers: what a pause of a part holds back, and what becomes of those whose worker is silent.

mod support;

use std::time::Duration;

use support::{Stand, flow, jobs, process_with, stand, stand_on, stores, task};
use tidegate::activity::{Activity, ActivityContext, ActivityError, ActivityFuture};
use tidegate::api::{LeasedJob, Resource, StartRequest};
use tidegate::clock::{Clock, ManualClock};
use tidegate::parts::{Part, PauseScope};

const TENANT: &str = "a";

fn one_job(id: &str) -> Resource {
    support::line(id, &[("work", task("work", "pay", &[]))])
}

async fn deploy_for(stand: &Stand, id: &str, tenant: &str) {
    let deployed = stand
        .runtime
        .deploy(vec![one_job(id)], Some(tenant.to_owned()), "test");
    deployed.await.unwrap();
}

async fn start_for(stand: &Stand, id: &str, tenant: &str) {
    let mut request = StartRequest::latest(id);
    request.tenant = Some(tenant.to_owned());
    stand.runtime.start(request).await.unwrap();
}

/// What is there to be leased, at once; it goes back.
async fn offered(stand: &Stand, tenant: &str) -> Vec<String> {
    let mut wanted = jobs("pay", Duration::ZERO);
    wanted.tenant = Some(tenant.to_owned());
    wanted.lease = Duration::ZERO;
    let found = stand.runtime.activate_jobs(wanted).await.unwrap();
    let mut found: Vec<_> = found.into_iter().map(|job| job.process_id).collect();
    found.sort();
    found
}

fn definition(tenant: &str, process_id: &str) -> Part {
    Part::Definition {
        tenant: tenant.to_owned(),
        process_id: process_id.to_owned(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn case_191_jobs_of_a_paused_part_stay_and_those_of_others_do_not() {
    for (store, _folder) in stores() {
        let stand = stand_on(store, ManualClock::new(support::BEGINNING), |b| b).await;
        for (id, tenant) in [("held", TENANT), ("free", TENANT), ("held", "b")] {
            deploy_for(&stand, id, tenant).await;
            start_for(&stand, id, tenant).await;
        }
        let both = ["free", "held"].map(str::to_owned).to_vec();
        let parts = [
            // Of the same name, in one tenant alone.
            (definition(TENANT, "held"), vec!["free".to_owned()]),
            (Part::tenant(TENANT), Vec::new()),
        ];
        for (part, left) in parts {
            // New instances wait; what is there goes on.
            pause(&stand, &part, PauseScope::NewStarts).await;
            assert_eq!(offered(&stand, TENANT).await, both, "{part}");
            pause(&stand, &part, PauseScope::Everything).await;
            assert_eq!(offered(&stand, TENANT).await, left, "{part}");
            assert_eq!(offered(&stand, "b").await, ["held"], "{part}");
            stand.runtime.resume_part(part.clone(), "op").await.unwrap();
            assert_eq!(offered(&stand, TENANT).await, both, "{part}");
        }
        stand.runtime.close().await;
    }
}

async fn pause(stand: &Stand, part: &Part, scope: PauseScope) {
    let paused = stand.runtime.pause_part(part.clone(), scope, None, None, "op");
    paused.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_poll_gets_the_job_when_its_definition_goes_on() {
    let stand = stand().await;
    stand.deploy(one_job("held")).await;
    let part = Part::definition("held");
    stand.start("held", "{}").await;
    pause(&stand, &part, PauseScope::Everything).await;
    let runtime = stand.runtime.clone();
    let poll = tokio::spawn(async move { runtime.activate_jobs(jobs("pay", Duration::from_secs(60))).await });
    stand.runtime.resume_part(part, "op").await.unwrap();
    assert_eq!(poll.await.unwrap().unwrap().len(), 1);
}

/// A process with a job of this policy, and an error `interrupted` that is caught.
fn unsafe_job(policy: &str) -> Resource {
    let work = format!(
        r#"<bpmn:serviceTask id="work" tidegate:interrupted="{policy}"><bpmn:extensionElements><zeebe:taskDefinition type="pay"/></bpmn:extensionElements></bpmn:serviceTask>"#
    );
    let rest = r#"<bpmn:startEvent id="start"/><bpmn:endEvent id="end"/><bpmn:endEvent id="mended"/>
<bpmn:boundaryEvent id="caught" attachedToRef="work"><bpmn:errorEventDefinition errorRef="e"/></bpmn:boundaryEvent>"#;
    let flows = [("start", "work"), ("work", "end"), ("caught", "mended")].map(|(from, to)| flow(from, to));
    let body = format!("{rest}{work}{}", flows.concat());
    process_with("p", r#"<bpmn:error id="e" errorCode="interrupted"/>"#, &body)
}

/// A stand with one job of this policy, whose worker has let its lease end.
async fn silent(policy: &str) -> (Stand, LeasedJob) {
    let stand = stand().await;
    stand.deploy(unsafe_job(policy)).await;
    stand.start("p", "{}").await;
    let job = stand.job("pay").await;
    stand.clock.advance(61_000);
    (stand, job)
}

async fn polled(stand: &Stand) -> usize {
    let found = stand.runtime.activate_jobs(jobs("pay", Duration::ZERO)).await;
    found.unwrap().len()
}

#[tokio::test(flavor = "multi_thread")]
async fn case_037_the_job_of_a_silent_worker_goes_to_another_asks_or_fails() {
    let (stand, _) = silent("rerun").await;
    assert_eq!(polled(&stand).await, 1);

    let (stand, job) = silent("ask").await;
    assert_eq!(polled(&stand).await, 0);
    let incident = stand.incident().await;
    assert_eq!(
        (incident.code.as_str(), incident.instance),
        ("interrupted", job.instance)
    );
    // The silent one comes too late: a person has to look first.
    let late = stand
        .runtime
        .complete_job(job.job, &job.lease_token, Default::default())
        .await;
    assert!(late.is_err());
    stand
        .runtime
        .retry_incident(incident.key, None, "op")
        .await
        .unwrap();
    stand.complete("pay", "{}").await;
    stand.finished(job.instance).await;

    let (stand, job) = silent("fail").await;
    assert_eq!(polled(&stand).await, 0);
    stand.finished(job.instance).await;
    assert_eq!(stand.times(job.instance, "ElementCompleted mended").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn case_037_behind_the_lost_job_of_one_worker_stand_the_jobs_of_others() {
    let (stand, lost) = silent("ask").await;
    let other = stand.start("p", "{}").await.instance;
    // One at a time: the lost one is the first that is looked at.
    let job = stand.job("pay").await;
    assert_eq!(job.instance, other);
    assert_eq!(stand.incident().await.instance, lost.instance);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_whose_lease_has_ended_may_complete_until_somebody_asks() {
    let (stand, job) = silent("ask").await;
    let done = stand
        .runtime
        .complete_job(job.job, &job.lease_token, Default::default());
    done.await.unwrap();
    stand.finished(job.instance).await;
}

/// A service task of the Java engines whose failed work rests twice.
fn resting(id: &str) -> Resource {
    let work = r#"<bpmn:serviceTask id="work" camunda:type="external" camunda:topic="pay"><bpmn:extensionElements>
        <camunda:failedJobRetryTimeCycle>PT10M,PT1H</camunda:failedJobRetryTimeCycle></bpmn:extensionElements></bpmn:serviceTask>"#;
    let mut resource = support::line(id, &[("work", work.to_owned())]);
    let text = String::from_utf8(resource.bytes).unwrap();
    let camunda = r#"xmlns:camunda="http://camunda.org/schema/1.0/bpmn" targetNamespace"#;
    resource.bytes = text.replacen("targetNamespace", camunda, 1).into_bytes();
    resource
}

const MINUTE: i64 = 60_000;

#[tokio::test(flavor = "multi_thread")]
async fn failed_work_rests_as_its_model_says() {
    for (store, _folder) in stores() {
        let stand = stand_on(store, ManualClock::new(support::BEGINNING), |b| b).await;
        stand.deploy(resting("p")).await;
        let instance = stand.start("p", "{}").await.instance;
        for (tries, rest) in [(3, 10), (2, 60)] {
            let job = stand.job("pay").await;
            assert_eq!(job.retries, tries);
            let message = "the bank is closed".to_owned();
            let failed = stand
                .runtime
                .fail_job(job.job, &job.lease_token, message, None, None);
            failed.await.unwrap();
            stand.clock.advance(rest * MINUTE - 1);
            let early = stand.runtime.activate_jobs(jobs("pay", Duration::ZERO)).await;
            assert!(early.unwrap().is_empty(), "{rest} minutes are not over");
            stand.clock.advance(1);
        }
        let job = stand.job("pay").await;
        assert_eq!(job.retries, 1);
        let message = "the bank is closed".to_owned();
        let failed = stand
            .runtime
            .fail_job(job.job, &job.lease_token, message, None, None);
        failed.await.unwrap();
        let incident = stand.incident().await;
        assert_eq!((incident.instance, &*incident.code), (instance, "job-no-retries"));
        stand.runtime.close().await;
    }
}

/// Fails, and notes when it was asked.
struct Failing {
    clock: ManualClock,
    asked: std::sync::Mutex<Vec<i64>>,
}

impl Activity for Failing {
    fn run(&self, _: ActivityContext) -> ActivityFuture {
        let minutes = self.clock.now().since(support::BEGINNING) / MINUTE;
        self.asked.lock().unwrap().push(minutes);
        Box::pin(async { Err(ActivityError::failed("no answer")) })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_handler_of_the_process_rests_as_its_model_says() {
    let clock = ManualClock::new(support::BEGINNING);
    let failing = std::sync::Arc::new(Failing {
        clock: clock.clone(),
        asked: std::sync::Mutex::default(),
    });
    let (store, _folder) = stores().remove(0);
    let handler = failing.clone();
    let stand = stand_on(store, clock, |builder| builder.activity("pay", handler)).await;
    stand.deploy(resting("p")).await;
    stand.start("p", "{}").await;
    for (asked, rest) in [(1, 10), (2, 60)] {
        let failed = async || failing.asked.lock().unwrap().len() == asked;
        support::eventually("it failed", failed).await;
        stand.idle().await;
        stand.clock.advance(rest * MINUTE);
    }
    stand.incident().await;
    assert_eq!(*failing.asked.lock().unwrap(), [0, 10, 70]);
}
