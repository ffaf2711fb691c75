//! Key-value entries.

use rusqlite::{OptionalExtension, params};
use tidegate_model::Timestamp;

use super::error::Trouble;
use super::names::Tables;

pub(super) fn get(conn: &Tables<'_>, key: &str, now: Timestamp) -> Result<Option<Vec<u8>>, Trouble> {
    let mut statement = conn.prepare_cached(
        "SELECT value FROM entries WHERE key = ?1 AND (expires_at IS NULL OR expires_at > ?2)",
    )?;
    Ok(statement
        .query_row(params![key, now.as_ms()], |row| row.get(0))
        .optional()?)
}

pub(super) fn set(
    conn: &Tables<'_>,
    key: &str,
    value: &[u8],
    expires_at: Option<Timestamp>,
) -> Result<(), Trouble> {
    conn.prepare_cached(
        "INSERT INTO entries (key, value, expires_at) VALUES (?1, ?2, ?3) \
         ON CONFLICT (key) DO UPDATE SET value = ?2, expires_at = ?3",
    )?
    .execute(params![key, value, expires_at.map(Timestamp::as_ms)])?;
    Ok(())
}

pub(super) fn remove(conn: &Tables<'_>, key: &str) -> Result<(), Trouble> {
    conn.prepare_cached("DELETE FROM entries WHERE key = ?1")?
        .execute(params![key])?;
    Ok(())
}

/// Clears away entries that nobody sees any more.
pub(super) fn purge(conn: &Tables<'_>, now: Timestamp, limit: usize) -> Result<(), Trouble> {
    conn.prepare_cached(
        "DELETE FROM entries WHERE key IN \
         (SELECT key FROM entries WHERE expires_at IS NOT NULL AND expires_at <= ?1 ORDER BY expires_at LIMIT ?2)",
    )?
    .execute(params![now.as_ms(), super::rows(limit)])?;
    Ok(())
}
