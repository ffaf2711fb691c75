//! Messages: published at once or accepted for later, matched in the commit, and handed to who takes them.

use tidegate_model::{Cause, InstanceKey, MessageKey, Stimulus, SubStatus, Timestamp, Variables};
use tidegate_store::{Commit, Expect, MessageRow, StimulusRow, Write};

use crate::api::Published;
use crate::error::Error;
use crate::shared::Counters;

use super::commit::{Prepared, client, problem_of};
use super::pending::{Domain, Item};
use super::start::{new_row, stimulus_row};
use super::stimulus::refuse;
use super::{Owner, Reply};

/// A message to publish.
pub(crate) struct PublishOrder {
    pub(crate) tenant: std::sync::Arc<str>,
    pub(crate) name: String,
    pub(crate) correlation_key: String,
    pub(crate) variables: Variables,
    pub(crate) ttl_ms: i64,
    pub(crate) message_id: Option<String>,
    /// The client.
    pub(crate) actor: String,
    pub(crate) source: Option<&'static str>,
    /// Make it durable and no more, whatever the gate says.
    pub(crate) accept_only: bool,
}

impl Owner {
    pub(super) fn publish(&mut self, order: PublishOrder, reply: Reply<Published>) {
        let now = self.now();
        let entry = order
            .message_id
            .as_ref()
            .map(|id| entry_of(&order.tenant, &order.name, &order.correlation_key, id));
        if let Some(entry) = &entry {
            match self.known_message(entry, now) {
                Ok(None) => {}
                Ok(Some(message)) => {
                    let answer = Published {
                        message,
                        delivered_to: Vec::new(),
                        deferred_for: Vec::new(),
                        is_buffered: false,
                        accepted: None,
                    };
                    let _ = reply.send(Ok(answer));
                    return;
                }
                Err(error) => return refuse(reply, error),
            }
        }
        let message = MessageKey(self.keys.fresh(now));
        let domain = Domain::message(&order.tenant, &order.name, &order.correlation_key);
        let mut commit = Commit::default();
        if let Some(entry) = &entry {
            commit.expect.push(Expect::ValueAbsent {
                key: entry.clone(),
                now,
            });
            commit.writes.push(remembered(entry, message, now, order.ttl_ms));
            self.publishing.insert(entry.clone(), message);
        }
        if order.accept_only || !self.is_open() || self.pending.has(&domain) {
            return self.accept_publish(order, message, domain, entry, commit, now, reply);
        }
        let publish = Publish {
            tenant: order.tenant,
            name: order.name,
            correlation_key: order.correlation_key,
            variables: order.variables,
            expires_at: now.plus_ms(order.ttl_ms),
            from: Some(client(&order.actor)),
        };
        let started = self.match_message(publish, message, now, &mut commit);
        self.loose.push(Prepared {
            commit,
            then: Box::new(move |owner, result| {
                if let Some(entry) = &entry {
                    owner.publishing.remove(entry);
                }
                let answer = match result {
                    Ok(outcome) => Ok(owner.matched(message, started, outcome)),
                    Err(error) => Err(problem_of(&error)),
                };
                let _ = reply.send(answer);
            }),
        });
    }

    fn known_message(&self, entry: &str, now: Timestamp) -> Result<Option<MessageKey>, Error> {
        if let Some(message) = self.publishing.get(entry) {
            return Ok(Some(*message));
        }
        let value = self.shared.store.value(entry, now)?;
        Ok(value.and_then(|bytes| String::from_utf8(bytes).ok()?.parse().ok()))
    }

