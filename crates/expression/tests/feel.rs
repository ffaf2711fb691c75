//! FEEL, as a table: expression, variables, result.

mod common;

use common::result;
use tidegate_expression::{Expression, Limits, NoScope, Value, unary_tests};

const CASES: &[(&str, &str, &str)] = &[
    // Conditions of gateways.
    (
        r#"amount > 100 and status = "open""#,
        r#"{"amount": 100.01, "status": "open"}"#,
        "true",
    ),
    (
        r#"amount > 100 and status = "open""#,
        r#"{"amount": 100, "status": "open"}"#,
        "false",
    ),
    (
        r#"amount > 100 and status = "open""#,
        r#"{"status": "open"}"#,
        "null",
    ),
    ("missing", "{}", "null"),
    ("missing = null", "{}", "true"),
    (
        "customer.address.city",
        r#"{"customer": {"address": {"city": "Oslo"}}}"#,
        r#""Oslo""#,
    ),
    ("customer.address.city", r#"{"customer": null}"#, "null"),
    (
        "orders.total",
        r#"{"orders": [{"total": 1.10}, {"total": 2}]}"#,
        "[1.10, 2]",
    ),
    (
        "sum(orders.total)",
        r#"{"orders": [{"total": 1.10}, {"total": 2}]}"#,
        "3.10",
    ),
    ("count(items) + count", r#"{"items": [1, 2, 3], "count": 5}"#, "8"),
    // Numbers are decimals.
    ("0.1 + 0.2 = 0.3", "{}", "true"),
    ("price * 3", r#"{"price": 0.1}"#, "0.3"),
    ("1 / 3", "{}", "0.3333333333333333333333333333333333"),
    ("1 / 0", "{}", "null"),
    ("-3 ** 2", "{}", "9"),
    ("2 + 3 * 4 - 6 / 2", "{}", "11"),
    ("10 - 2 - 3", "{}", "5"),
    (".5 + 1.5e2", "{}", "150.5"),
    // Logic with three values.
    ("true or null", "{}", "true"),
    ("false or null", "{}", "null"),
    ("false and null", "{}", "false"),
    ("not(1)", "{}", "null"),
    ("1 = \"1\"", "{}", "null"),
    // Control.
    (
        "if 1 > 2 then \"a\" else if 2 > 1 then \"b\" else \"c\"",
        "{}",
        r#""b""#,
    ),
    (
        "for x in 1..3, y in [x, x * 10] return x + y",
        "{}",
        "[2, 11, 4, 22, 6, 33]",
    ),
    ("for i in 3..1 return i", "{}", "[3, 2, 1]"),
    ("for i in (1..4) return i", "{}", "[2, 3]"),
    (
        "for i in 0..4 return if i = 0 then 1 else i * partial[-1]",
        "{}",
        "[1, 1, 2, 6, 24]",
    ),
    (
        "some x in items satisfies x > 2",
        r#"{"items": [1, 2, 3]}"#,
        "true",
    ),
    (
        "every x in items satisfies x > 2",
        r#"{"items": [1, 2, 3]}"#,
        "false",
    ),
    // Filters and ranges.
    ("items[item > 1]", r#"{"items": [1, 2, 3]}"#, "[2, 3]"),
    ("items[-1]", r#"{"items": [1, 2, 3]}"#, "3"),
    ("items[i]", r#"{"items": [1, 2, 3], "i": 2}"#, "2"),
    (
        r#"people[age >= 18].name"#,
        r#"{"people": [{"name": "A", "age": 17}, {"name": "B", "age": 18}]}"#,
        r#"["B"]"#,
    ),
    ("5 in [1..5)", "{}", "false"),
    ("5 in (1..5]", "{}", "true"),
    ("5 in ]1..5[", "{}", "false"),
    ("x in (< 5, > 10)", r#"{"x": 11}"#, "true"),
    ("5 between 1 and 5", "{}", "true"),
    ("[1..10[.end included", "{}", "false"),
    // Contexts and functions.
    ("{a: 1, b: a + 1, \"c d\": b + 1}.c d", "{}", "3"),
    ("{a: 1, a: 2}", "{}", "null"),
    (
        "{fact: function(n) if n < 2 then 1 else n * fact(n - 1), r: fact(20)}.r",
        "{}",
        "2432902008176640000",
    ),
    ("(function(a: number, b) a - b)(b: 1, a: 10)", "{}", "9"),
    ("(function(a: number) a)(\"x\")", "{}", "null"),
    ("substring(start position: 2, string: \"abc\")", "{}", r#""bc""#),
    ("sort([3, 1, 2], function(a, b) a > b)", "{}", "[3, 2, 1]"),
    ("sort([3, 1, 2], function(a, b) true)", "{}", "[2, 1, 3]"),
    // Names.
    ("Monthly Salary * 12", r#"{"Monthly Salary": 10}"#, "120"),
    ("`a-b` + 1", r#"{"a-b": 10}"#, "11"),
    ("{a-b: 7, c: a-b}.c", "{}", "7"),
    ("größe + 1", r#"{"größe": 1}"#, "2"),
    ("string length(\"🐎ab\")", "{}", "3"),
    // Texts.
    (r#""a\"b\\c\u0041\n""#, "{}", "\"a\\\"b\\\\cA\n\""),
    (r#"matches("foo42", "^[a-z]+\d+$")"#, "{}", "true"),
    (r#"replace("abcd", "(ab)|(cd)", "[$1]")"#, "{}", r#""[ab][]""#),
    (r#"split("a;b;;c", ";")"#, "{}", r#"["a", "b", "", "c"]"#),
    (r#"string join(["a", null, "b"], "-")"#, "{}", r#""a-b""#),
    (r#"matches("x", "(")"#, "{}", "null"),
    // Dates and times.
    ("date(\"2024-02-29\") + duration(\"P1Y\")", "{}", "2025-02-28"),
    (
        r#"@"2024-01-01T00:00:00@Europe/Paris" - @"2024-01-01T00:00:00Z""#,
        "{}",
        "-PT1H",
    ),
    (
        r#"date and time("2024-03-31T01:30:00@Europe/Paris").time offset"#,
        "{}",
        "PT1H",
    ),
    ("now()", "{}", "2026-01-02T03:04:05.006Z"),
    ("today()", "{}", "2026-01-02"),
    ("date(\"2023-02-29\")", "{}", "null"),
    ("duration(\"P1DT12H\") / duration(\"PT6H\")", "{}", "6"),
    ("day of week(date(\"2026-01-02\"))", "{}", r#""Friday""#),
    ("week of year(date(\"2027-01-01\"))", "{}", "53"),
    (
        "years and months duration(date(\"2011-12-22\"), date(\"2013-08-24\"))",
        "{}",
        "P1Y8M",
    ),
    // Types and comments.
    ("[1, 2] instance of list<number>", "{}", "true"),
    ("{a: 1} instance of context<a: string>", "{}", "false"),
    ("@\"P1D\" instance of days and time duration", "{}", "true"),
    ("1 /* one */ + 1 // and one", "{}", "2"),
    // Syntax errors have a place and a hint.
    (
        "1 +",
        "{}",
        "SYNTAX a value is expected, not the end of the text (line 1, column 4)",
    ),
    (
        "a == 1",
        "{}",
        "SYNTAX `==` is not expected here (line 1, column 3); FEEL compares with a single `=`",
    ),
    (
        "'a'",
        "{}",
        "SYNTAX `'` is not expected here (line 1, column 1); FEEL writes texts in double quotes",
    ),
    (
        "1 +\n  )",
        "{}",
        "SYNTAX a value is expected, not `)` (line 2, column 3)",
    ),
    (
        "\"abc",
        "{}",
        "SYNTAX the string does not end (line 1, column 1); close it with \"",
    ),
    (
        "",
        "{}",
        "SYNTAX the expression is empty (line 1, column 1); write a value or a condition",
    ),
    (
        "f(1, a: 2)",
        "{}",
        "SYNTAX arguments with and without a name do not mix (line 1, column 10); name all of them or none",
    ),
];

#[test]
fn expressions() {
    for (text, variables, expected) in CASES {
        assert_eq!(
            result(Expression::feel(text), variables),
            *expected,
            "{text} with {variables}"
        );
    }
}

#[test]
fn tests_of_decision_tables() {
    let cases: &[(&str, Value, bool)] = &[
        ("-", Value::Null, true),
        ("< 10", 5i64.into(), true),
        ("[1..3], > 8", 9i64.into(), true),
        ("not(1, 2)", 2i64.into(), false),
        ("\"a\", \"b\"", "b".into(), true),
        ("? > 3 and ? < 5", 4i64.into(), true),
        ("starts with(?, \"x\")", "xy".into(), true),
        ("null", Value::Null, true),
        ("< 10", "a".into(), false),
    ];
    for (text, input, expected) in cases {
        let tests = unary_tests(text).unwrap();
        assert_eq!(
            tests.matches(input, &NoScope, &Limits::default()).unwrap(),
            *expected,
            "{text} of {input}"
        );
    }
}

#[test]
fn language_by_the_modelers_rule() {
    let uri = "https://www.omg.org/spec/DMN/20191111/FEEL/";
    for (text, language, expected) in [
        ("= a and b = 1", None, "Feel"),
        ("  =a", Some("x"), "Feel"),
        ("a = 1", Some(uri), "Feel"),
        ("a == 1", None, "Unified"),
        ("${a}", Some("http://www.w3.org/1999/XPath"), "Unified"),
        ("a/b = 'yes'", Some("http://www.w3.org/1999/XPath"), "Feel"),
        (
            "a == 'yes' && !b",
            Some("http://www.w3.org/1999/XPath"),
            "Unified",
        ),
    ] {
        assert_eq!(
            format!("{:?}", Expression::parse(text, language).unwrap().language()),
            expected,
            "{text}"
        );
    }
    let error = Expression::parse(" = 1 +", None).unwrap_err();
    assert_eq!((error.offset, error.column), (6, 7));
}

#[test]
fn free_names() {
    let text = "for x in list return x + y + count(z) + partial[1] + (function(p) p + q)(1)";
    assert_eq!(Expression::feel(text).unwrap().names(), ["list", "y", "z", "q"]);
}

#[test]
fn functions_keep_the_variables_they_read() {
    let scope = common::Variables::new(r#"{"factor": 3}"#);
    let function = Expression::feel("function(a) a * factor")
        .unwrap()
        .evaluate(&scope, &Limits::default())
        .unwrap();
    let variables: tidegate_expression::Context = [("f".into(), function)].into_iter().collect();
    let value = Expression::feel("f(5)")
        .unwrap()
        .evaluate(&variables, &Limits::default())
        .unwrap();
    assert_eq!(value, 15i64.into());
}

#[test]
fn json_in_and_out() {
    for (text, expected) in [
        (
            r#"{"a": 1.10, "b": [true, null, "x\n\"\u00e4\ud83d\udc0e"]}"#,
            r#"{"a":1.10,"b":[true,null,"x\n\"ä🐎"]}"#,
        ),
        ("1e2", "100"),
        ("1e50", "1e50"),
        (
            "0.10000000000000000000000000000000001",
            "0.1000000000000000000000000000000000",
        ),
        (r#"{"a": 1, "b": 2, "a": 3}"#, r#"{"a":3,"b":2}"#),
    ] {
        assert_eq!(Value::from_json(text).unwrap().to_json(), expected);
    }
    for text in [
        "",
        "{",
        "[1,]",
        "01",
        "+1",
        ".5",
        "nul",
        "1 2",
        "\"\n\"",
        r#""\x""#,
        r#"{"a" 1}"#,
        "-",
        "1e",
    ] {
        assert!(Value::from_json(text).is_err(), "{text}");
    }
    let date = Expression::feel("[@\"2024-01-01\", @\"PT1H\", [1..2]]")
        .unwrap()
        .evaluate(&NoScope, &Limits::default())
        .unwrap();
    assert_eq!(date.to_json(), r#"["2024-01-01","PT1H","[1..2]"]"#);
    let keys: Vec<String> = (0..20).map(|key| format!("\"k{}\": {key}", key % 15)).collect();
    let wide = Value::from_json(&format!("{{{}}}", keys.join(","))).unwrap();
    assert_eq!(wide.as_context().unwrap().get("k3"), Some(&18i64.into()));
    assert_eq!(wide.as_context().unwrap().len(), 15);
}
