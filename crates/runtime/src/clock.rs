//! The one place that reads the clock.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tidegate_model::Timestamp;
use tokio::sync::Notify;

/// Wall-clock time, for due times and records. Deadlines of the runtime itself run on the monotonic clock.
pub trait Clock: Send + Sync + 'static {
    /// The present time.
    fn now(&self) -> Timestamp;

    /// Ends when the clock says `until` or later, or a little before (the caller reads [`Clock::now`] again).
    ///
    /// Cancel safe.
    fn sleep_until(&self, until: Timestamp) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

/// Re-reads the wall clock at least this often, since it can step.
const LONGEST_SLEEP: Duration = Duration::from_millis(500);

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap_or_default();
        Timestamp::from_ms(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }

    fn sleep_until(&self, until: Timestamp) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        let left = Duration::from_millis(until.since(self.now()).max(0) as u64).min(LONGEST_SLEEP);
        Box::pin(tokio::time::sleep(left))
    }
}

/// A clock that moves when told to, for tests.
#[derive(Debug, Clone)]
pub struct ManualClock {
    now: Arc<Mutex<Timestamp>>,
    moved: Arc<Notify>,
}

impl ManualClock {
    /// A clock that stands at `now`.
    pub fn new(now: Timestamp) -> Self {
        Self {
            now: Arc::new(Mutex::new(now)),
            moved: Arc::new(Notify::new()),
        }
    }

    /// Moves the clock by `ms` milliseconds, back if negative.
    pub fn advance(&self, ms: i64) {
        {
            let mut now = self.now.lock();
            *now = now.plus_ms(ms);
        }
        self.moved.notify_waiters();
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        *self.now.lock()
    }

    fn sleep_until(&self, until: Timestamp) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async move {
            let moved = self.moved.notified();
            tokio::pin!(moved);
            moved.as_mut().enable();
            if self.now() < until {
                moved.await;
            }
        })
    }
}
