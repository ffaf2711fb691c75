//! Expressions by precedence. Binary operators of one level are collected into one flat node, so that a sum of a
//! thousand terms is not a thousand levels deep.

use std::sync::Arc;

use crate::error::SyntaxError;
use crate::expression::{KnownTypes, Vocabulary};
use crate::feel::names::{Known, is_keyword};
use crate::functions;
use crate::lexer::{Kind, Token};
use crate::limits::MAX_NESTING;
use crate::temporal::parse_at;
use crate::tree::{
    Arithmetic, Builder, Comparison, Iterator, Link, Node, NodeId, Parameter, Test, Tree, too_deep,
};
use crate::types::Type;
use crate::value::Value;

const OR: u8 = 1;
const AND: u8 = 2;
const COMPARISON: u8 = 3;
pub(super) const ADDITION: u8 = 4;
const MULTIPLICATION: u8 = 5;
const POWER: u8 = 6;
const OPERAND: u8 = 7;

pub(crate) struct Parser<'t> {
    pub(super) text: &'t str,
    tokens: Vec<Token>,
    at: usize,
    pub(super) known: Known,
    /// The types that the caller knows, as FEEL writes them.
    pub(super) types: Option<KnownTypes<'t>>,
    pub(super) builder: Builder,
    locals: Vec<Arc<str>>,
    /// For every function around: the names that it reads from the scope.
    functions: Vec<Vec<Arc<str>>>,
    nesting: u32,
    /// The end of a range is being read, where `[` may close it.
    pub(super) endpoint: bool,
    partial_read: bool,
    input_read: bool,
}

type Parsed<T = NodeId> = Result<T, SyntaxError>;

impl<'t> Parser<'t> {
    pub(crate) fn new(text: &'t str, tokens: Vec<Token>, vocabulary: &Vocabulary<'t>) -> Parsed<Self> {
        let known = Known::new(vocabulary.names)?;
        let builder = Builder::default();
        let locals = Vec::new();
        Ok(Parser {
            text,
            tokens,
            at: 0,
            known,
            types: vocabulary.types,
            builder,
            locals,
            functions: Vec::new(),
            nesting: 0,
            endpoint: false,
            partial_read: false,
            input_read: false,
        })
    }

    pub(crate) fn whole_expression(mut self) -> Parsed<Tree> {
        let root = self.expression(0)?;
        self.end()?;
        Ok(self.builder.finish(root))
    }

    pub(crate) fn whole_unary_tests(mut self) -> Parsed<Tree> {
        self.locals.push("?".into());
        if self.is("-") && matches!(self.kind_after(1), Kind::End) {
            let root = self.add(Node::Literal(Value::Boolean(true)), 0)?;
            return Ok(self.builder.finish(root));
        }
        let negated = self.word() == "not" && self.kind_after(1) == &Kind::Symbol("(");
        if negated {
            self.advance();
            self.advance();
        }
        let mut tests = vec![self.test()?];
        while self.take(",") {
            tests.push(self.test()?);
        }
        if negated {
            self.expect(")")?;
        }
        self.end()?;
        let root = self.add(
            Node::Tests {
                tests: tests.into(),
                negated,
            },
            0,
        )?;
        Ok(self.builder.finish(root))
    }

    fn end(&self) -> Parsed<()> {
        if self.kind() == &Kind::End {
            return Ok(());
        }
        let hint = match self.word() {
            "==" => "FEEL compares with a single `=`",
            "&" => "FEEL writes `and`",
            "|" => "FEEL writes `or`",
            "!" => "FEEL writes `not(...)`",
            "'" => "FEEL writes texts in double quotes",
            _ => "an operator is missing before it, or it is not closed or opened rightly",
        };
        Err(self.error(format!("`{}` is not expected here", self.word()), hint))
    }

    // Tokens.

    pub(super) fn rest(&self) -> &[Token] {
        self.tokens.get(self.at..).unwrap_or_default()
    }

