//! Who may do what.

mod common;

use common::{answer, assert_problem, server_with, tokens};
use reqwest::Method;
use tidegate::Options;
use tidegate_server::{ApiOptions, Auth};

/// A01 to A04: for each token, what it may and may not.
#[tokio::test]
async fn a01_each_permission_opens_its_own_routes_and_no_other() {
    let auth = tokens(&[
        ("viewer", &["workflows/runtime:view"]),
        ("old-viewer", &["read:workflow-runtime"]),
        ("pauser", &["workflows/runtime:pause"]),
        ("controller", &["workflows/runtime:control"]),
        ("worker", &["jobs:work"]),
        ("reader", &["instances:read", "definitions:read"]),
        ("all", &["*"]),
    ]);
    let server = server_with(Options::default(), auth, ApiOptions::default()).await;
    let status = (Method::GET, "/admin/workflow-runtime/status");
    let pause = (Method::POST, "/admin/workflow-runtime/pause");
    let resume = (Method::POST, "/admin/workflow-runtime/resume");
    let instances = (Method::GET, "/process-instances");
    let audit = (Method::GET, "/audit");
    for (token, allowed, denied) in [
        ("viewer", vec![&status], vec![&pause, &resume, &instances]),
        ("old-viewer", vec![&status], vec![&pause]),
        ("pauser", vec![&pause, &resume], vec![&status, &instances]),
        (
            "controller",
            vec![&status, &pause, &resume],
            vec![&instances, &audit],
        ),
        ("worker", vec![], vec![&status, &instances, &audit]),
        ("reader", vec![&instances], vec![&status, &pause]),
        ("all", vec![&status, &pause, &resume, &instances, &audit], vec![]),
    ] {
        for (wanted, (method, path)) in allowed
            .into_iter()
            .map(|route| (200, route))
            .chain(denied.into_iter().map(|route| (403, route)))
        {
            let request = server
                .http
                .request(method.clone(), format!("{}/api/v1{path}", server.url));
            let (status, document) = answer(request.bearer_auth(token)).await;
            assert_eq!(status, wanted, "{token} {path}: {document}");
            if wanted == 403 {
                assert_problem(status, &document, 403, "permission-denied");
            }
        }
    }
}

#[tokio::test]
async fn a03_without_a_valid_token_nothing_is_told() {
    let server = server_with(
        Options::default(),
        tokens(&[("all", &["*"])]),
        ApiOptions::default(),
    )
    .await;
    for header in [
        None,
        Some("Bearer wrong"),
        Some("Bearer "),
        Some("Basic all"),
        Some("all"),
        Some("Bearer"),
    ] {
        let mut request = server
            .http
            .get(format!("{}/api/v1/admin/workflow-runtime/status", server.url));
        if let Some(header) = header {
            request = request.header("authorization", header);
        }
        let response = request.send().await.unwrap();
        assert_eq!(
            response.headers()["www-authenticate"],
            "Bearer realm=\"tidegate\"",
            "{header:?}"
        );
        let status = response.status();
        let document = response.json().await.unwrap();
        assert_problem(status, &document, 401, "unauthenticated");
        assert_eq!(
            document.as_object().unwrap().len(),
            6,
            "nothing but the standard members: {document}"
        );
    }
    let metrics = server
        .http
        .get(format!("{}/metrics", server.url))
        .send()
        .await
        .unwrap();
    assert_eq!(metrics.status(), 401);
    let metrics = server
        .http
        .get(format!("{}/metrics", server.url))
        .bearer_auth("all")
        .send()
        .await
        .unwrap();
    let text = metrics.text().await.unwrap();
    for line in [
        "tidegate_accepting{shell=\"default\"} 1",
        "tidegate_live_cycles{shell=\"default\"} 0",
    ] {
        assert!(text.contains(line), "{text}");
    }
}

#[tokio::test]
async fn without_authentication_foreign_pages_are_refused() {
    let server = server_with(Options::default(), Auth::open(), ApiOptions::default()).await;
    let url = format!("{}/api/v1/admin/workflow-runtime/status", server.url);
    assert_eq!(answer(server.http.get(&url)).await.0, 200);
    let origin = server.url.clone();
    assert_eq!(
        answer(server.http.get(&url).header("origin", origin)).await.0,
        200
    );
    for (name, value) in [
        ("host", "evil.example"),
        ("origin", "http://evil.example"),
        ("origin", "null"),
    ] {
        let (status, document) = answer(server.http.get(&url).header(name, value)).await;
        assert_problem(status, &document, 403, "foreign-origin");
    }
}
