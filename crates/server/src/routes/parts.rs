//! Pauses of a part of a shell: of one process id, or of one tenant.

use axum::Json;
use serde::Deserialize;
use serde_json::{Value, json};
use tidegate::api::DEFAULT_TENANT;
use tidegate::model::Timestamp;
use tidegate::parts::{Part, PartialPause, PauseScope};

use crate::auth::Tenants;
use crate::extract::{Actor, Shell, name, reason, to_the_end};
use crate::{Problem, body};

pub(super) async fn list(shell: Shell, tenants: Tenants) -> Json<Value> {
    let mut pauses = shell.0.partial_pauses();
    pauses.retain(|pause| tenants.knows(pause.part.of_tenant()));
    Json(json!({ "items": pauses, "next": null }))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Pause {
    process_id: Option<String>,
    tenant_id: Option<String>,
    holds: PauseScope,
    reason: Option<String>,
    until: Option<Timestamp>,
}

pub(super) async fn pause(
    shell: Shell,
    Actor(actor): Actor,
    tenants: Tenants,
    body::Body(pause): body::Body<Pause>,
) -> Result<Json<PartialPause>, Problem> {
    let part = part(&tenants, pause.process_id, pause.tenant_id)?;
    let reason = reason(pause.reason)?;
    let runtime = shell.0.clone();
    let paused = to_the_end(async move {
        runtime
            .pause_part(part, pause.holds, reason, pause.until, &actor)
            .await
    });
    paused.await?.map(Json).map_err(|error| shell.problem(error))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Resume {
    process_id: Option<String>,
    tenant_id: Option<String>,
}

pub(super) async fn resume(
    shell: Shell,
    Actor(actor): Actor,
    tenants: Tenants,
    body::Body(resume): body::Body<Resume>,
) -> Result<Json<Value>, Problem> {
    let part = part(&tenants, resume.process_id, resume.tenant_id)?;
    let runtime = shell.0.clone();
    let resumed = to_the_end(async move { runtime.resume_part(part, &actor).await }).await?;
    let resumed = resumed.map_err(|error| shell.problem(error))?;
    Ok(Json(json!({ "resumed": resumed })))
}

fn part(tenants: &Tenants, process_id: Option<String>, tenant_id: Option<String>) -> Result<Part, Problem> {
    let (process_id, tenant) = (name("processId", process_id)?, name("tenantId", tenant_id)?);
    let tenant = match (&process_id, tenant) {
        // Nothing is paused that was not named.
        (None, None) => None,
        (_, tenant) => tenants.one(tenant)?,
    };
    match (process_id, tenant) {
        (Some(process_id), tenant) => Ok(Part::Definition {
            tenant: tenant.unwrap_or_else(|| DEFAULT_TENANT.to_owned()),
            process_id,
        }),
        (None, Some(tenant)) => Ok(Part::tenant(tenant)),
        (None, None) => Err(Problem::bad_request(
            "invalid-request",
            "say which part: `processId`, `tenantId`, or both",
        )),
    }
}
