//! The commands, each with the request it makes.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::http::{Answer, Client, Failure, print_diagnostics};
use super::print::{cell, fields, list, text};
use crate::args::{
    Call, Cancel, ClientCommand, CompleteTask, Deploy, Instances, KeyOnly, Message, Output, Pause, Reason,
    Retry, Start,
};
use crate::terminal;

const RUNTIME: [&str; 2] = ["admin", "workflow-runtime"];
/// Rows of a page of history.
const PAGE: usize = 1000;

/// Runs one command.
pub async fn run(command: ClientCommand) -> Result<(), Failure> {
    match command {
        ClientCommand::Deploy(call) => deploy(call).await,
        ClientCommand::Start(call) => start(call).await,
        ClientCommand::Instances(call) => instances(call).await,
        ClientCommand::Instance(call) => instance(call).await,
        ClientCommand::History(call) => history(call).await,
        ClientCommand::Cancel(call) => cancel(call).await,
        ClientCommand::Message(call) => message(call).await,
        ClientCommand::Definitions(call) => {
            let answer = Client::new(&call.connection)?
                .get(&["process-definitions"], &[])
                .await?;
            let columns = [
                ("definition", "definitionKey"),
                ("process", "processId"),
                ("version", "version"),
                ("name", "name"),
                ("resource", "resource"),
                ("deployed", "deployedAt"),
            ];
            show(call.connection.output, &answer, |value| list(value, columns))
        }
        ClientCommand::Incidents(call) => {
            let answer = Client::new(&call.connection)?.get(&["incidents"], &[]).await?;
            let columns = [
                ("incident", "incidentKey"),
                ("instance", "instanceKey"),
                ("process", "processId"),
                ("element", "elementId"),
                ("code", "code"),
                ("raised", "raisedAt"),
                ("message", "message"),
            ];
            show(call.connection.output, &answer, |value| list(value, columns))
        }
        ClientCommand::Retry(call) => retry(call).await,
        ClientCommand::Tasks(call) => {
            let answer = Client::new(&call.connection)?.get(&["user-tasks"], &[]).await?;
            let columns = [
                ("task", "userTaskKey"),
                ("instance", "instanceKey"),
                ("process", "processId"),
                ("element", "elementId"),
                ("name", "name"),
                ("assignee", "assignee"),
                ("created", "createdAt"),
            ];
            show(call.connection.output, &answer, |value| list(value, columns))
        }
        ClientCommand::CompleteTask(call) => complete_task(call).await,
        ClientCommand::Status(call) => {
            let answer = Client::new(&call.connection)?
                .get(&runtime("status"), &[])
                .await?;
            show(call.connection.output, &answer, status)
        }
        ClientCommand::Pause(call) => pause(call).await,
        ClientCommand::Resume(call) => {
            let answer = Client::new(&call.connection)?
                .post(&runtime("resume"), &json!({}), Duration::ZERO)
                .await?;
            show(call.connection.output, &answer, status)
        }
        ClientCommand::ForceDrain(call) => force_drain(call).await,
    }
}

fn runtime(action: &str) -> [&str; 3] {
    [RUNTIME[0], RUNTIME[1], action]
}

fn show(output: Output, answer: &Answer, table: impl FnOnce(&Value)) -> Result<(), Failure> {
    match output {
        Output::Json => terminal::line(&answer.text),
        Output::Table => table(&answer.value),
    }
    Ok(())
}

/// A body of what was given.
fn body<const N: usize>(members: [(&str, Option<Value>); N]) -> Value {
    let given = members
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(given.collect())
}

fn variables(given: Vec<(String, Value)>) -> Option<Value> {
    (!given.is_empty()).then(|| Value::Object(given.into_iter().collect::<Map<_, _>>()))
}

async fn deploy(call: Call<Deploy>) -> Result<(), Failure> {
    let client = Client::new(&call.connection)?;
    let files = names(&call.request.files);
    let mut form = reqwest::multipart::Form::new();
    for (name, path) in &files {
        let bytes = std::fs::read(path);
        let bytes = bytes.map_err(|error| Failure::Other(format!("`{path}` cannot be read: {error}")))?;
        form = form.part(
            "resources",
            reqwest::multipart::Part::bytes(bytes).file_name(name.clone()),
        );
    }
    let mut answer = client
        .upload(&["deployments"], form)
        .await
        .map_err(|failure| match failure {
            Failure::Problem(mut problem) => {
                lead_to_files(&mut problem["diagnostics"], &files);
                Failure::Problem(problem)
            }
            other => other,
        })?;
    lead_to_files(&mut answer.value["warnings"], &files);
    print_diagnostics(&answer.value["warnings"]);
    show(call.connection.output, &answer, |value| {
        let definitions = json!({ "items": value["definitions"], "next": null });
        let columns = [
            ("process", "processId"),
            ("version", "version"),
            ("definition", "definitionKey"),
            ("name", "name"),
        ];
        list(&definitions, columns);
    })
}

