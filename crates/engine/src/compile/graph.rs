//! Connecting: sequence flows, default flows, attached events.

use std::collections::HashMap;
use std::sync::Arc;

use tidegate_model::document::{Document, Element, NodeId};
use tidegate_model::{Diagnostic, ElementIndex};

use crate::compile::boxed_text;
use crate::compile::reader::syntax_error;
use crate::definition::{Definition, Flow, FlowIndex};
use crate::text::Computed;

/// Connects the elements. False if a sequence flow was refused.
pub(super) fn connect(
    document: &Document,
    nodes: &[NodeId],
    flows: &[(NodeId, Option<ElementIndex>)],
    definition: &mut Definition,
    diagnostics: &mut Vec<Diagnostic>,
) -> bool {
    let ids: HashMap<Arc<str>, ElementIndex> = definition
        .elements
        .iter()
        .enumerate()
        .rev()
        .map(|(position, element)| (Arc::clone(&element.id), ElementIndex(position as u32)))
        .collect();
    let mut flow_ids = HashMap::new();
    for (node, scope) in flows {
        let element = document.get(*node);
        if let Some(flow) = read_flow(document, *node, *scope, &ids, definition, diagnostics) {
            let index = FlowIndex(definition.flows.len() as u32);
            if let Some(id) = element.id() {
                flow_ids.insert(id, index);
            }
            definition.elements[flow.source.index()].outgoing.push(index);
            definition.elements[flow.target.index()].incoming.push(index);
            definition.flows.push(flow);
        }
    }
    let is_whole = definition.flows.len() == flows.len();
    links(document, nodes, definition, diagnostics);
    for (position, node) in nodes.iter().enumerate() {
        let element = document.get(*node);
        let index = ElementIndex(position as u32);
        if let Some(default) = element.attribute("default") {
            let flow = flow_ids.get(default).copied();
            match flow.filter(|flow| definition.flow(*flow).source == index) {
                Some(flow) => definition.elements[position].default = Some(flow),
                None => diagnostics.push(
                    Diagnostic::error(
                        "default-flow-not-outgoing",
                        format!("the default flow `{default}` does not leave this element"),
                    )
                    .hint("set it to the id of one of the element's outgoing flows")
                    .at(element.attribute_position("default"))
                    .element(element.id()),
                ),
            }
        }
        if element.tag == "boundaryEvent" {
            attach(element, index, &ids, definition, diagnostics);
        }
    }
    is_whole
}

/// The link event definition of a flow node, if that is what it is.
fn link_of(document: &Document, node: NodeId) -> Option<&Element> {
    let mut definitions = document
        .children(node)
        .filter(|(_, child)| child.tag.ends_with("EventDefinition"));
    let (_, first) = definitions.next()?;
    (first.tag == "linkEventDefinition" && definitions.next().is_none()).then_some(first)
}

/// Makes a flow from each link that throws to the link of its name that catches, in the same scope.
fn links(
    document: &Document,
    nodes: &[NodeId],
    definition: &mut Definition,
    diagnostics: &mut Vec<Diagnostic>,
) {
    let links = nodes.iter().enumerate().filter_map(|(position, node)| {
        let element = document.get(*node);
        let link = link_of(document, *node)?;
        let name = link.name().filter(|name| !name.trim().is_empty());
        Some((position, element, name.or(element.name()).unwrap_or_default()))
    });
    let links: Vec<(usize, &Element, &str)> = links.collect();
    let mut targets: HashMap<(Option<ElementIndex>, &str), usize> = HashMap::new();
    for &(position, element, name) in &links {
        if element.tag == "intermediateCatchEvent"
            && targets
                .insert((definition.elements[position].parent, name), position)
                .is_some()
        {
            diagnostics.push(
                Diagnostic::error(
                    "duplicate-link",
                    format!("there is more than one catching link `{name}`"),
                )
                .hint("give each link its own name")
                .at(element.position)
                .element(element.id()),
            );
        }
    }
    for &(position, element, name) in &links {
        if element.tag != "intermediateThrowEvent" {
            continue;
        }
        let Some(&target) = targets.get(&(definition.elements[position].parent, name)) else {
            diagnostics.push(
                Diagnostic::error(
                    "link-without-target",
                    format!("no link of this scope catches `{name}`"),
                )
                .hint("add a catching link event of the same name")
                .at(element.position)
                .element(element.id()),
            );
            continue;
        };
        let index = FlowIndex(definition.flows.len() as u32);
        definition.elements[position].outgoing.push(index);
        definition.elements[target].incoming.push(index);
        definition.flows.push(Flow {
            id: name.into(),
            source: ElementIndex(position as u32),
            target: ElementIndex(target as u32),
            condition: None,
        });
    }
}

