//! Prepared expressions.

use std::fmt::Write;
use std::sync::Arc;

use crate::error::{EvaluationError, Failure, Position, SyntaxError};
use crate::evaluate::Machine;
use crate::limits::Limits;
use crate::meter::Meter;
use crate::tree::{Node, Tree};
use crate::value::{Range, Value};
use crate::{Language, Scope, feel, unified, xpath};

/// A parsed text.
#[derive(Debug)]
pub(crate) struct Code {
    pub text: String,
    pub language: Language,
    pub tree: Tree,
}

/// Gives a type by its name, written with the types of FEEL: `context<age: number>`.
pub type KnownTypes<'v> = &'v dyn Fn(&str) -> Option<String>;

/// What is known around a FEEL text.
#[derive(Clone, Copy, Default)]
pub struct Vocabulary<'v> {
    /// Names of variables that hold special characters, such as `net-amount`.
    pub names: &'v [&'v str],
    /// Types that FEEL does not define.
    pub types: Option<KnownTypes<'v>>,
}

/// An expression, parsed once and evaluated any number of times. A clone copies a pointer.
#[derive(Clone, Debug)]
pub struct Expression {
    code: Arc<Code>,
}

impl Expression {
    fn new(text: &str, language: Language, tree: Tree) -> Expression {
        Expression {
            code: Arc::new(Code {
                text: text.to_owned(),
                language,
                tree,
            }),
        }
    }

    /// Parses FEEL, without the `=` that modelers write before it.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong in the text, with its place.
    pub fn feel(text: &str) -> Result<Expression, SyntaxError> {
        Expression::feel_with_names(text, &[])
    }

    /// Parses FEEL that reads variables whose names hold special characters, such as `net-amount`. Names of several
    /// plain words need not be given.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong in the text, with its place.
    pub fn feel_with_names(text: &str, names: &[&str]) -> Result<Expression, SyntaxError> {
        Expression::feel_with(text, &Vocabulary { names, types: None })
    }

    /// Parses FEEL with all that is known about names and types around it.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong in the text, with its place.
    pub fn feel_with(text: &str, vocabulary: &Vocabulary<'_>) -> Result<Expression, SyntaxError> {
        Ok(Expression::new(
            text,
            Language::Feel,
            feel::parse(text, vocabulary)?,
        ))
    }

    /// Parses the unified expression language: bare, in `${...}` or `#{...}`, or as a template such as
    /// `order-${id}`, whose result is a text.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong in the text, with its place.
    pub fn unified(text: &str) -> Result<Expression, SyntaxError> {
        Ok(Expression::new(text, Language::Unified, unified::parse(text)?))
    }

    /// Parses by the rule of the modelers: a text that begins with `=` is FEEL, and so is one whose language attribute
    /// names FEEL; one whose language attribute names XPath is XPath where it can be; everything else is the unified
    /// language.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong in the text, with its place in the text as given.
    pub fn parse(text: &str, language: Option<&str>) -> Result<Expression, SyntaxError> {
        let trimmed = text.trim_start();
        if let Some(feel) = trimmed.strip_prefix('=').filter(|rest| !rest.starts_with('=')) {
            let skipped = text.len() - feel.len();
            let moved =
                |error: SyntaxError| SyntaxError::at(text, skipped + error.offset, error.message, error.hint);
            return Expression::feel(feel).map_err(moved);
        }
        let language = language.map(str::to_ascii_lowercase).unwrap_or_default();
        if language.contains("feel") {
            Expression::feel(text)
        } else if language.contains("xpath") && !text.contains("${") && !text.contains("#{") {
            Expression::xpath(text)
        } else {
            Expression::unified(text)
        }
    }

    /// Parses the part of XPath that plain models use. Tools name XPath as the language of a file whatever is written in
    /// it, so what it cannot be is tried as the unified language.
    fn xpath(text: &str) -> Result<Expression, SyntaxError> {
        let read = xpath::to_feel(text).and_then(|(feel, names)| {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            Expression::feel_with_names(&feel, &names)
        });
        read.or_else(|error| Expression::unified(text).map_err(|_| error))
    }

