//! Operations on many instances, and what became of each.

use rusqlite::{OptionalExtension, Row, params};
use tidegate_model::{InstanceKey, Timestamp};

use super::error::Trouble;
use super::names::Tables;
use crate::commit::Outcome;
use crate::forget::{OperationItemRow, OperationRow};
use crate::row::Page;

pub(super) fn put(conn: &Tables<'_>, row: &OperationRow) -> Result<(), Trouble> {
    conn.prepare_cached("INSERT OR REPLACE INTO operations (key, ended_at, body) VALUES (?1, ?2, ?3)")?
        .execute(params![
            row.key as i64,
            row.ended_at.map(Timestamp::as_ms),
            row.body
        ])?;
    Ok(())
}

pub(super) fn put_item(conn: &Tables<'_>, row: &OperationItemRow) -> Result<(), Trouble> {
    conn.prepare_cached(
        "INSERT OR REPLACE INTO operation_items (operation, instance, outcome, detail) VALUES (?1, ?2, ?3, ?4)",
    )?
    .execute(params![
        row.operation as i64,
        row.instance.get() as i64,
        row.outcome,
        row.detail
    ])?;
    Ok(())
}

pub(super) fn remove(
    conn: &Tables<'_>,
    key: u64,
    limit: usize,
    outcome: &mut Outcome,
) -> Result<(), Trouble> {
    let items = conn
        .prepare_cached(
            "DELETE FROM operation_items WHERE operation = ?1 AND instance IN \
             (SELECT instance FROM operation_items WHERE operation = ?1 ORDER BY instance LIMIT ?2)",
        )?
        .execute(params![key as i64, super::rows(limit)])?;
    outcome.removed += items as u64;
    if items < limit {
        outcome.removed += conn
            .prepare_cached("DELETE FROM operations WHERE key = ?1 AND ended_at IS NOT NULL")?
            .execute(params![key as i64])? as u64;
    }
    Ok(())
}

pub(super) fn open(conn: &Tables<'_>) -> Result<Vec<OperationRow>, Trouble> {
    let mut statement = conn
        .prepare_cached("SELECT key, ended_at, body FROM operations WHERE ended_at IS NULL ORDER BY key")?;
    let rows = statement.query_map([], read)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

pub(super) fn list(conn: &Tables<'_>, page: Page) -> Result<Vec<OperationRow>, Trouble> {
    let mut statement = conn.prepare_cached(
        "SELECT key, ended_at, body FROM operations WHERE key < ?1 ORDER BY key DESC LIMIT ?2",
    )?;
    let rows = statement.query_map(params![super::before(page), super::rows(page.limit)], read)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

pub(super) fn get(conn: &Tables<'_>, key: u64) -> Result<Option<OperationRow>, Trouble> {
    let mut statement = conn.prepare_cached("SELECT key, ended_at, body FROM operations WHERE key = ?1")?;
    Ok(statement.query_row(params![key as i64], read).optional()?)
}

pub(super) fn items(
    conn: &Tables<'_>,
    operation: u64,
    outcome: Option<&str>,
    after: Option<InstanceKey>,
    limit: usize,
) -> Result<Vec<OperationItemRow>, Trouble> {
    let mut statement = conn.prepare_cached(
        "SELECT instance, outcome, detail FROM operation_items WHERE operation = ?1 AND instance > ?2 \
         AND (?3 IS NULL OR outcome = ?3) ORDER BY instance LIMIT ?4",
    )?;
    let from = after.map_or(-1, |key| key.get() as i64);
    let bounds = params![operation as i64, from, outcome, super::rows(limit)];
    let rows = statement.query_map(bounds, |row| {
        Ok(OperationItemRow {
            operation,
            instance: InstanceKey(row.get::<_, i64>(0)? as u64),
            outcome: row.get(1)?,
            detail: row.get(2)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn read(row: &Row<'_>) -> rusqlite::Result<OperationRow> {
    Ok(OperationRow {
        key: row.get::<_, i64>(0)? as u64,
        ended_at: row.get::<_, Option<i64>>(1)?.map(Timestamp::from_ms),
        body: row.get(2)?,
    })
}
