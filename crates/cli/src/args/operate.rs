//! Arguments of the commands by which a host is operated.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::Output;
use crate::serve::ServeArguments;

#[derive(Debug, Args)]
pub struct Pause {
    /// Why; everybody who looks at the status sees it.
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    /// End by itself at this time (RFC 3339).
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
    #[command(flatten)]
    pub wait: Wait,
}

/// Waiting until nothing runs.
#[derive(Debug, Args)]
pub struct Wait {
    /// Return only when nothing runs any more; progress goes to standard error.
    #[arg(long)]
    pub wait: bool,
    /// How long to wait at most; the pause stands all the same.
    #[arg(long, value_name = "DURATION", value_parser = crate::duration::parse, requires = "wait")]
    pub timeout: Option<std::time::Duration>,
}

#[derive(Debug, Args)]
pub struct Reason {
    /// Why.
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}

#[derive(Debug, Subcommand)]
pub enum Maintenance {
    /// Pause every shell of the host.
    Enter(super::Call<Pause>),
    /// Resume every shell of the host.
    Leave(super::Call<super::Nothing>),
}

#[derive(Debug, Args)]
pub struct Audit {
    /// How many entries, newest first.
    #[arg(long, value_name = "NUMBER", default_value_t = 50)]
    pub limit: usize,
    /// Everything, newest first, one JSON object a line.
    #[arg(long)]
    pub export: bool,
}

#[derive(Debug, Args)]
pub struct OptionalShell {
    /// The shell; every one if none is given.
    #[arg(value_name = "SHELL")]
    pub id: Option<String>,
}

#[derive(Debug, Args)]
pub struct OneShell {
    /// The shell.
    #[arg(value_name = "SHELL")]
    pub id: String,
}

/// `tidegate drain`.
#[derive(Debug, Args)]
pub struct DrainArguments {
    /// Print what a drain would do, step by step, and when. Needs no server.
    #[arg(long, required = true)]
    pub plan: bool,
    /// How to print the plan.
    #[arg(short, long, value_enum, default_value_t)]
    pub output: Output,
    #[command(flatten)]
    pub settings: ServeArguments,
}

/// `tidegate check`.
#[derive(Debug, Args)]
pub struct CheckArguments {
    /// The files, as they would be deployed together.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Job types that stand in for Java classes and delegates, as in the setting of the server.
    #[arg(
        long,
        value_name = "NAME=TYPE,…",
        default_value = "",
        hide_default_value = true
    )]
    pub delegates: String,
    /// How to print what is found.
    #[arg(short, long, value_enum, default_value_t)]
    pub output: Output,
}

/// `tidegate completions`.
#[derive(Debug, Args)]
pub struct CompletionArguments {
    /// For this shell of the operating system.
    pub shell: clap_complete::Shell,
}
