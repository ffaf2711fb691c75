//! The executable interchange references, run to their ends with made-up people, workers and variables.

use std::time::Duration;

use serde_json::{Value, json};
use tidegate::api::Resource;
use tidegate::model::{InstanceKey, SubStatus, Variables};
use tidegate::store::{Page, UserTaskFilter, UserTaskRow};

use super::conformance;
use crate::support::{Stand, stand, stand_with};

/// One reference file; none where the conformance files are not at hand.
fn reference(test: &str, name: &str) -> Option<Resource> {
    let path = conformance(test)?.join(format!("miwg/Reference/{name}.bpmn"));
    let bytes = std::fs::read(path).expect("the reference");
    Some(Resource {
        name: format!("{name}.bpmn"),
        bytes,
    })
}

fn variable(all: &str, name: &str) -> Value {
    serde_json::from_str::<Value>(all).unwrap()[name].clone()
}

fn variables(value: &Value) -> Variables {
    Variables::parse(&value.to_string()).unwrap()
}

/// The next open user task, which must be this element.
async fn task(stand: &Stand, element: &str) -> UserTaskRow {
    let deadline = std::time::Instant::now() + Duration::from_secs(20);
    loop {
        let open = stand
            .runtime
            .user_tasks(UserTaskFilter::default(), Page::first(10))
            .await
            .unwrap();
        if let Some(found) = open.iter().find(|task| &*task.element_id == element) {
            return found.clone();
        }
        assert!(
            std::time::Instant::now() < deadline,
            "{element} does not come: {open:?}"
        );
        tokio::task::yield_now().await;
    }
}

async fn done(stand: &Stand, element: &str, results: Value) -> UserTaskRow {
    let open = task(stand, element).await;
    stand
        .runtime
        .complete_user_task(open.key, variables(&results), "test")
        .await
        .unwrap();
    open
}

async fn ended(stand: &Stand, instance: InstanceKey, end: &str) {
    stand.finished(instance).await;
    assert_eq!(
        stand.times(instance, &format!("ElementCompleted {end}")).await,
        1,
        "{end}"
    );
}

async fn with_archive() -> Stand {
    stand_with(|builder| builder.delegate("archiveService", "archive")).await
}

#[tokio::test(flavor = "multi_thread")]
pub async fn the_invoice_of_c10_is_approved_and_archived_by_a_job_in_place_of_java() {
    let test = "the_invoice_of_c10_is_approved_and_archived_by_a_job_in_place_of_java";
    let Some(file) = reference(test, "C.1.0") else {
        return;
    };
    let stand = with_archive().await;
    stand.deploy(file).await;
    let started = stand.publish("invoice-received-C.1.0", "", "{}").await;
    let [instance] = started.delivered_to[..] else {
        panic!("{started:?}")
    };
    let assign = done(&stand, "assignApprover", json!({ "approver": "mary" })).await;
    assert_eq!(assign.details.form_key.as_deref(), Some("app:assignApprover.jsf"));
    let approve = done(&stand, "approveInvoice", json!({ "approved": false })).await;
    assert_eq!(approve.assignee.as_deref(), Some("mary"));
    done(&stand, "reviewInvoice", json!({ "clarified": "yes" })).await;
    done(&stand, "approveInvoice", json!({ "approved": true })).await;
    let transfer = done(&stand, "prepareBankTransfer", json!({})).await;
    assert_eq!(transfer.candidate_groups, ["accounting"]);
    let archive = stand.job("archive").await;
    let headers: Value = serde_json::from_str(&archive.headers).unwrap();
    let header = |name: &str| headers[name].as_str();
    assert_eq!(header("text0"), Some("Hello World"));
    assert_eq!(header("text3"), Some("Hello World"));
    assert_eq!(header("text1"), None);
    stand
        .runtime
        .complete_job(archive.job, &archive.lease_token, Variables::new())
        .await
        .unwrap();
    ended(&stand, instance, "invoiceProcessed").await;
}

#[tokio::test(flavor = "multi_thread")]
pub async fn the_invoice_of_c11_follows_its_conditions_in_xpath() {
    let test = "the_invoice_of_c11_follows_its_conditions_in_xpath";
    let Some(file) = reference(test, "C.1.1") else {
        return;
    };
    let stand = with_archive().await;
    stand.deploy(file).await;
    for (clarified, end) in [("yes", "invoiceProcessed"), ("no", "invoiceNotProcessed")] {
        let instance = stand.start("handle-invoice", "{}").await.instance;
        done(&stand, "assignApprover", json!({ "approver": "mary" })).await;
        done(&stand, "approveInvoice", json!({ "approved": false })).await;
        done(&stand, "reviewInvoice", json!({ "clarified": clarified })).await;
        if clarified == "yes" {
            done(&stand, "approveInvoice", json!({ "approved": true })).await;
            done(&stand, "prepareBankTransfer", json!({})).await;
            stand.complete("archive", "{}").await;
        }
        ended(&stand, instance, end).await;
    }
}

