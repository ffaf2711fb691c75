//! The compiled definitions of a shell: a cache over the deployed bytes, and which of them start by themselves.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::gate::Gate;
use crate::parts::{Gates, Part};
use crate::settings::Retention;
use crate::slots::{Process, Processes};
use parking_lot::RwLock;
use tidegate_bpmn::Limits;
use tidegate_dmn::Decisions;
use tidegate_engine::{CompileOptions, Compiled, Definition, Starter, StarterTrigger};
use tidegate_model::{DefinitionKey, Diagnostic, ElementIndex, Variables};
use tidegate_store::{DefinitionKind, DefinitionRow, Error as StoreError, ErrorKind, Store};

/// A definition, ready to run.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) row: DefinitionRow,
    pub(crate) definition: Arc<Definition>,
    /// The narrow gates that its cycles pass: its process id's and its tenant's.
    gates: [Gate; 2],
    /// The settings of its process id, and who is live where that is limited.
    pub(crate) process: Arc<Process>,
    standing: AtomicU8,
}

/// Whether instances of a definition may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Standing {
    Startable,
    /// It is being unregistered: nothing begins, and nothing is decided yet.
    Leaving,
    Gone,
}

type Starts = HashMap<(Arc<str>, Arc<str>), Vec<(Arc<Loaded>, ElementIndex)>>;

impl Loaded {
    /// The narrow gates, in the order in which a permit passes them.
    pub(crate) fn gates(&self) -> [Option<&Gate>; 2] {
        [Some(&self.gates[0]), Some(&self.gates[1])]
    }

    pub(crate) fn standing(&self) -> Standing {
        match self.standing.load(Ordering::Acquire) {
            0 => Standing::Startable,
            1 => Standing::Leaving,
            _ => Standing::Gone,
        }
    }

    /// True if an instance of it may begin. An owner that asks right before it hands over the first commit has an
    /// answer that holds: unregistering waits for all owners to come round before it commits.
    pub(crate) fn is_startable(&self) -> bool {
        self.standing() == Standing::Startable
    }

    fn stand(&self, standing: Standing) {
        self.standing.store(standing as u8, Ordering::Release);
    }
}

/// A deployed decision, ready to be evaluated. All decisions of a file share its model.
#[derive(Debug)]
pub(crate) struct LoadedDecision {
    pub(crate) row: DefinitionRow,
    pub(crate) decisions: Decisions,
}

/// Which versions are the newest, and what starts by message.
#[derive(Debug, Default)]
struct Index {
    loaded: HashMap<DefinitionKey, Arc<Loaded>>,
    /// By (tenant, process id): the newest version that is not deleted.
    latest: BTreeMap<(Arc<str>, Arc<str>), Arc<Loaded>>,
    /// By (tenant, message name).
    message_starts: Starts,
    /// By (tenant, signal name).
    signal_starts: Starts,
    /// By (tenant, decision id): the newest version.
    decisions: BTreeMap<(Arc<str>, Arc<str>), Arc<LoadedDecision>>,
}

/// The definitions of one shell.
#[derive(Debug)]
pub(crate) struct Definitions {
    index: RwLock<Index>,
    pub(crate) options: CompileOptions,
    /// The narrow gates.
    pub(crate) gates: Gates,
    /// Which versions there are changes one step at a time.
    pub(crate) turn: Arc<tokio::sync::Mutex<()>>,
    /// Settings and limits by process id.
    pub(crate) processes: Processes,
}

/// Reads and compiles one file.
pub(crate) fn compile(name: &str, bytes: &[u8], options: &CompileOptions) -> Compiled {
    let parsed = tidegate_bpmn::parse(name, bytes, &Limits::default());
    // Semantics are looked at even when the structure is wrong: everything wrong is told at once.
    let mut compiled = match &parsed.document {
        Some(document) => tidegate_engine::compile(document, options),
        None => Compiled::default(),
    };
    let mut diagnostics = parsed.diagnostics;
    // A broken reference is an error of the structure; what it means for the semantics adds nothing.
    let told: HashSet<(u32, u32)> = diagnostics
        .iter()
        .filter(|d| d.is_error() && is_about_reference(d))
        .map(|d| (d.line, d.column))
        .collect();
    compiled
        .diagnostics
        .retain(|d| !(is_about_reference(d) && told.contains(&(d.line, d.column))));
    diagnostics.append(&mut compiled.diagnostics);
    for diagnostic in &mut diagnostics {
        diagnostic.resource = name.to_owned();
    }
    diagnostics.sort_by_key(|d| (d.line, d.column));
    if diagnostics.iter().any(Diagnostic::is_error) {
        compiled.definitions.clear();
    }
    compiled.diagnostics = diagnostics;
    compiled
}

/// True if it says that a reference is missing, or leads nowhere or to the wrong thing.
fn is_about_reference(diagnostic: &Diagnostic) -> bool {
    const CODES: [&str; 6] = [
        "missing-reference",
        "dangling-reference",
        "external-reference",
        "wrong-reference-kind",
        "boundary-host-not-activity",
        "flow-crosses-scope",
    ];
    CODES.contains(&diagnostic.code.as_str())
}

