//! Forgetting, trimming and operations on many in the memory store.

use std::ops::Bound;

use tidegate_model::{InstanceKey, StimulusKey, Timestamp};

use super::tables::Tables;
use crate::commit::{Outcome, Refusal};
use crate::forget::{
    EndedRow, ForgetRequest, ForgottenJournal, ForgottenRow, OperationItemRow, OperationRow, Unforgettable,
};

impl Tables {
    pub fn check_forgettable(&self, instances: &[InstanceKey]) -> Result<(), Refusal> {
        for instance in instances {
            let refused = |why| {
                Err(Refusal::NotForgettable {
                    instance: *instance,
                    why,
                })
            };
            let Some(found) = self.instances.get(instance) else {
                match self.forgotten.get(instance) {
                    Some(row) if row.journal == ForgottenJournal::Kept => continue,
                    _ => return refused(Unforgettable::Unknown),
                }
            };
            if !found.row.sub_status.is_finished() {
                return refused(Unforgettable::Live);
            }
            let called = self
                .instances
                .values()
                .find(|other| other.row.parent == Some(*instance) && !instances.contains(&other.row.key));
            if let Some(called) = called {
                return refused(Unforgettable::Called(called.row.key));
            }
        }
        Ok(())
    }

    pub fn forget(&mut self, request: &ForgetRequest, outcome: &mut Outcome) {
        for instance in &request.instances {
            let Some(found) = self.instances.remove(instance) else {
                if let Some(row) = self.forgotten.get_mut(instance)
                    && row.journal == ForgottenJournal::Kept
                    && !request.keeps_journal
                {
                    row.journal = ForgottenJournal::Going;
                    row.expires_at = Some(request.fenced_until);
                }
                continue;
            };
            outcome.removed += 1;
            self.forget_rows(*instance, outcome);
            let journal = match request.keeps_journal {
                true => ForgottenJournal::Kept,
                false => ForgottenJournal::Going,
            };
            self.forgotten.insert(
                *instance,
                ForgottenRow {
                    instance: *instance,
                    definition: found.row.definition,
                    sub_status: found.row.sub_status,
                    forgotten_at: request.now,
                    expires_at: (!request.keeps_journal).then_some(request.fenced_until),
                    journal,
                },
            );
        }
        let mut room = request.limit;
        for instance in &request.instances {
            room -= self.sweep_journal(*instance, room, outcome);
        }
    }

    fn forget_rows(&mut self, instance: InstanceKey, outcome: &mut Outcome) {
        let before = self.rows_of_instances();
        let timers: Vec<_> = self
            .timers
            .values()
            .filter(|row| row.instance == Some(instance))
            .map(|row| (row.owner, row.element))
            .collect();
        for (owner, element) in timers {
            self.disarm_timer(owner, element);
        }
        self.subscriptions.close_all_of(instance);
        self.jobs.retain(|_, row| row.instance != instance);
        self.user_tasks.retain(|_, row| row.instance != instance);
        self.incidents.retain(|_, row| row.instance != instance);
        let domain = format!("instance/{instance}");
        self.dead_letters.retain(|_, row| row.stimulus.domain != domain);
        let dropped: Vec<StimulusKey> = self
            .stimuli
            .values()
            .filter(|row| row.domain == domain)
            .map(|row| row.key)
            .collect();
        for key in dropped {
            self.stimuli.remove(&key);
            outcome.dropped.push(key);
        }
        outcome.removed += (before - self.rows_of_instances()) as u64;
    }

    fn rows_of_instances(&self) -> usize {
        self.timers.len()
            + self.subscriptions.len()
            + self.jobs.len()
            + self.user_tasks.len()
            + self.incidents.len()
            + self.dead_letters.len()
            + self.stimuli.len()
    }

    /// Removes a slice of the journal of a forgotten instance, if it is to go.
    fn sweep_journal(&mut self, instance: InstanceKey, limit: usize, outcome: &mut Outcome) -> usize {
        let is_going = |row: &ForgottenRow| row.journal == ForgottenJournal::Going;
        if limit == 0 || !self.forgotten.get(&instance).is_some_and(is_going) {
            return 0;
        }
        let removed = self.remove_journal(instance, u64::MAX, limit);
        outcome.removed += removed as u64;
        if removed < limit
            && let Some(row) = self.forgotten.get_mut(&instance)
        {
            row.journal = ForgottenJournal::Gone;
        }
        removed
    }

    fn remove_journal(&mut self, instance: InstanceKey, up_to: u64, limit: usize) -> usize {
        let slice: Vec<_> = self
            .journal
            .range((instance, 0)..=(instance, up_to))
            .take(limit)
            .map(|(at, _)| *at)
            .collect();
        for at in &slice {
            self.journal.remove(at);
        }
        slice.len()
    }

