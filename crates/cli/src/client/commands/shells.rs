//! The shells of a host, and the host as a whole.

use std::time::Duration;

use serde_json::{Value, json};

use super::admin::{Idle, pause_body, until_idle};
use super::{runtime, show};
use crate::args::{Call, Maintenance, Nothing, OneShell, OptionalShell, Pause};
use crate::client::http::{Client, Failure};
use crate::client::print::{cell, list};
use crate::terminal;

/// A reload drains, which may take its whole deadline.
const RELOAD: Duration = Duration::from_secs(3600);

pub async fn shells(call: Call<Nothing>) -> Result<(), Failure> {
    let answer = Client::new(&call.connection)?.get_of_host(&["shells"]).await?;
    let columns = [
        ("shell", "shellId"),
        ("state", "status"),
        ("live cycles", "activeExecutionCycleCount"),
        ("queue", "stimulusQueueDepth"),
        ("interrupted", "interruptedInstanceCount"),
        ("generation", "generationId"),
    ];
    show(call.connection.output, &answer, |value| list(value, columns))
}

pub async fn reload(call: Call<OptionalShell>) -> Result<(), Failure> {
    let client = Client::new(&call.connection)?;
    let path: Vec<&str> = match &call.request.id {
        Some(id) => vec!["shells", id, "reload"],
        None => vec!["shells", "reload"],
    };
    let answer = client.post_to_host(&path, &json!({}), RELOAD).await?;
    show(call.connection.output, &answer, |value| {
        let parts = value["shells"].as_array().map(Vec::as_slice).unwrap_or_default();
        terminal::table(
            ["shell", "outcome", "drain", "message"],
            parts.iter().map(|part| {
                [
                    cell(part, "shellId"),
                    cell(part, "outcome"),
                    cell(&part["drain"], "overallResult"),
                    cell(part, "message"),
                ]
            }),
        );
    })?;
    match answer.value["status"].as_str() {
        Some("Completed") => Ok(()),
        _ => Err(Failure::Other("not every shell was reloaded".to_owned())),
    }
}

pub async fn retire(call: Call<OneShell>) -> Result<(), Failure> {
    let path = ["shells", &call.request.id, "retire"];
    let answer = Client::new(&call.connection)?
        .post_to_host(&path, &json!({}), RELOAD)
        .await?;
    show(call.connection.output, &answer, |value| {
        terminal::line(&format!("{}: {}", cell(value, "shellId"), cell(value, "message")));
    })
}

pub async fn maintenance(command: Maintenance) -> Result<(), Failure> {
    match command {
        Maintenance::Enter(call) => enter(call).await,
        Maintenance::Leave(call) => {
            let client = Client::new(&call.connection)?;
            let done = each(&client, "resume", &json!({})).await?;
            finish(&call.connection, done)
        }
    }
}

async fn enter(call: Call<Pause>) -> Result<(), Failure> {
    let client = Client::new(&call.connection)?;
    let wait = &call.request.wait;
    let (waits, timeout) = (wait.wait, wait.timeout);
    let mut done = each(&client, "pause", &pause_body(&call.request)).await?;
    if waits {
        for (shell, result) in &mut done {
            if result.is_ok() {
                *result = until_idle(&client.of_shell(shell), shell, Idle { timeout })
                    .await
                    .map(|answer| answer.value);
            }
        }
    }
    finish(&call.connection, done)
}

type Done = Vec<(String, Result<Value, Failure>)>;

/// Does the same with every shell; one that fails does not keep the others from it.
async fn each(client: &Client, action: &str, body: &Value) -> Result<Done, Failure> {
    let shells = client.get_of_host(&["shells"]).await?;
    let mut done = Vec::new();
    for shell in shells.value["items"].as_array().into_iter().flatten() {
        let id = cell(shell, "shellId");
        let answer = client
            .of_shell(&id)
            .post(&runtime(action), body, Duration::ZERO)
            .await;
        done.push((id, answer.map(|answer| answer.value)));
    }
    Ok(done)
}

fn finish(connection: &crate::args::Connection, done: Done) -> Result<(), Failure> {
    let failed = done.iter().filter(|(_, result)| result.is_err()).count();
    let rows: Vec<Value> = done
        .iter()
        .map(|(shell, result)| match result {
            Ok(status) => json!({
                "shellId": shell,
                "reason": status["state"]["reason"],
                "activeExecutionCycleCount": status["activeExecutionCycleCount"],
                "error": null,
            }),
            Err(failure) => json!({
                "shellId": shell, "reason": null, "activeExecutionCycleCount": null, "error": failure.text(),
            }),
        })
        .collect();
    let all = json!({ "items": rows });
    match connection.output {
        crate::args::Output::Json => terminal::line(&all.to_string()),
        crate::args::Output::Table => list(
            &all,
            [
                ("shell", "shellId"),
                ("state", "reason"),
                ("live cycles", "activeExecutionCycleCount"),
                ("error", "error"),
            ],
        ),
    }
    if failed > 0 {
        return Err(Failure::Other(format!(
            "{failed} of {} shells failed",
            done.len()
        )));
    }
    Ok(())
}
