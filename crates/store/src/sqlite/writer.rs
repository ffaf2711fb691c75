//! Who writes when: the inbox, the writer thread, and the submitting thread when nothing else is under way.
//!
//! One thread at a time is `busy`: it takes a batch, or all that gathered, runs it and tells the outcomes, in the
//! order of submission. The writer lock is not held while outcomes are told. A `done` that submits again finds the
//! inbox busy and leaves its batch there, so nothing nests.
//!
//! Every store in the file has a lane of its own. What gathered in them shares a transaction and its sync, taken in
//! turn, so that a store that floods its lane delays the others by one transaction at most.

use std::cell::Cell;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Instant;

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::file::OpenFile;
use super::transaction::Writer;
use crate::commit::{Batch, CommitError, CommitResult};
use crate::error::{Error, ErrorKind};
use crate::namespace::Namespace;

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

/// True on a thread that tells outcomes.
pub(super) fn is_telling() -> bool {
    IS_TELLING.get()
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
    lanes: Vec<Lane>,
    /// Batches in all lanes.
    pending: usize,
    /// The lane whose turn it is.
    turn: usize,
    is_busy: bool,
    /// Every store was closed: the file goes too.
    is_closed: bool,
    /// Threads that wait for a lane to come to rest.
    waiting: usize,
    tickets: u64,
}

impl State {
    /// The open lane of this ticket.
    fn open(&mut self, ticket: Ticket) -> Option<&mut Lane> {
        self.of(ticket).filter(|lane| lane.is_open)
    }

    fn of(&mut self, ticket: Ticket) -> Option<&mut Lane> {
        self.lanes
            .get_mut(ticket.lane)
            .filter(|lane| lane.number == ticket.number)
    }
}

/// The right of one store to hand over batches. Lanes are used again; a ticket is not.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ticket {
    /// The number of the lane.
    pub lane: usize,
    number: u64,
}

/// The batches of one store.
struct Lane {
    /// Of the ticket that it was opened for.
    number: u64,
    namespace: Namespace,
    pending: VecDeque<Batch>,
    /// Some of its batches are being run or told.
    is_in_hand: bool,
    is_open: bool,
}

impl Lane {
    fn is_at_rest(&self) -> bool {
        self.pending.is_empty() && !self.is_in_hand
    }

    fn is_in_use(&self) -> bool {
        self.is_open || !self.is_at_rest()
    }
}

/// Why a store got no lane.
pub(super) enum NoLane {
    /// The file is being closed.
    Closed,
    /// The namespace is open, or what was submitted to it has not been told yet.
    InUse,
}

impl Inbox {
    /// True if this store may hand over batches.
    pub fn is_open(&self, ticket: Ticket) -> bool {
        self.state.lock().open(ticket).is_some()
    }

    /// Opens a lane for a store, waiting until `until` for a former one of this namespace to come to its end.
    pub fn open_lane(&self, namespace: &Namespace, until: Instant) -> Result<Ticket, NoLane> {
        let mut state = self.state.lock();
        loop {
            if state.is_closed {
                return Err(NoLane::Closed);
            }
            let is_taken = |lane: &Lane| lane.namespace == *namespace && lane.is_in_use();
            if !state.lanes.iter().any(is_taken) {
                break;
            }
            if !self.wait_until(&mut state, until) {
                return Err(NoLane::InUse);
            }
        }
        state.tickets += 1;
        let number = state.tickets;
        let lane = Lane {
            number,
            namespace: namespace.clone(),
            pending: VecDeque::new(),
            is_in_hand: false,
            is_open: true,
        };
        if let Some(free) = state.lanes.iter().position(|lane| !lane.is_in_use()) {
            state.lanes[free] = lane;
            return Ok(Ticket { lane: free, number });
        }
        state.lanes.push(lane);
        Ok(Ticket {
            lane: state.lanes.len() - 1,
            number,
        })
    }

    /// False if it is too late, or this thread is one that is waited for.
    fn wait_until(&self, state: &mut MutexGuard<'_, State>, until: Instant) -> bool {
        if IS_TELLING.get() {
            return false;
        }
        state.waiting += 1;
        let waited = self.idle.wait_until(state, until);
        state.waiting -= 1;
        !waited.timed_out()
    }

    /// Refuses new batches of this store and waits until the ones before have been told, unless it is asked by one of
    /// those. True if no other store is open: the file is closed with this one.
    pub fn close_lane(&self, ticket: Ticket) -> bool {
        let mut state = self.state.lock();
        if let Some(lane) = state.open(ticket) {
            lane.is_open = false;
            self.idle.notify_all();
        }
        while !IS_TELLING.get() && state.of(ticket).is_some_and(|lane| !lane.is_at_rest()) {
            state.waiting += 1;
            self.idle.wait(&mut state);
            state.waiting -= 1;
        }
        if state.lanes.iter().all(|lane| !lane.is_open) {
            state.is_closed = true;
            self.wake.notify_all();
        }
        state.is_closed
    }
}

/// Starts the writer thread.
pub(super) fn spawn(file: Arc<OpenFile>) -> std::io::Result<JoinHandle<()>> {
    thread::Builder::new()
        .name("tidegate-writer".to_owned())
        .spawn(move || {
            raise_priority();
            while let Some(batches) = next(&file.inbox) {
                run(&file, batches);
                rest(&file.inbox);
            }
        })
}

