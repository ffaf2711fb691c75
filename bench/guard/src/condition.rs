//! A condition of a sequence flow in FEEL, over variables as an instance holds them.

use std::hint::black_box;

use tidegate_expression::{Expression, Limits, Value};

const CONDITION: &str =
    r#"= amount > 100 and status = "open" and count(items[price * quantity >= 20]) > 1 and not(blocked)"#;
const VARIABLES: &str = r#"{"orderId": "o-4711", "amount": 125.50, "status": "open", "blocked": false,
    "items": [{"price": 9.95, "quantity": 3}, {"price": 1.5, "quantity": 2}, {"price": 92.65, "quantity": 1}]}"#;

pub fn run(rounds: u64) {
    let condition = Expression::parse(CONDITION, None).expect("the condition can be read");
    let variables = Value::from_json(VARIABLES).expect("the variables are JSON");
    let scope = variables.as_context().expect("the variables are an object");
    let limits = Limits::default();
    for _ in 0..rounds {
        let value = condition
            .evaluate(black_box(scope), &limits)
            .expect("it has a value");
        assert_eq!(black_box(value), Value::Boolean(true));
    }
}
