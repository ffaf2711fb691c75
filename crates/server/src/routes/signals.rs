//! Broadcasting signals.

use axum::Json;
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use tidegate::api::SignalRequest;
use tidegate::model::Variables;

use super::instances::SOURCE;
use crate::auth::Tenants;
use crate::extract::{Actor, Shell, name, required};
use crate::{Problem, body};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Broadcast {
    name: String,
    #[serde(default)]
    variables: Variables,
    tenant_id: Option<String>,
}

pub(super) async fn broadcast(
    shell: Shell,
    Actor(actor): Actor,
    tenants: Tenants,
    body::Body(signal): body::Body<Broadcast>,
) -> Result<(StatusCode, Json<Value>), Problem> {
    let request = SignalRequest {
        name: required("name", signal.name)?,
        variables: signal.variables,
        tenant: tenants.one(name("tenantId", signal.tenant_id)?)?,
        actor: actor.to_string(),
        source: Some(SOURCE),
    };
    let published = shell
        .0
        .broadcast(request)
        .await
        .map_err(|error| shell.problem(error))?;
    let mut view = json!({ "deliveredTo": published.delivered_to });
    if !published.deferred_for.is_empty() {
        view["deferredFor"] = json!(published.deferred_for);
    }
    match published.accepted {
        None => Ok((StatusCode::OK, Json(view))),
        Some(stimulus) => {
            view["accepted"] = true.into();
            view["stimulusKey"] = json!(stimulus);
            Ok((StatusCode::ACCEPTED, Json(view)))
        }
    }
}
