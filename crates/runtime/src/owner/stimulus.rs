//! Stimuli that move what is there: fresh ones, and those from the line.

use std::time::Instant;

use tidegate_model::stimulus::{ChildNews, JobOutcome};
use tidegate_model::{
    Cause, Command, CommandKind, Effect, ElementInstanceKey, InstanceKey, MessageKey, Rejection, Stimulus,
    SubStatus, Timestamp, Variables,
};
use tidegate_store::{Commit, Expect, MessageRow, StimulusRow, TimerRow, Write};

use crate::api::{Acceptance, Published};
use crate::error::Error;
use crate::gate::{Entering, Refused};
use crate::shared::Counters;

use super::commit::{Answer, Prepared, problem_of};
use super::pending::{Domain, Item};
use super::start::{new_row, stimulus_row};
use super::{Owner, Reply};

/// A fresh stimulus for one instance.
pub(crate) struct MoveOrder {
    pub(crate) stimulus: Stimulus,
    pub(crate) instance: InstanceKey,
    pub(crate) source: Option<&'static str>,
    /// The lease that the sender must hold.
    pub(crate) lease: Option<(ElementInstanceKey, String)>,
}

/// A message to publish.
pub(crate) struct PublishOrder {
    pub(crate) tenant: std::sync::Arc<str>,
    pub(crate) name: String,
    pub(crate) correlation_key: String,
    pub(crate) variables: Variables,
    pub(crate) ttl_ms: i64,
    pub(crate) message_id: Option<String>,
    pub(crate) source: Option<&'static str>,
    /// Make it durable and no more, whatever the gate says.
    pub(crate) accept_only: bool,
}

/// The source under which the line is worked off.
const QUEUE: &str = "queue";
const TIMER: &str = "timer";
/// A timer that fires later than this after its due time is recorded as late.
const LATE_MS: i64 = 1_000;

impl Owner {
    /// True while stimuli may be executed and not only accepted.
    fn is_open(&self) -> bool {
        self.shared.gate.read().is_accepting()
    }

    pub(super) fn has_runnable_pending(&self) -> bool {
        !self.pending.is_empty()
            && self.pending_rests_until.is_none()
            && self.shared.switches.queue.is_on()
            && {
                let state = self.shared.gate.read();
                state.is_accepting() && state.live() < self.shared.options.max_live_cycles
            }
    }

    /// True if the line could go on, were there fewer live cycles.
    pub(super) fn waits_for_room(&self) -> bool {
        !self.pending.is_empty()
            && self.pending_rests_until.is_none()
            && self.shared.switches.queue.is_on()
            && self.shared.gate.read().is_accepting()
    }

    pub(super) fn queued(&mut self, rows: Vec<StimulusRow>) {
        for row in rows {
            self.pending.add(row);
        }
    }

    /// Works off the line, oldest first, while the gate admits.
    pub(super) fn run_pending(&mut self) {
        const PER_ROUND: usize = 512;
        for _ in 0..PER_ROUND {
            if !self.has_runnable_pending() {
                return;
            }
            let Some(item) = self.pending.pop() else { return };
            if let Err(item) = self.execute(item) {
                // The gate closed meanwhile, or the store does not answer: its place is kept.
                self.pending.put_back(*item);
                return;
            }
        }
    }

    fn execute(&mut self, item: Item) -> Result<(), Box<Item>> {
        match item {
            Item::Timer(row) => self.fire(row),
            Item::Stimulus(row) => {
                let Ok(stimulus) = minicbor::decode::<Stimulus>(&row.payload) else {
                    let problem = Error::Invalid {
                        code: "stimulus-unreadable",
                        message: "the stimulus cannot be read by this version".to_owned(),
                    };
                    self.bury(row, &problem);
                    return Ok(());
                };
                match stimulus {
                    Stimulus::Publish { .. } => self.execute_publish(row, stimulus),
                    Stimulus::Broadcast { .. } => self.execute_broadcast(row, stimulus),
                    _ => self.execute_move(row, stimulus),
                }
            }
        }
    }

