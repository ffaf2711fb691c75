//! Arguments of the commands about many instances.

use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use serde_json::Value;

/// What instances are told apart by.
#[derive(Debug, Args)]
pub struct Matching {
    /// One or more sub-statuses, with commas between them.
    #[arg(long, value_name = "WORDS")]
    pub sub_status: Option<String>,
    /// Of this process.
    #[arg(long, value_name = "ID")]
    pub process_id: Option<String>,
    /// Of this definition.
    #[arg(long, value_name = "KEY")]
    pub definition_key: Option<String>,
    /// With this business key.
    #[arg(long, value_name = "TEXT")]
    pub business_key: Option<String>,
    /// Called by this instance.
    #[arg(long, value_name = "KEY")]
    pub parent_key: Option<String>,
    /// With an open incident.
    #[arg(long)]
    pub has_incident: bool,
    /// Started at or after this time (RFC 3339).
    #[arg(long, value_name = "TIME")]
    pub started_after: Option<String>,
    /// Started before this time (RFC 3339).
    #[arg(long, value_name = "TIME")]
    pub started_before: Option<String>,
    /// Of this tenant.
    #[arg(long, value_name = "ID")]
    pub tenant_id: Option<String>,
}

/// Which instances.
#[derive(Debug, Args)]
pub struct Which {
    /// `running` or `finished`.
    #[arg(long, value_name = "WORD")]
    pub status: Option<String>,
    #[command(flatten)]
    pub matching: Matching,
}

impl Which {
    /// As query parameters.
    pub fn query(self) -> Vec<(&'static str, String)> {
        let matching = self.matching;
        let given = [
            ("status", self.status),
            ("subStatus", matching.sub_status),
            ("processId", matching.process_id),
            ("definitionKey", matching.definition_key),
            ("businessKey", matching.business_key),
            ("parentKey", matching.parent_key),
            ("hasIncident", matching.has_incident.then(|| "true".to_owned())),
            ("startedAfter", matching.started_after),
            ("startedBefore", matching.started_before),
            ("tenantId", matching.tenant_id),
        ];
        given
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)))
            .collect()
    }
}

/// What else there is to do with the list.
#[derive(Debug, Subcommand)]
pub enum InstancesAction {
    /// Print instances with their journals, newest first, one JSON object a line.
    Export(Box<Export>),
}

#[derive(Debug, Args)]
pub struct Export {
    #[command(flatten)]
    pub which: Which,
}

#[derive(Debug, Args)]
pub struct Forget {
    /// The instances' keys.
    #[arg(required = true, value_name = "KEY")]
    pub keys: Vec<String>,
    /// Let their journals stay readable.
    #[arg(long)]
    pub keep_journal: bool,
}

#[derive(Debug, Args)]
pub struct Batches {
    #[command(subcommand)]
    pub action: BatchAction,
}

#[derive(Debug, Subcommand)]
pub enum BatchAction {
    /// Begin one.
    Start(Box<BatchStart>),
    /// List them, newest first.
    List,
    /// Show how far one got.
    Show(BatchKey),
    /// Follow one until it is over; progress goes to standard error.
    Watch(BatchKey),
    /// Show what became of each instance.
    Items(BatchItems),
    /// Pause one, between two instances.
    Pause(BatchKey),
    /// Let a paused one go on.
    Resume(BatchKey),
    /// End one: what was not done stays undone.
    Cancel(BatchKey),
}

/// What a batch does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Verb {
    /// End instances.
    Cancel,
    /// Suspend instances, with those they called.
    Suspend,
    /// Let suspended ones go.
    Resume,
    /// Try once more what their incidents stopped.
    Retry,
    /// Forget those that have ended.
    Forget,
    /// Change instances to another version of their process.
    Migrate,
}

#[derive(Debug, Args)]
pub struct BatchStart {
    /// What to do.
    pub verb: Verb,
    /// Without a sub-status: every live instance, or every one to forget.
    #[command(flatten)]
    pub matching: Matching,
    /// Say what would be done, and do nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Of `forget`: let the journals stay readable.
    #[arg(long)]
    pub keep_journal: bool,
    /// Of `migrate`: the key of the definition that they change to.
    #[arg(long, value_name = "KEY", required_if_eq("verb", "migrate"))]
    pub to: Option<String>,
    /// Of `migrate`: an element or flow of today and its id there. What is not named keeps its id.
    #[arg(long = "map", value_name = "ID=ID", value_parser = super::repair::pair)]
    pub mapping: Vec<(String, String)>,
    /// Why; kept in the history and the audit.
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    /// Return only when it is over; progress goes to standard error.
    #[arg(long)]
    pub wait: bool,
}

#[derive(Debug, Args)]
pub struct BatchKey {
    /// The batch's key.
    pub key: String,
}

#[derive(Debug, Args)]
pub struct BatchItems {
    /// The batch's key.
    pub key: String,
    /// Only those with this outcome.
    #[arg(long, value_name = "WORD")]
    pub outcome: Option<String>,
}

/// Without anything to set, shows what holds.
#[derive(Debug, Args)]
pub struct Settings {
    /// The BPMN id of the process.
    pub process_id: String,
    /// Of this tenant.
    #[arg(long, value_name = "ID")]
    pub tenant_id: Option<String>,
    /// How many instances may be live at once; 0 for no limit.
    #[arg(long, value_name = "NUMBER")]
    pub max_instances: Option<u32>,
    /// What happens to a start beyond them: `queue`, `skip` or `replace`.
    #[arg(long, value_name = "WHAT")]
    pub when_full: Option<String>,
    /// For how long finished instances are kept; 0s for ever.
    #[arg(long, value_name = "DURATION", value_parser = crate::duration::parse)]
    pub retention: Option<Duration>,
    /// How many finished instances are kept; 0 for all.
    #[arg(long, value_name = "NUMBER")]
    pub retention_count: Option<u64>,
    /// How many journal entries of a live instance are kept; 0 for all.
    #[arg(long, value_name = "NUMBER")]
    pub journal_limit: Option<u64>,
    /// Leave everything to the model and the defaults again.
    #[arg(long, conflicts_with_all = ["max_instances", "when_full", "retention", "retention_count", "journal_limit"])]
    pub reset: bool,
}

impl Settings {
    /// What is to be set, by its name in the API.
    pub fn given(&self) -> Vec<(&'static str, Value)> {
        let ms = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        let given = [
            ("maxInstances", self.max_instances.map(Value::from)),
            ("whenFull", self.when_full.clone().map(Value::from)),
            ("retentionMs", self.retention.map(|age| ms(age).into())),
            ("retentionCount", self.retention_count.map(Value::from)),
            ("journalLimit", self.journal_limit.map(Value::from)),
        ];
        given
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)))
            .collect()
    }
}
