//! Opening: the folder, the file, its connections and the checks before the first use.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::Options;
use super::error::{Trouble, of_io};
use super::migrate;
use super::names::Names;
use crate::error::Error;

/// Room for every statement of one store: none is prepared twice.
pub(super) const STATEMENTS: usize = 128;
/// Pages are written whole to the WAL, so smaller ones save bytes and larger ones save depth; 8 KB measured best.
const PAGE_SIZE: u32 = 8192;
/// What a connection may keep of the file, in KiB.
const WRITER_CACHE_KB: i64 = 8 * 1024;
const READER_CACHE_KB: i64 = 2 * 1024;
/// After a reset the WAL file is cut to this size.
const WAL_KEPT_BYTES: i64 = 64 << 20;
/// The WAL's size from the first start on: the pages at which a checkpoint begins, and as many again to go on with.
const WAL_PREPARED_BYTES: u64 = 16 << 20;
/// Nobody else writes; this is for a backup tool or a shell that holds the file for a moment.
const BUSY: Duration = Duration::from_secs(5);
/// Files up to this size are checked whole at each start: about 30 ms. Larger ones are checked where they are
/// read, so that a start does not grow with the instances that are parked.
const CHECKED_BYTES: u64 = 8 << 20;

/// Makes the folder if it is not there.
pub(super) fn prepare_folder(path: &Path) -> Result<(), Error> {
    let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) else {
        return Ok(());
    };
    if folder.is_dir() {
        return Ok(());
    }
    std::fs::create_dir_all(folder).map_err(|cause| of_io(&cause, "cannot make the folder", folder))?;
    // The new folder's own entry must survive a power cut as well.
    if let Some(above) = folder.parent().filter(|above| !above.as_os_str().is_empty()) {
        let _ = File::open(above).and_then(|folder| folder.sync_all());
    }
    Ok(())
}

/// Makes the file, if it is missing, readable by its owner only: it holds the variables of every process. SQLite gives
/// the same mode to the WAL.
pub(super) fn prepare_file(path: &Path, options: &Options) -> Result<(), Error> {
    if options.vfs.is_some() || path.exists() {
        return Ok(());
    }
    let mut file = OpenOptions::new();
    file.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut file, 0o600);
    file.open(path)
        .map(drop)
        .map_err(|cause| of_io(&cause, "cannot make the file", path))
}

/// Gives the WAL its working size at once. A sync that also has to make a file longer costs several times one that
/// does not (`bench_store`), and the WAL would grow at every commit until its first turn-around. Zeros end the log for
/// its reader, so they may stand behind whatever is in it. Not for a VFS of somebody else's, whose files these are not.
pub(super) fn prepare_wal(path: &Path, options: &Options) {
    if options.vfs.is_some() {
        return;
    }
    let mut name = path.as_os_str().to_owned();
    name.push("-wal");
    let Ok(mut file) = OpenOptions::new().append(true).create(true).open(&name) else {
        return;
    };
    let Ok(length) = file.metadata().map(|file| file.len()) else {
        return;
    };
    let zeros = vec![0; 1 << 20];
    let mut missing = WAL_PREPARED_BYTES.saturating_sub(length);
    while missing > 0 {
        let part = missing.min(zeros.len() as u64);
        if file.write_all(&zeros[..part as usize]).is_err() {
            // No space to spare: the commits will find out whether there is enough for them.
            let _ = file.set_len(length);
            return;
        }
        missing -= part;
    }
}

/// Brings one store in the file up to date and checks it.
pub(super) fn prepare_store(
    conn: &Connection,
    path: &Path,
    bytes: u64,
    names: &Names,
) -> Result<(), Trouble> {
    migrate::migrate(conn, path, names)?;
    if bytes == 0 || bytes > CHECKED_BYTES {
        return Ok(());
    }
    if !migrate::has_namespaces(conn)? {
        return quick_check(conn, "1");
    }
    // What is wrong with another store in the file is for that one to find.
    for table in names.tables() {
        quick_check(conn, &format!("'{table}'"))?;
    }
    Ok(())
}

fn quick_check(conn: &Connection, what: &str) -> Result<(), Trouble> {
    let verdict: String = conn.query_row(&format!("PRAGMA quick_check({what})"), [], |row| row.get(0))?;
    match verdict.as_str() {
        "ok" => Ok(()),
        _ => Err(Trouble::Damaged(verdict)),
    }
}

/// One spelling for each file, whatever links and relative paths lead to it.
pub(super) fn resolve(path: &Path) -> PathBuf {
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    for there in whole.ancestors() {
        if let (Ok(real), Ok(missing)) = (there.canonicalize(), whole.strip_prefix(there)) {
            return match missing.as_os_str().is_empty() {
                true => real,
                false => real.join(missing),
            };
        }
    }
    whole
}

/// The connection that writes.
pub(super) fn writer(path: &Path, options: &Options) -> Result<Connection, Trouble> {
    let conn = connect(
        path,
        options,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE,
    )?;
    conn.pragma_update(None, "page_size", PAGE_SIZE)?;
    let mode: String = conn.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
    if !mode.eq_ignore_ascii_case("wal") {
        return Err(Trouble::Own(Error::new(
            crate::ErrorKind::Configuration,
            format!(
                "`{}` cannot use a write-ahead log (its journal mode is `{mode}`); use a local file system",
                path.display()
            ),
        )));
    }
    conn.pragma_update(None, "synchronous", "FULL")?;
    conn.pragma_update(None, "wal_autocheckpoint", 0)?;
    conn.pragma_update(None, "journal_size_limit", WAL_KEPT_BYTES)?;
    conn.pragma_update(None, "cache_size", -WRITER_CACHE_KB)?;
    conn.pragma_update(None, "temp_store", "MEMORY")?;
    if let Some(pages) = options.max_pages {
        limit_pages(&conn, pages)?;
    }
    Ok(conn)
}

/// A connection that reads.
pub(super) fn reader(path: &Path, options: &Options) -> Result<Connection, Trouble> {
    let conn = connect(path, options, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    conn.pragma_update(None, "cache_size", -READER_CACHE_KB)?;
    Ok(conn)
}

/// Holds the file at `pages` pages at most.
pub(super) fn limit_pages(conn: &Connection, pages: u32) -> Result<(), Trouble> {
    conn.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))?;
    Ok(())
}

fn connect(path: &Path, options: &Options, access: OpenFlags) -> Result<Connection, Trouble> {
    let flags = access | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_EXRESCODE;
    let conn = match &options.vfs {
        Some(vfs) => Connection::open_with_flags_and_vfs(path, flags, vfs.as_str())?,
        None => Connection::open_with_flags(path, flags)?,
    };
    conn.busy_timeout(BUSY)?;
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    conn.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(conn)
}