    #[allow(clippy::too_many_arguments)]
    fn accept_publish(
        &mut self,
        order: PublishOrder,
        message: MessageKey,
        domain: Domain,
        entry: Option<String>,
        mut commit: Commit,
        now: Timestamp,
        reply: Reply<Published>,
    ) {
        if let Err(error) = self.room_in_queue() {
            if let Some(entry) = &entry {
                self.publishing.remove(entry);
            }
            return refuse(reply, error);
        }
        let stimulus = Stimulus::Publish {
            message,
            name: order.name,
            correlation_key: order.correlation_key,
            variables: order.variables,
            ttl_ms: order.ttl_ms,
            message_id: order.message_id,
            tenant: order.tenant.to_string(),
            from: Some(client(&order.actor)),
        };
        Counters::add(&self.shared.counters.accepted_for_later, 1);
        let row = stimulus_row(&domain, order.source, &stimulus, now);
        commit.writes.push(Write::AddStimulus(row.clone()));
        self.pending.expect(domain.clone());
        self.loose.push(Prepared {
            commit,
            then: Box::new(move |owner, result| {
                if let Some(entry) = &entry {
                    owner.publishing.remove(entry);
                }
                let answer = match result {
                    Ok(outcome) => {
                        let accepted = owner.added(row, &outcome);
                        Ok(Published {
                            message,
                            delivered_to: Vec::new(),
                            deferred_for: Vec::new(),
                            is_buffered: true,
                            accepted,
                        })
                    }
                    Err(error) => {
                        owner.pending.left(&domain);
                        Err(problem_of(&error))
                    }
                };
                let _ = reply.send(answer);
            }),
        });
    }

    pub(super) fn execute_publish(&mut self, row: StimulusRow, stimulus: Stimulus) -> Result<(), Box<Item>> {
        let Stimulus::Publish {
            message,
            name,
            correlation_key,
            variables,
            ttl_ms,
            message_id,
            tenant,
            from,
            ..
        } = stimulus
        else {
            return Ok(());
        };
        let now = self.now();
        let mut commit = Commit {
            expect: vec![Expect::Stimulus(row.key)],
            writes: vec![Write::RemoveStimulus(row.key)],
        };
        let mut is_repeated = false;
        let entry = message_id.map(|id| entry_of(&tenant, &name, &correlation_key, &id));
        if let Some(entry) = &entry {
            match self.known_message(entry, now) {
                // What was accepted from outside was remembered then; what an instance sends is remembered here.
                Ok(Some(known)) => is_repeated = known != message,
                Ok(None) => {
                    commit.writes.push(remembered(entry, message, now, ttl_ms));
                    self.publishing.insert(entry.clone(), message);
                }
                Err(error) => {
                    self.put_back_later(Item::Stimulus(row), &error);
                    return Ok(());
                }
            }
        }
        let publish = Publish {
            tenant: tenant.into(),
            name,
            correlation_key,
            variables,
            // The time to live begins when the message is executed: it stands still in the queue.
            expires_at: now.plus_ms(ttl_ms),
            from,
        };
        let started = match is_repeated {
            true => {
                let MessageKey(repeated) = message;
                tracing::info!(message = repeated, name = %publish.name, "a message with the id of an earlier one does nothing");
                Vec::new()
            }
            false => self.match_message(publish, message, now, &mut commit),
        };
        let domain = Domain::parse(&row.domain);
        self.pending.hold(&domain);
        self.loose.push(Prepared {
            commit,
            then: Box::new(move |owner, result| {
                if let Some(entry) = &entry
                    && !is_repeated
                {
                    owner.publishing.remove(entry);
                }
                match result {
                    Ok(outcome) => {
                        owner
                            .shared
                            .queue_depth
                            .fetch_sub(1, std::sync::atomic::Ordering::Relaxed);
                        owner.pending.left(&domain);
                        owner.pending.release(&domain);
                        owner.matched(message, started, outcome);
                    }
                    Err(error) => {
                        owner.pending.release(&domain);
                        owner.put_back_later(Item::Stimulus(row), &problem_of(&error));
                    }
                }
            }),
        });
        Ok(())
    }