impl Definitions {
    pub(crate) fn new(options: CompileOptions, retention: Retention) -> Self {
        Self {
            index: RwLock::default(),
            options,
            gates: Gates::default(),
            turn: Arc::default(),
            processes: Processes::new(retention),
        }
    }

    /// A row with its definition and its gates.
    pub(crate) fn loaded(&self, row: DefinitionRow, definition: Arc<Definition>) -> Loaded {
        let tenant = row.tenant.to_string();
        let process = Part::Definition {
            tenant: tenant.clone(),
            process_id: row.process_id.to_string(),
        };
        let gates = [self.gates.of(&process), self.gates.of(&Part::Tenant { tenant })];
        let standing = match row.is_deleted {
            true => Standing::Gone,
            false => Standing::Startable,
        };
        let process = self.processes.of(&row.tenant, &row.process_id);
        Loaded {
            row,
            definition,
            gates,
            standing: AtomicU8::new(standing as u8),
            process,
        }
    }

    /// A definition by key, deleted ones included. Blocks for a read of the store when it is not in memory.
    pub(crate) fn get(
        &self,
        store: &dyn Store,
        key: DefinitionKey,
    ) -> Result<Option<Arc<Loaded>>, StoreError> {
        if let Some(loaded) = self.index.read().loaded.get(&key) {
            return Ok(Some(loaded.clone()));
        }
        let Some(row) = store
            .definition(key)?
            .filter(|row| row.kind == DefinitionKind::Process)
        else {
            return Ok(None);
        };
        let loaded = Arc::new(self.load(store, row)?);
        // There is one for each key: who else has read it meanwhile has set the one.
        let mut index = self.index.write();
        Ok(Some(index.loaded.entry(key).or_insert(loaded).clone()))
    }

    fn load(&self, store: &dyn Store, row: DefinitionRow) -> Result<Loaded, StoreError> {
        let bytes = store.resource(row.resource)?.ok_or_else(|| {
            StoreError::new(
                ErrorKind::Damaged,
                format!("resource {} of definition {} is missing", row.resource, row.key),
            )
        })?;
        // What was deployed once was checked then, and its scripts say for themselves what is wrong with them.
        let options = CompileOptions {
            script_check: None,
            ..self.options.clone()
        };
        let compiled = compile(&row.resource_name, &bytes, &options);
        let definition = compiled
            .definitions
            .into_iter()
            .find(|d| **d.process_id() == *row.process_id);
        match definition {
            Some(definition) => Ok(self.loaded(row, definition)),
            None => Err(StoreError::new(
                ErrorKind::Damaged,
                format!(
                    "definition {} (`{}`) can no longer be compiled: {}",
                    row.key,
                    row.process_id,
                    compiled
                        .diagnostics
                        .iter()
                        .find(|d| d.is_error())
                        .map(|d| d.to_string())
                        .unwrap_or_default()
                ),
            )),
        }
    }

    /// Reads the newest version of each process id at activation.
    pub(crate) fn activate(&self, store: &dyn Store, rows: Vec<DefinitionRow>) -> Vec<StoreError> {
        let mut failed = Vec::new();
        for row in rows {
            match self.load(store, row) {
                Ok(loaded) => self.add(Arc::new(loaded)),
                Err(error) => failed.push(error),
            }
        }
        failed
    }

    /// Reads the newest version of each decision at activation.
    pub(crate) fn activate_decisions(&self, store: &dyn Store, rows: Vec<DefinitionRow>) -> Vec<StoreError> {
        let mut failed = Vec::new();
        let mut models: HashMap<u64, Option<Decisions>> = HashMap::new();
        for row in rows {
            let model = match models.entry(row.resource) {
                std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
                std::collections::hash_map::Entry::Vacant(unknown) => match store.resource(row.resource) {
                    Ok(bytes) => {
                        unknown.insert(bytes.and_then(|b| tidegate_dmn::parse(&row.resource_name, &b).0))
                    }
                    Err(error) => {
                        failed.push(error);
                        continue;
                    }
                },
            };
            match model {
                Some(decisions) => self.add_decision(row, decisions.clone()),
                None => failed.push(StoreError::new(
                    ErrorKind::Damaged,
                    format!(
                        "decision `{}` (definition {}) can no longer be read",
                        row.process_id, row.key
                    ),
                )),
            }
        }
        failed
    }

    /// Takes in a decision; it becomes the newest of its id if its version is the highest.
    pub(crate) fn add_decision(&self, row: DefinitionRow, decisions: Decisions) {
        let mut index = self.index.write();
        let name = (row.tenant.clone(), row.process_id.clone());
        if index
            .decisions
            .get(&name)
            .is_none_or(|other| other.row.version < row.version)
        {
            index
                .decisions
                .insert(name, Arc::new(LoadedDecision { row, decisions }));
        }
    }

