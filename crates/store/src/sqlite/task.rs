//! What waits for people: user tasks and incidents.

use rusqlite::{OptionalExtension, Row, params};
use tidegate_model::{ElementInstanceKey, IncidentKey, InstanceKey, Timestamp};

use super::error::Trouble;
use super::names::Tables;
use crate::row::{IncidentFilter, IncidentRow, Page, UserTaskFilter, UserTaskRow};

pub(super) fn open(conn: &Tables<'_>, row: &UserTaskRow) -> Result<(), Trouble> {
    // Lists of texts serialize without fail, and so do texts, numbers and times.
    let groups = serde_json::to_string(&row.candidate_groups).unwrap_or_else(|_| "[]".to_owned());
    let details = serde_json::to_string(&row.details).unwrap_or_else(|_| "{}".to_owned());
    conn.prepare_cached(
        "INSERT OR REPLACE INTO user_tasks (key, instance, process_id, tenant, element_id, name, assignee, \
         candidate_groups, created_at, details) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
    )?
    .execute(params![
        row.key.get() as i64,
        row.instance.get() as i64,
        row.process_id,
        row.tenant,
        row.element_id,
        row.name,
        row.assignee,
        groups,
        row.created_at.as_ms(),
        details
    ])?;
    Ok(())
}

pub(super) fn close(conn: &Tables<'_>, key: ElementInstanceKey) -> Result<(), Trouble> {
    conn.prepare_cached("DELETE FROM user_tasks WHERE key = ?1")?
        .execute(params![key.get() as i64])?;
    Ok(())
}

const TASK: &str =
    "key, instance, process_id, tenant, element_id, name, assignee, candidate_groups, created_at, details";

pub(super) fn get(conn: &Tables<'_>, key: ElementInstanceKey) -> Result<Option<UserTaskRow>, Trouble> {
    let mut statement = conn.prepare_cached(&format!("SELECT {TASK} FROM user_tasks WHERE key = ?1"))?;
    Ok(statement
        .query_row(params![key.get() as i64], read_task)
        .optional()?)
}

pub(super) fn list(
    conn: &Tables<'_>,
    filter: &UserTaskFilter,
    page: Page,
) -> Result<Vec<UserTaskRow>, Trouble> {
    let mut sql = format!("SELECT {TASK} FROM user_tasks WHERE key < ?1 AND (?2 IS NULL OR tenant = ?2)");
    // Written out only where asked for, so that their indexes are used.
    sql.push_str(if filter.instance.is_some() {
        " AND instance = ?3"
    } else {
        " AND ?3 IS NULL"
    });
    sql.push_str(if filter.assignee.is_some() {
        " AND assignee = ?4"
    } else {
        " AND ?4 IS NULL"
    });
    sql.push_str(" ORDER BY key DESC LIMIT ?5");
    let mut statement = conn.prepare_cached(&sql)?;
    let rows = statement.query_map(
        params![
            super::before(page),
            filter.tenant,
            filter.instance.map(|key| key.get() as i64),
            filter.assignee,
            super::rows(page.limit)
        ],
        read_task,
    )?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn read_task(row: &Row<'_>) -> rusqlite::Result<UserTaskRow> {
    let (groups, details): (String, String) = (row.get(7)?, row.get(9)?);
    Ok(UserTaskRow {
        key: ElementInstanceKey(row.get::<_, i64>(0)? as u64),
        instance: InstanceKey(row.get::<_, i64>(1)? as u64),
        process_id: row.get(2)?,
        tenant: row.get(3)?,
        element_id: row.get(4)?,
        name: row.get(5)?,
        assignee: row.get(6)?,
        candidate_groups: serde_json::from_str(&groups).map_err(|cause| not_json(7, cause))?,
        details: serde_json::from_str(&details).map_err(|cause| not_json(9, cause))?,
        created_at: Timestamp::from_ms(row.get(8)?),
    })
}

fn not_json(column: usize, cause: serde_json::Error) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, Box::new(cause))
}

pub(super) fn open_incident(conn: &Tables<'_>, row: &IncidentRow) -> Result<(), Trouble> {
    conn.prepare_cached(
        "INSERT OR REPLACE INTO incidents (key, instance, process_id, tenant, element_id, element_instance, code, \
         message, raised_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )?
    .execute(params![
        row.key.get() as i64,
        row.instance.get() as i64,
        row.process_id,
        row.tenant,
        row.element_id,
        row.element_instance.map(|key| key.get() as i64),
        row.code,
        row.message,
        row.raised_at.as_ms()
    ])?;
    Ok(())
}

pub(super) fn close_incident(conn: &Tables<'_>, key: IncidentKey) -> Result<(), Trouble> {
    conn.prepare_cached("DELETE FROM incidents WHERE key = ?1")?
        .execute(params![key.get() as i64])?;
    Ok(())
}

const INCIDENT: &str =
    "key, instance, process_id, tenant, element_id, element_instance, code, message, raised_at";

pub(super) fn incident(conn: &Tables<'_>, key: IncidentKey) -> Result<Option<IncidentRow>, Trouble> {
    let mut statement = conn.prepare_cached(&format!("SELECT {INCIDENT} FROM incidents WHERE key = ?1"))?;
    Ok(statement
        .query_row(params![key.get() as i64], read_incident)
        .optional()?)
}

pub(super) fn incidents(
    conn: &Tables<'_>,
    filter: &IncidentFilter,
    page: Page,
) -> Result<Vec<IncidentRow>, Trouble> {
    let mut sql = format!(
        "SELECT {INCIDENT} FROM incidents WHERE key < ?1 AND (?2 IS NULL OR tenant = ?2) \
         AND (?3 IS NULL OR process_id = ?3)"
    );
    sql.push_str(if filter.instance.is_some() {
        " AND instance = ?4"
    } else {
        " AND ?4 IS NULL"
    });
    sql.push_str(" ORDER BY key DESC LIMIT ?5");
    let mut statement = conn.prepare_cached(&sql)?;
    let rows = statement.query_map(
        params![
            super::before(page),
            filter.tenant,
            filter.process_id,
            filter.instance.map(|key| key.get() as i64),
            super::rows(page.limit)
        ],
        read_incident,
    )?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn read_incident(row: &Row<'_>) -> rusqlite::Result<IncidentRow> {
    Ok(IncidentRow {
        key: IncidentKey(row.get::<_, i64>(0)? as u64),
        instance: InstanceKey(row.get::<_, i64>(1)? as u64),
        process_id: row.get(2)?,
        tenant: row.get(3)?,
        element_id: row.get(4)?,
        element_instance: row
            .get::<_, Option<i64>>(5)?
            .map(|key| ElementInstanceKey(key as u64)),
        code: row.get(6)?,
        message: row.get(7)?,
        raised_at: Timestamp::from_ms(row.get(8)?),
    })
}
