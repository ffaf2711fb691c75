//! The drain: an ordered plan by which a generation ends.
//!
//! Gate and readiness at once; all sources in parallel; wait for rest; at the effective deadline cut what is left,
//! let it settle, mark it. The report says what became of every cycle.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tidegate_model::{InterruptionReason, Timestamp};
use tokio::sync::{Notify, oneshot, watch};
use tokio::time::Instant;

use crate::gate::Closing;
use crate::ingress::Sources;
use crate::owner::{CutRequest, Message, Owners};
use crate::shared::Shared;
use crate::status::{CycleReport, DrainOutcome, DrainResult, DrainTrigger, Fate};

/// The drain of a generation: there is at most one.
pub(crate) struct Drain {
    shared: Arc<Shared>,
    owners: Owners,
    sources: Arc<Sources>,
    progress: Mutex<Progress>,
    force: Notify,
    outcome: watch::Sender<Option<Arc<DrainOutcome>>>,
}

#[derive(Debug, Default)]
struct Progress {
    started_at: Option<Timestamp>,
    deadline_at: Option<Timestamp>,
    /// An operator's force, with the operator's words.
    forced: Option<Option<String>>,
}

impl Drain {
    pub(crate) fn new(shared: Arc<Shared>, owners: Owners, sources: Arc<Sources>) -> Self {
        Self {
            shared,
            owners,
            sources,
            progress: Mutex::default(),
            force: Notify::new(),
            outcome: watch::Sender::new(None),
        }
    }

    /// When it began, and its effective deadline.
    pub(crate) fn times(&self) -> (Option<Timestamp>, Option<Timestamp>) {
        let progress = self.progress.lock();
        (progress.started_at, progress.deadline_at)
    }

    /// The outcome, once it is over.
    pub(crate) fn outcome(&self) -> Option<Arc<DrainOutcome>> {
        self.outcome.borrow().clone()
    }

    /// True while it is under way.
    pub(crate) fn is_under_way(&self) -> bool {
        self.progress.lock().started_at.is_some() && self.outcome().is_none()
    }

    /// True if force was asked for.
    pub(crate) fn is_forced(&self) -> bool {
        self.progress.lock().forced.is_some()
    }

    /// Begins the drain if none was begun, hurries one that is under way if `force`, and waits for its outcome.
    ///
    /// The drain runs in a task of its own: a caller that hangs up changes nothing.
    pub(crate) async fn run(
        self: &Arc<Self>,
        trigger: DrainTrigger,
        force: Option<Option<String>>,
    ) -> Arc<DrainOutcome> {
        let is_first = {
            let mut progress = self.progress.lock();
            if let Some(reason) = force
                && progress.forced.is_none()
            {
                progress.forced = Some(reason);
                self.force.notify_one();
            }
            let is_first = progress.started_at.is_none();
            if is_first {
                let now = self.shared.now();
                let left = match progress.forced {
                    Some(_) => Duration::ZERO,
                    None => self.shared.options.effective_deadline(),
                };
                progress.started_at = Some(now);
                progress.deadline_at = Some(now.plus_ms(left.as_millis() as i64));
            }
            is_first
        };
        if is_first {
            self.shared.gate.close(Closing::Drain);
            self.shared.tick();
            let drain = self.clone();
            self.shared
                .tokio
                .spawn(async move { drain.perform(trigger).await });
        }
        let mut outcome = self.outcome.subscribe();
        match outcome.wait_for(Option::is_some).await {
            Ok(outcome) => outcome.clone().unwrap_or_else(|| Arc::new(self.aborted(trigger))),
            Err(_) => Arc::new(self.aborted(trigger)),
        }
    }

    fn aborted(&self, trigger: DrainTrigger) -> DrainOutcome {
        let now = self.shared.now();
        DrainOutcome {
            overall_result: DrainResult::AbortedByUnhandledException,
            trigger,
            started_at: self.progress.lock().started_at.unwrap_or(now),
            completed_at: now,
            pause_phase_duration: Duration::ZERO,
            wait_phase_duration: Duration::ZERO,
            settle_phase_duration: Duration::ZERO,
            persist_phase_duration: Duration::ZERO,
            sources: self.sources.report(),
            execution_cycles_completed_count: 0,
            execution_cycles_force_cancelled_count: 0,
            execution_cycles_abandoned_count: 0,
            persistence_failure_count: 0,
            force_cancelled_instance_ids: Vec::new(),
            cycles: Vec::new(),
        }
    }

    async fn perform(self: Arc<Self>, trigger: DrainTrigger) {
        let began = Instant::now();
        let reserve = self.shared.options.reserve();
        let deadline = match self.is_forced() {
            true => began,
            false => began + self.shared.options.effective_deadline(),
        };
        let live_at_start = self.shared.gate.read().live();
        tracing::info!(live = live_at_start, ?trigger, "draining");
        let changed = || self.shared.tick();

        // A forced drain still gives sources the reserve to stop, so that none delivers into the cut.
        self.sources
            .pause(Some(deadline.max(began + reserve / 2)), &changed)
            .await;
        let paused = Instant::now();

        let was_idle = self.wait_for_rest(deadline).await;
        let waited = Instant::now();
        let is_forced = self.is_forced();

        let mut cut = Vec::new();
        let mut settled = waited;
        let mut persisted = waited;
        if !was_idle {
            let request = self.request(is_forced, waited + reserve / 2);
            self.owners.tell_all(|| Message::Cut(request.clone()));
            self.wait_for_idle(Some(request.results_until)).await;
            settled = Instant::now();
            cut = self.finish_cut(settled + reserve).await;
            persisted = Instant::now();
        }
        let outcome = self.report(
            trigger,
            is_forced,
            live_at_start,
            cut,
            Phases {
                began,
                paused,
                waited,
                settled,
                persisted,
            },
        );
        self.record(&outcome).await;
        self.outcome.send_replace(Some(Arc::new(outcome)));
        self.shared.tick();
    }

