//! Section A of the acceptance list: who may, what is told, what is written down.

mod common;

use std::time::Duration;

use common::{TOKEN, answer, server, server_with, tokens};
use reqwest::Method;
use serde_json::{Value, json};
use tidegate::{Options, Runtime};
use tidegate_server::listen::{self, ListenOptions};
use tidegate_server::{ApiOptions, Auth, Host};
use tokio::time::Instant;

const RUNTIME: &str = "/admin/workflow-runtime";

async fn send(server: &common::Server, token: &str, method: Method, action: &str) -> (u16, Value) {
    let url = format!("{}/api/v1{RUNTIME}/{action}", server.url);
    let (status, document) = answer(server.http.request(method, url).bearer_auth(token)).await;
    (status.as_u16(), document)
}

#[tokio::test]
async fn a01_view_sees_the_status_and_has_none_of_the_verbs() {
    let auth = tokens(&[("viewer", &["workflows/runtime:view"])]);
    let server = server_with(Options::default(), auth, ApiOptions::default()).await;
    assert_eq!(send(&server, "viewer", Method::GET, "status").await.0, 200);
    for verb in [
        "pause",
        "resume",
        "force-drain",
        "sources/http.trigger/force-stop",
    ] {
        let (status, refused) = send(&server, "viewer", Method::POST, verb).await;
        assert_eq!(
            (status, &refused["code"]),
            (403, &json!("permission-denied")),
            "{verb}"
        );
        assert!(
            !refused.to_string().contains("generationId"),
            "nothing of the state: {refused}"
        );
    }
    assert_eq!(
        send(&server, "viewer", Method::GET, "status").await.1["state"]["reason"],
        "None"
    );
}

#[tokio::test]
async fn a02_control_has_everything() {
    let auth = tokens(&[("controller", &["workflows/runtime:control"])]);
    let server = server_with(Options::default(), auth, ApiOptions::default()).await;
    assert_eq!(send(&server, "controller", Method::GET, "status").await.0, 200);
    for verb in ["pause", "sources/timer/force-stop", "resume", "force-drain"] {
        let (status, document) = send(&server, "controller", Method::POST, verb).await;
        assert_eq!(status, 200, "{verb}: {document}");
    }
}

/// Every known token is compared with what was sent, whatever was sent: an unknown token takes as long as a wrong
/// one, and is answered with the same words.
#[tokio::test]
async fn a04_an_unknown_token_is_answered_like_a_wrong_one_and_as_fast() {
    let names: Vec<String> = (0..50).map(|n| format!("token-number-{n:03}-of-many")).collect();
    let known: Vec<(&str, &[&str])> = names
        .iter()
        .map(|name| (name.as_str(), &["*"] as &[&str]))
        .collect();
    let server = server_with(Options::default(), tokens(&known), ApiOptions::default()).await;
    // Almost right, and not like any.
    let attempts = ["token-number-049-of-manx", "x"];
    let mut took = [Vec::new(), Vec::new()];
    let mut answers = Vec::new();
    for _ in 0..150 {
        for (position, token) in attempts.iter().enumerate() {
            let began = Instant::now();
            let (status, document) = send(&server, token, Method::GET, "status").await;
            took[position].push(began.elapsed());
            assert_eq!(status, 401);
            answers.push(document);
        }
    }
    assert!(
        answers.iter().all(|document| *document == answers[0]),
        "the same words"
    );
    let median = |times: &mut Vec<Duration>| {
        times.sort_unstable();
        times[times.len() / 2].as_secs_f64()
    };
    let ratio = median(&mut took[0]) / median(&mut took[1]);
    assert!(
        (0.5..2.0).contains(&ratio),
        "the medians differ by a factor of {ratio}"
    );
}

#[tokio::test]
async fn a06_every_verb_twice_is_the_same_state() {
    let server = server().await;
    for verb in [
        "pause",
        "sources/timer/force-stop",
        "resume",
        "force-drain",
        "force-drain",
    ] {
        let (_, first) = send(&server, TOKEN, Method::POST, verb).await;
        let (status, second) = send(&server, TOKEN, Method::POST, verb).await;
        assert_eq!((status, &second), (200, &first), "{verb}");
    }
}

