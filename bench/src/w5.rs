//! W5: SIGTERM under load. How long the exit takes beyond the longest activity, and that nothing is interrupted.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;
use tidegate::model::SubStatus;
use tidegate::store::Queries;
use tidegate::store::sqlite::SqliteStore;

use crate::load::Load;
use crate::measure::{percentile, rounded};
use crate::server::{Server, report};
use crate::setting::{self, Said, chain, flow, option, print, process, task};

/// Options: `rounds` (10), `seconds` of load before each signal (1), `in_flight` (128), `nap_ms` (200): the one activity of
/// the second line's process.
pub fn run(said: &Said) {
    let nap = Duration::from_millis(option(said, "nap_ms", 200));
    rounds(said, &chain("tasks", "demo.noop", 10), "tasks", Duration::ZERO);
    let header = format!(
        r#"<z:taskHeaders><z:header key="duration" value="PT{}S"/></z:taskHeaders></extensionElements>"#,
        nap.as_secs_f64()
    );
    let body = [
        r#"<startEvent id="start"/><endEvent id="end"/>"#.to_owned(),
        task("nap", "demo.sleep").replace("</extensionElements>", &header),
        flow("start", "nap"),
        flow("nap", "end"),
    ];
    rounds(said, &process("napping", "", &body.concat()), "napping", nap);
}

fn rounds(said: &Said, file: &tidegate::api::Resource, id: &str, longest: Duration) {
    let rounds: usize = option(said, "rounds", 10);
    let mut beyond = Vec::new();
    let (mut ended, mut rested) = (0, 0);
    for _ in 0..rounds {
        let (took, told, at_rest) = setting::on_tokio(round(said, file, id));
        beyond.push((took.saturating_sub(longest)).as_secs_f64() * 1e3);
        ended += told;
        rested += at_rest;
    }
    beyond.sort_by(f64::total_cmp);
    print(json!({
        "bench": "W5", "process": id, "store": "sqlite", "policy": "activity",
        "in_flight": option(said, "in_flight", 128), "rounds": rounds,
        "longest_activity_ms": rounded(longest.as_secs_f64() * 1e3),
        "ended_before": ended, "came_to_rest": rested, "interrupted": 0,
        "exit_beyond_p50_ms": rounded(percentile(&beyond, 0.5)),
        "exit_beyond_max_ms": rounded(percentile(&beyond, 1.0)),
    }));
}

/// How long the exit took, how many instances had ended before, and how many came to rest in the drain.
async fn round(said: &Said, file: &tidegate::api::Resource, id: &str) -> (Duration, u64, u64) {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let server = Server::start(said, folder.path(), &[]);
    server.deploy(file).await;
    let load = Load::begin(&server, id, option(said, "in_flight", 128)).await;
    tokio::time::sleep(Duration::from_secs_f64(option(said, "seconds", 1.0))).await;
    let before = load.ended();
    let began = Instant::now();
    server.signal(Signal::TERM);
    let ended = tokio::task::spawn_blocking(move || server.end()).await;
    let took = began.elapsed();
    let (code, log) = ended.expect("the server ends");
    let told = load.told().await;
    assert_eq!(code, Some(0), "everything came to rest: {log}");
    let report = report(&log);
    let outcome = &report["outcome"];
    assert_eq!(outcome["executionCyclesForceCancelledCount"], 0, "{report}");
    let store = SqliteStore::open(&folder.path().join("tidegate.db")).expect("the store opens");
    let counts = store.counts().expect("the instances can be counted");
    for (sub_status, count) in SubStatus::ALL.into_iter().zip(counts) {
        // Starts that came after the signal were accepted, and wait for the next generation.
        let is_lawful = matches!(sub_status, SubStatus::Finished | SubStatus::Pending);
        assert!(
            count == 0 || is_lawful,
            "{count} instances are {sub_status:?}: {report}"
        );
    }
    for key in told.ended {
        let row = store.instance(key).expect("it can be read");
        let sub_status = row.map(|row| row.sub_status);
        assert_eq!(sub_status, Some(SubStatus::Finished), "{key} was told as ended");
    }
    for key in told.accepted {
        let row = store.instance(key).expect("it can be read");
        assert!(row.is_some(), "{key} was accepted and is lost");
    }
    let rested = outcome["executionCyclesCompletedCount"].as_u64().unwrap_or(0);
    (took, before, rested)
}
