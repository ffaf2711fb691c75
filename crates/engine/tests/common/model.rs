//! Small models as text, and an instance of one that is moved by the ids of its elements.

use std::sync::Arc;

use tidegate_engine::{CompileOptions, Definition, Event, Instance, Limits, advance, compile};
use tidegate_model::{
    Cause, Command, CommandKind, Effect, ElementInstanceKey, InstanceKey, KeyGenerator, Variables,
};

use super::{BEGIN, Host, errors, load};

/// A file with one process `p`.
pub fn file(body: &str) -> String {
    format!(
        "<definitions xmlns='http://www.omg.org/spec/BPMN/20100524/MODEL' \
         xmlns:zeebe='http://camunda.org/schema/zeebe/1.0' targetNamespace='urn:compensation'>\
         <error id='bad' errorCode='BAD'/><signal id='stop' name='stop'/><message id='news' name='news'/>\
         <process id='p' isExecutable='true'>{body}</process></definitions>"
    )
}

/// A flow from one to another.
pub fn flow(source: &str, target: &str) -> String {
    format!("<sequenceFlow id='{source}-{target}' sourceRef='{source}' targetRef='{target}'/>")
}

/// Flows from each to the next.
pub fn chain(ids: &[&str]) -> String {
    ids.windows(2).map(|pair| flow(pair[0], pair[1])).collect()
}

/// A service task whose job type is its id.
pub fn job(id: &str, attributes: &str, inside: &str) -> String {
    format!(
        "<serviceTask id='{id}' {attributes}><extensionElements><zeebe:taskDefinition type='{id}'/>\
         </extensionElements>{inside}</serviceTask>"
    )
}

/// An activity with a handler `undo-…`, which is a job.
pub fn undoable(id: &str, inside: &str) -> String {
    let handler = job(&format!("undo-{id}"), "isForCompensation='true'", "");
    format!(
        "{}{}{handler}",
        job(id, "", inside),
        handled(id, &format!("undo-{id}"))
    )
}

/// The events that lead from an activity to its handler.
pub fn handled(id: &str, handler: &str) -> String {
    format!(
        "<boundaryEvent id='{id}-undone' attachedToRef='{id}'><compensateEventDefinition/></boundaryEvent>\
         <association id='{id}-by' sourceRef='{id}-undone' targetRef='{handler}'/>"
    )
}

pub const UNDO: &str =
    "<intermediateThrowEvent id='undo'><compensateEventDefinition/></intermediateThrowEvent>";
pub const START_END: &str = "<startEvent id='s'/><endEvent id='e'/>";

/// An instance of a model that has no errors.
pub fn host(body: &str) -> Host {
    let compiled = load("compensation.bpmn", file(body).as_bytes(), &[]);
    let found = errors(&compiled.diagnostics);
    assert!(found.is_empty(), "{:?}", compiled.diagnostics);
    Host::new(&compiled.definitions[0])
}

/// Commands by id.
pub trait Play {
    fn begin(&mut self, variables: &str);
    fn finish(&mut self, job: &str, variables: &str);
    fn open_jobs(&self) -> Vec<String>;
    fn undo_all(&mut self) -> Vec<String>;
    fn variable(&self, name: &str) -> Option<String>;
    fn set(&mut self, variables: &str);
    fn signal(&mut self, event: &str);
}

impl Play for Host {
    fn begin(&mut self, variables: &str) {
        let variables = Variables::parse(variables).unwrap();
        let element = None;
        self.command(CommandKind::Start { element, variables }).unwrap();
    }

    fn finish(&mut self, job: &str, variables: &str) {
        let found = self.jobs().into_iter().find(|open| &*open.element_id == job);
        let job = found.unwrap_or_else(|| panic!("no job `{job}`")).key;
        let variables = Variables::parse(variables).unwrap();
        self.command(CommandKind::CompleteJob { job, variables }).unwrap();
    }

    fn open_jobs(&self) -> Vec<String> {
        let mut open: Vec<String> = self.jobs().iter().map(|job| job.element_id.to_string()).collect();
        open.sort();
        open
    }

