//! The drain: an ordered plan by which a generation ends.
//!
//! Gate and readiness at once; all sources in parallel; wait for rest; at the effective deadline cut what is left,
//! let it settle, mark it. The report says what became of every cycle.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tidegate_model::{InstanceKey, Interruption, InterruptionReason, Timestamp};
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

use crate::gate::Closing;
use crate::ingress::Sources;
use crate::owner::{CutReport, CutRequest, Message, Owners, Running};
use crate::plan;
use crate::shared::{Counters, Shared};
use crate::spill::{self, Spilled};
use crate::status::{CycleReport, DrainOutcome, DrainResult, DrainTrigger, Fate};
use crate::tasks::Tasks;

/// The drain of a generation: there is at most one.
pub(crate) struct Drain {
    shared: Arc<Shared>,
    owners: Owners,
    sources: Arc<Sources>,
    tasks: Arc<Tasks>,
    progress: Mutex<Progress>,
    force: Notify,
    outcome: Mutex<Option<Arc<DrainOutcome>>>,
    /// Told when there is an outcome.
    over: Notify,
}

#[derive(Debug, Default)]
struct Progress {
    started_at: Option<Timestamp>,
    deadline_at: Option<Timestamp>,
    /// The effective deadline, where whoever began it gave one.
    at_most: Option<Duration>,
    /// An operator's force, with the operator's words.
    forced: Option<Option<String>>,
}

impl Drain {
    pub(crate) fn new(shared: Arc<Shared>, owners: Owners, sources: Arc<Sources>, tasks: Arc<Tasks>) -> Self {
        Self {
            shared,
            owners,
            sources,
            tasks,
            progress: Mutex::default(),
            force: Notify::new(),
            outcome: Mutex::default(),
            over: Notify::new(),
        }
    }

    /// When it began, and its effective deadline.
    pub(crate) fn times(&self) -> (Option<Timestamp>, Option<Timestamp>) {
        let progress = self.progress.lock();
        (progress.started_at, progress.deadline_at)
    }

    /// The outcome, once it is over.
    pub(crate) fn outcome(&self) -> Option<Arc<DrainOutcome>> {
        self.outcome.lock().clone()
    }

    /// True while it is under way.
    pub(crate) fn is_under_way(&self) -> bool {
        self.progress.lock().started_at.is_some() && self.outcome().is_none()
    }

    /// True if force was asked for.
    pub(crate) fn is_forced(&self) -> bool {
        self.progress.lock().forced.is_some()
    }

    /// Begins the drain if none was begun, and waits for its outcome.
    ///
    /// The drain runs in a task of its own: a caller that hangs up changes nothing.
    pub(crate) async fn run(self: &Arc<Self>, trigger: DrainTrigger) -> Arc<DrainOutcome> {
        self.begin(trigger, None, None);
        self.ended().await
    }

    /// As [`Drain::run`], with an effective deadline of at most `at_most`.
    pub(crate) async fn run_within(
        self: &Arc<Self>,
        trigger: DrainTrigger,
        at_most: Duration,
    ) -> Arc<DrainOutcome> {
        self.begin(trigger, None, Some(at_most));
        self.ended().await
    }

    /// Begins a drain without waiting for cycles, or hurries the one that is under way, and waits for its outcome. True
    /// if this call was the first to force it.
    pub(crate) async fn force(self: &Arc<Self>, reason: Option<String>) -> (Arc<DrainOutcome>, bool) {
        let was_first = self.begin(DrainTrigger::OperatorForce, Some(reason), None);
        (self.ended().await, was_first)
    }

    /// True if `force` is new.
    fn begin(
        self: &Arc<Self>,
        trigger: DrainTrigger,
        force: Option<Option<String>>,
        at_most: Option<Duration>,
    ) -> bool {
        let mut progress = self.progress.lock();
        let is_over = self.outcome.lock().is_some();
        let is_new = !is_over && progress.forced.is_none() && force.is_some();
        if let Some(reason) = force
            && is_new
        {
            progress.forced = Some(reason);
            self.force.notify_one();
        }
        if progress.started_at.is_some() {
            return is_new;
        }
        let now = self.shared.now();
        let left = match progress.forced {
            Some(_) => Duration::ZERO,
            None => self.effective_deadline(at_most),
        };
        progress.at_most = at_most;
        progress.started_at = Some(now);
        progress.deadline_at = Some(now.plus_ms(left.as_millis() as i64));
        drop(progress);
        // Counted as the gate closes: a cycle that rests right after belongs to the drain's report.
        let live_at_start = self.shared.gate.close_counting(Closing::Drain);
        self.shared.tick();
        self.shared.observers.tell_runtime(
            now,
            "RuntimeDraining".into(),
            serde_json::json!({ "live": live_at_start }),
        );
        let drain = self.clone();
        self.tasks.spawn(&self.shared.tokio, "drain", async move {
            let performing = std::panic::AssertUnwindSafe(drain.clone().perform(trigger, live_at_start));
            if crate::tasks::contained(performing).await.is_err() {
                tracing::error!("the drain ended by a bug; what it did not save is found by crash recovery");
                drain.finish(drain.aborted(trigger));
            }
        });
        is_new
    }

