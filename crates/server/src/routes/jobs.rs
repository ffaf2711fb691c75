//! Jobs of external workers: lease, complete, fail, throw.

use axum::Json;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tidegate::Error;
use tidegate::api::{Acceptance, ActivateJobs};
use tidegate::model::{ElementInstanceKey, Variables};

use crate::auth::Tenants;
use crate::extract::{Key, Shell, milliseconds, name, required};
use crate::{Problem, body, views};

/// Jobs of one answer at most.
const MAX_JOBS: usize = 1000;
/// A lease lasts a day at most; a worker that needs longer takes it again.
const MAX_LEASE_MS: u64 = 24 * 3600 * 1000;
/// The longest long poll.
const MAX_WAIT_MS: u64 = 300_000;
/// A failed job is tried again within a year.
const MAX_BACKOFF_MS: u64 = 366 * 24 * 3600 * 1000;
/// The longest error message that is kept, in characters.
const MAX_MESSAGE: usize = 10_000;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Activate {
    r#type: String,
    worker: String,
    max_jobs: usize,
    lease_ms: u64,
    #[serde(default)]
    wait_ms: u64,
    tenant_id: Option<String>,
}

#[derive(Serialize)]
pub(super) struct Jobs {
    jobs: Vec<views::Job>,
}

/// A worker that hangs up drops this future; the runtime leases nothing for it then.
pub(super) async fn activate(
    shell: Shell,
    tenants: Tenants,
    body::Body(activate): body::Body<Activate>,
) -> Result<Json<Jobs>, Problem> {
    if !(1..=MAX_JOBS).contains(&activate.max_jobs) {
        let detail = format!(
            "`maxJobs` is {}; it must be from 1 to {MAX_JOBS}",
            activate.max_jobs
        );
        return Err(Problem::bad_request("invalid-request", detail));
    }
    let request = ActivateJobs {
        job_type: required("type", activate.r#type)?,
        worker: required("worker", activate.worker)?,
        max_jobs: activate.max_jobs,
        lease: milliseconds("leaseMs", activate.lease_ms, 1..=MAX_LEASE_MS)?,
        wait: milliseconds("waitMs", activate.wait_ms, 0..=MAX_WAIT_MS)?,
        tenant: tenants.one(name("tenantId", activate.tenant_id)?)?,
    };
    let jobs = shell
        .0
        .activate_jobs(request)
        .await
        .map_err(|error| shell.problem(error))?;
    Ok(Json(Jobs {
        jobs: jobs.into_iter().map(views::Job::of).collect(),
    }))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Complete {
    lease_token: String,
    #[serde(default)]
    variables: Variables,
}

pub(super) async fn complete(
    shell: Shell,
    Key(key): Key<ElementInstanceKey>,
    body::Body(complete): body::Body<Complete>,
) -> Result<Json<Value>, Problem> {
    let outcome = shell
        .0
        .complete_job(key, &complete.lease_token, complete.variables)
        .await;
    answer(&shell, outcome)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Fail {
    lease_token: String,
    message: String,
    retries: Option<u32>,
    backoff_ms: Option<u64>,
}

pub(super) async fn fail(
    shell: Shell,
    Key(key): Key<ElementInstanceKey>,
    body::Body(fail): body::Body<Fail>,
) -> Result<Json<Value>, Problem> {
    let backoff = fail
        .backoff_ms
        .map(|ms| milliseconds("backoffMs", ms, 0..=MAX_BACKOFF_MS))
        .transpose()?;
    let outcome = shell
        .0
        .fail_job(
            key,
            &fail.lease_token,
            shorten(fail.message),
            fail.retries,
            backoff,
        )
        .await;
    answer(&shell, outcome)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Throw {
    lease_token: String,
    code: String,
    #[serde(default)]
    message: String,
    #[serde(default)]
    variables: Variables,
}

pub(super) async fn error(
    shell: Shell,
    Key(key): Key<ElementInstanceKey>,
    body::Body(throw): body::Body<Throw>,
) -> Result<Json<Value>, Problem> {
    let code = required("code", throw.code)?;
    let message = shorten(throw.message);
    let outcome = shell
        .0
        .throw_job_error(key, &throw.lease_token, code, message, throw.variables)
        .await;
    answer(&shell, outcome)
}

/// A worker's report is kept even when its message is a whole stack trace.
fn shorten(message: String) -> String {
    match message.char_indices().nth(MAX_MESSAGE) {
        Some((end, _)) => format!("{}…", &message[..end]),
        None => message,
    }
}

/// 200 in both cases: the outcome is durable; `advanced` tells whether the instance has moved already.
fn answer(shell: &Shell, outcome: Result<Acceptance, Error>) -> Result<Json<Value>, Problem> {
    let acceptance = outcome.map_err(|error| shell.problem(error))?;
    Ok(Json(json!({ "advanced": acceptance == Acceptance::Done })))
}
