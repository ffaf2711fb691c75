//! Scripts of processes: run by worker processes, which are this binary again with a hidden argument.

use std::process::ExitCode;
use std::sync::Arc;

use tidegate::Builder;
use tidegate_script::{FORMATS, JOB_TYPE, Options, ScriptActivity, reexec};

/// Makes this process a worker. Not for people: it is in no help.
const WORKER: &str = "script-worker";

/// Runs as a worker if this process was started as one. To be asked before anything else.
pub fn worker() -> Option<ExitCode> {
    let is_worker = std::env::args_os()
        .nth(1)
        .is_some_and(|argument| argument == WORKER);
    is_worker.then(tidegate_script::worker_main)
}

/// The script handler of a runtime. Dropping the last one ends its workers.
pub fn handler() -> Arc<ScriptActivity> {
    Arc::new(ScriptActivity::new(Options::default(), || reexec(WORKER)))
}

/// Lets a runtime run scripts with `handler`.
pub fn with_scripts(builder: Builder, handler: &Arc<ScriptActivity>) -> Builder {
    let formats = FORMATS.iter().map(|format| (*format).to_owned()).collect();
    builder
        .script_formats(formats)
        .activity(JOB_TYPE, handler.clone())
}
