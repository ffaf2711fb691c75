//! Bytes to an XML tree, with what could hurt refused before the XML parser sees it.

use std::borrow::Cow;

use roxmltree::{Document, Node, ParsingOptions};
use tidegate_model::diagnostic::Diagnostic;
use tidegate_model::document::Position;

use crate::limits::{MAX_ATTRIBUTES, MAX_BYTES, MAX_DEPTH, MAX_NAMESPACES, MAX_NODES};

/// The text of a file.
pub(super) fn text(bytes: &[u8]) -> Result<Cow<'_, str>, Box<Diagnostic>> {
    if bytes.len() > MAX_BYTES {
        let message = format!("the file has {} bytes; at most {MAX_BYTES} are read", bytes.len());
        return Err(refusal(
            "file-too-large",
            message,
            "split the model into several files",
        ));
    }
    if bytes.iter().all(|byte| byte.is_ascii_whitespace() || *byte == 0) {
        return Err(refusal(
            "empty-file",
            "the file is empty",
            "export the model again and check that the upload was complete",
        ));
    }
    let wide = |pairs: &[u8], unit: fn([u8; 2]) -> u16| {
        let units = pairs.chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
        char::decode_utf16(units).collect::<Result<String, _>>()
    };
    let decoded = match bytes {
        [0xef, 0xbb, 0xbf, rest @ ..] => std::str::from_utf8(rest).map(Cow::Borrowed).ok(),
        [0xff, 0xfe, rest @ ..] => wide(rest, u16::from_le_bytes).map(Cow::Owned).ok(),
        [0xfe, 0xff, rest @ ..] => wide(rest, u16::from_be_bytes).map(Cow::Owned).ok(),
        _ => std::str::from_utf8(bytes).map(Cow::Borrowed).ok(),
    };
    decoded.ok_or_else(|| {
        refusal(
            "bad-encoding",
            "the file is neither UTF-8 nor UTF-16",
            "save it as UTF-8",
        )
    })
}

fn refusal(code: &str, message: impl Into<String>, hint: &str) -> Box<Diagnostic> {
    Box::new(Diagnostic::error(code, message).hint(hint))
}

/// What to do about a file that asks for more than is read.
const SPLIT: &str = "no model of a person is like that; split it, or export it again";

/// The tree of a text.
pub(super) fn tree<'t>(text: &'t str, lines: &Lines<'_>) -> Result<Document<'t>, Box<Diagnostic>> {
    scan(text).map_err(|(finding, offset)| Box::new(finding.at(lines.position(offset))))?;
    let options = ParsingOptions {
        allow_dtd: false,
        nodes_limit: MAX_NODES,
        ..ParsingOptions::default()
    };
    Document::parse_with_options(text, options).map_err(|error| {
        let place = error.pos();
        if matches!(error, roxmltree::Error::NodesLimitReached) {
            return refusal(
                "too-many-nodes",
                format!("the file has more than {MAX_NODES} nodes"),
                SPLIT,
            );
        }
        let position = Position {
            line: place.row,
            column: place.col,
        };
        let hint = "the file is no well-formed XML: export it again";
        Box::new(refusal("malformed-xml", error.to_string(), hint).at(position))
    })
}

type Finding = (Box<Diagnostic>, usize);

/// A cheap look over the text: document types, nesting, attributes and namespaces. It finds tags where the XML parser
/// finds them in well-formed text; where it is not well-formed, the parser says so.
fn scan(text: &str) -> Result<(), Finding> {
    let bytes = text.as_bytes();
    let (mut at, mut depth) = (0, 0usize);
    let namespaces = text.matches("xmlns").count();
    if namespaces > MAX_NAMESPACES {
        let message = format!("the file declares {namespaces} namespaces; at most {MAX_NAMESPACES} are read");
        return Err((refusal("too-many-namespaces", message, SPLIT), 0));
    }
    let after = |from: usize, end: &str| {
        text.get(from..)
            .and_then(|rest| rest.find(end))
            .map_or(bytes.len(), |found| from + found + end.len())
    };
    while let Some(found) = text.get(at..).and_then(|rest| rest.find('<')) {
        let start = at + found;
        let rest = text.get(start..).unwrap_or_default();
        if rest.starts_with("<!--") {
            at = after(start + 4, "-->");
        } else if rest.starts_with("<![CDATA[") {
            at = after(start + 9, "]]>");
        } else if rest.starts_with("<?") {
            at = after(start + 2, "?>");
        } else if rest.starts_with("<!") {
            let hint =
                "remove the <!DOCTYPE ...> declaration: DMN needs none, and it could pull in other files";
            let finding = refusal("doctype", "the file has a document type", hint);
            return Err((finding, start));
        } else if rest.starts_with("</") {
            depth = depth.saturating_sub(1);
            at = after(start, ">");
        } else {
            let (end, attributes, empty) = tag(bytes, start);
            if attributes > MAX_ATTRIBUTES {
                let message =
                    format!("an element has {attributes} attributes; at most {MAX_ATTRIBUTES} are read");
                return Err((refusal("too-many-attributes", message, SPLIT), start));
            }
            depth += usize::from(!empty);
            if depth > MAX_DEPTH {
                let message = format!("elements nest deeper than {MAX_DEPTH} levels");
                return Err((refusal("too-deep", message, SPLIT), start));
            }
            at = end;
        }
    }
    Ok(())
}

