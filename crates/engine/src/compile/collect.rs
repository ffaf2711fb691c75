//! The flow nodes and sequence flows of a process, in document order, with the scope each stands in.

use tidegate_model::document::{Document, NodeId};
use tidegate_model::{Diagnostic, ElementIndex};

use crate::element::{ROWS, Row};

/// Elements that hold flow nodes.
const CONTAINERS: &[&str] = &["subProcess", "transaction", "adHocSubProcess"];

/// Elements that say something to people or tools and nothing to the execution.
const PASSIVE: &[&str] = &[
    "adHocOrdering",
    "artifact",
    "auditing",
    "category",
    "completionCondition",
    "correlationSubscription",
    "dataInputAssociation",
    "dataObject",
    "dataObjectReference",
    "dataOutputAssociation",
    "dataStoreReference",
    "documentation",
    "group",
    "humanPerformer",
    "incoming",
    "ioBinding",
    "ioSpecification",
    "laneSet",
    "monitoring",
    "multiInstanceLoopCharacteristics",
    "outgoing",
    "performer",
    "potentialOwner",
    "property",
    "resourceRole",
    "standardLoopCharacteristics",
    "supportedInterfaceRef",
    "supports",
    "textAnnotation",
    "text",
    "extensionElements",
    "conversationAssociation",
];

/// What a process is made of.
#[derive(Default)]
pub(super) struct Collected {
    pub(super) nodes: Vec<FlowNode>,
    pub(super) flows: Vec<(NodeId, Option<ElementIndex>)>,
    pub(super) associations: Vec<NodeId>,
}

/// One flow node that is not read yet.
pub(super) struct FlowNode {
    pub(super) node: NodeId,
    pub(super) row: &'static Row,
    pub(super) parent: Option<ElementIndex>,
}

pub(super) fn collect(document: &Document, process: NodeId, diagnostics: &mut Vec<Diagnostic>) -> Collected {
    let mut found = Collected::default();
    let mut open: Vec<(NodeId, Option<ElementIndex>)> = Vec::new();
    let push_children = |open: &mut Vec<_>, node: NodeId, scope| {
        open.extend(
            document
                .get(node)
                .children
                .iter()
                .rev()
                .map(|child| (*child, scope)),
        );
    };
    push_children(&mut open, process, None);
    while let Some((node, scope)) = open.pop() {
        let element = document.get(node);
        let tag = element.tag.as_str();
        if let Some(row) = ROWS.iter().find(|row| row.tag == tag) {
            let index = ElementIndex(found.nodes.len() as u32);
            found.nodes.push(FlowNode {
                node,
                row,
                parent: scope,
            });
            if CONTAINERS.contains(&tag) {
                push_children(&mut open, node, Some(index));
            }
        } else if tag == "sequenceFlow" {
            found.flows.push((node, scope));
        } else if tag == "association" {
            found.associations.push(node);
        } else if !PASSIVE.contains(&tag) {
            diagnostics.push(
                Diagnostic::error(
                    "element-not-supported",
                    format!("a `{tag}` element is not executed yet"),
                )
                .hint("remove it, or model it with elements that are supported")
                .at(element.position)
                .element(element.id()),
            );
        }
    }
    found
}
