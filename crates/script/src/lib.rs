//! JavaScript for script tasks, in worker processes that can be killed.
//!
//! [`ScriptActivity`] is the handler of the job type `script`. It keeps a few worker processes, each of which runs
//! [`worker_main`], and gives every script a fresh interpreter in one of them. No limit inside an interpreter holds
//! against one long native call (`new Array(1e9) + ''` runs for most of a minute), so the last limit is SIGKILL.
//!
//! # What a script sees
//! - Every variable is a read-only global of its name, if the name is not one of the language's own, and always a
//!   property of the global `variables`. Numbers are JavaScript numbers: integers above 2^53 lose digits.
//! - The language of ECMAScript in strict mode, without modules. No files, no network, no processes, no timers, no
//!   clock and no chance: `new Date()`, `Date.now()` and `Math.random()` throw. `new Date(text)` works, in UTC.
//! - `throw new BpmnError(code, message, variables)` ends the job in a BPMN error; the last two may be left out.
//!
//! # What becomes of its result
//! The result is the value of the last expression statement, or of the promise that it is, in JSON.
//! - With the header `resultVariable`, that variable is set to it (`null` if there is none).
//! - Without, the entries of an object become variables. Any other value is dropped.
//!
//! Nothing else leaves a script: assigning to a variable's global is an error, and changing an object inside of it
//! has no effect unless it is part of the result.
//!
//! ```no_run
//! use std::sync::Arc;
//! use tidegate_script::{FORMATS, JOB_TYPE, Options, ScriptActivity, reexec};
//!
//! # fn main() -> std::process::ExitCode {
//! if std::env::args_os().nth(1).is_some_and(|argument| argument == "script-worker") {
//!     return tidegate_script::worker_main();
//! }
//! let scripts = ScriptActivity::new(Options::default(), || reexec("script-worker"));
//! let builder = tidegate::Runtime::builder()
//!     .script_formats(FORMATS.iter().map(|format| (*format).to_owned()).collect())
//!     .activity(JOB_TYPE, Arc::new(scripts));
//! # drop(builder);
//! # std::process::ExitCode::SUCCESS
//! # }
//! ```

mod activity;
mod confine;
mod options;
mod pool;
mod process;
mod protocol;
mod sandbox;
mod syntax;
mod trouble;
mod worker;

pub use activity::{FORMATS, JOB_TYPE, ScriptActivity};
pub use options::Options;
pub use process::reexec;
pub use syntax::{ScriptError, check_syntax};
pub use worker::worker_main;
