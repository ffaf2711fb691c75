//! Signals: everybody who waits takes one, and every start event of the newest definitions begins an instance.

use std::sync::Arc;

use tidegate_model::{Cause, InstanceKey, MessageKey, Stimulus, Variables};
use tidegate_store::{Commit, Expect, StimulusRow, Write};

use crate::api::Published;
use crate::error::Error;
use crate::shared::Counters;

use super::commit::{Prepared, client, problem_of};
use super::pending::{Domain, Item};
use super::start::stimulus_row;
use super::{Owner, Reply};

/// A signal to broadcast.
pub(crate) struct BroadcastOrder {
    pub(crate) tenant: Arc<str>,
    pub(crate) name: String,
    pub(crate) variables: Variables,
    /// The client.
    pub(crate) actor: String,
    pub(crate) source: Option<&'static str>,
}

impl Owner {
    pub(super) fn broadcast(&mut self, order: BroadcastOrder, reply: Reply<Published>) {
        let domain = Domain::signal(&order.tenant, &order.name);
        if !self.shared.gate.read().is_accepting() || self.pending.has(&domain) {
            return self.accept_broadcast(order, domain, reply);
        }
        let mut commit = Commit::default();
        let BroadcastOrder {
            tenant,
            name,
            variables,
            actor,
            ..
        } = order;
        let who = (None, Some(client(&actor)));
        let started = self.match_signal((&tenant, &name), &variables, who, &mut commit);
        self.loose.push(Prepared {
            commit,
            then: Box::new(move |owner, result| {
                let answer = match result {
                    Ok(outcome) => Ok(owner.matched(MessageKey(0), started, outcome)),
                    Err(error) => Err(problem_of(&error)),
                };
                // Whoever asked may have gone; the signal was thrown.
                let _ = reply.send(answer);
            }),
        });
    }

    fn accept_broadcast(&mut self, order: BroadcastOrder, domain: Domain, reply: Reply<Published>) {
        if let Err(error) = self.room_in_queue() {
            let _ = reply.send(Err(error));
            return;
        }
        let stimulus = Stimulus::Broadcast {
            name: order.name,
            variables: order.variables,
            tenant: order.tenant.to_string(),
            thrown_by: None,
            from: Some(client(&order.actor)),
        };
        Counters::add(&self.shared.counters.accepted_for_later, 1);
        let row = stimulus_row(&domain, order.source, &stimulus, self.now());
        self.pending.expect(domain.clone());
        let commit = Commit {
            expect: Vec::new(),
            writes: vec![Write::AddStimulus(row.clone())],
        };
        self.loose.push(Prepared {
            commit,
            then: Box::new(move |owner, result| {
                let answer = match result {
                    Ok(outcome) => match owner.added(row, &outcome) {
                        accepted @ Some(_) => Ok(Published {
                            message: MessageKey(0),
                            delivered_to: Vec::new(),
                            deferred_for: Vec::new(),
                            is_buffered: true,
                            accepted,
                        }),
                        None => Err(Error::Stopped),
                    },
                    Err(error) => {
                        owner.pending.left(&domain);
                        Err(problem_of(&error))
                    }
                };
                let _ = reply.send(answer);
            }),
        });
    }

    /// Executes a queued broadcast.
    pub(super) fn execute_broadcast(
        &mut self,
        row: StimulusRow,
        stimulus: Stimulus,
    ) -> Result<(), Box<Item>> {
        let Stimulus::Broadcast {
            name,
            variables,
            tenant,
            thrown_by,
            from,
        } = stimulus
        else {
            return Ok(());
        };
        let mut commit = Commit {
            expect: vec![Expect::Stimulus(row.key)],
            writes: vec![Write::RemoveStimulus(row.key)],
        };
        let started = self.match_signal(
            (&tenant.into(), &name),
            &variables,
            (thrown_by, from),
            &mut commit,
        );
        let domain = Domain::parse(&row.domain);
        self.pending.hold(&domain);
        self.loose.push(Prepared {
            commit,
            then: Box::new(move |owner, result| match result {
                Ok(outcome) => {
                    owner
                        .shared
                        .queue_depth
                        .fetch_sub(1, std::sync::atomic::Ordering::Relaxed);
                    owner.pending.left(&domain);
                    owner.pending.release(&domain);
                    owner.matched(MessageKey(0), started, outcome);
                }
                Err(error) => {
                    owner.pending.release(&domain);
                    owner.put_back_later(Item::Stimulus(row), &problem_of(&error));
                }
            }),
        });
        Ok(())
    }

    fn match_signal(
        &mut self,
        (tenant, name): (&Arc<str>, &str),
        variables: &Variables,
        (thrown_by, from): (Option<InstanceKey>, Option<Cause>),
        commit: &mut Commit,
    ) -> Vec<StimulusRow> {
        let now = self.now();
        let starts = self.shared.definitions.signal_starts(tenant, name);
        let cause = Cause::Signal {
            from: from.clone().map(Box::new),
        };
        let started = self.pending_starts(starts, variables, &cause, now, commit);
        commit.writes.push(Write::Broadcast {
            tenant: tenant.clone(),
            name: name.to_owned(),
            variables: variables.to_json(),
            except: thrown_by,
            from,
            now,
        });
        started
    }
}
