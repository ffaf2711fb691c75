//! W1: start, ten in-process no-op service tasks, end, on SQLite with full sync.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use tidegate::api::StartRequest;
use tidegate::status::DrainTrigger;
use tidegate::{CommitPolicy, Options, Runtime};

use crate::bare;
use crate::measure::{cpu_ms, percentile, rounded};
use crate::setting::{self, Said, chain, option, print};

/// One line for each policy and number in flight. Options: `seconds` (5), `in_flight` and `policy` to have only one,
/// `bare` (1): seconds that the bare store is measured before and after each line, 0 for not at all.
pub fn run(said: &Said) {
    let only_in_flight: usize = option(said, "in_flight", 0);
    for (policy, name) in [
        (CommitPolicy::Cycle, "cycle"),
        (CommitPolicy::Activity, "activity"),
    ] {
        if said.get("policy").is_some_and(|only| only != name) {
            continue;
        }
        for in_flight in [1, 16, 128] {
            if only_in_flight == 0 || only_in_flight == in_flight {
                line(said, policy, name, in_flight);
            }
        }
    }
}

fn line(said: &Said, policy: CommitPolicy, name: &str, in_flight: usize) {
    let seconds = option(said, "seconds", 5.0);
    let bare_for = Duration::from_secs_f64(option(said, "bare", 1.0));
    let bare = || bare::commits_per_s(1, bare_for);
    let before = (!bare_for.is_zero()).then(bare);
    let measured = setting::on_tokio(one(policy, in_flight, seconds));
    let after = (!bare_for.is_zero()).then(bare);
    let mut line = json!({
        "bench": "W1",
        "store": "sqlite",
        "policy": name,
        "in_flight": in_flight,
        "instances": measured.times.len(),
        "per_s": measured.per_s.round(),
        "p50_ms": rounded(percentile(&measured.times, 0.50)),
        "p99_ms": rounded(percentile(&measured.times, 0.99)),
        "cpu_ms_per_instance": rounded(measured.cpu_ms),
        "commits_per_instance": rounded(measured.commits),
        "syncs_per_instance": rounded(measured.syncs),
    });
    if let (Some(before), Some(after)) = (before, after) {
        let bare = (before + after) / 2.0;
        line["bare_commits_per_s"] = json!(bare.round());
        line["share_of_bare"] = json!(rounded(measured.per_s * measured.commits / bare));
    }
    print(line);
    if policy == CommitPolicy::Activity {
        assert!(
            measured.commits >= 10.0,
            "each result is on disk before the next task begins"
        );
    }
}

/// What a run gave.
pub struct Measured {
    /// How long each instance took, in milliseconds, the shortest first.
    pub times: Vec<f64>,
    pub per_s: f64,
    /// Processor time, commits and syncs of one instance.
    pub cpu_ms: f64,
    pub commits: f64,
    pub syncs: f64,
}

/// The process with so many in flight for so long, after half a second of warming up.
pub async fn one(policy: CommitPolicy, in_flight: usize, seconds: f64) -> Measured {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let (runtime, tally) = start(folder.path(), policy).await;
    runtime
        .deploy(vec![chain("tasks", "demo.noop", 10)], None, "bench")
        .await
        .expect("the process deploys");
    drive(&runtime, in_flight, 0.5).await;
    let (cpu_before, before, began) = (cpu_ms(), tally(), Instant::now());
    let mut times = drive(&runtime, in_flight, seconds).await;
    let (elapsed, cpu, after) = (began.elapsed().as_secs_f64(), cpu_ms() - cpu_before, tally());
    times.sort_by(f64::total_cmp);
    runtime.drain(DrainTrigger::HostStopSignal).await;
    runtime.close().await;
    let instances = times.len() as f64;
    Measured {
        per_s: instances / elapsed,
        times,
        cpu_ms: cpu / instances,
        commits: (after.0 - before.0) as f64 / instances,
        syncs: (after.1 - before.1) as f64 / instances,
    }
}

/// A runtime, and how many commits and transactions its store has made.
async fn start(folder: &Path, policy: CommitPolicy) -> (Runtime, impl Fn() -> (u64, u64)) {
    let store = setting::store(folder);
    let runtime = Runtime::builder()
        .store(store.clone())
        .options(Options {
            commit_policy: policy,
            ..Options::default()
        })
        .demo_activities()
        .start()
        .await
        .expect("the runtime starts");
    (runtime, move || store.tally())
}

/// Keeps `in_flight` instances under way for `seconds`; the time of each in milliseconds.
async fn drive(runtime: &Runtime, in_flight: usize, seconds: f64) -> Vec<f64> {
    let until = Instant::now() + Duration::from_secs_f64(seconds);
    let failed = Arc::new(AtomicU64::new(0));
    let mut clients = Vec::new();
    for _ in 0..in_flight {
        let (runtime, failed) = (runtime.clone(), failed.clone());
        clients.push(tokio::spawn(async move {
            let mut times = Vec::new();
            while Instant::now() < until {
                let began = Instant::now();
                let request = StartRequest::latest("tasks").wait(Duration::from_secs(60));
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
