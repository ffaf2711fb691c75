//! Operations on many instances: durable, with an outcome for each of them.
//!
//! The instances that match are first written down as pending, a page at a time, and then done: so a restart, or a kill, goes
//! on where it was, and no instance is passed over without a word. A batch is work: it waits while the gate is closed or it
//! is paused itself, and stops between two instances when that happens.

mod verb;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tidegate_model::{DefinitionKey, InstanceKey, SubStatus, Timestamp};
use tidegate_store::{
    Commit, Error as StoreError, InstanceFilter, OperationItemRow, OperationRow, Page, Write,
};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::builder::blocking;
use crate::error::Error;
use crate::owner::{Owners, problem_of};
use crate::runtime::Runtime;
use crate::shared::Shared;

pub use verb::{ItemOutcome, Verb};

/// How many instances are selected, or done, in one step.
const STEP: usize = 50;
/// How many batches may be open at once.
const MOST_OPEN: usize = 1_000;
/// How long a batch rests when the store does not answer.
const REST: Duration = Duration::from_secs(1);

/// Which instances a batch is for. What is left out does not matter; without `sub_statuses`, verbs for live instances take
/// every live one, whatever it does, and the others every one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Selection {
    /// Any of these sub-statuses.
    pub sub_statuses: Vec<SubStatus>,
    /// Of this process id.
    pub process_id: Option<String>,
    /// Of this definition.
    pub definition_key: Option<DefinitionKey>,
    /// With this business key.
    pub business_key: Option<String>,
    /// Called by this instance.
    pub parent_key: Option<InstanceKey>,
    /// With, or without, an open incident.
    pub has_incident: Option<bool>,
    /// Started at or after this time.
    pub started_after: Option<Timestamp>,
    /// Started before this time.
    pub started_before: Option<Timestamp>,
    /// Of this tenant.
    pub tenant_id: Option<String>,
}

impl Selection {
    fn filter(&self, verb: Verb, made_at: Timestamp) -> InstanceFilter {
        let sub_statuses = match self.sub_statuses.is_empty() && verb.row().is_for_live {
            true => InstanceFilter::running().sub_statuses,
            false => self.sub_statuses.clone(),
        };
        // Whoever begins later is not meant.
        let until = made_at.plus_ms(1);
        InstanceFilter {
            sub_statuses,
            process_id: self.process_id.clone(),
            definition: self.definition_key,
            business_key: self.business_key.clone(),
            parent: self.parent_key,
            has_incident: self.has_incident,
            started_after: self.started_after,
            started_before: Some(self.started_before.map_or(until, |before| before.min(until))),
            tenant: self.tenant_id.clone(),
        }
    }
}

/// A batch to be made.
#[derive(Debug, Clone)]
pub struct BatchRequest {
    /// What to do.
    pub verb: Verb,
    /// To which instances. Those that begin after the batch was made are not among them.
    pub selection: Selection,
    /// True to say what would be done, and do nothing.
    pub dry_run: bool,
    /// Of [`Verb::Forget`]: whether the journals are kept.
    pub keeps_journal: bool,
    /// Of [`Verb::Migrate`]: to which definition.
    pub migration: Option<BatchMigration>,
    /// Why, in the actor's words.
    pub reason: Option<String>,
    /// Who.
    pub actor: String,
}

/// What the instances of a batch change to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BatchMigration {
    /// The definition.
    pub definition_key: DefinitionKey,
    /// For ids of elements and flows their ids there; what is not named keeps its id.
    #[serde(default)]
    pub mapping: BTreeMap<String, String>,
}

/// Where a batch stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum BatchState {
    /// It is worked on, while the gate is open.
    Running,
    /// An operator paused it.
    Paused,
    /// Every instance has its outcome.
    Completed,
    /// An operator ended it; what was not done stays undone, and says so.
    Cancelled,
}

/// How many instances have which outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BatchCounts {
    /// Selected so far.
    pub selected: u64,
    /// Of these, not done yet.
    pub pending: u64,
    /// Done.
    pub done: u64,
    /// Would be done, in a dry run.
    pub would_be_done: u64,
    /// There was nothing to do.
    pub unchanged: u64,
    /// Could not be done.
    pub failed: u64,
}

impl BatchCounts {
    fn of(&mut self, outcome: ItemOutcome) -> &mut u64 {
        match outcome {
            ItemOutcome::Pending => &mut self.pending,
            ItemOutcome::Done => &mut self.done,
            ItemOutcome::WouldBeDone => &mut self.would_be_done,
            ItemOutcome::Unchanged => &mut self.unchanged,
            ItemOutcome::Failed => &mut self.failed,
        }
    }
}

