//! The two errors: a text that cannot be read, and an evaluation that failed.

use std::fmt::{self, Display, Formatter};

/// A place in an expression's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    pub offset: usize,
    pub line: u32,
    pub column: u32,
}

impl Position {
    /// Line and column (in characters, from 1) of a byte offset.
    pub(crate) fn of(text: &str, offset: usize) -> Position {
        let mut offset = offset.min(text.len());
        while !text.is_char_boundary(offset) {
            offset -= 1;
        }
        let before = &text[..offset];
        let line = before.bytes().filter(|byte| *byte == b'\n').count() as u32 + 1;
        let start = before.rfind('\n').map_or(0, |at| at + 1);
        let column = before[start..].chars().count() as u32 + 1;
        Position { offset, line, column }
    }
}

/// An expression text that cannot be read: a deployment diagnostic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    /// What is wrong.
    pub message: String,
    /// What to do about it; empty where there is nothing to say.
    pub hint: String,
    /// Byte offset in the text.
    pub offset: usize,
    /// Line in the text, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

impl SyntaxError {
    pub(crate) fn at(
        text: &str,
        offset: usize,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> SyntaxError {
        let Position { offset, line, column } = Position::of(text, offset);
        SyntaxError {
            message: message.into(),
            hint: hint.into(),
            offset,
            line,
            column,
        }
    }
}

impl Display for SyntaxError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} (line {}, column {})", self.message, self.line, self.column)?;
        if !self.hint.is_empty() {
            write!(f, "; {}", self.hint)?;
        }
        Ok(())
    }
}

impl std::error::Error for SyntaxError {}

/// The stable code of an [`EvaluationError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EvaluationCode {
    /// The evaluation took more steps than allowed.
    StepLimit,
    /// The evaluation nested deeper than allowed.
    DepthLimit,
    /// A string or list, or all of them together, grew larger than allowed.
    SizeLimit,
    /// A unified expression reads a variable that does not exist.
    UnknownVariable,
    /// A unified expression calls a method that does not exist for the value.
    UnknownMethod,
    /// An operand or argument of a unified expression has the wrong type.
    WrongType,
    /// A unified expression computes something without a result, such as a division by zero.
    Arithmetic,
    /// A function of the program around the evaluator failed.
    Function,
}

impl EvaluationCode {
    /// The code as text, for logs and interfaces.
    pub fn as_str(self) -> &'static str {
        match self {
            EvaluationCode::StepLimit => "expression-step-limit",
            EvaluationCode::DepthLimit => "expression-depth-limit",
            EvaluationCode::SizeLimit => "expression-size-limit",
            EvaluationCode::UnknownVariable => "expression-unknown-variable",
            EvaluationCode::UnknownMethod => "expression-unknown-method",
            EvaluationCode::WrongType => "expression-wrong-type",
            EvaluationCode::Arithmetic => "expression-arithmetic",
            EvaluationCode::Function => "expression-function",
        }
    }
}

/// An evaluation that failed: an incident that shows the expression and the values it saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvaluationError {
    /// The stable code.
    pub code: EvaluationCode,
    /// What happened.
    pub message: String,
    /// Byte offset in the expression's text.
    pub offset: usize,
    /// Line in the text, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// The values of the names that the expression reads, shortened: `amount = 12, status = null`.
    pub saw: String,
}

impl Display for EvaluationError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {} (line {}, column {})",
            self.code.as_str(),
            self.message,
            self.line,
            self.column
        )?;
        if !self.saw.is_empty() {
            write!(f, "; saw {}", self.saw)?;
        }
        Ok(())
    }
}

impl std::error::Error for EvaluationError {}

impl EvaluationError {
    /// An error of a host's function, without a place.
    pub fn new(code: EvaluationCode, message: impl Into<String>) -> EvaluationError {
        EvaluationError {
            code,
            message: message.into(),
            offset: 0,
            line: 0,
            column: 0,
            saw: String::new(),
        }
    }
}

impl From<Box<Failure>> for EvaluationError {
    fn from(failure: Box<Failure>) -> Self {
        EvaluationError::new(failure.code, failure.message)
    }
}

/// An evaluation error on its way up, before positions and values are added.
#[derive(Debug)]
pub(crate) struct Failure {
    pub code: EvaluationCode,
    pub message: String,
    /// The node's offset; filled in by the innermost node that has one.
    pub offset: Option<u32>,
}

impl Failure {
    pub(crate) fn new(code: EvaluationCode, message: impl Into<String>) -> Box<Failure> {
        Box::new(Failure {
            code,
            message: message.into(),
            offset: None,
        })
    }
}
