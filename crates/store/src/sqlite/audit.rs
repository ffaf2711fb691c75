//! The audit trail.

use rusqlite::params;
use tidegate_model::Timestamp;

use super::error::Trouble;
use super::names::Tables;
use crate::row::{AuditRow, Page};

pub(super) fn append(conn: &Tables<'_>, row: &AuditRow) -> Result<(), Trouble> {
    conn.prepare_cached(
        "INSERT INTO audit (time, action, actor, reason, shell, subject, before, after, outcome, scope, request_id) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
    )?
    .execute(params![
        row.time.as_ms(),
        row.action,
        row.actor,
        row.reason,
        row.shell,
        row.subject,
        row.before,
        row.after,
        row.outcome,
        row.scope,
        row.request_id
    ])?;
    Ok(())
}

pub(super) fn list(conn: &Tables<'_>, page: Page) -> Result<Vec<AuditRow>, Trouble> {
    let mut statement = conn.prepare_cached(
        "SELECT key, time, action, actor, reason, shell, subject, before, after, outcome, scope, request_id \
         FROM audit WHERE key < ?1 ORDER BY key DESC LIMIT ?2",
    )?;
    let rows = statement.query_map(params![super::before(page), super::rows(page.limit)], |row| {
        Ok(AuditRow {
            key: row.get::<_, i64>(0)? as u64,
            time: Timestamp::from_ms(row.get(1)?),
            action: row.get(2)?,
            actor: row.get(3)?,
            reason: row.get(4)?,
            shell: row.get(5)?,
            subject: row.get(6)?,
            before: row.get(7)?,
            after: row.get(8)?,
            outcome: row.get(9)?,
            scope: row.get(10)?,
            request_id: row.get(11)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}
