//! Control of one instance: suspend it, let it go, cancel it.
//!
//! Each verb is durable when it is answered, is written into the audit trail by the commit that does it, and may be asked
//! for again. None needs a permit: they hold or end what is there, also while the runtime is paused or drains.

use std::collections::VecDeque;
use std::time::Duration;

use tidegate_model::{Cancellation, Cause, HeldTimers, Hold, HoldScope, InstanceKey, SubStatus};
use tidegate_store::{AuditRow, InstanceFilter, InstanceRow, Page};
use tokio::time::Instant;

use crate::builder::blocking;
use crate::error::Error;
use crate::owner::{CancelOrder, HoldOrder, Message, ReleaseOrder};
use crate::request;
use crate::runtime::Runtime;

/// A request to suspend an instance.
#[derive(Debug, Clone)]
pub struct SuspendRequest {
    /// Why.
    pub reason: Option<String>,
    /// Who asks.
    pub actor: String,
    /// How far it reaches.
    pub scope: HoldScope,
    /// What timers do meanwhile; none for [`crate::Options::held_timers`].
    pub timers: Option<HeldTimers>,
    /// Cut what runs in the instance instead of waiting until it has rested: handlers are stopped, no try of theirs is used
    /// up, and what they bring later is refused. Reaches this instance alone.
    pub now: bool,
    /// How long to wait until the hold is effective everywhere it reaches. The hold stands when that runs out.
    pub wait: Duration,
}

impl SuspendRequest {
    /// Suspends the whole call tree, with the runtime's rule for timers.
    pub fn by(actor: impl Into<String>) -> Self {
        Self {
            reason: None,
            actor: actor.into(),
            scope: HoldScope::default(),
            timers: None,
            now: false,
            wait: Duration::from_secs(1),
        }
    }
}

/// What a suspension came to.
#[derive(Debug, Clone)]
pub struct Suspension {
    /// The instance.
    pub row: InstanceRow,
    /// How far the hold reaches.
    pub scope: HoldScope,
    /// What timers do meanwhile.
    pub timers: HeldTimers,
    /// True once nothing of it, and of what it reaches, runs.
    pub is_effective: bool,
    /// How many instances are held with it, itself included, as far as the wait has seen.
    pub held_instances: usize,
}

/// A request to cancel an instance.
#[derive(Debug, Clone)]
pub struct CancelRequest {
    /// Why.
    pub reason: Option<String>,
    /// Who asks.
    pub actor: String,
    /// How long the caller waits for the end.
    pub wait: Duration,
    /// How long handlers may take to stop before they are abandoned; none for [`crate::Options::cancel_patience`]. At 0 they
    /// are abandoned at once, and called instances are not waited for.
    pub patience: Option<Duration>,
}

impl CancelRequest {
    /// Waits so long for the end, with the runtime's own patience.
    pub fn by(actor: impl Into<String>, wait: Duration) -> Self {
        Self {
            reason: None,
            actor: actor.into(),
            wait,
            patience: None,
        }
    }
}

impl Runtime {
    /// Suspends an instance: nothing of it goes on until [`Runtime::resume_instance`]. What arrives for it is accepted and
    /// waits; results of work that is out are taken and kept. A second call keeps the first reason, author and time.
    ///
    /// Takes effect when the handlers that run in it have ended, or at once with [`SuspendRequest::now`].
    ///
    /// # Durability
    /// Answers when the hold is on disk. Holds of called instances stand in the queue with the same commit.
    ///
    /// # Errors
    /// Unknown instance; it has ended or is being cancelled; a failing store.
    ///
    /// # Cancel safety
    /// The hold stands even if the future is dropped.
    pub async fn suspend(&self, instance: InstanceKey, request: SuspendRequest) -> Result<Suspension, Error> {
        let until = Instant::now() + request.wait;
        let scope = request.scope;
        let timers = request.timers.unwrap_or(self.shared().options.held_timers);
        let hold = Hold {
            origin: instance,
            since: self.shared().now(),
            actor: request.actor.clone(),
            reason: request.reason.clone(),
            scope,
            timers,
        };
        let order = Box::new(HoldOrder {
            instance,
            hold,
            now: request.now,
            audit: Some(self.control_audit(
                "InstanceSuspendRequested",
                instance,
                &request.actor,
                request.reason,
            )),
        });
        let owner = self.inner().owners.of_key(instance.get());
        let row = self.ask(owner, |reply| Message::Hold(order, reply)).await?;
        let (is_effective, held_instances) = self.held_tree(row.clone(), scope, until).await?;
        let row = match row.sub_status {
            SubStatus::Held => row,
            _ => self.instance_row(instance).await?,
        };
        Ok(Suspension {
            row,
            scope,
            timers,
            is_effective,
            held_instances,
        })
    }

