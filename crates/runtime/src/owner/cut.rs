//! The cut: what happens to cycles that are still live at the effective deadline of a drain.

use std::collections::HashMap;

use tidegate_model::{Cause, Command, CommandKind, InstanceKey, Interruption, InterruptionReason, SubStatus};
use tidegate_store::InstanceRow;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::error::Error;
use crate::status::{CycleReport, Fate};

use super::Owner;
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
pub(crate) type CutReport = CycleReport;

pub(super) struct Cut {
    request: CutRequest,
    finishing: Option<oneshot::Sender<Vec<CutReport>>>,
    /// Cycles that are being marked.
    marking: HashMap<InstanceKey, CutReport>,
    reports: Vec<CutReport>,
}

impl CutReport {
    fn of(resident: &Resident, fate: Fate) -> Self {
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
        Self {
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

    /// The report of a cycle that could not be saved.
    pub(super) fn lost(resident: &Resident) -> Self {
        Self::of(resident, Fate::PersistenceFailed)
    }
}

impl Owner {
    /// No new handler starts from here on, and those that run are told to stop.
    pub(super) fn begin_cut(&mut self, request: CutRequest) {
        for resident in self.residents.values() {
            for running in &resident.running {
                running.stopper.stop(request.results_until);
            }
        }
        self.cut = Some(Cut {
            request,
            finishing: None,
            marking: HashMap::new(),
            reports: Vec::new(),
        });
    }

    /// Marks what is still live. The marks stand behind the owner's own commits, in the same order.
    pub(super) fn finish_cut(&mut self, reply: oneshot::Sender<Vec<CutReport>>) {
        let Some(cut) = &mut self.cut else {
            let _ = reply.send(Vec::new());
            return;
        };
        cut.finishing = Some(reply);
        // The ready list is emptied first: what stands there was not started.
        self.run_ready();
        let live: Vec<InstanceKey> = self
            .residents
            .values()
            .filter(|r| r.cycle.is_some() && !r.is_at_rest() && r.instance.ended().is_none())
            .map(Resident::key)
            .collect();
        for key in live {
            self.mark_interrupted(key);
        }
    }

    fn mark_interrupted(&mut self, key: InstanceKey) {
        let Some(cut) = &self.cut else { return };
        let CutRequest {
            reason, reason_text, ..
        } = cut.request.clone();
        let now = self.shared.now();
        let generation_id = self.shared.generation.to_string();
        let Some(resident) = self.residents.get_mut(&key) else {
            return;
        };
        let is_abandoned = !resident.running.is_empty();
        let report = CutReport::of(
            resident,
            if is_abandoned {
                Fate::Abandoned
            } else {
                Fate::Interrupted
            },
        );
        let last = resident.instance.last_activity(&resident.loaded.definition);
        let record = Interruption {
            interrupted_at: now,
            reason,
            generation_id,
            last_activity_id: last.map(|(element_instance, _)| element_instance),
            last_activity_node_id: last.map(|(_, element_id)| element_id.to_owned()),
            ingress_source_name: report.source.clone(),
            cycle_ms: report.age_ms,
            reason_text,
        };
        let cause = match reason {
            InterruptionReason::OperatorForce => Cause::Force,
            InterruptionReason::DeadlineBreach | InterruptionReason::PersistenceFailure => Cause::Deadline,
        };
        for running in resident.running.drain(..) {
            tracing::warn!(instance = %key, element = %running.element_id, "an activity did not stop when told to; it is abandoned and its result will not be taken");
            if let Some(task) = running.task {
                task.abort();
            }
        }
        let command = Command::new(CommandKind::Interrupt(Box::new(record)), cause);
        match self.advance(key, command) {
            Ok(()) => {
                if let Some(resident) = self.residents.get_mut(&key) {
                    resident.is_marked = true;
                }
                if let Some(cut) = &mut self.cut {
                    cut.marking.insert(key, report);
                }
            }
            Err(rejection) => {
                tracing::error!(instance = %key, "an instance could not be marked: {rejection}")
            }
        }
        for waiting in self.awaiting_end.remove(&key).unwrap_or_default() {
            let _ = waiting.send(Err(Error::WaitRanOut(key)));
        }
    }

    /// A commit was told: if it was a mark, the cycle is over.
    pub(super) fn cut_told(&mut self, key: InstanceKey, row: &InstanceRow) {
        if row.sub_status != SubStatus::Interrupted {
            return;
        }
        let Some(cut) = &mut self.cut else { return };
        if let Some(report) = cut.marking.remove(&key) {
            cut.reports.push(report);
            // What is in memory is put away: the next generation begins from the store.
            self.residents.remove(&key);
        }
    }

    /// Answers who asked for the cut once no cycle is live.
    pub(super) fn settle_cut(&mut self) {
        let Some(cut) = &mut self.cut else { return };
        if cut.finishing.is_none() {
            return;
        }
        cut.marking.retain(|key, _| self.residents.contains_key(key));
        if self.residents.values().any(|resident| resident.cycle.is_some()) {
            return;
        }
        if let Some(reply) = cut.finishing.take() {
            let mut reports = std::mem::take(&mut cut.reports);
            reports.append(&mut self.lost);
            let _ = reply.send(reports);
        }
    }
}
