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
        self.threads.lock().push((name, thread));
        Ok(())
    }

    /// Waits for all of them. They must have been told to end. False if one has not ended in time: it is named in the log.
    pub(crate) async fn join(self: Arc<Self>, at_most: Duration) -> bool {
        let until = Instant::now() + at_most;
        let mut have_all_ended = true;
        let tasks = std::mem::take(&mut *self.tasks.lock());
        for (name, task) in tasks {
            match tokio::time::timeout_at(until, task).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::error!(task = name, "a task of the runtime ended badly: {error}"),
                Err(_) => {
                    have_all_ended = false;
                    tracing::error!(task = name, "a task of the runtime did not end in time");
                }
            }
        }
        let threads = std::mem::take(&mut *self.threads.lock());
        for (name, thread) in threads {
            let ended = async {
                // A thread has no other sign of its end; the checks begin close together.
                let mut pause = Duration::from_micros(50);
                while !thread.is_finished() {
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(Duration::from_millis(5));
                }
            };
            if tokio::time::timeout_at(until, ended).await.is_err() {
                have_all_ended = false;
                tracing::error!(
                    thread = name,
                    "a thread of the runtime did not end in time; it is left"
                );
            } else if thread.join().is_err() {
                tracing::error!(thread = name, "a thread of the runtime ended badly");
            }
        }
        have_all_ended
    }
}
