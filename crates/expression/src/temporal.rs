//! Dates, times, zones and durations of FEEL: the proleptic calendar with years of up to nine digits.
//!
//! Time zone rules come from `jiff`, whose own dates end at the year 9999; the calendar arithmetic is therefore here.

mod text;

use std::cmp::Ordering;

use jiff::tz::TimeZone;

pub(crate) use text::{parse_at, parse_date, parse_date_time, parse_duration, parse_time};

/// Nanoseconds of a second.
pub(crate) const SECOND: i128 = 1_000_000_000;
const SECONDS_OF_DAY: i64 = 86_400;
const MAX_YEAR: i32 = 999_999_999;
/// Longest days and time duration: the span of all dates, generously.
const MAX_NANOS: i128 = 3_000_000_000 * 366 * SECONDS_OF_DAY as i128 * SECOND;

/// A calendar date.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Date {
    year: i32,
    month: u8,
    day: u8,
}

/// An offset from UTC or a zone of the time zone database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Zone {
    /// Seconds east of UTC.
    Offset(i32),
    /// A named zone.
    Named(TimeZone),
}

/// A time of day, with or without a zone.
#[derive(Clone, Debug, PartialEq)]
pub struct Time {
    /// Seconds since midnight.
    pub(crate) second: u32,
    pub(crate) nano: u32,
    pub(crate) zone: Option<Zone>,
}

/// A date with a time of day.
#[derive(Clone, Debug, PartialEq)]
pub struct DateTime {
    pub(crate) date: Date,
    pub(crate) time: Time,
}

/// A duration of days, hours, minutes and seconds, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DaysTimeDuration(i128);

/// A duration of years and months, in months.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct YearsMonthsDuration(i64);

/// Days of a month.
fn days_in_month(year: i32, month: u8) -> u8 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

impl Date {
    /// The date, if it exists.
    pub fn new(year: i32, month: u8, day: u8) -> Option<Date> {
        let valid = year.unsigned_abs() <= MAX_YEAR.unsigned_abs()
            && (1..=12).contains(&month)
            && day >= 1
            && day <= days_in_month(year, month);
        valid.then_some(Date { year, month, day })
    }

    /// Year.
    pub fn year(&self) -> i32 {
        self.year
    }

    /// Month, from 1.
    pub fn month(&self) -> u8 {
        self.month
    }

    /// Day of the month, from 1.
    pub fn day(&self) -> u8 {
        self.day
    }

    /// Days since 1970-01-01.
    pub(crate) fn epoch_day(&self) -> i64 {
        let year = i64::from(self.year) - i64::from(self.month <= 2);
        let era = year.div_euclid(400);
        let of_era = year.rem_euclid(400);
        let shifted = (i64::from(self.month) + 9) % 12;
        let of_year = (153 * shifted + 2) / 5 + i64::from(self.day) - 1;
        era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
    }

    pub(crate) fn from_epoch_day(day: i64) -> Option<Date> {
        let day = day.checked_add(719_468)?;
        let era = day.div_euclid(146_097);
        let of_era = day.rem_euclid(146_097);
        let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted = (5 * of_year + 2) / 153;
        let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
        let year = era.checked_mul(400)?.checked_add(year_of_era)? + i64::from(month <= 2);
        Date::new(
            i32::try_from(year).ok()?,
            month as u8,
            (of_year - (153 * shifted + 2) / 5 + 1) as u8,
        )
    }

    /// Day of the week, Monday is 1.
    pub(crate) fn weekday(&self) -> u8 {
        ((self.epoch_day() + 3).rem_euclid(7) + 1) as u8
    }

    pub(crate) fn day_of_year(&self) -> i64 {
        self.epoch_day()
            - Date {
                month: 1,
                day: 1,
                ..*self
            }
            .epoch_day()
            + 1
    }

    /// The ISO week: the week of this week's Thursday.
    pub(crate) fn week_of_year(&self) -> Option<i64> {
        let thursday = Date::from_epoch_day(self.epoch_day() + 4 - i64::from(self.weekday()))?;
        Some((thursday.day_of_year() - 1) / 7 + 1)
    }

