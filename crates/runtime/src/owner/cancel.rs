//! Cancelling an instance, rung by rung: ask what runs in it to stop, end the rest of it bit by bit, and abandon by name what
//! does not stop in its time. All of it are control commits, which need no permit.

use std::time::Duration;

use tidegate_model::{Cancellation, Cause, Command, CommandKind, InstanceKey, Rejection};
use tidegate_store::{AuditRow, InstanceRow};
use tokio::time::Instant;

use crate::error::Error;

use super::commit::Answer;
use super::pending::Domain;
use super::{Owner, Reply};

/// So many element instances are ended with one commit: the owner's other instances get their turn in between.
const AT_A_TIME: usize = 1_000;

/// A request to cancel an instance.
pub(crate) struct CancelOrder {
    pub(crate) instance: InstanceKey,
    pub(crate) cancellation: Cancellation,
    /// The entry for an effective change.
    pub(crate) audit: Option<AuditRow>,
}

impl Owner {
    /// Answers behind the commit that holds the request. An instance that has ended is answered unchanged.
    pub(super) fn cancel(&mut self, order: CancelOrder, reply: Reply<InstanceRow>) {
        let key = order.instance;
        let answer = match self.load(key) {
            Ok(true) => None,
            Ok(false) => Some(Error::NoSuchInstance(key)),
            Err(error) => Some(error),
        };
        if let Some(error) = answer {
            // Whoever asked may have gone.
            let _ = reply.send(Err(error));
            return;
        }
        let Some(resident) = self.residents.get_mut(&key) else {
            return;
        };
        if resident.instance.ended().is_some() {
            // If its end is not told yet, the answer waits for it.
            if resident.in_flight > 0 || resident.is_dirty {
                resident.answers.push(Answer::Row(reply));
                self.mark_dirty(key);
            } else {
                let _ = reply.send(Ok(resident.row.clone()));
                self.rest_if_settled(key);
            }
            return;
        }
        let before = resident.row.sub_status;
        let asked = resident.instance.cancellation().cloned();
        if let Err(rejection) = self.ask_to_end(key, order.cancellation) {
            let _ = reply.send(Err(rejection.into()));
            self.rest_if_settled(key);
            return;
        }
        let Some(resident) = self.residents.get_mut(&key) else {
            return;
        };
        resident.answers.push(Answer::Row(reply));
        if resident.instance.cancellation() != asked.as_ref() {
            let after = resident.sub_status(false);
            if let Some(mut audit) = order.audit {
                audit.before = Some(before.word().to_owned());
                audit.after = Some(after.word().to_owned());
                resident.take_along(audit);
            }
        }
        self.mark_dirty(key);
    }

    /// Records that an instance in memory shall end, tells its handlers, and ends what can end at once.
    pub(super) fn ask_to_end(
        &mut self,
        key: InstanceKey,
        cancellation: Cancellation,
    ) -> Result<(), Rejection> {
        let cause = cancellation.cause();
        let patience = match cancellation.patience_ms {
            Some(ms) => Duration::from_millis(ms),
            None => self.shared.options.cancel_patience,
        };
        self.advance(
            key,
            Command::new(CommandKind::RequestCancel(Box::new(cancellation)), cause),
        )?;
        self.forget_empty_command(key);
        self.free_news(key);
        if let Some(resident) = self.residents.get(&key)
            && !resident.running.is_empty()
        {
            let until = Instant::now() + patience;
            for running in &resident.running {
                running.stopper.stop(until);
            }
            if !patience.is_zero() {
                self.abandon_at.entry(until).or_default().push(key);
            }
        }
        match patience.is_zero() {
            true => self.abandon(key),
            false => self.end_more(key),
        }
        Ok(())
    }

