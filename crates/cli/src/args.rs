//! The command line.

mod many;
mod operate;
mod repair;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub use many::*;
pub use operate::*;
pub use repair::*;

use crate::serve::ServeArguments;

/// A durable BPMN 2.0 workflow runtime that stops cleanly.
#[derive(Debug, Parser)]
#[command(
    name = "tidegate",
    version,
    about,
    propagate_version = true,
    subcommand_required = true
)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the server.
    Serve(ServeArguments),
    /// Run one process on a temporary store and print the path it took.
    ///
    /// Exits 0 only when the instance completed. Handlers are the built-in ones (`demo.noop`, `demo.log`, …);
    /// timers run for real. What waits for a message, a person or an external worker ends the run.
    Run(RunArguments),
    /// Look for what is wrong or doubtful in BPMN and DMN files, without a server.
    ///
    /// Exits 0 when they could be deployed together, 1 when they could not.
    Check(CheckArguments),
    /// Show the plan by which the server's process ends: `--plan`, with the server's settings.
    ///
    /// A drain itself begins with SIGTERM; `force-drain` hurries it.
    Drain(DrainArguments),
    /// Print completions for a shell of the operating system.
    Completions(CompletionArguments),
    #[command(flatten)]
    Client(ClientCommand),
}

/// How results are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Output {
    /// For people.
    #[default]
    Table,
    /// For programs: the server's own JSON.
    Json,
}

#[derive(Debug, Args)]
pub struct RunArguments {
    /// The BPMN file.
    pub file: PathBuf,
    /// A start variable, `name=json`. A value that is not valid JSON is taken as a string.
    #[arg(long = "var", value_name = "NAME=JSON", value_parser = variable)]
    pub variables: Vec<(String, serde_json::Value)>,
    /// Which process of the file; not needed when it has one.
    #[arg(long, value_name = "ID")]
    pub process: Option<String>,
    /// Give up after this long.
    #[arg(long, value_name = "DURATION", value_parser = crate::duration::parse)]
    pub timeout: Option<std::time::Duration>,
    /// How to print the path.
    #[arg(short, long, value_enum, default_value_t)]
    pub output: Output,
}

/// Which server, and how to print.
#[derive(Debug, Args)]
pub struct Connection {
    /// The server.
    #[arg(
        long,
        env = "TIDEGATE_SERVER",
        value_name = "URL",
        default_value = "http://127.0.0.1:8088",
        global = true
    )]
    pub server: String,
    /// The path in front of the API's routes.
    #[arg(
        long,
        env = "TIDEGATE_BASE_PATH",
        value_name = "PATH",
        default_value = "/api/v1",
        global = true
    )]
    pub base_path: String,
    /// The shell of the host [default: `default`].
    #[arg(long, env = "TIDEGATE_SHELL", value_name = "ID", global = true)]
    pub shell: Option<String>,
    /// The token. Better given as TIDEGATE_TOKEN or TIDEGATE_TOKEN_FILE: other users can see arguments.
    #[arg(
        long,
        env = "TIDEGATE_TOKEN",
        hide_env_values = true,
        value_name = "TOKEN",
        global = true
    )]
    pub token: Option<String>,
    /// A file that holds the token.
    #[arg(long, env = "TIDEGATE_TOKEN_FILE", value_name = "FILE", global = true)]
    pub token_file: Option<PathBuf>,
    /// How to print the answer.
    #[arg(short, long, value_enum, default_value_t, global = true)]
    pub output: Output,
}

#[derive(Debug, Args)]
pub struct Call<T: Args> {
    #[command(flatten)]
    pub request: T,
    #[command(flatten)]
    pub connection: Connection,
}

