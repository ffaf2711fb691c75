//! What the tests of both languages share.

#![allow(dead_code, reason = "each test crate uses its part")]

use tidegate_expression::{Context, Expression, Limits, Scope, Value};

/// Variables from JSON and a fixed clock: 2026-01-02T03:04:05.006Z.
pub struct Variables(Value);

impl Variables {
    pub fn new(json: &str) -> Self {
        Variables(Value::from_json(json).unwrap_or_else(|error| panic!("{json}: {error}")))
    }

    fn context(&self) -> &Context {
        self.0.as_context().expect("variables are an object")
    }
}

impl Scope for Variables {
    fn lookup(&self, name: &str) -> Option<Value> {
        self.context().get(name).cloned()
    }

    fn now_ms(&self) -> i64 {
        1_767_323_045_006
    }

    fn names(&self, visit: &mut dyn FnMut(&str)) {
        self.context().iter().for_each(|(name, _)| visit(name));
    }
}

/// The result as FEEL writes it, or the error's message.
pub fn result(expression: Result<Expression, impl ToString>, variables: &str) -> String {
    let expression = match expression {
        Ok(expression) => expression,
        Err(error) => return format!("SYNTAX {}", error.to_string()),
    };
    match expression.evaluate(&Variables::new(variables), &Limits::default()) {
        Ok(value) => value.to_string(),
        Err(error) => format!("ERROR {error}"),
    }
}
