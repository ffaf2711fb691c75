//! What people ask of the SQLite store.

use tidegate_model::{ElementInstanceKey, IncidentKey, InstanceKey, StimulusKey};

use super::totals::Totals;
use super::{SqliteStore, audit, dead_letter, definition, instance, journal, operation, queue, task};
use crate::Queries;
use crate::error::Error;
use crate::forget::{OperationItemRow, OperationRow};
use crate::row::{
    AuditRow, DeadLetterRow, DefinitionFilter, DefinitionRow, IncidentFilter, IncidentRow, InstanceFilter,
    InstanceRow, JournalRow, Page, QueueDepth, UserTaskFilter, UserTaskRow,
};

impl Queries for SqliteStore {
    fn instances(&self, filter: &InstanceFilter, page: Page) -> Result<Vec<InstanceRow>, Error> {
        self.read(|conn| instance::list(conn, filter, page))
    }

    fn instance(&self, key: InstanceKey) -> Result<Option<InstanceRow>, Error> {
        self.read(|conn| instance::get(conn, key))
    }

    fn counts(&self) -> Result<[u64; 9], Error> {
        let totals = self.read(Totals::read)?;
        Ok(totals.instances.map(|count| u64::try_from(count).unwrap_or(0)))
    }

    fn journal(&self, instance: InstanceKey, after: u64, limit: usize) -> Result<Vec<JournalRow>, Error> {
        self.read(|conn| journal::after(conn, instance, after, limit))
    }

    fn definitions(&self, filter: &DefinitionFilter, page: Page) -> Result<Vec<DefinitionRow>, Error> {
        self.read(|conn| definition::list(conn, filter, page))
    }

    fn highest_version(&self, process_id: &str, tenant: &str) -> Result<u32, Error> {
        self.read(|conn| definition::highest_version(conn, process_id, tenant))
    }

    fn incidents(&self, filter: &IncidentFilter, page: Page) -> Result<Vec<IncidentRow>, Error> {
        self.read(|conn| task::incidents(conn, filter, page))
    }

    fn incident(&self, key: IncidentKey) -> Result<Option<IncidentRow>, Error> {
        self.read(|conn| task::incident(conn, key))
    }

    fn user_tasks(&self, filter: &UserTaskFilter, page: Page) -> Result<Vec<UserTaskRow>, Error> {
        self.read(|conn| task::list(conn, filter, page))
    }

    fn user_task(&self, key: ElementInstanceKey) -> Result<Option<UserTaskRow>, Error> {
        self.read(|conn| task::get(conn, key))
    }

    fn audit(&self, page: Page) -> Result<Vec<AuditRow>, Error> {
        self.read(|conn| audit::list(conn, page))
    }

    fn dead_letters(&self, page: Page) -> Result<Vec<DeadLetterRow>, Error> {
        self.read(|conn| dead_letter::list(conn, page))
    }

    fn dead_letter(&self, key: StimulusKey) -> Result<Option<DeadLetterRow>, Error> {
        self.read(|conn| dead_letter::get(conn, key))
    }

    fn operations(&self, page: Page) -> Result<Vec<OperationRow>, Error> {
        self.read(|conn| operation::list(conn, page))
    }

    fn operation(&self, key: u64) -> Result<Option<OperationRow>, Error> {
        self.read(|conn| operation::get(conn, key))
    }

    fn operation_items(
        &self,
        operation: u64,
        outcome: Option<&str>,
        after: Option<InstanceKey>,
        limit: usize,
    ) -> Result<Vec<OperationItemRow>, Error> {
        self.read(|conn| operation::items(conn, operation, outcome, after, limit))
    }

    fn queue(&self) -> Result<QueueDepth, Error> {
        self.read(queue::depth)
    }
}
