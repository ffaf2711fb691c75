//! Counts the compatibility cases of DMN that pass. With `-v`, tells why the others fail.
//!
//! `cargo run -p tidegate-dmn --example dmn_tck -- -v`

#[path = "../tests/support/tck.rs"]
mod tck;

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let verbose = std::env::args().any(|argument| argument == "-v");
    if !Path::new(tck::DATA).is_dir() {
        eprintln!("there is no {}", tck::DATA);
        return ExitCode::FAILURE;
    }
    let (mut passed, mut run) = (0, 0);
    for (level, folder) in tck::LEVELS {
        let result = tck::run(&Path::new(tck::DATA).join(folder));
        if verbose {
            result
                .failures
                .iter()
                .for_each(|failure| println!("FAILED {failure}"));
            result
                .folders
                .iter()
                .for_each(|(folder, count)| println!("{folder}: {count} failed"));
        }
        println!("dmn-tck level {level}: {} of {}", result.passed, result.run);
        passed += result.passed;
        run += result.run;
    }
    println!("dmn-tck: {passed} of {run}");
    ExitCode::SUCCESS
}
