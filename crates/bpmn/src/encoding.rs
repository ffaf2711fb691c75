//! Bytes to text: byte order mark, XML declaration, decoding.

use std::borrow::Cow;

use encoding_rs::{DecoderResult, Encoding, REPLACEMENT, UTF_8, UTF_16BE, UTF_16LE, X_USER_DEFINED};
use tidegate_model::diagnostic::Diagnostic;
use tidegate_model::document::Position;

use crate::position::Lines;
use crate::report::Report;

/// An XML declaration longer than this is none.
const DECLARATION_BYTES: usize = 1_024;

/// Decodes a file. The text has no byte order mark. `None` when a diagnostic says why it cannot be read.
pub fn decode<'a>(bytes: &'a [u8], report: &mut Report) -> Option<Cow<'a, str>> {
    if bytes.starts_with(b"\xff\xfe\0\0") || bytes.starts_with(b"\0\0\xfe\xff") {
        report.push(unknown("UTF-32"));
        return None;
    }
    let (encoding, body, marked) = match Encoding::for_bom(bytes) {
        Some((encoding, length)) => (Some(encoding), &bytes[length..], true),
        None if bytes.starts_with(b"<\0") => (Some(UTF_16LE), bytes, false),
        None if bytes.starts_with(b"\0<") => (Some(UTF_16BE), bytes, false),
        None => (None, bytes, false),
    };
    let declared = declared(body, encoding);
    let encoding = match (encoding, &declared) {
        (Some(evident), Some(label)) => {
            if !agree(evident, label) {
                report.push(mismatch(evident, label, marked));
            }
            evident
        }
        (Some(evident), None) => evident,
        (None, None) => UTF_8,
        (None, Some(label)) => match Encoding::for_label(label.as_bytes()) {
            Some(found) if found == UTF_16LE || found == UTF_16BE => {
                report.push(
                    Diagnostic::error(
                        "encoding-mismatch",
                        format!("the XML declaration says {label}, but the bytes are not UTF-16"),
                    )
                    .hint("write encoding=\"UTF-8\" in the first line, or save the file as UTF-16 with a byte order mark")
                    .at(Position { line: 1, column: 1 }),
                );
                return None;
            }
            Some(found) if found != REPLACEMENT && found != X_USER_DEFINED => found,
            _ => {
                report.push(unknown(label));
                return None;
            }
        },
    };
    match transcode(body, encoding) {
        Ok(text) => Some(text),
        Err(valid) => {
            report.push(invalid(body, encoding, &valid, declared.as_deref()));
            None
        }
    }
}

/// The encoding that the XML declaration names.
fn declared(body: &[u8], evident: Option<&'static Encoding>) -> Option<String> {
    // The declaration is ASCII in every encoding that is read here, so dropping the zeros of UTF-16
    // makes it readable.
    let wide = evident.is_some_and(|e| e == UTF_16LE || e == UTF_16BE);
    let head: String = body
        .iter()
        .take(if wide {
            2 * DECLARATION_BYTES
        } else {
            DECLARATION_BYTES
        })
        .filter(|byte| !wide || **byte != 0)
        .map(|byte| char::from(*byte))
        .collect();
    let rest = head.strip_prefix("<?xml")?;
    let declaration = &rest[..rest.find("?>")?];
    if !declaration.starts_with(|c: char| c.is_ascii_whitespace()) {
        return None;
    }
    let mut rest = declaration;
    while let Some(equals) = rest.find('=') {
        let name = rest[..equals].trim();
        let value = rest[equals + 1..].trim_start();
        let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''))?;
        let end = value[1..].find(quote)?;
        if name == "encoding" {
            return Some(value[1..=end].to_owned());
        }
        rest = &value[end + 2..];
    }
    None
}

fn agree(evident: &'static Encoding, label: &str) -> bool {
    match Encoding::for_label(label.as_bytes()) {
        // `UTF-16` names both byte orders; the label alone means little endian to the Encoding Standard.
        Some(found) if evident == UTF_16BE => found == UTF_16BE || found == UTF_16LE,
        Some(found) => found == evident,
        None => false,
    }
}

/// Decodes everything, or returns the text before the first invalid byte.
fn transcode<'a>(body: &'a [u8], encoding: &'static Encoding) -> Result<Cow<'a, str>, String> {
    if encoding == UTF_8 {
        return match std::str::from_utf8(body) {
            Ok(text) => Ok(Cow::Borrowed(text)),
            Err(error) => Err(String::from_utf8_lossy(&body[..error.valid_up_to()]).into_owned()),
        };
    }
    // ISO-8859-1 is read as windows-1252, of which it is a part but for control characters that no
    // model holds: files that claim the first and are the second are common.
    let mut decoder = encoding.new_decoder_without_bom_handling();
    let capacity = decoder
        .max_utf8_buffer_length_without_replacement(body.len())
        .unwrap_or(body.len());
    let mut text = String::with_capacity(capacity);
    let (result, _) = decoder.decode_to_string_without_replacement(body, &mut text, true);
    match result {
        DecoderResult::InputEmpty => Ok(Cow::Owned(text)),
        DecoderResult::Malformed(..) | DecoderResult::OutputFull => Err(text),
    }
}

