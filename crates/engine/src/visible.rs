//! The variables that an expression sees from one place of the state.

use tidegate_expression::{Scope, Value};
use tidegate_model::{ElementInstanceKey, Json, Timestamp, Variables};

use crate::state::Instance;

/// How much of a value is shown in an incident.
const SHOWN: usize = 80;
/// How many values are shown in an incident.
const SHOWN_VALUES: usize = 8;

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

    /// `name = value` for the variables that a text mentions, shortened.
    pub(crate) fn mentioned(&self, text: &str) -> String {
        let mut names: Vec<&str> = text
            .split(|c: char| !(c.is_alphanumeric() || c == '_'))
            .filter(|word| word.starts_with(|c: char| c.is_alphabetic() || c == '_'))
            .collect();
        names.sort_unstable();
        names.dedup();
        let shown = names.into_iter().filter_map(|name| {
            let text = self.json(name)?.text();
            let short: String = text.chars().take(SHOWN).collect();
            let dots = if short.len() < text.len() { "…" } else { "" };
            Some(format!("{name} = {short}{dots}"))
        });
        shown.take(SHOWN_VALUES).collect::<Vec<_>>().join(", ")
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
