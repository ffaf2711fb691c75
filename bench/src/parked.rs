//! How much memory instances take that wait for a message.

use std::collections::BTreeMap;

use serde_json::json;
use tidegate::api::{Resource, StartRequest};
use tidegate::model::Variables;
use tidegate::status::DrainTrigger;
use tidegate::{CommitPolicy, Options, Runtime};

use crate::measure::{cpu_ms, resident_bytes, rounded};

fn waits() -> Resource {
    let xml = r#"<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:z="http://camunda.org/schema/zeebe/1.0" targetNamespace="urn:bench">
<message id="m" name="go"><extensionElements><z:subscription correlationKey="=key"/></extensionElements></message>
<process id="waits" isExecutable="true"><startEvent id="start"/><sequenceFlow id="f1" sourceRef="start" targetRef="catch"/>
<intermediateCatchEvent id="catch"><messageEventDefinition messageRef="m"/></intermediateCatchEvent>
<sequenceFlow id="f2" sourceRef="catch" targetRef="end"/><endEvent id="end"/></process></definitions>"#;
    Resource {
        name: "waits.bpmn".to_owned(),
        bytes: xml.as_bytes().to_vec(),
    }
}

/// One line at 10,000 and one at 100,000 parked instances (option `count` for another last number).
pub fn run(options: &BTreeMap<String, String>) {
    let last: u64 = options
        .get("count")
        .and_then(|text| text.parse().ok())
        .unwrap_or(100_000);
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let tokio = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("an async runtime can be made");
    tokio.block_on(async {
        let url = format!("sqlite:{}", folder.path().join("bench.db").display());
        let store = tidegate::store::open(&url).expect("the store opens");
        let runtime = Runtime::builder()
            .store(store)
            .options(Options {
                commit_policy: CommitPolicy::Activity,
                ..Options::default()
            })
            .start()
            .await
            .expect("the runtime starts");
        deploy(&runtime).await;
        park(&runtime, 0, 100).await;
        let base = resident_bytes();
        let mut parked = 100;
        for goal in [10_000.min(last), last] {
            let (began, cpu) = (std::time::Instant::now(), cpu_ms());
            let more = goal - parked;
            park(&runtime, parked, goal).await;
            parked = goal;
            let resident = resident_bytes();
            let line = json!({
                "bench": "parked",
                "store": "sqlite",
                "policy": "activity",
                "in_flight": 128,
                "parked": parked,
                "per_s": (more as f64 / began.elapsed().as_secs_f64()).round(),
                "cpu_ms_per_instance": rounded((cpu_ms() - cpu) / more.max(1) as f64),
                "resident_mb": rounded(resident as f64 / 1e6),
                "bytes_per_parked_instance": (resident.saturating_sub(base) as f64 / parked as f64).round(),
            });
            println!("{line}");
        }
        runtime.drain(DrainTrigger::HostStopSignal).await;
        runtime.close().await;
    });
}

/// Makes the process known whose instances wait for a message.
pub async fn deploy(runtime: &Runtime) {
    let deployed = runtime.deploy(vec![waits()], None, "bench").await;
    deployed.expect("the process deploys");
}

/// Starts the instances with these numbers.
pub async fn park(runtime: &Runtime, from: u64, to: u64) {
    const CLIENTS: u64 = 128;
    let mut clients = Vec::new();
    for client in 0..CLIENTS {
        let runtime = runtime.clone();
        clients.push(tokio::spawn(async move {
            for n in (from..to).filter(|n| n % CLIENTS == client) {
                let variables = Variables::parse(&format!(r#"{{"key": "k{n}"}}"#)).expect("valid JSON");
                let started = runtime
                    .start(StartRequest::latest("waits").variables(variables))
                    .await;
                started.expect("the start is taken");
            }
        }));
    }
    for client in clients {
        client.await.expect("a client runs to its end");
    }
}
