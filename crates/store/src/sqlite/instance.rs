//! Process instances: their rows and states.

use rusqlite::types::Value;
use rusqlite::{OptionalExtension, Row, params, params_from_iter};
use tidegate_model::{DefinitionKey, ElementInstanceKey, InstanceKey, SubStatus, Timestamp};

use super::error::Trouble;
use super::journal;
use super::names::Tables;
use super::totals::Totals;
use crate::row::{InstanceFilter, InstanceRow, InstanceUpdate, Page, StoredInstance};

/// States up to this size stand in the instance's row. Larger ones would make each update of the row move them.
const INLINE_BYTES: usize = 1024;

/// The conditions of the partial indexes, word by word.
const RECOVERABLE: &str = "sub_status = 1 OR sub_status = 3 OR sub_status = 5";
const WAITING: &str = "sub_status = 0 OR sub_status = 4";

const COLUMNS: &str = "key, definition, process_id, version, tenant, business_key, parent, revision, sub_status, \
                       incident_count, attempts, started_at, ended_at, parent_element, depth, enclosing";

/// Creates the row. False if the key is taken: then nothing was written.
pub(super) fn create(
    conn: &Tables<'_>,
    totals: &mut Totals,
    row: &InstanceRow,
    state: Option<&[u8]>,
) -> Result<bool, Trouble> {
    let is_split = state.is_some_and(|state| state.len() > INLINE_BYTES);
    let state_revision = if state.is_some() { row.revision } else { 0 };
    let created = conn
        .prepare_cached(
            "INSERT INTO instances (key, revision, sub_status, incident_count, attempts, state_revision, is_split, \
             ended_at, started_at, definition, version, parent, process_id, tenant, business_key, state, \
             parent_element, depth, enclosing) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19) \
             ON CONFLICT (key) DO NOTHING",
        )?
        .execute(params![
            row.key.get() as i64,
            row.revision as i64,
            row.sub_status.code(),
            row.incident_count,
            row.attempts,
            state_revision as i64,
            is_split,
            row.ended_at.map(Timestamp::as_ms),
            row.started_at.as_ms(),
            row.definition.get() as i64,
            row.version,
            row.parent.map(|key| key.get() as i64),
            row.process_id,
            row.tenant,
            row.business_key,
            if is_split { None } else { state },
            row.parent_element.map(|key| key.get() as i64),
            row.depth,
            bytes_of(&row.enclosing),
        ])?;
    if created == 0 {
        return Ok(false);
    }
    if let (true, Some(state)) = (is_split, state) {
        keep_split(conn, row.key, state)?;
    }
    totals.instances[usize::from(row.sub_status.code())] += 1;
    Ok(true)
}

