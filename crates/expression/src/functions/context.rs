//! Functions over contexts.

use std::sync::Arc;

use super::{BuiltIn, items, row};
use crate::context::Context;
use crate::evaluate::{Machine, Outcome};
use crate::value::Value;

pub(super) const TABLE: &[BuiltIn] = &[
    row("get value", &[&["m", "key"], &["context", "keys"]], get_value),
    row("get entries", &[&["m"]], get_entries),
    row("context", &[&["entries"]], context),
    row(
        "context put",
        &[&["context", "key", "value"], &["context", "keys", "value"]],
        context_put,
    ),
    row("context merge", &[&["contexts"]], context_merge),
    // Their names before they came into the standard.
    row("put", &[&["context", "key", "value"]], context_put),
    row("put all", &[&["contexts"]], context_merge),
];

fn get_value(_: &mut Machine<'_>, arguments: &[Value]) -> Outcome {
    match arguments {
        [Value::Context(context), Value::String(key)] => Ok(context.get(key).cloned().unwrap_or(Value::Null)),
        [Value::Context(_), Value::List(keys)] => {
            let step = |value: Option<Value>, key: &Value| value?.as_context()?.get(key.as_str()?).cloned();
            Ok(keys
                .iter()
                .fold(arguments.first().cloned(), step)
                .unwrap_or(Value::Null))
        }
        _ => Ok(Value::Null),
    }
}

fn get_entries(machine: &mut Machine<'_>, arguments: &[Value]) -> Outcome {
    let [Value::Context(context)] = arguments else {
        return Ok(Value::Null);
    };
    let mut entries = Vec::with_capacity(context.len());
    for (name, value) in context.iter() {
        entries.push(machine.context(vec![
            ("key".into(), Value::String(name.clone())),
            ("value".into(), value.clone()),
        ])?);
    }
    machine.list(entries)
}

fn context(machine: &mut Machine<'_>, arguments: &[Value]) -> Outcome {
    let [entries] = arguments else {
        return Ok(Value::Null);
    };
    let mut out = Vec::new();
    for entry in items(entries) {
        let pair = entry
            .as_context()
            .and_then(|entry| Some((entry.get("key")?, entry.get("value")?)));
        let Some((Value::String(key), value)) = pair else {
            return Ok(Value::Null);
        };
        out.push((key.clone(), value.clone()));
    }
    let count = out.len();
    let context = machine.context(out)?;
    let repeated = context.as_context().is_some_and(|context| context.len() != count);
    Ok(if repeated { Value::Null } else { context })
}

fn entries(context: &Context) -> Vec<(Arc<str>, Value)> {
    context
        .iter()
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

fn context_put(machine: &mut Machine<'_>, arguments: &[Value]) -> Outcome {
    let [Value::Context(context), key, value] = arguments else {
        return Ok(Value::Null);
    };
    match key {
        Value::String(key) => {
            let mut out = entries(context);
            out.push((key.clone(), value.clone()));
            machine.context(out)
        }
        Value::List(keys) => put_path(machine, context, keys, value),
        _ => Ok(Value::Null),
    }
}

/// Puts a value below a path of names. The path's contexts are collected downwards and rebuilt upwards.
fn put_path(machine: &mut Machine<'_>, context: &Arc<Context>, keys: &[Value], value: &Value) -> Outcome {
    let Some((last, path)) = keys.split_last() else {
        return Ok(Value::Null);
    };
    let mut parents = vec![context.clone()];
    for key in path {
        let inner = key.as_str().and_then(|key| parents.last()?.get(key)).cloned();
        let Some(Value::Context(inner)) = inner else {
            return Ok(Value::Null);
        };
        parents.push(inner);
    }
    let mut result = value.clone();
    let names = path.iter().chain([last]).rev();
    for (parent, key) in parents.iter().rev().zip(names) {
        let Value::String(key) = key else {
            return Ok(Value::Null);
        };
        let mut out = entries(parent);
        out.push((key.clone(), result));
        result = machine.context(out)?;
    }
    Ok(result)
}

fn context_merge(machine: &mut Machine<'_>, arguments: &[Value]) -> Outcome {
    let [contexts] = arguments else {
        return Ok(Value::Null);
    };
    let mut out = Vec::new();
    for context in items(contexts) {
        let Value::Context(context) = context else {
            return Ok(Value::Null);
        };
        machine.room_for_items(out.len() + context.len())?;
        out.extend(entries(context));
    }
    machine.context(out)
}
