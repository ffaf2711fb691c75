//! Functions over texts. Positions and lengths count characters, not bytes.

use regex::{Regex, RegexBuilder};

use super::{BuiltIn, given, items, row};
use crate::evaluate::{Machine, Outcome};
use crate::limits::MAX_REGEX;
use crate::value::Value;

pub(super) const TABLE: &[BuiltIn] = &[
    row("substring", &[&["string", "start position", "length?"]], substring),
    row("string length", &[&["string"]], string_length),
    row("upper case", &[&["string"]], upper_case),
    row("lower case", &[&["string"]], lower_case),
    row("substring before", &[&["string", "match"]], substring_before),
    row("substring after", &[&["string", "match"]], substring_after),
    row("contains", &[&["string", "match"]], |_, arguments| test(arguments, |text, part| text.contains(part))),
    row("starts with", &[&["string", "match"]], |_, arguments| test(arguments, |text, part| text.starts_with(part))),
    row("ends with", &[&["string", "match"]], |_, arguments| test(arguments, |text, part| text.ends_with(part))),
    row("replace", &[&["input", "pattern", "replacement", "flags?"]], replace),
    row("matches", &[&["input", "pattern", "flags?"]], matches),
    row("split", &[&["string", "delimiter"]], split),
    row("string join", &[&["list", "delimiter?", "prefix?", "suffix?"]], string_join),
    // Not of the standard, but common in models.
    row("trim", &[&["string"]], trim),
    row("is blank", &[&["string"]], is_blank),
];

fn substring(machine: &mut Machine<'_>, arguments: &[Value]) -> Outcome {
    let (text, start, length) = match arguments {
        [Value::String(text), Value::Number(start)] | [Value::String(text), Value::Number(start), Value::Null] => (text, start, None),
        [Value::String(text), Value::Number(start), Value::Number(length)] => (text, start, Some(length)),
        _ => return Ok(Value::Null),
    };
    machine.step(text.len() as u64 / 64)?;
    let count = text.chars().count();
    let whole = |number: &crate::Decimal| number.rescale(0, crate::decimal::Rounding::Down)?.to_i64();
    let skipped = match whole(start) {
        Some(start @ 1..) => usize::try_from(start - 1).ok(),
        Some(start @ ..0) => usize::try_from(start.unsigned_abs()).ok().and_then(|back| count.checked_sub(back)),
        _ => None,
    };
    let length = match length.map(whole) {
        None => Some(usize::MAX),
        Some(Some(length @ 1..)) => usize::try_from(length).ok(),
        Some(_) => None,
    };
    match skipped.zip(length) {
        Some((skipped, length)) if skipped < count => machine.string(text.chars().skip(skipped).take(length).collect()),
        _ => Ok(Value::Null),
    }
}

fn string_length(machine: &mut Machine<'_>, arguments: &[Value]) -> Outcome {
    let [Value::String(text)] = arguments else { return Ok(Value::Null) };
    machine.step(text.len() as u64 / 64)?;
    Ok(text.chars().count().into())
}

fn upper_case(machine: &mut Machine<'_>, arguments: &[Value]) -> Outcome {
    let [Value::String(text)] = arguments else { return Ok(Value::Null) };
    machine.room(text.len())?;
    machine.string(text.to_uppercase())
}

fn lower_case(machine: &mut Machine<'_>, arguments: &[Value]) -> Outcome {
    let [Value::String(text)] = arguments else { return Ok(Value::Null) };
    machine.room(text.len())?;
    machine.string(text.to_lowercase())
}

fn substring_before(machine: &mut Machine<'_>, arguments: &[Value]) -> Outcome {
    let [Value::String(text), Value::String(part)] = arguments else { return Ok(Value::Null) };
    machine.string(text.split_once(&**part).map_or("", |(before, _)| before).to_owned())
}

fn substring_after(machine: &mut Machine<'_>, arguments: &[Value]) -> Outcome {
    let [Value::String(text), Value::String(part)] = arguments else { return Ok(Value::Null) };
    machine.string(text.split_once(&**part).map_or("", |(_, after)| after).to_owned())
}

fn test(arguments: &[Value], holds: impl Fn(&str, &str) -> bool) -> Outcome {
    let [Value::String(text), Value::String(part)] = arguments else { return Ok(Value::Null) };
    Ok(holds(text, part).into())
}

/// Compiles a pattern, within limits; `None` for one that is not valid.
pub(crate) fn pattern(machine: &mut Machine<'_>, pattern: &str, flags: &str) -> Outcome<Option<Regex>> {
    // Compiling costs as much as a few thousand steps, whatever the pattern is used on.
    const COMPILE_STEPS: u64 = 2000;
    machine.step(COMPILE_STEPS + pattern.len() as u64)?;
    if !flags.chars().all(|flag| matches!(flag, 's' | 'm' | 'i' | 'x' | 'q')) {
        return Ok(None);
    }
    let escaped = if flags.contains('q') { regex::escape(pattern) } else { pattern.to_owned() };
    let mut builder = RegexBuilder::new(&escaped);
    builder
        .dot_matches_new_line(flags.contains('s'))
        .multi_line(flags.contains('m'))
        .case_insensitive(flags.contains('i'))
        .ignore_whitespace(flags.contains('x'))
        .size_limit(MAX_REGEX);
    Ok(builder.build().ok())
}

