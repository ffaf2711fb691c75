//! Jobs for external workers, and their leases.

use std::sync::Arc;

use rusqlite::{OptionalExtension, Row, params};
use tidegate_model::{DefinitionKey, ElementInstanceKey, InstanceKey, Timestamp};

use super::error::Trouble;
use super::names::Tables;
use crate::commit::Outcome;
use crate::row::{JobRow, JobState, LeaseRequest};

const AVAILABLE: u8 = 0;
const LEASED: u8 = 1;
const REPORTED: u8 = 2;
const WITHHELD: u8 = 3;
const LEASED_WITHHELD: u8 = 4;

const COLUMNS: &str = "key, instance, definition, process_id, tenant, element_id, job_type, headers, variables, \
                       retries, state, not_before, worker, lease_token, lease_until";

pub(super) fn open(conn: &Tables<'_>, row: &JobRow) -> Result<(), Trouble> {
    conn.prepare_cached(
        "INSERT OR REPLACE INTO jobs (key, instance, definition, process_id, tenant, element_id, job_type, headers, \
         variables, retries, state, not_before, worker, lease_token, lease_until) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
    )?
    .execute(params![
        row.key.get() as i64,
        row.instance.get() as i64,
        row.definition.get() as i64,
        row.process_id,
        row.tenant,
        row.element_id,
        row.job_type,
        row.headers,
        row.variables,
        row.retries,
        match row.state {
            JobState::Available => AVAILABLE,
            JobState::Leased => LEASED,
            JobState::Reported => REPORTED,
            JobState::Withheld => WITHHELD,
            JobState::LeasedWithheld => LEASED_WITHHELD,
        },
        row.not_before.as_ms(),
        row.worker,
        row.lease_token,
        row.lease_until.map(Timestamp::as_ms)
    ])?;
    Ok(())
}

pub(super) fn report(conn: &Tables<'_>, key: ElementInstanceKey) -> Result<(), Trouble> {
    conn.prepare_cached("UPDATE jobs SET state = 2 WHERE key = ?1")?
        .execute(params![key.get() as i64])?;
    Ok(())
}

pub(super) fn withhold(conn: &Tables<'_>, key: ElementInstanceKey) -> Result<(), Trouble> {
    conn.prepare_cached(
        "UPDATE jobs SET state = CASE state WHEN 0 THEN 3 ELSE 4 END WHERE key = ?1 AND (state = 0 OR state = 1)",
    )?
    .execute(params![key.get() as i64])?;
    Ok(())
}

pub(super) fn offer(conn: &Tables<'_>, key: ElementInstanceKey) -> Result<(), Trouble> {
    conn.prepare_cached(
        "UPDATE jobs SET state = CASE state WHEN 3 THEN 0 ELSE 1 END WHERE key = ?1 AND (state = 3 OR state = 4)",
    )?
    .execute(params![key.get() as i64])?;
    Ok(())
}

pub(super) fn close(conn: &Tables<'_>, key: ElementInstanceKey) -> Result<(), Trouble> {
    conn.prepare_cached("DELETE FROM jobs WHERE key = ?1")?
        .execute(params![key.get() as i64])?;
    Ok(())
}

/// True if the job is leased with this token, and no outcome was reported yet.
pub(super) fn is_leased(conn: &Tables<'_>, key: ElementInstanceKey, token: &str) -> Result<bool, Trouble> {
    Ok(conn
        .prepare_cached(
            "SELECT 1 FROM jobs WHERE key = ?1 AND (state = 1 OR state = 4) AND lease_token = ?2",
        )?
        .exists(params![key.get() as i64, token])?)
}

pub(super) fn get(conn: &Tables<'_>, key: ElementInstanceKey) -> Result<Option<JobRow>, Trouble> {
    let mut statement = conn.prepare_cached(&format!("SELECT {COLUMNS} FROM jobs WHERE key = ?1"))?;
    Ok(statement.query_row(params![key.get() as i64], read).optional()?)
}

/// Leases the oldest free jobs: those available, and those whose lease has ended.
pub(super) fn lease(conn: &Tables<'_>, request: &LeaseRequest, outcome: &mut Outcome) -> Result<(), Trouble> {
    let find = |is_free: &str| find(conn, request, is_free);
    let mut free = find("state = 0 AND not_before <= ?3")?;
    let lapsed = find("state = 1 AND (lease_until IS NULL OR lease_until <= ?3)")?;
    free.extend(&lapsed);
    free.sort_unstable();
    free.truncate(request.limit);
    let mut statement = conn.prepare_cached(&format!(
        "UPDATE jobs SET state = 1, worker = ?2, lease_token = ?3, lease_until = ?4 WHERE key = ?1 RETURNING {COLUMNS}"
    ))?;
    for key in free {
        let asked = params![
            key,
            request.worker,
            request.lease_token,
            request.lease_until.as_ms()
        ];
        outcome.leased.push(statement.query_row(asked, read)?);
        if lapsed.contains(&key) {
            outcome.lapsed.push(ElementInstanceKey(key as u64));
        }
    }
    Ok(())
}

/// The oldest jobs that are free in this way.
fn find(conn: &Tables<'_>, request: &LeaseRequest, is_free: &str) -> Result<Vec<i64>, Trouble> {
    // Rarely is anything excepted: then nothing is asked about it.
    let except = match request.except.is_empty() {
        true => "",
        false => "AND process_id NOT IN (SELECT value FROM json_each(?5))",
    };
    let mut statement = conn.prepare_cached(&format!(
        "SELECT key FROM jobs WHERE {is_free} AND job_type = ?1 AND tenant = ?2 {except} ORDER BY key LIMIT ?4"
    ))?;
    let (now, limit) = (request.now.as_ms(), super::rows(request.limit));
    let key = |row: &Row<'_>| row.get(0);
    let found = match request.except.is_empty() {
        true => statement.query_map(params![request.job_type, request.tenant, now, limit], key)?,
        false => {
            let except = serde_json::to_string(&request.except).unwrap_or_default();
            statement.query_map(params![request.job_type, request.tenant, now, limit, except], key)?
        }
    };
    Ok(found.collect::<Result<_, _>>()?)
}

fn read(row: &Row<'_>) -> rusqlite::Result<JobRow> {
    Ok(JobRow {
        key: ElementInstanceKey(row.get::<_, i64>(0)? as u64),
        instance: InstanceKey(row.get::<_, i64>(1)? as u64),
        definition: DefinitionKey(row.get::<_, i64>(2)? as u64),
        process_id: row.get::<_, Arc<str>>(3)?,
        tenant: row.get(4)?,
        element_id: row.get(5)?,
        job_type: row.get(6)?,
        headers: row.get(7)?,
        variables: row.get(8)?,
        retries: row.get(9)?,
        state: match row.get(10)? {
            AVAILABLE => JobState::Available,
            LEASED => JobState::Leased,
            REPORTED => JobState::Reported,
            WITHHELD => JobState::Withheld,
            LEASED_WITHHELD => JobState::LeasedWithheld,
            other => return Err(rusqlite::Error::IntegralValueOutOfRange(10, i64::from(other))),
        },
        not_before: Timestamp::from_ms(row.get(11)?),
        worker: row.get(12)?,
        lease_token: row.get(13)?,
        lease_until: row.get::<_, Option<i64>>(14)?.map(Timestamp::from_ms),
    })
}
