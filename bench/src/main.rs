//! Benchmarks as programs: `tidegate-bench W1 [option=value]…` prints one JSON line for each setting.

mod control;
mod gate;
mod leak;
mod measure;
mod parked;
mod shells;
mod stop;
mod w1;

use std::collections::BTreeMap;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_default();
    let options: BTreeMap<String, String> = arguments
        .filter_map(|argument| {
            argument
                .split_once('=')
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
        })
        .collect();
    match name.as_str() {
        "W1" => {
            w1::run(&options);
            parked::run(&options);
        }
        "w1-steps" => w1::run(&options),
        "parked" => parked::run(&options),
        "gate" => gate::run(&options),
        "mark" => stop::mark(&options),
        "recover" => stop::recover(&options),
        "shells" => shells::run(&options),
        "park" => control::park(&options),
        "control" => control::control(&options),
        "leak" => leak::run(&options),
        other => {
            eprintln!(
                "`{other}` is no benchmark: use W1, w1-steps, parked, gate, mark, recover, park, control, shells or leak"
            );
            std::process::exit(2);
        }
    }
}
