//! How fast the store takes commits, as its owners see it: what a drain may expect of the time it keeps for its marks.

use std::time::Duration;

use parking_lot::Mutex;

/// From this many commits on, a batch tells what one of them costs; a smaller one tells what a sync costs.
const MANY: usize = 8;
/// What one commit is taken to cost until a large batch has told.
const EACH: Duration = Duration::from_micros(100);

/// Measured since the generation began.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    measured: Mutex<Measured>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Measured {
    batches: u64,
    /// The slowest batch; it fades with those after it.
    slowest: Duration,
    /// What a commit of a large batch took, on average.
    each: Option<Duration>,
}

impl Pace {
    /// A batch of so many commits has been told.
    pub(crate) fn note(&self, commits: usize, took: Duration) {
        let mut measured = self.measured.lock();
        measured.batches += 1;
        measured.slowest = took.max(measured.slowest * 31 / 32);
        if commits >= MANY {
            let one = took / u32::try_from(commits).unwrap_or(u32::MAX);
            measured.each = Some(measured.each.map_or(one, |each| each * 7 / 8 + one / 8));
        }
    }

    /// How long it takes to save the outcomes of so many cycles. None before anything was measured.
    pub(crate) fn expected(&self, cycles: u64) -> Option<Duration> {
        let measured = *self.measured.lock();
        let each = measured.each.unwrap_or(EACH);
        let all = each.saturating_mul(u32::try_from(cycles).unwrap_or(u32::MAX));
        (measured.batches > 0).then(|| measured.slowest.saturating_add(all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_batch_is_remembered_for_a_while_and_large_ones_tell_what_a_commit_costs() {
        let pace = Pace::default();
        assert_eq!(pace.expected(10), None, "nothing was measured");
        let ms = Duration::from_millis;
        pace.note(1, ms(320));
        assert_eq!(pace.expected(0), Some(ms(320)));
        pace.note(1, ms(1));
        assert_eq!(pace.expected(0), Some(ms(310)));
        pace.note(100, ms(500));
        assert_eq!(pace.expected(1_000), Some(ms(500 + 5_000)));
        for _ in 0..1_000 {
            pace.note(100, ms(10));
        }
        assert!(pace.expected(1_000).is_some_and(|expected| expected < ms(120)));
    }
}
