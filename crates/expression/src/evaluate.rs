//! The evaluator: walks a tree with limits. FEEL turns errors into null; limits, and the errors of the unified
//! language, end the evaluation.

mod arithmetic;
mod call;
mod filter;
mod iterate;
mod path;

use std::sync::Arc;

use crate::compare::{holds, passes};
use crate::error::Failure;
use crate::expression::Code;
use crate::meter::{Meter, shallow};
use crate::tree::{Comparison, Node, NodeId, Test};
use crate::types::Type;
use crate::unified;
use crate::value::{Range, Value};
use crate::{Language, Scope, functions};

pub(crate) use arithmetic::{add, multiply, negate, subtract};
pub use call::{Callable, Function};

/// The result of a part of an evaluation.
pub(crate) type Outcome<T = Value> = Result<T, Box<Failure>>;

/// What is in sight at a place, innermost last.
#[derive(Clone, Debug)]
pub(crate) enum Frame {
    /// One name.
    Binding(Arc<str>, Value),
    /// The item of a filter, whose entries are names too.
    Item(Value),
}

/// One evaluation under way.
pub(crate) struct Machine<'s> {
    pub(crate) scope: &'s dyn Scope,
    pub(crate) meter: &'s mut Meter,
    frames: Vec<Frame>,
}

impl<'s> Machine<'s> {
    pub(crate) fn new(scope: &'s dyn Scope, meter: &'s mut Meter) -> Self {
        Machine {
            scope,
            meter,
            frames: Vec::new(),
        }
    }

    pub(crate) fn bind(&mut self, name: &Arc<str>, value: Value) {
        self.frames.push(Frame::Binding(name.clone(), value));
    }

    pub(crate) fn evaluate(&mut self, code: &Arc<Code>, id: NodeId) -> Outcome {
        let (node, offset) = code.tree.node(id);
        self.step(1).map_err(|failure| at(failure, *offset))?;
        if let Node::Literal(value) = node {
            return Ok(value.clone());
        }
        let result = match self.meter.descend(1) {
            Ok(()) => self.node(code, node),
            Err(failure) => Err(failure),
        };
        self.meter.ascend(1);
        result.map_err(|failure| at(failure, *offset))
    }

    /// One method a kind: this frame stands on the stack once a level, so it must stay small.
    fn node(&mut self, code: &Arc<Code>, node: &Node) -> Outcome {
        match node {
            Node::Literal(value) => Ok(value.clone()),
            Node::Name { name, required } => self.name(name, *required),
            Node::Compare {
                comparison,
                left,
                right,
            } => self.compare(code, *comparison, *left, *right),
            Node::All(operands) => self.logic(code, operands, false),
            Node::Any(operands) => self.logic(code, operands, true),
            Node::Chain { first, links } => self.chain(code, *first, links),
            Node::Negate(operand) => self.negative(code, *operand),
            Node::Not(operand) => self.not(code, *operand),
            Node::Between { value, low, high } => self.between(code, *value, *low, *high),
            Node::In { value, tests } => self.is_in(code, *value, tests),
            Node::Tests { tests, negated } => self.unary_tests(code, tests, *negated),
            Node::InstanceOf { value, kind } => self.instance_of(code, *value, kind),
            Node::If {
                condition,
                then,
                otherwise,
            } => self.conditional(code, *condition, *then, *otherwise),
            Node::For {
                iterators,
                body,
                partial,
            } => self.for_loop(code, iterators, *body, *partial),
            Node::Some { iterators, body } => self.quantified(code, iterators, *body, true),
            Node::Every { iterators, body } => self.quantified(code, iterators, *body, false),
            Node::List(items) => self.list_literal(code, items),
            Node::Context(entries) => self.context_literal(code, entries),
            Node::Range {
                start,
                end,
                start_included,
                end_included,
            } => self.range_literal(code, (*start, *start_included), (*end, *end_included)),
            Node::UnaryRange { comparison, bound } => self.unary_range(code, *comparison, *bound),
            Node::Function {
                parameters,
                body,
                free,
            } => self.closure(code, parameters, *body, free),
            Node::Path { base, name } => self.member(code, *base, name),
            Node::Filter { base, filter } => self.filter(code, *base, *filter),
            Node::Call {
                callee,
                arguments,
                names,
            } => self.call_node(code, *callee, arguments, names.as_deref()),
            Node::Index { base, index } => self.index(code, *base, *index),
            Node::Method {
                base,
                name,
                arguments,
            } => self.method(code, *base, name, arguments),
            Node::Empty(operand) => self.empty(code, *operand),
            Node::Join(parts) => self.join(code, parts),
        }
    }

    // Limits.

    /// Counts steps; built-in functions count one for each item they touch.
    pub(crate) fn step(&mut self, count: u64) -> Outcome<()> {
        self.meter.count(count)
    }

