//! Order is kept: messages of one name and key are taken in the order in which they were published, and what stands in the
//! queue leaves it in the order of its domain.

use std::collections::BTreeMap;

use tidegate::store::Write;

use super::nothing_lost::mark;
use crate::fact::Record;

pub(super) fn check(record: &Record) -> Vec<String> {
    let mut broken = Vec::new();
    for instance in &record.instances {
        let marks: Vec<String> = instance.events().iter().filter_map(mark).collect();
        // A caller publishes the next one when the one before was told.
        if !marks.is_sorted() {
            broken.push(format!(
                "instance {} took its messages in the order {marks:?}",
                instance.row.key
            ));
        }
    }
    let mut waiting: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    let mut domains = BTreeMap::new();
    for (_, commit, outcome) in record.applied() {
        for write in &commit.writes {
            let Write::RemoveStimulus(key) = write else {
                continue;
            };
            let Some(domain) = domains.remove(&key.get()) else {
                continue;
            };
            let line = waiting.entry(domain).or_default();
            let place = line.iter().position(|waiting| *waiting == key.get());
            if place != Some(0) {
                broken.push(format!(
                    "stimulus {key} left the queue before {line:?} of its domain"
                ));
            }
            line.retain(|waiting| *waiting != key.get());
        }
        let added = commit.writes.iter().filter_map(|write| match write {
            Write::AddStimulus(row) => Some(row.domain.clone()),
            _ => None,
        });
        let matched = outcome
            .deliveries
            .iter()
            .map(|delivery| (delivery.stimulus.get(), format!("instance/{}", delivery.instance)));
        let all = outcome
            .stimuli
            .iter()
            .map(|key| key.get())
            .zip(added)
            .chain(matched);
        let mut all: Vec<(u64, String)> = all.collect();
        all.sort_unstable();
        for (key, domain) in all {
            waiting.entry(domain.clone()).or_default().push(key);
            domains.insert(key, domain);
        }
    }
    broken
}
