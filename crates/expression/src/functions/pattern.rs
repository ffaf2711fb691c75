//! Regular expressions: the standard's dialect brought to the library's, with a limit on the compiled size.
//!
//! The library matches in linear time. Back-references do not exist in it, and of Unicode blocks (`\p{IsGreek}`) only
//! the usual ones are brought to it; a pattern that uses others gives null.

use std::iter::Peekable;
use std::str::Chars;

use regex::{Regex, RegexBuilder};

use crate::evaluate::{Machine, Outcome};
use crate::limits::MAX_REGEX;

/// Compiling costs as much as a few thousand steps, whatever the pattern is used on.
const COMPILE_STEPS: u64 = 2000;

/// Compiles a pattern, within limits; `None` for one that is not valid.
pub(crate) fn pattern(machine: &mut Machine<'_>, pattern: &str, flags: &str) -> Outcome<Option<Regex>> {
    machine.step(COMPILE_STEPS + pattern.len() as u64)?;
    if !flags
        .chars()
        .all(|flag| matches!(flag, 's' | 'm' | 'i' | 'x' | 'q'))
    {
        return Ok(None);
    }
    let own = if flags.contains('q') {
        regex::escape(pattern)
    } else {
        translate(pattern, flags.contains('x'))
    };
    let mut builder = RegexBuilder::new(&own);
    builder
        .dot_matches_new_line(flags.contains('s'))
        .multi_line(flags.contains('m'))
        .case_insensitive(flags.contains('i'))
        // The dot stops at a carriage return too, but lines end at line feeds only.
        .crlf(!flags.contains('m'))
        .size_limit(MAX_REGEX);
    Ok(builder.build().ok())
}

/// The notation of class subtraction is `[a-z-[aeiou]]` in the standard and `[a-z--[aeiou]]` in the library. `free`
/// drops white space outside of classes.
fn translate(pattern: &str, free: bool) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut rest = pattern.chars().peekable();
    let mut classes = 0u32;
    while let Some(character) = rest.next() {
        match character {
            '\\' => {
                let free = free && classes == 0;
                let escape = escaped(&mut rest, free);
                let name = escape.and_then(|escape| category(&mut rest, escape, free));
                match (escape, name.as_deref().and_then(block)) {
                    (Some('P'), Some(block)) => out.push_str(&format!("[^{block}]")),
                    (_, Some(block)) => out.push_str(&format!("[{block}]")),
                    (escape, None) => {
                        out.push('\\');
                        out.extend(escape);
                        out.extend(name.map(|name| format!("{{{name}}}")));
                    }
                }
            }
            '[' => {
                classes += 1;
                out.push('[');
            }
            ']' => {
                classes = classes.saturating_sub(1);
                out.push(']');
            }
            '-' if classes > 0 && rest.peek() == Some(&'[') => out.push_str("--"),
            white if free && classes == 0 && white.is_whitespace() => {}
            other => out.push(other),
        }
    }
    out
}

/// The name in the braces of `\p{...}`, without white space where that is free.
fn category(rest: &mut Peekable<Chars<'_>>, escape: char, free: bool) -> Option<String> {
    if !matches!(escape, 'p' | 'P') {
        return None;
    }
    while free && rest.peek().is_some_and(|next| next.is_whitespace()) {
        rest.next();
    }
    rest.next_if_eq(&'{')?;
    let name = rest.by_ref().take_while(|character| *character != '}');
    Some(
        name.filter(|character| !free || !character.is_whitespace())
            .collect(),
    )
}

/// The characters of a Unicode block, of those that are in use.
fn block(name: &str) -> Option<&'static str> {
    Some(match name {
        "IsBasicLatin" => r"\x{0}-\x{7F}",
        "IsLatin-1Supplement" => r"\x{80}-\x{FF}",
        "IsLatinExtended-A" => r"\x{100}-\x{17F}",
        "IsLatinExtended-B" => r"\x{180}-\x{24F}",
        "IsGreek" | "IsGreekandCoptic" => r"\x{370}-\x{3FF}",
        "IsCyrillic" => r"\x{400}-\x{4FF}",
        "IsHebrew" => r"\x{590}-\x{5FF}",
        "IsArabic" => r"\x{600}-\x{6FF}",
        "IsHiragana" => r"\x{3040}-\x{309F}",
        "IsKatakana" => r"\x{30A0}-\x{30FF}",
        _ => return None,
    })
}

fn escaped(rest: &mut Peekable<Chars<'_>>, free: bool) -> Option<char> {
    while free && rest.peek().is_some_and(|next| next.is_whitespace()) {
        rest.next();
    }
    rest.next()
}
