//! Reading and writing temporal values in the ISO forms that FEEL uses.

use std::fmt::{self, Display, Formatter};

use jiff::tz::TimeZone;

use super::{Date, DateTime, DaysTimeDuration, SECOND, Time, YearsMonthsDuration, Zone};
use crate::value::Value;

/// A cursor over the bytes of a temporal text.
struct Cursor<'t> {
    rest: &'t str,
}

impl<'t> Cursor<'t> {
    fn eat(&mut self, expected: char) -> Option<()> {
        self.rest = self.rest.strip_prefix(expected)?;
        Some(())
    }

    fn digits(&mut self) -> &'t str {
        let end = self
            .rest
            .bytes()
            .position(|byte| !byte.is_ascii_digit())
            .unwrap_or(self.rest.len());
        let (digits, rest) = self.rest.split_at(end);
        self.rest = rest;
        digits
    }

    fn two(&mut self) -> Option<u8> {
        let digits = self.rest.get(..2)?;
        let valid = digits.bytes().all(|byte| byte.is_ascii_digit());
        self.rest = &self.rest[2..];
        if valid { digits.parse().ok() } else { None }
    }

    fn date(&mut self) -> Option<Date> {
        let negative = self.eat('-').is_some();
        let digits = self.digits();
        let plain = digits.len() == 4 || ((5..=9).contains(&digits.len()) && !digits.starts_with('0'));
        let year: i32 = if plain { digits.parse().ok()? } else { return None };
        self.eat('-')?;
        let month = self.two()?;
        self.eat('-')?;
        let day = self.two()?;
        Date::new(if negative { -year } else { year }, month, day)
    }

    fn time(&mut self) -> Option<Time> {
        let hour = self.two()?;
        self.eat(':')?;
        let minute = self.two()?;
        self.eat(':')?;
        let second = self.two()?;
        let nano = if self.eat('.').is_some() {
            nanos(self.digits())?
        } else {
            0
        };
        let zone = self.zone()?;
        Time::new(hour, minute, second, nano, zone)
    }

    /// `Z`, `±hh:mm`, `±hh:mm:ss`, `@zone/name` or nothing.
    fn zone(&mut self) -> Option<Option<Zone>> {
        if self.rest.is_empty() {
            return Some(None);
        }
        if self.eat('Z').is_some() || self.eat('z').is_some() {
            return Some(Some(Zone::UTC));
        }
        if let Some(name) = self.rest.strip_prefix('@') {
            self.rest = "";
            return zone_named(name).map(Some);
        }
        let sign = if self.eat('+').is_some() {
            1
        } else {
            self.eat('-').map(|()| -1)?
        };
        let hours = i32::from(self.two()?);
        self.eat(':')?;
        let minutes = i32::from(self.two()?);
        let seconds = if self.eat(':').is_some() {
            i32::from(self.two()?)
        } else {
            0
        };
        let valid = minutes < 60 && seconds < 60 && hours * 3600 + minutes * 60 + seconds <= 18 * 3600;
        valid.then_some(Some(Zone::Offset(sign * (hours * 3600 + minutes * 60 + seconds))))
    }

    fn end<T>(&self, value: T) -> Option<T> {
        self.rest.is_empty().then_some(value)
    }
}

fn nanos(fraction: &str) -> Option<u32> {
    if fraction.is_empty() {
        return None;
    }
    let kept = &fraction[..fraction.len().min(9)];
    let value: u32 = kept.parse().ok()?;
    Some(value * 10u32.pow(9 - kept.len() as u32))
}

/// A zone of the database; names are taken literally.
fn zone_named(name: &str) -> Option<Zone> {
    if matches!(name, "Z" | "UTC" | "Etc/UTC") {
        return TimeZone::get("Etc/UTC").ok().map(Zone::Named);
    }
    let valid = name.len() <= 64 && name.starts_with(|first: char| first.is_ascii_alphabetic());
    if !valid {
        return None;
    }
    TimeZone::get(name).ok().map(Zone::Named)
}

/// `2024-02-29`.
pub(crate) fn parse_date(text: &str) -> Option<Date> {
    let mut cursor = Cursor { rest: text };
    let date = cursor.date()?;
    cursor.end(date)
}

/// `10:30:00`, with an optional fraction and zone.
pub(crate) fn parse_time(text: &str) -> Option<Time> {
    let mut cursor = Cursor { rest: text };
    let time = cursor.time()?;
    cursor.end(time)
}

/// `2024-02-29T10:30:00`, with an optional fraction and zone; a date alone is its midnight.
pub(crate) fn parse_date_time(text: &str) -> Option<DateTime> {
    let mut cursor = Cursor { rest: text };
    let date = cursor.date()?;
    if cursor.rest.is_empty() {
        return Some(date.at_midnight(None));
    }
    cursor.eat('T')?;
    // The end of a day is the start of the next.
    let (date, midnight) = match cursor.rest.strip_prefix("24:00:00") {
        Some(rest) => (Date::from_epoch_day(date.epoch_day() + 1)?, Some(rest)),
        None => (date, None),
    };
    if let Some(rest) = midnight {
        cursor.rest = rest;
        let zone = cursor.zone()?;
        return cursor.end(date.at_midnight(zone));
    }
    let time = cursor.time()?;
    cursor.end(DateTime { date, time })
}

/// `P1Y2M` or `P1DT2H3M4.5S`, with an optional sign.
pub(crate) fn parse_duration(text: &str) -> Option<Value> {
    let mut cursor = Cursor { rest: text };
    let negative = cursor.eat('-').is_some();
    cursor.eat('P')?;
    let fields = Fields::read(&mut cursor)?;
    if !fields.months.is_empty() {
        let months = fields.months.iter().try_fold(0i64, |sum, (count, unit)| {
            sum.checked_add(count.checked_mul(*unit)?)
        })?;
        return YearsMonthsDuration::from_months(if negative { -months } else { months })
            .map(Value::YearsMonthsDuration);
    }
    DaysTimeDuration::from_nanos(if negative { -fields.nanos } else { fields.nanos })
        .map(Value::DaysTimeDuration)
}

