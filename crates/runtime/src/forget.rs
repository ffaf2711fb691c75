//! Forgetting finished instances: all that are named, or none.

use std::collections::BTreeSet;

use tidegate_model::InstanceKey;
use tidegate_store::{
    Commit, CommitError, Expect, ForgetRequest, InstanceFilter, Outcome, Page, Refusal, Unforgettable, Write,
};

use crate::builder::blocking;
use crate::error::Error;
use crate::owner::{Message, Owners};
use crate::runtime::Runtime;
use crate::shared::{Counters, Shared};

/// How many instances one forget takes, those that were called included: more is a batch.
pub const MOST: usize = 1_000;
/// How many journal rows one commit removes; the rest follows in slices.
pub(crate) const SLICE: usize = 2_000;

/// What becomes of the journals of forgotten instances.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum JournalFate {
    /// They go too.
    #[default]
    Dropped,
    /// They stay readable, until the instances are forgotten once more without keeping them.
    Kept,
}

/// What a forget did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forgotten {
    /// The instances that are gone: those that were named, and those that they had called.
    pub instances: Vec<InstanceKey>,
}

impl Runtime {
    /// Forgets finished instances, with those that they called. Either all of them are forgotten, or none.
    ///
    /// # Durability
    /// They are gone from every look-up when this answers. Long journals go in slices after that.
    ///
    /// # Errors
    /// An unknown instance ([`Error::NoSuchInstance`]), or one that has not ended, or that called one that has not
    /// ([`Error::InstanceLive`]): it is named. More than [`MOST`] at once; a failing store.
    ///
    /// # Cancel safety
    /// What was begun is done even if the future is dropped.
    pub async fn forget(
        &self,
        instances: Vec<InstanceKey>,
        journal: JournalFate,
        actor: &str,
    ) -> Result<Forgotten, Error> {
        let named: BTreeSet<InstanceKey> = instances.into_iter().collect();
        if named.is_empty() {
            return Ok(Forgotten {
                instances: Vec::new(),
            });
        }
        let shared = self.shared().clone();
        let all = {
            let shared = shared.clone();
            blocking(move || with_called(&shared, named, MOST)).await?
        };
        let Some(all) = all else {
            return Err(Error::Invalid {
                code: "too-many-instances-to-forget",
                message: format!(
                    "at most {MOST} instances are forgotten at once, those they called included; use a batch"
                ),
            });
        };
        let mut audit = shared.audit("InstancesForgotten", actor, None);
        audit.scope = "instance".to_owned();
        audit.subject = Some(match all.as_slice() {
            [only] => only.to_string(),
            several => format!("{} instances", several.len()),
        });
        let audit = Some(Write::Audit(Box::new(audit)));
        forget(&shared, &self.inner().owners, all.clone(), journal, audit).await?;
        self.inner().shared.swept.notify_one();
        Ok(Forgotten { instances: all })
    }
}

/// The instances with all that they called, and these called. `None` if they are more than `most`.
pub(crate) fn with_called(
    shared: &Shared,
    named: BTreeSet<InstanceKey>,
    most: usize,
) -> Result<Option<Vec<InstanceKey>>, tidegate_store::Error> {
    let mut all = named.clone();
    let mut open: Vec<InstanceKey> = named.into_iter().collect();
    while let Some(caller) = open.pop() {
        let filter = InstanceFilter {
            parent: Some(caller),
            ..InstanceFilter::default()
        };
        for row in shared.store.instances(&filter, Page::first(most + 1))? {
            if all.insert(row.key) {
                open.push(row.key);
            }
        }
        if all.len() > most {
            return Ok(None);
        }
    }
    Ok(Some(all.into_iter().collect()))
}

/// Forgets these instances, or none of them.
pub(crate) async fn forget(
    shared: &Shared,
    owners: &Owners,
    instances: Vec<InstanceKey>,
    journal: JournalFate,
    also: Option<Write>,
) -> Result<Outcome, Error> {
    let now = shared.now();
    let fence = i64::try_from(shared.options.retention.fence.as_millis()).unwrap_or(i64::MAX / 4);
    let request = ForgetRequest {
        instances: instances.clone(),
        now,
        fenced_until: now.plus_ms(fence),
        keeps_journal: journal == JournalFate::Kept,
        limit: SLICE,
    };
    let mut writes = vec![Write::ForgetInstances(Box::new(request))];
    writes.extend(also);
    let commit = Commit {
        expect: vec![Expect::Forgettable(instances.clone())],
        writes,
    };
    match shared.commit(commit).await {
        Ok(outcome) => {
            Counters::add(&shared.counters.instances_forgotten, instances.len() as u64);
            for (owner, keys) in owners.split(instances, |key| key.get()) {
                owners.send_to(owner, Message::Forgotten(keys));
            }
            Ok(outcome)
        }
        Err(CommitError::Refused(Refusal::NotForgettable { instance, why })) => Err(match why {
            Unforgettable::Unknown => Error::NoSuchInstance(instance),
            Unforgettable::Live => Error::InstanceLive(instance),
            // It was called after we looked: its caller has not ended, or ends just now.
            Unforgettable::Called(called) => Error::InstanceLive(called),
        }),
        Err(CommitError::Refused(refusal)) => Err(Error::Invalid {
            code: "forget-refused",
            message: format!("the store refused to forget: {refusal:?}"),
        }),
        Err(CommitError::Failed { error, .. }) => Err(error.into()),
    }
}
