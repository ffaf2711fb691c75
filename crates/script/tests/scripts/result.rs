//! What scripts see, and what becomes of their result.

use tidegate::activity::ActivityError;
use tidegate::model::Variables;

use crate::support::{Scripts, patient};

#[tokio::test]
async fn the_last_expression_is_the_value() {
    let scripts = Scripts::new(patient());
    for (script, variables, expected) in [
        ("1 + 2 * 3", "{}", "7"),
        ("amount * 1.2", r#"{"amount": 100}"#, "120"),
        (
            "order.lines.map(line => line.price).reduce((a, b) => a + b)",
            r#"{"order": {"lines": [{"price": 2}, {"price": 3}]}}"#,
            "5",
        ),
        (
            "const doubled = amount * 2; ({ doubled })",
            r#"{"amount": 4}"#,
            r#"{"doubled":8}"#,
        ),
        ("let amount = 3; amount", r#"{"amount": 4}"#, "3"),
        ("var x = 1", "{}", "null"),
        ("", "{}", "null"),
        ("null", "{}", "null"),
        ("(() => 1)", "{}", "null"),
        ("Promise.resolve(6).then(n => n * 7)", "{}", "42"),
        ("(async () => { await null; return 'late' })()", "{}", r#""late""#),
        ("'é \\ud83d\\ude00'", "{}", r#""é 😀""#),
        (
            "variables['my-name'] + variables.Map",
            r#"{"my-name": "a", "Map": "b"}"#,
            r#""ab""#,
        ),
        ("typeof Map", r#"{"Map": 1}"#, r#""function""#),
        ("variables.variables", r#"{"variables": 5}"#, "5"),
        (
            "new Date('2026-01-02T03:04:05Z')",
            "{}",
            r#""2026-01-02T03:04:05.000Z""#,
        ),
    ] {
        assert_eq!(scripts.value(script, variables).await, expected, "{script}");
    }
    assert_eq!(scripts.started(), 1);
}

#[tokio::test]
async fn without_a_result_variable_an_objects_entries_become_variables() {
    let scripts = Scripts::new(patient());
    for (script, expected) in [
        (
            "({ a: 1, b: { c: [true, null] } })",
            r#"{"a":1,"b":{"c":[true,null]}}"#,
        ),
        ("({ a: undefined })", "{}"),
        ("[1, 2]", "{}"),
        ("'text'", "{}"),
        ("7", "{}"),
        ("undefined", "{}"),
    ] {
        assert_eq!(
            scripts.run(script, "{}").await.unwrap().to_json(),
            expected,
            "{script}"
        );
    }
}

#[tokio::test]
async fn a_bpmn_error_ends_the_job_in_one() {
    let scripts = Scripts::new(patient());
    let error = |code: &str, message: &str, variables: &str| {
        let variables = Variables::parse(variables).unwrap();
        Err(ActivityError::Error {
            code: code.into(),
            message: message.into(),
            variables,
        })
    };
    let thrown = scripts
        .run(
            "throw new BpmnError('OUT', 'no stock', { left: n })",
            r#"{"n": 0}"#,
        )
        .await;
    assert_eq!(thrown, error("OUT", "no stock", r#"{"left":0}"#));
    assert_eq!(
        scripts.run("throw new BpmnError('OUT')", "{}").await,
        error("OUT", "", "{}")
    );
    let rejected = scripts
        .run("(async () => { throw new BpmnError('LATE', 'x') })()", "{}")
        .await;
    assert_eq!(rejected, error("LATE", "x", "{}"));
    assert!(
        scripts
            .failure("throw new BpmnError()")
            .await
            .contains("code is not a text")
    );
}

#[tokio::test]
async fn what_a_script_throws_is_told_with_its_place_and_not_tried_again() {
    let scripts = Scripts::new(patient());
    for (script, expected) in [
        (
            "let a = 1;\n  a.b.c",
            "TypeError: cannot read property 'c' of undefined (line 2, column 3)",
        ),
        ("throw new Error('no')", "Error: no (line 1, column 11)"),
        ("throw { code: 7 }", r#"the script threw {"code":7}"#),
        (
            "throw undefined",
            "the script threw something that cannot be shown",
        ),
        ("(async () => { throw new Error('late') })()", "Error: late"),
        ("new Promise(() => {})", "never settled"),
        ("10n", "TypeError"),
        ("const a = {}; a.a = a; a", "TypeError: circular reference"),
        (
            "let a = [];\nlet b = a;\nfor (let i = 0; i < 500; i++) { a = [a] }; a",
            "recursion limit",
        ),
        ("missing = 1", "ReferenceError"),
        ("'\\ud800'", "cannot be kept as a variable"),
        ("{", "SyntaxError"),
        ("a\0b", "could not be run"),
    ] {
        let result = scripts.run(script, "{}").await;
        let Err(ActivityError::Failed {
            message,
            retries: Some(0),
            ..
        }) = &result
        else {
            panic!("{script}: {result:?}");
        };
        assert!(message.contains(expected), "{script}: {message}");
    }
    assert_eq!(scripts.started(), 1);
}

#[tokio::test]
async fn a_variable_cannot_be_assigned_to_by_its_name() {
    let scripts = Scripts::new(patient());
    for script in ["amount = 2", "variables.amount = 2", "variables.other = 2"] {
        let result = scripts.run(script, r#"{"amount": 1}"#).await;
        assert!(crate::support::message(result).contains("TypeError"), "{script}");
    }
}
