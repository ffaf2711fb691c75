//! Theme B of the field cases: the HTTP edge while the runtime stops.

mod common;

use std::time::Duration;

use common::{TOKEN, answer, around, server};
use reqwest::Method;
use serde_json::{Value, json};
use tidegate::status::DrainTrigger;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;

/// What would be waited for if it were waited for, and a time by which even a busy machine is through if it is not.
const DEADLINE: Duration = Duration::from_secs(120);
const LONG_BEFORE: Duration = Duration::from_secs(10);

fn sleeper(duration: &str) -> String {
    around(&format!(
        r#"<serviceTask id="work"><extensionElements><zeebe:taskDefinition type="demo.sleep"/><zeebe:taskHeaders>
<zeebe:header key="duration" value="{duration}"/></zeebe:taskHeaders></extensionElements></serviceTask>"#
    ))
}

/// One answer of a connection: its head and its body.
async fn exchange(stream: &mut TcpStream, path: &str) -> Option<String> {
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {TOKEN}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut text = String::new();
    let mut buffer = [0; 4096];
    loop {
        let count = stream.read(&mut buffer).await.ok()?;
        if count == 0 {
            return (!text.is_empty()).then_some(text);
        }
        text.push_str(&String::from_utf8_lossy(&buffer[..count]));
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head.lines().find_map(|line| {
            line.to_ascii_lowercase()
                .strip_prefix("content-length: ")?
                .parse()
                .ok()
        });
        if length.is_some_and(|length: usize| body.len() >= length) {
            return Some(text);
        }
    }
}

#[tokio::test]
async fn case_17_an_idle_connection_is_closed_at_once() {
    let server = server().await;
    let mut idle = TcpStream::connect(server.listening.address()).await.unwrap();
    assert!(
        exchange(&mut idle, "/health/live")
            .await
            .unwrap()
            .contains("healthy")
    );
    let began = Instant::now();
    server.host.begin_stop();
    server.runtime.drain(DrainTrigger::HostStopSignal).await;
    server.host.end_streams();
    server.listening.close(DEADLINE).await;
    assert!(began.elapsed() < LONG_BEFORE, "{:?}", began.elapsed());
    assert_eq!(idle.read(&mut [0; 16]).await.unwrap(), 0, "closed by the server");
}

#[tokio::test]
async fn case_19_the_first_answer_after_the_signal_closes_the_connection() {
    let server = server().await;
    let mut chatty = TcpStream::connect(server.listening.address()).await.unwrap();
    for _ in 0..3 {
        let answer = exchange(&mut chatty, "/health/live")
            .await
            .unwrap()
            .to_ascii_lowercase();
        assert!(!answer.contains("connection: close"), "{answer}");
    }
    server.host.begin_stop();
    let answer = exchange(&mut chatty, "/health/live")
        .await
        .unwrap()
        .to_ascii_lowercase();
    assert!(answer.contains("connection: close"), "{answer}");
    assert_eq!(
        exchange(&mut chatty, "/health/live").await,
        None,
        "no further request is served on it"
    );
}

#[tokio::test]
async fn case_20_event_streams_end_with_a_hint_and_hold_nothing_up() {
    let server = server().await;
    let mut streams = Vec::new();
    for _ in 0..3 {
        let events = server.request(Method::GET, "/admin/workflow-runtime/events");
        let mut stream = events.send().await.unwrap();
        let first = stream.chunk().await.unwrap().unwrap();
        assert!(String::from_utf8_lossy(&first).contains("event: status"));
        streams.push(stream);
    }
    let began = Instant::now();
    server.host.begin_stop();
    server.runtime.drain(DrainTrigger::HostStopSignal).await;
    server.host.end_streams();
    server.listening.close(DEADLINE).await;
    assert!(began.elapsed() < LONG_BEFORE, "{:?}", began.elapsed());
    for stream in streams {
        let rest = stream.text().await.unwrap();
        assert!(
            rest.contains("event: closing") && rest.contains("retry: "),
            "{rest}"
        );
    }
}

