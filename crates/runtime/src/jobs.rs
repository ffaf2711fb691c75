//! Jobs for external workers: leasing, with a long poll.

use tidegate_store::{Commit, LeaseRequest, Write};
use tokio::time::Instant;

use crate::api::{ActivateJobs, DEFAULT_TENANT, LeasedJob};
use crate::error::Error;
use crate::runtime::Runtime;

/// Leases and back-offs end without anybody saying so: a long poll looks again at least this often.
const LOOK_AGAIN: std::time::Duration = std::time::Duration::from_secs(1);
/// How many jobs one request may lease.
pub const MOST_JOBS: usize = 1_000;

impl Runtime {
    /// Leases jobs, waiting for a first one if asked to. While the runtime is paused the poll is held and then
    /// empty; while it drains it is empty at once.
    ///
    /// # Durability
    /// A lease is on disk before it is told.
    ///
    /// # Errors
    /// The store fails.
    ///
    /// # Cancel safety
    /// A dropped future may leave jobs leased until their lease ends.
    pub async fn activate_jobs(&self, request: ActivateJobs) -> Result<Vec<LeasedJob>, Error> {
        let until = Instant::now() + request.wait;
        let watched = self.shared().job_watch(&request.job_type);
        let mut changed = self.watch();
        loop {
            let opened = watched.notified();
            tokio::pin!(opened);
            // Armed before looking: a job that is opened meanwhile wakes it.
            opened.as_mut().enable();
            let state = self.quiescence();
            if state.is_draining() {
                return Ok(Vec::new());
            }
            if state.is_accepting() && self.shared().switches.worker.is_on() {
                let jobs = self.lease(&request).await?;
                if !jobs.is_empty() {
                    return Ok(jobs);
                }
            }
            if Instant::now() >= until {
                return Ok(Vec::new());
            }
            tokio::select! {
                () = opened => {}
                change = changed.changed() => if change.is_err() { return Ok(Vec::new()) },
                () = tokio::time::sleep_until(until.min(Instant::now() + LOOK_AGAIN)) => {}
            }
        }
    }

    async fn lease(&self, request: &ActivateJobs) -> Result<Vec<LeasedJob>, Error> {
        let now = self.shared().now();
        let lease_ms = i64::try_from(request.lease.as_millis()).unwrap_or(i64::MAX);
        let lease = LeaseRequest {
            job_type: request.job_type.clone(),
            tenant: request.tenant.as_deref().unwrap_or(DEFAULT_TENANT).into(),
            worker: request.worker.clone(),
            limit: request.max_jobs.min(MOST_JOBS),
            lease_token: uuid::Uuid::new_v4().simple().to_string(),
            now,
            lease_until: now.plus_ms(lease_ms),
        };
        let token = lease.lease_token.clone();
        let until = lease.lease_until;
        let commit = Commit {
            expect: Vec::new(),
            writes: vec![Write::LeaseJobs(Box::new(lease))],
        };
        let outcome = match self.shared().commit(commit).await {
            Ok(outcome) => outcome,
            Err(tidegate_store::CommitError::Failed { error, .. }) => return Err(error.into()),
            Err(tidegate_store::CommitError::Refused(_)) => return Ok(Vec::new()),
        };
        let leased = outcome.leased.into_iter().map(|row| LeasedJob {
            job: row.key,
            lease_token: token.clone(),
            job_type: row.job_type.to_string(),
            instance: row.instance,
            definition: row.definition,
            process_id: row.process_id.to_string(),
            element_id: row.element_id.to_string(),
            variables: row.variables,
            headers: row.headers,
            retries: row.retries,
            lease_until: until,
        });
        Ok(leased.collect())
    }
}
