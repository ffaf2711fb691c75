//! Runs the processes of the `betsy` conformance set on a manual clock.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use tidegate_engine::{Definition, Event, Instance, StarterTrigger};
use tidegate_model::effect::{Job, Subscription, SubscriptionKind};
use tidegate_model::{
    CommandKind, Effect, ElementInstanceKey, InstanceKey, Json, MessageKey, SubStatus, Timestamp, Variables,
};

use crate::common::{BEGIN, Host, errors, load};

/// Where the conformance data of others lies, if it is there.
pub fn folder() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/conformance");
    folder.join("betsy/manifest.json").is_file().then_some(folder)
}

/// What became of one test.
#[allow(dead_code)]
pub struct Outcome {
    pub name: String,
    /// Its file is refused: the codes of the errors.
    pub refused: Vec<String>,
    /// For each case: none when it passed, else why not.
    pub cases: Vec<Option<String>>,
}

impl Outcome {
    pub fn passed(&self) -> bool {
        self.cases.iter().all(Option::is_none)
    }
}

/// Runs every test whose oracle stands.
pub fn run(folder: &Path) -> Vec<Outcome> {
    run_where(folder, |status| status == "ok")
}

/// Runs the tests whose oracle is disputed, depends on an order the standard does not give, or is defective.
#[allow(dead_code)]
pub fn run_others(folder: &Path) -> Vec<Outcome> {
    run_where(folder, |status| status != "ok")
}

fn run_where(folder: &Path, wanted: impl Fn(&str) -> bool) -> Vec<Outcome> {
    let manifest =
        std::fs::read_to_string(folder.join("betsy/manifest.json")).expect("the manifest is there");
    let manifest: Vec<Value> = serde_json::from_str(&manifest).expect("the manifest is JSON");
    let sound = manifest
        .iter()
        .filter(|test| wanted(test["oracle_status"].as_str().unwrap_or_default()));
    sound.map(|test| run_test(folder, test)).collect()
}

fn run_test(folder: &Path, test: &Value) -> Outcome {
    let file = test["file"].as_str().unwrap_or_default();
    let bytes = std::fs::read(folder.join("betsy").join(file)).expect("the file is there");
    let compiled = load(file, &bytes, &[""]);
    let refused: Vec<String> = errors(&compiled.diagnostics)
        .into_iter()
        .map(str::to_owned)
        .collect();
    let cases = test["cases"].as_array().expect("cases");
    let cases = cases.iter().map(|case| match refused.is_empty() {
        true => run_case(&compiled.definitions, case).err(),
        false => expects_refusal(case, &refused).err(),
    });
    Outcome {
        name: test["name"].as_str().unwrap_or_default().to_owned(),
        cases: cases.collect(),
        refused,
    }
}

/// A refusal counts where it is the expected outcome, and not for something that is only not executed yet.
fn expects_refusal(case: &Value, codes: &[String]) -> Result<(), String> {
    let expected = case["expected_trace"] == serde_json::json!(["ERROR"]);
    match expected && !codes.iter().any(|code| code == "element-not-supported") {
        true => Ok(()),
        false => Err(format!("refused: {}", codes.join(", "))),
    }
}

fn run_case(definitions: &[Arc<Definition>], case: &Value) -> Result<(), String> {
    let id = case["start_process"].as_str().unwrap_or_default();
    let inputs = Variables::parse(&case["inputs"].to_string()).map_err(|error| error.to_string())?;
    let mut world = World::new(definitions);
    let definition = world
        .definition(id)
        .ok_or_else(|| format!("there is no process {id}"))?;
    for first in case["start_first"].as_array().into_iter().flatten() {
        let first = first.as_str().and_then(|id| world.definition(id));
        let first = first.ok_or("a process to start first is not there")?;
        world.start(&first, Variables::new(), None, None)?;
    }
    world.main = world.running.len();
    world.start(&definition, inputs, None, None)?;
    // Betsy looks after this time; where it does not say, timers of a few seconds still have their say.
    let wait_ms = case["wait_ms_before_check"]
        .as_i64()
        .unwrap_or_default()
        .max(5_000);
    world.run_until(BEGIN.plus_ms(wait_ms))?;
    world
        .running
        .iter()
        .for_each(|running| running.host.check_journal());
    world.check(case)
}

