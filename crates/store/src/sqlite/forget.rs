//! Forgetting: the rows of an instance in every table, the fence that stays, and trimming.

use rusqlite::{OptionalExtension, params};
use tidegate_model::{DefinitionKey, InstanceKey, StimulusKey, SubStatus, Timestamp};

use super::error::{Stop, Trouble};
use super::names::Tables;
use super::totals::Totals;
use crate::commit::{Outcome, Refusal};
use crate::forget::{EndedRow, ForgetRequest, ForgottenJournal, ForgottenRow, Unforgettable};

/// The tables whose rows belong to one instance and go with it. The journal goes in slices.
const OF_AN_INSTANCE: &[&str] = &[
    "DELETE FROM snapshots WHERE instance = ?1",
    "DELETE FROM timers WHERE instance = ?1",
    "DELETE FROM subscriptions WHERE instance = ?1",
    "DELETE FROM jobs WHERE instance = ?1",
    "DELETE FROM user_tasks WHERE instance = ?1",
    "DELETE FROM incidents WHERE instance = ?1",
];

/// Refuses what is live, unknown, or has called somebody who would be left behind.
pub(super) fn check(conn: &Tables<'_>, instances: &[InstanceKey]) -> Result<(), Stop> {
    for instance in instances {
        let why = why_not(conn, *instance, instances)?;
        if let Some(why) = why {
            let instance = *instance;
            return Err(Stop::Refused(Refusal::NotForgettable { instance, why }));
        }
    }
    Ok(())
}

fn why_not(
    conn: &Tables<'_>,
    instance: InstanceKey,
    all: &[InstanceKey],
) -> Result<Option<Unforgettable>, Trouble> {
    let Some(sub_status) = sub_status(conn, instance)? else {
        let is_kept = get(conn, instance)?.is_some_and(|row| row.journal == ForgottenJournal::Kept);
        return Ok((!is_kept).then_some(Unforgettable::Unknown));
    };
    if !SubStatus::from_code(sub_status).is_some_and(SubStatus::is_finished) {
        return Ok(Some(Unforgettable::Live));
    }
    let mut statement = conn.prepare_cached("SELECT key FROM instances WHERE parent = ?1 ORDER BY key")?;
    let mut called = statement.query(params![instance.get() as i64])?;
    while let Some(row) = called.next()? {
        let key = InstanceKey(row.get::<_, i64>(0)? as u64);
        if !all.contains(&key) {
            return Ok(Some(Unforgettable::Called(key)));
        }
    }
    Ok(None)
}

fn sub_status(conn: &Tables<'_>, instance: InstanceKey) -> Result<Option<u8>, Trouble> {
    Ok(conn
        .prepare_cached("SELECT sub_status FROM instances WHERE key = ?1")?
        .query_row(params![instance.get() as i64], |row| row.get(0))
        .optional()?)
}

/// Removes the instances, and of their journals as much as the request allows.
pub(super) fn forget(
    conn: &Tables<'_>,
    totals: &mut Totals,
    request: &ForgetRequest,
    outcome: &mut Outcome,
) -> Result<(), Trouble> {
    let journal = match request.keeps_journal {
        true => ForgottenJournal::Kept,
        false => ForgottenJournal::Going,
    };
    for instance in &request.instances {
        let key = instance.get() as i64;
        let found: Option<(i64, u8)> = conn
            .prepare_cached("SELECT definition, sub_status FROM instances WHERE key = ?1")?
            .query_row(params![key], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        let Some((definition, sub_status)) = found else {
            if !request.keeps_journal {
                // Its journal was kept so far.
                conn.prepare_cached(
                    "UPDATE forgotten SET journal = 1, expires_at = ?2 WHERE instance = ?1 AND journal = 2",
                )?
                .execute(params![key, request.fenced_until.as_ms()])?;
            }
            continue;
        };
        let removed = conn
            .prepare_cached("DELETE FROM instances WHERE key = ?1")?
            .execute(params![key])?;
        outcome.removed += removed as u64;
        if let Some(count) = totals.instances.get_mut(usize::from(sub_status)) {
            *count -= 1;
        }
        for sql in OF_AN_INSTANCE {
            outcome.removed += conn.prepare_cached(sql)?.execute(params![key])? as u64;
        }
        conn.prepare_cached(
            "INSERT OR REPLACE INTO forgotten (instance, definition, sub_status, forgotten_at, expires_at, journal) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute(params![
            key,
            definition,
            sub_status,
            request.now.as_ms(),
            (!request.keeps_journal).then_some(request.fenced_until.as_ms()),
            journal.code(),
        ])?;
        totals.forgotten_high = totals.forgotten_high.max(key);
    }
    drop_stimuli(conn, totals, request, outcome)?;
    if request.keeps_journal {
        return Ok(());
    }
    let mut room = request.limit;
    for instance in &request.instances {
        if room == 0 {
            break;
        }
        room -= sweep_journal(conn, instance.get() as i64, room, outcome)?;
    }
    Ok(())
}

