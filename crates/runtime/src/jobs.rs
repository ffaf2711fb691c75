//! Jobs for external workers: leasing, with a long poll.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tidegate_model::{ElementInstanceKey, Timestamp};
use tidegate_store::{Batch, Commit, CommitError, Expect, JobRow, JobState, LeaseRequest, Write};
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::api::{ActivateJobs, DEFAULT_TENANT, LeasedJob};
use crate::builder::blocking;
use crate::error::Error;
use crate::parts::Part;
use crate::runtime::Runtime;
use crate::shared::Shared;

/// Leases and back-offs end without anybody saying so: a long poll looks again at least this often.
const LOOK_AGAIN: std::time::Duration = std::time::Duration::from_secs(1);
/// How many jobs one request may lease.
pub const MOST_JOBS: usize = 1_000;

/// Who asked for jobs of a type last.
#[derive(Debug, Clone)]
pub(crate) struct Poll {
    pub(crate) at: Timestamp,
    pub(crate) worker: String,
    /// How many are asking at this moment.
    pub(crate) present: u32,
}

/// The last polls, by job type: of this generation, and of a bounded number of types.
#[derive(Debug, Default)]
pub(crate) struct Polls(Mutex<HashMap<Arc<str>, Poll>>);

impl Polls {
    pub(crate) fn last(&self, job_type: &str) -> Option<Poll> {
        self.0.lock().get(job_type).cloned()
    }

    fn begun(&self, job_type: &str, worker: &str, at: Timestamp) {
        const REMEMBERED: usize = 10_000;
        let mut polls = self.0.lock();
        if let Some(poll) = polls.get_mut(job_type) {
            poll.at = at;
            worker.clone_into(&mut poll.worker);
            poll.present += 1;
            return;
        }
        if polls.len() >= REMEMBERED {
            let oldest = polls.iter().filter(|(_, poll)| poll.present == 0);
            let oldest = oldest
                .min_by_key(|(_, poll)| poll.at)
                .map(|(job_type, _)| job_type.clone());
            match oldest {
                Some(oldest) => polls.remove(&oldest),
                None => return,
            };
        }
        let worker = worker.to_owned();
        polls.insert(
            Arc::from(job_type),
            Poll {
                at,
                worker,
                present: 1,
            },
        );
    }

    fn ended(&self, job_type: &str, at: Timestamp) {
        if let Some(poll) = self.0.lock().get_mut(job_type) {
            poll.present = poll.present.saturating_sub(1);
            poll.at = poll.at.max(at);
        }
    }
}

/// A poll under way.
struct Polling<'a> {
    shared: &'a Shared,
    job_type: &'a str,
}

