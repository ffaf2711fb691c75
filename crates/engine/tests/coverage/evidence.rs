//! Where names stand: the start tags in fixtures and in the texts of tests.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// How many files the page names for one row.
const NAMED: usize = 2;

/// Where tests and fixtures are, those that show most first.
const PLACES: &[&str] = &[
    "crates/engine/tests/fixtures",
    "crates/engine/tests",
    "crates/runtime/tests",
    "crates/bpmn/tests",
    "examples",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The start tags of every file.
pub struct Evidence(Vec<(String, Vec<Tag>)>);

struct Tag {
    name: String,
    attributes: String,
}

impl Evidence {
    pub fn gather() -> Self {
        let mut files: Vec<PathBuf> = Vec::new();
        for place in PLACES {
            let mut found = Vec::new();
            walk(&root().join(place), &mut found);
            found.sort();
            found.retain(|file| !files.contains(file));
            files.extend(found);
        }
        let read = |file: PathBuf| {
            let text = std::fs::read_to_string(&file).unwrap_or_default();
            let shown = file.strip_prefix(root()).unwrap_or(&file).display().to_string();
            (shown, tags(&text))
        };
        Self(files.into_iter().map(read).collect())
    }

    /// The first files in which an element, or an attribute of it, stands.
    pub fn of(&self, element: &str, attribute: Option<&str>) -> Vec<String> {
        let in_file = |(_, tags): &&(String, Vec<Tag>)| {
            tags.iter().any(|tag| {
                let is_meant = tag.name == element;
                is_meant && attribute.is_none_or(|name| has(&tag.attributes, name))
            })
        };
        let found = self.0.iter().filter(in_file).take(NAMED);
        found.map(|(file, _)| format!("`{file}`")).collect()
    }
}

/// True if an attribute of this name stands there. Rust's text may hold the quotes behind a backslash.
fn has(attributes: &str, name: &str) -> bool {
    attributes
        .split([' ', '\n', '\t'])
        .any(|word| word.split_once('=').is_some_and(|(key, _)| key == name))
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_own = path.ends_with("engine/tests/coverage") || path.ends_with("engine/tests/coverage.rs");
        if path.is_dir() && !is_own {
            walk(&path, found);
        } else if path
            .extension()
            .is_some_and(|kind| kind == "rs" || kind == "bpmn")
            && !is_own
        {
            found.push(path);
        }
    }
}

/// The start tags in a text, without the prefix of BPMN's own namespace.
fn tags(text: &str) -> Vec<Tag> {
    let mut tags = Vec::new();
    for part in text.split('<').skip(1) {
        let inside = part.split('>').next().unwrap_or_default();
        let end = inside
            .find(|c: char| !(c.is_alphanumeric() || c == ':'))
            .unwrap_or(inside.len());
        let name = &inside[..end];
        let own = ["bpmn:", "bpmn2:", "semantic:", "b:"];
        let local = own
            .iter()
            .find_map(|prefix| name.strip_prefix(prefix))
            .unwrap_or(name);
        if !local.is_empty() {
            tags.push(Tag {
                name: local.to_owned(),
                attributes: inside[end..].to_owned(),
            });
        }
    }
    tags
}

/// Every word in quotation marks in the source of the reader and of the engine.
pub fn engine_names() -> BTreeSet<String> {
    let mut files = Vec::new();
    for folder in ["crates/engine/src", "crates/bpmn/src"] {
        walk(&root().join(folder), &mut files);
    }
    let texts = files.iter().filter_map(|file| std::fs::read_to_string(file).ok());
    texts
        .flat_map(|text| text.split('"').map(str::to_owned).collect::<Vec<_>>())
        .filter(|word| !word.is_empty() && word.chars().all(char::is_alphanumeric))
        .collect()
}
