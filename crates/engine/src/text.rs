//! Texts of a model that may be expressions.

use std::sync::Arc;

use tidegate_expression::{EvaluationError, Expression, Limits, SyntaxError, Value};

use crate::visible::Visible;

/// An expression that was read at compile time.
#[derive(Debug)]
pub(crate) struct Computed {
    pub(crate) text: Arc<str>,
    expression: Expression,
}

/// A fixed text or an expression.
#[derive(Debug)]
pub(crate) enum Text {
    Literal(Arc<str>),
    Computed(Computed),
}

/// What stopped an element instance: it becomes an incident.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: &'static str,
    pub(crate) message: String,
}

impl Failure {
    pub(crate) fn new(code: &'static str, message: impl Into<String>) -> Box<Self> {
        Box::new(Self {
            code,
            message: message.into(),
        })
    }
}

impl Computed {
    /// Reads an expression; text without a mark is one too.
    pub(crate) fn read(text: &str, language: Option<&str>) -> Result<Self, SyntaxError> {
        let plain = without_data_functions(text);
        let expression = Expression::parse(plain.as_deref().unwrap_or(text), language)?;
        Ok(Self {
            text: text.into(),
            expression,
        })
    }

    /// Reads FEEL without the leading `=`.
    pub(crate) fn feel(text: &str) -> Result<Self, SyntaxError> {
        Ok(Self {
            text: text.into(),
            expression: Expression::feel(text)?,
        })
    }

    /// The functions that it calls and nobody knows.
    pub(crate) fn unknown_functions(&self) -> Vec<&str> {
        self.expression.unknown_functions()
    }

    pub(crate) fn evaluate(&self, what: &str, scope: &Visible<'_>) -> Result<Value, Box<Failure>> {
        self.expression
            .evaluate(scope, &Limits::default())
            .map_err(|error| self.failed(what, &error))
    }

    /// The value as a text; null is none.
    pub(crate) fn string(&self, what: &str, scope: &Visible<'_>) -> Result<Option<String>, Box<Failure>> {
        Ok(match self.evaluate(what, scope)? {
            Value::Null => None,
            Value::String(text) => Some(text.to_string()),
            other => {
                let json = other.to_json();
                Some(serde_json::from_str::<String>(&json).unwrap_or(json))
            }
        })
    }

    /// The value of a condition that is waited for: not true as long as it has no value.
    pub(crate) fn is_met(&self, scope: &Visible<'_>) -> Result<bool, Box<Failure>> {
        match self.evaluate("the condition", scope)? {
            Value::Null => Ok(false),
            Value::Boolean(value) => Ok(value),
            _ => self.truth("the condition", scope),
        }
    }

    /// The value of a condition.
    pub(crate) fn truth(&self, what: &str, scope: &Visible<'_>) -> Result<bool, Box<Failure>> {
        match self.evaluate(what, scope)? {
            Value::Boolean(value) => Ok(value),
            other => Err(Failure::new(
                "expression-failed",
                format!(
                    "{what}: `{}` gave {} and not true or false{}. Correct the variables and retry.",
                    self.text,
                    other.to_json(),
                    saw(&self.values(scope))
                ),
            )),
        }
    }

    fn failed(&self, what: &str, error: &EvaluationError) -> Box<Failure> {
        Failure::new(
            "expression-failed",
            format!(
                "{what}: `{}` failed: {}{}. Correct the variables and retry.",
                self.text,
                error.message,
                saw(&error.saw)
            ),
        )
    }

    /// The variables that it reads, with their values.
    pub(crate) fn values(&self, scope: &Visible<'_>) -> String {
        self.expression.saw(scope)
    }

    /// What gave nothing where something is needed.
    pub(crate) fn nothing(&self, what: &str, scope: &Visible<'_>) -> Box<Failure> {
        let message = format!(
            "{what}: `{}` gave nothing{}. Set the variables that it reads and retry.",
            self.text,
            saw(&self.values(scope))
        );
        Failure::new("expression-failed", message)
    }
}

impl Text {
    /// Reads a text that is an expression only where it is marked as one: `=`, `${}` or `#{}`.
    pub(crate) fn read(text: &str) -> Result<Self, SyntaxError> {
        let trimmed = text.trim();
        if trimmed.starts_with('=') || trimmed.contains("${") || trimmed.contains("#{") {
            return Computed::read(trimmed, None).map(Self::Computed);
        }
        Ok(Self::Literal(trimmed.into()))
    }

    pub(crate) fn literal(&self) -> Option<&Arc<str>> {
        match self {
            Self::Literal(text) => Some(text),
            Self::Computed(_) => None,
        }
    }

    /// The text now; an expression must give something.
    pub(crate) fn required(&self, what: &str, scope: &Visible<'_>) -> Result<String, Box<Failure>> {
        match self {
            Self::Literal(text) => Ok(text.to_string()),
            Self::Computed(computed) => {
                let text = computed.string(what, scope)?.filter(|text| !text.is_empty());
                text.ok_or_else(|| computed.nothing(what, scope))
            }
        }
    }

    /// The text now; null gives none.
    pub(crate) fn string(&self, what: &str, scope: &Visible<'_>) -> Result<Option<String>, Box<Failure>> {
        match self {
            Self::Literal(text) => Ok(Some(text.to_string())),
            Self::Computed(computed) => computed.string(what, scope),
        }
    }
}

/// The functions of the standard that read data by name, such as `getDataObject('order')`, as that name. None where there
/// is no such call.
fn without_data_functions(text: &str) -> Option<String> {
    const NAMES: [&str; 4] = [
        "getDataObject('",
        "getDataInput('",
        "getDataOutput('",
        "getProcessProperty('",
    ];
    let mut changed = None;
    for name in NAMES {
        let mut rest: String = changed.clone().unwrap_or_else(|| text.to_owned());
        if !rest.contains(name) {
            continue;
        }
        let mut out = String::new();
        while let Some((before, after)) = rest.split_once(name) {
            let Some((data, after)) = after.split_once("')") else {
                break;
            };
            let in_name = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
            let prefixed = before.strip_suffix(':');
            out += prefixed.map_or(before, |before| before.trim_end_matches(in_name));
            out += data;
            rest = after.to_owned();
        }
        out += &rest;
        changed = Some(out);
    }
    changed
}

fn saw(values: &str) -> String {
    if values.is_empty() {
        String::new()
    } else {
        format!("; it saw {values}")
    }
}
