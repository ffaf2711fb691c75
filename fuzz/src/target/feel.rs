//! A FEEL expression and a list of unary tests: read, and evaluated over a few variables.

use tidegate_expression::{Expression, Limits, Scope, Value, unary_tests};

/// Small enough that no input takes long.
pub const LIMITS: Limits = Limits {
    steps: 20_000,
    depth: 100,
    size: 64 << 10,
};

const VARIABLES: &str = r#"{"a": 1, "b": "text", "c": {"d": [1, 2.5, {"e": true}], "f g": null}, "n": null,
    "date": "2026-01-01", "list": [3, 1, 2], "long": 123456789012345678901234567890.5}"#;

pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let variables = Value::from_json(VARIABLES).expect("the variables are JSON");
    let scope = variables.as_context().expect("the variables are an object");
    if let Ok(expression) = Expression::feel(text) {
        evaluate(&expression, scope);
    }
    if let Ok(tests) = unary_tests(text) {
        let input = scope.get("a").cloned().unwrap_or(Value::Null);
        let _ = tests.matches(&input, scope, &LIMITS);
    }
}

/// Twice gives the same, and a value can be written and read.
pub fn evaluate(expression: &Expression, scope: &dyn Scope) {
    let value = expression.evaluate(scope, &LIMITS);
    let again = expression.evaluate(scope, &LIMITS);
    assert_eq!(value.is_ok(), again.is_ok());
    if let Ok(value) = value {
        let json = value.to_json();
        assert!(Value::from_json(&json).is_ok(), "`{json}` cannot be read again");
    }
}
