//! FEEL's equality and order: `None` where two values cannot be compared.

use std::cmp::Ordering;

use crate::tree::Comparison;
use crate::value::{Range, Value};

pub(crate) fn equal(a: &Value, b: &Value) -> Option<bool> {
    match (a, b) {
        (Value::Null, Value::Null) => Some(true),
        (Value::Null, _) | (_, Value::Null) => Some(false),
        (Value::Boolean(a), Value::Boolean(b)) => Some(a == b),
        (Value::Number(a), Value::Number(b)) => Some(a == b),
        (Value::String(a), Value::String(b)) => Some(a == b),
        (Value::List(a), Value::List(b)) => {
            if a.len() != b.len() {
                return Some(false);
            }
            all(a.iter().zip(b.iter()).map(|(a, b)| equal(a, b)))
        }
        (Value::Context(a), Value::Context(b)) => {
            if a.len() != b.len() {
                return Some(false);
            }
            all(a
                .iter()
                .map(|(name, a)| b.get(name).map_or(Some(false), |b| equal(a, b))))
        }
        (Value::Range(a), Value::Range(b)) => Some(
            (a.start_included, a.end_included, a.excluded) == (b.start_included, b.end_included, b.excluded)
                && equal(&a.start, &b.start)?
                && equal(&a.end, &b.end)?,
        ),
        (Value::Function(a), Value::Function(b)) => a.same(b).then_some(true),
        _ => order(a, b).map(Ordering::is_eq),
    }
}

fn all(results: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let mut out = Some(true);
    for result in results {
        match result {
            Some(true) => {}
            Some(false) => return Some(false),
            None => out = None,
        }
    }
    out
}

pub(crate) fn order(a: &Value, b: &Value) -> Option<Ordering> {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => Some(a.cmp(b)),
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        (Value::Date(a), Value::Date(b)) => Some(a.cmp(b)),
        (Value::Time(a), Value::Time(b)) => a.compare(b),
        (Value::DateTime(a), Value::DateTime(b)) => a.compare(b),
        (Value::DaysTimeDuration(a), Value::DaysTimeDuration(b)) => Some(a.cmp(b)),
        (Value::YearsMonthsDuration(a), Value::YearsMonthsDuration(b)) => Some(a.cmp(b)),
        _ => None,
    }
}

pub(crate) fn holds(comparison: Comparison, a: &Value, b: &Value) -> Option<bool> {
    let ordered = |wanted: fn(Ordering) -> bool| order(a, b).map(wanted);
    match comparison {
        Comparison::Equal => equal(a, b),
        Comparison::Different => equal(a, b).map(|equal| !equal),
        Comparison::Less => ordered(Ordering::is_lt),
        Comparison::LessOrEqual => ordered(Ordering::is_le),
        Comparison::Greater => ordered(Ordering::is_gt),
        Comparison::GreaterOrEqual => ordered(Ordering::is_ge),
    }
}

/// Whether a value lies in a range.
pub(crate) fn within(range: &Range, value: &Value) -> Option<bool> {
    if range.excluded {
        return equal(&range.start, value).map(|equal| !equal);
    }
    if range.start.is_null() && range.end.is_null() {
        return None;
    }
    let (lower, upper) = (
        if range.start_included {
            Comparison::GreaterOrEqual
        } else {
            Comparison::Greater
        },
        if range.end_included {
            Comparison::LessOrEqual
        } else {
            Comparison::Less
        },
    );
    let above = if range.start.is_null() {
        Some(true)
    } else {
        holds(lower, value, &range.start)
    };
    let below = if range.end.is_null() {
        Some(true)
    } else {
        holds(upper, value, &range.end)
    };
    match (above, below) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

/// Whether a value passes a test without an operator: it equals it, or lies in it.
pub(crate) fn passes(test: &Value, value: &Value) -> Option<bool> {
    match test {
        Value::Range(range) if !matches!(value, Value::Range(_)) => within(range, value),
        Value::List(items) => {
            if matches!(value, Value::List(_)) && equal(test, value) == Some(true) {
                return Some(true);
            }
            let in_item = |item: &Value| match item {
                Value::Range(_) => passes(item, value) == Some(true),
                _ => equal(item, value) == Some(true),
            };
            Some(items.iter().any(in_item))
        }
        _ => equal(test, value),
    }
}
