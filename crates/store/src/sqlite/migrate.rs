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

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_model::{ElementInstanceKey, TaskDetails};

    fn at_version(version: usize) -> Connection {
        let conn = Connection::open_in_memory().unwrap();
        for sql in &STEPS[..version] {
            conn.execute_batch(sql).unwrap();
        }
        conn.execute_batch(&format!(
            "PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {version};"
        ))
        .unwrap();
        conn
    }

    /// Tables with their columns, and indexes: what a program finds, not how it was written.
    fn shape(conn: &Connection) -> Vec<String> {
        let sql = "SELECT s.type || ' ' || s.name || ' ' || ifnull((SELECT group_concat(c.name || ' ' || c.type ||                    c.\"notnull\" || ifnull(c.dflt_value, '') || c.pk) FROM pragma_table_xinfo(s.name) c), '')                    FROM sqlite_schema s ORDER BY s.type, s.name";
        let mut statement = conn.prepare(sql).unwrap();
        let rows = statement.query_map([], |row| row.get(0)).unwrap();
        rows.collect::<Result<_, _>>().unwrap()
    }

    #[test]
    fn a_file_of_every_earlier_version_becomes_like_a_new_one() {
        let new = at_version(0);
        migrate(&new, Path::new("new")).unwrap();
        for version in 1..=STEPS.len() {
            let old = at_version(version);
            migrate(&old, Path::new("old")).unwrap();
            assert_eq!(shape(&old), shape(&new), "from version {version}");
            let reached: i32 = pragma(&old, "user_version").unwrap();
            assert_eq!(usize::try_from(reached).unwrap(), STEPS.len());
        }
    }

    #[test]
    fn a_task_of_before_the_details_is_read() {
        let conn = at_version(1);
        conn.execute_batch(
            "INSERT INTO user_tasks (key, instance, process_id, tenant, element_id, name, assignee, \
             candidate_groups, created_at) VALUES (5, 1, 'order', '<default>', 'approve', NULL, 'ada', '[\"sales\"]', 1000)",
        )
        .unwrap();
        migrate(&conn, Path::new("old")).unwrap();
        let task = super::super::task::get(&conn, ElementInstanceKey(5))
            .unwrap()
            .unwrap();
        assert_eq!(task.assignee.as_deref(), Some("ada"));
        assert_eq!(task.candidate_groups, ["sales"]);
        assert_eq!(task.details, TaskDetails::default());
    }
}
