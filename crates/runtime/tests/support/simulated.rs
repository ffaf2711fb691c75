//! Simulated time: the runtime step by step on the thread of the test, every deadline at its own moment.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tidegate::stepped::{self, Step, Stepping, Steps};

/// Every step is done at once, but for those of one owner, once it is named.
pub struct Pace {
    stuck: AtomicUsize,
}

impl Pace {
    /// From now on this owner does nothing.
    pub fn stick(&self, owner: usize) {
        self.stuck.store(owner, Ordering::Relaxed);
    }
}

impl Steps for Pace {
    fn before(&self, step: Step) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        match step {
            Step::Round(owner) if owner == self.stuck.load(Ordering::Relaxed) => {
                Box::pin(std::future::pending())
            }
            Step::Round(_) | Step::Read => Box::pin(std::future::ready(())),
        }
    }
}

/// As long as the second one lives, what starts on this thread is simulated. For tests with `start_paused`.
pub fn simulated() -> (Arc<Pace>, Stepping) {
    let pace = Arc::new(Pace {
        stuck: AtomicUsize::new(usize::MAX),
    });
    (pace.clone(), stepped::on_this_thread(pace))
}

pub const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}
