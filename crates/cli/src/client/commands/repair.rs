//! Putting instances right.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::{body, show, variables};
use crate::args::{Call, Migrate, MigrationCheck, Modify, Resolve, Restart, SetVariables};
use crate::client::http::{Client, Failure};
use crate::client::print::{cell, fields};
use crate::terminal;

pub async fn set_variables(call: Call<SetVariables>) -> Result<(), Failure> {
    let request = call.request;
    let request_body = variables(request.variables).unwrap_or_else(|| json!({}));
    let mut query = Vec::new();
    query.extend(request.scope.map(|scope| ("scopeKey", scope)));
    query.extend(request.reason.map(|reason| ("reason", reason)));
    let path = ["process-instances", &request.key, "variables"];
    let client = Client::new(&call.connection)?;
    let answer = client.patch(&path, &query, &request_body).await?;
    show(call.connection.output, &answer, |value| {
        terminal::line(&terminal::printable(&value.to_string()));
    })
}

pub async fn resolve(call: Call<Resolve>) -> Result<(), Failure> {
    let request = call.request;
    let request_body = body([
        ("variables", variables(request.variables)),
        ("retries", request.retries.map(Value::from)),
        ("reason", request.reason.map(Value::from)),
    ]);
    let path = ["incidents", &request.key, "resolve"];
    let answer = Client::new(&call.connection)?
        .post(&path, &request_body, Duration::ZERO)
        .await?;
    show(call.connection.output, &answer, super::work::advanced)
}

pub async fn modify(call: Call<Modify>) -> Result<(), Failure> {
    let request = call.request;
    let ends = request.terminate.into_iter().map(|what| {
        let is_key = what.bytes().all(|byte| byte.is_ascii_digit());
        json!({ if is_key { "elementInstanceKey" } else { "elementId" }: what })
    });
    let begins = places(request.activate, request.after, request.flow);
    let request_body = body([
        ("terminate", Some(ends.collect())),
        ("activate", Some(begins)),
        ("variables", variables(request.variables)),
        ("reason", request.how.reason.map(Value::from)),
        ("dryRun", Some(request.how.dry_run.into())),
    ]);
    let path = ["process-instances", &request.key, "modification"];
    let answer = Client::new(&call.connection)?
        .post(&path, &request_body, Duration::ZERO)
        .await?;
    show(call.connection.output, &answer, |value| {
        plan(value, request.how.dry_run)
    })
}

/// Where something begins, as the API has it.
fn places(before: Vec<String>, after: Vec<String>, flows: Vec<String>) -> Value {
    let named = |name: &'static str, ids: Vec<String>| ids.into_iter().map(move |id| json!({ name: id }));
    named("elementId", before)
        .chain(named("afterElementId", after))
        .chain(named("flowId", flows))
        .collect()
}

pub async fn restart(call: Call<Restart>) -> Result<(), Failure> {
    let request = call.request;
    let request_body = body([
        (
            "activate",
            Some(places(request.activate, request.after, request.flow)),
        ),
        ("variables", variables(request.variables)),
        ("definitionKey", request.definition_key.map(Value::from)),
        ("reason", request.how.reason.map(Value::from)),
        ("dryRun", Some(request.how.dry_run.into())),
    ]);
    let path = ["process-instances", &request.key, "restart"];
    let answer = Client::new(&call.connection)?
        .post(&path, &request_body, Duration::ZERO)
        .await?;
    show(call.connection.output, &answer, |value| {
        lines(&value["plan"]);
        match request.how.dry_run {
            true => terminal::line("nothing was changed"),
            false => fields(
                value,
                [
                    ("instance", "instanceKey"),
                    ("version", "version"),
                    ("is", "subStatus"),
                ],
            ),
        }
    })
}

/// A file as the API takes it in a request.
fn resource(file: Option<std::path::PathBuf>) -> Result<Option<Value>, Failure> {
    let Some(path) = file else { return Ok(None) };
    let shown = path.display();
    let content = std::fs::read_to_string(&path);
    let content = content.map_err(|error| Failure::Other(format!("`{shown}` cannot be read: {error}")))?;
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
    Ok(Some(json!({ "name": name, "content": content })))
}

pub async fn migrate(call: Call<Migrate>) -> Result<(), Failure> {
    let request = call.request;
    let request_body = body([
        ("version", request.to.map(Value::from)),
        ("mapping", Some(mapping(request.mapping))),
        ("resource", resource(request.file)?),
        ("reason", request.how.reason.map(Value::from)),
        ("dryRun", Some(request.how.dry_run.into())),
    ]);
    let path = ["process-instances", &request.key, "migration"];
    let answer = Client::new(&call.connection)?
        .post(&path, &request_body, Duration::ZERO)
        .await?;
    show(call.connection.output, &answer, |value| {
        plan(value, request.how.dry_run)
    })
}

pub async fn migration_check(call: Call<MigrationCheck>) -> Result<(), Failure> {
    let request = call.request;
    let request_body = body([
        ("mapping", Some(mapping(request.mapping))),
        ("limit", Some(request.limit.into())),
        ("resource", resource(request.file)?),
        ("processId", request.process_id.map(Value::from)),
        ("tenantId", request.tenant_id.map(Value::from)),
    ]);
    let mut path = vec!["process-definitions"];
    path.extend(request.key.as_deref());
    path.push("migration-check");
    let answer = Client::new(&call.connection)?
        .post(&path, &request_body, Duration::ZERO)
        .await?;
    show(call.connection.output, &answer, |value| {
        fields(
            value,
            [
                ("version", "version"),
                ("there already", "thereAlready"),
                ("can change", "canChange"),
            ],
        );
        for stuck in value["obstructed"].as_array().into_iter().flatten() {
            for reason in stuck["reasons"].as_array().into_iter().flatten() {
                let line = format!("{}  {}", cell(stuck, "instanceKey"), cell(reason, "message"));
                terminal::line(&terminal::printable(&line));
            }
        }
        if !value["next"].is_null() {
            terminal::line("there are more instances than were looked at");
        }
    })
}

fn mapping(pairs: Vec<(String, String)>) -> Value {
    let pairs = pairs.into_iter().map(|(from, to)| (from, Value::from(to)));
    Value::Object(pairs.collect::<Map<_, _>>())
}

/// A plan as lines of a verb and what it is about.
fn plan(value: &Value, is_dry: bool) {
    lines(&value["plan"]);
    match is_dry {
        true => terminal::line("nothing was changed"),
        false => super::work::advanced(value),
    }
}

fn lines(plan: &Value) {
    let verbs = [
        ("ends", "ended"),
        ("begins", "started"),
        ("arms", "armed"),
        ("disarms", "disarmed"),
        ("sends", "sent"),
        ("incident", "incidents"),
    ];
    for (verb, name) in verbs {
        for line in plan[name].as_array().into_iter().flatten() {
            let line = format!(
                "{verb:<10} {} {} {}",
                cell(line, "elementId"),
                cell(line, "kind"),
                cell(line, "detail")
            );
            terminal::line(&terminal::printable(line.trim_end()));
        }
    }
    for line in plan["moved"].as_array().into_iter().flatten() {
        let line = format!(
            "{:<10} {} to {}",
            "becomes",
            cell(line, "fromElementId"),
            cell(line, "toElementId")
        );
        terminal::line(&terminal::printable(&line));
    }
    if !plan["ends"].is_null() {
        terminal::line(&format!("the instance ends: {}", cell(plan, "ends")));
    }
}
