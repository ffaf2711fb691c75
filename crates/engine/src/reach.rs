//! What can still come to a gateway: which elements lead to which of its incoming flows, not counting paths through the
//! gateway itself. Worked out once for each gateway, when it is first asked.

use std::collections::HashMap;

use tidegate_model::ElementIndex;

use crate::definition::{Definition, FlowIndex};
use crate::state::{Instance, Role, Scope};

/// How many of the live elements are looked at before all of them are.
const WITNESSES: usize = 4;

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

    /// True if a token at `element` can come to one of the `incoming` flows that are not in `taken`, and to none that has
    /// a token in `scope`: looks at the flows that it leads to, and at no others.
    fn surely_leads(
        &self,
        element: ElementIndex,
        incoming: &[FlowIndex],
        scope: &Scope,
        taken: &[FlowIndex],
    ) -> bool {
        let Some(mask) = self.masks.get(&element) else {
            return false;
        };
        let words = mask.iter().enumerate().filter(|(_, word)| **word != 0);
        let bits = words.flat_map(|(position, word)| {
            let bits = (0..64).filter(move |bit| word & (1 << bit) != 0);
            bits.map(move |bit| position * 64 + bit)
        });
        let mut leads = false;
        for flow in bits.filter_map(|bit| incoming.get(bit)) {
            if scope.tokens_on(*flow) > 0 {
                return false;
            }
            leads |= !taken.contains(flow);
        }
        leads
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
    let reach = Reach::of(definition, gateway);
    // Where many branches run, one of the first shows at once that more can come.
    if live_in(instance, scope)
        .take(WITNESSES)
        .any(|element| reach.surely_leads(element, incoming, scope, taken))
    {
        return false;
    }
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
    let on_flows = scope
        .tokens()
        .iter()
        .map(|(flow, _)| definition.flow(*flow).target);
    !live_in(instance, scope)
        .chain(on_flows)
        .any(|element| reach.leads(element, &waiting, &empty))
}

/// The elements that are alive in `scope`, without those whose tokens have gone on.
fn live_in<'a>(instance: &'a Instance, scope: &'a Scope) -> impl Iterator<Item = ElementIndex> + 'a {
    scope
        .children
        .iter()
        .filter_map(|key| instance.elements.get(key))
        .filter(|state| state.role != Role::Detached)
        .map(|state| state.element)
}