#[derive(Debug, Subcommand)]
pub enum ClientCommand {
    /// Deploy BPMN files.
    Deploy(Call<Deploy>),
    /// Start an instance of a process.
    Start(Call<Start>),
    /// List process instances, or export them.
    Instances(Box<Call<Instances>>),
    /// Forget finished instances: all that are named, or none.
    Forget(Call<Forget>),
    /// Do something to many instances.
    Batch(Box<Call<Batches>>),
    /// Show or set how many instances of a process may be live, and how long they are remembered.
    Settings(Box<Call<Settings>>),
    /// Show one instance.
    Instance(Call<KeyOnly>),
    /// Show what happened to an instance.
    History(Call<KeyOnly>),
    /// Cancel an instance and wait for its end.
    Cancel(Call<Cancel>),
    /// Suspend an instance: nothing of it goes on until it is released.
    Suspend(Call<Suspend>),
    /// Let a suspended instance go.
    #[command(visible_alias = "resume-instance")]
    Release(Call<Release>),
    /// Show why an instance does not move.
    Why(Call<KeyOnly>),
    /// Publish a message.
    Message(Call<Message>),
    /// List process definitions.
    Definitions(Call<Nothing>),
    /// Unregister a process definition: the version before it becomes the newest again.
    Unregister(Call<Unregister>),
    /// List the start events that create instances by themselves.
    Starters(Call<Nothing>),
    /// List open incidents.
    Incidents(Call<Nothing>),
    /// Retry what an incident stopped.
    Retry(Call<Retry>),
    /// Correct variables and retry what an incident stopped, as one step.
    Resolve(Call<Resolve>),
    /// Change variables of an instance.
    SetVariables(Call<SetVariables>),
    /// Move the tokens of an instance, or show what that would do.
    Modify(Box<Call<Modify>>),
    /// Change an instance to another version of its process, or show what that would do.
    Migrate(Call<Migrate>),
    /// Do again what a finished instance did, from an element on, in a new instance with its variables.
    Restart(Box<Call<Restart>>),
    /// Find out which live instances could change to a definition, and what stands in the way of the others.
    MigrationCheck(Call<MigrationCheck>),
    /// List open user tasks.
    Tasks(Call<Nothing>),
    /// Complete a user task.
    CompleteTask(Call<CompleteTask>),
    /// Show the state of the runtime.
    Status(Call<Nothing>),
    /// Pause the runtime: nothing new runs until it is resumed.
    Pause(Call<Pause>),
    /// Resume a paused runtime.
    Resume(Call<Nothing>),
    /// Show what a drain of the running server would do now, and whether the reserve is enough for what is live.
    DrainPlan(Call<Nothing>),
    /// Drain the runtime without waiting for what runs.
    ForceDrain(Call<Reason>),
    /// Pause or resume the whole host, shell by shell.
    #[command(subcommand)]
    Maintenance(Maintenance),
    /// List the ingress sources.
    Sources(Call<Nothing>),
    /// List who did what, newest first.
    Audit(Call<Audit>),
    /// List the shells of the host.
    Shells(Call<Nothing>),
    /// Drain a shell, or every one, and let a new generation begin with the newest configuration.
    Reload(Call<OptionalShell>),
    /// Drain a shell and remove it.
    Retire(Call<OneShell>),
}

#[derive(Debug, Args)]
pub struct Nothing {}

#[derive(Debug, Args)]
pub struct Deploy {
    /// The files.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub struct Unregister {
    /// The definition's key.
    pub key: String,
    /// What becomes of its live instances.
    #[arg(long, value_enum, default_value_t)]
    pub instances: LiveInstances,
    /// How long to wait for them.
    #[arg(long, value_name = "DURATION", value_parser = crate::duration::parse, default_value = "30s")]
    pub timeout: std::time::Duration,
}

/// What becomes of the live instances of a definition that is unregistered.
#[derive(Debug, Clone, Copy, Default, clap::ValueEnum)]
pub enum LiveInstances {
    /// They go on, on their own version.
    #[default]
    Keep,
    /// They go on, and their ends are waited for.
    Wait,
    /// They are cancelled.
    Cancel,
}

impl LiveInstances {
    /// The word of the API.
    pub fn word(self) -> &'static str {
        match self {
            Self::Keep => "keep",
            Self::Wait => "wait",
            Self::Cancel => "cancel",
        }
    }
}

#[derive(Debug, Args)]
pub struct Start {
    /// The BPMN id of the process.
    pub process_id: String,
    /// A start variable, `name=json`. A value that is not valid JSON is taken as a string.
    #[arg(long = "var", value_name = "NAME=JSON", value_parser = variable)]
    pub variables: Vec<(String, serde_json::Value)>,
    /// Your own name for the instance.
    #[arg(long, value_name = "TEXT")]
    pub business_key: Option<String>,
    /// This version instead of the newest.
    #[arg(long, value_name = "NUMBER")]
    pub version_number: Option<u32>,
    /// Wait until the instance has ended.
    #[arg(long)]
    pub wait: bool,
    /// How long to wait.
    #[arg(long, value_name = "DURATION", value_parser = crate::duration::parse, default_value = "30s")]
    pub timeout: std::time::Duration,
}