/// Makes the next revision. False if the row has another one, or is not there: then nothing was written.
pub(super) fn update(
    conn: &Tables<'_>,
    totals: &mut Totals,
    update: &InstanceUpdate,
) -> Result<bool, Trouble> {
    // Read first, then written without a condition: `RETURNING` would tell the same in one statement, and opens a
    // table of its own for it, which costs more than the whole update.
    let key = update.key.get() as i64;
    let found: Option<(i64, u8, bool)> = conn
        .prepare_cached("SELECT revision, sub_status, is_split FROM instances WHERE key = ?1")?
        .query_row(params![key], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .optional()?;
    let Some((revision, was, was_split)) = found else {
        return Ok(false);
    };
    if update.revision.checked_sub(1) != Some(revision as u64) {
        return Ok(false);
    }
    let ended_at = update.ended_at.map(Timestamp::as_ms);
    match &update.state {
        None => {
            conn.prepare_cached(
                "UPDATE instances SET revision = ?2, sub_status = ?3, incident_count = ?4, attempts = ?5, ended_at = ?6 \
                 WHERE key = ?1",
            )?
            .execute(params![
                key,
                update.revision as i64,
                update.sub_status.code(),
                update.incident_count,
                update.attempts,
                ended_at
            ])?;
        }
        Some(state) => {
            let is_split = state.len() > INLINE_BYTES;
            conn.prepare_cached(
                "UPDATE instances SET revision = ?2, sub_status = ?3, incident_count = ?4, attempts = ?5, ended_at = ?6, \
                 state_revision = ?2, is_split = ?7, state = ?8 WHERE key = ?1",
            )?
            .execute(params![
                key,
                update.revision as i64,
                update.sub_status.code(),
                update.incident_count,
                update.attempts,
                ended_at,
                is_split,
                if is_split { None } else { Some(state.as_slice()) }
            ])?;
            if is_split {
                keep_split(conn, update.key, state)?;
            } else if was_split {
                conn.prepare_cached("DELETE FROM snapshots WHERE instance = ?1")?
                    .execute(params![key])?;
            }
        }
    }
    let Some(count) = totals.instances.get_mut(usize::from(was)) else {
        return Err(Trouble::Damaged(format!(
            "instance {} has the unknown sub-status {was}",
            update.key
        )));
    };
    *count -= 1;
    totals.instances[usize::from(update.sub_status.code())] += 1;
    Ok(true)
}

/// Gives the instance another definition of its process.
pub(super) fn change_definition(
    conn: &Tables<'_>,
    key: InstanceKey,
    definition: DefinitionKey,
    version: u32,
) -> Result<(), Trouble> {
    conn.prepare_cached("UPDATE instances SET definition = ?2, version = ?3 WHERE key = ?1")?
        .execute(params![key.get() as i64, definition.get() as i64, version])?;
    Ok(())
}

/// The revision an instance has.
pub(super) fn revision(conn: &Tables<'_>, key: InstanceKey) -> Result<Option<u64>, Trouble> {
    let mut statement = conn.prepare_cached("SELECT revision FROM instances WHERE key = ?1")?;
    let found: Option<i64> = statement
        .query_row(params![key.get() as i64], |row| row.get(0))
        .optional()?;
    Ok(found.map(|revision| revision as u64))
}

/// True if the instance is there and has not ended.
pub(super) fn is_live(conn: &Tables<'_>, key: InstanceKey) -> Result<bool, Trouble> {
    let mut statement = conn.prepare_cached("SELECT sub_status FROM instances WHERE key = ?1")?;
    let code: Option<u8> = statement
        .query_row(params![key.get() as i64], |row| row.get(0))
        .optional()?;
    Ok(code
        .and_then(SubStatus::from_code)
        .is_some_and(|sub_status| !sub_status.is_finished()))
}

/// The row, the state and the journal after it. The caller reads them in one transaction.
pub(super) fn load(conn: &Tables<'_>, key: InstanceKey) -> Result<Option<StoredInstance>, Trouble> {
    let mut statement = conn.prepare_cached(&format!(
        "SELECT {COLUMNS}, state_revision, is_split, state, trimmed FROM instances WHERE key = ?1"
    ))?;
    let found = statement
        .query_row(params![key.get() as i64], |row| {
            let state: Option<Vec<u8>> = row.get(18)?;
            Ok((
                read(row)?,
                row.get::<_, i64>(16)? as u64,
                row.get::<_, bool>(17)?,
                state,
                row.get::<_, i64>(19)? as u64,
            ))
        })
        .optional()?;
    let Some((row, state_revision, is_split, mut state, trimmed)) = found else {
        return Ok(None);
    };
    if is_split {
        let mut statement = conn.prepare_cached("SELECT state FROM snapshots WHERE instance = ?1")?;
        state = statement
            .query_row(params![key.get() as i64], |row| row.get(0))
            .optional()?;
        if state.is_none() {
            return Err(Trouble::Damaged(format!(
                "the state of instance {key} is missing"
            )));
        }
    }
    let journal = journal::after(conn, key, state_revision, usize::MAX)?;
    Ok(Some(StoredInstance {
        row,
        state,
        journal,
        trimmed,
    }))
}

pub(super) fn get(conn: &Tables<'_>, key: InstanceKey) -> Result<Option<InstanceRow>, Trouble> {
    let mut statement = conn.prepare_cached(&format!("SELECT {COLUMNS} FROM instances WHERE key = ?1"))?;
    Ok(statement.query_row(params![key.get() as i64], read).optional()?)
}

pub(super) fn recoverable(
    conn: &Tables<'_>,
    after: Option<InstanceKey>,
    limit: usize,
) -> Result<Vec<InstanceRow>, Trouble> {
    // Names its index: without it a start would read every parked instance.
    let mut statement = conn.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM instances INDEXED BY instances_recoverable \
         WHERE ({RECOVERABLE}) AND key > ?1 ORDER BY key LIMIT ?2"
    ))?;
    let rows = statement.query_map(
        params![after.map_or(-1, |key| key.get() as i64), super::rows(limit)],
        read,
    )?;
    Ok(rows.collect::<Result<_, _>>()?)
}

