//! Functions over texts. Positions and lengths count characters, not bytes.

use regex::Regex;

use super::{BuiltIn, given, item_row};
use crate::evaluate::{Machine, Outcome};
use crate::functions::pattern::pattern;
use crate::value::Value;

pub(super) const TABLE: &[BuiltIn] = &[
    item_row(
        "substring",
        &[&["string", "start position", "length?"]],
        substring,
    ),
    item_row("string length", &[&["string"]], string_length),
    item_row("upper case", &[&["string"]], upper_case),
    item_row("lower case", &[&["string"]], lower_case),
    item_row("substring before", &[&["string", "match"]], substring_before),
    item_row("substring after", &[&["string", "match"]], substring_after),
    item_row("contains", &[&["string", "match"]], |_, arguments| {
        test(arguments, |text, part| text.contains(part))
    }),
    item_row("starts with", &[&["string", "match"]], |_, arguments| {
        test(arguments, |text, part| text.starts_with(part))
    }),
    item_row("ends with", &[&["string", "match"]], |_, arguments| {
        test(arguments, |text, part| text.ends_with(part))
    }),
    item_row(
        "replace",
        &[&["input", "pattern", "replacement", "flags?"]],
        replace,
    ),
    item_row("matches", &[&["input", "pattern", "flags?"]], matches),
    item_row("split", &[&["string", "delimiter"]], split),
    // Not of the standard, but common in models.
    item_row("trim", &[&["string"]], trim),
    item_row("is blank", &[&["string"]], is_blank),
    item_row("extract", &[&["string", "pattern", "flags?"]], extract),
    item_row("to base64", &[&["value"]], to_base64),
];

fn substring(machine: &mut Machine<'_>, arguments: &[Value]) -> Outcome {
    let (text, start, length) = match arguments {
        [Value::String(text), Value::Number(start)]
        | [Value::String(text), Value::Number(start), Value::Null] => (text, start, None),
        [Value::String(text), Value::Number(start), Value::Number(length)] => (text, start, Some(length)),
        _ => return Ok(Value::Null),
    };
    machine.step(text.len() as u64 / 64)?;
    let count = text.chars().count();
    let whole = |number: &crate::Decimal| number.rescale(0, crate::decimal::Rounding::Down)?.to_i64();
    let skipped = match whole(start) {
        Some(start @ 1..) => usize::try_from(start - 1).ok(),
        Some(start) if start < 0 => usize::try_from(start.unsigned_abs())
            .ok()
            .and_then(|back| count.checked_sub(back)),
        _ => None,
    };
    let length = match length.map(whole) {
        None => Some(usize::MAX),
        Some(Some(length @ 1..)) => usize::try_from(length).ok(),
        Some(_) => None,
    };
    match skipped.zip(length) {
        Some((skipped, length)) if skipped < count => {
            machine.string(text.chars().skip(skipped).take(length).collect())
        }
        _ => Ok(Value::Null),
    }
}

fn string_length(machine: &mut Machine<'_>, arguments: &[Value]) -> Outcome {
    let [Value::String(text)] = arguments else {
        return Ok(Value::Null);
    };
    machine.step(text.len() as u64 / 64)?;
    Ok(text.chars().count().into())
}

fn upper_case(machine: &mut Machine<'_>, arguments: &[Value]) -> Outcome {
    let [Value::String(text)] = arguments else {
        return Ok(Value::Null);
    };
    machine.room(text.len())?;
    machine.string(text.to_uppercase())
}

fn lower_case(machine: &mut Machine<'_>, arguments: &[Value]) -> Outcome {
    let [Value::String(text)] = arguments else {
        return Ok(Value::Null);
    };
    machine.room(text.len())?;
    machine.string(text.to_lowercase())
}

fn substring_before(machine: &mut Machine<'_>, arguments: &[Value]) -> Outcome {
    let [Value::String(text), Value::String(part)] = arguments else {
        return Ok(Value::Null);
    };
    machine.string(
        text.split_once(&**part)
            .map_or("", |(before, _)| before)
            .to_owned(),
    )
}

fn substring_after(machine: &mut Machine<'_>, arguments: &[Value]) -> Outcome {
    let [Value::String(text), Value::String(part)] = arguments else {
        return Ok(Value::Null);
    };
    machine.string(text.split_once(&**part).map_or("", |(_, after)| after).to_owned())
}

fn test(arguments: &[Value], holds: impl Fn(&str, &str) -> bool) -> Outcome {
    let [Value::String(text), Value::String(part)] = arguments else {
        return Ok(Value::Null);
    };
    Ok(holds(text, part).into())
}

pub(super) fn flags(value: Option<&Value>) -> Option<&str> {
    given(value).map_or(Some(""), Value::as_str)
}

