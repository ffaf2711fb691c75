//! Runtime administration.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::{body, runtime, show};
use crate::args::{Call, Pause, Reason};
use crate::client::http::{Answer, Client, Failure};
use crate::client::print::{cell, fields};
use crate::terminal;

pub async fn pause(call: Call<Pause>) -> Result<(), Failure> {
    let client = Client::new(&call.connection)?;
    let mut answer = client
        .post(&runtime("pause"), &pause_body(&call.request), Duration::ZERO)
        .await?;
    let wait = call.request.wait;
    if wait.wait {
        let shell = call.connection.shell.as_deref().unwrap_or("default");
        answer = until_idle(
            &client,
            shell,
            Idle {
                timeout: wait.timeout,
            },
        )
        .await?;
    }
    show(call.connection.output, &answer, status)
}

/// The plan of a drain, and what is said of the reserve.
pub fn drain_plan(plan: &Value) {
    let steps = plan["steps"].as_array().into_iter().flatten();
    let rows = steps.map(|step| [cell(step, "name"), cell(step, "untilMs"), cell(step, "what")]);
    terminal::table(["step", "until ms", "what"], rows);
    let reserve = &plan["reserve"];
    let kept = cell(reserve, "keptMs");
    terminal::line(&match reserve["isEnough"].as_bool() {
        Some(is_enough) => format!(
            "Saving the outcomes of {} live cycles takes about {} ms as measured; {kept} ms are kept for it: {}.",
            cell(reserve, "liveCycles"),
            cell(reserve, "expectedMs"),
            if is_enough {
                "enough"
            } else {
                "make `persist-reserve` larger"
            }
        ),
        None => format!(
            "{kept} ms are kept for saving outcomes; nothing has been committed yet to measure it by."
        ),
    });
}

/// What a pause asks for.
pub fn pause_body(pause: &Pause) -> Value {
    body([
        ("reason", pause.reason.clone().map(Value::from)),
        ("until", pause.until.clone().map(Value::from)),
    ])
}

/// How to wait until nothing runs.
#[derive(Clone, Copy)]
pub struct Idle {
    /// At most this long; without end if none.
    pub timeout: Option<Duration>,
}

/// How often the status is looked at while waiting.
const LOOK: Duration = Duration::from_millis(200);

/// Waits until no cycle is live, tells how many are at each change, and gives the status then.
pub async fn until_idle(client: &Client, shell: &str, idle: Idle) -> Result<Answer, Failure> {
    let began = Instant::now();
    let mut told = None;
    loop {
        let answer = client.get(&runtime("status"), &[]).await?;
        let live = answer.value["activeExecutionCycleCount"].as_u64();
        if live == Some(0) {
            if told.is_some() {
                terminal::error_line(&format!(
                    "{shell}: nothing runs any more ({:.1?})",
                    began.elapsed()
                ));
            }
            return Ok(answer);
        }
        if answer.value["state"]["isAcceptingNewWork"] == true {
            return Err(Failure::Other(format!(
                "{shell}: somebody resumed it; it takes new work again"
            )));
        }
        if told != live {
            let live = live.unwrap_or_default();
            terminal::error_line(&format!(
                "{shell}: {live} cycles run still ({:.1?})",
                began.elapsed()
            ));
        }
        told = live;
        if idle.timeout.is_some_and(|timeout| began.elapsed() >= timeout) {
            let live = live.unwrap_or_default();
            return Err(Failure::Other(format!(
                "{shell}: {live} cycles run still; the pause stands"
            )));
        }
        tokio::time::sleep(LOOK).await;
    }
}

pub async fn force_drain(call: Call<Reason>) -> Result<(), Failure> {
    let request_body = body([("reason", call.request.reason.map(Value::from))]);
    let answer = Client::new(&call.connection)?
        .post(&runtime("force-drain"), &request_body, Duration::ZERO)
        .await?;
    show(call.connection.output, &answer, |value| {
        let columns = [
            ("result", "overallResult"),
            ("completed", "executionCyclesCompletedCount"),
            ("cut", "executionCyclesForceCancelledCount"),
            ("abandoned", "executionCyclesAbandonedCount"),
            ("not saved", "persistenceFailureCount"),
        ];
        fields(&value["outcome"], columns);
        for cycle in value["outcome"]["cycles"].as_array().into_iter().flatten() {
            terminal::line(&format!(
                "  {} in {}: {}",
                cell(cycle, "instanceId"),
                cell(cycle, "activity"),
                cell(cycle, "fate")
            ));
        }
    })
}

/// A Status.
pub fn status(value: &Value) {
    let state = &value["state"];
    let is_draining = state["reason"]
        .as_str()
        .is_some_and(|reason| reason.contains("Drain"));
    let word = match (state["isAcceptingNewWork"].as_bool(), is_draining) {
        (Some(true), _) => "accepting work",
        (Some(false), true) => "draining",
        (Some(false), false) => "paused",
        (None, _) => "unavailable",
    };
    terminal::line(&format!("{:<14}{word}", "state"));
    for (heading, name) in [
        ("paused at", "pausedAt"),
        ("until", "pausedUntil"),
        ("reason", "pauseReasonText"),
        ("by", "pauseRequestedBy"),
        ("drain since", "drainStartedAt"),
        ("deadline", "drainDeadlineAt"),
    ] {
        if !state[name].is_null() {
            terminal::line(&terminal::printable(&format!(
                "{heading:<14}{}",
                cell(state, name)
            )));
        }
    }
    terminal::line(&format!(
        "{:<14}{}",
        "live cycles",
        cell(value, "activeExecutionCycleCount")
    ));
    terminal::line(&format!(
        "{:<14}{}",
        "queue",
        cell(&value["stimulusQueue"], "depth")
    ));
    terminal::line(&format!(
        "{:<14}{}",
        "interrupted",
        cell(value, "interruptedInstanceCount")
    ));
    sources(value);
}

/// The sources of a Status.
pub fn sources(value: &Value) {
    let sources = value["sources"].as_array().map(Vec::as_slice).unwrap_or_default();
    terminal::table(
        ["source", "state", "since", "error kind", "error"],
        sources.iter().map(|source| {
            [
                cell(source, "name"),
                cell(source, "state"),
                cell(source, "lastTransitionAt"),
                cell(source, "lastErrorKind"),
                cell(source, "lastError"),
            ]
        }),
    );
}
