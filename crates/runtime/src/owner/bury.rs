//! Stimuli that fail again and again: each failed attempt is counted, and after the last one the stimulus is put aside as
//! a dead letter, so that what follows it in its domain goes on.

use tidegate_store::{Commit, CommitError, DeadLetterRow, Expect, Refusal, StimulusRow, Write};
use tokio::time::Instant;

use crate::error::Error;
use crate::shared::Counters;

use super::commit::Prepared;
use super::pending::{Domain, Item};
use super::{Owner, STALL};

impl Owner {
    /// An attempt at a stimulus failed by its own fault. Its domain is counted.
    pub(super) fn attempt_failed(&mut self, mut row: StimulusRow, problem: &Error) {
        row.attempts += 1;
        if row.attempts >= self.shared.options.stimulus_attempts {
            return self.bury(row, problem);
        }
        tracing::warn!(stimulus = %row.key, domain = row.domain, attempts = row.attempts, "a queued stimulus failed and is tried again: {problem}");
        self.loose.push(Prepared {
            commit: Commit {
                expect: vec![Expect::Stimulus(row.key)],
                writes: vec![Write::StimulusFailed(row.key)],
            },
            // Not counted in the store, the attempt is counted again after a restart.
            then: Box::new(|_, _| {}),
        });
        self.pending
            .park(Item::Stimulus(row), Some(Instant::now() + STALL));
    }

    /// Puts a stimulus aside as a dead letter.
    pub(super) fn bury(&mut self, row: StimulusRow, problem: &Error) {
        let letter = DeadLetterRow {
            stimulus: row.clone(),
            code: problem.code().to_owned(),
            error: problem.to_string(),
            died_at: self.now(),
        };
        let commit = Commit {
            expect: vec![Expect::Stimulus(row.key)],
            writes: vec![
                Write::RemoveStimulus(row.key),
                Write::AddDeadLetter(Box::new(letter)),
            ],
        };
        let problem = problem.to_string();
        self.loose.push(Prepared {
            commit,
            then: Box::new(move |owner, result| {
                let domain = Domain::parse(&row.domain);
                match result {
                    Ok(_) => {
                        Counters::add(&owner.shared.counters.dead_letters, 1);
                        tracing::error!(stimulus = %row.key, domain = row.domain, attempts = row.attempts, event = "StimulusDead", "a stimulus failed again and again and is put aside: {problem}");
                        owner.shared.queue_depth.fetch_sub(1, std::sync::atomic::Ordering::Relaxed);
                        owner.pending.left(&domain);
                        owner.start_is_dead(&domain);
                    }
                    Err(CommitError::Refused(Refusal::StimulusGone(_))) => owner.pending.left(&domain),
                    Err(_) => owner.pending.park(Item::Stimulus(row), Some(Instant::now() + STALL)),
                }
            }),
        });
    }
}
