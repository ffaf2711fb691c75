//! Functions that give a boolean about any value.

use super::{BuiltIn, row};
use crate::compare::equal;
use crate::evaluate::{Machine, Outcome};
use crate::value::Value;

pub(super) const TABLE: &[BuiltIn] = &[
    row("not", &[&["negand"]], not),
    row("is", &[&["value1?", "value2?"]], is),
    // Not of the standard, but common in models.
    row("is defined", &[&["value"]], is_defined),
    row("is empty", &[&["list"]], is_empty),
    row("get or else", &[&["value", "default"]], get_or_else),
];

fn not(_: &mut Machine<'_>, arguments: &[Value]) -> Outcome {
    let [Value::Boolean(value)] = arguments else {
        return Ok(Value::Null);
    };
    Ok((!value).into())
}

/// The same value in the same form: unlike equality, times differ that mean the same moment in other zones.
fn is(_: &mut Machine<'_>, arguments: &[Value]) -> Outcome {
    let (a, b) = match arguments {
        [a, b] => (a, b),
        [a] => (a, &Value::Null),
        _ => return Ok(Value::Null),
    };
    let same = match (a, b) {
        (Value::Time(a), Value::Time(b)) => **a == **b,
        (Value::DateTime(a), Value::DateTime(b)) => **a == **b,
        _ => a.type_name() == b.type_name() && equal(a, b) == Some(true),
    };
    Ok(same.into())
}

fn is_defined(_: &mut Machine<'_>, arguments: &[Value]) -> Outcome {
    let [value] = arguments else {
        return Ok(Value::Null);
    };
    Ok((!value.is_null()).into())
}

fn is_empty(_: &mut Machine<'_>, arguments: &[Value]) -> Outcome {
    match arguments {
        [Value::List(list)] => Ok(list.is_empty().into()),
        _ => Ok(Value::Null),
    }
}

fn get_or_else(_: &mut Machine<'_>, arguments: &[Value]) -> Outcome {
    let [value, default] = arguments else {
        return Ok(Value::Null);
    };
    Ok(if value.is_null() {
        default.clone()
    } else {
        value.clone()
    })
}
