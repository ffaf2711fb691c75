//! The shells that one process serves, and how far the process is on its way out.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::{HeaderValue, Version, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use parking_lot::RwLock;
use tidegate::Runtime;
use tidegate::shell::{Shell, Wrong};
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
    shells: RwLock<BTreeMap<String, Shell>>,
    stage: watch::Sender<Stage>,
    /// What a reload of everything does first: it reads the tokens anew and adds shells that are new.
    refresh: OnceLock<Refresh>,
}

/// Brings the host up to the newest configuration, apart from the generations of its shells. May block.
pub type Refresh = Box<dyn Fn(&Host) -> Result<(), Wrong> + Send + Sync>;

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
                refresh: OnceLock::new(),
            }),
        }
    }

    /// A started host with one shell, `default`, that runs already.
    pub fn of(runtime: Runtime) -> Self {
        let host = Self::new();
        host.add(Shell::of(DEFAULT_SHELL, runtime));
        host.mark_started();
        host
    }

    /// What a reload of everything does before it comes to the shells. Only the first call counts.
    pub fn refresh_with(&self, refresh: Refresh) {
        // A second call is a mistake of the program that embeds the host, without consequences.
        let _ = self.inner.refresh.set(refresh);
    }

    pub(crate) fn refresh(&self) -> Result<(), Wrong> {
        self.inner.refresh.get().map_or(Ok(()), |refresh| refresh(self))
    }

    /// Adds a shell under its id.
    pub fn add(&self, shell: Shell) {
        self.inner.shells.write().insert(shell.id().to_owned(), shell);
    }

    /// The shell with this id, without regard to case.
    pub fn shell(&self, id: &str) -> Option<Shell> {
        self.inner.shells.read().get(&id.to_ascii_lowercase()).cloned()
    }

    /// Every shell, by id.
    pub fn shells(&self) -> Vec<Shell> {
        self.inner.shells.read().values().cloned().collect()
    }

    /// Every shell that has a generation, by id.
    pub(crate) fn runtimes(&self) -> Vec<(Shell, Runtime)> {
        let shells = self.shells().into_iter();
        shells
            .filter_map(|shell| shell.runtime().map(|runtime| (shell, runtime)))
            .collect()
    }

    /// Reloads every shell, as `POST /shells/reload` does, and gives what that answers.
    pub async fn reload(&self, actor: &str) -> serde_json::Value {
        crate::routes::reload_everything(self, actor).await
    }

    pub(crate) fn remove(&self, id: &str) {
        self.inner.shells.write().remove(&id.to_ascii_lowercase());
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
