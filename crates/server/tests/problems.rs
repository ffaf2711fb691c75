//! Every error is a problem document that says what to do.

mod common;

use common::{TOKEN, answer, assert_problem, server, server_with};
use reqwest::Method;
use tidegate::Options;
use tidegate_server::{ApiOptions, Auth};

const JSON: &str = "application/json";

#[tokio::test]
async fn bad_input_is_refused_by_name() {
    let server = server().await;
    let deep = format!(
        "{{\"processId\": \"p\", \"variables\": {{\"a\": {}1{}}}}}",
        "[".repeat(500),
        "]".repeat(500)
    );
    let long = format!("{{\"reason\": \"{}\"}}", "x".repeat(1001));
    let cases: &[(&str, &str, &str, &str, u16, &str, &str)] = &[
        (
            "GET",
            "/nothing",
            "",
            "",
            404,
            "route-not-found",
            "/api/v1/nothing",
        ),
        ("POST", "/signals", JSON, "{}", 400, "invalid-request", "name"),
        (
            "POST",
            "/admin/workflow-runtime/pause",
            JSON,
            " [null, null]",
            400,
            "invalid-request",
            "expected a JSON object",
        ),
        (
            "PUT",
            "/process-instances",
            JSON,
            "{}",
            405,
            "method-not-allowed",
            "PUT",
        ),
        ("GET", "/process-instances/abc", "", "", 400, "invalid-key", "abc"),
        ("GET", "/process-instances/0", "", "", 400, "invalid-key", "`0`"),
        (
            "GET",
            "/process-instances/99999999999999999999",
            "",
            "",
            400,
            "invalid-key",
            "63 bits",
        ),
        (
            "GET",
            "/process-instances/7",
            "",
            "",
            404,
            "instance-not-found",
            "7",
        ),
        (
            "GET",
            "/process-instances/7/history",
            "",
            "",
            404,
            "instance-not-found",
            "7",
        ),
        (
            "GET",
            "/process-definitions/7",
            "",
            "",
            404,
            "definition-not-found",
            "7",
        ),
        (
            "GET",
            "/process-instances?limit=0",
            "",
            "",
            400,
            "invalid-limit",
            "1000",
        ),
        (
            "GET",
            "/process-instances?limit=x",
            "",
            "",
            400,
            "invalid-query",
            "limit",
        ),
        (
            "GET",
            "/process-instances?after=x",
            "",
            "",
            400,
            "invalid-cursor",
            "next",
        ),
        (
            "GET",
            "/process-instances?subStatuss=held",
            "",
            "",
            400,
            "invalid-query",
            "subStatuss",
        ),
        (
            "GET",
            "/process-instances?subStatus=helt",
            "",
            "",
            400,
            "invalid-query",
            "helt",
        ),
        (
            "GET",
            "/process-instances?startedAfter=tomorrow",
            "",
            "",
            400,
            "invalid-query",
            "RFC 3339",
        ),
        (
            "GET",
            "/shells/other/process-instances",
            "",
            "",
            404,
            "shell-not-found",
            "other",
        ),
        (
            "POST",
            "/process-instances",
            JSON,
            "{",
            400,
            "malformed-json",
            "line 1 column 1",
        ),
        (
            "POST",
            "/process-instances",
            JSON,
            "",
            400,
            "malformed-json",
            "EOF",
        ),
        (
            "POST",
            "/process-instances",
            JSON,
            "{\"proces\": 1}",
            400,
            "invalid-request",
            "unknown field `proces`",
        ),
        (
            "POST",
            "/process-instances",
            JSON,
            "{\"processId\": 1}",
            400,
            "invalid-request",
            "expected a string",
        ),
        (
            "POST",
            "/process-instances",
            JSON,
            "{}",
            400,
            "invalid-request",
            "processId",
        ),
        (
            "POST",
            "/process-instances",
            JSON,
            "{\"processId\": \"p\", \"definitionKey\": \"1\"}",
            400,
            "invalid-request",
            "not both",
        ),
        (
            "POST",
            "/process-instances",
            JSON,
            "{\"processId\": \"p\", \"variables\": []}",
            400,
            "invalid-request",
            "map",
        ),
        (
            "POST",
            "/process-instances",
            JSON,
            &deep,
            400,
            "json-too-deep",
            "100",
        ),
        (
            "POST",
            "/process-instances",
            "text/plain",
            "{}",
            415,
            "unsupported-media-type",
            "application/json",
        ),
        (
            "POST",
            "/process-instances",
            JSON,
            "{\"processId\": \"nobody\"}",
            404,
            "process-not-found",
            "nobody",
        ),
        (
            "POST",
            "/messages",
            JSON,
            "{\"name\": \"\"}",
            400,
            "invalid-request",
            "name",
        ),
        (
            "POST",
            "/jobs/activate",
            JSON,
            "{\"type\": \"t\", \"worker\": \"w\", \"maxJobs\": 0, \"leaseMs\": 1}",
            400,
            "invalid-request",
            "maxJobs",
        ),
        (
            "POST",
            "/jobs/7/complete",
            JSON,
            "{\"leaseToken\": \"x\"}",
            404,
            "job-not-found",
            "7",
        ),
        (
            "POST",
            "/user-tasks/7/complete",
            "",
            "",
            404,
            "user-task-not-found",
            "7",
        ),
        (
            "POST",
            "/incidents/7/retry",
            "",
            "",
            404,
            "incident-not-found",
            "7",
        ),
        (
            "POST",
            "/deployments",
            JSON,
            "{}",
            415,
            "unsupported-media-type",
            "multipart/form-data",
        ),
        (
            "POST",
            "/deployments",
            "multipart/form-data",
            "x",
            400,
            "malformed-multipart",
            "boundary",
        ),
        (
            "POST",
            "/deployments",
            "application/xml",
            "<no-bpmn/>",
            422,
            "not-deployable",
            "refused",
        ),
        (
            "POST",
            "/admin/workflow-runtime/pause",
            JSON,
            &long,
            400,
            "text-too-long",
            "reason",
        ),
        (
            "POST",
            "/admin/workflow-runtime/pause",
            JSON,
            "{\"until\": \"soon\"}",
            400,
            "invalid-request",
            "RFC 3339",
        ),
        (
            "POST",
            "/admin/workflow-runtime/sources/none/force-stop",
            "",
            "",
            404,
            "source-not-found",
            "none",
        ),
    ];
    for (method, path, kind, body, wanted, code, detail) in cases {
        let mut request = server.request(method.parse::<Method>().unwrap(), path);
        if !kind.is_empty() {
            request = request.header("content-type", *kind);
        }
        let response = request.body((*body).to_owned()).send().await.unwrap();
        let status = response.status();
        assert_eq!(
            response.headers()["content-type"],
            "application/problem+json",
            "{method} {path}"
        );
        let document: serde_json::Value = response.json().await.unwrap();
        assert_problem(status, &document, *wanted, code);
        assert_eq!(
            document["instance"],
            format!("/api/v1{}", path.split('?').next().unwrap())
        );
        let text = document["detail"].as_str().unwrap();
        assert!(
            text.contains(detail),
            "{method} {path}: `{text}` does not name `{detail}`"
        );
    }
}

