//! A state that is carried over to another definition: every index in it becomes that of the counterpart.

use tidegate_model::{DefinitionKey, ElementIndex};

use crate::definition::FlowIndex;
use crate::state::{Instance, Stage};

impl Instance {
    /// Changes every element and flow to its counterpart; both lists are in order.
    pub(crate) fn carry_over(
        &mut self,
        from: DefinitionKey,
        elements: &[(ElementIndex, ElementIndex)],
        flows: &[(FlowIndex, FlowIndex)],
    ) {
        let element = |index: &mut ElementIndex| *index = counterpart(elements, *index).unwrap_or(*index);
        let flow = |index: &mut FlowIndex| *index = counterpart(flows, *index).unwrap_or(*index);
        self.origin.get_or_insert(from);
        self.root.change_flows(flow);
        self.waits.iter_mut().for_each(|wait| element(&mut wait.element));
        for state in self.elements.values_mut() {
            element(&mut state.element);
            state.waits.iter_mut().for_each(|wait| element(&mut wait.element));
            if let Some(scope) = &mut state.scope {
                scope.change_flows(flow);
            }
            if let Stage::Joined { taken, .. } = &mut state.stage {
                taken.iter_mut().for_each(flow);
                taken.sort_unstable();
            }
        }
        for incident in self.incidents.values_mut() {
            element(&mut incident.element);
        }
        self.completed.change_elements(element);
        self.last_completed = self
            .last_completed
            .and_then(|(key, index)| Some((key, counterpart(elements, index)?)));
    }
}

fn counterpart<I: Ord + Copy>(all: &[(I, I)], index: I) -> Option<I> {
    let position = all.binary_search_by_key(&index, |(old, _)| *old).ok()?;
    Some(all[position].1)
}
