//! What happens to one instance, or to all, as it happens: server-sent events.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::State;
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use futures_util::Stream;
use futures_util::stream::unfold;
use serde::Deserialize;
use serde_json::Value;
use tidegate::model::InstanceKey;
use tidegate::observe::{Notice, Observation, ObserveOptions, ObservedKind};

use crate::auth::Tenants;
use crate::extract::{Key, KnownShell, Query, Shell};
use crate::host::Host;
use crate::{App, Problem};

/// When a client whose stream was ended should come back.
const RECONNECT: Duration = Duration::from_secs(2);
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// The events after which nothing more happens to an instance.
const ENDS: [&str; 3] = ["InstanceCompleted", "InstanceCancelled", "InstanceFaulted"];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Parameters {
    kinds: Option<String>,
    tenant_id: Option<String>,
    #[serde(default)]
    values: bool,
}

impl Parameters {
    fn options(&self) -> Result<ObserveOptions, Problem> {
        let mut options = ObserveOptions::new();
        for word in self
            .kinds
            .iter()
            .flat_map(|kinds| kinds.split(','))
            .map(str::trim)
        {
            options = options.kind(kind(word)?);
        }
        if let Some(tenant) = &self.tenant_id {
            options = options.tenant(tenant.as_str());
        }
        if self.values {
            options = options.with_values();
        }
        Ok(options)
    }
}

fn kind(word: &str) -> Result<ObservedKind, Problem> {
    const KINDS: [(&str, ObservedKind); 8] = [
        ("lifecycle", ObservedKind::Lifecycle),
        ("element", ObservedKind::Element),
        ("job", ObservedKind::Job),
        ("userTask", ObservedKind::UserTask),
        ("incident", ObservedKind::Incident),
        ("event", ObservedKind::Event),
        ("variables", ObservedKind::Variables),
        ("runtime", ObservedKind::Runtime),
    ];
    let found = KINDS.iter().find(|(name, _)| *name == word);
    found.map(|(_, kind)| *kind).ok_or_else(|| {
        let words: Vec<_> = KINDS.iter().map(|(name, _)| *name).collect();
        let word: String = word.chars().take(60).collect();
        Problem::bad_request(
            "invalid-query",
            format!("`kinds` has no word `{word}`; there are {}", words.join(", ")),
        )
    })
}

/// `event` with each event of every instance and of the runtime, `closing` at the end.
pub(super) async fn all(
    State(app): State<App>,
    KnownShell(known): KnownShell,
    shell: Shell,
    tenants: Tenants,
    Query(mut query): Query<Parameters>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Problem> {
    query.tenant_id = tenants.followed(query.tenant_id)?;
    let observation = shell
        .0
        .observe(query.options()?)
        .map_err(|error| shell.problem(error))?;
    Ok(stream(View {
        host: app.host,
        known,
        runtime: shell.0,
        observation,
        is_over: Over::Never,
        number: 0,
    }))
}

/// The same of one instance, until its end.
pub(super) async fn one(
    State(app): State<App>,
    KnownShell(known): KnownShell,
    shell: Shell,
    Key(key): Key<InstanceKey>,
    Query(query): Query<Parameters>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Problem> {
    let mut options = query.options()?;
    if query.kinds.is_some() {
        // Whoever wants some kinds alone is told of the end all the same.
        options = options.kind(ObservedKind::Lifecycle);
    }
    let handle = shell.0.handle(key);
    let observation = handle.observe(options).map_err(|error| shell.problem(error))?;
    // Asked after the observation has begun: an end is either seen here, or observed.
    let state = handle.state().await.map_err(|error| shell.problem(error))?;
    let is_over = if state.has_ended() {
        Over::Now
    } else {
        Over::AtItsEnd
    };
    Ok(stream(View {
        host: app.host,
        known,
        runtime: shell.0,
        observation,
        is_over,
        number: 0,
    }))
}

/// When a stream ends by itself.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Over {
    Never,
    AtItsEnd,
    Now,
    Ended,
}

struct View {
    host: Host,
    known: tidegate::Shell,
    runtime: tidegate::Runtime,
    observation: Observation,
    is_over: Over,
    number: u64,
}

fn stream(view: View) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let events = unfold(view, |mut view| async move {
        view.next().await.map(|event| (Ok(event), view))
    });
    Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE))
}

impl View {
    async fn next(&mut self) -> Option<Event> {
        let notice = match self.is_over {
            Over::Ended => return None,
            Over::Now => None,
            Over::Never | Over::AtItsEnd => tokio::select! {
                biased;
                () = self.host.closing() => None,
                _ = self.known.succeeded(&self.runtime) => None,
                notice = self.observation.next() => notice,
            },
        };
        let Some(notice) = notice else {
            self.is_over = Over::Ended;
            return Some(Event::default().event("closing").retry(RECONNECT).data("{}"));
        };
        if self.is_over == Over::AtItsEnd && ENDS.contains(&&*notice.event.name) {
            self.is_over = Over::Now;
        }
        self.number += 1;
        Some(
            Event::default()
                .event("event")
                .id(self.number.to_string())
                .data(text(&notice)),
        )
    }
}

fn text(notice: &Notice) -> String {
    let mut event = serde_json::to_value(&*notice.event).unwrap_or_default();
    if let Value::Object(members) = &mut event {
        members.insert("droppedBefore".to_owned(), notice.dropped_before.into());
    }
    event.to_string()
}
