//! A store round another one that fails, hangs or dawdles when it is told to. For tests of what is built on stores.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};
use tidegate_model::{DefinitionKey, ElementInstanceKey, IncidentKey, InstanceKey, StimulusKey, Timestamp};

use crate::commit::{Batch, Commit, CommitError, CommitResult};
use crate::error::Error;
use crate::forget::{EndedRow, ForgottenRow, OperationItemRow, OperationRow};
use crate::row::{
    AuditRow, DeadLetterRow, DefinitionFilter, DefinitionRow, IncidentFilter, IncidentRow, InstanceFilter,
    InstanceRow, JobRow, JournalRow, Page, QueueDepth, StimulusRow, StoredInstance, TimerRow, UserTaskFilter,
    UserTaskRow,
};
use crate::{Activation, Queries, Store};

/// Says of each commit whether it fails, and how.
pub type Fault = dyn Fn(&Commit) -> Option<Error> + Send + Sync;

/// The faulty store. It does what the inner one does until it is told otherwise.
pub struct FaultyStore {
    inner: Arc<dyn Store>,
    state: Mutex<State>,
    changed: Condvar,
    late: Arc<Mutex<VecDeque<Answer>>>,
}

/// An answer that is still to be given.
type Answer = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct State {
    fault: Option<Arc<Fault>>,
    /// Of the read of this name, or of all.
    read_error: Option<(Option<&'static str>, Error)>,
    reads: BTreeMap<&'static str, u64>,
    is_held: bool,
    /// So many batches are still written, if it is to die.
    left_to_live: Option<u64>,
    answers_are_held: bool,
    reads_are_held: bool,
    held: VecDeque<Batch>,
    refused_to_write: u64,
}

impl FaultyStore {
    /// Round `inner`.
    pub fn new(inner: Arc<dyn Store>) -> Self {
        Self {
            inner,
            state: Mutex::default(),
            changed: Condvar::new(),
            late: Arc::default(),
        }
    }

    /// Commits for which `fault` gives an error fail with it and are not written.
    pub fn fail_commits(&self, fault: impl Fn(&Commit) -> Option<Error> + Send + Sync + 'static) {
        self.state.lock().fault = Some(Arc::new(fault));
    }

    /// Every commit fails with `error`.
    pub fn fail_all(&self, error: Error) {
        self.fail_commits(move |_| Some(error.clone()));
    }

    /// Every read fails with `error`.
    pub fn fail_reads(&self, error: Error) {
        self.state.lock().read_error = Some((None, error));
    }

    /// Every read of this name (that of its method) fails with `error`.
    pub fn fail_reads_of(&self, name: &'static str, error: Error) {
        self.state.lock().read_error = Some((Some(name), error));
    }

    /// How often the read of this name was asked for.
    pub fn reads_of(&self, name: &str) -> u64 {
        self.state.lock().reads.get(name).copied().unwrap_or_default()
    }

    /// Batches are taken and not answered, until [`FaultyStore::mend`].
    pub fn hang(&self) {
        self.state.lock().is_held = true;
    }

    /// So many batches more are written, and those that follow are taken and not answered, until [`FaultyStore::mend`]: to
    /// who opens the inner store then, the process died in between.
    pub fn die_after(&self, batches: u64) {
        self.state.lock().left_to_live = Some(batches);
    }

    /// Batches are written and not answered, until [`FaultyStore::mend`].
    pub fn hold_answers(&self) {
        self.state.lock().answers_are_held = true;
    }

    /// Reads do not return, until [`FaultyStore::mend`].
    pub fn hang_reads(&self) {
        self.state.lock().reads_are_held = true;
    }

    /// Everything works again; batches that were held are handed on in their order, and answers are given in theirs.
    pub fn mend(&self) {
        {
            let mut state = self.state.lock();
            state.answers_are_held = false;
            state.left_to_live = None;
        }
        loop {
            let answer = self.late.lock().pop_front();
            match answer {
                Some(answer) => answer(),
                None => break,
            }
        }
        loop {
            let batch = {
                let mut state = self.state.lock();
                state.fault = None;
                state.read_error = None;
                state.reads_are_held = false;
                self.changed.notify_all();
                match state.held.pop_front() {
                    Some(batch) => batch,
                    None => {
                        state.is_held = false;
                        return;
                    }
                }
            };
            self.inner.submit(batch);
        }
    }

    /// How many batches are held.
    pub fn held(&self) -> usize {
        self.state.lock().held.len()
    }

    /// How many commits have failed because they were told to.
    pub fn failed(&self) -> u64 {
        self.state.lock().refused_to_write
    }

    fn read<T>(
        &self,
        name: &'static str,
        read: impl FnOnce(&dyn Store) -> Result<T, Error>,
    ) -> Result<T, Error> {
        {
            let mut state = self.state.lock();
            *state.reads.entry(name).or_default() += 1;
            while state.reads_are_held {
                self.changed.wait(&mut state);
            }
            match &state.read_error {
                Some((None, error)) => return Err(error.clone()),
                Some((Some(failing), error)) if *failing == name => return Err(error.clone()),
                Some(_) | None => {}
            }
        }
        read(&*self.inner)
    }
}

impl Store for FaultyStore {
    fn activate(&self) -> Result<Activation, Error> {
        self.read("activate", |store| store.activate())
    }

    fn submit(&self, mut batch: Batch) {
        let fault = {
            let mut state = self.state.lock();
            state.is_held |= state.left_to_live == Some(0);
            if state.is_held {
                state.held.push_back(batch);
                return;
            }
            state.left_to_live = state.left_to_live.map(|left| left - 1);
            if state.answers_are_held {
                let (late, done) = (self.late.clone(), batch.done);
                batch.done = Box::new(move |results| {
                    late.lock().push_back(Box::new(move || done(results)));
                });
            }
            state.fault.clone()
        };
        let Some(fault) = fault else {
            return self.inner.submit(batch);
        };
        let faults: Vec<Option<Error>> = batch.commits.iter().map(|commit| fault(commit)).collect();
        self.state.lock().refused_to_write += faults.iter().flatten().count() as u64;
        let Batch {
            epoch,
            key_high,
            mut commits,
            done,
        } = batch;
        let mut is_kept = faults.iter().map(Option::is_none);
        commits.retain(|_| is_kept.next().unwrap_or(true));
        let done = Box::new(move |results: Vec<CommitResult>| {
            let mut results = results.into_iter();
            let merged = faults.into_iter().map(|fault| match fault {
                Some(error) => Err(CommitError::Failed {
                    error,
                    may_have_happened: false,
                }),
                None => results.next().unwrap_or_else(|| Ok(Default::default())),
            });
            done(merged.collect());
        });
        self.inner.submit(Batch {
            epoch,
            key_high,
            commits,
            done,
        });
    }

    fn load(&self, instance: InstanceKey) -> Result<Option<StoredInstance>, Error> {
        self.read("load", |store| store.load(instance))
    }

    fn recoverable(&self, after: Option<InstanceKey>, limit: usize) -> Result<Vec<InstanceRow>, Error> {
        self.read("recoverable", |store| store.recoverable(after, limit))
    }

    fn timers(
        &self,
        until: Timestamp,
        after: Option<&TimerRow>,
        limit: usize,
    ) -> Result<Vec<TimerRow>, Error> {
        self.read("timers", |store| store.timers(until, after, limit))
    }

    fn stimuli(&self, after: Option<StimulusKey>, limit: usize) -> Result<Vec<StimulusRow>, Error> {
        self.read("stimuli", |store| store.stimuli(after, limit))
    }

    fn definition(&self, key: DefinitionKey) -> Result<Option<DefinitionRow>, Error> {
        self.read("definition", |store| store.definition(key))
    }

    fn resource(&self, key: u64) -> Result<Option<Arc<[u8]>>, Error> {
        self.read("resource", |store| store.resource(key))
    }

    fn value(&self, key: &str, now: Timestamp) -> Result<Option<Vec<u8>>, Error> {
        self.read("value", |store| store.value(key, now))
    }

    fn job(&self, key: ElementInstanceKey) -> Result<Option<JobRow>, Error> {
        self.read("job", |store| store.job(key))
    }

    fn ended(
        &self,
        process: (&str, &str),
        until: Timestamp,
        after: Option<(Timestamp, InstanceKey)>,
        limit: usize,
    ) -> Result<Vec<EndedRow>, Error> {
        self.read("ended", |store| store.ended(process, until, after, limit))
    }

    fn ended_beyond(
        &self,
        process: (&str, &str),
        keep: usize,
    ) -> Result<Option<(Timestamp, InstanceKey)>, Error> {
        self.read("ended_beyond", |store| store.ended_beyond(process, keep))
    }

    fn next_ended_process(&self, after: Option<(&str, &str)>) -> Result<Option<(String, String)>, Error> {
        self.read("next_ended_process", |store| store.next_ended_process(after))
    }

    fn forgotten(&self, instance: InstanceKey) -> Result<Option<ForgottenRow>, Error> {
        self.read("forgotten", |store| store.forgotten(instance))
    }

    fn open_operations(&self) -> Result<Vec<OperationRow>, Error> {
        self.read("open_operations", |store| store.open_operations())
    }

    fn is_lasting(&self) -> bool {
        self.inner.is_lasting()
    }

    fn close(&self) {
        self.inner.close();
    }
}

impl Queries for FaultyStore {
    fn instances(&self, filter: &InstanceFilter, page: Page) -> Result<Vec<InstanceRow>, Error> {
        self.read("instances", |store| store.instances(filter, page))
    }

    fn instance(&self, key: InstanceKey) -> Result<Option<InstanceRow>, Error> {
        self.read("instance", |store| store.instance(key))
    }

    fn counts(&self) -> Result<[u64; 9], Error> {
        self.read("counts", |store| store.counts())
    }

    fn journal(&self, instance: InstanceKey, after: u64, limit: usize) -> Result<Vec<JournalRow>, Error> {
        self.read("journal", |store| store.journal(instance, after, limit))
    }

    fn definitions(&self, filter: &DefinitionFilter, page: Page) -> Result<Vec<DefinitionRow>, Error> {
        self.read("definitions", |store| store.definitions(filter, page))
    }

    fn highest_version(&self, process_id: &str, tenant: &str) -> Result<u32, Error> {
        self.read("highest_version", |store| {
            store.highest_version(process_id, tenant)
        })
    }

    fn incidents(&self, filter: &IncidentFilter, page: Page) -> Result<Vec<IncidentRow>, Error> {
        self.read("incidents", |store| store.incidents(filter, page))
    }

    fn incident(&self, key: IncidentKey) -> Result<Option<IncidentRow>, Error> {
        self.read("incident", |store| store.incident(key))
    }

    fn user_tasks(&self, filter: &UserTaskFilter, page: Page) -> Result<Vec<UserTaskRow>, Error> {
        self.read("user_tasks", |store| store.user_tasks(filter, page))
    }

    fn user_task(&self, key: ElementInstanceKey) -> Result<Option<UserTaskRow>, Error> {
        self.read("user_task", |store| store.user_task(key))
    }

    fn audit(&self, page: Page) -> Result<Vec<AuditRow>, Error> {
        self.read("audit", |store| store.audit(page))
    }

    fn dead_letters(&self, page: Page) -> Result<Vec<DeadLetterRow>, Error> {
        self.read("dead_letters", |store| store.dead_letters(page))
    }

    fn dead_letter(&self, key: StimulusKey) -> Result<Option<DeadLetterRow>, Error> {
        self.read("dead_letter", |store| store.dead_letter(key))
    }

    fn operations(&self, page: Page) -> Result<Vec<OperationRow>, Error> {
        self.read("operations", |store| store.operations(page))
    }

    fn operation(&self, key: u64) -> Result<Option<OperationRow>, Error> {
        self.read("operation", |store| store.operation(key))
    }

    fn operation_items(
        &self,
        operation: u64,
        outcome: Option<&str>,
        after: Option<InstanceKey>,
        limit: usize,
    ) -> Result<Vec<OperationItemRow>, Error> {
        self.read("operation_items", |store| {
            store.operation_items(operation, outcome, after, limit)
        })
    }

    fn queue(&self) -> Result<QueueDepth, Error> {
        self.read("queue", |store| store.queue())
    }
}
