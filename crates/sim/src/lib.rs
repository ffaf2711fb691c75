//! Simulation: the whole runtime on one thread, on simulated time, over a store with faults, driven by a seed.
//!
//! A seed decides everything: which faults there are and how often, who goes first at every step, what callers and operators
//! want, when the process dies. After the last fault comes a calm in which everything must come to its end. Then one checker
//! for each law looks at what was observed. The same seed gives the same run, line by line.
//!
//! There is one node: a fleet would be several lives on one disk.

#![allow(clippy::missing_panics_doc)]

mod client;
pub mod fact;
mod forge;
mod handler;
pub mod law;
mod life;
mod model;
mod operator;
mod random;
mod sabotage;
mod scheduler;
mod source;
mod store;
pub mod temper;
mod world;

use std::sync::Once;

use tidegate::store::{Page, Queries as _, Store as _};

pub use sabotage::Sabotage;

use client::Clients;
use fact::{Instance, Record};
use law::LAWS;
use temper::Temper;
use world::World;

/// A run of a seed.
#[derive(Debug)]
pub struct Run {
    /// Its seed.
    pub seed: u64,
    /// What happened: one short line a step, with the simulated time in milliseconds, the number of scheduler steps before it
    /// and the life.
    pub trace: Vec<String>,
    /// Which laws were broken, and how.
    pub broken: Vec<(&'static str, String)>,
}

/// Runs a seed.
pub fn run(seed: u64) -> Run {
    run_with(seed, Temper::of(seed), None)
}

/// Runs a seed in another temper, perhaps with something broken on purpose.
pub fn run_with(seed: u64, temper: Temper, sabotage: Option<Sabotage>) -> Run {
    silence_expected_panics();
    let world = World::new(seed, temper, sabotage);
    let clients = Clients::new(&world);
    let mut unsettled = Vec::new();
    let mut number = 0;
    while !life::live(&world, &clients, number, &mut unsettled) {
        number += 1;
    }
    let (facts, trace) = world.take();
    let record = Record {
        facts,
        unsettled,
        ..left(&world)
    };
    let broken = LAWS
        .iter()
        .flat_map(|law| (law.check)(&record).into_iter().map(|what| (law.name, what)))
        .collect();
    Run { seed, trace, broken }
}

impl Run {
    /// What a person needs of a failed run: the seed, what is broken, the trace, and how to run it again.
    pub fn report(&self) -> String {
        let mut text = format!("seed {}\n", self.seed);
        for line in &self.trace {
            text.push_str(line);
            text.push('\n');
        }
        for (law, what) in &self.broken {
            text.push_str(&format!("BROKEN {law}: {what}\n"));
        }
        text.push_str(&format!("replay: make sim SEEDS=1 FROM={}\n", self.seed));
        text
    }
}

/// What is on disk at the end.
fn left(world: &World) -> Record {
    const ALL: Page = Page::first(1_000_000);
    let disk = &world.disk;
    let rows = disk.instances(&Default::default(), ALL).unwrap_or_default();
    let instances = rows.into_iter().map(|row| Instance {
        journal: disk.journal(row.key, 0, ALL.limit).unwrap_or_default(),
        row,
    });
    let mut audit = disk.audit(ALL).unwrap_or_default();
    audit.reverse();
    Record {
        instances: instances.collect(),
        queue: disk.stimuli(None, ALL.limit).unwrap_or_default(),
        dead_letters: disk.dead_letters(ALL).unwrap_or_default(),
        audit,
        ..Record::default()
    }
}

/// Panics of the simulation's own handlers and sources are part of the play and not printed.
fn silence_expected_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let payload = info.payload();
            let text = payload.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
            if !text.is_some_and(|text| text.starts_with("sim: ")) {
                before(info);
            }
        }));
    });
}
