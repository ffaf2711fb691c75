//! The XML tree to the document: BPMN elements, their extensions, ids, and the references to resolve.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use roxmltree::Node;
use tidegate_model::diagnostic::Diagnostic;
use tidegate_model::document::{Attribute, Document, Element, Extension, Namespace, NodeId, Position};

use crate::namespace;
use crate::position::Lines;
use crate::report::{Report, shorten};
use crate::rule::{self, Place, Rule};

/// Bytes of an id. Ids are repeated in every event of an instance.
const ID_BYTES: usize = 1_000;

/// A document whose references are not yet resolved.
pub struct Built<'x> {
    pub document: Document,
    pub references: Vec<Reference<'x>>,
    pub target_namespace: Option<&'x str>,
    /// The namespaces that `import` elements name.
    pub imports: HashSet<&'x str>,
}

/// A reference as it is written.
pub struct Reference<'x> {
    pub holder: NodeId,
    pub rule: &'static Rule,
    /// The position in the holder's attributes; none if the reference is the holder's text.
    pub attribute: Option<usize>,
    /// What the prefix stands for, if the value has a declared one.
    pub namespace: Option<&'x str>,
}

struct Builder<'x, 'r> {
    built: Built<'x>,
    lines: &'r Lines<'r>,
    report: &'r mut Report,
}

/// Builds the document of a parsed file whose root is `definitions`.
pub fn build<'x>(
    resource: &str,
    xml: &'x roxmltree::Document<'x>,
    lines: &Lines<'_>,
    report: &mut Report,
) -> Built<'x> {
    let root = xml.root_element();
    let mut builder = Builder {
        built: Built {
            document: Document {
                resource: resource.to_owned(),
                elements: Vec::new(),
                ids: HashMap::new(),
            },
            references: Vec::new(),
            target_namespace: root.attribute("targetNamespace").map(str::trim),
            imports: HashSet::new(),
        },
        lines,
        report,
    };
    // An own stack, so that depth costs memory and no call frames. Children are pushed backwards and
    // come off in document order.
    let mut waiting = vec![(root, None)];
    while let Some((node, parent)) = waiting.pop() {
        let id = builder.element(node, parent);
        let start = waiting.len();
        for child in node.children().filter(Node::is_element) {
            match namespace::of(child.tag_name().namespace()) {
                Namespace::Bpmn if child.tag_name().name() == "extensionElements" => {
                    builder.extensions(id, child);
                }
                Namespace::Bpmn => waiting.push((child, Some(id))),
                Namespace::None => builder.without_namespace(id, child),
                _ => {}
            }
        }
        waiting[start..].reverse();
    }
    builder.built
}

impl<'x> Builder<'x, '_> {
    fn element(&mut self, node: Node<'x, 'x>, parent: Option<NodeId>) -> NodeId {
        let id = NodeId(self.built.document.elements.len() as u32);
        let tag = node.tag_name().name();
        let holder = parent.map_or("", |parent| self.built.document.get(parent).tag.as_str());
        let mut text = direct_text(node);
        if let Some(rule) = rule::find(Place::Text, tag, holder) {
            text = text.trim().to_owned();
            self.built.references.push(Reference {
                holder: id,
                rule,
                attribute: None,
                namespace: prefix_namespace(node, &text),
            });
        }
        if tag == "import" {
            self.built.imports.extend(node.attribute("namespace"));
        }
        let mut attributes = attributes(node, self.lines);
        for (index, attribute) in attributes.iter_mut().enumerate() {
            match attribute.namespace {
                Namespace::None if attribute.name == "id" => trim(&mut attribute.value),
                Namespace::None => {
                    if let Some(rule) = rule::find(Place::Attribute, &attribute.name, tag) {
                        trim(&mut attribute.value);
                        self.built.references.push(Reference {
                            holder: id,
                            rule,
                            attribute: Some(index),
                            namespace: prefix_namespace(node, &attribute.value),
                        });
                    }
                }
                Namespace::Xsi if attribute.name == "type" => local_type(node, &mut attribute.value),
                _ => {}
            }
        }
        let document = &mut self.built.document;
        if let Some(parent) = parent {
            document.elements[parent.0 as usize].children.push(id);
        }
        document.elements.push(Element {
            tag: tag.to_owned(),
            attributes,
            children: Vec::new(),
            parent,
            text,
            extensions: Vec::new(),
            position: self.lines.position(node.range().start),
        });
        self.identify(id);
        id
    }

    fn identify(&mut self, id: NodeId) {
        let document = &mut self.built.document;
        let element = &document.elements[id.0 as usize];
        let place = element.attribute_position("id");
        let Some(name) = element.id().filter(|id| !id.is_empty()) else {
            if rule::needs_id(&element.tag) {
                let tag = &element.tag;
                self.report.push(
                    Diagnostic::error("missing-id", format!("the {tag} has no id"))
                        .hint(format!(
                            "give it one that is unique in the file: <{tag} id=\"...\">"
                        ))
                        .element(nearest_id(document, id))
                        .at(element.position),
                );
            }
            return;
        };
        if let Some(diagnostic) = unfit(name) {
            self.report
                .push(diagnostic.element(Some(shorten(name))).at(place));
        }
        match document.ids.entry(name.to_owned()) {
            Entry::Vacant(entry) => {
                entry.insert(id);
            }
            Entry::Occupied(entry) => {
                let first = &document.elements[entry.get().0 as usize];
                let at = first.attribute_position("id");
                let message = format!(
                    "the id {} of this {} is also that of the {} at line {}, column {}",
                    shorten(name),
                    shorten(&element.tag),
                    shorten(&first.tag),
                    at.line,
                    at.column
                );
                self.report.push(
                    Diagnostic::error("duplicate-id", message)
                        .hint("give one of them another id, and correct the references to it")
                        .element(Some(shorten(name)))
                        .at(place),
                );
            }
        }
    }

    fn extensions(&mut self, holder: NodeId, node: Node<'x, 'x>) {
        let lines = self.lines;
        let found = node
            .children()
            .filter(Node::is_element)
            .map(|child| extension(child, lines));
        self.built.document.elements[holder.0 as usize]
            .extensions
            .extend(found);
    }

    fn without_namespace(&mut self, holder: NodeId, node: Node<'_, '_>) {
        let name = shorten(node.tag_name().name());
        self.report.push(
            Diagnostic::warning(
                "no-namespace",
                format!("the element {name} is in no namespace and was skipped with all that is inside it"),
            )
            .hint("give it the prefix of the BPMN namespace that the elements around it have")
            .element(nearest_id(&self.built.document, holder))
            .at(self.lines.position(node.range().start)),
        );
    }
}

