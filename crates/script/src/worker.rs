//! The worker process: takes scripts from its input, one at a time, and answers on its output.

use std::io;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use crate::confine;
use crate::protocol::{self, Greeting, Reply, Request, SETUP_BYTES, Setup};
use crate::sandbox;

/// The thread that reads has little to do.
const READER_STACK_BYTES: usize = 256 << 10;

/// The whole life of a worker process: call it before anything else, with no other thread in the process, and end
/// the process with its answer. It ends when its input does, also in the middle of a script.
pub fn worker_main() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        // The owner reads how it ended; there is nobody to read more.
        Err(_) => ExitCode::FAILURE,
    }
}

fn serve() -> io::Result<()> {
    let Some(setup) = protocol::read(&mut io::stdin().lock(), SETUP_BYTES)? else {
        return Ok(());
    };
    let setup: Setup = serde_json::from_slice(&setup)?;
    let requests = read_requests(setup.input_bytes)?;
    let mut answers = io::stdout().lock();
    if let Err(error) = confine::confine(setup.memory_bytes, setup.input_bytes) {
        let reason = format!("it could not limit itself: {error}");
        return protocol::write(&mut answers, &Greeting::Refused(reason));
    }
    protocol::write(&mut answers, &Greeting::Ready)?;
    for request in requests {
        let request: Request = serde_json::from_slice(&request)?;
        confine::allow_time(setup.time_ms)?;
        // The interpreter is gone when this returns: if it cannot end well, no answer was sent.
        let outcome = sandbox::run(&request.script, request.variables.get(), &setup);
        protocol::write(
            &mut answers,
            &Reply {
                number: request.number,
                outcome,
            },
        )?;
    }
    Ok(())
}

/// A thread of its own reads, so that the end of the input is noticed while a script runs: it means that the owner
/// is gone, and nothing else would end a script that heeds no limit.
fn read_requests(most: u32) -> io::Result<Receiver<Vec<u8>>> {
    let (sender, requests) = sync_channel(1);
    thread::Builder::new()
        .name("requests".to_owned())
        .stack_size(READER_STACK_BYTES)
        .spawn(move || {
            let mut input = io::stdin().lock();
            while let Ok(Some(request)) = protocol::read(&mut input, most) {
                if sender.send(request).is_err() {
                    break;
                }
            }
            std::process::exit(0);
        })?;
    Ok(requests)
}
