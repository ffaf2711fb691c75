//! What went wrong in a script, and where: read from what it threw.

use std::fmt;

use rquickjs::{Coerced, Ctx, Exception, Value};

use crate::protocol::MESSAGE_BYTES;

/// Longest code of a BPMN error, in bytes.
pub(crate) const CODE_BYTES: usize = 256;

/// What went wrong, and where.
pub(crate) struct Fault {
    pub(crate) message: String,
    pub(crate) line: Option<u32>,
    pub(crate) column: Option<u32>,
}

impl Fault {
    pub(crate) fn of(exception: &Exception<'_>) -> Self {
        let name = exception
            .as_object()
            .get::<_, Coerced<String>>("name")
            .map_or("Error".to_owned(), |name| name.0);
        let message = exception.message().unwrap_or_default();
        let message = clipped(if message.is_empty() {
            name
        } else {
            format!("{name}: {message}")
        });
        let stack = exception.stack().unwrap_or_default();
        let (line, column) = stack.lines().find_map(position).unzip();
        Self {
            message,
            line,
            column,
        }
    }

    pub(crate) fn of_thrown<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> Self {
        if let Some(exception) = value.as_exception() {
            return Self::of(exception);
        }
        if value.is_null() {
            // What the interpreter throws when not even an error object can be made.
            let message = "the script ran out of memory, or threw null".to_owned();
            return Self {
                message,
                line: None,
                column: None,
            };
        }
        let text = ctx
            .json_stringify(value.clone())
            .ok()
            .flatten()
            .and_then(|text| text.to_string().ok());
        let message = match text {
            Some(text) => clipped(format!("the script threw {text}")),
            None => "the script threw something that cannot be shown".to_owned(),
        };
        Self {
            message,
            line: None,
            column: None,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.message, place(self.line, self.column))
    }
}

/// A position as people read it, with a space before; nothing if there is none.
pub(crate) fn place(line: Option<u32>, column: Option<u32>) -> String {
    match (line, column) {
        (Some(line), Some(column)) => format!(" (line {line}, column {column})"),
        (Some(line), None) => format!(" (line {line})"),
        (None, _) => String::new(),
    }
}

/// Line and column at the end of a stack trace's line: `at f (script:3:5)` or `at script:3:5`.
fn position(line: &str) -> Option<(u32, u32)> {
    let (rest, column) = line.trim_end_matches(')').rsplit_once(':')?;
    let (_, line) = rest.rsplit_once(':')?;
    Some((line.parse().ok()?, column.parse().ok()?))
}

/// A message, held to its longest.
pub(crate) fn clipped(mut text: String) -> String {
    if text.len() > MESSAGE_BYTES {
        let end = (0..=MESSAGE_BYTES)
            .rev()
            .find(|end| text.is_char_boundary(*end))
            .unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_read_from_both_shapes_of_a_line() {
        assert_eq!(position("    at f (script:3:5)"), Some((3, 5)));
        assert_eq!(position("    at script:12:1"), Some((12, 1)));
        assert_eq!(position("    at push (native)"), None);
    }

    #[test]
    fn long_messages_end_at_a_character() {
        assert_eq!(clipped("short".to_owned()), "short");
        assert!(clipped("é".repeat(MESSAGE_BYTES)).len() <= MESSAGE_BYTES + '…'.len_utf8());
    }
}