/// Takes a batch: runs it here when nothing is under way, else leaves it to the writer thread.
pub(super) fn submit(file: &OpenFile, ticket: Ticket, batch: Batch) {
    let mut state = file.inbox.state.lock();
    let is_idle = !state.is_busy && state.pending == 0;
    let Some(lane) = state.open(ticket) else {
        drop(state);
        let results = refused(&batch, &file.closed());
        tell(batch, results);
        return;
    };
    if !is_idle {
        lane.pending.push_back(batch);
        state.pending += 1;
        return;
    }
    lane.is_in_hand = true;
    state.is_busy = true;
    drop(state);
    run(file, vec![(ticket.lane, batch)]);
    rest(&file.inbox);
}

/// What gathered, for the writer thread; `None` once the file is closed and everything was told.
fn next(inbox: &Inbox) -> Option<Vec<(usize, Batch)>> {
    let mut state = inbox.state.lock();
    while state.is_busy || state.pending == 0 {
        if state.is_closed && !state.is_busy {
            return None;
        }
        inbox.wake.wait(&mut state);
    }
    state.is_busy = true;
    Some(gather(&mut state))
}

/// One batch of each lane in turn, as long as there is room.
fn gather(state: &mut State) -> Vec<(usize, Batch)> {
    let lanes = state.lanes.len();
    let mut batches = Vec::new();
    let mut room = JOINED_WRITES;
    while state.pending > 0 {
        let turn = state.turn % lanes;
        let lane = &mut state.lanes[turn];
        if let Some(batch) = lane.pending.front() {
            let writes = batch
                .commits
                .iter()
                .map(|commit| commit.writes.len())
                .sum::<usize>();
            if !batches.is_empty() && writes > room {
                break;
            }
            room = room.saturating_sub(writes);
            lane.is_in_hand = true;
            batches.extend(lane.pending.pop_front().map(|batch| (turn, batch)));
            state.pending -= 1;
        }
        state.turn = turn + 1;
    }
    batches
}

fn rest(inbox: &Inbox) {
    let mut state = inbox.state.lock();
    state.is_busy = false;
    for lane in &mut state.lanes {
        lane.is_in_hand = false;
    }
    if state.pending > 0 || state.is_closed {
        inbox.wake.notify_one();
    }
    if state.waiting > 0 {
        inbox.idle.notify_all();
    }
}

fn run(file: &OpenFile, batches: Vec<(usize, Batch)>) {
    let results = {
        let mut slot = file.writer.lock();
        match slot.as_mut() {
            Some(writer) => run_guarded(writer, &batches, file),
            None => refuse(&batches, &file.closed()),
        }
    };
    for ((_, batch), results) in batches.into_iter().zip(results) {
        tell(batch, results);
    }
}

/// A panic while writing is a bug of ours; the batch fails, and the store stays usable.
fn run_guarded(writer: &mut Writer, batches: &[(usize, Batch)], file: &OpenFile) -> Vec<Vec<CommitResult>> {
    let results = catch_unwind(AssertUnwindSafe(|| writer.run(batches)));
    file.checkpoints.after_commit(writer.wal_pages());
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

fn refuse(batches: &[(usize, Batch)], error: &Error) -> Vec<Vec<CommitResult>> {
    batches.iter().map(|(_, batch)| refused(batch, error)).collect()
}

fn refused(batch: &Batch, error: &Error) -> Vec<CommitResult> {
    let fail = || {
        Err(CommitError::Failed {
            error: error.clone(),
            may_have_happened: false,
        })
    };
    batch.commits.iter().map(|_| fail()).collect()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commit::{Commit, Write};

    fn batch(writes: usize) -> Batch {
        let write = || Write::RemoveValue("a".to_owned());
        Batch {
            epoch: 1,
            key_high: 0,
            commits: vec![Commit {
                expect: vec![],
                writes: (0..writes).map(|_| write()).collect(),
            }],
            done: Box::new(|_| {}),
        }
    }

    /// Opens a lane with these batches in it.
    fn lane(inbox: &Inbox, name: &str, batches: usize, writes: usize) -> usize {
        let Ok(ticket) = inbox.open_lane(&name.parse().unwrap(), Instant::now()) else {
            panic!("`{name}` gets a lane")
        };
        let mut state = inbox.state.lock();
        state.lanes[ticket.lane]
            .pending
            .extend((0..batches).map(|_| batch(writes)));
        state.pending += batches;
        ticket.lane
    }

    #[test]
    fn a_store_that_floods_its_lane_does_not_delay_the_others() {
        let inbox = Inbox::default();
        let flood = lane(&inbox, "flood", 100, 1000);
        let (one, two) = (lane(&inbox, "one", 1, 10), lane(&inbox, "two", 2, 10));
        let mut state = inbox.state.lock();
        let taken: Vec<_> = gather(&mut state).iter().map(|(lane, _)| *lane).collect();
        assert_eq!(taken, [flood, one, two, flood, two, flood, flood]);
        assert_eq!(state.pending, 96);
        // The next transaction begins with whoever would have been next.
        state.lanes[one].pending.push_back(batch(10));
        state.pending += 1;
        let taken: Vec<_> = gather(&mut state).iter().map(|(lane, _)| *lane).collect();
        assert_eq!(taken[..2], [flood, one]);
    }

    #[test]
    fn a_batch_larger_than_a_transaction_should_be_goes_alone() {
        let inbox = Inbox::default();
        let large = lane(&inbox, "large", 2, JOINED_WRITES + 1);
        let mut state = inbox.state.lock();
        assert_eq!(gather(&mut state).len(), 1);
        assert_eq!(gather(&mut state)[0].0, large);
        assert_eq!(state.pending, 0);
    }
}
