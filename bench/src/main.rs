//! Benchmarks as programs: `tidegate-bench W1 [option=value]…` prints one JSON line for each setting. What must not be
//! (something lost, something twice) ends the program with a failure.

mod bare;
mod control;
mod gate;
mod http;
mod leak;
mod load;
mod measure;
mod parked;
mod server;
mod setting;
mod shells;
mod stop;
mod w1;
mod w2;
mod w3;
mod w4;
mod w5;
mod w6;
mod w7;

use setting::Said;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A benchmark and its name.
type Row = (&'static str, fn(&Said));

/// Every benchmark, by its name.
const ROWS: [Row; 15] = [
    ("W1", w1::run),
    ("W2", w2::run),
    ("W3", w3::run),
    ("W4", w4::run),
    ("W5", w5::run),
    ("W6", w6::run),
    ("W7", w7::run),
    ("parked", parked::run),
    ("gate", gate::run),
    ("mark", stop::mark),
    ("recover", stop::recover),
    ("park", control::park),
    ("control", control::control),
    ("shells", shells::run),
    ("leak", leak::run),
];

fn main() {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_default();
    let said: Said = arguments
        .filter_map(|argument| {
            argument
                .split_once('=')
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
        })
        .collect();
    match ROWS.iter().find(|(of, _)| *of == name) {
        Some((_, run)) => run(&said),
        None => {
            let names: Vec<&str> = ROWS.iter().map(|(of, _)| *of).collect();
            eprintln!("`{name}` is no benchmark: use one of {}", names.join(", "));
            std::process::exit(2);
        }
    }
}
