//! The compatibility cases of DMN, as far as they are about FEEL: decision tables, decision services and imports belong
//! to another crate and are counted apart. Boxed expressions are rewritten as FEEL texts, so they run here too.
//!
//! The data lies outside of the repository; without it the test says so and passes.

#[path = "tck/model.rs"]
mod model;
#[path = "tck/values.rs"]
mod values;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use model::{Model, Verdict};

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/conformance/dmn-tck");

/// Shares of supported cases that must pass, in per mille.
const WANTED: [(&str, usize); 2] = [("compliance-level-2", 1000), ("compliance-level-3", 980)];

#[derive(Default, Clone, Copy)]
struct Count {
    passed: usize,
    failed: usize,
    outside: usize,
}

#[test]
fn dmn_compatibility_cases() {
    if !Path::new(DATA).is_dir() {
        eprintln!("SKIPPED dmn_compatibility_cases: there is no {DATA}");
        return;
    }
    for (level, wanted) in WANTED {
        let mut total = Count::default();
        let mut by_folder = BTreeMap::new();
        for folder in folders(&Path::new(DATA).join(level)) {
            let name = folder
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            let count = run_folder(&folder, &name);
            total.passed += count.passed;
            total.failed += count.failed;
            total.outside += count.outside;
            by_folder.insert(name, count);
        }
        for (name, count) in by_folder.iter().filter(|(_, count)| count.failed > 0) {
            println!(
                "{name}: {} passed, {} failed, {} outside",
                count.passed, count.failed, count.outside
            );
        }
        let run = total.passed + total.failed;
        println!(
            "{level}: {} of {run} passed, {} outside of this crate",
            total.passed, total.outside
        );
        assert!(
            total.passed * 1000 >= run * wanted,
            "{level}: {} of {run} passed",
            total.passed
        );
    }
}

fn folders(level: &Path) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = std::fs::read_dir(level)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    folders.retain(|path| path.is_dir());
    folders.sort();
    folders
}

fn run_folder(folder: &Path, name: &str) -> Count {
    let mut count = Count::default();
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    for file in files
        .iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "xml"))
    {
        let text = std::fs::read_to_string(file).unwrap();
        let options = roxmltree::ParsingOptions {
            allow_dtd: true,
            ..Default::default()
        };
        let cases = roxmltree::Document::parse_with_options(&text, options).unwrap();
        let root = cases.root_element();
        let model_name = model::child_text(root, "modelName").unwrap_or_default();
        let Ok(source) = std::fs::read_to_string(folder.join(model_name.trim())) else {
            continue;
        };
        let model = Model::read(&source);
        for case in root.children().filter(|node| node.has_tag_name_any("testCase")) {
            run_case(&model, case, name, &mut count);
        }
    }
    count
}

fn run_case(model: &Model, case: roxmltree::Node<'_, '_>, folder: &str, count: &mut Count) {
    let inputs = case.children().filter(|node| node.has_tag_name_any("inputNode"));
    let inputs = inputs
        .map(|node| {
            (
                node.attribute("name").unwrap_or_default().to_owned(),
                values::read(node),
            )
        })
        .collect();
    let foreign = case.attribute("type").is_some_and(|kind| kind != "decision");
    for result in case.children().filter(|node| node.has_tag_name_any("resultNode")) {
        let name = result.attribute("name").unwrap_or_default();
        let Some(expected) = result.children().find(|node| node.has_tag_name_any("expected")) else {
            continue;
        };
        let expected = values::read(expected);
        let verdict = if foreign {
            Verdict::Outside
        } else {
            model.decision(name, &inputs)
        };
        let id = case.attribute("id").unwrap_or_default();
        match verdict {
            Verdict::Outside => count.outside += 1,
            Verdict::Value(actual) if values::agree(&expected, &actual) => count.passed += 1,
            Verdict::Value(actual) => {
                count.failed += 1;
                println!("  FAILED {folder} {id} {name}: expected {expected}, got {actual}");
            }
            Verdict::Error(message) => {
                let wanted = expected.is_null();
                *(if wanted {
                    &mut count.passed
                } else {
                    &mut count.failed
                }) += 1;
                if !wanted {
                    println!("  FAILED {folder} {id} {name}: expected {expected}, {message}");
                }
            }
        }
    }
}

/// Tag names without regard to the namespace: the cases use those of several editions.
trait Tagged {
    fn has_tag_name_any(&self, name: &str) -> bool;
}

impl Tagged for roxmltree::Node<'_, '_> {
    fn has_tag_name_any(&self, name: &str) -> bool {
        self.is_element() && self.tag_name().name() == name
    }
}
