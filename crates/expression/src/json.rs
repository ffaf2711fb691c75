//! JSON in and out, with decimals as decimals: a general reader would turn `0.1` into a binary number on the way.

use std::fmt::{self, Display, Formatter, Write};

use crate::value::Value;

/// Deepest nesting that is read. Values built from what is read may nest a little deeper.
const MAX_DEPTH: u32 = 120;

/// A text that is not JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonError {
    /// What is wrong.
    pub message: &'static str,
    /// Byte offset in the text.
    pub offset: usize,
}

impl Display for JsonError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "not valid JSON: {} at byte {}", self.message, self.offset)
    }
}

impl std::error::Error for JsonError {}

pub(crate) fn read(text: &str) -> Result<Value, JsonError> {
    let mut reader = Reader { text, at: 0 };
    let value = reader.value(0)?;
    reader.space();
    if reader.at < text.len() {
        Err(reader.error("text after the value"))
    } else {
        Ok(value)
    }
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
}

impl Reader<'_> {
    fn error(&self, message: &'static str) -> JsonError {
        JsonError {
            message,
            offset: self.at,
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn eat(&mut self, byte: u8) -> bool {
        self.space();
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn value(&mut self, depth: u32) -> Result<Value, JsonError> {
        if depth > MAX_DEPTH {
            return Err(self.error("nested too deep"));
        }
        self.space();
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => self.string().map(Value::from),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => self.word(),
        }
    }

    fn word(&mut self) -> Result<Value, JsonError> {
        for (word, value) in [
            ("null", Value::Null),
            ("true", Value::Boolean(true)),
            ("false", Value::Boolean(false)),
        ] {
            if self
                .text
                .as_bytes()
                .get(self.at..)
                .is_some_and(|rest| rest.starts_with(word.as_bytes()))
            {
                self.at += word.len();
                return Ok(value);
            }
        }
        Err(self.error("a value is expected"))
    }

    fn array(&mut self, depth: u32) -> Result<Value, JsonError> {
        self.at += 1;
        let mut items = Vec::new();
        if self.eat(b']') {
            return Ok(Value::list(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            if self.eat(b']') {
                return Ok(Value::list(items));
            }
            if !self.eat(b',') {
                return Err(self.error("`,` or `]` is expected"));
            }
        }
    }

    fn object(&mut self, depth: u32) -> Result<Value, JsonError> {
        self.at += 1;
        let mut entries: Vec<(std::sync::Arc<str>, Value)> = Vec::new();
        if self.eat(b'}') {
            return Ok(Value::context(entries));
        }
        loop {
            self.space();
            if self.peek() != Some(b'"') {
                return Err(self.error("a member name is expected"));
            }
            let name = self.string()?;
            if !self.eat(b':') {
                return Err(self.error("`:` is expected"));
            }
            entries.push((name.into(), self.value(depth + 1)?));
            if self.eat(b'}') {
                return Ok(Value::context(entries));
            }
            if !self.eat(b',') {
                return Err(self.error("`,` or `}` is expected"));
            }
        }
    }

    fn number(&mut self) -> Result<Value, JsonError> {
        let start = self.at;
        while matches!(self.peek(), Some(b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9')) {
            self.at += 1;
        }
        let text = self.text.get(start..self.at).unwrap_or_default();
        let digits = text.strip_prefix('-').unwrap_or(text).as_bytes();
        let zero = matches!(digits, [b'0', b'0'..=b'9', ..]) || !matches!(digits, [b'0'..=b'9', ..]);
        let number = if zero { None } else { text.parse().ok() };
        number.map(Value::Number).ok_or(JsonError {
            message: "a number is expected",
            offset: start,
        })
    }

    fn string(&mut self) -> Result<String, JsonError> {
        self.at += 1;
        let mut out = String::new();
        loop {
            let start = self.at;
            while !matches!(self.peek(), None | Some(b'"' | b'\\' | 0..=0x1f)) {
                self.at += 1;
            }
            out.push_str(self.text.get(start..self.at).unwrap_or_default());
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(out);
                }
                Some(b'\\') => self.escape(&mut out)?,
                Some(_) => return Err(self.error("a control character in a string")),
                None => return Err(self.error("the string does not end")),
            }
        }
    }

    fn escape(&mut self, out: &mut String) -> Result<(), JsonError> {
        let kind = self.text.as_bytes().get(self.at + 1).copied();
        let plain = match kind {
            Some(b'u') => return self.unicode(out),
            Some(b'n') => '\n',
            Some(b't') => '\t',
            Some(b'r') => '\r',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(byte @ (b'"' | b'\\' | b'/')) => char::from(byte),
            _ => return Err(self.error("an unknown escape")),
        };
        self.at += 2;
        out.push(plain);
        Ok(())
    }

    fn unicode(&mut self, out: &mut String) -> Result<(), JsonError> {
        let high = self.unit(self.at)?;
        self.at += 6;
        if !(0xd800..0xe000).contains(&high) {
            out.push(char::from_u32(high).unwrap_or('\u{fffd}'));
            return Ok(());
        }
        // A half of a pair that stands alone has no character: it is replaced, as lenient readers do.
        let low = self
            .unit(self.at)
            .ok()
            .filter(|low| high < 0xdc00 && (0xdc00..0xe000).contains(low));
        let Some(low) = low else {
            out.push('\u{fffd}');
            return Ok(());
        };
        self.at += 6;
        out.push(char::from_u32(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00)).unwrap_or('\u{fffd}'));
        Ok(())
    }

    fn unit(&self, at: usize) -> Result<u32, JsonError> {
        let text = self
            .text
            .get(at..at + 6)
            .and_then(|text| text.strip_prefix("\\u"));
        let digits = text.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        digits
            .and_then(|digits| u32::from_str_radix(digits, 16).ok())
            .ok_or(self.error("an incomplete \\u escape"))
    }
}

pub(crate) fn write(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Boolean(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Number(value) => out.push_str(&value.to_json()),
        Value::String(text) => write_string(text, out),
        Value::List(list) => {
            out.push('[');
            for (index, item) in list.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write(item, out);
            }
            out.push(']');
        }
        Value::Context(context) => {
            out.push('{');
            for (index, (name, value)) in context.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_string(name, out);
                out.push(':');
                write(value, out);
            }
            out.push('}');
        }
        other => write_string(&other.to_string(), out),
    }
}

fn write_string(text: &str, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            control if control < ' ' => {
                let _ = write!(out, "\\u{:04x}", u32::from(control));
            }
            other => out.push(other),
        }
    }
    out.push('"');
}
