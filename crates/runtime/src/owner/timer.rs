//! Due timers: of instances, of in-process jobs that wait for their next try, and of start events.

use std::sync::Arc;

use tidegate_model::{
    Cause, Command, CommandKind, Effect, ElementInstanceKey, InstanceKey, MessageKey, Timestamp, Variables,
};
use tidegate_store::{Commit, CommitError, Expect, Refusal, TimerRow, Write};
use tokio::time::Instant;

use crate::definitions::{Loaded, Standing};
use crate::error::Error;
use crate::gate::{Entering, Refused};
use crate::shared::Counters;

use super::commit::{Prepared, problem_of};
use super::pending::{Domain, Item};
use super::start::new_row;
use super::{Owner, ROOM};

const TIMER: &str = "timer";
/// A timer that fires later than this after its due time is recorded as late.
const LATE_MS: i64 = 1_000;

impl Owner {
    pub(super) fn fire(&mut self, row: TimerRow) -> Result<(), Box<Item>> {
        let Some(instance) = row.instance else {
            return self.fire_start(row);
        };
        match self.join_cycle(instance, Some(TIMER)) {
            Ok(true) => {}
            Ok(false) => return Err(Box::new(Item::Timer(row))),
            Err(Error::PartPaused(_)) => {
                self.pending.park(Item::Timer(row), None);
                return Ok(());
            }
            Err(Error::InstanceHeld(_)) => {
                // It has left the scan with the hold, and is armed again when the instance is let go.
                self.pending.left(&Domain::Instance(instance));
                return Ok(());
            }
            Err(Error::NoSuchInstance(_)) => {
                self.pending.left(&Domain::Instance(instance));
                self.disarm(&row);
                return Ok(());
            }
            Err(error) => {
                tracing::warn!(%instance, "a timer has to wait: {error}");
                self.pending_rests_until = Some(Instant::now() + super::STALL);
                return Err(Box::new(Item::Timer(row)));
            }
        }
        self.pending.left(&Domain::Instance(instance));
        let late_ms = self.now().since(row.due_at);
        if late_ms > LATE_MS {
            Counters::add(&self.shared.counters.timers_late, 1);
            tracing::info!(%instance, late_ms, event = "TimerLate", "a timer fires late");
        }
        let owner = ElementInstanceKey(row.owner);
        if self.retry_job(instance, owner, &row) {
            return Ok(());
        }
        let kind = CommandKind::TriggerTimer {
            owner,
            element: row.element,
            due_at: row.due_at,
        };
        match self.advance(instance, Command::new(kind, Cause::Timer)) {
            Ok(()) => {
                if let Some(resident) = self.residents.get_mut(&instance) {
                    resident.consumed.push(Item::Timer(row));
                }
            }
            Err(_) => {
                // Nobody waits for it any more: it fired before, or its element was left.
                if self.runs_ahead(instance) {
                    self.pending.expect(Domain::Instance(instance));
                    self.pending.park(Item::Timer(row), Some(Instant::now() + ROOM));
                }
                self.rest_if_settled(instance);
            }
        }
        Ok(())
    }

    /// The back-off of an in-process job is over. False if the timer is none of these.
    fn retry_job(&mut self, instance: InstanceKey, job: ElementInstanceKey, timer: &TimerRow) -> bool {
        let Some(resident) = self.residents.get_mut(&instance) else {
            return false;
        };
        if !resident.instance.has_job(job) || resident.running.iter().any(|running| running.job == job) {
            return false;
        }
        let outstanding = tidegate_engine::outstanding(&resident.loaded.definition, &resident.instance);
        let found = outstanding.into_iter().find_map(|effect| match effect {
            Effect::RunJob(found) if found.key == job && found.element == timer.element => Some(found),
            _ => None,
        });
        let Some(mut found) = found else { return false };
        found.not_before = None;
        resident.effects.push(Effect::RunJob(found));
        resident.riders.push(Write::DisarmTimer {
            owner: timer.owner,
            element: timer.element,
        });
        resident.consumed.push(Item::Timer(timer.clone()));
        self.mark_dirty(instance);
        true
    }

