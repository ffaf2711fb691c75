//! What an instance asks of others: messages, signals, called instances, and the news it has for its own caller. All of
//! it stands in the queue with the commit that caused it, and is run later, each in its order domain.

use tidegate_engine::Event;
use tidegate_model::effect::{Binding, Child};
use tidegate_model::stimulus::ChildNews;
use tidegate_model::{Cause, Hold, InstanceKey, MessageKey, Stimulus, SubStatus, Timestamp, Variables};
use tidegate_store::{DefinitionFilter, DefinitionKind, InstanceRow, Page, StimulusRow, Write};

use crate::definitions::Loaded;
use crate::shared::Shared;

use super::pending::Domain;
use super::resident::Resident;
use super::start::{new_row, stimulus_row};

/// The source of what instances emit.
const SOURCE: Option<&str> = Some("queue");

/// Collects the writes and the queue rows of one commit.
pub(super) struct Emitted<'a> {
    pub(super) shared: &'a Shared,
    pub(super) now: Timestamp,
    pub(super) writes: &'a mut Vec<Write>,
    /// The rows, in the order of their writes; their keys come with the outcome.
    pub(super) queued: &'a mut Vec<StimulusRow>,
}

impl Emitted<'_> {
    fn queue(&mut self, domain: &Domain, stimulus: &Stimulus) {
        let row = stimulus_row(domain, SOURCE, stimulus, self.now);
        self.writes.push(Write::AddStimulus(row.clone()));
        self.queued.push(row);
    }

    pub(super) fn publish(
        &mut self,
        row: &InstanceRow,
        (message, message_id): (MessageKey, Option<String>),
        (name, correlation_key): (String, String),
        variables: Variables,
        ttl_ms: Option<i64>,
    ) {
        let default_ttl = i64::try_from(self.shared.options.message_ttl.as_millis()).unwrap_or(i64::MAX);
        let domain = Domain::message(&row.tenant, &name, &correlation_key);
        let stimulus = Stimulus::Publish {
            message,
            name,
            correlation_key,
            variables,
            ttl_ms: ttl_ms.unwrap_or(default_ttl),
            message_id,
            tenant: row.tenant.to_string(),
            from: Some(by_instance(row)),
        };
        self.queue(&domain, &stimulus);
    }

    pub(super) fn broadcast(&mut self, row: &InstanceRow, name: String, variables: Variables) {
        let domain = Domain::signal(&row.tenant, &name);
        let stimulus = Stimulus::Broadcast {
            name,
            variables,
            tenant: row.tenant.to_string(),
            thrown_by: Some(row.key),
            from: Some(by_instance(row)),
        };
        self.queue(&domain, &stimulus);
    }

    /// The called instance with its start, or the news that there is none.
    pub(super) fn start_child(&mut self, caller: &Resident, child: Child) {
        let row = &caller.row;
        let deepest = self.shared.options.deepest_call;
        let found = match row.depth >= deepest {
            true => Err(format!(
                "the call is {deepest} levels deep, and more are not allowed; does the process call itself for ever?"
            )),
            false => find(self.shared, &caller.loaded, &child),
        };
        let loaded = match found {
            Ok(loaded) => loaded,
            Err(message) => {
                let news = ChildNews::NotStarted { message };
                let Child { owner, instance, .. } = child;
                let stimulus = Stimulus::Child {
                    instance: row.key,
                    owner,
                    child: instance,
                    news,
                };
                return self.queue(&Domain::Instance(row.key), &stimulus);
            }
        };
        let mut new = new_row(child.instance, &loaded, child.business_key, self.now);
        new.sub_status = SubStatus::Pending;
        new.parent = Some(row.key);
        new.parent_element = Some(child.owner);
        new.enclosing = child.enclosing;
        new.depth = row.depth + 1;
        let stimulus = Stimulus::Start {
            instance: child.instance,
            definition: new.definition,
            element: None,
            variables: child.variables,
            cause: Cause::Parent {
                instance: row.key.get(),
            },
            begin: None,
        };
        self.writes.push(Write::CreateInstance {
            row: Box::new(new),
            state: None,
        });
        self.queue(&Domain::Instance(child.instance), &stimulus);
    }

    pub(super) fn cancel_child(
        &mut self,
        caller: &InstanceRow,
        child: InstanceKey,
        is_awaited: bool,
        patience_ms: Option<u64>,
    ) {
        let stimulus = Stimulus::CancelChild {
            instance: child,
            parent: caller.key,
            is_awaited,
            patience_ms,
        };
        self.queue(&Domain::Instance(child), &stimulus);
    }

    pub(super) fn hold_child(&mut self, child: InstanceKey, hold: Hold) {
        let stimulus = Stimulus::HoldChild {
            instance: child,
            hold,
        };
        self.queue(&Domain::Instance(child), &stimulus);
    }

    pub(super) fn release_child(
        &mut self,
        caller: &InstanceRow,
        child: InstanceKey,
        origins: Vec<InstanceKey>,
    ) {
        let stimulus = Stimulus::ReleaseChild {
            instance: child,
            origins,
            cause: Cause::Parent {
                instance: caller.key.get(),
            },
        };
        self.queue(&Domain::Instance(child), &stimulus);
    }

    pub(super) fn tell_caller(&mut self, row: &InstanceRow, news: ChildNews) {
        if let (Some(caller), Some(owner)) = (row.parent, row.parent_element) {
            let stimulus = Stimulus::Child {
                instance: caller,
                owner,
                child: row.key,
                news,
            };
            self.queue(&Domain::Instance(caller), &stimulus);
        }
    }

    /// The news of an end. A caller that cancelled the call itself gets none.
    pub(super) fn tell_end(&mut self, resident: &Resident, ended: SubStatus) {
        if resident.row.parent.is_none() {
            return;
        }
        let variables = || resident.instance.variables().clone();
        let news = match ended {
            SubStatus::Cancelled if resident.instance.cancellation().is_some_and(|c| c.is_unheard) => return,
            SubStatus::Cancelled => ChildNews::Cancelled,
            SubStatus::Faulted => {
                let (code, message) = fault_of(&resident.events);
                ChildNews::Faulted {
                    code,
                    message,
                    variables: variables(),
                }
            }
            _ => ChildNews::Completed {
                variables: variables(),
            },
        };
        self.tell_caller(&resident.row, news);
    }
}

