//! Taking definitions away, and starting them by version: which versions there are, and which of them owns what starts
//! by itself.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tidegate_model::{DefinitionKey, InstanceKey};
use tidegate_store::{
    Commit, CommitError, DefinitionFilter, DefinitionRow, InstanceFilter, Page, TimerRow, Write,
};
use tokio::time::Instant;

use crate::builder::blocking;
use crate::definitions::Loaded;
use crate::deploy::{disarm_starts, first_turns, forget_timers};
use crate::error::Error;
use crate::request;
use crate::runtime::Runtime;
use crate::shutdown::within;

/// What becomes of the live instances of a definition that is unregistered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LiveInstances {
    /// They finish on their own version, resident or parked; nobody waits for it.
    #[default]
    GoOn,
    /// They finish, and the call waits so long for it.
    AreAwaited(Duration),
    /// They are cancelled, and the call waits so long for their ends.
    AreCancelled(Duration),
}

/// Where a definition is in its life. Derived from its record and its instances; nothing else says the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DefinitionState {
    /// Registered: it can be started.
    Active,
    /// Unregistered, and instances of it live. No further one begins.
    Retiring,
    /// Unregistered, and no instance of it lives. Its version number is never given again.
    Deleted,
}

/// What came of unregistering.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Unregistered {
    /// The definition.
    pub definition_key: DefinitionKey,
    /// [`DefinitionState::Retiring`] or [`DefinitionState::Deleted`].
    pub state: DefinitionState,
    /// How many instances were cancelled for it.
    pub cancelled: u64,
}

/// The reason that cancelled instances are given.
const REASON: &str = "its definition is unregistered";
/// How long one of the last instances is waited for before the next look.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

impl Runtime {
    /// Unregisters a definition: it cannot be started any more, by nobody and nothing, once this has answered. If it was
    /// the newest version of its process, the version before it becomes the newest and owns what starts by itself
    /// again, in the same step: a message finds one of them, never both and never none. Timer start events of that
    /// version begin a new grid now.
    ///
    /// A start that races this either begins, and its instance finishes on this version, or is refused with
    /// [`Error::NoSuchDefinition`] or [`Error::NoSuchProcess`].
    ///
    /// # Durability
    /// On disk when this returns.
    ///
    /// # Errors
    /// Unknown or unregistered definition; a failing store, after which it stays registered.
    ///
    /// # Cancel safety
    /// It goes on if the future is dropped; only the wait for the instances does not.
    pub async fn unregister(
        &self,
        key: DefinitionKey,
        live: LiveInstances,
        actor: &str,
    ) -> Result<Unregistered, Error> {
        self.must_live()?;
        let (runtime, actor) = (self.clone(), actor.to_owned());
        // In a task of its own: a caller that hangs up leaves no version half known.
        let step = tokio::spawn(request::carry(async move {
            let turn = runtime.shared().definitions.turn.clone();
            let _turn = turn.lock().await;
            runtime.take_away(key, &actor).await
        }));
        step.await.map_err(|_| Error::Stopped)??;
        self.settle(key, live).await
    }

    /// As [`Runtime::unregister`]; live instances go on.
    ///
    /// # Errors
    /// As [`Runtime::unregister`].
    pub async fn delete_definition(&self, key: DefinitionKey, actor: &str) -> Result<(), Error> {
        self.unregister(key, LiveInstances::GoOn, actor).await.map(drop)
    }

    /// Where a definition is in its life.
    ///
    /// # Errors
    /// There never was one of this key; the store cannot be read.
    pub async fn definition_state(&self, key: DefinitionKey) -> Result<DefinitionState, Error> {
        let store = self.shared().store.clone();
        let row = blocking(move || store.definition(key)).await?;
        match row {
            None => Err(Error::NoSuchDefinition(key)),
            Some(row) if !row.is_deleted => Ok(DefinitionState::Active),
            Some(_) => match self.one_live(key).await? {
                Some(_) => Ok(DefinitionState::Retiring),
                None => Ok(DefinitionState::Deleted),
            },
        }
    }

