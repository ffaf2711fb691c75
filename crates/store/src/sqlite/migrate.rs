//! Brings the schema up to this version, each step in one transaction.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension};

use super::error::Trouble;
use super::names::Names;
use super::schema::{APPLICATION_ID, STEPS};
use crate::error::{Error, ErrorKind};
use crate::namespace::Namespace;

/// Which version the tables of each named store have; those of the store without a name have the file's own.
const VERSIONS: &str = "CREATE TABLE IF NOT EXISTS namespaces (name TEXT PRIMARY KEY, version INTEGER NOT NULL) \
                        STRICT, WITHOUT ROWID";

/// Checks whose file it is and brings the schema of one store in it up to date. The others in it stay as they are.
pub(super) fn migrate(conn: &Connection, path: &Path, names: &Names) -> Result<(), Trouble> {
    let namespace = names.namespace();
    let application: i32 = pragma(conn, "application_id")?;
    let of_file: i32 = pragma(conn, "user_version")?;
    let tables: i64 = conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if application != APPLICATION_ID && (application != 0 || of_file != 0 || tables != 0) {
        let message = format!(
            "`{}` is a SQLite file of another program; choose another path for the store",
            path.display()
        );
        return Err(Error::new(ErrorKind::Damaged, message).into());
    }
    let version = match namespace.is_default() {
        true => of_file,
        false => version_of(conn, namespace)?,
    };
    let known = STEPS.len();
    let present = usize::try_from(version).unwrap_or(usize::MAX);
    if present > known {
        let message = format!(
            "`{}` has schema version {version}, and this program knows versions up to {known}: a newer version of it \
             wrote the file; use that one, or restore a backup from before the upgrade",
            names.place(path).display()
        );
        return Err(Error::new(ErrorKind::NewerSchema, message).into());
    }
    for (step, sql) in STEPS.iter().enumerate().skip(present) {
        let version = step as i64 + 1;
        let transaction = conn.unchecked_transaction()?;
        transaction.execute_batch(&names.render(sql))?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        if namespace.is_default() {
            transaction.pragma_update(None, "user_version", version)?;
        } else {
            transaction.execute_batch(VERSIONS)?;
            transaction.execute(
                "INSERT OR REPLACE INTO namespaces (name, version) VALUES (?1, ?2)",
                (namespace.as_str(), version),
            )?;
        }
        transaction.commit()?;
    }
    Ok(())
}

/// True if the file holds named stores.
pub(super) fn has_namespaces(conn: &Connection) -> rusqlite::Result<bool> {
    conn.query_row(
        "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'namespaces'",
        [],
        |row| Ok(row.get::<_, i64>(0)? > 0),
    )
}

fn version_of(conn: &Connection, namespace: &Namespace) -> rusqlite::Result<i32> {
    if !has_namespaces(conn)? {
        return Ok(0);
    }
    let version = conn.query_row(
        "SELECT version FROM namespaces WHERE name = ?1",
        [namespace.as_str()],
        |row| row.get(0),
    );
    Ok(version.optional()?.unwrap_or(0))
}

fn pragma(conn: &Connection, name: &str) -> rusqlite::Result<i32> {
    conn.pragma_query_value(None, name, |row| row.get(0))
}

#[cfg(test)]
mod tests {
    use super::super::names::Tables;
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

    fn plain() -> Names {
        Names::of(Namespace::default())
    }

    fn billing() -> Names {
        Names::of("billing".parse().unwrap())
    }

    #[test]
    fn a_file_of_every_earlier_version_becomes_like_a_new_one() {
        let new = at_version(0);
        migrate(&new, Path::new("new"), &plain()).unwrap();
        for version in 1..=STEPS.len() {
            let old = at_version(version);
            migrate(&old, Path::new("old"), &plain()).unwrap();
            assert_eq!(shape(&old), shape(&new), "from version {version}");
            let reached: i32 = pragma(&old, "user_version").unwrap();
            assert_eq!(usize::try_from(reached).unwrap(), STEPS.len());
        }
    }

    /// A named store of every version, beside a store without a name of every version: each comes up to date alone.
    #[test]
    fn a_named_store_of_every_earlier_version_becomes_like_a_new_one() {
        let new = at_version(0);
        migrate(&new, Path::new("new"), &plain()).unwrap();
        migrate(&new, Path::new("new"), &billing()).unwrap();
        for version in 0..=STEPS.len() {
            for named in 0..=STEPS.len() {
                let old = at_version(version);
                for sql in &STEPS[..named] {
                    old.execute_batch(&billing().render(sql)).unwrap();
                }
                if named > 0 {
                    old.execute_batch(VERSIONS).unwrap();
                    old.execute("INSERT INTO namespaces VALUES ('billing', ?1)", [named as i64])
                        .unwrap();
                }
                migrate(&old, Path::new("old"), &billing()).unwrap();
                let reached = version_of(&old, billing().namespace()).unwrap();
                assert_eq!(usize::try_from(reached).unwrap(), STEPS.len());
                let beside: i32 = pragma(&old, "user_version").unwrap();
                assert_eq!(
                    usize::try_from(beside).unwrap(),
                    version,
                    "the other stays as it is"
                );
                migrate(&old, Path::new("old"), &plain()).unwrap();
                assert_eq!(shape(&old), shape(&new), "from version {version} and {named}");
            }
        }
    }

    #[test]
    fn a_newer_named_store_keeps_nobody_else_out() {
        let conn = at_version(0);
        migrate(&conn, Path::new("all"), &billing()).unwrap();
        conn.execute("UPDATE namespaces SET version = 99", []).unwrap();
        let newer = migrate(&conn, Path::new("all"), &billing()).unwrap_err();
        let newer = newer.into_error(Path::new("all"));
        assert_eq!(newer.kind(), ErrorKind::NewerSchema);
        let message = newer.to_string();
        assert!(
            message.contains("namespace billing") && message.contains("99"),
            "{message}"
        );
        migrate(&conn, Path::new("all"), &plain()).unwrap();
        migrate(&conn, Path::new("all"), &Names::of("other".parse().unwrap())).unwrap();
    }

    #[test]
    fn a_task_of_before_the_details_is_read() {
        let conn = at_version(1);
        conn.execute_batch(
            "INSERT INTO user_tasks (key, instance, process_id, tenant, element_id, name, assignee, \
             candidate_groups, created_at) VALUES (5, 1, 'order', '<default>', 'approve', NULL, 'ada', '[\"sales\"]', 1000)",
        )
        .unwrap();
        migrate(&conn, Path::new("old"), &plain()).unwrap();
        let names = plain();
        let task = super::super::task::get(&Tables::new(&conn, &names), ElementInstanceKey(5))
            .unwrap()
            .unwrap();
        assert_eq!(task.assignee.as_deref(), Some("ada"));
        assert_eq!(task.candidate_groups, ["sales"]);
        assert_eq!(task.details, TaskDetails::default());
    }
}