#[tokio::test]
async fn a07_each_effective_change_is_one_row_and_repeats_add_none() {
    let server = server().await;
    let pause = server.request(Method::POST, &format!("{RUNTIME}/pause"));
    let pause = pause
        .header("x-request-id", "change-4711")
        .json(&json!({ "reason": "moving" }));
    let response = pause.send().await.unwrap();
    assert_eq!(response.headers()["x-request-id"], "change-4711");
    for _ in 0..3 {
        send(&server, TOKEN, Method::POST, "pause").await;
    }
    for verb in ["resume", "resume", "force-drain", "force-drain"] {
        send(&server, TOKEN, Method::POST, verb).await;
    }
    let (_, audit) = server.get("/audit").await;
    let rows = audit["items"].as_array().unwrap();
    let of = |action: &str| {
        let found: Vec<_> = rows.iter().filter(|row| row["action"] == action).collect();
        assert_eq!(found.len(), 1, "{action}: {audit}");
        found[0]
    };
    let pause = of("RuntimePauseRequested");
    assert_eq!(
        (
            &pause["actor"],
            &pause["reason"],
            &pause["shell"],
            &pause["scope"],
            &pause["before"],
            &pause["requestId"]
        ),
        (
            &json!("operator"),
            &json!("moving"),
            &json!("default"),
            &json!("runtime"),
            &json!("None"),
            &json!("change-4711")
        )
    );
    for row in [of("RuntimeResumeRequested"), of("RuntimeForceDrainRequested")] {
        let id = row["requestId"].as_str().unwrap();
        assert_eq!(id.len(), 32, "an id of the server's own: {row}");
        assert!(row["time"].is_string() && row["outcome"].is_string());
    }
    assert_eq!(of("RuntimeDrained")["shell"], "default");
}

#[tokio::test]
async fn the_audit_is_paged_and_exported_as_lines() {
    let server = server().await;
    for _ in 0..4 {
        send(&server, TOKEN, Method::POST, "pause").await;
        send(&server, TOKEN, Method::POST, "resume").await;
    }
    let (mut paged, mut after) = (Vec::new(), String::new());
    loop {
        let (status, page) = server.get(&format!("/audit?limit=3{after}")).await;
        assert_eq!(status, 200, "{page}");
        paged.extend(page["items"].as_array().unwrap().clone());
        let Some(next) = page["next"].as_str() else { break };
        after = format!("&after={next}");
    }
    assert_eq!(paged.len(), 8);
    let export = server
        .request(Method::GET, "/audit?format=jsonl")
        .send()
        .await
        .unwrap();
    assert_eq!(export.headers()["content-type"], "application/jsonl");
    let text = export.text().await.unwrap();
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines, paged, "the same entries in the same order");
    let (status, refused) = server.get("/audit?format=jsonl&limit=1").await;
    assert_eq!(
        (status.as_u16(), &refused["code"]),
        (400, &json!("invalid-query"))
    );
}

#[tokio::test]
async fn a09_health_has_three_grades_and_liveness_none() {
    let store = tidegate::store::open("memory:").unwrap();
    let options = Options {
        queue_max_depth: Some(1),
        ..Options::default()
    };
    let runtime = Runtime::builder()
        .store(store.clone())
        .options(options)
        .start()
        .await
        .unwrap();
    let host = Host::of(runtime.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let router = tidegate_server::router(host.clone(), Auth::single(TOKEN), ApiOptions::default());
    let listening = listen::serve(listener, router, ListenOptions::default()).unwrap();
    let url = format!("http://{}", listening.address());
    let http = reqwest::Client::new();
    let health = async |what: &str| {
        let (status, body) = answer(http.get(format!("{url}/health/{what}"))).await;
        (status.as_u16(), body)
    };
    let check = |body: &Value, name: &str| {
        let checks = body["checks"].as_array().unwrap();
        checks.iter().find(|check| check["name"] == name).unwrap().clone()
    };
    let (status, body) = health("ready").await;
    assert_eq!((status, &body["status"]), (200, &json!("healthy")), "{body}");

    runtime.pause(None, None, "test").await.unwrap();
    let (status, body) = health("ready").await;
    assert_eq!((status, &body["status"]), (503, &json!("degraded")));
    assert_eq!(check(&body, "gate")["grade"], "degraded");
    let message = |n: u8| {
        http.post(format!("{url}/api/v1/messages"))
            .bearer_auth(TOKEN)
            .json(&json!({ "name": n.to_string() }))
    };
    for n in 0..2 {
        assert_eq!(answer(message(n)).await.0, 202);
    }
    let (status, body) = health("ready").await;
    let queue = check(&body, "queue");
    assert_eq!((status, &queue["grade"]), (503, &json!("degraded")));
    assert!(
        queue["reason"].as_str().unwrap().contains("the limit is 1"),
        "with the figures: {queue}"
    );
    runtime.resume("test").await.unwrap();
    // The queue's rows are executed by their owners after the answer.
    let opened = async {
        while health("ready").await.0 != 200 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), opened)
        .await
        .expect("ready again");

    store.close();
    let (status, _) = answer(message(9)).await;
    assert!(status.is_server_error(), "{status}");
    let (status, body) = health("ready").await;
    assert_eq!((status, &body["status"]), (503, &json!("unhealthy")), "{body}");
    assert_eq!(check(&body, "store")["grade"], "unhealthy");
    assert_eq!(
        health("live").await,
        (200, json!({ "status": "healthy" })),
        "no reason to be killed"
    );

    host.begin_stop();
    let (status, body) = health("ready").await;
    assert_eq!(
        (status, &check(&body, "host")["reason"]),
        (503, &json!("draining"))
    );
    assert_eq!((health("live").await.0, health("startup").await.0), (200, 200));
}

