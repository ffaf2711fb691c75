//! Collects what is found, in the order of the file and within bounds.

use tidegate_model::diagnostic::Diagnostic;

use crate::position::Lines;

/// Diagnostics of one severity that a report shows. A person repairs fewer in one round, and a hostile
/// file could make one of each of its elements.
const SHOWN: usize = 1_000;

/// Characters of a name or value that a message repeats. The file can make one name part of each of its
/// diagnostics.
const QUOTED: usize = 120;

/// The beginning of a name or value, as much as a message needs.
pub fn shorten(text: &str) -> &str {
    text.char_indices()
        .nth(QUOTED)
        .map_or(text, |(end, _)| &text[..end])
}

/// A diagnostic at a byte offset.
pub struct Finding {
    pub diagnostic: Box<Diagnostic>,
    pub offset: usize,
}

impl Finding {
    pub fn error(offset: usize, code: &str, message: impl Into<String>) -> Self {
        Self {
            diagnostic: Box::new(Diagnostic::error(code, message)),
            offset,
        }
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.diagnostic.hint = Some(hint.into());
        self
    }

    pub fn locate(self, lines: &Lines<'_>) -> Diagnostic {
        self.diagnostic.at(lines.position(self.offset))
    }
}

/// The diagnostics of one file.
pub struct Report {
    resource: String,
    shown: Vec<Diagnostic>,
    errors: usize,
    warnings: usize,
}

impl Report {
    pub fn new(resource: &str) -> Self {
        Self {
            resource: resource.to_owned(),
            shown: Vec::new(),
            errors: 0,
            warnings: 0,
        }
    }

    pub fn push(&mut self, diagnostic: Diagnostic) {
        let count = if diagnostic.is_error() {
            &mut self.errors
        } else {
            &mut self.warnings
        };
        *count += 1;
        if *count <= SHOWN {
            self.shown.push(diagnostic.resource(&self.resource));
        }
    }

    pub fn finish(mut self) -> Vec<Diagnostic> {
        self.shown.sort_by_key(|d| (d.line, d.column));
        for (count, severity) in [(self.errors, "errors"), (self.warnings, "warnings")] {
            if count > SHOWN {
                self.shown.push(
                    Diagnostic::warning(
                        "too-many-diagnostics",
                        format!("{} more {severity} are not shown", count - SHOWN),
                    )
                    .hint("repair the ones shown and try again")
                    .resource(&self.resource),
                );
            }
        }
        self.shown
    }
}
