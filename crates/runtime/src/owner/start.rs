//! Starting instances: at once through the gate, or accepted for later.

use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use tidegate_engine::Instance;
use tidegate_model::{
    Beginning, Cause, Command, CommandKind, ElementIndex, InstanceKey, Stimulus, SubStatus, Timestamp,
    Variables,
};
use tidegate_store::{AuditRow, Expect, InstanceRow, StimulusRow, Write};

use crate::api::Started;
use crate::definitions::Loaded;
use crate::error::Error;
use crate::gate::Entering;
use crate::shared::Counters;

use super::commit::{Answer, Prepared, instance_of, problem_of, started};
use super::pending::Domain;
use super::resident::Resident;
use super::{Owner, Reply};

/// A start request with its definition found.
pub(crate) struct StartOrder {
    pub(crate) loaded: Arc<Loaded>,
    pub(crate) variables: Variables,
    pub(crate) business_key: Option<String>,
    pub(crate) idempotency_key: Option<String>,
    /// Set to the instance's key as soon as it is known, when the caller waits for the end.
    pub(crate) awaits_end: Option<Arc<OnceLock<InstanceKey>>>,
    /// Who starts it, and why.
    pub(crate) cause: Cause,
    /// Where it begins, if that is not at a start event.
    pub(crate) begin: Option<Vec<Beginning>>,
    /// What the audit says of it, in the same commit; the instance's key is added.
    pub(crate) audit: Option<AuditRow>,
    pub(crate) source: Option<&'static str>,
    /// Make it durable and no more, whatever the gate says.
    pub(crate) accept_only: bool,
}

/// How long an idempotency key is remembered: 30 days.
const IDEMPOTENCY_MS: i64 = 30 * 24 * 3_600_000;

/// The key-value entry that remembers an idempotency key.
pub(crate) fn idempotency_entry(tenant: &str, key: &str) -> String {
    format!("start/{tenant}/{key}")
}

impl Owner {
    pub(super) fn start(&mut self, order: StartOrder, reply: Reply<Started>) {
        if self.shared.life.is_stopped() {
            let _ = reply.send(Err(Error::Stopped));
            return;
        }
        if let Some(key) = &order.idempotency_key {
            let entry = idempotency_entry(&order.loaded.row.tenant, key);
            match self.known_start(&entry) {
                Ok(None) => {}
                Ok(Some(instance)) => return self.answer_duplicate(instance, reply),
                Err(error) => {
                    let _ = reply.send(Err(error));
                    return;
                }
            }
        }
        if !order.loaded.is_startable() {
            let _ = reply.send(Err(Error::NoSuchDefinition(order.loaded.row.key)));
            return;
        }
        let now = self.now();
        let key = InstanceKey(self.keys.fresh(now));
        let row = new_row(key, &order.loaded, order.business_key.clone(), now);
        if order.accept_only || !self.may_start() {
            return self.accept_start(order, row, now, reply);
        }
        match self.turn(&order.loaded.process, key, None) {
            Ok(true) => {}
            Ok(false) => return self.accept_start(order, row, now, reply),
            Err(error) => {
                let _ = reply.send(Err(error));
                return;
            }
        }
        let permit = self
            .shared
            .gate
            .admit_through(order.loaded.gates(), Entering::Start);
        let Ok(permit) = permit else {
            return self.accept_start(order, row, now, reply);
        };
        let command = Command::new(start_command(None, order.begin, order.variables), order.cause);
        self.next_incarnation += 1;
        let mut resident = Resident::new(
            self.next_incarnation,
            Instance::new(key),
            order.loaded.clone(),
            row,
            false,
        );
        resident.cycle = Some(self.cycle(key, permit, order.source));
        self.residents.insert(key, resident);
        if let Err(rejection) = self.advance(key, command) {
            self.residents.remove(&key);
            self.free_place_of(&order.loaded.process, key);
            let _ = reply.send(Err(rejection.into()));
            return;
        }
        let tenant = order.loaded.row.tenant.clone();
        let entry = order.idempotency_key.map(|key| idempotency_entry(&tenant, &key));
        let Some(resident) = self.residents.get_mut(&key) else {
            return;
        };
        if let Some(audit) = order.audit {
            resident.take_along(of_new(audit, key));
        }
        if let Some(entry) = &entry {
            remember(entry, key, now, &mut resident.expect, &mut resident.riders);
            self.starting.insert(entry.clone(), key);
        }
        resident.answers.push(match order.awaits_end {
            Some(known) => {
                // The caller made it for this start alone.
                let _ = known.set(key);
                Answer::StartedAwaiting(reply, entry)
            }
            None => Answer::Started(reply, entry),
        });
    }

