//! L01: the throughput of one shell while its sibling pauses, drains and reloads. Paired slices, alternating, so that
//! what else the machine does hits both; aim: a median ratio of at least 0.95.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use tidegate::api::{Resource, StartRequest};
use tidegate::shell::{Blueprint, Shell, Wrong};
use tidegate::store::{self, Store};
use tidegate::{Builder, Options, Runtime};

use crate::measure::{percentile, rounded};

/// Starts that are under way at once.
const CLIENTS: usize = 32;

const PROCESS: &str = r#"<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:z="http://camunda.org/schema/zeebe/1.0" targetNamespace="urn:bench">
<process id="quick" isExecutable="true"><startEvent id="start"/><sequenceFlow id="f1" sourceRef="start" targetRef="work"/>
<serviceTask id="work"><extensionElements><z:taskDefinition type="demo.noop"/></extensionElements></serviceTask>
<sequenceFlow id="f2" sourceRef="work" targetRef="end"/><endEvent id="end"/></process></definitions>"#;

struct InFolder(String);

impl Blueprint for InFolder {
    fn store(&self) -> Result<Arc<dyn Store>, store::Error> {
        store::open(&self.0)
    }

    fn generation(&self) -> Result<Builder, Wrong> {
        let options = Options {
            owners: 1,
            drain_deadline: Duration::from_millis(500),
            ..Options::default()
        };
        Ok(Runtime::builder().options(options).demo_activities())
    }
}

/// Prints one line; options `pairs` (default 20) and `slice_ms` (default 500).
pub fn run(options: &BTreeMap<String, String>) {
    let number = |name: &str, default: u64| {
        options
            .get(name)
            .and_then(|text| text.parse().ok())
            .unwrap_or(default)
    };
    let (pairs, slice) = (
        number("pairs", 20),
        Duration::from_millis(number("slice_ms", 500)),
    );
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let tokio = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("an async runtime can be made");
    tokio.block_on(async {
        let open = |id: &str| {
            let url = format!("sqlite:{}", folder.path().join(format!("{id}.db")).display());
            Shell::new(id, InFolder(url))
        };
        let (a, b) = (open("a"), open("b"));
        a.activate().await.expect("the shell starts");
        let runtime = b.activate().await.expect("the shell starts");
        let file = Resource {
            name: "quick.bpmn".to_owned(),
            bytes: PROCESS.as_bytes().to_vec(),
        };
        runtime
            .deploy(vec![file], None, "bench")
            .await
            .expect("the process deploys");
        let done = Arc::new(AtomicU64::new(0));
        let is_over = Arc::new(AtomicBool::new(false));
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| tokio::spawn(client(runtime.clone(), done.clone(), is_over.clone())))
            .collect();
        measure(&done, slice).await;
        let mut ratios = Vec::new();
        let mut calm_rates = Vec::new();
        for pair in 0..pairs {
            // Which of the two comes first alternates.
            let (calm, busy) = if pair % 2 == 0 {
                let calm = measure(&done, slice).await;
                (calm, busy(&a, &done, slice).await)
            } else {
                let busy = busy(&a, &done, slice).await;
                (measure(&done, slice).await, busy)
            };
            ratios.push(busy / calm);
            calm_rates.push(calm);
        }
        is_over.store(true, Ordering::Relaxed);
        for client in clients {
            client.await.expect("a client ends");
        }
        ratios.sort_by(f64::total_cmp);
        calm_rates.sort_by(f64::total_cmp);
        let line = json!({
            "benchmark": "shells", "pairs": pairs, "sliceMs": slice.as_millis() as u64,
            "instancesPerSecond": rounded(percentile(&calm_rates, 0.5)),
            "medianRatio": rounded(percentile(&ratios, 0.5)),
            "lowestRatio": rounded(ratios.first().copied().unwrap_or_default()),
        });
        println!("{line}");
        for shell in [a, b] {
            shell.stop().await;
            shell.close().await;
        }
    });
}

async fn client(runtime: Runtime, done: Arc<AtomicU64>, is_over: Arc<AtomicBool>) {
    while !is_over.load(Ordering::Relaxed) {
        let request = StartRequest::latest("quick").wait(Duration::from_secs(10));
        runtime.start(request).await.expect("it starts and ends");
        done.fetch_add(1, Ordering::Relaxed);
    }
}

/// Instances a second within one slice.
async fn measure(done: &AtomicU64, slice: Duration) -> f64 {
    let (before, began) = (done.load(Ordering::Relaxed), Instant::now());
    tokio::time::sleep(slice).await;
    (done.load(Ordering::Relaxed) - before) as f64 / began.elapsed().as_secs_f64()
}

/// The same while the sibling pauses, resumes and reloads, as an operator would: a few times a second.
async fn busy(sibling: &Shell, done: &AtomicU64, slice: Duration) -> f64 {
    let work = async {
        loop {
            let runtime = sibling.runtime().expect("the sibling runs");
            runtime.pause(None, None, "bench").await.expect("it pauses");
            tokio::time::sleep(slice / 10).await;
            runtime.resume("bench").await.expect("it resumes");
            sibling.reload("bench").await.expect("it reloads");
            tokio::time::sleep(slice / 10).await;
        }
    };
    tokio::select! {
        rate = measure(done, slice) => rate,
        () = work => 0.0,
    }
}
