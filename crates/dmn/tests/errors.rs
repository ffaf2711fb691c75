//! What an error and a trail tell about a table.

use tidegate_dmn::{Decisions, parse};
use tidegate_expression::{Context, Limits, Value};

fn policies() -> Decisions {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/policies.dmn");
    parse("policies.dmn", &std::fs::read(path).unwrap()).0.unwrap()
}

fn age(age: i64) -> Context {
    [("age".into(), Value::from(age))].into_iter().collect()
}

#[test]
fn an_error_shows_inputs_and_rules() {
    let error = policies()
        .evaluate("Unique", &age(67), &Limits::default())
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "decision-not-unique: 2 rules match, and the table allows one (2, 3) (decision \"Unique\", policies.dmn:6:5); \
         saw age = 67; rules that matched: 2, 3"
    );
    let rules: Vec<(usize, Option<&str>, bool, Option<usize>)> = error
        .rules
        .iter()
        .map(|rule| (rule.number, rule.id.as_deref(), rule.matched, rule.failed_at))
        .collect();
    assert_eq!(
        rules,
        [
            (1, Some("child"), false, Some(1)),
            (2, Some("adult"), true, None),
            (3, Some("senior"), true, None)
        ]
    );
    assert_eq!(error.decision_id.as_deref(), Some("unique"));
    assert_eq!(error.element_id.as_deref(), Some("unique_table"));
}

#[test]
fn a_trail_shows_rules_and_doubts() {
    let decisions = policies();
    let evaluated = decisions
        .evaluate("unique", &age(30), &Limits::default())
        .unwrap();
    let step = &evaluated.trail[0];
    assert_eq!(step.tables[0].rules[0].id.as_deref(), Some("adult"));
    assert_eq!(step.tables[0].inputs, [Value::from(30i64)]);
    assert_eq!(&*step.inputs[0].0, "age");
    assert_eq!(step.value, Value::from("adult"));
    assert!(step.problems.is_empty());

    let old: Context = [("age".into(), Value::from("old"))].into_iter().collect();
    let evaluated = decisions.evaluate("unique", &old, &Limits::default()).unwrap();
    assert_eq!(evaluated.value, Value::Null);
    let problem = &evaluated.trail[0].problems[0];
    assert_eq!(
        problem.message,
        "age is \"old\", which is not of the type number: it becomes null"
    );
    assert_eq!((problem.line, problem.element_id.as_deref()), (3, Some("age")));
}

#[test]
fn decisions_tell_what_they_read() {
    let decisions = policies();
    assert_eq!(decisions.inputs_of("Unique"), ["age"]);
    assert!(decisions.contains("unique") && decisions.contains("Output order") && !decisions.contains("age"));
}

#[test]
fn decisions_are_shared_between_threads() {
    fn shared<T: Send + Sync + Clone>(_: &T) {}
    shared(&policies());
}
