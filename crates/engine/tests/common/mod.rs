//! A host for one instance that checks, at every command, what must always hold:
//! deciding twice gives the same; replaying the journal gives the live state at every prefix; a state and its bytes are
//! the same; the effects so far and [`outstanding`] agree on what is under way.

#![allow(dead_code)]

pub mod model;

use std::collections::BTreeMap;
use std::sync::Arc;

use tidegate_engine::{
    Change, CompileOptions, Compiled, Definition, Event, Instance, advance, apply, compile, decode_events,
    encode_events, migrate, outstanding, rehearse_migration,
};
use tidegate_model::effect::{Job, Timer};
use tidegate_model::{
    Cause, Command, CommandKind, DefinitionKey, Diagnostic, Effect, ElementInstanceKey, InstanceKey,
    KeyGenerator, Migration, Rejection, Timestamp,
};

/// When the manual clock begins: 2026-01-01T00:00:00Z.
pub const BEGIN: Timestamp = Timestamp::from_ms(1_767_225_600_000);

/// Reads and compiles a file; `script_formats` are the formats that run as jobs.
pub fn load(name: &str, bytes: &[u8], script_formats: &[&str]) -> Compiled {
    let script_formats = script_formats.iter().map(|format| (*format).to_owned()).collect();
    load_with(
        name,
        bytes,
        &CompileOptions {
            script_formats,
            ..CompileOptions::default()
        },
    )
}

/// Reads and compiles a file.
pub fn load_with(name: &str, bytes: &[u8], options: &CompileOptions) -> Compiled {
    let parsed = tidegate_bpmn::parse(name, bytes, &tidegate_bpmn::Limits::default());
    let mut compiled = match &parsed.document {
        Some(document) => compile(document, options),
        None => Compiled::default(),
    };
    if parsed.has_errors() {
        compiled.definitions.clear();
    }
    let mut diagnostics = parsed.diagnostics;
    diagnostics.append(&mut compiled.diagnostics);
    Compiled {
        definitions: compiled.definitions,
        diagnostics,
    }
}

/// The codes of the errors.
pub fn errors(diagnostics: &[Diagnostic]) -> Vec<&str> {
    diagnostics
        .iter()
        .filter(|found| found.is_error())
        .map(|found| found.code.as_str())
        .collect()
}

/// One instance with its journal and everything that is under way for it.
#[derive(Clone)]
pub struct Host {
    pub definition: Arc<Definition>,
    /// The definition it began with, and those that it changed to.
    pub first: Arc<Definition>,
    pub versions: BTreeMap<DefinitionKey, Arc<Definition>>,
    pub instance: Instance,
    pub now: Timestamp,
    pub keys: KeyGenerator,
    pub journal: Vec<Event>,
    open: BTreeMap<String, Effect>,
    pub ended: usize,
    /// Off where the state is so large that checking every prefix takes too long.
    pub checks_prefixes: bool,
}

impl Host {
    pub fn new(definition: &Arc<Definition>) -> Self {
        let mut keys = KeyGenerator::new(7, 0);
        keys.observe(BEGIN);
        let key = InstanceKey(keys.next_key());
        Self {
            definition: Arc::clone(definition),
            first: Arc::clone(definition),
            versions: BTreeMap::new(),
            instance: Instance::new(key),
            now: BEGIN,
            keys,
            journal: Vec::new(),
            open: BTreeMap::new(),
            ended: 0,
            checks_prefixes: true,
        }
    }

    /// Gives a command; the events and effects it led to.
    pub fn command(&mut self, kind: CommandKind) -> Result<(Vec<Event>, Vec<Effect>), Rejection> {
        self.keys.observe(self.now);
        let before = self.instance.clone();
        let keys = self.keys.clone();
        let first = self.advance(kind.clone());
        let after = std::mem::replace(&mut self.instance, before.clone());
        self.keys = keys;
        let second = self.advance(kind.clone());
        assert_eq!(first, second, "the same input gave two outcomes");
        assert_eq!(after, self.instance);
        let (events, effects) = match second {
            Ok(outcome) => outcome,
            Err(rejection) => {
                assert_eq!(before, self.instance, "a rejected command changed something");
                return Err(rejection);
            }
        };
        self.check_replay(before, &events);
        self.journal.extend(events.iter().cloned());
        // Who tells of the end of a child knows that it is not under way any more.
        match &kind {
            CommandKind::ChildCompleted { child, .. }
            | CommandKind::ChildFaulted { child, .. }
            | CommandKind::ChildCancelled { child, .. }
            | CommandKind::ChildNotStarted { child, .. } => {
                self.open.remove(&format!("child {child}"));
            }
            _ => {}
        }
        effects.iter().for_each(|effect| self.follow(effect));
        self.check_outstanding();
        Ok((events, effects))
    }

