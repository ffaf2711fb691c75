//! What the tests share: a pool over the crate's own worker program, and short ways to run a script.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tidegate::activity::{ActivityError, ActivityResult};
use tidegate::model::Variables;
use tidegate_script::{Options, ScriptActivity};

/// The worker program.
pub const WORKER: &str = env!("CARGO_BIN_EXE_tidegate-script-worker");

/// Options whose times no slow machine reaches.
pub fn patient() -> Options {
    Options {
        time: Duration::from_secs(60),
        start: Duration::from_secs(60),
        ..Options::default()
    }
}

/// Options for scripts that must run out of time.
pub fn hasty() -> Options {
    Options {
        time: Duration::from_millis(400),
        ..patient()
    }
}

/// Workers, and how many were started.
pub struct Scripts {
    pub activity: ScriptActivity,
    started: Arc<AtomicUsize>,
}

impl Scripts {
    /// Workers by a command that may depend on how many were started before.
    pub fn by(options: Options, command: impl Fn(usize) -> Command + Send + Sync + 'static) -> Self {
        let started = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&started);
        let activity = ScriptActivity::new(options, move || command(count.fetch_add(1, Ordering::SeqCst)));
        Self { activity, started }
    }

    pub fn new(options: Options) -> Self {
        Self::by(options, |_| Command::new(WORKER))
    }

    /// Runs a script over a JSON object of variables, without a result variable.
    pub async fn run(&self, script: &str, variables: &str) -> ActivityResult {
        let variables = Variables::parse(variables).unwrap();
        self.activity
            .evaluate(script, None, &variables, std::future::pending())
            .await
    }

    /// The value of a script, as JSON.
    pub async fn value(&self, script: &str, variables: &str) -> String {
        let variables = Variables::parse(variables).unwrap();
        let result = self
            .activity
            .evaluate(script, Some("it"), &variables, std::future::pending())
            .await;
        result.unwrap().get("it").unwrap().text().to_owned()
    }

    /// The message of a script that must fail.
    pub async fn failure(&self, script: &str) -> String {
        message(self.run(script, "{}").await)
    }

    pub fn started(&self) -> usize {
        self.started.load(Ordering::SeqCst)
    }
}

/// The message of a failure.
pub fn message(result: ActivityResult) -> String {
    match result {
        Err(ActivityError::Failed { message, .. }) => message,
        other => panic!("expected a failure, not {other:?}"),
    }
}