    /// Asks for room for one value of so many bytes, before it is built or while it grows.
    pub(crate) fn room(&self, bytes: usize) -> Outcome<()> {
        self.meter.room(bytes)
    }

    fn charge(&mut self, bytes: usize) -> Outcome<()> {
        self.meter.charge(bytes)
    }

    /// Asks for room for a list of so many items.
    pub(crate) fn room_for_items(&self, count: usize) -> Outcome<()> {
        self.room(count.saturating_mul(size_of::<Value>()))
    }

    pub(crate) fn string(&mut self, text: String) -> Outcome {
        self.charge(text.len())?;
        Ok(Value::string(text))
    }

    pub(crate) fn list(&mut self, items: Vec<Value>) -> Outcome {
        self.meter.build_list(items)
    }

    pub(crate) fn context(&mut self, entries: Vec<(Arc<str>, Value)>) -> Outcome {
        self.meter.build_context(entries)
    }

    pub(crate) fn range(&mut self, range: Range) -> Outcome {
        shallow(Value::Range(Arc::new(range)))
    }

    // Names.

    fn local(&self, name: &str) -> Option<Value> {
        self.frames.iter().rev().find_map(|frame| match frame {
            Frame::Binding(bound, value) => (&**bound == name).then(|| value.clone()),
            Frame::Item(item) => {
                let entry = item.as_context().and_then(|context| context.get(name)).cloned();
                entry.or_else(|| (name == "item").then(|| item.clone()))
            }
        })
    }

    fn name(&mut self, name: &Arc<str>, required: bool) -> Outcome {
        if !self.frames.is_empty() {
            self.step(self.frames.len() as u64 / 16)?;
            if let Some(value) = self.local(name) {
                return Ok(value);
            }
        }
        if let Some(value) = self.scope.lookup(name) {
            return Ok(value);
        }
        if required {
            return Err(unified::unknown_variable(self.scope, name));
        }
        Ok(functions::find(name).map_or(Value::Null, |built_in| {
            Value::Function(Arc::new(Function::built_in(built_in)))
        }))
    }

    // Logic and comparison.

    /// Three-valued in FEEL: `decisive` ends the search, what is no boolean makes the rest null.
    fn logic(&mut self, code: &Arc<Code>, operands: &[NodeId], decisive: bool) -> Outcome {
        let mut unknown = false;
        for operand in operands {
            let value = self.evaluate(code, *operand)?;
            let truth = match code.language {
                Language::Feel => value.as_boolean(),
                Language::Unified => Some(unified::truth(&value)?),
            };
            match truth {
                Some(truth) if truth == decisive => return Ok(Value::Boolean(decisive)),
                Some(_) => {}
                None => unknown = true,
            }
        }
        Ok(if unknown {
            Value::Null
        } else {
            Value::Boolean(!decisive)
        })
    }

    fn compare(&mut self, code: &Arc<Code>, comparison: Comparison, left: NodeId, right: NodeId) -> Outcome {
        let (left, right) = (self.evaluate(code, left)?, self.evaluate(code, right)?);
        self.weigh(&left)?;
        match code.language {
            Language::Feel => Ok(holds(comparison, &left, &right).into()),
            Language::Unified => unified::compare(comparison, &left, &right).map(Value::Boolean),
        }
    }

    /// Counts steps for work that goes through a whole value.
    pub(crate) fn weigh(&mut self, value: &Value) -> Outcome<()> {
        self.meter.go_through(value)
    }

    fn between(&mut self, code: &Arc<Code>, value: NodeId, low: NodeId, high: NodeId) -> Outcome {
        let value = self.evaluate(code, value)?;
        let (low, high) = (self.evaluate(code, low)?, self.evaluate(code, high)?);
        let above = holds(Comparison::GreaterOrEqual, &value, &low);
        let below = holds(Comparison::LessOrEqual, &value, &high);
        Ok(above.zip(below).map(|(above, below)| above && below).into())
    }

    fn tests(&mut self, code: &Arc<Code>, value: &Value, tests: &[Test]) -> Outcome<Option<bool>> {
        let mut result = Some(false);
        for test in tests {
            let operand = self.evaluate(code, test.operand)?;
            self.weigh(&operand)?;
            let passed = match test.comparison {
                Some(comparison) => holds(comparison, value, &operand),
                None if test.condition => operand.as_boolean(),
                None if operand.is_null() && matches!(code.tree.node(test.operand).0, Node::Range { .. }) => {
                    None
                }
                None => passes(&operand, value),
            };
            match passed {
                Some(true) => return Ok(Some(true)),
                Some(false) => {}
                None => result = None,
            }
        }
        Ok(result)
    }

