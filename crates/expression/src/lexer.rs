//! Tokens of both languages. The whole text is cut up front; names are single words here, the FEEL parser joins them.

use std::sync::Arc;

use crate::error::SyntaxError;
use crate::limits::MAX_TEXT;

/// Which language's rules apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Feel,
    Unified,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    Number,
    String(Arc<str>),
    Name,
    /// A name in backticks, or a symbol that neither language knows.
    Quoted,
    Symbol(&'static str),
    Unknown,
    End,
}

#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub kind: Kind,
    pub start: usize,
    pub end: usize,
}

/// Longest first, so that the first match counts.
const FEEL_SYMBOLS: &[&str] = &[
    "..", "**", "!=", "<=", ">=", "->", "==", "(", ")", "[", "]", "{", "}", ",", ":", ".", "+", "-", "*",
    "/", "=", "<", ">", "@",
];
const UNIFIED_SYMBOLS: &[&str] = &[
    "&&", "||", "==", "!=", "<=", ">=", "(", ")", "[", "]", "{", "}", ",", ":", ".", "+", "-", "*", "/", "%",
    "=", "<", ">", "!", "?",
];

pub(crate) fn tokens(text: &str, dialect: Dialect) -> Result<Vec<Token>, SyntaxError> {
    if text.len() > MAX_TEXT {
        let message = format!("the expression is longer than {MAX_TEXT} bytes");
        return Err(SyntaxError::at(
            text,
            0,
            message,
            "compute large data in a job, not in an expression",
        ));
    }
    let mut lexer = Lexer { text, at: 0, dialect };
    let mut tokens = Vec::new();
    loop {
        let token = lexer.token()?;
        let last = token.kind == Kind::End;
        tokens.push(token);
        if last {
            return Ok(tokens);
        }
    }
}

struct Lexer<'t> {
    text: &'t str,
    at: usize,
    dialect: Dialect,
}

impl<'t> Lexer<'t> {
    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn token(&mut self) -> Result<Token, SyntaxError> {
        self.skip_space()?;
        let start = self.at;
        let kind = self.kind()?;
        Ok(Token {
            kind,
            start,
            end: self.at,
        })
    }

