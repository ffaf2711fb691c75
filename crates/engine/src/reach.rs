//! What can still come to a gateway: which elements lead to which of its incoming flows, not counting paths through the
//! gateway itself. Worked out once for each gateway, when it is first asked.

use std::collections::HashMap;

use tidegate_model::ElementIndex;

use crate::definition::{Definition, FlowIndex};
use crate::state::{Instance, Role, Scope};

/// For each element that leads to a gateway, one bit for each of the gateway's incoming flows.
#[derive(Debug)]
pub(crate) struct Reach {
    masks: HashMap<ElementIndex, Box<[u64]>>,
}

impl Reach {
    /// Of the gateway `gateway`.
    pub(crate) fn of(definition: &Definition, gateway: ElementIndex) -> &Self {
        let info = definition.element(gateway);
        info.reach.get_or_init(|| Self::compute(definition, gateway))
    }

    fn compute(definition: &Definition, gateway: ElementIndex) -> Self {
        let incoming = &definition.element(gateway).incoming;
        let words = incoming.len().div_ceil(64);
        let mut masks: HashMap<ElementIndex, Box<[u64]>> = HashMap::new();
        for (position, flow) in incoming.iter().enumerate() {
            let (word, bit) = (position / 64, 1 << (position % 64));
            let mut open = vec![definition.flow(*flow).source];
            while let Some(element) = open.pop() {
                if element == gateway {
                    continue;
                }
                let mask = masks
                    .entry(element)
                    .or_insert_with(|| vec![0; words].into_boxed_slice());
                if mask[word] & bit != 0 {
                    continue;
                }
                mask[word] |= bit;
                let info = definition.element(element);
                open.extend(info.incoming.iter().map(|flow| definition.flow(*flow).source));
                open.extend(info.host);
            }
        }
        Self { masks }
    }

    /// True if a token at `element` can come to one of the `empty` flows and to none of the `waiting` ones.
    fn leads(&self, element: ElementIndex, waiting: &[u64], empty: &[u64]) -> bool {
        let meets =
            |mask: &[u64], flows: &[u64]| mask.iter().zip(flows).any(|(mask, flows)| mask & flows != 0);
        self.masks
            .get(&element)
            .is_some_and(|mask| meets(mask, empty) && !meets(mask, waiting))
    }
}

/// True if nothing that lives in `scope` can still come to one of the incoming flows of `gateway` that have no token.
/// Flows in `taken` are done with.
pub(crate) fn nothing_more_comes(
    definition: &Definition,
    instance: &Instance,
    scope: &Scope,
    gateway: ElementIndex,
    taken: &[FlowIndex],
) -> bool {
    let incoming = &definition.element(gateway).incoming;
    let words = incoming.len().div_ceil(64);
    let (mut waiting, mut empty) = (vec![0; words], vec![0; words]);
    for (position, flow) in incoming.iter().enumerate() {
        if !taken.contains(flow) {
            let flows = if scope.tokens_on(*flow) > 0 {
                &mut waiting
            } else {
                &mut empty
            };
            flows[position / 64] |= 1_u64 << (position % 64);
        }
    }
    if empty.iter().all(|word| *word == 0) {
        return true;
    }
    let reach = Reach::of(definition, gateway);
    let on_flows = scope
        .tokens()
        .iter()
        .map(|(flow, _)| definition.flow(*flow).target);
    let live = scope
        .children
        .iter()
        .filter_map(|key| instance.elements.get(key))
        .filter(|state| state.role != Role::Detached)
        .map(|state| state.element);
    !on_flows
        .chain(live)
        .any(|element| reach.leads(element, &waiting, &empty))
}
