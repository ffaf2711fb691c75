//! Connecting what is compensated with what compensates it.

use std::collections::HashMap;
use std::sync::Arc;

use tidegate_model::document::{Document, NodeId};
use tidegate_model::{Diagnostic, ElementIndex};

use crate::definition::Definition;

pub(super) fn connect(
    document: &Document,
    nodes: &[NodeId],
    associations: &[NodeId],
    definition: &mut Definition,
    diagnostics: &mut Vec<Diagnostic>,
) {
    handlers(document, associations, definition);
    for (position, node) in nodes.iter().enumerate() {
        let info = &definition.elements[position];
        if info.is_for_compensation && !(info.incoming.is_empty() && info.outgoing.is_empty()) {
            let place = document.get(*node).position;
            let found = Diagnostic::error(
                "compensation-handler-in-flow",
                "a sequence flow leads to or from an activity that is for compensation",
            );
            let hint = "remove the flow: only compensation begins it, by an association";
            diagnostics.push(found.hint(hint).at(place).element(Some(&info.id)));
        }
        if !info.behaviour.is_compensation() {
            continue;
        }
        let found = match (info.host, info.parent) {
            (Some(host), _) => {
                let handler = definition.element(host).compensation;
                handler.is_none().then(|| {
                    Diagnostic::error(
                        "compensation-without-handler",
                        "the compensation boundary event leads to no handler",
                    )
                    .hint("draw an association from it to an activity that is for compensation")
                })
            }
            (None, Some(sub_process)) => begin(definition, sub_process),
            (None, None) => None,
        };
        if let Some(found) = found {
            let info = &definition.elements[position];
            let place = document.get(*node).position;
            diagnostics.push(found.at(place).element(Some(&info.id)));
        }
    }
}

/// An association between a compensation boundary event and an activity, in either direction.
fn handlers(document: &Document, associations: &[NodeId], definition: &mut Definition) {
    if associations.is_empty()
        || !definition
            .elements
            .iter()
            .any(|info| info.behaviour.is_compensation())
    {
        return;
    }
    let ids: HashMap<Arc<str>, ElementIndex> = definition
        .elements
        .iter()
        .enumerate()
        .map(|(position, info)| (Arc::clone(&info.id), ElementIndex(position as u32)))
        .collect();
    for association in associations {
        let element = document.get(*association);
        let end = |name: &str| ids.get(element.attribute(name)?).copied();
        let (Some(source), Some(target)) = (end("sourceRef"), end("targetRef")) else {
            continue;
        };
        for (event, handler) in [(source, target), (target, source)] {
            let info = definition.element(event);
            if let Some(host) = info.host.filter(|_| info.behaviour.is_compensation())
                && definition.element(handler).is_activity
                && host != handler
            {
                definition.elements[host.index()].compensation = Some(handler);
                definition.elements[handler.index()].is_for_compensation = true;
            }
        }
    }
}

/// The start event of an event sub-process that compensates the sub-process around it.
fn begin(definition: &mut Definition, sub_process: ElementIndex) -> Option<Diagnostic> {
    definition.elements[sub_process.index()].is_for_compensation = true;
    match definition.element(sub_process).parent {
        Some(around) => {
            definition.elements[around.index()].compensation_sub_process = Some(sub_process);
            None
        }
        None => Some(
            Diagnostic::warning(
                "compensation-never",
                "nothing compensates the process as a whole, so this never begins",
            )
            .hint("move the event sub-process into a sub-process"),
        ),
    }
}
