//! ISO 8601 durations, dates and repetitions, strictly.

use jiff::civil::DateTime;
use tidegate_model::Timestamp;

use crate::timer::Period;

const SECOND: i64 = 1000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const WEEK: i64 = 7 * DAY;

/// Reads `P1Y2M3W4DT5H6M7.5S`.
pub(crate) fn duration(text: &str) -> Result<Period, String> {
    read_duration(text.trim()).ok_or_else(|| {
        format!(
            "`{}` is not an ISO 8601 duration, for example PT30S or P1DT12H",
            shorten(text)
        )
    })
}

fn read_duration(text: &str) -> Option<Period> {
    let rest = text.strip_prefix('P')?;
    let (date, time) = match rest.split_once('T') {
        Some((_, "")) => return None,
        Some((date, time)) => (date, time),
        None => (rest, ""),
    };
    if date.is_empty() && time.is_empty() {
        return None;
    }
    let mut period = Period { months: 0, ms: 0 };
    for (value, unit) in parts(date, "YMWD")? {
        match unit {
            'Y' => {
                period.months = period
                    .months
                    .checked_add(u32::try_from(whole(value)?).ok()?.checked_mul(12)?)?
            }
            'M' => period.months = period.months.checked_add(u32::try_from(whole(value)?).ok()?)?,
            'W' => period.ms = period.ms.checked_add(whole(value)?.checked_mul(WEEK)?)?,
            _ => period.ms = period.ms.checked_add(whole(value)?.checked_mul(DAY)?)?,
        }
    }
    for (value, unit) in parts(time, "HMS")? {
        let ms = match unit {
            'H' => whole(value)?.checked_mul(HOUR)?,
            'M' => whole(value)?.checked_mul(MINUTE)?,
            _ => seconds(value)?,
        };
        period.ms = period.ms.checked_add(ms)?;
    }
    // A span beyond the calendar is a mistake and not a wait.
    const CALENDAR_MONTHS: u32 = 12 * 9999;
    (period.months <= CALENDAR_MONTHS && period.ms <= i64::from(CALENDAR_MONTHS) * 31 * DAY).then_some(period)
}

/// Splits `5H6M` into values and units, which must come in the order of `units`.
fn parts<'a>(text: &'a str, units: &str) -> Option<Vec<(&'a str, char)>> {
    let mut parts = Vec::new();
    let mut rest = text;
    let mut allowed = units;
    while !rest.is_empty() {
        let end = rest.find(|c: char| c.is_ascii_uppercase())?;
        let (value, tail) = rest.split_at(end);
        let unit = tail.chars().next()?;
        allowed = allowed.split_once(unit)?.1;
        parts.push((value, unit));
        rest = &tail[1..];
    }
    Some(parts)
}

fn whole(text: &str) -> Option<i64> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if digits { text.parse().ok() } else { None }
}

/// Whole or decimal seconds; what is below a millisecond is cut off.
fn seconds(text: &str) -> Option<i64> {
    let Some((seconds, fraction)) = text.split_once(['.', ',']) else {
        return whole(text)?.checked_mul(SECOND);
    };
    whole(fraction)?;
    let thousandths = format!("{:0<3}", fraction.get(..fraction.len().min(3))?);
    whole(seconds)?
        .checked_mul(SECOND)?
        .checked_add(whole(&thousandths)?)
}

/// Reads a date and time; without an offset it is UTC.
pub(crate) fn date(text: &str) -> Result<Timestamp, String> {
    let text = text.trim();
    // FEEL writes a named zone behind an `@`, jiff in brackets.
    let bracketed = text.split_once('@').map(|(time, zone)| format!("{time}[{zone}]"));
    let zoned = bracketed.as_deref().unwrap_or(text);
    if let Ok(time) = zoned.parse::<jiff::Timestamp>() {
        return Ok(Timestamp::from_ms(time.as_millisecond()));
    }
    if let Ok(time) = zoned.parse::<jiff::Zoned>() {
        return Ok(Timestamp::from_ms(time.timestamp().as_millisecond()));
    }
    // The last two days of the year 9999 are beyond an instant of jiff, and models do write them for "never".
    let local = text.strip_suffix('Z').unwrap_or(text).parse::<DateTime>().ok();
    let since = local.map(|local| local.duration_since(DateTime::constant(1970, 1, 1, 0, 0, 0, 0)));
    since
        .and_then(|since| i64::try_from(since.as_millis()).ok())
        .map(Timestamp::from_ms)
        .ok_or_else(|| {
            format!(
                "`{}` is not an ISO 8601 date and time, for example 2026-01-31T08:30:00Z",
                shorten(text)
            )
        })
}

