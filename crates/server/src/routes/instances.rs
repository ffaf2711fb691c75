//! Process instances: start, look, change.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::Value;
use tidegate::api::{Definition, StartRequest};
use tidegate::model::{DefinitionKey, InstanceKey, Status, SubStatus, Timestamp, Variables};
use tidegate::store::{InstanceFilter, InstanceRow};

use crate::auth::Tenants;
use crate::cursor::Paging;
use crate::extract::{Actor, Idempotency, Key, Query, Shell, milliseconds, name, required};
use crate::{Problem, body, views};

/// The source under which the API's requests appear.
pub(super) const SOURCE: &str = "http.api";
/// How long a start waits for the end when it says no time.
const DEFAULT_WAIT_MS: u64 = 30_000;
/// How long any request may wait: proxies cut longer ones.
pub(super) const MAX_WAIT_MS: u64 = 600_000;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Start {
    process_id: Option<String>,
    definition_key: Option<DefinitionKey>,
    version: Option<u32>,
    #[serde(default)]
    variables: Variables,
    business_key: Option<String>,
    tenant_id: Option<String>,
    #[serde(default)]
    await_completion: bool,
    request_timeout_ms: Option<u64>,
}

impl Start {
    fn definition(&self) -> Result<Definition, Problem> {
        let refuse = |detail: &str| Err(Problem::bad_request("invalid-request", detail));
        match (&self.process_id, self.definition_key, self.version) {
            (Some(id), None, None) => Ok(Definition::Latest(required("processId", id.clone())?)),
            (Some(id), None, Some(version)) => {
                Ok(Definition::Version(required("processId", id.clone())?, version))
            }
            (None, Some(key), None) => Ok(Definition::Key(key)),
            (None, Some(_), Some(_)) => {
                refuse("`version` goes with `processId`; a `definitionKey` has its version")
            }
            (Some(_), Some(_), _) => refuse("give `processId` or `definitionKey`, not both"),
            (None, None, _) => refuse("say what to start: `processId` or `definitionKey`"),
        }
    }
}

pub(super) async fn start(
    shell: Shell,
    Actor(actor): Actor,
    tenants: Tenants,
    Idempotency(idempotency_key): Idempotency,
    body::Body(start): body::Body<Start>,
) -> Result<Response, Problem> {
    let wait = milliseconds(
        "requestTimeoutMs",
        start.request_timeout_ms.unwrap_or(DEFAULT_WAIT_MS),
        1..=MAX_WAIT_MS,
    )?;
    let request = StartRequest {
        definition: start.definition()?,
        variables: start.variables,
        business_key: name("businessKey", start.business_key)?,
        tenant: tenants.one(name("tenantId", start.tenant_id)?)?,
        idempotency_key,
        await_completion: start.await_completion.then_some(wait),
        actor: actor.to_string(),
        source: Some(SOURCE),
    };
    let started = shell
        .0
        .start(request)
        .await
        .map_err(|error| shell.problem(error))?;
    let status = if started.accepted.is_some() {
        StatusCode::ACCEPTED
    } else {
        StatusCode::OK
    };
    Ok((status, Json(views::Started::of(started))).into_response())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Parameters {
    status: Option<String>,
    sub_status: Option<String>,
    process_id: Option<String>,
    definition_key: Option<DefinitionKey>,
    business_key: Option<String>,
    parent_key: Option<InstanceKey>,
    has_incident: Option<bool>,
    started_after: Option<Timestamp>,
    started_before: Option<Timestamp>,
    tenant_id: Option<String>,
    limit: Option<usize>,
    after: Option<String>,
}

/// Which instances: a list without its pages.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Filter {
    status: Option<String>,
    sub_status: Option<String>,
    process_id: Option<String>,
    definition_key: Option<DefinitionKey>,
    business_key: Option<String>,
    parent_key: Option<InstanceKey>,
    has_incident: Option<bool>,
    started_after: Option<Timestamp>,
    started_before: Option<Timestamp>,
    tenant_id: Option<String>,
}

impl Filter {
    /// As the runtime takes it; `None` when nothing can match.
    pub(super) fn read(self) -> Result<Option<InstanceFilter>, Problem> {
        let sub_statuses = sub_statuses(self.status.as_deref(), self.sub_status.as_deref())?;
        Ok(sub_statuses.map(|sub_statuses| InstanceFilter {
            sub_statuses,
            process_id: self.process_id,
            definition: self.definition_key,
            business_key: self.business_key,
            parent: self.parent_key,
            has_incident: self.has_incident,
            started_after: self.started_after,
            started_before: self.started_before,
            tenant: self.tenant_id,
        }))
    }
}

