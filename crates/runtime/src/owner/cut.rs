//! The cut: what happens to cycles that are still live at the effective deadline of a drain.

use tidegate_engine::{Event, decode_events};
use tidegate_model::{Cause, Command, CommandKind, InstanceKey, Interruption, InterruptionReason, SubStatus};
use tidegate_store::InstanceRow;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::error::Error;
use crate::status::{CycleReport, Fate};

use super::Owner;
use super::commit::{Answer, take_left};
use super::resident::Resident;

/// Why cycles are cut.
#[derive(Debug, Clone)]
pub(crate) struct CutRequest {
    pub(crate) reason: InterruptionReason,
    /// The operator's words.
    pub(crate) reason_text: Option<String>,
    /// Until when results of activities still count.
    pub(crate) results_until: Instant,
}

/// What became of one cut cycle.
#[derive(Debug)]
pub(crate) struct CutReport {
    /// Its line in the report.
    pub(crate) line: CycleReport,
    /// The record that no commit holds, where the instance is there and its interruption could not be saved.
    pub(crate) unsaved: Option<Interruption>,
}

pub(super) struct Cut {
    request: CutRequest,
    /// Those whose handlers run, and who waits for their end.
    settling: Option<(Vec<InstanceKey>, oneshot::Sender<()>)>,
    finishing: Option<oneshot::Sender<Vec<CutReport>>>,
    /// Until when marks may still become durable.
    give_up_at: Option<Instant>,
}

impl Cut {
    pub(super) fn give_up_at(&self) -> Option<Instant> {
        self.give_up_at.filter(|_| self.finishing.is_some())
    }
}

/// The line of a cycle that is still live.
pub(super) fn line_of(resident: &Resident, fate: Fate) -> CycleReport {
    let running = resident
        .running
        .last()
        .map(|running| running.element_id.to_string());
    let last = || {
        resident
            .instance
            .last_activity(&resident.loaded.definition)
            .map(|(_, element_id)| element_id.to_owned())
    };
    CycleReport {
        instance_id: resident.key(),
        source: resident
            .cycle
            .as_ref()
            .and_then(|cycle| cycle.source)
            .map(str::to_owned),
        activity: running.or_else(last),
        age_ms: resident
            .cycle
            .as_ref()
            .map_or(0, |cycle| cycle.began.elapsed().as_millis() as u64),
        fate,
    }
}

impl Owner {
    /// No new handler starts from here on, and those that run are told to stop.
    pub(super) fn begin_cut(&mut self, request: CutRequest, settled: oneshot::Sender<()>) {
        let mut running = Vec::new();
        for resident in self.residents.values().filter(|r| !r.running.is_empty()) {
            for running in &resident.running {
                running.stopper.stop(request.results_until);
            }
            running.push(resident.key());
        }
        self.cut = Some(Cut {
            request,
            settling: Some((running, settled)),
            finishing: None,
            give_up_at: None,
        });
    }

    /// Marks what is still live. The marks stand behind the owner's own commits, in the same order.
    pub(super) fn finish_cut(&mut self, give_up_at: Instant, reply: oneshot::Sender<Vec<CutReport>>) {
        let Some(cut) = &mut self.cut else {
            // Whoever asked may have run out of time.
            let _ = reply.send(std::mem::take(&mut self.fates));
            return;
        };
        cut.finishing = Some(reply);
        cut.give_up_at = Some(give_up_at);
        // The ready list is emptied first: what stands there was not started.
        self.run_ready();
        let (mut live, mut unsaved) = (Vec::new(), Vec::new());
        for resident in self
            .residents
            .values()
            .filter(|resident| resident.cycle.is_some())
        {
            if !resident.retry.is_empty() && !resident.is_marked {
                unsaved.push(resident.key());
            } else if !resident.is_at_rest() && resident.instance.ended().is_none() {
                live.push(resident.key());
            }
        }
        for key in live {
            match self.residents.get(&key) {
                // It is ended and not resumed: what still runs in it is abandoned.
                Some(resident) if resident.instance.is_cancelling() => self.abandon(key),
                _ => self.mark_interrupted(key),
            }
        }
        for key in unsaved {
            if let Some(mut resident) = self.residents.remove(&key) {
                let (mut answers, mut consumed) = (Vec::new(), Vec::new());
                take_left(&mut resident, &mut answers, &mut consumed);
                self.answer_all_failed(answers, consumed, &not_saved(), None);
                self.save_unsaved(resident, true);
            }
        }
    }