    fn request(&self, is_forced: bool, results_until: Instant) -> CutRequest {
        let reason_text = self.progress.lock().forced.clone().flatten();
        CutRequest {
            reason: match is_forced {
                true => InterruptionReason::OperatorForce,
                false => InterruptionReason::DeadlineBreach,
            },
            reason_text,
            results_until,
        }
    }

    /// True if every cycle came to rest before the deadline or the force.
    async fn wait_for_rest(&self, deadline: Instant) -> bool {
        if self.shared.gate.read().live() == 0 {
            return true;
        }
        if self.is_forced() {
            return false;
        }
        tokio::select! {
            biased;
            is_idle = self.wait_for_idle(Some(deadline)) => is_idle,
            () = self.force.notified() => false,
        }
    }

    /// True if no cycle is live, false if `until` came first.
    async fn wait_for_idle(&self, until: Option<Instant>) -> bool {
        let (sender, idle) = oneshot::channel();
        self.shared.gate.when_idle(move || {
            // The waiter may have run out of time.
            let _ = sender.send(());
        });
        match until {
            Some(until) => tokio::time::timeout_at(until, idle).await.is_ok(),
            None => idle.await.is_ok(),
        }
    }

    async fn finish_cut(&self, until: Instant) -> Vec<CycleReport> {
        let mut waiting = Vec::new();
        for owner in 0..self.owners.count() {
            let (sender, receiver) = oneshot::channel();
            self.owners.send_to(owner, Message::FinishCut(sender));
            waiting.push(receiver);
        }
        let mut reports = Vec::new();
        for receiver in waiting {
            match tokio::time::timeout_at(until, receiver).await {
                Ok(Ok(mut of_owner)) => reports.append(&mut of_owner),
                Ok(Err(_)) | Err(_) => {
                    tracing::error!(
                        "an owner did not save its cut cycles in time; crash recovery will find them"
                    );
                }
            }
        }
        reports
    }

    fn report(
        &self,
        trigger: DrainTrigger,
        is_forced: bool,
        live_at_start: u64,
        mut cycles: Vec<CycleReport>,
        phases: Phases,
    ) -> DrainOutcome {
        let count = |fate: Fate| cycles.iter().filter(|cycle| cycle.fate == fate).count() as u64;
        let still_live = self.shared.gate.read().live();
        let abandoned = count(Fate::Abandoned);
        let interrupted = count(Fate::Interrupted) + abandoned;
        let unsaved = count(Fate::PersistenceFailed) + still_live;
        let limit = self.shared.options.reported_ids;
        let ids = cycles
            .iter()
            .filter(|c| c.fate != Fate::PersistenceFailed)
            .map(|c| c.instance_id);
        let force_cancelled_instance_ids = ids.take(limit).collect();
        let progress = self.progress.lock();
        let now = self.shared.now();
        let completed = live_at_start.saturating_sub(interrupted + unsaved);
        cycles.truncate(limit);
        DrainOutcome {
            overall_result: match (is_forced, interrupted + unsaved) {
                (true, _) => DrainResult::Forced,
                (false, 0) => DrainResult::CompletedWithinDeadline,
                (false, _) => DrainResult::DeadlineExceeded,
            },
            trigger: if is_forced {
                DrainTrigger::OperatorForce
            } else {
                trigger
            },
            started_at: progress.started_at.unwrap_or(now),
            completed_at: now,
            pause_phase_duration: phases.paused - phases.began,
            wait_phase_duration: phases.waited - phases.paused,
            settle_phase_duration: phases.settled - phases.waited,
            persist_phase_duration: phases.persisted - phases.settled,
            sources: self.sources.report(),
            execution_cycles_completed_count: completed,
            execution_cycles_force_cancelled_count: interrupted,
            execution_cycles_abandoned_count: abandoned,
            persistence_failure_count: unsaved,
            force_cancelled_instance_ids,
            cycles,
        }
    }

    async fn record(&self, outcome: &DrainOutcome) {
        let mut row = self.shared.audit("RuntimeDrained", "runtime", None);
        row.after = serde_json::to_string(&outcome.overall_result).ok();
        // The store may be what fails; the drain does not wait for it for long.
        let write = self.shared.write_audit(row);
        if tokio::time::timeout(Duration::from_millis(200), write)
            .await
            .is_err()
        {
            tracing::warn!("the audit entry of the drain is still being written");
        }
    }
}

#[derive(Clone, Copy)]
struct Phases {
    began: Instant,
    paused: Instant,
    waited: Instant,
    settled: Instant,
    persisted: Instant,
}
