//! Residents: loading, moving and leaving them; and the in-process activities of a cycle.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use tidegate_engine::{Instance, replay};
use tidegate_model::effect::Job;
use tidegate_model::{
    Cause, Command, CommandKind, Effect, ElementInstanceKey, InstanceKey, Rejection, SubStatus, Timestamp,
};
use tidegate_store::{Error as StoreError, ErrorKind};
use tokio::time::Instant;

use crate::activity::{ActivityContext, ActivityError, ActivityFuture, ActivityResult, Stopper, panic_text};
use crate::error::Error;
use crate::options::CommitPolicy;
use crate::shared::Counters;

use super::resident::{Resident, Running};
use super::{Message, Owner};

/// The worker's name in the cause of what a handler of this process did.
pub(super) const IN_PROCESS: &str = "in-process";

/// True for what recovery goes on with.
pub(super) const fn is_under_way(sub_status: SubStatus) -> bool {
    matches!(
        sub_status,
        SubStatus::Executing | SubStatus::Interrupted | SubStatus::Cancelling
    )
}

/// An activity whose result nobody waits for.
pub(super) struct LetGo {
    instance: InstanceKey,
    element_id: Arc<str>,
    task: tokio::task::AbortHandle,
}

/// An in-process job that may start.
pub(super) struct Ready {
    pub(super) instance: InstanceKey,
    pub(super) incarnation: u64,
    pub(super) job: Job,
}

impl Owner {
    /// Brings an instance into memory. False if there is none.
    pub(super) fn load(&mut self, key: InstanceKey) -> Result<bool, Error> {
        if let Some(resident) = self.residents.get_mut(&key) {
            if let Some(since) = resident.idle_since.take() {
                self.idle.remove(&since);
                self.cache_bytes = self.cache_bytes.saturating_sub(resident.counted_bytes);
            }
            return Ok(true);
        }
        let Some(stored) = self.shared.store.load(key)? else {
            return Ok(false);
        };
        let loaded = self
            .shared
            .definitions
            .get(&*self.shared.store, stored.row.definition)?
            .ok_or(Error::NoSuchDefinition(stored.row.definition))?;
        let damaged = |error: tidegate_engine::CorruptState| {
            Error::Store(StoreError::new(
                ErrorKind::Damaged,
                format!("instance {key}: {error}"),
            ))
        };
        let trimmed = stored.trimmed;
        let state_bytes = stored.state.as_ref().map_or(0, Vec::len);
        let mut instance = match &stored.state {
            Some(bytes) => Instance::decode(bytes).map_err(damaged)?,
            None => Instance::new(key),
        };
        instance.check(&loaded.definition).map_err(damaged)?;
        let mut journal_bytes = 0;
        for row in &stored.journal {
            journal_bytes += row.payload.len();
            replay(&loaded.definition, &mut instance, &row.payload).map_err(damaged)?;
        }
        self.next_incarnation += 1;
        let mut resident = Resident::new(self.next_incarnation, instance, loaded, stored.row, true);
        resident.left = Some(resident.row.sub_status).filter(|left| is_under_way(*left));
        resident.state_bytes = state_bytes;
        resident.trimmed = trimmed;
        resident.journal_bytes = journal_bytes;
        self.residents.insert(key, resident);
        Ok(true)
    }

    /// Gives a command to an instance in memory.
    pub(super) fn advance(&mut self, key: InstanceKey, command: Command) -> Result<(), Rejection> {
        let now = self.shared.now();
        let Some(resident) = self.residents.get_mut(&key) else {
            return Err(Rejection::NoStart);
        };
        if resident.events.is_empty() {
            /// As many as a task brings, and some of the next: what one step yields is rarely one.
            const EVENTS: usize = 16;
            resident.events.reserve(EVENTS);
            resident.first_sequence = resident.instance.sequence() + 1;
        }
        let (new_effects, new_events) = (resident.effects.len(), resident.events.len());
        let keys = self.keys.of(key.get(), now);
        tidegate_engine::advance(
            &resident.loaded.definition,
            &mut resident.instance,
            command,
            now,
            keys,
            &mut resident.events,
            &mut resident.effects,
        )?;
        let high = keys.high();
        self.keys.note(high);
        if self.shared.options.commit_policy == CommitPolicy::Cycle {
            let definition = &resident.loaded.definition;
            let events = resident.events.get(new_events..).unwrap_or_default();
            match events.iter().any(|event| definition.is_commit_point(event)) {
                // What was decided behind it starts after the commit.
                true => resident.at_commit_point = true,
                false => self.start_before_commit(key, new_effects, now),
            }
        }
        self.mark_dirty(key);
        Ok(())
    }

