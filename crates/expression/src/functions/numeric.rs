//! Functions over numbers.

use super::{BuiltIn, item_row};
use crate::decimal::{Decimal, Rounding};
use crate::evaluate::{Machine, Outcome};
use crate::value::Value;

pub(super) const TABLE: &[BuiltIn] = &[
    item_row("decimal", &[&["n", "scale"]], |_, arguments| {
        rounded(arguments, Rounding::HalfEven, false)
    }),
    item_row("floor", &[&["n", "scale?"]], |_, arguments| {
        rounded(arguments, Rounding::Floor, true)
    }),
    item_row("ceiling", &[&["n", "scale?"]], |_, arguments| {
        rounded(arguments, Rounding::Ceiling, true)
    }),
    item_row("round up", &[&["n", "scale"]], |_, arguments| {
        rounded(arguments, Rounding::Up, false)
    }),
    item_row("round down", &[&["n", "scale"]], |_, arguments| {
        rounded(arguments, Rounding::Down, false)
    }),
    item_row("round half up", &[&["n", "scale"]], |_, arguments| {
        rounded(arguments, Rounding::HalfUp, false)
    }),
    item_row("round half down", &[&["n", "scale"]], |_, arguments| {
        rounded(arguments, Rounding::HalfDown, false)
    }),
    item_row("abs", &[&["n"]], abs),
    item_row("modulo", &[&["dividend", "divisor"]], modulo),
    item_row("sqrt", &[&["number"]], |_, arguments| {
        number(arguments, Decimal::sqrt)
    }),
    item_row("log", &[&["number"]], |_, arguments| {
        number(arguments, Decimal::ln)
    }),
    item_row("exp", &[&["number"]], |_, arguments| {
        number(arguments, Decimal::exp)
    }),
    item_row("odd", &[&["number"]], |_, arguments| parity(arguments, false)),
    item_row("even", &[&["number"]], |_, arguments| parity(arguments, true)),
];

fn rounded(arguments: &[Value], rounding: Rounding, scale_optional: bool) -> Outcome {
    let (number, scale) = match arguments {
        [Value::Number(number)] if scale_optional => (number, 0),
        [Value::Number(number), Value::Number(scale)] => {
            let scale = scale.rescale(0, Rounding::Down).and_then(|scale| scale.to_i64());
            match scale.and_then(|scale| i32::try_from(scale).ok()) {
                Some(scale) => (number, scale),
                None => return Ok(Value::Null),
            }
        }
        _ => return Ok(Value::Null),
    };
    Ok(number.rescale(scale, rounding).into())
}

fn number(arguments: &[Value], function: impl Fn(&Decimal) -> Option<Decimal>) -> Outcome {
    let [Value::Number(number)] = arguments else {
        return Ok(Value::Null);
    };
    Ok(function(number).into())
}

fn abs(_: &mut Machine<'_>, arguments: &[Value]) -> Outcome {
    Ok(match arguments {
        [Value::Number(number)] => number.abs().into(),
        [Value::DaysTimeDuration(duration)] if duration.nanos() < 0 => {
            Value::DaysTimeDuration(duration.negate())
        }
        [Value::YearsMonthsDuration(duration)] if duration.months() < 0 => {
            Value::YearsMonthsDuration(duration.negate())
        }
        [duration @ (Value::DaysTimeDuration(_) | Value::YearsMonthsDuration(_))] => duration.clone(),
        _ => Value::Null,
    })
}

fn modulo(_: &mut Machine<'_>, arguments: &[Value]) -> Outcome {
    let [Value::Number(dividend), Value::Number(divisor)] = arguments else {
        return Ok(Value::Null);
    };
    Ok(dividend.modulo(divisor).into())
}

fn parity(arguments: &[Value], even: bool) -> Outcome {
    let [Value::Number(number)] = arguments else {
        return Ok(Value::Null);
    };
    if !number.is_integer() {
        return Ok(false.into());
    }
    let remainder = number.remainder(&Decimal::from(2i64));
    Ok(remainder.map(|remainder| remainder.is_zero() == even).into())
}
