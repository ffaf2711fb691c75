//! The runtime of one shell, as a program sees it.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tidegate_model::stimulus::JobOutcome;
use tidegate_model::{
    Cause, Command, CommandKind, ElementInstanceKey, IncidentKey, InstanceKey, Stimulus, Timestamp, Variables,
};
use tidegate_store::InstanceRow;
use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::api::{
    Acceptance, Check, DEFAULT_TENANT, Definition, Grade, MessageRequest, Published, SignalRequest,
    StartRequest, Started,
};
use crate::builder::{Builder, blocking};
use crate::definitions::Loaded;
use crate::drain::Drain;
use crate::error::Error;
use crate::gate::Quiescence;
use crate::ingress::{Ingress, IngressSource, Sources};
use crate::options::ForceDuringDrain;
use crate::owner::{BroadcastOrder, Message, MoveOrder, Owners, PublishOrder, StartOrder};
use crate::pause::Pause;
use crate::request;
use crate::shared::Shared;
use crate::status::{DrainOutcome, DrainTrigger, GateStatus, QueueStatus, RuntimeStatus};
use crate::tasks::Tasks;

/// The runtime of one shell. Cheap to clone; all clones are the same runtime.
#[derive(Clone)]
pub struct Runtime {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) shared: Arc<Shared>,
    pub(crate) owners: Owners,
    pub(crate) sources: Arc<Sources>,
    pub(crate) pause: Arc<Pause>,
    pub(crate) drain: Arc<Drain>,
    pub(crate) tasks: Arc<Tasks>,
    pub(crate) stop: CancellationToken,
}

impl Drop for Inner {
    fn drop(&mut self) {
        // A runtime that is let go of without `close` does not leave its threads behind.
        self.stop.cancel();
        self.owners.tell_all(|| Message::Stop);
    }
}

impl std::fmt::Debug for Runtime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runtime")
            .field("shell", &self.inner.shared.shell)
            .finish_non_exhaustive()
    }
}

impl Runtime {
    /// Begins to build one.
    pub fn builder() -> Builder {
        Builder::default()
    }

    pub(crate) fn new(inner: Inner) -> Self {
        Self {
            inner: Arc::new(inner),
        }
    }

    pub(crate) fn of(inner: Arc<Inner>) -> Self {
        Self { inner }
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.inner
    }

    /// Gives every source its way in.
    pub(crate) fn attach_sources(&self, starts_paused: bool) {
        self.inner
            .sources
            .attach(|name| Ingress::new(name, starts_paused, &self.inner));
    }

    /// Sources are fixed for a generation: give them to the builder of the next one.
    ///
    /// # Errors
    /// Always [`Error::SourcesAreFixed`], which says so.
    pub fn register_source(&self, source: &dyn IngressSource) -> Result<(), Error> {
        Err(Error::SourcesAreFixed(source.name().to_owned()))
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.inner.shared
    }

    /// Sends an order to an owner and waits for its answer. The order stands even if the wait is given up.
    pub(crate) async fn ask<T>(
        &self,
        owner: usize,
        message: impl FnOnce(crate::owner::Reply<T>) -> Message,
    ) -> Result<T, Error> {
        let (sender, receiver) = oneshot::channel();
        self.inner.owners.send_to(owner, message(sender));
        receiver.await.map_err(|_| Error::Stopped)?
    }

    // --- instances ---

    /// Starts an instance.
    ///
    /// # Durability
    /// Answers when the start is on disk: with its first commit, or, while the gate is closed, when it is
    /// accepted in the queue ([`Started::accepted`]).
    ///
    /// # Errors
    /// Unknown definition, a start event that does not fit, a full queue under policy Reject, a failing store; with
    /// [`StartRequest::await_completion`], [`Error::WaitRanOut`].
    ///
    /// # Cancel safety
    /// The start stands even if the future is dropped.
    pub async fn start(&self, request: StartRequest) -> Result<Started, Error> {
        self.start_or_accept(request, false).await
    }