    fn advance(&mut self, kind: CommandKind) -> Result<(Vec<Event>, Vec<Effect>), Rejection> {
        let (mut events, mut effects) = (Vec::new(), Vec::new());
        let command = Command::new(kind, Cause::Engine);
        let Self {
            definition,
            instance,
            now,
            keys,
            ..
        } = self;
        advance(
            definition,
            instance,
            command,
            *now,
            keys,
            &mut events,
            &mut effects,
        )?;
        Ok((events, effects))
    }

    fn check_replay(&self, before: Instance, events: &[Event]) {
        let bytes = encode_events(events);
        assert_eq!(decode_events(&bytes).expect("events can be read"), events);
        let mut replayed = before;
        for event in events {
            apply(&self.definition, &mut replayed, event);
            if self.checks_prefixes {
                let again = Instance::decode(&replayed.encode()).expect("a state can be read");
                assert_eq!(again, replayed);
                again
                    .check(&self.definition)
                    .expect("a state belongs to its definition");
            }
        }
        assert_eq!(
            replayed, self.instance,
            "the journal does not give the live state"
        );
        assert_eq!(
            Instance::decode(&self.instance.encode()).as_ref(),
            Ok(&self.instance)
        );
    }

    /// The whole journal gives the live state.
    pub fn check_journal(&self) {
        let mut replayed = Instance::new(self.instance.key());
        let mut definition = &self.first;
        for event in &self.journal {
            if let Event::Migrated { to, .. } = event {
                definition = &self.versions[to];
            }
            apply(definition, &mut replayed, event);
        }
        assert_eq!(replayed, self.instance);
    }

    /// Changes to another version, with the same checks as a command.
    pub fn migrate(&mut self, new: &Arc<Definition>) -> Result<Vec<Event>, Rejection> {
        let number = self.versions.len() as u64;
        let migration = Migration {
            definition: DefinitionKey(number + 2),
            mapping: BTreeMap::new(),
        };
        let old = Arc::clone(&self.definition);
        let change = Change {
            old: &old,
            from: DefinitionKey(number + 1),
            new,
            migration: &migration,
            cause: Cause::Engine,
        };
        self.keys.observe(self.now);
        let before = self.instance.clone();
        let planned = rehearse_migration(&change, &before, self.now);
        let (mut events, mut effects) = (Vec::new(), Vec::new());
        let done = migrate(
            &change,
            &mut self.instance,
            self.now,
            &mut self.keys,
            &mut events,
            &mut effects,
        );
        assert_eq!(planned.is_ok(), done.is_ok(), "a dry run says what would be");
        if let Err(rejection) = done {
            assert_eq!(before, self.instance, "a refused change changed something");
            assert_eq!((events.len(), effects.len()), (0, 0));
            return Err(rejection);
        }
        let bytes = encode_events(&events);
        assert_eq!(decode_events(&bytes).expect("events can be read"), events);
        let (mut replayed, mut definition) = (before, &old);
        for event in &events {
            if matches!(event, Event::Migrated { .. }) {
                definition = new;
            }
            apply(definition, &mut replayed, event);
            let again = Instance::decode(&replayed.encode()).expect("a state can be read");
            assert_eq!(again, replayed);
            again
                .check(definition)
                .expect("a state belongs to its definition");
        }
        assert_eq!(
            replayed, self.instance,
            "the journal does not give the live state"
        );
        self.journal.extend(events.iter().cloned());
        self.definition = Arc::clone(new);
        self.versions.insert(migration.definition, Arc::clone(new));
        effects.iter().for_each(|effect| self.follow(effect));
        // A task goes on under another index, which is nobody's business outside.
        for effect in outstanding(&self.definition, &self.instance) {
            let name = identity(&effect);
            if matches!(effect, Effect::OpenUserTask(_)) && self.open.contains_key(&name) {
                self.open.insert(name, effect);
            }
        }
        self.check_outstanding();
        Ok(events)
    }

