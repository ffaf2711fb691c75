//! FEEL names: several words, and special characters where the name is known.
//!
//! A known name (a built-in function, a name given by the caller, a context entry, a parameter or an iterator) is found
//! by its longest match. Other adjacent words are joined to one name: nothing else could stand there.

use std::collections::HashMap;
use std::sync::Arc;

use crate::error::SyntaxError;
use crate::feel::parser::Parser;
use crate::functions;
use crate::lexer::{Dialect, Kind, Token, tokens};

const KEYWORDS: &[&str] = &[
    "and",
    "between",
    "else",
    "every",
    "false",
    "for",
    "function",
    "if",
    "in",
    "instance",
    "null",
    "or",
    "return",
    "satisfies",
    "some",
    "then",
    "true",
];

/// Longest name of a context entry, parameter or iterator, in tokens.
const MAX_WORDS: usize = 64;

/// Names that are more than one token, by their words.
#[derive(Default)]
pub(crate) struct Known {
    names: HashMap<String, Arc<str>>,
    longest: usize,
}

/// Between the words of a key: no token holds it.
const SEPARATOR: char = '\0';

impl Known {
    pub(crate) fn new(names: &[&str]) -> Result<Known, SyntaxError> {
        let mut known = Known::default();
        names.iter().try_for_each(|name| known.add(&Arc::from(*name)))?;
        Ok(known)
    }

    fn add(&mut self, name: &Arc<str>) -> Result<(), SyntaxError> {
        let tokens = tokens(name, Dialect::Feel)?;
        let words = tokens.iter().filter(|token| token.kind != Kind::End);
        let words: Vec<&str> = words
            .filter_map(|token| name.get(token.start..token.end))
            .collect();
        if (2..=MAX_WORDS).contains(&words.len()) {
            self.longest = self.longest.max(words.len());
            self.names
                .insert(words.join(&SEPARATOR.to_string()), name.clone());
        }
        Ok(())
    }

    /// The longest name that the words begin with, and its length.
    fn longest<'w>(&self, words: impl Iterator<Item = &'w str>) -> Option<(Arc<str>, usize)> {
        let mut key = String::new();
        let mut found = None;
        for (index, word) in words.take(self.longest).enumerate() {
            if index > 0 {
                key.push(SEPARATOR);
            }
            key.push_str(word);
            found = self
                .names
                .get(&key)
                .map(|name| (name.clone(), index + 1))
                .or(found);
        }
        found
    }
}

pub(crate) fn is_keyword(word: &str) -> bool {
    KEYWORDS.contains(&word)
}

impl Parser<'_> {
    /// Makes a declared name known, if it is one that needs to be. One that is no name at all is found as it stands.
    pub(crate) fn declare(&mut self, name: &Arc<str>) {
        let _ = self.known.add(name);
    }

    /// The name at the current token, which is a `Name` or `Quoted`.
    pub(crate) fn name(&mut self) -> Arc<str> {
        if self.kind() == &Kind::Quoted {
            let name = self.word().trim_matches('`').into();
            self.advance();
            return name;
        }
        if let Some((name, length)) = self.longest_known() {
            (0..length).for_each(|_| self.advance());
            return name;
        }
        let mut name = self.word().to_owned();
        self.advance();
        while self.kind() == &Kind::Name && !is_keyword(self.word()) {
            name.push(' ');
            name.push_str(self.word());
            self.advance();
        }
        name.into()
    }

    fn longest_known(&self) -> Option<(Arc<str>, usize)> {
        let declared = self
            .known
            .longest(self.rest().iter().map(|token| self.text_of(token)));
        let built_in = functions::long_names()
            .iter()
            .filter(|name| self.stands_here(name.split(' ')));
        let built_in = built_in.map(|name| (Arc::from(*name), name.split(' ').count()));
        declared
            .into_iter()
            .chain(built_in)
            .max_by_key(|(_, length)| *length)
    }

    fn stands_here<'w>(&self, words: impl Iterator<Item = &'w str>) -> bool {
        let mut tokens = self.rest().iter();
        words
            .into_iter()
            .all(|word| tokens.next().is_some_and(|token| self.text_of(token) == word))
    }

    /// A declared name up to (not including) the token for which `ends` holds; `None` where no name stands here.
    pub(crate) fn declared_name(&mut self, ends: impl Fn(&Token, &str) -> bool) -> Option<Arc<str>> {
        let tokens = self.rest();
        if matches!(tokens.first()?.kind, Kind::Quoted) && ends(tokens.get(1)?, self.text_of(tokens.get(1)?))
        {
            return Some(self.name());
        }
        let length = tokens
            .iter()
            .take(MAX_WORDS)
            .position(|token| ends(token, self.text_of(token)))?;
        let words = tokens.get(..length)?;
        let starts = matches!(words.first()?.kind, Kind::Name);
        let valid = words.iter().all(|token| match &token.kind {
            Kind::Name | Kind::Number | Kind::Unknown => true,
            Kind::Symbol(symbol) => matches!(*symbol, "." | "/" | "-" | "+" | "*" | "**"),
            _ => false,
        });
        if !starts || !valid {
            return None;
        }
        let raw = self.text_between(words.first()?.start, words.last()?.end);
        let name: Arc<str> = raw.split_whitespace().collect::<Vec<_>>().join(" ").into();
        (0..length).for_each(|_| self.advance());
        Some(name)
    }
}