    pub(super) fn text_of(&self, token: &Token) -> &str {
        self.text_between(token.start, token.end)
    }

    pub(super) fn text_between(&self, start: usize, end: usize) -> &str {
        self.text.get(start..end).unwrap_or_default()
    }

    pub(super) fn kind_after(&self, count: usize) -> &Kind {
        self.rest().get(count).map_or(&Kind::End, |token| &token.kind)
    }

    pub(super) fn kind(&self) -> &Kind {
        self.kind_after(0)
    }

    pub(super) fn word(&self) -> &str {
        self.rest().first().map_or("", |token| self.text_of(token))
    }

    pub(super) fn offset(&self) -> usize {
        self.rest().first().map_or(self.text.len(), |token| token.start)
    }

    pub(super) fn advance(&mut self) {
        self.at = (self.at + 1).min(self.tokens.len().saturating_sub(1));
    }

    pub(super) fn is(&self, symbol: &str) -> bool {
        matches!(self.kind(), Kind::Symbol(found) if *found == symbol)
    }

    pub(super) fn take(&mut self, symbol: &str) -> bool {
        let found = self.is(symbol);
        if found {
            self.advance();
        }
        found
    }

    fn is_word(&self, word: &str) -> bool {
        self.kind() == &Kind::Name && self.word() == word
    }

