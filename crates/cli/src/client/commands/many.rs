//! Many instances: forgetting, batches, and the settings of a process.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::{body, show};
use crate::args::{BatchAction, BatchStart, Batches, Call, Connection, Forget, Settings, Verb};
use crate::client::http::{Answer, Client, Failure};
use crate::client::print::{cell, fields, list};
use crate::terminal;

/// How often a batch is looked at while it is followed.
const LOOK: Duration = Duration::from_millis(300);
/// Rows of a page of items.
const PAGE: usize = 1000;

pub async fn forget(call: Call<Forget>) -> Result<(), Failure> {
    let request = json!({ "instanceKeys": call.request.keys, "keepJournal": call.request.keep_journal });
    let answer = Client::new(&call.connection)?
        .post(&["process-instances", "forget"], &request, Duration::ZERO)
        .await?;
    show(call.connection.output, &answer, |value| {
        for key in value["forgotten"].as_array().into_iter().flatten() {
            terminal::line(&format!("forgotten     {}", key.as_str().unwrap_or_default()));
        }
    })
}

pub async fn batch(call: Call<Batches>) -> Result<(), Failure> {
    let client = Client::new(&call.connection)?;
    let connection = &call.connection;
    match call.request.action {
        BatchAction::Start(start) => {
            let wait = start.wait;
            let mut answer = client
                .post(&["batches"], &start_body(*start), Duration::ZERO)
                .await?;
            if wait {
                let key = answer.value["batchKey"].as_str().unwrap_or_default().to_owned();
                answer = follow(&client, &key).await?;
            }
            show(connection.output, &answer, batch_fields)
        }
        BatchAction::List => {
            let answer = client.get(&["batches"], &[]).await?;
            let columns = [
                ("batch", "batchKey"),
                ("verb", "verb"),
                ("state", "state"),
                ("counts", "counts"),
                ("by", "actor"),
                ("made", "createdAt"),
                ("ended", "endedAt"),
            ];
            show(connection.output, &answer, |value| list(value, columns))
        }
        BatchAction::Show(one) => {
            let answer = client.get(&["batches", &one.key], &[]).await?;
            show(connection.output, &answer, batch_fields)
        }
        BatchAction::Watch(one) => {
            let answer = follow(&client, &one.key).await?;
            show(connection.output, &answer, batch_fields)
        }
        BatchAction::Items(items) => self::items(&client, connection, items.key, items.outcome).await,
        BatchAction::Pause(one) => turn(&client, connection, &one.key, "pause").await,
        BatchAction::Resume(one) => turn(&client, connection, &one.key, "resume").await,
        BatchAction::Cancel(one) => turn(&client, connection, &one.key, "cancel").await,
    }
}

async fn turn(client: &Client, connection: &Connection, key: &str, verb: &str) -> Result<(), Failure> {
    let answer = client
        .post(&["batches", key, verb], &json!({}), Duration::ZERO)
        .await?;
    show(connection.output, &answer, batch_fields)
}

async fn items(
    client: &Client,
    connection: &Connection,
    key: String,
    outcome: Option<String>,
) -> Result<(), Failure> {
    let path = ["batches", key.as_str(), "items"];
    let mut after: Option<String> = None;
    loop {
        let mut query = vec![("limit", PAGE.to_string())];
        query.extend(outcome.clone().map(|outcome| ("outcome", outcome)));
        query.extend(after.map(|after| ("after", after)));
        let answer = client.get(&path, &query).await?;
        let columns = [
            ("instance", "instanceKey"),
            ("outcome", "outcome"),
            ("detail", "detail"),
        ];
        show(connection.output, &answer, |value| list(value, columns))?;
        match answer.value["next"].as_str() {
            Some(next) => after = Some(next.to_owned()),
            None => return Ok(()),
        }
    }
}

