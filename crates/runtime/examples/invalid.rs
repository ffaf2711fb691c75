//! Counts the files of the conformance set `invalid` that get their verdict. With `-v`, tells why the others do not,
//! and what each took.
//!
//! `cargo run -p tidegate --example invalid -- -v`

#[path = "../tests/invalid_harness/mod.rs"]
mod invalid_harness;
#[path = "../tests/support/mod.rs"]
mod support;

use std::process::Command;

fn main() {
    if invalid_harness::answer_as_child() {
        return;
    }
    let Some(folder) = invalid_harness::folder("invalid") else {
        return;
    };
    let verbose = std::env::args().any(|argument| argument == "-v");
    let this = std::env::current_exe().expect("the path of this program");
    let outcomes = invalid_harness::run(&folder, || Command::new(&this));
    for outcome in outcomes.iter().filter(|_| verbose) {
        let mib = outcome.peak_kib / 1024;
        match &outcome.failure {
            Some(reason) => println!("FAILED {}: {reason}", outcome.file),
            None => println!("passed {} {} ms {mib} MiB", outcome.file, outcome.took_ms),
        }
    }
    let passed = outcomes
        .iter()
        .filter(|outcome| outcome.failure.is_none())
        .count();
    println!("invalid: {passed} of {}", outcomes.len());
}