    /// Adds to a commit what matches a message: start events of the newest definitions, and the store's own search.
    fn match_message(
        &mut self,
        publish: Publish,
        message: MessageKey,
        now: Timestamp,
        commit: &mut Commit,
    ) -> Vec<StimulusRow> {
        let starts = self
            .shared
            .definitions
            .message_starts(&publish.tenant, &publish.name);
        let cause = Cause::Message {
            message: message.get(),
            from: publish.from.clone().map(Box::new),
        };
        let started = self.pending_starts(starts, &publish.variables, &cause, now, commit);
        commit.writes.push(Write::Publish {
            row: MessageRow {
                key: message,
                tenant: publish.tenant,
                name: publish.name,
                correlation_key: publish.correlation_key,
                variables: publish.variables.to_json(),
                expires_at: publish.expires_at,
                from: publish.from,
            },
            has_taker: !started.is_empty(),
            now,
        });
        started
    }

    /// Adds to a commit one pending instance, with its start in the queue, for each start event.
    pub(super) fn pending_starts(
        &mut self,
        starts: Vec<(
            std::sync::Arc<crate::definitions::Loaded>,
            tidegate_model::ElementIndex,
        )>,
        variables: &Variables,
        cause: &Cause,
        now: Timestamp,
        commit: &mut Commit,
    ) -> Vec<StimulusRow> {
        let mut started = Vec::new();
        for (loaded, element) in starts {
            let key = InstanceKey(self.keys.fresh(now));
            let mut row = new_row(key, &loaded, None, now);
            row.sub_status = SubStatus::Pending;
            let stimulus = Stimulus::Start {
                instance: key,
                definition: row.definition,
                element: Some(element),
                variables: variables.clone(),
                cause: cause.clone(),
                begin: None,
            };
            let queued = stimulus_row(&Domain::Instance(key), Some("http.api"), &stimulus, now);
            commit.writes.push(Write::CreateInstance {
                row: Box::new(row),
                state: None,
            });
            commit.writes.push(Write::AddStimulus(queued.clone()));
            started.push(queued);
        }
        started
    }

    pub(super) fn matched(
        &mut self,
        message: MessageKey,
        started: Vec<StimulusRow>,
        mut outcome: tidegate_store::Outcome,
    ) -> Published {
        let keys = std::mem::take(&mut outcome.stimuli);
        let mut delivered_to: Vec<InstanceKey> = outcome.deliveries.iter().map(|d| d.instance).collect();
        let is_expired = outcome.expired.contains(&message);
        let started: Vec<StimulusRow> = started
            .into_iter()
            .zip(keys)
            .map(|(mut row, key)| {
                row.key = key;
                row
            })
            .collect();
        self.shared
            .queue_depth
            .fetch_add(started.len() as u64, std::sync::atomic::Ordering::Relaxed);
        delivered_to.extend(started.iter().filter_map(|row| match Domain::parse(&row.domain) {
            Domain::Instance(key) => Some(key),
            Domain::Message(_) => None,
        }));
        self.hand_over(started);
        self.arrange(outcome);
        let held = self.shared.held.lock();
        let deferred_for = match held.is_empty() {
            true => Vec::new(),
            false => delivered_to
                .iter()
                .copied()
                .filter(|key| held.contains(key))
                .collect(),
        };
        drop(held);
        Published {
            message,
            deferred_for,
            is_buffered: delivered_to.is_empty() && !is_expired,
            delivered_to,
            accepted: None,
        }
    }
}

/// The name under which the id of a message is remembered.
fn entry_of(tenant: &str, name: &str, correlation_key: &str, id: &str) -> String {
    format!("message/{tenant}/{name}/{correlation_key}/{id}")
}

/// Remembers an id at least as long as the message can wait, and an hour for retries of the sender.
fn remembered(entry: &str, message: MessageKey, now: Timestamp, ttl_ms: i64) -> Write {
    Write::SetValue {
        key: entry.to_owned(),
        value: message.to_string().into_bytes(),
        expires_at: Some(now.plus_ms(ttl_ms.max(3_600_000))),
    }
}

/// A message being matched.
struct Publish {
    tenant: std::sync::Arc<str>,
    name: String,
    correlation_key: String,
    variables: Variables,
    expires_at: Timestamp,
    from: Option<Cause>,
}
