//! Runtime administration: status and the actions of an operator.

use axum::Json;
use serde::Deserialize;
use serde_json::{Value, json};
use tidegate::model::Timestamp;
use tidegate::plan::DrainPlan;
use tidegate::status::RuntimeStatus;

use super::seen::Seen;
use crate::auth::Tenants;
use crate::extract::{Actor, Name, Shell, reason, to_the_end};
use crate::{Problem, body};

/// How far an action reaches.
#[derive(Deserialize, Default, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Scope {
    #[default]
    Runtime,
    Cluster,
}

impl Scope {
    /// With one node, the cluster is this runtime; more than one is not served yet.
    fn check(self) -> Result<(), Problem> {
        match self {
            Self::Runtime => Ok(()),
            Self::Cluster => Err(Problem::bad_request(
                "scope-not-supported",
                "`scope` `cluster` needs a store that nodes share; this one has a single node: use `runtime`",
            )),
        }
    }
}

pub(super) async fn status(shell: Shell, tenants: Tenants) -> Result<Json<Seen>, Problem> {
    let status = shell.0.status().await;
    status
        .map(|status| Json(Seen::by(&tenants, status)))
        .map_err(|error| shell.problem(error))
}

pub(super) async fn drain_plan(shell: Shell) -> Json<DrainPlan> {
    Json(shell.0.drain_plan())
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub(super) struct Pause {
    reason: Option<String>,
    until: Option<Timestamp>,
    #[serde(default)]
    scope: Scope,
}

pub(super) async fn pause(
    shell: Shell,
    Actor(actor): Actor,
    body::Optional(pause): body::Optional<Pause>,
) -> Result<Json<RuntimeStatus>, Problem> {
    pause.scope.check()?;
    let reason = reason(pause.reason)?;
    let runtime = shell.0.clone();
    let status = to_the_end(async move { runtime.pause(reason, pause.until, &actor).await }).await?;
    status.map(Json).map_err(|error| shell.problem(error))
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub(super) struct Resume {
    #[serde(default)]
    scope: Scope,
}

pub(super) async fn resume(
    shell: Shell,
    Actor(actor): Actor,
    body::Optional(resume): body::Optional<Resume>,
) -> Result<Json<RuntimeStatus>, Problem> {
    resume.scope.check()?;
    let runtime = shell.0.clone();
    let status = to_the_end(async move { runtime.resume(&actor).await }).await?;
    status.map(Json).map_err(|error| shell.problem(error))
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub(super) struct ForceDrain {
    reason: Option<String>,
}

pub(super) async fn force_drain(
    shell: Shell,
    Actor(actor): Actor,
    body::Optional(force): body::Optional<ForceDrain>,
) -> Result<Json<Value>, Problem> {
    let reason = reason(force.reason)?;
    let runtime = shell.0.clone();
    let outcome = to_the_end(async move { runtime.force_drain(reason, &actor).await }).await?;
    outcome
        .map(|outcome| Json(json!({ "outcome": outcome })))
        .map_err(|error| shell.problem(error))
}

pub(super) async fn force_stop_source(
    shell: Shell,
    Actor(actor): Actor,
    Name(name): Name,
) -> Result<Json<RuntimeStatus>, Problem> {
    let runtime = shell.0.clone();
    let status = to_the_end(async move { runtime.force_stop_source(&name, &actor).await }).await?;
    status.map(Json).map_err(|error| shell.problem(error))
}
