//! The methods of texts and collections that models of the Java engines call. There is no reflection: what is not in
//! this list does not exist.

use std::sync::Arc;

use super::operators::{text, wrong_type};
use crate::compare::equal;
use crate::context::Context;
use crate::error::{EvaluationCode, Failure};
use crate::evaluate::{Machine, Outcome};
use crate::expression::Code;
use crate::functions::pattern::pattern;
use crate::functions::string::replace_all;
use crate::tree::NodeId;
use crate::value::{List, Value};

const OF_TEXTS: &str = "charAt, concat, contains, endsWith, equals, equalsIgnoreCase, indexOf, isBlank, isEmpty, lastIndexOf, length, \
     matches, replace, replaceAll, split, startsWith, substring, toLowerCase, toString, toUpperCase, trim";
const OF_LISTS: &str = "contains, get, indexOf, isEmpty, lastIndexOf, size, toString";
const OF_CONTEXTS: &str =
    "containsKey, containsValue, get, getOrDefault, isEmpty, keySet, size, toString, values";

impl Machine<'_> {
    pub(crate) fn method(
        &mut self,
        code: &Arc<Code>,
        base: NodeId,
        name: &str,
        arguments: &[NodeId],
    ) -> Outcome {
        let base = self.evaluate(code, base)?;
        let arguments = arguments
            .iter()
            .map(|argument| self.evaluate(code, *argument))
            .collect::<Outcome<Vec<_>>>()?;
        self.weigh(&base)?;
        let result = match &base {
            Value::String(own) => of_text(self, own, name, &arguments)?,
            Value::List(list) => of_list(list, name, &arguments)?,
            Value::Context(context) => of_context(self, context, name, &arguments)?,
            Value::Null => return Err(wrong_type(format!("cannot call `{name}` on null"))),
            _ => None,
        };
        match (result, name, arguments.as_slice()) {
            (Some(value), _, _) => Ok(value),
            (None, "toString", []) => self.string(text(&base)),
            (None, "equals", [other]) => Ok((equal(&base, other) == Some(true)).into()),
            _ => Err(unknown(&base, name, arguments.len())),
        }
    }

    pub(crate) fn join(&mut self, code: &Arc<Code>, parts: &[NodeId]) -> Outcome {
        let mut out = String::new();
        for part in parts {
            let value = self.evaluate(code, *part)?;
            self.weigh(&value)?;
            out.push_str(&text(&value));
            self.room(out.len())?;
        }
        self.string(out)
    }
}

fn unknown(base: &Value, name: &str, count: usize) -> Box<Failure> {
    let known = match base {
        Value::String(_) => OF_TEXTS,
        Value::List(_) => OF_LISTS,
        Value::Context(_) => OF_CONTEXTS,
        _ => "toString, equals",
    };
    let kind = base.type_name();
    let message = format!("a {kind} has no method `{name}` with {count} arguments; there are {known}");
    Failure::new(EvaluationCode::UnknownMethod, message)
}

fn position(value: &Value) -> Outcome<usize> {
    let position = value.as_number().and_then(|number| number.to_i64());
    let position = position.and_then(|position| usize::try_from(position).ok());
    position.ok_or_else(|| wrong_type(format!("{value} is no position")))
}

/// A position in characters, or -1.
fn found(own: &str, at: Option<usize>) -> Value {
    let characters = at
        .and_then(|at| own.get(..at))
        .map(|before| before.chars().count() as i64);
    characters.unwrap_or(-1).into()
}

fn of_text(
    machine: &mut Machine<'_>,
    own: &Arc<str>,
    name: &str,
    arguments: &[Value],
) -> Outcome<Option<Value>> {
    let result = match (name, arguments) {
        ("contains", [part]) => own.contains(&text(part)).into(),
        ("startsWith", [part]) => own.starts_with(&text(part)).into(),
        ("endsWith", [part]) => own.ends_with(&text(part)).into(),
        ("equals", [other]) => (other.as_str() == Some(own)).into(),
        ("equalsIgnoreCase", [other]) => other
            .as_str()
            .is_some_and(|other| own.to_lowercase() == other.to_lowercase())
            .into(),
        ("length", []) => own.chars().count().into(),
        ("isEmpty", []) => own.is_empty().into(),
        ("isBlank", []) => own.trim().is_empty().into(),
        ("indexOf", [part]) => found(own, own.find(&text(part))),
        ("lastIndexOf", [part]) => found(own, own.rfind(&text(part))),
        ("toString", []) => Value::String(own.clone()),
        ("toUpperCase", []) => machine.string(own.to_uppercase())?,
        ("toLowerCase", []) => machine.string(own.to_lowercase())?,
        ("trim", []) => machine.string(own.trim().to_owned())?,
        ("concat", [other]) => {
            machine.weigh(other)?;
            machine.join_texts(own, &text(other))?
        }
        ("charAt", [at]) => part(machine, own, position(at)?, Some(position(at)?.saturating_add(1)))?,
        ("substring", [start]) => part(machine, own, position(start)?, None)?,
        ("substring", [start, end]) => part(machine, own, position(start)?, Some(position(end)?))?,
        ("replace", [from, to]) => replace(machine, own, &text(from), &text(to))?,
        ("matches" | "replaceAll" | "split", [regex, ..]) => {
            return with_pattern(machine, own, name, &text(regex), arguments);
        }
        _ => return Ok(None),
    };
    Ok(Some(result))
}

