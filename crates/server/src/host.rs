//! The shells that one process serves, and how far the process is on its way out.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::{HeaderValue, Version, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use parking_lot::RwLock;
use tidegate::Runtime;
use tokio::sync::watch;

use crate::{App, Problem};

/// The shell that routes without a shell in their path mean.
pub const DEFAULT_SHELL: &str = "default";

/// The shells of a process by name. Cheap to clone.
#[derive(Clone)]
pub struct Host {
    inner: Arc<Inner>,
}

struct Inner {
    shells: RwLock<BTreeMap<String, Runtime>>,
    stage: watch::Sender<Stage>,
}

/// How far the host is on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// No shell can be asked yet.
    Starting,
    /// Shells are there.
    Started,
    /// The host was told to stop; reads and results are still served.
    Stopping,
    /// Connections are being closed.
    Closing,
}

impl Default for Host {
    fn default() -> Self {
        Self::new()
    }
}

impl Host {
    /// A host that is still starting and has no shell.
    pub fn new() -> Self {
        let stage = watch::Sender::new(Stage::Starting);
        Self {
            inner: Arc::new(Inner {
                shells: RwLock::default(),
                stage,
            }),
        }
    }

    /// A started host with one shell, `default`.
    pub fn of(runtime: Runtime) -> Self {
        let host = Self::new();
        host.add(DEFAULT_SHELL, runtime);
        host.mark_started();
        host
    }

    /// Adds a shell. Names are matched without regard to case.
    pub fn add(&self, name: &str, runtime: Runtime) {
        self.inner
            .shells
            .write()
            .insert(name.to_ascii_lowercase(), runtime);
    }

    /// The shell with this name.
    pub fn shell(&self, name: &str) -> Option<Runtime> {
        self.inner.shells.read().get(&name.to_ascii_lowercase()).cloned()
    }

    /// Every shell, by name.
    pub fn shells(&self) -> Vec<(String, Runtime)> {
        self.inner
            .shells
            .read()
            .iter()
            .map(|(name, runtime)| (name.clone(), runtime.clone()))
            .collect()
    }

    /// Startup is over: from now on readiness is what the shells say.
    pub fn mark_started(&self) {
        self.advance(Stage::Started);
    }

    /// The process was told to stop: readiness falls at once, and every answer asks its client to reconnect
    /// elsewhere.
    pub fn begin_stop(&self) {
        self.advance(Stage::Stopping);
    }

    /// Ends event streams, so that connections can close.
    pub fn end_streams(&self) {
        self.advance(Stage::Closing);
    }

    pub(crate) fn stage(&self) -> Stage {
        *self.inner.stage.borrow()
    }

    /// Ends once streams must end. Cancel safe.
    pub(crate) async fn closing(&self) {
        let mut stage = self.inner.stage.subscribe();
        // The sender lives as long as `self`.
        let _ = stage.wait_for(|stage| *stage >= Stage::Closing).await;
    }

    fn advance(&self, to: Stage) {
        self.inner.stage.send_if_modified(|stage| {
            let forward = to > *stage;
            *stage = to.max(*stage);
            forward
        });
    }

    fn is_draining(&self) -> bool {
        self.stage() >= Stage::Stopping
            || self
                .shell(DEFAULT_SHELL)
                .is_some_and(|runtime| runtime.quiescence().is_draining())
    }
}

/// Once streams must end, a request in hand gets this long until it is answered without its result. The
/// listener's own deadline is longer.
const LAST_ANSWERS: Duration = Duration::from_millis(200);

/// Asks clients to leave once the host drains, so that a chatty one does not sit on its connection; and answers
/// who still waits at the end, so that nobody sees a broken connection.
pub(crate) async fn mark_closing(State(app): State<App>, request: Request, next: Next) -> Response {
    let has_connection_header = request.version() <= Version::HTTP_11;
    let mut response = tokio::select! {
        biased;
        response = next.run(request) => response,
        () = async {
            app.host.closing().await;
            tokio::time::sleep(LAST_ANSWERS).await;
        } => stopping().into_response(),
    };
    if has_connection_header && app.host.is_draining() {
        response
            .headers_mut()
            .insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

fn stopping() -> Problem {
    const COME_BACK: u64 = 5;
    Problem::unavailable(
        "server-stopping",
        "the server stops before it could tell the result; what was accepted goes on after its restart",
        COME_BACK,
    )
}
