//! What a file looks like that is no XML.

use tidegate_model::diagnostic::Diagnostic;

const SIGNATURES: &[(&[u8], &str)] = &[
    (b"\x1f\x8b", "a gzip archive"),
    (b"PK\x03\x04", "a zip archive"),
    (b"BZh", "a bzip2 archive"),
    (b"\xfd7zXZ\0", "an xz archive"),
    (b"\x28\xb5\x2f\xfd", "a zstandard archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"%PDF-", "a PDF file"),
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"\x7fELF", "a program"),
    (b"SQLite format 3\0", "an SQLite database"),
];

/// The diagnostic for bytes that cannot be XML in any encoding.
pub fn not_xml(bytes: &[u8]) -> Option<Diagnostic> {
    let content = bytes
        .strip_prefix(b"\xef\xbb\xbf")
        .or_else(|| bytes.strip_prefix(b"\xff\xfe"))
        .or_else(|| bytes.strip_prefix(b"\xfe\xff"))
        .unwrap_or(bytes);
    let start = content.trim_ascii_start();
    if start.iter().all(|byte| *byte == 0) {
        let message = if content.is_empty() {
            "the file is empty"
        } else {
            "the file holds only white space or zeros"
        };
        let diagnostic = Diagnostic::error("empty-file", message);
        return Some(diagnostic.hint("export the model again and check that the upload was complete"));
    }
    if let Some((_, name)) = SIGNATURES
        .iter()
        .find(|(signature, _)| bytes.starts_with(signature))
    {
        return Some(
            Diagnostic::error("not-xml", format!("this is {name}, not BPMN XML"))
                .hint("give the .bpmn file itself"),
        );
    }
    let first_is_markup = start.starts_with(b"<") || start.starts_with(b"\0<");
    if first_is_markup {
        return looks_like_html(start).then(|| {
            Diagnostic::error("not-xml", "this is an HTML page, not BPMN XML")
                .hint("perhaps an error or login page was saved in the place of the model; download it again")
        });
    }
    // UTF-16 and UTF-32 with a byte order mark are told by the decoder.
    if content.len() != bytes.len() {
        return None;
    }
    let looks = match start.first() {
        Some(b'{' | b'[') => "looks like JSON",
        _ if start.contains(&0) => "is binary data",
        _ => "does not begin with '<'",
    };
    Some(
        Diagnostic::error("not-xml", format!("the file {looks}; it is not BPMN XML"))
            .hint("give the .bpmn file as the modeler saved it"),
    )
}

fn looks_like_html(start: &[u8]) -> bool {
    [&b"<!doctype html"[..], b"<html"].iter().any(|sign| {
        start
            .get(..sign.len())
            .is_some_and(|head| head.eq_ignore_ascii_case(sign))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_a_file_is() {
        let table: &[(&[u8], &str, &str)] = &[
            (b"", "empty-file", "empty"),
            (b"\xef\xbb\xbf", "empty-file", "empty"),
            (b"\xff\xfe", "empty-file", "empty"),
            (b" \r\n\t  ", "empty-file", "white space"),
            (b"\x1f\x8b\x08", "not-xml", "gzip"),
            (b"PK\x03\x04..", "not-xml", "zip"),
            (b"{\"a\": 1}", "not-xml", "JSON"),
            (b"hello", "not-xml", "'<'"),
            (b"\x01\x00\x02", "not-xml", "binary"),
            (b"<!DOCTYPE html><html></html>", "not-xml", "HTML"),
            (b"<HTML>", "not-xml", "HTML"),
            (b"\n<definitions/>", "", ""),
            (b"<\0d\0", "", ""),
            (b"\0<\0d", "", ""),
        ];
        for (bytes, code, part) in table {
            let found = not_xml(bytes);
            assert_eq!(found.as_ref().map_or("", |d| d.code.as_str()), *code, "{bytes:?}");
            assert!(found.is_none_or(|d| d.message.contains(part)), "{bytes:?}");
        }
    }
}
