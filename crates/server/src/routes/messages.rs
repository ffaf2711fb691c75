//! Publishing messages.

use axum::Json;
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use tidegate::api::MessageRequest;
use tidegate::model::Variables;

use super::instances::SOURCE;
use crate::auth::Tenants;
use crate::extract::{Actor, Idempotency, Shell, milliseconds, name, required};
use crate::{Problem, body};

/// A message waits for a taker a year at most.
const MAX_TTL_MS: u64 = 366 * 24 * 3600 * 1000;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Publish {
    name: String,
    correlation_key: Option<String>,
    #[serde(default)]
    variables: Variables,
    time_to_live_ms: Option<u64>,
    message_id: Option<String>,
    tenant_id: Option<String>,
}

pub(super) async fn publish(
    shell: Shell,
    Actor(actor): Actor,
    tenants: Tenants,
    Idempotency(idempotency_key): Idempotency,
    body::Body(publish): body::Body<Publish>,
) -> Result<(StatusCode, Json<Value>), Problem> {
    let ttl = publish
        .time_to_live_ms
        .map(|ms| milliseconds("timeToLiveMs", ms, 0..=MAX_TTL_MS))
        .transpose()?;
    let request = MessageRequest {
        name: required("name", publish.name)?,
        correlation_key: name("correlationKey", publish.correlation_key)?.unwrap_or_default(),
        variables: publish.variables,
        ttl,
        // A message's id already makes it one message; the header is another way to give it.
        message_id: name("messageId", publish.message_id)?.or(idempotency_key),
        tenant: tenants.one(name("tenantId", publish.tenant_id)?)?,
        actor: actor.to_string(),
        source: Some(SOURCE),
    };
    let published = shell
        .0
        .publish(request)
        .await
        .map_err(|error| shell.problem(error))?;
    let mut view = json!({ "messageKey": published.message, "deliveredTo": published.delivered_to });
    if let Some(stimulus) = published.accepted {
        view["accepted"] = true.into();
        view["stimulusKey"] = json!(stimulus);
    }
    if published.is_buffered {
        view["accepted"] = true.into();
        view["buffered"] = true.into();
    }
    // Those that are held take it when they are let go.
    let is_deferred =
        !published.deferred_for.is_empty() && published.deferred_for.len() == published.delivered_to.len();
    if !published.deferred_for.is_empty() {
        view["deferredFor"] = json!(published.deferred_for);
    }
    if is_deferred {
        view["accepted"] = true.into();
    }
    let waits = published.is_buffered || published.accepted.is_some() || is_deferred;
    Ok((
        if waits {
            StatusCode::ACCEPTED
        } else {
            StatusCode::OK
        },
        Json(view),
    ))
}
