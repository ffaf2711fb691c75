//! A worker process of its own, for programs that do not want to start themselves again.

use std::process::ExitCode;

fn main() -> ExitCode {
    tidegate_script::worker_main()
}
