//! The conformance set `invalid`: every file is refused, or run, as its manifest says, within 256 MB and five seconds.

mod invalid_harness;
mod support;

use std::process::Command;

#[test]
fn the_files_of_the_invalid_set_get_their_verdicts() {
    if invalid_harness::answer_as_child() {
        return;
    }
    let name = "the_files_of_the_invalid_set_get_their_verdicts";
    let Some(folder) = invalid_harness::folder(name) else {
        return;
    };
    let this = std::env::current_exe().expect("the path of this test");
    let outcomes = invalid_harness::run(&folder, || {
        let mut command = Command::new(&this);
        command.args(["--exact", name, "--nocapture"]);
        command
    });
    let failed: Vec<_> = outcomes
        .iter()
        .filter_map(|outcome| Some(format!("{}: {}", outcome.file, outcome.failure.as_ref()?)))
        .collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert_eq!(outcomes.len(), 116);
}
