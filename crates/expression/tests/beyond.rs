//! Functions beyond the standard that models of another engine use, and those that nobody knows.

use tidegate_expression::{Expression, Limits, NoScope};

fn value(text: &str) -> String {
    let expression = Expression::feel(text).expect(text);
    let value = expression.evaluate(&NoScope, &Limits::default()).expect(text);
    value.to_json()
}

#[test]
fn functions_of_another_engine_give_what_they_give_there() {
    for (text, expected) in [
        ("duplicate values([1, 2, 1, 3, 2, 1])", "[1,2]"),
        ("duplicate values([])", "[]"),
        ("duplicate values(null)", "null"),
        ("partition([1, 2, 3, 4, 5], 2)", "[[1,2],[3,4],[5]]"),
        ("partition([], 2)", "[]"),
        ("partition([1, 2], 0)", "null"),
        ("partition([1, 2], -1)", "null"),
        ("partition(null, 2)", "null"),
        (
            r#"extract("references are 1234, 1256, 1378", "12[0-9]*")"#,
            r#"["1234","1256"]"#,
        ),
        (r#"extract("abc", "[")"#, "null"),
        (r#"to base64("")"#, r#""""#),
        (r#"to base64("F")"#, r#""Rg==""#),
        (r#"to base64("FE")"#, r#""RkU=""#),
        (r#"to base64("FEEL")"#, r#""RkVFTA==""#),
        (r#"to base64("größe")"#, r#""Z3LDtsOfZQ==""#),
        ("to base64(1)", "null"),
        (r#"put({a: 1}, "b", 2)"#, r#"{"a":1,"b":2}"#),
        ("put all([{a: 1}, {b: 2}])", r#"{"a":1,"b":2}"#),
    ] {
        assert_eq!(value(text), expected, "{text}");
    }
}

#[test]
fn long_lists_of_duplicates_meet_their_limit() {
    let text = "duplicate values(for x in 1..100000 return x)";
    let expression = Expression::feel(text).unwrap();
    let limits = Limits {
        steps: 1_000_000,
        ..Limits::default()
    };
    let error = expression.evaluate(&NoScope, &limits).unwrap_err();
    assert!(error.message.contains("step"), "{}", error.message);
}

#[test]
fn functions_that_nobody_knows_are_found() {
    for (text, expected) in [
        ("uuid()", vec!["uuid"]),
        ("random number() + random number()", vec!["random number"]),
        ("for x in list return shout(x, count(list))", vec!["shout"]),
        ("{ f: function(a) a, b: f(1) }", vec![]),
        ("some x in [1] satisfies x > abs(-1)", vec![]),
        ("date and time(now) > today()", vec![]),
        ("uuid", vec![]),
    ] {
        let expression = Expression::feel(text).expect(text);
        assert_eq!(expression.unknown_functions(), expected, "{text}");
    }
}