/// One instance of the world.
struct Running {
    host: Host,
    /// The host that called it, and for which call activity.
    caller: Option<(usize, ElementInstanceKey)>,
}

/// All instances of a case: the main one, and those that it or others started.
struct World {
    /// Which is the main one.
    main: usize,
    definitions: Vec<Arc<Definition>>,
    running: Vec<Running>,
    now: Timestamp,
    trace: Vec<String>,
    marker: bool,
    /// Scripts that take their time: when they end.
    busy: BTreeMap<Timestamp, Vec<(usize, Job)>>,
    spans: Vec<(Timestamp, Timestamp)>,
}

impl World {
    fn new(definitions: &[Arc<Definition>]) -> Self {
        Self {
            main: 0,
            definitions: definitions.to_vec(),
            running: Vec::new(),
            now: BEGIN,
            trace: Vec::new(),
            marker: false,
            busy: BTreeMap::new(),
            spans: Vec::new(),
        }
    }

    fn definition(&self, process_id: &str) -> Option<Arc<Definition>> {
        let found = self
            .definitions
            .iter()
            .find(|definition| &**definition.process_id() == process_id);
        found.map(Arc::clone)
    }

    fn start(
        &mut self,
        definition: &Arc<Definition>,
        variables: Variables,
        caller: Option<(usize, ElementInstanceKey)>,
        key: Option<InstanceKey>,
    ) -> Result<(), String> {
        let mut host = Host::new(definition);
        host.now = self.now;
        if let Some(key) = key {
            host.instance = Instance::new(key);
        }
        self.running.push(Running { host, caller });
        let element = None;
        self.command(self.running.len() - 1, CommandKind::Start { element, variables })
    }

    /// Starts an instance of each process that has a start for `trigger`.
    fn start_by(&mut self, trigger: &StarterTrigger, variables: &Variables) -> Result<bool, String> {
        let mut found = false;
        for definition in self.definitions.clone() {
            for starter in definition.starters() {
                if starter.trigger != *trigger {
                    continue;
                }
                found = true;
                let mut host = Host::new(&definition);
                host.now = self.now;
                self.running.push(Running { host, caller: None });
                let start = CommandKind::Start {
                    element: Some(starter.element),
                    variables: variables.clone(),
                };
                self.command(self.running.len() - 1, start)?;
            }
        }
        Ok(found)
    }

    /// Who waits for a message or signal of this name.
    fn waiting(&self, kind: SubscriptionKind, name: &str) -> Vec<(usize, Subscription)> {
        let mut found = Vec::new();
        for (at, running) in self.running.iter().enumerate() {
            for effect in running.host.open() {
                match effect {
                    Effect::Subscribe(wait) if wait.kind == kind && &*wait.message_name == name => {
                        found.push((at, wait.clone()));
                    }
                    _ => {}
                }
            }
        }
        found
    }

    /// A message goes to one who waits for it, else to a start event.
    fn publish(&mut self, name: &str, variables: Variables) -> Result<(), String> {
        let Some((at, wait)) = self.waiting(SubscriptionKind::Message, name).into_iter().next() else {
            return self
                .start_by(&StarterTrigger::Message(name.into()), &variables)
                .map(drop);
        };
        let correlate = CommandKind::CorrelateMessage {
            owner: wait.owner,
            element: wait.element,
            message: MessageKey(1),
            variables,
        };
        self.command(at, correlate)
    }

    /// A signal goes to everyone else who waits for it, and to every start event.
    fn broadcast(&mut self, from: usize, name: &str, variables: &Variables) -> Result<(), String> {
        for (at, wait) in self.waiting(SubscriptionKind::Signal, name) {
            if at != from {
                let (owner, element) = (wait.owner, wait.element);
                let caught = CommandKind::CatchSignal {
                    owner,
                    element,
                    variables: variables.clone(),
                };
                self.command(at, caught)?;
            }
        }
        self.start_by(&StarterTrigger::Signal(name.into()), variables)
            .map(drop)
    }

    /// Gives a command to one instance, and passes on what it says to the others.
    fn command(&mut self, at: usize, kind: CommandKind) -> Result<(), String> {
        let host = &mut self.running[at].host;
        host.now = self.now;
        let (_, effects) = host.command(kind).map_err(|error| error.to_string())?;
        for effect in effects {
            self.pass_on(at, effect)?;
        }
        Ok(())
    }

