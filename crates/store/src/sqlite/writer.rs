//! Who writes when: the inbox, the writer thread, and the submitting thread when nothing else is under way.
//!
//! One thread at a time is `busy`: it takes a batch, or all that gathered, runs it and tells the outcomes, in the
//! order of submission. The writer lock is not held while outcomes are told. A `done` that submits again finds the
//! inbox busy and leaves its batch there, so nothing nests.

use std::cell::Cell;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use parking_lot::{Condvar, Mutex};

use super::Inner;
use super::transaction::Writer;
use crate::commit::{Batch, CommitError, CommitResult};
use crate::error::{Error, ErrorKind};

/// How many writes share one transaction at most: some milliseconds of work, so that a commit does not wait long
/// for others.
const JOINED_WRITES: usize = 4096;

/// Niceness of the writer thread, where permitted. Everybody waits for it, and it mostly waits for the disk.
#[cfg(target_os = "linux")]
const WRITER_NICENESS: i32 = -10;

thread_local! {
    /// True while this thread tells outcomes: a store that is closed from there cannot wait for itself.
    static IS_TELLING: Cell<bool> = const { Cell::new(false) };
}

/// Batches that wait, and who is at work.
#[derive(Default)]
pub(super) struct Inbox {
    state: Mutex<State>,
    wake: Condvar,
    idle: Condvar,
}

#[derive(Default)]
struct State {
    pending: VecDeque<Batch>,
    is_busy: bool,
    is_closed: bool,
}

impl Inbox {
    pub fn is_closed(&self) -> bool {
        self.state.lock().is_closed
    }
}

/// Starts the writer thread.
pub(super) fn spawn(inner: Arc<Inner>) -> std::io::Result<JoinHandle<()>> {
    thread::Builder::new()
        .name("tidegate-writer".to_owned())
        .spawn(move || {
            raise_priority();
            while let Some(batches) = next(&inner.inbox) {
                run(&inner, batches);
                rest(&inner.inbox);
            }
        })
}

/// Takes a batch: runs it here when nothing is under way, else leaves it to the writer thread.
pub(super) fn submit(inner: &Inner, batch: Batch) {
    let mut state = inner.inbox.state.lock();
    if state.is_closed {
        drop(state);
        let error = inner.closed();
        let results = batch
            .commits
            .iter()
            .map(|_| {
                Err(CommitError::Failed {
                    error: error.clone(),
                    may_have_happened: false,
                })
            })
            .collect();
        tell(batch, results);
        return;
    }
    if state.is_busy || !state.pending.is_empty() {
        state.pending.push_back(batch);
        return;
    }
    state.is_busy = true;
    drop(state);
    run(inner, vec![batch]);
    rest(&inner.inbox);
}

/// Refuses new batches and waits until the ones before have been told, unless it is asked by one of those.
/// False if it could not wait.
pub(super) fn close(inbox: &Inbox) -> bool {
    let mut state = inbox.state.lock();
    state.is_closed = true;
    inbox.wake.notify_all();
    if IS_TELLING.get() {
        return false;
    }
    while state.is_busy || !state.pending.is_empty() {
        inbox.idle.wait(&mut state);
    }
    true
}

/// What gathered, for the writer thread; `None` once the store is closed and everything was told.
fn next(inbox: &Inbox) -> Option<Vec<Batch>> {
    let mut state = inbox.state.lock();
    while state.is_busy || state.pending.is_empty() {
        if state.is_closed && !state.is_busy {
            return None;
        }
        inbox.wake.wait(&mut state);
    }
    state.is_busy = true;
    let mut batches = Vec::new();
    let mut writes = 0;
    while let Some(batch) = state.pending.front() {
        writes += batch
            .commits
            .iter()
            .map(|commit| commit.writes.len())
            .sum::<usize>();
        if !batches.is_empty() && writes > JOINED_WRITES {
            break;
        }
        batches.extend(state.pending.pop_front());
    }
    Some(batches)
}

fn rest(inbox: &Inbox) {
    let mut state = inbox.state.lock();
    state.is_busy = false;
    if !state.pending.is_empty() || state.is_closed {
        inbox.wake.notify_one();
    }
    if state.pending.is_empty() {
        inbox.idle.notify_all();
    }
}

fn run(inner: &Inner, batches: Vec<Batch>) {
    let results = {
        let mut slot = inner.writer.lock();
        match slot.as_mut() {
            Some(writer) => run_guarded(writer, &batches, inner),
            None => refuse(&batches, &inner.closed()),
        }
    };
    for (batch, results) in batches.into_iter().zip(results) {
        tell(batch, results);
    }
}

/// A panic while writing is a bug of ours; the batch fails, and the store stays usable.
fn run_guarded(writer: &mut Writer, batches: &[Batch], inner: &Inner) -> Vec<Vec<CommitResult>> {
    let results = catch_unwind(AssertUnwindSafe(|| writer.run(batches)));
    inner.checkpoints.after_commit(writer.wal_pages());
    results.unwrap_or_else(|_| {
        writer.recover();
        refuse(
            batches,
            &Error::new(
                ErrorKind::Internal,
                "the writer panicked; the panic message has the cause",
            ),
        )
    })
}

fn refuse(batches: &[Batch], error: &Error) -> Vec<Vec<CommitResult>> {
    let fail = || {
        Err(CommitError::Failed {
            error: error.clone(),
            may_have_happened: false,
        })
    };
    batches
        .iter()
        .map(|batch| batch.commits.iter().map(|_| fail()).collect())
        .collect()
}

/// A panic in `done` is its owner's bug and must not take the writer with it.
fn tell(batch: Batch, results: Vec<CommitResult>) {
    let before = IS_TELLING.replace(true);
    let done = batch.done;
    let _ = catch_unwind(AssertUnwindSafe(move || done(results)));
    IS_TELLING.set(before);
}

#[cfg(target_os = "linux")]
fn raise_priority() {
    // On Linux this sets the niceness of one thread, named by its id. Not permitted to most users: then it stays.
    let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), WRITER_NICENESS);
}

#[cfg(not(target_os = "linux"))]
fn raise_priority() {}
