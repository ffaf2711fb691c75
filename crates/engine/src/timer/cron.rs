//! Calendar expressions of five or six fields, `0 9 * * MON-FRI` or with seconds in front. They are read in UTC.

use croner::Cron;
use jiff::tz::TimeZone;
use tidegate_model::Timestamp;

use crate::timer::Turn;

/// Missed turns that are counted one by one; more than these only show that there were many.
const COUNTED: u32 = 1_000;

/// Reads a calendar expression.
pub(crate) fn read(text: &str) -> Result<Cron, String> {
    let shown: String = text.chars().take(60).collect();
    text.parse().map_err(|wrong| {
        format!(
            "`{shown}` is neither an ISO 8601 repetition, for example R3/PT10S, nor a cron expression of five or six \
             fields: {wrong}"
        )
    })
}

/// The first time after `from`; none when it never comes.
pub(crate) fn after(cron: &Cron, from: Timestamp) -> Option<Timestamp> {
    let time = jiff::Timestamp::from_millisecond(from.as_ms()).ok()?;
    let civil = time.to_zoned(TimeZone::UTC).datetime();
    let next = cron.find_next_occurrence(&civil, false).ok()?;
    let next = next.to_zoned(TimeZone::UTC).ok()?;
    Some(Timestamp::from_ms(next.timestamp().as_millisecond()))
}

/// The turn after the one that was due at `due_at` and fires at `now`. Turns that have passed are folded into it.
pub(crate) fn following(cron: &Cron, due_at: Timestamp, now: Timestamp) -> Turn {
    let (mut missed, mut next) = (0, after(cron, due_at));
    while next.is_some_and(|next| next <= now) && missed < COUNTED {
        missed += 1;
        next = next.and_then(|next| after(cron, next));
    }
    if next.is_some_and(|next| next <= now) {
        next = after(cron, now);
    }
    Turn { missed, next }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    #[test]
    fn five_and_six_fields() {
        let weekdays = read("0 9 * * MON-FRI").unwrap();
        // 2026-01-02 is a Friday.
        assert_eq!(
            after(&weekdays, at("2026-01-02T09:00:00Z")),
            Some(at("2026-01-05T09:00:00Z"))
        );
        let seconds = read("*/10 * * * * *").unwrap();
        assert_eq!(
            after(&seconds, at("2026-01-02T09:00:05Z")),
            Some(at("2026-01-02T09:00:10Z"))
        );
        assert!(read("every day").is_err());
        assert_eq!(
            after(&read("0 0 30 2 *").unwrap(), at("2026-01-01T00:00:00Z")),
            None
        );
    }

    #[test]
    fn missed_turns_are_folded() {
        let minute = read("* * * * *").unwrap();
        let turn = following(&minute, at("2026-01-01T00:00:00Z"), at("2026-01-01T00:02:30Z"));
        assert_eq!((turn.missed, turn.next), (2, Some(at("2026-01-01T00:03:00Z"))));
        let late = following(&minute, at("2026-01-01T00:00:00Z"), at("2026-03-01T00:00:30Z"));
        assert_eq!(
            (late.missed, late.next),
            (COUNTED, Some(at("2026-03-01T00:01:00Z")))
        );
    }
}