    /// Policy `cycle`: in-process handlers run before the commit.
    fn start_before_commit(&mut self, key: InstanceKey, from: usize, now: Timestamp) {
        let Some(resident) = self.residents.get_mut(&key) else {
            return;
        };
        for effect in resident.effects.split_off(from) {
            match effect {
                Effect::RunJob(job)
                    if job.not_before.is_none_or(|at| at <= now)
                        && self.shared.activities.get(&job.job_type).is_some() =>
                {
                    resident.waiting_jobs += 1;
                    let incarnation = resident.incarnation;
                    self.ready.push_back(Ready {
                        instance: key,
                        incarnation,
                        job,
                    });
                }
                other => resident.effects.push(other),
            }
        }
    }

    pub(super) fn mark_dirty(&mut self, key: InstanceKey) {
        if let Some(resident) = self.residents.get_mut(&key) {
            resident.uncommitted_since.get_or_insert_with(Instant::now);
            if !resident.is_dirty {
                resident.is_dirty = true;
                self.dirty.push(key);
            }
        }
    }

    /// Starts what may start. Quick handlers are done within the round; the number per round is bounded so that
    /// the inbox gets its turn.
    pub(super) fn run_ready(&mut self) {
        const PER_ROUND: usize = 4_096;
        for _ in 0..PER_ROUND {
            let Some(ready) = self.ready.pop_front() else {
                return;
            };
            self.run_one(ready);
        }
    }

    fn run_one(
        &mut self,
        Ready {
            instance,
            incarnation,
            job,
        }: Ready,
    ) {
        let is_cut = self.cut.is_some();
        let Some(resident) = self.residents.get_mut(&instance) else {
            return;
        };
        if resident.incarnation != incarnation {
            return;
        }
        resident.waiting_jobs -= 1;
        if is_cut {
            // The work stays in the instance; whoever resumes it finds it there.
            resident.held_back += 1;
            return;
        }
        let is_stopped = resident.instance.ended().is_some()
            || resident.instance.is_held()
            || resident.instance.is_cancelling()
            || !resident.instance.has_job(job.key);
        if is_stopped || resident.running.iter().any(|running| running.job == job.key) {
            self.mark_dirty(instance);
            return;
        }
        let Some(activity) = self.shared.activities.get(&job.job_type).cloned() else {
            return;
        };
        self.next_run += 1;
        let run = self.next_run;
        let (stopper, stop) = Stopper::new();
        let element_id = job.element_id.clone();
        let key = job.key;
        let context = ActivityContext {
            job: key,
            instance,
            tenant: resident.row.tenant.clone(),
            job_type: job.job_type,
            element_id: job.element_id,
            headers: job.headers,
            variables: job.variables,
            retries: job.retries,
            stop,
        };
        let is_quick = activity.is_quick();
        let begun = std::panic::catch_unwind(AssertUnwindSafe(|| {
            let mut future = activity.run(context);
            if is_quick {
                let mut idle = std::task::Context::from_waker(std::task::Waker::noop());
                if let std::task::Poll::Ready(result) = future.as_mut().poll(&mut idle) {
                    return Ok(result);
                }
            }
            Err(future)
        }));
        match begun {
            Ok(Ok(result)) => self.job_done(instance, key, result),
            Ok(Err(future)) => {
                let task = self.spawn(instance, key, run, future);
                if let Some(resident) = self.residents.get_mut(&instance) {
                    resident.running.push(Running {
                        job: key,
                        run,
                        element_id,
                        stopper,
                        task: Some(task),
                        stragglers: self.shared.stragglers.clone(),
                    });
                }
                if self.shared.options.commit_policy == CommitPolicy::Cycle {
                    self.mark_dirty(instance);
                }
            }
            Err(panic) => self.quarantine(instance, key, &panic_text(&*panic)),
        }
    }

    fn spawn(
        &self,
        instance: InstanceKey,
        job: ElementInstanceKey,
        run: u64,
        future: ActivityFuture,
    ) -> tokio::task::AbortHandle {
        let inbox = self.inbox.clone();
        let report = Report {
            inbox,
            instance,
            job,
            run,
            is_done: false,
        };
        crate::tasks::spawn_activity(&self.shared.tokio, async move {
            let mut report = report;
            let result = CatchPanic { future }.await;
            report.done(result);
        })
    }

    /// Nobody waits for this activity any more: it is told to stop. Its result will not be taken.
    pub(super) fn let_go(&mut self, instance: InstanceKey, running: Running) {
        running.stopper.stop(Instant::now());
        self.let_go.retain(|other| !other.task.is_finished());
        if let Some(task) = running.task.clone() {
            self.let_go.push(LetGo {
                instance,
                element_id: running.element_id.clone(),
                task,
            });
        }
    }

