//! Runs the compatibility cases of DMN: models, inputs and expected results that others wrote.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use roxmltree::{Document, Node, ParsingOptions};
use tidegate_dmn::{Decisions, parse_all};
use tidegate_expression::{Context, Decimal, Limits, Value};

/// Where the cases lie: outside of the repository.
pub const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/conformance/dmn-tck");

/// The levels, and the folder of each.
pub const LEVELS: [(u8, &str); 2] = [(2, "compliance-level-2"), (3, "compliance-level-3")];

/// What became of the cases of one level.
#[derive(Default)]
pub struct Level {
    pub passed: usize,
    pub run: usize,
    /// Cases that failed, with the reason.
    pub failures: Vec<String>,
    /// Cases that failed, by the folder they stand in.
    pub folders: BTreeMap<String, usize>,
}

/// Runs all cases below a folder.
pub fn run(level: &Path) -> Level {
    let mut out = Level::default();
    for folder in sorted(level).into_iter().filter(|path| path.is_dir()) {
        let name = folder
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        for file in sorted(&folder)
            .into_iter()
            .filter(|path| has_extension(path, "xml"))
        {
            run_file(&folder, &name, &file, &mut out);
        }
    }
    out
}

fn sorted(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

fn has_extension(path: &Path, wanted: &str) -> bool {
    path.extension().is_some_and(|extension| extension == wanted)
}

fn run_file(folder: &Path, name: &str, file: &Path, out: &mut Level) {
    let text = std::fs::read_to_string(file).unwrap();
    let options = ParsingOptions {
        allow_dtd: true,
        ..ParsingOptions::default()
    };
    let document = Document::parse_with_options(&text, options).unwrap();
    let root = document.root_element();
    let cases: Vec<Node<'_, '_>> = root
        .children()
        .filter(|node| node.has_tag_name_any("testCase"))
        .collect();
    if cases.is_empty() {
        return;
    }
    let model = child(root, "modelName").map(content).unwrap_or_default();
    let (decisions, notes) = load(folder, model.trim());
    for case in cases {
        out.run += 1;
        let id = case.attribute("id").unwrap_or_default();
        let reasons = match &decisions {
            Some(decisions) => run_case(decisions, case),
            None => vec!["the model cannot be read".to_owned()],
        };
        if reasons.is_empty() {
            out.passed += 1;
            continue;
        }
        *out.folders.entry(name.to_owned()).or_default() += 1;
        out.failures
            .push(format!("{name} {id}: {}{notes}", reasons.join("; ")));
    }
}

fn load(folder: &Path, model: &str) -> (Option<Decisions>, String) {
    let Ok(main) = std::fs::read(folder.join(model)) else {
        return (None, format!(" (there is no {model})"));
    };
    let mut files = vec![(model.to_owned(), main)];
    if String::from_utf8_lossy(&files[0].1).contains("<import") {
        for path in sorted(folder)
            .into_iter()
            .filter(|path| has_extension(path, "dmn"))
        {
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            if name != model {
                files.push((name, std::fs::read(&path).unwrap()));
            }
        }
    }
    let files: Vec<(&str, &[u8])> = files
        .iter()
        .map(|(name, bytes)| (name.as_str(), bytes.as_slice()))
        .collect();
    let (decisions, diagnostics) = parse_all(&files);
    let errors: Vec<String> = diagnostics
        .iter()
        .filter(|diagnostic| diagnostic.is_error())
        .map(ToString::to_string)
        .collect();
    let notes = if errors.is_empty() {
        String::new()
    } else {
        format!(" ({})", errors.join(" | "))
    };
    (decisions, notes)
}

/// Why a case fails; empty if it passes.
fn run_case(decisions: &Decisions, case: Node<'_, '_>) -> Vec<String> {
    let inputs = case.children().filter(|node| node.has_tag_name_any("inputNode"));
    let scope: Context = inputs
        .map(|node| (node.attribute("name").unwrap_or_default().into(), read(node)))
        .collect();
    let service = match case.attribute("type") {
        Some("decisionService") => Some(case.attribute("invocableName").unwrap_or_default()),
        _ => None,
    };
    let mut reasons = Vec::new();
    for result in case.children().filter(|node| node.has_tag_name_any("resultNode")) {
        let name = result.attribute("name").unwrap_or_default();
        let expected = child(result, "expected").map_or(Value::Null, read);
        let may_fail = result.attribute("errorResult") == Some("true");
        let evaluated = match service {
            Some(service) => decisions
                .evaluate_service(service, &scope, &Limits::default())
                .map(|evaluated| {
                    let several = decisions.services().any(|known| {
                        known.name == service && known.outputs.len() > 1 && known.outputs.contains(&name)
                    });
                    let part = evaluated
                        .value
                        .as_context()
                        .filter(|_| several)
                        .and_then(|context| context.get(name));
                    part.cloned().unwrap_or(evaluated.value)
                }),
            None => decisions
                .evaluate(name, &scope, &Limits::default())
                .map(|evaluated| evaluated.value),
        };
        match evaluated {
            Ok(actual) if agree(&expected, &actual) => {}
            Ok(actual) => reasons.push(format!("{name}: expected {expected}, got {actual}")),
            Err(_) if may_fail => {}
            Err(error) => reasons.push(format!("{name}: expected {expected}, {error}")),
        }
    }
    reasons
}

/// Tag names without regard to the namespace: the cases use those of several editions.
trait Tagged {
    fn has_tag_name_any(&self, name: &str) -> bool;
}

impl Tagged for Node<'_, '_> {
    fn has_tag_name_any(&self, name: &str) -> bool {
        self.is_element() && self.tag_name().name() == name
    }
}

fn child<'a, 'i>(node: Node<'a, 'i>, name: &str) -> Option<Node<'a, 'i>> {
    node.children().find(|child| child.has_tag_name_any(name))
}

fn content(node: Node<'_, '_>) -> String {
    node.descendants()
        .filter(|node| node.is_text())
        .filter_map(|node| node.text())
        .collect()
}

const XSI: &str = "http://www.w3.org/2001/XMLSchema-instance";

/// The value of a node that holds `value`, `list` or `component` elements.
fn read(node: Node<'_, '_>) -> Value {
    let components: Vec<Node<'_, '_>> = node
        .children()
        .filter(|child| child.has_tag_name_any("component"))
        .collect();
    if !components.is_empty() {
        let entry =
            |part: &Node<'_, '_>| (part.attribute("name").unwrap_or_default().to_owned(), read(*part));
        return Value::context(components.iter().map(entry));
    }
    if let Some(list) = child(node, "list") {
        return Value::list(
            list.children()
                .filter(|item| item.has_tag_name_any("item"))
                .map(read)
                .collect(),
        );
    }
    child(node, "value").map_or(Value::Null, simple)
}

fn simple(node: Node<'_, '_>) -> Value {
    if node.attribute((XSI, "nil")) == Some("true") {
        return Value::Null;
    }
    let text = content(node);
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
        "date" | "time" | "dateTime" | "duration" => Value::from_temporal(text.trim()).unwrap_or(Value::Null),
        other => panic!("unknown type {other}"),
    }
}

/// Whether a result is the expected one; numbers may differ far behind the point.
fn agree(expected: &Value, actual: &Value) -> bool {
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
