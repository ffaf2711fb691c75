//! At most one owner: revisions and sequence numbers of an instance have no gap and no double, a repeated write is refused,
//! epochs only grow, and no job runs twice at once.

use std::collections::BTreeMap;

use tidegate::engine::Event;
use tidegate::store::Write;

use crate::fact::{Fact, Record, events};

pub(super) fn check(record: &Record) -> Vec<String> {
    let mut broken = Vec::new();
    let mut highest_epoch = 0;
    for noted in &record.facts {
        match &noted.fact {
            Fact::Applied {
                epoch,
                result,
                is_repeated,
                ..
            } => {
                if *is_repeated && result.is_ok() {
                    broken.push("a commit that came twice was taken twice".to_owned());
                }
                if result.is_ok() && *epoch < highest_epoch {
                    broken.push(format!(
                        "a commit of epoch {epoch} was taken in epoch {highest_epoch}"
                    ));
                }
                highest_epoch = highest_epoch.max(*epoch);
            }
            Fact::HandlerBegan {
                job,
                run,
                rival: Some(rival),
                ..
            } => broken.push(format!(
                "handler {run} of job {job} began while handler {rival} goes on"
            )),
            _ => {}
        }
    }
    let mut revisions = BTreeMap::new();
    for (_, commit, _) in record.applied() {
        for write in &commit.writes {
            match write {
                Write::CreateInstance { row, .. } => {
                    revisions.insert(row.key, row.revision);
                }
                Write::UpdateInstance(update) => {
                    let before = revisions.insert(update.key, update.revision);
                    if before.map(|before| before + 1) != Some(update.revision) {
                        broken.push(format!(
                            "revision {} of instance {} follows {before:?}",
                            update.revision, update.key
                        ));
                    }
                }
                _ => {}
            }
        }
    }
    for instance in &record.instances {
        let mut next = 1;
        for row in &instance.journal {
            if row.first_sequence != next {
                broken.push(format!(
                    "instance {}: the events of revision {} begin with {}, not with {next}",
                    row.instance, row.revision, row.first_sequence
                ));
            }
            let counted = events(row)
                .iter()
                .filter(|event| !matches!(event, Event::Caused { .. }))
                .count();
            next = row.first_sequence + counted as u64;
        }
    }
    broken
}
