//! One process holds the data directory: an operating-system lock on a side file, which goes with the process.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::error::of_io;
use crate::error::{Error, ErrorKind};

/// How often a waiting opener tries again. Locks of the operating system cannot be waited for with a limit.
const RETRY_EVERY: Duration = Duration::from_millis(20);

/// The held lock.
pub(super) struct DirectoryLock {
    _file: File,
}

impl DirectoryLock {
    /// Takes the lock of the database at `path`, trying for `wait` at most.
    pub fn take(path: &Path, wait: Duration) -> Result<Self, Error> {
        let side = side_file(path);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&side)
            .map_err(|cause| of_io(&cause, "cannot open the lock file", &side))?;
        let begun = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if begun.elapsed() < wait => std::thread::sleep(RETRY_EVERY),
                Err(TryLockError::WouldBlock) => return Err(held(path, &mut file)),
                Err(TryLockError::Error(cause)) => return Err(of_io(&cause, "cannot lock", &side)),
            }
        }
        // The pid is for people; a full disk must not keep a store from opening.
        let _ = file
            .set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| writeln!(file, "{}", std::process::id()));
        Ok(Self { _file: file })
    }
}

fn side_file(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    PathBuf::from(name)
}

fn held(path: &Path, file: &mut File) -> Error {
    let mut text = String::new();
    let _ = file.read_to_string(&mut text);
    let holder = match text.trim().parse::<u32>() {
        Ok(pid) => format!("process {pid}"),
        Err(_) => "another process".to_owned(),
    };
    Error::new(
        ErrorKind::Locked,
        format!(
            "`{}` is held by {holder}: stop that process, wait for it to drain (`--wait-for-lock`), or use another \
             data directory",
            path.display()
        ),
    )
}
