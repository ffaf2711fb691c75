//! What people ask of the memory store.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use tidegate_model::{DefinitionKey, ElementInstanceKey, IncidentKey, InstanceKey, StimulusKey};

use super::MemoryStore;
use crate::Queries;
use crate::error::Error;
use crate::forget::{OperationItemRow, OperationRow};
use crate::row::{
    AuditRow, DeadLetterRow, DefinitionFilter, DefinitionKind, DefinitionRow, IncidentFilter, IncidentRow,
    InstanceFilter, InstanceRow, JournalRow, Page, QueueDepth, UserTaskFilter, UserTaskRow,
};

impl Queries for MemoryStore {
    fn instances(&self, filter: &InstanceFilter, page: Page) -> Result<Vec<InstanceRow>, Error> {
        self.read(|tables| {
            newest_first(&tables.instances, page.after.map(InstanceKey))
                .map(|instance| &instance.row)
                .filter(|row| filter.admits(row))
                .take(page.limit)
                .cloned()
                .collect()
        })
    }

    fn instance(&self, key: InstanceKey) -> Result<Option<InstanceRow>, Error> {
        self.read(|tables| tables.instances.get(&key).map(|instance| instance.row.clone()))
    }

    fn counts(&self) -> Result<[u64; 9], Error> {
        self.read(|tables| {
            let mut counts = [0; 9];
            for instance in tables.instances.values() {
                counts[usize::from(instance.row.sub_status.code())] += 1;
            }
            counts
        })
    }

    fn journal(&self, instance: InstanceKey, after: u64, limit: usize) -> Result<Vec<JournalRow>, Error> {
        let range = (
            Bound::Excluded((instance, after)),
            Bound::Included((instance, u64::MAX)),
        );
        self.read(|tables| {
            tables
                .journal
                .range(range)
                .take(limit)
                .map(|(_, row)| row.clone())
                .collect()
        })
    }

    fn definitions(&self, filter: &DefinitionFilter, page: Page) -> Result<Vec<DefinitionRow>, Error> {
        self.read(|tables| {
            let listed = |row: &&DefinitionRow| !row.is_deleted && filter.admits(row);
            let mut newest: BTreeMap<(DefinitionKind, Arc<str>, Arc<str>), u32> = BTreeMap::new();
            for row in tables.definitions.values().filter(listed) {
                let version = newest
                    .entry((row.kind, row.process_id.clone(), row.tenant.clone()))
                    .or_default();
                *version = row.version.max(*version);
            }
            let is_newest = |row: &DefinitionRow| {
                newest.get(&(row.kind, row.process_id.clone(), row.tenant.clone())) == Some(&row.version)
            };
            newest_first(&tables.definitions, page.after.map(DefinitionKey))
                .filter(listed)
                .filter(|row| !filter.latest || is_newest(row))
                .take(page.limit)
                .cloned()
                .collect()
        })
    }

    fn highest_version(&self, process_id: &str, tenant: &str) -> Result<u32, Error> {
        self.read(|tables| tables.highest_version(process_id, tenant))
    }

    fn incidents(&self, filter: &IncidentFilter, page: Page) -> Result<Vec<IncidentRow>, Error> {
        self.read(|tables| {
            newest_first(&tables.incidents, page.after.map(IncidentKey))
                .filter(|row| filter.admits(row))
                .take(page.limit)
                .cloned()
                .collect()
        })
    }

    fn incident(&self, key: IncidentKey) -> Result<Option<IncidentRow>, Error> {
        self.read(|tables| tables.incidents.get(&key).cloned())
    }

    fn user_tasks(&self, filter: &UserTaskFilter, page: Page) -> Result<Vec<UserTaskRow>, Error> {
        self.read(|tables| {
            newest_first(&tables.user_tasks, page.after.map(ElementInstanceKey))
                .filter(|row| filter.admits(row))
                .take(page.limit)
                .cloned()
                .collect()
        })
    }

    fn user_task(&self, key: ElementInstanceKey) -> Result<Option<UserTaskRow>, Error> {
        self.read(|tables| tables.user_tasks.get(&key).cloned())
    }

