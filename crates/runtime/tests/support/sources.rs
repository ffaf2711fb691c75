//! Ingress sources that behave as a test wants.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tidegate::ingress::{Ingress, IngressSource, Transition};

/// What a source does when it is asked for a transition.
#[derive(Clone, Copy)]
pub enum Does {
    Well,
    Fail,
    Hang,
    Panic,
    /// Fails the first time, then well.
    FailOnce,
}

/// A source that counts what it is asked for.
pub struct TestSource {
    name: String,
    pub pauses: AtomicUsize,
    pub resumes: AtomicUsize,
    pub forced: AtomicUsize,
    pub time_left: OnceLock<Duration>,
    pause: Does,
    resume: Does,
    force: Option<Does>,
    timeout: Duration,
    meets: Option<Arc<tokio::sync::Barrier>>,
    pub ingress: OnceLock<Ingress>,
}

impl TestSource {
    pub fn new(name: &str, pause: Does) -> Self {
        Self {
            name: name.to_owned(),
            pauses: AtomicUsize::new(0),
            resumes: AtomicUsize::new(0),
            forced: AtomicUsize::new(0),
            time_left: OnceLock::new(),
            pause,
            resume: Does::Well,
            force: None,
            timeout: Duration::from_millis(50),
            meets: None,
            ingress: OnceLock::new(),
        }
    }

    pub fn resuming(mut self, resume: Does) -> Self {
        self.resume = resume;
        self
    }

    /// Pauses once all who meet there were asked to: asked one after the other, the first would be given up.
    pub fn meeting(mut self, place: &Arc<tokio::sync::Barrier>) -> Self {
        self.meets = Some(Arc::clone(place));
        self.timeout = Duration::from_secs(20);
        self
    }

    pub fn forced(mut self, force: Does) -> Self {
        self.force = Some(force);
        self
    }

    pub fn within(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    pub fn shared(self) -> Arc<Self> {
        Arc::new(self)
    }

    pub fn pauses(&self) -> usize {
        self.pauses.load(Ordering::SeqCst)
    }
}

fn transition(does: Does, times: usize) -> Transition {
    Box::pin(async move {
        match does {
            Does::Well => Ok(()),
            Does::FailOnce if times > 0 => Ok(()),
            Does::Fail | Does::FailOnce => Err("the broker said no".to_owned()),
            Does::Hang => std::future::pending().await,
            Does::Panic => panic!("the broker is gone"),
        }
    })
}

impl IngressSource for TestSource {
    fn name(&self) -> &str {
        &self.name
    }

    fn attach(&self, ingress: Ingress) {
        let _ = self.ingress.set(ingress);
    }

    fn pause(&self) -> Transition {
        let pausing = transition(self.pause, self.pauses.fetch_add(1, Ordering::SeqCst));
        match self.meets.clone() {
            None => pausing,
            Some(place) => Box::pin(async move {
                place.wait().await;
                pausing.await
            }),
        }
    }

    fn resume(&self) -> Transition {
        transition(self.resume, self.resumes.fetch_add(1, Ordering::SeqCst))
    }

    fn pause_timeout(&self) -> Option<Duration> {
        Some(self.timeout)
    }

    fn supports_force_stop(&self) -> bool {
        self.force.is_some()
    }

    fn force_stop(&self, time_left: Duration) -> Transition {
        let _ = self.time_left.set(time_left);
        let times = self.forced.fetch_add(1, Ordering::SeqCst);
        transition(self.force.unwrap_or(Does::Fail), times)
    }
}
