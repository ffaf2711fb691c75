//! Nothing acknowledged is lost, and nothing is done twice: what a caller was told is there at the end, and when all faults
//! are over everything comes to its end.

use std::collections::BTreeMap;

use tidegate::engine::Event;
use tidegate::model::{ElementInstanceKey, InstanceKey, SubStatus};

use crate::fact::{Acknowledged, Record};
use crate::model::ALARMS;

pub(super) fn check(record: &Record) -> Vec<String> {
    let mut broken: Vec<String> = record
        .unsettled
        .iter()
        .map(|what| format!("in the calm: {what}"))
        .collect();
    let mut by_key: BTreeMap<&str, Vec<InstanceKey>> = BTreeMap::new();
    for instance in &record.instances {
        if let Some(key) = &instance.row.business_key {
            by_key.entry(key).or_default().push(instance.row.key);
        }
    }
    for (key, instances) in &by_key {
        if instances.len() > 1 {
            broken.push(format!(
                "{key} was started {} times: {instances:?}",
                instances.len()
            ));
        }
    }
    let alarms = record
        .instances
        .iter()
        .filter(|instance| &*instance.row.process_id == "alarm");
    let alarms = alarms.count();
    // Turns that were missed are folded into one.
    if alarms > ALARMS {
        broken.push(format!(
            "the timer start event began {alarms} instances and not {ALARMS}"
        ));
    }
    let marks = marks(record);
    for (_, told) in record.acknowledged() {
        match told {
            Acknowledged::Started { key, instance } => {
                if by_key
                    .get(key.as_str())
                    .is_none_or(|there| !there.contains(instance))
                {
                    broken.push(format!(
                        "the start {key} was told as instance {instance}, which is not there"
                    ));
                }
            }
            Acknowledged::Published { mark, .. } => match marks.get(mark) {
                Some(1) => {}
                Some(times) => broken.push(format!("message {mark} was taken {times} times")),
                None if is_wanted(record, &by_key, mark) => {
                    broken.push(format!(
                        "message {mark} was told and never taken, and its instance completed"
                    ));
                }
                None => {}
            },
            Acknowledged::JobDone { job, instance, .. } | Acknowledged::TaskDone { task: job, instance } => {
                if !has_ended(record, *instance, *job) {
                    broken.push(format!(
                        "the completion of job {job} of instance {instance} was told and is nowhere"
                    ));
                }
            }
            Acknowledged::Cancelled { instance, .. } => {
                let is_over = record
                    .instance(*instance)
                    .is_some_and(|found| found.row.sub_status.is_finished());
                if !is_over {
                    broken.push(format!("instance {instance} was told as cancelled and lives"));
                }
            }
            Acknowledged::Leased(_) => {}
        }
    }
    broken
}

/// How often each marked message was taken.
fn marks(record: &Record) -> BTreeMap<String, usize> {
    let mut marks = BTreeMap::new();
    for instance in &record.instances {
        for event in instance.events() {
            if let Some(mark) = mark(&event) {
                *marks.entry(mark).or_default() += 1;
            }
        }
    }
    marks
}

/// The mark of a message that came.
pub(super) fn mark(event: &Event) -> Option<String> {
    let Event::MessageCorrelated { variables, .. } = event else {
        return None;
    };
    variables
        .get("mark")
        .map(|mark| mark.text().trim_matches('"').to_owned())
}

/// True if the instance that waits for this message came to its end, which it cannot without it.
fn is_wanted(record: &Record, by_key: &BTreeMap<&str, Vec<InstanceKey>>, mark: &str) -> bool {
    let key = mark.split('/').next().unwrap_or_default();
    let takers = by_key.get(key).into_iter().flatten();
    takers
        .filter_map(|taker| record.instance(*taker))
        .any(|taker| taker.row.sub_status == SubStatus::Finished)
}

/// True if the job ended, or its instance did in another way than by completing.
fn has_ended(record: &Record, instance: InstanceKey, job: ElementInstanceKey) -> bool {
    let Some(instance) = record.instance(instance) else {
        return false;
    };
    let ends = |event: &Event| matches!(event, Event::JobCompleted { key, .. } | Event::UserTaskCompleted { key, .. } | Event::ElementTerminated { key, .. } if *key == job);
    instance.row.sub_status == SubStatus::Cancelled || instance.events().iter().any(ends)
}
