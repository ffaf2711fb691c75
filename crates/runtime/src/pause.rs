//! The administrative pause: reversible, idempotent, with a reason, an author and perhaps an end.

use std::sync::Arc;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tidegate_model::Timestamp;
use tidegate_store::{Commit, CommitError, Write};

use crate::error::Error;
use crate::gate::Closing;
use crate::ingress::Sources;
use crate::options::PausePersistence;
use crate::owner::{Message, Owners};
use crate::shared::Shared;

/// The key-value entry that keeps a pause across generations.
const ENTRY: &str = "runtime/pause";

/// Who paused, when and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) at: Timestamp,
    pub(crate) until: Option<Timestamp>,
    pub(crate) reason: Option<String>,
    pub(crate) by: String,
}

/// The pause of one shell.
pub(crate) struct Pause {
    shared: Arc<Shared>,
    owners: Owners,
    sources: Arc<Sources>,
    record: Mutex<Option<Record>>,
    /// Pauses and resumes come one after the other; each answers with the state after its own step.
    turn: tokio::sync::Mutex<()>,
    changed: tokio::sync::Notify,
}

impl Pause {
    pub(crate) fn new(shared: Arc<Shared>, owners: Owners, sources: Arc<Sources>) -> Self {
        Self {
            shared,
            owners,
            sources,
            record: Mutex::new(None),
            turn: tokio::sync::Mutex::new(()),
            changed: tokio::sync::Notify::new(),
        }
    }

    pub(crate) fn record(&self) -> Option<Record> {
        self.record.lock().clone()
    }

    /// Takes over the pause of an earlier generation, before any source starts.
    pub(crate) fn restore(&self) -> Result<(), tidegate_store::Error> {
        if self.shared.options.pause_persistence != PausePersistence::AcrossReactivations {
            return Ok(());
        }
        let now = self.shared.now();
        let Some(bytes) = self.shared.store.value(ENTRY, now)? else {
            return Ok(());
        };
        match serde_json::from_slice::<Record>(&bytes) {
            Ok(record) if record.until.is_none_or(|until| until > now) => {
                self.shared.gate.close(Closing::Pause);
                *self.record.lock() = Some(record);
            }
            Ok(_) => {}
            Err(error) => tracing::error!("the stored pause cannot be read and is ignored: {error}"),
        }
        Ok(())
    }

    /// Pauses. True if this call did it.
    pub(crate) async fn pause(
        &self,
        reason: Option<String>,
        until: Option<Timestamp>,
        actor: &str,
    ) -> Result<bool, Error> {
        let _turn = self.turn.lock().await;
        if self.record.lock().is_some() {
            return Ok(false);
        }
        let now = self.shared.now();
        if until.is_some_and(|until| until <= now) {
            return Err(Error::Invalid {
                code: "until-in-the-past",
                message: "`until` has passed already; give a later time, or none".to_owned(),
            });
        }
        let record = Record {
            at: now,
            until,
            reason: reason.clone(),
            by: actor.to_owned(),
        };
        let mut audit = self.shared.audit("RuntimePauseRequested", actor, reason);
        audit.before = Some(self.shared.gate.read().reason().to_owned());
        self.keep(Some(&record), audit).await?;
        *self.record.lock() = Some(record);
        self.shared.gate.close(Closing::Pause);
        self.shared.tick();
        let changed = || self.shared.tick();
        self.sources.pause(None, &changed).await;
        self.changed.notify_one();
        Ok(true)
    }

    /// Resumes. True if this call did it.
    pub(crate) async fn resume(&self, actor: &str) -> Result<bool, Error> {
        let _turn = self.turn.lock().await;
        if self.record.lock().is_none() {
            return Ok(false);
        }
        let mut audit = self.shared.audit("RuntimeResumeRequested", actor, None);
        audit.before = Some(self.shared.gate.read().reason().to_owned());
        self.keep(None, audit).await?;
        *self.record.lock() = None;
        if !self.shared.gate.read().is_draining() {
            let changed = || self.shared.tick();
            self.sources.resume(&changed).await;
        }
        self.open().await;
        self.changed.notify_one();
        Ok(true)
    }

    /// Opens the gate. What fell due or was accepted meanwhile stands in the owners' lines before anything newer
    /// can be admitted, so it goes first.
    async fn open(&self) {
        let shared = self.shared.clone();
        let now = shared.now();
        let store = shared.store.clone();
        const MOST: usize = 100_000;
        let due = tokio::task::spawn_blocking(move || store.timers(now, None, MOST)).await;
        if let Ok(Ok(rows)) = due {
            let by_owner = self
                .owners
                .split(rows, |row| row.instance.map_or(row.owner, |key| key.get()));
            for (owner, rows) in by_owner {
                self.owners.send_to(owner, Message::TimersDue(rows));
            }
            self.owners.barrier().await;
        }
        self.shared.gate.lift_pause();
        self.shared.tick();
        self.owners.tell_all(|| Message::Opened);
        self.shared.timers.wake();
    }

    /// Writes the record (or its end) together with the audit entry.
    async fn keep(&self, record: Option<&Record>, audit: tidegate_store::AuditRow) -> Result<(), Error> {
        let is_durable = self.shared.options.pause_persistence == PausePersistence::AcrossReactivations;
        if !is_durable {
            self.shared.write_audit(audit).await;
            return Ok(());
        }
        let entry = match record {
            Some(record) => Write::SetValue {
                key: ENTRY.to_owned(),
                value: serde_json::to_vec(record).unwrap_or_default(),
                expires_at: None,
            },
            None => Write::RemoveValue(ENTRY.to_owned()),
        };
        let commit = Commit {
            expect: Vec::new(),
            writes: vec![entry, Write::Audit(Box::new(audit))],
        };
        match self.shared.commit(commit).await {
            Ok(_) => Ok(()),
            Err(CommitError::Failed { error, .. }) => Err(Error::PauseNotPersisted(error.to_string())),
            Err(CommitError::Refused(refusal)) => Err(Error::PauseNotPersisted(format!("{refusal:?}"))),
        }
    }

    /// Ends pauses whose time has come, until `stop`.
    pub(crate) async fn watch(self: Arc<Self>, stop: tokio_util::sync::CancellationToken) {
        loop {
            let until = self.record().and_then(|record| record.until);
            let changed = self.changed.notified();
            tokio::select! {
                () = stop.cancelled() => return,
                () = changed => {}
                () = async {
                    match until {
                        Some(until) => self.shared.clock.sleep_until(until).await,
                        None => std::future::pending().await,
                    }
                } => {
                    let is_over = self.record().and_then(|r| r.until).is_some_and(|until| until <= self.shared.now());
                    if is_over
                        && !self.shared.gate.read().is_draining()
                        && let Err(error) = self.resume("pause-until").await
                    {
                        tracing::warn!("the pause could not be ended at its time, trying again: {error}");
                    }
                }
            }
        }
    }
}