    // --- stimuli for one instance ---

    pub(super) fn move_instance(&mut self, order: MoveOrder, reply: Reply<Acceptance>) {
        if let Some((job, token)) = &order.lease {
            match self.shared.store.job(*job) {
                Ok(Some(row)) if row.lease_token.as_deref() == Some(token) => {}
                Ok(Some(_)) => return refuse(reply, Error::StaleLease(job.get())),
                Ok(None) => return refuse(reply, Error::NoSuchJob(job.get())),
                Err(error) => return refuse(reply, error.into()),
            }
        }
        let domain = Domain::Instance(order.instance);
        if !self.is_open() || self.pending.has(&domain) {
            return self.accept_move(order, domain, reply);
        }
        match self.join_cycle(order.instance, order.source) {
            Ok(true) => {}
            Ok(false) | Err(Error::PartPaused(_)) => return self.accept_move(order, domain, reply),
            Err(error) => return refuse(reply, error),
        }
        let instance = order.instance;
        if let Err(rejection) = self.command(order.stimulus) {
            self.rest_if_settled(instance);
            return refuse(reply, translate(rejection));
        }
        if let Some(resident) = self.residents.get_mut(&instance) {
            resident
                .expect
                .extend(order.lease.map(|(job, token)| Expect::Lease { job, token }));
            resident.answers.push(Answer::Moved(reply));
        }
    }

    /// The gate is closed, or older stimuli wait: this one joins the tail.
    fn accept_move(&mut self, order: MoveOrder, domain: Domain, reply: Reply<Acceptance>) {
        if order.lease.is_none()
            && let Err(error) = self.room_in_queue()
        {
            return refuse(reply, error);
        }
        let row = stimulus_row(&domain, order.source, &order.stimulus, self.now());
        let mut commit = Commit {
            expect: vec![Expect::InstanceLive(order.instance)],
            writes: Vec::new(),
        };
        if let Some((job, token)) = order.lease {
            commit.expect.push(Expect::Lease { job, token });
            commit.writes.push(Write::ReportJob(job));
        }
        commit.writes.push(Write::AddStimulus(row.clone()));
        self.pending.expect(domain.clone());
        self.loose.push(Prepared {
            commit,
            then: Box::new(move |owner, result| {
                let answer = match result {
                    Ok(outcome) => match owner.added(row, &outcome) {
                        Some(key) => Ok(Acceptance::Queued(key)),
                        None => Err(Error::Stopped),
                    },
                    Err(error) => {
                        owner.pending.left(&domain);
                        Err(problem_of(&error))
                    }
                };
                // Whoever asked may have gone; the stimulus stands.
                let _ = reply.send(answer);
            }),
        });
    }

    fn execute_move(&mut self, row: StimulusRow, stimulus: Stimulus) -> Result<(), Box<Item>> {
        let Some(instance) = stimulus.instance() else {
            return Ok(());
        };
        match self.join_cycle(instance, Some(QUEUE)) {
            Ok(true) => {}
            Ok(false) => return Err(Box::new(Item::Stimulus(row))),
            Err(Error::PartPaused(_)) => {
                self.pending.park(Item::Stimulus(row), None);
                return Ok(());
            }
            Err(Error::NoSuchInstance(_)) => {
                self.drop_stimulus(row, "its instance is not there");
                return Ok(());
            }
            Err(error) => {
                self.put_back_later(Item::Stimulus(row), &error);
                return Ok(());
            }
        }
        let copy = matches!(stimulus, Stimulus::Deliver { .. }).then(|| stimulus.clone());
        match self.command(stimulus) {
            Ok(()) => {
                self.pending.left(&Domain::Instance(instance));
                if let Some(resident) = self.residents.get_mut(&instance) {
                    resident.expect.push(Expect::Stimulus(row.key));
                    resident.riders.push(Write::RemoveStimulus(row.key));
                    resident.consumed.push(Item::Stimulus(row));
                }
                self.mark_dirty(instance);
            }
            Err(rejection) => {
                self.rest_if_settled(instance);
                match copy {
                    Some(deliver) => self.publish_again(row, deliver),
                    None => self.drop_stimulus(row, &rejection.to_string()),
                }
            }
        }
        Ok(())
    }

