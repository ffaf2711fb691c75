//! `gate`: what a permit costs, and what reading the state costs. One line each, by the number of threads.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::Barrier;
use std::time::Instant;

use serde_json::json;
use tidegate::gate::{Entering, Gate, Registry};

use crate::measure::rounded;

/// Options: `rounds` (5,000,000).
pub fn run(options: &BTreeMap<String, String>) {
    let rounds: u64 = options
        .get("rounds")
        .and_then(|text| text.parse().ok())
        .unwrap_or(5_000_000);
    let (shell, process, tenant) = (Gate::new(), Gate::new(), Gate::new());
    let registry: Registry<u64> = Registry::new(2);
    for threads in [1, 2] {
        let (shell, process, tenant, registry) = (&shell, &process, &tenant, &registry);
        let narrow = [Some(process), Some(tenant)];
        line("admit-and-release", threads, rounds, |_| {
            drop(black_box(shell.admit()))
        });
        line(
            "admit-and-release through narrow gates",
            threads,
            rounds,
            move |_| {
                drop(black_box(shell.admit_through(narrow, Entering::Start)));
            },
        );
        line(
            "live cycle: narrow gates and registry",
            threads,
            rounds,
            move |thread| {
                if let Ok(permit) = shell.admit_through(narrow, Entering::Start) {
                    drop(black_box(registry.enter(thread, permit, 7)));
                }
            },
        );
        line("read the state", threads, rounds, |_| {
            black_box(shell.read().is_accepting());
        });
    }
}

fn line(what: &str, threads: usize, rounds: u64, step: impl Fn(usize) + Send + Sync + Copy) {
    let ready = Barrier::new(threads);
    let spent: Vec<f64> = std::thread::scope(|scope| {
        let run = |thread| {
            let ready = &ready;
            scope.spawn(move || {
                ready.wait();
                let began = Instant::now();
                for _ in 0..rounds {
                    step(thread);
                }
                began.elapsed().as_secs_f64()
            })
        };
        let running: Vec<_> = (0..threads).map(run).collect();
        running
            .into_iter()
            .map(|thread| thread.join().unwrap_or_default())
            .collect()
    });
    let ns = spent.iter().sum::<f64>() / threads as f64 * 1e9 / rounds as f64;
    println!(
        "{}",
        json!({ "bench": "gate", "what": what, "threads": threads, "ns": rounded(ns) })
    );
}
