//! What each write does. Nothing here can fail: `check` has looked before.

use std::collections::BTreeSet;
use std::sync::Arc;

use tidegate_model::{
    Cause, ElementIndex, ElementInstanceKey, InstanceKey, MessageKey, StimulusKey, Timestamp, Variables,
};

use super::failed;
use super::tables::{Buffered, Instance, Tables, Value};
use crate::commit::{Commit, CommitResult, Delivery, Outcome, Write};
use crate::error::{Error, ErrorKind};
use crate::matching::{delivery, signal_delivery, signal_variables, variables_of};
use crate::row::{
    Awaited, InstanceUpdate, JobRow, JobState, LeaseRequest, MessageRow, StimulusRow, SubscriptionRow,
    TimerRow,
};

impl Tables {
    pub fn run(&mut self, epoch: u64, key_high: u64, commits: Vec<Commit>) -> Vec<CommitResult> {
        if epoch != self.epoch {
            let fenced = || {
                let message = format!(
                    "epoch {epoch} is fenced: the store was activated again as epoch {}",
                    self.epoch
                );
                Err(failed(Error::new(ErrorKind::Fenced, message)))
            };
            return commits.iter().map(|_| fenced()).collect();
        }
        self.key_high = self.key_high.max(key_high);
        commits.into_iter().map(|commit| self.run_one(commit)).collect()
    }

    fn run_one(&mut self, commit: Commit) -> CommitResult {
        self.check(&commit)?;
        let mut outcome = Outcome::default();
        for write in commit.writes {
            self.apply(write, &mut outcome);
        }
        Ok(outcome)
    }

    fn apply(&mut self, write: Write, outcome: &mut Outcome) {
        match write {
            Write::CreateInstance { row, state } => {
                let state_revision = if state.is_some() { row.revision } else { 0 };
                self.instances.insert(
                    row.key,
                    Instance {
                        row: *row,
                        state,
                        state_revision,
                        trimmed: 0,
                    },
                );
            }
            Write::UpdateInstance(update) => self.update_instance(update),
            Write::ChangeDefinition {
                instance,
                definition,
                version,
            } => {
                if let Some(instance) = self.instances.get_mut(&instance) {
                    instance.row.definition = definition;
                    instance.row.version = version;
                }
            }
            Write::Journal(row) => {
                self.journal.insert((row.instance, row.revision), row);
            }
            Write::ArmTimer(row) => self.arm_timer(row),
            Write::DisarmTimer { owner, element } => self.disarm_timer(owner, element),
            Write::Subscribe { row, now } => self.subscribe(row, now, outcome),
            Write::Unsubscribe { owner, element } => self.unsubscribe(owner, element),
            Write::Publish { row, has_taker, now } => self.publish(row, has_taker, now, outcome),
            Write::Broadcast {
                tenant,
                name,
                variables,
                except,
                from,
                now,
            } => {
                self.broadcast(&tenant, &name, &variables, (except, from.as_ref()), now, outcome);
            }
            Write::ExpireMessages { now, limit } => self.expire(now, limit, outcome),
            Write::OpenJob(row) => {
                self.jobs.insert(row.key, *row);
            }
            Write::ReportJob(key) => {
                if let Some(job) = self.jobs.get_mut(&key) {
                    job.state = JobState::Reported;
                }
            }
            Write::WithholdJob(key) => {
                if let Some(job) = self.jobs.get_mut(&key) {
                    job.state = match job.state {
                        JobState::Available => JobState::Withheld,
                        JobState::Leased => JobState::LeasedWithheld,
                        other @ (JobState::Reported | JobState::Withheld | JobState::LeasedWithheld) => other,
                    };
                }
            }
            Write::OfferJob(key) => {
                if let Some(job) = self.jobs.get_mut(&key) {
                    job.state = match job.state {
                        JobState::Withheld => JobState::Available,
                        JobState::LeasedWithheld => JobState::Leased,
                        other @ (JobState::Available | JobState::Leased | JobState::Reported) => other,
                    };
                }
            }
            Write::CloseJob(key) => {
                self.jobs.remove(&key);
            }
            Write::LeaseJobs(request) => self.lease(&request, outcome),
            Write::OpenUserTask(row) => {
                self.user_tasks.insert(row.key, *row);
            }
            Write::CloseUserTask(key) => {
                self.user_tasks.remove(&key);
            }
            Write::OpenIncident(row) => {
                self.incidents.insert(row.key, *row);
            }
            Write::CloseIncident(key) => {
                self.incidents.remove(&key);
            }
            Write::AddStimulus(row) => {
                let key = self.add_stimulus(row);
                outcome.stimuli.push(key);
            }
            Write::RemoveStimulus(key) => {
                self.stimuli.remove(&key);
            }
            Write::StimulusFailed(key) => {
                if let Some(row) = self.stimuli.get_mut(&key) {
                    row.attempts += 1;
                }
            }
            Write::AddDeadLetter(row) => {
                self.dead_letters.insert(row.stimulus.key, *row);
            }
            Write::RemoveDeadLetter(key) => {
                self.dead_letters.remove(&key);
            }
            Write::ExtendMessages { by_ms } => {
                for message in self.messages.values_mut() {
                    message.row.expires_at = message.row.expires_at.plus_ms(by_ms);
                }
            }
            Write::AddResource { key, bytes } => {
                self.resources.insert(key, bytes);
            }
            Write::AddDefinition(row) => {
                self.definitions.insert(row.key, *row);
            }
            Write::DeleteDefinition(key) => {
                if let Some(row) = self.definitions.get_mut(&key) {
                    row.is_deleted = true;
                }
            }
            Write::SetValue {
                key,
                value,
                expires_at,
            } => {
                self.values.insert(
                    key,
                    Value {
                        bytes: value,
                        expires_at,
                    },
                );
            }
            Write::RemoveValue(key) => {
                self.values.remove(&key);
            }
            Write::ForgetInstances(request) => self.forget(&request, outcome),
            Write::SweepForgotten { now, limit } => self.sweep(now, limit, outcome),
            Write::TrimJournal {
                instance,
                up_to,
                limit,
            } => self.trim(instance, up_to, limit, outcome),
            Write::PutOperation(row) => {
                self.operations.insert(row.key, *row);
            }
            Write::PutOperationItem(row) => {
                self.operation_items.insert((row.operation, row.instance), *row);
            }
            Write::RemoveOperation { key, limit } => self.remove_operation(key, limit, outcome),
            Write::Audit(mut row) => {
                row.key = self.audit.last_key_value().map_or(0, |(key, _)| *key) + 1;
                self.audit.insert(row.key, *row);
            }
        }
    }

