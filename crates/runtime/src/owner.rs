//! Owners: the threads that execute instances.
//!
//! An instance has one owner, by the shard of its key. An owner works in rounds: it takes everything in its
//! inbox, decides, runs what is quick, hands all commits of the round to the store as one batch, and lets effects
//! leave when their commit is told. It never waits for a commit.

mod bury;
mod cancel;
mod commit;
mod control;
mod cut;
mod cycle;
mod emitted;
mod hold;
mod inbox;
mod key_hasher;
mod look;
mod message;
mod on_behalf;
mod pending;
mod repair;
mod resident;
mod retry;
mod signal;
mod slot;
mod start;
mod stimulus;
mod timer;
mod trim;
mod work;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tidegate_model::{
    Command, ElementIndex, ElementInstanceKey, InstanceKey, KeyGenerator, MessageKey, Timestamp, id,
};
use tidegate_store::{AuditRow, CommitResult, InstanceRow, StimulusRow, TimerRow};
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::activity::ActivityResult;
use crate::api::{Acceptance, Published, Started};
use crate::error::Error;
use crate::shared::Shared;
use crate::stepped::{self, Step, Steps};
use crate::tasks::Tasks;

pub(crate) use cancel::CancelOrder;
pub(crate) use commit::problem_of;
use cut::Cut;
pub(crate) use cut::{CutReport, CutRequest};
pub(crate) use cycle::Running;
pub(crate) use hold::{HoldOrder, ReleaseOrder};
pub(crate) use inbox::Inbox;
use key_hasher::KeyHasher;
pub(crate) use look::Look;
pub(crate) use message::PublishOrder;
use pending::{Domain, Pending};
use resident::Resident;
pub(crate) use signal::BroadcastOrder;
pub(crate) use start::{StartOrder, start_command};
pub(crate) use stimulus::MoveOrder;

/// Where an answer goes. Dropped receivers are fine: the work stands.
pub(crate) type Reply<T> = oneshot::Sender<Result<T, Error>>;

/// What an owner can be told.
pub(crate) enum Message {
    /// Start an instance.
    Start(Box<StartOrder>, Reply<Started>),
    /// Broadcast a signal.
    Broadcast(Box<BroadcastOrder>, Reply<Published>),
    /// Publish a message.
    Publish(Box<PublishOrder>, Reply<Published>),
    /// Move an instance by a fresh stimulus.
    Move(Box<MoveOrder>, Reply<Acceptance>),
    /// Stimuli that stand in the queue.
    Queued(Vec<StimulusRow>),
    /// Timers that fell due.
    TimersDue(Vec<TimerRow>),
    /// Bring an instance back that was cut, or that a crash left executing. Answers false if the gate is closed.
    Recover(Box<InstanceRow>, oneshot::Sender<bool>),
    /// A control command: needs no permit. An audit entry goes into its commit, if it changes
    /// anything.
    Control(
        InstanceKey,
        Box<Command>,
        Option<Box<AuditRow>>,
        Reply<InstanceRow>,
    ),
    /// Suspend an instance.
    Hold(Box<HoldOrder>, Reply<InstanceRow>),
    /// Let an instance go.
    Release(Box<ReleaseOrder>, Reply<InstanceRow>),
    /// Cancel an instance.
    Cancel(Box<CancelOrder>, Reply<InstanceRow>),
    /// Tell what only its owner knows of an instance.
    Look(InstanceKey, oneshot::Sender<Look>),
    /// Tell when the instance has ended.
    AwaitEnd(InstanceKey, Reply<Started>),
    /// An in-process activity is done.
    ActivityDone {
        /// Its instance.
        instance: InstanceKey,
        /// Its job.
        job: ElementInstanceKey,
        /// Which run of it: a late result of an earlier run is refused.
        run: u64,
        /// What came out.
        result: ActivityResult,
    },
    /// An activity's task is gone without an end: the async runtime was shut down under it.
    ActivityGone(InstanceKey, ElementInstanceKey, u64),
    /// The outcome of a batch.
    Committed(u64, Vec<CommitResult>),
    /// The gate was opened, or something else changed that lets pending work go on.
    Opened,
    /// Answer once everything before this was handled.
    Barrier(oneshot::Sender<()>),
    /// Cut live cycles: no new handler starts, stop tokens fire. Tells when no handler runs any more.
    Cut(CutRequest, oneshot::Sender<()>),
    /// Mark what is still live as interrupted and tell what became of every cut cycle, at the latest at this time.
    FinishCut(Instant, oneshot::Sender<Vec<CutReport>>),
    /// Mark an instance whose interruption an earlier generation could only spill.
    MarkSpilled(
        InstanceKey,
        Box<tidegate_model::Interruption>,
        oneshot::Sender<bool>,
    ),
    /// A place among the live instances of its process is free for this instance.
    TurnCame(InstanceKey),
    /// These instances are gone from the store, and these stimuli of theirs.
    Forgotten(Vec<InstanceKey>),
    /// Finish the round and end.
    Stop,
}

