//! The script task: FEEL is run here, other languages by a job of type `script`, or by a worker of its own.

use std::sync::Arc;

use tidegate_model::document::Namespace;
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
        let mut headers = vec![
            ("format".into(), format.into()),
            ("script".into(), text.trim().into()),
        ];
        if let Some(variable) = reader.vendor_attribute("resultVariable") {
            headers.push(("resultVariable".into(), variable.into()));
        }
        return Some(job::JobTask::boxed(JobSpec::fixed(SCRIPT, headers)));
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