    fn update_instance(&mut self, update: InstanceUpdate) {
        let Some(instance) = self.instances.get_mut(&update.key) else {
            return;
        };
        instance.row.revision = update.revision;
        instance.row.sub_status = update.sub_status;
        instance.row.incident_count = update.incident_count;
        instance.row.attempts = update.attempts;
        instance.row.ended_at = update.ended_at;
        if update.state.is_some() {
            instance.state = update.state;
            instance.state_revision = update.revision;
        }
    }

    fn arm_timer(&mut self, row: TimerRow) {
        self.disarm_timer(row.owner, row.element);
        self.timer_due.insert((row.owner, row.element), row.due_at);
        self.timers.insert((row.due_at, row.owner, row.element), row);
    }

    pub fn disarm_timer(&mut self, owner: u64, element: ElementIndex) {
        if let Some(due_at) = self.timer_due.remove(&(owner, element)) {
            self.timers.remove(&(due_at, owner, element));
        }
    }

    fn subscribe(&mut self, row: SubscriptionRow, now: Timestamp, outcome: &mut Outcome) {
        self.unsubscribe(row.owner, row.element);
        let waiting = self.messages.values().filter(|message| {
            row.awaited == Awaited::Message
                && message.row.tenant == row.tenant
                && *message.row.name == *row.message_name
                && message.row.correlation_key == row.correlation_key
                && message.row.expires_at > now
        });
        let taken: Vec<_> = waiting
            .map(|message| message.row.key)
            .take(if row.once { 1 } else { usize::MAX })
            .collect();
        let is_closed = row.once && !taken.is_empty();
        for key in taken {
            if let Some(message) = self.messages.remove(&key) {
                self.deliver(&message.row, message.variables, &row, now, outcome);
            }
        }
        if !is_closed {
            self.subscriptions.open(row);
        }
    }

    fn unsubscribe(&mut self, owner: ElementInstanceKey, element: ElementIndex) {
        self.subscriptions.close(owner, element);
    }

