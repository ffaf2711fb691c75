//! `tidegate run`: one process on a temporary store, and the path it took.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::{Value, json};
use tidegate::api::{Definition, InstanceDetail, Resource, StartRequest};
use tidegate::model::{InstanceKey, Json, SubStatus, Variables};
use tidegate::store::{IncidentFilter, Page};
use tidegate::{Error, Options, Runtime};
use tokio::time::Instant;

use crate::args::{Output, RunArguments};
use crate::{exit, scripts, terminal};

/// How often the instance is looked at.
const LOOK: Duration = Duration::from_millis(10);
/// So many looks in a row must find it waiting in vain: a message of its own may be on its way.
const LOOKS_IN_VAIN: u32 = 10;
/// Events of one look-up.
const PAGE: usize = 1000;
/// Incidents that are printed.
const INCIDENTS: usize = 20;

/// How the run ended.
enum End {
    /// The instance has ended.
    Ended,
    /// It waits for something that cannot come here.
    Stuck,
    /// The time given ran out.
    TimedOut,
}

/// Runs one process and gives the exit code.
pub async fn run(arguments: RunArguments) -> u8 {
    let output = arguments.output;
    log();
    match perform(arguments).await {
        Ok((report, has_completed)) => {
            match output {
                Output::Json => terminal::line(&report.json().to_string()),
                Output::Table => report.print(),
            }
            if has_completed {
                exit::DRAINED
            } else {
                exit::FAILED
            }
        }
        Err(message) => {
            terminal::error(&message);
            exit::FAILED
        }
    }
}

/// Warnings, and what `demo.log` says.
fn log() {
    let filter = tracing_subscriber::EnvFilter::new("warn,tidegate::activity=info");
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .without_time();
    let set = log.with_target(false).log_internal_errors(false).try_init();
    debug_assert!(set.is_ok(), "the log is set up once");
}

async fn perform(arguments: RunArguments) -> Result<(Report, bool), String> {
    let bytes = std::fs::read(&arguments.file)
        .map_err(|error| format!("`{}` cannot be read: {error}", arguments.file.display()))?;
    let store = tidegate::store::open("memory:").map_err(|error| error.to_string())?;
    let options = Options {
        owners: 1,
        ..Options::default()
    };
    let scripts = scripts::handler();
    let builder = Runtime::builder().store(store).options(options).demo_activities();
    let runtime = scripts::with_scripts(builder, &scripts)
        .start()
        .await
        .map_err(text)?;
    let name = arguments.file.display().to_string();
    let deployment = runtime
        .deploy(vec![Resource { name, bytes }], None, "run")
        .await
        .map_err(text)?;
    for warning in &deployment.warnings {
        terminal::error_line(&warning.to_string());
    }
    let processes: Vec<_> = deployment
        .definitions
        .iter()
        .map(|definition| definition.process_id.as_str())
        .collect();
    let process = choose(&processes, arguments.process.as_deref())?;
    let variables = arguments
        .variables
        .iter()
        .map(|(name, value)| (name.as_str(), Json::of(value)));
    let request = StartRequest::new(Definition::Latest(process)).variables(variables.collect::<Variables>());
    let started = runtime.start(request).await.map_err(text)?;
    let (end, detail) = follow(&runtime, started.instance, arguments.timeout).await?;
    let report = Report::of(&runtime, end, detail).await?;
    let has_completed = report.detail.row.sub_status == SubStatus::Finished;
    Ok((report, has_completed))
}

/// The error with every diagnostic on a line of its own.
fn text(error: Error) -> String {
    match &error {
        Error::NotDeployable(diagnostics) => {
            let lines = diagnostics.iter().map(|diagnostic| format!("\n{diagnostic}"));
            format!("{error}{}", lines.collect::<String>())
        }
        error => error.to_string(),
    }
}

fn choose(processes: &[&str], wanted: Option<&str>) -> Result<String, String> {
    let listed = || {
        processes
            .iter()
            .map(|id| format!("`{id}`"))
            .collect::<Vec<_>>()
            .join(", ")
    };
    match (wanted, processes) {
        (Some(wanted), _) if processes.contains(&wanted) => Ok(wanted.to_owned()),
        (Some(wanted), _) => Err(format!(
            "the file has no executable process `{wanted}`; it has {}",
            listed()
        )),
        (None, [only]) => Ok((*only).to_owned()),
        (None, []) => Err("the file has no executable process".to_owned()),
        (None, _) => Err(format!(
            "the file has several processes; choose one with --process: {}",
            listed()
        )),
    }
}

