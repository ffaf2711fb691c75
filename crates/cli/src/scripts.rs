//! What stands in for code in processes: worker processes for their scripts, which are this binary again with a hidden
//! argument, and jobs for their Java classes.

use std::process::ExitCode;
use std::sync::Arc;

use tidegate::Builder;
use tidegate::engine::{ScriptCheck, ScriptFault};
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
        .script_check(ScriptCheck(Arc::new(check)))
        .activity(JOB_TYPE, handler.clone())
}

/// Reads a script that is to be deployed. One of another format is another handler's.
fn check(format: &str, text: &str) -> Result<(), ScriptFault> {
    if !FORMATS.iter().any(|known| known.eq_ignore_ascii_case(format)) {
        return Ok(());
    }
    tidegate_script::check_syntax(text).map_err(|error| ScriptFault {
        message: error.message,
        line: error.line,
        column: error.column,
    })
}

/// Names of Java code with the job types that stand in for it.
pub type Delegates = Vec<(String, String)>;

/// Reads `com.example.Pay=pay, payService=pay`.
pub fn delegates(text: &str) -> Result<Delegates, String> {
    let entries = text.split(',').map(str::trim).filter(|entry| !entry.is_empty());
    entries
        .map(|entry| {
            let (name, job_type) = entry.rsplit_once('=').unwrap_or((entry, ""));
            match (name.trim(), job_type.trim()) {
                ("", _) | (_, "") => Err(format!("`{entry}` is not of the form NAME=TYPE")),
                (name, job_type) => Ok((name.to_owned(), job_type.to_owned())),
            }
        })
        .collect()
}

/// Lets jobs stand in for Java code.
pub fn with_delegates(builder: Builder, delegates: &[(String, String)]) -> Builder {
    delegates.iter().fold(builder, |builder, (name, job_type)| {
        builder.delegate(name, job_type)
    })
}

#[cfg(test)]
mod tests {
    use super::delegates;

    #[test]
    fn delegates_are_read_in_pairs() {
        let pair = |name: &str, job_type: &str| (name.to_owned(), job_type.to_owned());
        assert_eq!(
            delegates(" com.example.Pay = pay,bean.pay(a == 1)=pay, "),
            Ok(vec![
                pair("com.example.Pay", "pay"),
                pair("bean.pay(a == 1)", "pay")
            ])
        );
        assert_eq!(delegates(""), Ok(Vec::new()));
        assert!(delegates("com.example.Pay").unwrap_err().contains("NAME=TYPE"));
    }
}