    fn publish(&mut self, row: MessageRow, has_taker: bool, now: Timestamp, outcome: &mut Outcome) {
        let variables = variables_of(&row).unwrap_or_default();
        let mut processes: BTreeSet<Arc<str>> = BTreeSet::new();
        let matched: Vec<(u64, SubscriptionRow)> = self
            .subscriptions
            .takers(Awaited::Message, &row.tenant, &row.name, &row.correlation_key)
            .filter(|(_, open)| processes.insert(Arc::clone(&open.process_id)))
            .map(|(number, open)| (number, open.clone()))
            .collect();
        for (number, open) in &matched {
            if open.once {
                self.subscriptions.take(*number);
            }
            self.deliver(&row, variables.clone(), open, now, outcome);
        }
        if !matched.is_empty() || has_taker {
            return;
        }
        if row.expires_at <= now {
            outcome.expired.push(row.key);
        } else {
            self.messages.insert(row.key, Buffered { row, variables });
        }
    }

    fn broadcast(
        &mut self,
        tenant: &Arc<str>,
        name: &str,
        variables: &str,
        (except, from): (Option<InstanceKey>, Option<&Cause>),
        now: Timestamp,
        outcome: &mut Outcome,
    ) {
        let variables = signal_variables(name, variables).unwrap_or_default();
        let takers: Vec<(u64, SubscriptionRow)> = self
            .subscriptions
            .takers(Awaited::Signal, tenant, name, "")
            .filter(|(_, open)| except != Some(open.instance))
            .map(|(number, open)| (number, open.clone()))
            .collect();
        for (number, open) in takers {
            if open.once {
                self.subscriptions.take(number);
            }
            // Writing to a vector does not fail.
            let Ok(row) = signal_delivery(name, variables.clone(), from, &open, now) else {
                continue;
            };
            let payload = row.payload.clone();
            let stimulus = self.add_stimulus(row);
            outcome.deliveries.push(Delivery {
                stimulus,
                message: MessageKey(0),
                instance: open.instance,
                payload,
            });
        }
    }

    fn deliver(
        &mut self,
        message: &MessageRow,
        variables: Variables,
        open: &SubscriptionRow,
        now: Timestamp,
        outcome: &mut Outcome,
    ) {
        // Writing to a vector does not fail.
        let Ok(row) = delivery(message, variables, open, now) else {
            return;
        };
        let payload = row.payload.clone();
        let stimulus = self.add_stimulus(row);
        outcome.deliveries.push(Delivery {
            stimulus,
            message: message.key,
            instance: open.instance,
            payload,
        });
    }

    fn expire(&mut self, now: Timestamp, limit: usize, outcome: &mut Outcome) {
        let mut expired: Vec<_> = self
            .messages
            .values()
            .filter(|message| message.row.expires_at <= now)
            .map(|message| (message.row.expires_at, message.row.key))
            .collect();
        expired.sort_unstable();
        for (_, key) in expired.into_iter().take(limit) {
            self.messages.remove(&key);
            outcome.expired.push(key);
        }
        self.values
            .retain(|_, value| value.expires_at.is_none_or(|at| at > now));
    }

    fn lease(&mut self, request: &LeaseRequest, outcome: &mut Outcome) {
        let is_free = |job: &JobRow| match job.state {
            JobState::Available => job.not_before <= request.now,
            JobState::Leased => job.lease_until.is_none_or(|until| until <= request.now),
            JobState::Reported | JobState::Withheld | JobState::LeasedWithheld => false,
        };
        let is_excepted = |job: &JobRow| request.except.iter().any(|except| *except == *job.process_id);
        let wanted = self.jobs.values_mut().filter(|job| {
            *job.job_type == *request.job_type
                && job.tenant == request.tenant
                && is_free(job)
                && !is_excepted(job)
        });
        for job in wanted.take(request.limit) {
            if job.state == JobState::Leased {
                outcome.lapsed.push(job.key);
            }
            job.state = JobState::Leased;
            job.worker = Some(request.worker.clone());
            job.lease_token = Some(request.lease_token.clone());
            job.lease_until = Some(request.lease_until);
            outcome.leased.push(job.clone());
        }
    }

    fn add_stimulus(&mut self, mut row: StimulusRow) -> StimulusKey {
        self.last_stimulus += 1;
        row.key = StimulusKey(self.last_stimulus);
        self.stimuli.insert(row.key, row);
        StimulusKey(self.last_stimulus)
    }
}
