//! The stimulus queue.

use rusqlite::{OptionalExtension, params};
use tidegate_model::{StimulusKey, Timestamp};

use super::error::Trouble;
use super::names::Tables;
use super::totals::Totals;
use crate::row::{QueueDepth, StimulusRow};

/// Puts a stimulus at the end and gives it its key. Keys are never used twice, also not after the queue was empty.
pub(super) fn add(conn: &Tables<'_>, totals: &mut Totals, row: &StimulusRow) -> Result<StimulusKey, Trouble> {
    let key = totals.stimulus_high + 1;
    conn.prepare_cached(
        "INSERT INTO stimuli (key, domain, source, payload, accepted_at, attempts) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?
    .execute(params![key, row.domain, row.source, row.payload, row.accepted_at.as_ms(), row.attempts])?;
    totals.stimulus_high = key;
    totals.queued += 1;
    Ok(StimulusKey(key as u64))
}

pub(super) fn remove(conn: &Tables<'_>, totals: &mut Totals, key: StimulusKey) -> Result<(), Trouble> {
    let removed = conn
        .prepare_cached("DELETE FROM stimuli WHERE key = ?1")?
        .execute(params![key.get() as i64])?;
    totals.queued -= removed as i64;
    Ok(())
}

pub(super) fn failed(conn: &Tables<'_>, key: StimulusKey) -> Result<(), Trouble> {
    conn.prepare_cached("UPDATE stimuli SET attempts = attempts + 1 WHERE key = ?1")?
        .execute(params![key.get() as i64])?;
    Ok(())
}

pub(super) fn contains(conn: &Tables<'_>, key: StimulusKey) -> Result<bool, Trouble> {
    Ok(conn
        .prepare_cached("SELECT 1 FROM stimuli WHERE key = ?1")?
        .exists(params![key.get() as i64])?)
}

pub(super) fn list(
    conn: &Tables<'_>,
    after: Option<StimulusKey>,
    limit: usize,
) -> Result<Vec<StimulusRow>, Trouble> {
    let mut statement = conn.prepare_cached(
        "SELECT key, domain, source, payload, accepted_at, attempts FROM stimuli WHERE key > ?1 ORDER BY key LIMIT ?2",
    )?;
    let from = after.map_or(0, |key| key.get() as i64);
    let rows = statement.query_map(params![from, super::rows(limit)], |row| {
        Ok(StimulusRow {
            key: StimulusKey(row.get::<_, i64>(0)? as u64),
            domain: row.get(1)?,
            source: row.get(2)?,
            payload: row.get(3)?,
            accepted_at: Timestamp::from_ms(row.get(4)?),
            attempts: row.get(5)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

pub(super) fn depth(conn: &Tables<'_>) -> Result<QueueDepth, Trouble> {
    let oldest: Option<i64> = conn
        .prepare_cached("SELECT accepted_at FROM stimuli ORDER BY key LIMIT 1")?
        .query_row([], |row| row.get(0))
        .optional()?;
    let totals = Totals::read(conn)?;
    Ok(QueueDepth {
        depth: totals.queued as u64,
        oldest_accepted_at: oldest.map(Timestamp::from_ms),
    })
}