    fn pass_on(&mut self, at: usize, effect: Effect) -> Result<(), String> {
        match effect {
            Effect::StartChild(child) => match self.definition(&child.process_id) {
                Some(definition) => {
                    let caller = Some((at, child.owner));
                    self.start(&definition, child.variables, caller, Some(child.instance))
                }
                None => {
                    let (owner, child) = (child.owner, child.instance);
                    let message = "there is no such process".to_owned();
                    self.command(
                        at,
                        CommandKind::ChildNotStarted {
                            owner,
                            child,
                            message,
                        },
                    )
                }
            },
            Effect::CancelChild { instance, .. } => {
                let found = self
                    .running
                    .iter()
                    .position(|running| running.host.instance.key() == instance);
                let alive = found.filter(|child| self.running[*child].host.instance.ended().is_none());
                alive.map_or(Ok(()), |child| self.command(child, CommandKind::Cancel))
            }
            Effect::EscalateToParent { code, variables } => {
                let child = self.running[at].host.instance.key();
                self.running[at].caller.map_or(Ok(()), |(parent, owner)| {
                    let escalated = CommandKind::ChildEscalated {
                        owner,
                        child,
                        code,
                        variables,
                    };
                    self.command(parent, escalated)
                })
            }
            Effect::PublishMessage { name, variables, .. } => self.publish(&name, variables),
            Effect::BroadcastSignal { name, variables } => self.broadcast(at, &name, &variables),
            Effect::Ended(status) => self.ended(at, status),
            _ => Ok(()),
        }
    }

    fn ended(&mut self, at: usize, status: SubStatus) -> Result<(), String> {
        let Some((parent, owner)) = self.running[at].caller else {
            return Ok(());
        };
        let host = &self.running[at].host;
        let child = host.instance.key();
        let variables = host.instance.variables().clone();
        let faulted = host.journal.iter().rev().find_map(|event| match event {
            Event::InstanceFaulted { code, message, .. } => Some((code.clone(), message.clone())),
            _ => None,
        });
        let told = match (status, faulted) {
            (SubStatus::Faulted, Some((code, message))) => CommandKind::ChildFaulted {
                owner,
                child,
                code,
                message,
                variables,
            },
            (SubStatus::Finished, _) => CommandKind::ChildCompleted {
                owner,
                child,
                variables,
            },
            _ => return Ok(()),
        };
        self.command(parent, told)
    }

    /// Scripts first, then the clock moves to what is due next.
    fn run_until(&mut self, end: Timestamp) -> Result<(), String> {
        for _ in 0..10_000 {
            if let Some((at, job)) = self.next_job() {
                self.script(at, job)?;
                continue;
            }
            let timers = self.running.iter().enumerate();
            let timers = timers.filter_map(|(at, running)| Some((at, running.host.next_timer()?)));
            let timer = timers.min_by_key(|(at, timer)| (timer.due_at, *at));
            let busy = self.busy.first_key_value().map(|(at, _)| *at);
            let due = timer.as_ref().map(|(_, timer)| timer.due_at);
            let Some(next) = due.into_iter().chain(busy).min().filter(|next| *next <= end) else {
                return Ok(());
            };
            self.now = self.now.max(next);
            match timer {
                Some((at, timer)) if timer.due_at == next => {
                    let (owner, element, due_at) = (timer.owner, timer.element, timer.due_at);
                    let fire = CommandKind::TriggerTimer {
                        owner,
                        element,
                        due_at,
                    };
                    self.command(at, fire)?;
                }
                Some(_) | None => {
                    for (at, job) in self.busy.remove(&next).unwrap_or_default() {
                        // The outcome of a script that was interrupted comes too late.
                        if self.running[at].host.instance.has_job(job.key) {
                            self.complete(at, &job, Variables::new())?;
                        }
                    }
                }
            }
        }
        Err("it does not come to rest".to_owned())
    }

