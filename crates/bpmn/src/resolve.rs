//! References: QNames to plain ids, and whether they name what they should.

use tidegate_model::diagnostic::{Diagnostic, Severity};
use tidegate_model::document::{Document, NodeId};

use crate::report::{Report, shorten};
use crate::rule::{self, Dangling, Place, Rule};
use crate::tree::{self, Built, Reference};

/// Replaces every reference by the plain id it stands for and reports those that name nothing, or an
/// element of the wrong kind.
pub fn resolve(built: &mut Built<'_>, report: &mut Report) {
    let references = std::mem::take(&mut built.references);
    let mut elsewhere = Vec::with_capacity(references.len());
    for reference in &references {
        let written = value(&built.document, reference);
        let plain = plain(built, reference, written);
        elsewhere.push(plain.err());
        if let Ok(id) = plain
            && id.len() != written.len()
        {
            *value_mut(&mut built.document, reference) = id.to_owned();
        }
    }
    // Only now, because a check may look at other references of the document.
    for (reference, elsewhere) in references.iter().zip(elsewhere) {
        if let Some(diagnostic) = check(&built.document, reference, elsewhere) {
            let id = tree::nearest_id(&built.document, reference.holder);
            let place = tree::place(&built.document, reference);
            report.push(diagnostic.element(id).at(place));
        }
    }
    mandatory(&built.document, report);
}

fn value<'d>(document: &'d Document, reference: &Reference<'_>) -> &'d str {
    let holder = document.get(reference.holder);
    match reference.attribute {
        Some(index) => &holder.attributes[index].value,
        None => &holder.text,
    }
}

fn value_mut<'d>(document: &'d mut Document, reference: &Reference<'_>) -> &'d mut String {
    let holder = &mut document.elements[reference.holder.0 as usize];
    match reference.attribute {
        Some(index) => &mut holder.attributes[index].value,
        None => &mut holder.text,
    }
}

/// The plain id that a value stands for, or the namespace of another file.
fn plain<'v, 'x>(built: &Built<'x>, reference: &Reference<'x>, value: &'v str) -> Result<&'v str, &'x str> {
    let known = |id: &str| built.document.ids.contains_key(id);
    let Some((_, local)) = tree::split(value).filter(|_| !known(value)) else {
        return Ok(value);
    };
    match reference.namespace {
        Some(namespace) if Some(namespace) == built.target_namespace => Ok(local),
        // Processes are called by their ids, whichever file they came from.
        Some(_) if reference.rule.dangling == Dangling::Elsewhere => Ok(local),
        Some(namespace) if known(local) && !built.imports.contains(namespace) => Ok(local),
        Some(namespace) => Err(namespace),
        None if known(local) => Ok(local),
        None => Ok(value),
    }
}

fn check(document: &Document, reference: &Reference<'_>, elsewhere: Option<&str>) -> Option<Diagnostic> {
    let rule = reference.rule;
    let what = rule.name;
    if let Some(namespace) = elsewhere {
        return finding(
            rule,
            "external-reference",
            format!("{what} refers to the namespace {namespace}"),
        )
        .map(|d| d.hint("other files are not read: put what it refers to into this file"));
    }
    if rule.dangling == Dangling::Elsewhere {
        return None;
    }
    let name = value(document, reference);
    if name.is_empty() {
        if rule.place == Place::Attribute
            && rule::mandatory(&document.get(reference.holder).tag).contains(&what)
        {
            // Reported as missing.
            return None;
        }
        return finding(rule, "dangling-reference", format!("{what} is empty"))
            .map(|d| d.hint(format!("remove it, or name {}", rule.kinds.name)));
    }
    let Some(target) = document.by_id(name) else {
        return finding(
            rule,
            "dangling-reference",
            format!("{what} refers to {}, which is not there", shorten(name)),
        )
        .map(|d| {
            d.hint(format!(
                "give {} this id, or correct the reference",
                rule.kinds.name
            ))
        });
    };
    let element = document.get(target);
    if !rule.kinds.allow(&element.tag) {
        return Some(
            Diagnostic::error(
                "wrong-reference-kind",
                format!(
                    "{what} refers to {}, the {} at line {}, column {}",
                    shorten(name),
                    shorten(&element.tag),
                    element.position.line,
                    element.position.column
                ),
            )
            .hint(format!("it must name {}", rule.kinds.name)),
        );
    }
    disagreement(document, reference, target)
}

fn finding(rule: &Rule, code: &str, message: String) -> Option<Diagnostic> {
    let severity = match rule.dangling {
        Dangling::Refused => Severity::Error,
        Dangling::Tolerated => Severity::Warning,
        Dangling::Elsewhere => return None,
    };
    Some(match severity {
        Severity::Error => Diagnostic::error(code, message),
        Severity::Warning => Diagnostic::warning(code, message),
    })
}

/// `incoming` and `outgoing` repeat what the sequence flows say. Where they say otherwise, the flows count.
fn disagreement(document: &Document, reference: &Reference<'_>, flow: NodeId) -> Option<Diagnostic> {
    let end = match (reference.rule.place, reference.rule.name) {
        (Place::Text, "incoming") => "targetRef",
        (Place::Text, "outgoing") => "sourceRef",
        _ => return None,
    };
    let node = document.get(document.get(reference.holder).parent?);
    let flow = document.get(flow);
    let says = flow.attribute(end)?;
    if !rule::is_flow_node(&node.tag) || node.id() == Some(says) {
        return None;
    }
    let (name, id) = (reference.rule.name, shorten(flow.id().unwrap_or_default()));
    let says = shorten(says);
    Some(
        Diagnostic::warning(
            "flow-mismatch",
            format!(
                "{name} names {id}, but the {end} of that sequence flow is {says}; the sequence flow counts"
            ),
        )
        .hint(format!("remove this {name}, or correct the sequence flow")),
    )
}

fn mandatory(document: &Document, report: &mut Report) {
    for (index, element) in document.elements.iter().enumerate() {
        for name in rule::mandatory(&element.tag) {
            if element.attribute(name).is_none_or(str::is_empty) {
                report.push(
                    Diagnostic::error("missing-reference", format!("the {} has no {name}", element.tag))
                        .hint("connect it in the modeler, or remove it")
                        .element(tree::nearest_id(document, NodeId(index as u32)))
                        .at(element.attribute_position(name)),
                );
            }
        }
    }
}
