//! A DMN file: read, and each of its decisions evaluated.

use tidegate_dmn::parse;
use tidegate_expression::Value;

use super::feel::LIMITS;

const VARIABLES: &str =
    r#"{"total": 120, "a": 1, "b": "x", "n": null, "list": [1, 2, 3], "date": "2026-01-01"}"#;

pub fn run(bytes: &[u8]) {
    let (decisions, diagnostics) = parse("fuzz.dmn", bytes);
    let Some(decisions) = decisions else {
        assert!(!diagnostics.is_empty(), "a file that cannot be read says why");
        return;
    };
    let variables = Value::from_json(VARIABLES).expect("the variables are JSON");
    let scope = variables.as_context().expect("the variables are an object");
    for decision in decisions.decisions().take(16) {
        let _ = decisions.evaluate(decision.id, scope, &LIMITS);
    }
}
