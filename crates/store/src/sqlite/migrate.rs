//! Brings the schema up to this version, each step in one transaction.

use std::path::Path;

use rusqlite::Connection;

use super::error::Trouble;
use super::schema::{APPLICATION_ID, STEPS};
use crate::error::{Error, ErrorKind};

/// Checks whose file it is and brings its schema up to date.
pub(super) fn migrate(conn: &Connection, path: &Path) -> Result<(), Trouble> {
    let application: i32 = pragma(conn, "application_id")?;
    let version: i32 = pragma(conn, "user_version")?;
    let tables: i64 = conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if application != APPLICATION_ID && (application != 0 || version != 0 || tables != 0) {
        let message = format!(
            "`{}` is a SQLite file of another program; choose another path for the store",
            path.display()
        );
        return Err(Error::new(ErrorKind::Damaged, message).into());
    }
    let known = STEPS.len();
    let present = usize::try_from(version).unwrap_or(usize::MAX);
    if present > known {
        let message = format!(
            "`{}` has schema version {version}, and this program knows versions up to {known}: a newer version of it \
             wrote the file; use that one, or restore a backup from before the upgrade",
            path.display()
        );
        return Err(Error::new(ErrorKind::NewerSchema, message).into());
    }
    for (step, sql) in STEPS.iter().enumerate().skip(present) {
        let transaction = conn.unchecked_transaction()?;
        transaction.execute_batch(sql)?;
        transaction.execute_batch(&format!(
            "PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {};",
            step + 1
        ))?;
        transaction.commit()?;
    }
    Ok(())
}

fn pragma(conn: &Connection, name: &str) -> rusqlite::Result<i32> {
    conn.pragma_query_value(None, name, |row| row.get(0))
}