    /// Gives a stimulus to its instance, which is in memory and has a cycle.
    fn command(&mut self, stimulus: Stimulus) -> Result<(), Rejection> {
        let (instance, command) = match stimulus {
            Stimulus::Start {
                instance,
                element,
                variables,
                cause,
                ..
            } => (
                instance,
                Command::new(CommandKind::Start { element, variables }, cause),
            ),
            Stimulus::Deliver {
                message,
                instance,
                owner,
                element,
                variables,
                ..
            } => (
                instance,
                Command::new(
                    CommandKind::CorrelateMessage {
                        owner,
                        element,
                        message,
                        variables,
                    },
                    Cause::Message {
                        message: message.get(),
                    },
                ),
            ),
            Stimulus::JobOutcome {
                instance,
                job,
                outcome,
                worker,
            } => {
                let kind = match outcome {
                    JobOutcome::Complete { variables } => CommandKind::CompleteJob { job, variables },
                    JobOutcome::Fail {
                        message,
                        retries,
                        retry_at,
                    } => CommandKind::FailJob {
                        job,
                        message,
                        retries,
                        retry_at,
                    },
                    JobOutcome::Error {
                        code,
                        message,
                        variables,
                    } => CommandKind::ThrowError {
                        job,
                        code,
                        message,
                        variables,
                    },
                };
                (instance, Command::new(kind, Cause::Worker { name: worker }))
            }
            Stimulus::CompleteUserTask {
                instance,
                task,
                variables,
                actor,
            } => (
                instance,
                Command::new(
                    CommandKind::CompleteUserTask { task, variables },
                    Cause::Client { actor },
                ),
            ),
            Stimulus::SetVariables {
                instance,
                variables,
                actor,
            } => (
                instance,
                Command::new(
                    CommandKind::SetVariables {
                        scope: ElementInstanceKey::ROOT,
                        variables,
                    },
                    Cause::Client { actor },
                ),
            ),
            Stimulus::RetryIncident {
                instance,
                incident,
                retries,
                actor,
            } => (
                instance,
                Command::new(
                    CommandKind::RetryIncident { incident, retries },
                    Cause::Operator { actor, reason: None },
                ),
            ),
            Stimulus::Signal {
                instance,
                owner,
                element,
                variables,
                ..
            } => (
                instance,
                Command::new(
                    CommandKind::CatchSignal {
                        owner,
                        element,
                        variables,
                    },
                    Cause::Engine,
                ),
            ),
            Stimulus::Child {
                instance,
                owner,
                child,
                news,
            } => {
                let kind = match news {
                    ChildNews::Completed { variables } => CommandKind::ChildCompleted {
                        owner,
                        child,
                        variables,
                    },
                    ChildNews::Faulted {
                        code,
                        message,
                        variables,
                    } => CommandKind::ChildFaulted {
                        owner,
                        child,
                        code,
                        message,
                        variables,
                    },
                    ChildNews::Escalated { code, variables } => CommandKind::ChildEscalated {
                        owner,
                        child,
                        code,
                        variables,
                    },
                    ChildNews::Cancelled => CommandKind::ChildCancelled { owner, child },
                    ChildNews::NotStarted { message } => CommandKind::ChildNotStarted {
                        owner,
                        child,
                        message,
                    },
                };
                (
                    instance,
                    Command::new(
                        kind,
                        Cause::Child {
                            instance: child.get(),
                        },
                    ),
                )
            }
            Stimulus::CancelChild { instance, parent } => (
                instance,
                Command::new(
                    CommandKind::Cancel,
                    Cause::Parent {
                        instance: parent.get(),
                    },
                ),
            ),
            Stimulus::Publish { .. } | Stimulus::Broadcast { .. } => return Ok(()),
        };
        self.advance(instance, command)
    }

