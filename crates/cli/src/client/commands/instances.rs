//! Process instances.

use serde_json::Value;

use super::{body, milliseconds, show, variables};
use crate::args::{Call, Instances, InstancesAction, KeyOnly, Start};
use crate::client::http::{Client, Failure};
use crate::client::print::{cell, fields, list};
use crate::terminal;

/// Rows of a page of history.
const PAGE: usize = 1000;

pub async fn start(call: Call<Start>) -> Result<(), Failure> {
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

pub async fn instances(call: Call<Instances>) -> Result<(), Failure> {
    let request = call.request;
    let client = Client::new(&call.connection)?;
    if let Some(InstancesAction::Export(export)) = request.action {
        let path = ["process-instances", "export"];
        return client.stream(&path, &export.which.query(), terminal::raw).await;
    }
    let mut query = vec![("limit", request.limit.to_string())];
    query.extend(request.which.query());
    let answer = client.get(&["process-instances"], &query).await?;
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

pub async fn instance(call: Call<KeyOnly>) -> Result<(), Failure> {
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

pub(super) fn instance_fields(value: &Value) {
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

pub async fn history(call: Call<KeyOnly>) -> Result<(), Failure> {
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
