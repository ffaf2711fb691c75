//! Callers that are bound to tenants: on every route of the description, what is another's is not there.

mod common;

use std::collections::BTreeSet;

use common::{Server, answer, around, bpmn, server_with};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tidegate::Options;
use tidegate_server::auth::{Credential, Permissions};
use tidegate_server::{ApiOptions, Auth};

/// In everything that tenant `a` has; nobody else may read it.
const SECRET: &str = "secret-of-a";

/// Knows tenant `b` alone.
const BOUND: &str = "token-bound-to-b";
/// Knows both.
const BOTH: &str = "token-bound-to-both";

async fn server() -> Server {
    let all = |token: &str| Credential::of_token(token, token, Permissions::ALL);
    let bound = |tenants: &[&str]| {
        tenants
            .iter()
            .map(|tenant| (*tenant).to_owned())
            .collect::<Vec<_>>()
    };
    let auth = Auth::tokens(vec![
        all(common::TOKEN),
        all(BOUND).of_tenants(&bound(&["b"])),
        all(BOTH).of_tenants(&bound(&["a", "b"])),
    ]);
    server_with(Options::default(), auth, ApiOptions::default()).await
}

/// What a tenant has, by its keys.
#[derive(Debug, Clone)]
struct Holding {
    definition: String,
    /// Rests at the job.
    instance: String,
    job: String,
    task: String,
    incident: String,
}

