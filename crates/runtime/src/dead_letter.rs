//! Dead letters: stimuli that failed again and again, as an operator sees and replays them.

use tidegate_model::StimulusKey;
use tidegate_store::{Commit, CommitError, DeadLetterRow, Expect, Page, Refusal, StimulusRow, Write};

use crate::builder::blocking;
use crate::error::Error;
use crate::owner::Message;
use crate::runtime::Runtime;

impl Runtime {
    /// Dead letters, newest first.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn dead_letters(&self, page: Page) -> Result<Vec<DeadLetterRow>, Error> {
        let store = self.shared().store.clone();
        blocking(move || store.dead_letters(page)).await
    }

    /// Puts a dead letter back at the end of the queue, with no attempts counted; answers with its new place. It is put
    /// back once, also when several ask for it at once: the others are told that it is gone.
    ///
    /// # Errors
    /// [`Error::NoSuchDeadLetter`], a failing store.
    pub async fn replay_dead_letter(&self, key: StimulusKey, actor: &str) -> Result<StimulusKey, Error> {
        let shared = self.shared();
        let store = shared.store.clone();
        let letter = blocking(move || store.dead_letter(key))
            .await?
            .ok_or(Error::NoSuchDeadLetter(key.get()))?;
        let row = StimulusRow {
            accepted_at: shared.now(),
            attempts: 0,
            ..letter.stimulus
        };
        let mut audit = shared.audit("DeadLetterReplayRequested", actor, None);
        audit.subject = Some(key.to_string());
        audit.before = Some(letter.code);
        let commit = Commit {
            expect: vec![Expect::DeadLetter(key)],
            writes: vec![
                Write::RemoveDeadLetter(key),
                Write::AddStimulus(row.clone()),
                Write::Audit(Box::new(audit)),
            ],
        };
        let runtime = self.clone();
        // In a task of its own: a caller that hangs up does not leave it in the queue with nobody told.
        let step = tokio::spawn(async move { runtime.replay(row, commit).await });
        step.await.map_err(|_| Error::Stopped)?
    }

    async fn replay(&self, mut row: StimulusRow, commit: Commit) -> Result<StimulusKey, Error> {
        let shared = self.shared();
        let outcome = match shared.commit(commit).await {
            Ok(outcome) => outcome,
            Err(CommitError::Refused(Refusal::DeadLetterGone(key))) => {
                return Err(Error::NoSuchDeadLetter(key.get()));
            }
            Err(CommitError::Refused(_)) => return Err(Error::NoSuchDeadLetter(row.key.get())),
            Err(CommitError::Failed { error, .. }) => return Err(error.into()),
        };
        row.key = outcome.stimuli.first().copied().ok_or(Error::Stopped)?;
        let key = row.key;
        shared
            .queue_depth
            .fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let owner = self.inner().owners.of_domain(&row.domain);
        self.inner().owners.send_to(owner, Message::Queued(vec![row]));
        shared.tick();
        Ok(key)
    }
}
