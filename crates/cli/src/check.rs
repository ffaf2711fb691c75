//! `tidegate check`: what is wrong or doubtful in files, without a server.

use std::collections::HashMap;

use serde_json::json;
use tidegate::Runtime;
use tidegate::api::Resource;
use tidegate::model::Diagnostic;

use crate::args::{CheckArguments, Output};
use crate::{exit, scripts, terminal};

/// A longer line is cut round the place that is meant.
const SHOWN: usize = 120;

/// Prints what is found and gives the exit code: 1 if a deployment would be refused.
pub fn check(arguments: &CheckArguments) -> u8 {
    let mut resources = Vec::new();
    for file in &arguments.files {
        match std::fs::read(file) {
            Ok(bytes) => resources.push(Resource {
                name: file.display().to_string(),
                bytes,
            }),
            Err(error) => {
                terminal::error(&format!("`{}` cannot be read: {error}", file.display()));
                return exit::FAILED;
            }
        }
    }
    let texts: HashMap<String, String> = resources
        .iter()
        .map(|resource| {
            (
                resource.name.clone(),
                String::from_utf8_lossy(&resource.bytes).into_owned(),
            )
        })
        .collect();
    let delegates = match scripts::delegates(&arguments.delegates) {
        Ok(delegates) => delegates,
        Err(message) => {
            terminal::error(&format!("delegates: {message}"));
            return exit::FAILED;
        }
    };
    let builder = scripts::with_scripts(Runtime::builder(), &scripts::handler());
    let builder = scripts::with_delegates(builder, &delegates);
    let diagnostics = builder.check(resources);
    let errors = diagnostics
        .iter()
        .filter(|diagnostic| diagnostic.is_error())
        .count();
    let warnings = diagnostics.len() - errors;
    match arguments.output {
        Output::Json => {
            let report = json!({ "diagnostics": diagnostics, "errors": errors, "warnings": warnings });
            terminal::line(&report.to_string());
        }
        Output::Table => {
            for diagnostic in &diagnostics {
                print(diagnostic, texts.get(&diagnostic.resource).map(String::as_str));
            }
            let files = arguments.files.len();
            terminal::line(&format!(
                "{}, {}, {} checked",
                counted(errors, "error"),
                counted(warnings, "warning"),
                counted(files, "file")
            ));
        }
    }
    if errors > 0 { exit::FAILED } else { exit::DRAINED }
}

fn counted(count: usize, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}

/// The diagnostic, and the line that it means.
fn print(diagnostic: &Diagnostic, text: Option<&str>) {
    terminal::line(&terminal::printable(&diagnostic.to_string()));
    let line = diagnostic.line as usize;
    let Some(shown) = text.and_then(|text| text.lines().nth(line.checked_sub(1)?)) else {
        return;
    };
    let (shown, at) = around(shown, diagnostic.column as usize);
    let number = line.to_string();
    terminal::line(&format!("{number:>6} | {}", terminal::printable(&shown)));
    if let Some(at) = at {
        terminal::line(&format!("{:>6} | {}^", "", " ".repeat(at)));
    }
}

/// What of a line is shown, and where the column (from 1; 0 for none) is in it.
fn around(line: &str, column: usize) -> (String, Option<usize>) {
    let plain: Vec<char> = line.chars().map(|c| if c == '\t' { ' ' } else { c }).collect();
    let at = column.checked_sub(1).filter(|at| *at <= plain.len());
    let start = at.unwrap_or(0).saturating_sub(SHOWN / 2);
    let shown = plain.iter().skip(start).take(SHOWN).collect();
    (shown, at.map(|at| at - start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_cut_round_the_column() {
        assert_eq!(around("abc", 2), ("abc".to_owned(), Some(1)));
        assert_eq!(around("\tabc", 0), (" abc".to_owned(), None));
        let long = format!("{}x{}", "a".repeat(500), "b".repeat(500));
        let (shown, at) = around(&long, 501);
        assert_eq!(shown.chars().nth(at.unwrap()), Some('x'));
        assert_eq!(shown.len(), SHOWN);
        assert_eq!(around("abc", 99).1, None);
    }
}
