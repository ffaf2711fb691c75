//! The script task: FEEL is run here, other languages by a job of type `script`, or by a worker of its own.

use std::sync::Arc;

use tidegate_model::document::{Namespace, Position};
use tidegate_model::{Json, Variables};

use crate::compile::Reader;
use crate::decide::{Step, Turn};
use crate::element::{Active, Behaviour, JobSpec, job};
use crate::event::Event;
use crate::text::{Computed, Failure};

/// The job type of scripts that the host runs.
const SCRIPT: &str = "script";

#[derive(Debug)]
struct FeelScript {
    expression: Computed,
    result_variable: Option<Arc<str>>,
}

pub(super) fn read(reader: &mut Reader<'_>) -> Option<Box<dyn Behaviour>> {
    if let Some(job) = JobSpec::read(reader) {
        return job.map(job::JobTask::boxed);
    }
    let element = reader.element;
    if let Some(script) = element.extension(&Namespace::Zeebe, "script") {
        let text = script.attribute("expression").unwrap_or_default();
        let expression = reader.feel(text, script.position)?;
        let result_variable = script.attribute("resultVariable").map(Arc::from);
        return Some(Box::new(FeelScript {
            expression,
            result_variable,
        }));
    }
    let format = element.attribute("scriptFormat").unwrap_or_default();
    let child = reader
        .document
        .child(reader.node, "script")
        .map(|(_, child)| child);
    let (text, position) = child.map_or(("", element.position), |child| {
        (child.text.as_str(), child.position)
    });
    if format.to_ascii_lowercase().contains("feel") {
        let expression = reader.feel(text, position)?;
        let result_variable = reader.vendor_attribute("resultVariable").map(Arc::from);
        return Some(Box::new(FeelScript {
            expression,
            result_variable,
        }));
    }
    if reader
        .options
        .script_formats
        .iter()
        .any(|known| known.eq_ignore_ascii_case(format))
    {
        checked(reader, format, text, position)?;
        let mut headers = vec![
            ("format".into(), format.into()),
            ("script".into(), text.trim().into()),
        ];
        if let Some(variable) = reader.vendor_attribute("resultVariable") {
            headers.push(("resultVariable".into(), variable.into()));
        }
        return JobSpec::fixed(reader, SCRIPT, headers).map(job::JobTask::boxed);
    }
    let language = if format.is_empty() {
        "no script format".to_owned()
    } else {
        format!("format `{format}`")
    };
    reader.refuse(
        "script-format-unknown",
        &format!("nothing here runs a script of {language}"),
        "write it in FEEL, give it a <zeebe:taskDefinition type=\"…\"/>, or register a handler for the format",
    )
}

/// Refuses a script that the host cannot read, at its line in the file.
fn checked(reader: &mut Reader<'_>, format: &str, text: &str, position: Position) -> Option<()> {
    let Some(check) = &reader.options.script_check else {
        return Some(());
    };
    let Err(fault) = (check.0)(format, text.trim()) else {
        return Some(());
    };
    let place = match (fault.line, fault.column) {
        (Some(line), Some(column)) => format!(" at its line {line}, column {column}"),
        (Some(line), None) => format!(" at its line {line}"),
        (None, _) => String::new(),
    };
    // The text begins on the line of its tag, and what is trimmed before it may hold lines.
    let skipped = text.len() - text.trim_start().len();
    let before = text[..skipped].matches('\n').count() as u32;
    let lines = before + fault.line.unwrap_or(1).saturating_sub(1);
    let column = match fault.column {
        Some(column) if fault.line.is_some_and(|line| line > 1) => column,
        _ if before > 0 => 1,
        _ => position.column,
    };
    let position = Position {
        line: position.line + lines,
        column,
    };
    let message = format!("the script cannot be read{place}: {}", fault.message);
    reader.refuse_at(position, "script-syntax", &message, "correct the script")
}

impl Behaviour for FeelScript {
    fn activate(&self, turn: &mut Turn<'_>, me: &Active<'_>) -> Result<(), Box<Failure>> {
        let value = self
            .expression
            .evaluate("the script", &turn.visible(me.key, Some(me.locals)))?;
        let mut variables = Variables::new();
        if let Some(name) = &self.result_variable {
            variables.set(Arc::clone(name), Json::trusted(value.to_json()));
        }
        turn.event(Event::ScriptEvaluated {
            key: me.key,
            element: me.element,
            variables,
        });
        turn.then(Step::Complete(me.key));
        Ok(())
    }
}
