//! Just enough of a DMN model to run its expressions: decisions, business knowledge and boxed expressions, which become
//! FEEL texts.

use std::cell::RefCell;
use std::collections::BTreeMap;

use roxmltree::Node;
use tidegate_expression::{Context, Expression, Limits, Value};

use crate::Tagged;

/// What became of a decision.
#[derive(Clone)]
pub enum Verdict {
    Value(Value),
    Error(String),
    Outside,
}

struct Element {
    name: String,
    requires: Vec<String>,
    kind: Kind,
    /// The expression as FEEL; `None` where this crate has no part in it.
    text: Option<String>,
    result: Option<String>,
}

#[derive(PartialEq)]
enum Kind {
    Input,
    Decision,
    Knowledge,
}

pub struct Model {
    elements: BTreeMap<String, Element>,
    names: Vec<String>,
}

pub fn child<'a, 'i>(node: Node<'a, 'i>, name: &str) -> Option<Node<'a, 'i>> {
    node.children().find(|child| child.has_tag_name_any(name))
}

pub fn child_text(node: Node<'_, '_>, name: &str) -> Option<String> {
    let found = child(node, name)?;
    Some(
        found
            .descendants()
            .filter(|node| node.is_text())
            .filter_map(|node| node.text())
            .collect(),
    )
}

const EXPRESSIONS: &[&str] = &[
    "literalExpression",
    "context",
    "invocation",
    "list",
    "relation",
    "functionDefinition",
    "decisionTable",
    "conditional",
    "filter",
    "for",
    "some",
    "every",
];

fn expression_of<'a, 'i>(node: Node<'a, 'i>) -> Option<Node<'a, 'i>> {
    node.children()
        .find(|child| EXPRESSIONS.iter().any(|name| child.has_tag_name_any(name)))
}

impl Model {
    pub fn read(source: &str) -> Model {
        let options = roxmltree::ParsingOptions {
            allow_dtd: true,
            ..Default::default()
        };
        let document = roxmltree::Document::parse_with_options(source, options).unwrap();
        let mut elements = BTreeMap::new();
        let mut names = Vec::new();
        let foreign = document.descendants().any(|node| node.has_tag_name_any("import"));
        for node in document.descendants().filter(|node| node.is_element()) {
            names.extend(
                node.attribute("name")
                    .filter(|name| name.contains(|c: char| !c.is_alphanumeric() && c != '_'))
                    .map(String::from),
            );
            let kind = match node.tag_name().name() {
                "inputData" => Kind::Input,
                "decision" => Kind::Decision,
                "businessKnowledgeModel" => Kind::Knowledge,
                _ => continue,
            };
            let (Some(id), Some(name)) = (
                node.attribute("id").or(node.attribute("name")),
                node.attribute("name"),
            ) else {
                continue;
            };
            let required = node.descendants().filter(|inner| {
                inner.has_tag_name_any_of(&["requiredInput", "requiredDecision", "requiredKnowledge"])
            });
            let requires = required
                .filter_map(|inner| inner.attribute("href"))
                .map(|href| href.rsplit('#').next().unwrap_or(href).to_owned());
            let requires: Vec<String> = requires.collect();
            let text = match kind {
                _ if foreign => None,
                Kind::Knowledge => child(node, "encapsulatedLogic").and_then(function),
                _ => expression_of(node).map_or(Some("null".into()), boxed),
            };
            let result = child(node, "variable")
                .and_then(|variable| variable.attribute("typeRef"))
                .map(String::from);
            elements.insert(
                id.to_owned(),
                Element {
                    name: name.to_owned(),
                    requires,
                    kind,
                    text,
                    result,
                },
            );
        }
        Model { elements, names }
    }

    pub fn decision(&self, name: &str, inputs: &BTreeMap<String, Value>) -> Verdict {
        let found = self
            .elements
            .iter()
            .find(|(_, element)| element.name == name && element.kind == Kind::Decision);
        match found {
            Some((id, _)) => self.value(id, inputs, &RefCell::default(), 0),
            None => Verdict::Outside,
        }
    }

    fn value(
        &self,
        id: &str,
        inputs: &BTreeMap<String, Value>,
        done: &RefCell<BTreeMap<String, Verdict>>,
        depth: usize,
    ) -> Verdict {
        let Some(element) = self.elements.get(id).filter(|_| depth < 30) else {
            return Verdict::Outside;
        };
        if element.kind == Kind::Input {
            return Verdict::Value(inputs.get(&element.name).cloned().unwrap_or(Value::Null));
        }
        if let Some(known) = done.borrow().get(id) {
            return known.clone();
        }
        let mut scope = Vec::new();
        for required in &element.requires {
            let name = self
                .elements
                .get(required)
                .map(|element| element.name.clone())
                .unwrap_or_default();
            match self.value(required, inputs, done, depth + 1) {
                Verdict::Value(value) => scope.push((name.into(), value)),
                Verdict::Error(_) => scope.push((name.into(), Value::Null)),
                Verdict::Outside => return Verdict::Outside,
            }
        }
        let verdict = self.evaluate(element, scope.into_iter().collect());
        done.borrow_mut().insert(id.to_owned(), verdict.clone());
        verdict
    }

    fn evaluate(&self, element: &Element, scope: Context) -> Verdict {
        let Some(text) = &element.text else {
            return Verdict::Outside;
        };
        let names: Vec<&str> = self.names.iter().map(String::as_str).collect();
        let value = match Expression::feel_with_names(text, &names) {
            Ok(expression) => expression
                .evaluate(&scope, &Limits::default())
                .map_err(|error| error.to_string()),
            Err(error) => Err(format!("{error} in {text}")),
        };
        match value {
            Ok(value) => Verdict::Value(conform(value, element.result.as_deref())),
            Err(message) => Verdict::Error(message),
        }
    }
}

