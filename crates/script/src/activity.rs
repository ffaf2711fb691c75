//! The handler of script jobs.

use std::process::Command;
use std::sync::Arc;

use serde_json::value::RawValue;
use tidegate::activity::{Activity, ActivityContext, ActivityError, ActivityFuture, ActivityResult};
use tidegate::model::{Json, Variables};

use crate::options::Options;
use crate::pool::Pool;
use crate::protocol::Outcome;
use crate::trouble::Trouble;

/// The job type that script tasks ask for.
pub const JOB_TYPE: &str = "script";

/// The script formats that run here, as models write them.
pub const FORMATS: &[&str] = &[
    "javascript",
    "JavaScript",
    "js",
    "ecmascript",
    "ECMAScript",
    "application/javascript",
    "text/javascript",
];

/// Runs JavaScript for script tasks, in worker processes. Headers: `script`, `format` and `resultVariable`.
///
/// A script that throws fails at once and for good, since it would throw again; one that ran out of time, or whose
/// worker process ended, takes one retry off.
///
/// # Durability
/// A script has no effect but its result, so running it again is always right.
pub struct ScriptActivity {
    pool: Arc<Pool>,
}

impl ScriptActivity {
    /// Workers are started when scripts come, with `command`: it must start a program that calls
    /// [`worker_main`](crate::worker_main) before it does anything else. Its environment is cleared.
    pub fn new(options: Options, command: impl Fn() -> Command + Send + Sync + 'static) -> Self {
        Self {
            pool: Arc::new(Pool::new(options, Box::new(command))),
        }
    }

    /// Runs one script with the variables given, until `stop` ends. This is what a job does.
    ///
    /// Cancel safe: if the future is dropped, the worker process is killed. It must run inside a tokio runtime with
    /// I/O and time.
    ///
    /// # Errors
    /// The script failed, threw a `BpmnError`, ran out of time or was stopped.
    pub async fn evaluate(
        &self,
        script: &str,
        result_variable: Option<&str>,
        variables: &Variables,
        stop: impl Future<Output = ()>,
    ) -> ActivityResult {
        evaluate(&self.pool, script, result_variable, variables, stop).await
    }

    /// Takes no more scripts and ends the worker processes, at once where they are idle, else after their script.
    pub async fn close(&self) {
        self.pool.close().await;
    }
}

impl Activity for ScriptActivity {
    fn run(&self, context: ActivityContext) -> ActivityFuture {
        let pool = Arc::clone(&self.pool);
        Box::pin(async move {
            let format = context.header("format").unwrap_or("javascript");
            if !FORMATS.iter().any(|known| known.eq_ignore_ascii_case(format)) {
                return Err(for_good(format!(
                    "nothing here runs a script of format `{format}`: write `javascript`"
                )));
            }
            let script = context.header("script").unwrap_or_default();
            let result_variable = context.header("resultVariable").filter(|name| !name.is_empty());
            evaluate(
                &pool,
                script,
                result_variable,
                &context.variables,
                context.stop.stopped(),
            )
            .await
        })
    }
}

async fn evaluate(
    pool: &Pool,
    script: &str,
    result_variable: Option<&str>,
    variables: &Variables,
    stop: impl Future<Output = ()>,
) -> ActivityResult {
    let variables = RawValue::from_string(variables.to_json())
        .map_err(|error| for_good(format!("the variables are not JSON: {error}")))?;
    match pool.run(script, &variables, stop).await {
        Ok(Outcome::Value(value)) => take(value, result_variable),
        Ok(Outcome::Error {
            code,
            message,
            variables,
        }) => Err(ActivityError::Error {
            code,
            message,
            variables: take(variables, None)?,
        }),
        Ok(Outcome::Failed(message)) => Err(for_good(message)),
        Ok(Outcome::TimedOut) => Err(ActivityError::failed("the script ran out of time")),
        Err(Trouble::Stopped) => Err(ActivityError::Stopped),
        Err(trouble) if trouble.is_lasting() => Err(for_good(trouble.to_string())),
        Err(trouble) => Err(ActivityError::failed(trouble.to_string())),
    }
}

/// Which variables a result becomes.
fn take(value: Option<Box<RawValue>>, result_variable: Option<&str>) -> ActivityResult {
    let text = value.as_ref().map_or("null", |value| value.get());
    // Readers of variables parse them whole, so a result that is nested too deeply to be parsed goes no further.
    let parsed: serde_json::Value = serde_json::from_str(text).map_err(|error| {
        for_good(format!(
            "the script's result cannot be kept as a variable: {error}"
        ))
    })?;
    match (result_variable, parsed) {
        (Some(name), _) => Ok([(name, Json::trusted(text))].into_iter().collect()),
        (None, serde_json::Value::Object(_)) => Variables::parse(text)
            .map_err(|error| for_good(format!("the script's result is not JSON: {error}"))),
        (None, _) => Ok(Variables::new()),
    }
}

/// A failure that would come again: an incident at once.
fn for_good(message: String) -> ActivityError {
    ActivityError::Failed {
        message,
        retries: Some(0),
        backoff: None,
    }
}
