//! Pausing a part of a runtime: one process id, or one tenant, with the same verbs as the whole.
//!
//! A part has a gate of its own, of the same kind as the shell's. A permit passes the narrow gates first and the
//! shell's last, and holds all of them. What is accepted for a paused part waits in the queue, in its order, while
//! everything else goes on.

use std::collections::HashMap;
use std::fmt;

use parking_lot::RwLock;
use serde::{Deserialize, Serialize};
use tidegate_model::Timestamp;

use crate::api::DEFAULT_TENANT;
use crate::error::Error;
use crate::gate::{Closing, Gate};
use crate::runtime::Runtime;

/// A part of a runtime.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "kind")]
pub enum Part {
    /// All versions of one process id in one tenant.
    Definition {
        /// The tenant.
        tenant: String,
        /// The process id.
        process_id: String,
    },
    /// Everything of one tenant.
    Tenant {
        /// The tenant.
        tenant: String,
    },
}

impl Part {
    /// A process id in the default tenant.
    pub fn definition(process_id: impl Into<String>) -> Self {
        Self::Definition {
            tenant: DEFAULT_TENANT.to_owned(),
            process_id: process_id.into(),
        }
    }

    /// The tenant that it is, or is in.
    pub fn of_tenant(&self) -> &str {
        match self {
            Self::Definition { tenant, .. } | Self::Tenant { tenant } => tenant,
        }
    }

    /// A tenant.
    pub fn tenant(tenant: impl Into<String>) -> Self {
        Self::Tenant {
            tenant: tenant.into(),
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Definition { tenant, process_id } => write!(f, "definition/{tenant}/{process_id}"),
            Self::Tenant { tenant } => write!(f, "tenant/{tenant}"),
        }
    }
}

/// What a pause of a part holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PauseScope {
    /// New instances wait; those that are there go on.
    NewStarts,
    /// Nothing begins: instances that are there stop at their next rest.
    Everything,
}

impl PauseScope {
    pub(crate) const fn closing(self) -> Closing {
        match self {
            Self::NewStarts => Closing::Starts,
            Self::Everything => Closing::Pause,
        }
    }

    /// The word in an audit entry.
    pub const fn word(self) -> &'static str {
        match self {
            Self::NewStarts => "newStarts",
            Self::Everything => "everything",
        }
    }
}

/// A pause of a part, as an operator sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PartialPause {
    /// What is paused.
    pub part: Part,
    /// What of it is held.
    pub scope: PauseScope,
    /// Since when.
    pub paused_at: Timestamp,
    /// When it ends by itself.
    pub paused_until: Option<Timestamp>,
    /// The operator's words.
    pub reason: Option<String>,
    /// Who paused.
    pub requested_by: String,
    /// Cycles of the part that are still live. Under [`PauseScope::Everything`] it only falls.
    pub active_execution_cycle_count: u64,
}

/// The narrow gates of a runtime, made when they are first asked for: a part has a gate whether it is paused or not, so
/// that a later pause knows what is live.
#[derive(Debug, Default)]
pub(crate) struct Gates {
    by_part: RwLock<HashMap<Part, Gate>>,
}

impl Gates {
    pub(crate) fn of(&self, part: &Part) -> Gate {
        if let Some(gate) = self.by_part.read().get(part) {
            return gate.clone();
        }
        self.by_part.write().entry(part.clone()).or_default().clone()
    }

    /// The process ids of a tenant that are paused altogether.
    pub(crate) fn paused_definitions(&self, of_tenant: &str) -> Vec<String> {
        let by_part = self.by_part.read();
        let paused = by_part.iter().filter_map(|(part, gate)| match part {
            Part::Definition { tenant, process_id } if tenant == of_tenant && !gate.read().is_accepting() => {
                Some(process_id.clone())
            }
            Part::Definition { .. } | Part::Tenant { .. } => None,
        });
        paused.collect()
    }
}

impl Runtime {
    /// Pauses a part. Idempotent: a part that is paused as far as asked for keeps its first reason, author and time; one
    /// that is paused less far is paused further. Answers with the pause that stands.
    ///
    /// # Durability
    /// As [`Runtime::pause`].
    ///
    /// # Errors
    /// Unknown process id; `until` has passed; the pause could not be made durable where it must be.
    pub async fn pause_part(
        &self,
        part: Part,
        scope: PauseScope,
        reason: Option<String>,
        until: Option<Timestamp>,
        actor: &str,
    ) -> Result<PartialPause, Error> {
        if let Part::Definition { tenant, process_id } = &part {
            self.must_know(tenant, process_id).await?;
        }
        let (pause, actor, paused) = (self.inner().pause.clone(), actor.to_owned(), part.clone());
        // In a task of its own: a caller that hangs up changes nothing.
        let step = tokio::spawn(crate::request::carry(async move {
            pause.pause_part(paused, scope, reason, until, &actor).await
        }));
        step.await.map_err(|_| Error::Stopped)?
    }

    /// Ends the pause of a part. Idempotent; true if there was one. What waited goes on in its order. The pause of the
    /// whole runtime, where there is one, stands.
    ///
    /// # Errors
    /// The end could not be made durable where it must be.
    pub async fn resume_part(&self, part: Part, actor: &str) -> Result<bool, Error> {
        let (pause, actor) = (self.inner().pause.clone(), actor.to_owned());
        let step = tokio::spawn(crate::request::carry(async move {
            pause.resume_part(&part, &actor).await
        }));
        step.await.map_err(|_| Error::Stopped)?
    }

    /// Pauses a process id of the default tenant: see [`Runtime::pause_part`].
    ///
    /// # Errors
    /// As [`Runtime::pause_part`].
    pub async fn pause_definition(
        &self,
        process_id: &str,
        scope: PauseScope,
        reason: Option<String>,
        until: Option<Timestamp>,
        actor: &str,
    ) -> Result<PartialPause, Error> {
        self.pause_part(Part::definition(process_id), scope, reason, until, actor)
            .await
    }

    /// Ends the pause of a process id of the default tenant: see [`Runtime::resume_part`].
    ///
    /// # Errors
    /// As [`Runtime::resume_part`].
    pub async fn resume_definition(&self, process_id: &str, actor: &str) -> Result<bool, Error> {
        self.resume_part(Part::definition(process_id), actor).await
    }

    /// The parts that are paused, in their order.
    pub fn partial_pauses(&self) -> Vec<PartialPause> {
        self.inner().pause.parts()
    }

    /// Ends when no cycle of the part is live. Behind a pause of everything that lasts.
    ///
    /// Cancel safe.
    pub async fn part_idle(&self, part: &Part) {
        idle(&self.shared().definitions.gates.of(part)).await;
    }

    /// Ends when no cycle is live. Behind a closed gate that lasts.
    ///
    /// Cancel safe.
    pub async fn idle(&self) {
        idle(&self.shared().gate).await;
    }
}

async fn idle(gate: &Gate) {
    let (sender, told) = tokio::sync::oneshot::channel();
    gate.when_idle(move || {
        // The waiter may have gone.
        let _ = sender.send(());
    });
    // The gate keeps its callbacks until it is idle: an end without a word is not possible.
    let _ = told.await;
}
