//! The commands that put instances right, on the real binary and a real server.

mod common;

use std::path::Path;

use common::{Serve, text};
use serde_json::Value;

/// Start, tasks for people one behind the other, end.
fn tasks(ids: &[&str]) -> String {
    let mut body = String::from(r#"<startEvent id="start"/><endEvent id="end"/>"#);
    let mut before = "start";
    for id in ids {
        body += &format!(
            r#"<userTask id="{id}"/><sequenceFlow id="{before}-{id}" sourceRef="{before}" targetRef="{id}"/>"#
        );
        before = id;
    }
    body += &format!(r#"<sequenceFlow id="{before}-end" sourceRef="{before}" targetRef="end"/>"#);
    file(&body)
}

fn file(body: &str) -> String {
    format!(
        r#"<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:zeebe="http://camunda.org/schema/zeebe/1.0" targetNamespace="test"><process id="p" isExecutable="true">{body}</process></definitions>"#
    )
}

fn write(home: &Path, name: &str, xml: &str) -> String {
    let path = home.join(name);
    std::fs::write(&path, xml).unwrap();
    path.to_str().unwrap().to_owned()
}

fn start(server: &Serve) -> String {
    let started = server.json(&["start", "p"]);
    started["instanceKey"].as_str().unwrap().to_owned()
}

/// The elements in which an instance waits.
fn waits(server: &Serve, key: &str) -> Vec<String> {
    let instance = server.json(&["instance", key]);
    let waits = instance["waitingFor"].as_array().unwrap().iter();
    waits
        .map(|wait| wait["elementId"].as_str().unwrap().to_owned())
        .collect()
}

fn refused(server: &Serve, arguments: &[&str]) -> String {
    let output = server.client(arguments);
    assert!(
        !output.status.success(),
        "{arguments:?}: {}",
        text(&output.stdout)
    );
    text(&output.stderr)
}

#[test]
fn variables_are_set_and_an_incident_is_resolved_by_command() {
    let home = tempfile::tempdir().unwrap();
    let server = Serve::start(&["--store", "memory:"]);
    let stuck = r#"<startEvent id="start"/><exclusiveGateway id="which"/><endEvent id="end"/>
        <sequenceFlow id="a" sourceRef="start" targetRef="which"/>
        <sequenceFlow id="b" sourceRef="which" targetRef="end"><conditionExpression>= amount &gt; 10</conditionExpression></sequenceFlow>"#;
    server.ok(&["deploy", &write(home.path(), "stuck.bpmn", &file(stuck))]);
    let key = start(&server);
    let set = server.ok(&[
        "set-variables",
        &key,
        "--var",
        "amount=5",
        "--reason",
        "a typing error",
    ]);
    assert!(set.contains("amount"), "{set}");
    let incidents = server.json(&["incidents"]);
    let incident = incidents["items"][0]["incidentKey"].as_str().unwrap().to_owned();
    assert!(server.ok(&["incidents"]).contains(&key));
    server.ok(&[
        "resolve",
        &incident,
        "--var",
        "amount=12",
        "--reason",
        "corrected",
    ]);
    assert_eq!(server.json(&["instance", &key])["subStatus"], "finished");
    let audit = server.ok(&["audit"]);
    assert!(
        audit.contains("InstanceVariablesSet") && audit.contains("IncidentResolveRequested"),
        "{audit}"
    );
    assert!(server.ok(&["history", &key]).contains("IncidentResolved"));
    let told = refused(&server, &["resolve", &incident]);
    assert!(told.contains(&incident), "{told}");
    assert!(refused(&server, &["set-variables", &key, "--var", "amount=1"]).contains("ended"));
}

#[test]
fn tokens_are_moved_and_a_finished_instance_is_done_again_by_command() {
    let home = tempfile::tempdir().unwrap();
    let server = Serve::start(&["--store", "memory:"]);
    server.ok(&["deploy", &write(home.path(), "p.bpmn", &tasks(&["a", "b"]))]);
    let key = start(&server);
    let dry = ["modify", &key, "--terminate", "a", "--activate", "b", "--dry-run"];
    let planned = server.ok(&dry);
    assert!(planned.contains("nothing was changed"), "{planned}");
    assert_eq!(waits(&server, &key), ["a"]);
    let wrong = ["modify", &key, "--terminate", "a", "--activate", "z"];
    assert!(refused(&server, &wrong).contains("`z`"));
    server.ok(&dry[..dry.len() - 1]);
    assert_eq!(waits(&server, &key), ["b"]);
    assert!(refused(&server, &["restart", &key, "--activate", "b"]).contains("has not ended"));

    let task = server.json(&["tasks"])["items"][0]["userTaskKey"]
        .as_str()
        .unwrap()
        .to_owned();
    server.ok(&["complete-task", &task, "--var", "by=ada"]);
    let planned = server.ok(&["restart", &key, "--activate", "b", "--dry-run"]);
    assert!(
        planned.contains("begins     b") && planned.contains("nothing was changed"),
        "{planned}"
    );
    let again = server.json(&[
        "restart",
        &key,
        "--activate",
        "b",
        "--var",
        "turn=2",
        "--reason",
        "once more",
    ]);
    assert_eq!(again["restartOf"], key.as_str());
    let new = again["instanceKey"].as_str().unwrap();
    assert_eq!(waits(&server, new), ["b"]);
    assert!(server.ok(&["history", new]).contains("InstanceStarted"));
    assert!(server.ok(&["audit"]).contains("InstanceRestartRequested"));
    assert!(refused(&server, &["restart", &key, "--activate", "nowhere"]).contains("nowhere"));
}

#[test]
fn instances_change_their_version_by_command_one_by_one_and_many_at_once() {
    let home = tempfile::tempdir().unwrap();
    let server = Serve::start(&["--store", "memory:"]);
    server.ok(&["deploy", &write(home.path(), "p.bpmn", &tasks(&["a", "b"]))]);
    let keys: Vec<String> = (0..3).map(|_| start(&server)).collect();
    let next = write(home.path(), "next.bpmn", &tasks(&["c", "b"]));

    // It is not deployed yet.
    let found = server.json(&["migration-check", "--file", &next]);
    assert_eq!(
        (&found["canChange"], &found["version"], &found["definitionKey"]),
        (&0.into(), &2.into(), &Value::Null)
    );
    assert_eq!(found["obstructed"].as_array().unwrap().len(), 3);
    let told = server.ok(&["migration-check", "--file", &next]);
    assert!(told.contains("`a`") && told.contains(&keys[0]), "{told}");
    let found = server.json(&["migration-check", "--file", &next, "--map", "a=c"]);
    assert_eq!(found["canChange"], 3);
    assert!(refused(&server, &["migrate", &keys[0], "--dry-run", "--file", &next]).contains("`a`"));
    let planned = server.ok(&["migrate", &keys[0], "--dry-run", "--file", &next, "--map", "a=c"]);
    assert!(
        planned.contains("becomes    a to c") && planned.contains("nothing was changed"),
        "{planned}"
    );
    assert!(refused(&server, &["migrate", &keys[0], "--file", &next]).contains("--dry-run"));
    assert_eq!(
        server.json(&["definitions"])["items"].as_array().unwrap().len(),
        1
    );

    server.ok(&["deploy", &next]);
    let newest = server.json(&["definitions"])["items"][0].clone();
    let definition = newest["definitionKey"].as_str().unwrap();
    server.ok(&["migrate", &keys[0], "--map", "a=c", "--reason", "a better form"]);
    assert_eq!(waits(&server, &keys[0]), ["c"]);
    let found = server.json(&["migration-check", definition]);
    assert_eq!(
        (&found["thereAlready"], &found["definitionKey"]),
        (&1.into(), &definition.into())
    );
    let batch = ["batch", "start", "migrate", "--to", definition, "--wait"];
    let dry: Vec<&str> = batch.into_iter().chain(["--dry-run"]).collect();
    assert_eq!(server.json(&dry)["counts"]["failed"], 2);
    let mapped: Vec<&str> = batch.into_iter().chain(["--map", "a=c"]).collect();
    let over = server.json(&mapped);
    assert_eq!(
        (&over["counts"]["done"], &over["counts"]["unchanged"]),
        (&2.into(), &1.into())
    );
    for key in &keys {
        assert_eq!(waits(&server, key), ["c"]);
        assert_eq!(server.json(&["instance", key])["version"], 2);
    }
    assert!(refused(&server, &["batch", "start", "migrate"]).contains("--to"));
}
