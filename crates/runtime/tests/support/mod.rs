//! What the tests of the runtime share: processes as text, a runtime on a store of their choice, a manual clock.
#![allow(dead_code)]

pub mod log;
pub mod model;
pub mod simulated;

use std::sync::Arc;
use std::time::Duration;

use tidegate::api::{ActivateJobs, Definition, MessageRequest, Resource, StartRequest, Started};
use tidegate::clock::ManualClock;
use tidegate::model::{InstanceKey, Timestamp, Variables};
use tidegate::store::Store;
use tidegate::store::memory::MemoryStore;
use tidegate::{Builder, Options, Runtime};

/// Where the manual clock of the tests begins.
pub const BEGINNING: Timestamp = Timestamp::from_ms(1_800_000_000_000);

/// A process around `body`, with namespaces declared. `extra` stands beside the process.
pub fn process_with(id: &str, extra: &str, body: &str) -> Resource {
    let xml = format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<bpmn:definitions xmlns:bpmn="http://www.omg.org/spec/BPMN/20100524/MODEL"
    xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
    xmlns:zeebe="http://camunda.org/schema/zeebe/1.0" xmlns:tidegate="urn:tidegate:bpmn" targetNamespace="urn:tests">
  {extra}
  <bpmn:process id="{id}" isExecutable="true">{body}</bpmn:process>
</bpmn:definitions>"#
    );
    Resource {
        name: format!("{id}.bpmn"),
        bytes: xml.into_bytes(),
    }
}

/// A process around `body`.
pub fn process(id: &str, body: &str) -> Resource {
    process_with(id, "", body)
}

