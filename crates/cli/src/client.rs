//! The client commands: one request each, its answer as a table or as the server's own JSON.

mod commands;
mod http;
mod print;

use crate::args::ClientCommand;
use crate::exit;

/// Runs one command and gives the exit code.
pub async fn run(command: ClientCommand) -> u8 {
    match commands::run(command).await {
        Ok(()) => exit::DRAINED,
        Err(failure) => {
            failure.print();
            exit::FAILED
        }
    }
}
