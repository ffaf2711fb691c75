//! In-process activities: the handlers of jobs that run inside a cycle.
//!
//! One handler is one file here and one row in [`demo`].

pub(crate) mod decision;
mod fail;
mod log;
mod noop;
mod panic;
mod sleep;

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tidegate_model::{ElementInstanceKey, InstanceKey, Variables};
use tokio::sync::Notify;

/// What an activity's future is.
pub type ActivityFuture = Pin<Box<dyn Future<Output = ActivityResult> + Send>>;

/// The outcome of an activity: variables, or why not.
pub type ActivityResult = Result<Variables, ActivityError>;

/// Does the work of one job type.
///
/// # Durability
/// Under commit policy `activity` the result is committed before anything that follows begins. A handler can run
/// again after a crash or an interruption: it should be idempotent, keyed by [`ActivityContext::job`].
pub trait Activity: Send + Sync + 'static {
    /// Begins the work. The future runs on the async runtime; a panic in it becomes an incident.
    fn run(&self, context: ActivityContext) -> ActivityFuture;

    /// True if the future is usually ready at its first poll and never blocks: it is then polled once by the
    /// owner thread itself.
    fn is_quick(&self) -> bool {
        false
    }
}

/// Why an activity did not succeed.
#[derive(Debug, Clone, PartialEq)]
pub enum ActivityError {
    /// A technical failure: tried again while there are retries, then an incident.
    Failed {
        /// What went wrong.
        message: String,
        /// Tries left; none takes one off.
        retries: Option<u32>,
        /// Wait so long before the next try.
        backoff: Option<Duration>,
    },
    /// A BPMN error, for an error boundary event to catch.
    Error {
        /// The error code.
        code: String,
        /// What went wrong.
        message: String,
        /// Variables for the catching scope.
        variables: Variables,
    },
    /// The activity was told to stop and did. It runs again when the instance resumes; no retry is used up.
    Stopped,
}

impl ActivityError {
    /// A technical failure that takes one retry off.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::Failed {
            message: message.into(),
            retries: None,
            backoff: None,
        }
    }
}

/// What an activity is given.
#[derive(Debug, Clone)]
pub struct ActivityContext {
    /// The job, the same again when it is run again.
    pub job: ElementInstanceKey,
    /// The instance.
    pub instance: InstanceKey,
    /// The instance's tenant.
    pub tenant: Arc<str>,
    /// The job type.
    pub job_type: Arc<str>,
    /// The element's BPMN id.
    pub element_id: Arc<str>,
    /// Static headers of the model.
    pub headers: Arc<[(Arc<str>, Arc<str>)]>,
    /// Variables visible to it.
    pub variables: Variables,
    /// Tries left, this one included.
    pub retries: u32,
    /// Tells when to stop.
    pub stop: StopToken,
}

impl ActivityContext {
    /// A header's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(key, _)| **key == *name)
            .map(|(_, value)| &**value)
    }
}

/// Tells an activity that it should stop, and how much time it has left to do so.
#[derive(Debug, Clone)]
pub struct StopToken {
    stop: Arc<Stop>,
}

/// What a token and its other end share. Every job has one, and most are never looked at: it is small.
#[derive(Debug, Default)]
struct Stop {
    /// Until when results are taken, once the activity should stop.
    until: OnceLock<tokio::time::Instant>,
    /// The cycle is over.
    is_over: AtomicBool,
    told: Notify,
}

impl StopToken {
    /// True once the activity should stop.
    pub fn is_stopped(&self) -> bool {
        self.stop.until.get().is_some()
    }

    /// Ends when the activity should stop.
    ///
    /// Cancel safe.
    pub async fn stopped(&self) {
        // Made before the look: what is told after that wakes it.
        let told = self.stop.told.notified();
        // The other end lives as long as the cycle: its end is a stop too.
        if !self.is_stopped() && !self.stop.is_over.load(Ordering::Acquire) {
            told.await;
        }
    }

    /// How much time is left until results are no longer taken; none before the stop.
    pub fn time_left(&self) -> Option<Duration> {
        let until = self.stop.until.get()?;
        Some(until.saturating_duration_since(tokio::time::Instant::now()))
    }
}

/// The other end of a [`StopToken`].
#[derive(Debug)]
pub(crate) struct Stopper(Arc<Stop>);

impl Stopper {
    pub(crate) fn new() -> (Self, StopToken) {
        let stop = Arc::new(Stop::default());
        (Self(stop.clone()), StopToken { stop })
    }

    pub(crate) fn stop(&self, until: tokio::time::Instant) {
        if self.0.until.set(until).is_ok() {
            self.0.told.notify_waiters();
        }
    }
}

impl Drop for Stopper {
    fn drop(&mut self) {
        // Nobody has a token any more: the usual case.
        if Arc::strong_count(&self.0) > 1 {
            self.0.is_over.store(true, Ordering::Release);
            self.0.told.notify_waiters();
        }
    }
}

/// The handlers of a runtime, by job type.
#[derive(Clone, Default)]
pub struct Activities {
    by_type: HashMap<Arc<str>, Arc<dyn Activity>>,
}

impl Activities {
    /// Adds a handler, in the place of an earlier one of the same type.
    pub fn register(&mut self, job_type: &str, activity: Arc<dyn Activity>) {
        self.by_type.insert(Arc::from(job_type), activity);
    }

    /// The handler of a job type.
    pub fn get(&self, job_type: &str) -> Option<&Arc<dyn Activity>> {
        self.by_type.get(job_type)
    }
}

impl std::fmt::Debug for Activities {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.by_type.keys()).finish()
    }
}

/// The handlers for trials and benchmarks.
pub fn demo() -> [(&'static str, Arc<dyn Activity>); 6] {
    [
        ("demo.noop", Arc::new(noop::Noop)),
        ("demo.sleep", Arc::new(sleep::Sleep { heeds_stop: true })),
        ("demo.stubborn", Arc::new(sleep::Sleep { heeds_stop: false })),
        ("demo.fail", Arc::new(fail::Fail::default())),
        ("demo.panic", Arc::new(panic::Panic)),
        ("demo.log", Arc::new(log::Log)),
    ]
}

/// What a panic said, cut to a length that fits a record.
pub(crate) fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_owned());
    text.chars().take(1_000).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn whoever_waits_is_told_of_a_stop_and_of_the_end_of_the_cycle() {
        let (stopper, token) = Stopper::new();
        assert!(!token.is_stopped());
        assert_eq!(token.time_left(), None);
        let waits = tokio::spawn({
            let token = token.clone();
            async move { token.stopped().await }
        });
        tokio::task::yield_now().await;
        let until = tokio::time::Instant::now() + Duration::from_secs(3_600);
        stopper.stop(until);
        waits.await.expect("it is told");
        assert!(token.is_stopped());
        // The first one counts.
        stopper.stop(tokio::time::Instant::now());
        assert!(token.time_left() > Some(Duration::from_secs(3_000)));
        token.stopped().await;

        let (stopper, token) = Stopper::new();
        let waits = tokio::spawn({
            let token = token.clone();
            async move { token.stopped().await }
        });
        tokio::task::yield_now().await;
        drop(stopper);
        waits.await.expect("it is told");
        token.stopped().await;
        assert!(!token.is_stopped(), "nobody said so");
    }
}