#[tokio::test]
async fn large_bodies_are_refused() {
    let api = ApiOptions {
        max_body_bytes: 1000,
        max_deployment_bytes: 2000,
        ..ApiOptions::default()
    };
    let server = server_with(Options::default(), Auth::single(TOKEN), api).await;
    for (path, kind, size) in [
        ("/messages", JSON, 1001),
        ("/deployments", "application/xml", 2001),
    ] {
        let request = server
            .request(Method::POST, path)
            .header("content-type", kind)
            .body("x".repeat(size));
        let (status, document) = answer(request).await;
        assert_problem(status, &document, 413, "body-too-large");
        assert_eq!(document["limit"], size as u64 - 1);
    }
}

#[tokio::test]
async fn a_body_that_does_not_come_is_given_up() {
    let api = ApiOptions {
        body_timeout: std::time::Duration::from_millis(50),
        ..ApiOptions::default()
    };
    let server = server_with(Options::default(), Auth::single(TOKEN), api).await;
    let never =
        reqwest::Body::wrap_stream(futures_util::stream::pending::<Result<Vec<u8>, std::io::Error>>());
    let request = server
        .request(Method::POST, "/messages")
        .header("content-type", JSON)
        .body(never);
    let (status, document) = answer(request).await;
    assert_problem(status, &document, 408, "body-timeout");
}

#[tokio::test]
async fn diagnostics_name_the_place() {
    let server = server().await;
    let xml = common::bpmn(
        "p",
        "<startEvent id=\"s\" /><sequenceFlow id=\"f\" sourceRef=\"s\" targetRef=\"gone\" />",
    );
    let request = server
        .request(Method::POST, "/deployments?name=p.bpmn")
        .header("content-type", "text/xml");
    let (status, document) = answer(request.body(xml)).await;
    assert_problem(status, &document, 422, "not-deployable");
    let found = &document["diagnostics"][0];
    assert_eq!(
        (&found["resource"], &found["severity"]),
        (&"p.bpmn".into(), &"error".into()),
        "{document}"
    );
    for member in ["code", "message", "hint", "elementId", "line", "column"] {
        assert!(found.get(member).is_some(), "`{member}` is missing: {found}");
    }
}
