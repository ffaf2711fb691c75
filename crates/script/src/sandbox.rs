//! One script in one interpreter, made for it and gone with it.

pub(crate) mod fault;

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use rquickjs::context::{EvalOptions, intrinsic};
use rquickjs::{Context, Ctx, Error, Function, Object, Runtime, Value};
use serde_json::value::RawValue;

use crate::protocol::{Outcome, Setup};

/// The interpreter's stack, well inside of the eight megabytes that a process's first thread has.
const STACK_BYTES: usize = 1 << 20;
/// Prepares the global object before the script sees it.
const PRELUDE: &str = include_str!("sandbox/prelude.js");

/// What the interpreter has beside the base objects: neither `performance`, a clock, nor weak references, through
/// which the collector can be watched.
type Intrinsics = (
    intrinsic::Date,
    intrinsic::Eval,
    intrinsic::RegExpCompiler,
    intrinsic::RegExp,
    intrinsic::Json,
    intrinsic::Proxy,
    intrinsic::MapSet,
    intrinsic::TypedArrays,
    intrinsic::Promise,
);

/// Runs a script over variables, which are a JSON object.
pub(crate) fn run(script: &str, variables: &str, setup: &Setup) -> Outcome {
    let is_late = Rc::new(Cell::new(false));
    let outcome = try_run(script, variables, setup, Rc::clone(&is_late));
    match outcome {
        _ if is_late.get() => Outcome::TimedOut,
        Ok(outcome) => outcome,
        Err(error) => Outcome::Failed(format!("the script could not be run: {error}")),
    }
}

fn try_run(
    script: &str,
    variables: &str,
    setup: &Setup,
    is_late: Rc<Cell<bool>>,
) -> rquickjs::Result<Outcome> {
    let runtime = Runtime::new()?;
    runtime.set_memory_limit(usize::try_from(setup.memory_bytes).unwrap_or(usize::MAX));
    runtime.set_max_stack_size(STACK_BYTES);
    let began = Instant::now();
    let limit = Duration::from_millis(setup.time_ms);
    runtime.set_interrupt_handler(Some(Box::new(move || {
        is_late.set(began.elapsed() >= limit);
        is_late.get()
    })));
    let context = Context::custom::<Intrinsics>(&runtime)?;
    context.with(|ctx| {
        let bpmn_error = prepare(&ctx, variables)?;
        match evaluate(&ctx, script).and_then(|value| to_json(&ctx, value)) {
            Ok(Some(text)) if text.len() > setup.output_bytes as usize => Ok(Outcome::Failed(format!(
                "the script's result takes {} bytes, {} are allowed",
                text.len(),
                setup.output_bytes
            ))),
            Ok(text) => Ok(raw(text).map_or_else(Outcome::Failed, Outcome::Value)),
            Err(Error::Exception) => Ok(thrown(&ctx, &bpmn_error, setup)),
            Err(Error::WouldBlock) => Ok(Outcome::Failed(
                "the script's promise is never settled: nothing here could settle it".to_owned(),
            )),
            Err(error) => Err(error),
        }
    })
}

/// Takes away what a script must not have, adds the variables, and returns the class `BpmnError`.
fn prepare<'js>(ctx: &Ctx<'js>, variables: &str) -> rquickjs::Result<Value<'js>> {
    let prelude: Function = ctx.eval(PRELUDE)?;
    let variables = ctx.json_parse(variables)?;
    prelude.call((variables,))
}

fn evaluate<'js>(ctx: &Ctx<'js>, script: &str) -> rquickjs::Result<Value<'js>> {
    let mut options = EvalOptions::default();
    options.filename = Some("script".to_owned());
    let value: Value = ctx.eval_with_options(script, options)?;
    while ctx.execute_pending_job() {}
    match value.as_promise() {
        Some(promise) => promise.finish(),
        None => Ok(value),
    }
}

fn to_json<'js>(ctx: &Ctx<'js>, value: Value<'js>) -> rquickjs::Result<Option<String>> {
    ctx.json_stringify(value)?
        .map(|text| text.to_string())
        .transpose()
}

fn raw(text: Option<String>) -> Result<Option<Box<RawValue>>, String> {
    text.map(RawValue::from_string)
        .transpose()
        .map_err(|error| format!("the script's result is not JSON: {error}"))
}

/// What was thrown: a `BpmnError` that can be one, or a failure.
fn thrown<'js>(ctx: &Ctx<'js>, bpmn_error: &Value<'js>, setup: &Setup) -> Outcome {
    let value = ctx.catch();
    let Some(error) = value
        .as_object()
        .filter(|object| object.is_instance_of(bpmn_error))
    else {
        return Outcome::Failed(fault::Fault::of_thrown(ctx, &value).to_string());
    };
    match bpmn_outcome(ctx, error, setup) {
        Ok(outcome) => outcome,
        Err(_) => Outcome::Failed(format!(
            "the script's BpmnError cannot be read: {}",
            fault::Fault::of_thrown(ctx, &ctx.catch())
        )),
    }
}

fn bpmn_outcome<'js>(ctx: &Ctx<'js>, error: &Object<'js>, setup: &Setup) -> rquickjs::Result<Outcome> {
    let code: Option<String> = error.get("code").ok();
    let Some(code) = code.filter(|code| !code.is_empty() && code.len() <= fault::CODE_BYTES) else {
        return Ok(Outcome::Failed(format!(
            "the script threw a BpmnError whose code is not a text of 1 to {} bytes",
            fault::CODE_BYTES
        )));
    };
    let message = fault::clipped(error.get("message")?);
    let variables = to_json(ctx, error.get("variables")?)?;
    if variables
        .as_ref()
        .is_some_and(|text| text.len() > setup.output_bytes as usize)
    {
        return Ok(Outcome::Failed(format!(
            "the variables of the script's BpmnError take more than the {} bytes that are allowed",
            setup.output_bytes
        )));
    }
    Ok(
        raw(variables).map_or_else(Outcome::Failed, |variables| Outcome::Error {
            code,
            message,
            variables,
        }),
    )
}
