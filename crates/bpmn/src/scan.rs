//! A cheap look over the text before the XML parser gets it: document types and limits.
//!
//! It finds tags, comments, instructions and attributes at exactly the places where the parser finds them
//! in well-formed text, and does not judge; where text is not well-formed, the parser stops and says so.

use crate::limits::Limits;
use crate::report::Finding;

/// What a scan learns for better messages about malformed text.
#[derive(Debug, Default)]
pub struct Scan {
    /// Offset behind the root element.
    pub root_end: Option<usize>,
    /// Name and offset of the innermost element that is open at the end of the text.
    pub unclosed: Option<(String, usize)>,
}

/// The work that namespace declarations may cause in the parser, which copies and compares all that are in
/// scope at each element that declares one.
const NAMESPACE_WORK: usize = 100_000_000;

/// Bytes of a namespace URI. The document repeats it at each foreign element and attribute.
const URI_BYTES: usize = 256;

struct Open<'a> {
    name: &'a str,
    offset: usize,
    /// Prefixes in scope inside the element around it.
    prefixes: usize,
}

struct Scanner<'a> {
    text: &'a str,
    limits: &'a Limits,
    open: Vec<Open<'a>>,
    prefixes: Vec<&'a str>,
    elements: usize,
    misc: usize,
    attributes: usize,
    namespace_work: usize,
    result: Scan,
}

/// Checks a text against the limits.
pub fn scan(text: &str, limits: &Limits) -> Result<Scan, Finding> {
    capacity(text, limits)?;
    let mut scanner = Scanner {
        text,
        limits,
        open: Vec::new(),
        prefixes: Vec::new(),
        elements: 0,
        misc: 0,
        attributes: 0,
        namespace_work: 0,
        result: Scan::default(),
    };
    scanner.run()?;
    scanner.result.unclosed = scanner
        .open
        .last()
        .map(|open| (open.name.to_owned(), open.offset));
    Ok(scanner.result)
}

/// The parser reserves memory by the number of these signs, wherever they stand.
fn capacity(text: &str, limits: &Limits) -> Result<(), Finding> {
    let (mut opening, mut equals) = (0_usize, 0_usize);
    for byte in text.bytes() {
        opening += usize::from(byte == b'<');
        equals += usize::from(byte == b'=');
    }
    if opening > limits.nodes() {
        return Err(too_many_elements(0, limits));
    }
    if equals > limits.attributes.saturating_mul(2).saturating_add(16) {
        return Err(too_many_attributes(0, limits));
    }
    Ok(())
}

impl<'a> Scanner<'a> {
    fn run(&mut self) -> Result<(), Finding> {
        let mut at = 0;
        while let Some(found) = self.text[at..].find('<') {
            self.value(at, found)?;
            let start = at + found;
            let rest = &self.text[start..];
            let end = if rest.starts_with("<!--") {
                self.misc(start)?;
                self.after(start + 4, "-->")
            } else if rest.starts_with("<?") {
                self.misc(start)?;
                self.after(start + 2, "?>")
            } else if rest.starts_with("<![CDATA[") {
                self.misc(start)?;
                let end = self.after(start + 9, "]]>");
                self.value(start, end.unwrap_or(self.text.len()) - start)?;
                end
            } else if rest.starts_with("<!DOCTYPE") {
                return Err(dtd(start));
            } else if rest.starts_with("</") {
                self.close(start)
            } else {
                self.element(start)?
            };
            match end {
                Some(end) => at = end,
                // An unfinished comment or tag: nothing behind it means anything to the parser.
                None => return Ok(()),
            }
        }
        self.value(at, self.text.len() - at)
    }

    fn after(&self, from: usize, mark: &str) -> Option<usize> {
        self.text[from..]
            .find(mark)
            .map(|found| from + found + mark.len())
    }

    fn close(&mut self, start: usize) -> Option<usize> {
        let end = self.after(start, ">");
        if let Some(open) = self.open.pop() {
            self.prefixes.truncate(open.prefixes);
            if self.open.is_empty() {
                self.result.root_end = self.result.root_end.or(end);
            }
        }
        end
    }

