//! Building and activating a runtime.

use std::sync::Arc;

use tidegate_engine::{CompileOptions, ScriptCheck};
use tidegate_model::Diagnostic;
use tidegate_store::{DefinitionFilter, DefinitionKind, Error as StoreError, InstanceFilter, Page, Store};
use tokio_util::sync::CancellationToken;

use crate::activity::decision::{self, Decision};
use crate::activity::{Activities, Activity, demo};
use crate::api::Resource;
use crate::clock::{Clock, SystemClock};
use crate::definitions::Definitions;
use crate::deploy::diagnose;
use crate::drain::Drain;
use crate::error::Error;
use crate::ingress::{self, IngressSource, Sources, timer};
use crate::life::{self, Engine, Life};
use crate::options::{CommitPolicy, Options, PausePersistence};
use crate::owner::{Message, Owner, Owners};
use crate::pause::Pause;
use crate::runtime::{Inner, Runtime};
use crate::shared::{Shared, SharedParts};
use crate::shutdown::Ending;
use crate::tasks::Tasks;
use crate::{audit, batch, janitor, recovery, retention, slots, spill};

/// Collects what a runtime is made of.
#[derive(Clone)]
#[must_use = "a builder does nothing until `start`"]
pub struct Builder {
    store: Option<Arc<dyn Store>>,
    options: Options,
    clock: Arc<dyn Clock>,
    shell: String,
    activities: Activities,
    sources: Vec<Arc<dyn IngressSource>>,
    compile: CompileOptions,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            store: None,
            options: Options::default(),
            clock: Arc::new(SystemClock),
            shell: "default".to_owned(),
            activities: Activities::default(),
            sources: Vec::new(),
            compile: CompileOptions::default(),
        }
    }
}

impl Builder {
    /// The store; a memory store of its own if none is given.
    pub fn store(mut self, store: Arc<dyn Store>) -> Self {
        self.store = Some(store);
        self
    }

    /// How it behaves.
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// When the work of a cycle is committed; [`Options::commit_policy`].
    pub fn commit_policy(mut self, policy: CommitPolicy) -> Self {
        self.options.commit_policy = policy;
        self
    }

    /// The clock; the machine's own if none is given.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// The shell's id; `default` if none is given.
    pub fn shell(mut self, id: impl Into<String>) -> Self {
        self.shell = id.into();
        self
    }

    /// A handler for a job type.
    pub fn activity(mut self, job_type: &str, activity: Arc<dyn Activity>) -> Self {
        self.activities.register(job_type, activity);
        self
    }

    /// The handlers for trials and benchmarks.
    pub fn demo_activities(mut self) -> Self {
        for (job_type, activity) in demo() {
            self.activities.register(job_type, activity);
        }
        self
    }

    /// An ingress source beside the built-in ones.
    pub fn source(mut self, source: Arc<dyn IngressSource>) -> Self {
        self.sources.push(source);
        self
    }

    /// Script formats that a handler of the job type `script` runs.
    pub fn script_formats(mut self, formats: Vec<String>) -> Self {
        self.compile.script_formats = formats;
        self
    }

    /// Lets `check` read each script of these formats when it is deployed: what it finds refuses the deployment.
    pub fn script_check(mut self, check: ScriptCheck) -> Self {
        self.compile.script_check = Some(check);
        self
    }

    /// Lets jobs of `job_type` stand in for Java code that a model names: a class by its name (`com.example.Pay`), a
    /// delegate expression or an expression by what is inside of it (`payService` for `${payService}`). Without, such
    /// a model is refused. As long as models that need it are deployed, every runtime on the store must have it.
    pub fn delegate(mut self, java: &str, job_type: &str) -> Self {
        self.compile
            .delegates
            .insert(java.to_owned(), job_type.to_owned());
        self
    }

    /// What deploying these files together would say of them: everything that is wrong or doubtful. No file is
    /// stored.
    pub fn check(&self, resources: Vec<Resource>) -> Vec<Diagnostic> {
        diagnose(resources, &self.compile).1
    }

    /// All that is wrong with the options, each with its key; [`Builder::start`] refuses them.
    pub fn wrong(&self) -> Vec<(&'static str, String)> {
        self.options.validate()
    }

