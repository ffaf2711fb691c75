//! Rules about the graph that belong to its meaning, and where each scope begins.

use tidegate_model::document::{Document, NodeId, Position};
use tidegate_model::{Diagnostic, ElementIndex};

use crate::compile::quantity;
use crate::definition::{Definition, ElementInfo, StarterTrigger};

/// What could be read of a process. A rule whose finding would follow from what could not is left out.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sound {
    /// Every flow node was read.
    pub(super) elements: bool,
    /// Every sequence flow was read.
    pub(super) flows: bool,
    /// Every tag is known.
    pub(super) kinds: bool,
}

pub(super) fn check(
    document: &Document,
    process: NodeId,
    nodes: &[NodeId],
    sound: Sound,
    definition: &mut Definition,
    diagnostics: &mut Vec<Diagnostic>,
) {
    let checker = Checker {
        document,
        nodes,
        sound,
    };
    for position in 0..definition.elements.len() {
        checker.node(definition, position, diagnostics);
    }
    let scopes = Scopes::of(definition);
    definition.listeners = listeners(definition, &scopes.top);
    instantiating_gateways(definition, &scopes.top);
    definition.starts = checker.process_starts(definition, process, &scopes.top, diagnostics);
    for (position, inside) in scopes.inside.iter().enumerate() {
        if matches!(
            definition.elements[position].kind,
            "subProcess" | "transaction" | "adHocSubProcess"
        ) {
            definition.elements[position].listeners = listeners(definition, inside);
        }
        if definition.elements[position].kind == "adHocSubProcess" {
            definition.elements[position].starts = implicit_starts(definition, inside);
        } else if matches!(definition.elements[position].kind, "subProcess" | "transaction") {
            definition.elements[position].starts =
                checker.sub_process_starts(definition, position, inside, diagnostics);
        }
    }
    if sound.elements && sound.flows && sound.kinds {
        checker.enough_tokens(definition, diagnostics);
        checker.reachable(definition, &scopes.top, diagnostics);
    }
}

/// The elements directly inside the process and inside each sub-process.
struct Scopes {
    top: Vec<ElementIndex>,
    inside: Vec<Vec<ElementIndex>>,
}

impl Scopes {
    fn of(definition: &Definition) -> Self {
        let mut scopes = Self {
            top: Vec::new(),
            inside: vec![Vec::new(); definition.elements.len()],
        };
        for (position, element) in definition.elements.iter().enumerate() {
            let index = ElementIndex(position as u32);
            match element.parent {
                Some(parent) => scopes.inside[parent.index()].push(index),
                None => scopes.top.push(index),
            }
        }
        scopes
    }
}

struct Checker<'a> {
    document: &'a Document,
    nodes: &'a [NodeId],
    sound: Sound,
}