fn invalid(body: &[u8], encoding: &'static Encoding, valid: &str, declared: Option<&str>) -> Diagnostic {
    let at = Lines::new(valid).position(valid.len());
    let byte = (encoding == UTF_8)
        .then(|| body.get(valid.len()))
        .flatten()
        .map_or_else(String::new, |byte| format!(" (0x{byte:02X})"));
    let name = encoding.name();
    match declared {
        None if encoding == UTF_8 => Diagnostic::error(
            "undeclared-encoding",
            format!("the file declares no encoding and has a byte{byte} that is not UTF-8"),
        )
        .hint("name the encoding in the first line, for example <?xml version=\"1.0\" encoding=\"windows-1252\"?>, or save the file as UTF-8"),
        _ => Diagnostic::error("invalid-bytes", format!("a byte{byte} is not valid in {name}"))
            .hint("the file is in another encoding than it says: correct the encoding in its first line, or save it as UTF-8"),
    }
    .at(at)
}

fn mismatch(evident: &'static Encoding, label: &str, marked: bool) -> Diagnostic {
    let sign = if marked {
        "byte order mark says"
    } else {
        "bytes are"
    };
    let evident = evident.name();
    Diagnostic::warning(
        "encoding-mismatch",
        format!("the {sign} {evident}, but the XML declaration says {label}; it is read as {evident}"),
    )
    .hint(format!("write encoding=\"{evident}\" in the first line"))
    .at(Position { line: 1, column: 1 })
}

fn unknown(label: &str) -> Diagnostic {
    Diagnostic::error("unknown-encoding", format!("the encoding {label} is not known"))
        .hint("save the file as UTF-8")
        .at(Position { line: 1, column: 1 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utf16(text: &str, little: bool, mark: bool) -> Vec<u8> {
        let mark = mark.then_some('\u{feff}');
        mark.into_iter()
            .chain(text.chars())
            .flat_map(|c| {
                let unit = c as u16;
                if little {
                    unit.to_le_bytes()
                } else {
                    unit.to_be_bytes()
                }
            })
            .collect()
    }

    #[test]
    fn decodes_what_is_declared_or_evident() {
        let utf16_text = "<?xml version='1.0' encoding='UTF-16'?><é/>";
        let table: Vec<(Vec<u8>, Result<&str, &str>)> = vec![
            ("<é/>".into(), Ok("<é/>")),
            (b"\xef\xbb\xbf<a/>".to_vec(), Ok("<a/>")),
            (
                b"<?xml version='1.0' encoding='ISO-8859-1'?>\xe9".to_vec(),
                Ok("<?xml version='1.0' encoding='ISO-8859-1'?>é"),
            ),
            (
                b"<?xml version=\"1.0\"\n encoding = \"windows-1252\" ?>\x80".to_vec(),
                Ok("<?xml version=\"1.0\"\n encoding = \"windows-1252\" ?>€"),
            ),
            (utf16(utf16_text, true, true), Ok(utf16_text)),
            (utf16(utf16_text, false, true), Ok(utf16_text)),
            (utf16(utf16_text, true, false), Ok(utf16_text)),
            (utf16(utf16_text, false, false), Ok(utf16_text)),
            (b"<a>\n\xe9".to_vec(), Err("undeclared-encoding 2:1")),
            (
                b"<?xml version='1.0' encoding='utf-8'?>\n \xe9".to_vec(),
                Err("invalid-bytes 2:2"),
            ),
            (
                b"<?xml version='1.0' encoding='utf-16'?><a/>".to_vec(),
                Err("encoding-mismatch 1:1"),
            ),
            (
                b"<?xml version='1.0' encoding='klingon'?><a/>".to_vec(),
                Err("unknown-encoding 1:1"),
            ),
            (
                b"<?xml version='1.0' encoding='hz-gb-2312'?><a/>".to_vec(),
                Err("unknown-encoding 1:1"),
            ),
            (b"\xff\xfe\0\0<\0\0\0".to_vec(), Err("unknown-encoding 1:1")),
            (b"\xff\xfe<\0\n\0\0\xd8<\0".to_vec(), Err("invalid-bytes 2:1")),
        ];
        for (bytes, expected) in table {
            let mut report = Report::new("r");
            let text = decode(&bytes, &mut report);
            let found = report.finish();
            match expected {
                Ok(expected) => {
                    assert_eq!(text.as_deref(), Some(expected));
                    assert_eq!(found, []);
                }
                Err(expected) => {
                    let first = &found[0];
                    assert_eq!(
                        format!("{} {}:{}", first.code, first.line, first.column),
                        expected
                    );
                    assert!(first.is_error() && text.is_none());
                }
            }
        }
    }

    #[test]
    fn a_byte_order_mark_outweighs_the_declaration() {
        let mut report = Report::new("r");
        let bytes = b"\xef\xbb\xbf<?xml version='1.0' encoding='iso-8859-1'?><\xc3\xa9/>";
        assert!(decode(bytes, &mut report).is_some_and(|text| text.ends_with("<é/>")));
        let found = report.finish();
        assert_eq!(found[0].code, "encoding-mismatch");
        assert!(!found[0].is_error());
    }
}
