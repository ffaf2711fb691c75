//! What comes from outside must not crash, hang or eat memory. Every case runs on a small stack.

mod common;

use std::time::{Duration, Instant};

use tidegate_expression::{EvaluationCode, Expression, Limits, NoScope, SyntaxError, Value};

/// Well below the 2 MiB of a usual thread. Builds with optimisation need a fraction of it.
const STACK: usize = 1280 << 10;
/// Generous: the machine may be busy, and what has no limit takes minutes.
const QUICK: Duration = Duration::from_secs(60);

fn on_a_small_stack(test: impl FnOnce() + Send + 'static) {
    let started = Instant::now();
    std::thread::Builder::new()
        .stack_size(STACK)
        .spawn(test)
        .unwrap()
        .join()
        .unwrap();
    assert!(started.elapsed() < QUICK, "took {:?}", started.elapsed());
}

type Parse = fn(&str) -> Result<Expression, SyntaxError>;

#[test]
fn deep_texts_are_refused() {
    on_a_small_stack(|| {
        let parsers: [Parse; 2] = [Expression::feel, Expression::unified];
        for part in [
            "(",
            "[",
            "{a:",
            "-",
            "not(",
            "!",
            "if ",
            "f(",
            "a[",
            "for x in ",
            "function() ",
            "]",
            "empty ",
            "a ? ",
            "a.b(",
            "x instance of list<",
            "5 in (",
            "${",
        ] {
            for parse in parsers {
                for count in [150, 5_000] {
                    let _ = parse(&part.repeat(count));
                }
            }
        }
        let text = format!("{}1{}", "(".repeat(1000), ")".repeat(1000));
        let error = Expression::feel(&text).unwrap_err();
        assert_eq!(error.message, "the expression nests deeper than 200 levels");
        assert_eq!(error.column, 201);
        let path = format!("a{}", ".a".repeat(10_000));
        assert!(Expression::feel(&path).is_err());
        assert!(Expression::unified(&path).is_err());
    });
}

#[test]
fn texts_at_the_nesting_limit_evaluate() {
    on_a_small_stack(|| {
        let unlimited = Limits {
            depth: 10_000,
            ..Limits::default()
        };
        for (open, close) in [
            ("(", ")"),
            ("[", "]"),
            ("-", ""),
            ("if true then ", " else 2"),
            ("abs(", ")"),
            ("(function() ", ")()"),
            ("for x in [1] return ", ""),
        ] {
            let deepest = (1..250).rev().find_map(|count| {
                Expression::feel(&format!("{}1{}", open.repeat(count), close.repeat(count))).ok()
            });
            let _ = deepest.unwrap().evaluate(&NoScope, &unlimited);
        }
        for (open, close) in [
            ("!", ""),
            ("true ? ", " : 2"),
            ("'a'.concat(", ")"),
            ("empty ", ""),
        ] {
            let deepest = (1..250).rev().find_map(|count| {
                Expression::unified(&format!("{}true{}", open.repeat(count), close.repeat(count))).ok()
            });
            let _ = deepest.unwrap().evaluate(&NoScope, &unlimited);
        }
    });
}

#[test]
fn long_chains_are_flat() {
    on_a_small_stack(|| {
        for (parse, part, expected) in [
            (Expression::feel as Parse, "+1", "20001"),
            (Expression::unified as Parse, "+1", "20001"),
            (Expression::feel, " and 1=1", "null"),
            (Expression::unified, "&&true", "true"),
        ] {
            let count = if part == "+1" { 20_000 } else { 5_000 };
            let value = parse(&format!(
                "{}{}",
                if part == "&&true" { "true" } else { "1" },
                part.repeat(count)
            ));
            assert_eq!(
                value
                    .unwrap()
                    .evaluate(&NoScope, &Limits::default())
                    .unwrap()
                    .to_string(),
                expected
            );
        }
        assert!(Expression::feel(&format!("1{}", "+1".repeat(100_000))).is_err());
    });
}

#[test]
fn limits_end_evaluations() {
    use EvaluationCode::{DepthLimit, SizeLimit, StepLimit};
    let cases = [
        ("for i in 1..100000000 return i", SizeLimit),
        ("count(for i in 1..100000000 return i)", SizeLimit),
        ("some i in 1..100000000 satisfies false", StepLimit),
        ("for i in 1..100000, j in 1..100000 return 1", SizeLimit),
        ("{f: function(n) f(n), r: f(1)}", DepthLimit),
        (
            "{f: function(n) if n = 0 then 0 else f(n - 1) + f(n - 1), r: f(50)}",
            StepLimit,
        ),
        (
            "{f: function(s, n) if n = 0 then s else f(s + s, n - 1), r: f(\"aaaaaaaa\", 60)}",
            SizeLimit,
        ),
        (
            "for i in 1..1000 return for j in 1..1000 return \"abc\" + string(i)",
            StepLimit,
        ),
        (
            "for i in 1..100000 return if i = 1 then [] else [partial[-1]]",
            DepthLimit,
        ),
        (
            "for i in 1..100000 return if i = 1 then 0 else partial",
            DepthLimit,
        ),
        (
            "for i in 1..100000 return if i = 1 then 0 else {a: partial[-1]}",
            DepthLimit,
        ),
        (
            "for i in 1..100000 return if i = 1 then 0 else function() partial",
            DepthLimit,
        ),
        (
            "for i in 1..100000 return matches(string(i), \"(a{1,50}){1,50}\")",
            StepLimit,
        ),
        ("distinct values(for i in 1..50000 return i)", StepLimit),
        ("for i in 1..1000 return for j in 1..10000 return j", StepLimit),
        (
            "for i in 1..1000000 return string join(for j in 1..5000 return \"xxxxxxxxxxxxxxxx\")",
            StepLimit,
        ),
    ];
    on_a_small_stack(move || {
        for (text, code) in cases {
            let started = Instant::now();
            let error = Expression::feel(text)
                .unwrap()
                .evaluate(&NoScope, &Limits::default())
                .unwrap_err();
            assert_eq!(error.code, code, "{text}: {error}");
            assert!(
                started.elapsed() < QUICK / 4,
                "{text} took {:?}",
                started.elapsed()
            );
        }
    });
}