pub(super) async fn list(
    shell: Shell,
    tenants: Tenants,
    Query(query): Query<Parameters>,
) -> Result<Json<Value>, Problem> {
    let paging = Paging::of(query.limit, query.after.as_deref())?;
    let filter = Filter {
        status: query.status,
        sub_status: query.sub_status,
        process_id: query.process_id,
        definition_key: query.definition_key,
        business_key: query.business_key,
        parent_key: query.parent_key,
        has_incident: query.has_incident,
        started_after: query.started_after,
        started_before: query.started_before,
        tenant_id: None,
    };
    let tenant_id = query.tenant_id;
    let Some(filter) = filter.read()? else {
        return Ok(paging.answer(
            Vec::<InstanceRow>::new(),
            |row| row.key.get(),
            |row| views::instance(&row),
        ));
    };
    let fetch = |tenant| {
        let filter = InstanceFilter {
            tenant,
            ..filter.clone()
        };
        shell.0.instances(filter, paging.page())
    };
    let rows = tenants.rows(tenant_id, |row| row.key.get(), fetch).await;
    let rows = rows.map_err(|error| shell.problem(error))?;
    Ok(paging.answer(rows, |row| row.key.get(), |row| views::instance(&row)))
}

/// The sub-statuses that both filters let through: empty for no filter, `None` when nothing can match.
fn sub_statuses(status: Option<&str>, sub_status: Option<&str>) -> Result<Option<Vec<SubStatus>>, Problem> {
    if status.is_none() && sub_status.is_none() {
        return Ok(Some(Vec::new()));
    }
    let status = match status {
        None => None,
        Some("running") => Some(Status::Running),
        Some("finished" | "completed") => Some(Status::Finished),
        Some(_) => {
            return Err(Problem::bad_request(
                "invalid-query",
                "`status` must be `running` or `finished`",
            ));
        }
    };
    let mut allowed = SubStatus::ALL.to_vec();
    if let Some(words) = sub_status {
        allowed.clear();
        for word in words.split(',').map(str::trim) {
            allowed.push(SubStatus::from_word(word).ok_or_else(|| unknown_sub_status(word))?);
        }
    }
    allowed.retain(|sub_status| status.is_none_or(|status| sub_status.status() == status));
    Ok((!allowed.is_empty()).then_some(allowed))
}

fn unknown_sub_status(word: &str) -> Problem {
    let words: Vec<_> = SubStatus::ALL
        .iter()
        .map(|sub_status| sub_status.word())
        .collect();
    let word: String = word.chars().take(60).collect();
    Problem::bad_request(
        "invalid-query",
        format!("`subStatus` has no word `{word}`; there are {}", words.join(", ")),
    )
}

pub(super) async fn one(shell: Shell, Key(key): Key<InstanceKey>) -> Result<Json<Value>, Problem> {
    let detail = shell
        .0
        .instance(key)
        .await
        .map_err(|error| shell.problem(error))?;
    Ok(Json(views::instance_detail(&detail)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HistoryParameters {
    limit: Option<usize>,
    after: Option<String>,
}

pub(super) async fn history(
    shell: Shell,
    Key(key): Key<InstanceKey>,
    Query(query): Query<HistoryParameters>,
) -> Result<Json<Value>, Problem> {
    let paging = Paging::of(query.limit, query.after.as_deref())?;
    let after = paging.after().unwrap_or_default();
    let items = shell
        .0
        .history(key, after, paging.fetch())
        .await
        .map_err(|error| shell.problem(error))?;
    Ok(paging.answer(items, |item| item.sequence, |item| views::history_item(&item)))
}

pub(super) async fn variables(shell: Shell, Key(key): Key<InstanceKey>) -> Result<Json<Variables>, Problem> {
    let detail = shell
        .0
        .instance(key)
        .await
        .map_err(|error| shell.problem(error))?;
    Ok(Json(detail.variables))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_and_sub_status_filter_together() {
        let found = |status, sub_status| sub_statuses(status, sub_status).unwrap();
        assert_eq!(found(None, None), Some(vec![]));
        assert_eq!(found(Some("finished"), None).unwrap().len(), 3);
        assert_eq!(
            found(Some("running"), Some("held,faulted")),
            Some(vec![SubStatus::Held])
        );
        assert_eq!(found(Some("running"), Some("faulted")), None);
        assert!(sub_statuses(Some("gone"), None).is_err() && sub_statuses(None, Some("gone")).is_err());
    }
}
