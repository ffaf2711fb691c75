//! Contexts: named entries in order, found by name.

use std::fmt::{self, Display, Formatter};
use std::sync::Arc;

use crate::value::Value;

/// Up to this many entries a look through all of them is faster than a search in the index.
const SMALL: usize = 8;

/// The entries of a context value.
#[derive(Debug, Default)]
pub struct Context {
    entries: Vec<(Arc<str>, Value)>,
    /// Entry numbers sorted by name; empty for small contexts.
    index: Vec<u32>,
    depth: u32,
}

impl Context {
    /// The value of an entry.
    pub fn get(&self, name: &str) -> Option<&Value> {
        if self.index.is_empty() {
            return self
                .entries
                .iter()
                .find(|(key, _)| &**key == name)
                .map(|(_, value)| value);
        }
        let at = self
            .index
            .binary_search_by(|entry| self.key(*entry).cmp(name))
            .ok()?;
        self.entries
            .get(*self.index.get(at)? as usize)
            .map(|(_, value)| value)
    }

    /// All entries in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Arc<str>, &Value)> {
        self.entries.iter().map(|(name, value)| (name, value))
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn depth(&self) -> u32 {
        self.depth
    }

    fn key(&self, entry: u32) -> &str {
        self.entries.get(entry as usize).map_or("", |(name, _)| name)
    }
}

impl FromIterator<(Arc<str>, Value)> for Context {
    /// Of entries with the same name the last counts, at the place of the first.
    fn from_iter<I: IntoIterator<Item = (Arc<str>, Value)>>(entries: I) -> Self {
        let mut context = Context {
            entries: entries.into_iter().collect(),
            index: Vec::new(),
            depth: 1,
        };
        context.index = (0..context.entries.len() as u32).collect();
        let mut index = std::mem::take(&mut context.index);
        index.sort_by(|a, b| context.key(*a).cmp(context.key(*b)));
        let mut repeated = Vec::new();
        for pair in index.windows(2) {
            if let [first, second] = pair
                && context.key(*first) == context.key(*second)
            {
                repeated.push((*first, *second));
            }
        }
        if !repeated.is_empty() {
            context.forget(&repeated);
            return context.entries.into_iter().collect();
        }
        if context.entries.len() > SMALL {
            context.index = index;
        }
        context.depth = context
            .entries
            .iter()
            .map(|(_, value)| value.depth())
            .max()
            .unwrap_or(0)
            + 1;
        context
    }
}

impl Context {
    /// Moves the values of later entries to the first of the same name. The pairs of one name stand in order.
    fn forget(&mut self, repeated: &[(u32, u32)]) {
        let mut dropped = vec![false; self.entries.len()];
        for (first, second) in repeated.iter().rev() {
            let (first, second) = (*first as usize, *second as usize);
            if let Some(entry) = self.entries.get_mut(second) {
                let value = std::mem::replace(&mut entry.1, Value::Null);
                if let Some(entry) = self.entries.get_mut(first) {
                    entry.1 = value;
                }
            }
            if let Some(flag) = dropped.get_mut(second) {
                *flag = true;
            }
        }
        let mut flags = dropped.into_iter();
        self.entries.retain(|_| !flags.next().unwrap_or(false));
    }
}

impl Display for Context {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        for (index, (name, value)) in self.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            let plain = name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == ' ') && !name.is_empty();
            if plain {
                write!(f, "{comma}{name}: {value}")?
            } else {
                write!(f, "{comma}\"{name}\": {value}")?
            }
        }
        f.write_str("}")
    }
}
