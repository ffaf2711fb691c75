//! Fixed work on the hot paths: `tidegate-guard PATH ROUNDS`. `scripts/guard.py` counts the instructions of two runs
//! of different length and keeps the difference in `bench/guard/baseline.txt`.
//!
//! Each path is one file and one row here. A path does the same in every round, reads no clock and draws no number.

mod admission;
mod commit;
mod compile;
mod condition;
mod engine;
mod events;

/// Prepares, then runs its path so many times.
type Path = fn(u64);

const PATHS: &[(&str, Path)] = &[
    ("admission", admission::run),
    ("engine", engine::run),
    ("encode-events", events::encode),
    ("decode-events", events::decode),
    ("condition", condition::run),
    ("commit", commit::run),
    ("compile", compile::run),
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let names: Vec<&str> = PATHS.iter().map(|(name, _)| *name).collect();
    let [path, rounds] = arguments.as_slice() else {
        // Without arguments it says what there is.
        println!("{}", names.join("\n"));
        return;
    };
    let found = PATHS.iter().find(|(name, _)| name == path);
    match (found, rounds.parse()) {
        (Some((_, run)), Ok(rounds)) => run(rounds),
        _ => {
            eprintln!(
                "error: expected one of {} and a number of rounds",
                names.join(", ")
            );
            std::process::exit(2);
        }
    }
}
