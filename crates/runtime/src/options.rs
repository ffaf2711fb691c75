//! How a runtime behaves. Every value has a default that is right for most.

use std::time::Duration;

use crate::settings::Retention;
use crate::status::OverflowPolicy;

/// When the work of a cycle is committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CommitPolicy {
    /// Whenever an activity completes: its result is on disk before the next begins.
    #[default]
    Activity,
    /// At rest, or after about 50 ms: handlers may run again after a crash.
    Cycle,
}

/// Whether a pause outlives the generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PausePersistence {
    /// A new generation starts unpaused.
    #[default]
    SessionScoped,
    /// A new generation starts paused.
    AcrossReactivations,
}

/// What force does to a graceful drain in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ForceDuringDrain {
    /// It shortens it.
    #[default]
    Escalate,
    /// It is refused.
    Reject,
}

/// What a pause does to the time to live of buffered messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ExpiryUnderPause {
    /// It stands still: after the pause they have as much left as before.
    #[default]
    StandsStill,
    /// It runs on.
    Runs,
}

/// The options of a runtime.
#[derive(Debug, Clone)]
pub struct Options {
    /// When the work of a cycle is committed.
    pub commit_policy: CommitPolicy,
    /// How long a graceful drain waits for cycles to rest.
    pub drain_deadline: Duration,
    /// How long the host may take to stop, where it says so.
    pub host_grace: Option<Duration>,
    /// The time kept inside the host's grace for saving outcomes.
    pub persist_reserve: Duration,
    /// How long pausing one ingress source may take.
    pub ingress_pause_timeout: Duration,
    /// The limit of the stimulus queue while closed; none for no limit.
    pub queue_max_depth: Option<u64>,
    /// What happens beyond it.
    pub overflow_policy: OverflowPolicy,
    /// Whether a pause outlives the generation.
    pub pause_persistence: PausePersistence,
    /// What force does to a graceful drain in progress.
    pub force_during_drain: ForceDuringDrain,
    /// How many ids and cycles a drain report lists.
    pub reported_ids: usize,
    /// How many interrupted instances are recovered at a time.
    pub recovery_batch: usize,
    /// How long an executing instance of another node may be silent before it is recovered.
    pub inactivity_threshold: Duration,
    /// How long a message waits for a taker when its sender does not say.
    pub message_ttl: Duration,
    /// Owner threads.
    pub owners: usize,
    /// The budget of the instance cache, in bytes, over all owners.
    pub cache_bytes: usize,
    /// How many cycles may be live at once; starts beyond it wait in the queue.
    pub max_live_cycles: u64,
    /// After so many failed attempts a queued stimulus becomes a dead letter.
    pub stimulus_attempts: u32,
    /// Whether buffered messages grow older while the runtime is paused.
    pub expiry_under_pause: ExpiryUnderPause,
    /// Where interruptions are kept that the store could not take; none for only the log. Beside the data is best.
    pub spill: Option<std::path::PathBuf>,
    /// How long a handler that was told to stop, because its instance is cancelled, is waited for before it is abandoned.
    pub cancel_patience: Duration,
    /// What the timers of a held instance do where the operator does not say.
    pub held_timers: tidegate_model::HeldTimers,
    /// How many calls deep a call may be. A deeper one is an incident: a process that calls itself would never end.
    pub deepest_call: u32,
    /// After so many crashes in a row an instance's running activities become incidents.
    pub quarantine_after: u32,
    /// How long what has ended is remembered. A definition may say otherwise.
    pub retention: Retention,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            commit_policy: CommitPolicy::Activity,
            drain_deadline: Duration::from_secs(30),
            host_grace: None,
            persist_reserve: Duration::from_millis(500),
            ingress_pause_timeout: Duration::from_secs(5),
            queue_max_depth: Some(10_000),
            overflow_policy: OverflowPolicy::Buffer,
            pause_persistence: PausePersistence::SessionScoped,
            force_during_drain: ForceDuringDrain::Escalate,
            reported_ids: 100,
            recovery_batch: 100,
            inactivity_threshold: Duration::from_secs(300),
            message_ttl: Duration::from_secs(3600),
            owners: std::thread::available_parallelism()
                .map_or(2, usize::from)
                .clamp(1, 8),
            cache_bytes: 8 << 20,
            max_live_cycles: 100_000,
            stimulus_attempts: 3,
            expiry_under_pause: ExpiryUnderPause::StandsStill,
            spill: None,
            cancel_patience: Duration::from_secs(30),
            held_timers: tidegate_model::HeldTimers::KeepRunning,
            deepest_call: 1_000,
            quarantine_after: 3,
            retention: Retention::default(),
        }
    }
}