    fn element(&mut self, start: usize) -> Result<Option<usize>, Finding> {
        self.elements += 1;
        if self.elements > self.limits.elements {
            return Err(too_many_elements(start, self.limits));
        }
        let rest = &self.text[start + 1..];
        let name_end = rest
            .find(|c: char| c.is_ascii_whitespace() || matches!(c, '/' | '>' | '<' | '"' | '\''))
            .unwrap_or(rest.len());
        let name = &rest[..name_end];
        let prefixes = self.prefixes.len();
        let Some((end, empty)) = self.attributes(start, start + 1 + name_end)? else {
            return Ok(None);
        };
        if empty {
            self.prefixes.truncate(prefixes);
            if self.open.is_empty() {
                self.result.root_end = self.result.root_end.or(Some(end));
            }
        } else {
            self.open.push(Open {
                name,
                offset: start,
                prefixes,
            });
        }
        let depth = self.open.len() + usize::from(empty);
        let deepest = self.limits.effective_depth();
        if depth > deepest {
            return Err(Finding::error(
                start,
                "too-deep",
                format!("elements are nested more than {deepest} levels deep"),
            )
            .hint("call other processes in the place of nesting them"));
        }
        Ok(Some(end))
    }

    /// Goes over the attributes of the element at `start`. Returns the offset behind the tag and whether
    /// the element is empty; nothing if the tag does not end.
    fn attributes(&mut self, start: usize, from: usize) -> Result<Option<(usize, bool)>, Finding> {
        let bytes = self.text.as_bytes();
        let (mut here, mut declared) = (0, 0);
        let mut name_start = from;
        let mut at = from;
        loop {
            match bytes.get(at) {
                None => return Ok(None),
                Some(b'>') => {
                    if declared > 0 {
                        self.namespaces(start, declared)?;
                    }
                    return Ok(Some((at + 1, bytes[at - 1] == b'/')));
                }
                // Not well-formed; go on behind what the parser stops at.
                Some(b'<') => return Ok(Some((at, true))),
                Some(quote @ (b'"' | b'\'')) => {
                    here += 1;
                    self.attributes += 1;
                    if here > self.limits.attributes_per_element {
                        let limit = self.limits.attributes_per_element;
                        return Err(Finding::error(
                            start,
                            "too-many-attributes",
                            format!("the element has more than {limit} attributes"),
                        )
                        .hint("put data into child elements"));
                    }
                    if self.attributes > self.limits.attributes {
                        return Err(too_many_attributes(start, self.limits));
                    }
                    let name = self.text[name_start..at].trim_ascii_start();
                    let prefix = declaration(name);
                    if let Some(prefix) = prefix {
                        declared += 1;
                        if !self.prefixes.contains(&prefix) {
                            self.prefixes.push(prefix);
                        }
                    }
                    if self.prefixes.len() > self.limits.namespaces {
                        return Err(too_many_namespaces(start, self.limits));
                    }
                    let value = at + 1;
                    let length = bytes[value..]
                        .iter()
                        .position(|byte| byte == quote || *byte == b'<')
                        .unwrap_or(bytes.len() - value);
                    let limit = prefix.map_or(self.limits.value_bytes, |_| URI_BYTES);
                    within(limit, value, length)?;
                    at = value + length;
                    if bytes.get(at) == Some(quote) {
                        at += 1;
                    }
                    name_start = at;
                }
                Some(_) => at += 1,
            }
        }
    }

    fn namespaces(&mut self, start: usize, declared: usize) -> Result<(), Finding> {
        let scope = self.prefixes.len() + declared;
        self.namespace_work = self.namespace_work.saturating_add(scope * scope);
        if self.namespace_work > NAMESPACE_WORK {
            return Err(too_many_namespaces(start, self.limits));
        }
        Ok(())
    }

    fn misc(&mut self, start: usize) -> Result<(), Finding> {
        self.misc += 1;
        if self.misc > self.limits.elements {
            return Err(too_many_elements(start, self.limits));
        }
        Ok(())
    }

    fn value(&self, start: usize, length: usize) -> Result<(), Finding> {
        within(self.limits.value_bytes, start, length)
    }
}

fn within(limit: usize, start: usize, length: usize) -> Result<(), Finding> {
    if length <= limit {
        return Ok(());
    }
    Err(Finding::error(
        start,
        "value-too-long",
        format!("one value or text has {length} bytes; the limit is {limit}"),
    )
    .hint("keep data out of the model, for example in a variable"))
}

/// The prefix that an attribute of this name declares; empty for the default namespace.
fn declaration(name: &str) -> Option<&str> {
    let name = name.trim_ascii_end().strip_suffix('=')?.trim_ascii_end();
    match name.strip_prefix("xmlns")? {
        "" => Some(""),
        rest => rest.strip_prefix(':'),
    }
}

