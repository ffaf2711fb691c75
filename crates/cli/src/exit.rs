//! Exit codes. Supervisors and scripts rely on them.

use std::time::Duration;

use tidegate::status::{DrainOutcome, DrainResult};

/// Drained, or the command did what it was told.
pub const DRAINED: u8 = 0;
/// Failed in another way than those below.
pub const FAILED: u8 = 1;
/// The command line of a client command is wrong.
pub const USAGE: u8 = 2;
/// Drained with interruptions.
pub const INTERRUPTIONS: u8 = 10;
/// Forced.
pub const FORCED: u8 = 11;
/// Outcomes could not be saved.
pub const UNSAVED: u8 = 12;
/// The drain was aborted.
pub const ABORTED: u8 = 13;
/// The store is locked or unavailable at start.
pub const STORE: u8 = 75;
/// The configuration is wrong.
pub const CONFIGURATION: u8 = 78;
/// Ended at once by the third SIGINT: 128 and the signal's number.
pub const AT_ONCE: u8 = 130;

/// What is left of threads gets this long at the very end.
pub const LAST_WAIT: Duration = Duration::from_millis(100);

/// The exit code of a drain: the worst that happened in it.
pub fn of_drain(outcome: &DrainOutcome) -> u8 {
    if outcome.overall_result == DrainResult::AbortedByUnhandledException {
        return ABORTED;
    }
    if outcome.persistence_failure_count > 0 {
        return UNSAVED;
    }
    let cut = outcome.execution_cycles_force_cancelled_count + outcome.execution_cycles_abandoned_count;
    match outcome.overall_result {
        DrainResult::AbortedByUnhandledException => ABORTED,
        DrainResult::Forced => FORCED,
        DrainResult::DeadlineExceeded => INTERRUPTIONS,
        DrainResult::CompletedWithinDeadline if cut > 0 => INTERRUPTIONS,
        DrainResult::CompletedWithinDeadline => DRAINED,
    }
}