/// Each file's name on the server, which need not know where it lies here, and its path. Two files of one name
/// keep their paths.
fn names(files: &[std::path::PathBuf]) -> Vec<(String, String)> {
    let plain = |path: &std::path::Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    let named = files.iter().map(|path| {
        let whole = path.display().to_string();
        let is_alone = files.iter().filter(|other| plain(other) == plain(path)).count() == 1;
        (
            plain(path).filter(|_| is_alone).unwrap_or_else(|| whole.clone()),
            whole,
        )
    });
    named.collect()
}

/// Puts the paths into diagnostics, so that an editor can follow them.
fn lead_to_files(diagnostics: &mut Value, files: &[(String, String)]) {
    for diagnostic in diagnostics.as_array_mut().into_iter().flatten() {
        let found = files
            .iter()
            .find(|(name, _)| diagnostic["resource"] == name.as_str());
        if let Some((_, path)) = found {
            diagnostic["resource"] = path.as_str().into();
        }
    }
}

async fn start(call: Call<Start>) -> Result<(), Failure> {
    let request = call.request;
    let request_body = body([
        ("processId", Some(request.process_id.into())),
        ("version", request.version_number.map(Value::from)),
        ("variables", variables(request.variables)),
        ("businessKey", request.business_key.map(Value::from)),
        ("awaitCompletion", request.wait.then_some(Value::from(true))),
        (
            "requestTimeoutMs",
            request.wait.then(|| milliseconds(request.timeout)),
        ),
    ]);
    let client = Client::new(&call.connection)?;
    let answer = client
        .post(&["process-instances"], &request_body, request.timeout)
        .await?;
    show(call.connection.output, &answer, |value| {
        fields(
            value,
            [
                ("instance", "instanceKey"),
                ("process", "processId"),
                ("version", "version"),
                ("status", "status"),
                ("sub-status", "subStatus"),
            ],
        );
        if value["accepted"] == true {
            terminal::line("accepted: it is durable and runs when the runtime takes new work again");
        }
        if !value["variables"].is_null() {
            terminal::line(&terminal::printable(&format!(
                "variables     {}",
                value["variables"]
            )));
        }
    })
}

fn milliseconds(duration: Duration) -> Value {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX).into()
}

async fn instances(call: Call<Instances>) -> Result<(), Failure> {
    let request = call.request;
    let mut query = vec![("limit", request.limit.to_string())];
    let given = [
        ("status", request.status),
        ("subStatus", request.sub_status),
        ("processId", request.process_id),
        ("businessKey", request.business_key),
        ("hasIncident", request.has_incident.then(|| "true".to_owned())),
    ];
    query.extend(given.into_iter().filter_map(|(name, value)| Some((name, value?))));
    let answer = Client::new(&call.connection)?
        .get(&["process-instances"], &query)
        .await?;
    let columns = [
        ("instance", "instanceKey"),
        ("process", "processId"),
        ("version", "version"),
        ("status", "status"),
        ("sub-status", "subStatus"),
        ("incidents", "incidentCount"),
        ("business key", "businessKey"),
        ("started", "startedAt"),
        ("ended", "endedAt"),
    ];
    show(call.connection.output, &answer, |value| list(value, columns))
}

async fn instance(call: Call<KeyOnly>) -> Result<(), Failure> {
    let answer = Client::new(&call.connection)?
        .get(&["process-instances", &call.request.key], &[])
        .await?;
    show(call.connection.output, &answer, |value| {
        instance_fields(value);
        for token in value["tokens"].as_array().into_iter().flatten() {
            terminal::line(&terminal::printable(&format!(
                "at            {} ({})",
                cell(token, "elementId"),
                cell(token, "state")
            )));
        }
        for wait in value["waitingFor"].as_array().into_iter().flatten() {
            let line = format!(
                "waits for     {} {} in {}",
                cell(wait, "kind"),
                cell(wait, "detail"),
                cell(wait, "elementId")
            );
            terminal::line(&terminal::printable(&line));
        }
    })
}

