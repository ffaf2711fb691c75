//! Health and metrics, outside the API's base.

use std::fmt::Write;

use axum::Json;
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::{Value, json};
use tidegate::Shell;
use tidegate::figures::Figure;

use crate::auth::{self, Needs, Permission, Reach, Tenancy};
use crate::extract::{Caller, KnownShell};
use crate::host::Stage;
use crate::{App, Problem};

/// The readiness check that a pause alone degrades.
const GATE_CHECK: &str = "gate";

/// The routes; readiness and liveness need no token, metrics do.
pub(crate) fn routes(app: &App) -> Router<App> {
    let needs = Needs {
        permission: Permission::RuntimeView,
        reach: Reach::Known,
        tenancy: Tenancy::Whole,
    };
    let guard = from_fn_with_state((app.clone(), needs), auth::check);
    Router::new()
        .route("/health/live", get(live))
        .route("/health/ready", get(ready))
        .route("/health/ready/{shell}", get(ready_of_shell))
        .route("/health/startup", get(startup))
        .route("/metrics", get(metrics).route_layer(guard))
}

/// Says only that this process answers.
async fn live() -> Json<Value> {
    Json(json!({ "status": "healthy" }))
}

async fn startup(State(app): State<App>) -> Response {
    match app.host.stage() {
        Stage::Starting => (
            StatusCode::SERVICE_UNAVAILABLE,
            Json(json!({ "status": "starting" })),
        )
            .into_response(),
        Stage::Started | Stage::Stopping | Stage::Closing => {
            Json(json!({ "status": "started" })).into_response()
        }
    }
}

/// The host and all its shells.
async fn ready(State(app): State<App>) -> Response {
    verdict(&app, &app.host.shells())
}

/// The host and one shell, for who sends to that one alone: its siblings may be paused or reloaded meanwhile.
async fn ready_of_shell(State(app): State<App>, KnownShell(shell): KnownShell) -> Response {
    verdict(&app, &[shell])
}

fn verdict(app: &App, shells: &[Shell]) -> Response {
    let mut checks = vec![host_check(app.host.stage())];
    checks.extend(
        shells
            .iter()
            .flat_map(|shell| checks_of(shell, app.options.ready_while_paused)),
    );
    let worst = ["unhealthy", "degraded"]
        .into_iter()
        .find(|grade| checks.iter().any(|check| check["grade"] == **grade))
        .unwrap_or("healthy");
    let status = if worst == "healthy" {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    (status, Json(json!({ "status": worst, "checks": checks }))).into_response()
}

fn checks_of(shell: &Shell, ready_while_paused: bool) -> Vec<Value> {
    let Some(runtime) = shell.runtime() else {
        let reason = "the shell has not started; the log has the cause";
        return vec![
            json!({ "name": "generation", "shell": shell.id(), "grade": "unhealthy", "reason": reason }),
        ];
    };
    let quiescence = runtime.quiescence();
    let excused = ready_while_paused && quiescence.is_paused() && !quiescence.is_draining();
    let checks = runtime.readiness().into_iter();
    checks
        .map(|check| {
            let grade = grade(&check);
            let is_excused = excused && check.name == GATE_CHECK;
            json!({
                "name": check.name,
                "shell": shell.id(),
                "grade": if is_excused { "healthy" } else { grade },
                "reason": check.reason,
            })
        })
        .collect()
}

fn host_check(stage: Stage) -> Value {
    let (grade, reason) = match stage {
        Stage::Starting => ("degraded", Some("starting")),
        Stage::Started => ("healthy", None),
        Stage::Stopping | Stage::Closing => ("degraded", Some("draining")),
    };
    json!({ "name": "host", "shell": null, "grade": grade, "reason": reason })
}

fn grade(check: &tidegate::Check) -> &'static str {
    match check.grade {
        tidegate::Grade::Healthy => "healthy",
        tidegate::Grade::Degraded => "degraded",
        tidegate::Grade::Unhealthy => "unhealthy",
    }
}

async fn metrics(State(app): State<App>, Caller(caller): Caller) -> Result<Response, Problem> {
    let mut text = String::new();
    let families = [
        ("tidegate_accepting", "1 while new work is admitted."),
        ("tidegate_live_cycles", "Execution cycles under way."),
        ("tidegate_stimulus_queue_depth", "Accepted stimuli that wait."),
        (
            "tidegate_interrupted_instances",
            "Instances that were cut and have not been resumed yet.",
        ),
    ];
    let (mut shells, mut figures) = (Vec::new(), Vec::new());
    let known = app.host.runtimes().into_iter();
    for (shell, runtime) in known.filter(|(shell, _)| caller.knows(shell.id())) {
        let quiescence = runtime.quiescence();
        // A store that cannot be read leaves out what only the store knows.
        let status = runtime.status().await.ok();
        let counts = runtime.counts().await.ok();
        let values = [
            Some(u64::from(quiescence.is_accepting())),
            Some(quiescence.live()),
            status.as_ref().map(|status| status.stimulus_queue.depth),
            status.as_ref().map(|status| status.interrupted_instance_count),
        ];
        figures.push((shell.id().to_owned(), runtime.figures()));
        shells.push((shell.id().to_owned(), values, counts));
    }
    for (position, (name, help)) in families.into_iter().enumerate() {
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge");
        for (shell, values, _) in &shells {
            if let Some(value) = values[position] {
                let _ = writeln!(text, "{name}{{shell=\"{shell}\"}} {value}");
            }
        }
    }
    let _ = writeln!(
        text,
        "# HELP tidegate_instances Instances by sub-status.\n# TYPE tidegate_instances gauge"
    );
    for (shell, _, counts) in &shells {
        for (sub_status, count) in tidegate::model::SubStatus::ALL
            .iter()
            .zip(counts.iter().flatten())
        {
            let word = sub_status.word();
            let _ = writeln!(
                text,
                "tidegate_instances{{shell=\"{shell}\",sub_status=\"{word}\"}} {count}"
            );
        }
    }
    write_figures(&mut text, &figures);
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    Ok(([(header::CONTENT_TYPE, kind)], text).into_response())
}

/// What each runtime counts, one family after the other. Shells are named in the configuration, labels in the source.
fn write_figures(text: &mut String, shells: &[(String, Vec<Figure>)]) {
    let Some((_, first)) = shells.first() else { return };
    let mut told = None;
    for (position, family) in first.iter().enumerate() {
        let Figure { name, help, kind, .. } = family;
        if told != Some(name) {
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {}", kind.word());
            told = Some(name);
        }
        for (shell, figures) in shells {
            let Some(figure) = figures.get(position) else {
                continue;
            };
            let label = figure.label.map(|(label, value)| format!(",{label}=\"{value}\""));
            let label = label.unwrap_or_default();
            let _ = writeln!(text, "{name}{{shell=\"{shell}\"{label}}} {}", figure.value);
        }
    }
}
