//! How rows of the runtime look on the wire.

use axum::http::StatusCode;
use serde::Serialize;
use serde_json::{Value, json};
use tidegate::api::{self, Acceptance, InstanceDetail};
use tidegate::engine::HistoryItem;
use tidegate::model::{
    DefinitionKey, ElementInstanceKey, InstanceKey, Json, Status, StimulusKey, SubStatus, TaskDetails,
    Timestamp, Variables,
};
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
    view["holds"] = json!(detail.holds);
    view["cancellation"] = json!(detail.cancellation);
    view
}

fn token(token: &tidegate::api::Token) -> Value {
    json!({
        "elementId": token.element_id,
        "elementInstanceKey": token.element_instance_key,
        "state": token.state,
    })
}

fn wait(wait: &tidegate::api::Wait) -> Value {
    json!({
        "elementId": wait.element_id,
        "elementInstanceKey": wait.element_instance_key,
        "kind": wait.kind,
        "detail": wait.detail,
    })
}

/// One line of an instance's history.
pub(crate) fn history_item(item: &HistoryItem) -> Value {
    json!({
        "sequence": item.sequence,
        "time": item.time,
        "event": item.event,
        "elementId": item.element_id,
        "elementInstanceKey": item.element_instance_key,
        "cause": item.cause,
        "payload": item.payload,
    })
}

/// A started or accepted instance. Its variables keep the text they came as.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Started {
    instance_key: InstanceKey,
    definition_key: DefinitionKey,
    process_id: String,
    version: u32,
    status: Status,
    sub_status: SubStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    accepted: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stimulus_key: Option<StimulusKey>,
    #[serde(skip_serializing_if = "Option::is_none")]
    variables: Option<Variables>,
}

impl Started {
    pub(crate) fn of(started: api::Started) -> Self {
        Self {
            instance_key: started.instance,
            definition_key: started.definition,
            process_id: started.process_id,
            version: started.version,
            status: started.sub_status.status(),
            sub_status: started.sub_status,
            accepted: started.accepted.map(|_| true),
            stimulus_key: started.accepted,
            variables: started.variables,
        }
    }
}

/// A leased job. Its variables and headers keep the text they came as.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Job {
    job_key: ElementInstanceKey,
    lease_token: String,
    r#type: String,
    instance_key: InstanceKey,
    definition_key: DefinitionKey,
    process_id: String,
    element_id: String,
    variables: Json,
    headers: Json,
    retries: u32,
    lease_until: Timestamp,
}

impl Job {
    pub(crate) fn of(job: api::LeasedJob) -> Self {
        Self {
            job_key: job.job,
            lease_token: job.lease_token,
            r#type: job.job_type,
            instance_key: job.instance,
            definition_key: job.definition,
            process_id: job.process_id,
            element_id: job.element_id,
            variables: Json::trusted(job.variables),
            headers: Json::trusted(job.headers),
            retries: job.retries,
            lease_until: job.lease_until,
        }
    }
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
    let details = &row.details;
    json!({
        "userTaskKey": row.key,
        "instanceKey": row.instance,
        "processId": row.process_id,
        "tenantId": row.tenant,
        "elementId": row.element_id,
        "name": row.name,
        "assignee": row.assignee,
        "candidateGroups": row.candidate_groups,
        "candidateUsers": details.candidate_users,
        "formKey": details.form_key,
        "formId": details.form_id,
        "externalFormReference": details.external_form_reference,
        "dueDate": details.due_date,
        "followUpDate": details.follow_up_date,
        "priority": details.priority.unwrap_or(TaskDetails::USUAL_PRIORITY),
        "createdAt": row.created_at,
    })
}

/// What became of a stimulus: 200 when it was executed, 202 when it is queued.
pub(crate) fn acceptance(
    acceptance: Acceptance,
    instance: Option<InstanceKey>,
) -> (StatusCode, axum::Json<Value>) {
    match acceptance {
        Acceptance::Done => (StatusCode::OK, axum::Json(json!({ "advanced": true }))),
        Acceptance::Queued(stimulus) => {
            let mut view = json!({ "accepted": true, "advanced": false, "stimulusKey": stimulus });
            if let Some(instance) = instance {
                view["instanceKey"] = json!(instance);
            }
            (StatusCode::ACCEPTED, axum::Json(view))
        }
    }
}
