//! Arguments of the commands that put instances right.

use std::path::PathBuf;

use clap::Args;

use super::variable;

#[derive(Debug, Args)]
pub struct SetVariables {
    /// The instance's key.
    pub key: String,
    /// A variable, `name=json`. A value that is not valid JSON is taken as a string.
    #[arg(long = "var", value_name = "NAME=JSON", value_parser = variable, required = true)]
    pub variables: Vec<(String, serde_json::Value)>,
    /// The element instance that holds them; the instance itself without it.
    #[arg(long, value_name = "KEY")]
    pub scope: Option<String>,
    /// Why; kept in the history and the audit.
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}

#[derive(Debug, Args)]
pub struct Resolve {
    /// The incident's key.
    pub key: String,
    /// A variable to correct first, `name=json`. A value that is not valid JSON is taken as a string.
    #[arg(long = "var", value_name = "NAME=JSON", value_parser = variable)]
    pub variables: Vec<(String, serde_json::Value)>,
    /// How many tries the job gets.
    #[arg(long, value_name = "NUMBER")]
    pub retries: Option<u32>,
    /// Why; kept in the history and the audit.
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}

#[derive(Debug, Args)]
pub struct Modify {
    /// The instance's key.
    pub key: String,
    /// What ends: the id of an element, with the tokens that wait before it, or the key of an element instance.
    #[arg(long, value_name = "ID|KEY")]
    pub terminate: Vec<String>,
    /// The id of an element that begins.
    #[arg(long, value_name = "ID")]
    pub activate: Vec<String>,
    /// The id of an element that a token leaves by its only flow.
    #[arg(long, value_name = "ID")]
    pub after: Vec<String>,
    /// The id of a flow that a token is put on.
    #[arg(long, value_name = "ID")]
    pub flow: Vec<String>,
    /// A variable of the instance to set first, `name=json`. A value that is not valid JSON is taken as a string.
    #[arg(long = "var", value_name = "NAME=JSON", value_parser = variable)]
    pub variables: Vec<(String, serde_json::Value)>,
    #[command(flatten)]
    pub how: How,
}

#[derive(Debug, Args)]
pub struct Migrate {
    /// The instance's key.
    pub key: String,
    /// The version; the newest without it.
    #[arg(long, value_name = "NUMBER")]
    pub to: Option<u32>,
    /// A version that is not deployed, for a dry run.
    #[arg(long, value_name = "FILE", conflicts_with = "to", requires = "dry_run")]
    pub file: Option<PathBuf>,
    /// An element or flow of today and its id there. What is not named keeps its id.
    #[arg(long = "map", value_name = "ID=ID", value_parser = pair)]
    pub mapping: Vec<(String, String)>,
    #[command(flatten)]
    pub how: How,
}

#[derive(Debug, Args)]
pub struct Restart {
    /// The key of an instance that has ended.
    pub key: String,
    /// The id of an element that begins. Without any place, the new instance begins at its start.
    #[arg(long, value_name = "ID")]
    pub activate: Vec<String>,
    /// The id of an element that a token leaves by its only flow.
    #[arg(long, value_name = "ID")]
    pub after: Vec<String>,
    /// The id of a flow that a token is put on.
    #[arg(long, value_name = "ID")]
    pub flow: Vec<String>,
    /// A variable put over those of the other instance, `name=json`. A value that is not valid JSON is taken as a string.
    #[arg(long = "var", value_name = "NAME=JSON", value_parser = variable)]
    pub variables: Vec<(String, serde_json::Value)>,
    /// The key of another version's definition.
    #[arg(long, value_name = "KEY")]
    pub definition_key: Option<String>,
    #[command(flatten)]
    pub how: How,
}

/// Whether it is done, and why.
#[derive(Debug, Args)]
pub struct How {
    /// Say what would happen, and change nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Why; kept in the history and the audit.
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}

#[derive(Debug, Args)]
pub struct MigrationCheck {
    /// The key of the definition that the others are to change to.
    #[arg(required_unless_present = "file", conflicts_with = "file")]
    pub key: Option<String>,
    /// A version that is not deployed yet, in the place of a definition.
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Which process of the file; not needed when it has one.
    #[arg(long, value_name = "ID", requires = "file")]
    pub process_id: Option<String>,
    /// Of this tenant.
    #[arg(long, value_name = "ID", requires = "file")]
    pub tenant_id: Option<String>,
    /// An element or flow of today and its id there. What is not named keeps its id.
    #[arg(long = "map", value_name = "ID=ID", value_parser = pair)]
    pub mapping: Vec<(String, String)>,
    /// How many instances to look at, newest first.
    #[arg(long, value_name = "NUMBER", default_value_t = 1_000)]
    pub limit: usize,
}

pub(super) fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((from, to)) if !from.is_empty() && !to.is_empty() => Ok((from.to_owned(), to.to_owned())),
        _ => Err("expected `id=id`, for example `ship=send`".to_owned()),
    }
}
