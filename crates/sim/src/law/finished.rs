//! Finished stays finished: an instance that has ended is never written again, and nothing follows its end in the journal.

use std::collections::BTreeMap;

use tidegate::engine::Event;
use tidegate::store::Write;

use crate::fact::Record;

pub(super) fn check(record: &Record) -> Vec<String> {
    let mut broken = Vec::new();
    let mut ended = BTreeMap::new();
    for (_, commit, _) in record.applied() {
        for write in &commit.writes {
            let (key, sub_status) = match write {
                Write::CreateInstance { row, .. } => (row.key, row.sub_status),
                Write::UpdateInstance(update) => (update.key, update.sub_status),
                _ => continue,
            };
            if let Some(end) = ended.get(&key) {
                broken.push(format!("instance {key} was {end:?} and became {sub_status:?}"));
            }
            if sub_status.is_finished() {
                ended.insert(key, sub_status);
            }
        }
    }
    for instance in &record.instances {
        let events = instance.events();
        let is_end = |event: &Event| {
            matches!(
                event,
                Event::InstanceCompleted | Event::InstanceCancelled | Event::InstanceFaulted { .. }
            )
        };
        let end = events.iter().position(is_end);
        if let Some(end) = end
            && end + 1 < events.len()
        {
            broken.push(format!(
                "instance {}: {} events follow its end",
                instance.row.key,
                events.len() - end - 1
            ));
        }
    }
    broken
}
