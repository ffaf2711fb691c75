//! What a caller sees of a runtime's status. The state of the gate is everybody's who may look; numbers and errors come from
//! all tenants, and who is bound to some is not told them.

use serde::Serialize;
use serde_json::Value;
use tidegate::status::RuntimeStatus;

use crate::auth::Tenants;

/// A status, as far as its reader may know it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub(super) enum Seen {
    /// All of it.
    Whole(Box<RuntimeStatus>),
    /// Without what all tenants add up to.
    Bound(Value),
}

/// What is told as null.
const OF_ALL_TENANTS: [&str; 4] = [
    "/activeExecutionCycleCount",
    "/interruptedInstanceCount",
    "/stimulusQueue/depth",
    "/stimulusQueue/oldestAcceptedAt",
];

impl Seen {
    /// The status for callers of these tenants.
    pub(super) fn by(tenants: &Tenants, status: RuntimeStatus) -> Self {
        if !tenants.is_bound() {
            return Self::Whole(Box::new(status));
        }
        let mut seen = serde_json::to_value(status).unwrap_or_default();
        for pointer in OF_ALL_TENANTS {
            if let Some(value) = seen.pointer_mut(pointer) {
                *value = Value::Null;
            }
        }
        for source in seen["sources"].as_array_mut().into_iter().flatten() {
            source["lastError"] = Value::Null;
        }
        Self::Bound(seen)
    }
}
