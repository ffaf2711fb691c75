//! The shells of this host: looked at, reloaded, retired.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use futures_util::future::join_all;
use serde::Serialize;
use serde_json::{Value, json};
use tidegate::clock::{Clock, SystemClock};
use tidegate::gate::Quiescence;
use tidegate::model::Timestamp;
use tidegate::shell::{Shell, ShellError};
use tidegate::status::DrainOutcome;

use crate::auth::Tenants;
use crate::extract::{Actor, Caller, KnownShell, to_the_end};
use crate::host::{DEFAULT_SHELL, Host};
use crate::{App, Problem};

/// What is counted of a shell that can be read.
const COUNTS: [&str; 4] = [
    "generationId",
    "activeExecutionCycleCount",
    "stimulusQueueDepth",
    "interruptedInstanceCount",
];

/// What is counted of all tenants, and not told to who is bound to some.
const OF_ALL_TENANTS: [&str; 3] = [
    "activeExecutionCycleCount",
    "stimulusQueueDepth",
    "interruptedInstanceCount",
];

pub(super) async fn list(State(app): State<App>, Caller(caller): Caller, tenants: Tenants) -> Json<Value> {
    let shells = app.host.shells().into_iter();
    let known = shells.filter(|shell| caller.knows(shell.id()));
    let mut items = join_all(known.map(view)).await;
    if tenants.is_bound() {
        for item in &mut items {
            for name in OF_ALL_TENANTS {
                item[name] = Value::Null;
            }
        }
    }
    Json(json!({ "items": items, "next": null }))
}

async fn view(shell: Shell) -> Value {
    let runtime = shell.runtime();
    // A shell whose store cannot be read is listed all the same.
    let status = match &runtime {
        Some(runtime) => runtime.status().await.ok(),
        None => None,
    };
    let chip = match (&runtime, &status) {
        (Some(runtime), Some(_)) => chip(runtime.quiescence()),
        _ => "Unavailable",
    };
    let mut item = json!({ "shellId": shell.id(), "status": chip });
    let counts = status.map(|status| {
        [
            json!(status.state.generation_id),
            json!(status.active_execution_cycle_count),
            json!(status.stimulus_queue.depth),
            json!(status.interrupted_instance_count),
        ]
    });
    for (name, value) in COUNTS.into_iter().zip(counts.unwrap_or_default()) {
        item[name] = value;
    }
    item
}

/// The word for an operator's chip.
fn chip(quiescence: Quiescence) -> &'static str {
    match (quiescence.is_draining(), quiescence.is_paused()) {
        (true, _) => "Draining",
        (false, true) => "Paused",
        (false, false) => "AcceptingWork",
    }
}

/// What became of one shell in a reload.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Part {
    shell_id: String,
    outcome: &'static str,
    requested: bool,
    message: Option<String>,
    /// What is wrong with the configuration: keys and messages.
    errors: Vec<Value>,
    drain: Option<DrainOutcome>,
}

/// The answer to a reload.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    status: &'static str,
    requested_shell_id: Option<String>,
    reloaded_at: Timestamp,
    shells: Vec<Part>,
    /// The code of a problem, and what happened, where the answer is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
}

impl Answer {
    fn with(self, status: StatusCode) -> Response {
        (status, Json(self)).into_response()
    }
}

/// Wrong configuration of the whole host, by its one name on the wire.
const INVALID: &str = "invalid-configuration";

fn part(shell: &str, requested: bool, result: Result<Option<DrainOutcome>, ShellError>) -> Part {
    let outcome = match &result {
        Ok(_) => "Reloaded",
        Err(ShellError::Busy) => "Busy",
        Err(ShellError::Invalid(_)) => "InvalidConfiguration",
        Err(ShellError::Retired) => "NotFound",
        Err(
            ShellError::Store(_) | ShellError::NotStarted { .. } | ShellError::Stopping | ShellError::Failed,
        ) => "Failed",
    };
    let message = result.as_ref().err().map(ToString::to_string);
    let errors = match &result {
        Err(ShellError::Invalid(wrong)) => wrong
            .iter()
            .map(|(key, message)| json!({ "key": key, "message": message }))
            .collect(),
        _ => Vec::new(),
    };
    let drain = match result {
        Ok(drain) => drain,
        Err(ShellError::NotStarted { drain, .. }) => drain.map(|drain| *drain),
        Err(_) => None,
    };
    Part {
        shell_id: shell.to_owned(),
        outcome,
        requested,
        message,
        errors,
        drain,
    }
}

async fn reload_one(shell: &Shell, requested: bool, actor: &str) -> Part {
    let result = shell.reload(actor).await;
    match &result {
        Ok(reloaded) => {
            tracing::info!(
                shell = shell.id(),
                generation = reloaded.runtime.generation(),
                actor,
                "reloaded"
            );
        }
        Err(error) => tracing::warn!(shell = shell.id(), actor, "not reloaded: {error}"),
    }
    part(shell.id(), requested, result.map(|reloaded| reloaded.drain))
}

