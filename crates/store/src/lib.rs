//! Durable state.
//!
//! One [`Store`] is the state of one shell. The write path is one call, [`Store::submit`]: a batch of
//! commits, each a unit, all durable before their outcomes are told. The read path of the runtime is a
//! handful of look-ups; what people ask (lists, searches, counts) is [`Queries`], a second trait.
//!
//! The contract is the prose on [`Store`] and [`Queries`], with the conformance kit's test named beside each
//! promise; every store passes [`kit`]. Stores know nothing of BPMN: journal entries, instance states and
//! stimuli are bytes to them.

pub mod commit;
pub mod error;
pub mod faulty;
mod forget;
pub mod kit;
mod matching;
pub mod memory;
mod namespace;
pub mod row;
pub mod sqlite;

use std::sync::Arc;

use tidegate_model::{DefinitionKey, InstanceKey, StimulusKey, Timestamp};

pub use commit::{Batch, Commit, CommitError, CommitResult, Delivery, Expect, Outcome, Refusal, Write};
pub use error::{Error, ErrorKind};
pub use forget::{
    EndedRow, ForgetRequest, ForgottenJournal, ForgottenRow, OperationItemRow, OperationRow, Unforgettable,
};
pub use namespace::Namespace;
pub use row::*;

/// What a generation gets when it takes hold of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Activation {
    /// The number that fences earlier generations: every batch carries it.
    pub epoch: u64,
    /// The highest key any generation has committed; new keys must be above it.
    pub key_high: u64,
}

/// The durable state of one shell, as the runtime uses it.
///
/// All calls may be made from any thread. Reads block for the length of a look-up and see every commit whose
/// outcome was told before the read began (`reads_see_told_commits`).
pub trait Store: Queries {
    /// Takes hold of the store for a new generation: raises the epoch, so that batches of earlier
    /// generations are refused as [`ErrorKind::Fenced`] from then on (`activation_fences_earlier_epochs`).
    ///
    /// # Errors
    /// The store is damaged, full, or cannot be reached.
    fn activate(&self) -> Result<Activation, Error>;

    /// Hands over a batch. Returns at once, or after the commit when the store was idle and did it inline;
    /// `batch.done` is called exactly once, from any thread, when the outcome of every commit is known
    /// (`done_is_called_exactly_once`).
    ///
    /// - A commit is a unit: all of it is there, or nothing (`a_refused_commit_leaves_nothing`).
    /// - Its expectations are checked first, against everything committed before it in submission order,
    ///   earlier commits of the same batch included (`a_batch_sees_its_own_earlier_commits`). One that fails
    ///   refuses that commit alone (`a_refused_commit_spares_its_neighbours`).
    /// - Batches are applied in the order of `submit` calls made one after the other
    ///   (`batches_keep_their_order`), and their outcomes told in that order (`outcomes_are_told_in_order`).
    /// - `done` may submit again without nesting, for as long as it likes (`a_done_may_submit_again`), and may close
    ///   the store (`a_done_may_close_the_store`). A panic in it is contained.
    /// - A commit that the store cannot take (a journal row written twice) fails alone
    ///   (`a_failed_commit_spares_its_neighbours`).
    /// - When `done` says a commit succeeded it survives a crash of the process and of the machine
    ///   (`told_commits_survive`, and the crash tests of each durable store).
    ///
    /// Cancel safety: not a future; a submitted batch runs to its outcome even if nobody waits.
    fn submit(&self, batch: Batch);

    /// One instance with its state and the journal rows after it, all of one moment
    /// (`load_gives_the_journal_after_the_state`). `None` if there is none.
    ///
    /// # Errors
    /// The store cannot be read.
    fn load(&self, instance: InstanceKey) -> Result<Option<StoredInstance>, Error>;

    /// Instances whose sub-status is `executing`, `interrupted` or `cancelling`, by key, after `after`
    /// (`recoverable_lists_what_was_cut`).
    ///
    /// # Errors
    /// The store cannot be read.
    fn recoverable(&self, after: Option<InstanceKey>, limit: usize) -> Result<Vec<InstanceRow>, Error>;

    /// Timers due at or before `until`, ordered by (due time, owner, element), after `after` (`timers_come_in_order`,
    /// `equal_due_times_are_paged`).
    ///
    /// # Errors
    /// The store cannot be read.
    fn timers(
        &self,
        until: Timestamp,
        after: Option<&TimerRow>,
        limit: usize,
    ) -> Result<Vec<TimerRow>, Error>;

