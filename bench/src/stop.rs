//! `mark` and `recover`: what a deadline costs with many live cycles, and how soon they are back, on SQLite with full
//! sync.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;
use tidegate::api::{Resource, StartRequest};
use tidegate::model::SubStatus;
use tidegate::status::{DrainOutcome, DrainTrigger};
use tidegate::{Options, Runtime};

use crate::measure::rounded;
use crate::setting::on_tokio;

/// One task that sleeps for an hour, unless it is told to stop.
const SLEEPS: &str = r#"<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:z="http://camunda.org/schema/zeebe/1.0" targetNamespace="urn:bench">
<process id="sleeps" isExecutable="true"><startEvent id="s"/><sequenceFlow id="a" sourceRef="s" targetRef="t"/>
<serviceTask id="t"><extensionElements><z:taskDefinition type="demo.sleep"/><z:taskHeaders><z:header key="duration" value="PT1H"/></z:taskHeaders></extensionElements></serviceTask>
<sequenceFlow id="b" sourceRef="t" targetRef="e"/><endEvent id="e"/></process></definitions>"#;

/// Marking `count` (2,000) live cycles at the deadline.
pub fn mark(options: &BTreeMap<String, String>) {
    let count = count(options, 2_000);
    on_tokio(async {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let (outcome, took) = cut(folder.path(), count).await;
        let ms = |duration: Duration| rounded(duration.as_secs_f64() * 1e3);
        let line = json!({
            "bench": "mark",
            "store": "sqlite",
            "cycles": count,
            "marked": outcome.execution_cycles_force_cancelled_count,
            "not_saved": outcome.persistence_failure_count,
            "settle_ms": ms(outcome.settle_phase_duration),
            "mark_ms": ms(outcome.persist_phase_duration),
            "drain_ms": ms(took),
        });
        println!("{line}");
    });
}

/// Bringing `count` (1,000) interrupted instances back: from the activation until each runs again.
pub fn recover(options: &BTreeMap<String, String>) {
    let count = count(options, 1_000);
    on_tokio(async {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        cut(folder.path(), count).await;
        let began = Instant::now();
        let runtime = start(folder.path(), Duration::from_millis(1)).await;
        let activated = began.elapsed();
        let executing = usize::from(SubStatus::Executing.code());
        while runtime.counts().await.expect("the instances can be counted")[executing] < count as u64 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let line = json!({
            "bench": "recover",
            "store": "sqlite",
            "instances": count,
            "activate_ms": rounded(activated.as_secs_f64() * 1e3),
            "all_back_ms": rounded(began.elapsed().as_secs_f64() * 1e3),
        });
        println!("{line}");
        runtime.drain(DrainTrigger::HostStopSignal).await;
        runtime.close().await;
    });
}

pub fn count(options: &BTreeMap<String, String>, usual: usize) -> usize {
    options
        .get("count")
        .and_then(|text| text.parse().ok())
        .unwrap_or(usual)
}

pub async fn start(folder: &Path, drain_deadline: Duration) -> Runtime {
    let url = format!("sqlite:{}", folder.join("bench.db").display());
    let store = tidegate::store::open(&url).expect("the store opens");
    let options = Options {
        drain_deadline,
        ..Options::default()
    };
    let runtime = Runtime::builder()
        .store(store)
        .options(options)
        .demo_activities()
        .start()
        .await;
    runtime.expect("the runtime starts")
}

/// `count` cycles that are live at the deadline of a drain.
async fn cut(folder: &Path, count: usize) -> (DrainOutcome, Duration) {
    let runtime = start(folder, Duration::from_millis(1)).await;
    let file = Resource {
        name: "sleeps.bpmn".to_owned(),
        bytes: SLEEPS.as_bytes().to_vec(),
    };
    runtime
        .deploy(vec![file], None, "bench")
        .await
        .expect("the process deploys");
    let one = |runtime: Runtime| async move { runtime.start(StartRequest::latest("sleeps")).await };
    let starts: Vec<_> = (0..count).map(|_| tokio::spawn(one(runtime.clone()))).collect();
    for started in starts {
        started
            .await
            .expect("a start runs to its end")
            .expect("the start is taken");
    }
    let began = Instant::now();
    let outcome = runtime.drain(DrainTrigger::HostStopSignal).await;
    let took = began.elapsed();
    runtime.close().await;
    (outcome, took)
}
