//! The variables that an expression sees from one place of the state.

use tidegate_expression::{Scope, Value};
use tidegate_model::{ElementInstanceKey, Json, Timestamp, Variables};

use crate::state::Instance;

/// What is visible from an element instance, with values in front that are not applied yet.
pub(crate) struct Visible<'a> {
    pub(crate) instance: &'a Instance,
    pub(crate) from: ElementInstanceKey,
    pub(crate) front: Option<&'a Variables>,
    pub(crate) now: Timestamp,
}

impl Visible<'_> {
    pub(crate) fn json(&self, name: &str) -> Option<&Json> {
        if let Some(json) = self.front.and_then(|front| front.get(name)) {
            return Some(json);
        }
        self.instance
            .outward(self.from)
            .find_map(|scope| self.instance.variables_of(scope)?.get(name))
    }
}

impl Scope for Visible<'_> {
    fn lookup(&self, name: &str) -> Option<Value> {
        self.json(name)
            .and_then(|json| Value::from_json(json.text()).ok())
    }

    fn now_ms(&self) -> i64 {
        self.now.as_ms()
    }
}
