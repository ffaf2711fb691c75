//! Activities that have completed and can be compensated, with their data as of completion.

use std::collections::BTreeMap;

use tidegate_model::{ElementIndex, ElementInstanceKey, Variables};

/// One completed activity.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Completed {
    /// The instance that completed. What completed inside it, if that can be compensated, is kept under this key.
    pub(crate) key: ElementInstanceKey,
    pub(crate) element: ElementIndex,
    /// True for the whole of a repeated activity, whose turns are kept inside it.
    pub(crate) is_loop: bool,
    /// What it saw when it completed; empty where only what is inside it can be compensated.
    pub(crate) variables: Variables,
}

/// The completed activities of all scopes, in the order of completion inside each.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct CompletedActivities(BTreeMap<(ElementInstanceKey, u64), Completed>);

impl CompletedActivities {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (ElementInstanceKey, u64, &Completed)> {
        self.0
            .iter()
            .map(|((scope, order), completed)| (*scope, *order, completed))
    }

    pub(crate) fn insert(&mut self, scope: ElementInstanceKey, order: u64, completed: Completed) {
        self.0.insert((scope, order), completed);
    }

    /// Takes one out; what is kept inside it stays.
    pub(crate) fn remove(&mut self, scope: ElementInstanceKey, order: u64) -> Option<Completed> {
        self.0.remove(&(scope, order))
    }

    /// True if something that completed in `scope` is kept.
    pub(crate) fn has(&self, scope: ElementInstanceKey) -> bool {
        self.in_scope(scope).next().is_some()
    }

    /// What completed in `scope`, the last first.
    pub(crate) fn in_scope(&self, scope: ElementInstanceKey) -> impl Iterator<Item = (u64, &Completed)> {
        let range = self.0.range((scope, 0)..=(scope, u64::MAX));
        range.rev().map(|((_, order), completed)| (*order, completed))
    }

    /// Forgets what completed in `scope`, with everything inside it.
    pub(crate) fn forget(&mut self, scope: ElementInstanceKey) {
        let mut open = vec![scope];
        while let Some(scope) = open.pop() {
            let inside = self
                .in_scope(scope)
                .map(|(order, completed)| (order, completed.key));
            for (order, key) in inside.collect::<Vec<_>>() {
                open.push(key);
                self.remove(scope, order);
            }
        }
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}
