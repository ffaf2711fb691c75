//! Broadcast signals: everybody who waits takes one.

use std::sync::Arc;

use rusqlite::params;
use tidegate_model::{Cause, ElementIndex, ElementInstanceKey, InstanceKey, MessageKey, Timestamp};

use super::error::Trouble;
use super::names::Tables;
use super::totals::Totals;
use super::{instance, queue};
use crate::commit::{Delivery, Outcome};
use crate::matching::{Call, Ending, signal_delivery, signal_variables};
use crate::row::{Awaited, SubscriptionRow};

pub(super) fn broadcast(
    conn: &Tables<'_>,
    totals: &mut Totals,
    (tenant, name, variables): (&Arc<str>, &str, &str),
    (except, from): (Option<InstanceKey>, Option<&Cause>),
    now: Timestamp,
    outcome: &mut Outcome,
) -> Result<(), Trouble> {
    let variables = signal_variables(name, variables)?;
    let mut takers = takers(conn, tenant, name)?;
    takers.retain(|(_, open)| except != Some(open.instance));
    let ending = Ending::of(takers.iter().map(|(_, open)| open));
    let call_of = |instance| Ok::<_, Trouble>(instance::get(conn, instance)?.and_then(Call::of));
    for (id, subscription) in takers {
        if ending.ends(subscription.instance, call_of)? {
            continue;
        }
        if subscription.once {
            conn.prepare_cached("DELETE FROM subscriptions WHERE id = ?1")?
                .execute(params![id])?;
        }
        let row = signal_delivery(name, variables.clone(), from, &subscription, now)?;
        let stimulus = queue::add(conn, totals, &row)?;
        outcome.deliveries.push(Delivery {
            stimulus,
            message: MessageKey(0),
            instance: subscription.instance,
            payload: row.payload,
        });
    }
    Ok(())
}

fn takers(conn: &Tables<'_>, tenant: &Arc<str>, name: &str) -> Result<Vec<(i64, SubscriptionRow)>, Trouble> {
    let mut statement = conn.prepare_cached(
        "SELECT id, owner, element, instance, process_id, once, ends FROM subscriptions \
         WHERE correlation_key = '' AND message_name = ?1 AND tenant = ?2 AND is_signal = 1 ORDER BY id",
    )?;
    let rows = statement.query_map(params![name, tenant], |row| {
        let subscription = SubscriptionRow {
            awaited: Awaited::Signal,
            owner: ElementInstanceKey(row.get::<_, i64>(1)? as u64),
            element: ElementIndex(row.get(2)?),
            instance: InstanceKey(row.get::<_, i64>(3)? as u64),
            process_id: row.get(4)?,
            tenant: Arc::clone(tenant),
            message_name: Arc::from(name),
            correlation_key: String::new(),
            once: row.get(5)?,
            ends: row.get(6)?,
        };
        Ok((row.get(0)?, subscription))
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}
