//! The gate: flags and the count of live permits in one atomic word, so that closing and admitting have an order.
//! Once [`Gate::close`] has returned, the count only falls.

use crate::sync::{Arc, AtomicU64, Mutex, Ordering};

/// Set in the word while an administrative pause is on.
const PAUSED: u64 = 1;
/// Set in the word once a drain has begun. Never cleared within a generation.
const DRAINING: u64 = 1 << 1;
/// Set in the word while new starts are held and what is there goes on.
const STARTS_HELD: u64 = 1 << 2;
/// Set in the word while somebody waits for the count to reach zero.
const AWAITED: u64 = 1 << 3;
/// What closes a gate to everything.
const CLOSED: u64 = PAUSED | DRAINING;
/// One permit.
const ONE: u64 = 1 << 8;

/// Why a gate is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closing {
    /// An operator's pause: reversible.
    Pause,
    /// An operator's pause of new starts only: reversible.
    Starts,
    /// A drain: forward-only.
    Drain,
}

impl Closing {
    const fn bit(self) -> u64 {
        match self {
            Self::Pause => PAUSED,
            Self::Starts => STARTS_HELD,
            Self::Drain => DRAINING,
        }
    }
}

/// What wants to pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entering {
    /// A new instance.
    Start,
    /// An instance that is there already.
    Continue,
}

/// Which gate refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// One of the narrow gates: others may pass meanwhile.
    Narrow,
    /// The shell's gate: nobody passes.
    Shell,
}

/// A gate's state at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quiescence {
    word: u64,
}

impl Quiescence {
    /// True if work is admitted.
    pub const fn is_accepting(self) -> bool {
        self.word & CLOSED == 0
    }

    /// True if new instances are admitted.
    pub const fn is_accepting_starts(self) -> bool {
        self.word & (CLOSED | STARTS_HELD) == 0
    }

    /// True under an administrative pause.
    pub const fn is_paused(self) -> bool {
        self.word & PAUSED != 0
    }

    /// True once a drain has begun.
    pub const fn is_draining(self) -> bool {
        self.word & DRAINING != 0
    }

    /// Live permits: execution cycles.
    pub const fn live(self) -> u64 {
        self.word / ONE
    }

    /// The flag set as the wire contract spells it.
    pub const fn reason(self) -> &'static str {
        match (self.is_paused(), self.is_draining()) {
            (false, false) => "None",
            (true, false) => "AdministrativePause",
            (false, true) => "Drain",
            (true, true) => "AdministrativePause, Drain",
        }
    }
}

/// An admission point: of one shell, or a narrow one of a process id or a tenant. Clones are the same gate.
#[derive(Debug, Clone, Default)]
pub struct Gate {
    inner: Arc<Inner>,
}

/// Whom to call when nothing is live.
#[derive(Default)]
struct Waiting(Vec<Box<dyn FnOnce() + Send>>);

struct Inner {
    word: AtomicU64,
    idle: Mutex<Waiting>,
}

impl Default for Inner {
    fn default() -> Self {
        Self {
            word: AtomicU64::new(0),
            idle: Mutex::default(),
        }
    }
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inner")
            .field("word", &self.word)
            .finish_non_exhaustive()
    }
}

/// How many narrow gates a permit can hold: its process id's and its tenant's.
const NARROW: usize = 2;

impl Gate {
    /// An open gate.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks this gate alone for a permit to continue. `None` if it is closed.
    pub fn admit(&self) -> Option<Permit> {
        self.admit_through([None, None], Entering::Continue).ok()
    }

    /// Asks the narrow gates in their order, then this one, the shell's. A permit holds all of them.
    ///
    /// # Errors
    /// Which of them refused; then none is held.
    pub fn admit_through(
        &self,
        narrow: [Option<&Gate>; NARROW],
        entering: Entering,
    ) -> Result<Permit, Refused> {
        let mut held = [None, None];
        for (slot, gate) in held.iter_mut().zip(narrow) {
            *slot = match gate {
                Some(gate) => Some(gate.hold(entering).ok_or(Refused::Narrow)?),
                None => None,
            };
        }
        let shell = self.hold(entering).ok_or(Refused::Shell)?;
        Ok(Permit {
            _shell: shell,
            _narrow: held,
        })
    }

    /// Compare-exchange that fails on any flag: never add and undo.
    fn hold(&self, entering: Entering) -> Option<Held> {
        let closed = match entering {
            Entering::Start => CLOSED | STARTS_HELD,
            Entering::Continue => CLOSED,
        };
        let mut word = self.inner.word.load(Ordering::Acquire);
        loop {
            if word & closed != 0 {
                return None;
            }
            match self
                .inner
                .word
                .compare_exchange_weak(word, word + ONE, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => {
                    return Some(Held {
                        gate: self.inner.clone(),
                    });
                }
                Err(seen) => word = seen,
            }
        }
    }

    /// Closes the gate. True if this call set the flag.
    pub fn close(&self, closing: Closing) -> bool {
        let before = self.inner.word.fetch_or(closing.bit(), Ordering::AcqRel);
        before & closing.bit() == 0
    }

    /// Closes the gate and tells how many permits were live at that very moment.
    pub fn close_counting(&self, closing: Closing) -> u64 {
        let word = self.inner.word.fetch_or(closing.bit(), Ordering::AcqRel);
        Quiescence { word }.live()
    }

