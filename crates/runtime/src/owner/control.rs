//! Control commands, which need no permit; recovery, which does; and who waits for the end.

use tidegate_model::effect::Job;
use tidegate_model::{Cause, Command, CommandKind, Effect, ElementInstanceKey, InstanceKey, SubStatus};
use tidegate_store::{AuditRow, InstanceRow};
use tokio::sync::oneshot;

use crate::api::Started;
use crate::error::Error;
use crate::shared::Counters;

use super::commit::{Answer, started};
use super::resident::Resident;
use super::{Owner, Reply};

/// The source under which recovered instances run.
const RECOVERY: &str = "recovery";

/// How an instance comes back whose cycle did not end by itself.
#[derive(Debug, Clone, Copy)]
enum Entry {
    /// A drain cut it, and its mark says so.
    Interrupted,
    /// The process went away.
    Crashed {
        /// How many times in a row.
        attempt: u32,
    },
    /// A commit failed, and it goes on from what is stored.
    Unsaved,
}

impl Owner {
    /// Ends or changes what is there; starts nothing. Answers with the row after the commit, which holds an audit
    /// entry too.
    pub(super) fn control(
        &mut self,
        key: InstanceKey,
        command: Command,
        audit: Option<Box<AuditRow>>,
        reply: Reply<InstanceRow>,
    ) {
        let answer = match self.load(key) {
            Ok(true) => None,
            Ok(false) => Some(Err(Error::NoSuchInstance(key))),
            Err(error) => Some(Err(error)),
        };
        if let Some(answer) = answer {
            // Whoever asked may have gone.
            let _ = reply.send(answer);
            return;
        }
        let before = self.residents.get(&key).map(|resident| resident.row.sub_status);
        match self.advance(key, command) {
            Ok(()) => {
                if let Some(resident) = self.residents.get_mut(&key) {
                    if let Some(mut audit) = audit {
                        audit.before = before.map(|before| before.word().to_owned());
                        audit.after = Some(resident.sub_status(false).word().to_owned());
                        resident.take_along(*audit);
                    }
                    resident.answers.push(Answer::Row(reply));
                }
            }
            Err(rejection) => {
                let _ = reply.send(Err(rejection.into()));
                self.rest_if_settled(key);
            }
        }
    }

    /// Brings back an instance that an earlier generation left `interrupted` or `executing`.
    pub(super) fn recover(&mut self, row: InstanceRow, done: oneshot::Sender<bool>) {
        if row.sub_status == SubStatus::Cancelling {
            self.resume_cancel(row.key);
            // Whoever asked may have gone.
            let _ = done.send(true);
            return;
        }
        self.enter(row.key, done);
    }

    /// A cycle takes up what the store says was under way, whoever woke it: jobs of this process start again, and what a
    /// crash left is recorded.
    pub(super) fn take_up(&mut self, key: InstanceKey) {
        let Some(resident) = self.residents.get_mut(&key) else {
            return;
        };
        let Some(left) = resident.left.take() else { return };
        if resident.instance.is_cancelling() {
            // Nothing of it begins.
            return;
        }
        let attempt = resident.row.attempts + 1;
        let entry = self.entry_of(key, left, attempt);
        // Looked at before anything more is decided: what that asks for is among the effects already.
        let jobs = self.unreported_jobs(key);
        let begun = self.maybe_begun(&jobs);
        match entry {
            // The cut has said which of them had begun.
            Entry::Interrupted => Counters::add(&self.shared.counters.interrupted_recovered, 1),
            Entry::Crashed { attempt } => {
                Counters::add(&self.shared.counters.crash_recovered, 1);
                self.recovering.insert(key);
                self.recover_crashed(key, attempt);
                self.note_interrupted(key, &begun);
            }
            Entry::Unsaved => self.note_interrupted(key, &begun),
        }
        self.resume_interrupted(key, entry);
        let is_ours: Vec<Job> = jobs
            .into_iter()
            .filter(|job| {
                // Everything else has a row, committed with the events that asked for it.
                let has_row = || matches!(self.shared.store.job(job.key), Ok(Some(_)) | Err(_));
                self.is_in_process(job) || !has_row()
            })
            .collect();
        if let Some(resident) = self.residents.get_mut(&key) {
            let running = &resident.running;
            let is_open = |job: &Job| {
                resident.instance.has_job(job.key) && !running.iter().any(|running| running.job == job.key)
            };
            let open = is_ours.into_iter().filter(is_open).map(Effect::RunJob);
            resident.effects.extend(open);
        }
        self.mark_dirty(key);
        if attempt > self.shared.options.quarantine_after && matches!(entry, Entry::Crashed { .. }) {
            self.quarantine_all(key, attempt);
        }
    }