fn start_body(start: BatchStart) -> Value {
    let verb = match start.verb {
        Verb::Cancel => "cancel",
        Verb::Suspend => "suspend",
        Verb::Resume => "resume",
        Verb::Retry => "retry",
        Verb::Forget => "forget",
        Verb::Migrate => "migrate",
    };
    let words = |words: String| -> Value { words.split(',').map(|word| Value::from(word.trim())).collect() };
    let matching = start.matching;
    let mapping: Map<String, Value> = start
        .mapping
        .into_iter()
        .map(|(from, to)| (from, to.into()))
        .collect();
    let migration = start
        .to
        .map(|key| json!({ "definitionKey": key, "mapping": mapping }));
    let selection = body([
        ("subStatuses", matching.sub_status.map(words)),
        ("processId", matching.process_id.map(Value::from)),
        ("definitionKey", matching.definition_key.map(Value::from)),
        ("businessKey", matching.business_key.map(Value::from)),
        ("parentKey", matching.parent_key.map(Value::from)),
        ("hasIncident", matching.has_incident.then_some(Value::from(true))),
        ("startedAfter", matching.started_after.map(Value::from)),
        ("startedBefore", matching.started_before.map(Value::from)),
        ("tenantId", matching.tenant_id.map(Value::from)),
    ]);
    body([
        ("verb", Some(verb.into())),
        ("selection", Some(selection)),
        ("dryRun", start.dry_run.then_some(Value::from(true))),
        ("keepJournal", start.keep_journal.then_some(Value::from(true))),
        ("migration", migration),
        ("reason", start.reason.map(Value::from)),
    ])
}

/// Follows a batch until it is over, and tells how far it got at each change.
async fn follow(client: &Client, key: &str) -> Result<Answer, Failure> {
    let mut told = Value::Null;
    loop {
        let answer = client.get(&["batches", key], &[]).await?;
        let (state, counts) = (cell(&answer.value, "state"), &answer.value["counts"]);
        if *counts != told {
            told = counts.clone();
            terminal::error_line(&format!("batch {key}: {state}, {}", in_words(counts)));
        }
        if state != "running" {
            return Ok(answer);
        }
        tokio::time::sleep(LOOK).await;
    }
}

fn in_words(counts: &Value) -> String {
    let number = |name: &str| counts[name].as_u64().unwrap_or_default();
    format!(
        "{} of {} to go ({} done, {} would be done, {} unchanged, {} failed)",
        number("pending"),
        number("selected"),
        number("done"),
        number("wouldBeDone"),
        number("unchanged"),
        number("failed")
    )
}

fn batch_fields(value: &Value) {
    fields(
        value,
        [
            ("batch", "batchKey"),
            ("verb", "verb"),
            ("state", "state"),
            ("dry run", "dryRun"),
            ("by", "actor"),
            ("reason", "reason"),
            ("made", "createdAt"),
            ("ended", "endedAt"),
        ],
    );
    terminal::line(&format!("progress      {}", in_words(&value["counts"])));
}

pub async fn settings(call: Call<Settings>) -> Result<(), Failure> {
    let client = Client::new(&call.connection)?;
    let request = call.request;
    let path = ["process-settings", request.process_id.as_str()];
    let query: Vec<_> = request
        .tenant_id
        .iter()
        .map(|id| ("tenantId", id.clone()))
        .collect();
    let mut answer = client.get(&path, &query).await?;
    let given = request.given();
    if request.reset || !given.is_empty() {
        let mut set: Map<String, Value> = match request.reset {
            true => Map::new(),
            false => answer.value["set"].as_object().cloned().unwrap_or_default(),
        };
        set.extend(given.into_iter().map(|(name, value)| (name.to_owned(), value)));
        answer = client.put(&path, &query, &Value::Object(set)).await?;
    }
    show(call.connection.output, &answer, |value| {
        let effective = &value["effective"];
        fields(
            effective,
            [
                ("instances", "maxInstances"),
                ("when full", "whenFull"),
                ("kept (ms)", "retentionMs"),
                ("kept", "retentionCount"),
                ("journal", "journalLimit"),
            ],
        );
        let live = value["live"].as_array().map_or(0, Vec::len);
        terminal::line(&format!("live          {live}"));
        terminal::line(&format!("waiting       {}", value["waiting"]));
    })
}
