//! Control of one instance: suspend, resume, cancel; and why it does not move.

use std::time::Duration;

use axum::Json;
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use tidegate::Error;
use tidegate::instance_control::{CancelRequest, SuspendRequest};
use tidegate::model::{HeldTimers, HoldScope, InstanceKey};
use tidegate::store::InstanceRow;
use tidegate::why::Why;

use super::instances::MAX_WAIT_MS;
use crate::extract::{Actor, Key, Shell, milliseconds, reason, to_the_end};
use crate::{Problem, body, views};

/// How long a cancel waits for the end when it says no time.
const DEFAULT_CANCEL_WAIT_MS: u64 = 5_000;
/// How long a suspension waits until nothing runs when it says no time.
const DEFAULT_SUSPEND_WAIT_MS: u64 = 1_000;
/// Time in which a request itself is made durable, also when the caller does not want to wait at all.
const LEAST_WAIT: Duration = Duration::from_millis(20);

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Suspend {
    reason: Option<String>,
    #[serde(default)]
    scope: HoldScope,
    timers: Option<HeldTimers>,
    #[serde(default)]
    now: bool,
    wait_ms: Option<u64>,
}

/// The hold stands when the wait is over, or when the caller hangs up.
pub(super) async fn suspend(
    shell: Shell,
    Actor(actor): Actor,
    Key(key): Key<InstanceKey>,
    body::Optional(suspend): body::Optional<Suspend>,
) -> Result<Json<Value>, Problem> {
    let request = SuspendRequest {
        reason: reason(suspend.reason)?,
        actor: actor.to_string(),
        scope: suspend.scope,
        timers: suspend.timers,
        now: suspend.now,
        wait: milliseconds(
            "waitMs",
            suspend.wait_ms.unwrap_or(DEFAULT_SUSPEND_WAIT_MS),
            0..=MAX_WAIT_MS,
        )?,
    };
    let runtime = shell.0.clone();
    let suspension = to_the_end(async move { runtime.suspend(key, request).await })
        .await?
        .map_err(|error| shell.problem(error))?;
    let mut view = views::instance(&suspension.row);
    view["suspension"] = json!({
        "scope": suspension.scope,
        "timers": suspension.timers,
        "isEffective": suspension.is_effective,
        "heldInstances": suspension.held_instances,
    });
    Ok(Json(view))
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Resume {
    reason: Option<String>,
    /// Taken for the sake of symmetry: letting go is never waited for.
    #[serde(rename = "waitMs")]
    _wait_ms: Option<u64>,
}

pub(super) async fn resume(
    shell: Shell,
    Actor(actor): Actor,
    Key(key): Key<InstanceKey>,
    body::Optional(resume): body::Optional<Resume>,
) -> Result<Json<Value>, Problem> {
    let reason = reason(resume.reason)?;
    let runtime = shell.0.clone();
    let row = to_the_end(async move { runtime.resume_instance(key, reason, &actor).await })
        .await?
        .map_err(|error| shell.problem(error))?;
    Ok(Json(views::instance(&row)))
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Cancel {
    reason: Option<String>,
    wait_ms: Option<u64>,
    /// How long handlers may take to stop before they are abandoned.
    patience_ms: Option<u64>,
    /// The same as a patience of 0.
    #[serde(default)]
    force: bool,
}

/// The request stands when the wait is over, or when the caller hangs up.
pub(super) async fn cancel(
    shell: Shell,
    Actor(actor): Actor,
    Key(key): Key<InstanceKey>,
    body::Optional(cancel): body::Optional<Cancel>,
) -> Result<Json<Value>, Problem> {
    let wait = milliseconds(
        "waitMs",
        cancel.wait_ms.unwrap_or(DEFAULT_CANCEL_WAIT_MS),
        0..=MAX_WAIT_MS,
    )?;
    let patience_ms = if cancel.force { Some(0) } else { cancel.patience_ms };
    let patience = patience_ms
        .map(|ms| milliseconds("patienceMs", ms, 0..=MAX_WAIT_MS))
        .transpose()?;
    let request = CancelRequest {
        reason: reason(cancel.reason)?,
        actor: actor.to_string(),
        wait,
        patience,
    };
    let runtime = shell.0.clone();
    let asked = to_the_end(async move { runtime.cancel_and_wait(key, request).await });
    match tokio::time::timeout(wait.max(LEAST_WAIT), asked).await {
        Ok(answer) => match answer? {
            Ok(row) => Ok(Json(views::instance(&row))),
            Err(Error::StillCancelling(row)) => Err(wait_over(&row)),
            Err(error) => Err(shell.problem(error)),
        },
        Err(_) => match shell.0.instance(key).await {
            Ok(detail) if detail.row.sub_status.is_finished() => Ok(Json(views::instance(&detail.row))),
            Ok(detail) => Err(wait_over(&detail.row)),
            Err(error) => Err(shell.problem(error)),
        },
    }
}

fn wait_over(row: &InstanceRow) -> Problem {
    let detail = format!(
        "instance {} has not stopped yet; the request to cancel stands",
        row.key
    );
    Problem::new(StatusCode::GATEWAY_TIMEOUT, "wait-ran-out", detail)
        .member("processInstance", views::instance(row))
}

pub(super) async fn why(shell: Shell, Key(key): Key<InstanceKey>) -> Result<Json<Why>, Problem> {
    let why = shell.0.why(key).await.map_err(|error| shell.problem(error))?;
    Ok(Json(why))
}