/// An operation on many instances.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Batch {
    /// Its key.
    #[serde(with = "key_text")]
    pub batch_key: u64,
    /// What it does.
    pub verb: Verb,
    /// To which instances.
    pub selection: Selection,
    /// True if it only says what would be done.
    pub dry_run: bool,
    /// Whether the journals of forgotten instances are kept.
    pub keeps_journal: bool,
    /// What its instances change to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub migration: Option<BatchMigration>,
    /// Where it stands.
    pub state: BatchState,
    /// True once every instance that matches is written down.
    pub is_selected: bool,
    /// The counts.
    pub counts: BatchCounts,
    /// Why, in the actor's words.
    pub reason: Option<String>,
    /// Who.
    pub actor: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was over.
    pub ended_at: Option<Timestamp>,
    /// The last instance that was selected: those before it follow.
    after: Option<u64>,
}

/// Keys are decimal text in JSON.
mod key_text {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<S: Serializer>(key: &u64, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(key)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

impl Batch {
    /// True once nothing more happens to it.
    pub fn is_over(&self) -> bool {
        matches!(self.state, BatchState::Completed | BatchState::Cancelled)
    }

    fn filter(&self) -> InstanceFilter {
        self.selection.filter(self.verb, self.created_at)
    }

    fn row(&self) -> OperationRow {
        OperationRow {
            key: self.batch_key,
            ended_at: self.ended_at,
            body: serde_json::to_string(self).unwrap_or_default(),
        }
    }

    fn put(&self) -> Write {
        Write::PutOperation(Box::new(self.row()))
    }

    fn read(row: &OperationRow) -> Result<Self, StoreError> {
        serde_json::from_str(&row.body).map_err(|error| {
            let message = format!("batch {} cannot be read: {error}", row.key);
            StoreError::new(tidegate_store::ErrorKind::Damaged, message)
        })
    }
}

/// The tenant whose instances a batch is for, if it is for those of one.
pub(crate) fn tenant_of(row: &OperationRow) -> Result<Option<Arc<str>>, StoreError> {
    Ok(Batch::read(row)?.selection.tenant_id.map(Arc::from))
}

/// The batches that are not over. One at a time is changed, behind a lock that is held until the change is on disk.
#[derive(Debug, Default)]
pub(crate) struct Batches {
    open: tokio::sync::Mutex<BTreeMap<u64, Batch>>,
    changed: Notify,
}

/// Takes up what an earlier generation left. Before anything runs.
pub(crate) fn activate(shared: &Shared) -> Result<(), StoreError> {
    let rows = shared.store.open_operations()?;
    let Ok(mut open) = shared.batches.open.try_lock() else {
        return Ok(());
    };
    for row in rows {
        match Batch::read(&row) {
            Ok(batch) => {
                open.insert(row.key, batch);
            }
            Err(error) => tracing::error!("{error}"),
        }
    }
    Ok(())
}

impl Runtime {
    /// Makes a batch. It is worked on as soon as the gate is open.
    ///
    /// # Durability
    /// It is on disk when this answers, and goes on after a restart.
    ///
    /// # Errors
    /// [`Error::Draining`]; too many open batches; a verb without what it needs; a failing store.
    pub async fn create_batch(&self, mut request: BatchRequest) -> Result<Batch, Error> {
        if self.quiescence().is_draining() {
            return Err(Error::Draining);
        }
        self.fit_migration(&mut request).await?;
        let shared = self.shared();
        let batch = Batch {
            batch_key: shared.house_key(),
            verb: request.verb,
            selection: request.selection,
            dry_run: request.dry_run,
            keeps_journal: request.keeps_journal,
            migration: request.migration,
            state: BatchState::Running,
            is_selected: false,
            counts: BatchCounts::default(),
            reason: request.reason,
            actor: request.actor,
            created_at: shared.now(),
            ended_at: None,
            after: None,
        };
        let mut open = shared.batches.open.lock().await;
        if open.len() >= MOST_OPEN {
            return Err(Error::Invalid {
                code: "too-many-batches",
                message: format!("{MOST_OPEN} batches are not over yet; wait for some, or cancel them"),
            });
        }
        write(shared, vec![batch.put()]).await?;
        open.insert(batch.batch_key, batch.clone());
        drop(open);
        shared.batches.changed.notify_one();
        Ok(batch)
    }

    /// A batch that changes the version is of the process, and the tenant, of the definition it changes to.
    async fn fit_migration(&self, request: &mut BatchRequest) -> Result<(), Error> {
        let refuse = |message: String| {
            Err(Error::Invalid {
                code: "invalid-migration",
                message,
            })
        };
        let Some(to) = &request.migration else {
            return match request.verb {
                Verb::Migrate => refuse("say to which definition the instances change".to_owned()),
                _ => Ok(()),
            };
        };
        if request.verb != Verb::Migrate {
            return refuse(format!("the verb `{}` changes no version", request.verb.word()));
        }
        let (shared, key) = (self.shared().clone(), to.definition_key);
        let found = blocking(move || shared.definitions.get(&*shared.store, key)).await?;
        let row = match found {
            Some(loaded) if loaded.is_startable() => loaded.row.clone(),
            _ => return Err(Error::NoSuchDefinition(key)),
        };
        let selection = &mut request.selection;
        // For the instances of one tenant the definitions of others are not there.
        if selection.tenant_id.get_or_insert_with(|| row.tenant.to_string()) != &*row.tenant {
            return Err(Error::NoSuchDefinition(key));
        }
        let process_id = selection
            .process_id
            .get_or_insert_with(|| row.process_id.to_string());
        if **process_id != *row.process_id {
            return refuse(format!(
                "definition {key} is of process `{}`; instances of others cannot change to it",
                row.process_id
            ));
        }
        Ok(())
    }

    /// One batch.
    ///
    /// # Errors
    /// Unknown batch; the store cannot be read.
    pub async fn batch(&self, key: u64) -> Result<Batch, Error> {
        let store = self.shared().store.clone();
        let row = blocking(move || store.operation(key)).await?;
        let row = row.ok_or(Error::NoSuchBatch(key))?;
        Ok(Batch::read(&row)?)
    }

    /// Batches, newest first.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn batches(&self, page: Page) -> Result<Vec<Batch>, Error> {
        let store = self.shared().store.clone();
        blocking(move || store.operations(page)?.iter().map(Batch::read).collect()).await
    }

    /// What became of each instance of a batch, by instance, after `after`; those of one outcome if it is given.
    ///
    /// # Errors
    /// Unknown batch; the store cannot be read.
    pub async fn batch_items(
        &self,
        key: u64,
        outcome: Option<ItemOutcome>,
        after: Option<InstanceKey>,
        limit: usize,
    ) -> Result<Vec<OperationItemRow>, Error> {
        self.batch(key).await?;
        let store = self.shared().store.clone();
        blocking(move || store.operation_items(key, outcome.map(ItemOutcome::word), after, limit)).await
    }

    /// Pauses a batch, between two instances. Idempotent; one that is over stays as it is.
    ///
    /// # Errors
    /// Unknown batch, a failing store.
    pub async fn pause_batch(&self, key: u64) -> Result<Batch, Error> {
        self.turn_batch(key, BatchState::Paused).await
    }

    /// Lets a paused batch go on. Idempotent.
    ///
    /// # Errors
    /// Unknown batch, a failing store.
    pub async fn resume_batch(&self, key: u64) -> Result<Batch, Error> {
        self.turn_batch(key, BatchState::Running).await
    }

    /// Ends a batch: what was not done stays undone. Idempotent.
    ///
    /// # Errors
    /// Unknown batch, a failing store.
    pub async fn cancel_batch(&self, key: u64) -> Result<Batch, Error> {
        self.turn_batch(key, BatchState::Cancelled).await
    }

    async fn turn_batch(&self, key: u64, state: BatchState) -> Result<Batch, Error> {
        let shared = self.shared();
        let mut open = shared.batches.open.lock().await;
        let Some(batch) = open.get(&key) else {
            drop(open);
            return self.batch(key).await;
        };
        if batch.state == state {
            return Ok(batch.clone());
        }
        let mut turned = batch.clone();
        turned.state = state;
        let mut writes = Vec::new();
        if turned.is_over() {
            writes.push(over(shared, &mut turned));
        }
        writes.push(turned.put());
        write(shared, writes).await?;
        match turned.is_over() {
            true => open.remove(&key),
            false => open.insert(key, turned.clone()),
        };
        drop(open);
        shared.batches.changed.notify_one();
        shared.tick();
        Ok(turned)
    }

    /// Waits until a batch is over.
    ///
    /// # Errors
    /// Unknown batch; it is not over within `at_most`.
    ///
    /// # Cancel safety
    /// The batch goes on without anybody waiting.
    pub async fn batch_over(&self, key: u64, at_most: Duration) -> Result<Batch, Error> {
        let mut changed = self.watch();
        let over = async {
            loop {
                let batch = self.batch(key).await?;
                if batch.is_over() {
                    return Ok(batch);
                }
                if changed.changed().await.is_err() {
                    return Err(Error::Stopped);
                }
            }
        };
        tokio::time::timeout(at_most, over).await.unwrap_or_else(|_| {
            Err(Error::Invalid {
                code: "wait-ran-out",
                message: format!("batch {key} is not over yet; it goes on"),
            })
        })
    }
}

/// Works until `stop`.
pub(crate) async fn run(shared: Arc<Shared>, owners: Owners, stop: CancellationToken) {
    let mut changed = shared.watch();
    loop {
        let doing = Doing {
            shared: &shared,
            owners: &owners,
            stop: &stop,
        };
        let step = match doing.may_go_on() {
            true => doing.step().await,
            false => Ok(false),
        };
        let rest = match step {
            Ok(true) => {
                shared.tick();
                tokio::task::yield_now().await;
                if stop.is_cancelled() {
                    return;
                }
                continue;
            }
            Ok(false) => None,
            Err(error) => {
                tracing::warn!("a batch has to wait: {error}");
                Some(REST)
            }
        };
        tokio::select! {
            () = stop.cancelled() => return,
            () = shared.batches.changed.notified() => {}
            // The gate may have been opened.
            change = changed.changed(), if rest.is_none() => if change.is_err() { return },
            () = tokio::time::sleep(rest.unwrap_or_default()), if rest.is_some() => {}
        }
    }
}

/// A step of a batch.
struct Doing<'a> {
    shared: &'a Arc<Shared>,
    owners: &'a Owners,
    stop: &'a CancellationToken,
}

