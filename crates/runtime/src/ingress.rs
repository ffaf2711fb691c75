//! Ingress sources: the components through which stimuli enter, and their states.
//!
//! A source has two verbs: *accept* makes a stimulus durable and is always lawful; *admit* asks the gate for a
//! cycle. Here is what the runtime does with sources as a whole: pause and resume them in parallel, each within
//! its own timeout, and show the states they are really in. One source is one file and one row in
//! `built_in`.

mod handle;
pub mod kit;
mod switch;
pub(crate) mod timer;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use parking_lot::Mutex;
use tidegate_model::Timestamp;
use tokio::time::Instant;

use crate::clock::Clock;
use crate::error::Error;
use crate::owner::Owners;
use crate::status::{SourceErrorKind, SourceReport, SourceState, SourceStatus};

pub use handle::{Ingress, Offer, OfferFate, Receipt};
pub(crate) use switch::Switch;

/// The end of a transition: nothing, or what went wrong.
pub type Transition = Pin<Box<dyn Future<Output = Result<(), String>> + Send>>;

/// A component through which stimuli enter.
///
/// Pausing and resuming are idempotent. When `pause` has ended well, no offer of this source is in flight and
/// none comes until `resume`; an offer all the same is refused at the gate and shown as `delivered-while-paused`.
pub trait IngressSource: Send + Sync + 'static {
    /// Its name, unique in the runtime, for example `timer` or `broker.orders`.
    fn name(&self) -> &str;

    /// Given once, when the runtime is active. From here on the source delivers, unless
    /// [`Ingress::starts_paused`]: then from its first `resume` on.
    fn attach(&self, ingress: Ingress) {
        drop(ingress);
    }

    /// Stops delivering; ends when the offers in flight have ended.
    fn pause(&self) -> Transition;

    /// Delivers again.
    fn resume(&self) -> Transition;

    /// How long pausing may take; none for the runtime's default.
    fn pause_timeout(&self) -> Option<Duration> {
        None
    }

    /// True if [`IngressSource::force_stop`] does something.
    fn supports_force_stop(&self) -> bool {
        false
    }

    /// Stops delivering at once, at whatever cost; `time_left` is what the caller can wait.
    fn force_stop(&self, time_left: Duration) -> Transition {
        let _ = time_left;
        Box::pin(std::future::ready(Err(
            "this source cannot be stopped by force".to_owned()
        )))
    }
}

/// The sources that every runtime has.
pub(crate) fn built_in(switches: &Switches, owners: &Owners) -> Vec<Arc<dyn IngressSource>> {
    [
        ("http.api", &switches.http_api),
        ("queue", &switches.queue),
        ("recovery", &switches.recovery),
        ("timer", &switches.timer),
        ("worker", &switches.worker),
    ]
    .into_iter()
    .map(|(name, switch)| Arc::new(switch::SwitchSource::new(name, switch.clone(), owners.clone())) as _)
    .collect()
}

/// The switches of the built-in sources.
#[derive(Debug, Default)]
pub(crate) struct Switches {
    pub(crate) http_api: Switch,
    pub(crate) queue: Switch,
    pub(crate) recovery: Switch,
    pub(crate) timer: Switch,
    pub(crate) worker: Switch,
}

impl Switches {
    pub(crate) fn set_all(&self, on: bool) {
        for switch in [
            &self.http_api,
            &self.queue,
            &self.recovery,
            &self.timer,
            &self.worker,
        ] {
            switch.set(on);
        }
    }
}

/// The time that a source which must be stopped by force gets at least.
const LEAST_FORCE: Duration = Duration::from_millis(100);

/// The sources of a runtime with their states.
pub(crate) struct Sources {
    sources: Vec<Entry>,
    clock: Arc<dyn Clock>,
    default_timeout: Duration,
}

struct Entry {
    source: Arc<dyn IngressSource>,
    state: Mutex<State>,
    /// One transition at a time.
    turn: tokio::sync::Mutex<()>,
}

#[derive(Debug, Clone)]
struct State {
    state: SourceState,
    error: Option<(SourceErrorKind, String)>,
    changed_at: Option<Timestamp>,
    was_force_stopped: bool,
}

impl Sources {
    /// The sources, sorted by name.
    ///
    /// # Errors
    /// Two of them have the same name.
    pub(crate) fn new(
        mut sources: Vec<Arc<dyn IngressSource>>,
        clock: Arc<dyn Clock>,
        default_timeout: Duration,
    ) -> Result<Self, Error> {
        sources.sort_by(|a, b| a.name().cmp(b.name()));
        if let Some(twice) = sources.windows(2).find(|pair| pair[0].name() == pair[1].name()) {
            return Err(Error::Invalid {
                code: "duplicate-source",
                message: format!(
                    "two ingress sources are named `{}`; give one another name",
                    twice[0].name()
                ),
            });
        }
        let sources = sources
            .into_iter()
            .map(|source| Entry {
                source,
                state: Mutex::new(State {
                    state: SourceState::Running,
                    error: None,
                    changed_at: None,
                    was_force_stopped: false,
                }),
                turn: tokio::sync::Mutex::new(()),
            })
            .collect();
        Ok(Self {
            sources,
            clock,
            default_timeout,
        })
    }

