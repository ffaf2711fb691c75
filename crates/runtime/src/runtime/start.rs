//! Starting instances, and waiting for their ends.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tidegate_model::{Cause, InstanceKey};

use super::Runtime;
use crate::api::{DEFAULT_TENANT, Definition, StartRequest, Started};
use crate::builder::blocking;
use crate::definitions::Loaded;
use crate::error::Error;
use crate::owner::{Message, StartOrder};

impl Runtime {
    /// Starts an instance.
    ///
    /// # Durability
    /// Answers when the start is on disk: with its first commit, or, while the gate is closed, when it is
    /// accepted in the queue ([`Started::accepted`]).
    ///
    /// # Errors
    /// Unknown definition, a start event that does not fit, a full queue under policy Reject, a failing store; with
    /// [`StartRequest::await_completion`], [`Error::WaitRanOut`].
    ///
    /// # Cancel safety
    /// The start stands even if the future is dropped.
    pub async fn start(&self, request: StartRequest) -> Result<Started, Error> {
        self.start_or_accept(request, false).await
    }

    /// As [`Runtime::start`]; made durable and no more if `accept_only`.
    pub(crate) async fn start_or_accept(
        &self,
        request: StartRequest,
        accept_only: bool,
    ) -> Result<Started, Error> {
        self.must_live()?;
        let tenant = request.tenant.as_deref().unwrap_or(DEFAULT_TENANT);
        let loaded = self.find(&request.definition, tenant).await?;
        let owner = match &request.idempotency_key {
            Some(key) => self.inner.owners.of_text(key),
            None => self.inner.owners.next(),
        };
        let known = request.await_completion.map(|_| Arc::new(OnceLock::new()));
        let order = StartOrder {
            loaded,
            variables: request.variables,
            business_key: request.business_key,
            idempotency_key: request.idempotency_key,
            awaits_end: known.clone(),
            cause: Cause::Client { actor: request.actor },
            begin: None,
            audit: None,
            source: request.source,
            accept_only,
        };
        let answer = self.ask(owner, |reply| Message::Start(Box::new(order), reply));
        let (Some(at_most), Some(known)) = (request.await_completion, known) else {
            return answer.await;
        };
        match tokio::time::timeout(at_most, answer).await {
            Ok(Ok(started)) if started.accepted.is_none() && !started.sub_status.is_finished() => {
                // A repeated start of an instance that goes on.
                self.wait(started.instance, at_most).await
            }
            Ok(answer) => answer,
            Err(_) => match known.get() {
                Some(instance) => Err(Error::WaitRanOut(*instance)),
                None => Err(Error::Invalid {
                    code: "wait-ran-out",
                    message: "the start was not answered in time; it may still happen".to_owned(),
                }),
            },
        }
    }

    /// Waits for the end of an instance.
    ///
    /// # Errors
    /// Unknown instance; [`Error::WaitRanOut`].
    pub async fn wait(&self, instance: InstanceKey, at_most: Duration) -> Result<Started, Error> {
        let owner = self.inner.owners.of_key(instance.get());
        let answer = self.ask(owner, |reply| Message::AwaitEnd(instance, reply));
        match tokio::time::timeout(at_most, answer).await {
            Ok(answer) => answer,
            Err(_) => Err(Error::WaitRanOut(instance)),
        }
    }

    /// # Errors
    /// No version of this process id is, or was, deployed.
    pub(crate) async fn must_know(&self, tenant: &str, process_id: &str) -> Result<(), Error> {
        let (store, id, of_tenant) = (
            self.shared().store.clone(),
            process_id.to_owned(),
            tenant.to_owned(),
        );
        match blocking(move || store.highest_version(&id, &of_tenant)).await? {
            0 => Err(Error::NoSuchProcess {
                process_id: process_id.to_owned(),
                version: None,
            }),
            _ => Ok(()),
        }
    }

    pub(crate) async fn find(&self, definition: &Definition, tenant: &str) -> Result<Arc<Loaded>, Error> {
        let definitions = &self.shared().definitions;
        match definition {
            Definition::Latest(process_id) => {
                definitions
                    .latest(tenant, process_id)
                    .ok_or_else(|| Error::NoSuchProcess {
                        process_id: process_id.clone(),
                        version: None,
                    })
            }
            Definition::Version(process_id, version) => {
                let missing = || Error::NoSuchProcess {
                    process_id: process_id.clone(),
                    version: Some(*version),
                };
                if let Some(latest) = definitions.latest(tenant, process_id)
                    && latest.row.version == *version
                {
                    return Ok(latest);
                }
                let filter = tidegate_store::DefinitionFilter {
                    kind: Some(tidegate_store::DefinitionKind::Process),
                    process_id: Some(process_id.clone()),
                    latest: false,
                    tenant: Some(tenant.to_owned()),
                };
                let shared = self.shared().clone();
                let version = *version;
                let found = blocking(move || {
                    let rows = shared
                        .store
                        .definitions(&filter, tidegate_store::Page::first(10_000))?;
                    match rows.into_iter().find(|row| row.version == version) {
                        Some(row) => shared.definitions.get(&*shared.store, row.key),
                        None => Ok(None),
                    }
                });
                found.await?.ok_or_else(missing)
            }
            Definition::Key(key) => {
                let (shared, key) = (self.shared().clone(), *key);
                let found = blocking(move || shared.definitions.get(&*shared.store, key)).await?;
                match found {
                    Some(loaded) if loaded.is_startable() && *loaded.row.tenant == *tenant => Ok(loaded),
                    _ => Err(Error::NoSuchDefinition(key)),
                }
            }
        }
    }
}
