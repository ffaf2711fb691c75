//! Runtime administration.

use std::time::Duration;

use serde_json::Value;

use super::{body, runtime, show};
use crate::args::{Call, Pause, Reason};
use crate::client::http::{Client, Failure};
use crate::client::print::{cell, fields};
use crate::terminal;

pub async fn pause(call: Call<Pause>) -> Result<(), Failure> {
    let request_body = body([
        ("reason", call.request.reason.map(Value::from)),
        ("until", call.request.until.map(Value::from)),
    ]);
    let answer = Client::new(&call.connection)?
        .post(&runtime("pause"), &request_body, Duration::ZERO)
        .await?;
    show(call.connection.output, &answer, status)
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
    let sources = value["sources"].as_array().map(Vec::as_slice).unwrap_or_default();
    terminal::table(
        ["source", "state", "error"],
        sources.iter().map(|source| {
            [
                cell(source, "name"),
                cell(source, "state"),
                cell(source, "lastError"),
            ]
        }),
    );
}
