//! Order is kept: messages of one name and key are taken in the order in which they were published, and what stands in the
//! queue leaves it in the order of its domain. Control stands in a line of its own (ADR 0030): what ends, holds or releases
//! a called instance, and the news of an end for a caller that is being cancelled.

use std::collections::{BTreeMap, BTreeSet};

use tidegate::engine::Event;
use tidegate::model::{InstanceKey, Stimulus};
use tidegate::store::{StimulusRow, Write};

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
    let cancelled = cancelled(record);
    let is_control = |row: &StimulusRow| {
        Stimulus::is_control(&row.payload)
            || Stimulus::is_of_child(&row.payload) && cancelled.contains(&row.domain)
    };
    let mut waiting: BTreeMap<(String, bool), Vec<u64>> = BTreeMap::new();
    let mut lines = BTreeMap::new();
    for (_, commit, outcome) in record.applied() {
        for write in &commit.writes {
            let Write::RemoveStimulus(key) = write else {
                continue;
            };
            let Some(line) = lines.remove(&key.get()) else {
                continue;
            };
            let line = waiting.entry(line).or_default();
            let place = line.iter().position(|waiting| *waiting == key.get());
            if place != Some(0) {
                broken.push(format!(
                    "stimulus {key} left the queue before {line:?} of its domain"
                ));
            }
            line.retain(|waiting| *waiting != key.get());
        }
        let added = commit.writes.iter().filter_map(|write| match write {
            Write::AddStimulus(row) => Some((row.domain.clone(), is_control(row))),
            _ => None,
        });
        let matched = outcome.deliveries.iter().map(|delivery| {
            let domain = domain_of(delivery.instance);
            (delivery.stimulus.get(), (domain, false))
        });
        let all = outcome
            .stimuli
            .iter()
            .map(|key| key.get())
            .zip(added)
            .chain(matched);
        let mut all: Vec<(u64, (String, bool))> = all.collect();
        all.sort_unstable();
        for (key, line) in all {
            waiting.entry(line.clone()).or_default().push(key);
            lines.insert(key, line);
        }
    }
    broken
}

/// The domains of the instances that somebody cancelled.
fn cancelled(record: &Record) -> BTreeSet<String> {
    let is_cancelled =
        |event: &Event| matches!(event, Event::CancelRequested { .. } | Event::InstanceCancelled);
    record
        .instances
        .iter()
        .filter(|instance| instance.events().iter().any(is_cancelled))
        .map(|instance| domain_of(instance.row.key))
        .collect()
}

fn domain_of(instance: InstanceKey) -> String {
    format!("instance/{instance}")
}
