//! What a timer event definition says, fixed or computed.

use std::sync::Arc;

use croner::Cron;
use tidegate_model::Timestamp;

use crate::text::{Failure, Text};
use crate::timer::{Period, Repeat, Turn, cron, iso};
use crate::visible::Visible;

/// Which of the three the model gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimerKind {
    Date,
    Duration,
    Cycle,
}

/// A timer of a model.
#[derive(Debug)]
pub(crate) struct TimerSpec {
    kind: TimerKind,
    text: Text,
    /// Read at compile time where the text is fixed.
    fixed: Option<Schedule>,
}

/// When a timer is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Schedule {
    At(Timestamp),
    After(Period),
    Cycle {
        times: Option<u32>,
        start: Option<Timestamp>,
        period: Period,
    },
    Calendar(Arc<Cron>),
}

impl Schedule {
    pub(crate) fn read(kind: TimerKind, text: &str) -> Result<Self, String> {
        Ok(match kind {
            TimerKind::Date => Self::At(iso::date(text)?),
            TimerKind::Duration => Self::After(iso::duration(text)?),
            TimerKind::Cycle if !text.trim().starts_with('R') => {
                Self::Calendar(Arc::new(cron::read(text.trim())?))
            }
            TimerKind::Cycle => {
                let iso::Cycle { times, start, period } = iso::cycle(text)?;
                Self::Cycle { times, start, period }
            }
        })
    }

    /// The first due time, and how it goes on.
    pub(crate) fn first(&self, now: Timestamp) -> (Timestamp, Option<Repeat>) {
        match *self {
            Self::At(time) => (time, None),
            Self::After(period) => (period.after(now), None),
            Self::Cycle { times, start, period } => {
                let left = times.map(|times| times.saturating_sub(1));
                let repeat = (left != Some(0)).then_some(Repeat { period, left });
                (start.unwrap_or_else(|| period.after(now)), repeat)
            }
            Self::Calendar(ref cron) => {
                let never = Timestamp::from_ms(i64::MAX);
                let repeat = Repeat {
                    period: Period { months: 0, ms: 0 },
                    left: None,
                };
                (cron::after(cron, now).unwrap_or(never), Some(repeat))
            }
        }
    }

    /// The next due time of a start event that has fired `fired` times, last at `after`.
    pub(crate) fn next(&self, after: Timestamp, fired: u32) -> Option<Timestamp> {
        match *self {
            Self::Calendar(ref cron) => cron::after(cron, after),
            Self::At(time) => (fired == 0).then_some(time),
            Self::After(period) => (fired == 0).then(|| period.after(after)),
            Self::Cycle {
                times: Some(times), ..
            } if fired >= times => None,
            Self::Cycle {
                start: None, period, ..
            } => Some(period.after(after)),
            Self::Cycle {
                start: Some(start),
                period,
                ..
            } => {
                // Turns before `after` are never caught up.
                let upcoming = if fired == 0 { start >= after } else { start > after };
                if upcoming {
                    Some(start)
                } else {
                    Repeat { period, left: None }.after(start, after).next
                }
            }
        }
    }
}

impl Schedule {
    /// The turn of a calendar expression after the one that was due at `due_at`.
    pub(crate) fn following(&self, due_at: Timestamp, now: Timestamp) -> Turn {
        match self {
            Self::Calendar(cron) => cron::following(cron, due_at, now),
            Self::At(_) | Self::After(_) | Self::Cycle { .. } => Turn {
                missed: 0,
                next: None,
            },
        }
    }
}

impl TimerSpec {
    /// Keeps a text; a fixed one must be right.
    pub(crate) fn new(kind: TimerKind, text: Text) -> Result<Self, String> {
        let fixed = text
            .literal()
            .map(|literal| Schedule::read(kind, literal))
            .transpose()?;
        Ok(Self { kind, text, fixed })
    }

    /// What the model says.
    pub(crate) fn written(&self) -> &Arc<str> {
        match &self.text {
            Text::Literal(text) => text,
            Text::Computed(computed) => &computed.text,
        }
    }

    pub(crate) fn fixed(&self) -> Option<&Schedule> {
        self.fixed.as_ref()
    }

    /// What the text says now.
    pub(crate) fn schedule(&self, scope: &Visible<'_>) -> Result<Schedule, Box<Failure>> {
        if let Some(schedule) = &self.fixed {
            return Ok(schedule.clone());
        }
        let written = self
            .text
            .string("the timer", scope)?
            .unwrap_or_else(|| "null".to_owned());
        Schedule::read(self.kind, &written).map_err(|wrong| {
            let source = match &self.text {
                Text::Literal(_) => String::new(),
                Text::Computed(computed) => {
                    let values = computed.values(scope);
                    let saw = if values.is_empty() {
                        String::new()
                    } else {
                        format!(", which saw {values}")
                    };
                    format!("; it comes from `{}`{saw}", computed.text)
                }
            };
            Failure::new(
                "timer-invalid",
                format!("{wrong}{source}. Correct the variables and retry."),
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_timers_never_catch_up() {
        let every = Schedule::read(TimerKind::Cycle, "R/1970-01-01T00:00:00Z/PT1S").unwrap();
        let now = Timestamp::from_ms(1_700_000_000_500);
        assert_eq!(every.next(now, 0), Some(Timestamp::from_ms(1_700_000_001_000)));
        assert_eq!(
            every.next(Timestamp::from_ms(1_700_000_001_000), 1),
            Some(Timestamp::from_ms(1_700_000_002_000))
        );
        let twice = Schedule::read(TimerKind::Cycle, "R2/PT1S").unwrap();
        assert_eq!(twice.next(now, 1), Some(Timestamp::from_ms(1_700_000_001_500)));
        assert_eq!(twice.next(now, 2), None);
        let once = Schedule::read(TimerKind::Date, "2026-01-01T00:00:00Z").unwrap();
        assert_eq!(once.next(now, 1), None);
    }
}
