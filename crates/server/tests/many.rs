//! Many instances over HTTP: lists, forgetting, exports, batches, limits, and metrics that do not grow with them.

mod common;

use common::{Server, answer, around, assert_problem, server, service};
use reqwest::Method;
use serde_json::{Value, json};

const WAITS: &str = r#"<intermediateCatchEvent id="work"><messageEventDefinition messageRef="paid" /></intermediateCatchEvent>"#;

async fn ended(server: &Server, process: &str) -> String {
    let body = json!({ "processId": process, "awaitCompletion": true });
    let (status, started) = server.post("/process-instances", body).await;
    assert_eq!(status, 200, "{started}");
    started["instanceKey"].as_str().unwrap().to_owned()
}

fn keys(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().unwrap();
    items
        .iter()
        .map(|item| item["instanceKey"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn f01_lists_of_running_and_completed_are_exact() {
    let server = server().await;
    server.deploy("short", &service("demo.noop")).await;
    server.deploy("parked", &around(WAITS)).await;
    let finished = ended(&server, "short").await;
    let parked = server.start("parked", json!({ "invoice": "1" })).await;
    server.until(&parked, "suspended").await;
    let (_, running) = server.get("/process-instances?status=running").await;
    assert_eq!(keys(&running), [parked.as_str()]);
    let (_, completed) = server.get("/process-instances?status=completed").await;
    assert_eq!(keys(&completed), [finished.as_str()]);
    let (_, first) = server.get("/process-instances?limit=1").await;
    assert_eq!(keys(&first), [parked.as_str()]);
    // What comes and goes does not move the place of the next page.
    let other = ended(&server, "short").await;
    let forget = json!({ "instanceKeys": [other] });
    let (status, forgotten) = server.post("/process-instances/forget", forget).await;
    assert_eq!((status.as_u16(), &forgotten["forgotten"]), (200, &json!([other])));
    let next = first["next"].as_str().unwrap();
    let (_, rest) = server.get(&format!("/process-instances?after={next}")).await;
    assert_eq!(keys(&rest), [finished.as_str()]);
}

#[tokio::test]
async fn f02_f03_a_forget_names_what_keeps_it_from_happening() {
    let server = server().await;
    server.deploy("short", &service("demo.noop")).await;
    server.deploy("parked", &around(WAITS)).await;
    let finished = ended(&server, "short").await;
    let live = server.start("parked", json!({ "invoice": "1" })).await;
    let (status, problem) = server
        .post(
            "/process-instances/forget",
            json!({ "instanceKeys": [finished, live] }),
        )
        .await;
    assert_problem(status, &problem, 409, "instance-live");
    assert_eq!(problem["instanceKey"], live.as_str());
    let (status, problem) = server
        .post(
            "/process-instances/forget",
            json!({ "instanceKeys": [finished, "99"] }),
        )
        .await;
    assert_problem(status, &problem, 404, "instance-not-found");
    assert!(problem["detail"].as_str().unwrap().contains("99"), "{problem}");
    let body = json!({ "instanceKeys": [finished], "keepJournal": true });
    assert_eq!(server.post("/process-instances/forget", body).await.0, 200);
    let (status, problem) = server.get(&format!("/process-instances/{finished}")).await;
    assert_problem(status, &problem, 404, "instance-not-found");
    let (status, history) = server
        .get(&format!("/process-instances/{finished}/history"))
        .await;
    assert_eq!(status, 200, "{history}");
    assert!(!history["items"].as_array().unwrap().is_empty());
}

#[tokio::test]
async fn an_export_is_a_stream_of_lines() {
    let server = server().await;
    server.deploy("short", &service("demo.noop")).await;
    let mut all = Vec::new();
    for _ in 0..3 {
        all.push(ended(&server, "short").await);
    }
    let request = server.request(Method::GET, "/process-instances/export?status=finished");
    let response = request.send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "application/jsonl");
    let text = response.text().await.unwrap();
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let of_instances = lines.iter().filter(|line| line["type"] == "instance");
    let mut exported: Vec<&str> = of_instances
        .map(|line| line["instanceKey"].as_str().unwrap())
        .collect();
    exported.sort_unstable();
    all.sort_unstable();
    assert_eq!(exported, all);
    assert!(lines.iter().any(|line| line["event"] == "InstanceCompleted"));
    let none = server.request(Method::GET, "/process-instances/export?status=running");
    assert_eq!(none.send().await.unwrap().text().await.unwrap(), "");
    let (status, problem) = server.get("/process-instances/export?status=gone").await;
    assert_problem(status, &problem, 400, "invalid-query");
}

#[tokio::test]
async fn case_083_a_batch_over_http_has_an_outcome_for_each_instance() {
    let server = server().await;
    server.deploy("parked", &around(WAITS)).await;
    let mut parked = Vec::new();
    for n in 0..12 {
        parked.push(server.start("parked", json!({ "invoice": n.to_string() })).await);
    }
    let body = json!({ "verb": "cancel", "selection": { "processId": "parked" }, "dryRun": true });
    let (status, made) = server.post("/batches", body).await;
    assert_eq!(status, 202, "{made}");
    let over = over(&server, &made).await;
    assert_eq!(
        (&over["counts"]["wouldBeDone"], &over["state"]),
        (&json!(12), &json!("completed"))
    );
    let body = json!({ "verb": "cancel", "selection": { "processId": "parked" }, "reason": "old" });
    let (_, made) = server.post("/batches", body).await;
    let key = made["batchKey"].as_str().unwrap().to_owned();
    let over = self::over(&server, &made).await;
    assert_eq!(
        (&over["counts"]["done"], &over["counts"]["pending"]),
        (&json!(12), &json!(0))
    );
    let (_, first) = server.get(&format!("/batches/{key}/items?limit=7")).await;
    let next = first["next"].as_str().unwrap();
    let (_, rest) = server
        .get(&format!("/batches/{key}/items?limit=7&after={next}"))
        .await;
    let mut listed: Vec<&str> = keys(&first).into_iter().chain(keys(&rest)).collect();
    listed.sort_unstable();
    parked.sort_unstable();
    assert_eq!(listed, parked);
    assert!(
        first["items"]
            .as_array()
            .unwrap()
            .iter()
            .all(|item| item["outcome"] == "done")
    );
    let (_, failed) = server.get(&format!("/batches/{key}/items?outcome=failed")).await;
    assert_eq!(failed["items"], json!([]));
    let (_, batches) = server.get("/batches").await;
    assert_eq!(batches["items"].as_array().unwrap().len(), 2);
    for verb in ["pause", "resume", "cancel"] {
        let (status, same) = server.post(&format!("/batches/{key}/{verb}"), json!({})).await;
        assert_eq!(
            (status.as_u16(), &same["state"]),
            (200, &json!("completed")),
            "{verb}"
        );
    }
    let (status, problem) = server.get("/batches/5").await;
    assert_problem(status, &problem, 404, "batch-not-found");
    let (status, problem) = server.post("/batches", json!({ "verb": "explode" })).await;
    assert_problem(status, &problem, 400, "invalid-request");
    let (_, audit) = server.get("/audit").await;
    let of_batches = audit["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|row| row["scope"] == "batch");
    assert_eq!(of_batches.count(), 2);
}

async fn over(server: &Server, made: &Value) -> Value {
    let path = format!("/batches/{}", made["batchKey"].as_str().unwrap());
    for _ in 0..2_000 {
        let (_, batch) = server.get(&path).await;
        if !batch["endedAt"].is_null() {
            return batch;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    panic!("the batch is not over");
}

#[tokio::test]
async fn a_limit_is_set_and_shown() {
    let server = server().await;
    server.deploy("parked", &around(WAITS)).await;
    let settings = "/process-settings/parked";
    let (_, view) = server.get(settings).await;
    assert_eq!(view["effective"]["maxInstances"], Value::Null);
    let body = json!({ "maxInstances": 1, "whenFull": "skip", "retentionCount": 5 });
    let (status, view) = answer(server.request(Method::PUT, settings).json(&body)).await;
    assert_eq!(
        (status.as_u16(), &view["effective"]["whenFull"]),
        (200, &json!("skip"))
    );
    let live = server.start("parked", json!({ "invoice": "1" })).await;
    let refused = json!({ "processId": "parked" });
    let (status, problem) = server.post("/process-instances", refused).await;
    assert_problem(status, &problem, 409, "too-many-instances");
    assert_eq!(problem["limit"], 1);
    let (_, view) = server.get(settings).await;
    assert_eq!(
        (&view["live"], &view["set"]["retentionCount"]),
        (&json!([live]), &json!(5))
    );
    let (status, problem) = server.get("/process-settings/nobody").await;
    assert_problem(status, &problem, 404, "process-not-found");
    let (status, _) = answer(
        server
            .request(Method::PUT, settings)
            .json(&json!({ "whenFull": "drop" })),
    )
    .await;
    assert_eq!(status, 400);
}

/// The names and labels of everything that is scraped.
async fn series(server: &Server) -> Vec<String> {
    let request = server
        .http
        .get(format!("{}/metrics", server.url))
        .bearer_auth(common::TOKEN);
    let text = request.send().await.unwrap().text().await.unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let mut series: Vec<String> = lines
        .map(|line| line.rsplit_once(' ').map_or(line, |(name, _)| name).to_owned())
        .collect();
    series.sort_unstable();
    series
}

/// Instances, and workers of random names, that leave the same series behind as there were before.
async fn series_stay(instances: usize, workers: usize) {
    let server = server().await;
    server.deploy("short", &service("demo.noop")).await;
    server.deploy("asks", &service("external")).await;
    ended(&server, "short").await;
    let before = series(&server).await;
    assert!(!before.is_empty());
    for _ in 0..instances {
        let request = tidegate::api::StartRequest::latest("short").wait(std::time::Duration::from_secs(30));
        server.runtime.start(request).await.unwrap();
    }
    for worker in 0..workers {
        server.start("asks", json!({})).await;
        let name = format!(
            "worker-{:x}",
            (worker as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15)
        );
        let body = json!({ "type": "external", "worker": name, "maxJobs": 1, "leaseMs": 60_000 });
        let (status, jobs) = server.post("/jobs/activate", body).await;
        assert_eq!(status, 200, "{jobs}");
    }
    assert_eq!(series(&server).await, before);
}

#[tokio::test]
async fn case_186_the_series_do_not_grow_with_instances_and_workers() {
    series_stay(300, 100).await;
}

#[tokio::test]
#[ignore = "long: 100,000 instances and 1,000 workers"]
async fn case_186_the_series_of_a_hundred_thousand_instances() {
    series_stay(100_000, 1_000).await;
}
