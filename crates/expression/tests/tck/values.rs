//! Values of the case files.

use roxmltree::Node;
use tidegate_expression::{Context, Decimal, Expression, Limits, Value};

use crate::Tagged;

const XSI: &str = "http://www.w3.org/2001/XMLSchema-instance";

/// The value of a node that holds `value`, `list` or `component` elements.
pub fn read(node: Node<'_, '_>) -> Value {
    let components: Vec<Node<'_, '_>> = node
        .children()
        .filter(|child| child.has_tag_name_any("component"))
        .collect();
    if !components.is_empty() {
        return Value::context(
            components
                .iter()
                .map(|part| (part.attribute("name").unwrap_or_default(), read(*part))),
        );
    }
    for child in node.children() {
        if child.has_tag_name_any("list") {
            return Value::list(
                child
                    .children()
                    .filter(|item| item.has_tag_name_any("item"))
                    .map(read)
                    .collect(),
            );
        }
        if child.has_tag_name_any("value") {
            return simple(child);
        }
    }
    Value::Null
}

fn simple(node: Node<'_, '_>) -> Value {
    if node.attribute((XSI, "nil")) == Some("true") {
        return Value::Null;
    }
    let text: String = node
        .descendants()
        .filter(|node| node.is_text())
        .filter_map(|node| node.text())
        .collect();
    let kind = node
        .attribute((XSI, "type"))
        .unwrap_or("xsd:string")
        .rsplit(':')
        .next()
        .unwrap_or_default();
    match kind {
        "string" | "anySimpleType" => Value::from(text),
        "boolean" => Value::Boolean(text.trim() == "true"),
        "decimal" | "double" | "integer" | "int" | "long" | "float" => {
            text.trim().parse().map_or(Value::Null, Value::Number)
        }
        "date" => convert("date(text)", text),
        "time" => convert("time(text)", text),
        "dateTime" => convert("date and time(text)", text),
        "duration" => convert("duration(text)", text),
        other => panic!("unknown type {other}"),
    }
}

fn convert(function: &str, text: String) -> Value {
    let scope: Context = [("text".into(), Value::from(text.trim()))].into_iter().collect();
    Expression::feel(function)
        .unwrap()
        .evaluate(&scope, &Limits::default())
        .unwrap()
}

/// Whether a result is the expected one; numbers may differ far behind the point.
pub fn agree(expected: &Value, actual: &Value) -> bool {
    match (expected, actual) {
        (Value::Number(a), Value::Number(b)) => {
            let tolerance: Decimal = "0.00000001".parse().unwrap();
            a.subtract(b).is_some_and(|distance| distance.abs() < tolerance)
        }
        (Value::List(a), Value::List(b)) => {
            a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| agree(a, b))
        }
        (Value::Context(a), Value::Context(b)) => {
            a.len() == b.len() && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| agree(a, b)))
        }
        (a, b) => a == b,
    }
}
