//! Reads the `engines` conformance set, and runs the processes that have a machine-readable file beside them: schedules
//! of stimuli with what another engine observed, and small specifications of actions and verifications.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use tidegate_engine::{Definition, history};
use tidegate_model::{
    CommandKind, Effect, ElementInstanceKey, IncidentKey, Json, MessageKey, SubStatus, Variables,
};

use crate::common::{BEGIN, Host, errors, load};

/// Where the conformance data of others lies, if it is there.
pub fn folder() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/conformance");
    folder.join("engines/manifest.json").is_file().then_some(folder)
}

/// What became of one file.
pub struct Outcome {
    pub file: String,
    /// Why it does not pass: what refuses it, and the cases that went another way.
    pub problems: Vec<String>,
    /// Cases of it that were run.
    pub cases: usize,
}

pub fn run(folder: &Path) -> Vec<Outcome> {
    let folder = folder.join("engines");
    let manifest = std::fs::read_to_string(folder.join("manifest.json")).expect("the manifest is there");
    let manifest: Vec<Value> = serde_json::from_str(&manifest).expect("the manifest is JSON");
    manifest.iter().map(|entry| run_file(&folder, entry)).collect()
}

fn run_file(folder: &Path, entry: &Value) -> Outcome {
    let file = entry["file"].as_str().unwrap_or_default().to_owned();
    let path = folder.join(&file);
    let mut outcome = Outcome {
        file,
        problems: Vec::new(),
        cases: 0,
    };
    let bytes = match source(&path) {
        Ok(bytes) => bytes,
        Err(problem) => {
            outcome.problems.push(problem);
            return outcome;
        }
    };
    let compiled = load(
        &outcome.file,
        &bytes,
        &["", "groovy", "javascript", "text/x-groovy"],
    );
    // A file in which nothing says that it is executable is read, and need not be fit to run.
    let is_read = tidegate_bpmn::parse(&outcome.file, &bytes, &tidegate_bpmn::Limits::default())
        .document
        .is_some();
    let is_executable = entry["executable"].as_u64().unwrap_or_default() > 0;
    let counts = |_: &&str| is_executable || !is_read;
    outcome.problems.extend(
        errors(&compiled.diagnostics)
            .into_iter()
            .filter(counts)
            .map(str::to_owned),
    );
    let cases = match outcome.problems.is_empty() {
        true => scenarios(&path, &compiled.definitions)
            .into_iter()
            .chain(specifications(&path, &compiled.definitions)),
        false => return outcome,
    };
    for (name, result) in cases {
        outcome.cases += 1;
        outcome
            .problems
            .extend(result.err().map(|problem| format!("{name}: {problem}")));
    }
    outcome
}

/// The file, with what is only another engine's own in it said in words that are read here: Java delegates as external
/// tasks, which is what their diagnostic says to do, and the vocabularies of two experiments.
fn source(path: &Path) -> Result<Vec<u8>, String> {
    let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
    let Ok(mut text) = String::from_utf8(bytes.clone()) else {
        return Ok(bytes);
    };
    if text.contains("urn:bpmn-lean:expression:simple-boolean:v1") {
        text = text.replace(
            " expressionLanguage=\"urn:bpmn-lean:expression:simple-boolean:v1\"",
            "",
        );
        text = rewritten(&text, "isPresent(", |inside| format!("= {inside} != null"));
        text = rewritten(&text, "stringEquals(", |inside| {
            format!("= {}", inside.replacen(',', " = ", 1))
        });
    }
    text = text.replace(
        "http://olive.io/spec/BPMN/MODEL",
        "http://camunda.org/schema/zeebe/1.0",
    );
    if text.contains("camunda:delegateExpression=") && text.contains("urn:bpmn-lean") {
        let compiled = load("delegate", text.as_bytes(), &[]);
        let codes = errors(&compiled.diagnostics);
        if codes.is_empty() || codes.iter().any(|code| *code != "java-delegate") {
            return Err(format!(
                "a Java delegate should be refused as such, not {codes:?}"
            ));
        }
        text = rewritten(&text, "camunda:delegateExpression=\"${", external);
        text = rewritten(&text, "camunda:delegateExpression=\"#{", external);
    }
    Ok(text.into_bytes())
}