    fn may_start(&self) -> bool {
        let state = self.shared.gate.read();
        state.is_accepting()
            && self.shared.switches.http_api.is_on()
            && state.live() < self.shared.options.max_live_cycles
    }

    /// An earlier start with the same idempotency key, in flight or stored.
    fn known_start(&self, entry: &str) -> Result<Option<InstanceKey>, Error> {
        if let Some(instance) = self.starting.get(entry) {
            return Ok(Some(*instance));
        }
        let value = self.shared.store.value(entry, self.now())?;
        Ok(value.as_deref().and_then(instance_of))
    }

    /// Answers a repeated start with the present state of the first one's instance.
    pub(super) fn answer_duplicate(&mut self, instance: InstanceKey, reply: Reply<Started>) {
        if let Some(resident) = self.residents.get_mut(&instance)
            && resident.is_dirty
        {
            // Its first commit is not told yet: answer with it.
            resident.answers.push(Answer::Started(reply, None));
            return;
        }
        let answer = match self.shared.store.instance(instance) {
            Ok(Some(row)) => Ok(started(&row, None)),
            // In flight: the key is final, and a failing commit is the first caller's to see.
            Ok(None) => match self.residents.get(&instance) {
                Some(resident) => Ok(started(&resident.row, None)),
                None => Err(match self.shared.store.forgotten(instance) {
                    Ok(Some(_)) => Error::InstanceForgotten(instance),
                    _ => Error::NoSuchInstance(instance),
                }),
            },
            Err(error) => Err(error.into()),
        };
        let _ = reply.send(answer);
    }

    /// The gate is closed: the start is made durable and waits.
    fn accept_start(
        &mut self,
        order: StartOrder,
        mut row: InstanceRow,
        now: Timestamp,
        reply: Reply<Started>,
    ) {
        if let Err(error) = self.room_in_queue() {
            self.free_place(&row);
            let _ = reply.send(Err(error));
            return;
        }
        Counters::add(&self.shared.counters.accepted_for_later, 1);
        row.revision = 0;
        row.sub_status = SubStatus::Pending;
        let key = row.key;
        let stimulus = Stimulus::Start {
            instance: key,
            definition: row.definition,
            element: None,
            variables: order.variables,
            cause: order.cause,
            begin: order.begin,
        };
        let queued = stimulus_row(&Domain::Instance(key), order.source, &stimulus, now);
        let mut expect = Vec::new();
        let mut writes = vec![
            Write::CreateInstance {
                row: Box::new(row.clone()),
                state: None,
            },
            Write::AddStimulus(queued.clone()),
        ];
        if let Some(audit) = order.audit {
            let audit = of_new(audit, key);
            crate::audit::log(&audit);
            writes.push(Write::Audit(Box::new(audit)));
        }
        let tenant = row.tenant.clone();
        let entry = order.idempotency_key.map(|key| idempotency_entry(&tenant, &key));
        if let Some(entry) = &entry {
            remember(entry, key, now, &mut expect, &mut writes);
            self.starting.insert(entry.clone(), key);
        }
        self.pending.expect(Domain::Instance(key));
        self.loose.push(Prepared {
            commit: tidegate_store::Commit { expect, writes },
            then: Box::new(move |owner, result| {
                if let Some(entry) = &entry {
                    owner.starting.remove(entry);
                }
                match result {
                    Ok(outcome) => {
                        let stimulus = owner.added(queued, &outcome);
                        let _ = reply.send(Ok(Started {
                            accepted: stimulus,
                            ..started(&row, None)
                        }));
                    }
                    Err(error) => {
                        owner.pending.left(&Domain::Instance(key));
                        owner.check_place(&row);
                        let _ = reply.send(Err(problem_of(&error)));
                    }
                }
            }),
        });
    }

