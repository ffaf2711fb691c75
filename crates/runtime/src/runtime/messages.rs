//! Publishing messages and broadcasting signals.

use super::Runtime;
use crate::api::{DEFAULT_TENANT, MessageRequest, Published, SignalRequest};
use crate::error::Error;
use crate::owner::{BroadcastOrder, Message, PublishOrder};

impl Runtime {
    /// Publishes a message.
    ///
    /// # Durability
    /// Answers when it is on disk: matched, buffered, or accepted in the queue.
    ///
    /// # Errors
    /// A full queue under policy Reject, a failing store.
    pub async fn publish(&self, request: MessageRequest) -> Result<Published, Error> {
        self.publish_or_accept(request, false).await
    }

    /// As [`Runtime::publish`]; made durable and no more if `accept_only`.
    pub(crate) async fn publish_or_accept(
        &self,
        mut request: MessageRequest,
        accept_only: bool,
    ) -> Result<Published, Error> {
        let ttl = request.ttl.unwrap_or(self.shared().options.message_ttl);
        let tenant = request.tenant.unwrap_or_else(|| DEFAULT_TENANT.to_owned());
        if request.correlation_key.is_empty()
            && let Some(key) =
                self.shared()
                    .definitions
                    .correlation_key(&tenant, &request.name, &request.variables)
        {
            request.correlation_key = key;
        }
        let owner = self
            .inner
            .owners
            .of_message(&tenant, &request.name, &request.correlation_key);
        let order = Box::new(PublishOrder {
            tenant: tenant.into(),
            name: request.name,
            correlation_key: request.correlation_key,
            variables: request.variables,
            // A century is for ever.
            ttl_ms: i64::try_from(ttl.as_millis())
                .unwrap_or(i64::MAX)
                .min(100 * 365 * 24 * 3_600_000),
            message_id: request.message_id,
            actor: request.actor,
            source: request.source,
            accept_only,
        });
        self.ask(owner, |reply| Message::Publish(order, reply)).await
    }

    /// Broadcasts a signal: every instance that waits for it takes it, and every signal start event of the newest
    /// definitions begins an instance. A signal that nobody waits for is gone.
    ///
    /// # Durability
    /// Answers when it is on disk for everybody who takes it, or accepted in the queue.
    ///
    /// # Errors
    /// A full queue under policy Reject, a failing store.
    pub async fn broadcast(&self, request: SignalRequest) -> Result<Published, Error> {
        let tenant = request.tenant.unwrap_or_else(|| DEFAULT_TENANT.to_owned());
        let owner = self.inner.owners.of_signal(&tenant, &request.name);
        let order = Box::new(BroadcastOrder {
            tenant: tenant.into(),
            name: request.name,
            variables: request.variables,
            actor: request.actor,
            source: request.source,
        });
        let mut published = self.ask(owner, |reply| Message::Broadcast(order, reply)).await?;
        published.is_buffered &= published.accepted.is_some();
        Ok(published)
    }
}
