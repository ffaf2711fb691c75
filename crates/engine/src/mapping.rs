//! Input and output mappings of activities and events.

use std::collections::BTreeMap;
use std::sync::Arc;

use tidegate_model::document::{Extension, Namespace, NodeId};
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
    /// What data output associations copy, besides the results as such.
    pub(crate) associated: Vec<Entry>,
}

/// One mapping: an expression or fixed text, and the variable it is written to.
#[derive(Debug)]
pub(crate) struct Entry {
    target: Arc<str>,
    source: Source,
}

#[derive(Debug)]
enum Source {
    Text(Text),
    /// Another variable, where there is one.
    Copy(Arc<str>),
}

/// Reads `zeebe:ioMapping`, the `inputOutput` of the Java engines, and the data associations of the standard.
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
    associations(reader, &mut mapping);
    let empty = mapping.inputs.is_empty() && mapping.outputs.is_empty() && mapping.associated.is_empty();
    (!empty).then(|| Box::new(mapping))
}

/// Reads the data associations: from a data object, property or store to an input, from an output to one of them.
fn associations(reader: &mut Reader<'_>, mapping: &mut Mapping) {
    let document = reader.document;
    for (node, element) in document.children(reader.node) {
        let kept = match element.tag.as_str() {
            "dataInputAssociation" => &mut mapping.inputs,
            "dataOutputAssociation" => &mut mapping.associated,
            _ => continue,
        };
        kept.extend(association(reader, node));
    }
}

fn association(reader: &mut Reader<'_>, node: NodeId) -> Vec<Entry> {
    let document = reader.document;
    let child = |tag: &str| document.child(node, tag).map(|(_, child)| child);
    let given = |tag: &str| {
        child(tag)
            .map(|child| child.text.trim())
            .filter(|text| !text.is_empty())
    };
    let mut entries = Vec::new();
    for (assignment, element) in document
        .children(node)
        .filter(|(_, child)| child.tag == "assignment")
    {
        let part = |tag: &str| {
            document
                .child(assignment, tag)
                .map_or("", |(_, part)| part.text.trim())
        };
        let Some(target) = assigned(reader, part("to")) else {
            let _: Option<()> = reader.refuse_at(
                element.position,
                "assignment-target-invalid",
                &format!("`{}` is not a variable that can be assigned to", part("to")),
                "write the name of a variable, with dots to reach into it",
            );
            continue;
        };
        if let Some(source) = reader.expression(part("from"), None, element.position) {
            let source = Source::Text(Text::Computed(source));
            entries.push(Entry {
                target: target.into(),
                source,
            });
        }
    }
    let Some(target) = given("targetRef").map(|target| reader.data_name(target)) else {
        return entries;
    };
    let source = match (given("transformation"), given("sourceRef")) {
        _ if !entries.is_empty() => None,
        (Some(text), _) => {
            let (language, position) = child("transformation")
                .map(|element| (element.attribute("language"), element.position))
                .unwrap_or_default();
            reader
                .expression(text, language, position)
                .map(|source| Source::Text(Text::Computed(source)))
        }
        (None, Some(source)) => Some(reader.data_name(source))
            .filter(|source| *source != target)
            .map(|source| Source::Copy(source.into())),
        (None, None) => None,
    };
    entries.extend(source.map(|source| Entry {
        target: target.into(),
        source,
    }));
    entries
}

/// The variable that the `to` of an assignment means: a name or path, marked as an expression or not, an id, or one
/// of the standard's functions such as `getDataObject('x')`.
fn assigned(reader: &Reader<'_>, text: &str) -> Option<String> {
    let bare = text.trim_start_matches('=').trim();
    let bare = bare
        .strip_prefix("${")
        .and_then(|rest| rest.strip_suffix('}'))
        .unwrap_or(bare)
        .trim();
    let quoted = bare
        .split_once("('")
        .and_then(|(_, rest)| Some(rest.split_once("')")?.0));
    let name = quoted.unwrap_or(bare);
    let (root, path) = name
        .split_once('.')
        .map_or((name, None), |(root, path)| (root, Some(path)));
    let is_part =
        |part: &str| !part.is_empty() && part.chars().all(|c| c.is_alphanumeric() || "_- ".contains(c));
    if !name.split('.').all(is_part) {
        return None;
    }
    let root = reader.data_name(root);
    Some(match path {
        Some(path) => format!("{root}.{path}"),
        None => root,
    })
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
                source: Source::Text(source),
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
        let Some(value) = value(entry, "the input", &scope)? else {
            continue;
        };
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
    outgoing(&mapping.outputs, turn, key, parent, results)
}

/// What the data output associations of an element write, by scope.
pub(crate) fn associated(
    mapping: &Mapping,
    turn: &Turn<'_>,
    key: ElementInstanceKey,
    parent: ElementInstanceKey,
    results: Option<&Variables>,
) -> Result<BTreeMap<ElementInstanceKey, Variables>, Box<Failure>> {
    outgoing(&mapping.associated, turn, key, parent, results)
}

fn outgoing(
    entries: &[Entry],
    turn: &Turn<'_>,
    key: ElementInstanceKey,
    parent: ElementInstanceKey,
    results: Option<&Variables>,
) -> Result<BTreeMap<ElementInstanceKey, Variables>, Box<Failure>> {
    let mut written: BTreeMap<ElementInstanceKey, Variables> = BTreeMap::new();
    let mut front = results.cloned().unwrap_or_default();
    for entry in entries {
        let Some(value) = value(entry, "the output", &turn.visible(key, Some(&front)))? else {
            continue;
        };
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

/// The value to write; none where there is nothing to copy.
fn value(entry: &Entry, what: &str, scope: &Visible<'_>) -> Result<Option<Json>, Box<Failure>> {
    match &entry.source {
        Source::Text(Text::Literal(text)) => Ok(Some(Json::of(&**text))),
        Source::Text(Text::Computed(computed)) => {
            let value = computed.evaluate(&format!("{what} mapping of `{}`", entry.target), scope)?;
            Ok(Some(Json::trusted(value.to_json())))
        }
        Source::Copy(name) => Ok(scope.json(name).cloned()),
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
