//! Armed timers.

use rusqlite::{OptionalExtension, params};
use tidegate_model::{ElementIndex, InstanceKey, Timestamp};

use super::error::Trouble;
use super::names::Tables;
use crate::row::TimerRow;

pub(super) fn arm(conn: &Tables<'_>, row: &TimerRow) -> Result<(), Trouble> {
    conn.prepare_cached(
        "INSERT INTO timers (owner, element, due_at, instance, fired) VALUES (?1, ?2, ?3, ?4, ?5) \
         ON CONFLICT (owner, element) DO UPDATE SET due_at = ?3, instance = ?4, fired = ?5",
    )?
    .execute(params![
        row.owner as i64,
        row.element.0,
        row.due_at.as_ms(),
        row.instance.map(|key| key.get() as i64),
        row.fired
    ])?;
    Ok(())
}

pub(super) fn disarm(conn: &Tables<'_>, owner: u64, element: ElementIndex) -> Result<(), Trouble> {
    conn.prepare_cached("DELETE FROM timers WHERE owner = ?1 AND element = ?2")?
        .execute(params![owner as i64, element.0])?;
    Ok(())
}

/// When an armed timer is due.
pub(super) fn due_at(
    conn: &Tables<'_>,
    owner: u64,
    element: ElementIndex,
) -> Result<Option<Timestamp>, Trouble> {
    let mut statement = conn.prepare_cached("SELECT due_at FROM timers WHERE owner = ?1 AND element = ?2")?;
    let due_at = statement.query_row(params![owner as i64, element.0], |row| row.get(0));
    Ok(due_at.optional()?.map(Timestamp::from_ms))
}

pub(super) fn due(
    conn: &Tables<'_>,
    until: Timestamp,
    after: Option<&TimerRow>,
    limit: usize,
) -> Result<Vec<TimerRow>, Trouble> {
    let mut statement = conn.prepare_cached(
        "SELECT due_at, owner, element, instance, fired FROM timers \
         WHERE due_at <= ?1 AND (due_at, owner, element) > (?2, ?3, ?4) ORDER BY due_at, owner, element LIMIT ?5",
    )?;
    let (due_at, owner, element) = after.map_or((i64::MIN, -1, -1), |row| {
        (row.due_at.as_ms(), row.owner as i64, i64::from(row.element.0))
    });
    let rows = statement.query_map(
        params![until.as_ms(), due_at, owner, element, super::rows(limit)],
        |row| {
            Ok(TimerRow {
                due_at: Timestamp::from_ms(row.get(0)?),
                owner: row.get::<_, i64>(1)? as u64,
                element: ElementIndex(row.get(2)?),
                instance: row.get::<_, Option<i64>>(3)?.map(|key| InstanceKey(key as u64)),
                fired: row.get(4)?,
            })
        },
    )?;
    Ok(rows.collect::<Result<_, _>>()?)
}