/// A result that is not of the type that its decision declares is null; only FEEL's own types are looked at.
fn conform(value: Value, kind: Option<&str>) -> Value {
    let Some(kind @ ("string" | "number" | "boolean" | "date" | "time" | "dateTime" | "date and time")) =
        kind
    else {
        return value;
    };
    let kind = if kind == "dateTime" { "date and time" } else { kind };
    let text = format!("(function(x: {kind}) x)(value)");
    let scope: Context = [("value".into(), value)].into_iter().collect();
    Expression::feel(&text)
        .unwrap()
        .evaluate(&scope, &Limits::default())
        .unwrap()
}

fn inner(node: Node<'_, '_>, name: &str) -> Option<String> {
    child(node, name).and_then(expression_of).and_then(boxed)
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\""))
}

/// A boxed expression as FEEL.
fn boxed(node: Node<'_, '_>) -> Option<String> {
    Some(match node.tag_name().name() {
        "literalExpression" => {
            let text = child_text(node, "text").unwrap_or_default();
            if text.trim().is_empty() {
                "null".into()
            } else {
                format!("({text}\n)")
            }
        }
        "context" => context(node)?,
        "invocation" => {
            let function = boxed(expression_of(node)?)?;
            let mut arguments = Vec::new();
            for binding in node.children().filter(|child| child.has_tag_name_any("binding")) {
                let name = child(binding, "parameter")?.attribute("name")?.to_owned();
                let value = expression_of(binding).map_or(Some("null".into()), boxed)?;
                arguments.push(format!("{name}: {value}"));
            }
            let function = function
                .trim_start_matches('(')
                .trim_end_matches([')', '\n'])
                .trim()
                .to_owned();
            format!("{function}({})", arguments.join(", "))
        }
        "list" => {
            let items = node
                .children()
                .filter(|child| EXPRESSIONS.iter().any(|name| child.has_tag_name_any(name)));
            format!("[{}]", items.map(boxed).collect::<Option<Vec<_>>>()?.join(", "))
        }
        "relation" => relation(node)?,
        "functionDefinition" => function(node)?,
        "conditional" => format!(
            "(if {} then {} else {})",
            inner(node, "if")?,
            inner(node, "then")?,
            inner(node, "else")?
        ),
        "filter" => format!("({})[{}]", inner(node, "in")?, inner(node, "match")?),
        kind @ ("for" | "some" | "every") => {
            let name = node.attribute("iteratorVariable")?;
            let (verb, body) = if kind == "for" {
                ("return", "return")
            } else {
                ("satisfies", "satisfies")
            };
            format!(
                "({kind} {name} in {} {verb} {})",
                inner(node, "in")?,
                inner(node, body)?
            )
        }
        _ => return None,
    })
}

fn context(node: Node<'_, '_>) -> Option<String> {
    let mut entries = Vec::new();
    let mut result = false;
    for entry in node
        .children()
        .filter(|child| child.has_tag_name_any("contextEntry"))
    {
        let value = expression_of(entry).map_or(Some("null".into()), boxed)?;
        let name = child(entry, "variable").and_then(|variable| variable.attribute("name"));
        result |= name.is_none();
        entries.push(format!(
            "{}: {value}",
            quoted(name.unwrap_or("result of context"))
        ));
    }
    let text = format!("{{{}}}", entries.join(", "));
    Some(if result {
        format!("{text}.result of context")
    } else {
        text
    })
}

fn relation(node: Node<'_, '_>) -> Option<String> {
    let columns: Vec<&str> = node
        .children()
        .filter(|child| child.has_tag_name_any("column"))
        .filter_map(|child| child.attribute("name"))
        .collect();
    let mut rows = Vec::new();
    for row in node.children().filter(|child| child.has_tag_name_any("row")) {
        let cells = row
            .children()
            .filter(|child| EXPRESSIONS.iter().any(|name| child.has_tag_name_any(name)));
        let cells = cells.map(boxed).collect::<Option<Vec<_>>>()?;
        let pairs: Vec<String> = columns
            .iter()
            .zip(cells)
            .map(|(name, cell)| format!("{}: {cell}", quoted(name)))
            .collect();
        rows.push(format!("{{{}}}", pairs.join(", ")));
    }
    Some(format!("[{}]", rows.join(", ")))
}

fn function(node: Node<'_, '_>) -> Option<String> {
    if node.attribute("kind").is_some_and(|kind| kind != "FEEL") {
        return Some("(function() null)".into());
    }
    let parameters = node
        .children()
        .filter(|child| child.has_tag_name_any("formalParameter"));
    let parameters = parameters.filter_map(|parameter| {
        let name = parameter.attribute("name")?;
        let simple = ["string", "number", "boolean", "date", "time"];
        let kind = parameter
            .attribute("typeRef")
            .filter(|kind| simple.contains(kind));
        Some(kind.map_or(name.to_owned(), |kind| format!("{name}: {kind}")))
    });
    let parameters: Vec<String> = parameters.collect();
    let body = expression_of(node).map_or(Some("null".into()), boxed)?;
    Some(format!("(function({}) {body})", parameters.join(", ")))
}

trait TaggedAny {
    fn has_tag_name_any_of(&self, names: &[&str]) -> bool;
}

impl TaggedAny for Node<'_, '_> {
    fn has_tag_name_any_of(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.has_tag_name_any(name))
    }
}
