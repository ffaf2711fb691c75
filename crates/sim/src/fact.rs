//! What was observed in a run: the facts that the checkers look at, and the state that is left at its end.

use std::sync::Arc;

use tidegate::engine::{Event, decode_events};
use tidegate::model::{ElementInstanceKey, InstanceKey, MessageKey, StimulusKey};
use tidegate::status::DrainOutcome;
use tidegate::store::{AuditRow, Commit, CommitResult, DeadLetterRow, InstanceRow, JournalRow, StimulusRow};

/// One observation.
#[derive(Debug)]
pub enum Fact {
    /// A generation has taken hold of the store.
    Activated {
        /// Its id.
        generation: String,
        /// Instances that the one before left executing.
        executing: Vec<InstanceKey>,
    },
    /// The store took a commit, or refused it. From here on it is durable.
    Applied {
        /// The epoch it was submitted under.
        epoch: u64,
        /// What it held.
        commit: Arc<Commit>,
        /// What came of it.
        result: CommitResult,
        /// A second time, as a store does that lost the first answer.
        is_repeated: bool,
    },
    /// The store failed at a commit that has an audit entry.
    AuditFailed,
    /// A handler began.
    HandlerBegan {
        /// The instance.
        instance: InstanceKey,
        /// The job.
        job: ElementInstanceKey,
        /// Which run this is, of all handlers.
        run: u64,
        /// Another run of this job that goes on and was not told to stop.
        rival: Option<u64>,
        /// True under policy `activity`: what asked for the job must be durable.
        must_be_committed: bool,
    },
    /// A round of an owner behind a closed gate, with the live cycles before and after it.
    ClosedRound {
        /// Which gate: `runtime`, or a part.
        gate: String,
        /// Before the round.
        before: u64,
        /// After it.
        after: u64,
    },
    /// A caller was told so.
    Acknowledged(Acknowledged),
    /// A drain gave its report.
    Drained {
        /// The generation.
        generation: String,
        /// The report.
        outcome: Box<DrainOutcome>,
    },
    /// A generation was released, or did not start: nothing of it may be left.
    Released {
        /// What the runtime says.
        is_joined: bool,
        /// The store had not answered everything: a generation does not wait longer for it than its reserve.
        is_store_busy: bool,
        /// Tasks that are alive and none of the simulation's.
        tasks_left: usize,
    },
    /// The process was killed.
    Crashed,
}

/// What a caller was told.
#[derive(Debug, Clone, PartialEq)]
pub enum Acknowledged {
    /// An instance was started, under this idempotency and business key.
    Started {
        /// The key.
        key: String,
        /// The instance.
        instance: InstanceKey,
    },
    /// A message was published, with this mark in its variables.
    Published {
        /// The mark.
        mark: String,
        /// The message.
        message: MessageKey,
        /// Its place in the queue.
        accepted: Option<StimulusKey>,
    },
    /// A job was leased.
    Leased(ElementInstanceKey),
    /// The completion of a job was taken.
    JobDone {
        /// The job.
        job: ElementInstanceKey,
        /// Its instance.
        instance: InstanceKey,
        /// Its place in the queue.
        accepted: Option<StimulusKey>,
    },
    /// The completion of a user task was taken.
    TaskDone {
        /// The task.
        task: ElementInstanceKey,
        /// Its instance.
        instance: InstanceKey,
    },
    /// An instance was cancelled: its status is this.
    Cancelled {
        /// The instance.
        instance: InstanceKey,
        /// True if it had not ended before.
        was_live: bool,
    },
}

/// A fact with its place.
#[derive(Debug)]
pub struct Noted {
    /// Which process life, from 0.
    pub life: usize,
    /// The fact.
    pub fact: Fact,
}

/// An instance as it is at the end.
#[derive(Debug)]
pub struct Instance {
    /// Its row.
    pub row: InstanceRow,
    /// Its journal.
    pub journal: Vec<JournalRow>,
}

impl Instance {
    /// The events of its journal, in order.
    pub fn events(&self) -> Vec<Event> {
        self.journal.iter().flat_map(events).collect()
    }
}

/// The events of a journal row. One that cannot be read has none; the run itself fails by that.
pub fn events(row: &JournalRow) -> Vec<Event> {
    decode_events(&row.payload).unwrap_or_default()
}

/// A whole run.
#[derive(Debug, Default)]
pub struct Record {
    /// What was observed, in order.
    pub facts: Vec<Noted>,
    /// Every instance.
    pub instances: Vec<Instance>,
    /// What stands in the queue at the end.
    pub queue: Vec<StimulusRow>,
    /// What was put aside.
    pub dead_letters: Vec<DeadLetterRow>,
    /// The audit trail, oldest first.
    pub audit: Vec<AuditRow>,
    /// What did not come to its end although all faults were over.
    pub unsettled: Vec<String>,
}

impl Record {
    /// The commits that the store took, first time only, with the number of the fact.
    pub fn applied(&self) -> impl Iterator<Item = (usize, &Commit, &tidegate::store::Outcome)> {
        self.facts
            .iter()
            .enumerate()
            .filter_map(|(at, noted)| match &noted.fact {
                Fact::Applied {
                    commit,
                    result: Ok(outcome),
                    is_repeated: false,
                    ..
                } => Some((at, &**commit, outcome)),
                _ => None,
            })
    }

    /// What callers were told, with the number of the fact.
    pub fn acknowledged(&self) -> impl Iterator<Item = (usize, &Acknowledged)> {
        self.facts
            .iter()
            .enumerate()
            .filter_map(|(at, noted)| match &noted.fact {
                Fact::Acknowledged(what) => Some((at, what)),
                _ => None,
            })
    }

    /// An instance at the end.
    pub fn instance(&self, key: InstanceKey) -> Option<&Instance> {
        self.instances.iter().find(|instance| instance.row.key == key)
    }
}
