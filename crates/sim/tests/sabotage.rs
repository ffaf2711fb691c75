//! That the checkers can fail: each law is broken on purpose, by a store, a handler or another writer that no honest part
//! would be, and its checker says so.

use tidegate_sim::temper::{End, Temper};
use tidegate_sim::{Sabotage, run_with};

/// How many seeds a sabotage gets to be found. Most are found in the first.
const TRIES: u64 = 12;

/// No fault but the sabotage.
fn calm(seed: u64) -> Temper {
    Temper {
        fails: 0,
        unsure: 0,
        slow: 0,
        repeats: 0,
        read_fails: 0,
        bad_handlers: 0,
        operators: 0,
        clock_steps: 0,
        sources: Vec::new(),
        orders: 14,
        ..Temper::of(seed)
    }
}

fn is_found(sabotage: Sabotage, law: &str, change: impl Fn(&mut Temper)) {
    let mut other = Vec::new();
    for seed in 1..=TRIES {
        let mut temper = calm(seed);
        change(&mut temper);
        let honest = run_with(seed, temper.clone(), None);
        assert!(honest.broken.is_empty(), "{}", honest.report());
        let run = run_with(seed, temper, Some(sabotage));
        if run.broken.iter().any(|(broken, _)| *broken == law) {
            return;
        }
        other.extend(run.broken);
    }
    panic!("{sabotage:?} was not found by {law}; found was {other:?}");
}

#[test]
fn a_forgotten_start_is_found() {
    is_found(Sabotage::ForgetsStarts, "nothing-lost", |_| {});
}

#[test]
fn an_answer_before_the_write_is_found() {
    is_found(Sabotage::AnswersFirst, "commit-first", |_| {});
}

#[test]
fn a_second_writer_is_found() {
    is_found(Sabotage::SecondWriter, "one-owner", |_| {});
}

#[test]
fn an_ended_instance_that_turns_back_is_found() {
    is_found(Sabotage::Undead, "finished", |_| {});
}

#[test]
fn a_message_that_overtakes_is_found() {
    is_found(Sabotage::Swaps, "order", |_| {});
}

#[test]
fn a_lost_mark_is_found() {
    is_found(Sabotage::LosesMarks, "cut-record", |temper| {
        temper.lives = vec![End::Force];
        temper.bad_handlers = 500;
    });
}

#[test]
fn a_lost_audit_entry_is_found() {
    is_found(Sabotage::LosesAudit, "nothing-silent", |temper| {
        temper.lives = vec![End::Drain {
            force_after_ms: None,
            crash_after_ms: None,
        }];
    });
}

#[test]
fn an_orphan_is_found() {
    is_found(Sabotage::Orphan, "no-task-left", |_| {});
}
