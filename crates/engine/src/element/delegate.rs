//! Java code that a model names: refused, unless the host says which work stands in for it.

use std::sync::Arc;

use tidegate_model::document::{Element, Extension, NodeId};

use crate::compile::{Reader, VENDORS};
use crate::element::JobSpec;

/// The attributes that name Java code.
const ATTRIBUTES: [&str; 3] = ["class", "delegateExpression", "expression"];

/// Reads the Java code that `node`, the element or one of its event definitions, names. None if it names none; inside,
/// none if nothing stands in for it.
pub(super) fn read(reader: &mut Reader<'_>, node: NodeId) -> Option<Option<JobSpec>> {
    let element = reader.document.get(node);
    let (attribute, written) = ATTRIBUTES.into_iter().find_map(|name| {
        let value = VENDORS
            .iter()
            .find_map(|vendor| element.attribute_in(vendor, name))?;
        Some((name, value))
    })?;
    let name = bare(written);
    let Some(job_type) = reader.options.delegates.get(name) else {
        let message = format!("`{attribute}` names Java code (`{written}`), which cannot run here");
        let hint = format!(
            "make it an external task (type=\"external\" with a topic) or give it a <zeebe:taskDefinition \
             type=\"…\"/>, and let a worker of that type do it; or name the job type that stands in for `{name}` in \
             the setting `delegates`"
        );
        return Some(reader.refuse("java-delegate", &message, &hint));
    };
    let headers = fields(reader, element);
    Some(JobSpec::fixed(reader, job_type, headers))
}

/// A class name as it is, and what is inside of `${…}` or `#{…}`.
fn bare(written: &str) -> &str {
    let written = written.trim();
    let inside = written.strip_prefix("${").or_else(|| written.strip_prefix("#{"));
    inside
        .and_then(|inside| inside.strip_suffix('}'))
        .map_or(written, str::trim)
}

/// The fields that the Java code would be given, as headers: fixed texts only.
fn fields(reader: &mut Reader<'_>, element: &Element) -> Vec<(Arc<str>, Arc<str>)> {
    let mut headers = Vec::new();
    let fields = element
        .extensions
        .iter()
        .filter(|found| found.tag == "field" && VENDORS.contains(&found.namespace));
    for field in fields {
        let name = field.attribute("name").unwrap_or_default();
        match text(field) {
            Some(text) => headers.push((name.into(), text.into())),
            None => reader.warn_at(
                field.position,
                "extension-ignored",
                &format!("the field `{name}` is an expression, and is not evaluated"),
                "give the value as a variable, by an input mapping",
            ),
        }
    }
    headers
}

fn text(field: &Extension) -> Option<String> {
    if field.attribute("expression").is_some() || field.children_named("expression").next().is_some() {
        return None;
    }
    let nested = field
        .children_named("string")
        .next()
        .map(|string| string.text.trim());
    field.attribute("stringValue").or(nested).map(str::to_owned)
}
