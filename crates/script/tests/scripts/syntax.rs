//! The check at deployment.

use tidegate_script::{ScriptError, check_syntax};

#[test]
fn good_scripts_pass_and_are_not_run() {
    for script in [
        "",
        "1 + 1",
        "for (;;) {}",
        "unknown.name()",
        "const a = 1; let b = () => a; class C { #x = 1 }; ({ a, b, c: C })",
        "throw new BpmnError('A')",
        "(async () => { await x })()",
        "// only a comment",
        "'use strict'; /a+(?<name>b)/u.test('x')",
        "function f() { for (;;) {} } f()",
        "throw new SyntaxError('mine')",
    ] {
        assert_eq!(check_syntax(script), Ok(()), "{script}");
    }
}

#[test]
fn bad_scripts_are_refused_with_their_place() {
    for (script, line, column) in [
        ("1 +", 1, 4),
        ("let a = 1;\nlet b = ;\n", 2, 9),
        ("let a;\nlet a;", 2, 6),
        ("\n\n  foo bar", 3, 7),
        ("return 1", 1, 1),
        ("await x", 1, 7),
        ("import a from 'b'", 1, 8),
        ("with (a) {}", 1, 1),
        ("}); evil(); (() => {", 1, 1),
        ("'open", 1, 1),
    ] {
        let error = check_syntax(script).unwrap_err();
        assert_eq!(
            (error.line, error.column),
            (Some(line), Some(column)),
            "{script}: {error}"
        );
        assert!(error.to_string().starts_with("SyntaxError: "), "{error}");
        assert!(
            error
                .to_string()
                .ends_with(&format!(" (line {line}, column {column})")),
            "{error}"
        );
    }
}

#[test]
fn a_bad_regular_expression_is_refused_without_a_place() {
    let error = check_syntax("/(/").unwrap_err();
    assert_eq!(
        (error.line, error.to_string().as_str()),
        (None, "SyntaxError: expecting ')'")
    );
}

#[test]
fn hostile_scripts_are_refused_and_do_no_harm() {
    for script in [
        "(".repeat(200_000),
        "[".repeat(200_000),
        "a=>".repeat(80_000),
        "`${".repeat(80_000),
        "x".repeat(300_000),
        format!("/{}/", "(a*)*".repeat(1_000).repeat(40)),
        "a\0b".to_owned(),
        "{a:".repeat(80_000),
        "if(a)".repeat(50_000),
        "!".repeat(200_000),
    ] {
        let result: Result<(), ScriptError> = check_syntax(&script);
        let shown: String = script.chars().take(20).collect();
        assert!(result.is_err(), "{shown}");
    }
}