/// The owners of a runtime.
#[derive(Clone)]
pub(crate) struct Owners {
    inboxes: Arc<[Arc<Inbox>]>,
    turn: Arc<std::sync::atomic::AtomicUsize>,
}

impl Owners {
    pub(crate) fn new(count: usize) -> Self {
        Self {
            inboxes: (0..count).map(|_| Arc::new(Inbox::default())).collect(),
            turn: Arc::default(),
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.inboxes.len()
    }

    pub(crate) fn inbox(&self, owner: usize) -> &Arc<Inbox> {
        &self.inboxes[owner]
    }

    /// The owner of a key: of an instance, or of a definition's start timer.
    pub(crate) fn of_key(&self, key: u64) -> usize {
        usize::from(id::shard_of(key)) % self.inboxes.len()
    }

    /// The owner of the next thing that may be anywhere: in turn.
    pub(crate) fn next(&self) -> usize {
        self.turn.fetch_add(1, std::sync::atomic::Ordering::Relaxed) % self.inboxes.len()
    }

    /// The owner of an order domain that is no instance.
    pub(crate) fn of_text(&self, text: &str) -> usize {
        use std::hash::{BuildHasher, Hasher};
        let mut hasher = std::hash::BuildHasherDefault::<std::hash::DefaultHasher>::default().build_hasher();
        hasher.write(text.as_bytes());
        (hasher.finish() % self.inboxes.len() as u64) as usize
    }

    /// The owner of an order domain as the queue writes it.
    pub(crate) fn of_domain(&self, domain: &str) -> usize {
        match pending::Domain::parse(domain) {
            pending::Domain::Instance(key) => self.of_key(key.get()),
            pending::Domain::Message(text) => self.of_text(&text),
        }
    }

    /// The owner of a message's order domain.
    pub(crate) fn of_message(&self, tenant: &str, name: &str, correlation_key: &str) -> usize {
        self.of_text(&pending::Domain::message(tenant, name, correlation_key).text())
    }

    /// The owner of a signal's order domain.
    pub(crate) fn of_signal(&self, tenant: &str, name: &str) -> usize {
        self.of_text(&pending::Domain::signal(tenant, name).text())
    }

    pub(crate) fn send_to(&self, owner: usize, message: Message) {
        self.inboxes[owner].push(message);
    }

    pub(crate) fn send(&self, instance: InstanceKey, message: Message) {
        self.send_to(self.of_key(instance.get()), message);
    }

    /// Tells every owner.
    pub(crate) fn tell_all(&self, message: impl Fn() -> Message) {
        for inbox in self.inboxes.iter() {
            inbox.push(message());
        }
    }

    /// Items by the owner of their key, in their order.
    pub(crate) fn split<T>(&self, items: Vec<T>, key: impl Fn(&T) -> u64) -> BTreeMap<usize, Vec<T>> {
        let mut by_owner: BTreeMap<usize, Vec<T>> = BTreeMap::new();
        for item in items {
            by_owner.entry(self.of_key(key(&item))).or_default().push(item);
        }
        by_owner
    }

    /// Ends when every owner has handled what was sent to it before.
    pub(crate) async fn barrier(&self) {
        let mut passed = Vec::with_capacity(self.inboxes.len());
        for inbox in self.inboxes.iter() {
            let (sender, receiver) = oneshot::channel();
            inbox.push(Message::Barrier(sender));
            passed.push(receiver);
        }
        for receiver in passed {
            // An owner that has ended has nothing in flight.
            let _ = receiver.await;
        }
    }
}

/// Instances in memory. The keys are ours, so the hasher needs no secret; without one the order is the same in every run.
type Residents = HashMap<InstanceKey, Resident, std::hash::BuildHasherDefault<KeyHasher>>;

/// One owner: the state of its thread.
pub(crate) struct Owner {
    index: usize,
    shared: Arc<Shared>,
    owners: Owners,
    inbox: Arc<Inbox>,
    keys: Keys,
    residents: Residents,
    /// Residents with something to commit.
    dirty: Vec<InstanceKey>,
    /// In-process jobs that may start now.
    ready: VecDeque<work::Ready>,
    pending: Pending,
    /// Queued stimuli that need no permit.
    controls: VecDeque<StimulusRow>,
    /// When handlers of cancelled instances are no longer waited for.
    abandon_at: BTreeMap<Instant, Vec<InstanceKey>>,
    /// Commits of the round that belong to no resident.
    loose: Vec<commit::Prepared>,
    /// Batches whose outcome is not known yet.
    in_flight: HashMap<u64, (Instant, Vec<commit::Then>)>,
    next_ticket: u64,
    next_incarnation: u64,
    next_run: u64,
    /// Who waits for the end of an instance.
    awaiting_end: HashMap<InstanceKey, Vec<Reply<Started>>>,
    /// Starts in flight, by their idempotency key.
    starting: HashMap<String, InstanceKey>,
    /// Messages in flight, by their deduplication key.
    publishing: HashMap<String, MessageKey>,
    /// Instances whose commit failed: they are reloaded and go on when the store works again.
    stalled: BTreeMap<Instant, Vec<InstanceKey>>,
    /// Until when pending work rests after a failed commit.
    pending_rests_until: Option<Instant>,
    /// Instances that stand still behind a closed gate.
    held_recoveries: Vec<InstanceKey>,
    /// Instances that a crash left executing and of which no commit since is told.
    recovering: BTreeSet<InstanceKey>,
    /// Instances of which a commit of this generation failed and no other is told.
    dropped: BTreeSet<InstanceKey>,
    /// The last turn of each timer start event that began an instance.
    turns: HashMap<(u64, ElementIndex), Timestamp>,
    /// Instances with commits that failed in a drain and are tried again, and when.
    retrying: Vec<InstanceKey>,
    retry_at: Option<Instant>,
    /// Activities that nobody waits for any more and that may not have ended: they were told to stop.
    let_go: Vec<work::LetGo>,
    /// What became of cut cycles, for the report.
    fates: Vec<CutReport>,
    /// Cut cycles that are being marked.
    marking: HashMap<InstanceKey, crate::status::CycleReport>,
    /// Residents at rest, by when they were last used: the first to be put out of memory.
    idle: BTreeMap<u64, InstanceKey>,
    uses: u64,
    cache_bytes: usize,
    cut: Option<Cut>,
    barriers: Vec<oneshot::Sender<()>>,
    is_stopping: bool,
}

/// No cycle holds uncommitted events longer than this.
const LONGEST_UNCOMMITTED: Duration = Duration::from_millis(50);
/// How soon an owner looks again for room when there are as many live cycles as may be: they may all be of others.
const ROOM: Duration = Duration::from_millis(10);
/// How long a failed instance waits before it is tried again.
const STALL: Duration = Duration::from_secs(1);

impl Owner {
    pub(crate) fn new(index: usize, shared: Arc<Shared>, owners: Owners) -> Self {
        let inbox = owners.inbox(index).clone();
        let keys = Keys::new(index, owners.count(), shared.key_floor);
        Self {
            index,
            shared,
            owners,
            inbox,
            keys,
            residents: Residents::default(),
            dirty: Vec::new(),
            ready: VecDeque::new(),
            pending: Pending::default(),
            controls: VecDeque::new(),
            abandon_at: BTreeMap::new(),
            loose: Vec::new(),
            in_flight: HashMap::new(),
            next_ticket: 0,
            next_incarnation: 0,
            next_run: 0,
            awaiting_end: HashMap::new(),
            starting: HashMap::new(),
            publishing: HashMap::new(),
            stalled: BTreeMap::new(),
            pending_rests_until: None,
            held_recoveries: Vec::new(),
            recovering: BTreeSet::new(),
            dropped: BTreeSet::new(),
            turns: HashMap::new(),
            retrying: Vec::new(),
            retry_at: None,
            let_go: Vec::new(),
            fates: Vec::new(),
            marking: HashMap::new(),
            idle: BTreeMap::new(),
            uses: 0,
            cache_bytes: 0,
            cut: None,
            barriers: Vec::new(),
            is_stopping: false,
        }
    }

