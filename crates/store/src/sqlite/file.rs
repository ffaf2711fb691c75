//! Open files: the stores of this process in one file share its lock, its writing connection and its syncs.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::checkpoint::{self, Checkpoints};
use super::lock::DirectoryLock;
use super::names::Names;
use super::transaction::Writer;
use super::writer::{self, Inbox, NoLane, Ticket};
use super::{Options, open};
use crate::error::{Error, ErrorKind};

/// A file that this process is closing is waited for, for as long as its last commits may take.
const CLOSING: Duration = Duration::from_secs(10);

/// The files of this process. Who opens one holds its slot meanwhile.
static FILES: LazyLock<Mutex<HashMap<Key, Arc<Slot>>>> = LazyLock::new(Mutex::default);

/// A file, and the VFS it is reached through.
type Key = (PathBuf, Option<String>);

#[derive(Default)]
struct Slot(Mutex<Weak<OpenFile>>);

/// One file with everything that its stores share.
pub(super) struct OpenFile {
    pub path: PathBuf,
    pub options: Options,
    pub inbox: Inbox,
    pub writer: Mutex<Option<Writer>>,
    pub checkpoints: Checkpoints,
    lock: Mutex<Option<DirectoryLock>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl OpenFile {
    /// A lane for the store `names` in the file at `path`, which is opened unless another store of this process has
    /// done so.
    pub fn join(path: &Path, options: &Options, names: &Arc<Names>) -> Result<(Arc<Self>, Ticket), Error> {
        open::prepare_folder(path)?;
        let path = match options.vfs {
            Some(_) => path.to_owned(),
            None => open::resolve(path),
        };
        let slot = slot((path.clone(), options.vfs.clone()));
        let mut present = slot.0.lock();
        let mut wait = options.lock_wait;
        let until = Instant::now() + wait;
        if let Some(file) = present.upgrade() {
            match file.inbox.open_lane(names.namespace(), until) {
                Ok(ticket) => {
                    file.take_up(ticket, names)?;
                    return Ok((file, ticket));
                }
                Err(NoLane::InUse) => return Err(in_use(&names.place(&path))),
                Err(NoLane::Closed) if !writer::is_telling() => wait = wait.max(CLOSING),
                Err(NoLane::Closed) => {}
            }
        }
        let file = Self::open(path, options, wait)?;
        let Ok(ticket) = file.inbox.open_lane(names.namespace(), until) else {
            return Err(file.closed());
        };
        file.take_up(ticket, names)?;
        open::prepare_wal(&file.path, options);
        file.start_threads().inspect_err(|_| file.leave(ticket))?;
        *present = Arc::downgrade(&file);
        Ok((file, ticket))
    }

    fn open(path: PathBuf, options: &Options, wait: Duration) -> Result<Arc<Self>, Error> {
        let lock = DirectoryLock::take(&path, wait)?;
        open::prepare_file(&path, options)?;
        let writer = open::writer(&path, options)
            .and_then(|conn| Writer::new(conn, path.clone(), options.clone()))
            .map_err(|trouble| trouble.into_error(&path))?;
        Ok(Arc::new(Self {
            path,
            options: options.clone(),
            inbox: Inbox::default(),
            writer: Mutex::new(Some(writer)),
            checkpoints: Checkpoints::default(),
            lock: Mutex::new(Some(lock)),
            threads: Mutex::default(),
        }))
    }

    /// Lets the writer know the store behind a fresh lane. One that cannot be read leaves the others as they are.
    fn take_up(&self, ticket: Ticket, names: &Arc<Names>) -> Result<(), Error> {
        let joined = match self.writer.lock().as_mut() {
            Some(writer) => writer.join(ticket.lane, Arc::clone(names)),
            None => return Err(self.closed()),
        };
        joined.map_err(|trouble| {
            self.leave(ticket);
            trouble.into_error(&names.place(&self.path))
        })
    }

    fn start_threads(self: &Arc<Self>) -> Result<(), Error> {
        let checkpointer = checkpoint::connection(&self.path, &self.options)
            .map_err(|trouble| trouble.into_error(&self.path))?;
        let no_thread = |cause| Error::new(ErrorKind::Unavailable, format!("cannot start a thread: {cause}"));
        let mut threads = self.threads.lock();
        threads.push(writer::spawn(Arc::clone(self)).map_err(no_thread)?);
        threads.push(checkpoint::spawn(Arc::clone(self), checkpointer).map_err(no_thread)?);
        Ok(())
    }

    /// A store is done with its lane. The last one takes the file with it.
    pub fn leave(&self, ticket: Ticket) {
        if !self.inbox.close_lane(ticket) {
            return;
        }
        self.checkpoints.stop();
        if writer::is_telling() {
            // Asked for by an outcome being told: the threads end by themselves, and `Drop` of what they hold
            // releases the file.
            return;
        }
        for thread in self.threads.lock().drain(..) {
            let _ = thread.join();
        }
        if let Some(writer) = self.writer.lock().take() {
            writer.finish();
        }
        self.lock.lock().take();
    }

    pub fn limit_pages(&self, pages: u32) -> Result<(), Error> {
        match self.writer.lock().as_ref() {
            Some(writer) => writer.limit_pages(pages),
            None => Err(self.closed()),
        }
    }

    pub fn closed(&self) -> Error {
        let message = format!(
            "`{}` was closed by this process; open it again to go on",
            self.path.display()
        );
        Error::new(ErrorKind::Closed, message)
    }
}

fn slot(key: Key) -> Arc<Slot> {
    let mut files = FILES.lock();
    let is_needed = |slot: &Arc<Slot>| {
        Arc::strong_count(slot) > 1 || slot.0.try_lock().is_none_or(|file| file.strong_count() > 0)
    };
    files.retain(|_, slot| is_needed(slot));
    Arc::clone(files.entry(key).or_default())
}

fn in_use(place: &Path) -> Error {
    let message = format!(
        "`{}` is held by process {}, which is this one: give each shell a store or a namespace of its own",
        place.display(),
        std::process::id()
    );
    Error::new(ErrorKind::Locked, message)
}