fn part(machine: &mut Machine<'_>, own: &str, start: usize, end: Option<usize>) -> Outcome {
    let count = own.chars().count();
    let end = end.unwrap_or(count);
    if start > end || end > count {
        return Err(wrong_type(format!(
            "there is no part from {start} to {end} in a text of {count} characters"
        )));
    }
    machine.string(own.chars().skip(start).take(end - start).collect())
}

fn replace(machine: &mut Machine<'_>, own: &str, from: &str, to: &str) -> Outcome {
    let count = own.matches(from).count();
    machine.step(count as u64)?;
    machine.room(own.len().saturating_add(count.saturating_mul(to.len())))?;
    machine.string(own.replace(from, to))
}

fn with_pattern(
    machine: &mut Machine<'_>,
    own: &str,
    name: &str,
    regex: &str,
    arguments: &[Value],
) -> Outcome<Option<Value>> {
    let Some(compiled) = pattern(machine, regex, "")? else {
        return Err(wrong_type(format!(
            "`{regex}` is no regular expression, or too large a one"
        )));
    };
    machine.step(own.len() as u64 / 4)?;
    match (name, arguments) {
        ("matches", [_]) => {
            // As in Java, the whole text must match.
            let Some(whole) = pattern(machine, &format!("^(?:{regex})$"), "")? else {
                return Ok(None);
            };
            Ok(Some(whole.is_match(own).into()))
        }
        ("replaceAll", [_, with]) => replace_all(machine, own, &compiled, &text(with)).map(Some),
        ("split", [_]) => {
            let mut parts = Vec::new();
            for part in compiled.split(own) {
                machine.room_for_items(parts.len() + 1)?;
                parts.push(Value::from(part));
            }
            machine.list(parts).map(Some)
        }
        _ => Ok(None),
    }
}

fn of_list(list: &List, name: &str, arguments: &[Value]) -> Outcome<Option<Value>> {
    let at = |at: Option<usize>| Value::from(at.map_or(-1, |at| at as i64));
    let is = |wanted: &Value, item: &Value| equal(item, wanted) == Some(true);
    Ok(Some(match (name, arguments) {
        ("size" | "length", []) => list.len().into(),
        ("isEmpty", []) => list.is_empty().into(),
        ("contains", [wanted]) => list.iter().any(|item| is(wanted, item)).into(),
        ("indexOf", [wanted]) => at(list.iter().position(|item| is(wanted, item))),
        ("lastIndexOf", [wanted]) => at(list.iter().rposition(|item| is(wanted, item))),
        ("get", [index]) => {
            let index = position(index)?;
            let missing = || wrong_type(format!("there is no item {index} in a list of {}", list.len()));
            list.get(index).cloned().ok_or_else(missing)?
        }
        _ => return Ok(None),
    }))
}

fn of_context(
    machine: &mut Machine<'_>,
    context: &Context,
    name: &str,
    arguments: &[Value],
) -> Outcome<Option<Value>> {
    Ok(Some(match (name, arguments) {
        ("size", []) => context.len().into(),
        ("isEmpty", []) => context.is_empty().into(),
        ("containsKey", [key]) => context.get(&text(key)).is_some().into(),
        ("containsValue", [wanted]) => context
            .iter()
            .any(|(_, value)| equal(value, wanted) == Some(true))
            .into(),
        ("get", [key]) => context.get(&text(key)).cloned().unwrap_or(Value::Null),
        ("getOrDefault", [key, default]) => context.get(&text(key)).unwrap_or(default).clone(),
        ("keySet" | "keys", []) => machine.list(
            context
                .iter()
                .map(|(name, _)| Value::String(name.clone()))
                .collect(),
        )?,
        ("values", []) => machine.list(context.iter().map(|(_, value)| value.clone()).collect())?,
        _ => return Ok(None),
    }))
}
