//! Instances are put right over HTTP.

mod common;

use common::{assert_problem, server, service};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

fn user(id: &str) -> String {
    format!(r#"<userTask id="{id}"/>"#)
}

#[tokio::test]
async fn case_176_a_change_of_version_says_what_it_would_do_and_does_it() {
    let server = server().await;
    let plain = r#"<startEvent id="s"/><sequenceFlow id="f" sourceRef="s" targetRef="t"/>"#;
    server.deploy("p", &format!("{plain}{}", user("t"))).await;
    let (_, started) = server
        .post("/process-instances", json!({ "processId": "p" }))
        .await;
    let key = started["instanceKey"].as_str().unwrap().to_owned();
    let path = format!("/process-instances/{key}/migration");
    let timer = r#"<boundaryEvent id="late" attachedToRef="t" cancelActivity="false"><timerEventDefinition><timeDuration>PT1H</timeDuration></timerEventDefinition></boundaryEvent>"#;
    let newer = server.deploy("p", &format!("{}{timer}{plain}", user("t"))).await;
    let newer = newer["definitions"][0]["definitionKey"]
        .as_str()
        .unwrap()
        .to_owned();
    let (status, dry) = server.post(&path, json!({ "version": 2, "dryRun": true })).await;
    assert_eq!(
        (status, &dry["advanced"]),
        (StatusCode::OK, &json!(false)),
        "{dry}"
    );
    assert_eq!(dry["plan"]["armed"][0]["elementId"], "late");
    assert_eq!(dry["plan"]["armed"][0]["kind"], "timer");
    assert_eq!(dry["plan"]["ended"], json!([]));
    let (status, done) = server
        .post(&path, json!({ "definitionKey": newer, "reason": "remind" }))
        .await;
    assert_eq!(
        (status, &done["advanced"]),
        (StatusCode::OK, &json!(true)),
        "{done}"
    );
    assert_eq!(
        done["plan"]["armed"][0]["elementInstanceKey"],
        dry["plan"]["armed"][0]["elementInstanceKey"]
    );
    let (_, one) = server.get(&format!("/process-instances/{key}")).await;
    assert_eq!(
        (&one["version"], &one["definitionKey"]),
        (&json!(2), &json!(newer))
    );
    let (status, again) = server.post(&path, json!({ "version": 2 })).await;
    assert_problem(status, &again, 400, "same-version");
    let (status, gone) = server.post(&path, json!({ "version": 9 })).await;
    assert_problem(status, &gone, 404, "process-not-found");
    // A version without the task.
    let other = format!(
        r#"<startEvent id="s"/><sequenceFlow id="f" sourceRef="s" targetRef="u"/>{}"#,
        user("u")
    );
    let third = server.deploy("p", &other).await;
    let third = third["definitions"][0]["definitionKey"]
        .as_str()
        .unwrap()
        .to_owned();
    let (status, refused) = server.post(&path, json!({ "definitionKey": third })).await;
    assert_problem(status, &refused, 422, "repair-obstructed");
    assert_eq!(refused["reasons"][0]["code"], "unmapped-element");
    let check = format!("/process-definitions/{third}/migration-check");
    let (status, found) = server.post(&check, json!({})).await;
    assert_eq!(status, 200, "{found}");
    assert_eq!(found["obstructed"][0]["instanceKey"], json!(key));
    let (_, found) = server.post(&check, json!({ "mapping": { "t": "u" } })).await;
    assert_eq!(
        (&found["canChange"], &found["obstructed"]),
        (&json!(1), &json!([]))
    );
}

#[tokio::test]
async fn tokens_and_variables_are_changed_and_bad_requests_say_what_is_wrong() {
    let server = server().await;
    server.deploy("p", &service("external")).await;
    let (_, started) = server
        .post("/process-instances", json!({ "processId": "p" }))
        .await;
    let key = started["instanceKey"].as_str().unwrap().to_owned();
    let (_, one) = server.get(&format!("/process-instances/{key}")).await;
    let token = one["tokens"][0].clone();
    let task = token["elementId"].as_str().unwrap();
    let scope = token["elementInstanceKey"].as_str().unwrap();
    let local = server
        .request(
            Method::PATCH,
            &format!("/process-instances/{key}/variables?scopeKey={scope}&reason=test"),
        )
        .json(&json!({ "local": 1 }));
    let (status, all) = common::answer(local).await;
    assert_eq!(
        (status, all),
        (StatusCode::OK, json!({})),
        "the instance itself has none"
    );
    let path = format!("/process-instances/{key}/modification");
    for (bad, code) in [
        (json!({}), "invalid-request"),
        (json!({ "terminate": [{}] }), "invalid-request"),
        (
            json!({ "activate": [{ "elementId": "a", "flowId": "b" }] }),
            "invalid-request",
        ),
    ] {
        let (status, answer) = server.post(&path, bad).await;
        assert_problem(status, &answer, 400, code);
    }
    let (status, left) = server
        .post(&path, json!({ "terminate": [{ "elementId": task }] }))
        .await;
    assert_problem(status, &left, 422, "repair-obstructed");
    assert_eq!(left["reasons"][0]["code"], "nothing-left");
    let body = json!({ "terminate": [{ "elementId": task }], "activate": [{ "afterElementId": task }] });
    let (status, done) = server.post(&path, body).await;
    assert_eq!(status, 200, "{done}");
    assert_eq!(done["plan"]["ends"], "finished");
    let (_, one) = server.get(&format!("/process-instances/{key}")).await;
    assert_eq!(one["status"], "finished");
}

#[tokio::test]
async fn an_incident_is_resolved_with_variables() {
    let server = server().await;
    let flow = r#"<sequenceFlow id="f" sourceRef="s" targetRef="x"/><sequenceFlow id="g" sourceRef="x" targetRef="e"><conditionExpression>= ok = true</conditionExpression></sequenceFlow>"#;
    let body = format!(r#"<startEvent id="s"/><exclusiveGateway id="x"/><endEvent id="e"/>{flow}"#);
    server.deploy("p", &body).await;
    server
        .post("/process-instances", json!({ "processId": "p" }))
        .await;
    let (_, incidents) = server.get("/incidents").await;
    let key = incidents["items"][0]["incidentKey"].as_str().unwrap().to_owned();
    let body = json!({ "variables": { "ok": true }, "reason": "looked it up" });
    let (status, done) = server.post(&format!("/incidents/{key}/resolve"), body).await;
    assert_eq!((status, done), (StatusCode::OK, json!({ "advanced": true })));
    let (_, left): (_, Value) = server.get("/incidents").await;
    assert_eq!(left["items"], json!([]));
}