    fn mark_interrupted(&mut self, key: InstanceKey) {
        let Some(cut) = &self.cut else { return };
        let CutRequest {
            reason, reason_text, ..
        } = cut.request.clone();
        let Some(resident) = self.residents.get_mut(&key) else {
            return;
        };
        let is_abandoned = !resident.running.is_empty();
        let line = line_of(
            resident,
            if is_abandoned {
                Fate::Abandoned
            } else {
                Fate::Interrupted
            },
        );
        for running in resident.running.drain(..) {
            resident.begun.push(running.job);
            tracing::warn!(instance = %key, element = %running.element_id, "an activity did not stop when told to; it is abandoned and its result will not be taken");
            if let Some(task) = &running.task {
                task.abort();
            }
        }
        let begun = std::mem::take(&mut resident.begun);
        self.mark(key, reason, reason_text, line);
        self.note_interrupted(key, &begun);
        for waiting in self.awaiting_end.remove(&key).unwrap_or_default() {
            let _ = waiting.send(Err(Error::WaitRanOut(key)));
        }
    }

    /// Writes the mark into an instance in memory.
    fn mark(
        &mut self,
        key: InstanceKey,
        reason: InterruptionReason,
        reason_text: Option<String>,
        line: CycleReport,
    ) {
        let Some(resident) = self.residents.get(&key) else {
            return;
        };
        let record = self.interruption(resident, reason, reason_text, &line);
        let cause = match reason {
            InterruptionReason::OperatorForce => Cause::Force,
            InterruptionReason::DeadlineBreach | InterruptionReason::PersistenceFailure => Cause::Deadline,
        };
        let command = Command::new(CommandKind::Interrupt(Box::new(record)), cause);
        match self.advance(key, command) {
            Ok(()) => {
                if let Some(resident) = self.residents.get_mut(&key) {
                    resident.is_marked = true;
                }
                self.marking.insert(key, line);
            }
            Err(rejection) => {
                tracing::error!(instance = %key, "an instance could not be marked: {rejection}")
            }
        }
    }

    pub(super) fn interruption(
        &self,
        resident: &Resident,
        reason: InterruptionReason,
        reason_text: Option<String>,
        line: &CycleReport,
    ) -> Interruption {
        let last = resident.instance.last_activity(&resident.loaded.definition);
        Interruption {
            interrupted_at: self.shared.now(),
            reason,
            generation_id: self.shared.generation.to_string(),
            last_activity_id: last.map(|(element_instance, _)| element_instance),
            last_activity_node_id: last.map(|(_, element_id)| element_id.to_owned()),
            ingress_source_name: line.source.clone(),
            cycle_ms: line.age_ms,
            reason_text,
        }
    }

    /// A cycle whose commit did not happen in a drain: what is stored is marked, so that it goes on from there and is
    /// not taken for crashed. `is_ours` is false if a later generation has the store.
    pub(super) fn save_unsaved(&mut self, mut resident: Resident, is_ours: bool) {
        let key = resident.key();
        let line = line_of(&resident, Fate::PersistenceFailed);
        let record = self.interruption(&resident, InterruptionReason::PersistenceFailure, None, &line);
        let cycle = resident.cycle.take();
        self.let_go_all(&mut resident);
        drop(resident);
        if !is_ours {
            self.fates.push(CutReport { line, unsaved: None });
            return;
        }
        match self.load(key) {
            Ok(true) => {}
            // It was never there: whoever asked for it was told so.
            Ok(false) => return self.fates.push(CutReport { line, unsaved: None }),
            Err(error) => {
                tracing::error!(instance = %key, "a cut instance could not be read to be marked: {error}");
                return self.fates.push(CutReport {
                    line,
                    unsaved: Some(record),
                });
            }
        }
        let Some(stored) = self.residents.get_mut(&key) else {
            return;
        };
        if stored.row.sub_status.is_finished() {
            self.rest_if_settled(key);
            return;
        }
        stored.cycle = cycle;
        let line = CycleReport {
            fate: Fate::Interrupted,
            ..line
        };
        self.mark(key, InterruptionReason::PersistenceFailure, None, line);
        let maybe_begun = self.jobs_in_process(key);
        self.note_interrupted(key, &maybe_begun);
    }

    /// A commit was told: if it was a mark, the cycle is over.
    pub(super) fn cut_told(&mut self, key: InstanceKey, row: &InstanceRow) {
        if row.sub_status != SubStatus::Interrupted {
            return;
        }
        if let Some(line) = self.marking.remove(&key) {
            self.fates.push(CutReport { line, unsaved: None });
            // What is in memory is put away: the next generation begins from the store.
            self.residents.remove(&key);
        }
    }

