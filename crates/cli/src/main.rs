//! The binary `tidegate`: arguments, configuration, signals, exit codes and wiring. Everything else is in the
//! server and the runtime.

mod args;
mod check;
mod client;
mod duration;
mod exit;
mod plan;
mod run;
mod scripts;
mod serve;
mod terminal;

use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;

use args::{Arguments, Command};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    if let Some(code) = scripts::worker() {
        return code;
    }
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return refuse(&error),
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            terminal::error(&format!("the process could not start its threads: {error}"));
            return ExitCode::from(exit::FAILED);
        }
    };
    let code = runtime.block_on(async {
        match arguments.command {
            Command::Serve(options) => serve::serve(options).await,
            Command::Run(options) => run::run(options).await,
            Command::Check(files) => check::check(&files),
            Command::Drain(settings) => plan::drain(settings),
            Command::Completions(of) => completions(of.shell),
            Command::Client(command) => client::run(command).await,
        }
    });
    // Blocking calls that were abandoned must not hold the exit up.
    runtime.shutdown_timeout(exit::LAST_WAIT);
    ExitCode::from(code)
}

fn completions(shell: clap_complete::Shell) -> u8 {
    let mut script = Vec::new();
    let mut command = <Arguments as clap::CommandFactory>::command();
    clap_complete::generate(shell, &mut command, "tidegate", &mut script);
    terminal::raw(&script);
    exit::DRAINED
}

fn refuse(error: &clap::Error) -> ExitCode {
    // Help may be cut off by a closed pipe.
    let _ = error.print();
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => ExitCode::SUCCESS,
        _ if std::env::args().nth(1).as_deref() == Some("serve") => ExitCode::from(exit::CONFIGURATION),
        _ => ExitCode::from(exit::USAGE),
    }
}