/// What is wrong with an id by itself.
fn unfit(id: &str) -> Option<Diagnostic> {
    let start = shorten(id);
    if id.len() > ID_BYTES {
        let message = format!(
            "the id {start}... has {} bytes; the limit is {ID_BYTES}",
            id.len()
        );
        return Some(Diagnostic::error("invalid-id", message).hint("give it a short one"));
    }
    (!name_like(id)).then(|| {
        Diagnostic::error("invalid-id", format!("the id {start:?} is no XML name"))
            .hint("begin ids with a letter or '_' and use letters, digits, '_', '-' and '.'")
    })
}

fn attributes(node: Node<'_, '_>, lines: &Lines<'_>) -> Vec<Attribute> {
    node.attributes()
        .map(|attribute| Attribute {
            namespace: namespace::of(attribute.namespace()),
            name: attribute.name().to_owned(),
            value: attribute.value().to_owned(),
            position: lines.position(attribute.range().start),
        })
        .collect()
}

fn direct_text(node: Node<'_, '_>) -> String {
    let text: String = node
        .children()
        .filter(Node::is_text)
        .filter_map(|child| child.text())
        .collect();
    if text.trim().is_empty() {
        String::new()
    } else {
        text
    }
}

fn extension<'x>(node: Node<'x, 'x>, lines: &Lines<'_>) -> Extension {
    let open = |node: Node<'x, 'x>| {
        let extension = Extension {
            namespace: namespace::of(node.tag_name().namespace()),
            tag: node.tag_name().name().to_owned(),
            attributes: attributes(node, lines),
            children: Vec::new(),
            text: direct_text(node),
            position: lines.position(node.range().start),
        };
        (extension, node.children())
    };
    let (mut current, mut children) = open(node);
    let mut around = Vec::new();
    loop {
        match children.next() {
            Some(child) if child.is_element() => {
                let inner = open(child);
                around.push((current, children));
                (current, children) = inner;
            }
            Some(_) => {}
            None => match around.pop() {
                None => return current,
                Some((mut outer, rest)) => {
                    outer.children.push(current);
                    (current, children) = (outer, rest);
                }
            },
        }
    }
}

fn prefix_namespace<'x>(node: Node<'x, 'x>, value: &str) -> Option<&'x str> {
    let (prefix, _) = split(value)?;
    node.lookup_namespace_uri(Some(prefix))
}

/// A prefixed name in its two parts. An expression that happens to hold a colon is none.
pub fn split(value: &str) -> Option<(&str, &str)> {
    let (prefix, local) = value.split_once(':')?;
    (name_like(prefix) && name_like(local)).then_some((prefix, local))
}

fn name_like(name: &str) -> bool {
    let mut characters = name.chars();
    let first = characters.next();
    first.is_some_and(|c| c.is_alphabetic() || c == '_' || !c.is_ascii())
        && characters.all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.') || !c.is_ascii())
}

/// `xsi:type="bpmn:tFormalExpression"` is read as `tFormalExpression`, whatever the file's prefix is.
fn local_type(node: Node<'_, '_>, value: &mut String) {
    trim(value);
    if let Some((prefix, local)) = split(value)
        && node.lookup_namespace_uri(Some(prefix)) == Some(namespace::BPMN_URI)
    {
        *value = local.to_owned();
    }
}

fn trim(value: &mut String) {
    let trimmed = value.trim();
    if trimmed.len() != value.len() {
        *value = trimmed.to_owned();
    }
}

/// The id of an element, or of the nearest one around it that has one, for messages.
pub fn nearest_id(document: &Document, mut id: NodeId) -> Option<&str> {
    loop {
        let element = document.get(id);
        match (element.id().filter(|id| !id.is_empty()), element.parent) {
            (Some(id), _) => return Some(shorten(id)),
            (None, Some(parent)) => id = parent,
            (None, None) => return None,
        }
    }
}

/// Where a reference stands.
pub fn place(document: &Document, reference: &Reference<'_>) -> Position {
    let holder = document.get(reference.holder);
    reference
        .attribute
        .map_or(holder.position, |index| holder.attributes[index].position)
}
