//! W4: `kill -9` under load, and the restart: how soon it answers, how soon everything is done, and that nothing is lost or
//! ends twice.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;
use tidegate::CommitPolicy;
use tidegate::api::Resource;
use tidegate::model::InstanceKey;
use tidegate::status::DrainTrigger;
use tidegate::store::{InstanceFilter, Page, Queries};

use crate::http::Client;
use crate::load::{Load, Told};
use crate::measure::{percentile, rounded};
use crate::server::Server;
use crate::setting::{self, Said, chain, option, print};

/// How long everything may take to be done after a restart.
const PATIENCE: Duration = Duration::from_secs(60);

/// Options: `rounds` (5), `seconds` of load before each kill (2), `in_flight` (128), `policy` (both).
pub fn run(said: &Said) {
    for policy in ["activity", "cycle"] {
        if said.get("policy").is_none_or(|only| only == policy) {
            of_policy(said, policy);
        }
    }
}

fn of_policy(said: &Said, policy: &str) {
    let rounds: usize = option(said, "rounds", 5);
    let mut sum = Figures::default();
    for _ in 0..rounds {
        setting::on_tokio(round(said, policy, &mut sum));
    }
    for times in [&mut sum.answer_ms, &mut sum.done_ms] {
        times.sort_by(f64::total_cmp);
    }
    print(json!({
        "bench": "W4", "store": "sqlite", "policy": policy, "in_flight": option(said, "in_flight", 128),
        "rounds": rounds, "acknowledged": sum.acknowledged, "recovered": sum.recovered,
        "first_answer_p50_ms": rounded(percentile(&sum.answer_ms, 0.5)),
        "first_answer_max_ms": rounded(percentile(&sum.answer_ms, 1.0)),
        "all_done_p50_ms": rounded(percentile(&sum.done_ms, 0.5)),
        "all_done_max_ms": rounded(percentile(&sum.done_ms, 1.0)),
        "lost": 0, "ended_twice": 0,
    }));
}

#[derive(Default)]
struct Figures {
    answer_ms: Vec<f64>,
    done_ms: Vec<f64>,
    acknowledged: usize,
    recovered: u64,
}

async fn round(said: &Said, policy: &str, sum: &mut Figures) {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let settings = ["--commit-policy", policy];
    let server = Server::start(said, folder.path(), &settings);
    server.deploy(&process()).await;
    let load = Load::begin(&server, "tasks", option(said, "in_flight", 128)).await;
    tokio::time::sleep(Duration::from_secs_f64(option(said, "seconds", 2.0))).await;
    server.signal(Signal::KILL);
    let _ = server.end();
    let told = load.told().await;

    let began = Instant::now();
    let server = Server::start(said, folder.path(), &settings);
    let mut client = server.client().await;
    let start = r#"{"processId":"tasks","awaitCompletion":true}"#;
    let answer = client.post("/api/v1/process-instances", start).await;
    let answer = answer.expect("the server answers");
    sum.answer_ms.push(began.elapsed().as_secs_f64() * 1e3);
    assert_eq!(answer.status, 200, "new work is done: {}", answer.body);
    while is_any_running(&mut client).await {
        assert!(began.elapsed() < PATIENCE, "an instance is stuck");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    sum.done_ms.push(began.elapsed().as_secs_f64() * 1e3);
    server.signal(Signal::TERM);
    let (code, log) = server.end();
    assert_eq!(code, Some(0), "{log}");
    sum.acknowledged += told.ended.len() + told.accepted.len();
    sum.recovered += check(folder.path(), told).await;
}

fn process() -> Resource {
    chain("tasks", "demo.noop", 10)
}

async fn is_any_running(client: &mut Client) -> bool {
    let page = client
        .get("/api/v1/process-instances?status=running&limit=1")
        .await;
    let page = page.expect("the server answers");
    let items = page.body["items"].as_array();
    !items.expect("a list of instances").is_empty()
}

/// Everything that was told is there, and everything that is there has ended once. How many instances a crash had left.
async fn check(folder: &std::path::Path, told: Told) -> u64 {
    std::fs::rename(folder.join("tidegate.db"), folder.join("bench.db")).expect("the file can be moved");
    for log in ["-wal", "-shm"] {
        // There is none if the last one who closed it has taken it along.
        let _ = std::fs::rename(
            folder.join(format!("tidegate.db{log}")),
            folder.join(format!("bench.db{log}")),
        );
    }
    let (runtime, mut all, mut recovered) = {
        let store = setting::store(folder);
        let mut all: Vec<InstanceKey> = Vec::new();
        loop {
            let page = Page {
                after: all.last().map(|key| key.get()),
                ..Page::first(1_000)
            };
            let rows = store.instances(&InstanceFilter::default(), page);
            let rows = rows.expect("the instances can be listed");
            if rows.is_empty() {
                break;
            }
            for row in rows {
                assert!(row.sub_status.is_finished(), "{} has not ended", row.key);
                all.push(row.key);
            }
        }
        drop(store);
        (setting::start(folder, CommitPolicy::Activity).await, all, 0)
    };
    all.sort_unstable();
    for key in told.ended.iter().chain(&told.accepted) {
        assert!(all.binary_search(key).is_ok(), "{key} was told and is lost");
    }
    for key in all {
        let history = runtime
            .history(key, 0, 10_000)
            .await
            .expect("its history can be read");
        let count = |event: &str| history.iter().filter(|item| item.event == event).count();
        assert_eq!(count("InstanceCompleted"), 1, "{key} ended once");
        let last = history.last().map(|item| item.event);
        assert_eq!(
            last,
            Some("InstanceCompleted"),
            "nothing follows the end of {key}"
        );
        recovered += u64::from(count("CrashRecovered") > 0);
    }
    runtime.drain(DrainTrigger::HostStopSignal).await;
    runtime.close().await;
    recovered
}
