//! Runtime administration, as the wire contract has it.

mod common;

use common::{TOKEN, answer, around, assert_problem, server, server_with, service};
use reqwest::Method;
use serde_json::{Value, json};
use tidegate::status::DrainTrigger;
use tidegate::{Options, OverflowPolicy};
use tidegate_server::{ApiOptions, Auth};

const STATUS: &str = "/admin/workflow-runtime/status";
const PAUSE: &str = "/admin/workflow-runtime/pause";
const RESUME: &str = "/admin/workflow-runtime/resume";
const FORCE: &str = "/admin/workflow-runtime/force-drain";

fn assert_status(status: &Value) {
    let has = |value: &Value, members: &[&str]| {
        for member in members {
            assert!(value.get(member).is_some(), "`{member}` is missing: {value}");
        }
        assert_eq!(value.as_object().unwrap().len(), members.len(), "{value}");
    };
    has(
        status,
        &[
            "state",
            "sources",
            "activeExecutionCycleCount",
            "stimulusQueue",
            "interruptedInstanceCount",
        ],
    );
    has(
        &status["state"],
        &[
            "reason",
            "isAcceptingNewWork",
            "pausedAt",
            "pausedUntil",
            "drainStartedAt",
            "drainDeadlineAt",
            "pauseReasonText",
            "pauseRequestedBy",
            "generationId",
        ],
    );
    has(
        &status["stimulusQueue"],
        &[
            "depth",
            "maxDepthWhilePaused",
            "overflowPolicy",
            "oldestAcceptedAt",
        ],
    );
    let sources = status["sources"].as_array().unwrap();
    let names: Vec<_> = sources
        .iter()
        .map(|source| source["name"].as_str().unwrap())
        .collect();
    assert!(names.is_sorted() && names.contains(&"http.api"), "{names:?}");
    for source in sources {
        has(
            source,
            &[
                "name",
                "state",
                "lastError",
                "lastErrorKind",
                "lastTransitionAt",
                "supportsForceStop",
                "pauseTimeoutMs",
            ],
        );
    }
    let generation = status["state"]["generationId"].as_str().unwrap();
    assert!(generation.len() == 32 && generation.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')));
}

#[tokio::test]
async fn the_plan_of_a_drain_is_told_with_what_the_reserve_would_do() {
    let server = server().await;
    let (status, plan) = server.get("/admin/workflow-runtime/drain-plan").await;
    assert_eq!(status, 200, "{plan}");
    assert_eq!(plan["steps"][0]["name"], "close");
    assert_eq!(plan["reserve"]["liveCycles"], 0, "{plan}");
    assert!(
        plan["reserve"]["keptMs"].is_u64() && plan["reserve"].get("isEnough").is_some(),
        "{plan}"
    );
}

#[tokio::test]
async fn a05_every_field_is_in_every_answer() {
    let server = server().await;
    let (_, fresh) = server.get(STATUS).await;
    assert_status(&fresh);
    assert_eq!(fresh["state"]["reason"], "None");

    let (code, paused) = server.post(PAUSE, json!({ "reason": "maintenance" })).await;
    assert_eq!(code, 200, "{paused}");
    assert_status(&paused);
    assert_eq!(paused["state"]["reason"], "AdministrativePause");
    assert_eq!(paused["state"]["pauseReasonText"], "maintenance");
    assert_eq!(paused["state"]["pauseRequestedBy"], "operator");
    let (_, again) = server.post(PAUSE, json!({ "reason": "another" })).await;
    assert_eq!(again["state"], paused["state"], "the first pause stays");

    let (_, in_shell) = server.get(&format!("/shells/DEFAULT{STATUS}")).await;
    assert_status(&in_shell);
    let (code, resumed) = answer(server.request(Method::POST, RESUME)).await;
    assert_eq!(
        (code.as_u16(), &resumed["state"]["reason"]),
        (200, &json!("None"))
    );
    assert_status(&resumed);

    let (code, forced) = answer(server.request(Method::POST, FORCE)).await;
    assert_eq!(
        (code.as_u16(), &forced["outcome"]["overallResult"]),
        (200, &json!("Forced")),
        "{forced}"
    );
    assert_eq!(forced["outcome"]["trigger"], "OperatorForce");
    let (_, same) = answer(server.request(Method::POST, FORCE)).await;
    assert_eq!(same, forced);

    let (code, refused) = answer(server.request(Method::POST, RESUME)).await;
    assert_problem(code, &refused, 409, "runtime-draining");
    assert_status(&refused["state"]);

    let (_, audit) = server.get("/audit").await;
    let actions: Vec<_> = audit["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["action"].as_str().unwrap())
        .collect();
    for (action, count) in [
        ("RuntimePauseRequested", 1),
        ("RuntimeResumeRequested", 1),
        ("RuntimeForceDrainRequested", 1),
    ] {
        assert_eq!(
            actions.iter().filter(|found| **found == action).count(),
            count,
            "{action} in {actions:?}"
        );
    }
    let (_, shells) = server.get("/shells").await;
    assert_eq!(
        (&shells["items"][0]["shellId"], &shells["items"][0]["status"]),
        (&json!("default"), &json!("Draining"))
    );
}

#[tokio::test]
async fn while_paused_new_work_is_accepted_and_reads_are_served() {
    let server = server().await;
    server.deploy("quick", &service("demo.noop")).await;
    server.deploy("job", &service("external")).await;
    let waiting = server.start("job", json!({})).await;
    let leased =
        json!({ "type": "external", "worker": "w", "maxJobs": 1, "leaseMs": 60_000, "waitMs": 5_000 });
    let (_, jobs) = server.post("/jobs/activate", leased.clone()).await;
    let job = &jobs["jobs"][0];
    server.post(PAUSE, json!({})).await;

    let body = json!({ "processId": "quick", "awaitCompletion": true });
    let (code, started) = server.post("/process-instances", body).await;
    assert_eq!(code, 202, "{started}");
    assert_eq!(
        (&started["accepted"], &started["subStatus"]),
        (&json!(true), &json!("pending"))
    );
    assert!(started["stimulusKey"].is_string());
    let key = started["instanceKey"].as_str().unwrap();

    let (code, message) = server.post("/messages", json!({ "name": "nobody-waits" })).await;
    assert_eq!(
        (code.as_u16(), &message["accepted"]),
        (202, &json!(true)),
        "{message}"
    );
    let outcome = json!({ "leaseToken": job["leaseToken"], "variables": { "done": true } });
    let path = format!("/jobs/{}/complete", job["jobKey"].as_str().unwrap());
    let (code, result) = server.post(&path, outcome).await;
    assert_eq!((code.as_u16(), &result), (200, &json!({ "advanced": false })));
    let (code, cancelled) = server
        .post(
            &format!(
                "/process-instances/{}/cancel",
                server.start("job", json!({})).await
            ),
            json!({}),
        )
        .await;
    assert_eq!(
        (code.as_u16(), &cancelled["subStatus"]),
        (200, &json!("cancelled")),
        "{cancelled}"
    );

    let ready = server.http.get(format!("{}/health/ready", server.url));
    let (code, readiness) = answer(ready).await;
    assert_eq!(
        (code.as_u16(), &readiness["status"]),
        (503, &json!("degraded")),
        "{readiness}"
    );
    let live = server.http.get(format!("{}/health/live", server.url));
    assert_eq!(answer(live).await.0, 200);

    server.post(RESUME, json!({})).await;
    server.until(key, "finished").await;
    server.until(&waiting, "finished").await;
    let ready = server.http.get(format!("{}/health/ready", server.url));
    assert_eq!(answer(ready).await.0, 200);
}

#[tokio::test]
async fn a_full_queue_refuses_with_a_time_to_come_back() {
    let options = Options {
        queue_max_depth: Some(1),
        overflow_policy: OverflowPolicy::Reject,
        ..Options::default()
    };
    let server = server_with(options, Auth::single(TOKEN), ApiOptions::default()).await;
    server.deploy("quick", &service("demo.noop")).await;
    server.post(PAUSE, json!({})).await;
    let body = json!({ "processId": "quick" });
    assert_eq!(server.post("/process-instances", body.clone()).await.0, 202);
    let response = server
        .request(Method::POST, "/process-instances")
        .json(&body)
        .send()
        .await
        .unwrap();
    assert_eq!(response.headers()["retry-after"], "60");
    let code = response.status();
    assert_problem(code, &response.json().await.unwrap(), 503, "stimulus-queue-full");
}

#[tokio::test]
async fn a_pause_may_leave_readiness_alone() {
    let api = ApiOptions {
        ready_while_paused: true,
        ..ApiOptions::default()
    };
    let server = server_with(Options::default(), Auth::single(TOKEN), api).await;
    server.post(PAUSE, json!({})).await;
    let ready = || server.http.get(format!("{}/health/ready", server.url));
    assert_eq!(answer(ready()).await.0, 200);
    server.host.begin_stop();
    assert_eq!(answer(ready()).await.0, 503, "a stop is no pause");
}

#[tokio::test]
async fn a_draining_runtime_refuses_deployments_and_asks_clients_to_leave() {
    let server = server().await;
    server.host.begin_stop();
    server.runtime.drain(DrainTrigger::HostStopSignal).await;
    let xml = common::bpmn("late", &around("<task id=\"work\" />"));
    let request = server
        .request(Method::POST, "/deployments")
        .header("content-type", "application/xml")
        .body(xml);
    let response = request.send().await.unwrap();
    assert_eq!(response.headers()["retry-after"], "5");
    assert_eq!(response.headers()["connection"], "close");
    let code = response.status();
    assert_problem(code, &response.json().await.unwrap(), 503, "runtime-draining");
    let (code, status) = server.get(STATUS).await;
    assert_eq!(
        (code.as_u16(), &status["state"]["reason"]),
        (200, &json!("Drain"))
    );
    let jobs = json!({ "type": "t", "worker": "w", "maxJobs": 1, "leaseMs": 1000, "waitMs": 60_000 });
    assert_eq!(
        server.post("/jobs/activate", jobs).await.1,
        json!({ "jobs": [] }),
        "at once"
    );
}
