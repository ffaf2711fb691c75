//! W6: W1's process started over HTTP by clients that wait for its end, beside the same through the library; and job workers
//! over HTTP, ten jobs an instance.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;
use tidegate::CommitPolicy;
use tokio::sync::{Mutex, mpsc};

use crate::load::Load;
use crate::measure::{cpu_ms, cpu_ms_of, rounded};
use crate::server::Server;
use crate::setting::{self, Said, chain, option, print};
use crate::w1;

/// Jobs of an instance.
const JOBS: usize = 10;

/// Options: `seconds` (5), `part` (`start` or `jobs`) to have only one, `in_flight` (128), `completers` (64) and
/// `pollers` (4): connections of workers.
pub fn run(said: &Said) {
    if said.get("part").is_none_or(|only| only == "start") {
        setting::on_tokio(start(said));
    }
    if said.get("part").is_none_or(|only| only == "jobs") {
        setting::on_tokio(jobs(said));
    }
}

async fn start(said: &Said) {
    let seconds: f64 = option(said, "seconds", 5.0);
    let in_flight: usize = option(said, "in_flight", 128);
    let before = w1::one(CommitPolicy::Cycle, in_flight, seconds / 2.0).await.per_s;
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let server = Server::start(said, folder.path(), &["--commit-policy", "cycle"]);
    server.deploy(&chain("tasks", "demo.noop", 10)).await;
    let load = Load::begin(&server, "tasks", in_flight).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let (began, ended) = (Instant::now(), load.ended());
    let (own, of_server) = (cpu_ms(), cpu_ms_of(server.id()));
    tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
    let instances = (load.ended() - ended) as f64;
    let per_s = instances / began.elapsed().as_secs_f64();
    let (own, of_server) = (cpu_ms() - own, cpu_ms_of(server.id()) - of_server);
    end(server).await;
    load.told().await;
    let after = w1::one(CommitPolicy::Cycle, in_flight, seconds / 2.0).await.per_s;
    let library = (before + after) / 2.0;
    print(json!({
        "bench": "W6", "part": "start", "store": "sqlite", "policy": "cycle", "in_flight": in_flight,
        "per_s": per_s.round(),
        "library_per_s": library.round(),
        "share_of_library": rounded(per_s / library),
        "server_cpu_ms_per_instance": rounded(of_server / instances),
        "client_cpu_ms_per_instance": rounded(own / instances),
    }));
}

/// What the workers have done.
#[derive(Default)]
struct Done {
    completed: AtomicU64,
    is_over: AtomicBool,
    seen: Mutex<HashSet<String>>,
    twice: AtomicU64,
}

async fn jobs(said: &Said) {
    let seconds: f64 = option(said, "seconds", 5.0);
    let in_flight: usize = option(said, "in_flight", 128);
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let server = Server::start(said, folder.path(), &[]);
    server.deploy(&chain("jobs", "bench.work", JOBS)).await;
    let done = Arc::new(Done::default());
    let (give, take) = mpsc::channel(4_096);
    let take = Arc::new(Mutex::new(take));
    let mut workers = Vec::new();
    for _ in 0..option(said, "completers", 64) {
        let client = server.client().await;
        workers.push(tokio::spawn(complete(client, take.clone(), done.clone())));
    }
    for _ in 0..option(said, "pollers", 4) {
        let client = server.client().await;
        workers.push(tokio::spawn(poll(client, give.clone(), done.clone())));
    }
    drop(give);
    let mut starters = Vec::new();
    for _ in 0..in_flight {
        let client = server.client().await;
        starters.push(tokio::spawn(keep_starting(client, done.clone())));
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    let (began, completed) = (Instant::now(), done.completed.load(Ordering::Relaxed));
    let (own, of_server) = (cpu_ms(), cpu_ms_of(server.id()));
    tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
    let jobs = (done.completed.load(Ordering::Relaxed) - completed) as f64;
    let per_s = jobs / began.elapsed().as_secs_f64();
    let (own, of_server) = (cpu_ms() - own, cpu_ms_of(server.id()) - of_server);
    done.is_over.store(true, Ordering::Relaxed);
    let mut instances = 0;
    for starter in starters {
        instances += starter.await.expect("a client runs to its end");
    }
    for worker in workers {
        worker.await.expect("a worker runs to its end");
    }
    end(server).await;
    let all = done.completed.load(Ordering::Relaxed);
    assert_eq!(
        done.twice.load(Ordering::Relaxed),
        0,
        "no job is handed out twice"
    );
    assert_eq!(
        all,
        instances * JOBS as u64,
        "every job of every instance was done once"
    );
    print(json!({
        "bench": "W6", "part": "jobs", "store": "sqlite", "policy": "activity", "in_flight": in_flight,
        "jobs_per_s": per_s.round(),
        "instances": instances, "jobs": all,
        "server_cpu_ms_per_job": rounded(of_server / jobs),
        "client_cpu_ms_per_job": rounded(own / jobs),
        "lost": 0, "twice": 0,
    }));
}

async fn end(server: Server) {
    server.signal(Signal::TERM);
    let ended = tokio::task::spawn_blocking(move || server.end()).await;
    let (code, log) = ended.expect("the server ends");
    assert_eq!(code, Some(0), "{log}");
}

/// Starts instances one after the other, until it is over. How many.
async fn keep_starting(mut client: crate::http::Client, done: Arc<Done>) -> u64 {
    let body = r#"{"processId":"jobs","awaitCompletion":true,"requestTimeoutMs":60000}"#;
    let mut ended = 0;
    while !done.is_over.load(Ordering::Relaxed) {
        let answer = client.post("/api/v1/process-instances", body).await;
        let answer = answer.expect("the server answers");
        assert_eq!(answer.body["status"], "finished", "{}", answer.body);
        ended += 1;
    }
    ended
}

/// Leases jobs until the server goes.
async fn poll(mut client: crate::http::Client, give: mpsc::Sender<(String, String)>, done: Arc<Done>) {
    let body = r#"{"type":"bench.work","worker":"bench","maxJobs":64,"leaseMs":600000,"waitMs":1000}"#;
    while let Ok(answer) = client.post("/api/v1/jobs/activate", body).await {
        if answer.status != 200 {
            return;
        }
        for job in answer.body["jobs"].as_array().expect("a list of jobs") {
            let text = |name: &str| job[name].as_str().expect("a text").to_owned();
            let (key, token) = (text("jobKey"), text("leaseToken"));
            if !done.seen.lock().await.insert(key.clone()) {
                done.twice.fetch_add(1, Ordering::Relaxed);
            }
            if give.send((key, token)).await.is_err() {
                return;
            }
        }
        if done.is_over.load(Ordering::Relaxed) && answer.body["jobs"] == json!([]) {
            return;
        }
    }
}

type Jobs = Arc<Mutex<mpsc::Receiver<(String, String)>>>;

/// Completes what was leased, one after the other.
async fn complete(mut client: crate::http::Client, take: Jobs, done: Arc<Done>) {
    loop {
        let next = take.lock().await.recv().await;
        let Some((key, token)) = next else { return };
        let path = format!("/api/v1/jobs/{key}/complete");
        let body = format!(r#"{{"leaseToken":"{token}"}}"#);
        let answer = client.post(&path, &body).await.expect("the server answers");
        assert_eq!(answer.status, 200, "a job is completed once: {}", answer.body);
        done.completed.fetch_add(1, Ordering::Relaxed);
    }
}
