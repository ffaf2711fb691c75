//! Batches: operations on many instances.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use tidegate::batch::{Batch, BatchMigration, BatchRequest, ItemOutcome, Selection, Verb};
use tidegate::model::InstanceKey;
use tidegate::store::Page;

use crate::auth::Tenants;
use crate::cursor::Paging;
use crate::extract::{Actor, Key, Query, Shell, name, reason, to_the_end};
use crate::{Problem, body};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Create {
    verb: String,
    #[serde(default)]
    selection: Selection,
    #[serde(default)]
    dry_run: bool,
    #[serde(default)]
    keep_journal: bool,
    migration: Option<BatchMigration>,
    reason: Option<String>,
}

pub(super) async fn create(
    shell: Shell,
    Actor(actor): Actor,
    tenants: Tenants,
    body::Body(create): body::Body<Create>,
) -> Result<Response, Problem> {
    let Some(verb) = Verb::from_word(&create.verb) else {
        let words: Vec<_> = Verb::all().map(Verb::word).collect();
        let word: String = create.verb.chars().take(60).collect();
        let detail = format!("a batch has no verb `{word}`; there are {}", words.join(", "));
        return Err(Problem::bad_request("invalid-request", detail));
    };
    if create.keep_journal && verb != Verb::Forget {
        let detail = "`keepJournal` goes with the verb `forget` only";
        return Err(Problem::bad_request("invalid-request", detail));
    }
    let mut selection = create.selection;
    selection.process_id = name("processId", selection.process_id)?;
    selection.business_key = name("businessKey", selection.business_key)?;
    selection.tenant_id = tenants.followed(name("tenantId", selection.tenant_id)?)?;
    let migration = create.migration.map(|migration| {
        super::repair::checked(migration.mapping).map(|mapping| BatchMigration { mapping, ..migration })
    });
    let request = BatchRequest {
        verb,
        selection,
        dry_run: create.dry_run,
        keeps_journal: create.keep_journal,
        migration: migration.transpose()?,
        reason: reason(create.reason)?,
        actor: actor.to_string(),
    };
    let runtime = shell.0.clone();
    let made = to_the_end(async move { runtime.create_batch(request).await }).await?;
    let batch = made.map_err(|error| shell.problem(error))?;
    Ok((StatusCode::ACCEPTED, Json(view(batch))).into_response())
}

/// How many batches of all tenants are read at once for a caller that sees those of some, and how often in one request.
const LOOKED_AT: usize = 500;
const PAGES_LOOKED_AT: usize = 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Parameters {
    limit: Option<usize>,
    after: Option<String>,
}

pub(super) async fn list(
    shell: Shell,
    tenants: Tenants,
    Query(query): Query<Parameters>,
) -> Result<Json<Value>, Problem> {
    let paging = Paging::of(query.limit, query.after.as_deref())?;
    if !tenants.is_bound() {
        let found = shell.0.batches(paging.page()).await;
        let found = found.map_err(|error| shell.problem(error))?;
        return Ok(paging.answer(found, |batch| batch.batch_key, view));
    }
    // A bound caller's page is filled from those of the store, of which one request looks at so many.
    let mut page = Page {
        limit: LOOKED_AT,
        ..paging.page()
    };
    let mut batches = Vec::new();
    let mut looked_to = None;
    for left in (0..PAGES_LOOKED_AT).rev() {
        let found = shell.0.batches(page).await;
        let found = found.map_err(|error| shell.problem(error))?;
        let is_last = found.len() < page.limit;
        page.after = found.last().map(|batch| batch.batch_key);
        let is_own = |batch: &Batch| match &batch.selection.tenant_id {
            Some(tenant) => tenants.knows(tenant),
            None => false,
        };
        batches.extend(found.into_iter().filter(is_own));
        if is_last || batches.len() >= paging.fetch() {
            break;
        }
        if left == 0 {
            looked_to = page.after;
        }
    }
    Ok(paging.answer_so_far(batches, |batch| batch.batch_key, view, looked_to))
}

pub(super) async fn one(shell: Shell, Key(key): Key<u64>) -> Result<Json<Value>, Problem> {
    answer(&shell, shell.0.batch(key).await)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ItemParameters {
    outcome: Option<String>,
    limit: Option<usize>,
    after: Option<String>,
}

pub(super) async fn items(
    shell: Shell,
    Key(key): Key<u64>,
    Query(query): Query<ItemParameters>,
) -> Result<Json<Value>, Problem> {
    let paging = Paging::of(query.limit, query.after.as_deref())?;
    let outcome = match &query.outcome {
        None => None,
        Some(word) => Some(ItemOutcome::from_word(word).ok_or_else(|| {
            let detail = "`outcome` must be pending, done, wouldBeDone, unchanged or failed";
            Problem::bad_request("invalid-query", detail)
        })?),
    };
    let after = paging.after().map(InstanceKey);
    let items = shell.0.batch_items(key, outcome, after, paging.fetch()).await;
    let items = items.map_err(|error| shell.problem(error))?;
    Ok(paging.answer(
        items,
        |item| item.instance.get(),
        |item| {
            json!({
                "instanceKey": item.instance,
                "outcome": item.outcome,
                "detail": item.detail,
            })
        },
    ))
}

pub(super) async fn pause(shell: Shell, Key(key): Key<u64>) -> Result<Json<Value>, Problem> {
    let runtime = shell.0.clone();
    let turned = to_the_end(async move { runtime.pause_batch(key).await }).await?;
    answer(&shell, turned)
}

pub(super) async fn resume(shell: Shell, Key(key): Key<u64>) -> Result<Json<Value>, Problem> {
    let runtime = shell.0.clone();
    let turned = to_the_end(async move { runtime.resume_batch(key).await }).await?;
    answer(&shell, turned)
}

pub(super) async fn cancel(shell: Shell, Key(key): Key<u64>) -> Result<Json<Value>, Problem> {
    let runtime = shell.0.clone();
    let turned = to_the_end(async move { runtime.cancel_batch(key).await }).await?;
    answer(&shell, turned)
}

fn answer(shell: &Shell, batch: Result<Batch, tidegate::Error>) -> Result<Json<Value>, Problem> {
    batch
        .map(|batch| Json(view(batch)))
        .map_err(|error| shell.problem(error))
}

fn view(batch: Batch) -> Value {
    let mut view = serde_json::to_value(batch).unwrap_or_default();
    if let Some(members) = view.as_object_mut() {
        // How far it got in the list is nobody's business.
        members.remove("after");
    }
    view
}
