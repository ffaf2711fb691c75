//! The limit of open files: connections must not take those that the store needs.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files that the store, logs and the process itself keep open, generously.
const KEPT: u64 = 128;
/// More is never needed, and some systems make their tables as large as the limit.
const MOST: u64 = 65_536;

/// Raises the process's own limit as far as it may, and gives the number of connections that fit.
pub fn room_for(connections: usize) -> usize {
    let limit = raised(getrlimit(Resource::Nofile));
    let Some(open_files) = limit.current else {
        return connections;
    };
    let room = usize::try_from(open_files.saturating_sub(KEPT).max(1)).unwrap_or(usize::MAX);
    if room < connections {
        tracing::warn!(
            open_files,
            room,
            "the system's limit of open files leaves room for fewer connections than `max-connections`"
        );
    }
    connections.min(room)
}

fn raised(limit: Rlimit) -> Rlimit {
    let highest = limit.maximum.unwrap_or(MOST).min(MOST);
    if limit.current.is_none_or(|current| current >= highest) {
        return limit;
    }
    let wanted = Rlimit {
        current: Some(highest),
        maximum: limit.maximum,
    };
    match setrlimit(Resource::Nofile, wanted) {
        Ok(()) => getrlimit(Resource::Nofile),
        Err(error) => {
            tracing::warn!(%error, "the limit of open files could not be raised");
            limit
        }
    }
}