fn dtd(offset: usize) -> Finding {
    Finding::error(
        offset,
        "dtd-refused",
        "the file has a document type (<!DOCTYPE>); it is refused, and nothing in it is expanded or fetched",
    )
    .hint("remove the document type and write the text of its entities where they are used")
}

fn too_many_elements(offset: usize, limits: &Limits) -> Finding {
    Finding::error(
        offset,
        "too-many-elements",
        format!(
            "the file has more than {} elements, or as many comments",
            limits.elements
        ),
    )
    .hint("split the model into several files, or raise the limit")
}

fn too_many_attributes(offset: usize, limits: &Limits) -> Finding {
    Finding::error(
        offset,
        "too-many-attributes",
        format!("the file has more than {} attributes", limits.attributes),
    )
    .hint("split the model into several files, or raise the limit")
}

fn too_many_namespaces(offset: usize, limits: &Limits) -> Finding {
    Finding::error(
        offset,
        "too-many-namespaces",
        format!(
            "more than {} namespace prefixes are declared at one place, or the same ones far too often",
            limits.namespaces
        ),
    )
    .hint("declare each namespace once, at the root, and only those in use")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tight() -> Limits {
        Limits {
            depth: 3,
            elements: 5,
            attributes: 8,
            attributes_per_element: 4,
            namespaces: 2,
            value_bytes: 20,
            ..Limits::default()
        }
    }

    #[test]
    fn limits_hold() {
        let table = [
            ("<a><b><c/></b><b><c/></b></a>", None),
            ("<a><b><c><d/></c></b></a>", Some("too-deep 9")),
            ("<a><b><c><d></d></c></b></a>", Some("too-deep 9")),
            ("<a><b/><b/><b/><b/><b/></a>", Some("too-many-elements 19")),
            (
                "<!----><!----><!----><!----><!----><!----><a/>",
                Some("too-many-elements 35"),
            ),
            ("<a p='' q='' r='' s=''/>", None),
            ("<a p='' q='' r='' s='' t=''/>", Some("too-many-attributes 0")),
            ("<a p='' q=''><b r='' s='' t=''/><b u='' v='' w='' /></a>", None),
            (
                "<a p='' q=''><b r='' s='' t=''/><b u='' v='' w='' x=''/></a>",
                Some("too-many-attributes 32"),
            ),
            ("<a xmlns='1' xmlns:b='2'><b xmlns='3' xmlns:b='4'/></a>", None),
            (
                "<a xmlns='1' xmlns:b='2'><b xmlns:c='4'/></a>",
                Some("too-many-namespaces 25"),
            ),
            ("<a><b xmlns:x='' /><b xmlns:y=''/><b xmlns:z=''></b></a>", None),
            ("<a b='aaaaaaaaaaaaaaaaaaaaa'/>", Some("value-too-long 6")),
            ("<a>aaaaaaaaaaaaaaaaaaaaa</a>", Some("value-too-long 3")),
            (
                "<a><![CDATA[<<<<<<<<<<<<<<<<<<<<<]]></a>",
                Some("value-too-long 3"),
            ),
            ("<!-- <x> --><!DOCTYPE a []><a/>", Some("dtd-refused 12")),
            ("<!-- <!DOCTYPE a> --><a b='>'/>", None),
            ("<a b='", None),
            ("<a <b", None),
            ("<", None),
        ];
        for (text, expected) in table {
            let found = scan(text, &tight())
                .err()
                .map(|f| format!("{} {}", f.diagnostic.code, f.offset));
            assert_eq!(found.as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn namespace_names_are_short() {
        let text = format!("<a xmlns='{}'/>", "u".repeat(URI_BYTES + 1));
        let found = scan(&text, &Limits::default()).err();
        assert_eq!(
            found.map(|f| f.diagnostic.code).as_deref(),
            Some("value-too-long")
        );
    }

    #[test]
    fn knows_what_is_open_and_where_the_root_ends() {
        let unclosed = |text| scan(text, &Limits::default()).map(|s| s.unclosed).ok().flatten();
        assert_eq!(unclosed("<a><b x='>'><c/>"), Some(("b".to_owned(), 3)));
        assert_eq!(unclosed("<a></a>"), None);
        let end = |text| scan(text, &Limits::default()).map(|s| s.root_end).ok().flatten();
        assert_eq!(end("<a></a><b/>"), Some(7));
        assert_eq!(end("<a/><b/>"), Some(4));
    }
}