/// The least that must be corrected in C.3.0: the condition is in no language, and the first task waits for two tokens, of
/// which only one comes. As it ends with two, both go the first way of the gateway, whose flows have no conditions.
#[tokio::test(flavor = "multi_thread")]
pub async fn the_fridge_of_c30_is_replaced_once_two_places_of_the_file_are_corrected() {
    let test = "the_fridge_of_c30_is_replaced_once_two_places_of_the_file_are_corrected";
    let Some(file) = reference(test, "C.3.0") else {
        return;
    };
    let text = String::from_utf8(file.bytes).unwrap();
    let condition = text.replace("Service Level == 'Premium'", "= Service Level = \"Premium\"");
    let both = condition.replace("startQuantity=\"2\"", "startQuantity=\"1\"");
    assert!(text != condition && condition != both);
    let stand = stand().await;
    let deploy = async |text: String| {
        let file = Resource {
            name: file.name.clone(),
            bytes: text.into_bytes(),
        };
        stand
            .runtime
            .deploy(vec![file], None, "test")
            .await
            .expect("it is deployed")
    };
    let begin = async || {
        let published = stand.publish("Service Level", "", "{}").await;
        let [instance] = published.delivered_to[..] else {
            panic!("{published:?}")
        };
        instance
    };
    // What waits for a token that never comes is told at the deployment, and waits.
    let deployed = deploy(condition).await;
    let warned: Vec<(u32, &str)> = deployed
        .warnings
        .iter()
        .map(|warning| (warning.line, warning.code.as_str()))
        .collect();
    for wanted in [(75, "start-quantity-out-of-reach"), (244, "sub-process-empty")] {
        assert!(warned.contains(&wanted), "{warned:?}");
    }
    let waits = begin().await;
    stand
        .until(waits, |detail| detail.row.sub_status == SubStatus::Suspended)
        .await;
    deploy(both).await;
    let instance = begin().await;
    done(&stand, "_c73a5f4a-72f1-4e11-bb40-2f98da75fb9a", json!({})).await;
    for _ in 0..2 {
        done(&stand, "_a92069f7-377b-4dbd-a1fd-1da071aabf6d", json!({})).await;
    }
    stand.finished(instance).await;
    let end = "ElementCompleted _177bd313-c6c9-4df5-8f82-313beb30d2eb";
    assert_eq!(stand.times(instance, end).await, 2);
}

/// The same with everything that its author meant: conditions on all flows, and steps in the empty sub-process.
#[tokio::test(flavor = "multi_thread")]
pub async fn the_fridge_of_c30_is_repaired_once_the_mistakes_of_the_file_are_corrected() {
    let test = "the_fridge_of_c30_is_repaired_once_the_mistakes_of_the_file_are_corrected";
    let Some(file) = reference(test, "C.3.0") else {
        return;
    };
    let mut text = String::from_utf8(file.bytes).unwrap();
    let mut correct = |wrong: &str, right: &str| {
        assert!(text.contains(wrong), "{wrong}");
        text = text.replace(wrong, right);
    };
    correct("Service Level == 'Premium'", "level = 'Premium'");
    correct("completionQuantity=\"2\"", "completionQuantity=\"1\"");
    correct("startQuantity=\"2\"", "startQuantity=\"1\"");
    // Without start events, everything inside that no flow leads to begins: two steps here, at once.
    correct(
        "triggeredByEvent=\"false\">",
        "triggeredByEvent=\"false\"><userTask id=\"drive\"/><userTask id=\"repair\"/>",
    );
    for (id, condition) in [
        ("_b99800c3-c340-460c-a43e-098014a365d0", "kind = 'warranty'"),
        ("_437e5969-1e61-4cb9-aa76-4f8854f32eeb", "kind = 'emergency'"),
        ("_cf380e47-1401-4e7e-b710-193b626e49eb", "success"),
        ("_cddf9325-a85b-4347-8c57-8b909fa77ae9", "level = 'Standard'"),
    ] {
        let flow = text
            .find(&format!("<sequenceFlow id=\"{id}\""))
            .expect("the flow");
        let end = flow + text[flow..].find("</sequenceFlow>").expect("its end");
        text.insert_str(
            end,
            &format!("<conditionExpression>{condition}</conditionExpression>"),
        );
    }
    let stand = stand().await;
    stand
        .deploy(Resource {
            name: file.name,
            bytes: text.into_bytes(),
        })
        .await;
    let begin = async || {
        let published = stand.publish("Service Level", "", "{}").await;
        let [instance] = published.delivered_to[..] else {
            panic!("{published:?}")
        };
        instance
    };
    let analyse = "_c73a5f4a-72f1-4e11-bb40-2f98da75fb9a";
    let emergency = begin().await;
    done(&stand, analyse, json!({ "kind": "emergency" })).await;
    done(&stand, "drive", json!({})).await;
    done(&stand, "repair", json!({ "success": true })).await;
    ended(&stand, emergency, "_b3dc1906-d4d3-40c5-aaf6-5a74148ae887").await;
    let premium = begin().await;
    done(&stand, analyse, json!({ "kind": "regular", "level": "Premium" })).await;
    task(&stand, "_6a34496f-8cf7-42e5-88a9-d1af98cc3cba").await;
    // The premium repair takes more than two hours: it becomes an emergency, and in the end the fridge is replaced.
    stand.clock.advance((2 * 3600 + 1) * 1000);
    done(&stand, "drive", json!({})).await;
    done(&stand, "repair", json!({ "success": false })).await;
    done(&stand, "_a92069f7-377b-4dbd-a1fd-1da071aabf6d", json!({})).await;
    ended(&stand, premium, "_177bd313-c6c9-4df5-8f82-313beb30d2eb").await;
}