/// A process for each thing that has a key.
async fn holding(server: &Server, tenant: &str, mark: &str) -> Holding {
    let work = |id: &str, job_type: &str| {
        let work = format!(
            r#"<extensionElements><taskDefinition xmlns="http://camunda.org/schema/zeebe/1.0" type="{job_type}" /></extensionElements>"#
        );
        (
            id.to_owned(),
            around(&format!(r#"<serviceTask id="work">{work}</serviceTask>"#)),
        )
    };
    let person = ("person".to_owned(), around(r#"<userTask id="work" />"#));
    let heard = (
        "heard".to_owned(),
        r#"<startEvent id="start"><messageEventDefinition messageRef="paid" /></startEvent><userTask id="work" /><sequenceFlow id="f" sourceRef="start" targetRef="work" />"#.to_owned(),
    );
    for (kind, inside) in [work("pay", "pay"), work("stuck", "=nothing"), person, heard] {
        let process = format!("{mark}-{kind}");
        let path = format!("/deployments?name={process}.bpmn&tenantId={tenant}");
        let request = server.request(Method::POST, &path);
        let request = request
            .header("content-type", "application/xml")
            .body(bpmn(&process, &inside));
        let (status, deployed) = answer(request).await;
        assert_eq!(status, 200, "{deployed}");
    }
    let mut started = Vec::new();
    for kind in ["pay", "stuck", "person"] {
        let body = json!({
            "processId": format!("{mark}-{kind}"), "tenantId": tenant, "businessKey": mark, "variables": { "mark": mark },
        });
        let (status, instance) = server.post("/process-instances", body).await;
        assert_eq!(status, 200, "{instance}");
        started.push(instance);
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let of_tenant = |path: &str| format!("{path}?tenantId={tenant}");
    let task = server.first(&of_tenant("/user-tasks")).await;
    let incident = server.first(&of_tenant("/incidents")).await;
    // Its lease ends at once: the job is free for whoever may see it.
    let lease = json!({ "type": "pay", "worker": "w", "maxJobs": 1, "leaseMs": 1, "waitMs": 10_000, "tenantId": tenant });
    let (status, leased) = server.post("/jobs/activate", lease).await;
    assert_eq!(status, 200);
    Holding {
        definition: text(&started[0]["definitionKey"]),
        instance: text(&started[0]["instanceKey"]),
        job: text(&leased["jobs"][0]["jobKey"]),
        task: text(&task["userTaskKey"]),
        incident: text(&incident["incidentKey"]),
    }
}

/// A route of the description: its method, its path, and whether its key is filled in.
fn described() -> Vec<(Method, String)> {
    let document: Value = serde_json::from_str(include_str!("../openapi.json")).unwrap();
    let mut routes = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for method in item
            .as_object()
            .unwrap()
            .keys()
            .filter(|key| *key != "parameters")
        {
            let method = method.to_ascii_uppercase().parse().unwrap();
            routes.push((method, path.clone()));
        }
    }
    routes
}

/// The path with keys of this holding.
fn filled(path: &str, holding: &Holding) -> String {
    let key = match path.split('/').nth(1).unwrap_or_default() {
        "process-definitions" => &holding.definition,
        "process-instances" => &holding.instance,
        "jobs" => &holding.job,
        "user-tasks" => &holding.task,
        "incidents" => &holding.incident,
        _ => "1",
    };
    path.replace("{key}", key)
        .replace("{shell}", "default")
        .replace("{name}", "http.api")
}

/// The body of a request about this tenant.
fn body_of(path: &str, tenant: &str, mark: &str, holding: &Holding) -> Value {
    let pay = format!("{mark}-pay");
    match path {
        "/process-instances" => json!({ "processId": pay, "tenantId": tenant }),
        "/messages" => json!({ "name": "paid", "tenantId": tenant, "variables": {} }),
        "/signals" => json!({ "name": "alarm", "tenantId": tenant }),
        "/jobs/activate" => {
            json!({ "type": "pay", "worker": "w", "maxJobs": 9, "leaseMs": 1, "tenantId": tenant })
        }
        "/process-instances/forget" => json!({ "instanceKeys": [holding.instance] }),
        "/batches" => json!({ "verb": "cancel", "selection": { "tenantId": tenant, "processId": pay } }),
        "/process-definitions/migration-check" => {
            let content = bpmn(&pay, &around("<task id=\"work\" />"));
            json!({ "resource": { "content": content }, "tenantId": tenant })
        }
        "/jobs/{key}/complete" => json!({ "leaseToken": holding.job }),
        "/jobs/{key}/fail" => json!({ "leaseToken": holding.job, "message": "m" }),
        "/jobs/{key}/error" => json!({ "leaseToken": holding.job, "code": "c" }),
        "/admin/workflow-runtime/partial-pauses/pause" => {
            json!({ "processId": pay, "tenantId": tenant, "holds": "everything" })
        }
        "/admin/workflow-runtime/partial-pauses/resume" => json!({ "processId": pay, "tenantId": tenant }),
        _ => json!({}),
    }
}

async fn ask(server: &Server, token: &str, method: &Method, path: &str, body: &Value) -> (StatusCode, Value) {
    let request = server
        .http
        .request(method.clone(), format!("{}/api/v1{path}", server.url));
    let request = request.bearer_auth(token);
    answer(match *method {
        Method::GET | Method::DELETE => request,
        _ if path.contains("/deployments") => request
            .header("content-type", "application/xml")
            .body(bpmn("of-b", &around("<task id=\"work\" />"))),
        _ => request.json(body),
    })
    .await
}

/// Everything that there is, for a comparison.
async fn everything(server: &Server) -> Vec<Value> {
    let mut all = Vec::new();
    for path in [
        "/process-definitions?tenantId=a",
        "/process-instances?tenantId=a",
        "/user-tasks?tenantId=a",
        "/incidents?tenantId=a",
        "/starters",
        "/admin/workflow-runtime/partial-pauses",
        "/audit",
    ] {
        all.push(server.get(path).await.1);
    }
    let (_, status) = server.get("/admin/workflow-runtime/status").await;
    all.push(status["state"].clone());
    all
}

#[tokio::test]
async fn case_192_on_every_route_what_another_tenant_has_is_not_there() {
    let server = server().await;
    let of_a = holding(&server, "a", SECRET).await;
    let paused = json!({ "processId": format!("{SECRET}-stuck"), "tenantId": "a", "holds": "newStarts" });
    server
        .post("/admin/workflow-runtime/partial-pauses/pause", paused)
        .await;
    let before = everything(&server).await;
    let unknown = Holding {
        definition: "4611686018427387904".to_owned(),
        instance: "4611686018427387904".to_owned(),
        job: "4611686018427387904".to_owned(),
        task: "4611686018427387904".to_owned(),
        incident: "4611686018427387904".to_owned(),
    };
    let routes = described();
    assert!(routes.len() > 40, "{}", routes.len());
    for (method, path) in routes {
        for prefix in ["", "/shells/default"] {
            if !prefix.is_empty() && (path.starts_with("/shells") || path == "/identity") {
                continue;
            }
            let route = format!("{method} {prefix}{path}");
            let body = body_of(&path, "a", SECRET, &of_a);
            for query in ["", "?tenantId=a"] {
                let is_stream = path == "/events" && query.is_empty();
                if is_stream || path == "/admin/workflow-runtime/events" {
                    // Streams of what it may see, which do not end: tests below read them.
                    continue;
                }
                let asked = format!("{prefix}{}{query}", filled(&path, &of_a));
                let (status, told) = ask(&server, BOUND, &method, &asked, &body).await;
                let text = told.to_string();
                assert!(!text.contains(SECRET), "{route} tells {text}");
                // What it has deployed itself on the way is all that it may see.
                let is_own_item = |item: &Value| item["tenantId"] == "b";
                let is_empty_list = told["items"]
                    .as_array()
                    .is_some_and(|items| items.iter().all(is_own_item));
                let is_state = ["/shells", "/admin/workflow-runtime/status"].contains(&path.as_str());
                let is_own = path == "/identity"
                    || (["/deployments", "/process-instances/export"].contains(&path.as_str())
                        && query.is_empty());
                let is_refused = match path.contains("{key}") || told["items"].is_null() {
                    true => [404, 403].contains(&status.as_u16()),
                    false => false,
                };
                // A route that takes no such parameter refuses it, for everybody.
                let is_malformed = !query.is_empty() && told["code"] == "invalid-query";
                assert!(
                    is_empty_list || is_own || (is_state && status == 200) || is_refused || is_malformed,
                    "{route} answers {status} {text}"
                );
            }
            // Dead letters are of the whole runtime: a bound caller is refused, whatever the key.
            let is_whole = path.starts_with("/dead-letters");
            if path.contains("{key}") && !is_whole {
                let foreign = ask(
                    &server,
                    BOUND,
                    &method,
                    &format!("{prefix}{}", filled(&path, &of_a)),
                    &body,
                )
                .await;
                let missing = ask(
                    &server,
                    BOUND,
                    &method,
                    &format!("{prefix}{}", filled(&path, &unknown)),
                    &body,
                )
                .await;
                let shown = |(status, told): &(StatusCode, Value)| {
                    (*status, told["code"].clone(), told["title"].clone())
                };
                assert_eq!(shown(&foreign), shown(&missing), "{route}");
                assert_eq!(foreign.0, 404, "{route}");
            }
        }
    }
    let (status, _) = answer(
        server
            .http
            .get(format!("{}/metrics", server.url))
            .bearer_auth(BOUND),
    )
    .await;
    assert_eq!(status, 403);
    // Its own deployments apart, nothing has changed, and nothing was written about it.
    let after = everything(&server).await;
    let without = |mut all: Vec<Value>| {
        let is_own = |entry: &Value| entry["actor"] == BOUND && entry["action"] == "DefinitionsDeployed";
        for list in &mut all {
            if let Some(items) = list["items"].as_array_mut() {
                items.retain(|entry| !is_own(entry));
            }
        }
        all
    };
    assert_eq!(without(after), without(before));
}

#[tokio::test]
async fn case_192_a_bound_caller_has_the_whole_of_its_own_tenant() {
    let server = server().await;
    holding(&server, "a", SECRET).await;
    let of_b = holding(&server, "b", "own-of-b").await;
    for path in [
        "/process-definitions",
        "/process-instances",
        "/user-tasks",
        "/incidents",
        "/starters",
    ] {
        let (status, own) = ask(&server, BOUND, &Method::GET, path, &Value::Null).await;
        let (_, asked) = server.get(&format!("{path}?tenantId=b")).await;
        assert_eq!(status, 200, "{path}");
        assert!(!own["items"].as_array().unwrap().is_empty(), "{path}");
        if path != "/starters" {
            assert_eq!(own, asked, "{path}");
        }
    }
    // Who is bound to one tenant need not say it.
    let start = json!({ "processId": "own-of-b-person" });
    let (status, started) = ask(&server, BOUND, &Method::POST, "/process-instances", &start).await;
    assert_eq!(status, 200, "{started}");
    let lease = json!({ "type": "pay", "worker": "w", "maxJobs": 9, "leaseMs": 60_000, "waitMs": 10_000 });
    let (_, leased) = ask(&server, BOUND, &Method::POST, "/jobs/activate", &lease).await;
    assert_eq!(leased["jobs"].as_array().unwrap().len(), 1);
    let token = json!({ "leaseToken": leased["jobs"][0]["leaseToken"] });
    for (method, path, body) in [
        (
            Method::GET,
            format!("/process-instances/{}", of_b.instance),
            json!(null),
        ),
        (
            Method::GET,
            format!("/process-instances/{}/history", of_b.instance),
            json!(null),
        ),
        (
            Method::GET,
            format!("/process-definitions/{}/xml", of_b.definition),
            json!(null),
        ),
        (
            Method::PATCH,
            format!("/process-instances/{}/variables", of_b.instance),
            json!({ "x": 1 }),
        ),
        (Method::POST, format!("/jobs/{}/complete", of_b.job), token),
        (
            Method::POST,
            format!("/user-tasks/{}/complete", of_b.task),
            json!({}),
        ),
        (
            Method::POST,
            format!("/incidents/{}/retry", of_b.incident),
            json!({}),
        ),
        (
            Method::POST,
            "/admin/workflow-runtime/partial-pauses/pause".to_owned(),
            json!({ "tenantId": "b", "holds": "newStarts" }),
        ),
        (
            Method::POST,
            "/admin/workflow-runtime/partial-pauses/resume".to_owned(),
            json!({ "tenantId": "b" }),
        ),
    ] {
        let (status, told) = ask(&server, BOUND, &method, &path, &body).await;
        assert!(status.is_success(), "{method} {path}: {status} {told}");
    }
}

#[tokio::test]
async fn case_192_a_bound_caller_exports_forgets_and_does_many_in_its_own_tenant_alone() {
    let server = server().await;
    let of_a = holding(&server, "a", SECRET).await;
    holding(&server, "b", "own-of-b").await;
    let (_, of_all) = server.post("/batches", json!({ "verb": "retry" })).await;
    let selection = json!({ "tenantId": "a" });
    let (_, foreign) = server
        .post("/batches", json!({ "verb": "retry", "selection": selection }))
        .await;
    let own = async |method: Method, path: &str, body: Value| ask(&server, BOUND, &method, path, &body).await;

    // What it asks for without a tenant is for its own.
    let (status, made) = own(Method::POST, "/batches", json!({ "verb": "cancel" })).await;
    assert_eq!(
        (status.as_u16(), &made["selection"]["tenantId"]),
        (202, &json!("b"))
    );
    let path = format!("/batches/{}", made["batchKey"].as_str().unwrap());
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    let over = loop {
        let (status, batch) = own(Method::GET, &path, Value::Null).await;
        assert_eq!(status, 200, "{batch}");
        if batch["state"] == "completed" {
            break batch;
        }
        assert!(std::time::Instant::now() < deadline, "{batch}");
    };
    assert!(over["counts"]["done"].as_u64().unwrap() > 0);
    let (_, live) = server.get("/process-instances?tenantId=a&status=running").await;
    assert!(
        !live["items"].as_array().unwrap().is_empty(),
        "those of others go on"
    );
    let (_, live) = server.get("/process-instances?tenantId=b&status=running").await;
    assert!(live["items"].as_array().unwrap().is_empty());
    let (_, listed) = own(Method::GET, "/batches?limit=1", Value::Null).await;
    assert_eq!(listed["items"].as_array().unwrap().len(), 1);
    assert_eq!(
        (&listed["items"][0]["batchKey"], &listed["next"]),
        (&made["batchKey"], &Value::Null)
    );
    // A definition of another tenant is as good as none.
    let migration = json!({ "definitionKey": of_a.definition });
    let body = json!({ "verb": "migrate", "migration": migration });
    let (status, told) = own(Method::POST, "/batches", body).await;
    assert_eq!(
        (status.as_u16(), &told["code"]),
        (404, &json!("definition-not-found")),
        "{told}"
    );
    assert!(!told.to_string().contains(SECRET), "{told}");
    for other in [&of_all, &foreign] {
        let key = other["batchKey"].as_str().unwrap();
        for verb in ["pause", "resume", "cancel"] {
            let path = format!("/batches/{key}/{verb}");
            let (status, told) = own(Method::POST, &path, json!({})).await;
            assert_eq!((status.as_u16(), &told["code"]), (404, &json!("batch-not-found")));
        }
        let (status, _) = own(Method::GET, &format!("/batches/{key}/items"), Value::Null).await;
        assert_eq!(status, 404);
    }

    let url = format!("{}/api/v1/process-instances/export", server.url);
    let export = server.http.get(url).bearer_auth(BOUND).send().await.unwrap();
    let export = export.text().await.unwrap();
    assert!(export.contains("own-of-b") && !export.contains(SECRET));
    let ended: Vec<Value> = export
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|line| line["type"] == "instance")
        .map(|line| line["instanceKey"].clone())
        .collect();
    assert!(!ended.is_empty());
    let mut with_foreign = ended.clone();
    with_foreign.push(json!(of_a.instance));
    let forget = |keys: &[Value]| json!({ "instanceKeys": keys });
    let (status, told) = own(Method::POST, "/process-instances/forget", forget(&with_foreign)).await;
    assert_eq!(
        (status.as_u16(), &told["code"]),
        (404, &json!("instance-not-found"))
    );
    let (status, gone) = own(Method::POST, "/process-instances/forget", forget(&ended)).await;
    assert_eq!(status, 200, "{gone}");
    assert_eq!(gone["forgotten"].as_array().unwrap().len(), ended.len());
    let (_, left) = server.get("/process-instances?tenantId=b").await;
    assert!(left["items"].as_array().unwrap().is_empty());
}

#[tokio::test]
async fn case_192_a_caller_of_several_tenants_sees_them_in_one_order_and_no_others() {
    let server = server().await;
    for (tenant, mark) in [("a", "of-a"), ("c", "of-c"), ("b", "of-b")] {
        holding(&server, tenant, mark).await;
    }
    // Alternating, so that a page of one tenant is not a page of all.
    for round in 0..3 {
        for tenant in ["a", "b", "c"] {
            let body = json!({ "processId": format!("of-{tenant}-person"), "tenantId": tenant, "businessKey": round.to_string() });
            server.post("/process-instances", body).await;
        }
    }
    let mut keys: Vec<u64> = Vec::new();
    let mut tenants = BTreeSet::new();
    let mut after = String::new();
    loop {
        let path = format!("/process-instances?limit=2{after}");
        let (status, page) = ask(&server, BOTH, &Method::GET, &path, &Value::Null).await;
        assert_eq!(status, 200, "{page}");
        for item in page["items"].as_array().unwrap() {
            keys.push(item["instanceKey"].as_str().unwrap().parse().unwrap());
            tenants.insert(item["tenantId"].as_str().unwrap().to_owned());
        }
        match page["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => break,
        }
    }
    assert_eq!(tenants, BTreeSet::from(["a".to_owned(), "b".to_owned()]));
    assert_eq!(keys.len(), 12, "each once: {keys:?}");
    assert!(keys.is_sorted_by(|one, next| one > next), "{keys:?}");
    // What has to be of one tenant has to say of which.
    let start = json!({ "processId": "of-a-person" });
    let (status, told) = ask(&server, BOTH, &Method::POST, "/process-instances", &start).await;
    assert_eq!((status.as_u16(), &told["code"]), (400, &json!("tenant-required")));
    let (_, identity) = ask(&server, BOTH, &Method::GET, "/identity", &Value::Null).await;
    assert_eq!(identity["tenants"], json!(["a", "b"]));
}

#[tokio::test]
async fn case_192_o05_a_bound_caller_follows_its_own_tenant_alone() {
    let server = server().await;
    let url = format!("{}/api/v1/events?values=true", server.url);
    let mut stream = server.http.get(url).bearer_auth(BOUND).send().await.unwrap();
    assert_eq!(stream.status(), 200);
    holding(&server, "a", SECRET).await;
    holding(&server, "b", "own").await;
    let mut seen = String::new();
    while !seen.contains("own-stuck") {
        let piece = stream.chunk().await.unwrap().expect("the server lives");
        seen.push_str(&String::from_utf8_lossy(&piece));
    }
    assert!(
        !seen.contains(SECRET) && !seen.contains("\"kind\":\"runtime\""),
        "{seen}"
    );
}

/// Whether work is accepted, and why not, concerns every tenant; how much there is of it is everybody's own.
#[tokio::test]
async fn a_bound_caller_sees_the_state_of_the_runtime_and_no_numbers() {
    let server = server().await;
    let status = "/admin/workflow-runtime/status";
    let url = format!("{}/api/v1/admin/workflow-runtime/events", server.url);
    let mut stream = server.http.get(url).bearer_auth(BOUND).send().await.unwrap();
    assert_eq!(stream.status(), 200);
    let mut seen = String::new();
    while seen.matches("event: status").count() < 1 {
        seen.push_str(&String::from_utf8_lossy(&stream.chunk().await.unwrap().unwrap()));
    }
    // Another tenant is busy: nothing of it is told, not even that something has changed.
    let (_, before) = ask(&server, BOUND, &Method::GET, status, &Value::Null).await;
    holding(&server, "a", SECRET).await;
    let (_, after) = ask(&server, BOUND, &Method::GET, status, &Value::Null).await;
    assert_eq!(after, before);

    let paused = json!({ "reason": "the night", "until": "2999-01-01T00:00:00Z" });
    server.post("/admin/workflow-runtime/pause", paused).await;
    for _ in 0..3 {
        let start = json!({ "processId": format!("{SECRET}-person"), "tenantId": "a" });
        assert_eq!(server.post("/process-instances", start).await.0, 202);
    }
    let (_, whole) = server.get(status).await;
    let (code, told) = ask(&server, BOUND, &Method::GET, status, &Value::Null).await;
    assert_eq!((code.as_u16(), &told["state"]), (200, &whole["state"]));
    assert_eq!(
        (&told["state"]["pauseReasonText"], &told["state"]["reason"]),
        (&json!("the night"), &json!("AdministrativePause"))
    );
    assert_eq!(
        told["sources"].as_array().unwrap().len(),
        whole["sources"].as_array().unwrap().len()
    );
    assert!(whole["stimulusQueue"]["depth"].as_u64() >= Some(3), "{whole}");
    for pointer in [
        "/activeExecutionCycleCount",
        "/interruptedInstanceCount",
        "/stimulusQueue/depth",
        "/stimulusQueue/oldestAcceptedAt",
    ] {
        assert_eq!(
            told.pointer(pointer),
            Some(&Value::Null),
            "{pointer} is there and says nothing: {told}"
        );
    }
    let (code, shells) = ask(&server, BOUND, &Method::GET, "/shells", &Value::Null).await;
    let shell = &shells["items"][0];
    assert_eq!(
        (code.as_u16(), &shell["status"], &shell["stimulusQueueDepth"]),
        (200, &json!("Paused"), &Value::Null)
    );

    // The stream has the first state and those of the pause, each without numbers.
    while !seen.contains("the night") || !seen.ends_with("\n\n") {
        seen.push_str(&String::from_utf8_lossy(&stream.chunk().await.unwrap().unwrap()));
    }
    for event in seen.lines().filter_map(|line| line.strip_prefix("data: ")) {
        let event: Value = serde_json::from_str(event).unwrap();
        assert_eq!(
            (
                &event["activeExecutionCycleCount"],
                &event["stimulusQueue"]["depth"]
            ),
            (&Value::Null, &Value::Null)
        );
    }
    // What changes the state stays with who is bound to nothing.
    for verb in ["pause", "resume", "force-drain"] {
        let path = format!("/admin/workflow-runtime/{verb}");
        assert_eq!(
            ask(&server, BOUND, &Method::POST, &path, &json!({})).await.0,
            403,
            "{verb}"
        );
    }
    assert_eq!(
        ask(
            &server,
            BOUND,
            &Method::GET,
            "/admin/workflow-runtime/drain-plan",
            &Value::Null
        )
        .await
        .0,
        403
    );
}
