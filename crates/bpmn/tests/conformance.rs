//! The public collections of BPMN files, right and wrong.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tidegate_bpmn::{Limits, Parsed, parse};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/conformance");

/// Refers to an element of another file that is of the wrong kind there. Other files are not read.
const OTHER_FILE: &str = "test-18";

/// A fixture for a reader of operations, whose process and tasks have no ids.
const WITHOUT_IDS: &str = "operation-ref-as-attribute.bpmn";

/// The folder, or nothing when it is absent and not required.
fn conformance(test: &str) -> Option<PathBuf> {
    let folder = PathBuf::from(FOLDER);
    if folder.is_dir() {
        return Some(folder);
    }
    assert_ne!(
        std::env::var("TIDEGATE_REQUIRE").as_deref(),
        Ok("1"),
        "{FOLDER} is absent"
    );
    eprintln!("SKIPPED {test}: ../shared/conformance is absent");
    None
}

fn models(folder: &Path) -> Vec<PathBuf> {
    let mut waiting = vec![folder.to_owned()];
    let mut found = Vec::new();
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                waiting.push(path);
            } else if path.extension().is_some_and(|e| e == "bpmn") {
                found.push(path);
            }
        }
    }
    found.sort();
    assert!(!found.is_empty(), "no models in {}", folder.display());
    found
}

fn read(path: &Path) -> Parsed {
    let bytes = fs::read(path).expect("a file");
    let began = Instant::now();
    let parsed = parse(&path.to_string_lossy(), &bytes, &Limits::default());
    // Far above what any of the files needs; a quadratic step would pass it.
    assert!(
        began.elapsed() < Duration::from_secs(60),
        "{} is slow",
        path.display()
    );
    for diagnostic in &parsed.diagnostics {
        assert!(diagnostic.hint.is_some(), "no cure: {diagnostic}");
    }
    parsed
}

fn list(parsed: &Parsed) -> String {
    parsed.diagnostics.iter().map(|d| format!("  {d}\n")).collect()
}

#[test]
fn models_that_are_right_are_read() {
    let Some(folder) = conformance("models_that_are_right_are_read") else {
        return;
    };
    let mut wrong = String::new();
    for part in ["miwg/Reference", "betsy/files", "engines"] {
        let files = models(&folder.join(part));
        let (mut clean, mut warned) = (0, 0);
        for path in &files {
            let parsed = read(path);
            if path.ends_with(WITHOUT_IDS) {
                assert!(
                    parsed.document.is_some() && parsed.diagnostics.iter().all(|d| d.code == "missing-id")
                );
            } else if parsed.document.is_none() || parsed.has_errors() {
                wrong += &format!("{}\n{}", path.display(), list(&parsed));
            } else if parsed.diagnostics.is_empty() {
                clean += 1;
            } else {
                warned += 1;
            }
        }
        eprintln!(
            "{part}: {} files, {clean} clean, {warned} with warnings",
            files.len()
        );
    }
    assert_eq!(wrong, "");
}

#[test]
fn hostile_files_get_their_verdict() {
    let Some(folder) = conformance("hostile_files_get_their_verdict") else {
        return;
    };
    // Rejected by what they mean, which is the engine's to find.
    const ENGINE: &[&str] = &[
        "r03", "r04", "r05", "r08", "r11", "r12", "r15", "r17", "r18", "r19", "r20", "r21", "r22", "r24",
    ];
    let manifest = fs::read(folder.join("invalid/manifest.json")).expect("the manifest");
    let manifest: Vec<serde_json::Value> = serde_json::from_slice(&manifest).expect("JSON");
    let mut wrong = String::new();
    let mut counts = BTreeMap::new();
    for entry in &manifest {
        let (Some(file), Some(verdict)) = (entry["file"].as_str(), entry["verdict"].as_str()) else {
            continue;
        };
        let parsed = read(&folder.join("invalid").join(file));
        let refused = parsed.has_errors();
        *counts.entry((verdict.to_owned(), refused)).or_insert(0) += 1;
        let name = file.rsplit('/').next().unwrap_or(file);
        let engine = ENGINE.iter().any(|prefix| name.starts_with(prefix));
        let right = match verdict {
            "reject" | "invalid" => refused != engine,
            _ if verdict.starts_with("accept") || verdict == "valid" => !refused,
            _ => true,
        };
        if !right && !name.starts_with(OTHER_FILE) {
            wrong += &format!(
                "{file} ({verdict}): {}\n{}",
                entry["constraint_text"],
                list(&parsed)
            );
        }
    }
    for ((verdict, refused), count) in counts {
        eprintln!("{verdict}: {count} {}", if refused { "refused" } else { "read" });
    }
    assert_eq!(wrong, "");
}

#[test]
fn violations_are_found_where_they_are() {
    let Some(folder) = conformance("violations_are_found_where_they_are") else {
        return;
    };
    let manifest = fs::read(folder.join("invalid/manifest.json")).expect("the manifest");
    let manifest: Vec<serde_json::Value> = serde_json::from_slice(&manifest).expect("JSON");
    let mut wrong = String::new();
    for entry in manifest.iter().filter(|entry| entry["set"] == "bpmnspector-ref") {
        let file = entry["file"].as_str().unwrap_or_default();
        if file.contains(OTHER_FILE) {
            continue;
        }
        let parsed = read(&folder.join("invalid").join(file));
        for violation in entry["expected_violations"].as_array().into_iter().flatten() {
            let line = violation["line"].as_u64().unwrap_or_default();
            let found = parsed
                .diagnostics
                .iter()
                .any(|d| u64::from(d.line) == line && d.code == "wrong-reference-kind");
            if !found {
                wrong += &format!("{file}: {violation}\n{}", list(&parsed));
            }
        }
    }
    assert_eq!(wrong, "");
}

#[test]
fn the_texts_of_readable_oddities_are_right() {
    let Some(folder) = conformance("the_texts_of_readable_oddities_are_right") else {
        return;
    };
    let table = [
        ("x22_latin1", "t", "café"),
        ("x23_windows1252", "t", "€ – „x“"),
        ("x32_entities_ok", "t", "<&€\""),
    ];
    for (file, id, name) in table {
        let parsed = read(&folder.join(format!("invalid/hostile/{file}.bpmn")));
        let document = parsed.document.expect("a document");
        let element = document.by_id(id).map(|id| document.get(id));
        assert_eq!(element.and_then(|e| e.name()), Some(name), "{file}");
    }
    let parsed = read(&folder.join("invalid/hostile/x33_cdata_condition.bpmn"));
    let document = parsed.document.expect("a document");
    let condition = document.elements.iter().find(|e| e.tag == "conditionExpression");
    assert_eq!(condition.map(|e| e.text.as_str()), Some("1 < 2"));
}