    pub fn sweep(&mut self, now: Timestamp, limit: usize, outcome: &mut Outcome) {
        let going: Vec<InstanceKey> = self
            .forgotten
            .values()
            .filter(|row| row.journal == ForgottenJournal::Going)
            .map(|row| row.instance)
            .collect();
        let mut room = limit;
        for instance in going {
            room -= self.sweep_journal(instance, room, outcome);
        }
        let mut expired: Vec<_> = self
            .forgotten
            .values()
            .filter(|row| row.journal == ForgottenJournal::Gone)
            .filter_map(|row| Some((row.expires_at.filter(|at| *at <= now)?, row.instance)))
            .collect();
        expired.sort_unstable();
        for (_, instance) in expired.into_iter().take(room) {
            self.forgotten.remove(&instance);
            outcome.removed += 1;
        }
    }

    pub fn trim(&mut self, instance: InstanceKey, up_to: u64, limit: usize, outcome: &mut Outcome) {
        let Some(found) = self.instances.get(&instance) else {
            return;
        };
        let up_to = up_to.min(found.state_revision);
        outcome.removed += self.remove_journal(instance, up_to, limit) as u64;
        let first = self
            .journal
            .range((instance, 0)..=(instance, u64::MAX))
            .next()
            .map(|((_, revision), _)| *revision);
        let trimmed = first.map_or(up_to, |first| first.saturating_sub(1).min(up_to));
        if let Some(found) = self.instances.get_mut(&instance) {
            found.trimmed = found.trimmed.max(trimmed);
        }
    }

    pub fn ended(
        &self,
        process: (&str, &str),
        until: Timestamp,
        after: Option<(Timestamp, InstanceKey)>,
        limit: usize,
    ) -> Vec<EndedRow> {
        self.ended_of(process)
            .into_iter()
            .filter(|row| row.ended_at <= until && after.is_none_or(|after| (row.ended_at, row.key) > after))
            .take(limit)
            .collect()
    }

    pub fn ended_beyond(&self, process: (&str, &str), keep: usize) -> Option<(Timestamp, InstanceKey)> {
        let ended = self.ended_of(process);
        let at = ended.len().checked_sub(keep)?.checked_sub(1)?;
        ended.get(at).map(|row| (row.ended_at, row.key))
    }

    fn ended_of(&self, (process_id, tenant): (&str, &str)) -> Vec<EndedRow> {
        let mut ended: Vec<EndedRow> = self
            .instances
            .values()
            .filter(|found| *found.row.process_id == *process_id && *found.row.tenant == *tenant)
            .filter_map(|found| {
                Some(EndedRow {
                    key: found.row.key,
                    ended_at: found.row.ended_at?,
                    revision: found.row.revision,
                })
            })
            .collect();
        ended.sort_unstable_by_key(|row| (row.ended_at, row.key));
        ended
    }

    pub fn next_ended_process(&self, after: Option<(&str, &str)>) -> Option<(String, String)> {
        self.instances
            .values()
            .filter(|found| found.row.ended_at.is_some())
            .map(|found| (&*found.row.process_id, &*found.row.tenant))
            .filter(|process| after.is_none_or(|after| *process > after))
            .min()
            .map(|(process_id, tenant)| (process_id.to_owned(), tenant.to_owned()))
    }

    pub fn remove_operation(&mut self, key: u64, limit: usize, outcome: &mut Outcome) {
        let slice: Vec<_> = self
            .operation_items
            .range((key, InstanceKey(0))..=(key, InstanceKey(u64::MAX)))
            .take(limit)
            .map(|(at, _)| *at)
            .collect();
        for at in &slice {
            self.operation_items.remove(at);
        }
        outcome.removed += slice.len() as u64;
        let is_over = |row: &OperationRow| row.ended_at.is_some();
        if slice.len() < limit && self.operations.get(&key).is_some_and(is_over) {
            self.operations.remove(&key);
            outcome.removed += 1;
        }
    }

    pub fn operation_items(
        &self,
        operation: u64,
        outcome: Option<&str>,
        after: Option<InstanceKey>,
        limit: usize,
    ) -> Vec<OperationItemRow> {
        let from = after.map_or(Bound::Included((operation, InstanceKey(0))), |key| {
            Bound::Excluded((operation, key))
        });
        self.operation_items
            .range((from, Bound::Included((operation, InstanceKey(u64::MAX)))))
            .map(|(_, row)| row)
            .filter(|row| outcome.is_none_or(|outcome| row.outcome == outcome))
            .take(limit)
            .cloned()
            .collect()
    }
}