    /// Brings the instance into memory with a live cycle. False if the gate is closed.
    pub(super) fn join_cycle(
        &mut self,
        key: InstanceKey,
        source: Option<&'static str>,
    ) -> Result<bool, Error> {
        // Looked at before anything is loaded for nothing; the permit below is what counts.
        if !self.shared.gate.read().is_accepting() {
            return Ok(false);
        }
        if !self.load(key)? {
            return Err(Error::NoSuchInstance(key));
        }
        let Some(resident) = self.residents.get(&key) else {
            return Err(Error::NoSuchInstance(key));
        };
        let entering = match resident.instance.sequence() {
            0 => Entering::Start,
            _ => Entering::Continue,
        };
        let permit = match self.shared.gate.admit_through(resident.loaded.gates(), entering) {
            Ok(permit) => permit,
            Err(refused) => {
                let process_id = resident.row.process_id.to_string();
                self.rest_if_settled(key);
                return match refused {
                    Refused::Shell => Ok(false),
                    Refused::Narrow => Err(Error::PartPaused(process_id)),
                };
            }
        };
        let cycle = self.cycle(key, permit, source);
        if let Some(resident) = self.residents.get_mut(&key)
            && resident.cycle.is_none()
        {
            resident.cycle = Some(cycle);
        }
        Ok(true)
    }

    /// A queued stimulus that can never be executed: taken out, counted, logged.
    fn drop_stimulus(&mut self, row: StimulusRow, why: &str) {
        Counters::add(&self.shared.counters.stimuli_refused, 1);
        tracing::warn!(stimulus = %row.key, domain = row.domain, event = "StimulusRefused", "a queued stimulus was refused: {why}");
        let key = row.key;
        self.take_out(row, vec![Write::RemoveStimulus(key)]);
    }

    /// The instance no longer waits for a message that was matched with it: the message looks for another taker.
    fn publish_again(&mut self, row: StimulusRow, deliver: Stimulus) {
        let Stimulus::Deliver {
            message,
            instance,
            name,
            correlation_key,
            variables,
            expires_at,
            ..
        } = deliver
        else {
            return;
        };
        let tenant = match self.residents.get(&instance) {
            Some(resident) => resident.row.tenant.clone(),
            None => crate::api::DEFAULT_TENANT.into(),
        };
        tracing::info!(%message, %instance, event = "MessageReturned", "an instance no longer waits for a message; it is published again");
        let now = self.now();
        let key = row.key;
        let message = MessageRow {
            key: message,
            tenant,
            name,
            correlation_key,
            variables: variables.to_json(),
            expires_at,
        };
        self.take_out(
            row,
            vec![
                Write::RemoveStimulus(key),
                Write::Publish {
                    row: message,
                    has_taker: false,
                    now,
                },
            ],
        );
    }

    /// Takes a stimulus out of the queue with a commit of its own.
    fn take_out(&mut self, row: StimulusRow, writes: Vec<Write>) {
        let domain = Domain::parse(&row.domain);
        let commit = Commit {
            expect: vec![Expect::Stimulus(row.key)],
            writes,
        };
        self.loose.push(Prepared {
            commit,
            then: Box::new(move |owner, result| match result {
                Ok(outcome) => {
                    owner.pending.left(&domain);
                    owner
                        .shared
                        .queue_depth
                        .fetch_sub(1, std::sync::atomic::Ordering::Relaxed);
                    owner.arrange(outcome);
                }
                Err(error) => owner.put_back_later(Item::Stimulus(row), &problem_of(&error)),
            }),
        });
    }

    pub(super) fn put_back_later(&mut self, item: Item, problem: &Error) {
        let again_at = Instant::now() + super::STALL;
        match item {
            Item::Stimulus(row) if is_of_its_own(problem) => self.attempt_failed(row, problem),
            item if is_of_its_own(problem) => self.pending.park(item, Some(again_at)),
            item => {
                tracing::warn!("pending work has to wait: {problem}");
                self.pending_rests_until = Some(again_at);
                self.pending.put_back(item);
            }
        }
    }