fn external(topic: &str) -> String {
    format!(
        "camunda:type=\"external\" camunda:topic=\"{}",
        topic.trim_end_matches('}')
    )
}

/// Rewrites what stands between `open` and the end that belongs to it: a bracket, or a brace.
fn rewritten(text: &str, open: &str, make: impl Fn(&str) -> String) -> String {
    let close = if open.ends_with('(') { ')' } else { '}' };
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(open) {
        let Some((inside, after)) = after.split_once(close) else {
            break;
        };
        out += before;
        out += &make(inside);
        rest = after;
    }
    out + rest
}

type Cases = Vec<(String, Result<(), String>)>;

/// The schedules of stimuli beside a process.
fn scenarios(path: &Path, definitions: &[Arc<Definition>]) -> Cases {
    let Some(folder) = path.parent().filter(|_| path.ends_with("process.bpmn")) else {
        return Vec::new();
    };
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.to_string_lossy().ends_with("scenario.json"))
        .collect();
    files.sort();
    let run = |file: PathBuf| {
        let name = file
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let scenario = read_json(&file).unwrap_or_default();
        let stem = name.trim_end_matches("scenario.json");
        let evidence = read_json(&folder.join(format!("{stem}cibseven-evidence.json")));
        let result = Schedule::new(definitions).run(&scenario, evidence.as_ref());
        (name, result)
    };
    files.into_iter().map(run).collect()
}

fn read_json(path: &Path) -> Option<Value> {
    serde_json::from_str(&std::fs::read_to_string(path).ok()?).ok()
}

/// The instances of one schedule, by the name that it gives them.
struct Schedule<'a> {
    definitions: &'a [Arc<Definition>],
    hosts: Vec<(String, Host)>,
    /// The call activity's instance that waits for the child at this place.
    callers: HashMap<usize, (usize, ElementInstanceKey)>,
}

impl<'a> Schedule<'a> {
    fn new(definitions: &'a [Arc<Definition>]) -> Self {
        Self {
            definitions,
            hosts: Vec::new(),
            callers: HashMap::new(),
        }
    }

    fn run(mut self, scenario: &Value, evidence: Option<&Value>) -> Result<(), String> {
        let trace = evidence.map(|evidence| &evidence["result"]["trace"]);
        let trace: Vec<&Value> = trace.and_then(Value::as_array).into_iter().flatten().collect();
        for stimulus in scenario["stimuli"].as_array().into_iter().flatten() {
            let id = stimulus["commandId"].as_str().unwrap_or_default();
            let at = trace
                .iter()
                .position(|step| step["commandId"] == stimulus["commandId"]);
            let refused = match at {
                Some(at) => trace[at]["outcome"] == "rejected",
                None => ["refuse", "stale", "wrong"].iter().any(|word| id.contains(word)),
            };
            let result = self.stimulus(stimulus);
            if result.is_err() != refused {
                return Err(format!("{id}: {result:?}, and it should be refused: {refused}"));
            }
            let state = at
                .and_then(|at| trace.get(at + 1))
                .filter(|step| step["kind"] == "state");
            // The other engine ran its delegate at once; here it is a job that the next stimulus completes.
            let ran = |state: &&&Value| state["openEffects"].as_array().is_some_and(Vec::is_empty);
            let has_jobs = self.hosts.iter().any(|(_, host)| !host.jobs().is_empty());
            if let Some(state) = state.filter(|state| !(has_jobs && ran(state))) {
                self.compare(state)
                    .map_err(|problem| format!("after {id}: {problem}"))?;
            }
        }
        self.hosts.iter().for_each(|(_, host)| host.check_journal());
        match trace.last().filter(|step| step["kind"] == "state") {
            Some(state) => self
                .compare(state)
                .map_err(|problem| format!("at the end: {problem}")),
            None => Ok(()),
        }
    }

