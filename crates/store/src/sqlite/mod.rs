//! A store in one SQLite file.
//!
//! WAL with full sync: an outcome is told after the log that holds it was synced. One connection writes, guarded
//! by its inbox; a few read; a thread moves the log into the file beside the commits. One process
//! holds the file by an operating-system lock on `PATH.lock`. Local file systems only.
//!
//! A file may hold several stores, each in a [namespace](crate::Namespace) of its own: the same tables under other names.
//! Those that a process has open share its lock, its writing connection and its syncs, and nothing else.

mod audit;
mod checkpoint;
mod commit;
mod dead_letter;
mod definition;
mod error;
mod file;
mod forget;
mod instance;
mod job;
mod journal;
mod lock;
mod message;
mod migrate;
mod names;
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
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tidegate_model::{DefinitionKey, ElementInstanceKey, InstanceKey, StimulusKey, Timestamp};

use self::file::OpenFile;
use self::names::Names;
use self::readers::Readers;
use self::transaction::{Tally, Writer};
use self::writer::Ticket;
use crate::commit::Batch;
use crate::error::{Error, ErrorKind};
use crate::forget::{EndedRow, ForgottenRow, OperationRow};
use crate::namespace::Namespace;
use crate::row::{DefinitionRow, InstanceRow, JobRow, Page, StimulusRow, StoredInstance, TimerRow};
use crate::{Activation, Store};

/// How to open a SQLite store.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Which of the stores in the file.
    pub namespace: Namespace,
    /// How long to wait for a process that holds the store. Zero to be refused at once.
    pub lock_wait: Duration,
    /// A quota for the whole file, where this store is the first of the process to open it, in pages of 8 KB; beyond it commits fail as [`ErrorKind::Full`].
    pub max_pages: Option<u32>,
    /// The name of a registered SQLite VFS, for tests that take the disk apart.
    pub vfs: Option<String>,
}

/// A store in one SQLite file, alone or beside others.
pub struct SqliteStore {
    file: Arc<OpenFile>,
    ticket: Ticket,
    names: Arc<Names>,
    /// The file and the namespace, for messages.
    place: PathBuf,
    readers: Readers,
    is_closed: AtomicBool,
}

/// One spelling for each file of a store, whatever links and relative paths lead to it; it need not be there yet.
pub fn resolve(path: &Path) -> PathBuf {
    open::resolve(path)
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
        let names = Arc::new(Names::of(options.namespace.clone()));
        let (file, ticket) = OpenFile::join(path, options, &names)?;
        Ok(Self {
            place: names.place(&file.path),
            file,
            ticket,
            names,
            readers: Readers::default(),
            is_closed: AtomicBool::new(false),
        })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.file.path
    }

    /// How many commits were made in the file since it was opened, and in how many transactions. Each transaction is one sync
    /// of the log. Nothing of a store that was closed.
    pub fn tally(&self) -> (u64, u64) {
        let writer = self.file.writer.lock();
        let Some(Tally {
            commits,
            transactions,
        }) = writer.as_ref().map(Writer::tally)
        else {
            return (0, 0);
        };
        (
            commits.load(Ordering::Relaxed),
            transactions.load(Ordering::Relaxed),
        )
    }

    /// Sets the quota of the running file, for all stores in it: see [`Options::max_pages`]. A file that is larger already
    /// keeps its size.
    ///
    /// # Errors
    /// The store was closed.
    pub fn limit_pages(&self, pages: u32) -> Result<(), Error> {
        self.file.limit_pages(pages)
    }

    fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }
}

impl Store for SqliteStore {
    fn activate(&self) -> Result<Activation, Error> {
        match self.file.writer.lock().as_mut() {
            Some(writer) if self.file.inbox.is_open(self.ticket) => writer.activate(self.ticket.lane),
            _ => Err(self.file.closed()),
        }
    }

    fn submit(&self, batch: Batch) {
        writer::submit(&self.file, self.ticket, batch);
    }

    fn load(&self, instance: InstanceKey) -> Result<Option<StoredInstance>, Error> {
        self.read(|conn| instance::load(conn, instance))
    }

    fn recoverable(&self, after: Option<InstanceKey>, limit: usize) -> Result<Vec<InstanceRow>, Error> {
        self.read(|conn| instance::recoverable(conn, after, limit))
    }

    fn timers(
        &self,
        until: Timestamp,
        after: Option<&TimerRow>,
        limit: usize,
    ) -> Result<Vec<TimerRow>, Error> {
        self.read(|conn| timer::due(conn, until, after, limit))
    }

    fn stimuli(&self, after: Option<StimulusKey>, limit: usize) -> Result<Vec<StimulusRow>, Error> {
        self.read(|conn| queue::list(conn, after, limit))
    }

    fn definition(&self, key: DefinitionKey) -> Result<Option<DefinitionRow>, Error> {
        self.read(|conn| definition::get(conn, key))
    }

    fn resource(&self, key: u64) -> Result<Option<Arc<[u8]>>, Error> {
        self.read(|conn| definition::resource(conn, key))
    }

    fn value(&self, key: &str, now: Timestamp) -> Result<Option<Vec<u8>>, Error> {
        self.read(|conn| value::get(conn, key, now))
    }

    fn job(&self, key: ElementInstanceKey) -> Result<Option<JobRow>, Error> {
        self.read(|conn| job::get(conn, key))
    }

    fn ended(
        &self,
        process: (&str, &str),
        until: Timestamp,
        after: Option<(Timestamp, InstanceKey)>,
        limit: usize,
    ) -> Result<Vec<EndedRow>, Error> {
        self.read(|conn| forget::ended(conn, process, until, after, limit))
    }

    fn ended_beyond(
        &self,
        process: (&str, &str),
        keep: usize,
    ) -> Result<Option<(Timestamp, InstanceKey)>, Error> {
        self.read(|conn| forget::ended_beyond(conn, process, keep))
    }

    fn next_ended_process(&self, after: Option<(&str, &str)>) -> Result<Option<(String, String)>, Error> {
        self.read(|conn| forget::next_ended_process(conn, after))
    }

    fn forgotten(&self, instance: InstanceKey) -> Result<Option<ForgottenRow>, Error> {
        self.read(|conn| forget::get(conn, instance))
    }

    fn open_operations(&self) -> Result<Vec<OperationRow>, Error> {
        self.read(operation::open)
    }

    fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        self.readers.clear();
        self.file.leave(self.ticket);
        self.readers.clear();
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