    // --- messages ---

    pub(super) fn publish(&mut self, order: PublishOrder, reply: Reply<Published>) {
        let now = self.now();
        let entry = order.message_id.as_ref().map(|id| {
            format!(
                "message/{}/{}/{}/{id}",
                order.tenant, order.name, order.correlation_key
            )
        });
        if let Some(entry) = &entry {
            match self.known_message(entry, now) {
                Ok(None) => {}
                Ok(Some(message)) => {
                    let answer = Published {
                        message,
                        delivered_to: Vec::new(),
                        is_buffered: false,
                        accepted: None,
                    };
                    let _ = reply.send(Ok(answer));
                    return;
                }
                Err(error) => return refuse(reply, error),
            }
        }
        let message = MessageKey(self.keys.fresh(now));
        let domain = Domain::message(&order.tenant, &order.name, &order.correlation_key);
        let mut commit = Commit::default();
        if let Some(entry) = &entry {
            commit.expect.push(Expect::ValueAbsent {
                key: entry.clone(),
                now,
            });
            commit.writes.push(Write::SetValue {
                key: entry.clone(),
                value: message.to_string().into_bytes(),
                // At least as long as the message can wait, and an hour for retries of the sender.
                expires_at: Some(now.plus_ms(order.ttl_ms.max(3_600_000))),
            });
            self.publishing.insert(entry.clone(), message);
        }
        if order.accept_only || !self.is_open() || self.pending.has(&domain) {
            return self.accept_publish(order, message, domain, entry, commit, now, reply);
        }
        let publish = Publish {
            tenant: order.tenant,
            name: order.name,
            correlation_key: order.correlation_key,
            variables: order.variables,
            expires_at: now.plus_ms(order.ttl_ms),
        };
        let started = self.match_message(publish, message, now, &mut commit);
        self.loose.push(Prepared {
            commit,
            then: Box::new(move |owner, result| {
                if let Some(entry) = &entry {
                    owner.publishing.remove(entry);
                }
                let answer = match result {
                    Ok(outcome) => Ok(owner.matched(message, started, outcome)),
                    Err(error) => Err(problem_of(&error)),
                };
                let _ = reply.send(answer);
            }),
        });
    }

    fn known_message(&self, entry: &str, now: Timestamp) -> Result<Option<MessageKey>, Error> {
        if let Some(message) = self.publishing.get(entry) {
            return Ok(Some(*message));
        }
        let value = self.shared.store.value(entry, now)?;
        Ok(value.and_then(|bytes| String::from_utf8(bytes).ok()?.parse().ok()))
    }

    #[allow(clippy::too_many_arguments)]
    fn accept_publish(
        &mut self,
        order: PublishOrder,
        message: MessageKey,
        domain: Domain,
        entry: Option<String>,
        mut commit: Commit,
        now: Timestamp,
        reply: Reply<Published>,
    ) {
        if let Err(error) = self.room_in_queue() {
            if let Some(entry) = &entry {
                self.publishing.remove(entry);
            }
            return refuse(reply, error);
        }
        let stimulus = Stimulus::Publish {
            message,
            name: order.name,
            correlation_key: order.correlation_key,
            variables: order.variables,
            ttl_ms: order.ttl_ms,
            message_id: order.message_id,
            tenant: order.tenant.to_string(),
        };
        let row = stimulus_row(&domain, order.source, &stimulus, now);
        commit.writes.push(Write::AddStimulus(row.clone()));
        self.pending.expect(domain.clone());
        self.loose.push(Prepared {
            commit,
            then: Box::new(move |owner, result| {
                if let Some(entry) = &entry {
                    owner.publishing.remove(entry);
                }
                let answer = match result {
                    Ok(outcome) => {
                        let accepted = owner.added(row, &outcome);
                        Ok(Published {
                            message,
                            delivered_to: Vec::new(),
                            is_buffered: true,
                            accepted,
                        })
                    }
                    Err(error) => {
                        owner.pending.left(&domain);
                        Err(problem_of(&error))
                    }
                };
                let _ = reply.send(answer);
            }),
        });
    }