    /// Completes the handlers as they come, and tells their order.
    fn undo_all(&mut self) -> Vec<String> {
        let mut order = Vec::new();
        while let Some(job) = self
            .jobs()
            .first()
            .filter(|job| job.element_id.starts_with("undo"))
        {
            order.push(job.element_id.to_string());
            let id = job.element_id.to_string();
            self.finish(&id, "{}");
        }
        order
    }

    fn variable(&self, name: &str) -> Option<String> {
        let value = self.instance.variables().get(name);
        value.map(|value| value.text().to_owned())
    }

    fn set(&mut self, variables: &str) {
        let scope = ElementInstanceKey::ROOT;
        let variables = Variables::parse(variables).unwrap();
        self.command(CommandKind::SetVariables { scope, variables })
            .unwrap();
    }

    /// The event catches the signal that it waits for.
    fn signal(&mut self, event: &str) {
        let element = self.definition.element_by_id(event).unwrap();
        let owner = self.open().find_map(|effect| match effect {
            Effect::Subscribe(found) if found.element == element => Some(found.owner),
            _ => None,
        });
        let owner = owner.unwrap_or_else(|| panic!("`{event}` waits for nothing"));
        let variables = Variables::new();
        let caught = CommandKind::CatchSignal {
            owner,
            element,
            variables,
        };
        self.command(caught).unwrap();
    }
}

/// Reads and compiles a model that is larger than those of people, and must have no errors.
pub fn large(body: &str) -> Arc<Definition> {
    const MANY: usize = 2_000_000;
    let read = tidegate_bpmn::Limits {
        bytes: 256 * 1024 * 1024,
        depth: 4_096,
        elements: MANY,
        attributes: 4 * MANY,
        ..tidegate_bpmn::Limits::default()
    };
    let parsed = tidegate_bpmn::parse("large.bpmn", file(body).as_bytes(), &read);
    assert!(!parsed.has_errors(), "{:?}", errors(&parsed.diagnostics));
    let limits = Limits {
        steps: MANY,
        live_elements: MANY,
    };
    let options = CompileOptions {
        limits,
        ..CompileOptions::default()
    };
    let compiled = compile(&parsed.document.unwrap(), &options);
    let found = errors(&compiled.diagnostics);
    assert!(found.is_empty(), "{:?}", &found[..found.len().min(3)]);
    Arc::clone(&compiled.definitions[0])
}

/// An instance without the checks of [`Host`], which look at the whole state at each command.
pub struct Bare {
    pub definition: Arc<Definition>,
    pub instance: Instance,
    pub keys: KeyGenerator,
    pub jobs: Vec<ElementInstanceKey>,
}

impl Bare {
    pub fn new(definition: Arc<Definition>) -> Self {
        let mut keys = KeyGenerator::new(0, 0);
        let instance = Instance::new(InstanceKey(keys.next_key()));
        let jobs = Vec::new();
        Self {
            definition,
            instance,
            keys,
            jobs,
        }
    }

    /// Gives a command; what follows from it. Jobs that it opens are kept.
    pub fn command(&mut self, kind: CommandKind) -> (Vec<Event>, Vec<Effect>) {
        let (mut events, mut effects) = (Vec::new(), Vec::new());
        let command = Command::new(kind, Cause::Engine);
        let (definition, instance) = (&self.definition, &mut self.instance);
        advance(
            definition,
            instance,
            command,
            BEGIN,
            &mut self.keys,
            &mut events,
            &mut effects,
        )
        .unwrap();
        self.jobs.extend(effects.iter().filter_map(|effect| match effect {
            Effect::RunJob(job) => Some(job.key),
            _ => None,
        }));
        (events, effects)
    }

    pub fn start(&mut self) -> (Vec<Event>, Vec<Effect>) {
        self.command(CommandKind::Start {
            element: None,
            variables: Variables::new(),
        })
    }

    pub fn complete(&mut self, job: ElementInstanceKey) -> (Vec<Event>, Vec<Effect>) {
        self.command(CommandKind::CompleteJob {
            job,
            variables: Variables::new(),
        })
    }
}
