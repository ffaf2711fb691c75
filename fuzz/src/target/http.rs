//! The body of a request: the first byte chooses the route, the second the content type, the rest is the body.
//!
//! The router runs in this process over a runtime in memory. Any answer is right but a server error that is none of
//! the documented ones; a panic anywhere ends the fuzzer.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::{Method, Request, StatusCode};
use tidegate::Runtime;
use tidegate_server::{ApiOptions, Auth, Host};
use tower::ServiceExt;

const TOKEN: &str = "fuzz-token-0123456789";
const TYPES: [&str; 4] = [
    "application/json",
    "application/xml",
    "multipart/form-data; boundary=x",
    "text/plain",
];
/// After so many requests everything begins anew, so that memory stays bounded.
const REQUESTS: u32 = 500;
/// Who waits longer than this goes away, as clients do.
const PATIENCE: Duration = Duration::from_secs(2);

const MODEL: &str = r#"<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" targetNamespace="fuzz">
  <process id="p" isExecutable="true"><startEvent id="s"/><sequenceFlow id="a" sourceRef="s" targetRef="u"/>
  <userTask id="u"/><sequenceFlow id="b" sourceRef="u" targetRef="e"/><endEvent id="e"/></process></definitions>"#;

static WORLD: Mutex<Option<World>> = Mutex::new(None);

struct World {
    threads: tokio::runtime::Runtime,
    runtime: Runtime,
    router: axum::Router,
    instance: String,
    left: u32,
}

pub fn run(bytes: &[u8]) {
    let [route, kind, body @ ..] = bytes else { return };
    let mut guard = WORLD.lock().unwrap_or_else(PoisonError::into_inner);
    if guard.as_ref().is_none_or(|world| world.left == 0) {
        if let Some(old) = guard.take() {
            old.end();
        }
        *guard = Some(World::begin());
    }
    let Some(world) = guard.as_mut() else { return };
    world.left -= 1;
    let routes = with_bodies();
    let (method, path) = &routes[usize::from(*route) % routes.len()];
    if path.ends_with("/force-drain") || path.ends_with("/retire") {
        // It ends this runtime: the next request has another one.
        world.left = 0;
    }
    let path = path
        .replace("{key}", &world.instance)
        .replace("{shell}", "default")
        .replace("{name}", "http");
    let kind = TYPES[usize::from(*kind) % TYPES.len()];
    world.ask(method, &path, kind, body);
}

/// The routes that may have a body.
fn with_bodies() -> Vec<(Method, &'static str)> {
    let table = tidegate_server::routes::table();
    let routes = table
        .iter()
        .filter(|route| !matches!(route.method, Method::GET | Method::DELETE));
    routes.map(|route| (route.method.clone(), route.path)).collect()
}

impl World {
    fn begin() -> Self {
        let threads = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("threads start");
        let runtime = threads.block_on(async {
            let store = tidegate::store::open("memory:").expect("memory is there");
            Runtime::builder().store(store).start().await.expect("it starts")
        });
        let api = ApiOptions {
            control_burst: 1_000_000,
            ..ApiOptions::default()
        };
        let router = tidegate_server::router(Host::of(runtime.clone()), Auth::single(TOKEN), api);
        let mut world = Self {
            threads,
            runtime,
            router,
            instance: String::new(),
            left: REQUESTS,
        };
        let post = Method::POST;
        world.ask(
            &post,
            "/deployments?name=p.bpmn",
            "application/xml",
            MODEL.as_bytes(),
        );
        let started = world.ask(
            &post,
            "/process-instances",
            "application/json",
            br#"{"processId":"p"}"#,
        );
        let started: serde_json::Value = serde_json::from_slice(&started).expect("the answer is JSON");
        started["instanceKey"]
            .as_str()
            .expect("it has a key")
            .clone_into(&mut world.instance);
        world
    }

    /// The body of the answer; empty if it did not come in time.
    fn ask(&self, method: &Method, path: &str, kind: &str, body: &[u8]) -> Vec<u8> {
        let request = Request::builder()
            .method(method)
            .uri(format!("/api/v1{path}"))
            .header("authorization", format!("Bearer {TOKEN}"))
            .header("content-type", kind)
            .body(Body::from(body.to_vec()))
            .expect("a request");
        let router = self.router.clone();
        self.threads.block_on(async {
            let answer = async {
                let answer = router.oneshot(request).await.expect("a router always answers");
                let status = answer.status();
                let bytes = to_bytes(answer.into_body(), usize::MAX)
                    .await
                    .expect("the body is whole");
                (status, bytes)
            };
            let Ok((status, bytes)) = tokio::time::timeout(PATIENCE, answer).await else {
                return Vec::new();
            };
            assert!(
                status != StatusCode::INTERNAL_SERVER_ERROR,
                "{method} {path}: {}",
                String::from_utf8_lossy(&bytes)
            );
            if status.is_client_error() {
                let problem: serde_json::Value = serde_json::from_slice(&bytes).expect("a problem document");
                assert!(problem["code"].is_string(), "{method} {path}: {problem}");
            }
            bytes.to_vec()
        })
    }

    fn end(self) {
        self.threads.block_on(self.runtime.close());
        self.threads.shutdown_background();
    }
}
