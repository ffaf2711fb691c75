//! What every part of one runtime shares.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use parking_lot::Mutex;
use tidegate_model::{KeyGenerator, Timestamp};
use tidegate_store::{AuditRow, Batch, Commit, CommitError, Error as StoreError, Outcome, QueueDepth, Store};
use tokio::sync::{Notify, oneshot, watch};

use crate::activity::Activities;
use crate::audit::Outbox;
use crate::clock::Clock;
use crate::definitions::Definitions;
use crate::figures::Recovering;
use crate::gate::{Gate, Registry};
use crate::ingress::Switches;
use crate::ingress::timer::Timers;
use crate::life::Life;
use crate::observe::Observers;
use crate::options::Options;
use crate::owner::Running;
use crate::pace::Pace;
use crate::request;
use crate::status::CycleReport;
use crate::tasks::Stragglers;

/// The shard whose keys are for what belongs to no instance: definitions, deployments, resources.
const HOUSE_SHARD: u16 = tidegate_model::id::SHARDS - 1;

pub(crate) struct Shared {
    pub(crate) shell: Arc<str>,
    pub(crate) generation: Arc<str>,
    pub(crate) epoch: u64,
    /// The highest key that was in use when this generation began.
    pub(crate) key_floor: u64,
    pub(crate) options: Options,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) gate: Gate,
    pub(crate) switches: Switches,
    pub(crate) activities: Activities,
    pub(crate) definitions: Definitions,
    pub(crate) timers: Timers,
    pub(crate) counters: Counters,
    /// How fast the store takes commits.
    pub(crate) pace: Pace,
    /// The depth of the stimulus queue.
    pub(crate) queue_depth: AtomicU64,
    pub(crate) store_health: Mutex<Option<StoreError>>,
    /// What is live, by name.
    pub(crate) registry: Registry<Running>,
    /// Cycles that came to rest while the gate drained, at most as many as a report lists.
    pub(crate) rested: Mutex<Vec<CycleReport>>,
    /// Audit entries that the store has not taken yet.
    pub(crate) outbox: Arc<Outbox>,
    /// By how much buffered messages have yet to be extended, in milliseconds: the store could not do it.
    pub(crate) owed_ms: AtomicI64,
    /// What the store said last of instances and queue, for when it says nothing.
    pub(crate) last_seen: Mutex<([u64; 9], QueueDepth)>,
    /// Operations on many that are not over.
    pub(crate) batches: crate::batch::Batches,
    /// Wakes retention: something was forgotten by hand.
    pub(crate) swept: Notify,
    pub(crate) tokio: tokio::runtime::Handle,
    /// Instances that are held: a cache, so that who sends something to one can be told so. What is stored decides.
    pub(crate) held: Mutex<std::collections::HashSet<tidegate_model::InstanceKey>>,
    /// Who asked for jobs last, by job type.
    pub(crate) polls: crate::jobs::Polls,
    /// Activities that were let go of and still run.
    pub(crate) stragglers: Stragglers,
    /// Whether the engine has begun, and whether it has ended.
    pub(crate) life: Arc<Life>,
    pub(crate) observers: Arc<Observers>,
    job_opened: Mutex<HashMap<Arc<str>, Arc<Notify>>>,
    house_keys: Mutex<KeyGenerator>,
    changed: watch::Sender<u64>,
    /// Told with `changed`. It wakes those who wait in their order; a watch does in any.
    pub(crate) ticked: Notify,
    /// How far recovery is.
    pub(crate) recovering: Recovering,
    /// True once recovery has ended.
    pub(crate) recovered: watch::Sender<bool>,
}

/// Things that happen and must not be silent.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) messages_expired: AtomicU64,
    pub(crate) late_outcomes_refused: AtomicU64,
    pub(crate) stimuli_refused: AtomicU64,
    pub(crate) timers_late: AtomicU64,
    /// Stimuli that were put aside.
    pub(crate) dead_letters: AtomicU64,
    /// Offers of sources that had said they were paused.
    pub(crate) offers_refused: AtomicU64,
    /// Audit entries that could only be logged.
    pub(crate) audit_lost: AtomicU64,
    pub(crate) crash_recovered: AtomicU64,
    pub(crate) interrupted_recovered: AtomicU64,
    pub(crate) commits_failed: AtomicU64,
    /// Starts that were refused, or cancelled, since their process had as many instances as it may.
    pub(crate) starts_skipped: AtomicU64,
    /// Instances that were forgotten.
    pub(crate) instances_forgotten: AtomicU64,
    /// Stimuli that were made durable and not executed at once.
    pub(crate) accepted_for_later: AtomicU64,
    /// Activities that were put aside as incidents.
    pub(crate) quarantined: AtomicU64,
    /// Interruptions in the spill file, and those taken up from it.
    pub(crate) spilled: AtomicU64,
    pub(crate) spilled_taken_up: AtomicU64,
}

impl Counters {
    pub(crate) fn add(counter: &AtomicU64, by: u64) {
        counter.fetch_add(by, Ordering::Relaxed);
    }
}