    /// As [`Runtime::start`]; made durable and no more if `accept_only`.
    pub(crate) async fn start_or_accept(
        &self,
        request: StartRequest,
        accept_only: bool,
    ) -> Result<Started, Error> {
        let tenant = request.tenant.as_deref().unwrap_or(DEFAULT_TENANT);
        let loaded = self.find(&request.definition, tenant).await?;
        let owner = match &request.idempotency_key {
            Some(key) => self.inner.owners.of_text(key),
            None => self.inner.owners.next(),
        };
        let known = request.await_completion.map(|_| Arc::new(OnceLock::new()));
        let order = StartOrder {
            loaded,
            variables: request.variables,
            business_key: request.business_key,
            idempotency_key: request.idempotency_key,
            awaits_end: known.clone(),
            actor: request.actor,
            source: request.source,
            accept_only,
        };
        let answer = self.ask(owner, |reply| Message::Start(Box::new(order), reply));
        let (Some(at_most), Some(known)) = (request.await_completion, known) else {
            return answer.await;
        };
        match tokio::time::timeout(at_most, answer).await {
            Ok(Ok(started)) if started.accepted.is_none() && !started.sub_status.is_finished() => {
                // A repeated start of an instance that goes on.
                self.wait(started.instance, at_most).await
            }
            Ok(answer) => answer,
            Err(_) => match known.get() {
                Some(instance) => Err(Error::WaitRanOut(*instance)),
                None => Err(Error::Invalid {
                    code: "wait-ran-out",
                    message: "the start was not answered in time; it may still happen".to_owned(),
                }),
            },
        }
    }

    /// Waits for the end of an instance.
    ///
    /// # Errors
    /// Unknown instance; [`Error::WaitRanOut`].
    pub async fn wait(&self, instance: InstanceKey, at_most: Duration) -> Result<Started, Error> {
        let owner = self.inner.owners.of_key(instance.get());
        let answer = self.ask(owner, |reply| Message::AwaitEnd(instance, reply));
        match tokio::time::timeout(at_most, answer).await {
            Ok(answer) => answer,
            Err(_) => Err(Error::WaitRanOut(instance)),
        }
    }

    /// # Errors
    /// No version of this process id is, or was, deployed.
    pub(crate) async fn must_know(&self, tenant: &str, process_id: &str) -> Result<(), Error> {
        let (store, id, of_tenant) = (
            self.shared().store.clone(),
            process_id.to_owned(),
            tenant.to_owned(),
        );
        match blocking(move || store.highest_version(&id, &of_tenant)).await? {
            0 => Err(Error::NoSuchProcess {
                process_id: process_id.to_owned(),
                version: None,
            }),
            _ => Ok(()),
        }
    }

    async fn find(&self, definition: &Definition, tenant: &str) -> Result<Arc<Loaded>, Error> {
        let definitions = &self.shared().definitions;
        match definition {
            Definition::Latest(process_id) => {
                definitions
                    .latest(tenant, process_id)
                    .ok_or_else(|| Error::NoSuchProcess {
                        process_id: process_id.clone(),
                        version: None,
                    })
            }
            Definition::Version(process_id, version) => {
                let missing = || Error::NoSuchProcess {
                    process_id: process_id.clone(),
                    version: Some(*version),
                };
                if let Some(latest) = definitions.latest(tenant, process_id)
                    && latest.row.version == *version
                {
                    return Ok(latest);
                }
                let filter = tidegate_store::DefinitionFilter {
                    kind: Some(tidegate_store::DefinitionKind::Process),
                    process_id: Some(process_id.clone()),
                    latest: false,
                    tenant: Some(tenant.to_owned()),
                };
                let shared = self.shared().clone();
                let version = *version;
                let found = blocking(move || {
                    let rows = shared
                        .store
                        .definitions(&filter, tidegate_store::Page::first(10_000))?;
                    match rows.into_iter().find(|row| row.version == version) {
                        Some(row) => shared.definitions.get(&*shared.store, row.key),
                        None => Ok(None),
                    }
                });
                found.await?.ok_or_else(missing)
            }
            Definition::Key(key) => {
                let (shared, key) = (self.shared().clone(), *key);
                let found = blocking(move || shared.definitions.get(&*shared.store, key)).await?;
                match found {
                    Some(loaded) if !loaded.row.is_deleted && *loaded.row.tenant == *tenant => Ok(loaded),
                    _ => Err(Error::NoSuchDefinition(key)),
                }
            }
        }
    }

    /// Changes variables of an instance from outside.
    ///
    /// # Errors
    /// Unknown or ended instance, a failing store.
    pub async fn set_variables(
        &self,
        instance: InstanceKey,
        variables: Variables,
        actor: &str,
    ) -> Result<Acceptance, Error> {
        let actor = actor.to_owned();
        self.move_instance(
            instance,
            Stimulus::SetVariables {
                instance,
                variables,
                actor,
            },
            None,
        )
        .await
    }

