//! The unified expression language, as a table: expression, variables, result.

mod common;

use common::result;
use tidegate_expression::Expression;

const CASES: &[(&str, &str, &str)] = &[
    (r#"test.contains("a")"#, r#"{"test": "abc"}"#, "true"),
    ("integerVariable<2", r#"{"integerVariable": 1}"#, "true"),
    ("\n  activationCount >= 1\n ", r#"{"activationCount": 1}"#, "true"),
    ("true", "{}", "true"),
    ("3", "{}", "3"),
    (" ${integerVariable} ", r#"{"integerVariable": 4}"#, "4"),
    ("#{a.b['c d'][1]}", r#"{"a": {"b": {"c d": [1, 2]}}}"#, "2"),
    ("order-${id}-#{n + 1}", r#"{"id": "x", "n": 1}"#, r#""order-x-2""#),
    (r"\${id}", "{}", r#""${id}""#),
    ("${'}'}", "{}", r#""}""#),
    ("${a} ${b}", r#"{"a": 1, "b": null}"#, r#""1 ""#),
    // Both spellings.
    ("a && !b || c", r#"{"a": true, "b": false, "c": false}"#, "true"),
    ("a and not b or c", r#"{"a": true, "b": true, "c": true}"#, "true"),
    (
        "a eq 1 and a ne 2 and a lt 2 and a le 1 and a gt 0 and a ge 1",
        r#"{"a": 1}"#,
        "true",
    ),
    ("7 div 2 + 7 mod 4", "{}", "6.5"),
    ("7 / 2 + 7 % 4", "{}", "6.5"),
    ("-a + 1", r#"{"a": 3}"#, "-2"),
    (
        "a > 1 ? 'big' : a < 0 ? 'negative' : 'small'",
        r#"{"a": -1}"#,
        r#""negative""#,
    ),
    // Coercions.
    ("a == 5", r#"{"a": "5"}"#, "true"),
    ("a == 5.0", r#"{"a": 5}"#, "true"),
    ("a == 'x'", r#"{"a": null}"#, "false"),
    ("a == true", r#"{"a": "true"}"#, "true"),
    ("a > 10", r#"{"a": "9"}"#, "false"),
    ("a + '1'", r#"{"a": "2"}"#, "3"),
    ("a + 'x'", r#"{"a": 2}"#, r#""2x""#),
    ("null + 1", "{}", "1"),
    ("a < 1", r#"{"a": null}"#, "false"),
    // Null, empty and missing.
    ("empty a", r#"{"a": []}"#, "true"),
    ("not empty a", r#"{"a": "x"}"#, "true"),
    ("empty missing", "{}", "true"),
    ("empty missing.part", "{}", "true"),
    ("missing == null", "{}", "true"),
    ("null ne missing['x']", "{}", "false"),
    ("a.b.c", r#"{"a": {}}"#, "null"),
    // Methods.
    (
        "s.startsWith('a') && s.endsWith('c') && s.equals('abc') && s.equalsIgnoreCase('ABC')",
        r#"{"s": "abc"}"#,
        "true",
    ),
    (
        "s.length() + s.indexOf('c') + s.toUpperCase().lastIndexOf('A')",
        r#"{"s": "abc"}"#,
        "5",
    ),
    (
        "s.trim().substring(1, 3).concat('!').replace('b', 'x')",
        r#"{"s": " abc "}"#,
        r#""xc!""#,
    ),
    (
        "s.matches('[a-c]+') and not s.matches('[a-b]+')",
        r#"{"s": "abc"}"#,
        "true",
    ),
    (
        "l.contains('a') && l.size() == 2 && l.get(1) == 'b' && !l.isEmpty() && l.indexOf('z') == -1",
        r#"{"l": ["a", "b"]}"#,
        "true",
    ),
    (
        "m.containsKey('a') && m.get('a') == 1 && m.keySet().contains('b') && m.size() == 2",
        r#"{"m": {"a": 1, "b": 2}}"#,
        "true",
    ),
    // Errors.
    (
        "x + 1",
        r#"{"y": 1, "z": 2}"#,
        "ERROR expression-unknown-variable: variable `x` is not defined; defined are `y`, `z` (line 1, column 1); saw x = undefined",
    ),
    (
        "a &&\n b.size()",
        r#"{"a": true, "b": 5}"#,
        "ERROR expression-unknown-method: a number has no method `size` with 0 arguments; there are toString, equals \
         (line 2, column 4); saw a = true, b = 5",
    ),
    (
        "1 / a",
        r#"{"a": 0}"#,
        "ERROR expression-arithmetic: 1 is divided by zero (line 1, column 3); saw a = 0",
    ),
    (
        "a.getClass()",
        r#"{"a": null}"#,
        "ERROR expression-wrong-type: cannot call `getClass` on null (line 1, column 3); saw a = null",
    ),
    (
        "a ? 1 : 2",
        r#"{"a": 1}"#,
        "ERROR expression-wrong-type: a number is no condition (line 1, column 3); saw a = 1",
    ),
    (
        "bean(1)",
        "{}",
        "SYNTAX there is no function `bean` (line 1, column 1); only methods of values can be called, for example `text.contains(\"a\")`",
    ),
    (
        "a = 1",
        "{}",
        "SYNTAX `=` is not expected here (line 1, column 3); the unified language compares with `==`; begin the text with `=` to write FEEL",
    ),
    (
        "x-${a",
        "{}",
        "SYNTAX the expression does not end (line 1, column 3); close it with `}`",
    ),
    (
        "x-${a +}",
        "{}",
        "SYNTAX a value is expected, not the end of the expression (line 1, column 8)",
    ),
    (
        "${}",
        "{}",
        "SYNTAX a value is expected, not the end of the expression (line 1, column 3)",
    ),
    (
        " ",
        "{}",
        "SYNTAX the expression is empty (line 1, column 2); write a value or a condition",
    ),
];

#[test]
fn expressions() {
    for (text, variables, expected) in CASES {
        assert_eq!(
            result(Expression::unified(text), variables),
            *expected,
            "{text} with {variables}"
        );
    }
}
