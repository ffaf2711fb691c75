//! The names that an expression may read although they hold special characters.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Names that FEEL cannot tell from operators unless it knows them, by their first word; with each how it is written
/// without white space.
#[derive(Default)]
pub(super) struct Names {
    by_word: HashMap<String, BTreeMap<Arc<str>, String>>,
}

const KEYWORDS: &[&str] = &[
    "and",
    "between",
    "else",
    "every",
    "false",
    "for",
    "function",
    "if",
    "in",
    "instance",
    "null",
    "of",
    "or",
    "return",
    "satisfies",
    "some",
    "then",
    "true",
];

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty())
}

/// Whether FEEL reads the name wrongly where it does not know it.
fn needs_care(name: &str) -> bool {
    name.contains(|c: char| !c.is_alphanumeric() && c != '_' && c != ' ')
        || words(name).any(|word| KEYWORDS.contains(&word) || word.starts_with(|c: char| c.is_numeric()))
}

fn compact(text: &str) -> String {
    text.split_whitespace().collect()
}

impl Names {
    /// Adds a name and says whether it must be taken away again.
    pub(super) fn add(&mut self, name: &Arc<str>) -> bool {
        if !needs_care(name) {
            return false;
        }
        let Some(first) = words(name).next() else {
            return false;
        };
        let bucket = self.by_word.entry(first.to_owned()).or_default();
        bucket.insert(name.clone(), compact(name)).is_none()
    }

    pub(super) fn remove(&mut self, name: &Arc<str>) {
        if let Some(bucket) = words(name).next().and_then(|first| self.by_word.get_mut(first)) {
            bucket.remove(name);
        }
    }

    /// The names that a text may read.
    pub(super) fn of(&self, text: &str) -> Vec<Arc<str>> {
        if self.by_word.is_empty() {
            return Vec::new();
        }
        let mut seen: Vec<&str> = words(text).collect();
        seen.sort_unstable();
        seen.dedup();
        let text = compact(text);
        let buckets = seen.into_iter().filter_map(|word| self.by_word.get(word));
        let found = buckets
            .flatten()
            .filter(|(_, written)| text.contains(written.as_str()));
        found.map(|(name, _)| name.clone()).collect()
    }
}
