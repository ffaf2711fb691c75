//! `tidegate drain --plan`: what the end of the process would be with these settings, step by step.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tidegate::Options;
use tidegate::plan::DrainPlan;

use crate::args::{DrainArguments, Output};
use crate::serve::{CLOSE_CONNECTIONS, CLOSE_RUNTIME, Config, read_settings, refuse_settings};
use crate::{exit, terminal};

/// One step of a drain.
#[derive(Debug, Serialize, PartialEq)]
#[serde(rename_all = "camelCase")]
struct Step {
    /// Its name.
    name: &'static str,
    /// When it has ended at the latest, after the signal.
    until_ms: u64,
    /// The shell; none for the host.
    shell: Option<String>,
    /// What happens.
    what: String,
}

/// Prints the plan and gives the exit code.
pub fn drain(arguments: DrainArguments) -> u8 {
    let output = arguments.output;
    let config = match read_settings(&Arc::new(arguments.settings)) {
        Ok(config) => config,
        Err(wrong) => return refuse_settings(&wrong),
    };
    let steps = plan(&config);
    let ends_ms = steps.iter().map(|step| step.until_ms).max().unwrap_or_default();
    let grace = config.shells[0].options.host_grace;
    let note = match grace {
        None => "the host's grace is not known (`host-grace`): see that it is longer than that".to_owned(),
        Some(grace) if milliseconds(grace) < ends_ms => format!(
            "outcomes are saved within the host's grace of {}; closing what is left may be cut short by it",
            seconds(milliseconds(grace))
        ),
        Some(grace) => format!("within the host's grace of {}", seconds(milliseconds(grace))),
    };
    match output {
        Output::Json => {
            let plan = serde_json::json!({ "steps": steps, "endsMs": ends_ms, "note": note });
            terminal::line(&plan.to_string());
        }
        Output::Table => {
            terminal::table(
                ["step", "until", "shell", "what"],
                steps.iter().map(|step| {
                    [
                        step.name.to_owned(),
                        seconds(step.until_ms),
                        step.shell.clone().unwrap_or_else(|| "-".to_owned()),
                        step.what.clone(),
                    ]
                }),
            );
            terminal::line(
                "Whether `persist-reserve` is enough for what is live, a running server says: `tidegate drain-plan`.",
            );
            terminal::line(&format!(
                "The process has ended after {} at the latest; {note}.",
                seconds(ends_ms)
            ));
        }
    }
    exit::DRAINED
}

fn plan(config: &Config) -> Vec<Step> {
    let readiness = "readiness falls; answers ask their clients to reconnect elsewhere";
    let mut steps = vec![step("unready", Duration::ZERO, readiness)];
    let mut saved = Duration::ZERO;
    for shell in &config.shells {
        steps.extend(of_shell(&shell.id, &shell.options));
        saved = saved.max(shell.options.effective_deadline() + shell.options.reserve());
    }
    let reserve = config.shells.iter().map(|shell| shell.options.reserve()).max();
    let closed = saved.max(config.listener_lead) + CLOSE_CONNECTIONS.min(reserve.unwrap_or_default());
    let closing =
        "the listener closes; event streams end with a hint to come back; what still waits is answered";
    let leaving = "tasks and threads are joined; the stores close last; the report is printed";
    steps.push(step("listener", closed, closing));
    steps.push(step("leave", closed + CLOSE_RUNTIME, leaving));
    steps
}

/// The runtime's own plan, up to where the host takes over.
fn of_shell(id: &str, options: &Options) -> Vec<Step> {
    let plan = DrainPlan::of(options, &[]);
    let steps = plan.steps.into_iter().filter(|step| step.name != "leave");
    steps
        .map(|step| Step {
            name: step.name,
            until_ms: step.until_ms,
            shell: Some(id.to_owned()),
            what: step.what,
        })
        .collect()
}

fn step(name: &'static str, until: Duration, what: &str) -> Step {
    Step {
        name,
        until_ms: milliseconds(until),
        shell: None,
        what: what.to_owned(),
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn seconds(ms: u64) -> String {
    format!("{}.{:03} s", ms / 1000, ms % 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_saved_inside_the_grace() {
        let options = Options {
            drain_deadline: Duration::from_secs(30),
            host_grace: Some(Duration::from_secs(10)),
            ..Options::default()
        };
        let steps = of_shell("default", &options);
        assert_eq!(steps.last().unwrap().until_ms, 10_000);
        assert!(steps.iter().map(|step| step.until_ms).is_sorted());
    }
}
