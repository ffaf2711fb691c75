//! The journal of one run of ten tasks: its events to bytes, and back.

use std::hint::black_box;

use tidegate_engine::{Event, decode_events, encode_events};

use crate::engine;

pub fn encode(rounds: u64) {
    let commits = journal();
    for _ in 0..rounds {
        for events in &commits {
            black_box(encode_events(black_box(events)));
        }
    }
}

pub fn decode(rounds: u64) {
    let rows: Vec<Vec<u8>> = journal().iter().map(|events| encode_events(events)).collect();
    for _ in 0..rounds {
        for row in &rows {
            black_box(decode_events(black_box(row)).expect("what was encoded can be decoded"));
        }
    }
}

/// The events of each commit.
fn journal() -> Vec<Vec<Event>> {
    let mut commits = Vec::new();
    engine::execute(&engine::ten_tasks(), |events| commits.push(events.to_vec()));
    commits
}