#[tokio::test]
async fn case_21_readiness_falls_with_the_signal_and_liveness_stays() {
    let server = server().await;
    let health = async |what: &str| answer(server.http.get(format!("{}/health/{what}", server.url))).await;
    assert_eq!(health("ready").await.0, 200);
    server.host.begin_stop();
    let (status, body) = health("ready").await;
    assert_eq!(
        (status.as_u16(), &body["checks"][0]["reason"]),
        (503, &json!("draining"))
    );
    assert_eq!(health("live").await.0, 200);
}

#[tokio::test]
async fn case_23_who_waits_for_an_end_gets_the_real_result_of_a_drain() {
    let server = server().await;
    server.deploy("short", &sleeper("PT1S")).await;
    let start = json!({ "processId": "short", "awaitCompletion": true });
    let waiting = tokio::spawn(answer(
        server.request(Method::POST, "/process-instances").json(&start),
    ));
    server.first("/process-instances?subStatus=executing").await;
    server.host.begin_stop();
    let outcome = server.runtime.drain(DrainTrigger::HostStopSignal).await;
    assert_eq!(outcome.execution_cycles_completed_count, 1);
    server.host.end_streams();
    server.listening.close(DEADLINE).await;
    let (status, result) = waiting.await.unwrap();
    assert_eq!(
        (status.as_u16(), &result["subStatus"]),
        (200, &json!("finished")),
        "{result}"
    );
}

/// The matrix of the contract: what each kind of request gets while the runtime does not accept.
#[tokio::test]
async fn case_25_every_kind_of_request_has_its_answer_in_every_state() {
    for is_draining in [false, true] {
        let server = server().await;
        server.deploy("job", &common::service("external")).await;
        server.deploy("person", &around("<userTask id=\"work\" />")).await;
        let keys = [
            server.start("job", json!({})).await,
            server.start("job", json!({})).await,
        ];
        server.start("person", json!({})).await;
        let task = server.first("/user-tasks").await["userTaskKey"]
            .as_str()
            .unwrap()
            .to_owned();
        let lease = |wait: u64| json!({ "type": "external", "worker": "w", "maxJobs": 1, "leaseMs": 60_000, "waitMs": wait });
        let (_, leased) = server.post("/jobs/activate", lease(5_000)).await;
        let job = leased["jobs"][0].clone();
        if is_draining {
            server.host.begin_stop();
            server.runtime.drain(DrainTrigger::HostStopSignal).await;
        } else {
            server.runtime.pause(None, None, "test").await.unwrap();
        }
        let state = if is_draining { "draining" } else { "paused" };
        let accepted = |what: &str, (status, body): (reqwest::StatusCode, Value)| {
            assert_eq!(
                (status.as_u16(), &body["accepted"]),
                (202, &json!(true)),
                "{state} {what}: {body}"
            );
            assert!(body["stimulusKey"].is_string(), "{state} {what}: {body}");
        };
        let waits = json!({ "processId": "job", "awaitCompletion": true, "requestTimeoutMs": 60_000 });
        accepted("start", server.post("/process-instances", waits).await);
        accepted("message", server.post("/messages", json!({ "name": "m" })).await);
        let path = format!("/process-instances/{}/variables", keys[0]);
        accepted(
            "variables",
            answer(server.request(Method::PATCH, &path).json(&json!({ "a": 1 }))).await,
        );
        accepted(
            "user task",
            server
                .post(&format!("/user-tasks/{task}/complete"), json!({}))
                .await,
        );

        let path = format!("/jobs/{}/complete", job["jobKey"].as_str().unwrap());
        let (status, done) = server
            .post(&path, json!({ "leaseToken": job["leaseToken"] }))
            .await;
        assert_eq!(
            (status.as_u16(), &done),
            (200, &json!({ "advanced": false })),
            "{state}: a job's outcome"
        );
        let began = Instant::now();
        let (status, none) = server
            .post("/jobs/activate", lease(if is_draining { 60_000 } else { 300 }))
            .await;
        assert_eq!(
            (status.as_u16(), &none),
            (200, &json!({ "jobs": [] })),
            "{state}: activation"
        );
        let held = began.elapsed();
        assert!(
            if is_draining {
                held < LONG_BEFORE
            } else {
                held >= Duration::from_millis(300)
            },
            "{held:?}"
        );

        let deploy = server.request(Method::POST, "/deployments?name=late.bpmn");
        let deploy = deploy.header("content-type", "application/xml");
        let deploy = deploy
            .body(common::bpmn("late", &around("<task id=\"work\" />")))
            .send()
            .await
            .unwrap();
        if is_draining {
            assert_eq!(
                (deploy.status().as_u16(), &deploy.headers()["retry-after"]),
                (503, &"5".parse().unwrap())
            );
        } else {
            assert_eq!(deploy.status(), 200);
        }
        for path in [
            "/process-instances",
            "/process-definitions",
            "/incidents",
            "/audit",
            "/shells",
            "/admin/workflow-runtime/status",
        ] {
            assert_eq!(server.get(path).await.0, 200, "{state} {path}");
        }
        let (status, cancelled) = server
            .post(&format!("/process-instances/{}/cancel", keys[1]), json!({}))
            .await;
        assert_eq!(
            (status.as_u16(), &cancelled["subStatus"]),
            (200, &json!("cancelled")),
            "{state}: cancel"
        );
    }
}

