//! What handlers take from a request: the shell, the caller, keys and query parameters.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use serde::de::DeserializeOwned;
use tidegate::clock::{Clock, SystemClock};
use tidegate::{Error, Runtime};

use crate::host::Stage;
use crate::{App, Identity, Problem, auth};

/// The longest name, key or id that a request may carry, in characters.
const MAX_NAME: usize = 512;
/// The longest reason that an operator may give, in characters.
const MAX_REASON: usize = 1000;
/// The longest idempotency key, in characters.
const MAX_IDEMPOTENCY_KEY: usize = 255;

/// The runtime of the shell in the path, or of the default shell: its present generation.
pub(crate) struct Shell(pub(crate) Runtime);

/// A request that meets the change of a generation waits for the new one at most this long.
const CHANGE: Duration = Duration::from_secs(5);

impl FromRequestParts<App> for Shell {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let KnownShell(shell) = KnownShell::from_request_parts(parts, app).await?;
        match tokio::time::timeout(CHANGE, shell.settled()).await {
            Ok(Some(runtime)) => Ok(Self(runtime)),
            Ok(None) => Err(Problem::unavailable(
                "shell-not-active",
                format!(
                    "the shell `{}` has not started; the server's log has the cause, a reload tries again",
                    shell.id()
                ),
                5,
            )),
            Err(_) => Err(Problem::unavailable(
                "shell-reloading",
                "the shell is being reloaded; try again in a moment",
                1,
            )),
        }
    }
}

/// The shell in the path, or the default shell, whether or not it runs.
pub(crate) struct KnownShell(pub(crate) tidegate::Shell);

impl FromRequestParts<App> for KnownShell {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let name = auth::shell_of(parts).await;
        match app.host.shell(&name) {
            Some(shell) => Ok(Self(shell)),
            None if app.host.stage() == Stage::Starting => Err(Problem::unavailable(
                "starting",
                "the runtime is still starting; try again in a moment",
                1,
            )),
            None => Err(Problem::no_shell(&name)),
        }
    }
}

impl Shell {
    /// Seconds after which a refused sender may try again, as the contract has them.
    pub(crate) fn retry_after(&self) -> u64 {
        const DRAINING: u64 = 5;
        const PAUSED: u64 = 60;
        if self.0.quiescence().is_draining() {
            return DRAINING;
        }
        let now = SystemClock.now();
        let left_ms = self
            .0
            .paused_until()
            .map(|until| until.since(now).max(0).unsigned_abs());
        left_ms.map_or(PAUSED, |ms| ms.div_ceil(1000).clamp(1, PAUSED))
    }

    /// A refusal of the runtime as a problem.
    pub(crate) fn problem(&self, error: Error) -> Problem {
        let code = error.code();
        let detail = error.to_string();
        let refused = |status| Problem::new(status, code, detail.clone());
        match error {
            Error::NoSuchProcess { .. }
            | Error::NoSuchDefinition(_)
            | Error::NoSuchInstance(_)
            | Error::NoSuchJob(_)
            | Error::NoSuchUserTask(_)
            | Error::NoSuchIncident(_)
            | Error::NoSuchDeadLetter(_)
            | Error::NoSuchBatch(_)
            | Error::NoSuchSource(_) => refused(StatusCode::NOT_FOUND),
            Error::UserTaskClaimed { .. } | Error::StaleLease(_) | Error::SourceNotPaused(_) => {
                refused(StatusCode::CONFLICT)
            }
            Error::Invalid {
                code: "instance-not-ended",
                ..
            } => refused(StatusCode::CONFLICT),
            Error::InstanceLive(instance) => refused(StatusCode::CONFLICT).member("instanceKey", instance),
            Error::InstanceForgotten(instance) => refused(StatusCode::GONE).member("instanceKey", instance),
            Error::TooManyInstances { limit, .. } => refused(StatusCode::CONFLICT).member("limit", limit),
            Error::Rejected(tidegate::model::Rejection::Obstructed(reasons)) => {
                refused(StatusCode::UNPROCESSABLE_ENTITY).member("reasons", reasons)
            }
            Error::Rejected(rejection) => refused(rejection_status(&rejection)),
            Error::NotDeployable(diagnostics) => {
                refused(StatusCode::UNPROCESSABLE_ENTITY).member("diagnostics", diagnostics)
            }
            Error::ResumeWhileDraining(state) | Error::DrainInProgress(state) => {
                refused(StatusCode::CONFLICT).member("state", state)
            }
            Error::Draining | Error::Stopped | Error::NotStarted => Problem::unavailable(code, detail, 5),
            Error::Invalid {
                code: "too-many-observers",
                ..
            } => Problem::unavailable(code, detail, 5),
            Error::QueueFull { depth } => {
                Problem::unavailable(code, detail, self.retry_after()).member("depth", depth)
            }
            Error::PauseNotPersisted(_) => Problem::unavailable(code, detail, 5),
            Error::InstanceHeld(instance) => refused(StatusCode::CONFLICT).member("instanceKey", instance),
            Error::StillCancelling(row) => {
                refused(StatusCode::GATEWAY_TIMEOUT).member("processInstance", crate::views::instance(&row))
            }
            Error::WaitRanOut(instance) => {
                refused(StatusCode::GATEWAY_TIMEOUT).member("instanceKey", instance)
            }
            // The start was not even answered in time, so that there is no instance to name.
            Error::Invalid {
                code: "wait-ran-out", ..
            } => refused(StatusCode::GATEWAY_TIMEOUT),
            Error::Invalid { .. } => refused(StatusCode::BAD_REQUEST),
            Error::Store(error) if error.kind().is_retryable() => {
                tracing::warn!(code, %error, "the store refused a request");
                Problem::unavailable(code, detail, 5)
            }
            Error::Store(error) => {
                tracing::error!(code, %error, "the store failed a request");
                Problem::internal()
            }
            #[allow(unreachable_patterns, reason = "the runtime's list of errors grows")]
            _ => {
                tracing::error!(
                    code,
                    detail,
                    "a request failed in a way that has no answer of its own"
                );
                Problem::internal()
            }
        }
    }
}

