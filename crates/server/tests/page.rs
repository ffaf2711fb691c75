//! The live page: whole, safe, and no secret in it.

mod common;

use common::server;
use reqwest::Method;

#[tokio::test]
async fn the_page_and_its_files_need_no_token_and_allow_nothing_from_elsewhere() {
    let server = server().await;
    for (path, kind) in [
        ("/", "text/html"),
        ("/live.css", "text/css"),
        ("/live.js", "text/javascript"),
    ] {
        let response = server
            .http
            .get(format!("{}{path}", server.url))
            .send()
            .await
            .unwrap();
        assert_eq!(response.status(), 200, "{path}");
        let header = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
        assert!(header("content-type").starts_with(kind), "{path}");
        let policy = header("content-security-policy");
        assert!(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"));
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(header("x-content-type-options"), "nosniff");
        let text = response.text().await.unwrap();
        for elsewhere in [
            "http://",
            "https://",
            "style=",
            "onclick",
            "innerHTML",
            "localStorage",
            "eval(",
        ] {
            assert!(!text.contains(elsewhere), "{path} has `{elsewhere}`");
        }
        if path == "/" {
            assert!(
                text.contains("content=\"/api/v1\""),
                "the page knows the API's base"
            );
            assert!(
                !text.contains("<script>") && !text.contains("<style>"),
                "nothing inline"
            );
        }
    }
}

#[tokio::test]
async fn every_element_that_the_script_asks_for_is_on_the_page() {
    let script = include_str!("../src/page/live.js");
    let page = include_str!("../src/page/index.html");
    let ids: Vec<_> = script
        .split("at('")
        .skip(1)
        .filter_map(|rest| rest.split('\'').next())
        .collect();
    assert!(ids.len() > 20);
    for id in ids {
        assert!(page.contains(&format!("id=\"{id}\"")), "no element `{id}`");
    }
}

#[tokio::test]
async fn callers_learn_what_they_may_do() {
    let server = server().await;
    let (status, identity) = common::answer(server.request(Method::GET, "/identity")).await;
    assert_eq!(status, 200, "{identity}");
    assert_eq!(
        identity,
        serde_json::json!({ "name": "operator", "shell": null, "tenants": null, "permissions": ["*"] })
    );
}
