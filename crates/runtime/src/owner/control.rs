//! Control commands, which need no permit; recovery, which does; and who waits for the end.

use tidegate_model::{Command, CommandKind, Effect, InstanceKey, SubStatus};
use tidegate_store::InstanceRow;
use tokio::sync::oneshot;

use crate::api::Started;
use crate::error::Error;
use crate::shared::Counters;

use super::commit::{Answer, started};
use super::{Owner, Reply};

/// The source under which recovered instances run.
const RECOVERY: &str = "recovery";

impl Owner {
    /// Ends or changes what is there; starts nothing. Answers with the row after the commit.
    pub(super) fn control(&mut self, key: InstanceKey, command: Command, reply: Reply<InstanceRow>) {
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
        match self.advance(key, command) {
            Ok(()) => {
                if let Some(resident) = self.residents.get_mut(&key) {
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
        let key = row.key;
        if row.sub_status == SubStatus::Cancelling {
            self.resume_cancel(key);
            // Whoever asked may have gone.
            let _ = done.send(true);
            return;
        }
        let crashed = row.sub_status == SubStatus::Executing;
        if !self.enter(key, done) {
            return;
        }
        if !crashed {
            Counters::add(&self.shared.counters.interrupted_recovered, 1);
            return;
        }
        Counters::add(&self.shared.counters.crash_recovered, 1);
        let attempt = row.attempts + 1;
        let generation = self.shared.generation.to_string();
        let kind = CommandKind::RecoverCrashed { generation, attempt };
        if self
            .advance(key, Command::new(kind, tidegate_model::Cause::CrashRecovery))
            .is_err()
        {
            return;
        }
        if let Some(resident) = self.residents.get_mut(&key) {
            resident.row.attempts = attempt;
        }
        if attempt > self.shared.options.quarantine_after {
            self.quarantine_all(key, attempt);
        }
    }

    /// A gate was opened behind which an instance waited for its recovery.
    pub(super) fn recover_again(&mut self, key: InstanceKey) {
        let (done, _) = oneshot::channel();
        match self.shared.store.instance(key) {
            Ok(Some(row)) if !self.shared.gate.read().is_accepting() && !row.sub_status.is_finished() => {
                self.held_recoveries.push(key);
            }
            Ok(Some(row)) => match row.sub_status {
                SubStatus::Executing | SubStatus::Interrupted | SubStatus::Cancelling => {
                    self.recover(row, done)
                }
                _ => {}
            },
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(instance = %key, "an instance has to wait for its recovery: {error}");
                self.held_recoveries.push(key);
            }
        }
    }

    /// Goes on with an instance from what is stored, with what should be under way. Answers false if the gate
    /// is closed.
    pub(super) fn enter(&mut self, key: InstanceKey, done: oneshot::Sender<bool>) -> bool {
        if self
            .residents
            .get(&key)
            .is_some_and(|resident| resident.cycle.is_some())
        {
            // It runs already.
            let _ = done.send(true);
            return false;
        }
        match self.join_cycle(key, Some(RECOVERY)) {
            Ok(true) => {}
            Ok(false) => {
                let _ = done.send(false);
                return false;
            }
            Err(Error::PartPaused(_)) => {
                // It is nobody else's business: recovery goes on, and this one follows when its part is resumed.
                self.held_recoveries.push(key);
                let _ = done.send(true);
                return false;
            }
            Err(Error::InstanceHeld(_)) => {
                // Nothing of it goes on before it is let go; only that is written where it is not yet.
                let is_loaded = self.load(key).unwrap_or(false);
                self.mark_dirty(key);
                let _ = done.send(true);
                return is_loaded;
            }
            Err(error) => {
                tracing::error!(instance = %key, "an instance could not be recovered: {error}");
                let _ = done.send(true);
                return false;
            }
        }
        let reported = self.reported_jobs(key);
        let Some(resident) = self.residents.get_mut(&key) else {
            return false;
        };
        for effect in tidegate_engine::outstanding(&resident.loaded.definition, &resident.instance) {
            // Everything else has a row, committed with the events that asked for it.
            if let Effect::RunJob(job) = effect {
                if reported.contains(&job.key) {
                    continue;
                }
                let is_ours = self.shared.activities.get(&job.job_type).is_some();
                let has_row = || matches!(self.shared.store.job(job.key), Ok(Some(_)) | Err(_));
                if is_ours || !has_row() {
                    resident.effects.push(Effect::RunJob(job));
                }
            }
        }
        resident.answers.push(Answer::Recovered(done));
        self.mark_dirty(key);
        true
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
            let kind = CommandKind::QuarantineJob { job, message };
            if let Err(rejection) =
                self.advance(key, Command::new(kind, tidegate_model::Cause::CrashRecovery))
            {
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
