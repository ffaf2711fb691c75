//! The life of an engine: not started, started, stopped; and the engine itself, for programs that build a runtime in
//! one place and run it in another.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::builder::Builder;
use crate::error::Error;
use crate::runtime::Runtime;
use crate::shutdown::{ShutdownMode, ShutdownReport};

/// Where an engine is in its life. It goes one way: what is stopped is never started again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EngineState {
    /// Built, not run; or its run failed and may be tried again.
    NotStarted,
    /// It serves. It may be paused, or drain.
    Started,
    /// Shut down, or being shut down: nothing is registered, started or run any more.
    Stopped,
}

/// The one record of it.
#[derive(Debug)]
pub(crate) struct Life {
    state: watch::Sender<EngineState>,
    /// The same, for those who ask at every start.
    is_stopped: AtomicBool,
}

impl Default for Life {
    fn default() -> Self {
        Self {
            state: watch::Sender::new(EngineState::NotStarted),
            is_stopped: AtomicBool::new(false),
        }
    }
}

impl Life {
    pub(crate) fn state(&self) -> EngineState {
        *self.state.borrow()
    }

    pub(crate) fn watch(&self) -> watch::Receiver<EngineState> {
        self.state.subscribe()
    }

    /// # Errors
    /// It was stopped meanwhile.
    fn begin(&self) -> Result<(), Error> {
        let has_begun = self.state.send_if_modified(|state| {
            let is_new = *state == EngineState::NotStarted;
            if is_new {
                *state = EngineState::Started;
            }
            is_new
        });
        if has_begun { Ok(()) } else { Err(Error::Stopped) }
    }

    /// True if it was not stopped before.
    pub(crate) fn stop(&self) -> bool {
        self.is_stopped.store(true, Ordering::Release);
        self.state
            .send_if_modified(|state| std::mem::replace(state, EngineState::Stopped) != EngineState::Stopped)
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Acquire)
    }
}

/// A runtime before, during and after its life. Cheap to clone; all clones are the same engine.
///
/// [`Builder::start`] is the short way: it gives a [`Runtime`] that has been started. An engine is for programs that
/// build it in one place and run or stop it in another, or that try a failed start again.
///
/// ```
/// # use tidegate::{Error, Runtime, ShutdownMode, EngineState};
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Error> {
/// let engine = Runtime::builder().build();
/// assert!(matches!(engine.runtime(), Err(Error::NotStarted)));
/// let runtime = engine.run().await?;
/// assert!(matches!(engine.run().await, Err(Error::AlreadyStarted)));
/// runtime.shutdown(ShutdownMode::Drain, std::time::Duration::from_secs(10)).await?;
/// assert_eq!(engine.state(), EngineState::Stopped);
/// assert!(matches!(engine.run().await, Err(Error::Stopped)));
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
}

struct Inner {
    builder: Builder,
    life: Arc<Life>,
    runtime: Mutex<Option<Runtime>>,
    /// Held while it is being started.
    turn: Arc<tokio::sync::Mutex<()>>,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine")
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}

impl Engine {
    pub(crate) fn new(builder: Builder) -> Self {
        Self {
            inner: Arc::new(Inner {
                builder,
                life: Arc::default(),
                runtime: Mutex::default(),
                turn: Arc::default(),
            }),
        }
    }

    /// Starts it: what [`Builder::start`] does. Of several calls at once one wins. Must be called inside a tokio
    /// runtime.
    ///
    /// # Errors
    /// [`Error::AlreadyStarted`] if it runs or is being started; [`Error::Stopped`] if it was shut down, also when that
    /// happened during the start; else as [`Builder::start`], after which it is not started and may be run again.
    ///
    /// # Cancel safety
    /// The start goes on if the future is dropped; [`Engine::runtime`] gives the runtime.
    pub async fn run(&self) -> Result<Runtime, Error> {
        let Ok(turn) = self.inner.turn.clone().try_lock_owned() else {
            return Err(match self.state() {
                EngineState::Stopped => Error::Stopped,
                EngineState::NotStarted | EngineState::Started => Error::AlreadyStarted,
            });
        };
        match self.state() {
            EngineState::NotStarted => {}
            EngineState::Started => return Err(Error::AlreadyStarted),
            EngineState::Stopped => return Err(Error::Stopped),
        }
        let inner = self.inner.clone();
        let starting = tokio::spawn(async move {
            let _turn = turn;
            inner.start().await
        });
        starting.await.map_err(|_| Error::Stopped)?
    }

    /// Where it is in its life.
    pub fn state(&self) -> EngineState {
        self.inner.life.state()
    }

    /// Follows its life.
    pub fn watch(&self) -> watch::Receiver<EngineState> {
        self.inner.life.watch()
    }

    /// The running runtime.
    ///
    /// # Errors
    /// [`Error::NotStarted`], [`Error::Stopped`].
    pub fn runtime(&self) -> Result<Runtime, Error> {
        match self.state() {
            EngineState::NotStarted => Err(Error::NotStarted),
            EngineState::Started => self.inner.runtime.lock().clone().ok_or(Error::NotStarted),
            EngineState::Stopped => Err(Error::Stopped),
        }
    }

    /// Shuts it down: what [`Runtime::shutdown`] does, and before the first run nothing but to make it
    /// [`EngineState::Stopped`]. A start in progress is waited for and shut down. `None` if it never ran.
    ///
    /// # Errors
    /// As [`Runtime::shutdown`].
    pub async fn shutdown(
        &self,
        mode: ShutdownMode,
        deadline: Duration,
    ) -> Result<Option<ShutdownReport>, Error> {
        let until = crate::shutdown::within(deadline);
        let running = self.inner.runtime.lock().clone();
        let running = match running {
            Some(runtime) => Some(runtime),
            None => {
                // A start that ends after this finds it stopped.
                self.inner.life.stop();
                match tokio::time::timeout_at(until, self.inner.turn.lock()).await {
                    Ok(_turn) => self.inner.runtime.lock().clone(),
                    Err(_) => return Err(Error::not_settled(Vec::new(), vec!["start".to_owned()])),
                }
            }
        };
        match running {
            Some(runtime) => {
                let left = until.saturating_duration_since(Instant::now());
                runtime.shutdown(mode, left).await.map(Some)
            }
            None => Ok(None),
        }
    }
}

impl Inner {
    async fn start(&self) -> Result<Runtime, Error> {
        let runtime = self.builder.clone().activate(self.life.clone()).await?;
        // Kept before the state says so: whoever sees it started finds it.
        *self.runtime.lock() = Some(runtime.clone());
        if let Err(stopped) = self.life.begin() {
            runtime.end_at_once().await;
            return Err(stopped);
        }
        Ok(runtime)
    }
}

/// What [`Builder::start`] does: a life that begins at once.
pub(crate) async fn start(builder: Builder) -> Result<Runtime, Error> {
    let life = Arc::<Life>::default();
    let runtime = builder.activate(life.clone()).await?;
    life.begin()?;
    Ok(runtime)
}
