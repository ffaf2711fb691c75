//! The end of the process: every shell drains at once, and the exit code is the worst that came of it.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Map, Value, json};
use tidegate::shell::Shell;
use tidegate::status::{DrainOutcome, DrainResult};
use tidegate_server::Host;
use tidegate_server::host::DEFAULT_SHELL;

use super::notify::Notify;
use super::signals::Signals;
use crate::exit;

/// How often the service manager is told how far the drain is.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(500);

/// What became of each shell; none of a shell without a generation, an error of one whose drain panicked.
pub type Outcomes = Vec<(String, Result<Option<DrainOutcome>, ()>)>;

/// Drains every shell, all at once, and hurries them when the signals ask for it.
pub async fn drain(host: &Host, signals: &mut Signals, notify: &Notify, reserve: Duration) -> Outcomes {
    let shells = host.shells();
    let mut draining = tokio::spawn(drain_all(shells.clone()));
    let mut ticks = tokio::time::interval(PROGRESS_INTERVAL);
    let mut is_forced = false;
    loop {
        tokio::select! {
            biased;
            outcomes = &mut draining => {
                return outcomes.unwrap_or_else(|error| {
                    tracing::error!(%error, "the drain panicked");
                    shells.iter().map(|shell| (shell.id().to_owned(), Err(()))).collect()
                });
            }
            () = signals.force(), if !is_forced => {
                is_forced = true;
                join_all(shells.iter().map(force)).await;
            }
            _ = ticks.tick() => {
                let runtimes = shells.iter().filter_map(Shell::runtime);
                let live: u64 = runtimes.map(|runtime| runtime.quiescence().live()).sum();
                notify.extend(&format!("draining: {live} live cycles"), reserve + PROGRESS_INTERVAL * 4);
            }
        }
    }
}

async fn drain_all(shells: Vec<Shell>) -> Outcomes {
    let tasks = shells.into_iter().map(|shell| {
        let id = shell.id().to_owned();
        let task = tokio::spawn(async move { shell.stop().await });
        async move {
            let outcome = task.await.map_err(|error| {
                tracing::error!(shell = id, %error, "the drain panicked");
            });
            (id, outcome)
        }
    });
    join_all(tasks).await
}

async fn force(shell: &Shell) {
    let Some(runtime) = shell.runtime() else { return };
    let forced = runtime
        .force_drain(Some("second SIGINT".to_owned()), "signal")
        .await;
    if let Err(error) = forced {
        tracing::warn!(shell = shell.id(), %error, "the drain could not be forced");
    }
}

/// The worst exit code of the outcomes.
pub fn exit_code(outcomes: &Outcomes) -> u8 {
    let codes = outcomes.iter().map(|(_, outcome)| match outcome {
        Ok(Some(outcome)) => exit::of_drain(outcome),
        Ok(None) => exit::DRAINED,
        Err(()) => exit::ABORTED,
    });
    codes.max().unwrap_or(exit::DRAINED)
}

/// The report: the default shell's outcome, the others beside it, a sentence over all of them, and the exit code.
pub fn report(outcomes: &Outcomes, code: u8) -> Value {
    let of = |id: &str| outcomes.iter().find(|(found, _)| found == id);
    let outcome = of(DEFAULT_SHELL).and_then(|(_, outcome)| outcome.as_ref().ok()?.as_ref());
    let others = outcomes.iter().filter(|(id, _)| id != DEFAULT_SHELL);
    let others: Map<_, _> = others
        .map(|(id, outcome)| (id.clone(), json!(outcome.as_ref().ok())))
        .collect();
    let mut report = json!({ "summary": summary(outcomes), "outcome": outcome, "exitCode": code });
    if !others.is_empty() {
        report["shells"] = Value::Object(others);
    }
    report
}

fn summary(outcomes: &Outcomes) -> String {
    let drained: Vec<_> = outcomes
        .iter()
        .filter_map(|(_, outcome)| outcome.as_ref().ok()?.as_ref())
        .collect();
    let sum = |count: fn(&DrainOutcome) -> u64| drained.iter().map(|outcome| count(outcome)).sum::<u64>();
    let completed = sum(|outcome| outcome.execution_cycles_completed_count);
    let cut = sum(|outcome| outcome.execution_cycles_force_cancelled_count);
    let abandoned = sum(|outcome| outcome.execution_cycles_abandoned_count);
    let unsaved = sum(|outcome| outcome.persistence_failure_count);
    let how = match drained
        .iter()
        .map(|outcome| outcome.overall_result)
        .max_by_key(|result| gravity(*result))
    {
        None => "nothing ran",
        Some(DrainResult::CompletedWithinDeadline) => "drained within the deadline",
        Some(DrainResult::DeadlineExceeded) => "drained to the deadline",
        Some(DrainResult::Forced) => "forced",
        Some(DrainResult::AbortedByUnhandledException) => "aborted",
    };
    format!(
        "{how}: {completed} cycles came to rest, {cut} were interrupted and resume at the next start \
         ({abandoned} of them did not answer), {unsaved} could not be saved"
    )
}

fn gravity(result: DrainResult) -> u8 {
    match result {
        DrainResult::CompletedWithinDeadline => 0,
        DrainResult::DeadlineExceeded => 1,
        DrainResult::Forced => 2,
        DrainResult::AbortedByUnhandledException => 3,
    }
}