    /// Activates the runtime: takes hold of the store, restores a kept pause, loads the queue, starts the sources,
    /// and begins recovery. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// An option is wrong (all of them are named), or the store cannot be used.
    pub async fn start(self) -> Result<Runtime, Error> {
        life::start(self).await
    }

    /// An engine that is run later, and can be run again when its start has failed.
    pub fn build(self) -> Engine {
        Engine::new(self)
    }

    pub(crate) async fn activate(self, life: Arc<Life>) -> Result<Runtime, Error> {
        let wrong = self.options.validate();
        if !wrong.is_empty() {
            let all: Vec<String> = wrong.iter().map(|(key, text)| format!("{key}: {text}")).collect();
            return Err(Error::Invalid {
                code: "invalid-options",
                message: all.join("; "),
            });
        }
        let store = self
            .store
            .unwrap_or_else(|| Arc::new(tidegate_store::memory::MemoryStore::fleeting()));
        if self.options.pause_persistence == PausePersistence::AcrossReactivations && !store.is_lasting() {
            return Err(Error::Invalid {
                code: "pause-cannot-be-kept",
                message: "pause-persistence is AcrossReactivations, and nothing of this store outlives its generation: \
                          use a durable store, or SessionScoped"
                    .to_owned(),
            });
        }
        let opened = {
            let store = store.clone();
            blocking(move || {
                let activation = store.activate()?;
                let queue = store.queue()?;
                let newest = |kind| DefinitionFilter {
                    kind: Some(kind),
                    latest: true,
                    ..Default::default()
                };
                let processes = store.definitions(&newest(DefinitionKind::Process), Page::first(MOST))?;
                let decisions = store.definitions(&newest(DefinitionKind::Decision), Page::first(MOST))?;
                Ok((activation, queue, processes, decisions))
            })
            .await?
        };
        let (activation, queue, processes, decisions) = opened;
        let mut activities = self.activities;
        let decision = Decision::default();
        let shell_of_decisions = decision.shared.clone();
        if activities.get(decision::JOB_TYPE).is_none() {
            activities.register(decision::JOB_TYPE, Arc::new(decision));
        }
        let shared = Arc::new(Shared::new(SharedParts {
            shell: self.shell.into(),
            generation: uuid::Uuid::new_v4().simple().to_string().into(),
            epoch: activation.epoch,
            key_floor: activation.key_high,
            definitions: Definitions::new(self.compile, self.options.retention),
            options: self.options,
            clock: self.clock,
            store,
            activities,
            tokio: tokio::runtime::Handle::current(),
            life,
        }));
        shared
            .queue_depth
            .store(queue.depth, std::sync::atomic::Ordering::Relaxed);
        // Only this one sets it.
        let _ = shell_of_decisions.set(Arc::downgrade(&shared));
        let mut left_out = shared.definitions.activate(&*shared.store, processes);
        left_out.extend(shared.definitions.activate_decisions(&*shared.store, decisions));
        for error in left_out {
            // What the store will give later is not missing: without it its start events would be deaf.
            if error.kind().is_retryable() {
                return Err(error.into());
            }
            tracing::error!("a definition is left out: {error}");
        }
        {
            let shared = shared.clone();
            blocking(move || {
                slots::activate(&shared)?;
                batch::activate(&shared)
            })
            .await?;
        }
        let owners = Owners::new(shared.options.owners);
        let mut sources = ingress::built_in(&shared.switches, &owners);
        sources.extend(self.sources);
        let timeout = shared.options.ingress_pause_timeout;
        let sources = Arc::new(Sources::new(sources, shared.clock.clone(), timeout)?);
        let pause = Arc::new(Pause::new(shared.clone(), owners.clone(), sources.clone()));
        pause.restore().await?;
        let starts_paused = pause.record().is_some();
        if starts_paused {
            sources.mark_paused();
            shared.switches.set_all(false);
        }

        let begun = Begun {
            tasks: Arc::new(Tasks::default()),
            owners: owners.clone(),
            stop: CancellationToken::new(),
            is_over: false,
        };
        let tasks = begun.tasks.clone();
        for index in 0..owners.count() {
            let owner = Owner::new(index, shared.clone(), owners.clone());
            owner.launch(&tasks).map_err(|error| {
                StoreError::new(
                    tidegate_store::ErrorKind::Unavailable,
                    format!("no thread could be started: {error}"),
                )
            })?;
        }
        let queue = match note_held(&shared).await {
            Ok(()) => load_queue(&shared, &owners).await,
            Err(error) => Err(error),
        };
        if let Err(error) = queue {
            // No thread of a failed start is left behind.
            let at_most = shared.options.reserve();
            let tasks = begun.tasks.clone();
            drop(begun);
            tasks.join(at_most).await;
            return Err(error);
        }
        spill::take_up(&shared, &owners).await;
        let stop = begun.stop.clone();
        let handle = shared.tokio.clone();
        tasks.spawn(
            &handle,
            "timer",
            timer::run(shared.clone(), owners.clone(), stop.clone()),
        );
        let recovering = recovery::run(shared.clone(), owners.clone(), stop.clone());
        let of_recovery = shared.clone();
        tasks.spawn(&handle, "recovery", async move {
            recovering.await;
            of_recovery.recovered.send_replace(true);
        });
        tasks.spawn(&handle, "pause", pause.clone().watch(stop.clone()));
        tasks.spawn(&handle, "audit", audit::run(shared.clone(), stop.clone()));
        tasks.spawn(
            &handle,
            "janitor",
            janitor::run(shared.clone(), owners.clone(), stop.clone()),
        );
        tasks.spawn(
            &handle,
            "batches",
            batch::run(shared.clone(), owners.clone(), stop.clone()),
        );
        tasks.spawn(
            &handle,
            "retention",
            retention::run(shared.clone(), owners.clone(), stop.clone()),
        );
        let drain = Drain::new(shared.clone(), owners.clone(), sources.clone(), tasks.clone());
        let drain = Arc::new(drain);
        begun.complete();
        let runtime = Runtime::new(Inner {
            shared,
            owners,
            sources,
            pause,
            drain,
            tasks,
            stop,
            ending: Ending::default(),
        });
        runtime.attach_sources(starts_paused);
        Ok(runtime)
    }
}