fn matches(machine: &mut Machine<'_>, arguments: &[Value]) -> Outcome {
    let (text, regex, set) = match arguments {
        [Value::String(text), Value::String(regex), rest @ ..] if rest.len() <= 1 => {
            (text, regex, flags(rest.first()))
        }
        _ => return Ok(Value::Null),
    };
    let Some(set) = set else { return Ok(Value::Null) };
    let Some(regex) = pattern(machine, regex, set)? else {
        return Ok(Value::Null);
    };
    machine.step(text.len() as u64 / 16)?;
    Ok(regex.is_match(text).into())
}

fn replace(machine: &mut Machine<'_>, arguments: &[Value]) -> Outcome {
    let (text, regex, replacement, set) = match arguments {
        [
            Value::String(text),
            Value::String(regex),
            Value::String(with),
            rest @ ..,
        ] if rest.len() <= 1 => (text, regex, with, flags(rest.first())),
        _ => return Ok(Value::Null),
    };
    let Some(set) = set else { return Ok(Value::Null) };
    let Some(regex) = pattern(machine, regex, set)? else {
        return Ok(Value::Null);
    };
    // Finding groups costs several times as much as finding matches.
    machine.step(text.len() as u64 / 4)?;
    let replacement = if set.contains('q') {
        replacement.replace('$', "$$")
    } else {
        groups(replacement)
    };
    replace_all(machine, text, &regex, &replacement)
}

/// Replaces every match, with the room for the result checked as it grows.
pub(crate) fn replace_all(
    machine: &mut Machine<'_>,
    text: &str,
    regex: &Regex,
    replacement: &str,
) -> Outcome {
    let mut out = String::new();
    let mut end = 0;
    for captures in regex.captures_iter(text) {
        machine.step(1)?;
        let Some(found) = captures.get(0) else { continue };
        out.push_str(text.get(end..found.start()).unwrap_or_default());
        machine.room(
            out.len() + text.len().saturating_mul(replacement.matches('$').count()) + replacement.len(),
        )?;
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
    let [Value::String(text), Value::String(delimiter)] = arguments else {
        return Ok(Value::Null);
    };
    let Some(regex) = pattern(machine, delimiter, "")? else {
        return Ok(Value::Null);
    };
    machine.step(text.len() as u64 / 16)?;
    let mut parts = Vec::new();
    for part in regex.split(text) {
        machine.step(1)?;
        machine.room_for_items(parts.len() + 1)?;
        parts.push(Value::from(part));
    }
    machine.list(parts)
}

/// Every part of the text that the pattern matches.
fn extract(machine: &mut Machine<'_>, arguments: &[Value]) -> Outcome {
    let (text, regex, set) = match arguments {
        [Value::String(text), Value::String(regex), rest @ ..] if rest.len() <= 1 => {
            (text, regex, flags(rest.first()))
        }
        _ => return Ok(Value::Null),
    };
    let Some(set) = set else { return Ok(Value::Null) };
    let Some(regex) = pattern(machine, regex, set)? else {
        return Ok(Value::Null);
    };
    machine.step(text.len() as u64 / 16)?;
    let mut parts = Vec::new();
    for part in regex.find_iter(text) {
        machine.step(1)?;
        machine.room_for_items(parts.len() + 1)?;
        parts.push(Value::from(part.as_str()));
    }
    machine.list(parts)
}

/// The bytes of the text in UTF-8, in base 64 with its padding.
fn to_base64(machine: &mut Machine<'_>, arguments: &[Value]) -> Outcome {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let [Value::String(text)] = arguments else {
        return Ok(Value::Null);
    };
    machine.step(text.len() as u64 / 16)?;
    machine.room(text.len() / 3 * 4 + 4)?;
    let mut out = String::new();
    for bytes in text.as_bytes().chunks(3) {
        let all = bytes.iter().chain(&[0, 0]).take(3);
        let group = all.fold(0_usize, |group, byte| group << 8 | usize::from(*byte));
        for place in 0..4 {
            let digit = DIGITS.get(group >> (18 - 6 * place) & 63);
            let digit = digit.filter(|_| place <= bytes.len());
            out.push(digit.map_or('=', |digit| char::from(*digit)));
        }
    }
    machine.string(out)
}

fn trim(machine: &mut Machine<'_>, arguments: &[Value]) -> Outcome {
    let [Value::String(text)] = arguments else {
        return Ok(Value::Null);
    };
    machine.string(text.trim().to_owned())
}

fn is_blank(_: &mut Machine<'_>, arguments: &[Value]) -> Outcome {
    let [Value::String(text)] = arguments else {
        return Ok(Value::Null);
    };
    Ok(text.trim().is_empty().into())
}
