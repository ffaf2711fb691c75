//! A unified expression (`${…}`): read, and evaluated over a few variables.

use tidegate_expression::{Expression, Value};

use super::feel::evaluate;

const VARIABLES: &str =
    r#"{"a": 1, "b": "text", "c": {"d": [1, 2.5, {"e": true}], "f": null}, "n": null, "list": [3, 1, 2]}"#;

pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let variables = Value::from_json(VARIABLES).expect("the variables are JSON");
    let scope = variables.as_context().expect("the variables are an object");
    if let Ok(expression) = Expression::unified(text) {
        evaluate(&expression, scope);
    }
}
