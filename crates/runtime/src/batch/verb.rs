//! What a batch does to each instance: one row a verb.

use serde::{Deserialize, Serialize};
use tidegate_model::{Cancellation, Cause, Hold, HoldScope, InstanceKey, Migration, Stimulus, SubStatus};
use tidegate_store::{ErrorKind, IncidentFilter, InstanceRow, Page};
use tokio::sync::oneshot;

use crate::api::Acceptance;
use crate::builder::blocking;
use crate::error::Error;
use crate::forget::{JournalFate, MOST, forget, with_called};
use crate::owner::{CancelOrder, HoldOrder, Message, MoveOrder, ReleaseOrder};

use crate::runtime::try_migration;

use super::{Batch, BatchMigration, Doing};

/// A verb.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Verb {
    /// Ends instances.
    Cancel,
    /// Suspends them, with those they called.
    Suspend,
    /// Lets suspended ones go.
    Resume,
    /// Tries once more what their incidents stopped.
    Retry,
    /// Forgets them, with those they called.
    Forget,
    /// Changes them to another version of their process.
    Migrate,
}

/// What a verb is like.
pub(super) struct Row {
    verb: Verb,
    word: &'static str,
    /// True if it is for instances that have not ended, where the selection does not say which.
    pub(super) is_for_live: bool,
    /// Why there is nothing to do for an instance, if there is not.
    pub(super) idle: fn(&InstanceRow) -> Option<Idle>,
}

/// Why a verb does nothing to an instance.
pub(super) enum Idle {
    /// It is so already.
    Unchanged(&'static str),
    /// It cannot be done.
    Failed(&'static str),
}

const ROWS: &[Row] = &[
    Row {
        verb: Verb::Cancel,
        word: "cancel",
        is_for_live: true,
        idle: |row| has_ended(row).then_some(Idle::Unchanged("it has ended already")),
    },
    Row {
        verb: Verb::Suspend,
        word: "suspend",
        is_for_live: true,
        idle: |row| match row.sub_status {
            SubStatus::Held => Some(Idle::Unchanged("it is held already")),
            SubStatus::Cancelling => Some(Idle::Failed("it is being cancelled")),
            _ => has_ended(row).then_some(Idle::Failed("it has ended")),
        },
    },
    Row {
        verb: Verb::Resume,
        word: "resume",
        is_for_live: true,
        idle: |row| has_ended(row).then_some(Idle::Unchanged("it has ended")),
    },
    Row {
        verb: Verb::Retry,
        word: "retry",
        is_for_live: true,
        idle: |row| (row.incident_count == 0).then_some(Idle::Unchanged("it has no open incident")),
    },
    Row {
        verb: Verb::Forget,
        word: "forget",
        is_for_live: false,
        idle: |row| (!has_ended(row)).then_some(Idle::Failed("it has not ended")),
    },
    Row {
        verb: Verb::Migrate,
        word: "migrate",
        is_for_live: true,
        idle: |row| has_ended(row).then_some(Idle::Unchanged("it has ended")),
    },
];

fn has_ended(row: &InstanceRow) -> bool {
    row.sub_status.is_finished()
}

impl Verb {
    /// Every verb.
    pub fn all() -> impl Iterator<Item = Self> {
        ROWS.iter().map(|row| row.verb)
    }

    pub(super) fn row(self) -> &'static Row {
        ROWS.iter().find(|row| row.verb == self).unwrap_or(&ROWS[0])
    }

    /// The word in the API and on the command line.
    pub fn word(self) -> &'static str {
        self.row().word
    }

    /// The verb of this word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::all().find(|verb| verb.word() == word)
    }
}

/// True if the trouble is not the instance's own.
fn is_of_the_runtime(error: &Error) -> bool {
    match error {
        Error::Stopped => true,
        Error::Store(error) => {
            error.kind().is_retryable() || matches!(error.kind(), ErrorKind::Fenced | ErrorKind::Closed)
        }
        _ => false,
    }
}

/// What became of one instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemOutcome {
    /// It is selected, and its turn has not come.
    Pending,
    /// It was done.
    Done,
    /// It would be done: this was a dry run.
    WouldBeDone,
    /// There was nothing to do.
    Unchanged,
    /// It could not be done.
    Failed,
}

impl ItemOutcome {
    /// The one of this word.
    pub fn from_word(word: &str) -> Option<Self> {
        [
            Self::Pending,
            Self::Done,
            Self::WouldBeDone,
            Self::Unchanged,
            Self::Failed,
        ]
        .into_iter()
        .find(|outcome| outcome.word() == word)
    }

