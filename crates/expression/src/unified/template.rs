//! The forms in which a unified expression is written: bare, in `${...}` or `#{...}`, or as a template with text
//! around such parts.

use super::parser::Parser;
use crate::error::SyntaxError;
use crate::lexer::{Dialect, Token, tokens};
use crate::limits::MAX_TEXT;
use crate::tree::{Builder, Node, Tree};
use crate::value::Value;

/// A part of the text, as byte positions.
enum Part {
    Text(String),
    Expression { start: usize, end: usize },
}

pub(crate) fn parse(text: &str) -> Result<Tree, SyntaxError> {
    if text.len() > MAX_TEXT {
        // The tokenizer's message, without going through the parts first.
        tokens(text, Dialect::Unified)?;
    }
    let mut builder = Builder::default();
    let parts = parts(text)?;
    let root = match parts.as_slice() {
        [] => Parser::new(text, tokens(text, Dialect::Unified)?, &mut builder).whole()?,
        [Part::Expression { start, end }] => part(text, *start, *end, &mut builder)?,
        parts => {
            let mut nodes = Vec::with_capacity(parts.len());
            for piece in parts {
                nodes.push(match piece {
                    Part::Text(piece) => builder.add(text, Node::Literal(Value::from(piece.as_str())), 0)?,
                    Part::Expression { start, end } => part(text, *start, *end, &mut builder)?,
                });
            }
            builder.add(text, Node::Join(nodes.into()), 0)?
        }
    };
    Ok(builder.finish(root))
}

fn part(
    text: &str,
    start: usize,
    end: usize,
    builder: &mut Builder,
) -> Result<crate::tree::NodeId, SyntaxError> {
    let inner = text.get(start..end).unwrap_or_default();
    let moved = |error: SyntaxError| SyntaxError::at(text, start + error.offset, error.message, error.hint);
    let shift = |token: Token| Token {
        start: token.start + start,
        end: token.end + start,
        kind: token.kind,
    };
    let tokens = tokens(inner, Dialect::Unified)
        .map_err(moved)?
        .into_iter()
        .map(shift)
        .collect();
    Parser::new(text, tokens, builder).whole()
}

/// No parts for a bare expression. White space around a single `${...}` does not count.
fn parts(text: &str) -> Result<Vec<Part>, SyntaxError> {
    let mut parts = Vec::new();
    let mut literal = String::new();
    let mut at = 0;
    let mut found = false;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        if rest.starts_with("\\${") || rest.starts_with("\\#{") {
            literal.push_str(rest.get(1..3).unwrap_or_default());
            at += 3;
            found = true;
        } else if rest.starts_with("${") || rest.starts_with("#{") {
            found = true;
            if !literal.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut literal)));
            }
            let Some(end) = closing_brace(text, at + 2) else {
                return Err(SyntaxError::at(
                    text,
                    at,
                    "the expression does not end",
                    "close it with `}`",
                ));
            };
            parts.push(Part::Expression { start: at + 2, end });
            at = end + 1;
        } else {
            let next = rest
                .char_indices()
                .skip(1)
                .find(|(_, c)| matches!(c, '\\' | '$' | '#'));
            let length = next.map_or(rest.len(), |(index, _)| index);
            literal.push_str(rest.get(..length).unwrap_or_default());
            at += length;
        }
    }
    if !found {
        return Ok(Vec::new());
    }
    parts.push(Part::Text(literal));
    let single = |part: &Part| matches!(part, Part::Expression { .. });
    let blank = |part: &Part| matches!(part, Part::Text(piece) if piece.trim().is_empty());
    if parts.iter().filter(|part| single(part)).count() == 1
        && parts.iter().all(|part| single(part) || blank(part))
    {
        parts.retain(single);
    } else {
        parts.retain(|part| !matches!(part, Part::Text(piece) if piece.is_empty()));
    }
    Ok(parts)
}

/// The closing brace of an expression that begins at `from`; braces in its texts do not count.
fn closing_brace(text: &str, from: usize) -> Option<usize> {
    let mut quote = None;
    let mut escaped = false;
    let mut open = 0u32;
    for (index, character) in text.get(from..)?.char_indices() {
        match (quote, character) {
            (Some(_), _) if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(mark), character) if mark == character => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(character),
            (None, '{') => open += 1,
            (None, '}') if open == 0 => return Some(from + index),
            (None, '}') => open -= 1,
            (None, _) => {}
        }
    }
    None
}