    pub(crate) fn add_months(&self, months: i64) -> Option<Date> {
        let total = (i64::from(self.year) * 12 + i64::from(self.month) - 1).checked_add(months)?;
        let year = i32::try_from(total.div_euclid(12)).ok()?;
        let month = (total.rem_euclid(12) + 1) as u8;
        Date::new(year, month, self.day.min(days_in_month(year, month)))
    }

    /// The midnight at which the date begins.
    pub fn at_midnight(self, zone: Option<Zone>) -> DateTime {
        DateTime {
            date: self,
            time: Time {
                second: 0,
                nano: 0,
                zone,
            },
        }
    }
}

impl Zone {
    /// UTC.
    pub const UTC: Zone = Zone::Offset(0);

    /// Seconds east of UTC at a local date and time.
    fn offset_at(&self, date: Date, second: u32) -> i32 {
        let zone = match self {
            Zone::Offset(seconds) => return *seconds,
            Zone::Named(zone) => zone,
        };
        // Beyond the years of the zone library, the rules of the same year in the calendar's cycle of 400 stand in.
        let year = if (-9000..=9000).contains(&date.year) {
            date.year
        } else {
            2000 + date.year.rem_euclid(400)
        };
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        let local = jiff::civil::DateTime::new(
            year as i16,
            date.month as i8,
            date.day as i8,
            hour as i8,
            minute as i8,
            second as i8,
            0,
        );
        let instant = local.ok().and_then(|local| zone.to_timestamp(local).ok());
        instant.map_or(0, |instant| zone.to_offset(instant).seconds())
    }

    pub(crate) fn name(&self) -> Option<&str> {
        match self {
            Zone::Offset(_) => None,
            Zone::Named(zone) => zone.iana_name(),
        }
    }
}

impl Time {
    /// The time, if it exists.
    pub fn new(hour: u8, minute: u8, second: u8, nano: u32, zone: Option<Zone>) -> Option<Time> {
        let valid = hour < 24 && minute < 60 && second < 60 && nano < 1_000_000_000;
        let second = u32::from(hour) * 3600 + u32::from(minute) * 60 + u32::from(second);
        valid.then_some(Time { second, nano, zone })
    }

    pub(crate) fn hour(&self) -> i64 {
        i64::from(self.second / 3600)
    }

    pub(crate) fn minute(&self) -> i64 {
        i64::from(self.second / 60 % 60)
    }

    /// Second of the minute.
    pub(crate) fn seconds(&self) -> i64 {
        i64::from(self.second % 60)
    }

    pub(crate) fn offset(&self) -> Option<i32> {
        // A zone without a date has the offset of the epoch's first day.
        let epoch = Date {
            year: 1970,
            month: 1,
            day: 1,
        };
        self.zone.as_ref().map(|zone| zone.offset_at(epoch, self.second))
    }

    /// Nanoseconds since midnight, in UTC where there is a zone.
    pub(crate) fn nanos(&self) -> i128 {
        (i128::from(self.second) - i128::from(self.offset().unwrap_or(0))) * SECOND + i128::from(self.nano)
    }

    /// Order in time; `None` between a time with and one without a zone.
    pub(crate) fn compare(&self, other: &Time) -> Option<Ordering> {
        (self.zone.is_some() == other.zone.is_some()).then(|| self.nanos().cmp(&other.nanos()))
    }

    pub(crate) fn add(&self, duration: DaysTimeDuration) -> Time {
        let day = i128::from(SECONDS_OF_DAY) * SECOND;
        let local = i128::from(self.second) * SECOND + i128::from(self.nano);
        let sum = (local + duration.0).rem_euclid(day);
        Time {
            second: (sum / SECOND) as u32,
            nano: (sum % SECOND) as u32,
            zone: self.zone.clone(),
        }
    }
}

impl DateTime {
    /// A point in time in UTC, from milliseconds since 1970.
    pub fn from_epoch_ms(ms: i64) -> Option<DateTime> {
        let second = ms.div_euclid(1000);
        let date = Date::from_epoch_day(second.div_euclid(SECONDS_OF_DAY))?;
        let nano = (ms.rem_euclid(1000) * 1_000_000) as u32;
        let second = second.rem_euclid(SECONDS_OF_DAY) as u32;
        Some(DateTime {
            date,
            time: Time {
                second,
                nano,
                zone: Some(Zone::UTC),
            },
        })
    }

