//! Input and output mappings of activities and events.

use std::collections::BTreeMap;
use std::sync::Arc;

use tidegate_model::document::{Extension, Namespace};
use tidegate_model::{ElementInstanceKey, Json, Variables};

use crate::compile::{Reader, VENDORS};
use crate::decide::Turn;
use crate::text::{Failure, Text};
use crate::visible::Visible;

/// The mappings of one element.
#[derive(Debug, Default)]
pub(crate) struct Mapping {
    pub(crate) inputs: Vec<Entry>,
    pub(crate) outputs: Vec<Entry>,
}

/// One mapping: an expression or fixed text, and the variable it is written to.
#[derive(Debug)]
pub(crate) struct Entry {
    target: Arc<str>,
    source: Text,
}

/// Reads `zeebe:ioMapping` or the `inputOutput` of the Java engines.
pub(crate) fn read(reader: &mut Reader<'_>) -> Option<Box<Mapping>> {
    let mut mapping = Mapping::default();
    if let Some(io) = reader.element.extension(&Namespace::Zeebe, "ioMapping") {
        for entry in &io.children {
            let kept = match entry.tag.as_str() {
                "input" => &mut mapping.inputs,
                "output" => &mut mapping.outputs,
                _ => continue,
            };
            let source = entry.attribute("source").unwrap_or_default();
            kept.extend(read_entry(reader, entry, entry.attribute("target"), source));
        }
    }
    let vendor = VENDORS
        .iter()
        .find_map(|vendor| reader.element.extension(vendor, "inputOutput"));
    for entry in vendor.iter().flat_map(|io| &io.children) {
        let kept = match entry.tag.as_str() {
            "inputParameter" => &mut mapping.inputs,
            "outputParameter" => &mut mapping.outputs,
            _ => continue,
        };
        if let Some(nested) = entry.children.first() {
            let _: Option<()> = reader.refuse_at(
                nested.position,
                "element-not-supported",
                &format!("a `{}` inside a parameter is not supported", nested.tag),
                "write the parameter as a text or an expression",
            );
            continue;
        }
        kept.extend(read_entry(reader, entry, entry.attribute("name"), &entry.text));
    }
    let empty = mapping.inputs.is_empty() && mapping.outputs.is_empty();
    (!empty).then(|| Box::new(mapping))
}

fn read_entry(
    reader: &mut Reader<'_>,
    entry: &Extension,
    target: Option<&str>,
    source: &str,
) -> Option<Entry> {
    match target
        .map(str::trim)
        .filter(|target| !target.is_empty() && target.split('.').all(|part| !part.is_empty()))
    {
        Some(target) => {
            let source = reader.text(source, entry.position)?;
            Some(Entry {
                target: target.into(),
                source,
            })
        }
        None => reader.refuse_at(
            entry.position,
            "mapping-target-missing",
            "the mapping does not say which variable it writes",
            "name the target variable",
        ),
    }
}

/// The local variables of an element instance that begins.
pub(crate) fn inputs(
    mapping: &Mapping,
    turn: &Turn<'_>,
    key: ElementInstanceKey,
) -> Result<Variables, Box<Failure>> {
    let mut made = Variables::new();
    for entry in &mapping.inputs {
        let scope = turn.visible(key, Some(&made));
        let value = value(entry, "the input", &scope)?;
        write(&mut made, &entry.target, value, |_| None);
    }
    Ok(made)
}

/// What an element that has done its work writes, by scope: where the variable is, from its parent outward, else the
/// instance.
pub(crate) fn outputs(
    mapping: &Mapping,
    turn: &Turn<'_>,
    key: ElementInstanceKey,
    parent: ElementInstanceKey,
    results: Option<&Variables>,
) -> Result<BTreeMap<ElementInstanceKey, Variables>, Box<Failure>> {
    let mut written: BTreeMap<ElementInstanceKey, Variables> = BTreeMap::new();
    let mut front = results.cloned().unwrap_or_default();
    for entry in &mapping.outputs {
        let value = value(entry, "the output", &turn.visible(key, Some(&front)))?;
        let root = entry.target.split('.').next().unwrap_or_default();
        let home = turn.instance.home_of(parent, root);
        let outer = turn.visible(parent, None);
        let target = written.entry(home).or_default();
        write(target, &entry.target, value, |name| outer.json(name).cloned());
        if let Some(now) = target.get(root) {
            front.set(root, now.clone());
        }
    }
    Ok(written)
}

/// Variables by the scope they belong to: where one of the name is, from `from` outward, else the instance.
pub(crate) fn by_home(
    turn: &Turn<'_>,
    from: ElementInstanceKey,
    variables: Variables,
) -> BTreeMap<ElementInstanceKey, Variables> {
    let mut written: BTreeMap<ElementInstanceKey, Variables> = BTreeMap::new();
    for (name, value) in variables {
        let home = turn.instance.home_of(from, &name);
        written.entry(home).or_default().set(name, value);
    }
    written
}

fn value(entry: &Entry, what: &str, scope: &Visible<'_>) -> Result<Json, Box<Failure>> {
    match &entry.source {
        Text::Literal(text) => Ok(Json::of(&**text)),
        Text::Computed(computed) => {
            let value = computed.evaluate(&format!("{what} mapping of `{}`", entry.target), scope)?;
            Ok(Json::trusted(value.to_json()))
        }
    }
}

/// Writes one value. A target with dots reaches into an object, which keeps its other members.
fn write(variables: &mut Variables, target: &str, value: Json, outer: impl Fn(&str) -> Option<Json>) {
    let Some((root, path)) = target.split_once('.') else {
        return variables.set(target, value);
    };
    let existing = variables.get(root).cloned().or_else(|| outer(root));
    let mut whole = existing.map(|json| json.to_value()).unwrap_or_default();
    let mut here = &mut whole;
    for name in path.split('.') {
        if !here.is_object() {
            *here = serde_json::Value::Object(serde_json::Map::new());
        }
        here = &mut here[name];
    }
    *here = value.to_value();
    variables.set(root, Json::of(&whole));
}
