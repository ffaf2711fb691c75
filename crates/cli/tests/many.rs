//! The commands about many instances, on the real binary.

mod common;

use common::{Serve, example, sleeper, text};

#[test]
fn f02_f04_instances_are_exported_and_forgotten() {
    let home = tempfile::tempdir().unwrap();
    let serve = Serve::start(&["--data", home.path().to_str().unwrap(), "--retention", "7d"]);
    serve.ok(&["deploy", example("hello.bpmn").to_str().unwrap()]);
    let mut keys = Vec::new();
    for _ in 0..3 {
        let started = serve.json(&["start", "hello", "--wait"]);
        keys.push(started["instanceKey"].as_str().unwrap().to_owned());
    }
    let exported = serve.ok(&["instances", "export", "--status", "finished"]);
    let instances = exported
        .lines()
        .filter(|line| line.contains("\"type\":\"instance\""));
    assert_eq!(instances.count(), 3, "{exported}");
    assert!(exported.contains("InstanceCompleted"));
    let refused = serve.client(&["forget", &keys[0], "77"]);
    assert!(!refused.status.success());
    assert!(text(&refused.stderr).contains("77"), "{}", text(&refused.stderr));
    assert!(serve.ok(&["instance", &keys[0]]).contains(&keys[0]));
    serve.ok(&["forget", &keys[0], &keys[1]]);
    let left = serve.json(&["instances", "--status", "completed"]);
    assert_eq!(left["items"].as_array().unwrap().len(), 1);
    assert!(!serve.client(&["instance", &keys[0]]).status.success());
}

#[test]
fn case_083_a_batch_shows_its_progress() {
    let home = tempfile::tempdir().unwrap();
    let serve = Serve::start(&["--data", home.path().to_str().unwrap()]);
    let file = home.path().join("long.bpmn");
    std::fs::write(&file, sleeper("long", "external", "1s")).unwrap();
    serve.ok(&["deploy", file.to_str().unwrap()]);
    for _ in 0..5 {
        serve.ok(&["start", "long"]);
    }
    let dry = serve.json(&[
        "batch",
        "start",
        "cancel",
        "--process-id",
        "long",
        "--dry-run",
        "--wait",
    ]);
    assert_eq!(dry["counts"]["wouldBeDone"], 5, "{dry}");
    let output = serve.client(&[
        "batch",
        "start",
        "cancel",
        "--process-id",
        "long",
        "--reason",
        "old",
        "--wait",
        "-o",
        "json",
    ]);
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{out}{err}");
    let batch: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (&batch["state"], &batch["counts"]["done"]),
        (&"completed".into(), &5.into())
    );
    assert!(err.contains("done"), "progress is told: {err}");
    let key = batch["batchKey"].as_str().unwrap();
    let items = serve.json(&["batch", "items", key, "--outcome", "done"]);
    assert_eq!(items["items"].as_array().unwrap().len(), 5);
    assert!(serve.ok(&["batch", "list"]).contains(key));
    assert!(serve.ok(&["batch", "show", key]).contains("completed"));
    let view = serve.json(&["settings", "long", "--max-instances", "2", "--when-full", "queue"]);
    assert_eq!(view["effective"]["maxInstances"], 2);
    let view = serve.json(&["settings", "long", "--retention", "1d"]);
    assert_eq!(
        (&view["set"]["maxInstances"], &view["effective"]["retentionMs"]),
        (&2.into(), &86_400_000.into())
    );
    let view = serve.json(&["settings", "long", "--reset"]);
    assert_eq!(view["effective"]["maxInstances"], serde_json::Value::Null);
}

/// A batch that was made and not begun outlives a kill, and a singleton's line does too.
#[test]
fn a_batch_and_a_line_of_starts_outlive_a_kill() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let data = data.to_str().unwrap();
    let serve = Serve::start(&["--data", data]);
    let file = home.path().join("long.bpmn");
    std::fs::write(&file, sleeper("long", "external", "1s")).unwrap();
    serve.ok(&["deploy", file.to_str().unwrap()]);
    serve.ok(&["settings", "long", "--max-instances", "1"]);
    let mut keys = Vec::new();
    for _ in 0..3 {
        let started = serve.json(&["start", "long"]);
        keys.push(started["instanceKey"].as_str().unwrap().to_owned());
    }
    serve.ok(&["pause"]);
    let batch = serve.json(&["batch", "start", "cancel", "--process-id", "long"]);
    let key = batch["batchKey"].as_str().unwrap().to_owned();
    serve.signal(rustix::process::Signal::KILL);
    serve.end();

    let serve = Serve::start(&["--data", data]);
    let over = serve.json(&["batch", "watch", &key]);
    assert_eq!(
        (&over["state"], &over["counts"]["done"]),
        (&"completed".into(), &3.into()),
        "{over}"
    );
    for key in &keys {
        assert_eq!(serve.json(&["instance", key])["subStatus"], "cancelled");
    }
    let view = serve.json(&["settings", "long"]);
    assert_eq!(
        (&view["live"], &view["waiting"]),
        (&serde_json::json!([]), &0.into()),
        "{view}"
    );
}