/// A straight line of elements: start, `middle`, end; each is (id, xml with `{}` for nothing).
pub fn line(id: &str, middle: &[(&str, String)]) -> Resource {
    let mut body = String::from(r#"<bpmn:startEvent id="start"/>"#);
    let mut before = "start".to_owned();
    for (element, xml) in middle {
        body.push_str(xml);
        body.push_str(&flow(&before, element));
        before = (*element).to_owned();
    }
    body.push_str(r#"<bpmn:endEvent id="end"/>"#);
    body.push_str(&flow(&before, "end"));
    process(id, &body)
}

/// A sequence flow.
pub fn flow(from: &str, to: &str) -> String {
    format!(r#"<bpmn:sequenceFlow id="{from}-{to}" sourceRef="{from}" targetRef="{to}"/>"#)
}

/// A service task with headers.
pub fn task(id: &str, job_type: &str, headers: &[(&str, &str)]) -> String {
    let headers: String = headers
        .iter()
        .map(|(key, value)| format!(r#"<zeebe:header key="{key}" value="{value}"/>"#))
        .collect();
    format!(
        r#"<bpmn:serviceTask id="{id}"><bpmn:extensionElements><zeebe:taskDefinition type="{job_type}"/>
        <zeebe:taskHeaders>{headers}</zeebe:taskHeaders></bpmn:extensionElements></bpmn:serviceTask>"#
    )
}

/// A process that waits for message `go`, correlated by variable `key`, as often as `times`.
pub fn waits_for_message(id: &str, times: usize) -> Resource {
    let mut body = String::from(r#"<bpmn:startEvent id="start"/>"#);
    let mut before = "start".to_owned();
    for turn in 0..times {
        let catch = format!("catch{turn}");
        body.push_str(&format!(
            r#"<bpmn:intermediateCatchEvent id="{catch}"><bpmn:messageEventDefinition messageRef="m"/></bpmn:intermediateCatchEvent>"#
        ));
        body.push_str(&flow(&before, &catch));
        before = catch;
    }
    body.push_str(r#"<bpmn:endEvent id="end"/>"#);
    body.push_str(&flow(&before, "end"));
    let message = r#"<bpmn:message id="m" name="go"><bpmn:extensionElements><zeebe:subscription correlationKey="=key"/></bpmn:extensionElements></bpmn:message>"#;
    process_with(id, message, &body)
}

/// A process that waits for a timer.
pub fn waits_for_timer(id: &str, duration: &str) -> Resource {
    line(
        id,
        &[(
            "wait",
            format!(
                r#"<bpmn:intermediateCatchEvent id="wait"><bpmn:timerEventDefinition><bpmn:timeDuration xsi:type="bpmn:tFormalExpression">{duration}</bpmn:timeDuration></bpmn:timerEventDefinition></bpmn:intermediateCatchEvent>"#
            ),
        )],
    )
}

/// A runtime with its store and its clock.
pub struct Stand {
    pub runtime: Runtime,
    pub store: Arc<dyn Store>,
    pub clock: ManualClock,
}

/// A runtime on a fresh memory store.
pub async fn stand() -> Stand {
    stand_with(|builder| builder).await
}

/// A runtime on a fresh memory store, built with `change`.
pub async fn stand_with(change: impl FnOnce(Builder) -> Builder) -> Stand {
    stand_on(Arc::new(MemoryStore::new()), ManualClock::new(BEGINNING), change).await
}

/// A runtime on a store of before.
pub async fn stand_on(
    store: Arc<dyn Store>,
    clock: ManualClock,
    change: impl FnOnce(Builder) -> Builder,
) -> Stand {
    let builder = Runtime::builder()
        .store(store.clone())
        .clock(Arc::new(clock.clone()))
        .options(Options {
            owners: 2,
            ..Options::default()
        })
        .demo_activities();
    let runtime = change(builder).start().await.expect("the runtime starts");
    Stand {
        runtime,
        store,
        clock,
    }
}

impl Stand {
    pub async fn deploy(&self, resource: Resource) {
        if let Err(error) = self.runtime.deploy(vec![resource], None, "test").await {
            match &error {
                tidegate::Error::NotDeployable(diagnostics) => {
                    let all: Vec<_> = diagnostics.iter().map(ToString::to_string).collect();
                    panic!("not deployable:\n{}", all.join("\n"));
                }
                other => panic!("not deployable: {other}"),
            }
        }
    }

    pub async fn start(&self, process_id: &str, variables: &str) -> Started {
        let request = StartRequest::latest(process_id).variables(Variables::parse(variables).unwrap());
        self.runtime.start(request).await.expect("the start is taken")
    }

    pub async fn run(&self, process_id: &str, variables: &str) -> Started {
        let request = StartRequest::latest(process_id)
            .variables(Variables::parse(variables).unwrap())
            .wait(Duration::from_secs(20));
        self.runtime.start(request).await.expect("the instance ends")
    }

    pub async fn publish(&self, name: &str, key: &str, variables: &str) -> tidegate::api::Published {
        self.runtime
            .publish(message(name, key, variables))
            .await
            .expect("the message is taken")
    }

    /// The next job of a type, leased.
    pub async fn job(&self, job_type: &str) -> tidegate::api::LeasedJob {
        let mut wanted = jobs(job_type, Duration::from_secs(20));
        wanted.max_jobs = 1;
        let mut found = self.runtime.activate_jobs(wanted).await.unwrap();
        found
            .pop()
            .unwrap_or_else(|| panic!("there is no job {job_type}"))
    }

    /// Completes the next job of a type.
    pub async fn complete(&self, job_type: &str, variables: &str) {
        let job = self.job(job_type).await;
        let variables = Variables::parse(variables).unwrap();
        let done = self
            .runtime
            .complete_job(job.job, &job.lease_token, variables)
            .await;
        done.unwrap();
    }

    /// The next job of a type throws an error.
    pub async fn throw(&self, job_type: &str, code: &str) {
        let job = self.job(job_type).await;
        let (code, message) = (code.to_owned(), "thrown by the test".to_owned());
        let (key, token) = (job.job, job.lease_token);
        let thrown = self
            .runtime
            .throw_job_error(key, &token, code, message, Variables::new());
        thrown.await.unwrap();
    }

    /// Waits for the end of an instance.
    pub async fn finished(&self, instance: InstanceKey) -> Started {
        let ended = self
            .runtime
            .wait(instance, Duration::from_secs(20))
            .await
            .expect("it ends");
        assert_eq!(ended.sub_status, tidegate::model::SubStatus::Finished);
        self.idle().await;
        ended
    }

    /// How often an event like `ElementCompleted end` happened in an instance.
    pub async fn times(&self, instance: InstanceKey, event: &str) -> usize {
        self.events(instance).await.iter().filter(|e| *e == event).count()
    }

    /// The only incident, as soon as there is one.
    pub async fn incident(&self) -> tidegate::store::IncidentRow {
        let deadline = std::time::Instant::now() + Duration::from_secs(20);
        loop {
            let page = tidegate::store::Page::first(10);
            let mut found = self.runtime.incidents(Default::default(), page).await.unwrap();
            if let [_] = found.as_slice() {
                return found.remove(0);
            }
            assert!(std::time::Instant::now() < deadline, "incidents: {found:?}");
            tokio::task::yield_now().await;
        }
    }

    /// Waits until no cycle is live: a permit is given back after the answer.
    pub async fn idle(&self) {
        while self.runtime.quiescence().live() > 0 {
            tokio::task::yield_now().await;
        }
    }

    /// The events of an instance with the elements they concern.
    pub async fn events(&self, instance: InstanceKey) -> Vec<String> {
        let items = self.runtime.history(instance, 0, 10_000_000).await.unwrap();
        items
            .iter()
            .map(|item| match &item.element_id {
                Some(id) => format!("{} {id}", item.event),
                None => item.event.to_owned(),
            })
            .collect()
    }

    /// Waits until the sub-status of an instance, as stored, satisfies `is`.
    pub async fn until(
        &self,
        instance: InstanceKey,
        is: impl Fn(&tidegate::api::InstanceDetail) -> bool,
    ) -> tidegate::api::InstanceDetail {
        let deadline = std::time::Instant::now() + Duration::from_secs(20);
        loop {
            let detail = self.runtime.instance(instance).await.unwrap();
            if is(&detail) {
                return detail;
            }
            assert!(
                std::time::Instant::now() < deadline,
                "{instance} stays {:?}",
                detail.row.sub_status
            );
            tokio::task::yield_now().await;
        }
    }
}

pub fn message(name: &str, key: &str, variables: &str) -> MessageRequest {
    MessageRequest {
        name: name.to_owned(),
        correlation_key: key.to_owned(),
        variables: Variables::parse(variables).unwrap(),
        ttl: None,
        message_id: None,
        tenant: None,
        actor: "test".to_owned(),
        source: None,
    }
}

pub fn jobs(job_type: &str, wait: Duration) -> ActivateJobs {
    ActivateJobs {
        job_type: job_type.to_owned(),
        worker: "test".to_owned(),
        max_jobs: 10,
        lease: Duration::from_secs(60),
        wait,
        tenant: None,
    }
}

/// The newest version of a process.
pub fn latest(process_id: &str) -> Definition {
    Definition::Latest(process_id.to_owned())
}

pub mod sources;

/// Every kind of store that a test can have, with what keeps it alive.
pub fn stores() -> Vec<(Arc<dyn Store>, Option<tempfile::TempDir>)> {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("t.db").display());
    vec![
        (Arc::new(MemoryStore::new()), None),
        (tidegate::store::open(&url).unwrap(), Some(folder)),
    ]
}

/// A store that can be told to fail, over a fresh memory store.
pub fn faulty() -> Arc<tidegate::store::faulty::FaultyStore> {
    Arc::new(tidegate::store::faulty::FaultyStore::new(Arc::new(
        MemoryStore::new(),
    )))
}

/// An error of a store that cannot be reached now.
pub fn unreachable() -> tidegate::store::Error {
    tidegate::store::Error::new(
        tidegate::store::ErrorKind::Unavailable,
        "the store cannot be reached",
    )
}

/// Waits until `is`, by asking again and again.
pub async fn eventually(what: &str, is: impl AsyncFn() -> bool) {
    let deadline = std::time::Instant::now() + Duration::from_secs(20);
    while !is().await {
        assert!(std::time::Instant::now() < deadline, "{what}");
        tokio::task::yield_now().await;
    }
}

impl Stand {
    /// The instances of one sub-status, newest first.
    pub async fn listed(&self, sub_status: tidegate::model::SubStatus) -> Vec<InstanceKey> {
        let filter = tidegate::store::InstanceFilter {
            sub_statuses: vec![sub_status],
            ..Default::default()
        };
        let rows = self
            .runtime
            .instances(filter, tidegate::store::Page::first(10_000))
            .await
            .unwrap();
        rows.into_iter().map(|row| row.key).collect()
    }

    /// The actions of the audit trail, oldest first.
    pub async fn audited(&self) -> Vec<String> {
        let rows = self
            .runtime
            .audit(tidegate::store::Page::first(1_000))
            .await
            .unwrap();
        rows.into_iter()
            .rev()
            .map(|row| row.action)
            .filter(|action| action != "DefinitionsDeployed")
            .collect()
    }

    /// One source as the status shows it.
    pub async fn source(&self, name: &str) -> tidegate::status::SourceStatus {
        let status = self.runtime.status().await.unwrap();
        status
            .sources
            .into_iter()
            .find(|source| source.name == name)
            .unwrap()
    }
}

/// A line with one task of a duration.
pub fn slow(id: &str, job_type: &str, duration: &str) -> Resource {
    line(id, &[("work", task("work", job_type, &[("duration", duration)]))])
}
