//! A BPMN file as a neutral document: what stands where, without semantics.
//!
//! The `bpmn` crate makes it from bytes; the engine's elements read themselves from it. Elements of the
//! BPMN namespace form the tree; foreign elements appear only as extensions of the element that holds
//! them. The diagram is left out.

use std::collections::HashMap;

/// A place in the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Position {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

/// The position of an element in [`Document::elements`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

/// The vocabularies that models are written in.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Namespace {
    /// No namespace: the standard's own attributes.
    None,
    /// The BPMN 2.0 model namespace.
    Bpmn,
    /// XML Schema instance (`xsi:type`).
    Xsi,
    /// `zeebe:`
    Zeebe,
    /// `camunda:`
    Camunda,
    /// `operaton:`
    Operaton,
    /// `flowable:`
    Flowable,
    /// `activiti:`
    Activiti,
    /// Anything else, by its URI.
    Other(String),
}

/// One attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attribute {
    /// Its vocabulary; [`Namespace::None`] when unprefixed.
    pub namespace: Namespace,
    /// Local name.
    pub name: String,
    /// Value after entity replacement.
    pub value: String,
    /// Where it stands.
    pub position: Position,
}

/// One element of the BPMN namespace.
#[derive(Debug, Clone)]
pub struct Element {
    /// Local name, for example `serviceTask`.
    pub tag: String,
    /// Its attributes.
    pub attributes: Vec<Attribute>,
    /// Child elements of the BPMN namespace in document order (`extensionElements` excluded).
    pub children: Vec<NodeId>,
    /// The element around this one; none for the root.
    pub parent: Option<NodeId>,
    /// The text directly inside, CDATA included; empty when there is only white space.
    pub text: String,
    /// The elements inside `extensionElements`.
    pub extensions: Vec<Extension>,
    /// Where its start tag begins.
    pub position: Position,
}

/// A foreign element inside `extensionElements`, with what is inside it.
#[derive(Debug, Clone)]
pub struct Extension {
    /// Its vocabulary.
    pub namespace: Namespace,
    /// Local name, for example `taskDefinition`.
    pub tag: String,
    /// Its attributes.
    pub attributes: Vec<Attribute>,
    /// Foreign elements inside it.
    pub children: Vec<Extension>,
    /// The text directly inside.
    pub text: String,
    /// Where its start tag begins.
    pub position: Position,
}

/// A whole file.
#[derive(Debug, Clone)]
pub struct Document {
    /// The name of the resource.
    pub resource: String,
    /// All BPMN elements in document order; the first is `definitions`.
    pub elements: Vec<Element>,
    /// Ids to elements. The first one wins where an id is there twice (which is a diagnostic).
    pub ids: HashMap<String, NodeId>,
}

impl Document {
    /// The `definitions` element.
    pub fn root(&self) -> NodeId {
        NodeId(0)
    }

    /// The element at `id`.
    pub fn get(&self, id: NodeId) -> &Element {
        &self.elements[id.0 as usize]
    }

    /// The element with this XML id. References are plain ids here: prefixes of QName references that
    /// stand for the file's own target namespace were removed.
    pub fn by_id(&self, id: &str) -> Option<NodeId> {
        self.ids.get(id).copied()
    }

    /// The children of `id` with their node ids.
    pub fn children(&self, id: NodeId) -> impl Iterator<Item = (NodeId, &Element)> {
        self.get(id)
            .children
            .iter()
            .map(|&child| (child, self.get(child)))
    }

    /// The first child of `id` with this tag.
    pub fn child(&self, id: NodeId, tag: &str) -> Option<(NodeId, &Element)> {
        self.children(id).find(|(_, element)| element.tag == tag)
    }
}

impl Element {
    /// The XML id.
    pub fn id(&self) -> Option<&str> {
        self.attribute("id")
    }

    /// The `name` attribute.
    pub fn name(&self) -> Option<&str> {
        self.attribute("name")
    }

    /// The value of a standard attribute.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attribute_in(&Namespace::None, name)
    }

    /// The value of an attribute of `namespace`.
    pub fn attribute_in(&self, namespace: &Namespace, name: &str) -> Option<&str> {
        find(&self.attributes, namespace, name).map(|a| a.value.as_str())
    }

    /// Where a standard attribute stands; the element's own place if it is absent.
    pub fn attribute_position(&self, name: &str) -> Position {
        find(&self.attributes, &Namespace::None, name).map_or(self.position, |a| a.position)
    }

    /// The first extension with this vocabulary and tag.
    pub fn extension(&self, namespace: &Namespace, tag: &str) -> Option<&Extension> {
        self.extensions
            .iter()
            .find(|e| e.namespace == *namespace && e.tag == tag)
    }
}

impl Extension {
    /// The value of an unprefixed attribute.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        find(&self.attributes, &Namespace::None, name).map(|a| a.value.as_str())
    }

    /// The children with this tag.
    pub fn children_named<'a>(&'a self, tag: &'a str) -> impl Iterator<Item = &'a Self> {
        self.children.iter().filter(move |child| child.tag == tag)
    }
}

fn find<'a>(attributes: &'a [Attribute], namespace: &Namespace, name: &str) -> Option<&'a Attribute> {
    attributes
        .iter()
        .find(|a| a.name == name && a.namespace == *namespace)
}
