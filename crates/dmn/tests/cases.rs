//! Models with expected results, as data: every `tests/data/NAME.dmn` with the cases in `NAME.cases`.

use std::path::{Path, PathBuf};

use tidegate_dmn::parse;
use tidegate_expression::{Limits, Value};

#[test]
fn decisions_give_what_is_expected() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let mut models: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    models.retain(|path| path.extension().is_some_and(|extension| extension == "dmn"));
    models.sort();
    assert!(!models.is_empty());
    let mut failures = Vec::new();
    for model in models {
        run(&model, &mut failures);
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn run(model: &Path, failures: &mut Vec<String>) {
    let name = model.file_name().unwrap().to_string_lossy();
    let (decisions, diagnostics) = parse(&name, &std::fs::read(model).unwrap());
    failures.extend(diagnostics.iter().map(ToString::to_string));
    let decisions = decisions.unwrap();
    let cases = std::fs::read_to_string(model.with_extension("cases")).unwrap();
    for line in cases
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        let parts: Vec<&str> = line.splitn(3, '|').map(str::trim).collect();
        let &[decision, variables, expected] = parts.as_slice() else {
            panic!("{name}: {line}");
        };
        let variables = Value::from_json(variables).unwrap();
        let actual = match decisions.evaluate(decision, variables.as_context().unwrap(), &Limits::default()) {
            Ok(evaluated) => evaluated.value.to_json(),
            Err(error) => format!("! {}", error.code.as_str()),
        };
        let wanted = match expected.strip_prefix('!') {
            Some(code) => format!("! {}", code.trim()),
            None => Value::from_json(expected).unwrap().to_json(),
        };
        if actual != wanted {
            failures.push(format!("{name}: {line}\n  gives {actual}"));
        }
    }
}
