//! The server as a process: start, work, signals, exit codes.

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use common::{Serve, example, text, tidegate};
use rustix::process::Signal;

#[test]
fn it_serves_deploys_runs_and_drains() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let server = Serve::start(&["--data", data.to_str().unwrap()]);
    let token = server.token.clone().unwrap();
    assert!(token.len() >= 32, "{token}");
    assert_eq!(fs::read_to_string(data.join("token")).unwrap().trim(), token);
    assert_eq!(
        fs::metadata(data.join("token")).unwrap().permissions().mode() & 0o777,
        0o600
    );

    let deployed = server.ok(&["deploy", example("hello.bpmn").to_str().unwrap()]);
    assert!(deployed.contains("hello"), "{deployed}");
    let started = server.json(&["start", "hello", "--wait", "--var", "name=Ada", "--var", "n=1"]);
    assert_eq!(
        (
            &started["subStatus"],
            &started["variables"]["name"],
            &started["variables"]["n"]
        ),
        (&"finished".into(), &"Ada".into(), &1.into())
    );
    let key = started["instanceKey"].as_str().unwrap();
    assert!(server.ok(&["history", key]).contains("InstanceCompleted"));
    assert!(server.ok(&["instances", "--status", "finished"]).contains(key));
    assert!(server.ok(&["status"]).contains("accepting work"));
    assert!(server.ok(&["pause", "--reason", "trial"]).contains("trial"));
    assert!(server.ok(&["start", "hello"]).contains("accepted"));
    assert!(server.ok(&["resume"]).contains("accepting work"));

    server.signal(Signal::TERM);
    let ended = server.end();
    assert_eq!(ended.code(), 0, "{}", ended.stderr);
    let report = ended.report();
    assert_eq!(report["outcome"]["overallResult"], "CompletedWithinDeadline");
    assert_eq!(report["outcome"]["trigger"], "HostStopSignal");
    assert!(!ended.stderr.contains(&token), "no token in the log");

    let again = Serve::start(&["--data", data.to_str().unwrap()]);
    assert!(
        again.token_line.starts_with("in "),
        "printed once: {}",
        again.token_line
    );
    again.signal(Signal::INT);
    assert_eq!(again.end().code(), 0);
}

#[test]
fn a_held_store_is_75_and_may_be_waited_for() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().to_str().unwrap();
    let first = Serve::start(&["--data", data]);
    let second = tidegate()
        .args(["serve", "--listen", "127.0.0.1:0", "--data", data])
        .output()
        .unwrap();
    assert_eq!(second.status.code(), Some(75), "{}", text(&second.stderr));
    assert!(text(&second.stderr).contains("store"), "{}", text(&second.stderr));

    let third = std::thread::spawn({
        let data = data.to_owned();
        move || Serve::start(&["--data", &data, "--wait-for-lock"])
    });
    first.signal(Signal::TERM);
    assert_eq!(first.end().code(), 0);
    let third = third.join().unwrap();
    third.signal(Signal::TERM);
    assert_eq!(third.end().code(), 0);
}

#[test]
fn case_004_a_stop_while_waiting_for_the_store_is_0() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().to_str().unwrap();
    let first = Serve::start(&["--data", data]);
    let mut waiting = tidegate()
        .args([
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--data",
            data,
            "--wait-for-lock",
        ])
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut log = std::io::BufReader::new(waiting.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("waiting until") {
        line.clear();
        assert_ne!(std::io::BufRead::read_line(&mut log, &mut line).unwrap(), 0);
    }
    let pid = rustix::process::Pid::from_raw(i32::try_from(waiting.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, Signal::TERM).unwrap();
    assert_eq!(waiting.wait().unwrap().code(), Some(0));
    first.signal(Signal::TERM);
    assert_eq!(first.end().code(), 0);
}

/// A08.
#[test]
fn a08_every_wrong_value_is_named_with_its_key() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("tidegate.toml");
    fs::write(
        &file,
        "overflow_policy = \"drop\"\nowners = \"many\"\ndrain-dedline = \"1s\"\nreported-ids = 0\n",
    )
    .unwrap();
    let output = tidegate()
        .args([
            "serve",
            "--drain-deadline",
            "soon",
            "--queue-max-depth=-1",
            "--config",
            file.to_str().unwrap(),
        ])
        .env("TIDEGATE_COMMIT_POLICY", "never")
        .env("TIDEGATE_LISTEN", "nowhere")
        .output()
        .unwrap();
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(78), "{stderr}");
    for named in [
        "drain-deadline: `soon`",
        "--drain-deadline",
        "queue-max-depth: `-1`",
        "commit-policy: `never`",
        "TIDEGATE_COMMIT_POLICY",
        "listen: `nowhere`",
        "overflow-policy: `drop`",
        "owners: `many`",
        "drain-dedline: is no setting; did you mean `drain-deadline`?",
        "reported-ids: must be greater than 0",
    ] {
        assert!(stderr.contains(named), "`{named}` is missing: {stderr}");
    }
    assert!(!home.path().join("tidegate-data").exists());
}