pub(super) async fn reload(
    State(app): State<App>,
    Actor(actor): Actor,
    shell: Result<KnownShell, Problem>,
    axum::extract::Path(name): axum::extract::Path<String>,
) -> Result<Response, Problem> {
    let answer = |status, parts: Vec<Part>, code: Option<&'static str>| Answer {
        status,
        detail: code.map(|_| {
            let message = parts.first().and_then(|part| part.message.clone());
            message.unwrap_or_else(|| Problem::no_shell(&name).detail().to_owned())
        }),
        requested_shell_id: Some(name.to_ascii_lowercase()),
        reloaded_at: SystemClock.now(),
        shells: parts,
        code,
    };
    let Ok(KnownShell(shell)) = shell else {
        return match shell {
            Err(problem) if problem.status() != StatusCode::NOT_FOUND => Err(problem),
            _ => Ok(answer("NotFound", Vec::new(), Some("shell-not-found")).with(StatusCode::NOT_FOUND)),
        };
    };
    let _ = app;
    let part = to_the_end(async move { reload_one(&shell, true, &actor).await }).await?;
    let (status, code, http) = match part.outcome {
        "Reloaded" => ("Completed", None, StatusCode::OK),
        "Busy" => ("Busy", Some("shell-busy"), StatusCode::CONFLICT),
        "InvalidConfiguration" => (
            "RequestedShellFailed",
            Some(INVALID),
            StatusCode::UNPROCESSABLE_ENTITY,
        ),
        "NotFound" => ("NotFound", Some("shell-not-found"), StatusCode::NOT_FOUND),
        _ => (
            "RequestedShellFailed",
            Some("reload-failed"),
            StatusCode::SERVICE_UNAVAILABLE,
        ),
    };
    Ok(answer(status, vec![part], code).with(http))
}

/// Reloads every shell, each for itself: one that fails keeps its last valid configuration.
pub(super) async fn reload_all(State(app): State<App>, Actor(actor): Actor) -> Result<Response, Problem> {
    let report = to_the_end(async move { everything(&app.host, &actor).await }).await?;
    let http = match report.status {
        "Completed" => StatusCode::OK,
        "Busy" => StatusCode::CONFLICT,
        _ => StatusCode::MULTI_STATUS,
    };
    Ok(report.with(http))
}

async fn everything(host: &Host, actor: &str) -> Answer {
    let refreshed = {
        let host = host.clone();
        tokio::task::spawn_blocking(move || host.refresh()).await
    };
    let shells = host.shells();
    let parts = match refreshed {
        Ok(Ok(())) => join_all(shells.iter().map(|shell| reload_one(shell, false, actor))).await,
        Ok(Err(wrong)) => {
            let refused = |shell: &Shell| part(shell.id(), false, Err(ShellError::Invalid(wrong.clone())));
            shells.iter().map(refused).collect()
        }
        Err(_) => shells
            .iter()
            .map(|shell| part(shell.id(), false, Err(ShellError::Failed)))
            .collect(),
    };
    let all = |outcome: &str| parts.iter().all(|part| part.outcome == outcome);
    let (status, code) = match () {
        () if all("Reloaded") => ("Completed", None),
        () if all("Busy") => ("Busy", Some("shell-busy")),
        () if parts.iter().any(|part| part.outcome == "Reloaded") => ("Partial", None),
        () => ("Failed", None),
    };
    Answer {
        status,
        requested_shell_id: None,
        detail: code.map(|_| ShellError::Busy.to_string()),
        reloaded_at: SystemClock.now(),
        shells: parts,
        code,
    }
}

/// Reloads every shell, as the route does, and gives what the route answers.
pub(crate) async fn reload_everything(host: &Host, actor: &str) -> Value {
    serde_json::to_value(everything(host, actor).await).unwrap_or_default()
}

pub(super) async fn retire(
    State(app): State<App>,
    Actor(actor): Actor,
    KnownShell(shell): KnownShell,
) -> Result<Json<Value>, Problem> {
    if shell.id() == DEFAULT_SHELL {
        let detail =
            "a host has at least the shell `default`, which ends with the host; stop the server instead";
        return Err(Problem::new(StatusCode::CONFLICT, "default-shell", detail));
    }
    let host = app.host.clone();
    let (id, retired) = to_the_end(async move {
        let retired = shell.retire(&actor).await;
        if retired.is_ok() {
            host.remove(shell.id());
        }
        (shell.id().to_owned(), retired)
    })
    .await?;
    match retired {
        Ok(drain) => {
            let message = if drain.is_some() {
                "drained and removed"
            } else {
                "it never ran: there was nothing to drain"
            };
            Ok(Json(
                json!({ "shellId": id, "outcome": "Retired", "message": message, "drain": drain }),
            ))
        }
        Err(error @ ShellError::Busy) => Err(Problem::new(
            StatusCode::CONFLICT,
            "shell-busy",
            error.to_string(),
        )),
        Err(error) => {
            tracing::error!(shell = id, "the shell could not be retired: {error}");
            Err(Problem::internal())
        }
    }
}
