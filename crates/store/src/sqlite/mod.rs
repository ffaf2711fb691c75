//! A store in one SQLite file.
//!
//! WAL with full sync: an outcome is told after the log that holds it was synced. One connection writes, guarded
//! by its inbox; a few read; a thread moves the log into the file beside the commits. One process
//! holds the file by an operating-system lock on `PATH.lock`. Local file systems only.

mod audit;
mod checkpoint;
mod commit;
mod dead_letter;
mod definition;
mod error;
mod forget;
mod instance;
mod job;
mod journal;
mod lock;
mod message;
mod migrate;
mod open;
mod operation;
mod query;
mod queue;
mod readers;
mod schema;
mod signal;
mod task;
mod timer;
mod totals;
mod transaction;
mod value;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;
use tidegate_model::{DefinitionKey, ElementInstanceKey, InstanceKey, StimulusKey, Timestamp};

use self::checkpoint::Checkpoints;
use self::lock::DirectoryLock;
use self::readers::Readers;
use self::transaction::{Tally, Writer};
use self::writer::Inbox;
use crate::commit::Batch;
use crate::error::{Error, ErrorKind};
use crate::forget::{EndedRow, ForgottenRow, OperationRow};
use crate::row::{DefinitionRow, InstanceRow, JobRow, Page, StimulusRow, StoredInstance, TimerRow};
use crate::{Activation, Store};

/// How to open a SQLite store.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// How long to wait for a process that holds the store. Zero to be refused at once.
    pub lock_wait: Duration,
    /// A quota for the file, in pages of 8 KB; beyond it commits fail as [`ErrorKind::Full`].
    pub max_pages: Option<u32>,
    /// The name of a registered SQLite VFS, for tests that take the disk apart.
    pub vfs: Option<String>,
}

/// A store in one SQLite file.
pub struct SqliteStore {
    inner: Arc<Inner>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

struct Inner {
    path: PathBuf,
    options: Options,
    inbox: Inbox,
    writer: Mutex<Option<Writer>>,
    tally: Arc<Tally>,
    readers: Readers,
    checkpoints: Checkpoints,
    lock: Mutex<Option<DirectoryLock>>,
}

impl SqliteStore {
    /// Opens the store at `path`, creating folder and file where they are missing.
    ///
    /// # Errors
    /// Held by another process, damaged or no store, written by a newer version, not writable, or full.
    pub fn open(path: &Path) -> Result<Self, Error> {
        Self::open_with(path, &Options::default())
    }

    /// Opens the store at `path`, waiting up to `timeout` for another process to let go of it.
    ///
    /// # Errors
    /// As [`SqliteStore::open`].
    pub fn open_wait(path: &Path, timeout: Duration) -> Result<Self, Error> {
        Self::open_with(
            path,
            &Options {
                lock_wait: timeout,
                ..Options::default()
            },
        )
    }

    /// Opens the store at `path` with options.
    ///
    /// # Errors
    /// As [`SqliteStore::open`].
    pub fn open_with(path: &Path, options: &Options) -> Result<Self, Error> {
        if path.as_os_str().is_empty() {
            return Err(Error::new(
                ErrorKind::Configuration,
                "a SQLite store needs a path: use `sqlite:PATH`",
            ));
        }
        open::prepare_folder(path)?;
        let lock = DirectoryLock::take(path, options.lock_wait)?;
        open::prepare_file(path, options)?;
        let in_words = |trouble: error::Trouble| trouble.into_error(path);
        let conn = open::writer(path, options).map_err(in_words)?;
        open::prepare_wal(path, options);
        let writer = Writer::new(conn, path.to_owned(), options.clone()).map_err(in_words)?;
        let checkpointer = checkpoint::connection(path, options).map_err(in_words)?;
        let inner = Arc::new(Inner {
            path: path.to_owned(),
            options: options.clone(),
            inbox: Inbox::default(),
            tally: Arc::clone(writer.tally()),
            writer: Mutex::new(Some(writer)),
            readers: Readers::default(),
            checkpoints: Checkpoints::default(),
            lock: Mutex::new(Some(lock)),
        });
        let store = Self {
            inner: Arc::clone(&inner),
            threads: Mutex::default(),
        };
        let no_thread = |cause| Error::new(ErrorKind::Unavailable, format!("cannot start a thread: {cause}"));
        let writer_thread = writer::spawn(Arc::clone(&inner)).map_err(no_thread)?;
        store.threads.lock().push(writer_thread);
        let checkpoint_thread = checkpoint::spawn(inner, checkpointer).map_err(no_thread)?;
        store.threads.lock().push(checkpoint_thread);
        Ok(store)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    /// How many commits were made since it was opened, and in how many transactions. Each transaction is one sync of the log.
    pub fn tally(&self) -> (u64, u64) {
        let Tally {
            commits,
            transactions,
        } = &*self.inner.tally;
        (
            commits.load(Ordering::Relaxed),
            transactions.load(Ordering::Relaxed),
        )
    }

    /// Sets the quota of the running store: see [`Options::max_pages`]. A file that is larger already keeps its size.
    ///
    /// # Errors
    /// The store was closed.
    pub fn limit_pages(&self, pages: u32) -> Result<(), Error> {
        match self.inner.writer.lock().as_ref() {
            Some(writer) => writer.limit_pages(pages),
            None => Err(self.inner.closed()),
        }
    }
}

impl Inner {
    fn closed(&self) -> Error {
        let message = format!(
            "`{}` was closed by this process; open it again to go on",
            self.path.display()
        );
        Error::new(ErrorKind::Closed, message)
    }
}

impl Store for SqliteStore {
    fn activate(&self) -> Result<Activation, Error> {
        match self.inner.writer.lock().as_mut() {
            Some(writer) if !self.inner.inbox.is_closed() => writer.activate(),
            _ => Err(self.inner.closed()),
        }
    }