    /// Executes an accepted start, or a start by message or timer.
    pub(super) fn begin(
        &mut self,
        key: InstanceKey,
        element: Option<ElementIndex>,
        variables: Variables,
        cause: tidegate_model::Cause,
    ) -> Result<(), Error> {
        self.advance(
            key,
            Command::new(CommandKind::Start { element, variables }, cause),
        )
        .map_err(Error::from)
    }

    /// Whether the queue takes one more while closed.
    pub(super) fn room_in_queue(&self) -> Result<(), Error> {
        let depth = self.shared.queue_depth.load(Ordering::Relaxed);
        match (
            self.shared.options.overflow_policy,
            self.shared.options.queue_max_depth,
        ) {
            (crate::status::OverflowPolicy::Reject, Some(limit)) if depth >= limit => {
                Err(Error::QueueFull { depth })
            }
            _ => Ok(()),
        }
    }

    /// A stimulus stands in the queue now: it takes its place in the line. Its domain was counted before.
    pub(super) fn added(
        &mut self,
        mut row: StimulusRow,
        outcome: &tidegate_store::Outcome,
    ) -> Option<tidegate_model::StimulusKey> {
        let key = outcome.stimuli.first().copied()?;
        self.shared.queue_depth.fetch_add(1, Ordering::Relaxed);
        self.shared.tick();
        row.key = key;
        self.pending.add_expected(row);
        Some(key)
    }
}

/// The first command of an instance.
pub(crate) fn start_command(
    element: Option<ElementIndex>,
    begin: Option<Vec<Beginning>>,
    variables: Variables,
) -> CommandKind {
    match begin {
        Some(begin) => CommandKind::StartAt { begin, variables },
        None => CommandKind::Start { element, variables },
    }
}

fn of_new(mut audit: AuditRow, key: InstanceKey) -> AuditRow {
    audit.after = Some(format!("instance {key}"));
    audit
}

pub(super) fn new_row(
    key: InstanceKey,
    loaded: &Loaded,
    business_key: Option<String>,
    now: Timestamp,
) -> InstanceRow {
    InstanceRow {
        key,
        definition: loaded.row.key,
        process_id: loaded.row.process_id.clone(),
        version: loaded.row.version,
        tenant: loaded.row.tenant.clone(),
        business_key,
        parent: None,
        parent_element: None,
        enclosing: Vec::new(),
        depth: 0,
        revision: 0,
        sub_status: SubStatus::Executing,
        incident_count: 0,
        attempts: 0,
        started_at: now,
        ended_at: None,
    }
}

pub(super) fn stimulus_row(
    domain: &Domain,
    source: Option<&'static str>,
    stimulus: &Stimulus,
    now: Timestamp,
) -> StimulusRow {
    StimulusRow {
        key: tidegate_model::StimulusKey(0),
        domain: domain.text(),
        source: source.unwrap_or("library").to_owned(),
        payload: minicbor::to_vec(stimulus).unwrap_or_default(),
        accepted_at: now,
        attempts: 0,
    }
}

fn remember(
    entry: &str,
    key: InstanceKey,
    now: Timestamp,
    expect: &mut Vec<Expect>,
    writes: &mut Vec<Write>,
) {
    expect.push(Expect::ValueAbsent {
        key: entry.to_owned(),
        now,
    });
    writes.push(Write::SetValue {
        key: entry.to_owned(),
        value: key.to_string().into_bytes(),
        expires_at: Some(now.plus_ms(IDEMPOTENCY_MS)),
    });
}
