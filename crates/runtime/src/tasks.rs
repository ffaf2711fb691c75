//! The one place that spawns. Every task has a name and an owner.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::task::{AbortHandle, JoinError, JoinHandle};
use tokio::time::Instant;

use crate::stepped::{self, Step};

/// Does work that blocks, beside the async runtime.
///
/// # Errors
/// The work panicked, or the async runtime is shutting down.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, JoinError> {
    match stepped::steps() {
        None => tokio::task::spawn_blocking(work).await,
        Some(steps) => {
            steps.before(Step::Read).await;
            Ok(work())
        }
    }
}

/// Spawns an activity's task. It reports to its owner when it ends, and is aborted when it is abandoned.
pub(crate) fn spawn_activity(
    tokio: &tokio::runtime::Handle,
    activity: impl Future<Output = ()> + Send + 'static,
) -> AbortHandle {
    tokio.spawn(activity).abort_handle()
}

/// The long-lived tasks and threads of a runtime, joined when it is closed.
#[derive(Default)]
pub(crate) struct Tasks {
    tasks: Mutex<Vec<(&'static str, JoinHandle<()>)>>,
    threads: Mutex<Vec<(String, std::thread::JoinHandle<()>)>>,
}

impl Tasks {
    pub(crate) fn spawn(
        &self,
        tokio: &tokio::runtime::Handle,
        name: &'static str,
        task: impl Future<Output = ()> + Send + 'static,
    ) {
        self.tasks.lock().push((name, tokio.spawn(task)));
    }

    pub(crate) fn thread(&self, name: String, work: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
        let thread = std::thread::Builder::new().name(name.clone()).spawn(work)?;
        let mut threads = self.threads.lock();
        threads.push((name, thread));
        // Those of observers come and go.
        sweep_threads(&mut threads);
        Ok(())
    }

    /// Waits for all of them. They must have been told to end. False if one has not ended in time: it is named in the
    /// log and stays in the list, so that a later call waits for it again. Cancel safe.
    pub(crate) async fn join(&self, at_most: Duration) -> bool {
        let until = Instant::now() + at_most;
        // A thread has no other sign of its end; the looks begin close together.
        let mut pause = Duration::from_micros(50);
        loop {
            sweep_tasks(&mut self.tasks.lock());
            sweep_threads(&mut self.threads.lock());
            let left = self.names();
            if left.is_empty() {
                return true;
            }
            if Instant::now() >= until {
                for name in left {
                    tracing::error!(
                        task = name,
                        "a task of the runtime did not end in time; it is left"
                    );
                }
                return false;
            }
            tokio::time::sleep_until(until.min(Instant::now() + pause)).await;
            pause = (pause * 2).min(Duration::from_millis(5));
        }
    }

    /// The names of those that have not ended.
    pub(crate) fn names(&self) -> Vec<String> {
        let tasks = self.tasks.lock();
        let tasks = tasks.iter().filter(|(_, task)| !task.is_finished());
        let mut names: Vec<String> = tasks.map(|(name, _)| (*name).to_owned()).collect();
        let threads = self.threads.lock();
        let threads = threads.iter().filter(|(_, thread)| !thread.is_finished());
        names.extend(threads.map(|(name, _)| name.clone()));
        names
    }
}

fn sweep_tasks(tasks: &mut Vec<(&'static str, JoinHandle<()>)>) {
    for (name, task) in tasks.extract_if(.., |(_, task)| task.is_finished()) {
        // It has ended: one look tells how.
        let mut task = std::pin::pin!(task);
        let mut idle = std::task::Context::from_waker(std::task::Waker::noop());
        if let std::task::Poll::Ready(Err(error)) = task.as_mut().poll(&mut idle) {
            tracing::error!(task = name, "a task of the runtime ended badly: {error}");
        }
    }
}

fn sweep_threads(threads: &mut Vec<(String, std::thread::JoinHandle<()>)>) {
    for (name, thread) in threads.extract_if(.., |(_, thread)| thread.is_finished()) {
        if thread.join().is_err() {
            tracing::error!(thread = name, "a thread of the runtime ended badly");
        }
    }
}

/// The tasks of activities that were let go of while they ran: told to stop, aborted where they were abandoned, and
/// fenced, but not ended yet.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stragglers {
    tasks: Arc<Mutex<Vec<(String, AbortHandle)>>>,
}

impl Stragglers {
    pub(crate) fn add(&self, name: String, task: AbortHandle) {
        let mut tasks = self.tasks.lock();
        tasks.retain(|(_, task)| !task.is_finished());
        tasks.push((name, task));
    }

    /// The names of those that still run.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut tasks = self.tasks.lock();
        tasks.retain(|(_, task)| !task.is_finished());
        tasks.iter().map(|(name, _)| name.clone()).collect()
    }
}

/// Runs a future to its end, or to its panic.
pub(crate) async fn contained<F: Future + std::panic::UnwindSafe>(
    future: F,
) -> Result<F::Output, Box<dyn std::any::Any + Send>> {
    let mut future = Box::pin(future);
    std::future::poll_fn(move |context| {
        let polled = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| future.as_mut().poll(context)));
        match polled {
            Ok(poll) => poll.map(Ok),
            Err(panic) => std::task::Poll::Ready(Err(panic)),
        }
    })
    .await
}
