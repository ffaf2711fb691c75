//! Decimals against results of an independent implementation.

use tidegate_expression::Decimal;

fn rows(text: &str) -> Vec<Vec<&str>> {
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split('\t').collect())
        .collect()
}

fn number(text: &str) -> Decimal {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn arithmetic() {
    for row in rows(include_str!("data/decimal.tsv")) {
        let [a, b, sum, difference, product, quotient, order] = row.as_slice() else {
            panic!("{row:?}")
        };
        let (a, b) = (number(a), number(b));
        let check = |name: &str, actual: Option<Decimal>, expected: &str| {
            let expected = if expected == "none" {
                None
            } else {
                Some(number(expected))
            };
            assert_eq!(actual, expected, "{a} {name} {b}");
        };
        check("+", a.add(&b), sum);
        check("-", a.subtract(&b), difference);
        check("*", a.multiply(&b), product);
        check("/", a.divide(&b), quotient);
        assert_eq!((a.cmp(&b) as i8).to_string(), *order, "{a} compared with {b}");
    }
}

#[test]
fn functions_to_29_digits() {
    for row in rows(include_str!("data/decimal-functions.tsv")) {
        let [x, root, logarithm, exponential] = row.as_slice() else {
            panic!("{row:?}")
        };
        let x = number(x);
        let close = |name: &str, actual: Option<Decimal>, expected: &str| {
            let (actual, expected) = (actual.unwrap(), number(expected));
            let distance = actual.subtract(&expected).unwrap().abs();
            let allowed = expected
                .abs()
                .max(Decimal::ONE)
                .multiply(&number("1e-29"))
                .unwrap();
            assert!(distance <= allowed, "{name} {x}: {actual}, not {expected}");
        };
        close("sqrt", x.sqrt(), root);
        close("ln", x.ln(), logarithm);
        close("exp", x.modulo(&50i64.into()).unwrap().exp(), exponential);
    }
}

#[test]
fn text() {
    let cases = [
        ("1.10", "1.10"),
        ("0", "0"),
        ("-0", "0"),
        ("-0.0", "0.0"),
        (".5", "0.5"),
        ("1e3", "1000"),
        ("1.23e-4", "0.000123"),
        ("+7", "7"),
        (
            "12345678901234567890123456789012345",
            "12345678901234567890123456789012340",
        ),
        (
            "0.12345678901234567890123456789012345678",
            "0.1234567890123456789012345678901235",
        ),
        ("1e-6176", &format!("0.{}1", "0".repeat(6175))),
    ];
    for (text, expected) in cases {
        assert_eq!(number(text).to_string(), expected, "{text}");
    }
    for text in [
        "",
        "-",
        ".",
        "5.",
        "1e",
        "1e+",
        "e5",
        "1.2.3",
        "0x1",
        "1e6145",
        "1e99999999999",
        "NaN",
        "Infinity",
        "1 ",
    ] {
        assert!(text.parse::<Decimal>().is_err(), "{text}");
    }
    assert_eq!(number("1e-99999999999"), Decimal::ZERO);
}
