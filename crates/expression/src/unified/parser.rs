//! Expressions by precedence: `? :`, `||`, `&&`, `== !=`, `< <= > >=`, `+ -`, `* / %`, unary, then members.

use std::sync::Arc;

use crate::decimal::Decimal;
use crate::error::SyntaxError;
use crate::lexer::{Kind, Token};
use crate::limits::MAX_NESTING;
use crate::tree::{Arithmetic, Builder, Comparison, Link, Node, NodeId, too_deep};
use crate::value::Value;

const TERNARY: u8 = 1;
const OR: u8 = 2;
const AND: u8 = 3;
const EQUALITY: u8 = 4;
const RELATION: u8 = 5;
const ADDITION: u8 = 6;
const MULTIPLICATION: u8 = 7;
const OPERAND: u8 = 8;

type Parsed<T = NodeId> = Result<T, SyntaxError>;

pub(super) struct Parser<'t, 'b> {
    text: &'t str,
    tokens: Vec<Token>,
    at: usize,
    builder: &'b mut Builder,
    nesting: u32,
}

/// What an infix operator does.
#[derive(Clone, Copy)]
enum Infix {
    Ternary,
    Or,
    And,
    Compare(Comparison),
    Compute(Arithmetic),
}

impl<'t, 'b> Parser<'t, 'b> {
    pub(super) fn new(text: &'t str, tokens: Vec<Token>, builder: &'b mut Builder) -> Self {
        Parser {
            text,
            tokens,
            at: 0,
            builder,
            nesting: 0,
        }
    }

    pub(super) fn whole(mut self) -> Parsed {
        let root = self.expression(0)?;
        if self.kind() == &Kind::End {
            return Ok(root);
        }
        let hint = match self.word() {
            "=" => "the unified language compares with `==`; begin the text with `=` to write FEEL",
            _ => "an operator is missing before it, or it is not closed or opened rightly",
        };
        Err(self.error(format!("`{}` is not expected here", self.word()), hint))
    }

    fn kind(&self) -> &Kind {
        self.tokens.get(self.at).map_or(&Kind::End, |token| &token.kind)
    }

    fn word(&self) -> &str {
        self.tokens
            .get(self.at)
            .and_then(|token| self.text.get(token.start..token.end))
            .unwrap_or_default()
    }

    fn offset(&self) -> usize {
        self.tokens
            .get(self.at)
            .map_or(self.text.len(), |token| token.start)
    }

    fn advance(&mut self) {
        self.at = (self.at + 1).min(self.tokens.len().saturating_sub(1));
    }

    fn is(&self, symbol: &str) -> bool {
        matches!(self.kind(), Kind::Symbol(found) if *found == symbol)
    }

    fn take(&mut self, symbol: &str) -> bool {
        let found = self.is(symbol);
        if found {
            self.advance();
        }
        found
    }

    fn expect(&mut self, symbol: &str) -> Parsed<()> {
        if self.take(symbol) {
            Ok(())
        } else {
            Err(self.expected(&format!("`{symbol}`")))
        }
    }

    fn error(&self, message: impl Into<String>, hint: impl Into<String>) -> SyntaxError {
        SyntaxError::at(self.text, self.offset(), message, hint)
    }

    fn expected(&self, what: &str) -> SyntaxError {
        let found = if self.kind() == &Kind::End {
            "the end of the expression".to_owned()
        } else {
            format!("`{}`", self.word())
        };
        self.error(format!("{what} is expected, not {found}"), "")
    }

    fn add(&mut self, node: Node, offset: usize) -> Parsed {
        self.builder.add(self.text, node, offset)
    }

    fn expression(&mut self, level: u8) -> Parsed {
        self.nesting += 1;
        if self.nesting > MAX_NESTING {
            return Err(too_deep(self.text, self.offset()));
        }
        let mut left = self.prefix()?;
        while let Some((infix, next)) = self.infix().filter(|(_, next)| *next > level) {
            left = self.operator(left, infix, next)?;
        }
        self.nesting -= 1;
        Ok(left)
    }

    fn infix(&self) -> Option<(Infix, u8)> {
        if !matches!(self.kind(), Kind::Symbol(_) | Kind::Name) {
            return None;
        }
        Some(match self.word() {
            "?" => (Infix::Ternary, TERNARY),
            "||" | "or" => (Infix::Or, OR),
            "&&" | "and" => (Infix::And, AND),
            "==" | "eq" => (Infix::Compare(Comparison::Equal), EQUALITY),
            "!=" | "ne" => (Infix::Compare(Comparison::Different), EQUALITY),
            "<" | "lt" => (Infix::Compare(Comparison::Less), RELATION),
            "<=" | "le" => (Infix::Compare(Comparison::LessOrEqual), RELATION),
            ">" | "gt" => (Infix::Compare(Comparison::Greater), RELATION),
            ">=" | "ge" => (Infix::Compare(Comparison::GreaterOrEqual), RELATION),
            "+" => (Infix::Compute(Arithmetic::Add), ADDITION),
            "-" => (Infix::Compute(Arithmetic::Subtract), ADDITION),
            "*" => (Infix::Compute(Arithmetic::Multiply), MULTIPLICATION),
            "/" | "div" => (Infix::Compute(Arithmetic::Divide), MULTIPLICATION),
            "%" | "mod" => (Infix::Compute(Arithmetic::Remainder), MULTIPLICATION),
            _ => return None,
        })
    }

