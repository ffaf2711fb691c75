//! One process: collect, read each element, connect, check.

use std::sync::{Arc, OnceLock};

use tidegate_model::document::{Document, Element, Namespace, NodeId};
use tidegate_model::{Diagnostic, ElementIndex};

use crate::compile::collect::{FlowNode, collect};
use crate::compile::reader::Part;
use crate::compile::{CompileOptions, Reader, VENDORS, compensation, graph, structure};
use crate::definition::{Definition, ElementInfo};
use crate::element::{Class, Correlations, Row, Shape, Trigger};
use crate::mapping;

/// More tokens at once than this is a mistake, and would be too much work for one step.
const MAX_QUANTITY: u32 = 1000;

pub(super) fn compile(
    document: &Document,
    process: NodeId,
    options: &CompileOptions,
    correlations: &Correlations,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<Arc<Definition>> {
    let found = collect(document, process, diagnostics);
    let nodes: Vec<NodeId> = found.nodes.iter().map(|node| node.node).collect();
    let before = diagnostics.len();
    let mut elements = Vec::with_capacity(found.nodes.len());
    let mut parts = Vec::new();
    for (position, node) in found.nodes.iter().enumerate() {
        let Some((info, of_event)) = read(document, node, options, correlations, diagnostics) else {
            continue;
        };
        parts.extend(of_event.into_iter().map(|part| (position, part)));
        elements.push(info);
    }
    if elements.len() < nodes.len() {
        // The graph is checked all the same, so that everything that is wrong is said at once.
        return refused(document, &nodes, &found, before, diagnostics);
    }
    let element = document.get(process);
    let mut definition = Definition {
        process_id: element.id().unwrap_or_default().into(),
        name: element.name().map(Arc::from),
        version_tag: version_tag(element),
        elements,
        flows: Vec::new(),
        starts: Vec::new(),
        correlations: correlations.messages(document),
        limits: options.limits,
        listeners: Vec::new(),
        has_late_joins: false,
        has_complex_gateways: false,
        has_data_joins: false,
        has_conditions: false,
    };
    graph::connect(document, &nodes, &found.flows, &mut definition, diagnostics);
    compensation::connect(
        document,
        &nodes,
        &found.associations,
        &mut definition,
        diagnostics,
    );
    structure::check(document, process, &nodes, &mut definition, diagnostics);
    definition.has_late_joins = definition
        .elements
        .iter()
        .any(|element| element.behaviour.shape() == Shape::Late);
    let mut elements = definition.elements.iter();
    definition.has_complex_gateways = elements.any(|element| element.kind == "complexGateway");
    let mut behaviours = definition.elements.iter().map(|element| &element.behaviour);
    definition.has_data_joins = behaviours.any(|behaviour| behaviour.asks_variables());
    for (position, part) in parts {
        add_part(&mut definition, position, part);
    }
    let waits_for_condition =
        |element: &ElementInfo| matches!(element.behaviour.trigger(), Some(Trigger::Condition(_)));
    definition.has_conditions = definition.elements.iter().any(waits_for_condition);
    Some(Arc::new(definition))
}

/// Adds a definition of an event that has several, behind all flow nodes.
fn add_part(definition: &mut Definition, event: usize, part: Part) {
    let index = ElementIndex(definition.elements.len() as u32);
    let Part { id, behaviour } = part;
    let of = &mut definition.elements[event];
    of.parts.push(index);
    let part = ElementInfo {
        id,
        name: None,
        part_of: Some(ElementIndex(event as u32)),
        ..blank(of.kind, of.parent, Box::new(behaviour))
    };
    definition.elements.push(part);
}

/// Checks the graph of a process whose elements could not all be read.
fn refused(
    document: &Document,
    nodes: &[NodeId],
    found: &super::collect::Collected,
    before: usize,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<Arc<Definition>> {
    debug_assert!(diagnostics[before..].iter().any(Diagnostic::is_error));
    let elements = found.nodes.iter().map(|node| {
        let behaviour = crate::element::placeholder();
        info(document.get(node.node), node.row, node.parent, behaviour)
    });
    let mut definition = Definition {
        process_id: "".into(),
        name: None,
        version_tag: None,
        elements: elements.collect(),
        flows: Vec::new(),
        starts: Vec::new(),
        correlations: Vec::new(),
        limits: super::Limits::default(),
        listeners: Vec::new(),
        has_late_joins: false,
        has_complex_gateways: false,
        has_data_joins: false,
        has_conditions: false,
    };
    graph::connect(document, nodes, &found.flows, &mut definition, diagnostics);
    None
}

fn read(
    document: &Document,
    node: &FlowNode,
    options: &CompileOptions,
    correlations: &Correlations,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<(ElementInfo, Vec<Part>)> {
    let element = document.get(node.node);
    let mut reader = Reader::new(
        document,
        node.node,
        node.parent,
        (options, correlations),
        diagnostics,
    );
    let mut repetition = None;
    let mut declared = Vec::new();
    let mut start_quantity = 1;
    let mut completion_quantity = 1;
    if node.row.class == Class::Activity {
        repetition = crate::element::read_repetition(&mut reader);
        declared = reader.declared();
        start_quantity = quantity(&mut reader, "startQuantity");
        completion_quantity = quantity(&mut reader, "completionQuantity");
    }
    let mapping = mapping::read(&mut reader);
    let behaviour = (node.row.read)(&mut reader)?;
    let parts = std::mem::take(&mut reader.parts);
    let mut info = info(element, node.row, node.parent, behaviour);
    info.mapping = mapping;
    info.start_quantity = start_quantity;
    info.completion_quantity = completion_quantity;
    info.repetition = repetition;
    info.declared = declared;
    info.is_for_compensation = node.row.class == Class::Activity
        && element.attribute("isForCompensation").map(str::trim) == Some("true");
    Some((info, parts))
}

fn info(
    element: &Element,
    row: &'static Row,
    parent: Option<ElementIndex>,
    behaviour: Box<dyn crate::element::Behaviour>,
) -> ElementInfo {
    ElementInfo {
        id: element.id().unwrap_or_default().into(),
        name: element.name().filter(|name| !name.is_empty()).map(Arc::from),
        is_activity: row.class == Class::Activity,
        ..blank(row.tag, parent, behaviour)
    }
}

fn blank(
    kind: &'static str,
    parent: Option<ElementIndex>,
    behaviour: Box<dyn crate::element::Behaviour>,
) -> ElementInfo {
    ElementInfo {
        id: "".into(),
        name: None,
        kind,
        parent,
        behaviour,
        is_activity: false,
        incoming: Vec::new(),
        outgoing: Vec::new(),
        default: None,
        boundaries: Vec::new(),
        host: None,
        starts: Vec::new(),
        mapping: None,
        start_quantity: 1,
        completion_quantity: 1,
        listeners: Vec::new(),
        parts: Vec::new(),
        part_of: None,
        instantiated_by: None,
        reach: OnceLock::new(),
        declared: Vec::new(),
        repetition: None,
        is_for_compensation: false,
        compensation: None,
        compensation_sub_process: None,
    }
}

fn quantity(reader: &mut Reader<'_>, name: &str) -> u32 {
    let Some(text) = reader.element.attribute(name) else {
        return 1;
    };
    match text.trim().parse() {
        Ok(quantity) if (1..=MAX_QUANTITY).contains(&quantity) => quantity,
        _ => {
            let position = reader.element.attribute_position(name);
            let message = format!("{name} `{text}` is not a number from 1 to {MAX_QUANTITY}");
            let _: Option<()> =
                reader.refuse_at(position, "quantity-invalid", &message, "correct or remove it");
            1
        }
    }
}

fn version_tag(process: &Element) -> Option<Arc<str>> {
    let zeebe = process
        .extension(&Namespace::Zeebe, "versionTag")
        .and_then(|tag| tag.attribute("value"));
    let vendor = || {
        VENDORS
            .iter()
            .find_map(|vendor| process.attribute_in(vendor, "versionTag"))
    };
    zeebe.or_else(vendor).map(Arc::from)
}
