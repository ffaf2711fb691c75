//! Definitions that come and go, by the commands of the real binary.

mod common;

use common::{Serve, sleeper, text};
use rustix::process::Signal;

fn definition(process: &str, version: &str) -> String {
    format!(
        "<definitions xmlns=\"http://www.omg.org/spec/BPMN/20100524/MODEL\" targetNamespace=\"t\">\
         <message id=\"m\" name=\"go\"/><process id=\"{process}\" isExecutable=\"true\"><documentation>{version}</documentation>\
         <startEvent id=\"begin\"><messageEventDefinition messageRef=\"m\"/></startEvent></process></definitions>"
    )
}

#[test]
fn f05_f07_f08_f10_versions_come_and_go_on_the_command_line() {
    let home = tempfile::tempdir().unwrap();
    let server = Serve::start(&["--store", "memory:"]);
    let deploy = |name: &str, content: &str| {
        let file = home.path().join(format!("{name}.bpmn"));
        std::fs::write(&file, content).unwrap();
        let answer = server.json(&["deploy", file.to_str().unwrap()]);
        answer["definitions"][0]["definitionKey"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    deploy("p", &definition("p", "one"));
    let second = deploy("p", &definition("p", "two"));
    let starters = server.json(&["starters"]);
    assert_eq!(starters["items"].as_array().unwrap().len(), 1, "{starters}");
    assert_eq!(starters["items"][0]["version"], 2);
    let table = server.ok(&["starters"]);
    for word in ["begin", "message", "go"] {
        assert!(table.contains(word), "{table}");
    }
    assert!(server.ok(&["unregister", &second]).contains("deleted"));
    assert_eq!(server.json(&["starters"])["items"][0]["version"], 1);
    let again = server.client(&["unregister", &second]);
    assert!(!again.status.success() && text(&again.stderr).contains(&second));

    let slow = deploy("slow", &sleeper("slow", "external", "PT1S"));
    server.json(&["start", "slow"]);
    assert_eq!(
        server.json(&["start", "slow", "--version-number", "1"])["version"],
        1
    );
    let unknown = server.client(&["start", "slow", "--version-number", "2"]);
    assert!(!unknown.status.success() && text(&unknown.stderr).contains("of version 2"));
    let retiring = server.json(&["unregister", &slow, "--instances", "wait", "--timeout", "1ms"]);
    assert_eq!(
        (&retiring["state"], &retiring["cancelled"]),
        (&"retiring".into(), &0.into())
    );
    server.signal(Signal::TERM);
    assert_eq!(server.end().code(), 0);
}