    async fn one_live(&self, key: DefinitionKey) -> Result<Option<InstanceKey>, Error> {
        let rows = self.live(&instances_of(key), None, 1).await?;
        Ok(rows.first().map(|row| row.key))
    }

    async fn take_away(&self, key: DefinitionKey, actor: &str) -> Result<(), Error> {
        let shared = self.shared().clone();
        let row = self.definition(key).await?;
        let leaving = {
            let shared = shared.clone();
            blocking(move || shared.definitions.get(&*shared.store, key)).await?
        };
        let was_latest = leaving
            .as_ref()
            .is_some_and(|leaving| shared.definitions.is_latest(leaving));
        let before = match was_latest {
            true => self.version_before(&row).await?,
            false => None,
        };
        if let Some(leaving) = &leaving {
            shared.definitions.leave(leaving, before.clone());
            // What an owner began before it saw that has handed its first commit over when this ends.
            self.inner().owners.barrier().await;
        }
        let now = shared.now();
        let mut commit = Commit {
            expect: Vec::new(),
            writes: vec![Write::DeleteDefinition(key)],
        };
        commit
            .writes
            .extend(leaving.iter().flat_map(|leaving| disarm_starts(leaving)));
        let timers: Vec<TimerRow> = before
            .iter()
            .flat_map(|loaded| first_turns(loaded, now))
            .collect();
        commit.writes.extend(timers.iter().cloned().map(Write::ArmTimer));
        let mut audit = shared.audit("DefinitionUnregistered", actor, None);
        audit.subject = Some(key.to_string());
        commit.writes.push(Write::Audit(Box::new(audit)));
        if let Err(CommitError::Failed { error, .. }) = shared.commit(commit).await {
            if let Some(leaving) = leaving {
                shared.definitions.stay(leaving);
            }
            return Err(error.into());
        }
        if let Some(leaving) = &leaving {
            shared.definitions.left(leaving);
            forget_timers(&shared, leaving);
        }
        for timer in &timers {
            shared.timers.armed(timer);
        }
        self.settle_processes(&row.tenant, vec![row.process_id.to_string()])
            .await
    }

    async fn settle(&self, key: DefinitionKey, live: LiveInstances) -> Result<Unregistered, Error> {
        let mut cancelled = 0;
        let patience = match live {
            LiveInstances::GoOn => Duration::ZERO,
            LiveInstances::AreAwaited(patience) | LiveInstances::AreCancelled(patience) => patience,
        };
        let until = within(patience);
        if let LiveInstances::AreCancelled(_) = live {
            cancelled = self.cancel_all(Some(&instances_of(key)), REASON, until).await;
        }
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let Some(one) = self.one_live(key).await? else {
                return Ok(Unregistered {
                    definition_key: key,
                    state: DefinitionState::Deleted,
                    cancelled,
                });
            };
            if left.is_zero() {
                return Ok(Unregistered {
                    definition_key: key,
                    state: DefinitionState::Retiring,
                    cancelled,
                });
            }
            // Its end, or a new look: whichever is first.
            if let Err(Error::Stopped) = self.wait(one, left.min(LOOK_AGAIN)).await {
                return Err(Error::Stopped);
            }
        }
    }

    async fn version_before(&self, row: &DefinitionRow) -> Result<Option<Arc<Loaded>>, Error> {
        let filter = DefinitionFilter {
            kind: Some(row.kind),
            process_id: Some(row.process_id.to_string()),
            latest: false,
            tenant: Some(row.tenant.to_string()),
        };
        let (shared, key) = (self.shared().clone(), row.key);
        blocking(move || {
            let rows = shared.store.definitions(&filter, Page::first(1_000))?;
            let before = rows
                .into_iter()
                .filter(|row| row.key != key)
                .max_by_key(|row| row.version);
            match before {
                Some(before) => shared.definitions.get(&*shared.store, before.key),
                None => Ok(None),
            }
        })
        .await
    }
}

fn instances_of(key: DefinitionKey) -> InstanceFilter {
    InstanceFilter {
        definition: Some(key),
        ..InstanceFilter::default()
    }
}
