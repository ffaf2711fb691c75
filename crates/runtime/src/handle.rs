//! One instance, as a program holds it.

use std::time::Duration;

use tidegate_engine::HistoryItem;
use tidegate_model::{IncidentKey, InstanceKey, LifecycleState, Status, SubStatus, Variables};
use tidegate_store::{IncidentFilter, IncidentRow, InstanceRow, Page};

use crate::api::{InstanceDetail, Started, Token, Wait};
use crate::builder::blocking;
use crate::error::Error;
use crate::instance_control::{CancelRequest, SuspendRequest, Suspension};
use crate::observe::{Observation, ObserveOptions};
use crate::runtime::Runtime;
use crate::start::LIBRARY;

/// What an instance is doing, as of its last commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InstanceState {
    /// Under way, or ended.
    pub status: Status,
    /// What exactly it is doing.
    pub sub_status: SubStatus,
    /// The same as a life-cycle word.
    pub lifecycle: LifecycleState,
    /// Open incidents.
    pub incident_count: u32,
}

impl InstanceState {
    /// True once it has ended, in any way.
    pub fn has_ended(&self) -> bool {
        self.status == Status::Finished
    }

    fn of(row: &InstanceRow) -> Self {
        Self {
            status: row.sub_status.status(),
            sub_status: row.sub_status,
            lifecycle: row.sub_status.lifecycle(),
            incident_count: row.incident_count,
        }
    }
}

/// One instance of a runtime. Cheap to clone; holds nothing of the instance, which needs no memory while it waits, and
/// is as good after a restart as before: [`Runtime::handle`] makes one of a key.
///
/// Every answer is as of the last commit: what is told is on disk.
#[derive(Debug, Clone)]
pub struct InstanceHandle {
    runtime: Runtime,
    key: InstanceKey,
}

impl Runtime {
    /// The handle of an instance. It is not looked for before something is asked of it.
    pub fn handle(&self, key: InstanceKey) -> InstanceHandle {
        InstanceHandle {
            runtime: self.clone(),
            key,
        }
    }
}

impl InstanceHandle {
    /// Its key.
    pub fn key(&self) -> InstanceKey {
        self.key
    }

    /// What it is doing.
    ///
    /// # Errors
    /// [`Error::NoSuchInstance`]; the store cannot be read.
    pub async fn state(&self) -> Result<InstanceState, Error> {
        self.row().await.map(|row| InstanceState::of(&row))
    }

    /// Its record: definition, version, business key, times.
    ///
    /// # Errors
    /// As [`InstanceHandle::state`].
    pub async fn row(&self) -> Result<InstanceRow, Error> {
        let (store, key) = (self.runtime.shared().store.clone(), self.key);
        blocking(move || store.instance(key))
            .await?
            .ok_or(Error::NoSuchInstance(key))
    }

    /// Where its tokens are.
    ///
    /// # Errors
    /// As [`InstanceHandle::state`].
    pub async fn tokens(&self) -> Result<Vec<Token>, Error> {
        self.detail().await.map(|detail| detail.tokens)
    }

    /// What it waits for.
    ///
    /// # Errors
    /// As [`InstanceHandle::state`].
    pub async fn waiting_for(&self) -> Result<Vec<Wait>, Error> {
        self.detail().await.map(|detail| detail.waiting_for)
    }

    /// Its variables.
    ///
    /// # Errors
    /// As [`InstanceHandle::state`].
    pub async fn variables(&self) -> Result<Variables, Error> {
        self.detail().await.map(|detail| detail.variables)
    }

    async fn detail(&self) -> Result<InstanceDetail, Error> {
        self.runtime.instance(self.key).await
    }

    /// Its journal from the sequence number after `after_sequence` (0 for the beginning), at most `limit` events.
    ///
    /// # Errors
    /// As [`InstanceHandle::state`].
    pub async fn history(&self, after_sequence: u64, limit: usize) -> Result<Vec<HistoryItem>, Error> {
        self.runtime.history(self.key, after_sequence, limit).await
    }

    /// Its open incidents, newest first, at most 1,000.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn incidents(&self) -> Result<Vec<IncidentRow>, Error> {
        const MOST: usize = 1_000;
        let filter = IncidentFilter {
            instance: Some(self.key),
            ..IncidentFilter::default()
        };
        self.runtime.incidents(filter, Page::first(MOST)).await
    }

    /// Tries once more what an incident stopped.
    ///
    /// # Errors
    /// As [`Runtime::retry_incident`].
    pub async fn retry(&self, incident: IncidentKey) -> Result<(), Error> {
        self.runtime
            .retry_incident(incident, None, LIBRARY)
            .await
            .map(drop)
    }

    /// Waits for its end, which is told only when it is durable: at once if it has ended before. The answer has the
    /// variables at the end.
    ///
    /// # Errors
    /// [`Error::WaitRanOut`] after `at_most`; [`Error::NoSuchInstance`]; [`Error::Stopped`].
    ///
    /// # Cancel safety
    /// The instance goes on if the future is dropped.
    pub async fn wait(&self, at_most: Duration) -> Result<Started, Error> {
        self.runtime.wait(self.key, at_most).await
    }

    /// Cancels it and waits for the end: activities are told to stop, waits are removed, what it called is cancelled. An
    /// instance that has ended is left as it is, and its state is the answer. Lawful in every state, also while the
    /// runtime is paused or drains. [`Runtime::cancel_and_wait`] takes a reason and a patience too.
    ///
    /// # Durability
    /// The request is on disk when it is answered, also with [`Error::StillCancelling`]: it stands and lands later.
    ///
    /// # Errors
    /// [`Error::StillCancelling`], with the instance as it is then, if it has not ended after `at_most`;
    /// [`Error::NoSuchInstance`]; a failing store.
    ///
    /// # Cancel safety
    /// The request stands if the future is dropped after it was first polled.
    pub async fn cancel(&self, at_most: Duration) -> Result<InstanceState, Error> {
        let request = CancelRequest::by(LIBRARY, at_most);
        let row = self.runtime.cancel_and_wait(self.key, request).await?;
        Ok(InstanceState::of(&row))
    }

    /// Suspends it, with everything that it calls: nothing of it goes on until [`InstanceHandle::resume`].
    /// [`Runtime::suspend`] takes a reach, a rule for timers and a reason too.
    ///
    /// # Durability, errors, cancel safety
    /// As [`Runtime::suspend`].
    pub async fn suspend(&self) -> Result<Suspension, Error> {
        self.runtime.suspend(self.key, SuspendRequest::by(LIBRARY)).await
    }

    /// Lets it go on, with everything that is held with it. One that is not held is left as it is.
    ///
    /// # Durability, errors, cancel safety
    /// As [`Runtime::resume_instance`].
    pub async fn resume(&self) -> Result<InstanceState, Error> {
        let row = self.runtime.resume_instance(self.key, None, LIBRARY).await?;
        Ok(InstanceState::of(&row))
    }

    /// Follows what happens to it from now on: see [`Runtime::observe`].
    ///
    /// # Errors
    /// As [`Runtime::observe`].
    pub fn observe(&self, options: ObserveOptions) -> Result<Observation, Error> {
        self.runtime.observe(options.instance(self.key))
    }
}