#[derive(Debug, Args)]
pub struct Instances {
    #[command(subcommand)]
    pub action: Option<InstancesAction>,
    #[command(flatten)]
    pub which: Which,
    /// How many at most.
    #[arg(long, value_name = "NUMBER", default_value_t = 50)]
    pub limit: usize,
}

#[derive(Debug, Args)]
pub struct KeyOnly {
    /// The instance's key.
    pub key: String,
}

#[derive(Debug, Args)]
pub struct Cancel {
    /// The instance's key.
    pub key: String,
    /// Why; kept in the history.
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    /// How long to wait for the end; the request stands all the same.
    #[arg(long, value_name = "DURATION", value_parser = crate::duration::parse, default_value = "5s")]
    pub wait: std::time::Duration,
    /// How long handlers may take to stop before they are abandoned.
    #[arg(long, value_name = "DURATION", value_parser = crate::duration::parse)]
    pub patience: Option<std::time::Duration>,
    /// Abandon at once what does not stop by itself.
    #[arg(long, conflicts_with = "patience")]
    pub force: bool,
}

/// How far a suspension reaches.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Scope {
    /// The instance and everything it calls.
    Tree,
    /// The instance alone.
    #[value(name = "self")]
    Alone,
}

/// What timers do during a suspension.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Timers {
    /// Their clock keeps running: what falls due fires once afterwards.
    KeepRunning,
    /// Their clock stands still: each has as much time left as before.
    StandStill,
}

#[derive(Debug, Args)]
pub struct Suspend {
    /// The instance's key.
    pub key: String,
    /// Why; everybody who looks at the instance sees it.
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    /// How far it reaches.
    #[arg(long, value_enum, default_value = "tree")]
    pub scope: Scope,
    /// What timers do meanwhile; the server's setting if it is left out.
    #[arg(long, value_enum)]
    pub timers: Option<Timers>,
    /// Cut what runs in the instance instead of waiting until it rests.
    #[arg(long)]
    pub now: bool,
    /// How long to wait until nothing runs; the hold stands all the same.
    #[arg(long, value_name = "DURATION", value_parser = crate::duration::parse, default_value = "1s")]
    pub wait: std::time::Duration,
}

#[derive(Debug, Args)]
pub struct Release {
    /// The instance's key.
    pub key: String,
    /// Why; kept in the history.
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}

#[derive(Debug, Args)]
pub struct Message {
    /// The message's name.
    pub name: String,
    /// The value that tells which instance it is for.
    #[arg(long, value_name = "TEXT")]
    pub correlation_key: Option<String>,
    /// A variable of its payload, `name=json`. A value that is not valid JSON is taken as a string.
    #[arg(long = "var", value_name = "NAME=JSON", value_parser = variable)]
    pub variables: Vec<(String, serde_json::Value)>,
    /// How long it waits for a taker.
    #[arg(long, value_name = "DURATION", value_parser = crate::duration::parse)]
    pub time_to_live: Option<std::time::Duration>,
}

#[derive(Debug, Args)]
pub struct Retry {
    /// The incident's key.
    pub key: String,
    /// How many tries the job gets.
    #[arg(long, value_name = "NUMBER")]
    pub retries: Option<u32>,
}

#[derive(Debug, Args)]
pub struct CompleteTask {
    /// The task's key.
    pub key: String,
    /// A result, `name=json`. A value that is not valid JSON is taken as a string.
    #[arg(long = "var", value_name = "NAME=JSON", value_parser = variable)]
    pub variables: Vec<(String, serde_json::Value)>,
}

/// Reads `name=json`; what is no JSON is a string.
fn variable(text: &str) -> Result<(String, serde_json::Value), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => {
            let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
            Ok((name.to_owned(), value))
        }
        _ => Err("expected `name=json`, for example `amount=12` or `customer=Ada`".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn a_value_that_is_no_json_is_a_string() {
        assert_eq!(variable("a=1").unwrap(), ("a".to_owned(), json!(1)));
        assert_eq!(variable("a=x=y").unwrap().1, json!("x=y"));
        assert_eq!(variable("a={\"b\": [1]}").unwrap().1, json!({ "b": [1] }));
        assert!(variable("a").is_err() && variable("=1").is_err());
    }
}