/// A repetition: how often (none for ever), from when, and how far apart.
pub(crate) struct Cycle {
    pub(crate) times: Option<u32>,
    pub(crate) start: Option<Timestamp>,
    pub(crate) period: Period,
}

/// Reads `R3/PT10S`, `R/PT1M` or `R3/2026-01-31T08:30:00Z/PT10S`.
pub(crate) fn cycle(text: &str) -> Result<Cycle, String> {
    let wrong = || {
        format!(
            "`{}` is not an ISO 8601 repetition, for example R3/PT10S or R/PT1M",
            shorten(text)
        )
    };
    let mut parts = text.trim().split('/');
    let times = match parts
        .next()
        .and_then(|part| part.strip_prefix('R'))
        .ok_or_else(wrong)?
    {
        "" => None,
        number => Some(
            whole(number)
                .and_then(|n| u32::try_from(n).ok())
                .ok_or_else(wrong)?,
        ),
    };
    let (start, period) = match (parts.next(), parts.next(), parts.next()) {
        (Some(period), None, None) => (None, duration(period)?),
        (Some(start), Some(period), None) => (Some(date(start)?), duration(period)?),
        _ => return Err(wrong()),
    };
    if period.is_zero() {
        return Err(format!(
            "`{}` repeats without any time between two turns",
            shorten(text)
        ));
    }
    if times == Some(0) {
        return Err(format!(
            "`{}` repeats zero times, so it never fires",
            shorten(text)
        ));
    }
    Ok(Cycle { times, start, period })
}

fn shorten(text: &str) -> String {
    text.trim().chars().take(60).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_strictly() {
        let ms = |text| duration(text).map(|period| (period.months, period.ms));
        assert_eq!(ms("PT5S"), Ok((0, 5000)));
        assert_eq!(
            ms(" P1Y2M3W4DT5H6M7.25S "),
            Ok((14, 3 * WEEK + 4 * DAY + 5 * HOUR + 6 * MINUTE + 7250))
        );
        assert_eq!(ms("PT0S"), Ok((0, 0)));
        let wrong = [
            "PT",
            "P",
            "",
            "5 minutes",
            "P1Y2M3DT4H5M6.7S.8",
            "-PT5S",
            "P99999999999Y",
            "PT1e9S",
            "PT5",
            "P5S",
            "PT1S1M",
            "PT-5S",
            "P1D2",
            "PT1.S",
            "PT.5S",
            "P1M1Y",
            "Pé",
            "PTé",
            "P1é",
        ];
        for text in wrong {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn dates_and_cycles() {
        assert_eq!(date("1970-01-01T00:00:01Z").unwrap().as_ms(), 1000);
        assert_eq!(date("1970-01-01T01:00:01+01:00").unwrap().as_ms(), 1000);
        assert_eq!(date("1970-01-01T00:00:01").unwrap().as_ms(), 1000);
        assert_eq!(date("1970-01-01T01:00:01@Europe/Paris").unwrap().as_ms(), 1000);
        assert_eq!(date("9999-12-31T23:59:59Z").unwrap().as_ms(), 253_402_300_799_000);
        assert!(date("soon").is_err());
        let three = cycle("R3/PT10S").unwrap();
        assert_eq!(
            (three.times, three.start, three.period.ms),
            (Some(3), None, 10_000)
        );
        assert_eq!(
            cycle("R/1970-01-01T00:00:01Z/PT1M")
                .unwrap()
                .start
                .unwrap()
                .as_ms(),
            1000
        );
        for text in [
            "R3",
            "PT10S",
            "R/PT0S",
            "R0/PT1S",
            "R-1/PT1S",
            "R3/PT1S/PT1S",
            "R1/a/b/c",
            "Rx/PT1S",
        ] {
            assert!(cycle(text).is_err(), "{text}");
        }
    }
}