    /// Waits until the instance, and what it has called, is held. True if all of it is; and how many are.
    async fn held_tree(
        &self,
        root: InstanceRow,
        scope: HoldScope,
        until: Instant,
    ) -> Result<(bool, usize), Error> {
        const PAGE: usize = 1_000;
        let mut held = 0;
        let mut open = VecDeque::from([root]);
        while let Some(mut row) = open.pop_front() {
            // It was read with many others, a while ago.
            let mut is_old = true;
            while !(row.sub_status == SubStatus::Held
                || row.sub_status == SubStatus::Cancelling
                || row.sub_status.is_finished())
            {
                if !is_old {
                    if Instant::now() >= until {
                        return Ok((false, held));
                    }
                    self.look_again(until).await;
                }
                is_old = false;
                row = self.instance_row(row.key).await?;
            }
            held += usize::from(row.sub_status == SubStatus::Held);
            if scope == HoldScope::Alone {
                break;
            }
            if !self.may_call(&row).await? {
                continue;
            }
            let mut after = None;
            loop {
                let filter = InstanceFilter {
                    parent: Some(row.key),
                    ..InstanceFilter::default()
                };
                let (store, page) = (self.shared().store.clone(), Page { after, limit: PAGE });
                let rows = blocking(move || store.instances(&filter, page)).await?;
                let is_last = rows.len() < PAGE;
                after = rows.last().map(|row| row.key.get());
                open.extend(rows.into_iter().filter(|row| !row.sub_status.is_finished()));
                if is_last {
                    break;
                }
            }
        }
        Ok((true, held))
    }

    async fn instance_row(&self, instance: InstanceKey) -> Result<InstanceRow, Error> {
        let store = self.shared().store.clone();
        blocking(move || store.instance(instance))
            .await?
            .ok_or(Error::NoSuchInstance(instance))
    }

    async fn may_call(&self, row: &InstanceRow) -> Result<bool, Error> {
        let (shared, definition) = (self.shared().clone(), row.definition);
        let loaded = blocking(move || shared.definitions.get(&*shared.store, definition)).await?;
        Ok(loaded.is_some_and(|loaded| loaded.definition.may_call()))
    }

    async fn look_again(&self, until: Instant) {
        /// How often the instances that are not held yet are looked at.
        const PAUSE: Duration = Duration::from_millis(5);
        self.inner().owners.barrier().await;
        tokio::time::sleep_until(until.min(Instant::now() + PAUSE)).await;
    }

    /// Lets a suspended instance go, and what is held with it. What was accepted meanwhile is executed in its order, timers
    /// that fell due fire once, and jobs are offered again. An instance that is not held is answered unchanged.
    ///
    /// # Durability
    /// Answers when the end of the hold is on disk.
    ///
    /// # Errors
    /// Unknown instance; it has ended or is being cancelled; a failing store.
    ///
    /// # Cancel safety
    /// The release stands even if the future is dropped.
    pub async fn resume_instance(
        &self,
        instance: InstanceKey,
        reason: Option<String>,
        actor: &str,
    ) -> Result<InstanceRow, Error> {
        let order = Box::new(ReleaseOrder {
            instance,
            cause: Cause::Operator {
                actor: actor.to_owned(),
                reason: reason.clone(),
            },
            audit: Some(self.control_audit("InstanceResumeRequested", instance, actor, reason)),
        });
        let owner = self.inner().owners.of_key(instance.get());
        self.ask(owner, |reply| Message::Release(order, reply)).await
    }

