//! What outlives a crash: the disk, the callers outside, the time, and the list of what was observed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tidegate::clock::Clock;
use tidegate::model::{ElementInstanceKey, Timestamp};
use tidegate::store::memory::MemoryStore;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::fact::{Acknowledged, Fact, Noted};
use crate::random::Random;
use crate::sabotage::Sabotage;
use crate::temper::{End, Moment, Temper};

/// When the simulated time begins.
const BEGINNING: Timestamp = Timestamp::from_ms(1_800_000_000_000);

/// One simulated world.
pub struct World {
    /// What kind of run this is.
    pub temper: Temper,
    /// What is broken on purpose.
    pub sabotage: Option<Sabotage>,
    /// The disk.
    pub disk: MemoryStore,
    /// Where spilled interruptions go.
    pub spill: tempfile::TempDir,
    seed: u64,
    state: Mutex<State>,
    streams: Mutex<BTreeMap<&'static str, Random>>,
    crash: Notify,
}

struct State {
    facts: Vec<Noted>,
    trace: Vec<String>,
    life: usize,
    /// When the present life began: in simulated milliseconds, and on the clock of its async runtime.
    began_ms: u64,
    began: Option<Instant>,
    wall_offset_ms: i64,
    steps: u64,
    commits: u64,
    effects: u64,
    handlers: BTreeMap<u64, Handler>,
    next_run: u64,
    has_crashed: bool,
    is_calm: bool,
}

struct Handler {
    job: ElementInstanceKey,
    stop: tidegate::activity::StopToken,
}

impl World {
    /// The world of a seed.
    pub fn new(seed: u64, temper: Temper, sabotage: Option<Sabotage>) -> Arc<Self> {
        Arc::new(Self {
            temper,
            sabotage,
            disk: MemoryStore::new(),
            spill: tempfile::tempdir().expect("a folder for spilled interruptions"),
            seed,
            state: Mutex::new(State {
                facts: Vec::new(),
                trace: Vec::new(),
                life: 0,
                began_ms: 0,
                began: None,
                wall_offset_ms: 0,
                steps: 0,
                commits: 0,
                effects: 0,
                handlers: BTreeMap::new(),
                next_run: 0,
                has_crashed: false,
                is_calm: false,
            }),
            streams: Mutex::default(),
            crash: Notify::new(),
        })
    }

    /// Draws from the stream of a part.
    pub fn draw<T>(&self, part: &'static str, draw: impl FnOnce(&mut Random) -> T) -> T {
        let mut streams = self.streams.lock();
        draw(streams.entry(part).or_insert_with(|| Random::of(self.seed, part)))
    }

    /// True `per_mille` times in a thousand, and never in the calm.
    pub fn fault(&self, part: &'static str, per_mille: u64) -> bool {
        let is_calm = self.is_calm();
        self.draw(part, |random| random.chance(per_mille)) && !is_calm
    }

    // --- time ---

    /// A life begins on the present async runtime.
    pub fn begin_life(&self, life: usize) {
        let mut state = self.state.lock();
        state.began_ms = state.ms();
        state.began = Some(Instant::now());
        (state.life, state.commits, state.effects) = (life, 0, 0);
        state.has_crashed = false;
        state.handlers.clear();
    }

    /// A life is over: its clock goes with it.
    pub fn end_life(&self) {
        let mut state = self.state.lock();
        state.began_ms = state.ms();
        state.began = None;
    }

    /// Steps the wall clock.
    pub fn step_clock(&self, by_ms: i64) {
        self.state.lock().wall_offset_ms += by_ms;
        self.trace(|| format!("the wall clock steps by {by_ms} ms"));
    }

    /// From here on nothing fails.
    pub fn calm_down(&self) {
        self.state.lock().is_calm = true;
        self.trace(|| "calm".to_owned());
    }

    /// True once nothing fails any more.
    pub fn is_calm(&self) -> bool {
        self.state.lock().is_calm
    }

    // --- observations ---

    /// Adds a line to the trace.
    pub fn trace(&self, line: impl FnOnce() -> String) {
        let mut state = self.state.lock();
        if state.has_crashed {
            return;
        }
        let (ms, steps, life) = (state.ms(), state.steps, state.life);
        state.trace.push(format!("{ms:>7} {steps:>6} {life} {}", line()));
    }

    /// Counts a step of the scheduler: it shows in every line, so that equal traces have equal schedules.
    pub fn count_step(&self) {
        self.state.lock().steps += 1;
    }

