//! The journal: append-only by row id, unique by (instance, revision).

use rusqlite::params;
use tidegate_model::InstanceKey;

use super::error::Trouble;
use super::names::Tables;
use crate::row::JournalRow;

pub(super) fn append(conn: &Tables<'_>, row: &JournalRow) -> Result<(), Trouble> {
    conn.prepare_cached(
        "INSERT INTO journal (instance, revision, first_sequence, payload) VALUES (?1, ?2, ?3, ?4)",
    )?
    .execute(params![
        row.instance.get() as i64,
        row.revision as i64,
        row.first_sequence as i64,
        row.payload
    ])?;
    Ok(())
}

pub(super) fn after(
    conn: &Tables<'_>,
    instance: InstanceKey,
    after: u64,
    limit: usize,
) -> Result<Vec<JournalRow>, Trouble> {
    let mut statement = conn.prepare_cached(
        "SELECT revision, first_sequence, payload FROM journal WHERE instance = ?1 AND revision > ?2 ORDER BY revision \
         LIMIT ?3",
    )?;
    let bounds = params![
        instance.get() as i64,
        after.min(i64::MAX as u64) as i64,
        super::rows(limit)
    ];
    let rows = statement.query_map(bounds, |row| {
        Ok(JournalRow {
            instance,
            revision: row.get::<_, i64>(0)? as u64,
            first_sequence: row.get::<_, i64>(1)? as u64,
            payload: row.get(2)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}
