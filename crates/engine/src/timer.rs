//! Timers: when they are due, how they repeat, and how models write them.

mod cron;
pub(crate) mod iso;
mod schedule;

use minicbor::{Decode, Encode};
use tidegate_model::Timestamp;

pub(crate) use schedule::{TimerKind, TimerSpec};

/// A span of calendar months and milliseconds. Days and weeks are exact, since timers reckon in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Period {
    /// Years and months, in months.
    #[n(0)]
    pub months: u32,
    /// The rest, in milliseconds.
    #[n(1)]
    pub ms: i64,
}

/// How a timer goes on after it fires.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Repeat {
    /// The time between two turns; zero where the model gives a calendar expression.
    #[n(0)]
    pub period: Period,
    /// Turns after the armed one; none for ever.
    #[n(1)]
    pub left: Option<u32>,
}

/// What follows a firing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Turn {
    /// Turns that had passed as well.
    pub(crate) missed: u32,
    /// The next turn, if there is one.
    pub(crate) next: Option<Timestamp>,
}

impl Period {
    pub(crate) const fn is_zero(self) -> bool {
        self.months == 0 && self.ms == 0
    }

    /// `from` plus this, held at the end of time.
    pub(crate) fn after(self, from: Timestamp) -> Timestamp {
        let moved = if self.months == 0 {
            Some(from)
        } else {
            plus_months(from, self.months)
        };
        moved.map_or(Timestamp::from_ms(i64::MAX), |time| time.plus_ms(self.ms))
    }
}

/// The latest time that the calendar has.
const LATEST: Timestamp = Timestamp::from_ms(253_402_207_200_000);

/// A date, with a time or without, or a duration from now on.
pub(crate) fn moment(text: &str, now: Timestamp) -> Result<Timestamp, String> {
    let text = text.trim();
    let time = match text.starts_with('P') {
        true => iso::duration(text)?.after(now),
        false => iso::date(text)?,
    };
    Ok(time.min(LATEST))
}

/// A duration from now on, in milliseconds.
pub(crate) fn span_ms(text: &str, now: Timestamp) -> Result<i64, String> {
    Ok(iso::duration(text.trim())?.after(now).since(now))
}

/// Months by the calendar in UTC: the 31st becomes the last day of a shorter month.
fn plus_months(from: Timestamp, months: u32) -> Option<Timestamp> {
    let time = jiff::Timestamp::from_millisecond(from.as_ms()).ok()?;
    let date_time = time.to_zoned(jiff::tz::TimeZone::UTC).datetime();
    let span = jiff::Span::new().try_months(i64::from(months)).ok()?;
    let moved = date_time
        .checked_add(span)
        .ok()?
        .to_zoned(jiff::tz::TimeZone::UTC)
        .ok()?;
    Some(Timestamp::from_ms(moved.timestamp().as_millisecond()))
}

impl Repeat {
    /// The turn after the one that was due at `due_at` and fires at `now`. Turns that have passed are folded into it.
    pub(crate) fn after(self, due_at: Timestamp, now: Timestamp) -> Turn {
        let limit = self.left.unwrap_or(u32::MAX);
        let mut missed = 0;
        let mut next = self.period.after(due_at);
        if self.period.months == 0 && self.period.ms > 0 && next <= now {
            let passed = now.since(due_at) / self.period.ms;
            missed = u32::try_from(passed).unwrap_or(u32::MAX).min(limit);
            next = due_at.plus_ms(self.period.ms.saturating_mul(passed.saturating_add(1)));
        }
        // Months have no fixed length, so these turns are counted one by one: at most some ten thousand in all of time.
        while self.period.months > 0 && next <= now && missed < limit {
            missed += 1;
            next = self.period.after(next);
        }
        let ended = missed >= limit && self.left.is_some();
        Turn {
            missed,
            next: (!ended).then_some(next),
        }
    }

    /// What is left after a firing that folded `missed` turns.
    pub(crate) fn consumed(self, missed: u32) -> Self {
        let used = missed.saturating_add(1);
        Self {
            left: self.left.map(|left| left.saturating_sub(used)),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    #[test]
    fn months_follow_the_calendar() {
        let month = Period { months: 1, ms: 0 };
        assert_eq!(
            month.after(at("2026-01-31T08:00:00Z")),
            at("2026-02-28T08:00:00Z")
        );
        let far = Period {
            months: 12 * 9000,
            ms: 0,
        };
        assert_eq!(
            far.after(at("2026-01-31T08:00:00Z")),
            Timestamp::from_ms(i64::MAX)
        );
    }

    #[test]
    fn missed_turns_are_folded() {
        let second = Period { months: 0, ms: 1000 };
        let due = Timestamp::from_ms(10_000);
        let repeat = Repeat {
            period: second,
            left: None,
        };
        let on_time = Turn {
            missed: 0,
            next: Some(Timestamp::from_ms(11_000)),
        };
        assert_eq!(repeat.after(due, Timestamp::from_ms(10_500)), on_time);
        let late = Turn {
            missed: 5,
            next: Some(Timestamp::from_ms(16_000)),
        };
        assert_eq!(repeat.after(due, Timestamp::from_ms(15_000)), late);
        let three = Repeat {
            period: second,
            left: Some(3),
        };
        assert_eq!(
            three.after(due, Timestamp::from_ms(90_000)),
            Turn {
                missed: 3,
                next: None
            }
        );
        assert_eq!(three.consumed(1).left, Some(1));
        let none = Repeat {
            period: second,
            left: Some(0),
        };
        assert_eq!(
            none.after(due, Timestamp::from_ms(10_000)),
            Turn {
                missed: 0,
                next: None
            }
        );
    }
}
