//! Prints what passes of the `betsy` conformance set: one line for each test, then the count.

#[path = "../tests/betsy_harness/mod.rs"]
mod betsy_harness;
#[path = "../tests/common/mod.rs"]
mod common;

fn main() {
    let Some(folder) = betsy_harness::folder() else {
        eprintln!("SKIPPED betsy: ../shared/conformance is not there");
        return;
    };
    println!("These do not count: their oracle is disputed, depends on an order, or is defective.");
    show(&betsy_harness::run_others(&folder));
    println!("These count.");
    let outcomes = betsy_harness::run(&folder);
    show(&outcomes);
    let tests = outcomes.iter().filter(|outcome| outcome.passed()).count();
    let cases: Vec<_> = outcomes.iter().flat_map(|outcome| &outcome.cases).collect();
    let passed = cases.iter().filter(|case| case.is_none()).count();
    println!(
        "betsy: {tests} of {} tests, {passed} of {} cases",
        outcomes.len(),
        cases.len()
    );
}

fn show(outcomes: &[betsy_harness::Outcome]) {
    for outcome in outcomes {
        let word = if outcome.passed() { "passed" } else { "failed" };
        println!("{word} {}", outcome.name);
        for (position, case) in outcome.cases.iter().enumerate() {
            if let Some(reason) = case {
                println!("    case {}: {reason}", position + 1);
            }
        }
    }
}
