//! Every file of the `engines` set is read, and those with machine-readable expectations behave so.

mod common;
mod engines_harness;

#[test]
fn every_engines_file_is_read_and_behaves() {
    let Some(folder) = engines_harness::folder() else {
        let required = std::env::var_os("TIDEGATE_REQUIRE").is_some_and(|value| value == "1");
        assert!(!required, "the conformance data is required and not there");
        eprintln!("SKIPPED every_engines_file_is_read_and_behaves: ../shared/conformance is not there");
        return;
    };
    let outcomes = engines_harness::run(&folder);
    let failed: Vec<String> = outcomes
        .iter()
        .filter(|outcome| !outcome.problems.is_empty())
        .map(|outcome| format!("{}: {}", outcome.file, outcome.problems.join("; ")))
        .collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    let cases: usize = outcomes.iter().map(|outcome| outcome.cases).sum();
    assert!(cases >= 56, "only {cases} cases were run");
}
