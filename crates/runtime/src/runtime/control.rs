//! Acting on an instance from outside. Its control (suspend, resume, cancel) is in `instance_control.rs`.

use tidegate_model::{ElementInstanceKey, InstanceKey, Stimulus};
use tidegate_store::AuditRow;

use super::Runtime;
use crate::api::Acceptance;
use crate::error::Error;
use crate::owner::{Message, MoveOrder};

impl Runtime {
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
