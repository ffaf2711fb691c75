//! Script tasks in a runtime.

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use tidegate::Runtime;
use tidegate::api::{Resource, StartRequest};
use tidegate::model::{SubStatus, Variables};
use tidegate::status::DrainTrigger;
use tidegate_script::{FORMATS, JOB_TYPE, ScriptActivity};
use tokio::sync::Notify;

use crate::support::{WORKER, patient};

fn process(script: &str) -> Resource {
    let xml = format!(
        r#"<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" targetNamespace="urn:tests">
  <process id="p" isExecutable="true">
    <startEvent id="start"/><sequenceFlow id="a" sourceRef="start" targetRef="task"/>
    <scriptTask id="task" scriptFormat="javascript"><script>{script}</script></scriptTask>
    <sequenceFlow id="b" sourceRef="task" targetRef="end"/><endEvent id="end"/>
  </process></definitions>"#
    );
    Resource {
        name: "p.bpmn".into(),
        bytes: xml.into_bytes(),
    }
}

async fn runtime(scripts: ScriptActivity, script: &str) -> Runtime {
    let options = tidegate::Options {
        drain_deadline: Duration::from_millis(100),
        ..Default::default()
    };
    let formats = FORMATS.iter().map(|format| (*format).to_owned()).collect();
    let builder = Runtime::builder()
        .options(options)
        .script_formats(formats)
        .activity(JOB_TYPE, Arc::new(scripts));
    let runtime = builder.start().await.unwrap();
    runtime.deploy(vec![process(script)], None, "test").await.unwrap();
    runtime
}

#[tokio::test]
async fn a_script_tasks_result_becomes_variables_of_the_instance() {
    let scripts = ScriptActivity::new(patient(), || Command::new(WORKER));
    let runtime = runtime(scripts, "({ total: price * count })").await;
    let mut request = StartRequest::latest("p").wait(Duration::from_secs(60));
    request.variables = Variables::parse(r#"{"price": 3, "count": 4}"#).unwrap();
    let started = runtime.start(request).await.unwrap();
    assert_eq!(started.sub_status, SubStatus::Finished);
    assert_eq!(started.variables.unwrap().get("total").unwrap().text(), "12");
    runtime.drain(DrainTrigger::HostStopSignal).await;
    runtime.close().await;
}

#[tokio::test]
async fn a_drain_interrupts_a_script_and_loses_nothing() {
    let began = Arc::new(Notify::new());
    let seen = Arc::clone(&began);
    let scripts = ScriptActivity::new(patient(), move || {
        seen.notify_one();
        Command::new(WORKER)
    });
    let runtime = runtime(scripts, "for (;;) {}").await;
    let started = runtime.start(StartRequest::latest("p")).await.unwrap();
    began.notified().await;
    runtime.drain(DrainTrigger::HostStopSignal).await;
    let detail = runtime.instance(started.instance).await.unwrap();
    assert_eq!(detail.row.sub_status, SubStatus::Interrupted);
    runtime.close().await;
}
