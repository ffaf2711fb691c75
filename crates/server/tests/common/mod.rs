//! A real server on a real socket, over a runtime in memory.

#![allow(dead_code, reason = "each test file uses its own part")]

use std::sync::Arc;
use std::time::Duration;

use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};
use tidegate::store::Store;
use tidegate::{Options, Runtime};
use tidegate_server::auth::{Credential, Permissions};
use tidegate_server::listen::{self, ListenOptions, Listening};
use tidegate_server::{ApiOptions, Auth, Host};

/// The token that may do everything.
pub const TOKEN: &str = "test-token-0123456789";

/// A server under test.
pub struct Server {
    pub url: String,
    pub host: Host,
    pub runtime: Runtime,
    pub listening: Listening,
    pub http: reqwest::Client,
}

/// A server with default options.
pub async fn server() -> Server {
    server_with(Options::default(), Auth::single(TOKEN), ApiOptions::default()).await
}

/// A server with these options.
pub async fn server_with(options: Options, auth: Auth, api: ApiOptions) -> Server {
    let store = tidegate::store::open("memory:").unwrap();
    server_on(store, options, auth, api).await
}

/// A server with these options on this store.
pub async fn server_on(store: Arc<dyn Store>, options: Options, auth: Auth, api: ApiOptions) -> Server {
    let runtime = Runtime::builder()
        .store(store)
        .options(options)
        .demo_activities()
        .start()
        .await
        .unwrap();
    let host = Host::of(runtime.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let router = tidegate_server::router(host.clone(), auth, api);
    let listening = listen::serve(listener, router, ListenOptions::default()).unwrap();
    let http = reqwest::Client::builder()
        .timeout(Duration::from_secs(30))
        .build()
        .unwrap();
    Server {
        url: format!("http://{}", listening.address()),
        host,
        runtime,
        listening,
        http,
    }
}

/// A token for each list of permissions.
pub fn tokens(tokens: &[(&str, &[&str])]) -> Auth {
    let credential = |(token, permissions): &(&str, &[&str])| {
        Credential::of_token(
            token,
            token,
            Permissions::parse(permissions.iter().copied()).unwrap(),
        )
    };
    Auth::tokens(tokens.iter().map(credential).collect())
}

impl Server {
    /// A request under the API's base, with the token.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http
            .request(method, format!("{}/api/v1{path}", self.url))
            .bearer_auth(TOKEN)
    }

    /// GET.
    pub async fn get(&self, path: &str) -> (StatusCode, Value) {
        answer(self.request(Method::GET, path)).await
    }

    /// POST.
    pub async fn post(&self, path: &str, body: Value) -> (StatusCode, Value) {
        answer(self.request(Method::POST, path).json(&body)).await
    }

    /// Deploys a process of one file and gives the answer.
    pub async fn deploy(&self, name: &str, inside: &str) -> Value {
        let request = self.request(Method::POST, &format!("/deployments?name={name}.bpmn"));
        let request = request
            .header("content-type", "application/xml")
            .body(bpmn(name, inside));
        let (status, deployed) = answer(request).await;
        assert_eq!(status, 200, "{deployed}");
        deployed
    }

    /// Starts a process without waiting and gives the instance's key.
    pub async fn start(&self, process: &str, variables: Value) -> String {
        let body = json!({ "processId": process, "variables": variables });
        let (status, started) = self.post("/process-instances", body).await;
        assert!(status.is_success(), "{status} {started}");
        started["instanceKey"].as_str().unwrap().to_owned()
    }

    /// The instance once it has the sub-status.
    pub async fn until(&self, key: &str, sub_status: &str) -> Value {
        let path = format!("/process-instances/{key}");
        self.poll(&path, |found| found["subStatus"] == sub_status).await
    }

    /// The first item of a list once there is one.
    pub async fn first(&self, path: &str) -> Value {
        self.poll(path, |found| found["items"][0].is_object()).await["items"][0].clone()
    }

    /// Looks until the answer is as wanted.
    async fn poll(&self, path: &str, is_there: impl Fn(&Value) -> bool) -> Value {
        let until = tokio::time::Instant::now() + Duration::from_secs(10);
        loop {
            let (status, found) = self.get(path).await;
            if status.is_success() && is_there(&found) {
                return found;
            }
            assert!(
                tokio::time::Instant::now() < until,
                "{path} did not become as wanted: {status} {found}"
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// Sends a request and reads the JSON of its answer.
pub async fn answer(request: RequestBuilder) -> (StatusCode, Value) {
    let response = request.send().await.unwrap();
    let status = response.status();
    let text = response.text().await.unwrap();
    (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

/// A file with one process.
pub fn bpmn(process: &str, inside: &str) -> String {
    format!(
        r#"<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:zeebe="http://camunda.org/schema/zeebe/1.0"
  targetNamespace="test">
  <message id="paid" name="paid"><extensionElements><zeebe:subscription correlationKey="= invoice" /></extensionElements></message>
  <process id="{process}" isExecutable="true">{inside}</process></definitions>"#
    )
}

/// Start, one element called `work`, end.
pub fn around(element: &str) -> String {
    format!(
        r#"<startEvent id="start" /><sequenceFlow id="in" sourceRef="start" targetRef="work" />{element}
<sequenceFlow id="out" sourceRef="work" targetRef="end" /><endEvent id="end" />"#
    )
}

/// A service task of this job type.
pub fn service(job_type: &str) -> String {
    around(&format!(
        r#"<serviceTask id="work"><extensionElements><zeebe:taskDefinition type="{job_type}" /></extensionElements></serviceTask>"#
    ))
}

/// Checks a problem document.
pub fn assert_problem(status: StatusCode, document: &Value, wanted: u16, code: &str) {
    assert_eq!(status.as_u16(), wanted, "{document}");
    assert_eq!(document["code"], code, "{document}");
    assert_eq!(document["status"], wanted);
    for member in ["type", "title", "detail", "instance"] {
        assert!(document[member].is_string(), "`{member}` is missing: {document}");
    }
}
