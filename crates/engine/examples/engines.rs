//! Prints what of the `engines` conformance set is read and behaves as expected, and whether the `miwg` references are
//! read; the count of the engines last.

#[path = "../tests/common/mod.rs"]
mod common;
#[path = "../tests/engines_harness/mod.rs"]
mod engines_harness;

fn main() {
    let Some(folder) = engines_harness::folder() else {
        eprintln!("SKIPPED engines: ../shared/conformance is not there");
        return;
    };
    references(&folder);
    let outcomes = engines_harness::run(&folder);
    let mut cases = 0;
    for outcome in &outcomes {
        let word = if outcome.problems.is_empty() {
            "passed"
        } else {
            "failed"
        };
        println!("{word} {} ({} cases)", outcome.file, outcome.cases);
        outcome
            .problems
            .iter()
            .for_each(|problem| println!("    {problem}"));
        cases += outcome.cases;
    }
    let passed = outcomes
        .iter()
        .filter(|outcome| outcome.problems.is_empty())
        .count();
    println!("{cases} cases were run");
    println!("engines: {passed} of {}", outcomes.len());
}

/// Every reference must be read. One that says it is executable compiles, or is refused for what it lacks.
fn references(folder: &std::path::Path) {
    let files = std::fs::read_dir(folder.join("miwg/Reference"))
        .into_iter()
        .flatten()
        .flatten();
    let is_model = |path: &std::path::PathBuf| path.extension().is_some_and(|extension| extension == "bpmn");
    let mut files: Vec<_> = files.map(|file| file.path()).filter(is_model).collect();
    files.sort();
    let (mut read, mut executable, mut compiles) = (0, 0, 0);
    for path in &files {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let bytes = std::fs::read(path).expect("the file is there");
        let parsed = tidegate_bpmn::parse(&name, &bytes, &tidegate_bpmn::Limits::default());
        read += usize::from(parsed.document.is_some());
        if !String::from_utf8_lossy(&bytes).contains("isExecutable=\"true\"") {
            continue;
        }
        executable += 1;
        let compiled = common::load(&name, &bytes, &["", "groovy", "javascript"]);
        compiles += usize::from(!compiled.definitions.is_empty());
        for found in compiled.diagnostics.iter().filter(|found| found.is_error()) {
            println!("    {found}");
        }
    }
    println!(
        "miwg: {read} of {} read, {compiles} of {executable} executable ones compile",
        files.len()
    );
}
