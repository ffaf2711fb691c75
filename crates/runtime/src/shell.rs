//! A shell through its generations: activated, reloaded from its newest configuration, retired.
//!
//! A [`Runtime`] is one generation. A [`Shell`] is what outlives it: the id, the open store and the
//! [`Blueprint`] from which the next generation is built. The binary's host holds one for each `[[shells]]` of its
//! configuration; a program that embeds Tidegate writes a `Blueprint` of its own and drives the same life cycle.

use std::sync::Arc;

use parking_lot::Mutex;
use tidegate_store::{Error as StoreError, Store};
use tokio::sync::watch;

use crate::builder::Builder;
use crate::error::Error;
use crate::options::Options;
use crate::request;
use crate::runtime::{Runtime, close_store};
use crate::status::{DrainOutcome, DrainTrigger};

/// What is wrong with a configuration: keys and messages.
pub type Wrong = Vec<(String, String)>;

/// From where a shell takes its store and each of its generations.
pub trait Blueprint: Send + Sync + 'static {
    /// Opens the store. Called until it succeeds once; the store then stays open across generations. May block.
    ///
    /// # Errors
    /// The store's own.
    fn store(&self) -> Result<Arc<dyn Store>, StoreError>;

    /// The newest configuration as a builder; its store and shell id are set by the shell. May block.
    ///
    /// # Errors
    /// Everything that is wrong, each with its key. The present generation goes on.
    fn generation(&self) -> Result<Builder, Wrong>;
}

/// One shell of a host. Cheap to clone; all clones are the same shell.
#[derive(Clone)]
pub struct Shell {
    inner: Arc<Inner>,
}

struct Inner {
    id: Arc<str>,
    blueprint: Arc<dyn Blueprint>,
    store: Mutex<Option<Arc<dyn Store>>>,
    state: watch::Sender<State>,
    /// Changes of the generation come one at a time; who finds it taken is told so.
    turn: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Clone)]
struct State {
    stage: Stage,
    /// The host stops: no further generation begins.
    is_stopping: bool,
}

#[derive(Clone)]
enum Stage {
    /// No generation has begun.
    New,
    /// This generation serves, or has drained.
    Active(Runtime),
    /// This generation has drained and makes room for the next.
    Changing(Runtime),
    /// Over for good.
    Retired,
}

/// A change of generation that came about.
#[derive(Debug)]
pub struct Reloaded {
    /// The generation that serves now.
    pub runtime: Runtime,
    /// What became of the cycles of the one before; none if there was none.
    pub drain: Option<DrainOutcome>,
}

/// Why a shell did not change its generation.
#[derive(Debug, thiserror::Error)]
pub enum ShellError {
    /// Another change is under way.
    #[error("the shell is being reloaded or retired already; try again when that is over")]
    Busy,
    /// The newest configuration is wrong. The present generation goes on.
    #[error("the configuration is wrong, and what ran goes on: {}", listed(.0))]
    Invalid(Wrong),
    /// The store could not be opened.
    #[error("the store could not be opened: {0}")]
    Store(StoreError),
    /// The next generation did not start. The one before has drained; a later reload tries again.
    #[error("the new generation did not start: {error}")]
    NotStarted {
        /// Why.
        error: Error,
        /// What became of the cycles of the generation before.
        drain: Option<Box<DrainOutcome>>,
    },
    /// The shell was retired.
    #[error("the shell is retired")]
    Retired,
    /// The host stops.
    #[error("the host is stopping; its next start has the newest configuration")]
    Stopping,
    /// A bug: the change panicked.
    #[error("the change failed; the log has the cause")]
    Failed,
}

fn listed(wrong: &Wrong) -> String {
    let lines: Vec<_> = wrong
        .iter()
        .map(|(key, message)| format!("{key}: {message}"))
        .collect();
    lines.join("; ")
}

impl std::fmt::Debug for Shell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shell")
            .field("id", &self.inner.id)
            .finish_non_exhaustive()
    }
}

impl Shell {
    /// A shell without a generation yet.
    pub fn new(id: &str, blueprint: impl Blueprint) -> Self {
        Self::with(id, Arc::new(blueprint), Stage::New)
    }

    /// A shell of one generation that runs already and has no configuration to be reloaded from.
    pub fn of(id: &str, runtime: Runtime) -> Self {
        let shell = Self::with(id, Arc::new(Fixed), Stage::Active(runtime.clone()));
        *shell.inner.store.lock() = Some(runtime.shared().store.clone());
        shell
    }

    fn with(id: &str, blueprint: Arc<dyn Blueprint>, stage: Stage) -> Self {
        let state = watch::Sender::new(State {
            stage,
            is_stopping: false,
        });
        Self {
            inner: Arc::new(Inner {
                id: id.to_ascii_lowercase().into(),
                blueprint,
                store: Mutex::default(),
                state,
                turn: Arc::default(),
            }),
        }
    }

    /// Its id, in lower case: ids are matched without regard to case.
    pub fn id(&self) -> &str {
        &self.inner.id
    }

