//! The worker processes: at most so many, started when they are needed, replaced when they were killed.

use std::borrow::Cow;
use std::os::unix::process::ExitStatusExt;
use std::pin::{Pin, pin};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use rustix::process::Signal;
use serde_json::value::RawValue;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::options::Options;
use crate::process::{Job, Worker};
use crate::protocol::{self, LENGTH_BYTES, Outcome, Request};
use crate::trouble::Trouble;

/// Makes the command that starts a worker process.
pub(crate) type Factory = Box<dyn Fn() -> Command + Send + Sync>;

pub(crate) struct Pool {
    options: Options,
    factory: Factory,
    slots: Semaphore,
    idle: Mutex<Vec<Worker>>,
    jobs: AtomicU64,
}

impl Pool {
    pub(crate) fn new(options: Options, factory: Factory) -> Self {
        let slots = Semaphore::new(options.workers.clamp(1, Semaphore::MAX_PERMITS));
        Self {
            options,
            factory,
            slots,
            idle: Mutex::default(),
            jobs: AtomicU64::new(1),
        }
    }

    /// Runs one script, until `stop` ends.
    ///
    /// Cancel safe: if the future is dropped, the worker is killed.
    pub(crate) async fn run(
        &self,
        script: &str,
        variables: &RawValue,
        stop: impl Future<Output = ()>,
    ) -> Result<Outcome, Trouble> {
        let job = self.job(script, variables)?;
        let mut stop = pin!(stop);
        let _slot = tokio::select! {
            biased;
            () = &mut stop => return Err(Trouble::Stopped),
            slot = timeout(self.options.wait, self.slots.acquire()) => slot
                .map_err(|_| Trouble::Busy(self.options.wait))?
                .map_err(|_| Trouble::Closed)?,
        };
        match self.attempt(&job, stop.as_mut()).await {
            // A supervisor that ends a service may signal all of its processes at once. The script had no part in
            // that and has had no effect, so it runs again.
            Err(Trouble::Ended(status)) if is_polite(status.signal()) => self.attempt(&job, stop).await,
            other => other,
        }
    }

    fn job(&self, script: &str, variables: &RawValue) -> Result<Job, Trouble> {
        let number = self.jobs.fetch_add(1, Ordering::Relaxed);
        let script = Cow::Borrowed(script);
        let frame = protocol::frame(&Request {
            number,
            script,
            variables,
        })
        .map_err(|error| Trouble::Unreadable(error.to_string()))?;
        let size = frame.len() - LENGTH_BYTES;
        if size > self.options.input_bytes as usize {
            return Err(Trouble::TooLarge {
                size,
                most: self.options.input_bytes,
            });
        }
        Ok(Job { number, frame })
    }

    async fn attempt(
        &self,
        job: &Job,
        mut stop: Pin<&mut impl Future<Output = ()>>,
    ) -> Result<Outcome, Trouble> {
        let mut worker = tokio::select! {
            biased;
            () = &mut stop => return Err(Trouble::Stopped),
            worker = self.check_out() => worker?,
        };
        let result = tokio::select! {
            biased;
            () = &mut stop => Err(Trouble::Stopped),
            result = worker.run(job, &self.options) => result,
        };
        if result.is_ok() && worker.scripts() < self.options.scripts_per_worker && !self.slots.is_closed() {
            self.idle.lock().push(worker);
        } else {
            worker.kill().await;
        }
        result
    }

    async fn check_out(&self) -> Result<Worker, Trouble> {
        while let Some(mut worker) = self.pop() {
            if worker.is_alive() {
                return Ok(worker);
            }
        }
        Worker::start((self.factory)(), &self.options).await
    }

    fn pop(&self) -> Option<Worker> {
        self.idle.lock().pop()
    }

    /// Starts nothing more, and ends the workers that have nothing to do. Those that run a script end with it.
    pub(crate) async fn close(&self) {
        self.slots.close();
        while let Some(worker) = self.pop() {
            worker.kill().await;
        }
    }
}

fn is_polite(signal: Option<i32>) -> bool {
    let polite = [Signal::TERM, Signal::INT, Signal::HUP];
    polite.iter().any(|known| signal == Some(known.as_raw()))
}
