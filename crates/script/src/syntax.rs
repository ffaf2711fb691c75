//! Whether a script can be parsed, and where not.

use rquickjs::{CatchResultExt, CaughtError, Context, Runtime, context::intrinsic};

use crate::sandbox::fault;

/// Longest script that is parsed, in bytes: a script task is not the place for a program.
const LONGEST_BYTES: usize = 256 << 10;
/// Memory for parsing it.
const MEMORY_BYTES: usize = 64 << 20;
/// Stack for parsing it: little enough for any thread that calls.
const STACK_BYTES: usize = 256 << 10;
/// Runs before anything of the script, which therefore never does.
const STOPPER: &str = "throw 0;\n";

/// A script that cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}{}", fault::place(*line, *column))]
pub struct ScriptError {
    /// What is wrong.
    pub message: String,
    /// Line in the script, from 1; none if no place is to blame.
    pub line: Option<u32>,
    /// Column in the line, from 1.
    pub column: Option<u32>,
}

/// Checks that a script can be parsed, as it is when it runs. Nothing of it is run: it is compiled whole behind a
/// statement that throws.
///
/// It parses in this process, with limits on size, memory and stack; parsing has no loop for a script to hold up.
///
/// # Errors
/// The script cannot be parsed, or is longer than 256 KiB.
pub fn check_syntax(text: &str) -> Result<(), ScriptError> {
    let refuse = |message: String| {
        Err(ScriptError {
            message,
            line: None,
            column: None,
        })
    };
    if text.len() > LONGEST_BYTES {
        return refuse(format!(
            "the script has {} bytes, {LONGEST_BYTES} are allowed",
            text.len()
        ));
    }
    match parse(text) {
        Ok(result) => result,
        Err(error) => refuse(format!("the script could not be checked: {error}")),
    }
}

fn parse(text: &str) -> rquickjs::Result<Result<(), ScriptError>> {
    let runtime = Runtime::new()?;
    runtime.set_memory_limit(MEMORY_BYTES);
    runtime.set_max_stack_size(STACK_BYTES);
    let context =
        Context::custom::<(intrinsic::Eval, intrinsic::RegExp, intrinsic::RegExpCompiler)>(&runtime)?;
    context.with(
        |ctx| match ctx.eval::<(), _>(format!("{STOPPER}{text}")).catch(&ctx) {
            Err(CaughtError::Exception(exception)) => {
                let fault = fault::Fault::of(&exception);
                let line = fault.line.map(|line| line.saturating_sub(1).max(1));
                Ok(Err(ScriptError {
                    message: fault.message,
                    line,
                    column: fault.column,
                }))
            }
            // What was thrown is no error object: it is what the first statement throws, so all the rest was parsed.
            Ok(()) | Err(CaughtError::Value(_)) => Ok(Ok(())),
            Err(CaughtError::Error(error)) => Err(error),
        },
    )
}