    fn skip_space(&mut self) -> Result<(), SyntaxError> {
        loop {
            let rest = self.rest();
            self.at += rest.len() - rest.trim_start_matches(is_space).len();
            let rest = self.rest();
            if self.dialect == Dialect::Unified {
                return Ok(());
            }
            if rest.starts_with("//") {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else if rest.starts_with("/*") {
                let Some(end) = rest.find("*/") else {
                    return Err(SyntaxError::at(
                        self.text,
                        self.at,
                        "the comment does not end",
                        "close it with `*/`",
                    ));
                };
                self.at += end + 2;
            } else {
                return Ok(());
            }
        }
    }

    fn kind(&mut self) -> Result<Kind, SyntaxError> {
        let rest = self.rest();
        let Some(first) = rest.chars().next() else {
            return Ok(Kind::End);
        };
        let second = rest.as_bytes().get(1).copied().unwrap_or(0);
        if first.is_ascii_digit() || (first == '.' && second.is_ascii_digit()) {
            self.at += number_length(rest);
            return Ok(Kind::Number);
        }
        if first == '"' || (first == '\'' && self.dialect == Dialect::Unified) {
            return self.string(first);
        }
        if first == '`' && self.dialect == Dialect::Feel {
            let Some(length) = rest.get(1..).and_then(|rest| rest.find('`')) else {
                return Err(SyntaxError::at(
                    self.text,
                    self.at,
                    "the quoted name does not end",
                    "close it with a backtick",
                ));
            };
            self.at += length + 2;
            return Ok(Kind::Quoted);
        }
        if self.starts_name(first) {
            let dialect = self.dialect;
            let end = rest.find(|c| !continues_name(c, dialect)).unwrap_or(rest.len());
            self.at += end;
            return Ok(Kind::Name);
        }
        let symbols = if self.dialect == Dialect::Feel {
            FEEL_SYMBOLS
        } else {
            UNIFIED_SYMBOLS
        };
        if let Some(symbol) = symbols.iter().find(|symbol| rest.starts_with(**symbol)) {
            self.at += symbol.len();
            return Ok(Kind::Symbol(symbol));
        }
        self.at += first.len_utf8();
        Ok(Kind::Unknown)
    }

    fn starts_name(&self, first: char) -> bool {
        match self.dialect {
            Dialect::Feel => first == '?' || is_name_start(first),
            Dialect::Unified => first == '$' || is_name_start(first),
        }
    }

    fn string(&mut self, quote: char) -> Result<Kind, SyntaxError> {
        let start = self.at;
        let mut out = String::new();
        self.at += 1;
        loop {
            let rest = self.rest();
            let Some(length) = rest.find([quote, '\\']) else {
                let hint = format!("close it with {quote}");
                return Err(SyntaxError::at(self.text, start, "the string does not end", hint));
            };
            out.push_str(rest.get(..length).unwrap_or_default());
            self.at += length;
            if self.rest().starts_with(quote) {
                self.at += 1;
                return Ok(Kind::String(out.into()));
            }
            self.escape(&mut out);
        }
    }

    /// At a backslash. One that begins no escape stands for itself, so that patterns like `\d` can be written plainly.
    fn escape(&mut self, out: &mut String) {
        let next = self.rest().chars().nth(1);
        let plain = match next {
            Some('n') => '\n',
            Some('t') => '\t',
            Some('r') => '\r',
            Some(c @ ('"' | '\'' | '\\')) => c,
            Some('u') => return self.unicode(4, out),
            Some('U') => return self.unicode(6, out),
            _ => {
                self.at += 1;
                return out.push('\\');
            }
        };
        self.at += 2;
        out.push(plain);
    }

    fn unicode(&mut self, digits: usize, out: &mut String) {
        let Some(code) = self.code(self.at, digits) else {
            self.at += 1;
            return out.push('\\');
        };
        let length = digits + 2;
        let low = self
            .code(self.at + length, digits)
            .filter(|low| (0xdc00..0xe000).contains(low));
        let (code, used) = match low {
            Some(low) if (0xd800..0xdc00).contains(&code) => {
                (0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00), length * 2)
            }
            _ => (code, length),
        };
        self.at += used;
        out.push(char::from_u32(code).unwrap_or('\u{fffd}'));
    }

    fn code(&self, at: usize, digits: usize) -> Option<u32> {
        let text = self.text.get(at..at + digits + 2)?;
        let digits = text.strip_prefix(if digits == 4 { "\\u" } else { "\\U" })?;
        let valid = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        if valid {
            u32::from_str_radix(digits, 16).ok()
        } else {
            None
        }
    }
}

fn number_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let digits = |mut at: usize| {
        while bytes.get(at).is_some_and(u8::is_ascii_digit) {
            at += 1;
        }
        at
    };
    let mut end = digits(0);
    if bytes.get(end) == Some(&b'.') && bytes.get(end + 1).is_some_and(u8::is_ascii_digit) {
        end = digits(end + 1);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = digits(end + 1 + sign);
        if exponent > end + 1 + sign {
            end = exponent;
        }
    }
    end
}

fn is_space(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{180e}' | '\u{200b}' | '\u{feff}')
}

fn is_name_start(c: char) -> bool {
    match c {
        'a'..='z' | 'A'..='Z' | '_' => true,
        '\0'..='\u{bf}' | '\u{d7}' | '\u{f7}' => false,
        _ => !is_space(c) && !('\u{2000}'..='\u{206f}').contains(&c),
    }
}

fn continues_name(c: char, dialect: Dialect) -> bool {
    let own = match dialect {
        Dialect::Feel => c == '?',
        Dialect::Unified => c == '$',
    };
    own || is_name_start(c) || c.is_ascii_digit() || c == '\u{b7}' || ('\u{203f}'..='\u{2040}').contains(&c)
}
