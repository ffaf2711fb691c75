//! An instance in memory: a cache that may run ahead of the store.

use std::sync::Arc;

use tidegate_engine::{Event, Instance};
use tidegate_model::{Effect, ElementInstanceKey, InstanceKey, SubStatus};
use tidegate_store::{AuditRow, Expect, InstanceRow, StimulusRow, Write};
use tokio::time::Instant;

use crate::activity::Stopper;
use crate::definitions::Loaded;
use crate::tasks::Stragglers;

use super::commit::Answer;
use super::cycle::Cycle;
use super::pending::Item;

pub(super) struct Resident {
    /// Which stay in memory this is: what belongs to an earlier one is refused.
    pub(super) incarnation: u64,
    pub(super) instance: Instance,
    pub(super) loaded: Arc<Loaded>,
    /// The row as of the last commit that was handed over.
    pub(super) row: InstanceRow,
    /// False until the commit that creates the row was handed over.
    pub(super) is_created: bool,
    /// Uncommitted events, and what they ask for.
    pub(super) events: Vec<Event>,
    pub(super) first_sequence: u64,
    pub(super) effects: Vec<Effect>,
    /// What else the next commit holds.
    pub(super) riders: Vec<Write>,
    pub(super) expect: Vec<Expect>,
    pub(super) answers: Vec<Answer>,
    /// What the next commit takes out of the line; it goes back if the commit fails.
    pub(super) consumed: Vec<Item>,
    /// In-process jobs that are done: they have no row to remove.
    pub(super) done_in_process: Vec<ElementInstanceKey>,
    pub(super) is_dirty: bool,
    /// The model wants a commit here, whatever the policy says.
    pub(super) at_commit_point: bool,
    pub(super) uncommitted_since: Option<Instant>,
    /// Commits that failed in a drain and wait for another try, in their order.
    pub(super) retry: std::collections::VecDeque<super::retry::Retry>,
    /// Commits handed over and not told yet.
    pub(super) in_flight: u32,
    /// In-process jobs that wait for a commit in flight, or stand in the owner's ready list.
    pub(super) waiting_jobs: u32,
    /// Jobs that a cut kept from starting.
    pub(super) held_back: u32,
    /// Jobs whose handler had begun when it was told to stop, or was lost.
    pub(super) begun: Vec<ElementInstanceKey>,
    pub(super) running: Vec<Running>,
    pub(super) cycle: Option<Cycle>,
    /// Bytes of journal since the state was written last, and of that state.
    pub(super) journal_bytes: usize,
    pub(super) state_bytes: usize,
    /// The revision up to which the journal was trimmed.
    pub(super) trimmed: u64,
    /// Set by the cut: the sub-status that the next commit writes.
    pub(super) is_marked: bool,
    /// What the store says was under way when it was loaded, until a cycle takes it up.
    pub(super) left: Option<SubStatus>,
    /// The next commit holds the whole state, whatever the journal weighs: what stands in the journal behind it is of
    /// another definition.
    pub(super) writes_state: bool,
    /// Its cancellation ends more of it with the next commit.
    pub(super) has_more_to_end: bool,
    /// Outcomes of handlers that ended while it is held, for the next commit to put into the queue.
    pub(super) kept: Vec<StimulusRow>,
    /// The jobs of such outcomes that stand in the queue, or are on their way into it.
    pub(super) kept_jobs: Vec<ElementInstanceKey>,
    /// Types of jobs that the next commit offers again.
    pub(super) offered: Vec<Arc<str>>,
    /// When it was put among the idle, and what it was counted with.
    pub(super) idle_since: Option<u64>,
    pub(super) counted_bytes: usize,
}

/// An in-process activity that runs. One that is let go of before it has ended is a straggler.
pub(super) struct Running {
    pub(super) job: ElementInstanceKey,
    pub(super) run: u64,
    pub(super) element_id: Arc<str>,
    pub(super) stopper: Stopper,
    pub(super) task: Option<tokio::task::AbortHandle>,
    pub(super) stragglers: Stragglers,
}

impl Running {
    /// It has reported its end.
    pub(super) fn ended(mut self) {
        self.task = None;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(task) = self.task.take()
            && !task.is_finished()
        {
            let name = format!("activity {} of job {}", self.element_id, self.job);
            self.stragglers.add(name, task);
        }
    }
}

impl Resident {
    pub(super) fn new(
        incarnation: u64,
        instance: Instance,
        loaded: Arc<Loaded>,
        row: InstanceRow,
        is_created: bool,
    ) -> Self {
        Self {
            incarnation,
            instance,
            loaded,
            row,
            is_created,
            events: Vec::new(),
            first_sequence: 0,
            effects: Vec::new(),
            riders: Vec::new(),
            expect: Vec::new(),
            answers: Vec::new(),
            consumed: Vec::new(),
            done_in_process: Vec::new(),
            is_dirty: false,
            at_commit_point: false,
            uncommitted_since: None,
            retry: std::collections::VecDeque::new(),
            in_flight: 0,
            waiting_jobs: 0,
            held_back: 0,
            begun: Vec::new(),
            running: Vec::new(),
            cycle: None,
            journal_bytes: 0,
            state_bytes: 0,
            trimmed: 0,
            is_marked: false,
            writes_state: false,
            left: None,
            has_more_to_end: false,
            kept: Vec::new(),
            kept_jobs: Vec::new(),
            offered: Vec::new(),
            idle_since: None,
            counted_bytes: 0,
        }
    }

    /// Has the next commit take an audit entry along: both are there, or neither.
    pub(super) fn take_along(&mut self, audit: AuditRow) {
        crate::audit::log(&audit);
        self.riders.push(Write::Audit(Box::new(audit)));
    }

    pub(super) fn key(&self) -> InstanceKey {
        self.row.key
    }

    /// True if no in-process work runs or waits to run.
    pub(super) fn is_at_rest(&self) -> bool {
        self.running.is_empty() && self.waiting_jobs == 0 && self.held_back == 0
    }

    /// True if nothing of it is on its way.
    pub(super) fn is_settled(&self) -> bool {
        self.is_at_rest() && self.in_flight == 0 && !self.is_dirty
    }

    /// What the next commit says it is doing.
    pub(super) fn sub_status(&self, starts_jobs: bool) -> SubStatus {
        match self.instance.ended() {
            Some(ended) => ended,
            None if self.instance.is_cancelling() => SubStatus::Cancelling,
            // It is held from where nothing of it runs; a cut instance is held at once.
            None if self.instance.is_held() && (self.is_marked || self.running.is_empty()) => SubStatus::Held,
            None if self.is_marked => SubStatus::Interrupted,
            None if starts_jobs || !self.is_at_rest() => SubStatus::Executing,
            // Without a cycle what was under way stays so.
            None => self.left.unwrap_or(SubStatus::Suspended),
        }
    }

    /// An estimate of its size in memory.
    pub(super) fn bytes(&self) -> usize {
        std::mem::size_of::<Self>() + self.instance.bytes()
    }
}
