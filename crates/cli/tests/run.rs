//! `tidegate run`, and how clients show problems.

mod common;

use common::{Serve, example, text, tidegate};
use rustix::process::Signal;

fn run(arguments: &[&str]) -> (i32, String, String) {
    let output = tidegate().arg("run").args(arguments).output().unwrap();
    (
        output.status.code().unwrap(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

#[test]
fn a_process_shows_its_path() {
    let hello = example("hello.bpmn");
    let (code, out, err) = run(&[hello.to_str().unwrap()]);
    assert_eq!(code, 0, "{out}{err}");
    let places: Vec<_> = ["start", "say-hello", "end", "completed"]
        .iter()
        .map(|word| out.find(word))
        .collect();
    assert!(places.iter().all(Option::is_some), "{out}");
    assert!(err.contains("Hello from Tidegate"), "the log is shown: {err}");

    let (code, out, _) = run(&[hello.to_str().unwrap(), "-o", "json", "--var", "x=1"]);
    let report: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(code, 0);
    assert_eq!(report["path"], serde_json::json!(["start", "say-hello", "end"]));
    assert_eq!(
        (&report["subStatus"], &report["variables"]["x"]),
        (&"finished".into(), &1.into())
    );
}

#[test]
fn every_example_runs() {
    let (code, out, err) = run(&[example("order.bpmn").to_str().unwrap(), "--var", "amount=80"]);
    assert_eq!(code, 0, "{out}{err}");
    assert!(!out.contains("approve"), "{out}");
    let (code, out, err) = run(&[example("order.bpmn").to_str().unwrap(), "--var", "amount=5000"]);
    assert_eq!(code, 1, "{out}{err}");
    assert!(err.contains("`approve` waits for a person"), "{err}");
    let (code, out, err) = run(&[example("ten-tasks.bpmn").to_str().unwrap()]);
    assert_eq!(code, 0, "{out}{err}");
    assert!(out.contains("task-10"), "{out}");
    let (code, out, err) = run(&[
        example("reminder.bpmn").to_str().unwrap(),
        "--var",
        "invoice=A-17",
        "-o",
        "json",
    ]);
    assert_eq!(code, 0, "{out}{err}");
    let report: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        report["path"],
        serde_json::json!(["invoiced", "await-payment", "overdue", "remind", "reminded"])
    );
}

#[test]
fn time_may_run_out() {
    let reminder = example("reminder.bpmn");
    let (code, _, err) = run(&[
        reminder.to_str().unwrap(),
        "--var",
        "invoice=A-17",
        "--timeout",
        "50ms",
    ]);
    assert_eq!(code, 1);
    assert!(
        err.contains("time was over") && err.contains("waits for the message invoice-paid"),
        "{err}"
    );
}

#[test]
fn diagnostics_are_lines_with_places() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("broken.bpmn");
    let xml = "<definitions xmlns=\"http://www.omg.org/spec/BPMN/20100524/MODEL\" targetNamespace=\"t\">\n<process id=\"p\" isExecutable=\"true\">\n<startEvent id=\"s\"/><sequenceFlow id=\"f\" sourceRef=\"s\" targetRef=\"gone\"/></process></definitions>";
    std::fs::write(&file, xml).unwrap();
    let place = format!("{}:3:", file.display());
    let (code, _, err) = run(&[file.to_str().unwrap()]);
    assert_eq!(code, 1);
    assert!(err.contains(&place) && err.contains("error["), "{err}");

    let server = Serve::start(&["--store", "memory:"]);
    let output = server.client(&["deploy", file.to_str().unwrap()]);
    let err = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        err.contains("not-deployable") && err.contains(&place) && err.contains("error["),
        "{err}"
    );
    server.signal(Signal::TERM);
    assert_eq!(server.end().code(), 0);
}

#[test]
fn a_server_that_is_not_there_is_told() {
    let output = tidegate()
        .args(["status", "--server", "http://127.0.0.1:1"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output.stderr).contains("is the server running?"),
        "{}",
        text(&output.stderr)
    );
}

/// A script in JavaScript runs in a worker process of its own, and sees no clock.
#[test]
fn a_script_runs_in_javascript() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("script.bpmn");
    let process = |script: &str| {
        format!(
            r#"<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" targetNamespace="test">
  <process id="scripted" isExecutable="true"><startEvent id="s"/><scriptTask id="t" scriptFormat="javascript"><script>{script}</script></scriptTask><endEvent id="e"/>
  <sequenceFlow id="a" sourceRef="s" targetRef="t"/><sequenceFlow id="b" sourceRef="t" targetRef="e"/></process></definitions>"#
        )
    };
    std::fs::write(&file, process("({ doubled: n * 2 })")).unwrap();
    let (code, out, err) = run(&[file.to_str().unwrap(), "--var", "n=21", "-o", "json"]);
    assert_eq!(code, 0, "{out}{err}");
    let result: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(result["variables"]["doubled"], 42, "{result}");
    let named = process("n + 1").replace(
        r#"scriptFormat="javascript""#,
        r#"scriptFormat="JavaScript" xmlns:c="http://camunda.org/schema/1.0/bpmn" c:resultVariable="next""#,
    );
    std::fs::write(&file, named).unwrap();
    let (code, out, err) = run(&[file.to_str().unwrap(), "--var", "n=21", "-o", "json"]);
    assert_eq!(code, 0, "{out}{err}");
    let result: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(result["variables"]["next"], 22, "{result}");
    std::fs::write(&file, process("Date.now()")).unwrap();
    let (code, out, err) = run(&[file.to_str().unwrap()]);
    assert_eq!(code, 1);
    assert!(format!("{out}{err}").contains("clock"), "{out}{err}");
}
