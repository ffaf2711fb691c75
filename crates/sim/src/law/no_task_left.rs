//! No task is left: when a generation is released, or did not start, nothing of it lives.

use crate::fact::{Fact, Record};

pub(super) fn check(record: &Record) -> Vec<String> {
    let left = record.facts.iter().filter_map(|noted| match noted.fact {
        Fact::Released {
            is_joined,
            is_store_busy,
            tasks_left,
        } if !is_store_busy && (!is_joined || tasks_left > 0) => Some(format!(
            "life {}: joined {is_joined}, {tasks_left} tasks left",
            noted.life
        )),
        _ => None,
    });
    left.collect()
}