    /// A generation that begins paused: no source has started.
    pub(crate) fn mark_paused(&self) {
        for entry in &self.sources {
            self.set(entry, SourceState::Paused, None);
        }
    }

    /// Gives every source its way in.
    pub(crate) fn attach(&self, ingress: impl Fn(&str) -> Ingress) {
        for entry in &self.sources {
            entry.source.attach(ingress(entry.source.name()));
        }
    }

    /// True if this source may ask for a cycle. One that has said it is paused is shown as a liar from here on.
    pub(crate) fn may_offer(&self, name: &str) -> bool {
        let Some(entry) = self.sources.iter().find(|entry| entry.source.name() == name) else {
            return true;
        };
        let mut state = entry.state.lock();
        match (state.state, &state.error) {
            (SourceState::Paused, _) => {
                tracing::error!(
                    source = name,
                    event = "DeliveredWhilePaused",
                    "a source that had said it was paused delivered; its offer is kept in the queue"
                );
                state.state = SourceState::PauseFailed;
                let message = "it delivered although it had said that it was paused".to_owned();
                state.error = Some((SourceErrorKind::DeliveredWhilePaused, message));
                state.changed_at = Some(self.clock.now());
                false
            }
            (SourceState::PauseFailed, Some((SourceErrorKind::DeliveredWhilePaused, _))) => false,
            _ => true,
        }
    }

    pub(crate) fn status(&self) -> Vec<SourceStatus> {
        self.sources
            .iter()
            .map(|entry| {
                let state = entry.state.lock();
                SourceStatus {
                    name: entry.source.name().to_owned(),
                    state: state.state,
                    last_error: state.error.as_ref().map(|(_, text)| text.clone()),
                    last_error_kind: state.error.as_ref().map(|(kind, _)| *kind),
                    last_transition_at: state.changed_at,
                    supports_force_stop: entry.source.supports_force_stop(),
                    pause_timeout_ms: self.timeout_of(entry).as_millis() as u64,
                }
            })
            .collect()
    }

    pub(crate) fn report(&self) -> Vec<SourceReport> {
        self.sources
            .iter()
            .map(|entry| {
                let state = entry.state.lock();
                SourceReport {
                    name: entry.source.name().to_owned(),
                    state: state.state,
                    last_error: state.error.as_ref().map(|(_, text)| text.clone()),
                    last_error_kind: state.error.as_ref().map(|(kind, _)| *kind),
                    was_force_stopped: state.was_force_stopped,
                }
            })
            .collect()
    }

    /// Pauses every source that is not paused, all at once; takes as long as the slowest timeout, at most until
    /// `until`. `changed` is called at every change.
    pub(crate) async fn pause(&self, until: Option<Instant>, changed: &(dyn Fn() + Sync)) {
        self.each(|entry| self.pause_one(entry, until, changed)).await;
    }

    /// Resumes every source that does not run.
    pub(crate) async fn resume(&self, changed: &(dyn Fn() + Sync)) {
        self.each(|entry| self.resume_one(entry, changed)).await;
    }