    pub(super) fn let_go_all(&mut self, resident: &mut Resident) {
        for running in std::mem::take(&mut resident.running) {
            self.let_go(resident.key(), running);
        }
    }

    /// The owner ends: activities that run on are aborted, by name.
    pub(super) fn abandon_all(&mut self) {
        let of_residents = self.residents.iter_mut().flat_map(|(instance, resident)| {
            let running = resident.running.drain(..);
            running.filter_map(|running| {
                Some(LetGo {
                    instance: *instance,
                    element_id: running.element_id.clone(),
                    task: running.task.clone()?,
                })
            })
        });
        let all: Vec<LetGo> = self.let_go.drain(..).chain(of_residents).collect();
        for LetGo {
            instance,
            element_id,
            task,
        } in all
        {
            if !task.is_finished() {
                tracing::warn!(%instance, element = %element_id, "an activity did not stop when told to; it is abandoned");
                task.abort();
            }
        }
    }

    /// A running activity has ended.
    pub(super) fn activity_done(
        &mut self,
        instance: InstanceKey,
        job: ElementInstanceKey,
        run: u64,
        result: ActivityResult,
    ) {
        let Some(resident) = self.residents.get_mut(&instance) else {
            return self.late(instance, job);
        };
        let Some(position) = resident.running.iter().position(|r| r.job == job && r.run == run) else {
            return self.late(instance, job);
        };
        resident.running.swap_remove(position).ended();
        if resident.instance.is_cancelling() {
            tracing::info!(%instance, %job, "an activity of a cancelled instance has stopped; its result is not taken");
            resident.done_in_process.push(job);
            self.end_more(instance);
            self.mark_dirty(instance);
            return;
        }
        self.job_done(instance, job, result);
    }

    fn late(&self, instance: InstanceKey, job: ElementInstanceKey) {
        Counters::add(&self.shared.counters.late_outcomes_refused, 1);
        tracing::warn!(%instance, %job, event = "LateOutcomeRefused", "an activity ended after its cycle was over; its result is not taken");
    }

    fn job_done(&mut self, instance: InstanceKey, job: ElementInstanceKey, result: ActivityResult) {
        let kind = match result {
            Ok(variables) => CommandKind::CompleteJob { job, variables },
            Err(ActivityError::Failed {
                message,
                retries,
                backoff,
            }) => {
                let retry_at = backoff.map(|d| {
                    self.now()
                        .plus_ms(i64::try_from(d.as_millis()).unwrap_or(i64::MAX))
                });
                CommandKind::FailJob {
                    job,
                    message,
                    retries,
                    retry_at,
                }
            }
            Err(ActivityError::Error {
                code,
                message,
                variables,
            }) => CommandKind::ThrowError {
                job,
                code,
                message,
                variables,
            },
            Err(ActivityError::Stopped) => return self.stopped(instance, job),
        };
        if let Some(panic) = panicked(&kind) {
            return self.quarantine(instance, job, &panic);
        }
        let Some(kind) = self.keep_outcome(instance, job, kind) else {
            return;
        };
        if let Some(resident) = self.residents.get_mut(&instance) {
            resident.done_in_process.push(job);
        }
        self.job_command(
            instance,
            Command::new(
                kind,
                Cause::Worker {
                    name: IN_PROCESS.to_owned(),
                },
            ),
        );
    }

    fn job_command(&mut self, instance: InstanceKey, command: Command) {
        if let Err(rejection) = self.advance(instance, command) {
            Counters::add(&self.shared.counters.late_outcomes_refused, 1);
            tracing::warn!(%instance, event = "LateOutcomeRefused", "an activity's result is not taken: {rejection}");
            self.mark_dirty(instance);
        }
    }

    /// An activity stopped. If it was told to, its work stays in the instance.
    fn stopped(&mut self, instance: InstanceKey, job: ElementInstanceKey) {
        if self.cut.is_some() {
            self.hold_back(instance, job);
            return;
        }
        let message = "the activity says that it was stopped, and nobody told it to".to_owned();
        let kind = CommandKind::FailJob {
            job,
            message,
            retries: None,
            retry_at: None,
        };
        if let Some(resident) = self.residents.get_mut(&instance) {
            resident.done_in_process.push(job);
        }
        self.job_command(
            instance,
            Command::new(
                kind,
                Cause::Worker {
                    name: IN_PROCESS.to_owned(),
                },
            ),
        );
    }

