//! What kind of run a seed is: which faults it has and how often, and how each life of the process ends. Seeds differ in
//! kind, not only in order: many faults at once hide each other.

use std::time::Duration;

use tidegate::{CommitPolicy, ForceDuringDrain, Options, PausePersistence};

use crate::random::Random;

/// Chances are per thousand.
#[derive(Debug, Clone)]
pub struct Temper {
    /// The lives of the process, each with its end; after the last one comes the calm.
    pub lives: Vec<End>,
    /// True if the calm is a life of its own, false if the last life turns calm while it goes on.
    pub is_calm_restarted: bool,
    /// How long a life lasts if nothing ends it, in milliseconds.
    pub life_ms: u64,
    /// A step of the scheduler lets others go first.
    pub yields: u64,
    /// A step waits some milliseconds.
    pub dawdles: u64,
    /// A commit fails and is not there.
    pub fails: u64,
    /// A commit fails and may be there after a crash.
    pub unsure: u64,
    /// The store takes seconds over a batch.
    pub slow: u64,
    /// A commit is applied a second time.
    pub repeats: u64,
    /// A read fails.
    pub read_fails: u64,
    /// A handler misbehaves.
    pub bad_handlers: u64,
    /// An operator does something drastic, of a hundred actions ten times this.
    pub operators: u64,
    /// The wall clock steps, at every look.
    pub clock_steps: u64,
    /// How the ingress sources behave.
    pub sources: Vec<Manner>,
    /// How many instances clients want.
    pub orders: usize,
    /// The options of every generation.
    pub options: Options,
}

/// How an ingress source behaves when it is asked to pause or resume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// As it should.
    Well,
    /// It never answers.
    Hangs,
    /// It says that it could not.
    Fails,
    /// It panics.
    Throws,
    /// It says that it has paused and goes on.
    Lies,
}

/// How a life of the process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// By a drain; with a force after so many milliseconds, and a crash after so many.
    Drain {
        /// When an operator loses patience.
        force_after_ms: Option<u64>,
        /// When the process is killed all the same.
        crash_after_ms: Option<u64>,
    },
    /// An operator forces it at once.
    Force,
    /// A crash at this time.
    CrashAt {
        /// Milliseconds after its beginning.
        ms: u64,
    },
    /// A crash at this commit.
    CrashAtCommit {
        /// Which, from 1.
        number: u64,
        /// Before it, between disk and answer, or after the answer.
        moment: Moment,
    },
    /// A crash as a handler begins or ends.
    CrashAtEffect {
        /// Which, from 1; beginnings and ends both count.
        number: u64,
    },
}

/// A moment of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// Nothing of it is there.
    Before,
    /// It is there and nobody knows.
    Applied,
    /// Its owner was told and has not acted.
    Told,
}

impl Temper {
    /// The kind of run that a seed is.
    pub fn of(seed: u64) -> Self {
        let mut random = Random::of(seed, "temper");
        let lives = (0..random.between(1, 3)).map(|_| End::of(&mut random)).collect();
        // Each fault is absent in about half of all seeds.
        let mut sometimes = |most: u64| match random.chance(500) {
            true => random.between(1, most),
            false => 0,
        };
        let (fails, unsure, slow, repeats) = (sometimes(60), sometimes(40), sometimes(30), sometimes(300));
        let (read_fails, bad_handlers, operators) = (sometimes(60), sometimes(400), sometimes(60));
        let (clock_steps, yields, dawdles) = (sometimes(100), sometimes(500), sometimes(60));
        let options = options(&mut random);
        let manners = [
            Manner::Well,
            Manner::Hangs,
            Manner::Fails,
            Manner::Throws,
            Manner::Lies,
        ];
        Self {
            lives,
            is_calm_restarted: random.chance(500),
            life_ms: random.between(3_000, 15_000),
            yields,
            dawdles,
            fails,
            unsure,
            slow,
            repeats,
            read_fails,
            bad_handlers,
            operators,
            clock_steps,
            sources: (0..random.below(3)).map(|_| random.pick(&manners)).collect(),
            orders: random.between(3, 14) as usize,
            options,
        }
    }
}

impl End {
    fn of(random: &mut Random) -> Self {
        match random.below(10) {
            0..3 => Self::Drain {
                force_after_ms: random.chance(300).then(|| random.between(0, 3_000)),
                crash_after_ms: random.chance(200).then(|| random.between(0, 3_000)),
            },
            3 => Self::Force,
            4..6 => Self::CrashAt {
                ms: random.between(0, 12_000),
            },
            6..9 => Self::CrashAtCommit {
                number: random.between(1, 150),
                moment: random.pick(&[Moment::Before, Moment::Applied, Moment::Told]),
            },
            _ => Self::CrashAtEffect {
                number: random.between(1, 60),
            },
        }
    }
}

fn options(random: &mut Random) -> Options {
    Options {
        owners: random.between(1, 4) as usize,
        commit_policy: match random.chance(300) {
            true => CommitPolicy::Cycle,
            false => CommitPolicy::Activity,
        },
        drain_deadline: Duration::from_millis(random.between(200, 6_000)),
        ingress_pause_timeout: Duration::from_millis(random.between(50, 2_000)),
        pause_persistence: match random.chance(300) {
            true => PausePersistence::AcrossReactivations,
            false => PausePersistence::SessionScoped,
        },
        force_during_drain: match random.chance(200) {
            true => ForceDuringDrain::Reject,
            false => ForceDuringDrain::Escalate,
        },
        max_live_cycles: match random.chance(200) {
            true => random.between(1, 4),
            false => 100_000,
        },
        cache_bytes: match random.chance(300) {
            true => 1,
            false => 8 << 20,
        },
        recovery_batch: random.between(1, 5) as usize,
        // No run is so long: what is acknowledged is there at its end.
        message_ttl: Duration::from_secs(7 * 24 * 3_600),
        reported_ids: 100_000,
        ..Options::default()
    }
}
