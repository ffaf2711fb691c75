//! One process: collect, read each element, connect, check.

use std::sync::{Arc, OnceLock};

use tidegate_model::document::{Document, Element, Namespace, NodeId};
use tidegate_model::{Diagnostic, ElementIndex};

use crate::compile::collect::{FlowNode, collect};
use crate::compile::reader::Part;
use crate::compile::structure::Sound;
use crate::compile::{CompileOptions, Reader, VENDORS, compensation, graph, structure, unread};
use crate::definition::{Definition, ElementInfo};
use crate::element::{Class, Correlations, Row, Shape, Trigger, WhenInterrupted};
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
    let before = diagnostics.len();
    let found = collect(document, process, diagnostics);
    let mut sound = Sound {
        elements: true,
        flows: true,
        kinds: diagnostics.len() == before,
    };
    let nodes: Vec<NodeId> = found.nodes.iter().map(|node| node.node).collect();
    let mut elements = Vec::with_capacity(found.nodes.len());
    let mut parts = Vec::new();
    for (position, node) in found.nodes.iter().enumerate() {
        let before = diagnostics.len();
        let Some((info, of_event)) = read(document, node, options, correlations, diagnostics) else {
            debug_assert!(diagnostics[before..].iter().any(Diagnostic::is_error));
            // The graph is checked all the same, so that everything that is wrong is said at once.
            sound.elements = false;
            elements.push(refused(document, node));
            continue;
        };
        parts.extend(of_event.into_iter().map(|part| (position, part)));
        elements.push(info);
    }
    let element = document.get(process);
    let settings = super::settings::read(element, diagnostics);
    unread::tell_of_process(element, settings.retention_ms.is_some(), diagnostics);
    let mut definition = Definition {
        process_id: element.id().unwrap_or_default().into(),
        name: element.name().map(Arc::from),
        version_tag: version_tag(element),
        settings,
        elements,
        flows: Vec::new(),
        starts: Vec::new(),
        correlations: correlations.messages(document),
        limits: options.limits,
        listeners: Vec::new(),
        late_joins: 0,
        has_complex_gateways: false,
        has_data_joins: false,
        has_conditions: false,
    };
    sound.flows = graph::connect(document, &nodes, &found.flows, &mut definition, diagnostics);
    // A token may take every flow once: that is a large model and not one without an end.
    definition.limits.steps = definition.limits.steps.max(definition.flows.len());
    compensation::connect(
        document,
        &nodes,
        &found.associations,
        &mut definition,
        diagnostics,
    );
    structure::check(document, process, &nodes, sound, &mut definition, diagnostics);
    if !sound.elements {
        return None;
    }
    let late = |element: &&ElementInfo| element.behaviour.shape() == Shape::Late;
    definition.late_joins = definition.elements.iter().filter(late).count();
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

/// What stands in for an element that was refused.
fn refused(document: &Document, node: &FlowNode) -> ElementInfo {
    let element = document.get(node.node);
    let is_listener = element.attribute("triggeredByEvent").map(str::trim) == Some("true");
    let behaviour = crate::element::stand_in(is_listener);
    let mut info = info(element, node.row, node.parent, behaviour);
    info.is_for_compensation = is_for_compensation(element, node.row);
    info
}

fn is_for_compensation(element: &Element, row: &Row) -> bool {
    row.class == Class::Activity && element.attribute("isForCompensation").map(str::trim) == Some("true")
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
    let mut when_interrupted = WhenInterrupted::default();
    let mut start_quantity = 1;
    let mut completion_quantity = 1;
    if node.row.class == Class::Activity {
        repetition = crate::element::read_repetition(&mut reader);
        declared = reader.declared();
        when_interrupted = crate::element::read_interrupted(&mut reader);
        start_quantity = quantity(&mut reader, "startQuantity");
        completion_quantity = quantity(&mut reader, "completionQuantity");
    }
    unread::tell(&mut reader);
    let mapping = mapping::read(&mut reader);
    let behaviour = (node.row.read)(&mut reader)?;
    if when_interrupted != WhenInterrupted::Rerun && behaviour.job().is_none() {
        reader.warn(
            "interrupted-without-work",
            "tidegate:interrupted has no effect here: the activity has no work of its own that could be interrupted",
            "remove it, or set it at the activity whose work it is about",
        );
    }
    if behaviour.job().is_none() {
        crate::element::warn_of_retries(&mut reader);
    }
    let parts = std::mem::take(&mut reader.parts);
    let mut info = info(element, node.row, node.parent, behaviour);
    info.mapping = mapping;
    info.start_quantity = start_quantity;
    info.completion_quantity = completion_quantity;
    info.repetition = repetition;
    info.declared = declared;
    let wanted = |name: &str| {
        let vendors = VENDORS.iter();
        let mut given = vendors.filter_map(|vendor| element.attribute_in(vendor, name));
        given.any(|value| value.trim() == "true")
    };
    // `async` is what Activiti and the engines before it call the first of the two.
    info.commit_before = wanted("asyncBefore") || wanted("async");
    info.commit_after = wanted("asyncAfter");
    info.when_interrupted = when_interrupted;
    info.is_for_compensation = is_for_compensation(element, node.row);
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
        when_interrupted: WhenInterrupted::default(),
        is_for_compensation: false,
        commit_before: false,
        commit_after: false,
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