impl Doing<'_> {
    fn may_go_on(&self) -> bool {
        self.shared.gate.read().is_accepting() && !self.stop.is_cancelled()
    }

    /// Goes on with the oldest batch that is not paused. False if there is none.
    async fn step(&self) -> Result<bool, Error> {
        let mut open = self.shared.batches.open.lock().await;
        let Some(batch) = open.values().find(|batch| batch.state == BatchState::Running) else {
            return Ok(false);
        };
        let mut next = batch.clone();
        let key = next.batch_key;
        let store = self.shared.store.clone();
        let pending = ItemOutcome::Pending.word();
        let items = blocking(move || store.operation_items(key, Some(pending), None, STEP)).await?;
        let writes = if !items.is_empty() {
            self.work_off(&mut next, items).await?
        } else if !next.is_selected {
            self.select(&mut next).await?
        } else {
            next.state = BatchState::Completed;
            vec![over(self.shared, &mut next)]
        };
        let mut writes = writes;
        writes.push(next.put());
        write(self.shared, writes).await?;
        match next.is_over() {
            true => open.remove(&key),
            false => open.insert(key, next),
        };
        Ok(true)
    }

    /// Writes down the next instances that match.
    async fn select(&self, batch: &mut Batch) -> Result<Vec<Write>, Error> {
        let page = Page {
            after: batch.after,
            limit: STEP,
        };
        let (store, filter) = (self.shared.store.clone(), batch.filter());
        let rows = blocking(move || store.instances(&filter, page)).await?;
        batch.is_selected = rows.len() < STEP;
        batch.after = rows.last().map(|row| row.key.get()).or(batch.after);
        batch.counts.selected += rows.len() as u64;
        batch.counts.pending += rows.len() as u64;
        let item = |instance| item(batch.batch_key, instance, (ItemOutcome::Pending, None));
        Ok(rows.into_iter().map(|row| item(row.key)).collect())
    }

    /// Does what was written down, together, and tells what became of each. Stops between two when the gate closes.
    async fn work_off(&self, batch: &mut Batch, items: Vec<OperationItemRow>) -> Result<Vec<Write>, Error> {
        let mut begun = Vec::with_capacity(items.len());
        for item in items {
            if !self.may_go_on() {
                break;
            }
            begun.push((item.instance, self.begin(batch, item.instance).await?));
        }
        let mut writes = Vec::with_capacity(begun.len());
        for (instance, begun) in begun {
            let told = self.settle(batch, begun).await?;
            batch.counts.pending = batch.counts.pending.saturating_sub(1);
            *batch.counts.of(told.0) += 1;
            writes.push(item(batch.batch_key, instance, told));
        }
        Ok(writes)
    }
}

