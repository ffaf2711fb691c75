//! Every seed, and every input that once found something, goes through its target.
//!
//! `TIDEGATE_BLESS=1` writes the seeds of the targets whose input is not text.

use std::fs;
use std::path::{Path, PathBuf};

use tidegate_engine::encode_events;
use tidegate_fuzz::{model, target};

fn folder(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target)
}

fn bless() {
    for (number, events, state) in model::runs() {
        let seed = |bytes: Vec<u8>| [vec![number], bytes].concat();
        fs::write(
            folder("journal").join(format!("run-{number}")),
            seed(encode_events(&events)),
        )
        .unwrap();
        fs::write(
            folder("snapshot").join(format!("run-{number}")),
            seed(state.encode()),
        )
        .unwrap();
    }
}

/// Gives a target its folder, and more files of the repository where they fit.
fn replay(name: &str, more: &[&str]) {
    if std::env::var_os("TIDEGATE_BLESS").is_some() {
        bless();
    }
    let run = target::named(name).unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folders = more.iter().map(|more| root.join(more)).chain([folder(name)]);
    let mut count = 0;
    for folder in folders {
        for file in fs::read_dir(&folder).unwrap() {
            let path = file.unwrap().path();
            if path.is_file() {
                println!("{}", path.display());
                run(&fs::read(&path).unwrap());
                count += 1;
            }
        }
    }
    assert!(count > 0, "fuzz/corpus/{name} is empty");
    run(&[]);
}

#[test]
fn files_of_bpmn_are_read_or_refused() {
    replay("bpmn", &["crates/engine/tests/fixtures", "examples"]);
}

#[test]
fn files_of_dmn_are_read_or_refused() {
    replay("dmn", &["crates/dmn/tests/data"]);
}

#[test]
fn texts_of_feel_are_read_or_refused() {
    replay("feel", &[]);
}

#[test]
fn texts_of_the_unified_language_are_read_or_refused() {
    replay("juel", &[]);
}

#[test]
fn rows_of_a_journal_are_replayed_or_refused() {
    replay("journal", &[]);
}

#[test]
fn stored_states_are_read_or_refused() {
    replay("snapshot", &[]);
}

#[test]
fn bodies_of_requests_are_taken_or_refused() {
    replay("http", &[]);
}