async fn follow(
    runtime: &Runtime,
    instance: InstanceKey,
    timeout: Option<Duration>,
) -> Result<(End, InstanceDetail), String> {
    let until = timeout.map(|timeout| Instant::now() + timeout);
    let mut in_vain = 0;
    loop {
        let detail = runtime.instance(instance).await.map_err(text)?;
        if detail.row.sub_status.is_finished() {
            return Ok((End::Ended, detail));
        }
        in_vain = if waits_in_vain(&detail) { in_vain + 1 } else { 0 };
        if in_vain >= LOOKS_IN_VAIN {
            return Ok((End::Stuck, detail));
        }
        if until.is_some_and(|until| Instant::now() >= until) {
            return Ok((End::TimedOut, detail));
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// True if nothing that the instance waits for comes by itself.
fn waits_in_vain(detail: &InstanceDetail) -> bool {
    let comes_by_itself = |wait: &tidegate::api::Wait| match wait.kind {
        "timer" => true,
        "job" => tidegate::activity::demo()
            .iter()
            .any(|(job_type, _)| *job_type == wait.detail),
        _ => false,
    };
    detail.row.sub_status == SubStatus::Suspended && !detail.waiting_for.iter().any(comes_by_itself)
}

/// One element on the path.
struct Step {
    element: String,
    at_ms: i64,
    end: &'static str,
}

struct Report {
    end: End,
    detail: InstanceDetail,
    path: Vec<Step>,
    incidents: Vec<(String, String)>,
}

impl Report {
    async fn of(runtime: &Runtime, end: End, detail: InstanceDetail) -> Result<Self, String> {
        let key = detail.row.key;
        let mut path: Vec<Step> = Vec::new();
        let mut step_of = HashMap::new();
        let mut after = 0;
        loop {
            let items = runtime.history(key, after, PAGE).await.map_err(text)?;
            for item in &items {
                after = item.sequence;
                let (Some(element), Some(instance)) = (&item.element_id, item.element_instance_key) else {
                    continue;
                };
                match item.event {
                    "ElementActivated" => {
                        step_of.insert(instance, path.len());
                        let at_ms = item.time.since(detail.row.started_at);
                        path.push(Step {
                            element: element.to_string(),
                            at_ms,
                            end: "active",
                        });
                    }
                    event => {
                        let step = step_of
                            .get(&instance)
                            .and_then(|position: &usize| path.get_mut(*position));
                        if let (Some(step), Some(end)) = (step, end_of(event)) {
                            step.end = end;
                        }
                    }
                }
            }
            if items.len() < PAGE {
                break;
            }
        }
        let filter = IncidentFilter {
            instance: Some(key),
            ..IncidentFilter::default()
        };
        let incidents = runtime
            .incidents(filter, Page::first(INCIDENTS))
            .await
            .map_err(text)?;
        let incidents = incidents
            .into_iter()
            .map(|row| (row.element_id.unwrap_or_default(), row.message));
        Ok(Self {
            end,
            path,
            incidents: incidents.collect(),
            detail,
        })
    }

    fn json(&self) -> Value {
        let row = &self.detail.row;
        json!({
            "instanceKey": row.key,
            "processId": row.process_id,
            "status": row.sub_status.status(),
            "subStatus": row.sub_status,
            "timedOut": matches!(self.end, End::TimedOut),
            "path": self.path.iter().map(|step| step.element.as_str()).collect::<Vec<_>>(),
            "variables": self.detail.variables,
            "waitingFor": self.detail.waiting_for.iter().map(|wait| json!({
                "elementId": wait.element_id, "kind": wait.kind, "detail": wait.detail,
            })).collect::<Vec<_>>(),
            "incidents": self.incidents.iter().map(|(element, message)| json!({
                "elementId": element, "message": message,
            })).collect::<Vec<_>>(),
        })
    }

    fn print(&self) {
        let rows = self.path.iter().enumerate().map(|(position, step)| {
            let at = format!("{}.{:03} s", step.at_ms.max(0) / 1000, step.at_ms.max(0) % 1000);
            [
                (position + 1).to_string(),
                step.element.clone(),
                at,
                step.end.to_owned(),
            ]
        });
        terminal::table(["#", "element", "at", "end"], rows);
        for (name, value) in self.detail.variables.iter() {
            terminal::line(&terminal::printable(&format!("{name} = {}", value.text())));
        }
        for (element, message) in &self.incidents {
            terminal::error(&terminal::printable(&format!(
                "incident in `{element}`: {message}"
            )));
        }
        match self.end {
            End::Ended if self.detail.row.sub_status == SubStatus::Finished => terminal::line("completed"),
            End::Ended => terminal::error(&format!(
                "the instance ended as {}",
                self.detail.row.sub_status.word()
            )),
            End::TimedOut => terminal::error("the instance had not ended when the time was over"),
            End::Stuck => {}
        }
        if !matches!(self.end, End::Ended) {
            for wait in &self.detail.waiting_for {
                let what = format!("`{}` waits for {}", wait.element_id, waited_for(wait));
                terminal::error(&terminal::printable(&what));
            }
        }
    }
}

/// How an event ends a step, if it does.
fn end_of(event: &str) -> Option<&'static str> {
    match event {
        "ElementCompleted" => Some("completed"),
        "ElementTerminated" => Some("terminated"),
        _ => None,
    }
}

fn waited_for(wait: &tidegate::api::Wait) -> String {
    let detail = &wait.detail;
    match wait.kind {
        "message" => format!("the message {detail}, which nobody sends in this run"),
        "userTask" if detail.is_empty() => "a person to complete it".to_owned(),
        "userTask" => format!("{detail} to complete it"),
        "job" => format!("a worker for jobs of type `{detail}`"),
        "timer" => format!("the time {detail}"),
        other => format!("{other} {detail}"),
    }
}