    /// A timer start event: a new instance, and the next turn in the same commit.
    fn fire_start(&mut self, row: TimerRow) -> Result<(), Box<Item>> {
        let key = tidegate_model::DefinitionKey(row.owner);
        let loaded = match self.shared.definitions.get(&*self.shared.store, key) {
            Ok(Some(loaded)) if self.shared.definitions.is_latest(&loaded) => loaded,
            Ok(Some(loaded)) if loaded.standing() == Standing::Leaving => {
                // Whether it goes is not decided yet.
                self.pending
                    .park(Item::Timer(row), Some(Instant::now() + super::STALL));
                return Ok(());
            }
            Ok(_) => {
                self.disarm(&row);
                return Ok(());
            }
            Err(error) => {
                tracing::warn!(definition = %key, "a timer start has to wait: {error}");
                self.pending_rests_until = Some(Instant::now() + super::STALL);
                return Err(Box::new(Item::Timer(row)));
            }
        };
        // It may have been read a second time while its commit is on its way.
        let turn = (row.owner, row.element);
        if self.turns.get(&turn).is_some_and(|due_at| *due_at >= row.due_at) {
            return Ok(());
        }
        let permit = match self.shared.gate.admit_through(loaded.gates(), Entering::Start) {
            Ok(permit) => permit,
            Err(Refused::Shell) => return Err(Box::new(Item::Timer(row))),
            Err(Refused::Narrow) => {
                self.pending.park(Item::Timer(row), None);
                return Ok(());
            }
        };
        let now = self.now();
        let instance = InstanceKey(self.keys.fresh(now));
        if self.shared.definitions.processes.has_limits() {
            let turn = self.turn(&loaded.process, instance, None);
            if !matches!(turn, Ok(true)) {
                drop(permit);
                self.start_later(row, &loaded, turn.is_ok(), now);
                return Ok(());
            }
        }
        let new = new_row(instance, &loaded, None, now);
        self.next_incarnation += 1;
        let mut resident = super::Resident::new(
            self.next_incarnation,
            tidegate_engine::Instance::new(instance),
            loaded.clone(),
            new,
            false,
        );
        resident.cycle = Some(self.cycle(instance, permit, Some(TIMER)));
        self.residents.insert(instance, resident);
        if let Err(error) = self.begin(instance, Some(row.element), Variables::new(), Cause::Timer) {
            tracing::error!(definition = %key, "a timer start was refused: {error}");
            self.residents.remove(&instance);
            self.free_place_of(&loaded.process, instance);
            self.disarm(&row);
            return Ok(());
        }
        let next = next_turn(&loaded, &row, now);
        let Some(resident) = self.residents.get_mut(&instance) else {
            return Ok(());
        };
        // The timer belongs to the newest version, and whose it is the store decides.
        resident.expect.push(armed_as(&row));
        match next {
            Some(next) => resident.riders.push(Write::ArmTimer(next)),
            None => resident.riders.push(Write::DisarmTimer {
                owner: row.owner,
                element: row.element,
            }),
        }
        self.turns.insert(turn, row.due_at);
        resident.consumed.push(Item::Timer(row));
        Ok(())
    }

    /// The process has as many live instances as it may: the start waits in the queue, or is skipped. The next turn is armed
    /// in the same commit.
    fn start_later(&mut self, row: TimerRow, loaded: &Arc<Loaded>, waits: bool, now: Timestamp) {
        let mut commit = Commit {
            expect: vec![armed_as(&row)],
            ..Commit::default()
        };
        let next = next_turn(loaded, &row, now);
        commit.writes.push(match &next {
            Some(next) => Write::ArmTimer(next.clone()),
            None => Write::DisarmTimer {
                owner: row.owner,
                element: row.element,
            },
        });
        let mut started = Vec::new();
        if waits {
            let start = vec![(loaded.clone(), row.element)];
            started = self.pending_starts(start, &Variables::new(), &Cause::Timer, now, &mut commit);
        }
        self.loose.push(Prepared {
            commit,
            then: Box::new(move |owner, result| match result {
                Ok(outcome) => {
                    if let Some(next) = next {
                        owner.shared.timers.armed(&next);
                    }
                    owner.matched(MessageKey(0), started, outcome);
                }
                // It was another version's meanwhile.
                Err(CommitError::Refused(Refusal::TimerGone { .. })) => owner.shared.timers.reload(),
                Err(error) => owner.put_back_later(Item::Timer(row), &problem_of(&error)),
            }),
        });
    }

    fn disarm(&mut self, row: &TimerRow) {
        let writes = vec![Write::DisarmTimer {
            owner: row.owner,
            element: row.element,
        }];
        self.loose.push(Prepared {
            commit: Commit {
                expect: Vec::new(),
                writes,
            },
            // Left where it is, the timer is disarmed the next time it is loaded.
            then: Box::new(|_, _| {}),
        });
    }
}

/// A firing counts while its timer is armed as it was.
fn armed_as(row: &TimerRow) -> Expect {
    Expect::Timer {
        owner: row.owner,
        element: row.element,
        due_at: row.due_at,
    }
}

/// The next turn of a timer start event. Turns missed meanwhile are folded into this one.
fn next_turn(loaded: &Loaded, row: &TimerRow, now: Timestamp) -> Option<TimerRow> {
    let mut fired = row.fired + 1;
    let mut due_at = loaded
        .definition
        .next_start_timer(row.element, row.due_at, fired)?;
    while due_at <= now {
        fired += 1;
        due_at = loaded.definition.next_start_timer(row.element, due_at, fired)?;
    }
    Some(TimerRow {
        due_at,
        fired,
        ..row.clone()
    })
}