/// Case 194: a page of another origin cannot act with somebody's session, for there is none: no cookie counts.
#[tokio::test]
async fn case_194_a_foreign_page_changes_nothing() {
    let server = server().await;
    let url = format!("{}/api/v1/admin/workflow-runtime/pause", server.url);
    let cookie = format!("token={TOKEN}; session={TOKEN}");
    let with_cookie = server
        .http
        .post(&url)
        .header("cookie", &cookie)
        .header("origin", "https://evil.example");
    assert_eq!(with_cookie.send().await.unwrap().status(), 401);
    let plain = server.request(Method::POST, "/admin/workflow-runtime/pause");
    let plain = plain
        .header("content-type", "text/plain")
        .body("{\"reason\":\"x\"}");
    assert_eq!(
        plain.send().await.unwrap().status(),
        415,
        "JSON as text is no JSON"
    );
    let form = server.request(Method::POST, "/admin/workflow-runtime/pause");
    let form = form
        .header("content-type", "application/x-www-form-urlencoded")
        .body("reason=x");
    assert_eq!(form.send().await.unwrap().status(), 415);
    let image = server.request(Method::GET, "/admin/workflow-runtime/pause");
    assert_eq!(image.send().await.unwrap().status(), 405, "no change by GET");
    assert!(server.runtime.quiescence().is_accepting());
    let (_, audit) = server.get("/audit").await;
    assert_eq!(audit["items"], json!([]));
}

/// Case 198: refused without a token, status alone for who may only look, and a flood is limited and changes nothing.
#[tokio::test]
async fn case_198_a_flood_of_pauses_is_limited_and_idempotent() {
    let server = server().await;
    let pause = || answer(server.request(Method::POST, "/admin/workflow-runtime/pause"));
    let all = futures_util::future::join_all((0..1000).map(|_| pause())).await;
    let count = |wanted: u16| all.iter().filter(|(status, _)| *status == wanted).count();
    assert_eq!(count(200) + count(429), 1000);
    assert!(count(200) >= 100 && count(429) > 0, "{} of 1000", count(200));
    let (_, refused) = all.iter().find(|(status, _)| *status == 429).unwrap();
    common::assert_problem(429.try_into().unwrap(), refused, 429, "too-many-requests");
    let (status, _) = server.get("/admin/workflow-runtime/status").await;
    assert_eq!(status, 200, "looking is not limited");
    let (_, audit) = server.get("/audit").await;
    assert_eq!(
        audit["items"].as_array().unwrap().len(),
        1,
        "one change, one entry: {audit}"
    );
    let open = server
        .http
        .get(format!("{}/api/v1/admin/workflow-runtime/status", server.url));
    assert_eq!(answer(open).await.0, 401, "refused by default, even on loopback");
}
