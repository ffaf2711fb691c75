//! What people ask of a runtime. Every answer is as of the last commits.

use std::sync::Arc;

use tidegate_engine::{HistoryItem, Instance, StarterTrigger, decode_events, replay};
use tidegate_model::{DefinitionKey, ElementInstanceKey, IncidentKey, InstanceKey};
use tidegate_store::{
    AuditRow, DefinitionFilter, DefinitionRow, Error as StoreError, ErrorKind, ForgottenJournal,
    IncidentFilter, IncidentRow, InstanceFilter, InstanceRow, Page, UserTaskFilter, UserTaskRow,
};

use crate::api::{InstanceDetail, StarterView, Token, Wait};
use crate::builder::blocking;
use crate::definitions::Loaded;
use crate::error::Error;
use crate::runtime::Runtime;
use crate::shared::Shared;
use crate::versions::Versions;

/// Something that belongs to a tenant, by its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// An instance.
    Instance(InstanceKey),
    /// A definition, unregistered ones included.
    Definition(DefinitionKey),
    /// An open job.
    Job(ElementInstanceKey),
    /// An open user task.
    UserTask(ElementInstanceKey),
    /// An open incident.
    Incident(IncidentKey),
    /// An operation on many instances; one that is for those of every tenant is of none.
    Batch(u64),
}

impl Subject {
    /// The answer when it is not there.
    pub fn missing(self) -> Error {
        match self {
            Self::Instance(key) => Error::NoSuchInstance(key),
            Self::Definition(key) => Error::NoSuchDefinition(key),
            Self::Job(key) => Error::NoSuchJob(key.get()),
            Self::UserTask(key) => Error::NoSuchUserTask(key.get()),
            Self::Incident(key) => Error::NoSuchIncident(key),
            Self::Batch(key) => Error::NoSuchBatch(key),
        }
    }
}

