//! The status of the runtime and the outcome of a drain, in the words of the wire contract.

use serde::Serialize;
use tidegate_model::{InstanceKey, Timestamp};

/// A whole status answer.
#[derive(Debug, Clone, Serialize, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct RuntimeStatus {
    /// The gate.
    pub state: GateStatus,
    /// The ingress sources, by name.
    pub sources: Vec<SourceStatus>,
    /// Live execution cycles.
    pub active_execution_cycle_count: u64,
    /// The stimulus queue.
    pub stimulus_queue: QueueStatus,
    /// Instances that were cut and have not been resumed yet.
    pub interrupted_instance_count: u64,
}

/// The gate's part of a status.
#[derive(Debug, Clone, Serialize, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct GateStatus {
    /// `None`, `AdministrativePause`, `Drain`, or both.
    pub reason: String,
    /// True exactly when the reason is `None`.
    pub is_accepting_new_work: bool,
    /// When the pause began.
    pub paused_at: Option<Timestamp>,
    /// When it ends by itself.
    pub paused_until: Option<Timestamp>,
    /// When the drain began.
    pub drain_started_at: Option<Timestamp>,
    /// Its effective deadline.
    pub drain_deadline_at: Option<Timestamp>,
    /// The operator's words.
    pub pause_reason_text: Option<String>,
    /// Who paused.
    pub pause_requested_by: Option<String>,
    /// This activation's id: 32 lower-case hexadecimal digits.
    pub generation_id: String,
}

/// The state of an ingress source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub enum SourceState {
    /// Delivers.
    Running,
    /// Being paused.
    Pausing,
    /// Delivers nothing.
    Paused,
    /// Could not be paused.
    PauseFailed,
    /// Being resumed.
    Resuming,
    /// Could not be resumed.
    ResumeFailed,
}

/// Why a source failed to change its state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SourceErrorKind {
    /// It did not answer in time.
    Timeout,
    /// It said so.
    Failed,
    /// It delivered although it said it was paused.
    DeliveredWhilePaused,
}

/// One source's part of a status.
#[derive(Debug, Clone, Serialize, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct SourceStatus {
    /// Its name.
    pub name: String,
    /// Its real state.
    pub state: SourceState,
    /// What went wrong last.
    pub last_error: Option<String>,
    /// What kind of thing went wrong.
    pub last_error_kind: Option<SourceErrorKind>,
    /// When its state changed last.
    pub last_transition_at: Option<Timestamp>,
    /// True if it can be stopped by force.
    pub supports_force_stop: bool,
    /// How long pausing may take.
    pub pause_timeout_ms: u64,
}

/// The queue's part of a status.
#[derive(Debug, Clone, Serialize, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct QueueStatus {
    /// How many stimuli wait.
    pub depth: u64,
    /// The limit while closed; none for no limit.
    pub max_depth_while_paused: Option<u64>,
    /// `Buffer` or `Reject`.
    pub overflow_policy: OverflowPolicy,
    /// Since when the oldest waits.
    pub oldest_accepted_at: Option<Timestamp>,
}

/// What happens to stimuli beyond the limit while closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum OverflowPolicy {
    /// They are accepted and readiness is degraded.
    Buffer,
    /// They are refused.
    Reject,
}

/// How a drain ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum DrainResult {
    /// Every cycle came to rest in time.
    CompletedWithinDeadline,
    /// The deadline cut some.
    DeadlineExceeded,
    /// An operator forced it.
    Forced,
    /// A bug or a failing store ended it.
    AbortedByUnhandledException,
}

/// Who began a drain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum DrainTrigger {
    /// The host was told to stop.
    HostStopSignal,
    /// The shell was deactivated.
    ShellDeactivation,
    /// An operator forced it.
    OperatorForce,
}

/// What became of one cycle in a drain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fate {
    /// It came to rest.
    Rested,
    /// It was cut and marked.
    Interrupted,
    /// It did not answer; its late writes are refused.
    Abandoned,
    /// It could not be saved; crash recovery will find it.
    PersistenceFailed,
}

/// One cycle's line in a drain report.
#[derive(Debug, Clone, Serialize, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct CycleReport {
    /// The instance.
    pub instance_id: InstanceKey,
    /// The source that woke it.
    pub source: Option<String>,
    /// The element it was last active in.
    pub activity: Option<String>,
    /// How long the cycle ran, in milliseconds.
    pub age_ms: u64,
    /// What became of it.
    pub fate: Fate,
}

/// One source's line in a drain report.
#[derive(Debug, Clone, Serialize, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct SourceReport {
    /// Its name.
    pub name: String,
    /// Its state at the end.
    pub state: SourceState,
    /// What went wrong.
    pub last_error: Option<String>,
    /// What kind of thing went wrong.
    pub last_error_kind: Option<SourceErrorKind>,
    /// True if it had to be stopped by force.
    pub was_force_stopped: bool,
}

/// The outcome of a drain.
#[derive(Debug, Clone, Serialize, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct DrainOutcome {
    /// How it ended.
    pub overall_result: DrainResult,
    /// Who began it.
    pub trigger: DrainTrigger,
    /// When.
    pub started_at: Timestamp,
    /// When it was over.
    pub completed_at: Timestamp,
    /// `hh:mm:ss.fffffff`
    #[serde(serialize_with = "as_clock")]
    pub pause_phase_duration: std::time::Duration,
    /// `hh:mm:ss.fffffff`
    #[serde(serialize_with = "as_clock")]
    pub wait_phase_duration: std::time::Duration,
    /// `hh:mm:ss.fffffff`
    #[serde(serialize_with = "as_clock")]
    pub settle_phase_duration: std::time::Duration,
    /// `hh:mm:ss.fffffff`
    #[serde(serialize_with = "as_clock")]
    pub persist_phase_duration: std::time::Duration,
    /// The sources.
    pub sources: Vec<SourceReport>,
    /// Cycles that came to rest.
    pub execution_cycles_completed_count: u64,
    /// Cycles that were cut and marked.
    pub execution_cycles_force_cancelled_count: u64,
    /// Cycles that did not answer.
    pub execution_cycles_abandoned_count: u64,
    /// Cycles whose outcome could not be saved.
    pub persistence_failure_count: u64,
    /// The cut instances, at most the configured number.
    pub force_cancelled_instance_ids: Vec<InstanceKey>,
    /// The cycles, at most the configured number.
    pub cycles: Vec<CycleReport>,
}

fn as_clock<S: serde::Serializer>(duration: &std::time::Duration, serializer: S) -> Result<S::Ok, S::Error> {
    let seconds = duration.as_secs();
    serializer.collect_str(&format_args!(
        "{:02}:{:02}:{:02}.{:07}",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60,
        duration.subsec_nanos() / 100
    ))
}
