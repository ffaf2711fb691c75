//! Durations as people write them: `500ms`, `30s`, `5m`, `1m30s`, or ISO 8601 (`PT1M30S`).

use std::time::Duration;

use jiff::{SignedDuration, Span, SpanRelativeTo};

/// Reads a duration.
///
/// # Errors
/// The text is none; the message shows the forms.
pub fn parse(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let iso = text.starts_with(['P', 'p']).then(|| iso(text)).flatten();
    iso.or_else(|| units(text)).ok_or_else(|| {
        format!("`{text}` is no duration: expected `500ms`, `30s`, `5m`, `1m30s`, `2h`, or ISO 8601 such as `PT30S`")
    })
}

fn iso(text: &str) -> Option<Duration> {
    let span: Span = text.parse().ok()?;
    let signed: SignedDuration = span.to_duration(SpanRelativeTo::days_are_24_hours()).ok()?;
    Duration::try_from(signed).ok()
}

/// One or more whole numbers, each with its unit.
fn units(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let number: u64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let letters = rest
            .find(|c: char| !c.is_ascii_alphabetic())
            .unwrap_or(rest.len());
        let unit_ms = match &rest[..letters] {
            "ms" => 1,
            "s" => 1000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return None,
        };
        total = total.checked_add(Duration::from_millis(number.checked_mul(unit_ms)?))?;
        rest = &rest[letters..];
    }
    (!text.is_empty()).then_some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_in_both_forms() {
        for (text, ms) in [
            ("500ms", 500),
            ("30s", 30_000),
            ("5m", 300_000),
            ("1m30s", 90_000),
            ("PT1M30S", 90_000),
            ("P1D", 86_400_000),
            ("PT0.5S", 500),
            ("0s", 0),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for text in [
            "",
            "30",
            "s",
            "1x",
            "-5s",
            "1.5s",
            "PT",
            "-PT5S",
            "99999999999999999999s",
            "P1M",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
