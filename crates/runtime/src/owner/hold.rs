//! Holding an instance and letting it go: control commits, which need no permit. What they cause in the instances it calls
//! is a stimulus that stands in the queue with the commit.

use tidegate_model::stimulus::JobOutcome;
use tidegate_model::{
    Cause, Command, CommandKind, Effect, ElementInstanceKey, Hold, InstanceKey, Interruption,
    InterruptionReason, Rejection, Stimulus, SubStatus,
};
use tidegate_store::{AuditRow, InstanceRow, TimerRow, Write};

use crate::error::Error;

use super::commit::Answer;
use super::pending::Domain;
use super::start::stimulus_row;
use super::{Owner, Reply};

/// A hold to put on an instance.
pub(crate) struct HoldOrder {
    pub(crate) instance: InstanceKey,
    pub(crate) hold: Hold,
    /// Cut what runs in the instance, instead of waiting until it rests.
    pub(crate) now: bool,
    /// The entry for an effective change; none if whoever asks has one of its own.
    pub(crate) audit: Option<AuditRow>,
}

/// An instance to let go.
pub(crate) struct ReleaseOrder {
    pub(crate) instance: InstanceKey,
    pub(crate) cause: Cause,
    pub(crate) audit: Option<AuditRow>,
}

impl Owner {
    /// An operator suspends an instance. Answers with the row behind the commit.
    pub(super) fn hold(&mut self, mut order: HoldOrder, reply: Reply<InstanceRow>) {
        let key = order.instance;
        let Some(reply) = self.loaded_for_control(key, reply) else {
            return;
        };
        let Some(resident) = self.residents.get(&key) else {
            return;
        };
        let own = resident.instance.holds().iter().find(|hold| hold.origin == key);
        let stands = own.is_some_and(|own| own.scope == order.hold.scope && own.timers == order.hold.timers);
        if let Some(own) = own {
            // The first reason, author and time stay; only how far it reaches changes.
            let (scope, timers) = (order.hold.scope, order.hold.timers);
            order.hold = Hold {
                scope,
                timers,
                ..own.clone()
            };
        }
        let before = resident.row.sub_status;
        let mut changes = !stands;
        if order.now {
            changes |= self.cut_one(key, order.audit.as_ref().and_then(|audit| audit.reason.clone()));
        }
        if !stands && let Err(rejection) = self.put_on_hold(key, order.hold) {
            let _ = reply.send(Err(rejection.into()));
            self.rest_if_settled(key);
            return;
        }
        let Some(resident) = self.residents.get_mut(&key) else {
            return;
        };
        resident.answers.push(Answer::Row(reply));
        if changes && let Some(mut audit) = order.audit {
            audit.before = Some(before.word().to_owned());
            audit.after = Some("held".to_owned());
            resident.take_along(audit);
        }
        self.mark_dirty(key);
    }

    /// Puts a hold on an instance in memory: its timers leave the scan, its jobs are offered to nobody.
    pub(super) fn put_on_hold(&mut self, key: InstanceKey, hold: Hold) -> Result<(), Rejection> {
        let cause = Cause::Operator {
            actor: hold.actor.clone(),
            reason: hold.reason.clone(),
        };
        let was_held = self.residents.get(&key).is_some_and(|r| r.instance.is_held());
        self.advance(key, Command::new(CommandKind::Hold(Box::new(hold)), cause))?;
        self.shared.held.lock().insert(key);
        let Some(resident) = self.residents.get_mut(&key) else {
            return Ok(());
        };
        if was_held {
            return Ok(());
        }
        for effect in tidegate_engine::outstanding(&resident.loaded.definition, &resident.instance) {
            match effect {
                Effect::ArmTimer(timer) => resident.riders.push(Write::DisarmTimer {
                    owner: timer.owner.get(),
                    element: timer.element,
                }),
                // It has no row; its back-off has a timer's.
                Effect::RunJob(job) if self.shared.activities.get(&job.job_type).is_some() => {
                    resident.riders.push(Write::DisarmTimer {
                        owner: job.key.get(),
                        element: job.element,
                    });
                }
                Effect::RunJob(job) => resident.riders.push(Write::WithholdJob(job.key)),
                _ => {}
            }
        }
        Ok(())
    }

