//! Functions that look into lists and make new ones.

use super::{BuiltIn, items, row, spread};
use crate::compare::equal;
use crate::decimal::Rounding;
use crate::evaluate::{Machine, Outcome};
use crate::value::Value;

pub(super) const TABLE: &[BuiltIn] = &[
    row("list contains", &[&["list", "element"]], list_contains),
    row("count", &[&["list"]], count),
    row("all", &[&["list"]], all),
    row("any", &[&["list"]], any),
    row("sublist", &[&["list", "start position", "length?"]], sublist),
    row("append", &[&["list", "item"]], append),
    row("concatenate", &[&["list"]], concatenate),
    row(
        "insert before",
        &[&["list", "position", "newItem"]],
        insert_before,
    ),
    row("remove", &[&["list", "position"]], remove),
    row(
        "list replace",
        &[&["list", "position", "newItem"], &["list", "match", "newItem"]],
        list_replace,
    ),
    row("reverse", &[&["list"]], reverse),
    row("index of", &[&["list", "match"]], index_of),
    row("union", &[&["list"]], union),
    row("distinct values", &[&["list"]], distinct_values),
    row("flatten", &[&["list"]], flatten),
    // Not of the standard, but common in models.
    row("duplicate values", &[&["list"]], duplicate_values),
    row("partition", &[&["list", "size"]], partition),
];

fn list_contains(machine: &mut Machine<'_>, arguments: &[Value]) -> Outcome {
    let [list, element] = arguments else {
        return Ok(Value::Null);
    };
    if list.is_null() {
        return Ok(Value::Null);
    }
    machine.weigh(list)?;
    Ok(items(list)
        .iter()
        .any(|item| equal(item, element) == Some(true))
        .into())
}

fn count(_: &mut Machine<'_>, arguments: &[Value]) -> Outcome {
    match arguments {
        [Value::Null] => Ok(Value::Null),
        [list] => Ok(items(list).len().into()),
        _ => Ok(Value::Null),
    }
}

fn all(machine: &mut Machine<'_>, arguments: &[Value]) -> Outcome {
    junction(machine, arguments, false)
}

fn any(machine: &mut Machine<'_>, arguments: &[Value]) -> Outcome {
    junction(machine, arguments, true)
}

fn junction(machine: &mut Machine<'_>, arguments: &[Value], decisive: bool) -> Outcome {
    if arguments.is_empty() {
        return Ok(Value::Null);
    }
    let items = spread(arguments);
    machine.step(items.len() as u64)?;
    if items.iter().any(|item| item.as_boolean() == Some(decisive)) {
        return Ok(decisive.into());
    }
    let known = items.iter().all(|item| item.as_boolean().is_some());
    Ok(if known {
        Value::Boolean(!decisive)
    } else {
        Value::Null
    })
}

/// The index of a position from one, or from the end if negative.
fn index(position: &Value, length: usize) -> Option<usize> {
    let position = position.as_number()?.rescale(0, Rounding::Down)?.to_i64()?;
    match position {
        1.. => usize::try_from(position - 1).ok(),
        0 => None,
        _ => length.checked_sub(usize::try_from(position.unsigned_abs()).ok()?),
    }
}

fn sublist(machine: &mut Machine<'_>, arguments: &[Value]) -> Outcome {
    let (list, start, length) = match arguments {
        [list, start] | [list, start, Value::Null] => (items(list), start, None),
        [list, start, Value::Number(length)] => {
            match length.to_i64().and_then(|length| usize::try_from(length).ok()) {
                Some(length) => (items(list), start, Some(length)),
                None => return Ok(Value::Null),
            }
        }
        _ => return Ok(Value::Null),
    };
    let Some(start) = index(start, list.len()) else {
        return Ok(Value::Null);
    };
    let Some(end) = length.map_or(Some(list.len()), |length| start.checked_add(length)) else {
        return Ok(Value::Null);
    };
    match list.get(start..end) {
        Some(part) => machine.list(part.to_vec()),
        None => Ok(Value::Null),
    }
}

fn append(machine: &mut Machine<'_>, arguments: &[Value]) -> Outcome {
    let [list, added @ ..] = arguments else {
        return Ok(Value::Null);
    };
    if list.is_null() {
        return Ok(Value::Null);
    }
    machine.room_for_items(items(list).len() + added.len())?;
    machine.list([items(list), added].concat())
}

fn concatenate(machine: &mut Machine<'_>, arguments: &[Value]) -> Outcome {
    if arguments.iter().any(Value::is_null) {
        return Ok(Value::Null);
    }
    machine.room_for_items(arguments.iter().map(|list| items(list).len()).sum())?;
    machine.list(arguments.iter().flat_map(items).cloned().collect())
}

fn insert_before(machine: &mut Machine<'_>, arguments: &[Value]) -> Outcome {
    let [list, position, added] = arguments else {
        return Ok(Value::Null);
    };
    if list.is_null() {
        return Ok(Value::Null);
    }
    let items = items(list);
    match index(position, items.len()) {
        Some(at) if at <= items.len() => {
            machine.room_for_items(items.len() + 1)?;
            let mut out = items.to_vec();
            out.insert(at, added.clone());
            machine.list(out)
        }
        _ => Ok(Value::Null),
    }
}

