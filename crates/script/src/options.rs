//! How many scripts run at once, and what one of them may use.

use std::time::Duration;

/// The limits of scripts and of their worker processes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Worker processes at most, and so scripts that run at the same time; at least one. Two by default.
    pub workers: usize,
    /// Wall time of one script, its variables' way there and back included. Five seconds by default.
    pub time: Duration,
    /// Bytes that one script's values may take. 64 MiB by default.
    pub memory_bytes: u64,
    /// Bytes of one script's result, as JSON. 1 MiB by default.
    pub output_bytes: u32,
    /// Bytes of one script with its variables, as JSON. 16 MiB by default.
    pub input_bytes: u32,
    /// A worker process that is not ready after so long is given up. Ten seconds by default.
    pub start: Duration,
    /// A script that found no free worker for so long fails, and is tried again. One minute by default.
    pub wait: Duration,
    /// A worker process is replaced after so many scripts; 1 gives every script its own. 1,000 by default.
    pub scripts_per_worker: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            workers: 2,
            time: Duration::from_secs(5),
            memory_bytes: 64 << 20,
            output_bytes: 1 << 20,
            input_bytes: 16 << 20,
            start: Duration::from_secs(10),
            wait: Duration::from_secs(60),
            scripts_per_worker: 1_000,
        }
    }
}
