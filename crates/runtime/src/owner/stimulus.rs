//! Stimuli that move what is there: fresh ones, and those from the line.

use tidegate_model::stimulus::{ChildNews, JobOutcome};
use tidegate_model::{Cause, Command, CommandKind, ElementInstanceKey, InstanceKey, Rejection, Stimulus};
use tidegate_store::{AuditRow, Commit, Expect, MessageRow, StimulusRow, Write};
use tokio::time::Instant;

use crate::api::Acceptance;
use crate::error::Error;
use crate::gate::{Entering, Refused};
use crate::shared::Counters;

use super::commit::{Answer, Prepared, problem_of};
use super::pending::{Domain, Item};
use super::start::{start_command, stimulus_row};
use super::{Owner, ROOM, Reply};

/// A fresh stimulus for one instance.
pub(crate) struct MoveOrder {
    pub(crate) stimulus: Stimulus,
    pub(crate) instance: InstanceKey,
    pub(crate) source: Option<&'static str>,
    /// The lease that the sender must hold.
    pub(crate) lease: Option<(ElementInstanceKey, String)>,
    /// What the audit says of it, in the same commit.
    pub(crate) audit: Option<AuditRow>,
}

/// The source under which the line is worked off.
const QUEUE: &str = "queue";

impl Owner {
    /// True while stimuli may be executed and not only accepted.
    pub(super) fn is_open(&self) -> bool {
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
            if self.is_control(&row) {
                self.pending.expect(Domain::parse(&row.domain));
                self.controls.push_back(row);
            } else {
                self.pending.add(row);
            }
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
                    Stimulus::CancelChild { .. }
                    | Stimulus::HoldChild { .. }
                    | Stimulus::ReleaseChild { .. } => {
                        self.execute_control(row, stimulus);
                        Ok(())
                    }
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
            Ok(false) | Err(Error::PartPaused(_) | Error::InstanceHeld(_)) => {
                return self.accept_move(order, domain, reply);
            }
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
            if let Some(audit) = order.audit {
                resident.take_along(audit);
            }
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
        Counters::add(&self.shared.counters.accepted_for_later, 1);
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
        if let Some(audit) = order.audit {
            crate::audit::log(&audit);
            commit.writes.push(Write::Audit(Box::new(audit)));
        }
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
        if matches!(stimulus, Stimulus::Start { .. }) && self.shared.definitions.processes.has_limits() {
            match self.turn_of_queued(instance, &row) {
                Ok(true) => {}
                Ok(false) => {
                    self.pending.park(Item::Stimulus(row), None);
                    return Ok(());
                }
                Err(error @ Error::TooManyInstances { .. }) => {
                    self.skip_start(instance, row, &error);
                    return Ok(());
                }
                // Told by what follows.
                Err(_) => {}
            }
        }
        match self.join_cycle(instance, Some(QUEUE)) {
            Ok(true) => {}
            Ok(false) => return Err(Box::new(Item::Stimulus(row))),
            Err(Error::PartPaused(_) | Error::InstanceHeld(_)) => {
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
        if let Stimulus::Migrate { migration, .. } = &stimulus
            && let Err(error) = self
                .shared
                .definitions
                .get(&*self.shared.store, migration.definition)
        {
            self.put_back_later(Item::Stimulus(row), &error.into());
            return Ok(());
        }
        let copy = matches!(stimulus, Stimulus::Deliver { .. }).then(|| stimulus.clone());
        if self.is_of_another_version(&stimulus) {
            self.rest_if_settled(instance);
            match copy {
                Some(deliver) => self.publish_again(row, deliver),
                None => self.drop_stimulus(row, "the instance changed its version meanwhile"),
            }
            return Ok(());
        }
        let request = request_of(&stimulus);
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
            // What refuses it is not on disk yet and may never be: it is looked at again when that is known.
            Err(_) if self.runs_ahead(instance) => self
                .pending
                .park(Item::Stimulus(row), Some(Instant::now() + ROOM)),
            Err(rejection) => {
                self.rest_if_settled(instance);
                match (copy, request) {
                    (Some(deliver), _) => self.publish_again(row, deliver),
                    (None, Some(request)) => self.show_refused(row, instance, &request, &rejection),
                    (None, None) => self.drop_stimulus(row, &rejection.to_string()),
                }
            }
        }
        Ok(())
    }

    /// True if an instance in memory has something that was not told to be on disk.
    pub(super) fn runs_ahead(&self, instance: InstanceKey) -> bool {
        self.residents
            .get(&instance)
            .is_some_and(|resident| resident.is_dirty || resident.in_flight > 0)
    }

    /// Whether an accepted start may be executed now, where the number of live instances is limited.
    fn turn_of_queued(&mut self, instance: InstanceKey, row: &StimulusRow) -> Result<bool, Error> {
        if !self.load(instance)? {
            return Err(Error::NoSuchInstance(instance));
        }
        let Some(resident) = self.residents.get(&instance) else {
            return Err(Error::NoSuchInstance(instance));
        };
        if resident.instance.ended().is_some() {
            // Nothing will begin: the start is refused by the instance.
            return Ok(true);
        }
        let process = resident.loaded.process.clone();
        let answer = self.turn(&process, instance, Some((row.accepted_at, row.key.get())));
        if !matches!(answer, Ok(true)) {
            self.rest_if_settled(instance);
        }
        answer
    }

    /// An accepted start that does not get its turn: the instance ends before it began.
    fn skip_start(&mut self, instance: InstanceKey, row: StimulusRow, why: &Error) {
        let cause = Cause::Operator {
            actor: "runtime".to_owned(),
            reason: Some(why.to_string()),
        };
        let loaded = matches!(self.load(instance), Ok(true));
        if !loaded
            || self
                .advance(instance, Command::new(CommandKind::Cancel, cause))
                .is_err()
        {
            return self.drop_stimulus(row, &why.to_string());
        }
        self.pending.left(&Domain::Instance(instance));
        if let Some(resident) = self.residents.get_mut(&instance) {
            resident.expect.push(Expect::Stimulus(row.key));
            resident.riders.push(Write::RemoveStimulus(row.key));
            resident.consumed.push(Item::Stimulus(row));
        }
    }

    /// True for a message or signal that was matched before the instance changed its version: what it names by its index
    /// may be another event now.
    fn is_of_another_version(&self, stimulus: &Stimulus) -> bool {
        let (Stimulus::Deliver {
            instance,
            owner,
            element,
            name,
            ..
        }
        | Stimulus::Signal {
            instance,
            owner,
            element,
            name,
            ..
        }) = stimulus
        else {
            return false;
        };
        let resident = self.residents.get(instance);
        resident.is_some_and(|resident| {
            resident.instance.origin().is_some()
                && !resident
                    .instance
                    .awaits(&resident.loaded.definition, *owner, *element, name)
        })
    }

    /// Gives a stimulus to its instance, which is in memory and has a cycle.
    pub(super) fn command(&mut self, stimulus: Stimulus) -> Result<(), Rejection> {
        let (instance, command) = match stimulus {
            Stimulus::Start {
                instance,
                element,
                variables,
                cause,
                begin,
                ..
            } => (
                instance,
                Command::new(start_command(element, begin, variables), cause),
            ),
            Stimulus::Deliver {
                message,
                instance,
                owner,
                element,
                variables,
                from,
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
                        from: from.map(Box::new),
                    },
                ),
            ),
            Stimulus::JobOutcome {
                instance,
                job,
                outcome,
                worker,
            } => {
                if let Some(resident) = self.residents.get_mut(&instance) {
                    resident.kept_jobs.retain(|kept| *kept != job);
                }
                let cause = match outcome {
                    // It is the worker's silence that says so.
                    JobOutcome::Lost => Cause::Engine,
                    _ => Cause::Worker { name: worker },
                };
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
                    JobOutcome::Lost => CommandKind::LoseJob { job },
                };
                (instance, Command::new(kind, cause))
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
                scope,
                reason,
            } => (
                instance,
                Command::new(
                    CommandKind::SetVariables {
                        scope: scope_of(instance, scope),
                        variables,
                    },
                    match reason {
                        Some(reason) => Cause::Operator {
                            actor,
                            reason: Some(reason),
                        },
                        None => Cause::Client { actor },
                    },
                ),
            ),
            Stimulus::ResolveIncident {
                instance,
                incident,
                retries,
                scope,
                variables,
                cause,
            } => (
                instance,
                Command::new(
                    CommandKind::ResolveIncident {
                        incident,
                        retries,
                        scope: scope_of(instance, scope),
                        variables,
                    },
                    cause,
                ),
            ),
            Stimulus::Modify {
                instance,
                modification,
                cause,
            } => (
                instance,
                Command::new(CommandKind::Modify(Box::new(modification)), cause),
            ),
            Stimulus::Migrate {
                instance,
                migration,
                cause,
            } => return self.migrate(instance, &migration, cause),
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
                from,
                ..
            } => (
                instance,
                Command::new(
                    CommandKind::CatchSignal {
                        owner,
                        element,
                        variables,
                    },
                    Cause::Signal {
                        from: from.map(Box::new),
                    },
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
            Stimulus::Publish { .. }
            | Stimulus::Broadcast { .. }
            | Stimulus::CancelChild { .. }
            | Stimulus::HoldChild { .. }
            | Stimulus::ReleaseChild { .. } => return Ok(()),
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
        if resident.instance.is_held() {
            self.shared.held.lock().insert(key);
            self.rest_if_settled(key);
            return Err(Error::InstanceHeld(key));
        }
        let entering = match resident.instance.is_started() {
            false => Entering::Start,
            true => Entering::Continue,
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
        self.take_up(key);
        Ok(true)
    }

    /// A queued stimulus that can never be executed: taken out, counted, logged.
    pub(super) fn drop_stimulus(&mut self, row: StimulusRow, why: &str) {
        Counters::add(&self.shared.counters.stimuli_refused, 1);
        tracing::warn!(stimulus = %row.key, domain = row.domain, event = "StimulusRefused", "a queued stimulus was refused: {why}");
        let key = row.key;
        self.take_out(row, vec![Write::RemoveStimulus(key)]);
    }

    /// A person was told that a request is accepted, and now nothing can come of it: that becomes an incident of the
    /// instance, and what follows goes on.
    fn show_refused(
        &mut self,
        row: StimulusRow,
        instance: InstanceKey,
        request: &str,
        rejection: &Rejection,
    ) {
        let message = format!(
            "{request} was accepted to be executed later and is refused now: {rejection}. Nothing came of it and nothing \
             is tried again; resolve this incident when that is in order."
        );
        let kind = CommandKind::RefuseStimulus { message };
        let is_there = self.load(instance).unwrap_or(false);
        if !is_there || self.advance(instance, Command::new(kind, Cause::Engine)).is_err() {
            self.rest_if_settled(instance);
            return self.drop_stimulus(row, &rejection.to_string());
        }
        Counters::add(&self.shared.counters.stimuli_refused, 1);
        tracing::warn!(stimulus = %row.key, %instance, event = "StimulusRefused", "{request} was accepted and is refused now: {rejection}");
        self.pending.left(&Domain::Instance(instance));
        if let Some(resident) = self.residents.get_mut(&instance) {
            resident.expect.push(Expect::Stimulus(row.key));
            resident.riders.push(Write::RemoveStimulus(row.key));
            resident.consumed.push(Item::Stimulus(row));
        }
        self.mark_dirty(instance);
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
            from,
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
            from,
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
        self.pending.hold(&domain);
        self.loose.push(Prepared {
            commit,
            then: Box::new(move |owner, result| match result {
                Ok(outcome) => {
                    owner.pending.left(&domain);
                    owner.pending.release(&domain);
                    owner
                        .shared
                        .queue_depth
                        .fetch_sub(1, std::sync::atomic::Ordering::Relaxed);
                    owner.arrange(outcome);
                }
                Err(tidegate_store::CommitError::Refused(tidegate_store::Refusal::StimulusGone(_))) => {
                    // It went with its instance, which was forgotten meanwhile.
                    owner.pending.left(&domain);
                    owner
                        .shared
                        .queue_depth
                        .fetch_sub(1, std::sync::atomic::Ordering::Relaxed);
                }
                Err(error) => {
                    owner.pending.release(&domain);
                    owner.put_back_later(Item::Stimulus(row), &problem_of(&error));
                }
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
}

/// A person's request in words, for the stimuli that stand for one.
fn request_of(stimulus: &Stimulus) -> Option<String> {
    match stimulus {
        Stimulus::CompleteUserTask { task, actor, .. } => {
            Some(format!("the completion of user task {task} by `{actor}`"))
        }
        Stimulus::SetVariables { actor, .. } => Some(format!("a change of variables by `{actor}`")),
        Stimulus::ResolveIncident { incident, cause, .. } => {
            Some(format!("the resolving of incident {incident}{}", by(cause)))
        }
        Stimulus::Modify { cause, .. } => Some(format!("a modification{}", by(cause))),
        Stimulus::Migrate { migration, cause, .. } => Some(format!(
            "the change to definition {}{}",
            migration.definition,
            by(cause)
        )),
        Stimulus::Start { .. }
        | Stimulus::Publish { .. }
        | Stimulus::Deliver { .. }
        | Stimulus::JobOutcome { .. }
        | Stimulus::RetryIncident { .. }
        | Stimulus::Broadcast { .. }
        | Stimulus::Signal { .. }
        | Stimulus::Child { .. }
        | Stimulus::CancelChild { .. }
        | Stimulus::HoldChild { .. }
        | Stimulus::ReleaseChild { .. } => None,
    }
}

fn by(cause: &Cause) -> String {
    match cause {
        Cause::Operator { actor, .. } => format!(" by `{actor}`"),
        _ => String::new(),
    }
}

/// True if the trouble is the item's own, and not the store's with everything.
pub(super) fn is_of_its_own(problem: &Error) -> bool {
    use tidegate_store::ErrorKind;
    match problem {
        Error::Store(error) => {
            !error.kind().is_retryable() && !matches!(error.kind(), ErrorKind::Fenced | ErrorKind::Closed)
        }
        _ => true,
    }
}

pub(super) fn refuse<T>(reply: Reply<T>, error: Error) {
    // Whoever asked may have gone.
    let _ = reply.send(Err(error));
}

/// The scope that a request names; the instance's own key stands for the instance itself.
fn scope_of(instance: InstanceKey, scope: Option<ElementInstanceKey>) -> ElementInstanceKey {
    let inner = scope.filter(|scope| scope.get() != instance.get());
    inner.unwrap_or(ElementInstanceKey::ROOT)
}

fn translate(rejection: Rejection) -> Error {
    match rejection {
        Rejection::NoSuchJob(job) => Error::NoSuchJob(job.get()),
        Rejection::NoSuchUserTask(task) => Error::NoSuchUserTask(task.get()),
        Rejection::NoSuchIncident(incident) => Error::NoSuchIncident(incident),
        other => Error::Rejected(other),
    }
}
