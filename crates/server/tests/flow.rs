//! What a client does with processes, from deployment to the end.

mod common;

use common::{answer, around, assert_problem, server, service};
use reqwest::Method;
use reqwest::multipart::{Form, Part};
use serde_json::{Value, json};

#[tokio::test]
async fn a_process_is_deployed_started_and_read() {
    let server = server().await;
    let part =
        |name: &str| Part::text(common::bpmn(name, &service("demo.noop"))).file_name(format!("{name}.bpmn"));
    let form = Form::new()
        .part("resources", part("one"))
        .part("resources", part("two"));
    let (status, deployed) = answer(server.request(Method::POST, "/deployments").multipart(form)).await;
    assert_eq!(status, 200, "{deployed}");
    assert!(deployed["deploymentKey"].is_string() && deployed["warnings"].is_array());
    let ids: Vec<_> = deployed["definitions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|d| d["processId"].clone())
        .collect();
    assert_eq!(ids, ["one", "two"]);

    let body = json!({ "processId": "one", "variables": { "price": 1 }, "businessKey": "B-1", "awaitCompletion": true });
    let (status, started) = server.post("/process-instances", body).await;
    assert_eq!(status, 200, "{started}");
    assert_eq!(
        (&started["status"], &started["subStatus"]),
        (&json!("finished"), &json!("finished"))
    );
    assert_eq!(started["variables"]["price"], 1);
    let key = started["instanceKey"].as_str().unwrap();

    let (_, one) = server.get(&format!("/process-instances/{key}")).await;
    assert_eq!(
        (&one["lifecycleState"], &one["businessKey"]),
        (&json!("completed"), &json!("B-1"))
    );
    assert_eq!((&one["tokens"], &one["waitingFor"]), (&json!([]), &json!([])));
    let (_, history) = server
        .get(&format!("/process-instances/{key}/history?limit=3"))
        .await;
    assert_eq!(history["items"].as_array().unwrap().len(), 3);
    let next = history["next"].as_str().unwrap();
    let (_, rest) = server
        .get(&format!("/process-instances/{key}/history?after={next}"))
        .await;
    assert_eq!(rest["items"][0]["sequence"], 4);
    let events: Vec<_> = rest["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["event"].clone())
        .collect();
    assert_eq!(events.last(), Some(&json!("InstanceCompleted")));

    let (_, list) = server
        .get("/process-instances?status=finished&processId=one&businessKey=B-1")
        .await;
    assert_eq!(list["items"].as_array().unwrap().len(), 1);
    let (_, none) = server
        .get("/process-instances?status=running&subStatus=finished")
        .await;
    assert_eq!(none, json!({ "items": [], "next": null }));
}

#[tokio::test]
async fn definitions_are_listed_shown_and_unregistered() {
    let server = server().await;
    for _ in 0..2 {
        // The same bytes twice may be one version; a change is another.
        server.deploy("p", &service("demo.noop")).await;
    }
    let changed = server.deploy("p", &service("demo.log")).await;
    let version = changed["definitions"][0]["version"].clone();
    let (_, latest) = server.get("/process-definitions?processId=p&latest=true").await;
    assert_eq!(latest["items"].as_array().unwrap().len(), 1);
    assert_eq!(latest["items"][0]["version"], version);
    let key = latest["items"][0]["definitionKey"].as_str().unwrap();
    let xml = server
        .request(Method::GET, &format!("/process-definitions/{key}/xml"))
        .send()
        .await
        .unwrap();
    assert_eq!(xml.headers()["content-type"], "application/xml");
    assert_eq!(xml.text().await.unwrap(), common::bpmn("p", &service("demo.log")));
    let (status, _) = answer(server.request(Method::DELETE, &format!("/process-definitions/{key}"))).await;
    assert_eq!(status, 204);
    let (status, gone) = server.get(&format!("/process-definitions/{key}")).await;
    assert_problem(status, &gone, 404, "definition-not-found");
}

#[tokio::test]
async fn a_wait_that_runs_out_names_the_instance_that_goes_on() {
    let server = server().await;
    server.deploy("slow", &service("external")).await;
    let body = json!({ "processId": "slow", "awaitCompletion": true, "requestTimeoutMs": 20 });
    let (status, document) = server.post("/process-instances", body).await;
    assert_problem(status, &document, 504, "wait-ran-out");
    server
        .until(document["instanceKey"].as_str().unwrap(), "suspended")
        .await;
}

#[tokio::test]
async fn the_same_idempotency_key_starts_one_instance() {
    let server = server().await;
    server.deploy("quick", &service("demo.noop")).await;
    let start = || {
        let request = server
            .request(Method::POST, "/process-instances")
            .header("idempotency-key", "order-1");
        answer(request.json(&json!({ "processId": "quick" })))
    };
    let (first, second) = (start().await.1, start().await.1);
    assert_eq!(first["instanceKey"], second["instanceKey"]);
    let request = server
        .request(Method::POST, "/process-instances")
        .header("idempotency-key", "");
    let (status, document) = answer(request.json(&json!({ "processId": "quick" }))).await;
    assert_problem(status, &document, 400, "invalid-idempotency-key");
}

#[tokio::test]
async fn a_message_is_delivered_or_waits() {
    let server = server().await;
    server
        .deploy(
            "payment",
            &around("<receiveTask id=\"work\" messageRef=\"paid\" />"),
        )
        .await;
    let key = server.start("payment", json!({ "invoice": "A-1" })).await;
    server.until(&key, "suspended").await;
    let (_, waiting) = server.get(&format!("/process-instances/{key}")).await;
    assert_eq!(waiting["waitingFor"][0]["kind"], "message", "{waiting}");
    assert_eq!(waiting["tokens"][0]["elementId"], "work");

    let publish = |key: &str| json!({ "name": "paid", "correlationKey": key, "variables": { "amount": 7 }, "timeToLiveMs": 60_000 });
    let (status, published) = server.post("/messages", publish("A-1")).await;
    assert_eq!(
        (status.as_u16(), &published["deliveredTo"]),
        (200, &json!([key])),
        "{published}"
    );
    server.until(&key, "finished").await;
    let (_, variables) = server.get(&format!("/process-instances/{key}/variables")).await;
    assert_eq!(variables["amount"], 7);

    let (status, buffered) = server.post("/messages", publish("A-2")).await;
    assert_eq!(
        (status.as_u16(), &buffered["deliveredTo"]),
        (202, &json!([])),
        "{buffered}"
    );
    let late = server.start("payment", json!({ "invoice": "A-2" })).await;
    server.until(&late, "finished").await;
}

#[tokio::test]
async fn workers_lease_complete_fail_and_throw() {
    let server = server().await;
    server.deploy("job", &service("external")).await;
    let key = server.start("job", json!({ "n": 1 })).await;
    let lease =
        json!({ "type": "external", "worker": "w", "maxJobs": 5, "leaseMs": 60_000, "waitMs": 5_000 });
    let (_, leased) = server.post("/jobs/activate", lease.clone()).await;
    let job = &leased["jobs"][0];
    assert_eq!(
        (&job["instanceKey"], &job["elementId"], &job["variables"]),
        (&json!(key), &json!("work"), &json!({ "n": 1 }))
    );
    for member in ["jobKey", "leaseToken", "type", "headers", "retries", "leaseUntil"] {
        assert!(job.get(member).is_some(), "`{member}` is missing: {job}");
    }
    let path = |job: &Value, verb: &str| format!("/jobs/{}/{verb}", job["jobKey"].as_str().unwrap());
    let (status, stale) = server
        .post(&path(job, "complete"), json!({ "leaseToken": "not-mine" }))
        .await;
    assert_problem(status, &stale, 409, "stale-lease");
    let failed = json!({ "leaseToken": job["leaseToken"], "message": "no", "retries": 1 });
    assert_eq!(
        server.post(&path(job, "fail"), failed).await,
        (200.try_into().unwrap(), json!({ "advanced": true }))
    );

    let (_, again) = server.post("/jobs/activate", lease.clone()).await;
    let job = &again["jobs"][0];
    let failed = json!({ "leaseToken": job["leaseToken"], "message": "no again", "retries": 0 });
    assert_eq!(server.post(&path(job, "fail"), failed).await.0, 200);
    let incident = server.first(&format!("/incidents?instanceKey={key}")).await;
    assert!(
        incident["message"].as_str().unwrap().contains("no again"),
        "{incident}"
    );
    let retry = format!("/incidents/{}/retry", incident["incidentKey"].as_str().unwrap());
    assert_eq!(server.post(&retry, json!({ "retries": 1 })).await.0, 200);

    let (_, last) = server.post("/jobs/activate", lease).await;
    let job = &last["jobs"][0];
    let done = json!({ "leaseToken": job["leaseToken"], "variables": { "n": 2 } });
    assert_eq!(
        server.post(&path(job, "complete"), done).await.1,
        json!({ "advanced": true })
    );
    server.until(&key, "finished").await;
    let thrown = json!({ "leaseToken": job["leaseToken"], "code": "E" });
    let (status, gone) = server.post(&path(job, "error"), thrown).await;
    assert_problem(status, &gone, 404, "job-not-found");
}

#[tokio::test]
async fn people_claim_and_complete_tasks() {
    let server = server().await;
    let task = "<userTask id=\"work\" name=\"Approve\"><extensionElements><zeebe:userTask /></extensionElements></userTask>";
    server.deploy("approval", &around(task)).await;
    let key = server.start("approval", json!({})).await;
    let task = server.first(&format!("/user-tasks?instanceKey={key}")).await;
    assert_eq!(
        (&task["elementId"], &task["name"], &task["assignee"]),
        (&json!("work"), &json!("Approve"), &json!(null))
    );
    let path = format!("/user-tasks/{}", task["userTaskKey"].as_str().unwrap());
    let (_, claimed) = answer(server.request(Method::POST, &format!("{path}/claim"))).await;
    assert_eq!(claimed["assignee"], "operator", "{claimed}");
    let (status, taken) = server
        .post(&format!("{path}/claim"), json!({ "assignee": "ada" }))
        .await;
    assert_problem(status, &taken, 409, "user-task-claimed");
    assert_eq!(
        server
            .post(&format!("{path}/claim"), json!({ "assignee": null }))
            .await
            .0,
        200
    );
    assert_eq!(
        server
            .post(&format!("{path}/claim"), json!({ "assignee": "ada" }))
            .await
            .0,
        200
    );
    let (status, done) = server
        .post(
            &format!("{path}/complete"),
            json!({ "variables": { "ok": true } }),
        )
        .await;
    assert_eq!((status.as_u16(), &done["advanced"]), (200, &json!(true)));
    server.until(&key, "finished").await;
}

#[tokio::test]
async fn people_see_what_the_model_says_of_a_task() {
    let server = server().await;
    let task = "<userTask id=\"work\"><extensionElements><zeebe:userTask /><zeebe:assignmentDefinition \
                candidateUsers=\"ada, bob\" /><zeebe:formDefinition formKey=\"=&quot;form-&quot; + kind\" \
                externalReference=\"crm:7\" /><zeebe:taskSchedule dueDate=\"=due\" \
                followUpDate=\"2026-01-31T08:30:00Z\" /><zeebe:priorityDefinition priority=\"80\" />\
                </extensionElements></userTask>";
    server.deploy("approval", &around(task)).await;
    let key = server
        .start(
            "approval",
            json!({ "kind": "a", "due": "2026-02-28T12:00:00+02:00" }),
        )
        .await;
    let task = server.first(&format!("/user-tasks?instanceKey={key}")).await;
    for (name, expected) in [
        ("candidateUsers", json!(["ada", "bob"])),
        ("candidateGroups", json!([])),
        ("formKey", json!("form-a")),
        ("formId", json!(null)),
        ("externalFormReference", json!("crm:7")),
        ("dueDate", json!("2026-02-28T10:00:00.000Z")),
        ("followUpDate", json!("2026-01-31T08:30:00.000Z")),
        ("priority", json!(80)),
    ] {
        assert_eq!(task[name], expected, "{name}: {task}");
    }
    server.deploy("plain", &around("<userTask id=\"work\" />")).await;
    let plain = server.start("plain", json!({})).await;
    let task = server.first(&format!("/user-tasks?instanceKey={plain}")).await;
    assert_eq!((&task["priority"], &task["dueDate"]), (&json!(50), &json!(null)));
}

#[tokio::test]
async fn case_167_ids_that_are_names_work_in_every_url() {
    let long = "x".repeat(300);
    for id in ["größe", "日本", &long] {
        let server = server().await;
        let body = around("<userTask id=\"work\" />").replace("\"work\"", &format!("\"t-{id}\""));
        server.deploy(id, &body).await;
        let key = server.start(id, json!({})).await;
        let encoded: String = id.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let (status, definitions) = server
            .get(&format!("/process-definitions?processId={encoded}"))
            .await;
        assert_eq!(
            (status.as_u16(), &definitions["items"][0]["processId"]),
            (200, &json!(id))
        );
        let instance = server
            .first(&format!("/process-instances?processId={encoded}"))
            .await;
        assert_eq!(
            (&instance["instanceKey"], &instance["processId"]),
            (&json!(key), &json!(id))
        );
        let task = server.first(&format!("/user-tasks?instanceKey={key}")).await;
        assert_eq!(task["elementId"], json!(format!("t-{id}")));
        let complete = format!("/user-tasks/{}/complete", task["userTaskKey"].as_str().unwrap());
        assert_eq!(server.post(&complete, json!({})).await.0, 200);
        server.until(&key, "finished").await;
    }
}

#[tokio::test]
async fn variables_change_and_instances_are_cancelled() {
    let server = server().await;
    server.deploy("job", &service("external")).await;
    let key = server.start("job", json!({ "a": 1 })).await;
    server.until(&key, "suspended").await;
    let path = format!("/process-instances/{key}/variables");
    let (status, variables) =
        answer(server.request(Method::PATCH, &path).json(&json!({ "b": [1.10] }))).await;
    assert_eq!((status.as_u16(), variables), (200, json!({ "a": 1, "b": [1.1] })));

    let cancel = format!("/process-instances/{key}/cancel");
    let (status, cancelled) = server
        .post(&cancel, json!({ "reason": "not needed", "waitMs": 3000 }))
        .await;
    assert_eq!(
        (
            status.as_u16(),
            &cancelled["subStatus"],
            &cancelled["lifecycleState"]
        ),
        (200, &json!("cancelled"), &json!("terminated"))
    );
    assert_eq!(
        server.post(&cancel, json!({})).await,
        (200.try_into().unwrap(), cancelled),
        "unchanged"
    );
    let (status, ended) = answer(server.request(Method::PATCH, &path).json(&json!({ "b": 2 }))).await;
    assert_problem(status, &ended, 409, "instance-ended");
}

#[tokio::test]
async fn lists_are_paged() {
    let server = server().await;
    server.deploy("job", &service("external")).await;
    let mut started = Vec::new();
    for _ in 0..5 {
        started.push(server.start("job", json!({})).await);
    }
    let (mut seen, mut after) = (Vec::new(), String::new());
    loop {
        let (_, page) = server.get(&format!("/process-instances?limit=2{after}")).await;
        seen.extend(
            page["items"]
                .as_array()
                .unwrap()
                .iter()
                .map(|item| item["instanceKey"].as_str().unwrap().to_owned()),
        );
        match page["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => break,
        }
    }
    started.sort();
    seen.sort();
    assert_eq!(seen, started);
}

/// N02.
#[tokio::test]
async fn n02_a_cancel_that_is_not_obeyed_stands() {
    let server = server().await;
    let stubborn = r#"<serviceTask id="work"><extensionElements><zeebe:taskDefinition type="demo.stubborn" />
<zeebe:taskHeaders><zeebe:header key="duration" value="PT0.3S" /></zeebe:taskHeaders></extensionElements></serviceTask>"#;
    server.deploy("stubborn", &around(stubborn)).await;
    let key = server.start("stubborn", json!({})).await;
    let (status, answered) = server
        .post(
            &format!("/process-instances/{key}/cancel"),
            json!({ "waitMs": 20 }),
        )
        .await;
    if status != 200 {
        assert_problem(status, &answered, 504, "wait-ran-out");
        assert_eq!(answered["processInstance"]["subStatus"], "cancelling");
    }
    server.until(&key, "cancelled").await;
}

#[tokio::test]
async fn n06_n07_n08_case_071_an_instance_is_suspended_asked_why_and_resumed() {
    let server = server().await;
    server
        .deploy(
            "payment",
            &around("<receiveTask id=\"work\" messageRef=\"paid\" />"),
        )
        .await;
    let key = server.start("payment", json!({ "invoice": "A-1" })).await;
    server.until(&key, "suspended").await;
    let at = |verb: &str| format!("/process-instances/{key}/{verb}");
    let (_, why) = server.get(&at("why")).await;
    assert_eq!(
        (&why["reasons"][0]["kind"], &why["reasons"][0]["correlationKey"]),
        (&json!("message"), &json!("A-1"))
    );
    let body = json!({ "reason": "audit", "timers": "standStill" });
    for _ in 0..2 {
        let (status, held) = server.post(&at("suspend"), body.clone()).await;
        assert_eq!(status, 200, "{held}");
        assert_eq!(
            (&held["subStatus"], &held["lifecycleState"]),
            (&json!("held"), &json!("suspended"))
        );
        let wanted =
            json!({ "scope": "tree", "timers": "standStill", "isEffective": true, "heldInstances": 1 });
        assert_eq!(held["suspension"], wanted);
    }
    let (_, one) = server.get(&format!("/process-instances/{key}")).await;
    assert_eq!(one["holds"][0]["reason"], "audit");
    let message = json!({ "name": "paid", "correlationKey": "A-1" });
    let (status, deferred) = server.post("/messages", message).await;
    assert_eq!(status, 202, "{deferred}");
    assert_eq!(
        (&deferred["deferredFor"], &deferred["accepted"]),
        (&json!([key]), &json!(true))
    );
    let (_, why) = server.get(&at("why")).await;
    assert_eq!(
        (&why["reasons"][0]["kind"], &why["reasons"][0]["reason"]),
        (&json!("held"), &json!("audit"))
    );
    for _ in 0..2 {
        let (status, released) = server.post(&at("resume"), json!({})).await;
        if status != 200 {
            assert_problem(status, &released, 409, "instance-ended");
        }
    }
    server.until(&key, "finished").await;
    let (status, ended) = server.post(&at("suspend"), json!({})).await;
    assert_problem(status, &ended, 409, "instance-ended");
    let (status, wrong) = server.post(&at("suspend"), json!({ "scope": "half" })).await;
    assert!(status == 400 && wrong["code"].is_string(), "{wrong}");
    for verb in ["suspend", "resume"] {
        let (status, none) = server
            .post(&format!("/process-instances/5/{verb}"), json!({}))
            .await;
        assert_problem(status, &none, 404, "instance-not-found");
    }
    let (status, none) = server.get("/process-instances/5/why").await;
    assert_problem(status, &none, 404, "instance-not-found");
    let (_, audit) = server.get("/audit").await;
    let of = |action: &str| {
        let items = audit["items"].as_array().unwrap();
        items.iter().filter(|item| item["action"] == action).count()
    };
    assert_eq!(
        (of("InstanceSuspendRequested"), of("InstanceResumeRequested")),
        (1, 1)
    );
}

#[tokio::test]
async fn n02_case_129_a_forced_cancel_lands_at_once() {
    let server = server().await;
    let stubborn = r#"<serviceTask id="work"><extensionElements><zeebe:taskDefinition type="demo.stubborn" />
<zeebe:taskHeaders><zeebe:header key="duration" value="PT1H" /></zeebe:taskHeaders></extensionElements></serviceTask>"#;
    server.deploy("stubborn", &around(stubborn)).await;
    let key = server.start("stubborn", json!({})).await;
    let path = format!("/process-instances/{key}/cancel");
    let (status, waits) = server.post(&path, json!({ "waitMs": 50 })).await;
    assert_problem(status, &waits, 504, "wait-ran-out");
    assert_eq!(
        (
            &waits["processInstance"]["subStatus"],
            &waits["processInstance"]["lifecycleState"]
        ),
        (&json!("cancelling"), &json!("terminating"))
    );
    let (status, forced) = server
        .post(&path, json!({ "force": true, "waitMs": 10_000 }))
        .await;
    assert_eq!(
        (status.as_u16(), &forced["subStatus"]),
        (200, &json!("cancelled"))
    );
}