    fn unary_tests(&mut self, code: &Arc<Code>, tests: &[Test], negated: bool) -> Outcome {
        let input = self.local("?").unwrap_or(Value::Null);
        let passed = self.tests(code, &input, tests)?;
        Ok(passed.map(|passed| passed != negated).into())
    }

    fn unary_range(&mut self, code: &Arc<Code>, comparison: Comparison, bound: NodeId) -> Outcome {
        let bound = self.evaluate(code, bound)?;
        let (start, end, start_included, end_included) = match comparison {
            Comparison::Equal => (bound.clone(), bound, true, true),
            Comparison::Different => {
                let (start, end) = (bound.clone(), bound);
                return self.range(Range {
                    start,
                    end,
                    start_included: false,
                    end_included: false,
                    excluded: true,
                });
            }
            Comparison::Less => (Value::Null, bound, false, false),
            Comparison::LessOrEqual => (Value::Null, bound, false, true),
            Comparison::Greater => (bound, Value::Null, false, false),
            Comparison::GreaterOrEqual => (bound, Value::Null, true, false),
        };
        self.range(Range {
            start,
            end,
            start_included,
            end_included,
            excluded: false,
        })
    }

    fn is_in(&mut self, code: &Arc<Code>, value: NodeId, tests: &[Test]) -> Outcome {
        let value = self.evaluate(code, value)?;
        self.tests(code, &value, tests).map(Value::from)
    }

    fn instance_of(&mut self, code: &Arc<Code>, value: NodeId, kind: &Type) -> Outcome {
        let value = self.evaluate(code, value)?;
        self.weigh(&value)?;
        Ok(kind.takes(&value).into())
    }

    fn not(&mut self, code: &Arc<Code>, operand: NodeId) -> Outcome {
        let value = self.evaluate(code, operand)?;
        Ok(Value::Boolean(!unified::truth(&value)?))
    }

    fn empty(&mut self, code: &Arc<Code>, operand: NodeId) -> Outcome {
        let value = self.evaluate(code, operand)?;
        Ok(unified::is_empty(&value).into())
    }

    fn conditional(
        &mut self,
        code: &Arc<Code>,
        condition: NodeId,
        then: NodeId,
        otherwise: NodeId,
    ) -> Outcome {
        let condition = self.evaluate(code, condition)?;
        let chosen = if truth(code.language, &condition)? {
            then
        } else {
            otherwise
        };
        self.evaluate(code, chosen)
    }

    fn member(&mut self, code: &Arc<Code>, base: NodeId, name: &str) -> Outcome {
        let base = self.evaluate(code, base)?;
        match code.language {
            Language::Feel => self.path(&base, name),
            Language::Unified => unified::property(&base, name),
        }
    }

    fn index(&mut self, code: &Arc<Code>, base: NodeId, index: NodeId) -> Outcome {
        let base = self.evaluate(code, base)?;
        let index = self.evaluate(code, index)?;
        unified::index(&base, &index)
    }

    // Lists, ranges and contexts.

    fn list_literal(&mut self, code: &Arc<Code>, nodes: &[NodeId]) -> Outcome {
        let items = nodes
            .iter()
            .map(|item| self.evaluate(code, *item))
            .collect::<Outcome<Vec<_>>>()?;
        self.list(items)
    }

    /// A range with an end that is null is no range.
    fn range_literal(&mut self, code: &Arc<Code>, start: (NodeId, bool), end: (NodeId, bool)) -> Outcome {
        let (start, start_included) = (self.evaluate(code, start.0)?, start.1);
        let (end, end_included) = (self.evaluate(code, end.0)?, end.1);
        if start.is_null() || end.is_null() {
            return Ok(Value::Null);
        }
        self.range(Range {
            start,
            end,
            start_included,
            end_included,
            excluded: false,
        })
    }

    fn context_literal(&mut self, code: &Arc<Code>, nodes: &[(Arc<str>, NodeId)]) -> Outcome {
        let before = self.frames.len();
        let mut entries: Vec<(Arc<str>, Value)> = Vec::with_capacity(nodes.len());
        for (name, node) in nodes {
            let value = self.evaluate(code, *node)?;
            self.bind(name, value.clone());
            entries.push((name.clone(), value));
        }
        self.frames.truncate(before);
        let count = entries.len();
        let context = self.context(entries)?;
        // An entry that is written twice makes the whole context an error.
        let repeated = context.as_context().is_some_and(|context| context.len() != count);
        Ok(if repeated { Value::Null } else { context })
    }
}

/// A condition: in FEEL only true is true.
fn truth(language: Language, value: &Value) -> Outcome<bool> {
    match language {
        Language::Feel => Ok(value.as_boolean() == Some(true)),
        Language::Unified => unified::truth(value),
    }
}

fn at(mut failure: Box<Failure>, offset: u32) -> Box<Failure> {
    failure.offset.get_or_insert(offset);
    failure
}