    /// Cancels an instance and waits for its end. An ended one is answered at once and unchanged. Lawful in every state,
    /// also while the runtime is paused or drains.
    ///
    /// Handlers are told to stop, called instances are cancelled, everything else ends; a handler that has not stopped
    /// when the patience is over is abandoned by name, and what it brings later is refused. Asked again with less patience,
    /// that holds.
    ///
    /// # Durability
    /// The request is on disk before anything is answered, and a restart goes on with it.
    ///
    /// # Errors
    /// [`Error::StillCancelling`] with the instance as it is when the wait ran out: the request stands. Unknown instance; a
    /// failing store.
    ///
    /// # Cancel safety
    /// The request stands even if the future is dropped.
    pub async fn cancel_and_wait(
        &self,
        instance: InstanceKey,
        request: CancelRequest,
    ) -> Result<InstanceRow, Error> {
        let until = Instant::now() + request.wait;
        let row = self.ask_to_cancel(instance, &request).await?;
        if row.sub_status.is_finished() {
            return Ok(row);
        }
        let left = until.saturating_duration_since(Instant::now());
        match self.wait(instance, left).await {
            Ok(_) | Err(Error::WaitRanOut(_)) => {}
            Err(error) => return Err(error),
        }
        let row = self.instance_row(instance).await?;
        match row.sub_status.is_finished() {
            true => Ok(row),
            false => Err(Error::StillCancelling(Box::new(row))),
        }
    }

    /// Cancels an instance and waits for its end for as long as the runtime's own patience lets handlers run on, and a
    /// little more: see [`Runtime::cancel_and_wait`].
    ///
    /// # Errors
    /// As for [`Runtime::cancel_and_wait`].
    pub async fn cancel(
        &self,
        instance: InstanceKey,
        reason: Option<String>,
        actor: &str,
    ) -> Result<InstanceRow, Error> {
        /// In which the end of an abandoned handler's instance becomes durable.
        const TO_COMMIT: Duration = Duration::from_secs(5);
        let wait = self.shared().options.cancel_patience + TO_COMMIT;
        let request = CancelRequest {
            reason,
            ..CancelRequest::by(actor, wait)
        };
        self.cancel_and_wait(instance, request).await
    }

    /// Asks for the end of an instance and answers as soon as the request is on disk, with the instance as it is then:
    /// cancelled where nothing of it had to be waited for, else `cancelling`. An ended one is answered unchanged.
    ///
    /// # Errors
    /// Unknown instance, a failing store.
    pub async fn ask_to_cancel(
        &self,
        instance: InstanceKey,
        request: &CancelRequest,
    ) -> Result<InstanceRow, Error> {
        let patience_ms = |patience: Duration| u64::try_from(patience.as_millis()).unwrap_or(u64::MAX);
        let cancellation = Cancellation {
            since: self.shared().now(),
            actor: request.actor.clone(),
            reason: request.reason.clone(),
            is_unheard: false,
            patience_ms: request.patience.map(patience_ms),
            caller: None,
        };
        let (actor, reason) = (&request.actor, request.reason.clone());
        let order = Box::new(CancelOrder {
            instance,
            cancellation,
            audit: Some(self.control_audit("InstanceCancelRequested", instance, actor, reason)),
        });
        let owner = self.inner().owners.of_key(instance.get());
        self.ask(owner, |reply| Message::Cancel(order, reply)).await
    }

    fn control_audit(
        &self,
        action: &str,
        instance: InstanceKey,
        actor: &str,
        reason: Option<String>,
    ) -> AuditRow {
        let mut audit = self.shared().audit(action, actor, reason);
        audit.subject = Some(instance.to_string());
        audit.scope = "instance".to_owned();
        audit.request_id = request::current();
        audit
    }
}