    fn execute_publish(&mut self, row: StimulusRow, stimulus: Stimulus) -> Result<(), Box<Item>> {
        let Stimulus::Publish {
            message,
            name,
            correlation_key,
            variables,
            ttl_ms,
            tenant,
            ..
        } = stimulus
        else {
            return Ok(());
        };
        let now = self.now();
        let publish = Publish {
            tenant: tenant.into(),
            name,
            correlation_key,
            variables,
            // The time to live begins when the message is executed: it stands still in the queue.
            expires_at: now.plus_ms(ttl_ms),
        };
        let mut commit = Commit {
            expect: vec![Expect::Stimulus(row.key)],
            writes: vec![Write::RemoveStimulus(row.key)],
        };
        let started = self.match_message(publish, message, now, &mut commit);
        let domain = Domain::parse(&row.domain);
        // What follows in this domain is committed behind it, so the line may go on.
        self.pending.left(&domain);
        self.loose.push(Prepared {
            commit,
            then: Box::new(move |owner, result| match result {
                Ok(outcome) => {
                    owner
                        .shared
                        .queue_depth
                        .fetch_sub(1, std::sync::atomic::Ordering::Relaxed);
                    owner.matched(message, started, outcome);
                }
                Err(error) => {
                    owner.pending.expect(domain);
                    owner.put_back_later(Item::Stimulus(row), &problem_of(&error));
                }
            }),
        });
        Ok(())
    }

    /// Adds to a commit what matches a message: start events of the newest definitions, and the store's own search.
    fn match_message(
        &mut self,
        publish: Publish,
        message: MessageKey,
        now: Timestamp,
        commit: &mut Commit,
    ) -> Vec<StimulusRow> {
        let starts = self
            .shared
            .definitions
            .message_starts(&publish.tenant, &publish.name);
        let cause = Cause::Message {
            message: message.get(),
        };
        let started = self.pending_starts(starts, &publish.variables, &cause, now, commit);
        commit.writes.push(Write::Publish {
            row: MessageRow {
                key: message,
                tenant: publish.tenant,
                name: publish.name,
                correlation_key: publish.correlation_key,
                variables: publish.variables.to_json(),
                expires_at: publish.expires_at,
            },
            has_taker: !started.is_empty(),
            now,
        });
        started
    }

    /// Adds to a commit one pending instance, with its start in the queue, for each start event.
    pub(super) fn pending_starts(
        &mut self,
        starts: Vec<(
            std::sync::Arc<crate::definitions::Loaded>,
            tidegate_model::ElementIndex,
        )>,
        variables: &Variables,
        cause: &Cause,
        now: Timestamp,
        commit: &mut Commit,
    ) -> Vec<StimulusRow> {
        let mut started = Vec::new();
        for (loaded, element) in starts {
            let key = InstanceKey(self.keys.fresh(now));
            let mut row = new_row(key, &loaded, None, now);
            row.sub_status = SubStatus::Pending;
            let stimulus = Stimulus::Start {
                instance: key,
                definition: row.definition,
                element: Some(element),
                variables: variables.clone(),
                cause: cause.clone(),
            };
            let queued = stimulus_row(&Domain::Instance(key), Some("http.api"), &stimulus, now);
            commit.writes.push(Write::CreateInstance {
                row: Box::new(row),
                state: None,
            });
            commit.writes.push(Write::AddStimulus(queued.clone()));
            started.push(queued);
        }
        started
    }