    fn operator(&mut self, left: NodeId, infix: Infix, level: u8) -> Parsed {
        let offset = self.offset();
        match infix {
            Infix::Ternary => {
                self.advance();
                let then = self.expression(0)?;
                self.expect(":")?;
                let otherwise = self.expression(0)?;
                self.add(
                    Node::If {
                        condition: left,
                        then,
                        otherwise,
                    },
                    offset,
                )
            }
            Infix::Or | Infix::And => {
                let mut operands = vec![left];
                while self.infix().is_some_and(|(_, next)| next == level) {
                    self.advance();
                    operands.push(self.expression(level)?);
                }
                let operands = operands.into();
                self.add(
                    if level == OR {
                        Node::Any(operands)
                    } else {
                        Node::All(operands)
                    },
                    offset,
                )
            }
            Infix::Compare(comparison) => {
                self.advance();
                let right = self.expression(level)?;
                if matches!(comparison, Comparison::Equal | Comparison::Different) {
                    self.allow_missing(left, right);
                }
                self.add(
                    Node::Compare {
                        comparison,
                        left,
                        right,
                    },
                    offset,
                )
            }
            Infix::Compute(_) => {
                let mut links = Vec::new();
                while let Some((Infix::Compute(operator), next)) = self.infix()
                    && next == level
                {
                    self.advance();
                    links.push(Link {
                        operator,
                        operand: self.expression(level)?,
                    });
                }
                self.add(
                    Node::Chain {
                        first: left,
                        links: links.into(),
                    },
                    offset,
                )
            }
        }
    }

    /// A comparison with null may ask for a variable that does not exist.
    fn allow_missing(&mut self, left: NodeId, right: NodeId) {
        for (asked, other) in [(left, right), (right, left)] {
            if matches!(self.builder.node(other), Some(Node::Literal(Value::Null))) {
                self.may_be_missing(asked);
            }
        }
    }

    /// Makes the variable at the root of a path one that may be missing.
    fn may_be_missing(&mut self, mut node: NodeId) {
        loop {
            match self.builder.node_mut(node) {
                Some(Node::Name { required, .. }) => {
                    *required = false;
                    return;
                }
                Some(Node::Path { base, .. } | Node::Index { base, .. }) => node = *base,
                _ => return,
            }
        }
    }

    fn prefix(&mut self) -> Parsed {
        let offset = self.offset();
        let word = if matches!(self.kind(), Kind::Symbol(_) | Kind::Name) {
            self.word()
        } else {
            ""
        };
        match word {
            "-" => {
                self.advance();
                let operand = self.expression(OPERAND)?;
                self.add(Node::Negate(operand), offset)
            }
            "!" | "not" => {
                self.advance();
                let operand = self.expression(OPERAND)?;
                self.add(Node::Not(operand), offset)
            }
            "empty" => {
                self.advance();
                let operand = self.expression(OPERAND)?;
                self.may_be_missing(operand);
                self.add(Node::Empty(operand), offset)
            }
            _ => {
                let base = self.primary()?;
                self.members(base)
            }
        }
    }

    fn members(&mut self, mut base: NodeId) -> Parsed {
        loop {
            let offset = self.offset();
            if self.take(".") {
                if self.kind() != &Kind::Name {
                    return Err(self.expected("a property or method name"));
                }
                let name: Arc<str> = self.word().into();
                let offset = self.offset();
                self.advance();
                base = if self.is("(") {
                    let arguments = self.arguments()?;
                    self.add(
                        Node::Method {
                            base,
                            name,
                            arguments,
                        },
                        offset,
                    )?
                } else {
                    self.add(Node::Path { base, name }, offset)?
                };
            } else if self.take("[") {
                let index = self.expression(0)?;
                self.expect("]")?;
                base = self.add(Node::Index { base, index }, offset)?;
            } else {
                return Ok(base);
            }
        }
    }

    fn arguments(&mut self) -> Parsed<Box<[NodeId]>> {
        self.expect("(")?;
        let mut arguments = Vec::new();
        while !self.is(")") {
            arguments.push(self.expression(0)?);
            if !self.take(",") {
                break;
            }
        }
        self.expect(")")?;
        Ok(arguments.into())
    }

    fn primary(&mut self) -> Parsed {
        let offset = self.offset();
        match self.kind().clone() {
            Kind::Number => {
                let number: Decimal = self
                    .word()
                    .parse()
                    .map_err(|_| self.error("the number is out of range", ""))?;
                self.advance();
                self.add(Node::Literal(Value::Number(number)), offset)
            }
            Kind::String(text) => {
                self.advance();
                self.add(Node::Literal(Value::String(text)), offset)
            }
            Kind::Symbol("(") => {
                self.advance();
                let inner = self.expression(0)?;
                self.expect(")")?;
                Ok(inner)
            }
            Kind::Name => self.name(offset),
            Kind::End if self.text.trim().is_empty() => {
                Err(self.error("the expression is empty", "write a value or a condition"))
            }
            _ => Err(self.expected("a value")),
        }
    }

    fn name(&mut self, offset: usize) -> Parsed {
        let name: Arc<str> = self.word().into();
        let literal = match &*name {
            "null" => Some(Value::Null),
            "true" => Some(Value::Boolean(true)),
            "false" => Some(Value::Boolean(false)),
            "and" | "or" | "eq" | "ne" | "lt" | "le" | "gt" | "ge" | "div" | "mod" | "instanceof" => {
                return Err(self.expected("a value"));
            }
            _ => None,
        };
        self.advance();
        if let Some(value) = literal {
            return self.add(Node::Literal(value), offset);
        }
        if self.is("(") {
            let hint = "only methods of values can be called, for example `text.contains(\"a\")`";
            return Err(SyntaxError::at(
                self.text,
                offset,
                format!("there is no function `{name}`"),
                hint,
            ));
        }
        self.builder.free(&name);
        self.add(Node::Name { name, required: true }, offset)
    }
}