    /// Cuts what runs in one instance, like an interruption: no retry is used up, the work stays in the instance, and a
    /// late result is refused. False if nothing runs.
    fn cut_one(&mut self, key: InstanceKey, reason_text: Option<String>) -> bool {
        let Some(resident) = self.residents.get_mut(&key) else {
            return false;
        };
        if resident.running.is_empty() {
            return false;
        }
        let line = super::cut::line_of(resident, crate::status::Fate::Interrupted);
        let begun: Vec<_> = resident.running.iter().map(|running| running.job).collect();
        for running in resident.running.drain(..) {
            tracing::info!(instance = %key, element = %running.element_id, "an activity is stopped because its instance is held at once; its result will not be taken");
            running.stopper.stop(tokio::time::Instant::now());
            if let Some(task) = &running.task {
                task.abort();
            }
        }
        let Some(resident) = self.residents.get(&key) else {
            return false;
        };
        let record: Interruption =
            self.interruption(resident, InterruptionReason::OperatorForce, reason_text, &line);
        let command = Command::new(CommandKind::Interrupt(Box::new(record)), Cause::Force);
        if let Err(rejection) = self.advance(key, command) {
            tracing::error!(instance = %key, "the cut of a held instance could not be recorded: {rejection}");
        }
        self.note_interrupted(key, &begun);
        true
    }

    /// The outcome of a handler of a held instance is kept, and its consequence waits: it goes into the queue. Gives the
    /// command back if the instance is not held.
    pub(super) fn keep_outcome(
        &mut self,
        key: InstanceKey,
        job: ElementInstanceKey,
        kind: CommandKind,
    ) -> Option<CommandKind> {
        let resident = self.residents.get_mut(&key)?;
        if !resident.instance.is_held() {
            return Some(kind);
        }
        let now = self.shared.now();
        let outcome = match kind {
            CommandKind::CompleteJob { variables, .. } => JobOutcome::Complete { variables },
            CommandKind::FailJob {
                message,
                retries,
                retry_at,
                ..
            } => JobOutcome::Fail {
                message,
                retries,
                retry_at,
            },
            CommandKind::ThrowError {
                code,
                message,
                variables,
                ..
            } => JobOutcome::Error {
                code,
                message,
                variables,
            },
            other => return Some(other),
        };
        let stimulus = Stimulus::JobOutcome {
            instance: key,
            job,
            outcome,
            worker: super::work::IN_PROCESS.to_owned(),
        };
        let domain = Domain::Instance(key);
        resident.kept_jobs.push(job);
        resident.kept.push(stimulus_row(&domain, None, &stimulus, now));
        self.mark_dirty(key);
        None
    }

    /// The in-process jobs that have an outcome already, which waits for its turn.
    pub(super) fn reported_jobs(&self, key: InstanceKey) -> Vec<ElementInstanceKey> {
        let mut jobs = self.pending.reported_jobs(&Domain::Instance(key));
        if let Some(resident) = self.residents.get(&key) {
            jobs.extend(&resident.kept_jobs);
        }
        jobs
    }

    /// An operator lets an instance go.
    pub(super) fn release(&mut self, order: ReleaseOrder, reply: Reply<InstanceRow>) {
        let key = order.instance;
        let Some(reply) = self.loaded_for_control(key, reply) else {
            return;
        };
        let is_held = self.residents.get(&key).is_some_and(|r| r.instance.is_held());
        if is_held && let Err(rejection) = self.end_holds(key, Vec::new(), order.cause) {
            let _ = reply.send(Err(rejection.into()));
            self.rest_if_settled(key);
            return;
        }
        let Some(resident) = self.residents.get_mut(&key) else {
            return;
        };
        resident.answers.push(Answer::Row(reply));
        if is_held && let Some(mut audit) = order.audit {
            audit.before = Some("held".to_owned());
            let after = if resident.instance.is_held() {
                "held"
            } else {
                "released"
            };
            audit.after = Some(after.to_owned());
            resident.take_along(audit);
        }
        self.mark_dirty(key);
    }