    pub(super) fn matched(
        &mut self,
        message: MessageKey,
        started: Vec<StimulusRow>,
        mut outcome: tidegate_store::Outcome,
    ) -> Published {
        let keys = std::mem::take(&mut outcome.stimuli);
        let mut delivered_to: Vec<InstanceKey> = outcome.deliveries.iter().map(|d| d.instance).collect();
        let is_expired = outcome.expired.contains(&message);
        let started: Vec<StimulusRow> = started
            .into_iter()
            .zip(keys)
            .map(|(mut row, key)| {
                row.key = key;
                row
            })
            .collect();
        self.shared
            .queue_depth
            .fetch_add(started.len() as u64, std::sync::atomic::Ordering::Relaxed);
        delivered_to.extend(started.iter().filter_map(|row| match Domain::parse(&row.domain) {
            Domain::Instance(key) => Some(key),
            Domain::Message(_) => None,
        }));
        self.hand_over(started);
        self.arrange(outcome);
        Published {
            message,
            is_buffered: delivered_to.is_empty() && !is_expired,
            delivered_to,
            accepted: None,
        }
    }

    // --- timers ---

    fn fire(&mut self, row: TimerRow) -> Result<(), Box<Item>> {
        let Some(instance) = row.instance else {
            return self.fire_start(row);
        };
        match self.join_cycle(instance, Some(TIMER)) {
            Ok(true) => {}
            Ok(false) => return Err(Box::new(Item::Timer(row))),
            Err(Error::PartPaused(_)) => {
                self.pending.park(Item::Timer(row), None);
                return Ok(());
            }
            Err(Error::NoSuchInstance(_)) => {
                self.pending.left(&Domain::Instance(instance));
                self.disarm(&row);
                return Ok(());
            }
            Err(error) => {
                tracing::warn!(%instance, "a timer has to wait: {error}");
                self.pending_rests_until = Some(Instant::now() + super::STALL);
                return Err(Box::new(Item::Timer(row)));
            }
        }
        self.pending.left(&Domain::Instance(instance));
        let late_ms = self.now().since(row.due_at);
        if late_ms > LATE_MS {
            Counters::add(&self.shared.counters.timers_late, 1);
            tracing::info!(%instance, late_ms, event = "TimerLate", "a timer fires late");
        }
        let owner = ElementInstanceKey(row.owner);
        if self.retry_job(instance, owner, &row) {
            return Ok(());
        }
        let kind = CommandKind::TriggerTimer {
            owner,
            element: row.element,
            due_at: row.due_at,
        };
        match self.advance(instance, Command::new(kind, Cause::Timer)) {
            Ok(()) => {
                if let Some(resident) = self.residents.get_mut(&instance) {
                    resident.consumed.push(Item::Timer(row));
                }
            }
            Err(_) => {
                // Nobody waits for it any more: it fired before, or its element was left.
                self.rest_if_settled(instance);
            }
        }
        Ok(())
    }

    /// The back-off of an in-process job is over. False if the timer is none of these.
    fn retry_job(&mut self, instance: InstanceKey, job: ElementInstanceKey, timer: &TimerRow) -> bool {
        let Some(resident) = self.residents.get_mut(&instance) else {
            return false;
        };
        if !resident.instance.has_job(job) || resident.running.iter().any(|running| running.job == job) {
            return false;
        }
        let outstanding = tidegate_engine::outstanding(&resident.loaded.definition, &resident.instance);
        let found = outstanding.into_iter().find_map(|effect| match effect {
            Effect::RunJob(found) if found.key == job && found.element == timer.element => Some(found),
            _ => None,
        });
        let Some(mut found) = found else { return false };
        found.not_before = None;
        resident.effects.push(Effect::RunJob(found));
        resident.riders.push(Write::DisarmTimer {
            owner: timer.owner,
            element: timer.element,
        });
        resident.consumed.push(Item::Timer(timer.clone()));
        self.mark_dirty(instance);
        true
    }