impl Drop for Polling<'_> {
    fn drop(&mut self) {
        self.shared.polls.ended(self.job_type, self.shared.now());
    }
}

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
    /// Jobs that were leased for a dropped future are given back at once; no try of theirs is used up.
    pub async fn activate_jobs(&self, request: ActivateJobs) -> Result<Vec<LeasedJob>, Error> {
        let until = Instant::now() + request.wait;
        self.shared()
            .polls
            .begun(&request.job_type, &request.worker, self.shared().now());
        let _polling = Polling {
            shared: self.shared(),
            job_type: &request.job_type,
        };
        let tenant = request.tenant.as_deref().unwrap_or(DEFAULT_TENANT);
        let tenant_gate = self.shared().definitions.gates.of(&Part::tenant(tenant));
        let watched = self.shared().job_watch(&request.job_type);
        loop {
            let opened = watched.notified();
            tokio::pin!(opened);
            // Armed before looking: a job that is opened meanwhile wakes it.
            opened.as_mut().enable();
            let ticked = self.shared().ticked.notified();
            tokio::pin!(ticked);
            ticked.as_mut().enable();
            let state = self.quiescence();
            if state.is_draining() {
                return Ok(Vec::new());
            }
            let is_open = tenant_gate.read().is_accepting();
            if state.is_accepting() && is_open && self.shared().switches.worker.is_on() {
                match self.lease(&request).await? {
                    Found::Jobs(jobs) => return Ok(jobs),
                    // There may be more behind those.
                    Found::OnlyLost => continue,
                    Found::Nothing => {}
                }
            }
            if Instant::now() >= until {
                return Ok(Vec::new());
            }
            tokio::select! {
                biased;
                () = opened => {}
                () = ticked => {}
                () = tokio::time::sleep_until(until.min(Instant::now() + LOOK_AGAIN)) => {}
            }
        }
    }

    async fn lease(&self, request: &ActivateJobs) -> Result<Found, Error> {
        let now = self.shared().now();
        let lease_ms = i64::try_from(request.lease.as_millis()).unwrap_or(i64::MAX);
        let lease = LeaseRequest {
            job_type: request.job_type.clone(),
            tenant: request.tenant.as_deref().unwrap_or(DEFAULT_TENANT).into(),
            worker: request.worker.clone(),
            except: self
                .shared()
                .definitions
                .gates
                .paused_definitions(request.tenant.as_deref().unwrap_or(DEFAULT_TENANT)),
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
        let (sender, receiver) = oneshot::channel();
        let (shared, lease_token) = (self.shared().clone(), token.clone());
        self.shared().store.submit(Batch {
            epoch: shared.epoch,
            key_high: 0,
            commits: vec![commit],
            done: Box::new(move |results| {
                let leased = results.into_iter().next().map(|result| match result {
                    Ok(outcome) => Ok(Leased {
                        shared,
                        token: lease_token,
                        rows: outcome.leased,
                        lapsed: outcome.lapsed,
                    }),
                    Err(error) => Err(error),
                });
                // Whoever polled may have hung up: then the jobs go back as what was sent is dropped.
                let _ = sender.send(leased);
            }),
        });
        let mut leased = match receiver.await {
            Ok(Some(Ok(leased))) => leased,
            Ok(Some(Err(error @ CommitError::Failed { .. }))) => {
                self.shared().note_health(Some(&error));
                let CommitError::Failed { error, .. } = error else {
                    return Ok(Found::Nothing);
                };
                return Err(error.into());
            }
            Ok(Some(Err(CommitError::Refused(_))) | None) => return Ok(Found::Nothing),
            Err(_) => return Err(Error::Stopped),
        };
        if !self.quiescence().is_accepting() {
            // The gate closed while they were fetched: they go back as this is dropped.
            return Ok(Found::Nothing);
        }
        leased.give_back_paused();
        let had_lost = self.lose(&mut leased).await?;
        let rows = leased.taken();
        if rows.is_empty() {
            return Ok(if had_lost { Found::OnlyLost } else { Found::Nothing });
        }
        let jobs = rows.into_iter().map(|row| LeasedJob {
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
        Ok(Found::Jobs(jobs.collect()))
    }

    /// Jobs whose worker said nothing until its lease ended are not simply given to another where the model has more to
    /// say about lost work. True if there were any.
    async fn lose(&self, leased: &mut Leased) -> Result<bool, Error> {
        if leased.lapsed.is_empty() {
            return Ok(false);
        }
        let (shared, rows) = (self.shared().clone(), leased.rows.clone());
        let lapsed = leased.lapsed.clone();
        let lost = blocking(move || {
            let mut lost = Vec::new();
            for row in rows.into_iter().filter(|row| lapsed.contains(&row.key)) {
                let loaded = shared.definitions.get(&*shared.store, row.definition)?;
                if loaded.is_some_and(|loaded| loaded.definition.is_unsafe_to_rerun(&row.element_id)) {
                    lost.push(row);
                }
            }
            Ok(lost)
        });
        let lost = lost.await?;
        for row in &lost {
            self.lose_job(row, &leased.token).await?;
            leased.rows.retain(|kept| kept.key != row.key);
        }
        Ok(!lost.is_empty())
    }
}

/// What a look for jobs came to.
enum Found {
    Jobs(Vec<LeasedJob>),
    /// Only such as are lost, and not for a worker any more.
    OnlyLost,
    Nothing,
}

/// Leased jobs on their way to who asked. Dropped on the way, they go back.
struct Leased {
    shared: Arc<Shared>,
    token: String,
    rows: Vec<JobRow>,
    /// Those whose lease had ended without a word.
    lapsed: Vec<ElementInstanceKey>,
}

impl Leased {
    /// They have arrived.
    fn taken(mut self) -> Vec<JobRow> {
        std::mem::take(&mut self.rows)
    }

    /// Those whose part was paused while they were fetched stay where they are.
    fn give_back_paused(&mut self) {
        let gates = &self.shared.definitions.gates;
        let is_paused = |row: &JobRow| {
            let (tenant, process_id) = (row.tenant.to_string(), row.process_id.to_string());
            let tenant_gate = gates.of(&Part::tenant(tenant.as_str()));
            let parts = [tenant_gate, gates.of(&Part::Definition { tenant, process_id })];
            parts.iter().any(|gate| !gate.read().is_accepting())
        };
        let rows = std::mem::take(&mut self.rows);
        let (paused, kept) = rows.into_iter().partition(is_paused);
        self.rows = paused;
        self.give_back();
        self.rows = kept;
    }
}

impl Drop for Leased {
    fn drop(&mut self) {
        self.give_back();
    }
}

impl Leased {
    fn give_back(&mut self) {
        if self.rows.is_empty() {
            return;
        }
        let back = |row: JobRow| {
            let expect = vec![Expect::Lease {
                job: row.key,
                token: self.token.clone(),
            }];
            let now = self.shared.now();
            let row = match self.lapsed.contains(&row.key) {
                // It is as much without a word as before.
                true => JobRow {
                    lease_until: Some(now),
                    ..row
                },
                false => JobRow {
                    state: JobState::Available,
                    worker: None,
                    lease_token: None,
                    lease_until: None,
                    not_before: now,
                    ..row
                },
            };
            Commit {
                expect,
                writes: vec![Write::OpenJob(Box::new(row))],
            }
        };
        let rows = std::mem::take(&mut self.rows);
        let types: Vec<Arc<str>> = rows.iter().map(|row| row.job_type.clone()).collect();
        let shared = self.shared.clone();
        self.shared.store.submit(Batch {
            epoch: self.shared.epoch,
            key_high: 0,
            commits: rows.into_iter().map(back).collect(),
            // Where that does not work the leases end by their time.
            done: Box::new(move |_| types.iter().for_each(|job_type| shared.job_opened(job_type))),
        });
    }
}