fn instance_fields(value: &Value) {
    fields(
        value,
        [
            ("instance", "instanceKey"),
            ("process", "processId"),
            ("version", "version"),
            ("status", "status"),
            ("sub-status", "subStatus"),
            ("business key", "businessKey"),
            ("incidents", "incidentCount"),
            ("started", "startedAt"),
            ("ended", "endedAt"),
        ],
    );
}

async fn history(call: Call<KeyOnly>) -> Result<(), Failure> {
    let client = Client::new(&call.connection)?;
    let path = ["process-instances", &call.request.key, "history"];
    let mut query = vec![("limit", PAGE.to_string())];
    let mut answer = client.get(&path, &query).await?;
    let mut is_whole = true;
    while let Some(next) = answer.value["next"].as_str().map(str::to_owned) {
        is_whole = false;
        query.truncate(1);
        query.push(("after", next));
        let mut page = client.get(&path, &query).await?;
        if let (Some(all), Some(more)) = (
            answer.value["items"].as_array_mut(),
            page.value["items"].as_array_mut(),
        ) {
            all.append(more);
        }
        answer.value["next"] = page.value["next"].take();
    }
    if !is_whole {
        answer.text = answer.value.to_string();
    }
    let columns = [
        ("#", "sequence"),
        ("time", "time"),
        ("event", "event"),
        ("element", "elementId"),
        ("payload", "payload"),
    ];
    show(call.connection.output, &answer, |value| list(value, columns))
}

async fn cancel(call: Call<Cancel>) -> Result<(), Failure> {
    let request_body = body([("reason", call.request.reason.map(Value::from))]);
    let path = ["process-instances", &call.request.key, "cancel"];
    let answer = Client::new(&call.connection)?
        .post(&path, &request_body, Duration::ZERO)
        .await?;
    show(call.connection.output, &answer, instance_fields)
}

async fn message(call: Call<Message>) -> Result<(), Failure> {
    let request = call.request;
    let request_body = body([
        ("name", Some(request.name.into())),
        ("correlationKey", request.correlation_key.map(Value::from)),
        ("variables", variables(request.variables)),
        ("timeToLiveMs", request.time_to_live.map(milliseconds)),
    ]);
    let answer = Client::new(&call.connection)?
        .post(&["messages"], &request_body, Duration::ZERO)
        .await?;
    show(call.connection.output, &answer, |value| {
        fields(value, [("message", "messageKey")]);
        let takers: Vec<_> = value["deliveredTo"]
            .as_array()
            .into_iter()
            .flatten()
            .map(text)
            .collect();
        match takers.as_slice() {
            [] => terminal::line("accepted: it waits for a taker"),
            takers => terminal::line(&format!("delivered to  {}", takers.join(", "))),
        }
    })
}

async fn retry(call: Call<Retry>) -> Result<(), Failure> {
    let request_body = body([("retries", call.request.retries.map(Value::from))]);
    let path = ["incidents", &call.request.key, "retry"];
    let answer = Client::new(&call.connection)?
        .post(&path, &request_body, Duration::ZERO)
        .await?;
    show(call.connection.output, &answer, advanced)
}

async fn complete_task(call: Call<CompleteTask>) -> Result<(), Failure> {
    let request_body = body([("variables", variables(call.request.variables))]);
    let path = ["user-tasks", &call.request.key, "complete"];
    let answer = Client::new(&call.connection)?
        .post(&path, &request_body, Duration::ZERO)
        .await?;
    show(call.connection.output, &answer, advanced)
}

fn advanced(value: &Value) {
    terminal::line(if value["advanced"] == true {
        "done"
    } else {
        "accepted: it is durable and takes effect when the runtime takes new work again"
    });
}

async fn pause(call: Call<Pause>) -> Result<(), Failure> {
    let request_body = body([
        ("reason", call.request.reason.map(Value::from)),
        ("until", call.request.until.map(Value::from)),
    ]);
    let answer = Client::new(&call.connection)?
        .post(&runtime("pause"), &request_body, Duration::ZERO)
        .await?;
    show(call.connection.output, &answer, status)
}

async fn force_drain(call: Call<Reason>) -> Result<(), Failure> {
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

fn status(value: &Value) {
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
