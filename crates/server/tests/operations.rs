//! What an operator sees and does when something went wrong: dead letters from their death to their second life, figures,
//! and recovery under way.

mod common;

use std::sync::Arc;

use common::{Server, TOKEN, server_on, service};
use serde_json::{Value, json};
use tidegate::store::faulty::FaultyStore;
use tidegate::store::memory::MemoryStore;
use tidegate::store::{Commit, Error, ErrorKind, Write};
use tidegate::{Options, PausePersistence};
use tidegate_server::{ApiOptions, Auth};

async fn on(store: Arc<FaultyStore>, options: Options) -> Server {
    server_on(store, options, Auth::single(TOKEN), ApiOptions::default()).await
}

fn faulty() -> Arc<FaultyStore> {
    Arc::new(FaultyStore::new(Arc::new(MemoryStore::new())))
}

async fn metrics(server: &Server) -> String {
    let request = server
        .http
        .get(format!("{}/metrics", server.url))
        .bearer_auth(TOKEN);
    request.send().await.unwrap().text().await.unwrap()
}

/// The value of a line of the metrics.
fn value(metrics: &str, line: &str) -> u64 {
    let found = metrics
        .lines()
        .find_map(|found| found.strip_prefix(line)?.trim().parse().ok());
    found.unwrap_or_else(|| panic!("no line `{line}` in\n{metrics}"))
}

const PAUSE: &str = "/admin/workflow-runtime/pause";
const RESUME: &str = "/admin/workflow-runtime/resume";

#[tokio::test]
async fn b06_a_poisonous_stimulus_is_listed_counted_and_replayed_over_http() {
    let store = faulty();
    let options = Options {
        stimulus_attempts: 2,
        ..Options::default()
    };
    let server = on(store.clone(), options).await;
    server.deploy("noop", &service("demo.noop")).await;
    server.post(PAUSE, json!({})).await;
    let poison = server.start("noop", json!({})).await;
    let key = poison.clone();
    store.fail_commits(move |commit: &Commit| {
        let is_poison =
            |write: &Write| matches!(write, Write::UpdateInstance(update) if update.key.to_string() == key);
        let broken = || Error::new(ErrorKind::Internal, "this one cannot be written");
        commit.writes.iter().any(is_poison).then(broken)
    });
    server.post(RESUME, json!({})).await;
    let letter = server.first("/dead-letters").await;
    assert_eq!(letter["attempts"], 2, "{letter}");
    assert_eq!(letter["code"], "store-internal");
    assert!(letter["message"].as_str().unwrap().contains("cannot be written"));
    assert_eq!(letter["domain"], format!("instance/{poison}"));
    assert_eq!(
        server.until(&poison, "pending").await["instanceKey"],
        json!(poison)
    );
    let text = metrics(&server).await;
    assert_eq!(value(&text, "tidegate_dead_letters_total{shell=\"default\"}"), 1);
    assert_eq!(
        value(&text, "tidegate_accepted_for_later_total{shell=\"default\"}"),
        1
    );

    store.mend();
    let replay = format!("/dead-letters/{}/replay", letter["stimulusKey"].as_str().unwrap());
    let (status, replayed) = server.post(&replay, json!({})).await;
    assert_eq!(
        (status.as_u16(), &replayed["accepted"]),
        (200, &json!(true)),
        "{replayed}"
    );
    server.until(&poison, "finished").await;
    let (status, again) = server.post(&replay, json!({})).await;
    assert_eq!(
        (status.as_u16(), &again["code"]),
        (404, &json!("dead-letter-not-found"))
    );
    let (_, letters) = server.get("/dead-letters").await;
    assert_eq!(letters["items"], json!([]));
    let (_, audit) = server.get("/audit?limit=1").await;
    assert_eq!(audit["items"][0]["action"], "DeadLetterReplayRequested");
}

#[tokio::test]
async fn every_figure_has_its_help_its_kind_and_labels_of_a_fixed_set() {
    let server = on(faulty(), Options::default()).await;
    server.deploy("noop", &service("demo.noop")).await;
    let part = json!({ "processId": "noop", "holds": "newStarts", "reason": "a reason that is no label" });
    server
        .post("/admin/workflow-runtime/partial-pauses/pause", part)
        .await;
    let text = metrics(&server).await;
    for line in [
        "tidegate_paused_parts{shell=\"default\"} 1",
        "tidegate_recovered_total{shell=\"default\",cause=\"crash\"} 0",
        "tidegate_recovered_total{shell=\"default\",cause=\"interruption\"} 0",
        "tidegate_spilled_total{shell=\"default\",stage=\"written\"} 0",
        "tidegate_late_outcomes_refused_total{shell=\"default\"} 0",
        "tidegate_quarantined_total{shell=\"default\"} 0",
        "tidegate_starts_skipped_total{shell=\"default\"} 0",
        "tidegate_instances_forgotten_total{shell=\"default\"} 0",
    ] {
        assert!(text.contains(line), "`{line}` is missing in\n{text}");
    }
    assert!(!text.contains("no label") && !text.contains("noop"), "{text}");
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let name = line.split('{').next().unwrap();
        for kind in ["HELP", "TYPE"] {
            let head = format!("# {kind} {name} ");
            assert_eq!(text.matches(&head).count(), 1, "{head}");
        }
    }
}

fn check(ready: &Value, name: &str) -> Value {
    let checks = ready["checks"].as_array().unwrap();
    checks.iter().find(|check| check["name"] == name).unwrap().clone()
}

#[tokio::test]
async fn readiness_says_how_far_recovery_is() {
    let store = faulty();
    let options = || Options {
        pause_persistence: PausePersistence::AcrossReactivations,
        ..Options::default()
    };
    let first = on(store.clone(), options()).await;
    let sleeper = r#"<serviceTask id="work"><extensionElements><taskDefinition xmlns="http://camunda.org/schema/zeebe/1.0" type="demo.sleep" /><taskHeaders xmlns="http://camunda.org/schema/zeebe/1.0"><header key="duration" value="PT1H" /></taskHeaders></extensionElements></serviceTask>"#;
    first.deploy("sleeper", &common::around(sleeper)).await;
    let keys = [
        first.start("sleeper", json!({})).await,
        first.start("sleeper", json!({})).await,
    ];
    first.post(PAUSE, json!({})).await;
    first.post("/admin/workflow-runtime/force-drain", json!({})).await;

    let next = on(store, options()).await;
    let ready = async || {
        let answer = common::answer(next.http.get(format!("{}/health/ready", next.url))).await;
        check(&answer.1, "recovery")
    };
    // Under a kept pause it has not begun, and says so.
    let until = tokio::time::Instant::now() + std::time::Duration::from_secs(20);
    while ready().await["reason"] != "recovering 0 of 2" {
        assert!(tokio::time::Instant::now() < until, "{}", ready().await);
        tokio::task::yield_now().await;
    }
    assert_eq!(ready().await["grade"], "healthy");
    assert_eq!(
        value(
            &metrics(&next).await,
            "tidegate_recovery_waiting{shell=\"default\"}"
        ),
        2
    );
    next.post(RESUME, json!({})).await;
    for key in keys {
        next.until(&key, "executing").await;
    }
    while !ready().await["reason"].is_null() {
        assert!(tokio::time::Instant::now() < until, "{}", ready().await);
        tokio::task::yield_now().await;
    }
    let text = metrics(&next).await;
    assert_eq!(
        value(
            &text,
            "tidegate_recovered_total{shell=\"default\",cause=\"interruption\"}"
        ),
        2
    );
}
