//! The shutdown of an engine: one teardown, whoever asks for it and however often, bounded by a deadline.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tidegate_store::InstanceFilter;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::error::{Error, NotSettled};
use crate::life::EngineState;
use crate::runtime::Runtime;
use crate::status::{DrainOutcome, DrainTrigger, Fate};

/// What a shutdown does with the instances that are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ShutdownMode {
    /// Lets what runs come to rest, then stops. What has not come to rest at the deadline is interrupted. Nothing ends.
    #[default]
    Drain,
    /// Interrupts what runs, now, and keeps it. Nothing ends.
    Park,
    /// Cancels every instance. The only mode that ends instances of a durable store.
    Cancel,
}

/// What a shutdown did.
#[derive(Debug, Clone, PartialEq)]
pub struct ShutdownReport {
    /// The mode that ruled: that of the first call.
    pub mode: ShutdownMode,
    /// What became of the execution cycles.
    pub drain: DrainOutcome,
    /// How many instances were cancelled; 0 in the other modes.
    pub cancelled: u64,
    /// Activities that did not stop when told to and still run, by name: their results are refused.
    pub abandoned: Vec<String>,
}

type Outcome = Result<ShutdownReport, NotSettled>;

/// The teardown of a runtime: there is at most one.
pub(crate) struct Ending {
    has_begun: AtomicBool,
    outcome: watch::Sender<Option<Arc<Outcome>>>,
}

impl Default for Ending {
    fn default() -> Self {
        Self {
            has_begun: AtomicBool::new(false),
            outcome: watch::Sender::new(None),
        }
    }
}

/// What a caller waits beyond its deadline for the teardown to say what is left.
const SLACK: Duration = Duration::from_millis(100);

impl Runtime {
    /// Where the engine is in its life.
    pub fn state(&self) -> EngineState {
        self.shared().life.state()
    }

    /// Follows the engine's life.
    pub fn watch_state(&self) -> watch::Receiver<EngineState> {
        self.shared().life.watch()
    }

    /// # Errors
    /// [`Error::Stopped`].
    pub(crate) fn must_live(&self) -> Result<(), Error> {
        if self.shared().life.is_stopped() {
            return Err(Error::Stopped);
        }
        Ok(())
    }

    /// Shuts the engine down within `deadline`, counted from now. From this moment it is [`EngineState::Stopped`]:
    /// nothing is registered or started any more. Then `mode` is done to what is there, every task and thread of the
    /// runtime is joined, and the store is closed.
    ///
    /// There is one teardown: the first call's mode and deadline rule, later and concurrent calls wait for it, each
    /// within its own deadline, and get the same answer. A later [`ShutdownMode::Park`] hurries a drain. Once it is
    /// over and had left something, a further call waits for what is left.
    ///
    /// Outcomes are saved inside the deadline: cycles may run until [`crate::Options::reserve`] before it, or until the
    /// configured drain deadline if that is sooner.
    ///
    /// # Durability
    /// When this answers, every outcome that it tells is on disk. Work that was interrupted goes on when a runtime is
    /// started on the same store.
    ///
    /// # Errors
    /// [`Error::NotSettled`] names the instances that did not come to rest, could not be saved, or did not end, and the
    /// tasks that still run. The engine is stopped all the same.
    ///
    /// # Cancel safety
    /// The teardown goes on if the future is dropped.
    pub async fn shutdown(&self, mode: ShutdownMode, deadline: Duration) -> Result<ShutdownReport, Error> {
        let until = within(deadline);
        let ending = &self.inner().ending;
        let mut outcome = ending.outcome.subscribe();
        if !ending.has_begun.swap(true, Ordering::AcqRel) {
            self.shared().life.stop();
            let runtime = self.clone();
            // In a task of its own: a caller that hangs up changes nothing.
            tokio::spawn(async move {
                let outcome = runtime.tear_down(mode, until).await;
                runtime
                    .inner()
                    .ending
                    .outcome
                    .send_replace(Some(Arc::new(outcome)));
            });
        } else if outcome.borrow().is_some() {
            return self.wait_for_left(until).await;
        } else if mode == ShutdownMode::Park {
            let drain = self.inner().drain.clone();
            // The teardown waits for the same drain.
            tokio::spawn(async move { drain.force(None).await });
        }
        let told = tokio::time::timeout_at(until + SLACK, outcome.wait_for(Option::is_some)).await;
        let outcome = told.ok().and_then(|told| told.ok()?.clone());
        match outcome.as_deref() {
            Some(Ok(report)) => Ok(report.clone()),
            Some(Err(left)) => Err(Error::NotSettled(Box::new(left.clone()))),
            None => {
                let running = self.shared().registry.list();
                let instances = running.iter().map(|running| running.instance).collect();
                Err(Error::not_settled(instances, self.survivors()))
            }
        }
    }

