//! The write path: batches of commits.

use std::fmt;

use tidegate_model::{
    Cause, DefinitionKey, ElementIndex, ElementInstanceKey, IncidentKey, InstanceKey, MessageKey,
    StimulusKey, Timestamp,
};

use crate::error::Error;
use crate::forget::{ForgetRequest, OperationItemRow, OperationRow, Unforgettable};
use crate::row::{
    AuditRow, DeadLetterRow, DefinitionRow, IncidentRow, InstanceRow, InstanceUpdate, JobRow, JournalRow,
    LeaseRequest, MessageRow, StimulusRow, SubscriptionRow, TimerRow, UserTaskRow,
};

/// Commits that are written together and synced once.
pub struct Batch {
    /// The epoch of the generation that submits it.
    pub epoch: u64,
    /// The highest key used in it; the store remembers the maximum.
    pub key_high: u64,
    /// The commits, each a unit.
    pub commits: Vec<Commit>,
    /// Told the outcome of every commit, in order, after the sync. Must not block: it may run on the
    /// store's writer.
    pub done: Box<dyn FnOnce(Vec<CommitResult>) + Send>,
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch")
            .field("epoch", &self.epoch)
            .field("commits", &self.commits)
            .finish_non_exhaustive()
    }
}

/// One unit: expectations, then writes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Commit {
    /// Checked first, in order.
    pub expect: Vec<Expect>,
    /// Done in order.
    pub writes: Vec<Write>,
}

/// What must be so, else the commit is refused.
#[derive(Debug, Clone, PartialEq)]
pub enum Expect {
    /// This stimulus is still in the queue. (Consuming it is [`Write::RemoveStimulus`] in the same commit.)
    Stimulus(StimulusKey),
    /// This job is open and leased with this token, whose time may have passed as long as nobody else leased it
    /// (`a_lease_expires`), and no outcome of it was reported yet (`a_reported_job_is_not_offered`).
    Lease {
        /// The job.
        job: ElementInstanceKey,
        /// The token.
        token: String,
    },
    /// There is no unexpired key-value entry with this key.
    ValueAbsent {
        /// The key.
        key: String,
        /// The present time.
        now: Timestamp,
    },
    /// The highest version of the process id is below this one.
    VersionFree {
        /// The process id.
        process_id: String,
        /// The tenant.
        tenant: String,
        /// The version to be given.
        version: u32,
    },
    /// This dead letter is still there. (Replaying it is [`Write::RemoveDeadLetter`] and [`Write::AddStimulus`] in the
    /// same commit: `a_dead_letter_is_replayed_once`.)
    DeadLetter(StimulusKey),
    /// The instance is there and has not ended (used by stimuli accepted for it while closed).
    InstanceLive(InstanceKey),
    /// This timer is armed, for exactly this time: it was neither disarmed nor armed anew
    /// (`a_timer_fires_as_it_is_armed`).
    Timer {
        /// Who waits.
        owner: u64,
        /// The timer event.
        element: ElementIndex,
        /// When it is due.
        due_at: Timestamp,
    },
    /// Each of these instances is there and has ended, and so is every instance that it called, which is among them too.
    /// One whose journal was kept when it was forgotten counts as ended. (Forgetting them is [`Write::ForgetInstances`]
    /// in the same commit: `a_live_or_unknown_instance_keeps_a_forget_from_happening`,
    /// `a_caller_is_not_forgotten_before_whom_it_called`.)
    Forgettable(Vec<InstanceKey>),
}