    /// What called instances have told already, and a hold or a closed gate keeps from an instance, is taken in: its end
    /// waits for theirs.
    fn free_news(&mut self, key: InstanceKey) {
        self.shared.held.lock().remove(&key);
        let domain = Domain::Instance(key);
        self.pending.unpark_domain(&domain);
        let calls = self
            .residents
            .get(&key)
            .is_some_and(|r| r.instance.children().next().is_some());
        if calls && !self.is_open() {
            let news = self.pending.take_stimuli(|row| {
                tidegate_model::Stimulus::is_of_child(&row.payload) && Domain::parse(&row.domain) == domain
            });
            self.controls.extend(news);
        }
    }

    /// Goes on ending an instance whose cancellation was asked for.
    pub(super) fn end_more(&mut self, key: InstanceKey) {
        let Some(resident) = self.residents.get_mut(&key) else {
            return;
        };
        let Some(cancellation) = resident
            .instance
            .cancellation()
            .filter(|_| resident.instance.is_cancelling())
        else {
            return;
        };
        let cause = cancellation.cause();
        let kind = CommandKind::ContinueCancel {
            most: AT_A_TIME,
            running: resident.running.iter().map(|running| running.job).collect(),
        };
        let before = resident.events.len();
        if let Err(rejection) = self.advance(key, Command::new(kind, cause)) {
            tracing::error!(instance = %key, "a cancelled instance could not be ended: {rejection}");
            return;
        }
        self.forget_empty_command(key);
        let Some(resident) = self.residents.get_mut(&key) else {
            return;
        };
        resident.has_more_to_end =
            resident.instance.is_cancelling() && resident.events.len().saturating_sub(before) > AT_A_TIME;
        self.left_by_end(key);
    }

    /// What was put by for an instance is taken up again once it has ended: it is refused then, each by its own rule.
    pub(super) fn left_by_end(&mut self, key: InstanceKey) {
        if self
            .residents
            .get(&key)
            .is_some_and(|r| r.instance.ended().is_some())
        {
            self.shared.held.lock().remove(&key);
            self.pending.unpark_domain(&Domain::Instance(key));
        }
    }

    /// No longer waits for handlers that were told to stop and have not: what they bring later is refused.
    pub(super) fn abandon(&mut self, key: InstanceKey) {
        let Some(resident) = self.residents.get_mut(&key) else {
            return;
        };
        if !resident.instance.is_cancelling() {
            return;
        }
        let mut jobs = Vec::with_capacity(resident.running.len());
        for running in resident.running.drain(..) {
            tracing::warn!(instance = %key, element = %running.element_id, event = "ActivityAbandoned", "an activity of a cancelled instance did not stop in its time; it is abandoned and its result will not be taken");
            if let Some(task) = &running.task {
                task.abort();
            }
            resident.done_in_process.push(running.job);
            jobs.push(running.job);
        }
        for job in jobs {
            let kind = CommandKind::AbandonActivity { job };
            if let Err(rejection) = self.advance(key, Command::new(kind, Cause::Deadline)) {
                tracing::warn!(instance = %key, "an abandoned activity could not be recorded: {rejection}");
            }
        }
        self.end_more(key);
    }

    /// Abandons what has had its time.
    pub(super) fn abandon_overdue(&mut self) {
        let now = Instant::now();
        while let Some(entry) = self.abandon_at.first_entry() {
            if *entry.key() > now {
                return;
            }
            for key in entry.remove() {
                self.abandon(key);
            }
        }
    }

    /// An instance whose cancellation is stored goes on ending: nobody else will come back to it.
    pub(super) fn resume_cancel(&mut self, key: InstanceKey) {
        match self.load(key) {
            Ok(true) => {
                self.end_more(key);
                self.mark_dirty(key);
            }
            Ok(false) => {}
            Err(error) => {
                tracing::warn!(instance = %key, "a cancelled instance has to wait: {error}");
                self.stalled
                    .entry(Instant::now() + super::STALL)
                    .or_default()
                    .push(key);
            }
        }
    }

    /// A command that came to nothing leaves no line in the journal.
    fn forget_empty_command(&mut self, key: InstanceKey) {
        if let Some(resident) = self.residents.get_mut(&key)
            && matches!(
                resident.events.last(),
                Some(tidegate_engine::Event::Caused { .. })
            )
        {
            resident.events.pop();
        }
    }
}