    /// Takes a pause away, of new starts or of everything. True if there was one. A drain cannot be taken away.
    pub fn lift_pause(&self) -> bool {
        let before = self
            .inner
            .word
            .fetch_and(!(PAUSED | STARTS_HELD), Ordering::AcqRel);
        before & (PAUSED | STARTS_HELD) != 0
    }

    /// The state. Takes no lock.
    pub fn read(&self) -> Quiescence {
        Quiescence {
            word: self.inner.word.load(Ordering::Acquire),
        }
    }

    /// Calls `done` once no permit is live: at once, or from the thread that drops the last one. Behind a closed gate
    /// idleness lasts; before an open one it is a moment that was.
    pub fn when_idle(&self, done: impl FnOnce() + Send + 'static) {
        self.inner.idle.with(|waiting| waiting.0.push(Box::new(done)));
        // Armed before reading: a release that this read does not see sees the flag.
        let before = self.inner.word.fetch_or(AWAITED, Ordering::AcqRel);
        if before / ONE == 0 {
            self.inner.wake();
        }
    }
}

impl Inner {
    fn wake(&self) {
        let waiting = self.idle.with(|waiting| {
            // Under the lock: who arms afterwards sets the flag after this.
            self.word.fetch_and(!AWAITED, Ordering::AcqRel);
            std::mem::take(&mut waiting.0)
        });
        for done in waiting {
            done();
        }
    }
}

/// One count in one gate's word.
#[derive(Debug)]
struct Held {
    gate: Arc<Inner>,
}

impl Drop for Held {
    fn drop(&mut self) {
        let before = self.gate.word.fetch_sub(ONE, Ordering::AcqRel);
        if before / ONE == 1 && before & AWAITED != 0 {
            self.gate.wake();
        }
    }
}

/// The right to run one execution cycle. Dropping it gives it back, at the shell's gate and at the narrow ones.
///
/// Only a gate makes one:
///
/// ```compile_fail,E0451
/// let permit = tidegate_gate::Permit { _shell: todo!(), _narrow: todo!() };
/// ```
#[derive(Debug)]
pub struct Permit {
    _shell: Held,
    _narrow: [Option<Held>; NARROW],
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn c01_the_count_follows_the_permits() {
        let gate = Gate::new();
        let first = gate.admit().unwrap();
        assert_eq!(gate.read().live(), 1);
        let second = gate.admit().unwrap();
        assert_eq!(gate.read().live(), 2);
        drop(first);
        assert_eq!(gate.read().live(), 1);
        drop(second);
        assert_eq!(gate.read().live(), 0);
    }

    #[test]
    fn q07_both_flags_are_kept_and_spelled() {
        let gate = Gate::new();
        assert_eq!(gate.read().reason(), "None");
        assert!(gate.close(Closing::Drain));
        assert!(
            !gate.close(Closing::Drain),
            "q02: the second drain changes nothing"
        );
        assert!(gate.close(Closing::Pause));
        assert_eq!(gate.read().reason(), "AdministrativePause, Drain");
        assert!(gate.admit().is_none());
        assert!(gate.lift_pause());
        assert_eq!(gate.read().reason(), "Drain");
        assert!(gate.admit().is_none());
    }

    #[test]
    fn a_narrow_gate_holds_its_own_and_spares_the_others() {
        let (shell, order, invoice, tenant) = (Gate::new(), Gate::new(), Gate::new(), Gate::new());
        order.close(Closing::Starts);
        let through = |gate: &Gate, entering| shell.admit_through([Some(gate), Some(&tenant)], entering);
        assert_eq!(through(&order, Entering::Start).unwrap_err(), Refused::Narrow);
        let going_on = through(&order, Entering::Continue).unwrap();
        assert_eq!(
            (order.read().live(), tenant.read().live(), shell.read().live()),
            (1, 1, 1)
        );
        order.close(Closing::Pause);
        assert_eq!(through(&order, Entering::Continue).unwrap_err(), Refused::Narrow);
        let other = through(&invoice, Entering::Start).unwrap();
        assert_eq!((invoice.read().live(), shell.read().live()), (1, 2));
        drop((going_on, other));
        tenant.close(Closing::Pause);
        assert_eq!(through(&invoice, Entering::Start).unwrap_err(), Refused::Narrow);
        assert_eq!(invoice.read().live(), 0, "a refusal holds nothing");
        tenant.lift_pause();
        shell.close(Closing::Drain);
        assert_eq!(through(&invoice, Entering::Start).unwrap_err(), Refused::Shell);
        assert_eq!((invoice.read().live(), tenant.read().live()), (0, 0));
    }

    #[test]
    fn q09_after_close_returns_the_count_only_falls() {
        for _ in 0..200 {
            let gate = Gate::new();
            let stop = Arc::new(AtomicBool::new(false));
            let workers: Vec<_> = (0..3)
                .map(|_| {
                    let (gate, stop) = (gate.clone(), stop.clone());
                    std::thread::spawn(move || {
                        while !stop.load(Ordering::Relaxed) {
                            drop(gate.admit());
                        }
                    })
                })
                .collect();
            gate.close(Closing::Pause);
            let mut last = gate.read().live();
            for _ in 0..1000 {
                let now = gate.read().live();
                assert!(now <= last, "the count rose from {last} to {now} after close");
                last = now;
            }
            let (sender, idle) = std::sync::mpsc::channel();
            gate.when_idle(move || sender.send(()).unwrap());
            idle.recv().unwrap();
            stop.store(true, Ordering::Relaxed);
            for worker in workers {
                worker.join().unwrap();
            }
            assert_eq!(gate.read().live(), 0);
        }
    }
}
