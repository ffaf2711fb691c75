//! US1: SIGTERM while an activity runs. What can end does so before the exit; what cannot is cut, on record, and
//! goes on by itself in the next process.

mod common;

use std::io::{Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use common::Serve;
use rustix::process::Signal;
use tidegate::model::{InstanceKey, SubStatus};
use tidegate::store::Page;

fn deploy_sleeper(server: &Serve, home: &Path, duration: &str) {
    let file = home.join("sleeper.bpmn");
    let xml = format!(
        r#"<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:zeebe="http://camunda.org/schema/zeebe/1.0" targetNamespace="test">
  <process id="sleeper" isExecutable="true"><startEvent id="start"/><sequenceFlow id="a" sourceRef="start" targetRef="sleep"/>
  <serviceTask id="sleep"><extensionElements><zeebe:taskDefinition type="demo.sleep"/><zeebe:taskHeaders><zeebe:header key="duration" value="{duration}"/></zeebe:taskHeaders></extensionElements></serviceTask>
  <sequenceFlow id="b" sourceRef="sleep" targetRef="end"/><endEvent id="end"/></process></definitions>"#
    );
    std::fs::write(&file, xml).unwrap();
    server.ok(&["deploy", file.to_str().unwrap()]);
}

fn start_sleeper(server: &Serve) -> String {
    let started = server.json(&["start", "sleeper"]);
    assert_eq!(started["subStatus"], "executing", "{started}");
    started["instanceKey"].as_str().unwrap().to_owned()
}

#[test]
fn a_running_activity_ends_before_the_exit_and_nothing_starts_after_the_signal() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let mut server = Serve::start(&["--data", data.to_str().unwrap()]);
    deploy_sleeper(&server, home.path(), "PT5S");
    let key = start_sleeper(&server);
    let began = Instant::now();
    server.signal(Signal::TERM);
    server.wait_for_log("SIGTERM: draining");
    // What arrives during the drain is accepted and not executed.
    let late = server.json(&["start", "sleeper"]);
    assert_eq!(
        (&late["accepted"], &late["subStatus"]),
        (&true.into(), &"pending".into()),
        "{late}"
    );
    let ended = server.end();
    assert_eq!(ended.code(), 0, "{}", ended.stderr);
    assert!(
        began.elapsed() > Duration::from_secs(4),
        "the activity was waited for: {:?}",
        began.elapsed()
    );
    let outcome = &ended.report()["outcome"];
    assert_eq!(outcome["overallResult"], "CompletedWithinDeadline");
    assert_eq!(outcome["executionCyclesCompletedCount"], 1);

    let url = format!("sqlite:{}", database(&data).display());
    let store = tidegate::store::open(&url).unwrap();
    let row = store.instance(key.parse().unwrap()).unwrap().unwrap();
    assert_eq!(row.sub_status, SubStatus::Finished, "at rest in the store");
    let late: InstanceKey = late["instanceKey"].as_str().unwrap().parse().unwrap();
    let row = store.instance(late).unwrap().unwrap();
    assert_eq!(row.sub_status, SubStatus::Pending);
    assert!(
        store.journal(late, 0, 10).unwrap().is_empty(),
        "nothing started after the signal"
    );
    assert_eq!(
        store
            .instances(&Default::default(), Page::first(10))
            .unwrap()
            .len(),
        2
    );
    store.close();
}

