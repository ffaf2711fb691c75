//! Answers as tables.

use serde_json::Value;

use crate::terminal;

/// A member as a cell.
pub fn cell(value: &Value, name: &str) -> String {
    text(&value[name])
}

/// A value as a cell: `-` for nothing.
pub fn text(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) if text.is_empty() => "-".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The items of a list, one row each.
pub fn list<const N: usize>(answer: &Value, columns: [(&str, &str); N]) {
    let items = answer["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    if items.is_empty() {
        return terminal::line("none");
    }
    terminal::table(
        columns.map(|(heading, _)| heading),
        items.iter().map(|item| columns.map(|(_, name)| cell(item, name))),
    );
    if !answer["next"].is_null() {
        terminal::line("(there are more; ask for them with --limit or narrow the list)");
    }
}

/// Names and values, one row each.
pub fn fields<const N: usize>(answer: &Value, columns: [(&str, &str); N]) {
    for (heading, name) in columns {
        terminal::line(&terminal::printable(&format!(
            "{heading:<14}{}",
            cell(answer, name)
        )));
    }
}
