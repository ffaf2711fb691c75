//! What happens, as server-sent events; and definitions that come and go.

mod common;

use std::time::Duration;

use common::{answer, assert_problem, server, service};
use reqwest::Method;
use serde_json::{Value, json};
use tidegate::status::DrainTrigger;

/// The data of the events in a stream's text.
fn events(text: &str) -> Vec<Value> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("data: "));
    lines.map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn o01_o05_the_events_of_an_instance_are_streamed_until_its_end() {
    let server = server().await;
    server.deploy("slow", &service("external")).await;
    let key = server.start("slow", json!({ "secret": "4711-secret" })).await;
    server.until(&key, "suspended").await;
    let stream = server.request(Method::GET, &format!("/process-instances/{key}/events"));
    let stream = stream.send().await.unwrap();
    assert_eq!(stream.headers()["content-type"], "text/event-stream");
    let with_values = server.request(Method::GET, "/events?values=true&kinds=lifecycle,variables");
    let mut with_values = with_values.send().await.unwrap();
    let change = server.request(Method::PATCH, &format!("/process-instances/{key}/variables"));
    let (status, _) = answer(change.json(&json!({ "other": "4712-secret" }))).await;
    assert_eq!(status, 200);
    server
        .post(&format!("/process-instances/{key}/cancel"), json!({}))
        .await;
    let text = stream.text().await.unwrap();
    assert!(
        text.contains("event: closing") && !text.contains("secret"),
        "{text}"
    );
    let seen = events(&text);
    let names: Vec<_> = seen.iter().filter_map(|event| event["name"].as_str()).collect();
    assert_eq!(names.first(), Some(&"VariablesSet"));
    assert_eq!(names.last(), Some(&"InstanceCancelled"));
    assert!(
        seen.iter()
            .all(|event| event["instanceKey"].is_null() || event["instanceKey"] == key.as_str())
    );
    assert_eq!(seen[0]["droppedBefore"], 0);
    let first = with_values.chunk().await.unwrap().unwrap();
    assert!(String::from_utf8_lossy(&first).contains("4712-secret"));
    // One that has ended has no more to tell.
    let over = server.request(Method::GET, &format!("/process-instances/{key}/events"));
    let text = over.send().await.unwrap().text().await.unwrap();
    assert!(text.contains("event: closing"), "{text}");
    let (status, document) = server.get("/process-instances/1/events").await;
    assert_problem(status, &document, 404, "instance-not-found");
    let (status, document) = server.get("/events?kinds=nothing").await;
    assert_problem(status, &document, 400, "invalid-query");
}

#[tokio::test]
async fn o01_d19_streams_of_events_end_with_the_drain_and_hold_nothing_up() {
    let server = server().await;
    server.deploy("slow", &service("external")).await;
    let key = server.start("slow", json!({})).await;
    let mut streams = Vec::new();
    for path in ["/events".to_owned(), format!("/process-instances/{key}/events")] {
        streams.push(server.request(Method::GET, &path).send().await.unwrap());
    }
    server.host.begin_stop();
    server.runtime.drain(DrainTrigger::HostStopSignal).await;
    server.host.end_streams();
    server.listening.close(Duration::from_secs(30)).await;
    for stream in streams {
        let text = stream.text().await.unwrap();
        assert!(
            text.contains("event: closing") && text.contains("retry: "),
            "{text}"
        );
    }
    assert_eq!(server.runtime.observer_counts().observers, 0);
}

#[tokio::test]
async fn f05_f07_f08_f10_definitions_come_and_go_over_http() {
    let server = server().await;
    server.deploy("p", &service("external")).await;
    let first = server.start("p", json!({})).await;
    let changed = server.deploy("p", &service("external.other")).await;
    let second = changed["definitions"][0]["definitionKey"]
        .as_str()
        .unwrap()
        .to_owned();
    server.start("p", json!({})).await;
    let by_version = json!({ "processId": "p", "version": 1 });
    let (status, started) = server.post("/process-instances", by_version).await;
    assert_eq!((status.as_u16(), &started["version"]), (200, &json!(1)));
    for version in [0, 3] {
        let unknown = json!({ "processId": "p", "version": version });
        let (status, document) = server.post("/process-instances", unknown).await;
        assert_problem(status, &document, 404, "process-not-found");
    }
    let state = async || {
        server
            .get(&format!("/process-definitions/{second}/state"))
            .await
            .1["state"]
            .clone()
    };
    assert_eq!(state().await, "active");
    let path = |query: &str| format!("/process-definitions/{second}{query}");
    let (status, document) = answer(server.request(Method::DELETE, &path("?instances=some"))).await;
    assert_problem(status, &document, 400, "invalid-query");
    let (status, gone) = answer(server.request(Method::DELETE, &path("?instances=wait&waitMs=1"))).await;
    assert_eq!((status.as_u16(), &gone["state"]), (200, &json!("retiring")));
    assert_eq!(state().await, "retiring");
    let (_, newest) = server
        .post("/process-instances", json!({ "processId": "p" }))
        .await;
    assert_eq!(newest["version"], 1);
    let (_, definitions) = server.get("/process-definitions?processId=p").await;
    let key = definitions["items"][0]["definitionKey"].as_str().unwrap();
    let cancel = format!("/process-definitions/{key}?instances=cancel");
    let (status, gone) = answer(server.request(Method::DELETE, &cancel)).await;
    assert_eq!(
        (status.as_u16(), &gone["state"], &gone["cancelled"]),
        (200, &json!("deleted"), &json!(3))
    );
    server.until(&first, "cancelled").await;
    let (_, starters) = server.get("/starters").await;
    assert_eq!(starters["items"], json!([]));
}
