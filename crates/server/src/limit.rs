//! How often one caller may ask for control actions. They are idempotent and come one after the other, so that a
//! flood of them changes nothing; this keeps it from standing in everybody else's way.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Callers that are remembered; beyond that those are forgotten who have been quiet.
const REMEMBERED: usize = 10_000;

/// A bucket of tokens for each caller.
#[derive(Debug)]
pub(crate) struct Limiter {
    burst: u32,
    per_second: u32,
    buckets: Mutex<HashMap<Arc<str>, Bucket>>,
}

#[derive(Debug)]
struct Bucket {
    left: f64,
    at: Instant,
}

impl Limiter {
    pub(crate) fn new(burst: u32, per_second: u32) -> Self {
        Self {
            burst,
            per_second,
            buckets: Mutex::default(),
        }
    }

    /// Takes one token of the caller. False if there is none.
    pub(crate) fn admit(&self, caller: &Arc<str>, now: Instant) -> bool {
        let mut buckets = self.buckets.lock();
        if buckets.len() >= REMEMBERED {
            let full_after = Duration::from_secs(u64::from(self.burst / self.per_second.max(1)) + 1);
            buckets.retain(|_, bucket| now.saturating_duration_since(bucket.at) < full_after);
        }
        let full = f64::from(self.burst);
        let bucket = buckets
            .entry(caller.clone())
            .or_insert(Bucket { left: full, at: now });
        let regained = (now.saturating_duration_since(bucket.at)).as_secs_f64() * f64::from(self.per_second);
        bucket.left = (bucket.left + regained).min(full);
        bucket.at = now;
        let is_admitted = bucket.left >= 1.0;
        if is_admitted {
            bucket.left -= 1.0;
        }
        is_admitted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_admitted_and_then_so_many_a_second() {
        let limiter = Limiter::new(3, 2);
        let (ada, bob): (Arc<str>, Arc<str>) = ("ada".into(), "bob".into());
        let began = Instant::now();
        let admitted = |caller, after_ms| {
            let now = began + Duration::from_millis(after_ms);
            (0..10).filter(|_| limiter.admit(caller, now)).count()
        };
        assert_eq!(admitted(&ada, 0), 3);
        assert_eq!(admitted(&bob, 0), 3, "one caller's flood is not another's");
        assert_eq!(admitted(&ada, 1_050), 2);
        assert_eq!(admitted(&ada, 3_600_000), 3, "not more than a burst");
    }
}