    /// Queued stimuli in the order of acceptance, after `after` (`stimuli_keep_the_order_of_acceptance`). Their keys
    /// grow and are never given twice (`stimulus_keys_are_never_reused`).
    ///
    /// # Errors
    /// The store cannot be read.
    fn stimuli(&self, after: Option<StimulusKey>, limit: usize) -> Result<Vec<StimulusRow>, Error>;

    /// A deployed definition, deleted ones included (live instances go on with them).
    ///
    /// # Errors
    /// The store cannot be read.
    fn definition(&self, key: DefinitionKey) -> Result<Option<DefinitionRow>, Error>;

    /// The bytes of a deployed resource.
    ///
    /// # Errors
    /// The store cannot be read.
    fn resource(&self, key: u64) -> Result<Option<Arc<[u8]>>, Error>;

    /// One key-value entry. Expired entries are not there (`a_value_expires`).
    ///
    /// # Errors
    /// The store cannot be read.
    fn value(&self, key: &str, now: Timestamp) -> Result<Option<Vec<u8>>, Error>;

    /// The job with this key, if it is open: available, leased or reported.
    ///
    /// # Errors
    /// The store cannot be read.
    fn job(&self, key: tidegate_model::ElementInstanceKey) -> Result<Option<JobRow>, Error>;

    /// Finished instances of one process id in a tenant that ended at or before `until`, those that ended first first, by
    /// (end, key), after `after` (`what_has_ended_is_listed_by_its_end`).
    ///
    /// # Errors
    /// The store cannot be read.
    fn ended(
        &self,
        process: (&str, &str),
        until: Timestamp,
        after: Option<(Timestamp, InstanceKey)>,
        limit: usize,
    ) -> Result<Vec<EndedRow>, Error>;

    /// The newest of the finished instances of one process id in a tenant that is beyond the `keep` newest, by (end, key);
    /// `None` if there are no more than those (`the_end_beyond_a_count_is_found`).
    ///
    /// # Errors
    /// The store cannot be read.
    fn ended_beyond(
        &self,
        process: (&str, &str),
        keep: usize,
    ) -> Result<Option<(Timestamp, InstanceKey)>, Error>;

    /// The next (process id, tenant) after `after` that has finished instances (`processes_with_an_end_are_listed`).
    ///
    /// # Errors
    /// The store cannot be read.
    fn next_ended_process(&self, after: Option<(&str, &str)>) -> Result<Option<(String, String)>, Error>;

    /// What is remembered of a forgotten instance (`a_forgotten_key_stays_fenced_until_its_time`).
    ///
    /// # Errors
    /// The store cannot be read.
    fn forgotten(&self, instance: InstanceKey) -> Result<Option<ForgottenRow>, Error>;

    /// Operations on many that are not over, by key (`operations_keep_an_outcome_for_each_instance`).
    ///
    /// # Errors
    /// The store cannot be read.
    fn open_operations(&self) -> Result<Vec<OperationRow>, Error>;

    /// True if what is written outlives this handle: a new one, opened at the same place, finds it. Where it is false
    /// nothing can be promised for the next generation, and whoever needs that is refused at the start.
    fn is_lasting(&self) -> bool {
        true
    }

    /// Lets go of the store: what was submitted is finished first, then later batches, and reads, fail as
    /// [`ErrorKind::Closed`] (`a_closed_store_refuses_batches`). Idempotent. From within a `done` it returns at once, and
    /// the rest goes on without it.
    fn close(&self);
}