/// What is queued for them, found in one pass: the queue has no index by domain.
fn drop_stimuli(
    conn: &Tables<'_>,
    totals: &mut Totals,
    request: &ForgetRequest,
    outcome: &mut Outcome,
) -> Result<(), Trouble> {
    let domains: Vec<String> = request
        .instances
        .iter()
        .map(|key| format!("\"instance/{key}\""))
        .collect();
    let domains = format!("[{}]", domains.join(","));
    let mut dead =
        conn.prepare_cached("DELETE FROM dead_letters WHERE domain IN (SELECT value FROM json_each(?1))")?;
    outcome.removed += dead.execute(params![domains])? as u64;
    if totals.queued == 0 {
        return Ok(());
    }
    let queued: Vec<i64> = conn
        .prepare_cached(
            "SELECT key FROM stimuli WHERE domain IN (SELECT value FROM json_each(?1)) ORDER BY key",
        )?
        .query_map(params![domains], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    for key in queued {
        let key = StimulusKey(key as u64);
        super::queue::remove(conn, totals, key)?;
        outcome.removed += 1;
        outcome.dropped.push(key);
    }
    Ok(())
}

/// Removes a slice of the journal of a forgotten instance; what is done with is noted.
fn sweep_journal(
    conn: &Tables<'_>,
    instance: i64,
    limit: usize,
    outcome: &mut Outcome,
) -> Result<usize, Trouble> {
    let removed = remove_journal(conn, instance, i64::MAX, limit)?;
    outcome.removed += removed as u64;
    if removed < limit {
        conn.prepare_cached("UPDATE forgotten SET journal = 0 WHERE instance = ?1 AND journal = 1")?
            .execute(params![instance])?;
    }
    Ok(removed)
}

fn remove_journal(conn: &Tables<'_>, instance: i64, up_to: i64, limit: usize) -> Result<usize, Trouble> {
    Ok(conn
        .prepare_cached(
            "DELETE FROM journal WHERE id IN (SELECT id FROM journal WHERE instance = ?1 AND revision <= ?2 \
             ORDER BY revision LIMIT ?3)",
        )?
        .execute(params![instance, up_to, super::rows(limit)])?)
}

/// Goes on with what forgetting left to do.
pub(super) fn sweep(
    conn: &Tables<'_>,
    now: Timestamp,
    limit: usize,
    outcome: &mut Outcome,
) -> Result<(), Trouble> {
    let mut room = limit;
    while room > 0 {
        let going: Option<i64> = conn
            .prepare_cached("SELECT instance FROM forgotten WHERE journal = 1 ORDER BY instance LIMIT 1")?
            .query_row([], |row| row.get(0))
            .optional()?;
        let Some(instance) = going else { break };
        room -= sweep_journal(conn, instance, room, outcome)?;
    }
    let removed = conn
        .prepare_cached(
            "DELETE FROM forgotten WHERE instance IN (SELECT instance FROM forgotten \
             WHERE expires_at IS NOT NULL AND expires_at <= ?1 AND journal = 0 ORDER BY expires_at LIMIT ?2)",
        )?
        .execute(params![now.as_ms(), super::rows(room)])?;
    outcome.removed += removed as u64;
    Ok(())
}

/// Trims the journal of an instance as far as its state covers it.
pub(super) fn trim(
    conn: &Tables<'_>,
    instance: InstanceKey,
    up_to: u64,
    limit: usize,
    outcome: &mut Outcome,
) -> Result<(), Trouble> {
    let key = instance.get() as i64;
    let covered: Option<i64> = conn
        .prepare_cached("SELECT state_revision FROM instances WHERE key = ?1")?
        .query_row(params![key], |row| row.get(0))
        .optional()?;
    let Some(covered) = covered else { return Ok(()) };
    let up_to = i64::try_from(up_to).unwrap_or(i64::MAX).min(covered);
    let removed = remove_journal(conn, key, up_to, limit)?;
    outcome.removed += removed as u64;
    let first: Option<i64> = conn
        .prepare_cached("SELECT revision FROM journal WHERE instance = ?1 ORDER BY revision LIMIT 1")?
        .query_row(params![key], |row| row.get(0))
        .optional()?;
    let trimmed = first.map_or(up_to, |first| (first - 1).min(up_to));
    conn.prepare_cached("UPDATE instances SET trimmed = max(trimmed, ?2) WHERE key = ?1")?
        .execute(params![key, trimmed])?;
    Ok(())
}

pub(super) fn is_fenced(conn: &Tables<'_>, totals: &Totals, instance: InstanceKey) -> Result<bool, Trouble> {
    // Keys grow: that of a new instance is above all that were forgotten, but for a moment's difference of shards.
    if instance.get() as i64 > totals.forgotten_high {
        return Ok(false);
    }
    Ok(conn
        .prepare_cached("SELECT 1 FROM forgotten WHERE instance = ?1")?
        .exists(params![instance.get() as i64])?)
}

pub(super) fn get(conn: &Tables<'_>, instance: InstanceKey) -> Result<Option<ForgottenRow>, Trouble> {
    let mut statement = conn.prepare_cached(
        "SELECT definition, sub_status, forgotten_at, expires_at, journal FROM forgotten WHERE instance = ?1",
    )?;
    let row = statement.query_row(params![instance.get() as i64], |row| {
        let (sub_status, journal): (u8, u8) = (row.get(1)?, row.get(4)?);
        let unknown = |at, code: u8| rusqlite::Error::IntegralValueOutOfRange(at, i64::from(code));
        Ok(ForgottenRow {
            instance,
            definition: DefinitionKey(row.get::<_, i64>(0)? as u64),
            sub_status: SubStatus::from_code(sub_status).ok_or(unknown(1, sub_status))?,
            forgotten_at: Timestamp::from_ms(row.get(2)?),
            expires_at: row.get::<_, Option<i64>>(3)?.map(Timestamp::from_ms),
            journal: ForgottenJournal::from_code(journal).ok_or(unknown(4, journal))?,
        })
    });
    Ok(row.optional()?)
}

pub(super) fn ended(
    conn: &Tables<'_>,
    (process_id, tenant): (&str, &str),
    until: Timestamp,
    after: Option<(Timestamp, InstanceKey)>,
    limit: usize,
) -> Result<Vec<EndedRow>, Trouble> {
    let mut statement = conn.prepare_cached(
        "SELECT key, ended_at, revision FROM instances INDEXED BY instances_ended WHERE process_id = ?1 AND tenant = ?2 \
         AND ended_at IS NOT NULL AND ended_at <= ?3 AND (ended_at, key) > (?4, ?5) ORDER BY ended_at, key LIMIT ?6",
    )?;
    let (at, key) = after.map_or((i64::MIN, -1), |(at, key)| (at.as_ms(), key.get() as i64));
    let bounds = params![process_id, tenant, until.as_ms(), at, key, super::rows(limit)];
    let rows = statement.query_map(bounds, |row| {
        Ok(EndedRow {
            key: InstanceKey(row.get::<_, i64>(0)? as u64),
            ended_at: Timestamp::from_ms(row.get(1)?),
            revision: row.get::<_, i64>(2)? as u64,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

pub(super) fn ended_beyond(
    conn: &Tables<'_>,
    (process_id, tenant): (&str, &str),
    keep: usize,
) -> Result<Option<(Timestamp, InstanceKey)>, Trouble> {
    let mut statement = conn.prepare_cached(
        "SELECT ended_at, key FROM instances INDEXED BY instances_ended WHERE process_id = ?1 AND tenant = ?2 \
         AND ended_at IS NOT NULL ORDER BY ended_at DESC, key DESC LIMIT 1 OFFSET ?3",
    )?;
    let found = statement.query_row(params![process_id, tenant, super::rows(keep)], |row| {
        Ok((
            Timestamp::from_ms(row.get(0)?),
            InstanceKey(row.get::<_, i64>(1)? as u64),
        ))
    });
    Ok(found.optional()?)
}

pub(super) fn next_ended_process(
    conn: &Tables<'_>,
    after: Option<(&str, &str)>,
) -> Result<Option<(String, String)>, Trouble> {
    let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
    let found = match after {
        None => conn
            .prepare_cached(
                "SELECT process_id, tenant FROM instances INDEXED BY instances_ended WHERE ended_at IS NOT NULL \
                 ORDER BY process_id, tenant LIMIT 1",
            )?
            .query_row([], read),
        Some((process_id, tenant)) => conn
            .prepare_cached(
                "SELECT process_id, tenant FROM instances INDEXED BY instances_ended WHERE ended_at IS NOT NULL \
                 AND (process_id, tenant) > (?1, ?2) ORDER BY process_id, tenant LIMIT 1",
            )?
            .query_row(params![process_id, tenant], read),
    };
    Ok(found.optional()?)
}