impl Runtime {
    /// Instances that match, newest first.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn instances(&self, filter: InstanceFilter, page: Page) -> Result<Vec<InstanceRow>, Error> {
        let store = self.shared().store.clone();
        blocking(move || store.instances(&filter, page)).await
    }

    /// How many instances have each sub-status, indexed by its code.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn counts(&self) -> Result<[u64; 9], Error> {
        let store = self.shared().store.clone();
        blocking(move || store.counts()).await
    }

    /// One instance with its tokens, waits and variables.
    ///
    /// # Errors
    /// Unknown instance; the store cannot be read.
    pub async fn instance(&self, key: InstanceKey) -> Result<InstanceDetail, Error> {
        let shared = self.shared().clone();
        let found = blocking(move || {
            let Some(Read {
                row,
                instance,
                loaded,
            }) = read_instance(&shared, key)?
            else {
                return Ok(None);
            };
            let definition = &loaded.definition;
            let tokens = instance.tokens(definition);
            let waits = instance.waiting_for(definition);
            Ok(Some(InstanceDetail {
                tokens: tokens
                    .iter()
                    .map(|token| Token {
                        element_id: token.element_id.to_string(),
                        element_instance_key: token.element_instance,
                        state: token.state.word(),
                    })
                    .collect(),
                waiting_for: waits
                    .iter()
                    .map(|wait| Wait {
                        element_id: wait.element_id.to_string(),
                        element_instance_key: wait.element_instance,
                        kind: wait.kind.word(),
                        detail: wait.kind.detail(),
                    })
                    .collect(),
                holds: instance.holds().to_vec(),
                cancellation: instance.cancellation().cloned(),
                variables: instance.variables().clone(),
                row,
            }))
        });
        found.await?.ok_or(Error::NoSuchInstance(key))
    }

    /// The journal of an instance, also of a forgotten one whose journal is kept, from the sequence number after `after_sequence`, at most `limit` events.
    ///
    /// # Errors
    /// Unknown instance; the store cannot be read.
    pub async fn history(
        &self,
        key: InstanceKey,
        after_sequence: u64,
        limit: usize,
    ) -> Result<Vec<HistoryItem>, Error> {
        let shared = self.shared().clone();
        let found = blocking(move || {
            let definition = match shared.store.instance(key)? {
                Some(row) => row.definition,
                None => match shared.store.forgotten(key)? {
                    Some(kept) if kept.journal == ForgottenJournal::Kept => kept.definition,
                    _ => return Ok(None),
                },
            };
            const PAGE: usize = 500;
            let mut versions = Versions::begin(&shared, key, definition)?;
            let mut items = Vec::new();
            let mut after = 0;
            while items.len() < limit {
                let rows = shared.store.journal(key, after, PAGE)?;
                let is_last = rows.len() < PAGE;
                for row in rows {
                    after = row.revision;
                    let events =
                        decode_events(&row.payload).map_err(|error| damaged(key, &error.to_string()))?;
                    let of_row = versions.history(&shared, &events, row.first_sequence)?;
                    items.extend(of_row.into_iter().filter(|item| item.sequence > after_sequence));
                }
                if is_last {
                    break;
                }
            }
            items.truncate(limit);
            Ok(Some(items))
        });
        found.await?.ok_or(Error::NoSuchInstance(key))
    }

    /// The tenant of what is there.
    ///
    /// # Errors
    /// It is not there; the store cannot be read.
    pub async fn tenant_of(&self, subject: Subject) -> Result<Arc<str>, Error> {
        let store = self.shared().store.clone();
        let found = blocking(move || {
            Ok(match subject {
                Subject::Instance(key) => store.instance(key)?.map(|row| row.tenant),
                Subject::Definition(key) => store.definition(key)?.map(|row| row.tenant),
                Subject::Job(key) => store.job(key)?.map(|row| row.tenant),
                Subject::UserTask(key) => store.user_task(key)?.map(|row| row.tenant),
                Subject::Incident(key) => store.incident(key)?.map(|row| row.tenant),
                Subject::Batch(key) => match store.operation(key)? {
                    Some(row) => crate::batch::tenant_of(&row)?,
                    None => None,
                },
            })
        });
        found.await?.ok_or_else(|| subject.missing())
    }

    /// Definitions, newest first.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn definitions(
        &self,
        filter: DefinitionFilter,
        page: Page,
    ) -> Result<Vec<DefinitionRow>, Error> {
        let store = self.shared().store.clone();
        blocking(move || store.definitions(&filter, page)).await
    }

    /// One definition.
    ///
    /// # Errors
    /// Unknown or unregistered definition; the store cannot be read.
    pub async fn definition(&self, key: DefinitionKey) -> Result<DefinitionRow, Error> {
        let store = self.shared().store.clone();
        let row = blocking(move || store.definition(key)).await?;
        row.filter(|row| !row.is_deleted)
            .ok_or(Error::NoSuchDefinition(key))
    }

    /// The bytes that a definition was deployed with.
    ///
    /// # Errors
    /// Unknown definition; the store cannot be read.
    pub async fn definition_xml(&self, key: DefinitionKey) -> Result<Arc<[u8]>, Error> {
        let store = self.shared().store.clone();
        let bytes = blocking(move || match store.definition(key)? {
            Some(row) => store.resource(row.resource),
            None => Ok(None),
        });
        bytes.await?.ok_or(Error::NoSuchDefinition(key))
    }

    /// Event registrations that will create instances.
    ///
    /// # Errors
    /// None today; later stores may fail.
    pub async fn starters(&self) -> Result<Vec<StarterView>, Error> {
        let views = self
            .shared()
            .definitions
            .starters()
            .into_iter()
            .map(|(loaded, starter)| {
                let (kind, trigger) = match &starter.trigger {
                    StarterTrigger::None => ("none", String::new()),
                    StarterTrigger::Message(name) => ("message", name.to_string()),
                    StarterTrigger::Signal(name) => ("signal", name.to_string()),
                    StarterTrigger::Timer(text) => ("timer", text.to_string()),
                };
                StarterView {
                    process_id: loaded.row.process_id.to_string(),
                    tenant_id: loaded.row.tenant.to_string(),
                    version: loaded.row.version,
                    start_element_id: loaded.definition.element(starter.element).id.to_string(),
                    kind: kind.to_owned(),
                    trigger,
                    key: loaded.row.key,
                }
            });
        Ok(views.collect())
    }

    /// Open incidents, newest first.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn incidents(&self, filter: IncidentFilter, page: Page) -> Result<Vec<IncidentRow>, Error> {
        let store = self.shared().store.clone();
        blocking(move || store.incidents(&filter, page)).await
    }

    /// Open user tasks, newest first.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn user_tasks(&self, filter: UserTaskFilter, page: Page) -> Result<Vec<UserTaskRow>, Error> {
        let store = self.shared().store.clone();
        blocking(move || store.user_tasks(&filter, page)).await
    }

    /// Audit entries, newest first.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn audit(&self, page: Page) -> Result<Vec<AuditRow>, Error> {
        let store = self.shared().store.clone();
        blocking(move || store.audit(page)).await
    }
}

/// An instance as it is stored.
pub(crate) struct Read {
    pub(crate) row: InstanceRow,
    pub(crate) instance: Instance,
    pub(crate) loaded: Arc<Loaded>,
}

/// Reads an instance from the store and brings its state up to date with its journal.
pub(crate) fn read_instance(shared: &Shared, key: InstanceKey) -> Result<Option<Read>, StoreError> {
    let Some(stored) = shared.store.load(key)? else {
        return Ok(None);
    };
    let Some(loaded) = shared.definitions.get(&*shared.store, stored.row.definition)? else {
        return Err(damaged(key, "its definition is missing"));
    };
    let mut instance = match &stored.state {
        Some(state) => Instance::decode(state).map_err(|error| damaged(key, &error.to_string()))?,
        None => Instance::new(key),
    };
    instance
        .check(&loaded.definition)
        .map_err(|error| damaged(key, &error.to_string()))?;
    for row in &stored.journal {
        replay(&loaded.definition, &mut instance, &row.payload)
            .map_err(|error| damaged(key, &error.to_string()))?;
    }
    Ok(Some(Read {
        row: stored.row,
        instance,
        loaded,
    }))
}

pub(crate) fn damaged(key: InstanceKey, what: &str) -> StoreError {
    StoreError::new(
        ErrorKind::Damaged,
        format!("instance {key} cannot be read: {what}"),
    )
}
