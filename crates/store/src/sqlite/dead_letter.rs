//! Stimuli that were put aside.

use rusqlite::{OptionalExtension, Row, params};
use tidegate_model::{StimulusKey, Timestamp};

use super::error::Trouble;
use super::names::Tables;
use crate::row::{DeadLetterRow, Page, StimulusRow};

const COLUMNS: &str = "key, domain, source, payload, accepted_at, attempts, code, error, died_at";

pub(super) fn add(conn: &Tables<'_>, row: &DeadLetterRow) -> Result<(), Trouble> {
    let stimulus = &row.stimulus;
    conn.prepare_cached(
        "INSERT OR REPLACE INTO dead_letters (key, domain, source, payload, accepted_at, attempts, code, error, died_at) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )?
    .execute(params![
        stimulus.key.get() as i64,
        stimulus.domain,
        stimulus.source,
        stimulus.payload,
        stimulus.accepted_at.as_ms(),
        stimulus.attempts,
        row.code,
        row.error,
        row.died_at.as_ms()
    ])?;
    Ok(())
}

pub(super) fn remove(conn: &Tables<'_>, key: StimulusKey) -> Result<(), Trouble> {
    conn.prepare_cached("DELETE FROM dead_letters WHERE key = ?1")?
        .execute(params![key.get() as i64])?;
    Ok(())
}

pub(super) fn contains(conn: &Tables<'_>, key: StimulusKey) -> Result<bool, Trouble> {
    Ok(conn
        .prepare_cached("SELECT 1 FROM dead_letters WHERE key = ?1")?
        .exists(params![key.get() as i64])?)
}

pub(super) fn get(conn: &Tables<'_>, key: StimulusKey) -> Result<Option<DeadLetterRow>, Trouble> {
    let mut statement = conn.prepare_cached(&format!("SELECT {COLUMNS} FROM dead_letters WHERE key = ?1"))?;
    Ok(statement.query_row(params![key.get() as i64], read).optional()?)
}

pub(super) fn list(conn: &Tables<'_>, page: Page) -> Result<Vec<DeadLetterRow>, Trouble> {
    let mut statement = conn.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM dead_letters WHERE key < ?1 ORDER BY key DESC LIMIT ?2"
    ))?;
    let rows = statement.query_map(params![super::before(page), super::rows(page.limit)], read)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn read(row: &Row<'_>) -> rusqlite::Result<DeadLetterRow> {
    Ok(DeadLetterRow {
        stimulus: StimulusRow {
            key: StimulusKey(row.get::<_, i64>(0)? as u64),
            domain: row.get(1)?,
            source: row.get(2)?,
            payload: row.get(3)?,
            accepted_at: Timestamp::from_ms(row.get(4)?),
            attempts: row.get(5)?,
        },
        code: row.get(6)?,
        error: row.get(7)?,
        died_at: Timestamp::from_ms(row.get(8)?),
    })
}