    async fn move_instance(
        &self,
        instance: InstanceKey,
        stimulus: Stimulus,
        lease: Option<(ElementInstanceKey, String)>,
    ) -> Result<Acceptance, Error> {
        let order = Box::new(MoveOrder {
            stimulus,
            instance,
            source: Some("http.api"),
            lease,
        });
        let owner = self.inner.owners.of_key(instance.get());
        self.ask(owner, |reply| Message::Move(order, reply)).await
    }

    // --- messages ---

    /// Publishes a message.
    ///
    /// # Durability
    /// Answers when it is on disk: matched, buffered, or accepted in the queue.
    ///
    /// # Errors
    /// A full queue under policy Reject, a failing store.
    pub async fn publish(&self, request: MessageRequest) -> Result<Published, Error> {
        self.publish_or_accept(request, false).await
    }

    /// As [`Runtime::publish`]; made durable and no more if `accept_only`.
    pub(crate) async fn publish_or_accept(
        &self,
        mut request: MessageRequest,
        accept_only: bool,
    ) -> Result<Published, Error> {
        let ttl = request.ttl.unwrap_or(self.shared().options.message_ttl);
        let tenant = request.tenant.unwrap_or_else(|| DEFAULT_TENANT.to_owned());
        if request.correlation_key.is_empty()
            && let Some(key) =
                self.shared()
                    .definitions
                    .correlation_key(&tenant, &request.name, &request.variables)
        {
            request.correlation_key = key;
        }
        let owner = self
            .inner
            .owners
            .of_message(&tenant, &request.name, &request.correlation_key);
        let order = Box::new(PublishOrder {
            tenant: tenant.into(),
            name: request.name,
            correlation_key: request.correlation_key,
            variables: request.variables,
            // A century is for ever.
            ttl_ms: i64::try_from(ttl.as_millis())
                .unwrap_or(i64::MAX)
                .min(100 * 365 * 24 * 3_600_000),
            message_id: request.message_id,
            source: request.source,
            accept_only,
        });
        self.ask(owner, |reply| Message::Publish(order, reply)).await
    }

    /// Broadcasts a signal: every instance that waits for it takes it, and every signal start event of the newest
    /// definitions begins an instance. A signal that nobody waits for is gone.
    ///
    /// # Durability
    /// Answers when it is on disk for everybody who takes it, or accepted in the queue.
    ///
    /// # Errors
    /// A full queue under policy Reject, a failing store.
    pub async fn broadcast(&self, request: SignalRequest) -> Result<Published, Error> {
        let tenant = request.tenant.unwrap_or_else(|| DEFAULT_TENANT.to_owned());
        let owner = self.inner.owners.of_signal(&tenant, &request.name);
        let order = Box::new(BroadcastOrder {
            tenant: tenant.into(),
            name: request.name,
            variables: request.variables,
            source: request.source,
        });
        let mut published = self.ask(owner, |reply| Message::Broadcast(order, reply)).await?;
        published.is_buffered &= published.accepted.is_some();
        Ok(published)
    }

    // --- jobs, user tasks, incidents ---

    /// Completes a leased job.
    ///
    /// # Errors
    /// [`Error::StaleLease`], [`Error::NoSuchJob`], a failing store.
    pub async fn complete_job(
        &self,
        job: ElementInstanceKey,
        lease_token: &str,
        variables: Variables,
    ) -> Result<Acceptance, Error> {
        self.report_job(job, lease_token, JobOutcome::Complete { variables })
            .await
    }

    /// Reports a technical failure of a leased job.
    ///
    /// # Errors
    /// As for [`Runtime::complete_job`].
    pub async fn fail_job(
        &self,
        job: ElementInstanceKey,
        lease_token: &str,
        message: String,
        retries: Option<u32>,
        backoff: Option<Duration>,
    ) -> Result<Acceptance, Error> {
        let retry_at = backoff.map(|b| {
            self.shared()
                .now()
                .plus_ms(i64::try_from(b.as_millis()).unwrap_or(i64::MAX))
        });
        self.report_job(
            job,
            lease_token,
            JobOutcome::Fail {
                message,
                retries,
                retry_at,
            },
        )
        .await
    }