    /// Ends holds of an instance in memory; behind the last one it goes on.
    pub(super) fn end_holds(
        &mut self,
        key: InstanceKey,
        origins: Vec<InstanceKey>,
        cause: Cause,
    ) -> Result<(), Rejection> {
        let was_held = self.residents.get(&key).is_some_and(|r| r.instance.is_held());
        self.advance(key, Command::new(CommandKind::Release { origins }, cause))?;
        let is_held = self.residents.get(&key).is_some_and(|r| r.instance.is_held());
        if was_held && !is_held {
            self.set_going(key);
        }
        Ok(())
    }

    /// What should be under way is: timers are armed again, jobs offered again, and what was accepted meanwhile takes its
    /// turn. What needs a permit and gets none is interrupted, and resumes by itself.
    fn set_going(&mut self, key: InstanceKey) {
        self.shared.held.lock().remove(&key);
        let now = self.now();
        let reported = self.reported_jobs(key);
        let mut due = Vec::new();
        let mut has_work = false;
        let Some(resident) = self.residents.get_mut(&key) else {
            return;
        };
        let is_on_its_way = resident.in_flight > 0;
        for effect in tidegate_engine::outstanding(&resident.loaded.definition, &resident.instance) {
            match effect {
                Effect::ArmTimer(timer) => {
                    if timer.due_at <= now {
                        due.push(TimerRow {
                            due_at: timer.due_at,
                            owner: timer.owner.get(),
                            element: timer.element,
                            instance: Some(key),
                            fired: 0,
                        });
                    }
                    resident.effects.push(Effect::ArmTimer(timer));
                }
                Effect::RunJob(job) if self.shared.activities.get(&job.job_type).is_some() => {
                    has_work |= !reported.contains(&job.key)
                        && !resident.running.iter().any(|running| running.job == job.key);
                }
                Effect::RunJob(job) => {
                    let is_asked =
                        |effect: &Effect| matches!(effect, Effect::RunJob(other) if other.key == job.key);
                    let is_known = is_on_its_way
                        || resident.effects.iter().any(is_asked)
                        || matches!(self.shared.store.job(job.key), Ok(Some(_)) | Err(_));
                    if is_known {
                        resident.riders.push(Write::OfferJob(job.key));
                        resident.offered.push(job.job_type);
                    } else {
                        resident.effects.push(Effect::RunJob(job));
                    }
                }
                _ => {}
            }
        }
        if has_work {
            resident.left = Some(SubStatus::Interrupted);
            if resident.cycle.is_some() {
                self.take_up(key);
            } else {
                match self.join_cycle(key, None) {
                    Ok(true) => {}
                    Ok(false) | Err(_) => self.held_recoveries.push(key),
                }
            }
        }
        // In the order of their due times, together with what was accepted.
        self.pending.add_timers(due);
        self.pending.unpark_domain(&Domain::Instance(key));
        self.mark_dirty(key);
    }

    /// Loads an instance that is to be held, let go or cancelled. Where it is not there, or has ended, the answer is sent.
    fn loaded_for_control(
        &mut self,
        key: InstanceKey,
        reply: Reply<InstanceRow>,
    ) -> Option<Reply<InstanceRow>> {
        let refusal = match self.load(key) {
            Ok(true) => self.residents.get(&key).and_then(|resident| {
                let ended = resident.instance.ended().map(Rejection::Ended);
                let cancelling = resident.instance.is_cancelling().then_some(Rejection::Cancelling);
                ended.or(cancelling).map(Error::from)
            }),
            Ok(false) => Some(Error::NoSuchInstance(key)),
            Err(error) => Some(error),
        };
        match refusal {
            None => Some(reply),
            Some(refusal) => {
                // Whoever asked may have gone.
                let _ = reply.send(Err(refusal));
                self.rest_if_settled(key);
                None
            }
        }
    }
}