#[tokio::test(flavor = "multi_thread")]
pub async fn the_vacation_of_c81_takes_every_way() {
    let test = "the_vacation_of_c81_takes_every_way";
    let Some(file) = reference(test, "C.8.1") else {
        return;
    };
    let stand = stand().await;
    stand.deploy(file).await;
    let start = json!({ "Employee Badge Number": 7, "From": "2026-07-01", "To": "2026-07-14" });
    let begin = async || {
        stand
            .start("VacationRequestProcess", &start.to_string())
            .await
            .instance
    };
    let status = json!({ "name": "Ann", "email": "ann@example.org", "days": 20 });
    let fetched = json!({ "body": { "value": [status] }, "vacation": { "value": [status] } });
    let decided = |approval: &str| {
        json!({ "Vacation Approval Status": { "Approval": approval, "Reason": "for a test" } }).to_string()
    };
    for (approval, by_manager, end) in [
        ("Approved", None, "_6677ef80-82df-4951-919d-1f36123b681b"),
        ("Refused", None, "_1688f604-5edf-4187-ad9e-18f74bfede53"),
        (
            "Manual Validation Required",
            Some("Approved"),
            "_1cd5fe29-b3ec-4f21-a1aa-57773f0729ca",
        ),
        (
            "Manual Validation Required",
            Some("Refused"),
            "_3ae826ca-5f38-43c4-be3a-35d1157aa27f",
        ),
    ] {
        let instance = begin().await;
        stand.complete("http", &fetched.to_string()).await;
        stand.complete("DMN", &decided(approval)).await;
        if let Some(verdict) = by_manager {
            let manually = "_79523269-7444-4b01-90e9-e23957a9d020";
            let open = done(&stand, manually, json!({ "Vacation Approval": verdict })).await;
            assert_eq!(
                open.details.form_key.as_deref(),
                Some("camunda-forms:bpmn:userTaskForm_1m306cp")
            );
        }
        let mail = stand.job("emailService").await;
        let to = variable(&mail.variables, "mailAddress");
        assert_eq!(to, json!("ann@example.org"));
        stand
            .runtime
            .complete_job(mail.job, &mail.lease_token, Variables::new())
            .await
            .unwrap();
        if approval == "Approved" || by_manager == Some("Approved") {
            stand.complete("update", "{}").await;
        }
        ended(&stand, instance, end).await;
    }
    let unknown = begin().await;
    stand.throw("http", "404").await;
    ended(&stand, unknown, "_b4d636eb-b501-4462-93c8-04652db10307").await;
}

/// What C.9.0 asks for when a score is there, in the words of DMN.
const RISK: &str = r#"<definitions xmlns="https://www.omg.org/spec/DMN/20191111/MODEL/" id="risk" name="risk" namespace="urn:test">
<decision id="risk_check" name="risk check"><variable name="risk check"/><literalExpression>
<text>if score = 0 then { riskLevel: ["red"], risk: ["no income"] } else if score &lt; 5 then { riskLevel: ["yellow"], risk: ["age", "region"] } else null</text>
</literalExpression></decision></definitions>"#;

async fn onboarding(test: &str) -> Option<Stand> {
    let files = ["C.9.0", "C.9.1", "C.9.2"].map(|name| reference(test, name));
    let mut files: Vec<Resource> = files.into_iter().collect::<Option<_>>()?;
    files.push(Resource {
        name: "risk.dmn".to_owned(),
        bytes: RISK.as_bytes().to_vec(),
    });
    let stand = stand().await;
    stand
        .runtime
        .deploy(files, None, "test")
        .await
        .expect("they are deployed together");
    Some(stand)
}

