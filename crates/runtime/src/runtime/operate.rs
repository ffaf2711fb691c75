//! The administration of a runtime: gate, pause, force, sources, readiness.

use tidegate_model::Timestamp;
use tokio::sync::watch;

use super::Runtime;
use crate::api::{Check, Grade};
use crate::builder::blocking;
use crate::error::Error;
use crate::gate::Quiescence;
use crate::options::ForceDuringDrain;
use crate::request;
use crate::status::{DrainOutcome, GateStatus, QueueStatus, RuntimeStatus};

impl Runtime {
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
        let recovering = self.shared().recovering.load();
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
                // New work is taken meanwhile: it says so, and is no reason to send nothing.
                name: "recovery",
                grade: Grade::Healthy,
                reason: recovering.map(|(done, all)| format!("recovering {done} of {all}")),
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
}
