//! Decisions of DMN 1.1 to 1.5: read once, evaluated any number of times, on FEEL with limits.
//!
//! [`parse`] gives [`Decisions`] and all that is wrong in a file at once. A file whose diagnostics hold an error is not
//! fit to be deployed, although what is right in it can be evaluated. The crate reads no clock and does no I/O; what
//! comes from outside, models and variables, makes it neither panic nor hang nor grow without bound.
//!
//! ```
//! use tidegate_dmn::parse;
//! use tidegate_expression::{Limits, Value};
//!
//! let model = r##"<definitions xmlns="https://www.omg.org/spec/DMN/20191111/MODEL/" namespace="shop" name="shop">
//!   <inputData id="total" name="total"/>
//!   <decision id="discount" name="Discount">
//!     <informationRequirement><requiredInput href="#total"/></informationRequirement>
//!     <literalExpression><text>if total > 100 then 0.1 else 0</text></literalExpression>
//!   </decision>
//! </definitions>"##;
//! let (decisions, diagnostics) = parse("shop.dmn", model.as_bytes());
//! assert!(diagnostics.is_empty());
//! let variables = Value::from_json(r#"{"total": 120}"#)?;
//! let scope = variables.as_context().ok_or("variables are an object")?;
//! let result = decisions.ok_or("no model")?.evaluate("discount", scope, &Limits::default())?;
//! assert_eq!(result.value.to_json(), "0.1");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod boxed;
mod decisions;
mod error;
mod evaluate;
mod function;
mod hit_policy;
mod limits;
mod parse;
mod program;
mod requirement;
mod scope;
mod table;
mod trail;
mod types;

pub use decisions::{Decision, Decisions, Service};
pub use error::{DecisionCode, DecisionError, RuleOutcome};
pub use parse::{parse, parse_all};
pub use trail::{Evaluated, Problem, Rule, Step, Table};