/// Case 191: the pause of a part is the part's alone, and the status of the whole does not say more.
#[tokio::test]
async fn case_191_one_definition_is_paused_and_another_goes_on() {
    let server = server().await;
    for process in ["held", "free"] {
        server.deploy(process, &common::service("demo.noop")).await;
    }
    let parts = format!("{RUNTIME}/partial-pauses");
    let body = json!({ "processId": "held", "holds": "everything", "reason": "a bad version" });
    let (status, paused) = server.post(&format!("{parts}/pause"), body.clone()).await;
    assert_eq!(status, 200, "{paused}");
    assert_eq!(
        (
            &paused["part"]["processId"],
            &paused["scope"],
            &paused["requestedBy"]
        ),
        (&json!("held"), &json!("everything"), &json!("operator"))
    );
    assert_eq!(
        server.post(&format!("{parts}/pause"), body).await.1,
        paused,
        "repeated"
    );
    let (_, listed) = server.get(&parts).await;
    assert_eq!(listed["items"], json!([paused]));
    let (_, whole) = server.get(&format!("{RUNTIME}/status")).await;
    assert_eq!(whole["state"]["reason"], "None");
    let start = async |process: &str| {
        let body = json!({ "processId": process, "awaitCompletion": true });
        server.post("/process-instances", body).await
    };
    let (status, waits) = start("held").await;
    assert_eq!(
        (status.as_u16(), &waits["accepted"]),
        (202, &json!(true)),
        "{waits}"
    );
    assert_eq!(start("free").await.1["subStatus"], "finished");
    let resume = json!({ "processId": "held" });
    let (status, resumed) = server.post(&format!("{parts}/resume"), resume.clone()).await;
    assert_eq!((status.as_u16(), resumed), (200, json!({ "resumed": true })));
    server
        .until(waits["instanceKey"].as_str().unwrap(), "finished")
        .await;
    let (_, again) = server.post(&format!("{parts}/resume"), resume).await;
    assert_eq!(again, json!({ "resumed": false }));
    let (status, refused) = server
        .post(&format!("{parts}/pause"), json!({ "holds": "newStarts" }))
        .await;
    assert_eq!(
        (status.as_u16(), &refused["code"]),
        (400, &json!("invalid-request"))
    );
    let (status, letters) = server.get("/dead-letters").await;
    assert_eq!(
        (status.as_u16(), &letters["items"], &letters["next"]),
        (200, &json!([]), &Value::Null)
    );
    let (status, gone) = server.post("/dead-letters/1/replay", json!({})).await;
    assert_eq!(
        (status.as_u16(), &gone["code"]),
        (404, &json!("dead-letter-not-found"))
    );
}

/// Nothing removes audit entries, so that they outlive what they are about.
#[tokio::test]
async fn case_196_the_audit_says_who_did_what_and_why_once_for_each_change() {
    let auth = tokens(&[(TOKEN, &["*"]), ("ada", &["*"]), ("bob", &["*"])]);
    let server = server_with(Options::default(), auth, ApiOptions::default()).await;
    server.deploy("job", &common::service("external")).await;
    let key = server.start("job", json!({})).await;
    let act = async |who: &str, path: &str, reason: &str| {
        let url = format!("{}/api/v1{path}", server.url);
        let request = server
            .http
            .post(url)
            .bearer_auth(who)
            .header("x-request-id", reason);
        let (status, answer) = answer(request.json(&json!({ "reason": reason }))).await;
        assert_eq!(status, 200, "{path}: {answer}");
    };
    act("ada", &format!("{RUNTIME}/pause"), "night").await;
    act("bob", &format!("{RUNTIME}/pause"), "me-too").await;
    server.post(&format!("{RUNTIME}/resume"), json!({})).await;
    act("bob", &format!("/process-instances/{key}/cancel"), "mistake").await;
    act("ada", &format!("/process-instances/{key}/cancel"), "again").await;
    let (_, audit) = server.get("/audit").await;
    // The first entry is the deployment.
    let rows = &audit["items"].as_array().unwrap()[..3];
    let column = |name: &str| rows.iter().rev().map(|row| row[name].clone()).collect::<Vec<_>>();
    assert_eq!(column("actor"), ["ada", TOKEN, "bob"], "{audit}");
    assert_eq!(column("reason"), [json!("night"), Value::Null, json!("mistake")]);
    assert_eq!(column("scope"), ["runtime", "runtime", "instance"]);
    assert_eq!(
        (&rows[0]["subject"], &rows[0]["requestId"]),
        (&json!(key), &json!("mistake"))
    );
    assert_eq!(
        (&rows[0]["before"], &rows[0]["after"]),
        (&json!("suspended"), &json!("cancelled"))
    );
}
