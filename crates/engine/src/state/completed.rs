//! Activities that have completed and can be compensated, with their data as of completion.

use std::collections::{BTreeMap, BTreeSet};

use tidegate_model::{ElementIndex, ElementInstanceKey, Json, Variables};

use crate::state::Past;

/// A value of so many bytes is worth a look whether it is kept already.
pub(crate) const LARGE: usize = 4096;

/// One completed activity.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Completed {
    /// The instance that completed. What completed inside it, if that can be compensated, is kept under this key.
    pub(crate) key: ElementInstanceKey,
    pub(crate) element: ElementIndex,
    /// True where only what is inside it can be compensated: for the whole of a repeated activity, and for what was
    /// ended with the transaction around it.
    pub(crate) only_inside: bool,
    /// True while its handler runs.
    pub(crate) is_handled: bool,
    /// True where `variables` are all that it saw and not only its own.
    pub(crate) is_whole: bool,
    /// Its own variables when it completed.
    pub(crate) variables: Variables,
}

/// The completed activities of all scopes, in the order of completion inside each.
#[derive(Debug, Clone, Default)]
pub(crate) struct CompletedActivities {
    kept: BTreeMap<(ElementInstanceKey, u64), Completed>,
    pub(super) past: Past,
    /// Scopes that live on but ended abnormally, so that they cannot be compensated.
    pub(super) abnormal: BTreeSet<ElementInstanceKey>,
    /// Where each is kept.
    places: BTreeMap<ElementInstanceKey, (ElementInstanceKey, u64)>,
    orders: BTreeSet<u64>,
    /// About how many bytes `kept` takes, values that several share counted where they are kept first.
    bytes: usize,
}

/// What is derived has no say.
impl PartialEq for CompletedActivities {
    fn eq(&self, other: &Self) -> bool {
        (&self.kept, &self.past, &self.abnormal) == (&other.kept, &other.past, &other.abnormal)
    }
}

impl CompletedActivities {
    pub(crate) fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.kept.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (ElementInstanceKey, u64, &Completed)> {
        let entries = self.kept.iter();
        entries.map(|((scope, order), completed)| (*scope, *order, completed))
    }

    /// Changes what element each of them is of.
    pub(crate) fn change_elements(&mut self, change: impl Fn(&mut ElementIndex)) {
        self.kept
            .values_mut()
            .for_each(|completed| change(&mut completed.element));
    }

