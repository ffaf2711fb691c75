//! The XPath of plain BPMN models: paths of names, comparisons, `and`, `or`, `not()`, arithmetic and a few functions.
//!
//! A text is rewritten as FEEL of the same length, so that a place in the one is the place in the other.

use crate::error::SyntaxError;

const HINT: &str = "of XPath, paths of names, comparisons, `and`, `or`, `not()`, arithmetic and a few functions are read; \
                    begin the text with `=` to write FEEL";
/// Functions with their names in FEEL.
const FUNCTIONS: [(&str, &str); 10] = [
    ("not", "not"),
    ("count", "count"),
    ("sum", "sum"),
    ("contains", "contains"),
    ("starts-with", "starts with"),
    ("string-length", "string length"),
    ("string", "string"),
    ("number", "number"),
    ("floor", "floor"),
    ("ceiling", "ceiling"),
];

/// FEEL that says the same, and the names in it that hold special characters.
pub(crate) fn to_feel(text: &str) -> Result<(String, Vec<String>), SyntaxError> {
    let mut reader = Reader {
        text,
        at: 0,
        feel: String::with_capacity(text.len()),
        names: Vec::new(),
        after_operand: false,
    };
    while let Some(next) = reader.rest().chars().next() {
        reader.token(next)?;
    }
    Ok((reader.feel, reader.names))
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    feel: String,
    names: Vec<String>,
    /// A name or a value stands before, so that what follows is an operator.
    after_operand: bool,
}

impl<'t> Reader<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn refuse<T>(&self, message: String) -> Result<T, SyntaxError> {
        Err(SyntaxError::at(self.text, self.at, message, HINT))
    }

    /// Takes `length` bytes and writes `feel` in their place.
    fn write(&mut self, length: usize, feel: &str, is_operand: bool) {
        self.feel += feel;
        self.feel
            .extend(std::iter::repeat_n(' ', length.saturating_sub(feel.len())));
        self.at += length;
        self.after_operand = is_operand;
    }

    fn token(&mut self, next: char) -> Result<(), SyntaxError> {
        match next {
            _ if next.is_whitespace() => {
                self.feel.push(next);
                self.at += next.len_utf8();
            }
            '\'' | '"' => return self.string(next),
            '0'..='9' => {
                let end = self.rest().find(|c: char| !(c.is_ascii_digit() || c == '.'));
                let number = &self.rest()[..end.unwrap_or(self.rest().len())];
                self.write(number.len(), number, true);
            }
            '/' if self.after_operand && !self.rest().starts_with("//") => self.write(1, ".", false),
            '*' if self.after_operand => self.write(1, "*", false),
            '(' | ',' | '=' | '+' | '-' => {
                let written = next.to_string();
                self.write(1, &written, false);
            }
            ')' => self.write(1, ")", true),
            '<' | '>' | '!' => {
                let with_equals = self.rest()[1..].starts_with('=');
                if next == '!' && !with_equals {
                    return self.refuse("`!` is not expected here".to_owned());
                }
                let operator = &self.rest()[..1 + usize::from(with_equals)];
                self.write(operator.len(), operator, false);
            }
            _ if next.is_alphabetic() || next == '_' => return self.name(),
            _ => return self.refuse(format!("`{next}` is not expected here")),
        }
        Ok(())
    }

    fn string(&mut self, quote: char) -> Result<(), SyntaxError> {
        let Some(length) = self.rest()[1..].find(quote) else {
            return self.refuse("the text is not closed".to_owned());
        };
        let inside = &self.rest()[1..=length];
        let escaped = inside.replace('\\', "\\\\").replace('"', "\\\"");
        self.write(length + 2, &format!("\"{escaped}\""), true);
        Ok(())
    }

    fn name(&mut self) -> Result<(), SyntaxError> {
        let in_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':');
        let end = self
            .rest()
            .find(|c: char| !in_name(c))
            .unwrap_or(self.rest().len());
        let written = &self.rest()[..end];
        if written.contains("::") {
            return self.refuse("an axis is not expected here".to_owned());
        }
        if self.after_operand {
            let feel = match written {
                "and" | "or" => written,
                "div" => "/",
                _ => return self.refuse(format!("`{written}` is not expected here")),
            };
            self.write(end, feel, false);
            return Ok(());
        }
        // A prefix says in which vocabulary a name stands, which JSON has not.
        let local = written.rsplit(':').next().unwrap_or(written);
        if !self.rest()[end..].trim_start().starts_with('(') {
            // A dot may stand in a name of XPath, but whoever writes one means a path.
            if local.contains('-') {
                self.names.push(local.to_owned());
            }
            self.write(end, local, true);
            return Ok(());
        }
        if let Some(constant) = ["true", "false"].into_iter().find(|constant| *constant == local) {
            let Some(close) = self.rest()[end..].find(')') else {
                return self.refuse("a bracket is not closed".to_owned());
            };
            self.write(end + close + 1, constant, true);
            return Ok(());
        }
        let Some((_, feel)) = FUNCTIONS.iter().find(|(name, _)| *name == local) else {
            return self.refuse(format!("there is no function `{written}` here"));
        };
        self.write(end, feel, false);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::to_feel;

    fn feel(text: &str) -> String {
        match to_feel(text) {
            Ok((feel, _)) => {
                assert_eq!(feel.chars().count(), text.chars().count(), "{text}");
                feel
            }
            Err(error) => format!("{} at {}", error.message, error.column),
        }
    }

    #[test]
    fn what_plain_models_write_is_rewritten() {
        for (xpath, expected) in [
            ("clarified = 'yes'", "clarified = \"yes\""),
            ("order/item/price >= 10 div 2", "order.item.price >= 10 /   2"),
            ("order.total > 5", "order.total > 5"),
            ("not(a) and b != true()", "not(a) and b != true  "),
            ("starts-with(name, \"A\")", "starts with(name, \"A\")"),
            ("b:order/b:total", "order  .total  "),
            ("Level == 1", "Level == 1"),
            ("Service Level", "`Level` is not expected here at 9"),
            ("//order", "`/` is not expected here at 1"),
            ("order[1]", "`[` is not expected here at 6"),
            ("order/@id", "`@` is not expected here at 7"),
            ("a mod 2", "`mod` is not expected here at 3"),
            ("unknown(1)", "there is no function `unknown` here at 1"),
            ("'open", "the text is not closed at 1"),
        ] {
            assert_eq!(feel(xpath), expected, "{xpath}");
        }
    }

    #[test]
    fn names_with_special_characters_are_told() {
        assert_eq!(to_feel("net-amount - 1").unwrap().1, ["net-amount"]);
    }
}
