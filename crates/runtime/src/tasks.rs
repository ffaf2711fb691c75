//! The one place that spawns. Every task has a name and an owner.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::task::{AbortHandle, JoinHandle};

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

    /// Waits for all of them. They must have been told to end.
    pub(crate) async fn join(self: Arc<Self>) {
        let tasks = std::mem::take(&mut *self.tasks.lock());
        for (name, task) in tasks {
            if let Err(error) = task.await {
                tracing::error!(task = name, "a task of the runtime ended badly: {error}");
            }
        }
        let threads = std::mem::take(&mut *self.threads.lock());
        let joined = tokio::task::spawn_blocking(move || {
            for (name, thread) in threads {
                if thread.join().is_err() {
                    tracing::error!(thread = name, "a thread of the runtime ended badly");
                }
            }
        });
        if let Err(error) = joined.await {
            tracing::error!("the runtime's threads could not be joined: {error}");
        }
    }
}