    /// Ends a leased job in a BPMN error.
    ///
    /// # Errors
    /// As for [`Runtime::complete_job`].
    pub async fn throw_job_error(
        &self,
        job: ElementInstanceKey,
        lease_token: &str,
        code: String,
        message: String,
        variables: Variables,
    ) -> Result<Acceptance, Error> {
        self.report_job(
            job,
            lease_token,
            JobOutcome::Error {
                code,
                message,
                variables,
            },
        )
        .await
    }

    async fn report_job(
        &self,
        job: ElementInstanceKey,
        lease_token: &str,
        outcome: JobOutcome,
    ) -> Result<Acceptance, Error> {
        let store = self.shared().store.clone();
        let row = blocking(move || store.job(job))
            .await?
            .ok_or(Error::NoSuchJob(job.get()))?;
        let worker = row.worker.unwrap_or_default();
        let stimulus = Stimulus::JobOutcome {
            instance: row.instance,
            job,
            outcome,
            worker,
        };
        self.move_instance(row.instance, stimulus, Some((job, lease_token.to_owned())))
            .await
    }

    /// Gives a user task to a person, or back to all.
    ///
    /// # Errors
    /// Unknown task; [`Error::UserTaskClaimed`] when somebody else has it.
    pub async fn claim_user_task(
        &self,
        task: ElementInstanceKey,
        assignee: Option<String>,
        actor: &str,
    ) -> Result<(), Error> {
        let row = self.user_task_row(task).await?;
        if assignee.is_some() && row.assignee.is_some() && row.assignee != assignee {
            return Err(Error::UserTaskClaimed { task: task.get() });
        }
        let cause = Cause::Client {
            actor: actor.to_owned(),
        };
        let command = Box::new(Command::new(
            CommandKind::AssignUserTask { task, assignee },
            cause,
        ));
        let owner = self.inner.owners.of_key(row.instance.get());
        self.ask(owner, |reply| Message::Control(row.instance, command, reply))
            .await
            .map(drop)
    }

    /// Completes a user task.
    ///
    /// # Errors
    /// Unknown task, a failing store.
    pub async fn complete_user_task(
        &self,
        task: ElementInstanceKey,
        variables: Variables,
        actor: &str,
    ) -> Result<Acceptance, Error> {
        let row = self.user_task_row(task).await?;
        let stimulus = Stimulus::CompleteUserTask {
            instance: row.instance,
            task,
            variables,
            actor: actor.to_owned(),
        };
        self.move_instance(row.instance, stimulus, None).await
    }

    async fn user_task_row(&self, task: ElementInstanceKey) -> Result<tidegate_store::UserTaskRow, Error> {
        let store = self.shared().store.clone();
        blocking(move || store.user_task(task))
            .await?
            .ok_or(Error::NoSuchUserTask(task.get()))
    }

    /// Tries once more what an incident stopped.
    ///
    /// # Errors
    /// Unknown incident, a failing store.
    pub async fn retry_incident(
        &self,
        incident: IncidentKey,
        retries: Option<u32>,
        actor: &str,
    ) -> Result<Acceptance, Error> {
        let store = self.shared().store.clone();
        let row = blocking(move || store.incident(incident))
            .await?
            .ok_or(Error::NoSuchIncident(incident))?;
        let stimulus = Stimulus::RetryIncident {
            instance: row.instance,
            incident,
            retries,
            actor: actor.to_owned(),
        };
        let acceptance = self.move_instance(row.instance, stimulus, None).await?;
        let mut audit = self.shared().audit("IncidentRetryRequested", actor, None);
        audit.subject = Some(incident.to_string());
        audit.scope = "instance".to_owned();
        self.shared().write_audit(audit).await;
        Ok(acceptance)
    }

    // --- administration ---

    /// The gate's state. Takes no lock.
    pub fn quiescence(&self) -> Quiescence {
        self.shared().gate.read()
    }

    /// When the present pause ends by itself.
    pub fn paused_until(&self) -> Option<Timestamp> {
        self.inner.pause.record().and_then(|record| record.until)
    }

