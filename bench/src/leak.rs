//! Whether anything grows with the number of instances that have ended: many short ones through one process, with retention on.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::json;
use tidegate::api::{Resource, StartRequest};
use tidegate::status::DrainTrigger;
use tidegate::store::InstanceFilter;
use tidegate::{Options, Retention, Runtime};

use crate::measure::{cpu_ms, resident_bytes, rounded};

/// How many finished instances are kept.
const KEPT: u64 = 10_000;
/// Clients that start one after the other.
const CLIENTS: u64 = 64;

fn short() -> Resource {
    let xml = r#"<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:z="http://camunda.org/schema/zeebe/1.0" targetNamespace="urn:bench">
<process id="short" isExecutable="true"><startEvent id="start"/><sequenceFlow id="f1" sourceRef="start" targetRef="work"/>
<serviceTask id="work"><extensionElements><z:taskDefinition type="demo.noop"/></extensionElements></serviceTask>
<sequenceFlow id="f2" sourceRef="work" targetRef="end"/><endEvent id="end"/></process></definitions>"#;
    Resource {
        name: "short.bpmn".to_owned(),
        bytes: xml.as_bytes().to_vec(),
    }
}

/// A line at each tenth of `count` instances (by default 1,000,000; or the variable `COUNT`).
pub fn run(options: &BTreeMap<String, String>) {
    let of_environment = std::env::var("COUNT").ok();
    let given = options.get("count").cloned().or(of_environment);
    let count: u64 = given.and_then(|text| text.parse().ok()).unwrap_or(1_000_000);
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let tokio = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("an async runtime can be made");
    tokio.block_on(async {
        let file = folder.path().join("bench.db");
        let store = tidegate::store::open(&format!("sqlite:{}", file.display())).expect("the store opens");
        let runtime = Runtime::builder()
            .store(store)
            .demo_activities()
            .options(Options {
                retention: Retention {
                    age: None,
                    count: Some(KEPT),
                    fence: Duration::from_secs(5),
                    every: Duration::from_millis(500),
                    ..Retention::default()
                },
                ..Options::default()
            })
            .start()
            .await
            .expect("the runtime starts");
        runtime
            .deploy(vec![short()], None, "bench")
            .await
            .expect("the process deploys");
        let (mut base, step) = (0, (count / 10).max(1));
        for tenth in 1..=10 {
            let (began, cpu) = (Instant::now(), cpu_ms());
            let mut latencies = run_through(&runtime, step).await;
            latencies.sort_unstable();
            let at =
                |share: f64| latencies[((latencies.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
            let resident = resident_bytes();
            if tenth == 1 {
                base = resident;
            }
            let rows = runtime
                .counts()
                .await
                .expect("the store can be read")
                .iter()
                .sum::<u64>();
            let bytes = std::fs::metadata(&file).map_or(0, |found| found.len());
            let line = json!({
                "bench": "leak",
                "store": "sqlite",
                "instances": tenth * step,
                "per_s": (step as f64 / began.elapsed().as_secs_f64()).round(),
                "cpu_ms_per_instance": rounded((cpu_ms() - cpu) / step as f64),
                "p50_ms": rounded(at(0.5)),
                "p99_ms": rounded(at(0.99)),
                "resident_mb": rounded(resident as f64 / 1e6),
                "growth_since_first_mb": rounded((resident as f64 - base as f64) / 1e6),
                "instance_rows": rows,
                "file_mb": rounded(bytes as f64 / 1e6),
            });
            println!("{line}");
        }
        settle(&runtime).await;
        runtime.drain(DrainTrigger::HostStopSignal).await;
        runtime.close().await;
    });
}

/// Starts instances until `count` of them have ended; how long each took.
async fn run_through(runtime: &Runtime, count: u64) -> Vec<Duration> {
    let mut clients = Vec::new();
    for client in 0..CLIENTS {
        let runtime = runtime.clone();
        clients.push(tokio::spawn(async move {
            let mut latencies = Vec::new();
            for _ in (client..count).step_by(CLIENTS as usize) {
                let began = Instant::now();
                let request = StartRequest::latest("short").wait(Duration::from_secs(60));
                runtime.start(request).await.expect("the instance ends");
                latencies.push(began.elapsed());
            }
            latencies
        }));
    }
    let mut all = Vec::new();
    for client in clients {
        all.extend(client.await.expect("a client runs to its end"));
    }
    all
}

/// Says when what is beyond the limit was forgotten after the last instance.
async fn settle(runtime: &Runtime) {
    let began = Instant::now();
    let page = tidegate::store::Page::first(KEPT as usize + 1);
    while began.elapsed() < Duration::from_secs(120) {
        let rows = runtime
            .instances(InstanceFilter::default(), page)
            .await
            .expect("the store can be read");
        if rows.len() as u64 <= KEPT {
            let after_s = rounded(began.elapsed().as_secs_f64());
            println!("{}", json!({ "bench": "leak", "at_the_limit_after_s": after_s }));
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    println!("{}", json!({ "bench": "leak", "at_the_limit_after_s": null }));
}
