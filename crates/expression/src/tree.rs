//! The tree of both languages: nodes in one array that point to each other by number, so that no text, however deep or
//! long, makes dropping it a recursion.

use std::sync::Arc;

use crate::error::SyntaxError;
use crate::limits::MAX_NESTING;
use crate::types::Type;
use crate::value::Value;

/// The number of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodeId(u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    /// Only in the unified language.
    Remainder,
    /// Only in FEEL.
    Power,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    Different,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// One further operand of a chain such as `a + b - c`.
#[derive(Debug)]
pub(crate) struct Link {
    pub operator: Arithmetic,
    pub operand: NodeId,
}

/// One test of `in` and of unary tests: `< 5`, `[1..3]`, `"a"`.
#[derive(Debug)]
pub(crate) struct Test {
    pub comparison: Option<Comparison>,
    pub operand: NodeId,
    /// The operand reads `?`, so it is a condition and not a value to compare with.
    pub condition: bool,
}

/// `x in list` or `x in 1..10` of a loop.
#[derive(Debug)]
pub(crate) struct Iterator {
    pub name: Arc<str>,
    pub domain: NodeId,
    /// The upper end where the domain is written as `a..b`.
    pub to: Option<NodeId>,
}

#[derive(Debug)]
pub(crate) struct Parameter {
    pub name: Arc<str>,
    pub kind: Type,
}

#[derive(Debug)]
pub(crate) enum Node {
    Literal(Value),
    /// A variable. One that is missing is an error if it is `required`, null otherwise.
    Name {
        name: Arc<str>,
        required: bool,
    },
    Negate(NodeId),
    Not(NodeId),
    Chain {
        first: NodeId,
        links: Box<[Link]>,
    },
    All(Box<[NodeId]>),
    Any(Box<[NodeId]>),
    Compare {
        comparison: Comparison,
        left: NodeId,
        right: NodeId,
    },
    Between {
        value: NodeId,
        low: NodeId,
        high: NodeId,
    },
    In {
        value: NodeId,
        tests: Box<[Test]>,
    },
    InstanceOf {
        value: NodeId,
        kind: Type,
    },
    If {
        condition: NodeId,
        then: NodeId,
        otherwise: NodeId,
    },
    For {
        iterators: Box<[Iterator]>,
        body: NodeId,
        partial: bool,
    },
    Some {
        iterators: Box<[Iterator]>,
        body: NodeId,
    },
    Every {
        iterators: Box<[Iterator]>,
        body: NodeId,
    },
    List(Box<[NodeId]>),
    Context(Box<[(Arc<str>, NodeId)]>),
    Range {
        start: NodeId,
        end: NodeId,
        start_included: bool,
        end_included: bool,
    },
    UnaryRange {
        comparison: Comparison,
        bound: NodeId,
    },
    /// `free` are the names that the body reads from the scope.
    Function {
        parameters: Arc<[Parameter]>,
        body: NodeId,
        free: Box<[Arc<str>]>,
    },
    Path {
        base: NodeId,
        name: Arc<str>,
    },
    Filter {
        base: NodeId,
        filter: NodeId,
    },
    Call {
        callee: NodeId,
        arguments: Box<[NodeId]>,
        names: Option<Box<[Arc<str>]>>,
    },
    /// `a[b]` of the unified language: a position from zero, or a property name.
    Index {
        base: NodeId,
        index: NodeId,
    },
    Method {
        base: NodeId,
        name: Arc<str>,
        arguments: Box<[NodeId]>,
    },
    Empty(NodeId),
    /// The parts of a template, joined to a string.
    Join(Box<[NodeId]>),
    /// Unary tests of the value in `?`.
    Tests {
        tests: Box<[Test]>,
        negated: bool,
    },
}