/// What people ask. Lists are ordered by key, newest first unless said otherwise, and paged: `limit` rows
/// before (older than) `page.after` (`paging_is_stable_while_rows_come_and_go`).
pub trait Queries: Send + Sync + 'static {
    /// Instances that match.
    ///
    /// # Errors
    /// The store cannot be read.
    fn instances(&self, filter: &InstanceFilter, page: Page) -> Result<Vec<InstanceRow>, Error>;

    /// One instance's row, without its state.
    ///
    /// # Errors
    /// The store cannot be read.
    fn instance(&self, key: InstanceKey) -> Result<Option<InstanceRow>, Error>;

    /// How many instances have each sub-status, indexed by its code (`counts_follow_every_change`).
    ///
    /// # Errors
    /// The store cannot be read.
    fn counts(&self) -> Result<[u64; 9], Error>;

    /// Journal rows of an instance in order, after revision `after`.
    ///
    /// # Errors
    /// The store cannot be read.
    fn journal(&self, instance: InstanceKey, after: u64, limit: usize) -> Result<Vec<JournalRow>, Error>;

    /// Definitions: those not deleted, newest first.
    ///
    /// # Errors
    /// The store cannot be read.
    fn definitions(&self, filter: &DefinitionFilter, page: Page) -> Result<Vec<DefinitionRow>, Error>;

    /// The highest version number ever given to this process id, deleted ones included; 0 for none
    /// (`versions_are_never_reused`).
    ///
    /// # Errors
    /// The store cannot be read.
    fn highest_version(&self, process_id: &str, tenant: &str) -> Result<u32, Error>;

    /// Open incidents.
    ///
    /// # Errors
    /// The store cannot be read.
    fn incidents(&self, filter: &IncidentFilter, page: Page) -> Result<Vec<IncidentRow>, Error>;

    /// One open incident.
    ///
    /// # Errors
    /// The store cannot be read.
    fn incident(&self, key: tidegate_model::IncidentKey) -> Result<Option<IncidentRow>, Error>;

    /// Open user tasks.
    ///
    /// # Errors
    /// The store cannot be read.
    fn user_tasks(&self, filter: &UserTaskFilter, page: Page) -> Result<Vec<UserTaskRow>, Error>;

    /// One open user task.
    ///
    /// # Errors
    /// The store cannot be read.
    fn user_task(&self, key: tidegate_model::ElementInstanceKey) -> Result<Option<UserTaskRow>, Error>;

    /// Audit entries, newest first; `page.after` is the row's key.
    ///
    /// # Errors
    /// The store cannot be read.
    fn audit(&self, page: Page) -> Result<Vec<AuditRow>, Error>;

    /// Stimuli that were put aside (`dead_letters_are_listed_newest_first`).
    ///
    /// # Errors
    /// The store cannot be read.
    fn dead_letters(&self, page: Page) -> Result<Vec<DeadLetterRow>, Error>;

    /// One dead letter.
    ///
    /// # Errors
    /// The store cannot be read.
    fn dead_letter(&self, key: StimulusKey) -> Result<Option<DeadLetterRow>, Error>;

    /// Operations on many, newest first.
    ///
    /// # Errors
    /// The store cannot be read.
    fn operations(&self, page: Page) -> Result<Vec<OperationRow>, Error>;

    /// One operation on many.
    ///
    /// # Errors
    /// The store cannot be read.
    fn operation(&self, key: u64) -> Result<Option<OperationRow>, Error>;

    /// What became of each instance in an operation, by instance, after `after`; those of one outcome if it is given.
    ///
    /// # Errors
    /// The store cannot be read.
    fn operation_items(
        &self,
        operation: u64,
        outcome: Option<&str>,
        after: Option<InstanceKey>,
        limit: usize,
    ) -> Result<Vec<OperationItemRow>, Error>;

    /// How many stimuli wait, and since when the oldest does.
    ///
    /// # Errors
    /// The store cannot be read.
    fn queue(&self) -> Result<QueueDepth, Error>;
}

/// Opens the store of a place that has no name: see [`open_in`].
///
/// # Errors
/// As [`open_in`].
pub fn open(url: &str) -> Result<Arc<dyn Store>, Error> {
    open_in(url, &Namespace::default())
}

/// Opens a store by URL, `memory:` or `sqlite:PATH` (the data directory's file), and by its namespace there. One arm for
/// each store.
///
/// # Errors
/// Unknown scheme, or the store's own: held by another process, open already, damaged, of a newer version, full.
pub fn open_in(url: &str, namespace: &Namespace) -> Result<Arc<dyn Store>, Error> {
    match url.split_once(':') {
        Some(("memory", _)) if !namespace.is_default() => Err(Error::new(
            ErrorKind::Configuration,
            format!("`{url}` is nobody else's and has no namespace `{namespace}`: leave the namespace out"),
        )),
        Some(("memory", _)) => Ok(Arc::new(memory::MemoryStore::fleeting())),
        Some(("sqlite", path)) => {
            let options = sqlite::Options {
                namespace: namespace.clone(),
                ..sqlite::Options::default()
            };
            let store = sqlite::SqliteStore::open_with(std::path::Path::new(path), &options)?;
            Ok(Arc::new(store))
        }
        _ => Err(Error::new(
            ErrorKind::Configuration,
            format!("`{url}` names no store: use `memory:` or `sqlite:PATH`"),
        )),
    }
}

/// One spelling for each place that a URL may name, so that two spellings of one place can be told.
pub fn place(url: &str) -> String {
    match url.split_once(':') {
        Some(("sqlite", path)) => format!("sqlite:{}", sqlite::resolve(std::path::Path::new(path)).display()),
        _ => url.to_owned(),
    }
}
