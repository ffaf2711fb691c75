//! What is wrong, or doubtful, in a resource: code, message, cure and place.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How bad a diagnostic is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The resource is accepted; something in it is doubtful.
    Warning,
    /// The resource is refused.
    Error,
}

/// One finding in a resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Diagnostic {
    /// Stable code, kebab-case, for example `dangling-reference`.
    pub code: String,
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// The name of the resource.
    pub resource: String,
    /// The id of the element concerned.
    pub element_id: Option<String>,
    /// Line, from 1; 0 when it concerns the file as a whole.
    pub line: u32,
    /// Column in characters, from 1; 0 when it concerns the file as a whole.
    pub column: u32,
}

impl Diagnostic {
    /// An error without a place yet.
    pub fn error(code: &str, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, code, message.into())
    }

    /// A warning without a place yet.
    pub fn warning(code: &str, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, code, message.into())
    }

    fn new(severity: Severity, code: &str, message: String) -> Self {
        Self {
            code: code.to_owned(),
            severity,
            message,
            hint: None,
            resource: String::new(),
            element_id: None,
            line: 0,
            column: 0,
        }
    }

    /// Adds the cure.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds the place.
    #[must_use]
    pub fn at(mut self, position: crate::document::Position) -> Self {
        self.line = position.line;
        self.column = position.column;
        self
    }

    /// Adds the element.
    #[must_use]
    pub fn element(mut self, id: Option<&str>) -> Self {
        self.element_id = id.map(str::to_owned);
        self
    }

    /// Adds the resource's name.
    #[must_use]
    pub fn resource(mut self, name: &str) -> Self {
        self.resource = name.to_owned();
        self
    }

    /// True if this refuses the resource.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Warning => "warning",
            Severity::Error => "error",
        };
        write!(
            f,
            "{}:{}:{}: {severity}[{}]: {}",
            self.resource, self.line, self.column, self.code, self.message
        )?;
        match &self.hint {
            Some(hint) => write!(f, " ({hint})"),
            None => Ok(()),
        }
    }
}
