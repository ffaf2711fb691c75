//! Coercions and operators.

use std::cmp::Ordering;

use crate::Scope;
use crate::compare::{equal, order};
use crate::decimal::Decimal;
use crate::error::{EvaluationCode, Failure};
use crate::evaluate::{self, Machine, Outcome};
use crate::tree::{Arithmetic, Comparison};
use crate::value::Value;

/// Most names that an error lists.
const LISTED: usize = 8;

pub(crate) fn unknown_variable(scope: &dyn Scope, name: &str) -> Box<Failure> {
    let mut names = Vec::new();
    scope.names(&mut |known| {
        if names.len() <= LISTED {
            names.push(format!("`{known}`"));
        }
    });
    let more = if names.len() > LISTED { ", ..." } else { "" };
    names.truncate(LISTED);
    let known = if names.is_empty() {
        String::new()
    } else {
        format!("; defined are {}{more}", names.join(", "))
    };
    Failure::new(
        EvaluationCode::UnknownVariable,
        format!("variable `{name}` is not defined{known}"),
    )
}

pub(super) fn wrong_type(message: impl Into<String>) -> Box<Failure> {
    Failure::new(EvaluationCode::WrongType, message)
}

/// A value as a condition: null and the empty text are false.
pub(crate) fn truth(value: &Value) -> Outcome<bool> {
    match value {
        Value::Null => Ok(false),
        Value::Boolean(value) => Ok(*value),
        Value::String(text) => Ok(text.eq_ignore_ascii_case("true")),
        other => Err(wrong_type(format!("a {} is no condition", other.type_name()))),
    }
}

pub(crate) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::List(list) => list.is_empty(),
        Value::Context(context) => context.is_empty(),
        _ => false,
    }
}

/// A value as a number: null and the empty text are zero.
fn number(value: &Value) -> Option<Decimal> {
    match value {
        Value::Null => Some(Decimal::ZERO),
        Value::Number(number) => Some(*number),
        Value::String(text) if text.trim().is_empty() => Some(Decimal::ZERO),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

/// A value in a text: null is nothing, texts stand without quotes.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.to_string(),
        other => other.to_string(),
    }
}

pub(crate) fn compare(comparison: Comparison, left: &Value, right: &Value) -> Outcome<bool> {
    match comparison {
        Comparison::Equal => return Ok(same(left, right)),
        Comparison::Different => return Ok(!same(left, right)),
        _ => {}
    }
    let inclusive = matches!(comparison, Comparison::LessOrEqual | Comparison::GreaterOrEqual);
    if left.is_null() || right.is_null() {
        return Ok(inclusive && left.is_null() && right.is_null());
    }
    let Some(found) = ordering(left, right) else {
        return Err(wrong_type(format!(
            "a {} and a {} have no order",
            left.type_name(),
            right.type_name()
        )));
    };
    Ok(match comparison {
        Comparison::Less | Comparison::LessOrEqual => {
            found == Ordering::Less || (inclusive && found == Ordering::Equal)
        }
        _ => found == Ordering::Greater || (inclusive && found == Ordering::Equal),
    })
}

fn ordering(left: &Value, right: &Value) -> Option<Ordering> {
    if matches!(left, Value::Number(_)) || matches!(right, Value::Number(_)) {
        return Some(number(left)?.cmp(&number(right)?));
    }
    match (left, right) {
        (Value::Boolean(a), Value::Boolean(b)) => Some(a.cmp(b)),
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        (Value::String(a), other) => Some((**a).cmp(other.to_string().as_str())),
        (other, Value::String(b)) => Some(other.to_string().as_str().cmp(b)),
        _ => order(left, right),
    }
}

