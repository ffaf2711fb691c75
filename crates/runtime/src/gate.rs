//! The gate: the one admission point of a runtime.
//!
//! Closed-flags and the count of live permits share one atomic word, so that closing and admitting have an
//! order: once [`Gate::close`] has returned, the count only falls. No async runtime is needed here; who waits
//! for idleness leaves a callback.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

/// Set in the word while an administrative pause is on.
const PAUSED: u64 = 1;
/// Set in the word once a drain has begun. Never cleared within a generation.
const DRAINING: u64 = 1 << 1;
const FLAGS: u64 = PAUSED | DRAINING;
/// One permit.
const ONE: u64 = 1 << 8;

/// Why a gate is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closing {
    /// An operator's pause: reversible.
    Pause,
    /// A drain: forward-only.
    Drain,
}

impl Closing {
    const fn bit(self) -> u64 {
        match self {
            Self::Pause => PAUSED,
            Self::Drain => DRAINING,
        }
    }
}

/// The gate's state at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quiescence {
    word: u64,
}

impl Quiescence {
    /// True if new work is admitted.
    pub const fn is_accepting(self) -> bool {
        self.word & FLAGS == 0
    }

    /// True under an administrative pause.
    pub const fn is_paused(self) -> bool {
        self.word & PAUSED != 0
    }

    /// True once a drain has begun.
    pub const fn is_draining(self) -> bool {
        self.word & DRAINING != 0
    }

    /// Live execution cycles.
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

/// The gate of one shell.
#[derive(Debug, Clone, Default)]
pub struct Gate {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    word: AtomicU64,
    idle: Mutex<Vec<Box<dyn FnOnce() + Send>>>,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inner")
            .field("word", &self.word)
            .finish_non_exhaustive()
    }
}

impl Gate {
    /// An open gate.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks for a permit. `None` if the gate is closed.
    pub fn admit(&self) -> Option<Permit> {
        let mut word = self.inner.word.load(Ordering::Acquire);
        loop {
            if word & FLAGS != 0 {
                return None;
            }
            match self
                .inner
                .word
                .compare_exchange_weak(word, word + ONE, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => {
                    return Some(Permit {
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

    /// Takes the pause away. True if there was one. A drain cannot be taken away.
    pub fn lift_pause(&self) -> bool {
        let before = self.inner.word.fetch_and(!PAUSED, Ordering::AcqRel);
        before & PAUSED != 0
    }

    /// The state. Takes no lock.
    pub fn read(&self) -> Quiescence {
        Quiescence {
            word: self.inner.word.load(Ordering::Acquire),
        }
    }

    /// Calls `done` once no permit is live: at once, or from the thread that drops the last one. Meant for a
    /// closed gate, where idleness lasts.
    pub fn when_idle(&self, done: impl FnOnce() + Send + 'static) {
        self.inner.idle.lock().push(Box::new(done));
        // Armed before reading: a release after this read sees the callback.
        if self.read().live() == 0 {
            self.inner.wake();
        }
    }
}

impl Inner {
    fn wake(&self) {
        let waiting = std::mem::take(&mut *self.idle.lock());
        for done in waiting {
            done();
        }
    }
}

/// The right to run one execution cycle. Dropping it gives it back.
///
/// Only [`Gate::admit`] makes one:
///
/// ```compile_fail,E0451
/// let permit = tidegate::gate::Permit { gate: todo!() };
/// ```
#[derive(Debug)]
pub struct Permit {
    gate: Arc<Inner>,
}

impl Drop for Permit {
    fn drop(&mut self) {
        let before = self.gate.word.fetch_sub(ONE, Ordering::AcqRel);
        if before / ONE == 1 && before & FLAGS != 0 {
            self.gate.wake();
        }
    }
}

#[cfg(test)]
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
        assert!(!gate.close(Closing::Drain));
        assert!(gate.close(Closing::Pause));
        assert_eq!(gate.read().reason(), "AdministrativePause, Drain");
        assert!(gate.admit().is_none());
        assert!(gate.lift_pause());
        assert_eq!(gate.read().reason(), "Drain");
        assert!(gate.admit().is_none());
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
