//! The commands by which a host is operated, on the real binary.

mod common;

use std::process::{Command, Stdio};
use std::time::Duration;

use common::{Serve, example, text, tidegate};
use rustix::process::Signal;
use serde_json::Value;

fn run(arguments: &[&str]) -> (i32, String, String) {
    let output = tidegate().args(arguments).output().unwrap();
    (
        output.status.code().unwrap(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

#[test]
fn check_shows_the_line_and_exits_1_on_errors() {
    let home = tempfile::tempdir().unwrap();
    let (code, out, _) = run(&["check", example("hello.bpmn").to_str().unwrap()]);
    assert_eq!((code, out.contains("0 errors")), (0, true), "{out}");
    let file = home.path().join("broken.bpmn");
    let xml = "<definitions xmlns=\"http://www.omg.org/spec/BPMN/20100524/MODEL\" targetNamespace=\"t\">\n\
         <process id=\"p\" isExecutable=\"true\">\n  <startEvent id=\"s\"/>\n\
         \t<sequenceFlow id=\"f\" sourceRef=\"s\" targetRef=\"nowhere\"/>\n</process>\n</definitions>\n";
    std::fs::write(&file, xml).unwrap();
    let name = file.to_str().unwrap();
    let (code, out, _) = run(&["check", name]);
    assert_eq!(code, 1, "{out}");
    assert!(out.contains(&format!("{name}:4:")), "the place: {out}");
    assert!(
        out.contains("     4 |  <sequenceFlow id=\"f\""),
        "the line: {out}"
    );
    assert!(
        out.lines()
            .any(|line| line.trim_start().starts_with("| ") && line.ends_with('^')),
        "the caret: {out}"
    );
    let (code, out, _) = run(&[
        "check",
        "-o",
        "json",
        name,
        example("hello.bpmn").to_str().unwrap(),
    ]);
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(code, 1);
    assert!(report["errors"].as_u64().unwrap() >= 1, "{report}");
    assert_eq!(
        (
            &report["diagnostics"][0]["resource"],
            &report["diagnostics"][0]["line"]
        ),
        (&name.into(), &4.into())
    );
    let (code, _, err) = run(&["check", "/nowhere.bpmn"]);
    assert!(code == 1 && err.contains("cannot be read"), "{err}");
}

#[test]
fn a_bad_script_is_told_with_its_line_before_anything_runs() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("script.bpmn");
    let xml = "<definitions xmlns=\"http://www.omg.org/spec/BPMN/20100524/MODEL\" targetNamespace=\"t\">\n\
         <process id=\"p\" isExecutable=\"true\">\n  <startEvent id=\"s\"/>\n\
         <scriptTask id=\"work\" scriptFormat=\"javascript\"><script><![CDATA[\n\
         const total = 1;\n  total +;\n]]></script></scriptTask>\n\
         <sequenceFlow id=\"f\" sourceRef=\"s\" targetRef=\"work\"/>\n</process>\n</definitions>\n";
    std::fs::write(&file, xml).unwrap();
    let name = file.to_str().unwrap();
    let (code, out, _) = run(&["check", name]);
    assert_eq!(code, 1, "{out}");
    assert!(
        out.contains(&format!("{name}:6:")) && out.contains("script-syntax"),
        "{out}"
    );
    assert!(out.contains("     6 |   total +;"), "{out}");
    let (code, out, err) = run(&["run", name]);
    assert_ne!(code, 0);
    assert!(format!("{out}{err}").contains("script-syntax"), "{out}{err}");
    std::fs::write(&file, xml.replace("total +;", "total + 1;")).unwrap();
    let (code, out, _) = run(&["check", name]);
    assert_eq!((code, out.contains("0 errors")), (0, true), "{out}");
}

#[test]
fn check_takes_what_stands_in_for_java_code() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("java.bpmn");
    let xml = "<definitions xmlns=\"http://www.omg.org/spec/BPMN/20100524/MODEL\" targetNamespace=\"t\" \
         xmlns:camunda=\"http://camunda.org/schema/1.0/bpmn\"><process id=\"p\" isExecutable=\"true\">\
         <startEvent id=\"s\"/><serviceTask id=\"t\" camunda:class=\"com.example.Pay\"/>\
         <sequenceFlow id=\"f\" sourceRef=\"s\" targetRef=\"t\"/></process></definitions>";
    std::fs::write(&file, xml).unwrap();
    let name = file.to_str().unwrap();
    let (code, out, _) = run(&["check", name]);
    assert!(
        code == 1 && out.contains("java-delegate") && out.contains("com.example.Pay"),
        "{out}"
    );
    let (code, out, _) = run(&["check", "--delegates", "com.example.Pay=pay", name]);
    assert_eq!((code, out.contains("0 errors")), (0, true), "{out}");
    let (code, _, err) = run(&["check", "--delegates", "com.example.Pay", name]);
    assert!(code == 1 && err.contains("NAME=TYPE"), "{err}");
}

#[test]
fn the_plan_is_ordered_and_lies_inside_the_grace() {
    let (code, out, err) = run(&[
        "drain",
        "--plan",
        "--host-grace",
        "10s",
        "--drain-deadline",
        "30s",
        "-o",
        "json",
    ]);
    assert_eq!(code, 0, "{err}");
    let plan: Value = serde_json::from_str(&out).unwrap();
    let steps = plan["steps"].as_array().unwrap();
    let names: Vec<_> = steps.iter().map(|step| step["name"].as_str().unwrap()).collect();
    let order = [
        "unready", "close", "pause", "wait", "cut", "mark", "spill", "listener", "leave",
    ];
    assert_eq!(names, order);
    assert!(steps.iter().map(|step| step["untilMs"].as_u64()).is_sorted());
    let spill = &steps[6];
    assert_eq!(
        (&spill["shell"], &spill["untilMs"]),
        (&"default".into(), &10_000.into()),
        "all is saved within the grace"
    );
    assert!(
        spill["what"].as_str().unwrap().contains("tidegate.db.spill"),
        "{spill}"
    );
    let (_, out, _) = run(&["drain", "--plan"]);
    assert!(out.contains("30.000 s") && out.contains("`host-grace`"), "{out}");
    let (code, _, err) = run(&["drain", "--plan", "--drain-deadline", "0s"]);
    assert!(code == 78 && err.contains("drain-deadline"), "{err}");
    assert_eq!(run(&["drain"]).0, 2, "a drain itself begins with SIGTERM");
}

/// The plan of a running server: its own options and sources, and whether its reserve would do for what is live.
#[test]
fn the_plan_of_a_running_server_names_its_sources_and_weighs_its_reserve() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let settings = [
        "--data",
        data.to_str().unwrap(),
        "--drain-deadline",
        "7s",
        "--host-grace",
        "20s",
    ];
    let server = Serve::start(&settings);
    let fresh = server.ok(&["drain-plan"]);
    assert!(
        fresh.contains("pause") && fresh.contains("http.api, ") && fresh.contains("7000"),
        "{fresh}"
    );
    start_sleeper(&server, home.path(), "PT60S");
    let plan = server.json(&["drain-plan"]);
    let steps = plan["steps"].as_array().unwrap();
    let names: Vec<_> = steps.iter().map(|step| step["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["close", "pause", "wait", "cut", "mark", "spill", "leave"]);
    assert!(steps.iter().map(|step| step["untilMs"].as_u64()).is_sorted());
    assert_eq!(
        (&steps[2]["untilMs"], &plan["hostGraceMs"]),
        (&7_000.into(), &20_000.into())
    );
    assert!(
        steps[5]["what"].as_str().unwrap().ends_with("tidegate.db.spill"),
        "{plan}"
    );
    let reserve = &plan["reserve"];
    assert_eq!(reserve["liveCycles"], 1, "{plan}");
    assert!(
        reserve["expectedMs"].is_u64() && reserve["isEnough"].is_boolean(),
        "{plan}"
    );
    let told = server.ok(&["drain-plan"]);
    assert!(
        told.contains("Saving the outcomes of 1 live cycles takes about"),
        "{told}"
    );

    // What `drain --plan` says beforehand, with the same settings, is the same up to where the host takes over.
    let beforehand = [&["drain", "--plan", "-o", "json"], &settings[..]].concat();
    let (code, out, err) = run(&beforehand);
    assert_eq!(code, 0, "{err}");
    let beforehand: Value = serde_json::from_str(&out).unwrap();
    let until = |steps: &Value, name: &str| {
        let steps = steps.as_array().unwrap().iter();
        let found = steps
            .filter(|step| step["name"] == name)
            .map(|step| step["untilMs"].clone());
        found.collect::<Vec<_>>()
    };
    for name in &names[..6] {
        assert_eq!(
            until(&beforehand["steps"], name),
            until(&plan["steps"], name),
            "{name}"
        );
    }

    // Asking changes nothing, and it is answered while the server drains.
    assert_eq!(server.json(&["status"])["state"]["reason"], "None");
    server.ok(&["force-drain"]);
    assert_eq!(server.json(&["drain-plan"])["reserve"]["liveCycles"], 0);
    server.signal(Signal::TERM);
    assert_eq!(server.end().code(), 11);
}

#[test]
fn completions_are_written_for_every_shell() {
    for shell in ["bash", "zsh", "fish"] {
        let (code, out, _) = run(&["completions", shell]);
        assert!(
            code == 0 && out.contains("maintenance") && out.contains("force-drain"),
            "{shell}"
        );
    }
}

fn start_sleeper(server: &Serve, home: &std::path::Path, duration: &str) {
    let file = home.join("sleeper.bpmn");
    std::fs::write(&file, common::sleeper("sleeper", "demo.sleep", duration)).unwrap();
    server.ok(&["deploy", file.to_str().unwrap()]);
    server.ok(&["start", "sleeper"]);
}

#[test]
fn pause_waits_until_nothing_runs_and_tells_its_progress() {
    let home = tempfile::tempdir().unwrap();
    let server = Serve::start(&["--store", "memory:"]);
    start_sleeper(&server, home.path(), "PT2S");
    let paused = server.client(&["pause", "--wait", "--reason", "moving", "-o", "json"]);
    let (out, err) = (text(&paused.stdout), text(&paused.stderr));
    assert!(paused.status.success(), "{err}");
    assert!(
        err.contains("default: 1 cycles run still") && err.contains("nothing runs any more"),
        "{err}"
    );
    let status: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(status["activeExecutionCycleCount"], 0, "{status}");
    server.ok(&["resume"]);
    start_sleeper(&server, home.path(), "PT60S");
    let given_up = server.client(&["pause", "--wait", "--timeout", "100ms"]);
    assert!(!given_up.status.success() && text(&given_up.stderr).contains("the pause stands"));
    assert_eq!(server.json(&["status"])["state"]["reason"], "AdministrativePause");

    // A resume by somebody else ends the wait.
    let waiting = Command::new(env!("CARGO_BIN_EXE_tidegate"))
        .args(["pause", "--wait", "--server", &server.url])
        .env("TIDEGATE_TOKEN", server.token.as_deref().unwrap())
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut waiting = waiting;
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(waiting.stderr.take().unwrap()));
    assert!(lines.next().unwrap().unwrap().contains("1 cycles run still"));
    server.ok(&["resume"]);
    assert!(lines.next().unwrap().unwrap().contains("somebody resumed it"));
    assert!(!waiting.wait().unwrap().success());
}

#[test]
fn maintenance_enters_and_leaves_with_every_shell() {
    let home = tempfile::tempdir().unwrap();
    let config = home.path().join("tidegate.toml");
    let file = "store = \"memory:\"\n[[shells]]\nid = \"second\"\nstore = \"memory:\"\n";
    std::fs::write(&config, file).unwrap();
    let server = Serve::start(&["--config", config.to_str().unwrap()]);
    let entered = server.json(&["maintenance", "enter", "--reason", "night", "--wait"]);
    let reasons: Vec<_> = entered["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| &item["reason"])
        .collect();
    assert_eq!(
        reasons,
        ["AdministrativePause", "AdministrativePause"],
        "{entered}"
    );
    assert!(server.ok(&["status", "--shell", "second"]).contains("night"));
    let sources = server.json(&["sources"]);
    assert!(
        sources["sources"]
            .as_array()
            .unwrap()
            .iter()
            .all(|source| source["state"] == "Paused")
    );
    assert!(server.ok(&["sources"]).contains("http.api"));
    assert!(server.ok(&["maintenance", "leave"]).contains("None"));
    assert_eq!(
        server.json(&["status", "--shell", "second"])["state"]["reason"],
        "None"
    );

    assert!(server.ok(&["audit"]).contains("RuntimePauseRequested"));
    let export = server.ok(&["audit", "--export", "--shell", "second"]);
    let actions: Vec<Value> = export
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["action"].clone())
        .collect();
    assert_eq!(actions, ["RuntimeResumeRequested", "RuntimePauseRequested"]);
    server.signal(Signal::TERM);
    assert_eq!(server.end().code(), 0);
}

/// Cases 21 and 22: the lead time between not ready and not listening.
#[tokio::test]
async fn case_22_nobody_is_refused_during_the_lead_time() {
    let server = Serve::start(&["--store", "memory:", "--listener-lead", "6s"]);
    let http = reqwest::Client::builder()
        .pool_max_idle_per_host(0)
        .build()
        .unwrap();
    let url = server.url.clone();
    let ready = format!("{url}/health/ready");
    assert_eq!(http.get(&ready).send().await.unwrap().status(), 200);
    server.signal(Signal::TERM);
    let began = std::time::Instant::now();
    let mut was_unready = false;
    while began.elapsed() < Duration::from_millis(1500) {
        let answer = http.get(&ready).send().await.expect("not refused");
        was_unready |= answer.status() == 503;
        assert!(
            !was_unready || answer.status() == 503,
            "ready again after the signal"
        );
        let start = http
            .post(format!("{url}/api/v1/messages"))
            .bearer_auth(server.token.as_deref().unwrap());
        let start = start
            .json(&serde_json::json!({ "name": "late" }))
            .send()
            .await
            .expect("not refused");
        assert!(start.status().is_success(), "durably queued: {}", start.status());
    }
    assert!(was_unready);
    assert_eq!(server.end().code(), 0);

    let interactive = Serve::start(&["--store", "memory:", "--listener-lead", "60s"]);
    let began = std::time::Instant::now();
    interactive.signal(Signal::INT);
    assert_eq!(interactive.end().code(), 0);
    assert!(
        began.elapsed() < Duration::from_secs(30),
        "a person at a terminal does not wait for routers"
    );
}

#[test]
fn n06_n07_n01_an_instance_is_suspended_released_and_cancelled_by_command() {
    let home = tempfile::tempdir().unwrap();
    let server = Serve::start(&["--store", "memory:"]);
    start_sleeper(&server, home.path(), "PT60S");
    let listed = server.json(&["instances"]);
    let key = listed["items"][0]["instanceKey"].as_str().unwrap().to_owned();
    assert!(server.ok(&["why", &key]).contains("activityRuns"));
    let held = server.json(&[
        "suspend",
        &key,
        "--now",
        "--reason",
        "audit",
        "--scope",
        "self",
        "--timers",
        "stand-still",
    ]);
    assert_eq!(
        (
            &held["subStatus"],
            &held["suspension"]["scope"],
            &held["suspension"]["timers"]
        ),
        (&"held".into(), &"self".into(), &"standStill".into())
    );
    assert!(server.ok(&["why", &key]).contains("audit"));
    assert!(server.ok(&["suspend", &key]).contains("suspended     scope tree"));
    server.ok(&["release", &key]);
    let cancelled = server.json(&["cancel", &key, "--wait", "10s", "--patience", "5s"]);
    assert_eq!(cancelled["subStatus"], "cancelled");
    assert!(server.ok(&["why", &key]).contains("it has ended"));
}
