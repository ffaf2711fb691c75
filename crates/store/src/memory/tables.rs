//! The tables of the memory store and its look-ups by the runtime.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use tidegate_model::{
    DefinitionKey, ElementIndex, ElementInstanceKey, IncidentKey, InstanceKey, MessageKey, StimulusKey,
    SubStatus, Timestamp, Variables,
};

use super::waiting::Waiting;
use crate::Activation;
use crate::forget::{ForgottenRow, OperationItemRow, OperationRow};
use crate::row::{
    AuditRow, DeadLetterRow, DefinitionRow, IncidentRow, InstanceRow, JobRow, JournalRow, MessageRow,
    StimulusRow, StoredInstance, TimerRow, UserTaskRow,
};

/// An instance with its stored state.
pub(super) struct Instance {
    pub row: InstanceRow,
    pub state: Option<Vec<u8>>,
    pub state_revision: u64,
    pub trimmed: u64,
}

/// A message in the buffer, its payload read once.
pub(super) struct Buffered {
    pub row: MessageRow,
    pub variables: Variables,
}

/// A key-value entry.
pub(super) struct Value {
    pub bytes: Vec<u8>,
    pub expires_at: Option<Timestamp>,
}

type TimerOrder = (Timestamp, u64, ElementIndex);

/// Everything.
#[derive(Default)]
pub(super) struct Tables {
    pub epoch: u64,
    pub key_high: u64,
    pub instances: BTreeMap<InstanceKey, Instance>,
    pub journal: BTreeMap<(InstanceKey, u64), JournalRow>,
    pub timers: BTreeMap<TimerOrder, TimerRow>,
    pub timer_due: BTreeMap<(u64, ElementIndex), Timestamp>,
    pub subscriptions: Waiting,
    pub messages: BTreeMap<MessageKey, Buffered>,
    pub jobs: BTreeMap<ElementInstanceKey, JobRow>,
    pub user_tasks: BTreeMap<ElementInstanceKey, UserTaskRow>,
    pub incidents: BTreeMap<IncidentKey, IncidentRow>,
    pub stimuli: BTreeMap<StimulusKey, StimulusRow>,
    pub last_stimulus: u64,
    pub dead_letters: BTreeMap<StimulusKey, DeadLetterRow>,
    pub resources: BTreeMap<u64, Arc<[u8]>>,
    pub definitions: BTreeMap<DefinitionKey, DefinitionRow>,
    pub values: BTreeMap<String, Value>,
    pub audit: BTreeMap<u64, AuditRow>,
    pub forgotten: BTreeMap<InstanceKey, ForgottenRow>,
    pub operations: BTreeMap<u64, OperationRow>,
    pub operation_items: BTreeMap<(u64, InstanceKey), OperationItemRow>,
}

impl Tables {
    pub fn activate(&mut self) -> Activation {
        self.epoch += 1;
        Activation {
            epoch: self.epoch,
            key_high: self.key_high,
        }
    }

    pub fn load(&self, key: InstanceKey) -> Option<StoredInstance> {
        let instance = self.instances.get(&key)?;
        let from = (
            Bound::Excluded((key, instance.state_revision)),
            Bound::Included((key, u64::MAX)),
        );
        Some(StoredInstance {
            row: instance.row.clone(),
            state: instance.state.clone(),
            journal: self.journal.range(from).map(|(_, row)| row.clone()).collect(),
            trimmed: instance.trimmed,
        })
    }

    pub fn recoverable(&self, after: Option<InstanceKey>, limit: usize) -> Vec<InstanceRow> {
        let is_recoverable = |row: &InstanceRow| {
            matches!(
                row.sub_status,
                SubStatus::Executing | SubStatus::Interrupted | SubStatus::Cancelling
            )
        };
        self.instances
            .range((after.map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded))
            .map(|(_, instance)| &instance.row)
            .filter(|row| is_recoverable(row))
            .take(limit)
            .cloned()
            .collect()
    }

    pub fn due_timers(&self, until: Timestamp, after: Option<&TimerRow>, limit: usize) -> Vec<TimerRow> {
        let from = after.map_or(Bound::Unbounded, |row| {
            Bound::Excluded((row.due_at, row.owner, row.element))
        });
        self.timers
            .range((from, Bound::Unbounded))
            .map(|(_, row)| row)
            .take_while(|row| row.due_at <= until)
            .take(limit)
            .cloned()
            .collect()
    }

    pub fn stimuli_after(&self, after: Option<StimulusKey>, limit: usize) -> Vec<StimulusRow> {
        self.stimuli
            .range((after.map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded))
            .take(limit)
            .map(|(_, row)| row.clone())
            .collect()
    }

    pub fn value(&self, key: &str, now: Timestamp) -> Option<&[u8]> {
        let value = self.values.get(key)?;
        let is_there = value.expires_at.is_none_or(|at| at > now);
        is_there.then_some(value.bytes.as_slice())
    }

    pub fn highest_version(&self, process_id: &str, tenant: &str) -> u32 {
        self.definitions
            .values()
            .filter(|row| &*row.process_id == process_id && &*row.tenant == tenant)
            .map(|row| row.version)
            .max()
            .unwrap_or(0)
    }
}