    /// Milliseconds since 1970; a value without a zone is read as UTC.
    pub fn epoch_ms(&self) -> Option<i64> {
        i64::try_from(self.nanos().div_euclid(1_000_000)).ok()
    }

    pub(crate) fn offset(&self) -> Option<i32> {
        self.time
            .zone
            .as_ref()
            .map(|zone| zone.offset_at(self.date, self.time.second))
    }

    fn local_nanos(&self) -> i128 {
        let seconds =
            i128::from(self.date.epoch_day()) * i128::from(SECONDS_OF_DAY) + i128::from(self.time.second);
        seconds * SECOND + i128::from(self.time.nano)
    }

    /// Nanoseconds since 1970, in UTC where there is a zone.
    pub(crate) fn nanos(&self) -> i128 {
        self.local_nanos() - i128::from(self.offset().unwrap_or(0)) * SECOND
    }

    /// Order in time; `None` between a value with and one without a zone.
    pub(crate) fn compare(&self, other: &DateTime) -> Option<Ordering> {
        (self.time.zone.is_some() == other.time.zone.is_some()).then(|| self.nanos().cmp(&other.nanos()))
    }

    /// The duration from `other` to here.
    pub(crate) fn since(&self, other: &DateTime) -> Option<DaysTimeDuration> {
        (self.time.zone.is_some() == other.time.zone.is_some())
            .then(|| DaysTimeDuration::from_nanos(self.nanos() - other.nanos()))?
    }

    pub(crate) fn add(&self, duration: DaysTimeDuration) -> Option<DateTime> {
        let sum = self.local_nanos().checked_add(duration.0)?;
        let day = i128::from(SECONDS_OF_DAY) * SECOND;
        let date = Date::from_epoch_day(i64::try_from(sum.div_euclid(day)).ok()?)?;
        let of_day = sum.rem_euclid(day);
        let (second, nano) = ((of_day / SECOND) as u32, (of_day % SECOND) as u32);
        Some(DateTime {
            date,
            time: Time {
                second,
                nano,
                zone: self.time.zone.clone(),
            },
        })
    }

    pub(crate) fn add_months(&self, months: i64) -> Option<DateTime> {
        Some(DateTime {
            date: self.date.add_months(months)?,
            time: self.time.clone(),
        })
    }
}

impl DaysTimeDuration {
    /// From nanoseconds; `None` beyond the span of all dates.
    pub fn from_nanos(nanos: i128) -> Option<DaysTimeDuration> {
        (nanos.unsigned_abs() <= MAX_NANOS.unsigned_abs()).then_some(DaysTimeDuration(nanos))
    }

    /// Nanoseconds.
    pub fn nanos(&self) -> i128 {
        self.0
    }

    /// Whole milliseconds.
    pub fn as_ms(&self) -> i64 {
        i64::try_from(self.0 / 1_000_000).unwrap_or(if self.0 < 0 { i64::MIN } else { i64::MAX })
    }

    pub(crate) fn negate(&self) -> DaysTimeDuration {
        DaysTimeDuration(-self.0)
    }
}

impl YearsMonthsDuration {
    /// From months; `None` beyond the span of all dates.
    pub fn from_months(months: i64) -> Option<YearsMonthsDuration> {
        let limit = i64::from(MAX_YEAR) * 2 * 12 + 24;
        (months.unsigned_abs() <= limit.unsigned_abs()).then_some(YearsMonthsDuration(months))
    }

    /// Months.
    pub fn months(&self) -> i64 {
        self.0
    }

    pub(crate) fn negate(&self) -> YearsMonthsDuration {
        YearsMonthsDuration(-self.0)
    }

    /// Whole years and months between two dates.
    pub(crate) fn between(from: &Date, to: &Date) -> Option<YearsMonthsDuration> {
        let month = |date: &Date| i64::from(date.year) * 12 + i64::from(date.month);
        let months = month(to) - month(from);
        let months = match (months > 0, months < 0) {
            (true, _) if to.day < from.day => months - 1,
            (_, true) if to.day > from.day => months + 1,
            _ => months,
        };
        YearsMonthsDuration::from_months(months)
    }
}
