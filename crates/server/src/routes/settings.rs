//! How many instances of a process may be live, and how long finished ones are remembered.

use axum::Json;
use serde::Deserialize;
use tidegate::settings::{DefinitionSettings, SettingsView};

use crate::auth::Tenants;
use crate::extract::{Actor, Name, Query, Shell, name, required, to_the_end};
use crate::{Problem, body};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Parameters {
    tenant_id: Option<String>,
}

pub(super) async fn show(
    shell: Shell,
    Name(process_id): Name,
    tenants: Tenants,
    Query(query): Query<Parameters>,
) -> Result<Json<SettingsView>, Problem> {
    let process_id = required("processId", process_id)?;
    let tenant = tenants.one(name("tenantId", query.tenant_id)?)?;
    let view = shell.0.definition_settings(&process_id, tenant.as_deref()).await;
    view.map(Json).map_err(|error| shell.problem(error))
}

pub(super) async fn set(
    shell: Shell,
    Actor(actor): Actor,
    Name(process_id): Name,
    tenants: Tenants,
    Query(query): Query<Parameters>,
    body::Body(settings): body::Body<DefinitionSettings>,
) -> Result<Json<SettingsView>, Problem> {
    let process_id = required("processId", process_id)?;
    let tenant = tenants.one(name("tenantId", query.tenant_id)?)?;
    let runtime = shell.0.clone();
    let request = to_the_end(async move {
        runtime
            .set_definition_settings(&process_id, tenant.as_deref(), settings, &actor)
            .await
    });
    request.await?.map(Json).map_err(|error| shell.problem(error))
}
