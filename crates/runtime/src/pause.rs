//! The administrative pause: reversible, idempotent, with a reason, an author and perhaps an end.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tidegate_model::Timestamp;
use tidegate_store::{Commit, CommitError, Write};

use crate::error::Error;
use crate::gate::Closing;
use crate::ingress::Sources;
use crate::options::{ExpiryUnderPause, PausePersistence};
use crate::owner::{Message, Owners};
use crate::parts::{Part, PartialPause, PauseScope};
use crate::shared::Shared;

/// The key-value entry that keeps a pause across generations.
const ENTRY: &str = "runtime/pause";
/// The key-value entry that keeps the pauses of parts.
const PARTS_ENTRY: &str = "runtime/pauses";
/// Who ends a pause whose time has come.
const BY_ITSELF: &str = "pause-until";

/// Who paused, when and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) at: Timestamp,
    pub(crate) until: Option<Timestamp>,
    pub(crate) reason: Option<String>,
    pub(crate) by: String,
}

/// The pause of a part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PartRecord {
    part: Part,
    scope: PauseScope,
    #[serde(flatten)]
    record: Record,
}

/// The pause of one shell, and of its parts.
pub(crate) struct Pause {
    shared: Arc<Shared>,
    owners: Owners,
    sources: Arc<Sources>,
    record: Mutex<Option<Record>>,
    parts: Mutex<BTreeMap<Part, PartRecord>>,
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
            parts: Mutex::default(),
            turn: tokio::sync::Mutex::new(()),
            changed: tokio::sync::Notify::new(),
        }
    }

    pub(crate) fn record(&self) -> Option<Record> {
        self.record.lock().clone()
    }

    /// Takes over the pauses of an earlier generation, before any source starts and any recovery runs. One whose time has
    /// passed meanwhile is removed and audited.
    pub(crate) async fn restore(&self) -> Result<(), Error> {
        if !self.is_kept() {
            return Ok(());
        }
        let now = self.shared.now();
        let store = self.shared.store.clone();
        let read = move || Ok((store.value(ENTRY, now)?, store.value(PARTS_ENTRY, now)?));
        let (whole, parts) = crate::builder::blocking(read).await?;
        let is_over = |record: &Record| record.until.is_some_and(|until| until <= now);
        match whole.map(|bytes| serde_json::from_slice::<Record>(&bytes)) {
            Some(Ok(record)) if is_over(&record) => {
                *self.record.lock() = Some(record);
                self.ended_meanwhile(None).await;
            }
            Some(Ok(record)) => {
                self.shared.gate.close(Closing::Pause);
                *self.record.lock() = Some(record);
            }
            Some(Err(error)) => tracing::error!("the stored pause cannot be read and is ignored: {error}"),
            None => {}
        }
        let parts: Vec<PartRecord> = match parts.map(|bytes| serde_json::from_slice(&bytes)) {
            Some(Ok(parts)) => parts,
            Some(Err(error)) => {
                tracing::error!("the stored pauses of parts cannot be read and are ignored: {error}");
                Vec::new()
            }
            None => Vec::new(),
        };
        *self.parts.lock() = parts
            .iter()
            .cloned()
            .map(|record| (record.part.clone(), record))
            .collect();
        for PartRecord { part, scope, record } in parts {
            if is_over(&record) {
                self.ended_meanwhile(Some(&part)).await;
            } else {
                self.shared.definitions.gates.of(&part).close(scope.closing());
            }
        }
        Ok(())
    }

    /// Removes a kept pause whose time passed while nobody ran.
    async fn ended_meanwhile(&self, part: Option<&Part>) {
        let mut audit = self.shared.audit("RuntimeResumeRequested", BY_ITSELF, None);
        audit.subject = part.map(ToString::to_string);
        audit.before = Some("AdministrativePause".to_owned());
        audit.after = Some("None".to_owned());
        let kept = match part {
            None => self.keep(None, audit).await,
            Some(part) => self.keep_parts(|parts| drop(parts.remove(part)), audit).await,
        };
        match (kept, part) {
            (Ok(()), None) => *self.record.lock() = None,
            (Ok(()), Some(_)) => {}
            (Err(error), _) => {
                tracing::warn!(
                    "a kept pause is over and could not be removed; the next activation tries again: {error}"
                );
                match part {
                    None => *self.record.lock() = None,
                    Some(part) => drop(self.parts.lock().remove(part)),
                }
            }
        }
    }

    fn is_kept(&self) -> bool {
        self.shared.options.pause_persistence == PausePersistence::AcrossReactivations
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
        must_be_later(until, now)?;
        let record = Record {
            at: now,
            until,
            reason: reason.clone(),
            by: actor.to_owned(),
        };
        let mut audit = self.shared.audit("RuntimePauseRequested", actor, reason);
        audit.before = Some(self.shared.gate.read().reason().to_owned());
        let is_draining = self.shared.gate.read().is_draining();
        audit.after = Some(
            if is_draining {
                "AdministrativePause, Drain"
            } else {
                "AdministrativePause"
            }
            .to_owned(),
        );
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
            // A source that did not resume then may do so now.
            if self.shared.gate.read().is_accepting() {
                self.sources.resume(&|| self.shared.tick()).await;
            }
            return Ok(false);
        }
        let mut audit = self.shared.audit("RuntimeResumeRequested", actor, None);
        audit.before = Some(self.shared.gate.read().reason().to_owned());
        audit.after = Some(
            if self.shared.gate.read().is_draining() {
                "Drain"
            } else {
                "None"
            }
            .to_owned(),
        );
        self.keep(None, audit).await?;
        let paused = self.record.lock().take();
        if let Some(paused) = paused {
            self.extend_messages(&paused);
        }
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
        let due = crate::tasks::blocking(move || store.timers(now, None, MOST)).await;
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
        let write = match record {
            Some(record) => Write::SetValue {
                key: ENTRY.to_owned(),
                value: serde_json::to_vec(record).unwrap_or_default(),
                expires_at: None,
            },
            None => Write::RemoveValue(ENTRY.to_owned()),
        };
        self.keep_write(write, audit).await
    }

    async fn keep_write(&self, write: Write, audit: tidegate_store::AuditRow) -> Result<(), Error> {
        if !self.is_kept() {
            // It never needs the store.
            self.shared.write_audit(audit).await;
            return Ok(());
        }
        let commit = Commit {
            expect: Vec::new(),
            writes: vec![write, Write::Audit(Box::new(audit))],
        };
        match self.shared.commit(commit).await {
            Ok(_) => Ok(()),
            Err(CommitError::Failed { error, .. }) => Err(Error::PauseNotPersisted(error.to_string())),
            Err(CommitError::Refused(refusal)) => Err(Error::PauseNotPersisted(format!("{refusal:?}"))),
        }
    }

    /// Buffered messages have as much time left after the pause as before it.
    fn extend_messages(&self, paused: &Record) {
        if self.shared.options.expiry_under_pause == ExpiryUnderPause::Runs {
            return;
        }
        let by_ms = self.shared.now().since(paused.at).max(0);
        self.shared.extend_messages(by_ms);
    }

    // --- parts ---

    /// The parts that are paused.
    pub(crate) fn parts(&self) -> Vec<PartialPause> {
        self.parts
            .lock()
            .values()
            .map(|record| self.view(record))
            .collect()
    }

    fn view(&self, PartRecord { part, scope, record }: &PartRecord) -> PartialPause {
        PartialPause {
            part: part.clone(),
            scope: *scope,
            paused_at: record.at,
            paused_until: record.until,
            reason: record.reason.clone(),
            requested_by: record.by.clone(),
            active_execution_cycle_count: self.shared.definitions.gates.of(part).read().live(),
        }
    }

    /// Pauses a part, as far as `scope`.
    pub(crate) async fn pause_part(
        &self,
        part: Part,
        scope: PauseScope,
        reason: Option<String>,
        until: Option<Timestamp>,
        actor: &str,
    ) -> Result<PartialPause, Error> {
        let _turn = self.turn.lock().await;
        let before = self.parts.lock().get(&part).cloned();
        if let Some(before) = &before
            && before.scope >= scope
        {
            return Ok(self.view(before));
        }
        let now = self.shared.now();
        must_be_later(until, now)?;
        let mut audit = self.shared.audit("RuntimePauseRequested", actor, reason.clone());
        audit.subject = Some(part.to_string());
        audit.before = Some(before.map_or("None", |before| before.scope.word()).to_owned());
        audit.after = Some(scope.word().to_owned());
        let record = Record {
            at: now,
            until,
            reason,
            by: actor.to_owned(),
        };
        let record = PartRecord {
            part: part.clone(),
            scope,
            record,
        };
        let kept = record.clone();
        self.keep_parts(move |parts| drop(parts.insert(kept.part.clone(), kept)), audit)
            .await?;
        self.shared.definitions.gates.of(&part).close(scope.closing());
        self.shared.tick();
        self.changed.notify_one();
        Ok(self.view(&record))
    }

    /// Ends the pause of a part. True if there was one.
    pub(crate) async fn resume_part(&self, part: &Part, actor: &str) -> Result<bool, Error> {
        let _turn = self.turn.lock().await;
        let Some(before) = self.parts.lock().get(part).cloned() else {
            return Ok(false);
        };
        let mut audit = self.shared.audit("RuntimeResumeRequested", actor, None);
        audit.subject = Some(part.to_string());
        audit.before = Some(before.scope.word().to_owned());
        audit.after = Some("None".to_owned());
        self.keep_parts(|parts| drop(parts.remove(part)), audit).await?;
        self.shared.definitions.gates.of(part).lift_pause();
        self.shared.tick();
        // What waited comes back into the lines; nothing of its domains has gone before it.
        self.owners.tell_all(|| Message::Opened);
        self.changed.notify_one();
        Ok(true)
    }

    /// Changes the pauses of parts: in the store first where they are kept, then here.
    async fn keep_parts(
        &self,
        change: impl FnOnce(&mut BTreeMap<Part, PartRecord>),
        audit: tidegate_store::AuditRow,
    ) -> Result<(), Error> {
        let mut parts = self.parts.lock().clone();
        change(&mut parts);
        let write = if parts.is_empty() {
            Write::RemoveValue(PARTS_ENTRY.to_owned())
        } else {
            let all: Vec<&PartRecord> = parts.values().collect();
            let value = serde_json::to_vec(&all).unwrap_or_default();
            Write::SetValue {
                key: PARTS_ENTRY.to_owned(),
                value,
                expires_at: None,
            }
        };
        self.keep_write(write, audit).await?;
        *self.parts.lock() = parts;
        Ok(())
    }

    /// The pause that ends next by itself: of the whole, or of a part.
    fn next_end(&self) -> Option<(Timestamp, Option<Part>)> {
        let whole = self
            .record()
            .and_then(|record| record.until)
            .map(|until| (until, None));
        let of_part = |record: &PartRecord| {
            record
                .record
                .until
                .map(|until| (until, Some(record.part.clone())))
        };
        let parts: Vec<_> = self.parts.lock().values().filter_map(of_part).collect();
        parts.into_iter().chain(whole).min_by_key(|(until, _)| *until)
    }

    /// Ends pauses whose time has come, until `stop`.
    pub(crate) async fn watch(self: Arc<Self>, stop: tokio_util::sync::CancellationToken) {
        loop {
            let next = self.next_end();
            let until = next.as_ref().map(|(until, _)| *until);
            let changed = self.changed.notified();
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = changed => {}
                () = async {
                    match until {
                        Some(until) => self.shared.clock.sleep_until(until).await,
                        None => std::future::pending().await,
                    }
                } => {
                    let now = self.shared.now();
                    let Some((until, part)) = self.next_end() else { continue };
                    if until > now {
                        continue;
                    }
                    let ended = match part {
                        // During a drain the end of the pause changes nothing: look again when something has changed.
                        None if self.shared.gate.read().is_draining() => {
                            tokio::select! {
                                biased;
                                () = stop.cancelled() => return,
                                () = self.changed.notified() => continue,
                            }
                        }
                        None => self.resume(BY_ITSELF).await,
                        Some(part) => self.resume_part(&part, BY_ITSELF).await,
                    };
                    if let Err(error) = ended {
                        tracing::warn!("a pause could not be ended at its time, trying again: {error}");
                        tokio::select! {
                            biased;
                            () = stop.cancelled() => return,
                            () = tokio::time::sleep(AGAIN) => {}
                        }
                    }
                }
            }
        }
    }
}

/// How long a pause that could not be ended rests before the next try.
const AGAIN: std::time::Duration = std::time::Duration::from_millis(500);

fn must_be_later(until: Option<Timestamp>, now: Timestamp) -> Result<(), Error> {
    match until {
        Some(until) if until <= now => Err(Error::Invalid {
            code: "until-in-the-past",
            message: "`until` has passed already; give a later time, or none".to_owned(),
        }),
        _ => Ok(()),
    }
}
