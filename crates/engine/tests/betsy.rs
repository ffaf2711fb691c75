//! Every sound test of the `betsy` set whose file compiles passes; the others are refused and do not crash.

mod betsy_harness;
mod common;

#[test]
fn every_betsy_test_that_compiles_passes() {
    let Some(folder) = betsy_harness::folder() else {
        let required = std::env::var_os("TIDEGATE_REQUIRE").is_some_and(|value| value == "1");
        assert!(!required, "the conformance data is required and not there");
        eprintln!("SKIPPED every_betsy_test_that_compiles_passes: ../shared/conformance is not there");
        return;
    };
    let outcomes = betsy_harness::run(&folder);
    let failed: Vec<String> = outcomes
        .iter()
        .filter(|outcome| outcome.refused.is_empty())
        .flat_map(|outcome| {
            let reasons = outcome
                .cases
                .iter()
                .enumerate()
                .filter_map(|(n, case)| Some((n + 1, case.as_ref()?)));
            reasons.map(|(n, reason)| format!("{}#{n}: {reason}", outcome.name))
        })
        .collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    let passed = outcomes.iter().filter(|outcome| outcome.passed()).count();
    assert!(passed >= 114, "only {passed} tests pass");
}
