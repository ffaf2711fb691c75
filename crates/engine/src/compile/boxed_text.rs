//! Expressions that stand in a text as DMN writes them: a `literalExpression`, its markup quoted.

use tidegate_expression::SyntaxError;

use crate::text::Computed;

/// Reads an expression, also one that is quoted as DMN writes it: FEEL then, if it does not name a language itself.
pub(super) fn read(text: &str, language: Option<&str>) -> Result<Computed, SyntaxError> {
    match literal(text) {
        Some((inside, own)) => Computed::read(&inside, Some(own.as_deref().unwrap_or("feel"))),
        None => Computed::read(text, language),
    }
}

/// The text inside a `literalExpression`, and the language that it names. None for anything else.
fn literal(text: &str) -> Option<(String, Option<String>)> {
    let text = text.trim();
    let (start, inside) = text.strip_prefix('<')?.split_once('>')?;
    let (name, attributes) = start.split_once(char::is_whitespace).unwrap_or((start, ""));
    if local(name) != "literalExpression" {
        return None;
    }
    let (_, from) = inside.split_once("text>").filter(|(before, _)| opens(before))?;
    let (written, _) = from.split_once("</")?;
    Some((
        unescape(written.trim()),
        attribute(attributes, "expressionLanguage"),
    ))
}

fn local(name: &str) -> &str {
    name.rsplit(':').next().unwrap_or(name)
}

/// True if a text ends with the beginning of a tag: `<`, or `<` and a prefix.
fn opens(before: &str) -> bool {
    let prefix = before.rsplit('<').next().unwrap_or_default();
    before.contains('<') && (prefix.is_empty() || prefix.ends_with(':') && !prefix.contains([' ', '>', '/']))
}

fn attribute(attributes: &str, name: &str) -> Option<String> {
    let (_, value) = attributes.split_once(&format!("{name}="))?;
    let quote = value.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
    Some(unescape(value[1..].split(quote).next()?))
}

fn unescape(text: &str) -> String {
    let plain = text
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"");
    plain.replace("&apos;", "'").replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::literal;

    #[test]
    fn the_text_of_a_literal_expression_is_read() {
        let feel = "https://www.omg.org/spec/DMN/20191111/FEEL/";
        for (text, expected) in [
            (
                format!(
                    "<n:literalExpression id='e' expressionLanguage=\"{feel}\"><n:text>a &lt; 1</n:text></n:literalExpression>"
                ),
                Some(("a < 1".to_owned(), Some(feel.to_owned()))),
            ),
            (
                "<literalExpression><description>x</description><text> b </text></literalExpression>"
                    .to_owned(),
                Some(("b".to_owned(), None)),
            ),
            ("<context><contextEntry/></context>".to_owned(), None),
            ("<literalExpression/>".to_owned(), None),
            ("<literalExpression><context>".to_owned(), None),
            ("<".to_owned(), None),
        ] {
            assert_eq!(literal(&text), expected, "{text}");
        }
    }
}