    /// The newest version of a decision.
    pub(crate) fn decision(&self, tenant: &str, id: &str) -> Option<Arc<LoadedDecision>> {
        self.index
            .read()
            .decisions
            .get(&(Arc::from(tenant), Arc::from(id)))
            .cloned()
    }

    /// Takes in a definition; it becomes the newest of its process id if its version is the highest.
    pub(crate) fn add(&self, loaded: Arc<Loaded>) {
        let mut index = self.index.write();
        index.loaded.insert(loaded.row.key, loaded.clone());
        let name = (loaded.row.tenant.clone(), loaded.row.process_id.clone());
        let is_newest = index
            .latest
            .get(&name)
            .is_none_or(|other| other.row.version < loaded.row.version);
        if is_newest && !loaded.row.is_deleted {
            loaded.process.set_model(*loaded.definition.settings());
            index.latest.insert(name, loaded);
            index.rebuild_starts();
        }
    }

    /// Begins to take a definition away: nothing of it begins any more, and in the same step `before` owns what it
    /// started, if it was the newest.
    pub(crate) fn leave(&self, leaving: &Loaded, before: Option<Arc<Loaded>>) {
        let mut index = self.index.write();
        leaving.stand(Standing::Leaving);
        index.latest.retain(|_, loaded| loaded.row.key != leaving.row.key);
        if let Some(before) = before {
            before.process.set_model(*before.definition.settings());
            let name = (before.row.tenant.clone(), before.row.process_id.clone());
            index.latest.insert(name, before);
        }
        index.rebuild_starts();
    }

    /// It is gone.
    pub(crate) fn left(&self, gone: &Loaded) {
        gone.stand(Standing::Gone);
    }

    /// It stays after all.
    pub(crate) fn stay(&self, staying: Arc<Loaded>) {
        staying.stand(Standing::Startable);
        self.add(staying);
    }

    /// The newest version of a process id.
    pub(crate) fn latest(&self, tenant: &str, process_id: &str) -> Option<Arc<Loaded>> {
        // A look-up by borrowed pair would need an own key type for the one call of a start.
        self.index
            .read()
            .latest
            .get(&(Arc::from(tenant), Arc::from(process_id)))
            .cloned()
    }

    /// The start events that a message of this name creates instances with.
    pub(crate) fn message_starts(&self, tenant: &str, name: &str) -> Vec<(Arc<Loaded>, ElementIndex)> {
        let index = self.index.read();
        if index.message_starts.is_empty() {
            return Vec::new();
        }
        index
            .message_starts
            .get(&(Arc::from(tenant), Arc::from(name)))
            .cloned()
            .unwrap_or_default()
    }

    /// The key of a message that came without one, where the correlation properties of a newest definition read it from
    /// the payload.
    pub(crate) fn correlation_key(&self, tenant: &str, message: &str, payload: &Variables) -> Option<String> {
        let index = self.index.read();
        let mut of_tenant = index
            .latest
            .values()
            .filter(|loaded| *loaded.row.tenant == *tenant);
        of_tenant.find_map(|loaded| loaded.definition.correlation_key(message, payload))
    }

    /// The start events that a signal of this name creates instances with.
    pub(crate) fn signal_starts(&self, tenant: &str, name: &str) -> Vec<(Arc<Loaded>, ElementIndex)> {
        let index = self.index.read();
        if index.signal_starts.is_empty() {
            return Vec::new();
        }
        index
            .signal_starts
            .get(&(Arc::from(tenant), Arc::from(name)))
            .cloned()
            .unwrap_or_default()
    }

    /// Every start event of the newest versions that creates instances by itself.
    pub(crate) fn starters(&self) -> Vec<(Arc<Loaded>, Starter)> {
        let index = self.index.read();
        index
            .latest
            .values()
            .flat_map(|loaded| {
                loaded
                    .definition
                    .starters()
                    .into_iter()
                    .map(move |s| (loaded.clone(), s))
            })
            .filter(|(_, starter)| !matches!(starter.trigger, StarterTrigger::None))
            .collect()
    }

    /// True if `key` is the newest version of its process id.
    pub(crate) fn is_latest(&self, loaded: &Loaded) -> bool {
        let index = self.index.read();
        let name = (loaded.row.tenant.clone(), loaded.row.process_id.clone());
        index
            .latest
            .get(&name)
            .is_some_and(|newest| newest.row.key == loaded.row.key)
    }
}

impl Index {
    fn rebuild_starts(&mut self) {
        let (mut messages, mut signals) = (Starts::new(), Starts::new());
        for loaded in self.latest.values() {
            for starter in loaded.definition.starters() {
                let (starts, name) = match starter.trigger {
                    StarterTrigger::Message(name) => (&mut messages, name),
                    StarterTrigger::Signal(name) => (&mut signals, name),
                    StarterTrigger::None | StarterTrigger::Timer(_) => continue,
                };
                let key = (loaded.row.tenant.clone(), name);
                starts
                    .entry(key)
                    .or_default()
                    .push((loaded.clone(), starter.element));
            }
        }
        self.message_starts = messages;
        self.signal_starts = signals;
    }
}
