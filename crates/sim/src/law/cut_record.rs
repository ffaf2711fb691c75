//! Every cut cycle has one record: what a drain reports as interrupted or abandoned is in the journal once, and every record
//! in a journal is in the report of its drain.

use std::collections::BTreeMap;

use tidegate::engine::Event;
use tidegate::model::InstanceKey;
use tidegate::status::{DrainResult, Fate};

use crate::fact::{Fact, Record};

pub(super) fn check(record: &Record) -> Vec<String> {
    let mut broken = Vec::new();
    let records = records(record);
    for noted in &record.facts {
        let Fact::Drained { generation, outcome } = &noted.fact else {
            continue;
        };
        if outcome.overall_result == DrainResult::AbortedByUnhandledException {
            broken.push(format!("the drain of life {} ended by a bug", noted.life));
        }
        let mut fates: BTreeMap<InstanceKey, Vec<Fate>> = BTreeMap::new();
        for cycle in outcome.cycles.iter().filter(|cycle| cycle.fate != Fate::Rested) {
            fates.entry(cycle.instance_id).or_default().push(cycle.fate);
        }
        for (instance, fates) in &fates {
            let found = records
                .get(&(generation.clone(), *instance))
                .copied()
                .unwrap_or(0);
            let is_right = match fates.as_slice() {
                // It may be spilled and taken up later, or be found as after a crash.
                [Fate::PersistenceFailed] => found <= 1,
                [_] => found == 1,
                _ => false,
            };
            if !is_right {
                broken.push(format!(
                    "instance {instance} is reported as {fates:?} by the drain of life {} and has {found} records",
                    noted.life
                ));
            }
        }
        for (of, instance) in records.keys() {
            if of == generation && !fates.contains_key(instance) {
                broken.push(format!(
                    "instance {instance} was interrupted and the drain of life {} does not say so",
                    noted.life
                ));
            }
        }
    }
    for ((generation, instance), times) in &records {
        if *times > 1 {
            broken.push(format!(
                "instance {instance} has {times} records of one generation ({generation})"
            ));
        }
    }
    broken
}

/// How many records each generation left in each instance.
fn records(record: &Record) -> BTreeMap<(String, InstanceKey), usize> {
    let mut records = BTreeMap::new();
    for instance in &record.instances {
        for event in instance.events() {
            if let Event::WorkflowInterrupted { record } = event {
                *records
                    .entry((record.generation_id, instance.row.key))
                    .or_default() += 1;
            }
        }
    }
    records
}
