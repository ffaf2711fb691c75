//! `sort`: a stable merge sort of its own, because the order comes from the model and may be no order at all.

use std::cmp::Ordering;
use std::sync::Arc;

use super::{BuiltIn, items, row};
use crate::compare::order;
use crate::evaluate::{Function, Machine, Outcome};
use crate::value::Value;

pub(super) const TABLE: &[BuiltIn] = &[row("sort", &[&["list", "precedes?"]], sort)];

fn sort(machine: &mut Machine<'_>, arguments: &[Value]) -> Outcome {
    let (list, precedes) = match arguments {
        [Value::Null, ..] => return Ok(Value::Null),
        [list] | [list, Value::Null] => (list, None),
        [list, Value::Function(precedes)] => (list, Some(precedes)),
        _ => return Ok(Value::Null),
    };
    match merge_sort(machine, items(list).to_vec(), precedes)? {
        Some(sorted) => machine.list(sorted),
        None => Ok(Value::Null),
    }
}

/// Bottom-up, so without recursion; `None` where two items have no order.
fn merge_sort(
    machine: &mut Machine<'_>,
    mut items: Vec<Value>,
    precedes: Option<&Arc<Function>>,
) -> Outcome<Option<Vec<Value>>> {
    let mut width = 1;
    while width < items.len() {
        let mut merged = Vec::with_capacity(items.len());
        for pair in items.chunks(width * 2) {
            let (left, right) = pair.split_at(width.min(pair.len()));
            let (mut left, mut right) = (left.iter().peekable(), right.iter().peekable());
            while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
                let Some(later) = goes_before(machine, b, a, precedes)? else {
                    return Ok(None);
                };
                merged.extend(if later {
                    right.next().cloned()
                } else {
                    left.next().cloned()
                });
            }
            merged.extend(left.cloned());
            merged.extend(right.cloned());
        }
        items = merged;
        width *= 2;
    }
    Ok(Some(items))
}

fn goes_before(
    machine: &mut Machine<'_>,
    a: &Value,
    b: &Value,
    precedes: Option<&Arc<Function>>,
) -> Outcome<Option<bool>> {
    machine.step(1)?;
    match precedes {
        Some(precedes) => Ok(machine.call(precedes, vec![a.clone(), b.clone()])?.as_boolean()),
        None => Ok(order(a, b).map(|order| order == Ordering::Less)),
    }
}