    /// Begins to work: on a thread of its own, or as a task where everything is stepped.
    ///
    /// # Errors
    /// No thread could be started.
    pub(crate) fn launch(self, tasks: &Tasks) -> std::io::Result<()> {
        match stepped::steps() {
            None => tasks.thread(format!("tidegate-owner-{}", self.index), move || self.run()),
            Some(steps) => {
                let tokio = self.shared.tokio.clone();
                tasks.spawn(&tokio, "owner", self.run_stepped(steps));
                Ok(())
            }
        }
    }

    /// Works until told to stop.
    fn run(mut self) {
        let mut messages = VecDeque::new();
        // Handlers may use the async runtime's timers and sockets when the owner polls them.
        let tokio = self.shared.tokio.clone();
        raise_priority();
        let _guard = tokio.enter();
        while !self.is_over() {
            self.inbox.take(&mut messages, self.wake_at());
            self.round(&mut messages);
        }
        self.end();
    }

    /// As [`Owner::run`], one step at a time.
    async fn run_stepped(mut self, steps: Arc<dyn Steps>) {
        let mut messages = VecDeque::new();
        while !self.is_over() {
            self.inbox.wait(self.wake_at()).await;
            steps.before(Step::Round(self.index)).await;
            self.inbox.take(&mut messages, Some(Instant::now()));
            self.round(&mut messages);
        }
        self.end();
    }