#[test]
fn at_the_deadline_the_cycle_is_cut_and_the_next_process_ends_it() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let arguments = ["--data", data.to_str().unwrap(), "--drain-deadline", "1s"];
    let mut server = Serve::start(&arguments);
    deploy_sleeper(&server, home.path(), "PT5S");
    let key = start_sleeper(&server);
    server.signal(Signal::TERM);
    server.wait_for_log("SIGTERM: draining");
    let ended = server.end();
    assert_eq!(ended.code(), 10, "{}", ended.stderr);
    let report = ended.report();
    let outcome = &report["outcome"];
    assert_eq!(outcome["overallResult"], "DeadlineExceeded");
    assert_eq!(outcome["forceCancelledInstanceIds"][0], key.as_str());
    let spent: f64 = ["settlePhaseDuration", "persistPhaseDuration"]
        .iter()
        .map(|phase| seconds(&outcome[phase]))
        .sum();
    let waited = seconds(&outcome["pausePhaseDuration"]) + seconds(&outcome["waitPhaseDuration"]);
    assert!(
        (0.9..2.0).contains(&waited),
        "the deadline of a second: {waited} s"
    );
    assert!(
        spent < 0.5,
        "the cut lies inside the reserve of 500 ms: {spent} s"
    );

    let mut next = Serve::start(&["--data", data.to_str().unwrap()]);
    next.wait_for_log("recovery is done");
    let ended = {
        let until = Instant::now() + Duration::from_secs(25);
        loop {
            let instance = next.json(&["instance", &key]);
            if instance["status"] == "finished" {
                break instance;
            }
            assert!(Instant::now() < until, "{instance}");
        }
    };
    assert_eq!(ended["subStatus"], "finished");
    let history = next.json(&["history", &key]);
    let items = history["items"].as_array().unwrap();
    let position = |event: &str| items.iter().position(|item| item["event"] == event);
    let record = &items[position("WorkflowInterrupted").expect("the record is still in the history")];
    for field in [
        "interruptedAt",
        "reason",
        "generationId",
        "lastActivityId",
        "lastActivityNodeId",
        "ingressSourceName",
        "executionCycleDuration",
    ] {
        assert!(!record["payload"][field].is_null(), "{field}: {record}");
    }
    assert_eq!(record["payload"]["reason"], "DeadlineBreach");
    assert_eq!(record["payload"]["lastActivityNodeId"], "sleep");
    assert_eq!(record["payload"]["ingressSourceName"], "http.api");
    assert!(position("WorkflowInterrupted") < position("InstanceCompleted"));
    assert_eq!(position("CrashRecovered"), None);
    assert_eq!(position("JobFailed"), None, "no retry is used up");
    next.signal(Signal::TERM);
    assert_eq!(next.end().code(), 0);
}

/// `hh:mm:ss.fffffff` in seconds.
fn seconds(clock: &serde_json::Value) -> f64 {
    let text = clock.as_str().unwrap_or_else(|| panic!("{clock} is no duration"));
    text.split(':')
        .fold(0.0, |sum, part| sum * 60.0 + part.parse::<f64>().unwrap())
}

fn database(data: &Path) -> std::path::PathBuf {
    let files = std::fs::read_dir(data)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut databases = files.filter(|path| path.extension().is_some_and(|extension| extension == "db"));
    databases.next().expect("the data directory has a database")
}

/// D19 and cases 17 and 20, on the real binary.
#[test]
fn d19_connections_of_every_kind_do_not_delay_the_exit() {
    let server = Serve::start(&["--store", "memory:"]);
    let address = server.url.strip_prefix("http://").unwrap();
    let token = server.token.as_deref().unwrap();
    let connect = |send: &str| {
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        stream.write_all(send.as_bytes()).unwrap();
        stream
    };
    let read = |stream: &mut std::net::TcpStream, wanted: &str| {
        let mut text = String::new();
        let mut buffer = [0; 4096];
        while !text.contains(wanted) {
            let count = stream.read(&mut buffer).unwrap();
            assert!(count > 0, "`{wanted}` did not come: {text}");
            text.push_str(&String::from_utf8_lossy(&buffer[..count]));
        }
    };
    let head = format!("host: localhost\r\nauthorization: Bearer {token}\r\n");
    let mut idle = connect(&format!("GET /health/live HTTP/1.1\r\n{head}\r\n"));
    read(&mut idle, "healthy");
    let events = format!("GET /api/v1/admin/workflow-runtime/events HTTP/1.1\r\n{head}\r\n");
    let mut streams = [connect(&events), connect(&events), connect(&events)];
    for stream in &mut streams {
        read(stream, "event: status");
    }
    let json = "content-type: application/json\r\ncontent-length: 1000\r\n";
    let _half_head = connect("POST /api/v1/mess");
    let _half_body = connect(&format!("POST /api/v1/messages HTTP/1.1\r\n{head}{json}\r\n{{"));
    let _silent = connect("");
    // The half-sent ones have reached the server once a later request was answered.
    server.ok(&["status"]);

    let began = Instant::now();
    server.signal(Signal::TERM);
    for stream in &mut streams {
        read(stream, "event: closing");
    }
    assert_eq!(server.end().code(), 0);
    // Whoever waited for one of them would wait for the drain's deadline, half a minute.
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    assert_eq!(idle.read(&mut [0; 16]).unwrap(), 0, "closed by the server");
}