fn item(operation: u64, instance: InstanceKey, (outcome, detail): verb::Told) -> Write {
    Write::PutOperationItem(Box::new(OperationItemRow {
        operation,
        instance,
        outcome: outcome.word().to_owned(),
        detail,
    }))
}

/// Marks a batch as over; its one audit entry.
fn over(shared: &Shared, batch: &mut Batch) -> Write {
    batch.ended_at = Some(shared.now());
    let action = match batch.state {
        BatchState::Cancelled => "BatchCancelled",
        _ => "BatchCompleted",
    };
    let mut audit = shared.audit(action, &batch.actor, batch.reason.clone());
    audit.subject = Some(batch.batch_key.to_string());
    audit.scope = "batch".to_owned();
    let kind = if batch.dry_run { "dry run of " } else { "" };
    audit.before = Some(format!("{kind}{}", batch.verb.word()));
    audit.after = serde_json::to_string(&batch.counts).ok();
    Write::Audit(Box::new(audit))
}

async fn write(shared: &Shared, writes: Vec<Write>) -> Result<(), Error> {
    let commit = Commit {
        expect: Vec::new(),
        writes,
    };
    match shared.commit(commit).await {
        Ok(_) => Ok(()),
        Err(error) => Err(problem_of(&error)),
    }
}
