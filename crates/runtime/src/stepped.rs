//! Everything of a runtime on one thread, step by step: for simulations, where the same seed must give the same run.
//!
//! A runtime that is started on a thread with [`Steps`] has no thread of its own: owners are tasks of the async runtime,
//! and reads of the store happen where they are awaited. Before each such step [`Steps::before`] is asked, and may let
//! others go first. The async runtime should be `current_thread` with its clock paused: then all deadlines run on
//! simulated time. Threads without steps are not concerned.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;

/// What is about to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// A round of this owner.
    Round(usize),
    /// Something that else would be done on a thread for blocking work: a read of the store, a file.
    Read,
}

/// Says when each step is done.
pub trait Steps: Send + Sync + 'static {
    /// Ends when the step may be done.
    fn before(&self, step: Step) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}

thread_local! {
    static STEPS: RefCell<Option<Arc<dyn Steps>>> = const { RefCell::new(None) };
}

/// As long as it lives, what starts on this thread is stepped.
#[must_use = "dropping it ends the stepping"]
#[derive(Debug)]
pub struct Stepping {
    before: PhantomData<*const ()>,
}

impl Drop for Stepping {
    fn drop(&mut self) {
        STEPS.set(None);
    }
}

/// Lets runtimes that are started on this thread run step by step.
pub fn on_this_thread(steps: Arc<dyn Steps>) -> Stepping {
    STEPS.set(Some(steps));
    Stepping { before: PhantomData }
}

/// The steps of this thread; none where threads do the work.
pub(crate) fn steps() -> Option<Arc<dyn Steps>> {
    STEPS.with_borrow(Clone::clone)
}