    /// Notes a fact. What happens after the moment of a crash was never observed.
    pub fn note(&self, fact: Fact) {
        let mut state = self.state.lock();
        if !state.has_crashed {
            let life = state.life;
            state.facts.push(Noted { life, fact });
        }
    }

    /// Notes what became of the disk, also when the process is gone.
    pub fn note_of_disk(&self, fact: Fact) {
        let mut state = self.state.lock();
        let life = state.life;
        state.facts.push(Noted { life, fact });
    }

    /// Notes what a caller was told.
    pub fn acknowledge(&self, what: Acknowledged) {
        self.trace(|| format!("told {what:?}"));
        self.note(Fact::Acknowledged(what));
    }

    /// A handler begins. Its run, and a run of the same job that goes on and was not told to stop.
    pub fn handler_begins(&self, context: &tidegate::activity::ActivityContext) -> (u64, Option<u64>) {
        let mut state = self.state.lock();
        state.next_run += 1;
        let run = state.next_run;
        let is_rival = |handler: &Handler| handler.job == context.job && !handler.stop.is_stopped();
        let rival = state.handlers.iter().find(|(_, handler)| is_rival(handler));
        let rival = rival.map(|(run, _)| *run);
        let (job, stop) = (context.job, context.stop.clone());
        state.handlers.insert(run, Handler { job, stop });
        (run, rival)
    }

    /// A handler has ended, or was dropped.
    pub fn handler_ends(&self, run: u64) {
        self.state.lock().handlers.remove(&run);
    }

    /// What was observed, and the trace.
    pub fn take(&self) -> (Vec<Noted>, Vec<String>) {
        let mut state = self.state.lock();
        (std::mem::take(&mut state.facts), std::mem::take(&mut state.trace))
    }

    // --- crashes ---

    /// The end of the present life, if it was not the last.
    fn end(&self) -> Option<End> {
        let life = self.state.lock().life;
        self.temper.lives.get(life).copied()
    }

    /// Kills the process.
    pub fn kill(&self) {
        if self.has_crashed() {
            return;
        }
        self.trace(|| "CRASH".to_owned());
        self.note(Fact::Crashed);
        self.state.lock().has_crashed = true;
        self.crash.notify_one();
    }

    /// True from the moment of a crash to the next life.
    pub fn has_crashed(&self) -> bool {
        self.state.lock().has_crashed
    }

    /// Ends at the crash.
    pub async fn crashed(&self) {
        self.crash.notified().await;
    }

    /// A commit begins: which one it is.
    pub fn next_commit(&self) -> u64 {
        let mut state = self.state.lock();
        state.commits += 1;
        state.commits
    }

    /// True if the process dies at this moment of this commit.
    pub fn dies_at(&self, commit: u64, at: Moment) -> bool {
        let is_now = matches!(self.end(), Some(End::CrashAtCommit { number, moment }) if number == commit && moment == at);
        if is_now && !self.is_calm() {
            self.kill();
        }
        self.has_crashed()
    }

    /// A handler begins or ends. True if the process dies of it.
    pub fn effect(&self) -> bool {
        let effects = {
            let mut state = self.state.lock();
            state.effects += 1;
            state.effects
        };
        let is_now = matches!(self.end(), Some(End::CrashAtEffect { number }) if number == effects);
        if is_now && !self.is_calm() {
            self.kill();
        }
        self.has_crashed()
    }
}

impl State {
    fn ms(&self) -> u64 {
        let since = self.began.map_or(Duration::ZERO, |began| began.elapsed());
        self.began_ms + since.as_millis() as u64
    }
}

/// The wall clock of a world.
pub struct WallClock(pub Arc<World>);

/// The wall clock is read again at least this often, since it can step.
const LONGEST_SLEEP: Duration = Duration::from_millis(500);

impl Clock for WallClock {
    fn now(&self) -> Timestamp {
        wall(&self.0)
    }

    fn sleep_until(&self, until: Timestamp) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        let left = Duration::from_millis(until.since(self.now()).max(0) as u64);
        Box::pin(tokio::time::sleep(left.min(LONGEST_SLEEP)))
    }
}

/// What the wall clock of a world says.
pub fn wall(world: &World) -> Timestamp {
    let state = world.state.lock();
    BEGINNING.plus_ms(state.ms() as i64 + state.wall_offset_ms)
}