    fn entry_of(&self, key: InstanceKey, left: SubStatus, attempt: u32) -> Entry {
        match left {
            SubStatus::Interrupted => Entry::Interrupted,
            // A commit of this generation failed: no crash.
            _ if self.dropped.contains(&key) => Entry::Unsaved,
            _ => Entry::Crashed { attempt },
        }
    }

    /// Nothing of a held instance goes on before it is let go; only what happened to it is recorded.
    fn recover_held(&mut self, key: InstanceKey) {
        if !matches!(self.load(key), Ok(true)) {
            return;
        }
        let Some(resident) = self.residents.get_mut(&key) else {
            return;
        };
        let attempt = resident.row.attempts + 1;
        if let Some(left) = resident.left.take() {
            let begun = self.maybe_begun(&self.unreported_jobs(key));
            match self.entry_of(key, left, attempt) {
                Entry::Interrupted => {}
                Entry::Crashed { attempt } => {
                    Counters::add(&self.shared.counters.crash_recovered, 1);
                    self.recover_crashed(key, attempt);
                    self.note_interrupted(key, &begun);
                }
                Entry::Unsaved => self.note_interrupted(key, &begun),
            }
        }
        self.mark_dirty(key);
    }

    /// Records that an instance was found executing after a crash.
    fn recover_crashed(&mut self, key: InstanceKey, attempt: u32) {
        let generation = self.shared.generation.to_string();
        let kind = CommandKind::RecoverCrashed { generation, attempt };
        match self.advance(key, Command::new(kind, Cause::CrashRecovery)) {
            Ok(()) => {
                if let Some(resident) = self.residents.get_mut(&key) {
                    resident.row.attempts = attempt;
                }
            }
            Err(rejection) => {
                tracing::warn!(instance = %key, "a crash could not be recorded: {rejection}");
            }
        }
    }

    /// Goes on with an instance from what is stored, with what should be under way. Answers false if the gate
    /// is closed.
    pub(super) fn enter(&mut self, key: InstanceKey, done: oneshot::Sender<bool>) {
        if self
            .residents
            .get(&key)
            .is_some_and(|resident| resident.cycle.is_some())
        {
            // It runs already.
            let _ = done.send(true);
            return;
        }
        match self.join_cycle(key, Some(RECOVERY)) {
            Ok(true) => {}
            Ok(false) => {
                let _ = done.send(false);
                return;
            }
            Err(Error::PartPaused(_)) => {
                // It is nobody else's business: recovery goes on, and this one follows when its part is resumed.
                self.held_recoveries.push(key);
                let _ = done.send(true);
                return;
            }
            Err(Error::InstanceHeld(_)) => {
                self.recover_held(key);
                let _ = done.send(true);
                return;
            }
            Err(error) => {
                tracing::error!(instance = %key, "an instance could not be recovered, trying again: {error}");
                self.stall(key);
                let _ = done.send(true);
                return;
            }
        }
        if let Some(resident) = self.residents.get_mut(&key) {
            resident.answers.push(Answer::Recovered(done));
        }
        self.mark_dirty(key);
    }

    /// The open jobs of an instance of which no outcome waits in the queue.
    fn unreported_jobs(&self, key: InstanceKey) -> Vec<Job> {
        let reported = self.reported_jobs(key);
        let mut jobs = self.outstanding_jobs(key);
        jobs.retain(|job| !reported.contains(&job.key));
        jobs
    }

    fn outstanding_jobs(&self, key: InstanceKey) -> Vec<Job> {
        let Some(resident) = self.residents.get(&key) else {
            return Vec::new();
        };
        let outstanding = tidegate_engine::outstanding(&resident.loaded.definition, &resident.instance);
        let jobs = outstanding.into_iter().filter_map(|effect| match effect {
            Effect::RunJob(job) => Some(job),
            _ => None,
        });
        jobs.collect()
    }

    /// The open jobs of an instance whose handlers may have begun, and nobody knows.
    pub(super) fn jobs_in_process(&self, key: InstanceKey) -> Vec<ElementInstanceKey> {
        self.maybe_begun(&self.outstanding_jobs(key))
    }

