//! The plan of a drain: what happens, in which order, and how long each step may take. What is printed is what
//! [`crate::Runtime::drain`] does.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::options::Options;
use crate::runtime::Runtime;

/// The ordered plan of a drain.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DrainPlan {
    /// The steps, in their order.
    pub steps: Vec<PlanStep>,
    /// How long all of it may take, in milliseconds.
    pub at_most_ms: u64,
    /// How long the host may take to stop, where it says so, in milliseconds.
    pub host_grace_ms: Option<u64>,
    /// Whether the reserve would do now; none where no runtime was asked.
    pub reserve: Option<ReserveCheck>,
}

/// What saving the outcomes of the present cycles would take of the time that is kept for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReserveCheck {
    /// Cycles that are live.
    pub live_cycles: u64,
    /// The time that is kept for their outcomes, in milliseconds: what the reserve has left once results no longer count.
    pub kept_ms: u64,
    /// What it takes, as measured on this runtime's own commits, in milliseconds. None before the first one.
    pub expected_ms: Option<u64>,
    /// Whether that is enough. None before anything was measured.
    pub is_enough: Option<bool>,
}

impl fmt::Display for ReserveCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            live_cycles, kept_ms, ..
        } = self;
        match (self.expected_ms, self.is_enough) {
            (Some(expected_ms), Some(is_enough)) => {
                let verdict = match is_enough {
                    true => "that is enough",
                    false => "that is not enough: make `persist-reserve` larger",
                };
                write!(
                    f,
                    "Saving the outcomes of {live_cycles} live cycles takes about {expected_ms} ms as measured; \
                     {kept_ms} ms are kept for it: {verdict}."
                )
            }
            _ => write!(
                f,
                "{kept_ms} ms are kept for saving outcomes; nothing has been committed yet to measure it by."
            ),
        }
    }
}

/// One step of a drain.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanStep {
    /// Its name.
    pub name: &'static str,
    /// What is done.
    pub what: String,
    /// When it has ended at the latest, in milliseconds after the begin of the drain.
    pub until_ms: u64,
}

impl fmt::Display for DrainPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, step) in self.steps.iter().enumerate() {
            let number = number + 1;
            writeln!(
                f,
                "{number}. {:<8} {:>6} ms  {}",
                step.name, step.until_ms, step.what
            )?;
        }
        write!(f, "At most {} ms", self.at_most_ms)?;
        match self.host_grace_ms {
            Some(grace) => write!(f, ", inside the host's grace of {grace} ms."),
            None => write!(f, "; the host's grace is not known."),
        }?;
        match &self.reserve {
            Some(reserve) => write!(f, "\n{reserve}"),
            None => Ok(()),
        }
    }
}

/// Until when results of cut activities still count, after the effective deadline.
pub(crate) fn results_within(options: &Options) -> Duration {
    options.reserve() / 2
}

/// How long a store is waited for where nobody has said how long the host waits: a slow disk is better waited for than
/// given up.
const PATIENCE: Duration = Duration::from_secs(2);

/// Until when marks may become durable, after the effective deadline: the rest of the reserve is for the spill file and
/// the way out.
pub(crate) fn marks_within(options: &Options) -> Duration {
    let inside = options.reserve() * 4 / 5;
    match options.host_grace {
        Some(_) => inside,
        None => inside.max(PATIENCE),
    }
}

/// What is kept for saving the outcomes of cut cycles once their results no longer count.
pub(crate) fn time_for_marks(options: &Options) -> Duration {
    marks_within(options).saturating_sub(results_within(options))
}

/// All that comes after the effective deadline.
fn reserve(options: &Options) -> Duration {
    options
        .reserve()
        .max(marks_within(options) + options.reserve() / 5)
}

impl Runtime {
    /// The plan by which this runtime drains.
    pub fn drain_plan(&self) -> DrainPlan {
        let sources = self.inner().sources.status().into_iter();
        let names: Vec<String> = sources.map(|source| source.name).collect();
        let shared = self.shared();
        let kept = time_for_marks(&shared.options);
        let live_cycles = self.quiescence().live();
        let expected = shared.pace.expected(live_cycles);
        let ms = |duration: Duration| duration.as_millis() as u64;
        DrainPlan {
            reserve: Some(ReserveCheck {
                live_cycles,
                kept_ms: ms(kept),
                expected_ms: expected.map(ms),
                is_enough: expected.map(|expected| expected <= kept),
            }),
            ..DrainPlan::of(&shared.options, &names)
        }
    }
}

impl DrainPlan {
    /// The plan by which a runtime with these options drains; without the names of its sources they are not listed.
    pub fn of(options: &Options, sources: &[String]) -> Self {
        let ms = |duration: Duration| duration.as_millis() as u64;
        let deadline = options.effective_deadline();
        let listed = if sources.is_empty() {
            String::new()
        } else {
            format!(": {}", sources.join(", "))
        };
        let step = |name, what: String, until: Duration| PlanStep {
            name,
            what,
            until_ms: ms(until),
        };
        let steps = vec![
            step("close", "readiness says `draining`, the gate admits no cycle".to_owned(), Duration::ZERO),
            step(
                "pause",
                format!("pause the sources, all at once, each within its own timeout{listed}"),
                options.ingress_pause_timeout.min(deadline),
            ),
            step("wait", "wait for live cycles to come to rest; stimuli are accepted and kept".to_owned(), deadline),
            step(
                "cut",
                "tell the activities that still run to stop; results that come in time count".to_owned(),
                deadline + results_within(options),
            ),
            step(
                "mark",
                "write the outcomes and the marks of what was cut, in one batch for each owner; try again what fails"
                    .to_owned(),
                deadline + marks_within(options),
            ),
            step(
                "spill",
                match &options.spill {
                    Some(path) => format!("write what the store did not take to {}", path.display()),
                    None => "log what the store did not take (there is no spill file)".to_owned(),
                },
                deadline + reserve(options),
            ),
            step(
                "leave",
                "join the runtime's tasks and threads, close the store last".to_owned(),
                deadline + reserve(options),
            ),
        ];
        DrainPlan {
            steps,
            at_most_ms: ms(deadline + reserve(options)),
            host_grace_ms: options.host_grace.map(ms),
            reserve: None,
        }
    }
}
