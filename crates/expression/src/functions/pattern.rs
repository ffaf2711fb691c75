//! Regular expressions: the standard's dialect brought to the library's, with a limit on the compiled size.
//!
//! The library matches in linear time. Back-references and Unicode blocks (`\p{IsGreek}`) do not exist in it; a
//! pattern that uses them gives null.

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
                out.push('\\');
                out.extend(escaped(&mut rest, free && classes == 0));
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

fn escaped(rest: &mut Peekable<Chars<'_>>, free: bool) -> Option<char> {
    while free && rest.peek().is_some_and(|next| next.is_whitespace()) {
        rest.next();
    }
    rest.next()
}