fn rejection_status(rejection: &tidegate::model::Rejection) -> StatusCode {
    use tidegate::model::Rejection::{
        AlreadyStarted, Cancelling, Ended, NoStart, NoSuchChild, NoSuchIncident, NoSuchJob, NoSuchScope,
        NoSuchUserTask, NotWaiting, Obstructed,
    };
    match rejection {
        Ended(_) | Cancelling | AlreadyStarted | NotWaiting(_) | NoSuchChild(_) => StatusCode::CONFLICT,
        NoStart | Obstructed(_) => StatusCode::UNPROCESSABLE_ENTITY,
        NoSuchJob(_) | NoSuchUserTask(_) | NoSuchIncident(_) | NoSuchScope(_) => StatusCode::NOT_FOUND,
    }
}

/// The key in the path.
pub(crate) struct Key<K>(pub(crate) K);

impl<K: FromStr<Err: std::fmt::Display>> FromRequestParts<App> for Key<K> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Problem> {
        let text = path_parameter(parts, "key").await.unwrap_or_default();
        text.parse()
            .map(Self)
            .map_err(|error: K::Err| Problem::bad_request("invalid-key", error.to_string()))
    }
}

/// The name in the path.
pub(crate) struct Name(pub(crate) String);

impl FromRequestParts<App> for Name {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Problem> {
        Ok(Self(path_parameter(parts, "name").await.unwrap_or_default()))
    }
}

async fn path_parameter(parts: &mut Parts, name: &str) -> Option<String> {
    let parameters = RawPathParams::from_request_parts(parts, &()).await.ok()?;
    parameters
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, value)| value.to_owned())
}

/// The query parameters, unknown ones refused by name.
pub(crate) struct Query<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequestParts<App> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Problem> {
        let query = axum::extract::Query::<T>::try_from_uri(&parts.uri);
        let query = query.map_err(|error| Problem::bad_request("invalid-query", error.body_text()))?;
        Ok(Self(query.0))
    }
}

/// The name of who asks.
pub(crate) struct Actor(pub(crate) Arc<str>);

impl FromRequestParts<App> for Actor {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Problem> {
        // Every route of the table is guarded, so that an identity is always there.
        let identity = parts.extensions.get::<Identity>().ok_or_else(Problem::internal)?;
        Ok(Self(identity.name.clone()))
    }
}

/// Who asks.
pub(crate) struct Caller(pub(crate) Identity);

impl FromRequestParts<App> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Problem> {
        let identity = parts.extensions.get::<Identity>();
        identity.cloned().map(Self).ok_or_else(Problem::internal)
    }
}

/// The caller's `Idempotency-Key`.
pub(crate) struct Idempotency(pub(crate) Option<String>);

impl FromRequestParts<App> for Idempotency {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Problem> {
        idempotency_key(&parts.headers).map(Self)
    }
}

fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let mut values = headers.get_all("idempotency-key").iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    let text = value.to_str().unwrap_or_default().trim();
    if values.next().is_some() || text.is_empty() || text.len() > MAX_IDEMPOTENCY_KEY {
        let detail =
            format!("`Idempotency-Key` must be one text of 1 to {MAX_IDEMPOTENCY_KEY} visible characters");
        return Err(Problem::bad_request("invalid-idempotency-key", detail));
    }
    Ok(Some(text.to_owned()))
}

/// Checks the length of an operator's reason.
pub(crate) fn reason(text: Option<String>) -> Result<Option<String>, Problem> {
    bounded("reason", text, MAX_REASON)
}

/// Checks the length of a name, key or id.
pub(crate) fn name(field: &str, text: Option<String>) -> Result<Option<String>, Problem> {
    bounded(field, text, MAX_NAME)
}

/// Checks that a name is there and not too long.
pub(crate) fn required(field: &str, text: String) -> Result<String, Problem> {
    if text.is_empty() {
        return Err(Problem::bad_request(
            "invalid-request",
            format!("`{field}` must not be empty"),
        ));
    }
    name(field, Some(text)).map(Option::unwrap_or_default)
}

fn bounded(field: &str, text: Option<String>, limit: usize) -> Result<Option<String>, Problem> {
    match text {
        Some(text) if text.chars().count() > limit => Err(Problem::bad_request(
            "text-too-long",
            format!("`{field}` has more than {limit} characters, its limit"),
        )),
        text => Ok(text),
    }
}

/// Milliseconds of a request, held between its limits.
pub(crate) fn milliseconds(
    field: &str,
    value: u64,
    limits: std::ops::RangeInclusive<u64>,
) -> Result<Duration, Problem> {
    if limits.contains(&value) {
        return Ok(Duration::from_millis(value));
    }
    let detail = format!(
        "`{field}` is {value}; it must be from {} to {}",
        limits.start(),
        limits.end()
    );
    Err(Problem::bad_request("invalid-request", detail))
}

/// Runs a control action to its end even if the caller hangs up.
pub(crate) async fn to_the_end<T: Send + 'static>(
    action: impl Future<Output = T> + Send + 'static,
) -> Result<T, Problem> {
    tokio::spawn(tidegate::request::carry(action))
        .await
        .map_err(|error| {
            tracing::error!(%error, "a control action panicked");
            Problem::internal()
        })
}
