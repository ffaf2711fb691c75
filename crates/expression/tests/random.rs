//! Random bytes and random token soup: nothing panics, whatever comes.

use proptest::prelude::*;
use tidegate_expression::{Context, Expression, Limits, Value, unary_tests};

const TOKENS: &[&str] = &[
    "a",
    "b",
    "item",
    "partial",
    "?",
    "x y",
    "1",
    "2.50",
    "0",
    "1e3",
    "\"s\"",
    "'s'",
    "\"\\u00e4\"",
    "@\"2024-01-01\"",
    "@\"PT1H\"",
    "null",
    "true",
    "false",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ":",
    ".",
    "..",
    "+",
    "-",
    "*",
    "**",
    "/",
    "%",
    "=",
    "==",
    "!=",
    "<",
    "<=",
    ">",
    ">=",
    "!",
    "&&",
    "||",
    "?",
    "and",
    "or",
    "not",
    "empty",
    "if",
    "then",
    "else",
    "for",
    "in",
    "return",
    "some",
    "every",
    "satisfies",
    "between",
    "instance of",
    "number",
    "list<number>",
    "function(a)",
    "function",
    "external",
    "count",
    "string length",
    "date and time",
    "sum",
    "sort",
    "flatten",
    "split",
    "replace",
    "context put",
    "contains",
    "size()",
    "length",
    "\n",
    "//",
    "/*",
    "*/",
    "`a b`",
    "${",
    "#{",
    "$",
    "\\",
    "é",
    "🐎",
    "1..3",
    "div",
    "mod",
    "eq",
];

fn scope() -> Context {
    let json =
        r#"{"a": {"b": [1, 2, {"c": "d"}], "s": "text"}, "b": [3, "x", null, 1.5], "x y": 5, "s": "text"}"#;
    Value::from_json(json)
        .unwrap()
        .as_context()
        .unwrap()
        .iter()
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

fn run(text: &str) {
    let limits = Limits {
        steps: 20_000,
        size: 1 << 18,
        ..Limits::default()
    };
    let scope = scope();
    for parsed in [
        Expression::feel(text),
        Expression::unified(text),
        Expression::parse(text, None),
    ] {
        match parsed {
            Ok(expression) => {
                let _ = expression.names();
                match expression.evaluate(&scope, &limits) {
                    Ok(value) => {
                        let _ = (value.to_string(), Value::from_json(&value.to_json()).unwrap());
                    }
                    Err(error) => assert!(error.offset <= text.len() && error.saw.len() < 2000),
                }
            }
            Err(error) => assert!(error.offset <= text.len() && error.line > 0 && error.column > 0),
        }
    }
    if let Ok(tests) = unary_tests(text) {
        let _ = tests.matches(&5i64.into(), &scope, &limits);
    }
    let _ = Value::from_json(text);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn characters(text in "\\PC{0,60}") {
        run(&text);
    }

    #[test]
    fn bytes(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
        run(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn tokens(tokens in proptest::collection::vec(proptest::sample::select(TOKENS), 0..24), spaced in any::<bool>()) {
        run(&tokens.join(if spaced { " " } else { "" }));
    }

    #[test]
    fn temporal(text in "[-+PTYMDHSZ@:.0-9/a-z]{0,24}") {
        for function in ["date", "time", "date and time", "duration", "number", "range"] {
            run(&format!("string({function}(\"{text}\"))"));
        }
        run(&format!("@\"{text}\""));
    }

    #[test]
    fn arithmetic_of_decimals(a in "-?[0-9]{1,34}(\\.[0-9]{1,20})?(e-?[0-9]{1,4})?", b in "-?[0-9]{1,34}(\\.[0-9]{1,20})?(e-?[0-9]{1,4})?") {
        run(&format!("[{a} + {b}, {a} - {b}, {a} * {b}, {a} / {b}, {a} ** {b}, {a} < {b}, modulo({a}, {b}), sqrt({a}), log({a}), exp({b})]"));
    }
}