    /// The present generation; none before the first and after the last.
    pub fn runtime(&self) -> Option<Runtime> {
        match &self.inner.state.borrow().stage {
            Stage::Active(runtime) | Stage::Changing(runtime) => Some(runtime.clone()),
            Stage::New | Stage::Retired => None,
        }
    }

    /// The present generation, after the change that may be under way. The wait is short: a drain does not count
    /// as a change, since the draining generation still accepts. Cancel safe.
    pub async fn settled(&self) -> Option<Runtime> {
        let mut state = self.inner.state.subscribe();
        // The sender lives as long as `self`.
        let _ = state
            .wait_for(|state| !matches!(state.stage, Stage::Changing(_)))
            .await;
        self.runtime()
    }

    /// Ends once `runtime` is no longer the present generation and gives the one that is. Cancel safe.
    pub async fn succeeded(&self, runtime: &Runtime) -> Option<Runtime> {
        let mut state = self.inner.state.subscribe();
        let is_over = |state: &State| match &state.stage {
            Stage::Active(present) => present.generation() != runtime.generation(),
            Stage::Changing(_) => false,
            Stage::New | Stage::Retired => true,
        };
        let _ = state.wait_for(is_over).await;
        self.runtime()
    }

    /// Opens the store without beginning a generation. Idempotent.
    ///
    /// # Errors
    /// [`ShellError::Store`].
    pub async fn open(&self) -> Result<(), ShellError> {
        self.inner.open().await.map(drop)
    }

    /// Begins the first generation.
    ///
    /// # Errors
    /// [`ShellError`]; the shell can be activated again.
    pub async fn activate(&self) -> Result<Runtime, ShellError> {
        self.reload("activation").await.map(|reloaded| reloaded.runtime)
    }

    /// Reads the newest configuration, drains the present generation and begins another on the same store. A shell
    /// without a generation begins its first.
    ///
    /// # Durability
    /// Stimuli that arrive meanwhile are accepted by the draining generation and executed by the next.
    ///
    /// # Errors
    /// [`ShellError`]; with [`ShellError::Invalid`] nothing has changed.
    ///
    /// # Cancel safety
    /// The change goes on if the future is dropped.
    pub async fn reload(&self, actor: &str) -> Result<Reloaded, ShellError> {
        let turn = self.inner.take_turn()?;
        let (inner, actor) = (self.inner.clone(), actor.to_owned());
        let change = tokio::spawn(request::carry(async move {
            let _turn = turn;
            inner.change(&actor).await
        }));
        change.await.unwrap_or_else(|error| {
            tracing::error!(shell = self.id(), %error, "a reload panicked");
            self.inner.give_up_change();
            Err(ShellError::Failed)
        })
    }

    /// Drains the present generation and closes the store: the shell is over. One that never ran has nothing to
    /// drain. Idempotent.
    ///
    /// # Errors
    /// [`ShellError::Busy`].
    ///
    /// # Cancel safety
    /// It goes on if the future is dropped.
    pub async fn retire(&self, actor: &str) -> Result<Option<DrainOutcome>, ShellError> {
        let turn = self.inner.take_turn()?;
        let (inner, actor) = (self.inner.clone(), actor.to_owned());
        let change = tokio::spawn(request::carry(async move {
            let _turn = turn;
            inner.retire(&actor).await
        }));
        change.await.map_err(|error| {
            tracing::error!(shell = self.id(), %error, "retiring a shell panicked");
            ShellError::Failed
        })
    }

    /// The host stops: the present generation drains and no other begins, also when a reload is under way. None if
    /// there is no generation. Idempotent.
    pub async fn stop(&self) -> Option<DrainOutcome> {
        self.inner
            .state
            .send_if_modified(|state| !std::mem::replace(&mut state.is_stopping, true));
        let runtime = self.settled().await?;
        Some(runtime.drain(DrainTrigger::HostStopSignal).await)
    }

    /// After [`Shell::stop`]: joins what the generation has running and closes the store. Idempotent.
    pub async fn close(&self) {
        self.inner.close().await;
    }
}

impl Inner {
    /// The right to change the generation: one change at a time.
    fn take_turn(&self) -> Result<tokio::sync::OwnedMutexGuard<()>, ShellError> {
        self.turn.clone().try_lock_owned().map_err(|_| ShellError::Busy)
    }