    /// The word in the API.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Done => "done",
            Self::WouldBeDone => "wouldBeDone",
            Self::Unchanged => "unchanged",
            Self::Failed => "failed",
        }
    }
}

/// An outcome with its reason.
pub(super) type Told = (ItemOutcome, Option<String>);

/// What was begun for one instance.
pub(super) enum Begun {
    Told(Told),
    Cancelling(oneshot::Receiver<Result<InstanceRow, Error>>),
    Holding(oneshot::Receiver<Result<InstanceRow, Error>>),
    /// With the revision of before: one that was not held keeps it.
    Releasing(oneshot::Receiver<Result<InstanceRow, Error>>, u64),
    Migrating(oneshot::Receiver<Result<Acceptance, Error>>),
    Retrying(Vec<oneshot::Receiver<Result<Acceptance, Error>>>),
    Forgetting(InstanceKey),
}

impl Doing<'_> {
    /// Begins with one instance; [`Doing::settle`] waits for it. Many are under way together.
    pub(super) async fn begin(&self, batch: &Batch, instance: InstanceKey) -> Result<Begun, Error> {
        let store = self.shared.store.clone();
        let Some(row) = blocking(move || store.instance(instance)).await? else {
            let why = "it is not there any more";
            return Ok(Begun::Told((ItemOutcome::Unchanged, Some(why.to_owned()))));
        };
        match (batch.verb.row().idle)(&row) {
            Some(Idle::Unchanged(why)) => {
                return Ok(Begun::Told((ItemOutcome::Unchanged, Some(why.to_owned()))));
            }
            Some(Idle::Failed(why)) => {
                return Ok(Begun::Told((ItemOutcome::Failed, Some(why.to_owned()))));
            }
            None => {}
        }
        if let Some(migration) = &batch.migration {
            return self.migrate(batch, migration, &row).await;
        }
        if batch.dry_run {
            return Ok(Begun::Told((ItemOutcome::WouldBeDone, None)));
        }
        match batch.verb {
            Verb::Cancel => Ok(self.cancel(batch, instance)),
            Verb::Suspend => Ok(self.suspend(batch, instance)),
            Verb::Resume => Ok(self.release(batch, &row)),
            Verb::Retry => self.retry(batch, instance).await,
            Verb::Forget => Ok(Begun::Forgetting(instance)),
            Verb::Migrate => {
                let why = "it is not said to which definition";
                Ok(Begun::Told((ItemOutcome::Failed, Some(why.to_owned()))))
            }
        }
    }

    fn cancel(&self, batch: &Batch, instance: InstanceKey) -> Begun {
        let order = Box::new(CancelOrder {
            instance,
            cancellation: Cancellation {
                since: self.shared.now(),
                actor: batch.actor.clone(),
                reason: batch.reason.clone(),
                is_unheard: false,
                patience_ms: None,
                caller: None,
            },
            // The batch has its own.
            audit: None,
        });
        let (reply, answer) = oneshot::channel();
        self.owners.send(instance, Message::Cancel(order, reply));
        Begun::Cancelling(answer)
    }

    fn suspend(&self, batch: &Batch, instance: InstanceKey) -> Begun {
        let order = Box::new(HoldOrder {
            instance,
            hold: Hold {
                origin: instance,
                since: self.shared.now(),
                actor: batch.actor.clone(),
                reason: batch.reason.clone(),
                scope: HoldScope::default(),
                timers: self.shared.options.held_timers,
            },
            now: false,
            audit: None,
        });
        let (reply, answer) = oneshot::channel();
        self.owners.send(instance, Message::Hold(order, reply));
        Begun::Holding(answer)
    }

    fn release(&self, batch: &Batch, row: &InstanceRow) -> Begun {
        let order = Box::new(ReleaseOrder {
            instance: row.key,
            cause: Cause::Operator {
                actor: batch.actor.clone(),
                reason: batch.reason.clone(),
            },
            audit: None,
        });
        let (reply, answer) = oneshot::channel();
        self.owners.send(row.key, Message::Release(order, reply));
        Begun::Releasing(answer, row.revision)
    }

    /// Tries it on what is stored first: so every reason against it is told, and a dry run is as good as the other.
    async fn migrate(
        &self,
        batch: &Batch,
        migration: &BatchMigration,
        row: &InstanceRow,
    ) -> Result<Begun, Error> {
        let instance = row.key;
        if row.definition == migration.definition_key {
            let why = format!("it has version {} already", row.version);
            return Ok(Begun::Told((ItemOutcome::Unchanged, Some(why))));
        }
        let migration = Migration {
            definition: migration.definition_key,
            mapping: migration.mapping.clone(),
        };
        match try_migration(self.shared, instance, &migration).await {
            Ok(_) if batch.dry_run => return Ok(Begun::Told((ItemOutcome::WouldBeDone, None))),
            Ok(_) => {}
            Err(error) if is_of_the_runtime(&error) => return Err(error),
            Err(error) => return Ok(Begun::Told((ItemOutcome::Failed, Some(error.to_string())))),
        }
        let order = Box::new(MoveOrder {
            stimulus: Stimulus::Migrate {
                instance,
                migration,
                cause: Cause::Operator {
                    actor: batch.actor.clone(),
                    reason: batch.reason.clone(),
                },
            },
            instance,
            source: Some("queue"),
            lease: None,
            audit: None,
        });
        let (reply, answer) = oneshot::channel();
        self.owners.send(instance, Message::Move(order, reply));
        Ok(Begun::Migrating(answer))
    }

    async fn retry(&self, batch: &Batch, instance: InstanceKey) -> Result<Begun, Error> {
        /// Incidents of one instance that are looked at.
        const INCIDENTS: usize = 1_000;
        let store = self.shared.store.clone();
        let filter = IncidentFilter {
            instance: Some(instance),
            ..IncidentFilter::default()
        };
        let incidents = blocking(move || store.incidents(&filter, Page::first(INCIDENTS))).await?;
        let answers = incidents.into_iter().map(|incident| {
            let stimulus = Stimulus::RetryIncident {
                instance,
                incident: incident.key,
                retries: None,
                actor: batch.actor.clone(),
            };
            let order = Box::new(MoveOrder {
                stimulus,
                instance,
                source: Some("queue"),
                lease: None,
                audit: None,
            });
            let (reply, answer) = oneshot::channel();
            self.owners.send(instance, Message::Move(order, reply));
            answer
        });
        Ok(Begun::Retrying(answers.collect()))
    }

    /// Waits until what was begun is done, and says what became of it.
    pub(super) async fn settle(&self, batch: &Batch, begun: Begun) -> Result<Told, Error> {
        let answer = match begun {
            Begun::Told(told) => return Ok(told),
            Begun::Cancelling(answer) => match answer.await {
                Ok(Ok(row)) if !has_ended(&row) => {
                    let why = format!("it is {}", row.sub_status.word());
                    return Ok((ItemOutcome::Done, Some(why)));
                }
                Ok(answer) => answer.map(drop),
                Err(_) => Err(Error::Stopped),
            },
            Begun::Holding(answer) => match answer.await {
                Ok(answer) => answer.map(drop),
                Err(_) => Err(Error::Stopped),
            },
            Begun::Releasing(answer, before) => match answer.await {
                Ok(Ok(row)) if row.revision == before => {
                    return Ok((ItemOutcome::Unchanged, Some("it is not held".to_owned())));
                }
                Ok(answer) => answer.map(drop),
                Err(_) => Err(Error::Stopped),
            },
            Begun::Migrating(answer) => match answer.await {
                Ok(Ok(Acceptance::Queued(_))) => {
                    let why = "it is accepted, and happens when the instance goes on";
                    return Ok((ItemOutcome::Done, Some(why.to_owned())));
                }
                Ok(answer) => answer.map(drop),
                Err(_) => Err(Error::Stopped),
            },
            Begun::Retrying(answers) => {
                let mut all = Ok(());
                for answer in answers {
                    let answer = answer.await.unwrap_or(Err(Error::Stopped));
                    // One that is not open any more was resolved by somebody else.
                    if !matches!(answer, Err(Error::NoSuchIncident(_))) {
                        all = all.and(answer.map(drop));
                    }
                }
                all
            }
            Begun::Forgetting(instance) => self.forget(batch, instance).await,
        };
        match answer {
            Ok(()) => Ok((ItemOutcome::Done, None)),
            // Of the runtime, and not of the instance: it is tried again.
            Err(error) if is_of_the_runtime(&error) => Err(error),
            Err(error) => Ok((ItemOutcome::Failed, Some(error.to_string()))),
        }
    }

    async fn forget(&self, batch: &Batch, instance: InstanceKey) -> Result<(), Error> {
        let shared = self.shared.clone();
        let named = std::iter::once(instance).collect();
        let Some(tree) = blocking(move || with_called(&shared, named, MOST)).await? else {
            return Err(Error::Invalid {
                code: "too-many-instances-to-forget",
                message: format!("it called more than {MOST} instances; forget those first"),
            });
        };
        let journal = match batch.keeps_journal {
            true => JournalFate::Kept,
            false => JournalFate::Dropped,
        };
        match forget(self.shared, self.owners, tree, journal, None).await {
            // It went along with its caller.
            Ok(_) | Err(Error::NoSuchInstance(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }
}