    pub(super) fn take_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        if found {
            self.advance();
        }
        found
    }

    pub(super) fn error(&self, message: impl Into<String>, hint: impl Into<String>) -> SyntaxError {
        SyntaxError::at(self.text, self.offset(), message, hint)
    }

    fn expected(&self, what: &str) -> SyntaxError {
        let found = if self.kind() == &Kind::End {
            "the end of the text".to_owned()
        } else {
            format!("`{}`", self.word())
        };
        self.error(format!("{what} is expected, not {found}"), "")
    }

    pub(super) fn expect(&mut self, symbol: &str) -> Parsed<()> {
        if self.take(symbol) {
            Ok(())
        } else {
            Err(self.expected(&format!("`{symbol}`")))
        }
    }

    fn expect_word(&mut self, word: &str) -> Parsed<()> {
        if self.take_word(word) {
            Ok(())
        } else {
            Err(self.expected(&format!("`{word}`")))
        }
    }

    pub(super) fn add(&mut self, node: Node, offset: usize) -> Parsed {
        self.builder.add(self.text, node, offset)
    }

    // Expressions.

    /// Parses what stands inside brackets or behind a keyword: the end of a range is not a matter there.
    pub(super) fn inner(&mut self) -> Parsed {
        let endpoint = std::mem::take(&mut self.endpoint);
        let node = self.expression(0);
        self.endpoint = endpoint;
        node
    }

    pub(super) fn expression(&mut self, level: u8) -> Parsed {
        self.nesting += 1;
        if self.nesting > MAX_NESTING {
            return Err(too_deep(self.text, self.offset()));
        }
        let mut left = self.prefix()?;
        while let Some(next) = self.operator_level().filter(|next| *next > level) {
            left = self.operator(left, next)?;
        }
        self.nesting -= 1;
        Ok(left)
    }

    fn operator_level(&self) -> Option<u8> {
        match self.kind() {
            Kind::Symbol("=" | "!=" | "<" | "<=" | ">" | ">=") => Some(COMPARISON),
            Kind::Symbol("+" | "-") => Some(ADDITION),
            Kind::Symbol("*" | "/") => Some(MULTIPLICATION),
            Kind::Symbol("**") => Some(POWER),
            Kind::Name => match self.word() {
                "or" => Some(OR),
                "and" => Some(AND),
                "between" | "in" => Some(COMPARISON),
                "instance" => Some(OPERAND + 1),
                _ => None,
            },
            _ => None,
        }
    }

    fn operator(&mut self, left: NodeId, level: u8) -> Parsed {
        let offset = self.offset();
        match level {
            OR | AND => self.logic(left, level, offset),
            ADDITION | MULTIPLICATION | POWER => self.chain(left, level, offset),
            COMPARISON => self.comparison(left, offset),
            _ => {
                self.advance();
                self.expect_word("of")?;
                let kind = self.type_name(0)?;
                self.add(Node::InstanceOf { value: left, kind }, offset)
            }
        }
    }

    fn logic(&mut self, left: NodeId, level: u8, offset: usize) -> Parsed {
        let word = if level == OR { "or" } else { "and" };
        let mut operands = vec![left];
        while self.take_word(word) {
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

    fn chain(&mut self, first: NodeId, level: u8, offset: usize) -> Parsed {
        let mut links = Vec::new();
        while self.operator_level() == Some(level) {
            let operator = match self.word() {
                "+" => Arithmetic::Add,
                "-" => Arithmetic::Subtract,
                "*" => Arithmetic::Multiply,
                "/" => Arithmetic::Divide,
                _ => Arithmetic::Power,
            };
            self.advance();
            links.push(Link {
                operator,
                operand: self.expression(level)?,
            });
        }
        self.add(
            Node::Chain {
                first,
                links: links.into(),
            },
            offset,
        )
    }

    pub(super) fn comparison_operator(&mut self) -> Option<Comparison> {
        let comparison = match self.kind() {
            Kind::Symbol("=") => Comparison::Equal,
            Kind::Symbol("!=") => Comparison::Different,
            Kind::Symbol("<") => Comparison::Less,
            Kind::Symbol("<=") => Comparison::LessOrEqual,
            Kind::Symbol(">") => Comparison::Greater,
            Kind::Symbol(">=") => Comparison::GreaterOrEqual,
            _ => return None,
        };
        self.advance();
        Some(comparison)
    }

    fn comparison(&mut self, left: NodeId, offset: usize) -> Parsed {
        if let Some(comparison) = self.comparison_operator() {
            let right = self.expression(COMPARISON)?;
            return self.add(
                Node::Compare {
                    comparison,
                    left,
                    right,
                },
                offset,
            );
        }
        if self.take_word("between") {
            let low = self.expression(COMPARISON)?;
            self.expect_word("and")?;
            let high = self.expression(COMPARISON)?;
            return self.add(
                Node::Between {
                    value: left,
                    low,
                    high,
                },
                offset,
            );
        }
        self.expect_word("in")?;
        let tests = self.tests()?;
        self.add(
            Node::In {
                value: left,
                tests: tests.into(),
            },
            offset,
        )
    }

    /// One unary test.
    pub(super) fn test(&mut self) -> Parsed<Test> {
        let comparison = self.comparison_operator();
        let before = std::mem::take(&mut self.input_read);
        let operand = self.expression(if comparison.is_some() { COMPARISON } else { 0 })?;
        let condition = comparison.is_none() && self.input_read;
        self.input_read |= before;
        Ok(Test {
            comparison,
            operand,
            condition,
        })
    }

    fn prefix(&mut self) -> Parsed {
        let offset = self.offset();
        if self.take("-") {
            let operand = self.expression(OPERAND)?;
            if let Some(Node::Literal(Value::Number(number))) = self.builder.node_mut(operand) {
                *number = number.negate();
                return Ok(operand);
            }
            return self.add(Node::Negate(operand), offset);
        }
        let base = self.primary()?;
        self.postfix(base)
    }

    fn postfix(&mut self, mut base: NodeId) -> Parsed {
        loop {
            let offset = self.offset();
            if self.is("(") {
                base = self.call(base, offset)?;
            } else if self.is("[") && !(self.endpoint && self.closes_range()) {
                self.advance();
                self.locals.push("item".into());
                let filter = self.inner()?;
                self.locals.pop();
                self.expect("]")?;
                base = self.add(Node::Filter { base, filter }, offset)?;
            } else if self.take(".") {
                if !matches!(self.kind(), Kind::Name | Kind::Quoted) {
                    return Err(self.expected("a name"));
                }
                let name = self.name();
                base = self.add(Node::Path { base, name }, offset)?;
            } else {
                return Ok(base);
            }
        }
    }

    fn call(&mut self, callee: NodeId, offset: usize) -> Parsed {
        self.expect("(")?;
        let mut arguments = Vec::new();
        let mut names = Vec::new();
        while !self.is(")") {
            if let Some(name) = self.declared_name(|token, _| token.kind == Kind::Symbol(":")) {
                self.expect(":")?;
                names.push(name);
            }
            arguments.push(self.inner()?);
            if !names.is_empty() && names.len() != arguments.len() {
                return Err(self.error(
                    "arguments with and without a name do not mix",
                    "name all of them or none",
                ));
            }
            if !self.take(",") {
                break;
            }
        }
        self.expect(")")?;
        let names = if names.is_empty() {
            None
        } else {
            Some(names.into())
        };
        self.add(
            Node::Call {
                callee,
                arguments: arguments.into(),
                names,
            },
            offset,
        )
    }

    fn primary(&mut self) -> Parsed {
        let offset = self.offset();
        match self.kind() {
            Kind::Number | Kind::String(_) => self.literal(offset),
            Kind::Symbol("@") => self.at_literal(offset),
            Kind::Symbol("(") => self.parenthesis(offset),
            Kind::Symbol("[" | "]") => self.bracket(offset),
            Kind::Symbol("{") => self.context(offset),
            Kind::Quoted => self.variable(offset),
            Kind::Name => self.named(offset),
            _ => Err(self.no_value()),
        }
    }

    fn no_value(&self) -> SyntaxError {
        match self.word() {
            "" if self.text.trim().is_empty() => {
                self.error("the expression is empty", "write a value or a condition")
            }
            "'" => self.error("`'` is not expected here", "FEEL writes texts in double quotes"),
            "!" => self.error("`!` is not expected here", "FEEL writes `not(...)`"),
            _ => self.expected("a value"),
        }
    }

    fn literal(&mut self, offset: usize) -> Parsed {
        let value = match self.kind() {
            Kind::String(text) => Value::String(text.clone()),
            _ => Value::Number(
                self.word()
                    .parse()
                    .map_err(|_| self.error("the number is out of range", ""))?,
            ),
        };
        self.advance();
        self.add(Node::Literal(value), offset)
    }

    fn at_literal(&mut self, offset: usize) -> Parsed {
        self.advance();
        let Kind::String(text) = self.kind().clone() else {
            return Err(self.expected("a text in quotes"));
        };
        self.advance();
        // Not a syntax error: FEEL gives null for what cannot be read as a temporal value.
        self.add(Node::Literal(parse_at(&text).unwrap_or(Value::Null)), offset)
    }

    fn named(&mut self, offset: usize) -> Parsed {
        match self.word() {
            "null" => self.word_literal(Value::Null, offset),
            "true" => self.word_literal(Value::Boolean(true), offset),
            "false" => self.word_literal(Value::Boolean(false), offset),
            "if" => self.conditional(offset),
            "for" => self.for_loop(offset),
            "some" | "every" => self.quantified(offset),
            "function" if self.kind_after(1) == &Kind::Symbol("(") => self.function(offset),
            word if is_keyword(word) => Err(self.expected("a value")),
            _ => self.variable(offset),
        }
    }

    fn word_literal(&mut self, value: Value, offset: usize) -> Parsed {
        self.advance();
        self.add(Node::Literal(value), offset)
    }

    fn variable(&mut self, offset: usize) -> Parsed {
        let name = self.name();
        self.partial_read |= &*name == "partial";
        self.input_read |= &*name == "?";
        let called = self.is("(") && functions::find(&name).is_some();
        if !called && !self.locals.contains(&name) {
            self.builder.free(&name);
            self.functions
                .iter_mut()
                .filter(|free| !free.contains(&name))
                .for_each(|free| free.push(name.clone()));
        }
        self.add(
            Node::Name {
                name,
                required: false,
            },
            offset,
        )
    }

    fn conditional(&mut self, offset: usize) -> Parsed {
        self.advance();
        let condition = self.inner()?;
        self.expect_word("then")?;
        let then = self.inner()?;
        self.expect_word("else")?;
        let otherwise = self.inner()?;
        self.add(
            Node::If {
                condition,
                then,
                otherwise,
            },
            offset,
        )
    }

    /// The iterators of a loop, whose names stay declared: the caller takes them back after the body.
    fn iterators(&mut self) -> Parsed<Box<[Iterator]>> {
        self.advance();
        let mut iterators = Vec::new();
        loop {
            let Some(name) = self.declared_name(|token, word| token.kind == Kind::Name && word == "in")
            else {
                return Err(self.expected("a name and `in`"));
            };
            self.expect_word("in")?;
            let domain = self.inner()?;
            let to = if self.take("..") {
                Some(self.inner()?)
            } else {
                None
            };
            self.declare(&name);
            self.locals.push(name.clone());
            iterators.push(Iterator { name, domain, to });
            if !self.take(",") {
                return Ok(iterators.into());
            }
        }
    }

    fn for_loop(&mut self, offset: usize) -> Parsed {
        let before = self.locals.len();
        let iterators = self.iterators()?;
        self.expect_word("return")?;
        let outer = std::mem::take(&mut self.partial_read);
        self.locals.push("partial".into());
        let body = self.inner()?;
        self.locals.truncate(before);
        let partial = self.partial_read;
        self.partial_read |= outer;
        self.add(
            Node::For {
                iterators,
                body,
                partial,
            },
            offset,
        )
    }

    fn quantified(&mut self, offset: usize) -> Parsed {
        let some = self.is_word("some");
        let before = self.locals.len();
        let iterators = self.iterators()?;
        self.expect_word("satisfies")?;
        let body = self.inner()?;
        self.locals.truncate(before);
        self.add(
            if some {
                Node::Some { iterators, body }
            } else {
                Node::Every { iterators, body }
            },
            offset,
        )
    }

    fn function(&mut self, offset: usize) -> Parsed {
        self.advance();
        self.expect("(")?;
        let before = self.locals.len();
        let mut parameters = Vec::new();
        while !self.is(")") {
            let ends = |token: &Token, _: &str| matches!(token.kind, Kind::Symbol(":" | "," | ")"));
            let Some(name) = self.declared_name(ends) else {
                return Err(self.expected("a parameter name"));
            };
            let kind = if self.take(":") {
                self.type_name(0)?
            } else {
                Type::Any
            };
            self.declare(&name);
            self.locals.push(name.clone());
            parameters.push(Parameter { name, kind });
            if !self.take(",") {
                break;
            }
        }
        self.expect(")")?;
        self.functions.push(Vec::new());
        let body = if self.take_word("external") {
            // Code of the host is never called: the body is read and gives null.
            self.inner()?;
            self.add(Node::Literal(Value::Null), offset)?
        } else {
            self.inner()?
        };
        self.locals.truncate(before);
        let free = self.functions.pop().unwrap_or_default().into();
        self.add(
            Node::Function {
                parameters: parameters.into(),
                body,
                free,
            },
            offset,
        )
    }

    fn context(&mut self, offset: usize) -> Parsed {
        self.advance();
        let before = self.locals.len();
        let mut entries = Vec::new();
        while !self.is("}") {
            let name = match self.kind().clone() {
                Kind::String(text) => {
                    self.advance();
                    text
                }
                _ => match self.declared_name(|token, _| token.kind == Kind::Symbol(":")) {
                    Some(name) => name,
                    None => return Err(self.expected("an entry name and `:`")),
                },
            };
            self.expect(":")?;
            self.declare(&name);
            let value = self.inner()?;
            self.locals.push(name.clone());
            entries.push((name, value));
            if !self.take(",") {
                break;
            }
        }
        self.expect("}")?;
        self.locals.truncate(before);
        self.add(Node::Context(entries.into()), offset)
    }
}