    async fn change(&self, actor: &str) -> Result<Reloaded, ShellError> {
        let State { stage, is_stopping } = self.state.borrow().clone();
        let old = match stage {
            _ if is_stopping => return Err(ShellError::Stopping),
            Stage::Retired => return Err(ShellError::Retired),
            Stage::New => None,
            // No change is under way: the turn is ours.
            Stage::Active(runtime) | Stage::Changing(runtime) => Some(runtime),
        };
        let builder = self.builder().await?;
        let store = self.open().await?;
        let drain = match &old {
            Some(old) => Some(old.drain(DrainTrigger::ShellDeactivation).await),
            None => None,
        };
        if !self.begin_change(old.as_ref()) {
            return Err(ShellError::Stopping);
        }
        if let Some(old) = &old
            && !old.release().await
        {
            tracing::error!(
                shell = &*self.id,
                "a thread of the old generation still works in the store; its commits are refused from now on"
            );
        }
        match builder.store(store).shell(&*self.id).start().await {
            Ok(runtime) => {
                self.set(Stage::Active(runtime.clone()));
                if let Some(old) = old {
                    let mut audit = runtime.shared().audit("ShellReloaded", actor, None);
                    audit.before = Some(old.generation().to_owned());
                    audit.after = Some(runtime.generation().to_owned());
                    runtime.shared().write_audit(audit).await;
                }
                Ok(Reloaded { runtime, drain })
            }
            Err(error) => {
                self.set(old.map_or(Stage::New, Stage::Active));
                Err(ShellError::NotStarted {
                    error,
                    drain: drain.map(Box::new),
                })
            }
        }
    }

    /// The newest configuration, checked before anything is drained for it.
    async fn builder(&self) -> Result<Builder, ShellError> {
        let blueprint = self.blueprint.clone();
        let built = crate::tasks::blocking(move || blueprint.generation()).await;
        let builder = built
            .map_err(|_| ShellError::Failed)?
            .map_err(ShellError::Invalid)?;
        let wrong = builder.wrong();
        if wrong.is_empty() {
            return Ok(builder);
        }
        let wrong = wrong.into_iter().map(|(key, message)| (key.to_owned(), message));
        Err(ShellError::Invalid(wrong.collect()))
    }

    async fn open(&self) -> Result<Arc<dyn Store>, ShellError> {
        if let Some(store) = &*self.store.lock() {
            return Ok(store.clone());
        }
        let blueprint = self.blueprint.clone();
        let opened = crate::tasks::blocking(move || blueprint.store()).await;
        let store = opened
            .map_err(|_| ShellError::Failed)?
            .map_err(ShellError::Store)?;
        *self.store.lock() = Some(store.clone());
        Ok(store)
    }

    /// False if the host stops. Looking and changing are one step, so that [`Shell::stop`] either is seen here or
    /// waits for the next generation and drains that.
    fn begin_change(&self, old: Option<&Runtime>) -> bool {
        self.state.send_if_modified(|state| {
            let Some(old) = old else { return !state.is_stopping };
            if !state.is_stopping {
                state.stage = Stage::Changing(old.clone());
            }
            !state.is_stopping
        })
    }

    /// Nobody waits for a change that will not come.
    fn give_up_change(&self) {
        self.state.send_if_modified(|state| match &state.stage {
            Stage::Changing(runtime) => {
                state.stage = Stage::Active(runtime.clone());
                true
            }
            Stage::New | Stage::Active(_) | Stage::Retired => false,
        });
    }

    fn set(&self, stage: Stage) {
        self.state.send_modify(|state| state.stage = stage);
    }

    async fn retire(&self, actor: &str) -> Option<DrainOutcome> {
        let runtime = match self.state.borrow().stage.clone() {
            Stage::Active(runtime) | Stage::Changing(runtime) => Some(runtime),
            Stage::New | Stage::Retired => None,
        };
        let drain = match &runtime {
            Some(runtime) => {
                let drain = runtime.drain(DrainTrigger::ShellDeactivation).await;
                let mut audit = runtime.shared().audit("ShellRetired", actor, None);
                audit.before = Some(runtime.generation().to_owned());
                runtime.shared().write_audit(audit).await;
                Some(drain)
            }
            None => None,
        };
        self.close().await;
        self.set(Stage::Retired);
        drain
    }

    async fn close(&self) {
        let runtime = match &self.state.borrow().stage {
            Stage::Active(runtime) | Stage::Changing(runtime) => Some(runtime.clone()),
            Stage::New | Stage::Retired => None,
        };
        let reserve = |runtime: &Runtime| runtime.shared().options.reserve();
        let at_most = runtime
            .as_ref()
            .map_or_else(|| Options::default().reserve(), reserve);
        if let Some(runtime) = runtime
            && !runtime.release().await
        {
            tracing::error!(
                shell = &*self.id,
                "the store is not closed: a thread of the runtime still works in it"
            );
            return;
        }
        let store = self.store.lock().take();
        if let Some(store) = store {
            close_store(store, at_most).await;
        }
    }
}

/// The blueprint of a shell that was handed a running generation.
struct Fixed;

impl Blueprint for Fixed {
    fn store(&self) -> Result<Arc<dyn Store>, StoreError> {
        Err(StoreError::new(
            tidegate_store::ErrorKind::Configuration,
            "this shell has no configuration",
        ))
    }

    fn generation(&self) -> Result<Builder, Wrong> {
        let message = "this shell was started by a program and has no configuration to be reloaded from";
        Err(vec![("shells".to_owned(), message.to_owned())])
    }
}