    /// Says so when the last handler has ended: nothing can come any more that would still count.
    fn tell_settled(&mut self) {
        let Some(cut) = &mut self.cut else { return };
        let Some((running, _)) = &mut cut.settling else {
            return;
        };
        let residents = &self.residents;
        running.retain(|key| {
            residents
                .get(key)
                .is_some_and(|resident| !resident.running.is_empty())
        });
        if running.is_empty()
            && let Some((_, settled)) = cut.settling.take()
        {
            // Whoever asked may have run out of time.
            let _ = settled.send(());
        }
    }

    /// Answers who asked for the cut once no cycle is live, or no time is left.
    pub(super) fn settle_cut(&mut self) {
        self.tell_settled();
        let Some(cut) = &self.cut else { return };
        if cut.finishing.is_none() {
            return;
        }
        if self.residents.values().any(|resident| resident.cycle.is_some()) {
            if cut.give_up_at.is_none_or(|at| at > Instant::now()) {
                return;
            }
            self.give_up();
        }
        if let Some(reply) = self.cut.as_mut().and_then(|cut| cut.finishing.take()) {
            // Whoever asked may have run out of time.
            let _ = reply.send(std::mem::take(&mut self.fates));
        }
    }

    /// The store has not taken these in time: their records go another way.
    fn give_up(&mut self) {
        let live: Vec<InstanceKey> = self
            .residents
            .values()
            .filter(|resident| resident.cycle.is_some())
            .map(Resident::key)
            .collect();
        for key in live {
            let Some(mut resident) = self.residents.remove(&key) else {
                continue;
            };
            let line = line_of(&resident, Fate::PersistenceFailed);
            let record = self.interruption(&resident, InterruptionReason::PersistenceFailure, None, &line);
            let (mut answers, mut consumed) = (Vec::new(), Vec::new());
            take_left(&mut resident, &mut answers, &mut consumed);
            self.marking.remove(&key);
            self.fates.push(CutReport {
                line,
                unsaved: Some(record),
            });
            self.let_go_all(&mut resident);
            drop(resident);
            self.answer_all_failed(answers, consumed, &not_saved(), None);
        }
    }

    /// True if the journal has the record of this generation's cut.
    fn has_record(&self, key: InstanceKey, generation: &str) -> Result<bool, Error> {
        let is_it = |event: &Event| matches!(event, Event::WorkflowInterrupted { record } if record.generation_id == generation);
        const PAGE: usize = 500;
        let mut after = 0;
        loop {
            let rows = self.shared.store.journal(key, after, PAGE)?;
            let Some(last) = rows.last() else {
                return Ok(false);
            };
            for row in &rows {
                // A row that cannot be read was told of when the instance was loaded.
                let events = decode_events(&row.payload).unwrap_or_default();
                if events.iter().any(is_it) {
                    return Ok(true);
                }
            }
            after = last.revision;
        }
    }

    /// Marks an instance whose interruption an earlier generation could only spill. Answers false if that could not be
    /// made durable. Needs no permit: nothing is started.
    pub(super) fn mark_spilled(
        &mut self,
        key: InstanceKey,
        record: Interruption,
        done: oneshot::Sender<bool>,
    ) {
        let found = self.load(key).and_then(|is_there| {
            let resident = self.residents.get(&key).filter(|_| is_there);
            let is_executing = resident.is_some_and(|r| r.row.sub_status == SubStatus::Executing);
            // The mark may have come through after all, and the instance may have gone on since.
            Ok(is_executing && !self.has_record(key, &record.generation_id)?)
        });
        let is_live = match found {
            Ok(is_live) => is_live,
            Err(error) => {
                tracing::error!(instance = %key, "a spilled interruption could not be brought to its instance: {error}");
                let _ = done.send(false);
                return;
            }
        };
        if !is_live {
            tracing::info!(instance = %key, "a spilled interruption has nothing to mark: the instance is not executing, or not there");
            self.rest_if_settled(key);
            let _ = done.send(true);
            return;
        }
        let command = Command::new(CommandKind::Interrupt(Box::new(record)), Cause::Deadline);
        if let Err(rejection) = self.advance(key, command) {
            tracing::error!(instance = %key, "a spilled interruption does not fit its instance: {rejection}");
            let _ = done.send(true);
            return;
        }
        let maybe_begun = self.jobs_in_process(key);
        self.note_interrupted(key, &maybe_begun);
        if let Some(resident) = self.residents.get_mut(&key) {
            resident.is_marked = true;
            resident.answers.push(Answer::Spilled(done));
        }
    }
}

fn not_saved() -> Error {
    Error::Store(tidegate_store::Error::new(
        tidegate_store::ErrorKind::Unavailable,
        "the runtime stopped before the store could take this; it will be tried again by the next one",
    ))
}
