//! Incidents.

use std::num::NonZeroU32;

use axum::Json;
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::Value;
use tidegate::model::{IncidentKey, InstanceKey};
use tidegate::store::IncidentFilter;

use crate::auth::Tenants;
use crate::cursor::Paging;
use crate::extract::{Actor, Key, Query, Shell};
use crate::{Problem, body, views};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Parameters {
    instance_key: Option<InstanceKey>,
    process_id: Option<String>,
    tenant_id: Option<String>,
    limit: Option<usize>,
    after: Option<String>,
}

pub(super) async fn list(
    shell: Shell,
    tenants: Tenants,
    Query(query): Query<Parameters>,
) -> Result<Json<Value>, Problem> {
    let paging = Paging::of(query.limit, query.after.as_deref())?;
    let filter = IncidentFilter {
        instance: query.instance_key,
        process_id: query.process_id,
        tenant: None,
    };
    let fetch = |tenant| {
        let filter = IncidentFilter {
            tenant,
            ..filter.clone()
        };
        shell.0.incidents(filter, paging.page())
    };
    let rows = tenants.rows(query.tenant_id, |row| row.key.get(), fetch).await;
    let rows = rows.map_err(|error| shell.problem(error))?;
    Ok(paging.answer(rows, |row| row.key.get(), |row| views::incident(&row)))
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub(super) struct Retry {
    retries: Option<NonZeroU32>,
}

pub(super) async fn retry(
    shell: Shell,
    Actor(actor): Actor,
    Key(key): Key<IncidentKey>,
    body::Optional(retry): body::Optional<Retry>,
) -> Result<(StatusCode, Json<Value>), Problem> {
    let retries = retry.retries.map(NonZeroU32::get);
    let acceptance = shell.0.retry_incident(key, retries, &actor).await;
    acceptance
        .map(|acceptance| views::acceptance(acceptance, None))
        .map_err(|error| shell.problem(error))
}
