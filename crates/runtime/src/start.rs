//! Registering processes and starting them, as a program does it: with handles.

use std::sync::Arc;

use serde::Serialize;
use tidegate_model::{DefinitionKey, Variables};
use tidegate_store::DefinitionKind;

use crate::api::{Definition, Resource, StartRequest};
use crate::error::Error;
use crate::handle::InstanceHandle;
use crate::runtime::Runtime;
use crate::unregister::{DefinitionState, LiveInstances, Unregistered};

/// Who acts when a program does not say.
pub(crate) const LIBRARY: &str = "library";

/// What an instance begins with. Everything is optional.
///
/// ```
/// # use tidegate::{Start, model::Variables};
/// let start = Start::new()
///     .variables(Variables::parse(r#"{"amount": 12}"#).unwrap())
///     .business_key("order-4711")
///     .idempotency_key("shop/4711");
/// ```
#[derive(Debug, Clone, Default)]
pub struct Start {
    variables: Variables,
    business_key: Option<String>,
    idempotency_key: Option<String>,
    tenant: Option<String>,
    actor: Option<String>,
}

impl Start {
    /// Nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Start variables.
    #[must_use]
    pub fn variables(mut self, variables: Variables) -> Self {
        self.variables = variables;
        self
    }

    /// The caller's own name for the instance; instances can be listed by it.
    #[must_use]
    pub fn business_key(mut self, key: impl Into<String>) -> Self {
        self.business_key = Some(key.into());
        self
    }

    /// The same key twice, in one tenant, is one instance: the second start answers with the first one's. It is
    /// remembered for 30 days.
    #[must_use]
    pub fn idempotency_key(mut self, key: impl Into<String>) -> Self {
        self.idempotency_key = Some(key.into());
        self
    }

    /// The tenant; [`crate::api::DEFAULT_TENANT`] if none is given.
    #[must_use]
    pub fn tenant(mut self, tenant: impl Into<String>) -> Self {
        self.tenant = Some(tenant.into());
        self
    }

    /// Who asks, for the journal; `library` if nobody is named.
    #[must_use]
    pub fn actor(mut self, actor: impl Into<String>) -> Self {
        self.actor = Some(actor.into());
        self
    }

    fn of(self, definition: Definition) -> StartRequest {
        StartRequest {
            variables: self.variables,
            business_key: self.business_key,
            idempotency_key: self.idempotency_key,
            tenant: self.tenant,
            actor: self.actor.unwrap_or_else(|| LIBRARY.to_owned()),
            ..StartRequest::new(definition)
        }
    }
}

/// A registered version of a process. Cheap to clone.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DefinitionHandle {
    #[serde(skip)]
    runtime: Runtime,
    definition_key: DefinitionKey,
    process_id: String,
    version: u32,
    tenant: Option<String>,
}

impl DefinitionHandle {
    /// Its key.
    pub fn key(&self) -> DefinitionKey {
        self.definition_key
    }

    /// Its BPMN id.
    pub fn process_id(&self) -> &str {
        &self.process_id
    }

    /// Its version, from 1.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// Starts an instance of exactly this version, also when there is a newer one.
    ///
    /// # Durability, errors, cancel safety
    /// As [`Runtime::start`]; [`Error::NoSuchDefinition`] once it is unregistered.
    pub async fn start(&self, mut start: Start) -> Result<InstanceHandle, Error> {
        if start.tenant.is_none() {
            start.tenant.clone_from(&self.tenant);
        }
        self.runtime
            .start_handled(start.of(Definition::Key(self.definition_key)))
            .await
    }

    /// Where it is in its life.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn state(&self) -> Result<DefinitionState, Error> {
        self.runtime.definition_state(self.definition_key).await
    }

    /// Unregisters it.
    ///
    /// # Durability, errors, cancel safety
    /// As [`Runtime::unregister`].
    pub async fn unregister(&self, live: LiveInstances) -> Result<Unregistered, Error> {
        self.runtime.unregister(self.definition_key, live, LIBRARY).await
    }
}

impl Runtime {
    /// Registers one BPMN file with one process. A file that differs from the newest version makes the next version,
    /// which owns everything that starts by itself from then on; the same file again is the version there is, so that
    /// a program may register at each of its starts. Several files or processes at once, and decisions, are for
    /// [`Runtime::deploy`].
    ///
    /// # Durability
    /// On disk when this returns.
    ///
    /// # Errors
    /// [`Error::NotDeployable`] with everything that is wrong; `not-one-process`, with nothing registered; [`Error::Stopped`];
    /// [`Error::Draining`]; a failing store.
    ///
    /// # Cancel safety
    /// It goes on if the future is dropped.
    pub async fn register(&self, resource: Resource) -> Result<DefinitionHandle, Error> {
        self.register_for(resource, None).await
    }

    /// As [`Runtime::register`], for a tenant.
    ///
    /// # Errors
    /// As [`Runtime::register`].
    pub async fn register_for(
        &self,
        resource: Resource,
        tenant: Option<String>,
    ) -> Result<DefinitionHandle, Error> {
        let name = resource.name.clone();
        let one_process = |found: &[(DefinitionKind, Arc<str>)]| match found {
            [(DefinitionKind::Process, _)] => Ok(()),
            found => Err(Error::Invalid {
                code: "not-one-process",
                message: format!(
                    "`{name}` has {} processes and decisions; register files with one process, or use `deploy`",
                    found.len()
                ),
            }),
        };
        let deployment = self
            .deploy_if(vec![resource], tenant.clone(), LIBRARY, one_process)
            .await?;
        let Some(definition) = deployment.definitions.into_iter().next() else {
            return Err(Error::Invalid {
                code: "no-process",
                message: "the file has no executable process".to_owned(),
            });
        };
        Ok(DefinitionHandle {
            runtime: self.clone(),
            definition_key: definition.definition_key,
            process_id: definition.process_id,
            version: definition.version,
            tenant,
        })
    }

    /// Starts an instance of the newest version of a process.
    ///
    /// # Durability, errors, cancel safety
    /// As [`Runtime::start`].
    pub async fn start_latest(&self, process_id: &str, start: Start) -> Result<InstanceHandle, Error> {
        self.start_handled(start.of(Definition::Latest(process_id.to_owned())))
            .await
    }

    /// Starts an instance of one version of a process.
    ///
    /// # Durability, errors, cancel safety
    /// As [`Runtime::start`]; [`Error::NoSuchProcess`] for a version that there is not, 0 included.
    pub async fn start_version(
        &self,
        process_id: &str,
        version: u32,
        start: Start,
    ) -> Result<InstanceHandle, Error> {
        self.start_handled(start.of(Definition::Version(process_id.to_owned(), version)))
            .await
    }

    async fn start_handled(&self, request: StartRequest) -> Result<InstanceHandle, Error> {
        let started = self.start(request).await?;
        Ok(self.handle(started.instance))
    }
}
