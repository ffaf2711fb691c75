//! The engine is a function: no clock, no I/O, no randomness, no async, neither in its source nor in its tree.

use std::path::{Path, PathBuf};
use std::process::Command;

const FORBIDDEN_WORDS: &[&str] = &[
    "SystemTime",
    "Instant::now",
    "Timestamp::now",
    "Zoned::now",
    "std::fs",
    "std::net",
    "std::env",
    "std::thread",
    "std::process",
    "async fn",
    ".await",
    "RandomState",
    "println!",
    "static mut",
    "Mutex",
];

const FORBIDDEN_CRATES: &[&str] = &[
    "tokio",
    "async-std",
    "smol",
    "futures",
    "mio",
    "rand",
    "getrandom",
    "rusqlite",
];

#[test]
fn the_source_reads_nothing_from_outside() {
    let mut open = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    let mut files: Vec<PathBuf> = Vec::new();
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path)
            } else {
                files.push(path)
            }
        }
    }
    assert!(files.len() > 30);
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        for word in FORBIDDEN_WORDS {
            assert!(!text.contains(word), "{} says {word}", file.display());
        }
    }
}

#[test]
fn the_tree_has_no_runtime() {
    let tree = Command::new(env!("CARGO"))
        .args([
            "tree",
            "--offline",
            "--package",
            "tidegate-engine",
            "--edges",
            "normal",
            "--prefix",
            "none",
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    let tree = String::from_utf8_lossy(&tree.stdout).into_owned();
    assert!(tree.contains("tidegate-model"));
    for line in tree.lines() {
        let name = line.split(' ').next().unwrap_or_default();
        assert!(!FORBIDDEN_CRATES.contains(&name), "the engine's tree has {name}");
    }
}