fn by_instance(row: &InstanceRow) -> Cause {
    Cause::Instance {
        instance: row.key.get(),
    }
}

fn fault_of(events: &[Event]) -> (String, String) {
    let fault = events.iter().rev().find_map(|event| match event {
        Event::InstanceFaulted { code, message, .. } => Some((code.clone(), message.clone())),
        _ => None,
    });
    fault.unwrap_or_default()
}

/// The definition that a call means. Everything but the newest is looked up in the store.
fn find(shared: &Shared, caller: &Loaded, child: &Child) -> Result<std::sync::Arc<Loaded>, String> {
    let tenant = &caller.row.tenant;
    let process_id = &child.process_id;
    if child.binding == Binding::Latest {
        return shared.definitions.latest(tenant, process_id).ok_or_else(|| {
            format!("there is no process `{process_id}`; deploy it, then retry the incident")
        });
    }
    let filter = DefinitionFilter {
        kind: Some(DefinitionKind::Process),
        process_id: Some(process_id.clone()),
        latest: false,
        tenant: Some(tenant.to_string()),
    };
    /// Versions of one process that are looked through.
    const MOST: usize = 10_000;
    let rows = shared
        .store
        .definitions(&filter, Page::first(MOST))
        .map_err(|error| error.to_string())?;
    for row in rows {
        let is_meant = match &child.binding {
            Binding::Latest => true,
            Binding::Version(version) => row.version == *version,
            Binding::Deployment => row.deployment == caller.row.deployment,
            // Only the compiled definition knows its tag.
            Binding::VersionTag(_) => true,
        };
        if !is_meant {
            continue;
        }
        let loaded = shared
            .definitions
            .get(&*shared.store, row.key)
            .map_err(|error| error.to_string())?;
        let Some(loaded) = loaded.filter(|loaded| loaded.is_startable()) else {
            continue;
        };
        match &child.binding {
            Binding::VersionTag(tag) if loaded.definition.version_tag().is_none_or(|own| **own != **tag) => {}
            _ => return Ok(loaded),
        }
    }
    Err(format!(
        "there is no version of process `{process_id}` that the call means ({:?}); deploy it, then retry the incident",
        child.binding
    ))
}
