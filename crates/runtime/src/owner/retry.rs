//! Commits that fail while the gate drains: nobody will come back to them later, so they are tried again, in their order,
//! until the cut has no more time.

use std::time::Duration;

use tidegate_model::InstanceKey;
use tidegate_store::{Batch, Commit, CommitError, ErrorKind, Refusal};
use tokio::time::Instant;

use super::commit::{After, Then};
use super::{Message, Owner};

/// How long a failed commit rests before it is tried again.
const REST: Duration = Duration::from_millis(25);

/// A commit that failed, to be tried again as it is.
pub(super) struct Retry {
    pub(super) commit: Commit,
    pub(super) after: Box<After>,
}

impl Owner {
    /// Keeps a failed commit for another try. Gives it back if another try is of no use.
    pub(super) fn retry_later(&mut self, mut after: Box<After>, error: &CommitError) -> Option<Box<After>> {
        let Some(commit) = after.kept.take() else {
            return Some(after);
        };
        let key = after.instance;
        let Some(resident) = self.residents.get_mut(&key) else {
            return Some(after);
        };
        let is_of_use = match error {
            CommitError::Failed { error, .. } => {
                !matches!(error.kind(), ErrorKind::Fenced | ErrorKind::Closed)
            }
            // It stands on an earlier one that waits for its next try.
            CommitError::Refused(Refusal::Revision { .. }) => !resident.retry.is_empty(),
            CommitError::Refused(_) => false,
        };
        if resident.incarnation != after.incarnation || resident.cycle.is_none() || !is_of_use {
            return Some(after);
        }
        resident.retry.push_back(Retry { commit, after });
        if !self.retrying.contains(&key) {
            self.retrying.push(key);
        }
        self.retry_at.get_or_insert_with(|| Instant::now() + REST);
        None
    }

    /// Puts a new commit behind those that wait for another try.
    pub(super) fn queue_behind(&mut self, key: InstanceKey, commit: Commit, after: Box<After>) {
        if let Some(resident) = self.residents.get_mut(&key) {
            resident.retry.push_back(Retry { commit, after });
        }
    }

    /// Hands over again what failed.
    pub(super) fn retry_commits(&mut self) {
        if self.retry_at.is_none_or(|at| at > Instant::now()) {
            return;
        }
        self.retry_at = None;
        let mut commits = Vec::new();
        let mut thens = Vec::new();
        for key in std::mem::take(&mut self.retrying) {
            let Some(resident) = self.residents.get_mut(&key) else {
                continue;
            };
            for Retry { commit, mut after } in resident.retry.drain(..) {
                after.kept = Some(commit.clone());
                commits.push(commit);
                thens.push(Then::Resident(after));
            }
        }
        if !commits.is_empty() {
            self.submit(commits, thens);
        }
    }

    /// Hands over a batch.
    pub(super) fn submit(&mut self, commits: Vec<Commit>, thens: Vec<Then>) {
        self.next_ticket += 1;
        let ticket = self.next_ticket;
        self.in_flight.insert(ticket, (Instant::now(), thens));
        let inbox = self.inbox.clone();
        self.shared.store.submit(Batch {
            epoch: self.shared.epoch,
            key_high: self.keys.high,
            commits,
            done: Box::new(move |results| inbox.push(Message::Committed(ticket, results))),
        });
    }
}