    fn stimulus(&mut self, stimulus: &Value) -> Result<(), String> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let variables = |value: &Value| values(value);
        match stimulus["kind"].as_str().unwrap_or_default() {
            "startProcess" | "triggerMessageStart" | "triggerTimerStart" => {
                let process = text(&stimulus["processId"]);
                let definition = self.definition(&process).ok_or("there is no such process")?;
                let start = stimulus["startEventId"].as_str();
                let element = start.and_then(|start| definition.element_by_id(start));
                self.hosts
                    .push((text(&stimulus["instanceId"]), Host::new(&definition)));
                let variables = variables(&stimulus["initialVariables"]);
                self.command(self.hosts.len() - 1, CommandKind::Start { element, variables })
            }
            "completeUserTaskInstance" => {
                let id = text(&stimulus["taskId"]["elementId"]);
                let (at, task) = self.open(&stimulus["taskId"], |effect| match effect {
                    Effect::OpenUserTask(task) if *task.element_id == *id => Some(task.key),
                    _ => None,
                })?;
                let variables = variables(&stimulus["submittedValues"]);
                self.command(at, CommandKind::CompleteUserTask { task, variables })
            }
            "fireTimer" => {
                let id = text(&stimulus["timerId"]["elementId"]);
                let element = self.element(&id);
                let (at, timer) = self.open(&stimulus["timerId"], |effect| match effect {
                    Effect::ArmTimer(timer) if Some(timer.element) == element => Some(timer.clone()),
                    _ => None,
                })?;
                let now = BEGIN.plus_ms(stimulus["logicalTimeMs"].as_i64().unwrap_or_default());
                self.hosts.iter_mut().for_each(|(_, host)| host.now = now);
                let (owner, element, due_at) = (timer.owner, timer.element, timer.due_at);
                let kind = CommandKind::TriggerTimer {
                    owner,
                    element,
                    due_at,
                };
                if due_at > now {
                    return Err("the timer is not due".to_owned());
                }
                self.command(at, kind)
            }
            "deliverMessage" => {
                let id = text(&stimulus["subscriptionId"]["elementId"]);
                let element = self.element(&id);
                let (at, (owner, element)) =
                    self.open(&stimulus["subscriptionId"], |effect| match effect {
                        Effect::Subscribe(found) if Some(found.element) == element => {
                            Some((found.owner, found.element))
                        }
                        _ => None,
                    })?;
                let (message, variables) = (MessageKey(7), Variables::new());
                let kind = CommandKind::CorrelateMessage {
                    owner,
                    element,
                    message,
                    variables,
                };
                self.command(at, kind)
            }
            "completeEffect" => {
                let (at, job) = self.job(&stimulus["effectId"])?;
                let result = &stimulus["result"];
                let variables = variables(&result["localPatch"]);
                let kind = match result["kind"].as_str() {
                    Some("bpmnError") => CommandKind::ThrowError {
                        job,
                        code: text(&result["code"]),
                        message: text(&result["message"]),
                        variables,
                    },
                    _ => CommandKind::CompleteJob { job, variables },
                };
                self.command(at, kind)
            }
            "reportEffectFailure" => {
                let (at, job) = self.job(&stimulus["effectId"])?;
                let kind = CommandKind::FailJob {
                    job,
                    message: "it failed".to_owned(),
                    retries: Some(0),
                    retry_at: None,
                };
                self.command(at, kind)
            }
            "retryIncident" => {
                let incident = self.hosts[0].1.instance.incidents().next().map(|(key, _)| key);
                let incident = incident.unwrap_or(IncidentKey(1));
                let kind = CommandKind::RetryIncident {
                    incident,
                    retries: None,
                };
                self.command(0, kind)
            }
            "cancelIncidentProcess" => self.command(0, CommandKind::Cancel),
            other => Err(format!("the stimulus {other} is not known")),
        }
    }

    fn definition(&self, process: &str) -> Option<Arc<Definition>> {
        let found = self
            .definitions
            .iter()
            .find(|definition| &**definition.process_id() == process);
        found.map(Arc::clone)
    }

    fn element(&self, id: &str) -> Option<tidegate_model::ElementIndex> {
        self.definitions
            .iter()
            .find_map(|definition| definition.element_by_id(id))
    }

    fn job(&self, id: &Value) -> Result<(usize, ElementInstanceKey), String> {
        let element = id["elementId"].as_str().unwrap_or_default();
        self.open(id, |effect| match effect {
            Effect::RunJob(job) if &*job.element_id == element => Some(job.key),
            _ => None,
        })
    }

    /// What is under way for one instance. A schedule names an activation by its number: a later one counts as open
    /// only if the element was activated that often.
    fn open<T>(&self, id: &Value, find: impl Fn(&Effect) -> Option<T>) -> Result<(usize, T), String> {
        let element = id["elementId"].as_str().unwrap_or_default();
        let wanted = id["activation"].as_u64().unwrap_or(1);
        for (at, (_, host)) in self.hosts.iter().enumerate() {
            let items = history(&host.definition, &host.journal, 1);
            let activations = items.iter().filter(|item| {
                matches!(item.event, "ElementActivated") && item.element_id.as_deref() == Some(element)
            });
            let armed = items.iter().filter(|item| {
                matches!(item.event, "TimerArmed" | "MessageSubscribed")
                    && item.element_id.as_deref() == Some(element)
            });
            if activations.count().max(armed.count()) as u64 != wanted {
                continue;
            }
            if let Some(found) = host.open().find_map(&find) {
                return Ok((at, found));
            }
        }
        Err("it is not open".to_owned())
    }

    fn command(&mut self, at: usize, kind: CommandKind) -> Result<(), String> {
        let (_, effects) = self.hosts[at]
            .1
            .command(kind)
            .map_err(|error| error.to_string())?;
        for effect in effects {
            match effect {
                Effect::StartChild(child) => {
                    let definition = self
                        .definition(&child.process_id)
                        .ok_or("there is no such process")?;
                    let mut host = Host::new(&definition);
                    host.now = self.hosts[at].1.now;
                    host.instance = tidegate_engine::Instance::new(child.instance);
                    self.hosts.push((String::new(), host));
                    self.callers.insert(self.hosts.len() - 1, (at, child.owner));
                    let (element, variables) = (None, child.variables);
                    self.command(self.hosts.len() - 1, CommandKind::Start { element, variables })?;
                }
                Effect::Ended(SubStatus::Finished) => {
                    if let Some(&(caller, owner)) = self.callers.get(&at) {
                        let child = self.hosts[at].1.instance.key();
                        let variables = self.hosts[at].1.instance.variables().clone();
                        let kind = CommandKind::ChildCompleted {
                            owner,
                            child,
                            variables,
                        };
                        self.command(caller, kind)?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Status, open tasks, timers and incidents, as the other engine saw them.
    fn compare(&self, state: &Value) -> Result<(), String> {
        let Some((_, host)) = self
            .hosts
            .iter()
            .find(|(name, _)| *name == state["instanceId"].as_str().unwrap_or_default())
        else {
            return Err("there is no such instance".to_owned());
        };
        let status = match host.instance.ended() {
            None => "running",
            Some(SubStatus::Finished) => "completed",
            Some(_) => "ended",
        };
        let expected = state["status"].as_str().unwrap_or_default();
        if (expected == "running") != (status == "running")
            || (expected == "completed") != (status == "completed")
        {
            return Err(format!("it is {status} and not {expected}"));
        }
        let ids = |list: &str| -> Vec<String> {
            let list = state[list].as_array().into_iter().flatten();
            let mut ids: Vec<String> = list
                .map(|one| one["id"]["elementId"].as_str().unwrap_or_default().to_owned())
                .collect();
            ids.sort();
            ids
        };
        let mine = |find: &dyn Fn(&Effect) -> Option<String>| -> Vec<String> {
            let mut ids: Vec<String> = host.open().filter_map(find).collect();
            ids.sort();
            ids
        };
        let tasks = mine(&|effect| match effect {
            Effect::OpenUserTask(task) => Some(task.element_id.to_string()),
            _ => None,
        });
        let timers = mine(&|effect| match effect {
            Effect::ArmTimer(timer) => Some(host.definition.element(timer.element).id.to_string()),
            _ => None,
        });
        if tasks != ids("openUserTasks") || timers != ids("openTimers") {
            return Err(format!(
                "open are {tasks:?} and {timers:?}, and should be {:?} and {:?}",
                ids("openUserTasks"),
                ids("openTimers")
            ));
        }
        let incidents = state["openIncidents"].as_array().map_or(0, Vec::len);
        match host.instance.incident_count() == incidents {
            true => Ok(()),
            false => Err(format!("there should be {incidents} incidents")),
        }
    }
}

/// `[{"name": …, "value": {"kind": …, "value": …}}]` as variables.
fn values(list: &Value) -> Variables {
    let one = |entry: &Value| {
        Some((
            entry["name"].as_str()?.to_owned(),
            Json::of(&entry["value"]["value"]),
        ))
    };
    list.as_array().into_iter().flatten().filter_map(one).collect()
}

/// The specifications of actions and verifications that name a process.
fn specifications(path: &Path, definitions: &[Arc<Definition>]) -> Cases {
    let specs = path
        .parent()
        .and_then(Path::parent)
        .filter(|folder| folder.ends_with("resources"));
    let mut cases = Vec::new();
    for file in specs.into_iter().flat_map(std::fs::read_dir).flatten().flatten() {
        let file = file.path();
        if file.extension().is_none_or(|extension| extension != "yaml") {
            continue;
        }
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        for case in read_cases(&text) {
            let process = case
                .steps
                .iter()
                .find_map(|step| step.arguments.get("bpmn_process_id"));
            let definition = definitions
                .iter()
                .find(|one| process.is_some_and(|id| **id == **one.process_id()));
            if let Some(definition) = definition {
                let result = case.run(definition);
                cases.push((case.name, result));
            }
        }
    }
    cases
}

#[derive(Default)]
struct Case {
    name: String,
    steps: Vec<Step>,
}

#[derive(Default)]
struct Step {
    verifies: bool,
    verb: String,
    arguments: HashMap<String, String>,
}

/// Reads the part of YAML that the specifications are written in: lists of actions and verifications with arguments.
fn read_cases(text: &str) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    for line in text.lines() {
        let line = line.trim();
        let (is_item, line) = line.strip_prefix("- ").map_or((false, line), |rest| (true, rest));
        let Some((name, value)) = line.split_once(':') else {
            continue;
        };
        let value = value.trim().trim_matches('\'').to_owned();
        match (name, cases.last_mut()) {
            ("name", _) if is_item => cases.push(Case {
                name: value,
                ..Case::default()
            }),
            ("action" | "verification", Some(case)) if is_item => case.steps.push(Step {
                verifies: name == "verification",
                verb: value,
                ..Step::default()
            }),
            (_, Some(case)) if !value.is_empty() => {
                if let Some(step) = case.steps.last_mut() {
                    step.arguments.insert(name.to_owned(), value);
                }
            }
            _ => {}
        }
    }
    cases
}

impl Case {
    fn run(&self, definition: &Arc<Definition>) -> Result<(), String> {
        let mut host = Host::new(definition);
        for step in self.steps.iter().filter(|step| !step.verifies) {
            step.act(&mut host)
                .map_err(|problem| format!("{}: {problem}", step.verb))?;
        }
        while let Some(timer) = host.next_timer() {
            host.now = host.now.max(timer.due_at);
            let (owner, element, due_at) = (timer.owner, timer.element, timer.due_at);
            let fire = CommandKind::TriggerTimer {
                owner,
                element,
                due_at,
            };
            host.command(fire).map_err(|error| error.to_string())?;
        }
        for step in self.steps.iter().filter(|step| step.verifies) {
            if !step.holds(&host) {
                return Err(format!("{} {:?} does not hold", step.verb, step.arguments));
            }
        }
        host.check_journal();
        Ok(())
    }
}

impl Step {
    fn argument(&self, name: &str) -> &str {
        self.arguments.get(name).map_or("", String::as_str)
    }

    fn variables(&self) -> Variables {
        Variables::parse(self.argument("variables")).unwrap_or_default()
    }

    fn act(&self, host: &mut Host) -> Result<(), String> {
        let variables = self.variables();
        let job = || {
            host.jobs()
                .into_iter()
                .find(|job| &*job.job_type == self.argument("job_type"))
                .map(|job| job.key)
        };
        let kind = match self.verb.as_str() {
            "create-instance" => CommandKind::Start {
                element: None,
                variables,
            },
            "await-element-instance-state" => return Ok(()),
            "complete-task" => CommandKind::CompleteJob {
                job: job().ok_or("there is no such job")?,
                variables,
            },
            "throw-error" => CommandKind::ThrowError {
                job: job().ok_or("there is no such job")?,
                code: self.argument("error_code").to_owned(),
                message: String::new(),
                variables,
            },
            "publish-message" => {
                let found = host.open().find_map(|effect| match effect {
                    Effect::Subscribe(found)
                        if &*found.message_name == self.argument("message_name")
                            && found.correlation_key == self.argument("correlation_key") =>
                    {
                        Some((found.owner, found.element))
                    }
                    _ => None,
                });
                let (owner, element) = found.ok_or("nothing waits for the message")?;
                CommandKind::CorrelateMessage {
                    owner,
                    element,
                    message: MessageKey(7),
                    variables,
                }
            }
            "cancel-instance" => CommandKind::Cancel,
            other => return Err(format!("the action {other} is not known")),
        };
        host.command(kind).map(drop).map_err(|error| error.to_string())
    }

    fn holds(&self, host: &Host) -> bool {
        let items = history(&host.definition, &host.journal, 1);
        let state = self.argument("state");
        match self.verb.as_str() {
            "element-instance-state" => {
                let (id, name) = (self.argument("element_id"), self.argument("element_name"));
                let elements = host.definition.elements().iter();
                let named = elements
                    .filter(|info| info.name.as_deref() == Some(name))
                    .map(|info| &*info.id);
                let ids: Vec<&str> = named.chain(Some(id).filter(|id| !id.is_empty())).collect();
                let event = match state {
                    "activated" => "ElementActivated",
                    "completed" => "ElementCompleted",
                    "terminated" => "ElementTerminated",
                    _ => "SequenceFlowTaken",
                };
                items.iter().filter(|item| item.event == event).any(|item| {
                    let flow = item.payload["flowId"].as_str();
                    let element = item.element_id.as_deref().or(flow);
                    element.is_some_and(|element| ids.contains(&element))
                })
            }
            "workflow-instance-state" => match state {
                "activated" => host.instance.ended().is_none(),
                "completed" => host.instance.ended() == Some(SubStatus::Finished),
                _ => host.instance.ended() == Some(SubStatus::Cancelled),
            },
            "workflow-instance-variable" => {
                let value = host.instance.variables().get(self.argument("name"));
                value.is_some_and(|value| value.text() == self.argument("value"))
            }
            "incident-state" => host.instance.incidents().any(|(_, incident)| {
                &*host.definition.element(incident.element).id == self.argument("element_id")
            }),
            _ => false,
        }
    }
}