#[test]
fn without_authentication_only_loopback_is_served() {
    for (arguments, code) in [
        (vec!["serve", "--no-auth", "--listen", "0.0.0.0:0"], 78),
        (vec!["serve", "--unknown-flag"], 78),
        (vec!["deploy"], 2),
        (vec!["serve", "--store", "nothing:here"], 78),
    ] {
        let home = tempfile::tempdir().unwrap();
        let output = tidegate()
            .args(&arguments)
            .current_dir(home.path())
            .output()
            .unwrap();
        assert_eq!(
            output.status.code(),
            Some(code),
            "{arguments:?}: {}",
            text(&output.stderr)
        );
    }
}

#[test]
fn a_taken_port_is_told() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = tidegate()
        .args(["serve", "--store", "memory:", "--listen", &address])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output.stderr).contains(&address),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn case_192_static_tokens_have_their_permissions_and_tenants() {
    let home = tempfile::tempdir().unwrap();
    let secret = home.path().join("viewer-token");
    fs::write(&secret, "viewer-secret-0123456789\n").unwrap();
    let bound = home.path().join("clerk-token");
    fs::write(&bound, "clerk-secret-0123456789\n").unwrap();
    let file = home.path().join("tidegate.toml");
    let tokens = format!(
        "[[tokens]]\nname = \"viewer\"\nfile = {secret:?}\npermissions = [\"workflows/runtime:view\"]\n\
         [[tokens]]\nname = \"clerk\"\nfile = {bound:?}\npermissions = [\"*\"]\ntenants = [\"acme\"]\n"
    );
    fs::write(&file, format!("store = \"memory:\"\n{tokens}")).unwrap();
    let mut server = Serve::start(&["--config", file.to_str().unwrap()]);
    server.token = Some("viewer-secret-0123456789".to_owned());
    server.ok(&["status"]);
    let refused = server.client(&["pause"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        text(&refused.stderr).contains("permission-denied"),
        "{}",
        text(&refused.stderr)
    );
    server.token = Some("clerk-secret-0123456789".to_owned());
    assert_eq!(server.json(&["instances"])["items"], serde_json::json!([]));
    server.ok(&["status"]);
    let bound = server.client(&["drain-plan"]);
    assert!(
        text(&bound.stderr).contains("bound to tenants"),
        "{}",
        text(&bound.stderr)
    );
    server.token = Some("wrong".to_owned());
    assert!(text(&server.client(&["status"]).stderr).contains("unauthenticated"));
    server.signal(Signal::TERM);
    assert_eq!(server.end().code(), 0);
}

/// Work that outlives the drain's deadline is cut: 10. Repeated SIGTERM changes nothing.
#[test]
fn work_beyond_the_deadline_is_interrupted() {
    let home = tempfile::tempdir().unwrap();
    let mut server = Serve::start(&[
        "--data",
        home.path().to_str().unwrap(),
        "--drain-deadline",
        "300ms",
    ]);
    let key = start_sleeper(&server, home.path());
    server.signal(Signal::TERM);
    server.wait_for_log("SIGTERM: draining");
    server.signal(Signal::TERM);
    let ended = server.end();
    assert_eq!(ended.code(), 10, "{}", ended.stderr);
    assert_eq!(
        ended.report()["outcome"]["forceCancelledInstanceIds"][0],
        key.as_str()
    );

    // R01: it goes on by itself, and its interruption stays in the history.
    let again = Serve::start(&[
        "--data",
        home.path().to_str().unwrap(),
        "--drain-deadline",
        "200ms",
    ]);
    assert!(again.ok(&["history", &key]).contains("WorkflowInterrupted"));
    again.signal(Signal::TERM);
    assert_eq!(again.end().code(), 10);
}

/// The second SIGINT forces: 11, long before the deadline.
#[test]
fn case_005_a_second_interrupt_forces() {
    let home = tempfile::tempdir().unwrap();
    let mut server = Serve::start(&["--data", home.path().to_str().unwrap(), "--drain-deadline", "60s"]);
    start_sleeper(&server, home.path());
    let began = Instant::now();
    server.signal(Signal::INT);
    server.wait_for_log("SIGINT: draining");
    server.signal(Signal::INT);
    let ended = server.end();
    assert_eq!(ended.code(), 11, "{}", ended.stderr);
    assert_eq!(ended.report()["outcome"]["overallResult"], "Forced");
    assert!(began.elapsed() < Duration::from_secs(40), "{:?}", began.elapsed());
}

/// The third SIGINT ends the process at once, whatever still holds it.
#[test]
fn a_third_interrupt_ends_at_once() {
    let home = tempfile::tempdir().unwrap();
    let mut server = Serve::start(&[
        "--data",
        home.path().to_str().unwrap(),
        "--listener-lead",
        "60s",
        "--persist-reserve",
        "20s",
    ]);
    start_with(&server, home.path(), "demo.stubborn");
    for said in ["SIGINT: draining", "SIGINT again: forcing"] {
        server.signal(Signal::INT);
        server.wait_for_log(said);
    }
    server.signal(Signal::INT);
    let ended = server.end();
    assert_eq!(ended.code(), 130, "{}", ended.stderr);
}

/// A token given in the environment is neither kept nor shown, and logs can be JSON throughout.
#[test]
fn a_given_token_is_used_as_it_is() {
    let home = tempfile::tempdir().unwrap();
    let mut server = Serve::with(
        &[
            "--data",
            home.path().to_str().unwrap(),
            "--log-format",
            "json",
            "--log",
            "debug",
        ],
        &[
            ("TIDEGATE_TOKEN", "given-token-0123456789"),
            ("TIDEGATE_DRAIN_DEADLNE", "1s"),
        ],
    );
    assert_eq!(server.token_line, "as given");
    server.token = Some("given-token-0123456789".to_owned());
    server.ok(&["status"]);
    server.signal(Signal::TERM);
    let ended = server.end();
    assert_eq!(ended.code(), 0);
    assert!(!home.path().join("token").exists());
    assert!(
        !ended.stderr.contains("given-token"),
        "no token in the log: {}",
        ended.stderr
    );
    assert!(
        ended.stderr.contains("TIDEGATE_DRAIN_DEADLNE"),
        "a variable that is no setting is told"
    );
    for line in ended.stderr.lines() {
        serde_json::from_str::<serde_json::Value>(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    }
}

/// Deploys and starts a process that sleeps for a minute, and waits until it does.
fn start_sleeper(server: &Serve, home: &std::path::Path) -> String {
    start_with(server, home, "demo.sleep")
}

fn start_with(server: &Serve, home: &std::path::Path, handler: &str) -> String {
    let file = home.join("sleeper.bpmn");
    let xml = r#"<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:zeebe="http://camunda.org/schema/zeebe/1.0" targetNamespace="test">
  <process id="sleeper" isExecutable="true"><startEvent id="start"/><sequenceFlow id="a" sourceRef="start" targetRef="sleep"/>
  <serviceTask id="sleep"><extensionElements><zeebe:taskDefinition type="HANDLER"/><zeebe:taskHeaders><zeebe:header key="duration" value="PT60S"/></zeebe:taskHeaders></extensionElements></serviceTask>
  <sequenceFlow id="b" sourceRef="sleep" targetRef="end"/><endEvent id="end"/></process></definitions>"#;
    fs::write(&file, xml.replace("HANDLER", handler)).unwrap();
    server.ok(&["deploy", file.to_str().unwrap()]);
    let key = server.json(&["start", "sleeper"])["instanceKey"]
        .as_str()
        .unwrap()
        .to_owned();
    while server.json(&["status"])["activeExecutionCycleCount"] != 1 {
        std::thread::yield_now();
    }
    key
}