pub(super) fn list(
    conn: &Tables<'_>,
    filter: &InstanceFilter,
    page: Page,
) -> Result<Vec<InstanceRow>, Trouble> {
    let mut sql = format!("SELECT {COLUMNS} FROM instances WHERE key < ?");
    let mut values = vec![Value::Integer(super::before(page))];
    let mut also = |condition: &str, value: Option<Value>| {
        sql.push_str(" AND ");
        sql.push_str(condition);
        values.extend(value);
    };
    if !filter.sub_statuses.is_empty() {
        let codes: Vec<String> = filter.sub_statuses.iter().map(|s| s.code().to_string()).collect();
        also(&format!("sub_status IN ({})", codes.join(", ")), None);
        // Lets the planner see that a partial index holds all of them.
        for (group, condition) in [([1, 3, 5].as_slice(), RECOVERABLE), (&[0, 4], WAITING)] {
            if filter.sub_statuses.iter().all(|s| group.contains(&s.code())) {
                also(&format!("({condition})"), None);
            }
        }
    }
    if let Some(id) = &filter.process_id {
        also("process_id = ?", Some(Value::Text(id.clone())));
    }
    if let Some(key) = filter.definition {
        also("definition = ?", Some(Value::Integer(key.get() as i64)));
    }
    if let Some(key) = &filter.business_key {
        also("business_key = ?", Some(Value::Text(key.clone())));
    }
    if let Some(key) = filter.parent {
        also("parent = ?", Some(Value::Integer(key.get() as i64)));
    }
    match filter.has_incident {
        Some(true) => also("incident_count > 0", None),
        Some(false) => also("incident_count = 0", None),
        None => {}
    }
    if let Some(at) = filter.started_after {
        also("started_at >= ?", Some(Value::Integer(at.as_ms())));
    }
    if let Some(at) = filter.started_before {
        also("started_at < ?", Some(Value::Integer(at.as_ms())));
    }
    if let Some(tenant) = &filter.tenant {
        also("tenant = ?", Some(Value::Text(tenant.clone())));
    }
    sql.push_str(" ORDER BY key DESC LIMIT ?");
    values.push(Value::Integer(super::rows(page.limit)));
    let mut statement = conn.prepare_cached(&sql)?;
    let rows = statement.query_map(params_from_iter(values), read)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn keep_split(conn: &Tables<'_>, key: InstanceKey, state: &[u8]) -> Result<(), Trouble> {
    conn.prepare_cached("INSERT OR REPLACE INTO snapshots (instance, state) VALUES (?1, ?2)")?
        .execute(params![key.get() as i64, state])?;
    Ok(())
}

fn read(row: &Row<'_>) -> rusqlite::Result<InstanceRow> {
    let code: u8 = row.get(8)?;
    Ok(InstanceRow {
        key: InstanceKey(row.get::<_, i64>(0)? as u64),
        definition: DefinitionKey(row.get::<_, i64>(1)? as u64),
        process_id: row.get(2)?,
        version: row.get(3)?,
        tenant: row.get(4)?,
        business_key: row.get(5)?,
        parent: row.get::<_, Option<i64>>(6)?.map(|key| InstanceKey(key as u64)),
        parent_element: row
            .get::<_, Option<i64>>(13)?
            .map(|key| ElementInstanceKey(key as u64)),
        depth: row.get(14)?,
        enclosing: keys_of(row.get(15)?),
        revision: row.get::<_, i64>(7)? as u64,
        sub_status: SubStatus::from_code(code)
            .ok_or(rusqlite::Error::IntegralValueOutOfRange(8, i64::from(code)))?,
        incident_count: row.get(9)?,
        attempts: row.get(10)?,
        started_at: Timestamp::from_ms(row.get(11)?),
        ended_at: row.get::<_, Option<i64>>(12)?.map(Timestamp::from_ms),
    })
}

/// Most instances are called by nobody, or from the top of a process: they have no bytes.
fn bytes_of(keys: &[ElementInstanceKey]) -> Option<Vec<u8>> {
    (!keys.is_empty()).then(|| keys.iter().flat_map(|key| key.get().to_be_bytes()).collect())
}

fn keys_of(bytes: Option<Vec<u8>>) -> Vec<ElementInstanceKey> {
    let bytes = bytes.unwrap_or_default();
    let keys = bytes.as_chunks().0.iter();
    keys.map(|key| ElementInstanceKey(u64::from_be_bytes(*key)))
        .collect()
}