    fn submit(&self, batch: Batch) {
        writer::submit(&self.inner, batch);
    }

    fn load(&self, instance: InstanceKey) -> Result<Option<StoredInstance>, Error> {
        self.inner.read(|conn| instance::load(conn, instance))
    }

    fn recoverable(&self, after: Option<InstanceKey>, limit: usize) -> Result<Vec<InstanceRow>, Error> {
        self.inner.read(|conn| instance::recoverable(conn, after, limit))
    }

    fn timers(
        &self,
        until: Timestamp,
        after: Option<&TimerRow>,
        limit: usize,
    ) -> Result<Vec<TimerRow>, Error> {
        self.inner.read(|conn| timer::due(conn, until, after, limit))
    }

    fn stimuli(&self, after: Option<StimulusKey>, limit: usize) -> Result<Vec<StimulusRow>, Error> {
        self.inner.read(|conn| queue::list(conn, after, limit))
    }

    fn definition(&self, key: DefinitionKey) -> Result<Option<DefinitionRow>, Error> {
        self.inner.read(|conn| definition::get(conn, key))
    }

    fn resource(&self, key: u64) -> Result<Option<Arc<[u8]>>, Error> {
        self.inner.read(|conn| definition::resource(conn, key))
    }

    fn value(&self, key: &str, now: Timestamp) -> Result<Option<Vec<u8>>, Error> {
        self.inner.read(|conn| value::get(conn, key, now))
    }

    fn job(&self, key: ElementInstanceKey) -> Result<Option<JobRow>, Error> {
        self.inner.read(|conn| job::get(conn, key))
    }

    fn ended(
        &self,
        process: (&str, &str),
        until: Timestamp,
        after: Option<(Timestamp, InstanceKey)>,
        limit: usize,
    ) -> Result<Vec<EndedRow>, Error> {
        self.inner
            .read(|conn| forget::ended(conn, process, until, after, limit))
    }

    fn ended_beyond(
        &self,
        process: (&str, &str),
        keep: usize,
    ) -> Result<Option<(Timestamp, InstanceKey)>, Error> {
        self.inner.read(|conn| forget::ended_beyond(conn, process, keep))
    }

    fn next_ended_process(&self, after: Option<(&str, &str)>) -> Result<Option<(String, String)>, Error> {
        self.inner.read(|conn| forget::next_ended_process(conn, after))
    }

    fn forgotten(&self, instance: InstanceKey) -> Result<Option<ForgottenRow>, Error> {
        self.inner.read(|conn| forget::get(conn, instance))
    }

    fn open_operations(&self) -> Result<Vec<OperationRow>, Error> {
        self.inner.read(operation::open)
    }

    fn close(&self) {
        if !writer::close(&self.inner.inbox) {
            // Asked for by an outcome being told: the threads end by themselves, and `Drop` of what they hold
            // releases the file.
            self.inner.checkpoints.stop();
            return;
        }
        self.inner.checkpoints.stop();
        for thread in self.threads.lock().drain(..) {
            let _ = thread.join();
        }
        self.inner.readers.clear();
        self.inner.writer.lock().take();
        self.inner.lock.lock().take();
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        self.close();
    }
}

/// A row limit as SQLite takes it.
fn rows(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// The key that a page's rows are older than.
fn before(page: Page) -> i64 {
    page.after
        .and_then(|key| i64::try_from(key).ok())
        .unwrap_or(i64::MAX)
}
