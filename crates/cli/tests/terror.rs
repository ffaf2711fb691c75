//! SIGTERM with 500 live instances, round after round: what can end in time ends, the rest is marked, the exit comes
//! within the deadline and the reserve, and the next start resumes every one that was cut.
//!
//! `ROUNDS` says how often (3 if it is not set; `make terror` takes 50).

mod common;

use std::path::Path;
use std::time::{Duration, Instant};

use common::Serve;
use futures_util::StreamExt;
use rustix::process::Signal;
use serde_json::{Value, json};
use tidegate::model::SubStatus;
use tidegate::store::{InstanceFilter, Page};

/// Instances of each kind: half of them can end in time, a quarter obeys when it is told to stop, a quarter does not.
const SHORT: usize = 250;
const LONG: usize = 125;
const STUBBORN: usize = 125;
const ALL: usize = SHORT + LONG + STUBBORN;
const CUT: usize = LONG + STUBBORN;
/// What the short ones take; the whole load is up well before the first of them ends.
const SHORT_TIME: &str = "PT3S";
const DEADLINE: Duration = Duration::from_secs(5);
const RESERVE: Duration = Duration::from_secs(1);
/// Requests at once.
const CLIENTS: usize = 16;

#[tokio::test(flavor = "multi_thread")]
async fn sigterm_with_500_live_instances_ends_marks_and_resumes_them_all() {
    let rounds = std::env::var("ROUNDS").map_or(3, |text| text.parse().expect("ROUNDS is a number"));
    for round in 1..=rounds {
        let report = round_of_terror().await;
        println!("round {round} of {rounds}: {report}");
    }
}

async fn round_of_terror() -> String {
    let home = tempfile::tempdir().unwrap();
    let server = serve(home.path());
    for (process, handler, duration) in [
        ("short", "demo.sleep", SHORT_TIME),
        ("long", "demo.sleep", "PT10M"),
        ("stubborn", "demo.stubborn", "PT10M"),
    ] {
        let file = home.path().join(format!("{process}.bpmn"));
        std::fs::write(&file, common::sleeper(process, handler, duration)).unwrap();
        server.ok(&["deploy", file.to_str().unwrap()]);
    }
    start_all(&server).await;
    let status = server.json(&["status"]);
    assert_eq!(
        status["activeExecutionCycleCount"], ALL,
        "all of them are live: {status}"
    );

    let began = Instant::now();
    server.signal(Signal::TERM);
    let ended = server.end();
    let took = began.elapsed();
    assert_eq!(ended.code(), 10, "{}", ended.stderr);
    assert!(took < DEADLINE + RESERVE, "the exit came after {took:?}");
    let report = ended.report();
    let outcome = &report["outcome"];
    assert_eq!(outcome["overallResult"], "DeadlineExceeded", "{report}");
    assert_eq!(outcome["executionCyclesCompletedCount"], SHORT, "{report}");
    assert_eq!(outcome["executionCyclesForceCancelledCount"], CUT, "{report}");
    assert_eq!(outcome["executionCyclesAbandonedCount"], STUBBORN, "{report}");
    assert_eq!(outcome["persistenceFailureCount"], 0, "{report}");
    let summary = report["summary"].as_str().unwrap();
    assert!(
        summary.contains(&format!("{SHORT} cycles came to rest, {CUT} were interrupted")),
        "{summary}"
    );
    assert_eq!(in_store(home.path()), (SHORT, CUT));

    let mut next = serve(home.path());
    let log = next.wait_for_log("recovery is done");
    let line = log
        .lines()
        .find(|line| line.contains("recovery is done"))
        .unwrap();
    assert!(
        line.contains(&format!("interrupted={CUT}")) && line.contains("crashed=0"),
        "{line}"
    );
    let status = next.json(&["status"]);
    assert_eq!(
        status["activeExecutionCycleCount"], CUT,
        "every one runs again: {status}"
    );
    assert_eq!(status["interruptedInstanceCount"], 0, "{status}");
    next.signal(Signal::INT);
    next.wait_for_log("SIGINT: draining");
    next.signal(Signal::INT);
    assert_eq!(next.end().code(), 11);
    format!("exit after {took:.2?}; {summary}")
}

fn serve(home: &Path) -> Serve {
    let data = home.join("data");
    let seconds = |duration: Duration| format!("{}s", duration.as_secs());
    let arguments = [
        "--data",
        data.to_str().unwrap(),
        "--drain-deadline",
        &seconds(DEADLINE),
    ];
    let reserve = ["--persist-reserve", &seconds(RESERVE)];
    // A log line for each abandoned cycle would be noise here.
    Serve::with(&[&arguments[..], &reserve[..]].concat(), &[("NO_COLOR", "1")])
}

async fn start_all(server: &Serve) {
    let http = reqwest::Client::new();
    let kinds = [("stubborn", STUBBORN), ("long", LONG), ("short", SHORT)];
    let processes = kinds
        .into_iter()
        .flat_map(|(process, count)| std::iter::repeat_n(process, count));
    let url = format!("{}/api/v1/process-instances", server.url);
    let token = server.token.as_deref().unwrap();
    let starts = processes.map(|process| {
        let request = http
            .post(&url)
            .bearer_auth(token)
            .json(&json!({ "processId": process }));
        async move {
            let answer = request.send().await.unwrap();
            let status = answer.status();
            let started: Value = answer.json().await.unwrap();
            assert_eq!(
                (status.as_u16(), &started["subStatus"]),
                (200, &json!("executing")),
                "{started}"
            );
        }
    });
    futures_util::stream::iter(starts)
        .buffer_unordered(CLIENTS)
        .collect::<Vec<()>>()
        .await;
}

/// Finished and interrupted instances; there are no others.
fn in_store(home: &Path) -> (usize, usize) {
    let url = format!("sqlite:{}", home.join("data/tidegate.db").display());
    let store = tidegate::store::open(&url).unwrap();
    let count = |sub_statuses: Vec<SubStatus>| {
        let filter = InstanceFilter {
            sub_statuses,
            ..InstanceFilter::default()
        };
        store.instances(&filter, Page::first(10_000)).unwrap().len()
    };
    let counts = (
        count(vec![SubStatus::Finished]),
        count(vec![SubStatus::Interrupted]),
    );
    assert_eq!(count(Vec::new()), ALL);
    store.close();
    counts
}