fn read_flow(
    document: &Document,
    node: NodeId,
    scope: Option<ElementIndex>,
    ids: &HashMap<Arc<str>, ElementIndex>,
    definition: &Definition,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<Flow> {
    let element = document.get(node);
    let source = end(element, "sourceRef", ids, diagnostics);
    let target = end(element, "targetRef", ids, diagnostics);
    let condition = read_condition(document, node, diagnostics);
    let (source, target) = (source?, target?);
    let scope_of = |end: ElementIndex| definition.element(end).parent;
    if scope_of(source) != scope_of(target) {
        diagnostics.push(
            Diagnostic::error(
                "flow-crosses-scope",
                "the sequence flow crosses the border of a sub-process",
            )
            .hint("connect it to the sub-process itself, or use an event")
            .at(element.position)
            .element(element.id()),
        );
        return None;
    }
    if scope_of(source) != scope {
        diagnostics.push(
            Diagnostic::warning(
                "flow-misplaced",
                "the sequence flow stands in another scope than its ends",
            )
            .hint("move it beside the elements that it connects")
            .at(element.position)
            .element(element.id()),
        );
    }
    let id = element.id().unwrap_or_default().into();
    Some(Flow {
        id,
        source,
        target,
        condition,
    })
}

fn end(
    flow: &Element,
    name: &str,
    ids: &HashMap<Arc<str>, ElementIndex>,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<ElementIndex> {
    let reference = flow.attribute(name).unwrap_or_default();
    let found = ids.get(reference).copied();
    if found.is_none() {
        let (code, message) = match reference {
            "" => ("missing-reference", format!("the sequence flow has no {name}")),
            _ => (
                "dangling-reference",
                format!("{name} `{reference}` is not a flow node of this process"),
            ),
        };
        diagnostics.push(
            Diagnostic::error(code, message)
                .hint("set it to the id of an element of the same process")
                .at(flow.attribute_position(name))
                .element(flow.id()),
        );
    }
    found
}

/// Reads the condition of a flow. Another one stands in for what cannot be read: the file is refused then.
fn read_condition(document: &Document, flow: NodeId, diagnostics: &mut Vec<Diagnostic>) -> Option<Computed> {
    let (_, condition) = document.child(flow, "conditionExpression")?;
    let text = Some(condition.text.trim()).filter(|text| !text.is_empty())?;
    let of_file = || document.get(document.root()).attribute("expressionLanguage");
    let language = condition.attribute("language").or_else(of_file);
    let report = |error| {
        let diagnostic = syntax_error(text, &error, condition.position);
        diagnostics.push(diagnostic.element(document.get(flow).id()));
    };
    boxed_text::read(text, language)
        .map_err(report)
        .or_else(|()| Computed::read("false", None))
        .ok()
}

fn attach(
    element: &Element,
    boundary: ElementIndex,
    ids: &HashMap<Arc<str>, ElementIndex>,
    definition: &mut Definition,
    diagnostics: &mut Vec<Diagnostic>,
) {
    let reference = element.attribute("attachedToRef").unwrap_or_default();
    let host = ids.get(reference).copied();
    let scope = definition.element(boundary).parent;
    let wrong = match host.map(|host| definition.element(host)) {
        None => Some((
            "dangling-reference",
            format!("it is attached to `{reference}`, which is not there"),
        )),
        Some(host) if !host.is_activity => {
            let message = format!(
                "it is attached to `{reference}`, which is a {} and not an activity",
                host.kind
            );
            Some(("boundary-host-not-activity", message))
        }
        Some(host) if host.parent != scope => Some((
            "flow-crosses-scope",
            format!("it is attached to `{reference}`, which is in another scope"),
        )),
        Some(_) => None,
    };
    if let Some((code, message)) = wrong {
        diagnostics.push(
            Diagnostic::error(code, message)
                .hint("set attachedToRef to the id of an activity beside it")
                .at(element.attribute_position("attachedToRef"))
                .element(element.id()),
        );
    } else if let Some(host) = host {
        definition.elements[host.index()].boundaries.push(boundary);
        definition.elements[boundary.index()].host = Some(host);
    }
}
