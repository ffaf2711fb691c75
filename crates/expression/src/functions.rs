//! The built-in functions of FEEL: one table a topic, one row a function.
//!
//! To add one, write it in its topic's file and add a row there. A function gets its arguments by position and gives
//! null for what it is not defined for.

mod boolean;
mod context;
mod conversion;
mod list;
mod numeric;
#[cfg(test)]
mod page;
pub(crate) mod pattern;
mod range;
mod sort;
mod statistics;
pub(crate) mod string;
mod temporal;

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::evaluate::{Machine, Outcome};
use crate::value::Value;

/// One built-in function.
#[derive(Debug)]
pub(crate) struct BuiltIn {
    pub name: &'static str,
    /// Parameter names, one row an overload; `?` marks optional ones, which stand last.
    signatures: &'static [&'static [&'static str]],
    run: fn(&mut Machine<'_>, &[Value]) -> Outcome,
    /// No argument is a list, so that a list of one item stands for the item.
    takes_items: bool,
}

const fn row(
    name: &'static str,
    signatures: &'static [&'static [&'static str]],
    run: fn(&mut Machine<'_>, &[Value]) -> Outcome,
) -> BuiltIn {
    BuiltIn {
        name,
        signatures,
        run,
        takes_items: false,
    }
}

/// A function of items: see [`BuiltIn::takes_items`].
const fn item_row(
    name: &'static str,
    signatures: &'static [&'static [&'static str]],
    run: fn(&mut Machine<'_>, &[Value]) -> Outcome,
) -> BuiltIn {
    BuiltIn {
        takes_items: true,
        ..row(name, signatures, run)
    }
}

const TABLES: &[&[BuiltIn]] = &[
    boolean::TABLE,
    context::TABLE,
    conversion::TABLE,
    list::TABLE,
    numeric::TABLE,
    range::TABLE,
    sort::TABLE,
    statistics::TABLE,
    string::TABLE,
    temporal::TABLE,
];

/// The function of a name.
pub(crate) fn find(name: &str) -> Option<&'static BuiltIn> {
    static BY_NAME: LazyLock<HashMap<&'static str, &'static BuiltIn>> =
        LazyLock::new(|| all().map(|built_in| (built_in.name, built_in)).collect());
    BY_NAME.get(name).copied()
}

/// Names of several words.
pub(crate) fn long_names() -> &'static [&'static str] {
    static NAMES: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
        all()
            .map(|built_in| built_in.name)
            .filter(|name| name.contains(' '))
            .collect()
    });
    &NAMES
}

fn all() -> impl Iterator<Item = &'static BuiltIn> {
    TABLES.iter().flat_map(|table| table.iter())
}

impl BuiltIn {
    pub(crate) fn call(&self, machine: &mut Machine<'_>, arguments: &[Value]) -> Outcome {
        machine.step(arguments.len() as u64 + 1)?;
        let single = |value: &Value| matches!(value, Value::List(list) if list.len() == 1);
        if self.takes_items && arguments.iter().any(single) {
            let arguments: Vec<Value> = arguments.iter().map(only_item).collect();
            return (self.run)(machine, &arguments);
        }
        (self.run)(machine, arguments)
    }

    /// Brings named arguments into the order of the overload that has all their names.
    pub(crate) fn arrange(&self, pairs: Vec<(&str, Value)>) -> Option<Vec<Value>> {
        self.signatures.iter().find_map(|signature| {
            let mut used = 0;
            let mut arguments = Vec::with_capacity(signature.len());
            let mut left_out = false;
            for parameter in *signature {
                let (name, optional) = parameter
                    .strip_suffix('?')
                    .map_or((*parameter, false), |name| (name, true));
                match pairs.iter().find(|(given, _)| *given == name) {
                    Some((_, value)) => {
                        if left_out {
                            arguments.push(Value::Null);
                        }
                        used += 1;
                        left_out = false;
                        arguments.push(value.clone());
                    }
                    None if optional => left_out = true,
                    None => return None,
                }
            }
            (used == pairs.len()).then_some(arguments)
        })
    }
}

/// The items of an argument that may be a list or its only item.
fn items(value: &Value) -> &[Value] {
    match value {
        Value::List(list) => list,
        single => std::slice::from_ref(single),
    }
}

fn only_item(value: &Value) -> Value {
    match value {
        Value::List(list) if list.len() == 1 => list.first().cloned().unwrap_or(Value::Null),
        other => other.clone(),
    }
}

/// The items of a function that takes one list or any number of arguments.
fn spread(arguments: &[Value]) -> &[Value] {
    match arguments {
        [Value::List(list)] => list,
        other => other,
    }
}

/// An optional argument: absent and null are the same.
fn given(value: Option<&Value>) -> Option<&Value> {
    value.filter(|value| !value.is_null())
}
