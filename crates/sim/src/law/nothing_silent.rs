//! Nothing is silent, and the cause travels: every commit of an instance says what caused it, what a crash left is recorded
//! as such, and what an operator changed is in the audit trail, once.

use std::collections::BTreeMap;

use tidegate::engine::Event;
use tidegate::model::SubStatus;
use tidegate::store::Write;

use crate::fact::{Acknowledged, Fact, Record, events};

pub(super) fn check(record: &Record) -> Vec<String> {
    let mut broken = Vec::new();
    for instance in &record.instances {
        for row in &instance.journal {
            if !matches!(events(row).first(), Some(Event::Caused { .. })) {
                broken.push(format!(
                    "instance {}: nobody caused revision {}",
                    row.instance, row.revision
                ));
            }
        }
    }
    broken.extend(crashes(record));
    broken.extend(cancels_audited_twice(record));
    if is_trail_whole(record) {
        broken.extend(cancels_not_audited(record));
        broken.extend(pauses(record));
        broken.extend(drains(record));
    }
    broken
}

/// What a generation finds executing was left by a crash, and its journal says so, or how else it ended.
fn crashes(record: &Record) -> Vec<String> {
    let mut found: BTreeMap<_, usize> = BTreeMap::new();
    for noted in &record.facts {
        if let Fact::Activated { executing, .. } = &noted.fact {
            executing
                .iter()
                .for_each(|key| *found.entry(*key).or_default() += 1);
        }
    }
    let silent = found.into_keys().filter(|key| {
        let events = record
            .instance(*key)
            .map(crate::fact::Instance::events)
            .unwrap_or_default();
        !events.iter().any(|event| {
            matches!(
                event,
                Event::CrashRecovered { .. } | Event::InstanceCancelled | Event::WorkflowInterrupted { .. }
            )
        })
    });
    silent
        .map(|key| format!("instance {key} was found executing and its journal does not say so"))
        .collect()
}

/// True if every entry of the audit trail had its chance: neither a crash nor a failing store left it in the log only.
fn is_trail_whole(record: &Record) -> bool {
    let mut facts = record.facts.iter().map(|noted| &noted.fact);
    !facts.any(|fact| {
        matches!(
            fact,
            Fact::Crashed
                | Fact::AuditFailed
                | Fact::Released {
                    is_store_busy: true,
                    ..
                }
        )
    })
}

/// The instances whose cancel is audited, and how often.
fn audited(record: &Record) -> BTreeMap<&str, usize> {
    let mut audited = BTreeMap::new();
    let rows = record
        .audit
        .iter()
        .filter(|row| row.action == "InstanceCancelRequested");
    for row in rows {
        *audited
            .entry(row.subject.as_deref().unwrap_or_default())
            .or_default() += 1;
    }
    audited
}

/// An effective change is audited once, however many ask for it.
fn cancels_audited_twice(record: &Record) -> Vec<String> {
    let twice = audited(record).into_iter().filter(|(_, times)| *times > 1);
    twice
        .map(|(subject, times)| format!("the cancel of instance {subject} is audited {times} times"))
        .collect()
}

fn cancels_not_audited(record: &Record) -> Vec<String> {
    let audited = audited(record);
    let told = record.acknowledged().filter_map(|(_, told)| match told {
        Acknowledged::Cancelled { instance, .. } => record.instance(*instance),
        _ => None,
    });
    told.filter(|instance| instance.row.sub_status == SubStatus::Cancelled && instance.row.parent.is_none())
        .filter(|instance| !audited.contains_key(instance.row.key.to_string().as_str()))
        .map(|instance| {
            format!(
                "instance {} was cancelled and the audit trail does not say so",
                instance.row.key
            )
        })
        .collect()
}

/// Pauses and resumes of the whole runtime take turns within a generation.
fn pauses(record: &Record) -> Vec<String> {
    let mut broken = Vec::new();
    let mut last: Option<(usize, &str)> = None;
    for (at, commit, _) in record.applied() {
        let life = record.facts[at].life;
        for write in &commit.writes {
            let Write::Audit(row) = write else { continue };
            // Those of a part have it as their subject.
            let is_turn = ["RuntimePauseRequested", "RuntimeResumeRequested"].contains(&row.action.as_str());
            if !is_turn || row.subject.is_some() {
                continue;
            }
            if last == Some((life, row.action.as_str())) {
                broken.push(format!(
                    "life {life}: the audit trail has {} twice in a row",
                    row.action
                ));
            }
            last = Some((life, &row.action));
        }
    }
    broken
}

/// Every drain that came to its end is audited.
fn drains(record: &Record) -> Vec<String> {
    let ended = record
        .facts
        .iter()
        .filter(|noted| matches!(noted.fact, Fact::Drained { .. }))
        .count();
    let audited = record
        .audit
        .iter()
        .filter(|row| row.action == "RuntimeDrained")
        .count();
    match ended == audited {
        true => Vec::new(),
        false => vec![format!(
            "{ended} drains came to their end and {audited} are audited"
        )],
    }
}
