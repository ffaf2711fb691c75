//! How rows of the runtime look on the wire.

use serde_json::{Value, json};
use tidegate::api::{Acceptance, InstanceDetail, Started};
use tidegate::model::InstanceKey;
use tidegate::store::{DefinitionRow, IncidentRow, InstanceRow, UserTaskRow};

/// An instance.
pub(crate) fn instance(row: &InstanceRow) -> Value {
    json!({
        "instanceKey": row.key,
        "definitionKey": row.definition,
        "processId": row.process_id,
        "version": row.version,
        "tenantId": row.tenant,
        "status": row.sub_status.status(),
        "subStatus": row.sub_status,
        "lifecycleState": row.sub_status.lifecycle(),
        "businessKey": row.business_key,
        "parentKey": row.parent,
        "incidentCount": row.incident_count,
        "startedAt": row.started_at,
        "endedAt": row.ended_at,
    })
}

/// An instance with its tokens and what it waits for.
pub(crate) fn instance_detail(detail: &InstanceDetail) -> Value {
    let mut view = instance(&detail.row);
    view["tokens"] = detail.tokens.iter().map(token).collect();
    view["waitingFor"] = detail.waiting_for.iter().map(wait).collect();
    view
}

fn token(token: &tidegate::api::Token) -> Value {
    json!({
        "elementId": token.element_id,
        "elementInstanceKey": token.element_instance,
        "state": token.state,
    })
}

fn wait(wait: &tidegate::api::Wait) -> Value {
    json!({
        "elementId": wait.element_id,
        "elementInstanceKey": wait.element_instance,
        "kind": wait.kind,
        "detail": wait.detail,
    })
}

/// A started or accepted instance, without the variables of its end.
pub(crate) fn started(started: &Started) -> Value {
    let mut view = json!({
        "instanceKey": started.instance,
        "definitionKey": started.definition,
        "processId": started.process_id,
        "version": started.version,
        "status": started.sub_status.status(),
        "subStatus": started.sub_status,
    });
    if let Some(stimulus) = started.accepted {
        view["accepted"] = true.into();
        view["stimulusKey"] = json!(stimulus);
    }
    view
}

/// A process definition.
pub(crate) fn definition(row: &DefinitionRow) -> Value {
    json!({
        "definitionKey": row.key,
        "deploymentKey": row.deployment,
        "processId": row.process_id,
        "version": row.version,
        "name": row.name,
        "tenantId": row.tenant,
        "resource": row.resource_name,
        "checksum": row.checksum,
        "deployedAt": row.deployed_at,
        "isDeleted": row.is_deleted,
    })
}

/// An open incident.
pub(crate) fn incident(row: &IncidentRow) -> Value {
    json!({
        "incidentKey": row.key,
        "instanceKey": row.instance,
        "processId": row.process_id,
        "tenantId": row.tenant,
        "elementId": row.element_id,
        "elementInstanceKey": row.element_instance,
        "code": row.code,
        "message": row.message,
        "raisedAt": row.raised_at,
    })
}

/// An open user task.
pub(crate) fn user_task(row: &UserTaskRow) -> Value {
    json!({
        "userTaskKey": row.key,
        "instanceKey": row.instance,
        "processId": row.process_id,
        "tenantId": row.tenant,
        "elementId": row.element_id,
        "name": row.name,
        "assignee": row.assignee,
        "candidateGroups": row.candidate_groups,
        "createdAt": row.created_at,
    })
}

/// What became of a stimulus: 200 when it was executed, 202 when it is queued.
pub(crate) fn acceptance(
    acceptance: Acceptance,
    instance: Option<InstanceKey>,
) -> (axum::http::StatusCode, axum::Json<Value>) {
    match acceptance {
        Acceptance::Done => (axum::http::StatusCode::OK, axum::Json(json!({ "advanced": true }))),
        Acceptance::Queued(stimulus) => {
            let mut view = json!({ "accepted": true, "advanced": false, "stimulusKey": stimulus });
            if let Some(instance) = instance {
                view["instanceKey"] = json!(instance);
            }
            (axum::http::StatusCode::ACCEPTED, axum::Json(view))
        }
    }
}