    fn end(&mut self) {
        self.inbox.close();
        self.abandon_all();
    }

    fn is_over(&self) -> bool {
        self.is_stopping && self.in_flight.is_empty()
    }

    /// One round: everything that has arrived, and what follows from it.
    fn round(&mut self, messages: &mut VecDeque<Message>) {
        for message in messages.drain(..) {
            self.handle(message);
        }
        self.pending.unpark(Instant::now(), false);
        self.retry_stalled();
        self.retry_commits();
        self.abandon_overdue();
        self.run_controls();
        self.run_pending();
        self.run_ready();
        self.flush();
        for barrier in self.barriers.drain(..) {
            // Whoever asked may have gone.
            let _ = barrier.send(());
        }
        self.settle_cut();
        self.evict();
    }

    fn handle(&mut self, message: Message) {
        match message {
            Message::Start(order, reply) => self.start(*order, reply),
            Message::Publish(order, reply) => self.publish(*order, reply),
            Message::Broadcast(order, reply) => self.broadcast(*order, reply),
            Message::Move(order, reply) => self.move_instance(*order, reply),
            Message::Queued(rows) => self.queued(rows),
            Message::TimersDue(rows) => self.pending.add_timers(rows),
            Message::Recover(row, done) => self.recover(*row, done),
            Message::Control(instance, command, audit, reply) => {
                self.control(instance, *command, audit, reply);
            }
            Message::Hold(order, reply) => self.hold(*order, reply),
            Message::Release(order, reply) => self.release(*order, reply),
            Message::Cancel(order, reply) => self.cancel(*order, reply),
            Message::Look(instance, reply) => self.look(instance, reply),
            Message::AwaitEnd(instance, reply) => self.await_end(instance, reply),
            Message::ActivityDone {
                instance,
                job,
                run,
                result,
            } => self.activity_done(instance, job, run, result),
            Message::ActivityGone(instance, job, run) => self.activity_gone(instance, job, run),
            Message::Committed(ticket, results) => self.committed(ticket, results),
            Message::Opened => self.opened(),
            Message::Barrier(done) => self.barriers.push(done),
            Message::Cut(request, settled) => self.begin_cut(request, settled),
            Message::FinishCut(give_up_at, reply) => self.finish_cut(give_up_at, reply),
            Message::MarkSpilled(instance, record, done) => self.mark_spilled(instance, *record, done),
            Message::TurnCame(key) => self.pending.unpark_domain(&Domain::Instance(key)),
            Message::Forgotten(keys) => self.forgotten(&keys),
            Message::Stop => self.is_stopping = true,
        }
    }

