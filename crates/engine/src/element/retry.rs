//! How often the work of a job is tried and how long it rests between two tries, as the Java engines write it:
//! `R3/PT10M`, or `PT10M,PT17M,PT20M`, where each span is followed by one more try.

use std::borrow::Cow;

use crate::compile::{Reader, VENDORS};
use crate::text::{Failure, Text};
use crate::timer::{Period, iso};
use crate::visible::Visible;

/// The element that says it.
const NAME: &str = "failedJobRetryTimeCycle";

/// What is said: as it is, or by an expression.
#[derive(Debug)]
pub(crate) enum RetryCycle {
    Fixed(Cycle),
    Computed(Text),
}

/// Tries, and the rests between them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cycle {
    pub(crate) tries: u32,
    rests: Vec<Period>,
}

/// Reads the element. None if it was refused; inside, none if it is not there.
pub(super) fn read(reader: &mut Reader<'_>) -> Option<Option<RetryCycle>> {
    let mut vendors = VENDORS.iter();
    let Some(found) = vendors.find_map(|vendor| reader.element.extension(vendor, NAME)) else {
        return Some(None);
    };
    let text = reader.text(&found.text, found.position)?;
    let Text::Literal(literal) = &text else {
        return Some(Some(RetryCycle::Computed(text)));
    };
    match Cycle::read(literal) {
        Ok(cycle) => Some(Some(RetryCycle::Fixed(cycle))),
        Err(wrong) => reader.refuse_at(
            found.position,
            "job-retries-invalid",
            &format!("`{NAME}`: {wrong}"),
            "write it like R3/PT10M, like PT10M,PT1H or as an expression that gives such a text",
        ),
    }
}

/// Warns where the element stands at something that has no work of its own.
pub(crate) fn warn_of_retries(reader: &mut Reader<'_>) {
    let mut vendors = VENDORS.iter();
    if let Some(found) = vendors.find_map(|vendor| reader.element.extension(vendor, NAME)) {
        reader.warn_at(
            found.position,
            "extension-ignored",
            &format!("`{NAME}` has no effect here: there is no work of its own that could be tried again"),
            "set it at the activity whose work it is about, or remove it",
        );
    }
}

impl RetryCycle {
    /// What is said now.
    pub(crate) fn now(&self, scope: &Visible<'_>) -> Result<Cow<'_, Cycle>, Box<Failure>> {
        match self {
            Self::Fixed(cycle) => Ok(Cow::Borrowed(cycle)),
            Self::Computed(text) => {
                let written = text.required("the retries", scope)?;
                let read = Cycle::read(&written).map(Cow::Owned);
                read.map_err(|wrong| {
                    let message = format!("the retries: {wrong}. Correct the variables and retry.");
                    Failure::new("expression-failed", message)
                })
            }
        }
    }
}

impl Cycle {
    fn read(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let rests: Vec<&str> = text.split(',').map(str::trim).collect();
        if let ([one], Some(repeated)) = (rests.as_slice(), text.strip_prefix('R')) {
            // There may be a time between the two, at which nothing begins.
            let (count, _) = repeated
                .split_once('/')
                .ok_or_else(|| format!("`{one}` has no span after `/`"))?;
            let span = one.rsplit('/').next().unwrap_or_default();
            let tries = match count {
                "" => u32::MAX,
                count => count
                    .parse()
                    .map_err(|_| format!("`{count}` is not a number of tries"))?,
            };
            let rests = vec![iso::duration(span)?];
            return Ok(Self { tries, rests });
        }
        let rests = rests
            .into_iter()
            .map(iso::duration)
            .collect::<Result<Vec<_>, _>>()?;
        let tries = u32::try_from(rests.len()).unwrap_or(u32::MAX).saturating_add(1);
        Ok(Self { tries, rests })
    }

    /// How long it rests after a failure that leaves so many tries.
    pub(crate) fn rest(&self, left: u32) -> Option<Period> {
        let left = usize::try_from(left).unwrap_or(usize::MAX);
        let place = self.rests.len().saturating_sub(left);
        self.rests.get(place).or(self.rests.last()).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rests(text: &str) -> Result<(u32, Vec<i64>), String> {
        let cycle = Cycle::read(text)?;
        let after = (1..cycle.tries.min(6)).rev();
        let rests = after.filter_map(|left| Some(cycle.rest(left)?.ms / 60_000));
        Ok((cycle.tries, rests.collect()))
    }

    #[test]
    fn cycles_and_lists_are_read() {
        assert_eq!(rests("R3/PT10M"), Ok((3, vec![10, 10])));
        assert_eq!(rests(" R2/2026-01-01T00:00:00Z/PT1H "), Ok((2, vec![60])));
        assert_eq!(rests("R/PT1M").map(|(tries, _)| tries), Ok(u32::MAX));
        assert_eq!(rests("PT10M, PT17M,PT20M"), Ok((4, vec![10, 17, 20])));
        assert_eq!(rests("PT5M"), Ok((2, vec![5])));
        for wrong in [
            "",
            "R3",
            "Rx/PT1M",
            "3",
            "PT1M,,PT2M",
            "R3/PT1M,PT2M",
            "R-1/PT1M",
            "soon",
        ] {
            assert!(rests(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn more_tries_than_the_model_gave_rest_as_the_first_did() {
        let cycle = Cycle::read("PT1M,PT2M").unwrap();
        assert_eq!(cycle.rest(9).map(|rest| rest.ms), Some(60_000));
        assert_eq!(cycle.rest(0).map(|rest| rest.ms), Some(120_000));
    }
}
