//! Subscriptions and buffered messages, and their match.

use std::sync::Arc;

use rusqlite::{OptionalExtension, Row, params};
use tidegate_model::{ElementIndex, ElementInstanceKey, InstanceKey, MessageKey, Timestamp, Variables};

use super::error::Trouble;
use super::names::Tables;
use super::totals::Totals;
use super::{instance, queue};
use crate::commit::{Delivery, Outcome};
use crate::matching::{Call, chosen, delivery, variables_of};
use crate::row::{Awaited, MessageRow, SubscriptionRow};

pub(super) fn subscribe(
    conn: &Tables<'_>,
    totals: &mut Totals,
    row: &SubscriptionRow,
    now: Timestamp,
    outcome: &mut Outcome,
) -> Result<(), Trouble> {
    let waiting = match row.awaited {
        Awaited::Message => buffered(conn, row, now)?,
        // A signal that nobody waits for is gone.
        Awaited::Signal => Vec::new(),
    };
    if row.once && !waiting.is_empty() {
        unsubscribe(conn, row.owner, row.element)?;
    } else {
        conn.prepare_cached(
            "INSERT OR REPLACE INTO subscriptions (owner, element, instance, process_id, tenant, message_name, \
             correlation_key, once, is_signal, ends) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        )?
        .execute(params![
            row.owner.get() as i64,
            row.element.0,
            row.instance.get() as i64,
            row.process_id,
            row.tenant,
            row.message_name,
            row.correlation_key,
            row.once,
            row.awaited == Awaited::Signal,
            row.ends
        ])?;
    }
    for message in waiting {
        conn.prepare_cached("DELETE FROM messages WHERE key = ?1")?
            .execute(params![message.key.get() as i64])?;
        let variables = variables_of(&message)?;
        deliver(conn, totals, &message, variables, row, now, outcome)?;
    }
    Ok(())
}

pub(super) fn unsubscribe(
    conn: &Tables<'_>,
    owner: ElementInstanceKey,
    element: ElementIndex,
) -> Result<(), Trouble> {
    conn.prepare_cached("DELETE FROM subscriptions WHERE owner = ?1 AND element = ?2")?
        .execute(params![owner.get() as i64, element.0])?;
    Ok(())
}

pub(super) fn publish(
    conn: &Tables<'_>,
    totals: &mut Totals,
    row: &MessageRow,
    has_taker: bool,
    now: Timestamp,
    outcome: &mut Outcome,
) -> Result<(), Trouble> {
    let variables = variables_of(row)?;
    let takers = takers(conn, row)?;
    for (id, subscription) in &takers {
        if subscription.once {
            conn.prepare_cached("DELETE FROM subscriptions WHERE id = ?1")?
                .execute(params![id])?;
        }
        deliver(conn, totals, row, variables.clone(), subscription, now, outcome)?;
    }
    if !takers.is_empty() || has_taker {
        return Ok(());
    }
    if row.expires_at <= now {
        outcome.expired.push(row.key);
        return Ok(());
    }
    conn.prepare_cached(
        "INSERT OR REPLACE INTO messages (key, tenant, name, correlation_key, variables, expires_at, sender) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?
    .execute(params![
        row.key.get() as i64,
        row.tenant,
        row.name,
        row.correlation_key,
        row.variables,
        row.expires_at.as_ms(),
        // Writing to a vector does not fail.
        row.from.as_ref().and_then(|from| minicbor::to_vec(from).ok())
    ])?;
    Ok(())
}

/// Lets every buffered message wait longer. A message that waits for ever stays within what a time can hold.
pub(super) fn extend(conn: &Tables<'_>, by_ms: i64) -> Result<(), Trouble> {
    conn.prepare_cached("UPDATE messages SET expires_at = min(expires_at, ?2) + ?1")?
        .execute([by_ms, i64::MAX - by_ms.max(0)])?;
    Ok(())
}

pub(super) fn expire(
    conn: &Tables<'_>,
    now: Timestamp,
    limit: usize,
    outcome: &mut Outcome,
) -> Result<(), Trouble> {
    let expired: Vec<i64> = conn
        .prepare_cached("SELECT key FROM messages WHERE expires_at <= ?1 ORDER BY expires_at, key LIMIT ?2")?
        .query_map(params![now.as_ms(), super::rows(limit)], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    for key in expired {
        conn.prepare_cached("DELETE FROM messages WHERE key = ?1")?
            .execute(params![key])?;
        outcome.expired.push(MessageKey(key as u64));
    }
    Ok(())
}

/// Messages that wait for this subscription: one, or all of them.
fn buffered(conn: &Tables<'_>, row: &SubscriptionRow, now: Timestamp) -> Result<Vec<MessageRow>, Trouble> {
    let limit = if row.once { 1 } else { usize::MAX };
    let mut statement = conn.prepare_cached(
        "SELECT key, variables, expires_at, sender FROM messages \
         WHERE correlation_key = ?1 AND name = ?2 AND tenant = ?3 AND expires_at > ?4 ORDER BY key LIMIT ?5",
    )?;
    let asked = params![
        row.correlation_key,
        row.message_name,
        row.tenant,
        now.as_ms(),
        super::rows(limit)
    ];
    let rows = statement.query_map(asked, |found| {
        Ok(MessageRow {
            key: MessageKey(found.get::<_, i64>(0)? as u64),
            tenant: Arc::clone(&row.tenant),
            name: row.message_name.to_string(),
            correlation_key: row.correlation_key.clone(),
            variables: found.get(1)?,
            expires_at: Timestamp::from_ms(found.get(2)?),
            from: found
                .get::<_, Option<Vec<u8>>>(3)?
                .and_then(|bytes| minicbor::decode(&bytes).ok()),
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Those that take a message, oldest first: of each process id the oldest that does not end because another takes it.
fn takers(conn: &Tables<'_>, message: &MessageRow) -> Result<Vec<(i64, SubscriptionRow)>, Trouble> {
    let call_of = |instance| Ok::<_, Trouble>(instance::get(conn, instance)?.and_then(Call::of));
    let next = |process_id: &str, after: i64| next_of(conn, message, process_id, after);
    let mut takers = chosen(oldest(conn, message)?, call_of, next)?;
    takers.sort_by_key(|(id, _)| *id);
    Ok(takers)
}

/// The oldest open subscription of each process id. Steps from process id to process id, so that many instances that wait for
/// one message cost one row each.
fn oldest(conn: &Tables<'_>, message: &MessageRow) -> Result<Vec<(i64, SubscriptionRow)>, Trouble> {
    let mut statement = conn.prepare_cached(
        "SELECT id, owner, element, instance, process_id, once, ends FROM subscriptions \
         WHERE correlation_key = ?1 AND message_name = ?2 AND tenant = ?3 AND is_signal = 0 AND process_id > ?4 \
         ORDER BY process_id, id LIMIT 1",
    )?;
    let mut takers: Vec<(i64, SubscriptionRow)> = Vec::new();
    loop {
        let after = takers.last().map_or("", |(_, row)| &*row.process_id);
        let asked = params![message.correlation_key, message.name, message.tenant, after];
        match statement.query_row(asked, |row| open(message, row)).optional()? {
            Some(taker) => takers.push(taker),
            None => break,
        }
    }
    Ok(takers)
}

/// The open subscription of the process id that is next in age.
fn next_of(
    conn: &Tables<'_>,
    message: &MessageRow,
    process_id: &str,
    after: i64,
) -> Result<Option<(i64, SubscriptionRow)>, Trouble> {
    let mut statement = conn.prepare_cached(
        "SELECT id, owner, element, instance, process_id, once, ends FROM subscriptions \
         WHERE correlation_key = ?1 AND message_name = ?2 AND tenant = ?3 AND is_signal = 0 AND process_id = ?4 \
         AND id > ?5 ORDER BY id LIMIT 1",
    )?;
    let asked = params![
        message.correlation_key,
        message.name,
        message.tenant,
        process_id,
        after
    ];
    Ok(statement.query_row(asked, |row| open(message, row)).optional()?)
}

fn open(message: &MessageRow, row: &Row<'_>) -> rusqlite::Result<(i64, SubscriptionRow)> {
    let subscription = SubscriptionRow {
        awaited: Awaited::Message,
        owner: ElementInstanceKey(row.get::<_, i64>(1)? as u64),
        element: ElementIndex(row.get(2)?),
        instance: InstanceKey(row.get::<_, i64>(3)? as u64),
        process_id: row.get(4)?,
        tenant: Arc::clone(&message.tenant),
        message_name: Arc::from(message.name.as_str()),
        correlation_key: message.correlation_key.clone(),
        once: row.get(5)?,
        ends: row.get(6)?,
    };
    Ok((row.get(0)?, subscription))
}

fn deliver(
    conn: &Tables<'_>,
    totals: &mut Totals,
    message: &MessageRow,
    variables: Variables,
    subscription: &SubscriptionRow,
    now: Timestamp,
    outcome: &mut Outcome,
) -> Result<(), Trouble> {
    let row = delivery(message, variables, subscription, now)?;
    let stimulus = queue::add(conn, totals, &row)?;
    outcome.deliveries.push(Delivery {
        stimulus,
        message: message.key,
        instance: subscription.instance,
        payload: row.payload,
    });
    Ok(())
}
