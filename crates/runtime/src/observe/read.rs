//! Events of journals and of the audit trail, as observers see them.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use tidegate_engine::{Definition, Event, history};
use tidegate_store::{AuditRow, InstanceRow};

use super::{ObservedEvent, ObservedKind, Observers};

/// What may be told of an event without being asked: ids, names, codes, counts and times. Whatever else an event has,
/// now or later, is a value until it stands here.
const DETAILS: [&str; 37] = [
    "attempt",
    "begun",
    "binding",
    "boundaryKey",
    "childKey",
    "code",
    "compensatedScopeKey",
    "cycleMs",
    "dueAt",
    "errorCode",
    "escalationCode",
    "flowId",
    "generationId",
    "incidentKey",
    "ingressSourceName",
    "jobType",
    "lastActivityId",
    "lastActivityNodeId",
    "messageKey",
    "messageName",
    "missed",
    "nextDueAt",
    "outcome",
    "ownerKey",
    "processId",
    "reason",
    "repeats",
    "repeatsLeft",
    "retries",
    "retryAt",
    "scopeKey",
    "signalName",
    "stopped",
    "throwKey",
    "ttlMs",
    "turns",
    "interruptedAt",
];

/// One event, ready for whoever wants it.
#[derive(Debug)]
pub(crate) struct Told {
    plain: Arc<ObservedEvent>,
    with_values: Option<Arc<ObservedEvent>>,
}

impl Told {
    pub(super) fn plain(&self) -> &Arc<ObservedEvent> {
        &self.plain
    }

    pub(super) fn with_values(&self) -> &Arc<ObservedEvent> {
        self.with_values.as_ref().unwrap_or(&self.plain)
    }

    fn new(plain: ObservedEvent, values: Option<Value>) -> Self {
        let with_values = values.map(|values| {
            Arc::new(ObservedEvent {
                values: Some(values),
                ..plain.clone()
            })
        });
        Self {
            plain: Arc::new(plain),
            with_values,
        }
    }
}

impl Observers {
    /// What a commit will tell of an instance once it is durable. Nothing if nobody follows the instance.
    pub(crate) fn read(
        &self,
        definition: &Definition,
        row: &InstanceRow,
        events: &[Event],
        first_sequence: u64,
    ) -> Vec<Told> {
        let Some(with_values) = self.interest(row.key, &row.tenant) else {
            return Vec::new();
        };
        let items = history(definition, events, first_sequence);
        let told = items.into_iter().map(|item| {
            let plain = ObservedEvent {
                time: item.time,
                kind: kind(item.event),
                name: Cow::Borrowed(item.event),
                instance_key: Some(row.key),
                definition_key: Some(row.definition),
                process_id: Some(row.process_id.clone()),
                version: Some(row.version),
                tenant_id: Some(row.tenant.clone()),
                sequence: Some(item.sequence),
                element_id: item.element_id,
                element_instance_key: item.element_instance_key,
                cause: Some(item.cause),
                details: details(&item.payload),
                values: None,
            };
            Told::new(plain, with_values.then_some(item.payload))
        });
        told.collect()
    }

    /// Tells an effective change of the runtime, as its audit trail has it.
    pub(crate) fn tell_audit(&self, row: &AuditRow) {
        if !self.is_any() {
            return;
        }
        let details = json!({
            "scope": row.scope, "subject": row.subject, "before": row.before, "after": row.after,
            "outcome": row.outcome, "shell": row.shell,
        });
        self.tell_runtime(row.time, row.action.clone().into(), details);
    }

    /// Tells something of the runtime itself.
    pub(crate) fn tell_runtime(
        &self,
        time: tidegate_model::Timestamp,
        name: Cow<'static, str>,
        details: Value,
    ) {
        let details = match details {
            Value::Object(details) => details,
            _ => Map::new(),
        };
        let event = ObservedEvent {
            time,
            kind: ObservedKind::Runtime,
            name,
            instance_key: None,
            definition_key: None,
            process_id: None,
            version: None,
            tenant_id: None,
            sequence: None,
            element_id: None,
            element_instance_key: None,
            cause: None,
            details,
            values: None,
        };
        self.tell(&[Told::new(event, None)]);
    }
}

fn details(payload: &Value) -> Map<String, Value> {
    let Value::Object(payload) = payload else {
        return Map::new();
    };
    let may_be_told = |name: &str| DETAILS.contains(&name);
    payload
        .iter()
        .filter(|(name, value)| may_be_told(name) && !value.is_null())
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// By the first word of its name.
fn kind(name: &str) -> ObservedKind {
    const BY_WORD: [(&str, ObservedKind); 16] = [
        ("Instance", ObservedKind::Lifecycle),
        ("WorkflowInterrupted", ObservedKind::Lifecycle),
        ("CrashRecovered", ObservedKind::Lifecycle),
        ("Child", ObservedKind::Lifecycle),
        ("Job", ObservedKind::Job),
        ("UserTask", ObservedKind::UserTask),
        ("Incident", ObservedKind::Incident),
        ("Variables", ObservedKind::Variables),
        ("Results", ObservedKind::Variables),
        ("Timer", ObservedKind::Event),
        ("Message", ObservedKind::Event),
        ("Signal", ObservedKind::Event),
        ("Condition", ObservedKind::Event),
        ("Waits", ObservedKind::Event),
        ("Error", ObservedKind::Event),
        ("Escalation", ObservedKind::Event),
    ];
    let by_word = BY_WORD.iter().find(|(word, _)| name.starts_with(word));
    by_word.map_or(ObservedKind::Element, |(_, kind)| *kind)
}
