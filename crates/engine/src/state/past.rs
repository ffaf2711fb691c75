//! What variables were before they changed, for activities that completed while they were so.
//!
//! A completed activity keeps its own variables only. What it saw around it is what is there now, less what has changed
//! since: each change is kept once, however many activities completed before it.

use std::collections::BTreeMap;
use std::sync::Arc;

use tidegate_model::{ElementInstanceKey, Json};

/// The earlier values of the variables of each scope.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Past {
    /// The scopes that completed activities see, each with the place of the last of them in the order of completion.
    pub(super) seen: BTreeMap<ElementInstanceKey, u64>,
    pub(super) earlier: BTreeMap<(ElementInstanceKey, Arc<str>), Vec<Earlier>>,
    /// About how many bytes the earlier values take.
    pub(super) bytes: usize,
}

/// A value that a variable had.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Earlier {
    /// The event that changed it: what completed before saw this value.
    pub(crate) until: u64,
    /// None where there was no such variable.
    pub(crate) value: Option<Json>,
}

impl Past {
    /// An activity that completed at `order` sees these scopes.
    pub(super) fn sees(&mut self, scopes: &[ElementInstanceKey], order: u64) {
        self.seen.extend(scopes.iter().map(|scope| (*scope, order)));
    }

    /// True if a value of `scope` that changes must be kept.
    pub(super) fn is_seen(&self, scope: ElementInstanceKey) -> bool {
        self.seen.contains_key(&scope)
    }

    /// A variable of `scope` changes with the event `until`; `newest` is the place of the last completed activity that
    /// is kept at all.
    pub(super) fn changed(
        &mut self,
        scope: ElementInstanceKey,
        name: &Arc<str>,
        value: Option<&Json>,
        until: u64,
        newest: u64,
    ) {
        let Some(newest) = self.seen.get(&scope).map(|seen| newest.min(*seen)) else {
            return;
        };
        let kept = self.earlier.entry((scope, Arc::clone(name))).or_default();
        // What completed last of all is gone: nobody sees the values that came after the rest.
        while let [.., before, _] = kept.as_slice()
            && before.until > newest
        {
            self.bytes -= kept.pop().map_or(0, |earlier| earlier.bytes());
        }
        if kept.last().is_none_or(|last| last.until <= newest) {
            let value = value.cloned();
            let earlier = Earlier { until, value };
            self.bytes += earlier.bytes();
            kept.push(earlier);
        }
    }

    /// The variables of `scope` that had another value for what completed at `order`; none stands for no such variable.
    pub(super) fn of(
        &self,
        scope: ElementInstanceKey,
        order: u64,
    ) -> impl Iterator<Item = (&Arc<str>, Option<&Json>)> {
        let of_scope = (scope, Arc::from(""))..(ElementInstanceKey(scope.0 + 1), Arc::from(""));
        self.earlier.range(of_scope).filter_map(move |((_, name), kept)| {
            let position = kept.partition_point(|earlier| earlier.until <= order);
            kept.get(position).map(|earlier| (name, earlier.value.as_ref()))
        })
    }

    /// Nothing that is kept sees `scope` any more.
    pub(super) fn forget(&mut self, scope: ElementInstanceKey) {
        if self.seen.remove(&scope).is_none() {
            return;
        }
        let of_scope = (scope, Arc::from(""))..(ElementInstanceKey(scope.0 + 1), Arc::from(""));
        let names: Vec<_> = self.earlier.range(of_scope).map(|(key, _)| key.clone()).collect();
        for key in names {
            let kept = self.earlier.remove(&key).into_iter().flatten();
            self.bytes -= kept.map(|earlier| earlier.bytes()).sum::<usize>();
        }
    }
}

impl Earlier {
    pub(super) fn bytes(&self) -> usize {
        const EARLIER: usize = 48;
        EARLIER + self.value.as_ref().map_or(0, |value| value.text().len())
    }
}
