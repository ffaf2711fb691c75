//! A decision that could not be made.

use std::fmt::{self, Display, Formatter};
use std::sync::Arc;

use tidegate_expression::EvaluationCode;

/// The stable code of a [`DecisionError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DecisionCode {
    /// There is no decision or decision service of that id or name.
    UnknownDecision,
    /// The decision, or one that it needs, was refused when the model was read: see the diagnostics.
    Broken,
    /// More than one rule of a `UNIQUE` table matched.
    NotUnique,
    /// Rules of an `ANY` table matched with different outputs.
    NotAny,
    /// The value of a table's input is not one of those that the table allows.
    InputNotAllowed,
    /// An output of a table is not one of those that the table allows.
    OutputNotAllowed,
    /// An expression failed, or the evaluation reached a limit.
    Expression(EvaluationCode),
}

impl DecisionCode {
    /// The code as text, for logs and interfaces.
    pub fn as_str(self) -> &'static str {
        match self {
            DecisionCode::UnknownDecision => "decision-unknown",
            DecisionCode::Broken => "decision-broken",
            DecisionCode::NotUnique => "decision-not-unique",
            DecisionCode::NotAny => "decision-not-any",
            DecisionCode::InputNotAllowed => "decision-input-not-allowed",
            DecisionCode::OutputNotAllowed => "decision-output-not-allowed",
            DecisionCode::Expression(code) => code.as_str(),
        }
    }
}

/// What became of one rule of the table that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleOutcome {
    /// Number of the rule, from 1.
    pub number: usize,
    /// The rule's id.
    pub id: Option<Arc<str>>,
    /// Whether it matched.
    pub matched: bool,
    /// Number of the first input that its entry did not match, from 1.
    pub failed_at: Option<usize>,
}

/// A decision that could not be made: an incident that shows the rule and the values it saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecisionError {
    /// The stable code.
    pub code: DecisionCode,
    /// What happened.
    pub message: String,
    /// Id of the decision that failed: the one asked for, or one that it needs.
    pub decision_id: Option<Arc<str>>,
    /// Its name.
    pub decision_name: Option<Arc<str>>,
    /// Names and values of what the decision reads, shortened; of a table, its inputs.
    pub inputs: Vec<(Arc<str>, String)>,
    /// The rules of the table that failed, in order; empty where the failure is not a table's.
    pub rules: Vec<RuleOutcome>,
    /// Name of the file.
    pub resource: Arc<str>,
    /// Line in the file, from 1; 0 where there is none.
    pub line: u32,
    /// Column in characters, from 1; 0 where there is none.
    pub column: u32,
    /// Id of the element that failed.
    pub element_id: Option<Arc<str>>,
}

impl Display for DecisionError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code.as_str(), self.message)?;
        if let Some(name) = self.decision_name.as_ref().or(self.decision_id.as_ref()) {
            write!(f, " (decision \"{name}\"")?;
            if self.line > 0 {
                write!(f, ", {}:{}:{}", self.resource, self.line, self.column)?;
            }
            f.write_str(")")?;
        }
        for (index, (name, value)) in self.inputs.iter().enumerate() {
            write!(f, "{}{name} = {value}", if index == 0 { "; saw " } else { ", " })?;
        }
        let matched: Vec<String> = self
            .rules
            .iter()
            .filter(|rule| rule.matched)
            .map(|rule| rule.number.to_string())
            .collect();
        if !matched.is_empty() {
            write!(f, "; rules that matched: {}", matched.join(", "))?;
        }
        Ok(())
    }
}

impl std::error::Error for DecisionError {}