pub(crate) struct SharedParts {
    pub(crate) shell: Arc<str>,
    pub(crate) generation: Arc<str>,
    pub(crate) epoch: u64,
    pub(crate) key_floor: u64,
    pub(crate) options: Options,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) activities: Activities,
    pub(crate) definitions: Definitions,
    pub(crate) tokio: tokio::runtime::Handle,
    pub(crate) life: Arc<Life>,
}

impl Shared {
    pub(crate) fn new(parts: SharedParts) -> Self {
        let SharedParts {
            shell,
            generation,
            epoch,
            key_floor,
            options,
            clock,
            store,
            activities,
            definitions,
            tokio,
            life,
        } = parts;
        let registry = Registry::new(options.owners);
        Self {
            shell,
            generation,
            epoch,
            key_floor,
            options,
            clock,
            store,
            gate: Gate::new(),
            switches: Switches::default(),
            activities,
            definitions,
            timers: Timers::default(),
            counters: Counters::default(),
            pace: Pace::default(),
            queue_depth: AtomicU64::new(0),
            store_health: Mutex::new(None),
            registry,
            rested: Mutex::default(),
            outbox: Arc::default(),
            owed_ms: AtomicI64::new(0),
            last_seen: Mutex::default(),
            batches: crate::batch::Batches::default(),
            swept: Notify::new(),
            tokio,
            held: Mutex::default(),
            polls: crate::jobs::Polls::default(),
            stragglers: Stragglers::default(),
            life,
            observers: Arc::default(),
            job_opened: Mutex::default(),
            house_keys: Mutex::new(KeyGenerator::new(HOUSE_SHARD, key_floor)),
            changed: watch::Sender::new(0),
            ticked: Notify::new(),
            recovering: Recovering::default(),
            recovered: watch::Sender::new(false),
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// A key for something that belongs to no instance.
    pub(crate) fn house_key(&self) -> u64 {
        let mut keys = self.house_keys.lock();
        keys.observe(self.clock.now());
        keys.next_key()
    }

    /// Makes one commit. The commit itself is never cancelled; only the wait is.
    pub(crate) async fn commit(&self, commit: Commit) -> Result<Outcome, CommitError> {
        let (sender, receiver) = oneshot::channel();
        let key_high = self.house_keys.lock().high();
        self.store.submit(Batch {
            epoch: self.epoch,
            key_high,
            commits: vec![commit],
            done: Box::new(move |results| {
                // Nobody may be waiting any more.
                let _ = sender.send(results.into_iter().next());
            }),
        });
        let result = match receiver.await {
            Ok(Some(result)) => result,
            Ok(None) | Err(_) => Err(CommitError::Failed {
                error: StoreError::new(tidegate_store::ErrorKind::Closed, "the store was closed"),
                may_have_happened: true,
            }),
        };
        self.note_health(result.as_ref().err());
        result
    }

    /// Remembers whether the store works, for readiness.
    pub(crate) fn note_health(&self, error: Option<&CommitError>) {
        match error {
            None => {
                let mut health = self.store_health.lock();
                if health.take().is_some() {
                    tracing::info!("the store takes commits again");
                }
            }
            Some(CommitError::Failed { error, .. }) => {
                Counters::add(&self.counters.commits_failed, 1);
                let mut health = self.store_health.lock();
                if health.as_ref() != Some(error) {
                    tracing::error!(code = error.kind().code(), "a commit failed: {error}");
                    *health = Some(error.clone());
                }
            }
            Some(CommitError::Refused(_)) => {}
        }
    }

    /// An audit entry for one effective change.
    pub(crate) fn audit(&self, action: &str, actor: &str, reason: Option<String>) -> AuditRow {
        AuditRow {
            key: 0,
            time: self.now(),
            action: action.to_owned(),
            actor: actor.to_owned(),
            reason,
            shell: self.shell.to_string(),
            subject: None,
            before: None,
            after: None,
            outcome: "success".to_owned(),
            scope: "runtime".to_owned(),
            request_id: request::current(),
        }
    }

    /// Remembers a cycle that came to rest in a drain, for its report.
    pub(crate) fn rested(&self, line: CycleReport) {
        let mut rested = self.rested.lock();
        if rested.len() < self.options.reported_ids {
            rested.push(line);
        }
    }

    /// Wakes who waits for jobs of this type.
    pub(crate) fn job_opened(&self, job_type: &str) {
        if let Some(notify) = self.job_opened.lock().get(job_type) {
            notify.notify_waiters();
        }
    }

    /// Tells when a job of this type is opened. The types that were ever waited for are remembered: bounded.
    pub(crate) fn job_watch(&self, job_type: &str) -> Arc<Notify> {
        const REMEMBERED_TYPES: usize = 10_000;
        let mut watched = self.job_opened.lock();
        if watched.len() >= REMEMBERED_TYPES {
            watched.retain(|_, notify| Arc::strong_count(notify) > 1);
        }
        watched.entry(Arc::from(job_type)).or_default().clone()
    }

    /// Says that the status has changed.
    pub(crate) fn tick(&self) {
        self.changed.send_modify(|count| *count = count.wrapping_add(1));
        self.ticked.notify_waiters();
    }

    pub(crate) fn watch(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }
}