const APPLICANT: &str = r#"{"applicant": {"name": "Ann", "email": "ann@example.org", "age": 30}, "corporation": "Acme",
"applicationNumber": "A1", "product": "account", "documents": ["passport", "payslip"], "fraudSuspectedId": "f1"}"#;

#[tokio::test(flavor = "multi_thread")]
pub async fn the_onboarding_of_c90_accepts_and_rejects_by_risk() {
    let Some(stand) = onboarding("the_onboarding_of_c90_accepts_and_rejects_by_risk").await else {
        return;
    };
    for (score, first, end) in [
        (9, "issuePolicy", "EndEvent_ApplicationIssued"),
        (0, "rejectPolicy", "EndEvent_ApplicationRejected"),
    ] {
        let instance = stand.start("customer_onboarding_en", APPLICANT).await.instance;
        stand
            .complete("calculateScore", &json!({ "score": score }).to_string())
            .await;
        stand.complete(first, "{}").await;
        let mail = stand.job("io.camunda:sendgrid:1").await;
        let to = variable(&mail.variables, "to");
        assert_eq!(to, json!({ "email": "ann@example.org", "name": "Ann" }));
        stand
            .runtime
            .complete_job(mail.job, &mail.lease_token, Variables::new())
            .await
            .unwrap();
        ended(&stand, instance, end).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
pub async fn the_onboarding_of_c90_asks_people_by_c92_and_for_documents_by_c91() {
    let test = "the_onboarding_of_c90_asks_people_by_c92_and_for_documents_by_c91";
    let Some(stand) = onboarding(test).await else {
        return;
    };
    let instance = stand.start("customer_onboarding_en", APPLICANT).await.instance;
    stand.complete("calculateScore", r#"{"score": 3}"#).await;
    let decide = task(&stand, "UserTask_DecideOnApplication").await;
    assert_eq!(decide.candidate_groups, ["clerks"]);
    let asked = stand.runtime.instance(decide.instance).await.unwrap();
    let reference = asked
        .variables
        .get("documentReferenceId")
        .map(|json| json.to_value());
    let Some(Value::String(reference)) = reference else {
        panic!("{reference:?}")
    };
    // Two documents are asked for, one instance of C.9.1 each, which the answers find by name and key.
    let requested = stand.publish("Message_DocumentRequested", &reference, "{}").await;
    assert_eq!(requested.delivered_to, [decide.instance]);
    for _ in 0..2 {
        stand.complete("email", "{}").await;
    }
    // One reminds after a day.
    crate::support::eventually("both wait", async || {
        let waiting = stand.listed(SubStatus::Suspended).await;
        waiting.len() == 4
    })
    .await;
    stand.clock.advance((86_400 + 1) * 1000);
    for _ in 0..2 {
        stand.complete("email", "{}").await;
    }
    for _ in 0..2 {
        stand.publish("MESSAGE_documentReceived", &reference, "{}").await;
    }
    let received = async || {
        stand
            .times(decide.instance, "ElementCompleted EndEvent_DocumentReceived")
            .await
            == 1
    };
    crate::support::eventually("the documents are there", received).await;
    done(
        &stand,
        "UserTask_DecideOnApplication",
        json!({ "approved": true }),
    )
    .await;
    // Only what the caller maps comes back from C.9.2, and it maps nothing: the verdict is missing until it is set.
    let incident = stand.incident().await;
    assert_eq!(incident.element_id.as_deref(), Some("ExclusiveGateway_Decision"));
    assert!(incident.message.contains("approved"), "{}", incident.message);
    let set = variables(&json!({ "approved": true }));
    stand.runtime.set_variables(instance, set, "test").await.unwrap();
    stand
        .runtime
        .retry_incident(incident.key, None, "test")
        .await
        .unwrap();
    stand.complete("issuePolicy", "{}").await;
    stand.complete("io.camunda:sendgrid:1", "{}").await;
    ended(&stand, instance, "EndEvent_ApplicationIssued").await;
}

#[tokio::test(flavor = "multi_thread")]
pub async fn the_onboarding_of_c90_ends_when_c92_finds_fraud() {
    let Some(stand) = onboarding("the_onboarding_of_c90_ends_when_c92_finds_fraud").await else {
        return;
    };
    let instance = stand.start("customer_onboarding_en", APPLICANT).await.instance;
    stand.complete("calculateScore", r#"{"score": 3}"#).await;
    task(&stand, "UserTask_DecideOnApplication").await;
    stand.publish("Message_FraudSuspected", "f1", "{}").await;
    let check = done(&stand, "UserTask_CheckForFraud", json!({ "fraud": true })).await;
    assert_eq!(check.candidate_groups, ["riskteam"]);
    stand.complete("reportFraud", "{}").await;
    ended(&stand, instance, "TerminateEvent_ApplicationCanceledFraud").await;
}