/// The least that is kept for saving outcomes inside the host's grace.
pub const LEAST_RESERVE: Duration = Duration::from_millis(500);

impl Options {
    /// All that is wrong, each with its key.
    pub fn validate(&self) -> Vec<(&'static str, String)> {
        let mut wrong = Vec::new();
        for (key, value) in [
            ("drain-deadline", self.drain_deadline),
            ("ingress-pause-timeout", self.ingress_pause_timeout),
            ("inactivity-threshold", self.inactivity_threshold),
        ] {
            if value.is_zero() {
                wrong.push((key, "must be longer than 0".to_owned()));
            }
        }
        for (key, value) in [
            ("reported-ids", self.reported_ids),
            ("recovery-batch", self.recovery_batch),
            ("owners", self.owners),
        ] {
            if value == 0 {
                wrong.push((key, "must be greater than 0".to_owned()));
            }
        }
        if self.owners > 64 {
            wrong.push(("owners", "must be at most 64".to_owned()));
        }
        if self.queue_max_depth == Some(0) {
            wrong.push(("queue-max-depth", "must be greater than 0, or none".to_owned()));
        }
        if self.stimulus_attempts == 0 {
            wrong.push(("stimulus-attempts", "must be greater than 0".to_owned()));
        }
        if self.retention.every.is_zero() {
            wrong.push(("retention-every", "must be longer than 0".to_owned()));
        }
        if self.max_live_cycles == 0 {
            wrong.push(("max-live-cycles", "must be greater than 0".to_owned()));
        }
        if self.persist_reserve < LEAST_RESERVE {
            wrong.push((
                "persist-reserve",
                format!("must be at least {} ms", LEAST_RESERVE.as_millis()),
            ));
        }
        if let Some(grace) = self.host_grace
            && grace <= self.reserve()
        {
            wrong.push((
                "host-grace",
                format!(
                    "{} ms leaves no time to drain: outcomes need {} ms of it; give the host a longer grace",
                    grace.as_millis(),
                    self.reserve().as_millis()
                ),
            ));
        }
        wrong
    }

    /// The time kept for saving outcomes.
    pub fn reserve(&self) -> Duration {
        self.persist_reserve.max(LEAST_RESERVE)
    }

    /// How long cycles may run once a drain has begun: the configured deadline, inside the host's grace.
    pub fn effective_deadline(&self) -> Duration {
        match self.host_grace {
            Some(grace) => self.drain_deadline.min(grace.saturating_sub(self.reserve())),
            None => self.drain_deadline,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a08_all_invalid_values_are_reported_together() {
        let options = Options {
            drain_deadline: Duration::ZERO,
            owners: 0,
            queue_max_depth: Some(0),
            host_grace: Some(Duration::from_millis(100)),
            ..Options::default()
        };
        let keys: Vec<_> = options.validate().into_iter().map(|(key, _)| key).collect();
        assert_eq!(
            keys,
            ["drain-deadline", "owners", "queue-max-depth", "host-grace"]
        );
        assert!(Options::default().validate().is_empty());
    }

    #[test]
    fn d17_case_010_the_effective_deadline_lies_inside_the_grace() {
        let mut options = Options {
            drain_deadline: Duration::from_secs(30),
            ..Options::default()
        };
        assert_eq!(options.effective_deadline(), Duration::from_secs(30));
        options.host_grace = Some(Duration::from_secs(10));
        assert_eq!(options.effective_deadline(), Duration::from_millis(9_500));
        options.persist_reserve = Duration::from_secs(2);
        assert_eq!(options.effective_deadline(), Duration::from_secs(8));
        options.drain_deadline = Duration::from_secs(3);
        assert_eq!(options.effective_deadline(), Duration::from_secs(3));
    }
}
