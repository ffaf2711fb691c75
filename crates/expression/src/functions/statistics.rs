//! Functions that make one value of a list.

use std::cmp::Ordering;

use super::string::flags;
use super::{BuiltIn, items, row, spread};
use crate::compare::order;
use crate::decimal::Decimal;
use crate::evaluate::{self, Machine, Outcome};
use crate::value::Value;

const LIST: &[&[&str]] = &[&["list"]];

pub(super) const TABLE: &[BuiltIn] = &[
    row("min", LIST, |machine, arguments| {
        extreme(machine, arguments, Ordering::Less)
    }),
    row("max", LIST, |machine, arguments| {
        extreme(machine, arguments, Ordering::Greater)
    }),
    row("sum", LIST, sum),
    row("product", LIST, product),
    row("mean", LIST, mean),
    row("median", LIST, median),
    row("stddev", LIST, stddev),
    row("mode", LIST, mode),
    row(
        "string join",
        &[
            &["list", "delimiter?"],
            &["list", "delimiter", "prefix", "suffix"],
        ],
        string_join,
    ),
];

/// Nulls are left out. Prefix and suffix, which the standard does not know, go round what is joined.
fn string_join(machine: &mut Machine<'_>, arguments: &[Value]) -> Outcome {
    let [list, rest @ ..] = arguments else {
        return Ok(Value::Null);
    };
    let texts: Option<Vec<&str>> = [0, 1, 2].iter().map(|index| flags(rest.get(*index))).collect();
    let (Some([delimiter, prefix, suffix]), false) = (
        texts.as_deref(),
        list.is_null() || !matches!(rest.len(), 0 | 1 | 3),
    ) else {
        return Ok(Value::Null);
    };
    let mut out = (*prefix).to_owned();
    let mut first = true;
    for item in items(list) {
        machine.step(1)?;
        match item {
            Value::Null => continue,
            Value::String(text) => {
                machine.room(out.len() + delimiter.len() + text.len())?;
                out.push_str(if first { "" } else { delimiter });
                out.push_str(text);
                first = false;
            }
            _ => return Ok(Value::Null),
        }
    }
    machine.room(out.len() + suffix.len())?;
    out.push_str(suffix);
    machine.string(out)
}

fn extreme(machine: &mut Machine<'_>, arguments: &[Value], wanted: Ordering) -> Outcome {
    let items = spread(arguments);
    machine.step(items.len() as u64)?;
    let Some((first, rest)) = items.split_first() else {
        return Ok(Value::Null);
    };
    if order(first, first).is_none() {
        return Ok(Value::Null);
    }
    let mut best = first;
    for item in rest {
        match order(item, best) {
            Some(found) if found == wanted => best = item,
            Some(_) => {}
            None => return Ok(Value::Null),
        }
    }
    Ok(best.clone())
}

/// Numbers only; `None` for an empty list and for anything else in it.
fn numbers(machine: &mut Machine<'_>, arguments: &[Value]) -> Outcome<Option<Vec<Decimal>>> {
    let items = spread(arguments);
    machine.step(items.len() as u64)?;
    machine.room_for_items(items.len())?;
    let numbers: Option<Vec<Decimal>> = items.iter().map(|item| item.as_number().copied()).collect();
    Ok(numbers.filter(|numbers| !numbers.is_empty()))
}

fn total(numbers: &[Decimal]) -> Option<Decimal> {
    numbers
        .iter()
        .try_fold(Decimal::ZERO, |sum, number| sum.add(number))
}

fn average(numbers: &[Decimal]) -> Option<Decimal> {
    total(numbers)?.divide(&numbers.len().into())
}

/// Numbers, or durations of one kind.
fn sum(machine: &mut Machine<'_>, arguments: &[Value]) -> Outcome {
    let items = spread(arguments);
    machine.step(items.len() as u64)?;
    let Some((first, rest)) = items.split_first() else {
        return Ok(Value::Null);
    };
    let summable = matches!(
        first,
        Value::Number(_) | Value::DaysTimeDuration(_) | Value::YearsMonthsDuration(_)
    );
    if !summable || items.iter().any(|item| item.type_name() != first.type_name()) {
        return Ok(Value::Null);
    }
    let sum = rest
        .iter()
        .try_fold(first.clone(), |sum, item| evaluate::add(&sum, item));
    Ok(sum.unwrap_or(Value::Null))
}

fn product(machine: &mut Machine<'_>, arguments: &[Value]) -> Outcome {
    let Some(numbers) = numbers(machine, arguments)? else {
        return Ok(Value::Null);
    };
    Ok(numbers
        .iter()
        .try_fold(Decimal::ONE, |product, number| product.multiply(number))
        .into())
}

fn mean(machine: &mut Machine<'_>, arguments: &[Value]) -> Outcome {
    let numbers = numbers(machine, arguments)?;
    Ok(numbers.and_then(|numbers| average(&numbers)).into())
}

fn median(machine: &mut Machine<'_>, arguments: &[Value]) -> Outcome {
    let Some(mut numbers) = numbers(machine, arguments)? else {
        return Ok(Value::Null);
    };
    machine.step(numbers.len() as u64 * 4)?;
    numbers.sort();
    let middle = numbers.len() / 2;
    let from = if numbers.len().is_multiple_of(2) {
        middle.saturating_sub(1)
    } else {
        middle
    };
    Ok(numbers.get(from..=middle).and_then(average).into())
}

fn stddev(machine: &mut Machine<'_>, arguments: &[Value]) -> Outcome {
    let Some(numbers) = numbers(machine, arguments)? else {
        return Ok(Value::Null);
    };
    machine.step(numbers.len() as u64 * 4)?;
    Ok(deviation(&numbers).into())
}

/// Of a sample, so divided by one less than the count.
fn deviation(numbers: &[Decimal]) -> Option<Decimal> {
    let mean = average(numbers)?;
    let square = |number: &Decimal| {
        let distance = number.subtract(&mean)?;
        distance.multiply(&distance)
    };
    let squares: Option<Vec<Decimal>> = numbers.iter().map(square).collect();
    total(&squares?)?
        .divide(&numbers.len().checked_sub(1)?.into())?
        .sqrt()
}

/// The most frequent numbers in ascending order.
fn mode(machine: &mut Machine<'_>, arguments: &[Value]) -> Outcome {
    if matches!(arguments, [Value::List(list)] if list.is_empty()) {
        return machine.list(Vec::new());
    }
    let Some(mut numbers) = numbers(machine, arguments)? else {
        return Ok(Value::Null);
    };
    machine.step(numbers.len() as u64 * 4)?;
    numbers.sort();
    let groups: Vec<&[Decimal]> = numbers.chunk_by(|a, b| a == b).collect();
    let most = groups.iter().map(|group| group.len()).max().unwrap_or(0);
    let modes = groups
        .iter()
        .filter(|group| group.len() == most)
        .filter_map(|group| group.first());
    machine.list(modes.map(|number| Value::Number(*number)).collect())
}