    fn follow(&mut self, effect: &Effect) {
        match effect {
            Effect::RunJob(_)
            | Effect::OpenUserTask(_)
            | Effect::ArmTimer(_)
            | Effect::Subscribe(_)
            | Effect::StartChild(_)
            | Effect::RaiseIncident(_) => {
                self.open.insert(identity(effect), effect.clone());
            }
            Effect::JobGone(_)
            | Effect::CloseUserTask(_)
            | Effect::DisarmTimer { .. }
            | Effect::Unsubscribe { .. }
            | Effect::CancelChild {
                is_awaited: false, ..
            }
            | Effect::CloseIncident(_) => {
                self.open.remove(&identity(effect));
            }
            // They happen once, with the commit.
            Effect::PublishMessage { .. }
            | Effect::BroadcastSignal { .. }
            | Effect::CancelChild { is_awaited: true, .. }
            | Effect::HoldChild { .. }
            | Effect::ReleaseChild { .. }
            | Effect::EscalateToParent { .. } => {}
            Effect::Ended(sub_status) => {
                self.ended += 1;
                assert_eq!(self.instance.ended(), Some(*sub_status));
                assert_eq!(self.ended, 1, "an instance ends once");
            }
        }
    }

    fn check_outstanding(&self) {
        let derived: BTreeMap<String, Effect> = outstanding(&self.definition, &self.instance)
            .into_iter()
            .map(|effect| (identity(&effect), effect))
            .collect();
        let names = |map: &BTreeMap<String, Effect>| map.keys().cloned().collect::<Vec<_>>();
        assert_eq!(
            names(&derived),
            names(&self.open),
            "effects and state disagree on what is under way"
        );
        for (name, effect) in &derived {
            // A job goes on with the variables it was offered with.
            if !matches!(effect, Effect::RunJob(_)) {
                assert_eq!(self.open.get(name), Some(effect));
            }
        }
        if self.instance.ended().is_some() {
            assert!(derived.is_empty(), "something is under way after the end");
            assert_eq!(self.instance.tokens(&self.definition), []);
        }
    }

    pub fn jobs(&self) -> Vec<Job> {
        let job = |effect: &Effect| {
            if let Effect::RunJob(job) = effect {
                Some(job.clone())
            } else {
                None
            }
        };
        let mut jobs: Vec<Job> = self.open.values().filter_map(job).collect();
        jobs.sort_by_key(|job| job.key);
        jobs
    }

    pub fn open(&self) -> impl Iterator<Item = &Effect> {
        self.open.values()
    }

    /// The timer that is due first.
    pub fn next_timer(&self) -> Option<Timer> {
        let timer = |effect: &Effect| {
            if let Effect::ArmTimer(timer) = effect {
                Some(timer.clone())
            } else {
                None
            }
        };
        self.open
            .values()
            .filter_map(timer)
            .min_by_key(|timer| (timer.due_at, timer.owner, timer.element))
    }

    /// The live element instance of this BPMN id.
    pub fn find(&self, id: &str) -> Option<ElementInstanceKey> {
        let tokens = self.instance.tokens(&self.definition);
        tokens
            .iter()
            .find(|token| &*token.element_id == id)
            .and_then(|token| token.element_instance)
    }
}

fn identity(effect: &Effect) -> String {
    match effect {
        Effect::RunJob(job) => format!("job {}", job.key),
        Effect::JobGone(key) => format!("job {key}"),
        Effect::OpenUserTask(task) => format!("task {}", task.key),
        Effect::CloseUserTask(key) => format!("task {key}"),
        Effect::ArmTimer(timer) => format!("timer {} {:?}", timer.owner, timer.element),
        Effect::DisarmTimer { owner, element } => format!("timer {owner} {element:?}"),
        Effect::Subscribe(message) => format!("message {} {:?}", message.owner, message.element),
        Effect::Unsubscribe { owner, element } => format!("message {owner} {element:?}"),
        Effect::RaiseIncident(incident) => format!("incident {}", incident.key),
        Effect::CloseIncident(key) => format!("incident {key}"),
        Effect::PublishMessage { name, .. } => format!("publish {name}"),
        Effect::BroadcastSignal { name, .. } => format!("broadcast {name}"),
        Effect::StartChild(child) => format!("child {}", child.instance),
        Effect::HoldChild { instance, .. }
        | Effect::ReleaseChild { instance, .. }
        | Effect::CancelChild { instance, .. } => format!("child {instance}"),
        Effect::EscalateToParent { .. } => "escalation".to_owned(),
        Effect::Ended(_) => "ended".to_owned(),
    }
}
