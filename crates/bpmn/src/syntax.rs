//! The XML parser's errors in the words and with the codes of this crate.

use roxmltree::Error;
use tidegate_model::diagnostic::Diagnostic;
use tidegate_model::document::Position;

use crate::position::Lines;
use crate::report::shorten;
use crate::scan::Scan;

/// What the parser stopped at.
pub fn diagnostic(error: &Error, text: &str, scan: &Scan, lines: &Lines<'_>) -> Diagnostic {
    let place = error.pos();
    let position = Position {
        line: place.row,
        column: place.col,
    };
    let offset = lines.offset(position);
    let character = text[offset..].chars().next();
    let (code, message, hint) = explain(error, character);
    if matches!(
        error,
        Error::UnexpectedEndOfStream | Error::UnclosedRootNode | Error::NoRootNode
    ) || character.is_none()
    {
        return end_of_file(error, scan, lines);
    }
    if scan.root_end.is_some_and(|end| offset >= end) {
        return syntax("there is content behind the end of the root element")
            .hint("a file holds one definitions element and nothing after it")
            .at(position);
    }
    Diagnostic::error(code, message).hint(hint).at(position)
}

fn end_of_file(error: &Error, scan: &Scan, lines: &Lines<'_>) -> Diagnostic {
    let diagnostic = match &scan.unclosed {
        Some((name, offset)) => {
            let opened = lines.position(*offset);
            syntax(format!(
                "the file ends inside <{}>, which was opened at line {}, column {}",
                shorten(name),
                opened.line,
                opened.column
            ))
        }
        None if matches!(error, Error::NoRootNode) => syntax("the file holds no element"),
        None => syntax("the file ends too early"),
    };
    diagnostic
        .hint("the file was cut off, perhaps by an incomplete upload or copy")
        .at(lines.end())
}

fn syntax(message: impl Into<String>) -> Diagnostic {
    Diagnostic::error("xml-syntax", message)
}

fn explain(error: &Error, character: Option<char>) -> (&'static str, String, String) {
    let found = character.map_or_else(|| "the end".to_owned(), |c| format!("{c:?}"));
    let (code, message, hint): (_, String, &str) = match error {
        Error::UnknownNamespace(prefix, _) => {
            let prefix = shorten(prefix);
            return (
                "undeclared-prefix",
                format!("the namespace prefix {prefix} is not declared"),
                format!("declare it at the root element: xmlns:{prefix}=\"...\""),
            );
        }
        Error::DuplicatedAttribute(name, _) => (
            "duplicate-attribute",
            format!("the attribute {} is there twice", shorten(name)),
            "keep one of them",
        ),
        Error::DuplicatedNamespace(name, _) => (
            "duplicate-attribute",
            format!(
                "the namespace prefix {} is declared twice on one element",
                shorten(name)
            ),
            "keep one of the declarations",
        ),
        Error::UnknownEntityReference(name, _) => (
            "unknown-entity",
            format!("the entity &{}; is not known", shorten(name)),
            "XML knows only &lt; &gt; &amp; &quot; and &apos;; write other characters as they are or as &#number;",
        ),
        Error::MalformedEntityReference(_) => (
            "xml-syntax",
            "'&' does not begin a character that XML allows".to_owned(),
            "write &amp; for the sign itself; control characters cannot be written at all",
        ),
        Error::UnexpectedCloseTag(expected, actual, _) => (
            "xml-syntax",
            format!("</{}> closes <{}>", shorten(actual), shorten(expected)),
            "close the elements in the reverse order of their opening",
        ),
        Error::UnexpectedDeclaration(_) => (
            "xml-syntax",
            "the XML declaration is not at the very beginning".to_owned(),
            "remove what stands before <?xml, also blanks and empty lines",
        ),
        Error::NonXmlChar(c, _) => (
            "xml-syntax",
            format!("the character {c:?} is not allowed in XML"),
            "remove it",
        ),
        Error::InvalidAttributeValue(_) => (
            "xml-syntax",
            "'<' stands in an attribute value".to_owned(),
            "write &lt;",
        ),
        Error::InvalidCharacterData(_) => ("xml-syntax", "']]>' stands in a text".to_owned(), "write ]]&gt;"),
        Error::InvalidComment(_) => (
            "xml-syntax",
            "a comment holds '--' or ends with '--->'".to_owned(),
            "use single hyphens in comments",
        ),
        Error::InvalidName(_) => (
            "xml-syntax",
            format!("{found} cannot begin or form a name here"),
            "names begin with a letter or '_' and hold at most one ':'; write &lt; for a less-than sign",
        ),
        Error::InvalidChar(expected, _, _) if *expected == b'\'' || *expected == b'"' => (
            "xml-syntax",
            format!("an attribute value is not closed before {found}"),
            "close the value with the quote that opened it, and write &lt; for a less-than sign in it",
        ),
        Error::InvalidChar(expected, _, _) => (
            "xml-syntax",
            format!("{found} stands where '{}' should", char::from(*expected)),
            "correct the tag",
        ),
        Error::InvalidChar2(expected, _, _) => (
            "xml-syntax",
            format!("{found} stands where {expected} should"),
            "correct the tag; attributes are written name=\"value\" with a blank between them",
        ),
        Error::InvalidString(expected, _) => (
            "xml-syntax",
            format!("{found} stands where {expected} should"),
            "correct the markup",
        ),
        Error::DtdDetected => (
            "dtd-refused",
            "document types are refused".to_owned(),
            "remove it",
        ),
        Error::NodesLimitReached | Error::AttributesLimitReached => (
            "too-many-elements",
            "the file has too many elements".to_owned(),
            "split the model into several files",
        ),
        Error::NamespacesLimitReached => (
            "too-many-namespaces",
            "the file has too many namespaces".to_owned(),
            "declare only those in use",
        ),
        Error::InvalidXmlPrefixUri(_) | Error::UnexpectedXmlUri(_) | Error::UnexpectedXmlnsUri(_) => (
            "xml-syntax",
            "the prefixes xml and xmlns and their namespaces cannot be declared otherwise".to_owned(),
            "remove the declaration",
        ),
        Error::InvalidElementNamePrefix(_) => (
            "xml-syntax",
            "an element cannot have the prefix xmlns".to_owned(),
            "use the prefix of a declared namespace",
        ),
        Error::UnknownToken(_)
        | Error::UnexpectedEntityCloseTag(_)
        | Error::EntityReferenceLoop(_)
        | Error::InvalidExternalID(_)
        | Error::EntityResolver(..)
        | Error::NoRootNode
        | Error::UnclosedRootNode
        | Error::UnexpectedEndOfStream => (
            "xml-syntax",
            format!("{found} is not expected here"),
            "check the markup before it",
        ),
    };
    (code, message, hint.to_owned())
}
