//! What can still come to a gateway: which elements lead to which of its incoming flows, not counting paths through the
//! gateway itself. Worked out once for each gateway, when it is first asked, as long as that stays small; the few gateways of
//! a model where many elements lead to many flows look along the flows each time they are asked.

use std::collections::{HashMap, HashSet};

use tidegate_model::ElementIndex;

use crate::definition::{Definition, FlowIndex};
use crate::state::{Instance, Role, Scope};

/// How many of the live elements are looked at before all of them are.
const WITNESSES: usize = 4;

/// How much all gateways of a definition may remember together: about 32 MB. A model of people needs a thousandth of it.
const MOST: usize = 8_000_000;

/// What an element costs besides the flows that it leads to.
const ELEMENT: usize = 16;

/// For each element that leads to a gateway, the places of the incoming flows that it leads to, in their order. None where
/// that is too much to remember.
#[derive(Debug)]
pub(crate) struct Reach(Option<HashMap<ElementIndex, Vec<u32>>>);

impl Reach {
    /// Of the gateway `gateway`.
    pub(crate) fn of(definition: &Definition, gateway: ElementIndex) -> &Self {
        let info = definition.element(gateway);
        let share = MOST / definition.late_joins.max(1);
        info.reach
            .get_or_init(|| Self(leading_to(definition, gateway, share)))
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
        let Some(places) = self.0.as_ref().and_then(|leading| leading.get(&element)) else {
            return false;
        };
        let mut leads = false;
        for flow in places.iter().filter_map(|place| incoming.get(*place as usize)) {
            if scope.tokens_on(*flow) > 0 {
                return false;
            }
            leads |= !taken.contains(flow);
        }
        leads
    }
}

/// Which elements lead to which incoming flows of the gateway; none where that is more than `most`.
fn leading_to(
    definition: &Definition,
    gateway: ElementIndex,
    most: usize,
) -> Option<HashMap<ElementIndex, Vec<u32>>> {
    let mut leading: HashMap<ElementIndex, Vec<u32>> = HashMap::new();
    let mut spent = 0;
    for (flow, place) in definition.element(gateway).incoming.iter().zip(0_u32..) {
        let mut open = vec![definition.flow(*flow).source];
        while let Some(element) = open.pop() {
            if element == gateway {
                continue;
            }
            let places = leading.entry(element).or_insert_with(|| {
                spent += ELEMENT;
                Vec::new()
            });
            if places.last() == Some(&place) {
                continue;
            }
            places.push(place);
            spent += 1;
            if spent > most {
                return None;
            }
            before(definition, element, &mut open);
        }
    }
    Some(leading)
}

/// The elements that lead to one of `flows` without passing through the gateway.
fn leading_to_any(
    definition: &Definition,
    gateway: ElementIndex,
    flows: impl Iterator<Item = FlowIndex>,
) -> HashSet<ElementIndex> {
    let mut found = HashSet::new();
    let mut open: Vec<ElementIndex> = flows.map(|flow| definition.flow(flow).source).collect();
    while let Some(element) = open.pop() {
        if element != gateway && found.insert(element) {
            before(definition, element, &mut open);
        }
    }
    found
}

/// What leads directly to an element.
fn before(definition: &Definition, element: ElementIndex, open: &mut Vec<ElementIndex>) {
    let info = definition.element(element);
    open.extend(info.incoming.iter().map(|flow| definition.flow(*flow).source));
    open.extend(info.host);
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
    let taken: HashSet<FlowIndex> = taken.iter().copied().collect();
    let stands: Vec<Stands> = incoming
        .iter()
        .map(|flow| match (taken.contains(flow), scope.tokens_on(*flow)) {
            (true, _) => Stands::Taken,
            (false, 0) => Stands::Empty,
            (false, _) => Stands::Waiting,
        })
        .collect();
    if !stands.contains(&Stands::Empty) {
        return true;
    }
    let on_flows = scope
        .tokens()
        .iter()
        .map(|(flow, _)| definition.flow(*flow).target);
    let mut all = live_in(instance, scope).chain(on_flows);
    match &reach.0 {
        Some(leading) => {
            let at = |place: &u32| stands.get(*place as usize).copied().unwrap_or(Stands::Taken);
            !all.any(|element| {
                leading.get(&element).is_some_and(|places| {
                    let mut comes = places.iter().map(at);
                    comes.any(|at| at == Stands::Empty)
                        && !places.iter().map(at).any(|at| at == Stands::Waiting)
                })
            })
        }
        None => {
            let those = |wanted: Stands| {
                let all = incoming.iter().zip(&stands);
                let those = all.filter(move |(_, stands)| **stands == wanted);
                leading_to_any(definition, gateway, those.map(|(flow, _)| *flow))
            };
            let (empty, waiting) = (those(Stands::Empty), those(Stands::Waiting));
            !all.any(|element| empty.contains(&element) && !waiting.contains(&element))
        }
    }
}

/// What is the matter with an incoming flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stands {
    /// It was done with before.
    Taken,
    /// It has no token.
    Empty,
    /// It has one.
    Waiting,
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