/// An activation in progress: what it has begun ends with it if it fails.
struct Begun {
    tasks: Arc<Tasks>,
    owners: Owners,
    stop: CancellationToken,
    is_over: bool,
}

impl Begun {
    fn complete(mut self) {
        self.is_over = true;
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        if !self.is_over {
            self.stop.cancel();
            self.owners.tell_all(|| Message::Stop);
        }
    }
}

/// Rows that one read of an activation takes.
const MOST: usize = 1_000_000;

/// Remembers which instances are held, so that who sends something to one is told so.
async fn note_held(shared: &Arc<Shared>) -> Result<(), Error> {
    const PAGE: usize = 10_000;
    let mut after = None;
    loop {
        let store = shared.store.clone();
        let filter = InstanceFilter {
            sub_statuses: vec![tidegate_model::SubStatus::Held],
            ..InstanceFilter::default()
        };
        let page = Page { after, limit: PAGE };
        let rows = blocking(move || store.instances(&filter, page)).await?;
        after = rows.last().map(|row| row.key.get());
        let is_last = rows.len() < PAGE;
        shared.held.lock().extend(rows.into_iter().map(|row| row.key));
        if is_last {
            return Ok(());
        }
    }
}

/// Puts the queue's rows into their owners' lines, before anything new can come.
async fn load_queue(shared: &Arc<Shared>, owners: &Owners) -> Result<(), Error> {
    const PAGE: usize = 1_000;
    let mut after = None;
    loop {
        let store = shared.store.clone();
        let rows = blocking(move || store.stimuli(after, PAGE)).await?;
        let is_last = rows.len() < PAGE;
        after = rows.last().map(|row| row.key);
        let mut by_owner = std::collections::BTreeMap::<usize, Vec<_>>::new();
        for row in rows {
            by_owner
                .entry(owners.of_domain(&row.domain))
                .or_default()
                .push(row);
        }
        for (owner, rows) in by_owner {
            owners.send_to(owner, Message::Queued(rows));
        }
        if is_last {
            owners.barrier().await;
            return Ok(());
        }
    }
}

/// Runs a read of the store beside the async runtime.
pub(crate) async fn blocking<T: Send + 'static>(
    read: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, Error> {
    match crate::tasks::blocking(read).await {
        Ok(result) => result.map_err(Error::Store),
        Err(_) => Err(Error::Stopped),
    }
}