    fn next_job(&self) -> Option<(usize, Job)> {
        let is_busy = |at: usize, job: &Job| {
            let busy = self.busy.values().flatten();
            busy.into_iter()
                .any(|(other, busy)| *other == at && busy.key == job.key)
        };
        let running = self.running.iter().enumerate();
        let mut jobs =
            running.flat_map(|(at, running)| running.host.jobs().into_iter().map(move |job| (at, job)));
        jobs.find(|(at, job)| !is_busy(*at, job))
    }

    fn script(&mut self, at: usize, job: Job) -> Result<(), String> {
        let text = job
            .headers
            .iter()
            .find(|(name, _)| &**name == "script")
            .map_or("", |(_, text)| text);
        let mut results = Variables::new();
        match text {
            "CREATE_LOG_FILE" => self.trace.clear(),
            "CREATE_MARKER_FILE" => self.marker = true,
            "SET_STRING_DATA" => results.set("data", Json::of("String")),
            "LOG_DATA" => {
                if job.variables.get("data").map(Json::text) == Some("\"String\"") {
                    self.trace.push("DATA_correct".to_owned());
                }
            }
            "INCREMENT_INTEGER_VARIABLE" | "INCREMENT_INTEGER_VARIABLE_AND_LOG" => {
                let old = job
                    .variables
                    .get("integerVariable")
                    .and_then(|json| json.text().parse::<i64>().ok());
                results.set("integerVariable", Json::of(&(old.unwrap_or_default() + 1)));
                if text.ends_with("LOG") {
                    self.trace.push("INCREMENT_correct".to_owned());
                }
            }
            "THROW_ERROR" => {
                let (code, message) = ("ERR_CODE".to_owned(), "thrown by a script".to_owned());
                let throw = CommandKind::ThrowError {
                    job: job.key,
                    code,
                    message,
                    variables: results,
                };
                return self.command(at, throw);
            }
            "CREATE_TIMESTAMP_LOG_1" | "CREATE_TIMESTAMP_LOG_2" | "WAIT_TEN_SECONDS" => {
                let end = self.now.plus_ms(10_000);
                if text != "WAIT_TEN_SECONDS" {
                    self.spans.push((self.now, end));
                }
                self.busy.entry(end).or_default().push((at, job));
                return Ok(());
            }
            word => self.trace.push(word.to_owned()),
        }
        self.complete(at, &job, results)
    }

    fn complete(&mut self, at: usize, job: &Job, variables: Variables) -> Result<(), String> {
        let complete = CommandKind::CompleteJob {
            job: job.key,
            variables,
        };
        self.command(at, complete)
    }

    fn check(mut self, case: &Value) -> Result<(), String> {
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let mut expected: Vec<String> = case["expected_trace"]
            .as_array()
            .into_iter()
            .flatten()
            .map(word)
            .collect();
        let asked = |name: &str| expected.iter().any(|word| word == name);
        let host = &self.running[self.main].host;
        let instance = &host.instance;
        let faulted = instance.ended() == Some(SubStatus::Faulted);
        if self.marker && asked("MARKER_exists") {
            self.trace.push("MARKER_exists".to_owned());
        }
        if let [first, second] = self.spans.as_slice()
            && first.0 < second.1
            && second.0 < first.1
        {
            self.trace.push("EXECUTION_parallel".to_owned());
        }
        let by_end_event = host.journal.iter().any(|event| match event {
            Event::InstanceFaulted { element, .. } => host.definition.element(*element).kind == "endEvent",
            _ => false,
        });
        match faulted || instance.incident_count() > 0 {
            true if by_end_event => self.trace.push("ERROR_thrownErrorEvent".to_owned()),
            true if asked("ERROR") => self.trace.push("ERROR".to_owned()),
            true => self.trace.push("ERROR_runtime".to_owned()),
            false => {}
        }
        expected.sort();
        self.trace.sort();
        if self.trace != expected {
            return Err(format!("expected {expected:?}, got {:?}", self.trace));
        }
        let state = case["derived_end_state"].as_str().unwrap_or_default();
        let fits = match state {
            "completed" => instance.ended() == Some(SubStatus::Finished),
            "active (waits for ever)" => instance.ended().is_none() && instance.incident_count() == 0,
            _ => faulted || instance.incident_count() > 0,
        };
        fits.then_some(())
            .ok_or_else(|| format!("expected it to be {state}, but it is {:?}", instance.ended()))
    }
}
