//! Why a script has no outcome: what went wrong with its worker, or on the way there.

use std::process::ExitStatus;
use std::time::Duration;

/// Why a script has no outcome.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Trouble {
    #[error("the script was told to stop")]
    Stopped,
    #[error("no script worker was free for {0:?}: raise the number of workers, or make the scripts shorter")]
    Busy(Duration),
    #[error("no script worker runs any more: the host is closing")]
    Closed,
    #[error("a script worker could not be started: {0}")]
    NotStarted(String),
    #[error("the script and its variables take {size} bytes, {most} are allowed: pass fewer variables to it")]
    TooLarge { size: usize, most: u32 },
    #[error("the script ran longer than {0:?} and was stopped")]
    TimedOut(Duration),
    #[error("the script's worker process ended before it answered: {0}")]
    Ended(ExitStatus),
    #[error("the script's worker process answered with something that cannot be read, and was killed: {0}")]
    Unreadable(String),
}

impl Trouble {
    /// True if the same script would meet the same trouble again.
    pub(crate) fn is_lasting(&self) -> bool {
        matches!(self, Self::TooLarge { .. })
    }
}
