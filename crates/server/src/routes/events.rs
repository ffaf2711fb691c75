//! The live view of a runtime: server-sent events.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::State;
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use futures_util::Stream;
use futures_util::stream::unfold;
use tidegate::Runtime;
use tokio::sync::watch;

use super::seen::Seen;
use crate::App;
use crate::auth::Tenants;
use crate::extract::{KnownShell, Shell};
use crate::host::Host;

/// The least time between two events: a busy runtime must not flood a browser.
const LEAST_INTERVAL: Duration = Duration::from_millis(100);
/// How often the progress of a drain is looked at.
const DRAIN_INTERVAL: Duration = Duration::from_millis(250);
/// How often counts are looked at that change without a change of the gate or a source.
const COUNT_INTERVAL: Duration = Duration::from_secs(2);
/// When a client whose stream was ended should come back.
const RECONNECT: Duration = Duration::from_secs(2);
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// `status` with a whole Status: at once, and at each change, drain progress included. `closing` at the end.
pub(super) async fn stream(
    State(app): State<App>,
    KnownShell(shell): KnownShell,
    Shell(runtime): Shell,
    tenants: Tenants,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let view = View {
        host: app.host,
        shell,
        changes: runtime.watch(),
        runtime,
        tenants,
        last: None,
        number: 0,
        has_ended: false,
    };
    let events = unfold(view, |mut view| async move {
        view.next().await.map(|event| (Ok(event), view))
    });
    Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE))
}

struct View {
    host: Host,
    shell: tidegate::Shell,
    runtime: Runtime,
    changes: watch::Receiver<u64>,
    tenants: Tenants,
    /// What was told last: what its reader may not know changes nothing.
    last: Option<Seen>,
    number: u64,
    has_ended: bool,
}

impl View {
    async fn next(&mut self) -> Option<Event> {
        if self.has_ended {
            return None;
        }
        let (host, shell) = (self.host.clone(), self.shell.clone());
        loop {
            let present = self.runtime.clone();
            let next = tokio::select! {
                biased;
                () = host.closing() => None,
                next = shell.succeeded(&present) => next,
                event = self.changed() => return Some(event),
            };
            let Some(next) = next else { return Some(self.end()) };
            // The next generation has its own news.
            self.changes = next.watch();
            self.runtime = next;
            self.last = None;
        }
    }

    /// The host stops or the shell is over.
    fn end(&mut self) -> Event {
        self.has_ended = true;
        Event::default().event("closing").retry(RECONNECT).data("{}")
    }

    async fn changed(&mut self) -> Event {
        loop {
            if self.last.is_some() {
                self.wait().await;
            }
            self.changes.borrow_and_update();
            let Ok(status) = self.runtime.status().await else {
                // The store cannot be read now: the next look may succeed.
                tokio::time::sleep(COUNT_INTERVAL).await;
                continue;
            };
            let seen = Seen::by(&self.tenants, status);
            if self.last.as_ref() != Some(&seen) {
                let text = serde_json::to_string(&seen).unwrap_or_default();
                self.last = Some(seen);
                self.number += 1;
                return Event::default()
                    .event("status")
                    .id(self.number.to_string())
                    .data(text);
            }
        }
    }

    async fn wait(&mut self) {
        tokio::time::sleep(LEAST_INTERVAL).await;
        let look = if self.runtime.quiescence().is_draining() {
            DRAIN_INTERVAL
        } else {
            COUNT_INTERVAL
        };
        // When the runtime is gone its last status stands; the look keeps the pace.
        if let Ok(Err(_)) = tokio::time::timeout(look, self.changes.changed()).await {
            tokio::time::sleep(look).await;
        }
    }
}
