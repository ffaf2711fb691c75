//! What variables were before they changed, for activities that completed while they were so.
//!
//! A completed activity keeps its own variables only. What it saw around it is what is there now, less what has changed
//! since: each change is kept once, however many activities completed before it.

use std::collections::BTreeMap;
use std::sync::Arc;

use tidegate_model::{ElementInstanceKey, Json, Variables};

use crate::state::{Completed, Instance, Stage};

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

impl Instance {
    /// Everything that a completed activity saw when it completed, the innermost value of each name.
    pub(crate) fn seen_by(&self, completed: &Completed, scope: ElementInstanceKey, order: u64) -> Variables {
        let mut all = completed.variables.clone();
        let mut next = Some(scope).filter(|_| !completed.is_whole);
        while let Some(here) = next {
            let ended = self.completed.of(here);
            let (variables, around) = match (self.elements.get(&here), ended) {
                (Some(state), _) => (&state.variables, Some(state.parent)),
                (None, Some((around, ended))) => (&ended.variables, Some(around).filter(|_| !ended.is_whole)),
                (None, None) => (
                    &self.variables,
                    Some(ElementInstanceKey::ROOT).filter(|root| *root != here),
                ),
            };
            let earlier: BTreeMap<_, _> = self.completed.past.of(here, order).collect();
            let later = variables.iter().filter(|(name, _)| !earlier.contains_key(*name));
            let then = earlier
                .iter()
                .filter_map(|(name, value)| Some((*name, (*value)?)))
                .chain(later);
            let then: Vec<_> = then.filter(|(name, _)| all.get(name).is_none()).collect();
            for (name, value) in then {
                all.set(Arc::clone(name), value.clone());
            }
            next = around;
        }
        all
    }

    /// Sets variables of a scope that is alive. What completed before keeps seeing the values that they had.
    pub(crate) fn set_variables(
        &mut self,
        scope: ElementInstanceKey,
        values: impl IntoIterator<Item = (Arc<str>, Json)>,
    ) {
        let (target, mut handles, runs) = match scope {
            ElementInstanceKey::ROOT => (&mut self.variables, None, false),
            key => match self.elements.get_mut(&key) {
                Some(state) => {
                    let runs = state.stage == Stage::Running;
                    (&mut state.variables, state.handles.as_deref_mut(), runs)
                }
                None => return,
            },
        };
        for (name, value) in values {
            if let Some(handles) = &mut handles {
                handles.note(&name, runs);
            }
            let before = target.get(&name);
            if before != Some(&value) {
                self.completed.changes(scope, &name, before, self.sequence);
                target.set(name, value);
            }
        }
    }
}
