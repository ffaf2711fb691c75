//! How many instances of a process may be live, and how long finished ones are remembered: what an operator set, else what
//! the model says, else the runtime's defaults.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tidegate_engine::ProcessSettings;
use tidegate_store::{Commit, CommitError, Write};

use crate::api::DEFAULT_TENANT;
use crate::builder::blocking;
use crate::error::Error;
use crate::runtime::Runtime;

/// What happens to a start when a process has as many live instances as it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum WhenFull {
    /// It waits for its turn, in the order of acceptance.
    #[default]
    Queue,
    /// It is refused; one that was accepted already is cancelled.
    Skip,
    /// The oldest live instance is cancelled, and so is whoever waits; the newest start takes the place.
    Replace,
}

impl From<tidegate_engine::WhenFull> for WhenFull {
    fn from(of_model: tidegate_engine::WhenFull) -> Self {
        match of_model {
            tidegate_engine::WhenFull::Queue => Self::Queue,
            tidegate_engine::WhenFull::Skip => Self::Skip,
            tidegate_engine::WhenFull::Replace => Self::Replace,
        }
    }
}

/// What can be set for one process id in a tenant. `None` leaves it to the model, and then to the defaults of the
/// runtime; 0 lifts a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct DefinitionSettings {
    /// How many instances may be live at once.
    pub max_instances: Option<u32>,
    /// What happens to a start beyond them.
    pub when_full: Option<WhenFull>,
    /// For how long finished instances are kept, in milliseconds.
    pub retention_ms: Option<u64>,
    /// How many finished instances are kept.
    pub retention_count: Option<u64>,
    /// How many journal entries of a live instance are kept, at least.
    pub journal_limit: Option<u64>,
}

/// How long what has ended is remembered, and how much of what goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// For how long finished instances are kept; none for ever.
    pub age: Option<Duration>,
    /// How many finished instances of each process id are kept; none for all.
    pub count: Option<u64>,
    /// How many journal entries of a live instance are kept, at least; none for all. An entry is what one commit wrote.
    pub journal_limit: Option<u64>,
    /// For how long the key of a forgotten instance is remembered: what comes late for it is told so, and nothing of it
    /// can be written again.
    pub fence: Duration,
    /// How often it is looked for what is to be forgotten.
    pub every: Duration,
}

impl Default for Retention {
    /// Thirty days, 10,000 journal entries of a live instance, a fence of an hour, looked at every minute.
    fn default() -> Self {
        Self {
            age: Some(Duration::from_secs(30 * 24 * 3_600)),
            count: None,
            journal_limit: Some(10_000),
            fence: Duration::from_secs(3_600),
            every: Duration::from_secs(60),
        }
    }
}

/// What holds for a process: settings with nothing left open. `None` is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EffectiveSettings {
    /// How many instances may be live at once.
    pub max_instances: Option<u32>,
    /// What happens to a start beyond them.
    pub when_full: WhenFull,
    /// For how long finished instances are kept, in milliseconds.
    pub retention_ms: Option<u64>,
    /// How many finished instances are kept.
    pub retention_count: Option<u64>,
    /// How many journal entries of a live instance are kept, at least.
    pub journal_limit: Option<u64>,
}

impl EffectiveSettings {
    pub(crate) fn of(set: &DefinitionSettings, model: &ProcessSettings, defaults: &Retention) -> Self {
        let ms = |age: Duration| u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
        let of_model = model.retention_ms.map(|ms| u64::try_from(ms).unwrap_or(0));
        let first = |set: Option<u64>, model: Option<u64>, default: Option<u64>| {
            set.or(model).or(default).filter(|limit| *limit > 0)
        };
        Self {
            max_instances: set.max_instances.or(model.max_instances).filter(|most| *most > 0),
            when_full: set
                .when_full
                .or(model.when_full.map(WhenFull::from))
                .unwrap_or_default(),
            retention_ms: first(set.retention_ms, of_model, defaults.age.map(ms)),
            retention_count: first(set.retention_count, model.retention_count, defaults.count),
            journal_limit: first(set.journal_limit, model.journal_limit, defaults.journal_limit),
        }
    }
}

/// The settings of a process as an operator sees them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SettingsView {
    /// The tenant.
    pub tenant: String,
    /// The process id.
    pub process_id: String,
    /// What was set.
    pub set: DefinitionSettings,
    /// What holds.
    pub effective: EffectiveSettings,
    /// Where the number of instances is limited: which are live.
    #[serde(serialize_with = "keys")]
    pub live: Vec<tidegate_model::InstanceKey>,
    /// How many starts wait for their turn.
    pub waiting: usize,
}

fn keys<S: serde::Serializer>(keys: &[tidegate_model::InstanceKey], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(keys.iter().map(ToString::to_string))
}

/// Where settings are kept.
pub(crate) fn entry(tenant: &str, process_id: &str) -> String {
    format!("settings/{tenant}/{process_id}")
}

pub(crate) fn decode(bytes: Option<&[u8]>) -> DefinitionSettings {
    bytes
        .and_then(|bytes| serde_json::from_slice(bytes).ok())
        .unwrap_or_default()
}

impl Runtime {
    /// The settings of a process.
    ///
    /// # Errors
    /// Unknown process; the store cannot be read.
    pub async fn definition_settings(
        &self,
        process_id: &str,
        tenant: Option<&str>,
    ) -> Result<SettingsView, Error> {
        let tenant = tenant.unwrap_or(DEFAULT_TENANT);
        self.must_know(tenant, process_id).await?;
        let shared = self.shared().clone();
        let state = shared.definitions.processes.of(tenant, process_id);
        let kept = entry(tenant, process_id);
        let bytes = blocking(move || shared.store.value(&kept, shared.now())).await?;
        state.set(decode(bytes.as_deref()));
        Ok(state.view())
    }

    /// Sets how a process is limited and remembered. What is `None` is left to its model and the defaults.
    ///
    /// # Durability
    /// On disk, with its audit entry, when this answers; it holds from then on, and after a restart.
    ///
    /// # Errors
    /// Unknown process, a failing store.
    pub async fn set_definition_settings(
        &self,
        process_id: &str,
        tenant: Option<&str>,
        settings: DefinitionSettings,
        actor: &str,
    ) -> Result<SettingsView, Error> {
        let tenant = tenant.unwrap_or(DEFAULT_TENANT);
        let before = self.definition_settings(process_id, Some(tenant)).await?;
        if before.set == settings {
            return Ok(before);
        }
        let shared = self.shared();
        let text = |set: &DefinitionSettings| serde_json::to_string(set).unwrap_or_default();
        let mut audit = shared.audit("DefinitionSettingsChanged", actor, None);
        audit.subject = Some(format!("{tenant}/{process_id}"));
        audit.scope = "definition".to_owned();
        audit.before = Some(text(&before.set));
        audit.after = Some(text(&settings));
        let commit = Commit {
            expect: Vec::new(),
            writes: vec![
                Write::SetValue {
                    key: entry(tenant, process_id),
                    value: text(&settings).into_bytes(),
                    expires_at: None,
                },
                Write::Audit(Box::new(audit)),
            ],
        };
        match shared.commit(commit).await {
            Ok(_) | Err(CommitError::Refused(_)) => {}
            Err(CommitError::Failed { error, .. }) => return Err(error.into()),
        }
        let state = shared.definitions.processes.of(tenant, process_id);
        state.set(settings);
        self.settle_limits(&state).await?;
        Ok(state.view())
    }
}