    fn audit(&self, page: Page) -> Result<Vec<AuditRow>, Error> {
        self.read(|tables| {
            newest_first(&tables.audit, page.after)
                .take(page.limit)
                .cloned()
                .collect()
        })
    }

    fn dead_letters(&self, page: Page) -> Result<Vec<DeadLetterRow>, Error> {
        self.read(|tables| {
            newest_first(&tables.dead_letters, page.after.map(StimulusKey))
                .take(page.limit)
                .cloned()
                .collect()
        })
    }

    fn dead_letter(&self, key: StimulusKey) -> Result<Option<DeadLetterRow>, Error> {
        self.read(|tables| tables.dead_letters.get(&key).cloned())
    }

    fn operations(&self, page: Page) -> Result<Vec<OperationRow>, Error> {
        self.read(|tables| {
            newest_first(&tables.operations, page.after)
                .take(page.limit)
                .cloned()
                .collect()
        })
    }

    fn operation(&self, key: u64) -> Result<Option<OperationRow>, Error> {
        self.read(|tables| tables.operations.get(&key).cloned())
    }

    fn operation_items(
        &self,
        operation: u64,
        outcome: Option<&str>,
        after: Option<InstanceKey>,
        limit: usize,
    ) -> Result<Vec<OperationItemRow>, Error> {
        self.read(|tables| tables.operation_items(operation, outcome, after, limit))
    }

    fn queue(&self) -> Result<QueueDepth, Error> {
        self.read(|tables| QueueDepth {
            depth: tables.stimuli.len() as u64,
            oldest_accepted_at: tables.stimuli.first_key_value().map(|(_, row)| row.accepted_at),
        })
    }
}

fn newest_first<K: Ord + Copy, V>(table: &BTreeMap<K, V>, after: Option<K>) -> impl Iterator<Item = &V> {
    let until = after.map_or(Bound::Unbounded, Bound::Excluded);
    table.range((Bound::Unbounded, until)).rev().map(|(_, row)| row)
}

impl InstanceFilter {
    /// True if the row is one of those asked for.
    pub fn admits(&self, row: &InstanceRow) -> bool {
        (self.sub_statuses.is_empty() || self.sub_statuses.contains(&row.sub_status))
            && is_asked(self.process_id.as_deref(), &row.process_id)
            && self.definition.is_none_or(|key| key == row.definition)
            && self
                .business_key
                .as_ref()
                .is_none_or(|key| row.business_key.as_ref() == Some(key))
            && self.parent.is_none_or(|key| row.parent == Some(key))
            && self
                .has_incident
                .is_none_or(|wanted| wanted == (row.incident_count > 0))
            && self.started_after.is_none_or(|at| row.started_at >= at)
            && self.started_before.is_none_or(|at| row.started_at < at)
            && is_asked(self.tenant.as_deref(), &row.tenant)
    }
}

impl DefinitionFilter {
    /// True if the row is one of those asked for, apart from [`DefinitionFilter::latest`].
    pub fn admits(&self, row: &DefinitionRow) -> bool {
        self.kind.is_none_or(|kind| kind == row.kind)
            && is_asked(self.process_id.as_deref(), &row.process_id)
            && is_asked(self.tenant.as_deref(), &row.tenant)
    }
}

impl IncidentFilter {
    /// True if the row is one of those asked for.
    pub fn admits(&self, row: &IncidentRow) -> bool {
        self.instance.is_none_or(|key| key == row.instance)
            && is_asked(self.process_id.as_deref(), &row.process_id)
            && is_asked(self.tenant.as_deref(), &row.tenant)
    }
}

impl UserTaskFilter {
    /// True if the row is one of those asked for.
    pub fn admits(&self, row: &UserTaskRow) -> bool {
        self.instance.is_none_or(|key| key == row.instance)
            && self
                .assignee
                .as_ref()
                .is_none_or(|name| row.assignee.as_ref() == Some(name))
            && is_asked(self.tenant.as_deref(), &row.tenant)
    }
}

fn is_asked(wanted: Option<&str>, found: &str) -> bool {
    wanted.is_none_or(|wanted| wanted == found)
}