fn flags(value: Option<&Value>) -> Option<&str> {
    given(value).map_or(Some(""), Value::as_str)
}

fn matches(machine: &mut Machine<'_>, arguments: &[Value]) -> Outcome {
    let (text, regex, set) = match arguments {
        [Value::String(text), Value::String(regex), rest @ ..] if rest.len() <= 1 => (text, regex, flags(rest.first())),
        _ => return Ok(Value::Null),
    };
    let Some(set) = set else { return Ok(Value::Null) };
    let Some(regex) = pattern(machine, regex, set)? else { return Ok(Value::Null) };
    machine.step(text.len() as u64 / 16)?;
    Ok(regex.is_match(text).into())
}

fn replace(machine: &mut Machine<'_>, arguments: &[Value]) -> Outcome {
    let (text, regex, replacement, set) = match arguments {
        [Value::String(text), Value::String(regex), Value::String(with), rest @ ..] if rest.len() <= 1 => {
            (text, regex, with, flags(rest.first()))
        }
        _ => return Ok(Value::Null),
    };
    let Some(set) = set else { return Ok(Value::Null) };
    let Some(regex) = pattern(machine, regex, set)? else { return Ok(Value::Null) };
    machine.step(text.len() as u64 / 16)?;
    let replacement = if set.contains('q') { replacement.replace('$', "$$") } else { groups(replacement) };
    replace_all(machine, text, &regex, &replacement)
}

/// Replaces every match, with the room for the result checked as it grows.
pub(crate) fn replace_all(machine: &mut Machine<'_>, text: &str, regex: &Regex, replacement: &str) -> Outcome {
    let mut out = String::new();
    let mut end = 0;
    for captures in regex.captures_iter(text) {
        machine.step(1)?;
        let Some(found) = captures.get(0) else { continue };
        out.push_str(text.get(end..found.start()).unwrap_or_default());
        machine.room(out.len() + text.len().saturating_mul(replacement.matches('$').count()) + replacement.len())?;
        captures.expand(replacement, &mut out);
        end = found.end();
    }
    machine.room(out.len() + text.len())?;
    out.push_str(text.get(end..).unwrap_or_default());
    machine.string(out)
}

/// From the standard's notation of groups (`$1`, `\$`, `\\`) to the library's.
fn groups(replacement: &str) -> String {
    let mut out = String::new();
    let mut rest = replacement.chars().peekable();
    while let Some(character) = rest.next() {
        match character {
            '\\' => match rest.next() {
                Some('$') => out.push_str("$$"),
                Some(other) => out.push(other),
                None => out.push('\\'),
            },
            '$' => match rest.peek().copied() {
                Some(digit) if digit.is_ascii_digit() => {
                    rest.next();
                    out.push_str(&format!("${{{digit}}}"));
                }
                _ => out.push_str("$$"),
            },
            other => out.push(other),
        }
    }
    out
}

fn split(machine: &mut Machine<'_>, arguments: &[Value]) -> Outcome {
    let [Value::String(text), Value::String(delimiter)] = arguments else { return Ok(Value::Null) };
    let Some(regex) = pattern(machine, delimiter, "")? else { return Ok(Value::Null) };
    machine.step(text.len() as u64 / 16)?;
    let mut parts = Vec::new();
    for part in regex.split(text) {
        machine.step(1)?;
        machine.room_for_items(parts.len() + 1)?;
        parts.push(Value::from(part));
    }
    machine.list(parts)
}

fn string_join(machine: &mut Machine<'_>, arguments: &[Value]) -> Outcome {
    let [list, rest @ ..] = arguments else { return Ok(Value::Null) };
    let texts: Option<Vec<&str>> = [0, 1, 2].iter().map(|index| flags(rest.get(*index))).collect();
    let (Some([delimiter, prefix, suffix]), false) = (texts.as_deref(), rest.len() > 3 || list.is_null()) else {
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
    out.push_str(suffix);
    machine.string(out)
}

fn trim(machine: &mut Machine<'_>, arguments: &[Value]) -> Outcome {
    let [Value::String(text)] = arguments else { return Ok(Value::Null) };
    machine.string(text.trim().to_owned())
}

fn is_blank(_: &mut Machine<'_>, arguments: &[Value]) -> Outcome {
    let [Value::String(text)] = arguments else { return Ok(Value::Null) };
    Ok(text.trim().is_empty().into())
}
