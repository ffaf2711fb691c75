//! Doing again what a finished instance did, from an element on. What has ended stays as it is: another instance takes
//! over its variables and begins where it is told to.

use tidegate_engine::{Instance, rehearse};
use tidegate_model::{Beginning, Cause, CommandKind, InstanceKey, Plan, Variables};

use crate::api::{Definition, Started};
use crate::builder::blocking;
use crate::error::Error;
use crate::owner::{Message, StartOrder, start_command};
use crate::query::read_instance;
use crate::runtime::Runtime;

/// What is to be done again.
#[derive(Debug, Clone)]
pub struct RestartRequest {
    /// The instance that has ended.
    pub instance: InstanceKey,
    /// Where the new one begins; at its start if there is none.
    pub begin: Vec<Beginning>,
    /// Variables that are put over those with which the other one ended.
    pub variables: Variables,
    /// The definition of the new one; the same one if there is none.
    pub definition: Option<Definition>,
    /// Why.
    pub reason: Option<String>,
    /// Who asks.
    pub actor: String,
}

impl RestartRequest {
    /// From these places on, with the variables and the definition that it had.
    pub fn from(instance: InstanceKey, begin: Vec<Beginning>, actor: impl Into<String>) -> Self {
        Self {
            instance,
            begin,
            variables: Variables::new(),
            definition: None,
            reason: None,
            actor: actor.into(),
        }
    }
}

/// What a restart came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Restarted {
    /// The new instance.
    pub started: Started,
    /// What begins in it.
    pub plan: Plan,
}

/// A restart that was looked at.
struct Looked {
    order: StartOrder,
    plan: Plan,
}

impl Runtime {
    /// What [`Runtime::restart`] would do. Changes nothing.
    ///
    /// # Errors
    /// As for [`Runtime::restart`].
    pub async fn plan_restart(&self, request: RestartRequest) -> Result<Plan, Error> {
        Ok(self.look_at(request).await?.plan)
    }

    /// Begins a new instance with the variables of one that has ended, from the places that are named. It has the
    /// tenant and the business key of the other one, and its first event says which that was. It goes through the gate like
    /// any start: while that is closed it is accepted and waits.
    ///
    /// # Durability
    /// Answers when the new instance, or its place in the queue, is on disk together with its audit entry.
    ///
    /// # Errors
    /// Unknown or live instance; no such definition, or one of another process; a place where nothing can begin: every
    /// reason; a full queue under policy Reject; a failing store.
    ///
    /// # Cancel safety
    /// The start stands even if the future is dropped.
    pub async fn restart(&self, request: RestartRequest) -> Result<Restarted, Error> {
        self.must_live()?;
        let Looked { order, plan } = self.look_at(request).await?;
        let owner = self.inner().owners.next();
        let started = self.ask(owner, |reply| Message::Start(Box::new(order), reply));
        let started = started.await?;
        Ok(Restarted { started, plan })
    }

    async fn look_at(&self, request: RestartRequest) -> Result<Looked, Error> {
        let (shared, key) = (self.shared().clone(), request.instance);
        let found = blocking(move || read_instance(&shared, key)).await?;
        let read = found.ok_or(Error::NoSuchInstance(key))?;
        let row = read.row;
        let refuse = |code, message| Err(Error::Invalid { code, message });
        if !row.sub_status.is_finished() {
            let message = format!(
                "instance {key} has not ended; move its tokens with a modification, or cancel it first"
            );
            return refuse("instance-not-ended", message);
        }
        let definition = request.definition.unwrap_or(Definition::Key(row.definition));
        let loaded = self.find(&definition, &row.tenant).await?;
        if loaded.row.process_id != row.process_id {
            let message = format!(
                "instance {key} is of process `{}`; it can be done again with a version of that, not with `{}`",
                row.process_id, loaded.row.process_id
            );
            return refuse("other-process", message);
        }
        let mut variables = read.instance.variables().clone();
        variables.merge(request.variables);
        let begin = (!request.begin.is_empty()).then_some(request.begin);
        let kind: CommandKind = start_command(None, begin.clone(), variables.clone());
        let (definition, now) = (loaded.definition.clone(), self.shared().now());
        let plan = blocking(move || Ok(rehearse(&definition, &Instance::new(key), kind, now))).await??;
        let words = match &request.reason {
            Some(reason) => format!("restart of instance {key}: {reason}"),
            None => format!("restart of instance {key}"),
        };
        let mut audit = self
            .shared()
            .audit("InstanceRestartRequested", &request.actor, request.reason);
        audit.subject = Some(key.to_string());
        audit.scope = "instance".to_owned();
        audit.before = Some(row.sub_status.word().to_owned());
        let order = StartOrder {
            loaded,
            variables,
            business_key: row.business_key,
            idempotency_key: None,
            awaits_end: None,
            cause: Cause::Operator {
                actor: request.actor,
                reason: Some(words),
            },
            begin,
            audit: Some(audit),
            source: None,
            accept_only: false,
        };
        Ok(Looked { order, plan })
    }
}
