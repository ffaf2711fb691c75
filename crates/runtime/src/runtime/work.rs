//! What workers and people report: jobs, user tasks, incidents.

use std::time::Duration;

use tidegate_model::stimulus::JobOutcome;
use tidegate_model::{Cause, Command, CommandKind, ElementInstanceKey, IncidentKey, Stimulus, Variables};

use super::Runtime;
use crate::api::Acceptance;
use crate::builder::blocking;
use crate::error::Error;
use crate::owner::Message;

impl Runtime {
    /// Completes a leased job.
    ///
    /// # Errors
    /// [`Error::StaleLease`], [`Error::NoSuchJob`], a failing store.
    pub async fn complete_job(
        &self,
        job: ElementInstanceKey,
        lease_token: &str,
        variables: Variables,
    ) -> Result<Acceptance, Error> {
        self.report_job(job, lease_token, JobOutcome::Complete { variables })
            .await
    }

    /// Reports a technical failure of a leased job.
    ///
    /// # Errors
    /// As for [`Runtime::complete_job`].
    pub async fn fail_job(
        &self,
        job: ElementInstanceKey,
        lease_token: &str,
        message: String,
        retries: Option<u32>,
        backoff: Option<Duration>,
    ) -> Result<Acceptance, Error> {
        let retry_at = backoff.map(|b| {
            self.shared()
                .now()
                .plus_ms(i64::try_from(b.as_millis()).unwrap_or(i64::MAX))
        });
        self.report_job(
            job,
            lease_token,
            JobOutcome::Fail {
                message,
                retries,
                retry_at,
            },
        )
        .await
    }

    /// Ends a leased job in a BPMN error.
    ///
    /// # Errors
    /// As for [`Runtime::complete_job`].
    pub async fn throw_job_error(
        &self,
        job: ElementInstanceKey,
        lease_token: &str,
        code: String,
        message: String,
        variables: Variables,
    ) -> Result<Acceptance, Error> {
        self.report_job(
            job,
            lease_token,
            JobOutcome::Error {
                code,
                message,
                variables,
            },
        )
        .await
    }

    /// Nobody knows how far this leased job came. That it is gone or leased anew meanwhile is fine.
    pub(crate) async fn lose_job(
        &self,
        job: &tidegate_store::JobRow,
        lease_token: &str,
    ) -> Result<(), Error> {
        let stimulus = Stimulus::JobOutcome {
            instance: job.instance,
            job: job.key,
            outcome: JobOutcome::Lost,
            worker: job.worker.clone().unwrap_or_default(),
        };
        let lease = (job.key, lease_token.to_owned());
        match self.move_instance(job.instance, stimulus, Some(lease)).await {
            Ok(_)
            | Err(
                Error::NoSuchJob(_) | Error::StaleLease(_) | Error::NoSuchInstance(_) | Error::Rejected(_),
            ) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn report_job(
        &self,
        job: ElementInstanceKey,
        lease_token: &str,
        outcome: JobOutcome,
    ) -> Result<Acceptance, Error> {
        let store = self.shared().store.clone();
        let row = blocking(move || store.job(job))
            .await?
            .ok_or(Error::NoSuchJob(job.get()))?;
        let worker = row.worker.unwrap_or_default();
        let stimulus = Stimulus::JobOutcome {
            instance: row.instance,
            job,
            outcome,
            worker,
        };
        self.move_instance(row.instance, stimulus, Some((job, lease_token.to_owned())))
            .await
    }

    /// Gives a user task to a person, or back to all.
    ///
    /// # Errors
    /// Unknown task; [`Error::UserTaskClaimed`] when somebody else has it.
    pub async fn claim_user_task(
        &self,
        task: ElementInstanceKey,
        assignee: Option<String>,
        actor: &str,
    ) -> Result<(), Error> {
        let row = self.user_task_row(task).await?;
        if assignee.is_some() && row.assignee.is_some() && row.assignee != assignee {
            return Err(Error::UserTaskClaimed { task: task.get() });
        }
        let cause = Cause::Client {
            actor: actor.to_owned(),
        };
        let command = Box::new(Command::new(
            CommandKind::AssignUserTask { task, assignee },
            cause,
        ));
        let owner = self.inner.owners.of_key(row.instance.get());
        self.ask(owner, |reply| {
            Message::Control(row.instance, command, None, reply)
        })
        .await
        .map(drop)
    }

    /// Completes a user task.
    ///
    /// # Errors
    /// Unknown task, a failing store.
    pub async fn complete_user_task(
        &self,
        task: ElementInstanceKey,
        variables: Variables,
        actor: &str,
    ) -> Result<Acceptance, Error> {
        let row = self.user_task_row(task).await?;
        let stimulus = Stimulus::CompleteUserTask {
            instance: row.instance,
            task,
            variables,
            actor: actor.to_owned(),
        };
        self.move_instance(row.instance, stimulus, None).await
    }

    async fn user_task_row(&self, task: ElementInstanceKey) -> Result<tidegate_store::UserTaskRow, Error> {
        let store = self.shared().store.clone();
        blocking(move || store.user_task(task))
            .await?
            .ok_or(Error::NoSuchUserTask(task.get()))
    }

    /// Tries once more what an incident stopped.
    ///
    /// # Errors
    /// Unknown incident, a failing store.
    pub async fn retry_incident(
        &self,
        incident: IncidentKey,
        retries: Option<u32>,
        actor: &str,
    ) -> Result<Acceptance, Error> {
        let store = self.shared().store.clone();
        let row = blocking(move || store.incident(incident))
            .await?
            .ok_or(Error::NoSuchIncident(incident))?;
        let stimulus = Stimulus::RetryIncident {
            instance: row.instance,
            incident,
            retries,
            actor: actor.to_owned(),
        };
        let mut audit = self.shared().audit("IncidentRetryRequested", actor, None);
        audit.subject = Some(incident.to_string());
        audit.scope = "instance".to_owned();
        self.move_audited(row.instance, stimulus, None, Some(audit)).await
    }
}