    /// About how many bytes it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes + self.past.bytes
    }

    /// Keeps what has completed in the first of `scopes`, which are those that it sees, the innermost first.
    pub(crate) fn insert(&mut self, scopes: &[ElementInstanceKey], order: u64, mut completed: Completed) {
        let Some(&scope) = scopes.first() else { return };
        self.share(scope, &mut completed.variables);
        self.past.sees(scopes, order);
        self.put(scope, order, completed);
    }

    /// Keeps what was kept before.
    pub(super) fn put(&mut self, scope: ElementInstanceKey, order: u64, completed: Completed) {
        self.bytes += self.weight(scope, &completed);
        self.places.insert(completed.key, (scope, order));
        self.orders.insert(order);
        self.kept.insert((scope, order), completed);
    }

    /// Large values that the one before it in `scope` has too are kept once.
    fn share(&self, scope: ElementInstanceKey, variables: &mut Variables) {
        let Some((_, before)) = self.in_scope(scope).next() else {
            return;
        };
        let same = |name: &str, value: &Json| before.variables.get(name).filter(|before| *before == value);
        for (name, value) in &mut variables.0 {
            if value.text().len() >= LARGE
                && let Some(shared) = same(name, value)
            {
                *value = shared.clone();
            }
        }
    }

    fn weight(&self, scope: ElementInstanceKey, completed: &Completed) -> usize {
        const COMPLETED: usize = 192;
        const VARIABLE: usize = 80;
        let before = self.in_scope(scope).next().map(|(_, before)| &before.variables);
        let is_shared = |name: &str, value: &Json| {
            let before = before.and_then(|before| before.get(name));
            before.is_some_and(|before| std::ptr::eq(before.text(), value.text()))
        };
        let variables = completed.variables.iter().map(|(name, value)| {
            let text = if is_shared(name, value) {
                0
            } else {
                value.text().len()
            };
            VARIABLE + name.len() + text
        });
        COMPLETED + variables.sum::<usize>()
    }

    /// The one that has this key.
    pub(crate) fn of(&self, key: ElementInstanceKey) -> Option<(ElementInstanceKey, &Completed)> {
        let place = self.places.get(&key)?;
        Some((place.0, self.kept.get(place)?))
    }

    /// True if this one is kept.
    pub(crate) fn holds(&self, key: ElementInstanceKey) -> bool {
        self.places.contains_key(&key)
    }

    pub(crate) fn get_mut(&mut self, scope: ElementInstanceKey, order: u64) -> Option<&mut Completed> {
        self.kept.get_mut(&(scope, order))
    }

    /// True if something that completed in `scope` is kept.
    pub(crate) fn has(&self, scope: ElementInstanceKey) -> bool {
        self.in_scope(scope).next().is_some()
    }

    /// What completed in `scope`, the last first.
    pub(crate) fn in_scope(&self, scope: ElementInstanceKey) -> impl Iterator<Item = (u64, &Completed)> {
        let range = self.kept.range((scope, 0)..=(scope, u64::MAX));
        range.rev().map(|((_, order), completed)| (*order, completed))
    }

    /// What completed in `scope` and is not being compensated, the last first.
    pub(crate) fn open_in(&self, scope: ElementInstanceKey) -> impl Iterator<Item = (u64, &Completed)> {
        self.in_scope(scope)
            .filter(|(_, completed)| !completed.is_handled)
    }

    /// A variable of a live scope changes with the event `sequence`.
    pub(crate) fn changes(
        &mut self,
        scope: ElementInstanceKey,
        name: &std::sync::Arc<str>,
        before: Option<&Json>,
        sequence: u64,
    ) {
        if self.past.is_seen(scope) {
            let newest = self.orders.last().copied().unwrap_or_default();
            self.past.changed(scope, name, before, sequence, newest);
        }
    }

    /// `scope` lives on, but cannot be compensated, and nothing inside it.
    pub(crate) fn end_abnormally(&mut self, scope: ElementInstanceKey) {
        self.forget(scope);
        self.abnormal.insert(scope);
    }

    /// `scope` has ended: true if it did so abnormally.
    pub(crate) fn was_abnormal(&mut self, scope: ElementInstanceKey) -> bool {
        self.abnormal.remove(&scope)
    }

    /// Forgets one with everything inside it.
    pub(crate) fn remove(&mut self, scope: ElementInstanceKey, order: u64) {
        if let Some(completed) = self.take(scope, order) {
            self.forget(completed.key);
        }
    }

    /// Forgets what completed in `scope`, with everything inside it.
    pub(crate) fn forget(&mut self, scope: ElementInstanceKey) {
        let mut open = vec![scope];
        while let Some(scope) = open.pop() {
            self.past.forget(scope);
            let inside: Vec<u64> = self.in_scope(scope).map(|(order, _)| order).collect();
            for order in inside {
                open.extend(self.take(scope, order).map(|completed| completed.key));
            }
        }
        if self.kept.is_empty() {
            self.past = Past::default();
        }
    }

    fn take(&mut self, scope: ElementInstanceKey, order: u64) -> Option<Completed> {
        let completed = self.kept.remove(&(scope, order))?;
        self.places.remove(&completed.key);
        self.orders.remove(&order);
        self.bytes = self.bytes.saturating_sub(self.weight(scope, &completed));
        if self.kept.is_empty() {
            self.bytes = 0;
        }
        Some(completed)
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}
