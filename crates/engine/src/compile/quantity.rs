//! Activities that begin with several tokens, where fewer can come: a warning, since an operator may still give them some.

use tidegate_model::ElementIndex;

use crate::definition::{Definition, ElementInfo};

/// For each element, how many tokens can come to it at most in one life of the scope around it; none where there is no limit
/// or no element needs to know. Counted along the flows, as if each element let every token through: too much rather
/// than too little.
pub(super) fn most_tokens(definition: &Definition) -> Vec<Option<u64>> {
    let elements = &definition.elements;
    let mut most = vec![None; elements.len()];
    if elements.iter().all(|info| info.start_quantity <= 1) {
        return most;
    }
    let mut comes: Vec<u64> = elements
        .iter()
        .map(|info| u64::from(is_begun_once(definition, info)))
        .collect();
    let mut open_ways: Vec<usize> = elements
        .iter()
        .map(|info| info.incoming.len() + usize::from(info.host.is_some()))
        .collect();
    let is_ready = |element: &usize| open_ways[*element] == 0 && comes[*element] > 0;
    let mut ready: Vec<usize> = (0..elements.len()).filter(is_ready).collect();
    while let Some(element) = ready.pop() {
        let info = &elements[element];
        most[element] = Some(comes[element]);
        // Where it begins never, what follows is counted as if it did: one finding is enough.
        let begun = (comes[element] / u64::from(info.start_quantity.max(1))).max(1);
        let each = begun.saturating_mul(u64::from(info.completion_quantity));
        let flows = info
            .outgoing
            .iter()
            .map(|flow| (definition.flow(*flow).target, each));
        let interrupting = info.boundaries.iter().copied();
        let interrupting =
            interrupting.filter(|event| definition.element(*event).behaviour.is_interrupting());
        for (target, tokens) in flows.chain(interrupting.map(|event| (event, begun))) {
            let target = target.index();
            comes[target] = comes[target].saturating_add(tokens);
            open_ways[target] = open_ways[target].saturating_sub(1);
            if open_ways[target] == 0 {
                ready.push(target);
            }
        }
    }
    most
}

/// True for what one token begins: a start event, or an activity that no flow leads to.
fn is_begun_once(definition: &Definition, info: &ElementInfo) -> bool {
    let in_ad_hoc = |scope: ElementIndex| definition.element(scope).kind == "adHocSubProcess";
    info.incoming.is_empty()
        && info.host.is_none()
        && !matches!(info.kind, "intermediateCatchEvent" | "intermediateThrowEvent")
        && !info.is_for_compensation
        && !info.behaviour.is_listener()
        && !info.parent.is_some_and(in_ad_hoc)
}
