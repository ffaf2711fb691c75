//! Acting on an instance from outside.

use tidegate_model::{Cause, Command, CommandKind, ElementInstanceKey, InstanceKey, Stimulus, Variables};
use tidegate_store::InstanceRow;

use super::Runtime;
use crate::api::Acceptance;
use crate::builder::blocking;
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
        let before = self.instance_row(instance).await?;
        let row = self
            .ask(owner, |reply| Message::Control(instance, command, reply))
            .await?;
        if before.sub_status != row.sub_status {
            let mut audit = self.shared().audit("InstanceCancelRequested", actor, reason);
            audit.subject = Some(instance.to_string());
            audit.scope = "instance".to_owned();
            audit.before = Some(before.sub_status.word().to_owned());
            audit.after = Some(row.sub_status.word().to_owned());
            self.shared().write_audit(audit).await;
        }
        Ok(row)
    }

    /// Changes variables of an instance from outside.
    ///
    /// # Errors
    /// Unknown or ended instance, a failing store.
    pub async fn set_variables(
        &self,
        instance: InstanceKey,
        variables: Variables,
        actor: &str,
    ) -> Result<Acceptance, Error> {
        let actor = actor.to_owned();
        self.move_instance(
            instance,
            Stimulus::SetVariables {
                instance,
                variables,
                actor,
            },
            None,
        )
        .await
    }

    pub(super) async fn move_instance(
        &self,
        instance: InstanceKey,
        stimulus: Stimulus,
        lease: Option<(ElementInstanceKey, String)>,
    ) -> Result<Acceptance, Error> {
        let order = Box::new(MoveOrder {
            stimulus,
            instance,
            source: Some("http.api"),
            lease,
        });
        let owner = self.inner.owners.of_key(instance.get());
        self.ask(owner, |reply| Message::Move(order, reply)).await
    }

    pub(crate) async fn instance_row(&self, instance: InstanceKey) -> Result<InstanceRow, Error> {
        let store = self.shared().store.clone();
        blocking(move || store.instance(instance))
            .await?
            .ok_or(Error::NoSuchInstance(instance))
    }
}