fn remove(machine: &mut Machine<'_>, arguments: &[Value]) -> Outcome {
    let [list, position] = arguments else {
        return Ok(Value::Null);
    };
    let items = items(list);
    match index(position, items.len()) {
        Some(at) if at < items.len() => {
            let mut out = items.to_vec();
            out.remove(at);
            machine.list(out)
        }
        _ => Ok(Value::Null),
    }
}

fn list_replace(machine: &mut Machine<'_>, arguments: &[Value]) -> Outcome {
    match arguments {
        [Value::Null, ..] => Ok(Value::Null),
        [list, position @ Value::Number(_), new] => match index(position, items(list).len()) {
            Some(at) if at < items(list).len() => {
                let mut out = items(list).to_vec();
                if let Some(item) = out.get_mut(at) {
                    *item = new.clone();
                }
                machine.list(out)
            }
            _ => Ok(Value::Null),
        },
        [list, Value::Function(matches), new] if matches.arity().is_none_or(|count| count == 2) => {
            let mut out = Vec::new();
            for item in items(list) {
                match machine.call(matches, vec![item.clone(), new.clone()])? {
                    Value::Boolean(true) => out.push(new.clone()),
                    Value::Boolean(false) => out.push(item.clone()),
                    _ => return Ok(Value::Null),
                }
            }
            machine.list(out)
        }
        _ => Ok(Value::Null),
    }
}

fn reverse(machine: &mut Machine<'_>, arguments: &[Value]) -> Outcome {
    match arguments {
        [Value::Null] => Ok(Value::Null),
        [list] => machine.list(items(list).iter().rev().cloned().collect()),
        _ => Ok(Value::Null),
    }
}

fn index_of(machine: &mut Machine<'_>, arguments: &[Value]) -> Outcome {
    let [list, wanted] = arguments else {
        return Ok(Value::Null);
    };
    if list.is_null() {
        return Ok(Value::Null);
    }
    machine.weigh(list)?;
    let found = items(list)
        .iter()
        .enumerate()
        .filter(|(_, item)| equal(item, wanted) == Some(true));
    machine.list(found.map(|(index, _)| Value::from(index + 1)).collect())
}

/// The first of every group of equal items. Steps are counted for every comparison: it is quadratic.
fn distinct<'v>(machine: &mut Machine<'_>, items: impl Iterator<Item = &'v Value>) -> Outcome {
    let mut out: Vec<Value> = Vec::new();
    for item in items {
        machine.step(out.len() as u64 / 4 + 1)?;
        machine.weigh(item)?;
        if !out.iter().any(|seen| equal(seen, item) == Some(true)) {
            out.push(item.clone());
        }
    }
    machine.list(out)
}

fn union(machine: &mut Machine<'_>, arguments: &[Value]) -> Outcome {
    if arguments.iter().any(Value::is_null) {
        return Ok(Value::Null);
    }
    distinct(machine, arguments.iter().flat_map(items))
}

fn distinct_values(machine: &mut Machine<'_>, arguments: &[Value]) -> Outcome {
    match arguments {
        [Value::Null] => Ok(Value::Null),
        [list] => distinct(machine, items(list).iter()),
        _ => Ok(Value::Null),
    }
}

/// One of each group of equal items that has more than one.
fn duplicate_values(machine: &mut Machine<'_>, arguments: &[Value]) -> Outcome {
    let [list] = arguments else {
        return Ok(Value::Null);
    };
    if list.is_null() {
        return Ok(Value::Null);
    }
    let items = items(list);
    let mut out: Vec<Value> = Vec::new();
    for (at, item) in items.iter().enumerate() {
        machine.step(items.len() as u64 / 4 + 1)?;
        machine.weigh(item)?;
        let is_same = |other: &Value| equal(other, item) == Some(true);
        let before = items.iter().take(at).any(is_same);
        if before && !out.iter().any(is_same) {
            out.push(item.clone());
        }
    }
    machine.list(out)
}

/// Lists of so many items each; the last one has what is left.
fn partition(machine: &mut Machine<'_>, arguments: &[Value]) -> Outcome {
    let [list, Value::Number(size)] = arguments else {
        return Ok(Value::Null);
    };
    let size = size.rescale(0, Rounding::Down).and_then(|size| size.to_i64());
    let size = size.and_then(|size| usize::try_from(size).ok());
    let Some(size) = size.filter(|size| *size > 0 && !list.is_null()) else {
        return Ok(Value::Null);
    };
    let mut out = Vec::new();
    for part in items(list).chunks(size) {
        machine.step(part.len() as u64 + 1)?;
        machine.room_for_items(out.len() + part.len() + 1)?;
        out.push(machine.list(part.to_vec())?);
    }
    machine.list(out)
}

fn flatten(machine: &mut Machine<'_>, arguments: &[Value]) -> Outcome {
    fn flat(machine: &mut Machine<'_>, items: &[Value], out: &mut Vec<Value>) -> Outcome<()> {
        machine.step(items.len() as u64)?;
        for item in items {
            match item {
                Value::List(inner) => flat(machine, inner, out)?,
                other => out.push(other.clone()),
            }
            machine.room_for_items(out.len())?;
        }
        Ok(())
    }
    match arguments {
        [Value::Null] => Ok(Value::Null),
        [list] => {
            let mut out = Vec::new();
            flat(machine, items(list), &mut out)?;
            machine.list(out)
        }
        _ => Ok(Value::Null),
    }
}
