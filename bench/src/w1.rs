//! W1: start, ten in-process no-op service tasks, end, on SQLite with full sync.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use serde_json::json;
use tidegate::api::{Resource, StartRequest};
use tidegate::status::DrainTrigger;
use tidegate::{CommitPolicy, Options, Runtime};

use crate::measure::{cpu_ms, percentile, rounded};

/// Start, `count` no-op tasks, end.
pub fn tasks(count: usize) -> Resource {
    let mut body = String::from(r#"<startEvent id="start"/>"#);
    let mut before = "start".to_owned();
    for n in 1..=count {
        body.push_str(&format!(
            r#"<serviceTask id="task{n}"><extensionElements><z:taskDefinition type="demo.noop"/></extensionElements></serviceTask><sequenceFlow id="flow{n}" sourceRef="{before}" targetRef="task{n}"/>"#
        ));
        before = format!("task{n}");
    }
    let xml = format!(
        r#"<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:z="http://camunda.org/schema/zeebe/1.0" targetNamespace="urn:bench"><process id="tasks" isExecutable="true">{body}<endEvent id="end"/><sequenceFlow id="last" sourceRef="{before}" targetRef="end"/></process></definitions>"#
    );
    Resource {
        name: "tasks.bpmn".to_owned(),
        bytes: xml.into_bytes(),
    }
}

/// One line for each policy and number in flight. Options: `seconds` (5), `in_flight` and `policy` to have only one.
pub fn run(options: &BTreeMap<String, String>) {
    let seconds: f64 = options
        .get("seconds")
        .and_then(|text| text.parse().ok())
        .unwrap_or(5.0);
    let only_in_flight: Option<usize> = options.get("in_flight").and_then(|text| text.parse().ok());
    for (policy, name) in [
        (CommitPolicy::Cycle, "cycle"),
        (CommitPolicy::Activity, "activity"),
    ] {
        if options.get("policy").is_some_and(|only| only != name) {
            continue;
        }
        for in_flight in [1, 16, 128] {
            if only_in_flight.is_none_or(|only| only == in_flight) {
                one(policy, name, in_flight, seconds);
            }
        }
    }
}

fn one(policy: CommitPolicy, name: &str, in_flight: usize, seconds: f64) {
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
                commit_policy: policy,
                ..Options::default()
            })
            .demo_activities()
            .start()
            .await
            .expect("the runtime starts");
        runtime
            .deploy(vec![tasks(10)], None, "bench")
            .await
            .expect("the process deploys");
        drive(&runtime, in_flight, 0.5).await;
        let (cpu_before, began) = (cpu_ms(), Instant::now());
        let mut times = drive(&runtime, in_flight, seconds).await;
        let (elapsed, cpu) = (began.elapsed().as_secs_f64(), cpu_ms() - cpu_before);
        times.sort_by(f64::total_cmp);
        let line = json!({
            "bench": "W1",
            "store": "sqlite",
            "policy": name,
            "in_flight": in_flight,
            "instances": times.len(),
            "per_s": (times.len() as f64 / elapsed).round(),
            "p50_ms": rounded(percentile(&times, 0.50)),
            "p99_ms": rounded(percentile(&times, 0.99)),
            "cpu_ms_per_instance": rounded(cpu / times.len() as f64),
        });
        println!("{line}");
        runtime.drain(DrainTrigger::HostStopSignal).await;
        runtime.close().await;
    });
}

/// Keeps `in_flight` instances under way for `seconds`; the time of each in milliseconds.
async fn drive(runtime: &Runtime, in_flight: usize, seconds: f64) -> Vec<f64> {
    let until = Instant::now() + std::time::Duration::from_secs_f64(seconds);
    let failed = Arc::new(AtomicU64::new(0));
    let mut clients = Vec::new();
    for _ in 0..in_flight {
        let (runtime, failed) = (runtime.clone(), failed.clone());
        clients.push(tokio::spawn(async move {
            let mut times = Vec::new();
            while Instant::now() < until {
                let began = Instant::now();
                let request = StartRequest::latest("tasks").wait(std::time::Duration::from_secs(60));
                match runtime.start(request).await {
                    Ok(ended) if ended.sub_status.is_finished() => {
                        times.push(began.elapsed().as_secs_f64() * 1e3)
                    }
                    Ok(_) | Err(_) => {
                        failed.fetch_add(1, Ordering::Relaxed);
                    }
                }
            }
            times
        }));
    }
    let mut all = Vec::new();
    for client in clients {
        all.extend(client.await.expect("a client runs to its end"));
    }
    assert_eq!(failed.load(Ordering::Relaxed), 0, "every start ends");
    all
}
