//! Connecting: sequence flows, default flows, attached events.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tidegate_model::document::{Document, Element, NodeId};
use tidegate_model::{Diagnostic, ElementIndex};

use crate::compile::boxed_text;
use crate::compile::reader::{syntax_error, unknown_functions};
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

/// The link event definition of a flow node, written inside it or referred to, if that is what it is.
fn link_of(document: &Document, node: NodeId) -> Option<(NodeId, &Element)> {
    let mut definitions = document.children(node).filter_map(|(child, element)| {
        let reference = element.tag == "eventDefinitionRef";
        let definition = if reference {
            document.by_id(element.text.trim())?
        } else {
            child
        };
        let element = document.get(definition);
        element
            .tag
            .ends_with("EventDefinition")
            .then_some((definition, element))
    });
    let (id, first) = definitions.next()?;
    (first.tag == "linkEventDefinition" && definitions.next().is_none()).then_some((id, first))
}

/// A link event.
struct Link<'d> {
    position: usize,
    element: &'d Element,
    definition: NodeId,
    link: &'d Element,
    name: &'d str,
    scope: Option<ElementIndex>,
}

impl<'d> Link<'d> {
    /// The ids that a child of the definition refers to: of a link event definition, or of its event.
    fn references<'a>(&'a self, document: &'d Document, tag: &'a str) -> impl Iterator<Item = &'d str> + 'a {
        let children = self.link.children.iter().map(|child| document.get(*child));
        let children = children.filter(move |child| child.tag == tag);
        children.map(|child| {
            let text = child.text.trim();
            text.rsplit_once(':').map_or(text, |(_, local)| local)
        })
    }

    /// The ids that others may mean it by.
    fn ids(&self) -> impl Iterator<Item = &'d str> {
        self.element.id().into_iter().chain(self.link.id())
    }
}

/// The links that catch, by all that can lead to them; each in its scope.
#[derive(Default)]
struct Targets<'d> {
    by_definition: HashMap<(Option<ElementIndex>, NodeId), usize>,
    by_id: HashMap<(Option<ElementIndex>, &'d str), usize>,
    by_source: HashMap<(Option<ElementIndex>, &'d str), usize>,
    by_name: HashMap<(Option<ElementIndex>, &'d str), usize>,
}

impl<'d> Targets<'d> {
    /// Where a throwing link leads, and whether more than its name says so.
    fn of(&self, document: &'d Document, link: &Link<'d>) -> Option<(usize, bool)> {
        let scope = link.scope;
        let mut wanted = link.references(document, "target");
        let mut own = link.ids();
        let exact = wanted
            .find_map(|id| self.by_id.get(&(scope, id)))
            .or_else(|| self.by_definition.get(&(scope, link.definition)))
            .or_else(|| own.find_map(|id| self.by_source.get(&(scope, id))));
        let named = || {
            self.by_name
                .get(&(scope, link.name))
                .map(|target| (*target, false))
        };
        exact.map(|target| (*target, true)).or_else(named)
    }
}

/// Makes a flow from each link that throws to the one that catches it, in the same scope: the one that it names as its
/// target, that refers to the same definition, that names it as a source, or that has its name.
fn links(
    document: &Document,
    nodes: &[NodeId],
    definition: &mut Definition,
    diagnostics: &mut Vec<Diagnostic>,
) {
    let links = nodes.iter().enumerate().filter_map(|(position, node)| {
        let element = document.get(*node);
        let (id, link) = link_of(document, *node)?;
        let name = link.name().filter(|name| !name.trim().is_empty());
        Some(Link {
            position,
            element,
            definition: id,
            link,
            name: name.or(element.name()).unwrap_or_default(),
            scope: definition.elements[position].parent,
        })
    });
    let links: Vec<Link<'_>> = links.collect();
    let catching = links
        .iter()
        .filter(|link| link.element.tag == "intermediateCatchEvent");
    let catching: Vec<&Link<'_>> = catching.collect();
    let mut targets = Targets::default();
    for link in &catching {
        let (scope, position) = (link.scope, link.position);
        targets
            .by_definition
            .entry((scope, link.definition))
            .or_insert(position);
        targets.by_name.entry((scope, link.name)).or_insert(position);
        for id in link.ids() {
            targets.by_id.insert((scope, id), position);
        }
        for id in link.references(document, "source") {
            targets.by_source.insert((scope, id), position);
        }
    }
    let mut reached = HashSet::new();
    let mut missing = Vec::new();
    for link in links
        .iter()
        .filter(|link| link.element.tag == "intermediateThrowEvent")
    {
        let Some((target, is_exact)) = targets.of(document, link) else {
            missing.push(
                Diagnostic::error(
                    "link-without-target",
                    format!("no link of this scope catches `{}`", link.name),
                )
                .hint("add a catching link event of the same name")
                .at(link.element.position)
                .element(link.element.id()),
            );
            continue;
        };
        if is_exact {
            reached.insert(target);
        }
        let index = FlowIndex(definition.flows.len() as u32);
        definition.elements[link.position].outgoing.push(index);
        definition.elements[target].incoming.push(index);
        definition.flows.push(Flow {
            id: link.name.into(),
            source: ElementIndex(link.position as u32),
            target: ElementIndex(target as u32),
            condition: None,
        });
    }
    for link in catching {
        let first = targets.by_name.get(&(link.scope, link.name));
        if first != Some(&link.position) && !reached.contains(&link.position) {
            diagnostics.push(
                Diagnostic::error(
                    "duplicate-link",
                    format!("there is more than one catching link `{}`", link.name),
                )
                .hint("give each link its own name")
                .at(link.element.position)
                .element(link.element.id()),
            );
        }
    }
    diagnostics.append(&mut missing);
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
    let read = boxed_text::read(text, language)
        .map_err(report)
        .or_else(|()| Computed::read("false", None))
        .ok()?;
    let told = unknown_functions(&read, condition.position);
    diagnostics.extend(told.map(|warning| warning.element(document.get(flow).id())));
    Some(read)
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