    /// An expression that always gives this value.
    pub fn literal(value: Value) -> Expression {
        let text = value.to_string();
        Expression::new(&text, Language::Feel, Tree::literal(value))
    }

    /// The text: of FEEL without the `=` before it.
    pub fn text(&self) -> &str {
        &self.code.text
    }

    /// The language.
    pub fn language(&self) -> Language {
        self.code.language
    }

    /// The names that are read from the scope. Inside a filter they may be entries of the list's items instead.
    pub fn names(&self) -> Vec<&str> {
        self.code.tree.free.iter().map(|name| &**name).collect()
    }

    /// The names that are called as functions in FEEL and are neither built in nor defined in the text. Unless the scope
    /// holds a function of the name, a call of one gives null.
    pub fn unknown_functions(&self) -> Vec<&str> {
        let tree = &self.code.tree;
        let mut unknown: Vec<&str> = Vec::new();
        for node in tree.nodes() {
            let Node::Call { callee, .. } = node else { continue };
            if let (Node::Name { name, .. }, _) = tree.node(*callee)
                && tree.free.contains(name)
                && crate::functions::find(name).is_none()
                && !unknown.contains(&&**name)
            {
                unknown.push(name);
            }
        }
        unknown
    }

    /// The names that are read with their values in `scope`, shortened, for people: `amount = 7, limit = undefined`.
    pub fn saw(&self, scope: &dyn Scope) -> String {
        saw(&self.code.tree, scope)
    }

    /// The value, if the expression is a literal.
    pub fn as_literal(&self) -> Option<&Value> {
        if let (Node::Literal(value), _) = self.code.tree.node(self.code.tree.root) {
            Some(value)
        } else {
            None
        }
    }

    /// Evaluates.
    ///
    /// # Errors
    ///
    /// A limit that is reached; in the unified language also variables and methods that do not exist and operands of
    /// the wrong type. FEEL gives null there.
    pub fn evaluate(&self, scope: &dyn Scope, limits: &Limits) -> Result<Value, EvaluationError> {
        self.evaluate_within(scope, &mut Meter::new(limits))
    }

    /// Evaluates as a part of something larger that shares its limits.
    ///
    /// # Errors
    ///
    /// As [`Expression::evaluate`].
    pub fn evaluate_within(&self, scope: &dyn Scope, meter: &mut Meter) -> Result<Value, EvaluationError> {
        let mut machine = Machine::new(scope, meter);
        machine
            .evaluate(&self.code, self.code.tree.root)
            .map_err(|failure| self.error(*failure, scope))
    }

    fn error(&self, failure: Failure, scope: &dyn Scope) -> EvaluationError {
        let Position { offset, line, column } =
            Position::of(&self.code.text, failure.offset.unwrap_or(0) as usize);
        let saw = saw(&self.code.tree, scope);
        EvaluationError {
            code: failure.code,
            message: failure.message,
            offset,
            line,
            column,
            saw,
        }
    }
}

/// Longest report of one value and of all of them, in bytes.
const MAX_SEEN_VALUE: usize = 80;
const MAX_SEEN: usize = 600;

/// The names that were read and their values, shortened.
fn saw(tree: &Tree, scope: &dyn Scope) -> String {
    let mut out = String::new();
    for name in &tree.free {
        let comma = if out.is_empty() { "" } else { ", " };
        if out.len() > MAX_SEEN {
            out.push_str(", ...");
            break;
        }
        let value = scope
            .lookup(name)
            .map_or("undefined".to_owned(), |value| brief(&value));
        let name: String = name.chars().take(MAX_SEEN_VALUE).collect();
        let _ = write!(out, "{comma}{name} = {value}");
    }
    out
}