/// Equality: the other side is brought to a number, a boolean or a text if one side is that.
fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Null, Value::Null) => true,
        (Value::Null, _) | (_, Value::Null) => false,
        (Value::Number(a), other) | (other, Value::Number(a)) => number(other).is_some_and(|b| *a == b),
        (Value::Boolean(a), Value::String(text)) | (Value::String(text), Value::Boolean(a)) => {
            *a == text.eq_ignore_ascii_case("true")
        }
        (Value::String(a), Value::String(b)) => a == b,
        (Value::String(a), other) | (other, Value::String(a)) => **a == *other.to_string(),
        _ => equal(left, right) == Some(true),
    }
}

pub(crate) fn arithmetic(
    machine: &mut Machine<'_>,
    operator: Arithmetic,
    left: &Value,
    right: &Value,
) -> Outcome {
    let (Some(a), Some(b)) = (number(left), number(right)) else {
        return other_arithmetic(machine, operator, left, right);
    };
    let result = match operator {
        Arithmetic::Add => a.add(&b),
        Arithmetic::Subtract => a.subtract(&b),
        Arithmetic::Multiply => a.multiply(&b),
        Arithmetic::Divide => a.divide(&b),
        Arithmetic::Remainder => a.remainder(&b),
        Arithmetic::Power => a.power(&b),
    };
    let divides = matches!(operator, Arithmetic::Divide | Arithmetic::Remainder);
    match result {
        Some(number) => Ok(Value::Number(number)),
        None if divides && b.is_zero() => Err(Failure::new(
            EvaluationCode::Arithmetic,
            format!("{a} is divided by zero"),
        )),
        None => Err(Failure::new(
            EvaluationCode::Arithmetic,
            "the result is beyond the range of numbers",
        )),
    }
}

/// Texts are joined by `+`; dates, times and durations follow FEEL.
fn other_arithmetic(machine: &mut Machine<'_>, operator: Arithmetic, left: &Value, right: &Value) -> Outcome {
    let texts = matches!(left, Value::String(_)) || matches!(right, Value::String(_));
    let result = match operator {
        Arithmetic::Add if texts => {
            machine.weigh(left)?;
            machine.weigh(right)?;
            return machine.join_texts(&text(left), &text(right));
        }
        Arithmetic::Add => evaluate::add(left, right),
        Arithmetic::Subtract if left.as_number().is_some_and(Decimal::is_zero) => evaluate::negate(right),
        Arithmetic::Subtract => evaluate::subtract(left, right),
        Arithmetic::Multiply => evaluate::multiply(left, right),
        _ => None,
    };
    result.ok_or_else(|| {
        wrong_type(format!(
            "cannot compute with a {} and a {}",
            left.type_name(),
            right.type_name()
        ))
    })
}

/// `value.name`: what null or a missing entry has is null.
pub(crate) fn property(base: &Value, name: &str) -> Outcome {
    match base {
        Value::Null => Ok(Value::Null),
        Value::Context(context) => Ok(context.get(name).cloned().unwrap_or(Value::Null)),
        Value::List(list) if matches!(name, "size" | "length") => Ok(list.len().into()),
        Value::List(list) if name == "empty" => Ok(list.is_empty().into()),
        other => Err(wrong_type(format!(
            "a {} has no property `{name}`",
            other.type_name()
        ))),
    }
}

/// `value[index]`: a position from zero in a list, a name in a context.
pub(crate) fn index(base: &Value, index: &Value) -> Outcome {
    match (base, index) {
        (Value::Null, _) | (_, Value::Null) => Ok(Value::Null),
        (Value::Context(context), Value::String(name)) => {
            Ok(context.get(name).cloned().unwrap_or(Value::Null))
        }
        (Value::Context(context), other) => Ok(context.get(&text(other)).cloned().unwrap_or(Value::Null)),
        (Value::List(list), position) => match number(position).and_then(|position| position.to_i64()) {
            Some(position) => {
                let item = usize::try_from(position)
                    .ok()
                    .and_then(|position| list.get(position));
                Ok(item.cloned().unwrap_or(Value::Null))
            }
            None => Err(wrong_type(format!(
                "a {} is no position in a list",
                position.type_name()
            ))),
        },
        (other, _) => Err(wrong_type(format!("a {} has no index", other.type_name()))),
    }
}
