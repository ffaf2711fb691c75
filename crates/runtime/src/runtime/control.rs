//! Acting on an instance from outside.

use tidegate_model::{Cause, Command, CommandKind, ElementInstanceKey, InstanceKey, Stimulus};
use tidegate_store::{AuditRow, InstanceRow};

use super::Runtime;
use crate::api::Acceptance;
use crate::error::Error;
use crate::owner::{Message, MoveOrder};

impl Runtime {
    /// Cancels an instance. An ended one is answered unchanged. Lawful while paused and while draining.
    ///
    /// # Errors
    /// Unknown instance, a failing store.
    pub async fn cancel(
        &self,
        instance: InstanceKey,
        reason: Option<String>,
        actor: &str,
    ) -> Result<InstanceRow, Error> {
        let cause = Cause::Operator {
            actor: actor.to_owned(),
            reason: reason.clone(),
        };
        let command = Box::new(Command::new(CommandKind::Cancel, cause));
        let owner = self.inner.owners.of_key(instance.get());
        let mut audit = self.shared().audit("InstanceCancelRequested", actor, reason);
        audit.subject = Some(instance.to_string());
        audit.scope = "instance".to_owned();
        let audit = Some(Box::new(audit));
        self.ask(owner, |reply| Message::Control(instance, command, audit, reply))
            .await
    }

    pub(super) async fn move_instance(
        &self,
        instance: InstanceKey,
        stimulus: Stimulus,
        lease: Option<(ElementInstanceKey, String)>,
    ) -> Result<Acceptance, Error> {
        self.move_audited(instance, stimulus, lease, None).await
    }

    /// As [`Runtime::move_instance`], with an audit entry in the same commit.
    pub(super) async fn move_audited(
        &self,
        instance: InstanceKey,
        stimulus: Stimulus,
        lease: Option<(ElementInstanceKey, String)>,
        audit: Option<AuditRow>,
    ) -> Result<Acceptance, Error> {
        let order = Box::new(MoveOrder {
            stimulus,
            instance,
            source: Some("http.api"),
            lease,
            audit,
        });
        let owner = self.inner.owners.of_key(instance.get());
        self.ask(owner, |reply| Message::Move(order, reply)).await
    }
}