impl Node {
    fn children(&self, visit: &mut dyn FnMut(NodeId)) {
        let iterators = |iterators: &[Iterator], visit: &mut dyn FnMut(NodeId)| {
            for iterator in iterators {
                visit(iterator.domain);
                iterator.to.into_iter().for_each(&mut *visit);
            }
        };
        match self {
            Node::Literal(_) | Node::Name { .. } => {}
            Node::Negate(node) | Node::Not(node) | Node::Empty(node) => visit(*node),
            Node::InstanceOf { value, .. } => visit(*value),
            Node::Path { base, .. } => visit(*base),
            Node::UnaryRange { bound, .. } => visit(*bound),
            Node::Function { body, .. } => visit(*body),
            Node::All(nodes) | Node::Any(nodes) | Node::List(nodes) | Node::Join(nodes) => {
                nodes.iter().copied().for_each(visit)
            }
            Node::Context(entries) => entries.iter().for_each(|(_, node)| visit(*node)),
            Node::Compare {
                left: a, right: b, ..
            }
            | Node::Range { start: a, end: b, .. }
            | Node::Filter { base: a, filter: b }
            | Node::Index { base: a, index: b } => {
                visit(*a);
                visit(*b);
            }
            Node::Between {
                value: a,
                low: b,
                high: c,
            }
            | Node::If {
                condition: a,
                then: b,
                otherwise: c,
            } => {
                visit(*a);
                visit(*b);
                visit(*c);
            }
            Node::Chain { first, links } => {
                visit(*first);
                links.iter().for_each(|link| visit(link.operand));
            }
            Node::In { value, tests } => {
                visit(*value);
                tests.iter().for_each(|test| visit(test.operand));
            }
            Node::Tests { tests, .. } => tests.iter().for_each(|test| visit(test.operand)),
            Node::For {
                iterators: list,
                body,
                ..
            }
            | Node::Some {
                iterators: list,
                body,
            }
            | Node::Every {
                iterators: list,
                body,
            } => {
                iterators(list, visit);
                visit(*body);
            }
            Node::Call {
                callee: base,
                arguments,
                ..
            }
            | Node::Method { base, arguments, .. } => {
                visit(*base);
                arguments.iter().copied().for_each(visit);
            }
        }
    }

    /// How many evaluations stand inside each other at this node alone.
    fn levels(&self) -> u32 {
        match self {
            Node::For { iterators, .. } | Node::Some { iterators, .. } | Node::Every { iterators, .. } => {
                iterators.len() as u32 + 1
            }
            _ => 1,
        }
    }
}

/// A finished tree.
#[derive(Debug)]
pub(crate) struct Tree {
    nodes: Box<[(Node, u32)]>,
    pub root: NodeId,
    /// Names that are read from the outside, without repetition.
    pub free: Box<[Arc<str>]>,
}

impl Tree {
    /// A node and the byte offset at which it stands in the text.
    pub(crate) fn node(&self, id: NodeId) -> &(Node, u32) {
        const NONE: &(Node, u32) = &(Node::Literal(Value::Null), 0);
        self.nodes.get(id.0 as usize).unwrap_or(NONE)
    }

    pub(crate) fn nodes(&self) -> impl std::iter::Iterator<Item = &Node> {
        self.nodes.iter().map(|(node, _)| node)
    }

    /// A tree of one literal.
    pub(crate) fn literal(value: Value) -> Tree {
        Tree {
            nodes: Box::new([(Node::Literal(value), 0)]),
            root: NodeId(0),
            free: Box::default(),
        }
    }
}

/// Collects nodes while a text is parsed and refuses what nests too deep.
#[derive(Default)]
pub(crate) struct Builder {
    nodes: Vec<(Node, u32)>,
    depths: Vec<u32>,
    free: Vec<Arc<str>>,
}

impl Builder {
    pub(crate) fn add(&mut self, text: &str, node: Node, offset: usize) -> Result<NodeId, SyntaxError> {
        let mut depth = 0;
        node.children(&mut |child| {
            depth = depth.max(self.depths.get(child.0 as usize).copied().unwrap_or(0))
        });
        let depth = depth + node.levels();
        if depth > MAX_NESTING {
            return Err(too_deep(text, offset));
        }
        self.nodes.push((node, u32::try_from(offset).unwrap_or(0)));
        self.depths.push(depth);
        Ok(NodeId(self.nodes.len() as u32 - 1))
    }

    pub(crate) fn node(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(id.0 as usize).map(|(node, _)| node)
    }

    pub(crate) fn node_mut(&mut self, id: NodeId) -> Option<&mut Node> {
        self.nodes.get_mut(id.0 as usize).map(|(node, _)| node)
    }

    /// Notes a name that is read from the outside.
    pub(crate) fn free(&mut self, name: &Arc<str>) {
        if !self.free.contains(name) {
            self.free.push(name.clone());
        }
    }

    pub(crate) fn finish(self, root: NodeId) -> Tree {
        Tree {
            nodes: self.nodes.into(),
            root,
            free: self.free.into(),
        }
    }
}

pub(crate) fn too_deep(text: &str, offset: usize) -> SyntaxError {
    let message = format!("the expression nests deeper than {MAX_NESTING} levels");
    SyntaxError::at(
        text,
        offset,
        message,
        "split it, or keep parts of it in variables",
    )
}
