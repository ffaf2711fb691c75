//! FEEL and the unified expression language: two parsers, one tree, one evaluator with limits.
//!
//! FEEL is the language of conditions, mappings, correlation keys and decisions. `${...}` and bare text are read as a
//! safe subset of the unified expression language, since models of the Java engines and of the plain standard hold
//! that. An [`Expression`] is prepared once and evaluated any number of times over a [`Scope`] under [`Limits`].
//!
//! The crate reads no clock and does no I/O, and no text and no value makes it panic, hang or grow without bound.
//!
//! ```
//! use tidegate_expression::{Expression, Limits, Value};
//!
//! let due = Expression::parse("= amount > 100 and status = \"open\"", None)?;
//! let variables = Value::from_json(r#"{"amount": 120.50, "status": "open"}"#)?;
//! let scope = variables.as_context().ok_or("variables are an object")?;
//! assert_eq!(due.evaluate(scope, &Limits::default())?, Value::Boolean(true));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod compare;
mod context;
mod decimal;
mod error;
mod evaluate;
mod expression;
mod feel;
mod functions;
mod json;
mod lexer;
mod limits;
mod meter;
mod scope;
mod temporal;
mod tree;
mod types;
mod unified;
mod value;
mod xpath;

pub use context::Context;
pub use decimal::{Decimal, NotADecimal, Rounding};
pub use error::{EvaluationCode, EvaluationError, SyntaxError};
pub use evaluate::{Callable, Function};
pub use expression::{
    Expression, KnownTypes, UnaryTests, Vocabulary, unary_tests, unary_tests_with, unary_tests_with_names,
};
pub use json::JsonError;
pub use limits::Limits;
pub use meter::Meter;
pub use scope::{Language, NoScope, Scope};
pub use temporal::{Date, DateTime, DaysTimeDuration, Time, YearsMonthsDuration, Zone};
pub use value::{List, Range, Value};
