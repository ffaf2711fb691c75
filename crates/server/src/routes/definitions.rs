//! Process definitions and starters.

use axum::Json;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use tidegate::model::DefinitionKey;
use tidegate::store::{DefinitionFilter, DefinitionKind};
use tidegate::unregister::LiveInstances;

use crate::auth::Tenants;
use crate::cursor::Paging;
use crate::extract::{Actor, Key, Query, Shell, milliseconds};
use crate::{Problem, views};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Parameters {
    process_id: Option<String>,
    latest: Option<bool>,
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
    let filter = DefinitionFilter {
        kind: Some(DefinitionKind::Process),
        process_id: query.process_id,
        latest: query.latest.unwrap_or_default(),
        tenant: None,
    };
    let fetch = |tenant| {
        let filter = DefinitionFilter {
            tenant,
            ..filter.clone()
        };
        shell.0.definitions(filter, paging.page())
    };
    let rows = tenants.rows(query.tenant_id, |row| row.key.get(), fetch).await;
    let rows = rows.map_err(|error| shell.problem(error))?;
    Ok(paging.answer(rows, |row| row.key.get(), |row| views::definition(&row)))
}

pub(super) async fn one(shell: Shell, Key(key): Key<DefinitionKey>) -> Result<Json<Value>, Problem> {
    let row = shell
        .0
        .definition(key)
        .await
        .map_err(|error| shell.problem(error))?;
    Ok(Json(views::definition(&row)))
}

pub(super) async fn xml(shell: Shell, Key(key): Key<DefinitionKey>) -> Result<Response, Problem> {
    let bytes = shell
        .0
        .definition_xml(key)
        .await
        .map_err(|error| shell.problem(error))?;
    Ok(([(header::CONTENT_TYPE, "application/xml")], bytes.to_vec()).into_response())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Unregister {
    instances: Option<String>,
    wait_ms: Option<u64>,
}

/// How long an answer waits for instances when the request says no time.
const DEFAULT_WAIT_MS: u64 = 30_000;
const MAX_WAIT_MS: u64 = 600_000;

impl Unregister {
    fn live(&self) -> Result<Option<LiveInstances>, Problem> {
        let wait = milliseconds("waitMs", self.wait_ms.unwrap_or(DEFAULT_WAIT_MS), 0..=MAX_WAIT_MS)?;
        match self.instances.as_deref() {
            None => Ok(None),
            Some("keep") => Ok(Some(LiveInstances::GoOn)),
            Some("wait") => Ok(Some(LiveInstances::AreAwaited(wait))),
            Some("cancel") => Ok(Some(LiveInstances::AreCancelled(wait))),
            Some(_) => Err(Problem::bad_request(
                "invalid-query",
                "`instances` must be `keep`, `wait` or `cancel`",
            )),
        }
    }
}

pub(super) async fn unregister(
    shell: Shell,
    Actor(actor): Actor,
    Key(key): Key<DefinitionKey>,
    Query(query): Query<Unregister>,
) -> Result<Response, Problem> {
    let live = query.live()?;
    let unregistered = shell
        .0
        .unregister(key, live.unwrap_or_default(), &actor)
        .await
        .map_err(|error| shell.problem(error))?;
    // Who says nothing of instances wants to know nothing of them.
    Ok(match live {
        None => StatusCode::NO_CONTENT.into_response(),
        Some(_) => Json(unregistered).into_response(),
    })
}

pub(super) async fn state(shell: Shell, Key(key): Key<DefinitionKey>) -> Result<Json<Value>, Problem> {
    let state = shell
        .0
        .definition_state(key)
        .await
        .map_err(|error| shell.problem(error))?;
    Ok(Json(json!({ "definitionKey": key, "state": state })))
}

pub(super) async fn starters(shell: Shell, tenants: Tenants) -> Result<Json<Value>, Problem> {
    let mut starters = shell.0.starters().await.map_err(|error| shell.problem(error))?;
    starters.retain(|starter| tenants.knows(&starter.tenant_id));
    Ok(Json(json!({ "items": starters, "next": null })))
}