impl Checker<'_> {
    fn position(&self, element: usize) -> Position {
        self.document.get(self.nodes[element]).position
    }

    fn report(
        &self,
        info: &ElementInfo,
        element: usize,
        finding: Diagnostic,
        diagnostics: &mut Vec<Diagnostic>,
    ) {
        diagnostics.push(finding.at(self.position(element)).element(Some(&info.id)));
    }

    fn node(&self, definition: &Definition, element: usize, diagnostics: &mut Vec<Diagnostic>) {
        let info = &definition.elements[element];
        let finding = match info.kind {
            "startEvent" if !info.incoming.is_empty() => error(
                "start-event-with-incoming",
                "a sequence flow leads into a start event",
                "end it elsewhere",
            ),
            "subProcess"
                if info.behaviour.is_listener()
                    && !(info.incoming.is_empty() && info.outgoing.is_empty()) =>
            {
                error(
                    "event-sub-process-with-flow",
                    "a sequence flow is connected to an event sub-process",
                    "remove the flow: its start event begins it",
                )
            }
            "endEvent" if !info.outgoing.is_empty() => error(
                "end-event-with-outgoing",
                "a sequence flow leads out of an end event",
                "begin it elsewhere",
            ),
            "boundaryEvent" if !info.incoming.is_empty() => error(
                "boundary-event-with-incoming",
                "a sequence flow leads into a boundary event",
                "lead it to the activity instead",
            ),
            "eventBasedGateway" => return self.event_based_gateway(definition, element, diagnostics),
            "exclusiveGateway" => return self.exclusive_gateway(definition, element, diagnostics),
            "parallelGateway" => {
                let conditional = info
                    .outgoing
                    .iter()
                    .any(|flow| definition.flow(*flow).condition.is_some());
                if !conditional {
                    return;
                }
                warning(
                    "condition-ignored",
                    "conditions on the flows of a parallel gateway have no effect",
                    "remove them",
                )
            }
            _ => return,
        };
        self.report(info, element, finding, diagnostics);
    }

    fn event_based_gateway(
        &self,
        definition: &Definition,
        element: usize,
        diagnostics: &mut Vec<Diagnostic>,
    ) {
        let info = &definition.elements[element];
        if info.outgoing.len() < 2 && self.sound.flows {
            let finding = error(
                "event-gateway-too-few-events",
                "an event-based gateway needs at least two events to choose from",
                "add an event, or use the event alone",
            );
            self.report(info, element, finding, diagnostics);
        }
        for flow in &info.outgoing {
            let target = definition.element(definition.flow(*flow).target);
            if !matches!(target.kind, "intermediateCatchEvent" | "receiveTask") {
                let finding = Diagnostic::error(
                    "event-gateway-without-event",
                    format!(
                        "the event-based gateway leads to `{}`, which is a {}",
                        target.id, target.kind
                    ),
                )
                .hint("lead it to catch events or receive tasks only");
                self.report(info, element, finding, diagnostics);
            }
        }
    }

    fn exclusive_gateway(&self, definition: &Definition, element: usize, diagnostics: &mut Vec<Diagnostic>) {
        let info = &definition.elements[element];
        // The default flow's own condition is ignored, as the standard says.
        let choices = || info.outgoing.iter().filter(|flow| info.default != Some(**flow));
        let conditions = choices()
            .filter(|flow| definition.flow(**flow).condition.is_some())
            .count();
        if conditions > 0 && conditions == info.outgoing.len() && info.default.is_none() {
            let finding = warning(
                "gateway-without-default",
                "every flow of the gateway has a condition: where none holds, the instance stops with an incident",
                "give it a default flow",
            );
            self.report(info, element, finding, diagnostics);
        }
        let open = choices().count() - conditions;
        if open > 0 && info.outgoing.len() > 1 {
            let finding = warning(
                "flow-without-condition",
                "a flow of the gateway has no condition, so it is always taken and those after it never",
                "give it a condition, or make it the default flow",
            );
            self.report(info, element, finding, diagnostics);
        }
    }

    fn process_starts(
        &self,
        definition: &Definition,
        process: NodeId,
        top: &[ElementIndex],
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Vec<ElementIndex> {
        let events = top
            .iter()
            .copied()
            .filter(|index| definition.element(*index).kind == "startEvent");
        let events: Vec<ElementIndex> = events.collect();
        if events.is_empty() {
            let starts = implicit_starts(definition, top);
            if starts.is_empty() && self.sound.kinds {
                let element = self.document.get(process);
                diagnostics.push(
                    error(
                        "no-start",
                        "nothing in the process can begin",
                        "add a start event",
                    )
                    .at(element.position)
                    .element(element.id()),
                );
            }
            return starts;
        }
        let is_none = |index: &&ElementIndex| {
            definition.element(**index).behaviour.starter() == Some(StarterTrigger::None)
        };
        let none: Vec<ElementIndex> = events.iter().filter(is_none).copied().collect();
        if let [_, second, ..] = none.as_slice() {
            let finding = warning(
                "several-none-start-events",
                "there are several none start events: a start request that names none of them begins at the first",
                "name the start event when starting, or remove one",
            );
            self.report(definition.element(*second), second.index(), finding, diagnostics);
        }
        match (none.first(), events.as_slice()) {
            (Some(first), _) => vec![*first],
            (None, [only]) => vec![*only],
            (None, _) => Vec::new(),
        }
    }

    fn sub_process_starts(
        &self,
        definition: &Definition,
        element: usize,
        inside: &[ElementIndex],
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Vec<ElementIndex> {
        let info = &definition.elements[element];
        let events = inside
            .iter()
            .copied()
            .filter(|index| definition.element(*index).kind == "startEvent");
        let events: Vec<ElementIndex> = events.collect();
        match events.as_slice() {
            [only] => vec![*only],
            [] if info.behaviour.is_listener() => {
                let finding = error(
                    "event-sub-process-without-start",
                    "an event sub-process must have a start event that says what begins it",
                    "add a start event with an event definition",
                );
                self.report(info, element, finding, diagnostics);
                Vec::new()
            }
            [] => {
                let starts = implicit_starts(definition, inside);
                if starts.is_empty() && self.sound.kinds {
                    // What is left waits for tokens that go round, and none is there.
                    let begins_by_flow =
                        |index: &ElementIndex| !definition.element(*index).incoming.is_empty();
                    let finding = match inside.iter().any(begins_by_flow) {
                        true => error(
                            "sub-process-without-start",
                            "nothing in the sub-process can begin",
                            "add a start event",
                        ),
                        false => warning(
                            "sub-process-empty",
                            "there is nothing to do in the sub-process: it completes at once",
                            "put the steps into it, or make it a task",
                        ),
                    };
                    self.report(info, element, finding, diagnostics);
                }
                starts
            }
            _ => {
                let finding = error(
                    "sub-process-with-several-starts",
                    "a sub-process must have one start event",
                    "keep one and join the others behind it",
                );
                self.report(info, element, finding, diagnostics);
                Vec::new()
            }
        }
    }

    /// Warns of activities that wait for more tokens than can come.
    fn enough_tokens(&self, definition: &Definition, diagnostics: &mut Vec<Diagnostic>) {
        for (element, most) in quantity::most_tokens(definition).into_iter().enumerate() {
            let info = &definition.elements[element];
            let wanted = info.start_quantity;
            if let Some(most) = most.filter(|most| wanted > 1 && *most < u64::from(wanted)) {
                let finding = Diagnostic::warning(
                    "start-quantity-out-of-reach",
                    format!("it begins with {wanted} tokens, and at most {most} can come: it waits for ever"),
                )
                .hint("lower its `startQuantity`, or lead more flows to it");
                self.report(info, element, finding, diagnostics);
            }
        }
    }

    /// Warns of elements that no token can reach.
    fn reachable(&self, definition: &Definition, top: &[ElementIndex], diagnostics: &mut Vec<Diagnostic>) {
        let mut seen = vec![false; definition.elements.len()];
        let events = top
            .iter()
            .filter(|index| definition.element(**index).kind == "startEvent");
        let starts = definition.starts.iter().chain(&definition.listeners);
        let mut open: Vec<ElementIndex> = starts.chain(events).copied().collect();
        while let Some(index) = open.pop() {
            if std::mem::replace(&mut seen[index.index()], true) {
                continue;
            }
            let info = definition.element(index);
            open.extend(info.outgoing.iter().map(|flow| definition.flow(*flow).target));
            open.extend(&info.boundaries);
            open.extend(&info.starts);
            open.extend(&info.listeners);
            open.extend(info.compensation);
            open.extend(info.compensation_sub_process);
        }
        for (element, info) in definition.elements.iter().enumerate() {
            if !seen[element] {
                let finding = warning(
                    "unreachable",
                    "no token can reach this element",
                    "connect or remove it",
                );
                self.report(info, element, finding, diagnostics);
            }
        }
    }
}

/// The event sub-processes of a scope.
fn listeners(definition: &Definition, scope: &[ElementIndex]) -> Vec<ElementIndex> {
    let listens = |index: &ElementIndex| definition.element(*index).behaviour.is_listener();
    scope.iter().copied().filter(listens).collect()
}

/// Marks the events that create instances from behind a gateway.
fn instantiating_gateways(definition: &mut Definition, top: &[ElementIndex]) {
    for &gateway in top {
        let info = definition.element(gateway);
        if info.kind != "eventBasedGateway" || !info.behaviour.instantiates() || !info.incoming.is_empty() {
            continue;
        }
        for flow in info.outgoing.clone() {
            let event = definition.flow(flow).target;
            definition.elements[event.index()].instantiated_by = Some(gateway);
        }
    }
}

/// Without a start event, everything that no flow leads to begins at once.
fn implicit_starts(definition: &Definition, scope: &[ElementIndex]) -> Vec<ElementIndex> {
    let begins = |index: &ElementIndex| {
        let info = definition.element(*index);
        info.incoming.is_empty()
            && info.kind != "boundaryEvent"
            && !info.behaviour.is_listener()
            && !info.is_for_compensation
    };
    scope.iter().copied().filter(begins).collect()
}

fn error(code: &str, message: &str, hint: &str) -> Diagnostic {
    Diagnostic::error(code, message).hint(hint)
}

fn warning(code: &str, message: &str, hint: &str) -> Diagnostic {
    Diagnostic::warning(code, message).hint(hint)
}