    /// A timer start event: a new instance, and the next turn in the same commit.
    fn fire_start(&mut self, row: TimerRow) -> Result<(), Box<Item>> {
        let key = tidegate_model::DefinitionKey(row.owner);
        let loaded = match self.shared.definitions.get(&*self.shared.store, key) {
            Ok(Some(loaded)) if self.shared.definitions.is_latest(&loaded) => loaded,
            Ok(_) => {
                self.disarm(&row);
                return Ok(());
            }
            Err(error) => {
                tracing::warn!(definition = %key, "a timer start has to wait: {error}");
                self.pending_rests_until = Some(Instant::now() + super::STALL);
                return Err(Box::new(Item::Timer(row)));
            }
        };
        let permit = match self.shared.gate.admit_through(loaded.gates(), Entering::Start) {
            Ok(permit) => permit,
            Err(Refused::Shell) => return Err(Box::new(Item::Timer(row))),
            Err(Refused::Narrow) => {
                self.pending.park(Item::Timer(row), None);
                return Ok(());
            }
        };
        let now = self.now();
        let instance = InstanceKey(self.keys.fresh(now));
        let new = new_row(instance, &loaded, None, now);
        self.next_incarnation += 1;
        let mut resident = super::Resident::new(
            self.next_incarnation,
            tidegate_engine::Instance::new(instance),
            loaded.clone(),
            new,
            false,
        );
        resident.cycle = Some(self.cycle(instance, permit, Some(TIMER)));
        self.residents.insert(instance, resident);
        if let Err(error) = self.begin(instance, Some(row.element), Variables::new(), Cause::Timer) {
            tracing::error!(definition = %key, "a timer start was refused: {error}");
            self.residents.remove(&instance);
            self.disarm(&row);
            return Ok(());
        }
        let next = next_turn(&loaded, &row, now);
        let Some(resident) = self.residents.get_mut(&instance) else {
            return Ok(());
        };
        match next {
            Some(next) => {
                self.shared.timers.armed(&next);
                resident.riders.push(Write::ArmTimer(next));
            }
            None => resident.riders.push(Write::DisarmTimer {
                owner: row.owner,
                element: row.element,
            }),
        }
        resident.consumed.push(Item::Timer(row));
        Ok(())
    }

    fn disarm(&mut self, row: &TimerRow) {
        let writes = vec![Write::DisarmTimer {
            owner: row.owner,
            element: row.element,
        }];
        self.loose.push(Prepared {
            commit: Commit {
                expect: Vec::new(),
                writes,
            },
            // Left where it is, the timer is disarmed the next time it is loaded.
            then: Box::new(|_, _| {}),
        });
    }
}

/// True if the trouble is the item's own, and not the store's with everything.
fn is_of_its_own(problem: &Error) -> bool {
    use tidegate_store::ErrorKind;
    match problem {
        Error::Store(error) => {
            !error.kind().is_retryable() && !matches!(error.kind(), ErrorKind::Fenced | ErrorKind::Closed)
        }
        _ => true,
    }
}

/// A message being matched.
struct Publish {
    tenant: std::sync::Arc<str>,
    name: String,
    correlation_key: String,
    variables: Variables,
    expires_at: Timestamp,
}

/// The next turn of a timer start event. Turns missed meanwhile are folded into this one.
fn next_turn(loaded: &crate::definitions::Loaded, row: &TimerRow, now: Timestamp) -> Option<TimerRow> {
    let mut fired = row.fired + 1;
    let mut due_at = loaded
        .definition
        .next_start_timer(row.element, row.due_at, fired)?;
    while due_at <= now {
        fired += 1;
        due_at = loaded.definition.next_start_timer(row.element, due_at, fired)?;
    }
    Some(TimerRow {
        due_at,
        fired,
        ..row.clone()
    })
}

fn refuse<T>(reply: Reply<T>, error: Error) {
    // Whoever asked may have gone.
    let _ = reply.send(Err(error));
}

fn translate(rejection: Rejection) -> Error {
    match rejection {
        Rejection::NoSuchJob(job) => Error::NoSuchJob(job.get()),
        Rejection::NoSuchUserTask(task) => Error::NoSuchUserTask(task.get()),
        Rejection::NoSuchIncident(incident) => Error::NoSuchIncident(incident),
        other => Error::Rejected(other),
    }
}