    async fn each<'a, F: Future<Output = ()> + 'a>(&'a self, step: impl Fn(&'a Entry) -> F) {
        let mut steps: Vec<_> = self
            .sources
            .iter()
            .map(|entry| Some(Box::pin(step(entry))))
            .collect();
        std::future::poll_fn(|context| {
            let mut is_done = true;
            for slot in &mut steps {
                match slot.as_mut().map(|step| step.as_mut().poll(context)) {
                    Some(Poll::Pending) => is_done = false,
                    Some(Poll::Ready(())) => *slot = None,
                    None => {}
                }
            }
            if is_done { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    fn timeout_of(&self, entry: &Entry) -> Duration {
        entry.source.pause_timeout().unwrap_or(self.default_timeout)
    }

    fn set(&self, entry: &Entry, state: SourceState, error: Option<(SourceErrorKind, String)>) {
        let mut current = entry.state.lock();
        current.state = state;
        current.error = error;
        current.changed_at = Some(self.clock.now());
    }

    async fn pause_one(&self, entry: &Entry, until: Option<Instant>, changed: &(dyn Fn() + Sync)) {
        let _turn = entry.turn.lock().await;
        // From every other state nothing more can be asked of it: it does not run.
        if entry.state.lock().state != SourceState::Running {
            return;
        }
        self.set(entry, SourceState::Pausing, None);
        changed();
        let left = || until.map(|until| until.saturating_duration_since(Instant::now()));
        let timeout = left().map_or(self.timeout_of(entry), |left| left.min(self.timeout_of(entry)));
        let outcome = match tokio::time::timeout(timeout, contained(|| entry.source.pause())).await {
            Ok(Ok(())) => None,
            Ok(Err(message)) => Some((SourceErrorKind::Failed, message)),
            Err(_) => Some((
                SourceErrorKind::Timeout,
                format!("did not pause within {} ms", timeout.as_millis()),
            )),
        };
        match outcome {
            None => self.set(entry, SourceState::Paused, None),
            Some((kind, message)) => {
                tracing::warn!(
                    source = entry.source.name(),
                    "pausing an ingress source failed: {message}"
                );
                self.set(entry, SourceState::PauseFailed, Some((kind, message)));
                if entry.source.supports_force_stop() {
                    self.force_stop_one(entry, left().unwrap_or(timeout).min(self.timeout_of(entry)))
                        .await;
                }
            }
        }
        changed();
    }

    /// Asks a source once to stop at whatever cost, and waits for it no longer than `time_left`.
    async fn force_stop_one(&self, entry: &Entry, time_left: Duration) {
        let time_left = time_left.max(LEAST_FORCE);
        match tokio::time::timeout(time_left, contained(|| entry.source.force_stop(time_left))).await {
            Ok(Ok(())) => entry.state.lock().was_force_stopped = true,
            Ok(Err(message)) => tracing::warn!(source = entry.source.name(), "force-stop failed: {message}"),
            Err(_) => tracing::warn!(source = entry.source.name(), "force-stop did not end in time"),
        }
    }

    async fn resume_one(&self, entry: &Entry, changed: &(dyn Fn() + Sync)) {
        let _turn = entry.turn.lock().await;
        match entry.state.lock().state {
            SourceState::Paused | SourceState::PauseFailed | SourceState::ResumeFailed => {}
            SourceState::Running | SourceState::Pausing | SourceState::Resuming => return,
        }
        self.set(entry, SourceState::Resuming, None);
        changed();
        match tokio::time::timeout(self.timeout_of(entry), contained(|| entry.source.resume())).await {
            Ok(Ok(())) => {
                self.set(entry, SourceState::Running, None);
                entry.state.lock().was_force_stopped = false;
            }
            Ok(Err(message)) => {
                self.set(
                    entry,
                    SourceState::ResumeFailed,
                    Some((SourceErrorKind::Failed, message)),
                );
            }
            Err(_) => {
                let message = "did not resume in time".to_owned();
                self.set(
                    entry,
                    SourceState::ResumeFailed,
                    Some((SourceErrorKind::Timeout, message)),
                );
            }
        }
        changed();
    }

    /// An operator's force-stop of one source. True if something was done.
    ///
    /// # Errors
    /// No such source, or it is running.
    pub(crate) async fn force_stop(&self, name: &str) -> Result<bool, Error> {
        let entry = self
            .sources
            .iter()
            .find(|entry| entry.source.name() == name)
            .ok_or_else(|| Error::NoSuchSource(name.to_owned()))?;
        let (state, stopped_before) = {
            let state = entry.state.lock();
            (state.state, state.was_force_stopped)
        };
        match state {
            SourceState::Running | SourceState::Resuming => Err(Error::SourceNotPaused(name.to_owned())),
            SourceState::Pausing
            | SourceState::Paused
            | SourceState::PauseFailed
            | SourceState::ResumeFailed => {
                if stopped_before || !entry.source.supports_force_stop() {
                    return Ok(false);
                }
                self.force_stop_one(entry, self.timeout_of(entry)).await;
                Ok(true)
            }
        }
    }
}

/// A transition in which a panic is a failure of its source: the others, and the drain, go on.
async fn contained(begin: impl FnOnce() -> Transition) -> Result<(), String> {
    let mut transition = match catch_unwind(AssertUnwindSafe(begin)) {
        Ok(transition) => transition,
        Err(panic) => return Err(panicked(&*panic)),
    };
    std::future::poll_fn(|context| {
        let polled = catch_unwind(AssertUnwindSafe(|| transition.as_mut().poll(context)));
        polled.unwrap_or_else(|panic| Poll::Ready(Err(panicked(&*panic))))
    })
    .await
}

fn panicked(panic: &(dyn std::any::Any + Send)) -> String {
    format!("it panicked: {}", crate::activity::panic_text(panic))
}
