//! Times of prepared expressions. Run with
//! `cargo test --release -p tidegate-expression --test speed -- --ignored --nocapture`.

use std::hint::black_box;
use std::time::Instant;

use tidegate_expression::{Expression, Limits, Value};

#[test]
#[ignore = "measures, for builds with optimisation"]
fn speed() {
    let json = r#"{"amount": 120.50, "status": "open", "customer": {"tier": "gold"}, "items": [{"price": 1.10, "count": 2}, {"price": 3, "count": 1}]}"#;
    let variables = Value::from_json(json).unwrap();
    let scope = variables.as_context().unwrap();
    let limits = Limits::default();
    for text in [
        "=amount > 100 and status = \"open\"",
        "=amount > 100 and status = \"open\" and customer.tier = \"gold\"",
        "${amount > 100 && status == 'open'}",
        "=sum(for i in items return i.price * i.count)",
        "=items[price > 2].count",
        "=amount * 1.19 / 3",
        "=date(\"2024-01-01\") + duration(\"P1M\")",
        "=count(for i in 1..1000 return i * 2)",
    ] {
        let started = Instant::now();
        for _ in 0..1000 {
            black_box(Expression::parse(black_box(text), None)).unwrap();
        }
        let parse = started.elapsed() / 1000;
        let expression = Expression::parse(text, None).unwrap();
        let started = Instant::now();
        for _ in 0..10_000 {
            black_box(expression.evaluate(scope, &limits)).unwrap();
        }
        println!(
            "{text}: parse {parse:?}, evaluate {:?}",
            started.elapsed() / 10_000
        );
    }
    let started = Instant::now();
    for _ in 0..10_000 {
        black_box(Value::from_json(black_box(json))).unwrap();
    }
    println!(
        "from_json of {} bytes: {:?}",
        json.len(),
        started.elapsed() / 10_000
    );
    let started = Instant::now();
    let endless = Expression::feel("some i in 1..100000000 satisfies false").unwrap();
    let _ = black_box(endless.evaluate(scope, &limits));
    println!("a million steps: {:?}", started.elapsed());
}
