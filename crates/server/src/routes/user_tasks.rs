//! User tasks.

use axum::Json;
use axum::http::StatusCode;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};
use tidegate::model::{ElementInstanceKey, InstanceKey, Variables};
use tidegate::store::UserTaskFilter;

use crate::auth::Tenants;
use crate::cursor::Paging;
use crate::extract::{Actor, Key, Query, Shell, name};
use crate::{Problem, body, views};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Parameters {
    instance_key: Option<InstanceKey>,
    assignee: Option<String>,
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
    let filter = UserTaskFilter {
        instance: query.instance_key,
        assignee: query.assignee,
        tenant: None,
    };
    let fetch = |tenant| {
        let filter = UserTaskFilter {
            tenant,
            ..filter.clone()
        };
        shell.0.user_tasks(filter, paging.page())
    };
    let rows = tenants.rows(query.tenant_id, |row| row.key.get(), fetch).await;
    let rows = rows.map_err(|error| shell.problem(error))?;
    Ok(paging.answer(rows, |row| row.key.get(), |row| views::user_task(&row)))
}

/// `assignee` left out means the caller; `null` gives the task back.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub(super) struct Claim {
    #[serde(default, deserialize_with = "present")]
    assignee: Option<Option<String>>,
}

fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<String>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

pub(super) async fn claim(
    shell: Shell,
    Actor(actor): Actor,
    Key(key): Key<ElementInstanceKey>,
    body::Optional(claim): body::Optional<Claim>,
) -> Result<Json<Value>, Problem> {
    let assignee = name(
        "assignee",
        claim.assignee.unwrap_or_else(|| Some(actor.to_string())),
    )?;
    let claimed = shell.0.claim_user_task(key, assignee.clone(), &actor).await;
    claimed.map_err(|error| shell.problem(error))?;
    Ok(Json(json!({ "userTaskKey": key, "assignee": assignee })))
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub(super) struct Complete {
    #[serde(default)]
    variables: Variables,
}

pub(super) async fn complete(
    shell: Shell,
    Actor(actor): Actor,
    Key(key): Key<ElementInstanceKey>,
    body::Optional(complete): body::Optional<Complete>,
) -> Result<(StatusCode, Json<Value>), Problem> {
    let acceptance = shell.0.complete_user_task(key, complete.variables, &actor).await;
    acceptance
        .map(|acceptance| views::acceptance(acceptance, None))
        .map_err(|error| shell.problem(error))
}