    /// The task of an activity is gone: the work is still to be done, by whoever resumes the instance.
    pub(super) fn activity_gone(&mut self, instance: InstanceKey, job: ElementInstanceKey, run: u64) {
        let Some(resident) = self.residents.get_mut(&instance) else {
            return;
        };
        let Some(position) = resident.running.iter().position(|r| r.job == job && r.run == run) else {
            return;
        };
        resident.running.swap_remove(position).ended();
        if resident.instance.is_cancelling() {
            resident.done_in_process.push(job);
            self.end_more(instance);
            self.mark_dirty(instance);
            return;
        }
        if resident.instance.is_held() {
            // The work stays in the instance, and begins when it is let go.
            self.note_interrupted(instance, &[job]);
            self.mark_dirty(instance);
            return;
        }
        self.hold_back(instance, job);
    }

    fn hold_back(&mut self, instance: InstanceKey, begun: ElementInstanceKey) {
        if let Some(resident) = self.residents.get_mut(&instance) {
            resident.held_back += 1;
            resident.begun.push(begun);
        }
    }

    /// An activity panicked: only its own instance is hurt.
    fn quarantine(&mut self, instance: InstanceKey, job: ElementInstanceKey, text: &str) {
        tracing::error!(%instance, %job, "an activity panicked: {text}");
        if let Some(resident) = self.residents.get_mut(&instance) {
            resident.done_in_process.push(job);
        }
        let message = format!("the activity panicked: {text}; mend its handler, then retry the incident");
        Counters::add(&self.shared.counters.quarantined, 1);
        let kind = CommandKind::QuarantineJob { job, message };
        self.job_command(instance, Command::new(kind, Cause::Engine));
    }

    /// Puts the least recently used residents out of memory while there are too many.
    pub(super) fn evict(&mut self) {
        let budget = self.shared.options.cache_bytes / self.owners.count();
        while self.cache_bytes > budget {
            let Some((_, key)) = self.idle.pop_first() else {
                return;
            };
            if let Some(resident) = self.residents.remove(&key) {
                self.cache_bytes = self.cache_bytes.saturating_sub(resident.counted_bytes);
            }
        }
    }

    /// Called whenever a resident may have come to rest with everything told: ends its cycle.
    pub(super) fn rest_if_settled(&mut self, key: InstanceKey) {
        let Some(resident) = self.residents.get_mut(&key) else {
            return;
        };
        if !resident.is_settled() {
            return;
        }
        if resident.instance.ended().is_some() {
            self.end_cycle(key);
            let Some(resident) = self.residents.get_mut(&key) else {
                return;
            };
            if let Some(since) = resident.idle_since.take() {
                self.idle.remove(&since);
                self.cache_bytes = self.cache_bytes.saturating_sub(resident.counted_bytes);
            }
            self.residents.remove(&key);
            return;
        }
        if resident.idle_since.is_none() {
            self.uses += 1;
            resident.counted_bytes = resident.bytes();
            resident.idle_since = Some(self.uses);
            self.cache_bytes += resident.counted_bytes;
            self.idle.insert(self.uses, key);
        }
        self.end_cycle(key);
    }

    /// Ends a cycle that has come to rest. In a drain that is a line in its report.
    fn end_cycle(&mut self, key: InstanceKey) {
        let Some(resident) = self.residents.get_mut(&key) else {
            return;
        };
        if resident.cycle.is_some() && self.shared.gate.read().is_draining() {
            self.shared
                .rested(super::cut::line_of(resident, crate::status::Fate::Rested));
        }
        resident.cycle = None;
    }
}

/// Tells the owner about an activity's end, also when its task is aborted.
struct Report {
    inbox: Arc<super::Inbox>,
    instance: InstanceKey,
    job: ElementInstanceKey,
    run: u64,
    is_done: bool,
}

impl Report {
    fn done(&mut self, result: ActivityResult) {
        self.is_done = true;
        let Self {
            instance, job, run, ..
        } = *self;
        self.inbox.push(Message::ActivityDone {
            instance,
            job,
            run,
            result,
        });
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        if !self.is_done {
            self.inbox
                .push(Message::ActivityGone(self.instance, self.job, self.run));
        }
    }
}

/// Turns a panic of an activity into a failure that [`panicked`] knows.
struct CatchPanic {
    future: ActivityFuture,
}

const PANIC_MARK: &str = "\u{0}panic\u{0}";

impl Future for CatchPanic {
    type Output = ActivityResult;

    fn poll(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<ActivityResult> {
        let future = &mut self.future;
        match std::panic::catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
            Ok(poll) => poll,
            Err(panic) => std::task::Poll::Ready(Err(ActivityError::failed(format!(
                "{PANIC_MARK}{}",
                panic_text(&*panic)
            )))),
        }
    }
}

fn panicked(kind: &CommandKind) -> Option<String> {
    match kind {
        CommandKind::FailJob { message, .. } => message.strip_prefix(PANIC_MARK).map(str::to_owned),
        _ => None,
    }
}