    fn effective_deadline(&self, at_most: Option<Duration>) -> Duration {
        let configured = self.shared.options.effective_deadline();
        at_most.map_or(configured, |at_most| configured.min(at_most))
    }

    async fn ended(&self) -> Arc<DrainOutcome> {
        loop {
            let over = self.over.notified();
            tokio::pin!(over);
            // Armed before looking.
            over.as_mut().enable();
            if let Some(outcome) = self.outcome() {
                return outcome;
            }
            over.await;
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

    async fn perform(self: Arc<Self>, trigger: DrainTrigger, live_at_start: u64) {
        let began = Instant::now();
        let options = &self.shared.options;
        let reserve = options.reserve();
        let deadline = match self.is_forced() {
            true => began,
            false => began + self.effective_deadline(self.progress.lock().at_most),
        };
        tracing::info!(live = live_at_start, ?trigger, "draining");
        let changed = || self.shared.tick();

        // A forced drain still gives sources the reserve to stop, so that none delivers into the cut. Force in the middle
        // of the pause does not wait for the slow ones: the gate is closed, whatever they do.
        let pausing = self
            .sources
            .pause(Some(deadline.max(began + reserve / 2)), &changed);
        if self.is_forced() {
            pausing.await;
        } else {
            tokio::select! {
                biased;
                () = pausing => {}
                () = self.force.notified() => {}
            }
        }
        let paused = Instant::now();

        let was_idle = self.wait_for_rest(deadline).await;
        let waited = Instant::now();
        let is_forced = self.is_forced();

        let mut cut = Vec::new();
        let mut settled = waited;
        let mut persisted = waited;
        if !was_idle {
            let request = self.request(is_forced, waited + plan::results_within(options));
            let until = request.results_until;
            let cutting = self.cut(&request);
            tokio::select! {
                biased;
                _ = self.wait_for_idle(Some(until)) => {}
                () = all_settled(cutting) => {}
            }
            settled = Instant::now();
            cut = self.finish_cut(waited + plan::marks_within(options)).await;
            persisted = Instant::now();
            self.tell_pace(cut.len(), persisted - settled);
        } else {
            // What came to rest early may have lost a commit on the way: its owner knows.
            cut.extend(self.finish_cut(waited + plan::marks_within(options)).await);
        }
        self.save_unsaved(&mut cut).await;
        let phases = Phases {
            began,
            paused,
            waited,
            settled,
            persisted,
        };
        let outcome = self.report(trigger, is_forced, live_at_start, cut, phases);
        self.record(&outcome).await;
        self.finish(outcome);
    }

    fn finish(&self, outcome: DrainOutcome) {
        *self.outcome.lock() = Some(Arc::new(outcome));
        self.over.notify_waiters();
        self.shared.tick();
    }

    /// Brings the records that no commit holds into the log and the spill file.
    async fn save_unsaved(&self, cut: &mut Vec<CutReport>) {
        // Owners that did not answer are spoken for by the registry.
        let told: std::collections::HashSet<InstanceKey> =
            cut.iter().map(|report| report.line.instance_id).collect();
        let silent = self
            .shared
            .registry
            .list()
            .into_iter()
            .filter(|running| !told.contains(&running.instance));
        let silent: Vec<CutReport> = silent.map(|running| self.unheard(running)).collect();
        cut.extend(silent);
        let unsaved = cut.iter().filter_map(|report| {
            Some(Spilled {
                instance: report.line.instance_id,
                record: report.unsaved.clone()?,
            })
        });
        let unsaved: Vec<Spilled> = unsaved.collect();
        if unsaved.is_empty() {
            return;
        }
        for Spilled { instance, record } in &unsaved {
            let text = serde_json::to_string(record).unwrap_or_default();
            tracing::error!(%instance, record = text, event = "InterruptionUnsaved", "an interruption could not be saved in the store");
        }
        let Some(path) = self.shared.options.spill.clone() else {
            return;
        };
        let count = unsaved.len();
        let writing = spill::on_disk(path.clone(), move |path| spill::write(path, &unsaved));
        match tokio::time::timeout(LONGEST_SPILL, writing).await {
            Ok(Ok(())) => {
                Counters::add(&self.shared.counters.spilled, count as u64);
                tracing::warn!(count, path = %path.display(), "interruptions are in the spill file; the next start takes them up")
            }
            Ok(Err(error)) => {
                tracing::error!(count, path = %path.display(), "the spill file could not be written; crash recovery finds the instances: {error}")
            }
            Err(_) => {
                tracing::error!(count, path = %path.display(), "the spill file was not written in time; crash recovery finds the instances")
            }
        }
    }

    /// The report of a cycle whose owner does not answer.
    fn unheard(
        &self,
        Running {
            instance,
            source,
            began,
        }: Running,
    ) -> CutReport {
        let age_ms = began.elapsed().as_millis() as u64;
        let source = source.map(str::to_owned);
        let record = Interruption {
            interrupted_at: self.shared.now(),
            reason: InterruptionReason::PersistenceFailure,
            generation_id: self.shared.generation.to_string(),
            last_activity_id: None,
            last_activity_node_id: None,
            ingress_source_name: source.clone(),
            cycle_ms: age_ms,
            reason_text: None,
        };
        let line = CycleReport {
            instance_id: instance,
            source,
            activity: None,
            age_ms,
            fate: Fate::PersistenceFailed,
        };
        CutReport {
            line,
            unsaved: Some(record),
        }
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

    /// Has every owner cut its cycles. Each tells when none of its handlers runs any more.
    fn cut(&self, request: &CutRequest) -> Vec<oneshot::Receiver<()>> {
        let tell = |owner| {
            let (sender, settled) = oneshot::channel();
            self.owners.send_to(owner, Message::Cut(request.clone(), sender));
            settled
        };
        (0..self.owners.count()).map(tell).collect()
    }

    /// Says what saving the outcomes took of the time that is kept for it.
    fn tell_pace(&self, cycles: usize, took: Duration) {
        let kept = plan::time_for_marks(&self.shared.options);
        let (took_ms, kept_ms) = (took.as_millis() as u64, kept.as_millis() as u64);
        if took > kept {
            tracing::warn!(
                cycles,
                took_ms,
                kept_ms,
                "saving the outcomes of cut cycles took longer than the time that is kept for it: make `persist-reserve` larger"
            );
        } else {
            tracing::info!(cycles, took_ms, kept_ms, "the outcomes of cut cycles are saved");
        }
    }

    async fn finish_cut(&self, give_up_at: Instant) -> Vec<CutReport> {
        let mut waiting = Vec::new();
        for owner in 0..self.owners.count() {
            let (sender, receiver) = oneshot::channel();
            self.owners.send_to(owner, Message::FinishCut(give_up_at, sender));
            waiting.push(receiver);
        }
        let mut reports = Vec::new();
        for receiver in waiting {
            match tokio::time::timeout_at(give_up_at + OWNER_SLACK, receiver).await {
                Ok(Ok(mut of_owner)) => reports.append(&mut of_owner),
                Ok(Err(_)) | Err(_) => {
                    tracing::error!("an owner did not answer in time; the registry speaks for its cycles");
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
        cut: Vec<CutReport>,
        phases: Phases,
    ) -> DrainOutcome {
        let mut cycles: Vec<CycleReport> = cut.into_iter().map(|report| report.line).collect();
        let count = |fate: Fate| cycles.iter().filter(|cycle| cycle.fate == fate).count() as u64;
        let abandoned = count(Fate::Abandoned);
        let interrupted = count(Fate::Interrupted) + abandoned;
        let unsaved = count(Fate::PersistenceFailed);
        let limit = self.shared.options.reported_ids;
        let ids = cycles
            .iter()
            .filter(|c| c.fate != Fate::PersistenceFailed)
            .map(|c| c.instance_id);
        let force_cancelled_instance_ids = ids.take(limit).collect();
        let progress = self.progress.lock();
        let now = self.shared.now();
        let completed = live_at_start.saturating_sub(interrupted + unsaved);
        // What needs a person's eye comes first, then what came to rest.
        cycles.append(&mut self.shared.rested.lock());
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
        // The store may be what fails: then the entry is in the log, and the wait for it is short.
        self.shared.write_audit(row).await;
    }
}

/// Ends when all of them have told.
async fn all_settled(owners: Vec<oneshot::Receiver<()>>) {
    for owner in owners {
        // An owner that has ended has no handlers.
        let _ = owner.await;
    }
}

/// What an owner may take longer than it was told, to say what it gave up.
const OWNER_SLACK: Duration = Duration::from_millis(20);
/// How long writing the spill file may take: the end of the reserve.
const LONGEST_SPILL: Duration = Duration::from_millis(250);

#[derive(Clone, Copy)]
struct Phases {
    began: Instant,
    paused: Instant,
    waited: Instant,
    settled: Instant,
    persisted: Instant,
}