#[derive(Default)]
struct Fields {
    months: Vec<(i64, i64)>,
    nanos: i128,
}

impl Fields {
    fn read(cursor: &mut Cursor<'_>) -> Option<Fields> {
        let mut fields = Fields::default();
        // Units in the order in which they may stand; none may come twice.
        let mut order = 0;
        let mut time = false;
        let mut pending = false;
        while !cursor.rest.is_empty() {
            if !time && cursor.eat('T').is_some() {
                (time, pending) = (true, true);
                order = order.max(3);
                continue;
            }
            pending = false;
            order = fields.field(cursor, time, order)?;
        }
        (order > 0 && !pending).then_some(fields)
    }

    fn field(&mut self, cursor: &mut Cursor<'_>, time: bool, order: u8) -> Option<u8> {
        let count: i64 = cursor.digits().parse().ok()?;
        if time && cursor.eat('.').is_some() {
            let fraction = cursor.digits();
            let nano = if fraction.is_empty() { 0 } else { nanos(fraction)? };
            cursor.eat('S')?;
            self.nanos += i128::from(count) * SECOND + i128::from(nano);
            return (order < 7).then_some(7);
        }
        let unit = cursor.rest.chars().next()?;
        cursor.eat(unit)?;
        let (rank, months, seconds) = match (time, unit) {
            (false, 'Y') => (1, 12, 0),
            (false, 'M') => (2, 1, 0),
            (false, 'D') => (3, 0, 86_400),
            (true, 'H') => (5, 0, 3600),
            (true, 'M') => (6, 0, 60),
            (true, 'S') => (7, 0, 1),
            _ => return None,
        };
        if rank <= order && !(time && order == 3) {
            return None;
        }
        // Years and months do not mix with days and times.
        if months > 0 {
            self.months.push((count, months));
        } else if !self.months.is_empty() {
            return None;
        }
        self.nanos += i128::from(count) * seconds * SECOND;
        Some(rank)
    }
}

/// The value of an `@"..."` literal.
pub(crate) fn parse_at(text: &str) -> Option<Value> {
    if let Some(date) = parse_date(text) {
        return Some(Value::Date(date));
    }
    if let Some(date_time) = parse_date_time(text) {
        return Some(Value::date_time(date_time));
    }
    parse_time(text).map(Value::time).or_else(|| parse_duration(text))
}

impl Display for Date {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let sign = if self.year < 0 { "-" } else { "" };
        write!(
            f,
            "{sign}{:04}-{:02}-{:02}",
            self.year.abs(),
            self.month,
            self.day
        )
    }
}

impl Display for Zone {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let seconds = match self {
            Zone::Named(zone) => return write!(f, "@{}", zone.iana_name().unwrap_or("Etc/UTC")),
            Zone::Offset(0) => return f.write_str("Z"),
            Zone::Offset(seconds) => *seconds,
        };
        let sign = if seconds < 0 { '-' } else { '+' };
        let magnitude = seconds.unsigned_abs();
        write!(f, "{sign}{:02}:{:02}", magnitude / 3600, magnitude / 60 % 60)?;
        if magnitude % 60 != 0 {
            write!(f, ":{:02}", magnitude % 60)
        } else {
            Ok(())
        }
    }
}

fn write_fraction(f: &mut Formatter<'_>, nano: u32) -> fmt::Result {
    if nano == 0 {
        return Ok(());
    }
    let digits = format!("{nano:09}");
    write!(f, ".{}", digits.trim_end_matches('0'))
}

impl Display for Time {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{:02}:{:02}:{:02}", self.hour(), self.minute(), self.seconds())?;
        write_fraction(f, self.nano)?;
        self.zone.as_ref().map_or(Ok(()), |zone| zone.fmt(f))
    }
}

impl Display for DateTime {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}T{}", self.date, self.time)
    }
}

impl Display for DaysTimeDuration {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let nanos = self.nanos().unsigned_abs();
        let (seconds, nano) = (nanos / SECOND as u128, (nanos % SECOND as u128) as u32);
        let (days, hours, minutes, second) = (
            seconds / 86_400,
            seconds / 3600 % 24,
            seconds / 60 % 60,
            seconds % 60,
        );
        f.write_str(if self.nanos() < 0 { "-P" } else { "P" })?;
        if nanos == 0 {
            return f.write_str("T0S");
        }
        let field = |f: &mut Formatter<'_>, count: u128, unit: char| {
            if count == 0 {
                Ok(())
            } else {
                write!(f, "{count}{unit}")
            }
        };
        field(f, days, 'D')?;
        if hours + minutes + second > 0 || nano > 0 {
            f.write_str("T")?;
        }
        field(f, hours, 'H')?;
        field(f, minutes, 'M')?;
        if second > 0 || nano > 0 {
            write!(f, "{second}")?;
            write_fraction(f, nano)?;
            f.write_str("S")?;
        }
        Ok(())
    }
}

impl Display for YearsMonthsDuration {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (years, months) = (
            self.months().unsigned_abs() / 12,
            self.months().unsigned_abs() % 12,
        );
        f.write_str(if self.months() < 0 { "-P" } else { "P" })?;
        match (years, months) {
            (0, 0) => f.write_str("0M"),
            (0, months) => write!(f, "{months}M"),
            (years, 0) => write!(f, "{years}Y"),
            (years, months) => write!(f, "{years}Y{months}M"),
        }
    }
}
