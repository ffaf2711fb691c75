//! `make sim`: runs seeds and counts those that fail. `tidegate-sim SEEDS FROM`; of a failed seed the whole trace is printed,
//! and of a single one always. The line before the last is a digest of all traces: the same for the same seeds.

use std::hash::{Hash, Hasher};
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse::<u64>());
    let (Some(Ok(seeds)), Some(Ok(from)), None) = (numbers.next(), numbers.next(), numbers.next()) else {
        eprintln!("usage: tidegate-sim SEEDS FROM (two numbers)");
        return ExitCode::from(2);
    };
    let mut failed = 0_u64;
    let mut digest = std::hash::DefaultHasher::new();
    for seed in from..from.saturating_add(seeds) {
        let run = tidegate_sim::run(seed);
        run.trace.hash(&mut digest);
        if !run.broken.is_empty() {
            failed += 1;
        }
        if seeds == 1 || !run.broken.is_empty() {
            print!("{}", run.report());
        }
    }
    println!("traces: {:016x}", digest.finish());
    println!("sim: {seeds} seeds, {failed} failed");
    match failed {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}