    /// A number that changes with every change of the status.
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.shared().watch()
    }

    /// The whole status.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn status(&self) -> Result<RuntimeStatus, Error> {
        let store = self.shared().store.clone();
        let seen = blocking(move || Ok((store.counts()?, store.queue()?))).await;
        let (counts, queue) = match seen {
            Ok(seen) => {
                *self.shared().last_seen.lock() = seen;
                seen
            }
            Err(error) => {
                // The gate and the sources are known without a store; the figures are the last ones seen.
                tracing::warn!("the store's part of the status is not the newest: {error}");
                *self.shared().last_seen.lock()
            }
        };
        let quiescence = self.quiescence();
        let record = self.inner.pause.record();
        let (drain_started_at, drain_deadline_at) = self.inner.drain.times();
        let options = &self.shared().options;
        Ok(RuntimeStatus {
            state: GateStatus {
                reason: quiescence.reason().to_owned(),
                is_accepting_new_work: quiescence.is_accepting(),
                paused_at: record.as_ref().map(|r| r.at),
                paused_until: record.as_ref().and_then(|r| r.until),
                drain_started_at,
                drain_deadline_at,
                pause_reason_text: record.as_ref().and_then(|r| r.reason.clone()),
                pause_requested_by: record.map(|r| r.by),
                generation_id: self.shared().generation.to_string(),
            },
            sources: self.inner.sources.status(),
            active_execution_cycle_count: quiescence.live(),
            stimulus_queue: QueueStatus {
                depth: queue.depth,
                max_depth_while_paused: options.queue_max_depth,
                overflow_policy: options.overflow_policy,
                oldest_accepted_at: queue.oldest_accepted_at,
            },
            interrupted_instance_count: counts[usize::from(tidegate_model::SubStatus::Interrupted.code())],
        })
    }

    /// Pauses the runtime: no source delivers, no cycle begins; stimuli are accepted. Idempotent.
    ///
    /// # Errors
    /// `until` has passed; the pause could not be made durable where it must be.
    pub async fn pause(
        &self,
        reason: Option<String>,
        until: Option<Timestamp>,
        actor: &str,
    ) -> Result<RuntimeStatus, Error> {
        let (pause, actor) = (self.inner.pause.clone(), actor.to_owned());
        // In a task of its own: a caller that hangs up changes nothing.
        let step = tokio::spawn(request::carry(
            async move { pause.pause(reason, until, &actor).await },
        ));
        step.await.map_err(|_| Error::Stopped)??;
        self.status().await
    }

    /// Ends the pause. Idempotent.
    ///
    /// # Errors
    /// [`Error::ResumeWhileDraining`]; the end could not be made durable where it must be.
    pub async fn resume(&self, actor: &str) -> Result<RuntimeStatus, Error> {
        let quiescence = self.quiescence();
        let is_over = self.inner.drain.outcome().is_some();
        if quiescence.is_draining() && !(is_over && quiescence.is_paused()) {
            return Err(Error::ResumeWhileDraining(Box::new(self.status().await?)));
        }
        let (pause, actor) = (self.inner.pause.clone(), actor.to_owned());
        let step = tokio::spawn(request::carry(async move { pause.resume(&actor).await }));
        step.await.map_err(|_| Error::Stopped)??;
        self.status().await
    }

    /// Drains without waiting: live cycles are cut and marked as interrupted. Hurries a drain in progress.
    ///
    /// # Errors
    /// [`Error::DrainInProgress`] where the runtime is set to reject force during a drain.
    pub async fn force_drain(&self, reason: Option<String>, actor: &str) -> Result<DrainOutcome, Error> {
        let drain = &self.inner.drain;
        if let Some(outcome) = drain.outcome() {
            return Ok((*outcome).clone());
        }
        let rejects = self.shared().options.force_during_drain == ForceDuringDrain::Reject;
        if rejects && drain.is_under_way() && !drain.is_forced() {
            return Err(Error::DrainInProgress(Box::new(self.status().await?)));
        }
        let (drain, shared, actor) = (drain.clone(), self.shared().clone(), actor.to_owned());
        // In a task of its own: a caller that hangs up changes nothing, the audit included.
        let step = tokio::spawn(request::carry(async move {
            let mut audit = shared.audit("RuntimeForceDrainRequested", &actor, reason.clone());
            audit.before = Some(shared.gate.read().reason().to_owned());
            let (outcome, was_first) = drain.force(reason).await;
            if was_first {
                audit.after = Some(shared.gate.read().reason().to_owned());
                shared.write_audit(audit).await;
            }
            outcome
        }));
        let outcome = step.await.map_err(|_| Error::Stopped)?;
        Ok((*outcome).clone())
    }

    /// Drains: forward-only, ends this generation. A second call waits for the first and answers the same.
    pub async fn drain(&self, trigger: DrainTrigger) -> DrainOutcome {
        (*self.inner.drain.run(trigger).await).clone()
    }

    /// Stops a source by force.
    ///
    /// # Errors
    /// Unknown source; it is running.
    pub async fn force_stop_source(&self, name: &str, actor: &str) -> Result<RuntimeStatus, Error> {
        if self.inner.sources.force_stop(name).await? {
            let mut audit = self
                .shared()
                .audit("IngressSourceForceStopRequested", actor, None);
            audit.subject = Some(name.to_owned());
            audit.scope = "source".to_owned();
            self.shared().write_audit(audit).await;
        }
        self.status().await
    }

    /// What readiness looks at.
    pub fn readiness(&self) -> Vec<Check> {
        let quiescence = self.quiescence();
        let gate = match (quiescence.is_draining(), quiescence.is_paused()) {
            (true, _) => Some("the runtime is draining"),
            (false, true) => Some("the runtime is paused by an operator"),
            (false, false) => None,
        };
        let store = self.shared().store_health.lock().clone();
        let depth = self
            .shared()
            .queue_depth
            .load(std::sync::atomic::Ordering::Relaxed);
        let limit = self.shared().options.queue_max_depth;
        let overfull = limit.filter(|limit| depth > *limit && !quiescence.is_accepting());
        vec![
            Check {
                name: "gate",
                grade: if gate.is_some() {
                    Grade::Degraded
                } else {
                    Grade::Healthy
                },
                reason: gate.map(str::to_owned),
            },
            Check {
                name: "queue",
                grade: if overfull.is_some() {
                    Grade::Degraded
                } else {
                    Grade::Healthy
                },
                reason: overfull.map(|limit| format!("{depth} stimuli wait; the limit is {limit}")),
            },
            Check {
                name: "store",
                grade: if store.is_some() {
                    Grade::Unhealthy
                } else {
                    Grade::Healthy
                },
                reason: store.map(|error| error.to_string()),
            },
        ]
    }

    /// Ends the runtime after a drain: joins its tasks and threads, then closes the store. Idempotent.
    pub async fn close(&self) {
        let at_most = self.shared().options.reserve();
        if !self.release().await {
            tracing::error!("the store is not closed: a thread of the runtime still works in it");
            return;
        }
        let store = self.shared().store.clone();
        let closing = blocking(move || {
            store.close();
            Ok(())
        });
        match tokio::time::timeout(at_most, closing).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::error!("the store could not be closed: {error}"),
            Err(_) => tracing::error!("the store did not close in time"),
        }
    }

    /// Ends the runtime after a drain and leaves its store open, for the next generation. False if something of it
    /// still works in the store. Idempotent.
    pub async fn release(&self) -> bool {
        self.inner.stop.cancel();
        self.inner.owners.tell_all(|| Message::Stop);
        // A store that hangs must not hold the process for good: what does not end within the reserve is left, by name.
        let at_most = self.shared().options.reserve();
        let kept = self.shared().write_kept_audit();
        if !matches!(tokio::time::timeout(at_most / 4, kept).await, Ok(true)) {
            tracing::error!(
                entries = self.shared().outbox.len(),
                "audit entries stay in the log only"
            );
        }
        self.inner.tasks.clone().join(at_most).await
    }

    /// This activation's id: 32 lower-case hexadecimal digits.
    pub fn generation(&self) -> &str {
        &self.shared().generation
    }

    /// Ends once what an earlier generation left behind has been taken up, or found to be none. While the gate is
    /// closed that waits for its opening. Cancel safe.
    pub async fn recovered(&self) {
        let mut recovered = self.shared().recovered.subscribe();
        // The sender lives as long as `self`.
        let _ = recovered.wait_for(|is_over| *is_over).await;
    }

    /// Ends once every owner has come round: the engine makes progress. Cancel safe.
    pub async fn progress(&self) {
        self.inner.owners.barrier().await;
    }

    pub(crate) async fn instance_row(&self, instance: InstanceKey) -> Result<InstanceRow, Error> {
        let store = self.shared().store.clone();
        blocking(move || store.instance(instance))
            .await?
            .ok_or(Error::NoSuchInstance(instance))
    }
}
