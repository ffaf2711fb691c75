//! Type names behind `instance of` and `:`.

use std::sync::Arc;

use crate::error::SyntaxError;
use crate::expression::Vocabulary;
use crate::feel::parser::Parser;
use crate::lexer::{Dialect, Kind, tokens};
use crate::limits::MAX_NESTING;
use crate::tree::too_deep;
use crate::types::Type;

/// Types of several words; some hold a keyword, so they are looked for as a whole.
const LONG: &[&[&str]] = &[
    &["days", "and", "time", "duration"],
    &["years", "and", "months", "duration"],
    &["date", "and", "time"],
];

/// A type that the caller wrote.
fn foreign(written: &str) -> Option<Type> {
    let tokens = tokens(written, Dialect::Feel).ok()?;
    let mut parser = Parser::new(written, tokens, &Vocabulary::default()).ok()?;
    parser.type_name(0).ok().filter(|_| parser.kind() == &Kind::End)
}

impl Parser<'_> {
    pub(super) fn type_name(&mut self, depth: u32) -> Result<Type, SyntaxError> {
        if depth > MAX_NESTING {
            return Err(too_deep(self.text, self.offset()));
        }
        for words in LONG {
            let mut tokens = self.rest().iter();
            if words
                .iter()
                .all(|word| tokens.next().is_some_and(|token| self.text_of(token) == *word))
            {
                words.iter().for_each(|_| self.advance());
                return Ok(Type::named(&words.join(" ")));
            }
        }
        if !matches!(self.kind(), Kind::Name | Kind::Quoted) {
            if self.word() != "null" {
                return Err(self.error(
                    "a type is expected",
                    "for example `number`, `string` or `list<number>`",
                ));
            }
            self.advance();
            return Ok(Type::Null);
        }
        let name = self.word().to_owned();
        match name.as_str() {
            "list" | "range" if self.kind_after(1) == &Kind::Symbol("<") => {
                self.advance();
                self.expect("<")?;
                let inner = Box::new(self.type_name(depth + 1)?);
                self.expect(">")?;
                Ok(if name == "list" {
                    Type::List(inner)
                } else {
                    Type::Range(inner)
                })
            }
            "context" if self.kind_after(1) == &Kind::Symbol("<") => self.context_type(depth),
            "function" if self.kind_after(1) == &Kind::Symbol("<") => self.function_type(depth),
            "function" | "null" => {
                self.advance();
                Ok(Type::named(if name == "null" { "Null" } else { "function" }))
            }
            _ => {
                let mut name = self.name().to_string();
                while self.take(".") {
                    name.push('.');
                    name.push_str(&self.name());
                }
                Ok(match self.types.and_then(|types| types(&name)) {
                    Some(written) => foreign(&written).unwrap_or(Type::Unknown),
                    None => Type::named(&name),
                })
            }
        }
    }

    fn context_type(&mut self, depth: u32) -> Result<Type, SyntaxError> {
        self.advance();
        self.expect("<")?;
        let mut entries: Vec<(Arc<str>, Type)> = Vec::new();
        while !self.is(">") {
            let Some(name) = self.declared_name(|token, _| token.kind == Kind::Symbol(":")) else {
                return Err(self.error("an entry name is expected", "for example `context<name: string>`"));
            };
            self.expect(":")?;
            entries.push((name, self.type_name(depth + 1)?));
            if !self.take(",") {
                break;
            }
        }
        self.expect(">")?;
        Ok(Type::Context(entries.into()))
    }

    fn function_type(&mut self, depth: u32) -> Result<Type, SyntaxError> {
        self.advance();
        self.expect("<")?;
        let mut parameters = Vec::new();
        while !self.is(">") {
            parameters.push(self.type_name(depth + 1)?);
            if !self.take(",") {
                break;
            }
        }
        self.expect(">")?;
        self.expect("->")?;
        let result = Box::new(self.type_name(depth + 1)?);
        Ok(Type::Function(parameters.into(), result))
    }
}
