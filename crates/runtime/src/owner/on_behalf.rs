//! What a caller's hold, release or cancellation does to the instances it has called, and what these tell a caller that is
//! being cancelled: stimuli that need no permit, since they end or hold what is there. They are worked off beside the line,
//! in their own order, also while the gate is closed.

use tidegate_model::{Cancellation, InstanceKey, Stimulus};
use tidegate_store::{Expect, StimulusRow, Write};

use crate::error::Error;

use super::pending::{Domain, Item};
use super::{Owner, STALL};

impl Owner {
    /// True if a queued stimulus needs no permit.
    pub(super) fn is_control(&self, row: &StimulusRow) -> bool {
        Stimulus::is_control(&row.payload)
            || Stimulus::is_of_child(&row.payload)
                && match Domain::parse(&row.domain) {
                    Domain::Instance(key) => self
                        .residents
                        .get(&key)
                        .is_some_and(|r| r.instance.is_cancelling()),
                    Domain::Message(_) => false,
                }
    }

    /// Works off what needs no permit.
    pub(super) fn run_controls(&mut self) {
        /// The rest of the owner's work gets its turn after so many.
        const PER_ROUND: usize = 256;
        if self.pending_rests_until.is_some() {
            return;
        }
        for _ in 0..PER_ROUND {
            let Some(row) = self.controls.pop_front() else {
                return;
            };
            let Ok(stimulus) = minicbor::decode::<Stimulus>(&row.payload) else {
                let problem = Error::Invalid {
                    code: "stimulus-unreadable",
                    message: "the stimulus cannot be read by this version".to_owned(),
                };
                self.bury(row, &problem);
                continue;
            };
            self.execute_control(row, stimulus);
        }
    }

    /// Executes a stimulus that needs no permit. Its domain is counted.
    pub(super) fn execute_control(&mut self, row: StimulusRow, stimulus: Stimulus) {
        let Some(key) = stimulus.instance() else { return };
        match self.load(key) {
            Ok(true) => {}
            Ok(false) => return self.drop_stimulus(row, "its instance is not there"),
            Err(error) => {
                tracing::warn!(instance = %key, "what a caller asks has to wait: {error}");
                self.controls.push_front(row);
                self.pending_rests_until = Some(tokio::time::Instant::now() + STALL);
                return;
            }
        }
        if let Err(why) = self.control_by_caller(key, stimulus) {
            self.rest_if_settled(key);
            return self.drop_stimulus(row, &why);
        }
        self.pending.left(&Domain::Instance(key));
        if let Some(resident) = self.residents.get_mut(&key) {
            resident.expect.push(Expect::Stimulus(row.key));
            resident.riders.push(Write::RemoveStimulus(row.key));
            resident.consumed.push(Item::Stimulus(row));
        }
        self.mark_dirty(key);
    }

    fn control_by_caller(&mut self, key: InstanceKey, stimulus: Stimulus) -> Result<(), String> {
        let now = self.now();
        let Some(resident) = self.residents.get(&key) else {
            return Err("its instance is not there".to_owned());
        };
        let done = match stimulus {
            Stimulus::CancelChild {
                parent,
                is_awaited,
                patience_ms,
                ..
            } => {
                if let Some(ended) = resident.instance.ended() {
                    return Err(format!("the instance has ended before ({})", ended.word()));
                }
                let cancellation = Cancellation {
                    since: now,
                    actor: format!("instance {parent}"),
                    reason: None,
                    is_unheard: !is_awaited,
                    patience_ms,
                    caller: Some(parent.get()),
                };
                self.ask_to_end(key, cancellation)
            }
            Stimulus::HoldChild { hold, .. } => self.put_on_hold(key, hold),
            Stimulus::ReleaseChild { origins, cause, .. } => self.end_holds(key, origins, cause),
            other => {
                let done = self.command(other);
                self.left_by_end(key);
                done
            }
        };
        done.map_err(|rejection| rejection.to_string())
    }
}