#[test]
fn hostile_patterns_are_bounded() {
    on_a_small_stack(|| {
        for pattern in [
            "(((a{100}){100}){100}){100}",
            &"(".repeat(10_000),
            &"a?".repeat(20_000),
            "(a*)*b",
            "\\p{L}{1000}",
            "[a-[b-[c-[d]]]]",
        ] {
            let scope: tidegate_expression::Context = [
                ("p".into(), Value::from(pattern)),
                ("t".into(), Value::from("a".repeat(100_000))),
            ]
            .into_iter()
            .collect();
            for text in ["matches(t, p)", "replace(t, p, \"x\")", "count(split(t, p))"] {
                let _ = Expression::feel(text)
                    .unwrap()
                    .evaluate(&scope, &Limits::default());
            }
        }
    });
}

#[test]
fn extreme_numbers_and_dates() {
    on_a_small_stack(|| {
        let numbers = [
            "0",
            "1e6144",
            "-1e6144",
            "1e-6176",
            "9999999999999999999999999999999999",
            "-0.5",
            "1e100",
            "9223372036854775808",
            "-9223372036854775808",
            "-2147483648",
            "2147483647",
        ];
        let functions = [
            "abs(N)",
            "sqrt(N)",
            "log(N)",
            "exp(N)",
            "N ** M",
            "modulo(N, M)",
            "N / M",
            "N * M",
            "N + M",
            "decimal(N, M)",
            "round up(N, M)",
            "floor(N)",
            "even(N)",
            "substring(\"abc\", N, M)",
            "[1, 2][N]",
            "sublist([1, 2], N, M)",
            "date(N, M, 1)",
            "@\"P1D\" * N",
            "@\"P1Y\" * N",
            "@\"P1M\" * N",
            "@\"PT0.000000001S\" * N",
            "-(@\"P1M\" * N)",
            "@\"P1D\" / N",
            "string(N)",
            "insert before([1], N, 2)",
            "remove([1], N)",
            "time(1, 1, N)",
            "for i in N..M return 1",
            "number(string(N))",
            "stddev(N, M)",
            "median(N, M)",
            "@\"999999999-12-31\" + @\"P1D\" * N",
            "@\"-999999999-01-01\" - @\"P1Y\" * N",
            "date and time(N, M, 1, 1, 1, 1)",
        ];
        for a in numbers {
            for b in numbers {
                for function in functions {
                    let text = function.replace('N', a).replace('M', b);
                    let expression =
                        Expression::feel(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
                    let limits = Limits {
                        steps: 10_000,
                        ..Limits::default()
                    };
                    if let Ok(value) = expression.evaluate(&NoScope, &limits) {
                        let _ = (value.to_json(), value.to_string());
                    }
                }
            }
        }
    });
}

#[test]
fn deep_json_is_refused() {
    on_a_small_stack(|| {
        assert!(Value::from_json(&"[".repeat(100_000)).is_err());
        assert!(Value::from_json(&"{\"a\":".repeat(100_000)).is_err());
        let deep = format!("{}{}", "[".repeat(120), "]".repeat(120));
        let value = Value::from_json(&deep).unwrap();
        assert_eq!(value.to_json(), deep);
        assert_eq!(value, value.clone());
    });
}

#[test]
fn errors_show_bounded_values() {
    let json = format!(
        r#"{{"a": "{}", "b": [{}1]}}"#,
        "x".repeat(100_000),
        "1,".repeat(100_000)
    );
    let scope = common::Variables::new(&json);
    let error = Expression::unified("a.nothing(b)")
        .unwrap()
        .evaluate(&scope, &Limits::default())
        .unwrap_err();
    assert!(error.saw.len() < 400, "{}", error.saw.len());
    assert!(error.saw.contains("(100000 bytes)"));
}

#[test]
fn long_texts_parse_quickly() {
    on_a_small_stack(|| {
        let numbered = |form: &str, count: usize| {
            let parts: Vec<String> = (0..count)
                .map(|number| form.replace('#', &number.to_string()))
                .collect();
            parts.join(",")
        };
        for text in [
            format!("{{{}}}", numbered("a#:b#", 4000)),
            format!("{{{}}}", numbered("a b#:a b#", 3000)),
            format!("[{}]", numbered("v#", 8000)),
            format!("[{}]", numbered("a b c d e f g h", 3000)),
            format!("f({})", numbered("a", 20_000)),
            "a ".repeat(30_000),
            "${a}".repeat(10_000),
            "\"\\".repeat(20_000),
        ] {
            let started = Instant::now();
            let _ = (Expression::feel(&text), Expression::unified(&text));
            let part = text.get(..40).unwrap_or(&text);
            assert!(
                started.elapsed() < QUICK / 4,
                "{part} took {:?}",
                started.elapsed()
            );
        }
    });
}