/// The end of a start tag, the number of its attributes, and whether it is an empty element.
fn tag(bytes: &[u8], start: usize) -> (usize, usize, bool) {
    let (mut quote, mut attributes, mut before) = (None, 0, 0);
    for (at, byte) in bytes.iter().enumerate().skip(start) {
        match (quote, byte) {
            (Some(open), byte) if byte == open => {
                quote = None;
                attributes += 1;
            }
            (Some(_), _) => {}
            (None, b'"' | b'\'') => quote = Some(byte),
            (None, b'>') => return (at + 1, attributes, before == b'/'),
            _ => {}
        }
        before = *byte;
    }
    (bytes.len(), attributes, false)
}

/// The lines of a text, indexed once.
pub(super) struct Lines<'t> {
    text: &'t str,
    starts: Vec<usize>,
}

/// A column further right is not counted: counting costs time, and no reader looks for it.
const WIDEST: usize = 4_096;

impl<'t> Lines<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        let breaks = text
            .bytes()
            .enumerate()
            .filter(|(_, byte)| *byte == b'\n')
            .map(|(at, _)| at + 1);
        Lines {
            text,
            starts: std::iter::once(0).chain(breaks).collect(),
        }
    }

    /// The place of a byte offset.
    pub(super) fn position(&self, offset: usize) -> Position {
        let offset = offset.min(self.text.len());
        let line = self.starts.partition_point(|start| *start <= offset);
        let start = self.starts.get(line.saturating_sub(1)).copied().unwrap_or(0);
        let before = self
            .text
            .as_bytes()
            .get(start..offset.min(start + WIDEST))
            .unwrap_or_default();
        let characters = before.iter().filter(|byte| **byte & 0xc0 != 0x80).count();
        Position {
            line: line as u32,
            column: characters as u32 + 1,
        }
    }
}

/// The namespaces of the DMN model, by edition.
const EDITIONS: &[&str] = &[
    "www.omg.org/spec/DMN/20151101/dmn.xsd",
    "www.omg.org/spec/DMN/20151101/dmn11.xsd",
    "www.omg.org/spec/DMN/20180521/MODEL/",
    "www.omg.org/spec/DMN/20191111/MODEL/",
    "www.omg.org/spec/DMN/20211108/MODEL/",
    "www.omg.org/spec/DMN/20230324/MODEL/",
];

/// Whether a namespace is that of the DMN model, in any edition that is read. The scheme has changed between editions,
/// and tools mix it up.
pub(super) fn is_edition(namespace: &str) -> bool {
    let rest = namespace
        .strip_prefix("https://")
        .or_else(|| namespace.strip_prefix("http://"));
    rest.is_some_and(|rest| EDITIONS.contains(&rest))
}

/// Looks at elements of the DMN model only.
pub(super) trait Read<'a, 'i: 'a> {
    fn local(&self) -> &'a str;
    fn kids(&self) -> impl Iterator<Item = Node<'a, 'i>>;
    fn named(&self, name: &str) -> impl Iterator<Item = Node<'a, 'i>>;
    fn kid(&self, name: &str) -> Option<Node<'a, 'i>>;
    fn value(&self, name: &str) -> Option<&'a str>;
}

impl<'a, 'i: 'a> Read<'a, 'i> for Node<'a, 'i> {
    fn local(&self) -> &'a str {
        self.tag_name().name()
    }

    fn kids(&self) -> impl Iterator<Item = Node<'a, 'i>> {
        self.children()
            .filter(|child| child.is_element() && child.tag_name().namespace().is_some_and(is_edition))
    }

    fn named(&self, name: &str) -> impl Iterator<Item = Node<'a, 'i>> {
        self.kids().filter(move |child| child.tag_name().name() == name)
    }

    fn kid(&self, name: &str) -> Option<Node<'a, 'i>> {
        self.kids().find(|child| child.tag_name().name() == name)
    }

    /// An attribute that is not blank, without white space around it.
    fn value(&self, name: &str) -> Option<&'a str> {
        self.attribute(name)
            .map(str::trim)
            .filter(|value| !value.is_empty())
    }
}