/// A value as a short text. Writing stops at the limit: the value may be large.
fn brief(value: &Value) -> String {
    struct Bounded(String);
    impl Write for Bounded {
        fn write_str(&mut self, text: &str) -> std::fmt::Result {
            let room = MAX_SEEN_VALUE.saturating_sub(self.0.len());
            let fits = text.len() <= room;
            let end = (0..=room.min(text.len()))
                .rev()
                .find(|end| text.is_char_boundary(*end))
                .unwrap_or(0);
            self.0.push_str(text.get(..end).unwrap_or_default());
            if fits { Ok(()) } else { Err(std::fmt::Error) }
        }
    }
    let mut out = Bounded(String::new());
    if let Value::String(text) = value
        && text.len() > MAX_SEEN_VALUE
    {
        let start: String = text.chars().take(MAX_SEEN_VALUE).collect();
        return format!("\"{start}...\" ({} bytes)", text.len());
    }
    if write!(out, "{value}").is_err() {
        out.0.push_str("...");
    }
    out.0
}

/// Unary tests: the cell of a decision table, or what stands behind `in`.
#[derive(Clone, Debug)]
pub struct UnaryTests {
    expression: Expression,
}

/// Parses unary tests such as `< 10, [20..30]`, `not("a", "b")` or `-`.
///
/// # Errors
///
/// The first thing that is wrong in the text, with its place.
pub fn unary_tests(text: &str) -> Result<UnaryTests, SyntaxError> {
    unary_tests_with_names(text, &[])
}

/// As [`unary_tests`], with the names of variables that hold special characters.
///
/// # Errors
///
/// The first thing that is wrong in the text, with its place.
pub fn unary_tests_with_names(text: &str, names: &[&str]) -> Result<UnaryTests, SyntaxError> {
    unary_tests_with(text, &Vocabulary { names, types: None })
}

/// As [`unary_tests`], with all that is known about names and types around it.
///
/// # Errors
///
/// The first thing that is wrong in the text, with its place.
pub fn unary_tests_with(text: &str, vocabulary: &Vocabulary<'_>) -> Result<UnaryTests, SyntaxError> {
    let tree = feel::parse_unary_tests(text, vocabulary)?;
    Ok(UnaryTests {
        expression: Expression::new(text, Language::Feel, tree),
    })
}

impl UnaryTests {
    /// The text.
    pub fn text(&self) -> &str {
        self.expression.text()
    }

    /// The names that are read from the scope.
    pub fn names(&self) -> Vec<&str> {
        self.expression.names()
    }

    /// Whether the input passes one of the tests. What cannot be compared does not pass.
    ///
    /// # Errors
    ///
    /// A limit that is reached.
    pub fn matches(
        &self,
        input: &Value,
        scope: &dyn Scope,
        limits: &Limits,
    ) -> Result<bool, EvaluationError> {
        self.matches_within(input, scope, &mut Meter::new(limits))
    }

    /// As [`UnaryTests::matches`], as a part of something larger that shares its limits.
    ///
    /// # Errors
    ///
    /// A limit that is reached.
    pub fn matches_within(
        &self,
        input: &Value,
        scope: &dyn Scope,
        meter: &mut Meter,
    ) -> Result<bool, EvaluationError> {
        let code = &self.expression.code;
        let mut machine = Machine::new(scope, meter);
        machine.bind(&"?".into(), input.clone());
        let verdict = machine
            .evaluate(code, code.tree.root)
            .map_err(|failure| self.expression.error(*failure, scope))?;
        Ok(verdict.as_boolean() == Some(true))
    }
}

/// The range that a text such as `[1..3]` writes; its ends must be literals or calls of conversion functions.
pub(crate) fn literal_range(text: &str) -> Option<Range> {
    let expression = Expression::feel(text).ok()?;
    let constant = expression.names().is_empty();
    let (node, _) = expression.code.tree.node(expression.code.tree.root);
    let calls = |node: &Node| match node {
        Node::Call { arguments, .. } => arguments
            .iter()
            .all(|argument| matches!(expression.code.tree.node(*argument).0, Node::Literal(_))),
        _ => true,
    };
    let literal = expression.code.tree.nodes().all(calls);
    if !constant || !literal || !matches!(node, Node::Range { .. } | Node::UnaryRange { .. }) {
        return None;
    }
    let limits = Limits {
        steps: 1000,
        depth: 16,
        size: text.len().max(256),
    };
    match expression.evaluate(&crate::NoScope, &limits).ok()? {
        Value::Range(range) => Some((*range).clone()),
        _ => None,
    }
}