    /// Tasks and threads of this runtime that have not ended, by name. After a shutdown that succeeded there are none
    /// but those of abandoned activities.
    pub fn survivors(&self) -> Vec<String> {
        let mut names = self.inner().tasks.names();
        names.extend(self.shared().stragglers.names());
        names
    }

    /// A start that was overtaken by a shutdown.
    pub(crate) async fn end_at_once(&self) {
        let reserve = self.shared().options.reserve();
        if let Err(left) = self.shutdown(ShutdownMode::Park, reserve * 2).await {
            tracing::error!("{left}");
        }
    }

    async fn tear_down(&self, mode: ShutdownMode, until: Instant) -> Outcome {
        let reserve = self.shared().options.reserve();
        // Cycles end before this, so that there is time to save what became of them.
        let rest_until = until.checked_sub(reserve).unwrap_or(until).max(Instant::now());
        let mut audit = self.shared().audit("RuntimeShutdownRequested", "library", None);
        audit.after = Some(format!("{mode:?}"));
        self.shared().write_audit(audit).await;
        let drain = &self.inner().drain;
        let mut cancelled = 0;
        let mut instances = Vec::new();
        let outcome = match mode {
            ShutdownMode::Park => drain.force(None).await.0,
            ShutdownMode::Drain => {
                let left = rest_until.saturating_duration_since(Instant::now());
                drain.run_within(DrainTrigger::HostStopSignal, left).await
            }
            ShutdownMode::Cancel => {
                cancelled += self.cancel_all(None, SHUTDOWN, rest_until).await;
                let left = rest_until.saturating_duration_since(Instant::now());
                drain.run_within(DrainTrigger::HostStopSignal, left).await
            }
        };
        if mode == ShutdownMode::Cancel {
            // The gate is closed: what was born on the way here is the last.
            cancelled += self.cancel_all(None, SHUTDOWN, until).await;
            match self
                .live(
                    &InstanceFilter::default(),
                    None,
                    self.shared().options.reported_ids,
                )
                .await
            {
                Ok(rows) => instances.extend(rows.iter().map(|row| row.key)),
                Err(error) => tracing::error!("what is left of a cancelling shutdown is not known: {error}"),
            }
        }
        instances.extend(outcome.cycles.iter().filter_map(|cycle| {
            let is_left = match cycle.fate {
                Fate::Rested => false,
                Fate::PersistenceFailed => true,
                Fate::Interrupted | Fate::Abandoned => mode == ShutdownMode::Drain,
            };
            is_left.then_some(cycle.instance_id)
        }));
        instances.sort_unstable();
        instances.dedup();
        let at_most = until.saturating_duration_since(Instant::now()).max(reserve);
        self.close_within(at_most).await;
        let tasks = self.inner().tasks.names();
        if instances.is_empty() && tasks.is_empty() {
            return Ok(ShutdownReport {
                mode,
                drain: (*outcome).clone(),
                cancelled,
                abandoned: self.shared().stragglers.names(),
            });
        }
        Err(NotSettled {
            instances,
            tasks: self.survivors(),
        })
    }

    /// After the teardown: nothing more is done to instances, but what still ran may have ended.
    async fn wait_for_left(&self, until: Instant) -> Result<ShutdownReport, Error> {
        let outcome = self.inner().ending.outcome.borrow().clone();
        let left = match outcome.as_deref() {
            Some(Ok(report)) => return Ok(report.clone()),
            Some(Err(left)) => left.clone(),
            None => NotSettled::default(),
        };
        self.close_within(until.saturating_duration_since(Instant::now()))
            .await;
        let mut pause = Duration::from_micros(50);
        while !self.survivors().is_empty() && Instant::now() < until {
            // An activity that nobody waits for has no other sign of its end.
            tokio::time::sleep_until(until.min(Instant::now() + pause)).await;
            pause = (pause * 2).min(Duration::from_millis(5));
        }
        let tasks = self.survivors();
        let drain = self.inner().drain.outcome();
        match drain {
            Some(drain) if tasks.is_empty() => Ok(ShutdownReport {
                mode: ShutdownMode::Drain,
                drain: (*drain).clone(),
                cancelled: 0,
                abandoned: Vec::new(),
            }),
            _ => Err(Error::not_settled(left.instances, tasks)),
        }
    }
}

/// The reason that cancelled instances are given.
const SHUTDOWN: &str = "shutdown";

/// The moment after a duration; one that is too long for the clock is for ever.
pub(crate) fn within(duration: Duration) -> Instant {
    const FOR_EVER: Duration = Duration::from_secs(365 * 24 * 3_600);
    Instant::now() + duration.min(FOR_EVER)
}
