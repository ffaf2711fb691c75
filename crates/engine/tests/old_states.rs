//! States and journals that were written when each completed activity kept all that it saw.

mod common;

use std::path::Path;

use common::model::Bare;
use common::{BEGIN, load};
use tidegate_engine::{Instance, apply, decode_events, outstanding};
use tidegate_model::effect::Job;
use tidegate_model::{CommandKind, Effect, KeyGenerator, SubStatus, Variables};

fn fixtures() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

fn bytes(name: &str) -> Vec<u8> {
    let text = std::fs::read_to_string(fixtures().join("compensation.states")).unwrap();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    let digits = line.expect("it is in the file").as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.map(byte).collect()
}

/// An instance of the process they are of.
fn run_of(instance: impl FnOnce(&Bare) -> Instance) -> Bare {
    let file = std::fs::read(fixtures().join("compensation.bpmn")).unwrap();
    let compiled = load("compensation", &file, &[]);
    let mut run = Bare::new(compiled.definitions[0].clone());
    run.keys = KeyGenerator::new(7, 0);
    run.keys.observe(BEGIN.plus_ms(60_000));
    run.instance = instance(&run);
    run.instance.check(&run.definition).unwrap();
    run
}

fn open(run: &Bare) -> Vec<Job> {
    let effects = outstanding(&run.definition, &run.instance);
    let job = |effect| {
        if let Effect::RunJob(job) = effect {
            Some(job)
        } else {
            None
        }
    };
    effects.into_iter().filter_map(job).collect()
}

fn finish(run: &mut Bare, variables: &str) -> String {
    let job = open(run).remove(0);
    let variables = Variables::parse(variables).unwrap();
    run.command(CommandKind::CompleteJob {
        job: job.key,
        variables,
    });
    // Each turn of it is stored and read again.
    run.instance = Instance::decode(&run.instance.encode()).unwrap();
    job.element_id.to_string()
}

/// What is undone, and the seat that each handler sees.
fn undo_all(run: &mut Bare) -> Vec<String> {
    let mut undone = Vec::new();
    while let Some(job) = open(run).first() {
        let seat = job.variables.get("seat").unwrap().text().to_owned();
        undone.push(format!("{} {seat}", finish(run, "{}")));
    }
    assert_eq!(run.instance.ended(), Some(SubStatus::Finished));
    undone
}

#[test]
fn an_old_state_is_undone_with_the_data_it_kept() {
    let mut run = run_of(|_| Instance::decode(&bytes("state-waiting")).unwrap());
    // What completes from now on keeps the new way.
    assert_eq!(finish(&mut run, "{\"card\":5,\"seat\":3}"), "pay");
    assert_eq!(undo_all(&mut run), ["undo_pay 3", "undo_book 2", "undo_book 1"]);
}

#[test]
fn an_old_state_in_the_middle_of_undoing_goes_on() {
    let mut run = run_of(|_| Instance::decode(&bytes("state-undoing")).unwrap());
    assert_eq!(undo_all(&mut run), ["undo_pay 2", "undo_book 2", "undo_book 1"]);
}

#[test]
fn an_old_journal_gives_a_state_that_goes_on_the_same() {
    let events = decode_events(&bytes("journal-undoing")).unwrap();
    let mut run = run_of(|run| {
        let old = Instance::decode(&bytes("state-undoing")).unwrap();
        let mut instance = Instance::new(old.key());
        events
            .iter()
            .for_each(|event| apply(&run.definition, &mut instance, event));
        assert_eq!(instance.sequence(), old.sequence());
        instance
    });
    assert_eq!(undo_all(&mut run), ["undo_pay 2", "undo_book 2", "undo_book 1"]);
}
