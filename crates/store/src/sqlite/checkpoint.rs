//! Checkpoints off the commit path: a thread of its own moves pages from the WAL to the file.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::{self, JoinHandle};

use parking_lot::{Condvar, Mutex};
use rusqlite::Connection;
use rusqlite::wal::CheckpointMode;

use super::file::OpenFile;
use super::open;

/// After so many new pages in the WAL (8 MB) a passive checkpoint runs beside the commits.
const PASSIVE_PAGES: u32 = 1024;
/// A WAL of so many pages (32 MB) is finished under the writer lock: only then can the next commit begin it anew.
/// A constant load would otherwise keep it growing, since commits go on while a passive checkpoint runs.
const FINISH_PAGES: u32 = 4096;

/// When the next checkpoint is due.
#[derive(Default)]
pub(super) struct Checkpoints {
    /// Pages in the WAL when the last one ended.
    done_at: AtomicU32,
    is_wanted: AtomicBool,
    is_stopped: Mutex<bool>,
    wake: Condvar,
}

impl Checkpoints {
    /// Told by the writer after each transaction: cheap unless a checkpoint is due.
    pub fn after_commit(&self, wal_pages: u32) {
        let done_at = self.done_at.load(Ordering::Relaxed);
        if wal_pages < done_at {
            self.done_at.store(0, Ordering::Relaxed);
        }
        if wal_pages.saturating_sub(done_at) >= PASSIVE_PAGES && !self.is_wanted.swap(true, Ordering::AcqRel)
        {
            let _stopped = self.is_stopped.lock();
            self.wake.notify_one();
        }
    }

    pub fn stop(&self) {
        *self.is_stopped.lock() = true;
        self.wake.notify_all();
    }

    /// Waits until one is due. False to stop.
    fn wait(&self) -> bool {
        let mut is_stopped = self.is_stopped.lock();
        while !*is_stopped && !self.is_wanted.load(Ordering::Acquire) {
            self.wake.wait(&mut is_stopped);
        }
        !*is_stopped
    }

    fn finished(&self, wal_pages: u32) {
        self.done_at.store(wal_pages, Ordering::Relaxed);
        self.is_wanted.store(false, Ordering::Release);
    }
}

/// Starts the checkpointer.
pub(super) fn spawn(file: Arc<OpenFile>, conn: Connection) -> std::io::Result<JoinHandle<()>> {
    thread::Builder::new()
        .name("tidegate-checkpointer".to_owned())
        .spawn(move || {
            while file.checkpoints.wait() {
                let pages = checkpoint(&file, &conn);
                file.checkpoints.finished(pages);
            }
        })
}

/// Opens the checkpointer's connection.
pub(super) fn connection(
    path: &std::path::Path,
    options: &super::Options,
) -> Result<Connection, super::error::Trouble> {
    open::writer(path, options)
}

/// A checkpoint that fails (a full disk, a long reader) is tried again after as many pages more.
fn checkpoint(file: &OpenFile, conn: &Connection) -> u32 {
    let pages = passive(conn);
    if pages < FINISH_PAGES {
        return pages;
    }
    let _no_commits = file.writer.lock();
    passive(conn)
}

fn passive(conn: &Connection) -> u32 {
    match conn.wal_checkpoint_v2(None::<&str>, CheckpointMode::PASSIVE) {
        Ok((pages, _)) => u32::try_from(pages).unwrap_or(0),
        Err(_) => 0,
    }
}
