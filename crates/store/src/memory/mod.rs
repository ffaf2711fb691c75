//! A store in memory: the whole contract without the disk. For tests, and for hosts whose work may be lost.
//!
//! All tables stand behind one mutex. A batch is applied by the thread that submits it, unless another one is
//! applying: then that one takes it along, so that the order of submission is kept and a `done` that submits
//! again never nests.

mod apply;
mod check;
mod forget;
mod query;
mod tables;
mod waiting;

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{self, ThreadId};

use parking_lot::{Condvar, Mutex};
use tidegate_model::{DefinitionKey, ElementInstanceKey, InstanceKey, StimulusKey, Timestamp};

use self::tables::Tables;
use crate::commit::{Batch, CommitError, CommitResult};
use crate::error::{Error, ErrorKind};
use crate::forget::{EndedRow, ForgottenRow, OperationRow};
use crate::row::{DefinitionRow, InstanceRow, JobRow, StimulusRow, StoredInstance, TimerRow};
use crate::{Activation, Store};

/// A store whose data goes with the process.
pub struct MemoryStore {
    tables: Arc<Mutex<Tables>>,
    is_lasting: bool,
    inbox: Mutex<Inbox>,
    idle: Condvar,
}

#[derive(Default)]
struct Inbox {
    pending: VecDeque<Batch>,
    applying: Option<ThreadId>,
    is_closed: bool,
}

impl MemoryStore {
    /// An empty store.
    ///
    /// It counts as lasting: whoever holds it can give it to the next generation, or [`MemoryStore::reopen`] it.
    pub fn new() -> Self {
        Self::over(Arc::default())
    }

    /// An empty store that nobody can open again: it says so to those who ask whether it is lasting.
    pub fn fleeting() -> Self {
        Self {
            is_lasting: false,
            ..Self::new()
        }
    }

    /// The same data under a new, open handle: what a new process would find after this one. The old handle
    /// stays as it is; its generation is fenced once the new one is activated.
    pub fn reopen(&self) -> Self {
        Self::over(Arc::clone(&self.tables))
    }

    fn over(tables: Arc<Mutex<Tables>>) -> Self {
        Self {
            tables,
            is_lasting: true,
            inbox: Mutex::default(),
            idle: Condvar::new(),
        }
    }

    fn read<T>(&self, read: impl FnOnce(&Tables) -> T) -> Result<T, Error> {
        if self.inbox.lock().is_closed {
            return Err(closed());
        }
        Ok(read(&self.tables.lock()))
    }

    fn apply_pending(&self) {
        loop {
            let batch = {
                let mut inbox = self.inbox.lock();
                match inbox.pending.pop_front() {
                    Some(batch) => batch,
                    None => {
                        inbox.applying = None;
                        self.idle.notify_all();
                        return;
                    }
                }
            };
            let Batch {
                epoch,
                key_high,
                commits,
                done,
            } = batch;
            let results = self.tables.lock().run(epoch, key_high, commits);
            finish(done, results);
        }
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl Store for MemoryStore {
    fn activate(&self) -> Result<Activation, Error> {
        if self.inbox.lock().is_closed {
            return Err(closed());
        }
        Ok(self.tables.lock().activate())
    }

    fn submit(&self, batch: Batch) {
        let mut inbox = self.inbox.lock();
        if inbox.is_closed {
            drop(inbox);
            let results = batch.commits.iter().map(|_| Err(failed(closed()))).collect();
            finish(batch.done, results);
            return;
        }
        inbox.pending.push_back(batch);
        if inbox.applying.is_some() {
            return;
        }
        inbox.applying = Some(thread::current().id());
        drop(inbox);
        self.apply_pending();
    }

    fn load(&self, instance: InstanceKey) -> Result<Option<StoredInstance>, Error> {
        self.read(|tables| tables.load(instance))
    }

    fn recoverable(&self, after: Option<InstanceKey>, limit: usize) -> Result<Vec<InstanceRow>, Error> {
        self.read(|tables| tables.recoverable(after, limit))
    }

    fn timers(
        &self,
        until: Timestamp,
        after: Option<&TimerRow>,
        limit: usize,
    ) -> Result<Vec<TimerRow>, Error> {
        self.read(|tables| tables.due_timers(until, after, limit))
    }

    fn stimuli(&self, after: Option<StimulusKey>, limit: usize) -> Result<Vec<StimulusRow>, Error> {
        self.read(|tables| tables.stimuli_after(after, limit))
    }

    fn definition(&self, key: DefinitionKey) -> Result<Option<DefinitionRow>, Error> {
        self.read(|tables| tables.definitions.get(&key).cloned())
    }

    fn resource(&self, key: u64) -> Result<Option<Arc<[u8]>>, Error> {
        self.read(|tables| tables.resources.get(&key).cloned())
    }

    fn value(&self, key: &str, now: Timestamp) -> Result<Option<Vec<u8>>, Error> {
        self.read(|tables| tables.value(key, now).map(<[u8]>::to_vec))
    }

    fn job(&self, key: ElementInstanceKey) -> Result<Option<JobRow>, Error> {
        self.read(|tables| tables.jobs.get(&key).cloned())
    }

    fn ended(
        &self,
        process: (&str, &str),
        until: Timestamp,
        after: Option<(Timestamp, InstanceKey)>,
        limit: usize,
    ) -> Result<Vec<EndedRow>, Error> {
        self.read(|tables| tables.ended(process, until, after, limit))
    }

    fn ended_beyond(
        &self,
        process: (&str, &str),
        keep: usize,
    ) -> Result<Option<(Timestamp, InstanceKey)>, Error> {
        self.read(|tables| tables.ended_beyond(process, keep))
    }

    fn next_ended_process(&self, after: Option<(&str, &str)>) -> Result<Option<(String, String)>, Error> {
        self.read(|tables| tables.next_ended_process(after))
    }

    fn forgotten(&self, instance: InstanceKey) -> Result<Option<ForgottenRow>, Error> {
        self.read(|tables| tables.forgotten.get(&instance).cloned())
    }

    fn open_operations(&self) -> Result<Vec<OperationRow>, Error> {
        self.read(|tables| {
            let is_open = |row: &&OperationRow| row.ended_at.is_none();
            tables.operations.values().filter(is_open).cloned().collect()
        })
    }

    fn is_lasting(&self) -> bool {
        self.is_lasting
    }

    fn close(&self) {
        let mut inbox = self.inbox.lock();
        inbox.is_closed = true;
        // A `done` that closes the store would wait for itself.
        while inbox.applying.is_some_and(|id| id != thread::current().id()) {
            self.idle.wait(&mut inbox);
        }
    }
}

/// A panic in `done` is its owner's bug and must not take the store's order with it.
fn finish(done: Box<dyn FnOnce(Vec<CommitResult>) + Send>, results: Vec<CommitResult>) {
    let _ = catch_unwind(AssertUnwindSafe(move || done(results)));
}

fn failed(error: Error) -> CommitError {
    CommitError::Failed {
        error,
        may_have_happened: false,
    }
}

fn closed() -> Error {
    Error::new(
        ErrorKind::Closed,
        "the memory store was closed by this process; open it again to go on",
    )
}
