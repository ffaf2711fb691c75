//! A scope: the process itself, or one activation of a sub-process.

use std::collections::BTreeSet;

use tidegate_model::ElementInstanceKey;

use crate::definition::FlowIndex;

/// What is alive in a scope. It has ended when there is nothing.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Scope {
    /// Tokens that stand on flows, ordered by flow; no entry is zero.
    tokens: Vec<(FlowIndex, u32)>,
    /// The element instances directly inside.
    pub(crate) children: BTreeSet<ElementInstanceKey>,
}

impl Scope {
    pub(crate) fn is_empty(&self) -> bool {
        self.tokens.is_empty() && self.children.is_empty()
    }

    pub(crate) fn tokens(&self) -> &[(FlowIndex, u32)] {
        &self.tokens
    }

    pub(crate) fn tokens_on(&self, flow: FlowIndex) -> u32 {
        self.find(flow).map_or(0, |position| self.tokens[position].1)
    }

    pub(crate) fn put(&mut self, flow: FlowIndex, count: u32) {
        match self.find(flow) {
            Ok(position) => self.tokens[position].1 = self.tokens[position].1.saturating_add(count),
            Err(position) => self.tokens.insert(position, (flow, count)),
        }
    }

    /// Takes up to `count` tokens from `flow` and tells how many it took.
    pub(crate) fn take(&mut self, flow: FlowIndex, count: u32) -> u32 {
        let Ok(position) = self.find(flow) else { return 0 };
        let taken = self.tokens[position].1.min(count);
        self.tokens[position].1 -= taken;
        if self.tokens[position].1 == 0 {
            self.tokens.remove(position);
        }
        taken
    }

    /// True if there is a token on each of `flows`. Refuses at once where there are too few tokens altogether, so that
    /// a join of many flows is not looked through for each of its tokens.
    pub(crate) fn has_each(&self, flows: &[FlowIndex]) -> bool {
        self.tokens.len() >= flows.len() && flows.iter().all(|flow| self.tokens_on(*flow) > 0)
    }

    /// Takes one token from each of `flows`, which are in order.
    pub(crate) fn take_each(&mut self, flows: &[FlowIndex]) {
        self.tokens.retain_mut(|(flow, count)| {
            *count -= u32::from(flows.binary_search(flow).is_ok());
            *count > 0
        });
    }

    /// Puts the tokens on other flows.
    pub(crate) fn change_flows(&mut self, change: impl Fn(&mut FlowIndex)) {
        for (mut flow, count) in std::mem::take(&mut self.tokens) {
            change(&mut flow);
            self.put(flow, count);
        }
    }

    pub(crate) fn remove_tokens(&mut self) {
        self.tokens.clear();
    }

    fn find(&self, flow: FlowIndex) -> Result<usize, usize> {
        self.tokens.binary_search_by_key(&flow, |(flow, _)| *flow)
    }
}