/// One change.
#[derive(Debug, Clone, PartialEq)]
pub enum Write {
    /// A new instance. Its revision is whatever the row says (1, or 0 for an accepted start that is pending). If there
    /// is one of this key the commit is refused as [`Refusal::Revision`] (`a_second_creation_is_refused`). The same
    /// commit may update it (`a_commit_may_create_and_update`).
    CreateInstance {
        /// The row.
        row: Box<InstanceRow>,
        /// The encoded state.
        state: Option<Vec<u8>>,
    },
    /// The next revision of an instance: see [`InstanceUpdate::revision`].
    UpdateInstance(InstanceUpdate),
    /// Gives an instance another definition of its process, if it is there
    /// (`an_instance_changes_its_definition`).
    ChangeDefinition {
        /// The instance.
        instance: InstanceKey,
        /// The definition.
        definition: DefinitionKey,
        /// Its version.
        version: u32,
    },
    /// An instance's journal entry.
    Journal(JournalRow),
    /// Arms a timer, replacing one of the same owner and element.
    ArmTimer(TimerRow),
    /// Removes a timer, if it is there.
    DisarmTimer {
        /// Who waited.
        owner: u64,
        /// The timer event.
        element: ElementIndex,
    },
    /// Opens a subscription (replacing one of the same owner and element) and matches it with buffered
    /// messages of its tenant, name and key that have not expired by `now`, oldest first: one if `once`, else
    /// all (`a_subscription_takes_buffered_messages_oldest_first`, by message key). Each match becomes a [`Delivery`],
    /// and the message leaves the buffer.
    Subscribe {
        /// The subscription.
        row: SubscriptionRow,
        /// The present time.
        now: Timestamp,
    },
    /// Closes a subscription, if it is there.
    Unsubscribe {
        /// Who waited.
        owner: ElementInstanceKey,
        /// The message event.
        element: ElementIndex,
    },
    /// Publishes a message: matches it with open subscriptions of its tenant, name and correlation key, at most
    /// one of each process id, the one opened first (`a_message_is_taken_once_for_each_process_id`,
    /// `the_oldest_subscription_takes_the_message`), each match becoming a [`Delivery`]. Without any match, and unless
    /// it `has_taker` already (a start event), it is buffered until it expires; one that expires at or before
    /// `now` is dropped and reported as [`Outcome::expired`].
    Publish {
        /// The message.
        row: MessageRow,
        /// A start event takes it.
        has_taker: bool,
        /// The present time.
        now: Timestamp,
    },
    /// Broadcasts a signal: every open subscription of its tenant and name takes it, each as a [`Delivery`] of a
    /// [`tidegate_model::Stimulus::Signal`], oldest first. Nothing is buffered.
    Broadcast {
        /// The tenant.
        tenant: std::sync::Arc<str>,
        /// The signal's name.
        name: String,
        /// The payload: a JSON object.
        variables: String,
        /// The instance that threw it: it is left out.
        except: Option<InstanceKey>,
        /// Who threw it.
        from: Option<Cause>,
        /// The present time.
        now: Timestamp,
    },
    /// Removes buffered messages that have expired; reported as [`Outcome::expired`]
    /// (`a_message_waits_until_it_expires`). Key-value entries that have expired are cleared away by the way.
    ExpireMessages {
        /// The present time.
        now: Timestamp,
        /// How many at most.
        limit: usize,
    },
    /// A job for external workers, replacing one of the same key.
    OpenJob(Box<JobRow>),
    /// The outcome of a job was accepted and waits in the queue: it is not offered again.
    ReportJob(ElementInstanceKey),
    /// The job's instance is held: the job is not offered until then, and if it is leased nobody else gets it
    /// (`a_withheld_job_is_not_offered`). Nothing happens if it is not there, or was reported.
    WithholdJob(ElementInstanceKey),
    /// The job's instance was let go: the job is as it was before [`Write::WithholdJob`].
    OfferJob(ElementInstanceKey),
    /// Removes a job, if it is there.
    CloseJob(ElementInstanceKey),
    /// Leases jobs, the oldest (lowest key) first; reported as [`Outcome::leased`]
    /// (`leases_go_to_the_oldest_free_jobs`).
    LeaseJobs(Box<LeaseRequest>),
    /// A user task, replacing one of the same key.
    OpenUserTask(Box<UserTaskRow>),
    /// Removes a user task, if it is there.
    CloseUserTask(ElementInstanceKey),
    /// An incident.
    OpenIncident(Box<IncidentRow>),
    /// Removes an incident, if it is there.
    CloseIncident(IncidentKey),
    /// Puts a stimulus at the end of the queue; its key is reported in [`Outcome::stimuli`].
    AddStimulus(StimulusRow),
    /// Takes a stimulus out of the queue.
    RemoveStimulus(StimulusKey),
    /// Counts a failed attempt at a stimulus.
    StimulusFailed(StimulusKey),
    /// Puts a stimulus aside, replacing one of the same key. (Taking it out of the queue is [`Write::RemoveStimulus`] in
    /// the same commit.)
    AddDeadLetter(Box<DeadLetterRow>),
    /// Removes a dead letter, if it is there.
    RemoveDeadLetter(StimulusKey),
    /// Lets every buffered message wait longer (`the_life_of_messages_can_be_extended`).
    ExtendMessages {
        /// By how much, in milliseconds.
        by_ms: i64,
    },
    /// A deployed resource.
    AddResource {
        /// Its key.
        key: u64,
        /// Its bytes.
        bytes: std::sync::Arc<[u8]>,
    },
    /// A definition.
    AddDefinition(Box<DefinitionRow>),
    /// Unregisters a definition.
    DeleteDefinition(DefinitionKey),
    /// Sets a key-value entry.
    SetValue {
        /// The key.
        key: String,
        /// The value.
        value: Vec<u8>,
        /// When it goes by itself.
        expires_at: Option<Timestamp>,
    },
    /// Removes a key-value entry, if it is there.
    RemoveValue(String),
    /// An audit entry.
    Audit(Box<AuditRow>),
    /// Removes instances with everything that refers to them, and fences their keys for a time: see
    /// [`crate::ForgottenRow`] (`nothing_of_a_forgotten_instance_is_left`). They leave the counts. Their queued stimuli go
    /// with them and are told in [`Outcome::dropped`]. Of a long journal only a slice goes in one commit
    /// (`a_long_journal_goes_in_slices`). [`Outcome::removed`] counts the rows. Instances that are not there are passed over.
    ForgetInstances(Box<ForgetRequest>),
    /// Removes journal rows of forgotten instances, and what is remembered of them when its time has come: at most `limit`
    /// rows, which are counted in [`Outcome::removed`]. Fewer than `limit`: there is nothing left.
    SweepForgotten {
        /// The present time.
        now: Timestamp,
        /// How many rows at most.
        limit: usize,
    },
    /// Removes the oldest journal rows of an instance, at most `limit`, up to the revision `up_to`, and never those that its
    /// state does not cover (`only_what_a_state_covers_is_trimmed`).
    TrimJournal {
        /// The instance.
        instance: InstanceKey,
        /// The last revision that may go.
        up_to: u64,
        /// How many rows at most.
        limit: usize,
    },
    /// An operation on many instances, replacing one of the same key.
    PutOperation(Box<OperationRow>),
    /// What became of an instance in an operation, replacing what was there of it.
    PutOperationItem(Box<OperationItemRow>),
    /// Removes an operation that is over, its items first, at most `limit` rows: counted in [`Outcome::removed`].
    RemoveOperation {
        /// Its key.
        key: u64,
        /// How many rows at most.
        limit: usize,
    },
}