    fn maybe_begun(&self, jobs: &[Job]) -> Vec<ElementInstanceKey> {
        let now = self.now();
        let begun = jobs
            .iter()
            .filter(|job| self.is_in_process(job) && job.not_before.is_none_or(|at| at <= now));
        begun.map(|job| job.key).collect()
    }

    /// True if a handler of this process does the job.
    fn is_in_process(&self, job: &Job) -> bool {
        self.shared.activities.get(&job.job_type).is_some()
    }

    /// Records of these jobs that their work was interrupted, where the model has more to say about that than that they
    /// are done again.
    pub(super) fn note_interrupted(&mut self, key: InstanceKey, begun: &[ElementInstanceKey]) {
        for job in begun {
            let Some(resident) = self.residents.get(&key) else {
                return;
            };
            if !resident
                .instance
                .is_unsafe_to_rerun(&resident.loaded.definition, *job)
            {
                continue;
            }
            let kind = CommandKind::InterruptJob { job: *job };
            if let Err(rejection) = self.advance(key, Command::new(kind, Cause::Engine)) {
                tracing::warn!(instance = %key, %job, "an interrupted activity could not be recorded: {rejection}");
            }
        }
    }

    /// What the model says about work that was interrupted happens now.
    fn resume_interrupted(&mut self, key: InstanceKey, entry: Entry) {
        let waits = |resident: &Resident| resident.instance.has_interrupted_jobs();
        if !self.residents.get(&key).is_some_and(waits) {
            return;
        }
        let cause = match entry {
            Entry::Interrupted | Entry::Unsaved => Cause::Recovery,
            Entry::Crashed { .. } => Cause::CrashRecovery,
        };
        if let Err(rejection) = self.advance(key, Command::new(CommandKind::ResumeInterrupted, cause)) {
            tracing::warn!(instance = %key, "what was interrupted could not be decided: {rejection}");
        }
    }

    /// What kills the process again and again is put aside: its activities become incidents.
    fn quarantine_all(&mut self, key: InstanceKey, attempt: u32) {
        let Some(resident) = self.residents.get_mut(&key) else {
            return;
        };
        let jobs: Vec<_> = resident
            .effects
            .iter()
            .filter_map(|effect| match effect {
                Effect::RunJob(job) => Some(job.key),
                _ => None,
            })
            .collect();
        tracing::error!(instance = %key, attempt, "an instance was executing at {attempt} crashes in a row; its activities become incidents");
        for job in jobs {
            let message = format!(
                "this activity was under way at {attempt} crashes of the process in a row; find out whether it \
                 causes them, then retry the incident"
            );
            Counters::add(&self.shared.counters.quarantined, 1);
            let kind = CommandKind::QuarantineJob { job, message };
            if let Err(rejection) = self.advance(key, Command::new(kind, Cause::CrashRecovery)) {
                tracing::warn!(instance = %key, "an activity could not be put aside: {rejection}");
            }
        }
    }

    /// Answers when the instance has ended, at once if it has.
    pub(super) fn await_end(&mut self, key: InstanceKey, reply: Reply<Started>) {
        if let Some(resident) = self.residents.get(&key) {
            if resident.row.sub_status.is_finished() && resident.is_settled() {
                let variables = resident.instance.variables().clone();
                let _ = reply.send(Ok(started(&resident.row, Some(variables))));
            } else {
                self.wait_for_end(key, reply);
            }
            return;
        }
        let answer = match self.shared.store.instance(key) {
            Ok(None) => Err(Error::NoSuchInstance(key)),
            Ok(Some(row)) if row.sub_status.is_finished() => match self.load(key) {
                Ok(_) => {
                    let variables = self.residents.get(&key).map(|r| r.instance.variables().clone());
                    self.rest_if_settled(key);
                    Ok(started(&row, variables))
                }
                Err(error) => Err(error),
            },
            Ok(Some(_)) => return self.wait_for_end(key, reply),
            Err(error) => Err(error.into()),
        };
        let _ = reply.send(answer);
    }

    fn wait_for_end(&mut self, key: InstanceKey, reply: Reply<Started>) {
        /// From here on, those who have given up are looked for before one more is taken in.
        const MANY: usize = 10_000;
        if self.awaiting_end.len() >= MANY {
            self.awaiting_end.retain(|_, waiting| {
                waiting.retain(|reply| !reply.is_closed());
                !waiting.is_empty()
            });
        }
        let waiting = self.awaiting_end.entry(key).or_default();
        waiting.retain(|reply| !reply.is_closed());
        waiting.push(reply);
    }
}