    /// When the next round is due even if nothing arrives.
    fn wake_at(&self) -> Option<Instant> {
        if !self.ready.is_empty() || !self.loose.is_empty() || self.has_runnable_pending() {
            return Some(Instant::now());
        }
        if !self.controls.is_empty() && self.pending_rests_until.is_none() {
            return Some(Instant::now());
        }
        let oldest = self
            .dirty
            .iter()
            .filter_map(|key| self.residents.get(key)?.uncommitted_since)
            .min();
        let commit_by = oldest.map(|since| since + LONGEST_UNCOMMITTED);
        let retry_at = self.stalled.keys().next().copied().or(self.pending_rests_until);
        let give_up_at = self.cut.as_ref().and_then(Cut::give_up_at);
        let room_at = self.waits_for_room().then(|| Instant::now() + ROOM);
        [
            commit_by,
            retry_at,
            self.retry_at,
            self.abandon_at.keys().next().copied(),
            self.pending.back_at(),
            give_up_at,
            room_at,
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// A gate was opened: what was put by behind it comes back, before anything newer.
    fn opened(&mut self) {
        self.pending.unpark(Instant::now(), true);
        for key in std::mem::take(&mut self.held_recoveries) {
            self.go_on(key);
        }
    }

    fn now(&self) -> Timestamp {
        self.shared.now()
    }
}

/// An owner that commits inline waits for the disk: with all cores busy it would be woken a scheduler tick late.
#[cfg(target_os = "linux")]
fn raise_priority() {
    /// Below the store's writer, above everything else.
    const NICENESS: i32 = -5;
    // One thread, named by its id. Not permitted to most users: then it stays.
    let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), NICENESS);
}

#[cfg(not(target_os = "linux"))]
fn raise_priority() {}

/// The key generators of the shards that an owner has.
struct Keys {
    owners: usize,
    generators: Vec<KeyGenerator>,
    next: usize,
    /// The last fresh one.
    last: u64,
    high: u64,
}

impl Keys {
    fn new(owner: usize, owners: usize, floor: u64) -> Self {
        // The last shard is for what belongs to no instance.
        let shards = (0..id::SHARDS - 1).filter(|shard| usize::from(*shard) % owners == owner);
        Self {
            owners,
            generators: shards.map(|shard| KeyGenerator::new(shard, floor)).collect(),
            next: 0,
            last: floor,
            high: floor,
        }
    }

    /// The generator of the shard of `key`.
    fn of(&mut self, key: u64, now: Timestamp) -> &mut KeyGenerator {
        // Generator i has shard owner + i * owners.
        let position = usize::from(id::shard_of(key)) / self.owners;
        let position = position.min(self.generators.len() - 1);
        let generator = &mut self.generators[position];
        generator.observe(now);
        generator
    }

    /// A key for something new, in one of the owner's shards. Whatever the clock does, they grow: what is buffered is
    /// taken in their order.
    fn fresh(&mut self, now: Timestamp) -> u64 {
        self.next = (self.next + 1) % self.generators.len();
        let generator = &mut self.generators[self.next];
        generator.observe(now);
        generator.exceed(self.last);
        let key = generator.next_key();
        self.last = key;
        self.high = self.high.max(key);
        key
    }

    fn note(&mut self, high: u64) {
        self.high = self.high.max(high);
    }
}