/// A message or signal matched with a subscription. It stands in the stimulus queue, in the domain `instance/KEY`, as an
/// encoded [`tidegate_model::Stimulus::Deliver`], and a subscription that is `once` is closed to other messages.
#[derive(Debug, Clone, PartialEq)]
pub struct Delivery {
    /// The queued stimulus.
    pub stimulus: StimulusKey,
    /// The message; 0 for a signal.
    pub message: MessageKey,
    /// The instance.
    pub instance: InstanceKey,
    /// Its encoded stimulus, so that nobody has to read it back.
    pub payload: Vec<u8>,
}

/// What a successful commit brought about.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outcome {
    /// The keys of added stimuli, in the order of their writes.
    pub stimuli: Vec<StimulusKey>,
    /// Messages matched by this commit.
    pub deliveries: Vec<Delivery>,
    /// Messages that expired, or found no taker and had no time to wait.
    pub expired: Vec<MessageKey>,
    /// Leased jobs.
    pub leased: Vec<JobRow>,
    /// Those among them that somebody had leased before, whose lease ended without a word.
    pub lapsed: Vec<ElementInstanceKey>,
    /// Queued stimuli that went with a forgotten instance.
    pub dropped: Vec<StimulusKey>,
    /// Rows that were removed by forgetting, sweeping and trimming.
    pub removed: u64,
}

/// Which expectation was not met. Nothing of the commit was written.
#[derive(Debug, Clone, PartialEq)]
pub enum Refusal {
    /// The instance has another revision than the one before the update's.
    Revision {
        /// The instance.
        instance: InstanceKey,
        /// The revision it has; none if there is no such instance.
        found: Option<u64>,
    },
    /// The stimulus is no longer in the queue.
    StimulusGone(StimulusKey),
    /// The dead letter was replayed or removed before.
    DeadLetterGone(StimulusKey),
    /// The job is gone or was leased by somebody else meanwhile.
    LeaseStale(ElementInstanceKey),
    /// There is such an entry: here is its value.
    ValuePresent(Vec<u8>),
    /// The version number is taken.
    VersionTaken,
    /// The instance is unknown or has ended.
    InstanceEnded(InstanceKey),
    /// The timer was disarmed, or is armed for another time.
    TimerGone {
        /// Who waited.
        owner: u64,
        /// The timer event.
        element: ElementIndex,
    },
    /// The instance was forgotten, and its key is still fenced: it is not created again.
    InstanceForgotten(InstanceKey),
    /// The instance cannot be forgotten.
    NotForgettable {
        /// The instance.
        instance: InstanceKey,
        /// Why.
        why: Unforgettable,
    },
}

/// Why a commit did not happen.
#[derive(Debug, Clone, PartialEq)]
pub enum CommitError {
    /// An expectation was not met.
    Refused(Refusal),
    /// The store failed. Nothing was written, unless `may_have_happened`.
    Failed {
        /// What went wrong.
        error: Error,
        /// True if it is not known whether the commit reached the disk: only its sync failed. In this process it did
        /// not happen, and reads do not show it; after a crash it may be there, unless a later commit took its place.
        may_have_happened: bool,
    },
}

/// The outcome of one commit.
pub type CommitResult = Result<Outcome, CommitError>;
