//! Deploying definitions.

use std::sync::Arc;

use sha2::{Digest, Sha256};
use tidegate_dmn::Decisions;
use tidegate_engine::{CompileOptions, StarterTrigger};
use tidegate_model::{DefinitionKey, DeploymentKey, Diagnostic, Timestamp};
use tidegate_store::{Commit, CommitError, DefinitionKind, DefinitionRow, Expect, Refusal, TimerRow, Write};

use crate::api::{DEFAULT_TENANT, DeployedDefinition, Deployment, Resource};
use crate::builder::blocking;
use crate::definitions::{Loaded, compile};
use crate::error::Error;
use crate::request;
use crate::runtime::Runtime;
use crate::shared::Shared;

/// Compiles of other files that may be tried again when somebody deploys the same process at the same moment.
const TRIES: usize = 5;

/// Everything that is wrong or doubtful in files that would be deployed together.
pub(crate) fn diagnose(
    resources: Vec<Resource>,
    options: &CompileOptions,
) -> (Vec<Prepared>, Vec<Diagnostic>) {
    let mut prepared: Vec<_> = resources
        .into_iter()
        .map(|resource| Prepared::read(resource, options))
        .collect();
    let mut diagnostics = Vec::new();
    for resource in &mut prepared {
        diagnostics.append(&mut resource.diagnostics);
    }
    twice_deployed(&prepared, &mut diagnostics);
    (prepared, diagnostics)
}

impl Runtime {
    /// Deploys files together: all of them, or none. A process that is deployed byte for byte as its newest version
    /// is keeps that version.
    ///
    /// # Errors
    /// [`Error::NotDeployable`] with everything that is wrong; [`Error::Draining`]; a failing store.
    pub async fn deploy(
        &self,
        resources: Vec<Resource>,
        tenant: Option<String>,
        actor: &str,
    ) -> Result<Deployment, Error> {
        self.deploy_if(resources, tenant, actor, |_| Ok(())).await
    }

    /// As [`Runtime::deploy`], if `is_right` says so of the processes and decisions in the files.
    pub(crate) async fn deploy_if(
        &self,
        resources: Vec<Resource>,
        tenant: Option<String>,
        actor: &str,
        is_right: impl FnOnce(&[(DefinitionKind, Arc<str>)]) -> Result<(), Error>,
    ) -> Result<Deployment, Error> {
        self.must_live()?;
        if self.quiescence().is_draining() {
            return Err(Error::Draining);
        }
        if resources.is_empty() {
            return Err(Error::Invalid {
                code: "no-resources",
                message: "there is nothing to deploy: send at least one BPMN file".to_owned(),
            });
        }
        let tenant: Arc<str> = tenant.unwrap_or_else(|| DEFAULT_TENANT.to_owned()).into();
        let options = self.shared().definitions.options.clone();
        let read = crate::tasks::blocking(move || diagnose(resources, &options));
        let (prepared, diagnostics) = read.await.map_err(|error| match error.is_panic() {
            true => Error::NotDeployable(vec![unread()]),
            false => Error::Stopped,
        })?;
        if diagnostics.iter().any(Diagnostic::is_error) {
            return Err(Error::NotDeployable(diagnostics));
        }
        let ids = prepared.iter().flat_map(|file| file.contents.ids());
        let ids: Vec<_> = ids.map(|(kind, id, _)| (kind, id)).collect();
        is_right(&ids)?;
        let (runtime, actor) = (self.clone(), actor.to_owned());
        // In a task of its own: a caller that hangs up leaves no version half known.
        let step = tokio::spawn(request::carry(async move {
            let turn = runtime.shared().definitions.turn.clone();
            let _turn = turn.lock().await;
            runtime.store_prepared(&prepared, &tenant, &actor).await
        }));
        let deployment = step.await.map_err(|_| Error::Stopped)??;
        Ok(Deployment {
            warnings: diagnostics,
            ..deployment
        })
    }

    async fn store_prepared(
        &self,
        prepared: &[Prepared],
        tenant: &Arc<str>,
        actor: &str,
    ) -> Result<Deployment, Error> {
        for _ in 0..TRIES {
            if let Some(deployment) = self.store_deployment(prepared, tenant, actor).await? {
                return Ok(deployment);
            }
        }
        Err(Error::Invalid {
            code: "deployment-conflict",
            message: "the same processes are being deployed by others again and again; try once more"
                .to_owned(),
        })
    }

    /// `None` if a version number was taken meanwhile.
    async fn store_deployment(
        &self,
        prepared: &[Prepared],
        tenant: &Arc<str>,
        actor: &str,
    ) -> Result<Option<Deployment>, Error> {
        let shared = self.shared();
        let now = shared.now();
        let deployment = DeploymentKey(shared.house_key());
        let mut commit = Commit::default();
        let mut new = Vec::new();
        let mut answer = Vec::new();
        let mut new_decisions = Vec::new();
        let mut replaced = Vec::new();
        for Prepared {
            resource, contents, ..
        } in prepared
        {
            let checksum = hexadecimal(&Sha256::digest(&resource.bytes));
            let resource_key = shared.house_key();
            let mut is_needed = false;
            for (kind, id, name) in contents.ids() {
                let newest = match kind {
                    DefinitionKind::Process => shared.definitions.latest(tenant, &id).map(|l| l.row.clone()),
                    DefinitionKind::Decision => {
                        shared.definitions.decision(tenant, &id).map(|d| d.row.clone())
                    }
                };
                if let Some(newest) = newest
                    && newest.checksum == checksum
                    && newest.resource_name == resource.name
                {
                    answer.push(view(&newest));
                    continue;
                }
                is_needed = true;
                let (store, process_id, of_tenant) = (shared.store.clone(), id.clone(), tenant.clone());
                let version = 1 + blocking(move || store.highest_version(&process_id, &of_tenant)).await?;
                let row = DefinitionRow {
                    key: DefinitionKey(shared.house_key()),
                    kind,
                    deployment,
                    resource: resource_key,
                    resource_name: resource.name.clone(),
                    checksum: checksum.clone(),
                    process_id: id.clone(),
                    version,
                    name,
                    tenant: tenant.clone(),
                    deployed_at: now,
                    is_deleted: false,
                };
                commit.expect.push(Expect::VersionFree {
                    process_id: id.to_string(),
                    tenant: tenant.to_string(),
                    version,
                });
                commit.writes.push(Write::AddDefinition(Box::new(row.clone())));
                if let Some(latest) = shared.definitions.latest(tenant, &id)
                    && kind == DefinitionKind::Process
                {
                    commit.writes.extend(disarm_starts(&latest));
                    replaced.push(latest);
                }
                answer.push(view(&row));
                match contents {
                    Contents::Processes(definitions) => {
                        let definition = definitions.iter().find(|d| **d.process_id() == *id);
                        new.extend(definition.map(|d| Arc::new(shared.definitions.loaded(row, d.clone()))));
                    }
                    Contents::Decisions(decisions) => new_decisions.push((row, decisions.clone())),
                }
            }
            if is_needed {
                commit.writes.push(Write::AddResource {
                    key: resource_key,
                    bytes: resource.bytes.as_slice().into(),
                });
            }
        }
        let timers: Vec<TimerRow> = new.iter().flat_map(|loaded| first_turns(loaded, now)).collect();
        commit.writes.extend(timers.iter().cloned().map(Write::ArmTimer));
        if !new.is_empty() || !new_decisions.is_empty() {
            let mut audit = shared.audit("DefinitionsDeployed", actor, None);
            audit.subject = Some(deployment.to_string());
            commit.writes.push(Write::Audit(Box::new(audit)));
            match shared.commit(commit).await {
                Ok(_) => {}
                Err(CommitError::Refused(Refusal::VersionTaken)) => return Ok(None),
                Err(CommitError::Refused(refusal)) => {
                    return Err(Error::Invalid {
                        code: "deployment-refused",
                        message: format!("the store refused the deployment: {refusal:?}"),
                    });
                }
                Err(CommitError::Failed { error, .. }) => return Err(error.into()),
            }
            let processes = new
                .iter()
                .map(|loaded| loaded.row.process_id.to_string())
                .collect();
            for loaded in new {
                shared.definitions.add(loaded);
            }
            self.settle_processes(tenant, processes).await?;
            for (row, decisions) in new_decisions {
                shared.definitions.add_decision(row, decisions);
            }
            for loaded in &replaced {
                forget_timers(shared, loaded);
            }
            for timer in &timers {
                shared.timers.armed(timer);
            }
        }
        Ok(Some(Deployment {
            deployment_key: deployment,
            definitions: answer,
            warnings: Vec::new(),
        }))
    }
}

/// A file that was read.
pub(crate) struct Prepared {
    resource: Resource,
    contents: Contents,
    diagnostics: Vec<Diagnostic>,
}

enum Contents {
    Processes(Vec<Arc<tidegate_engine::Definition>>),
    Decisions(Decisions),
}

impl Prepared {
    fn read(resource: Resource, options: &CompileOptions) -> Self {
        if !is_decision_model(&resource) {
            let compiled = compile(&resource.name, &resource.bytes, options);
            let contents = Contents::Processes(compiled.definitions);
            return Self {
                resource,
                contents,
                diagnostics: compiled.diagnostics,
            };
        }
        let (decisions, mut diagnostics) = tidegate_dmn::parse(&resource.name, &resource.bytes);
        let contents = match decisions {
            Some(decisions) => {
                if decisions.decisions().next().is_none() {
                    let empty = Diagnostic::error("no-decision", "the file has no decision");
                    diagnostics.push(empty.hint("add a decision").resource(&resource.name));
                }
                Contents::Decisions(decisions)
            }
            None => Contents::Processes(Vec::new()),
        };
        Self {
            resource,
            contents,
            diagnostics,
        }
    }
}

impl Contents {
    /// Kind, id and name of everything in it.
    fn ids(&self) -> Vec<(DefinitionKind, Arc<str>, Option<String>)> {
        match self {
            Self::Processes(definitions) => definitions
                .iter()
                .map(|d| {
                    (
                        DefinitionKind::Process,
                        d.process_id().clone(),
                        d.name().map(|name| name.to_string()),
                    )
                })
                .collect(),
            Self::Decisions(decisions) => decisions
                .decisions()
                .map(|d| (DefinitionKind::Decision, d.id.into(), Some(d.name.to_owned())))
                .collect(),
        }
    }
}

/// A decision model by its name, or by the namespace at its beginning.
fn is_decision_model(resource: &Resource) -> bool {
    const BEGINNING: usize = 4_096;
    let name = resource.name.to_ascii_lowercase();
    if name.ends_with(".dmn") || name.ends_with(".bpmn") {
        return name.ends_with(".dmn");
    }
    let beginning = &resource.bytes[..resource.bytes.len().min(BEGINNING)];
    let has = |text: &[u8]| beginning.windows(text.len()).any(|window| window == text);
    has(b"omg.org/spec/DMN/") && !has(b"omg.org/spec/BPMN/20100524/MODEL")
}

fn twice_deployed(prepared: &[Prepared], diagnostics: &mut Vec<Diagnostic>) {
    let mut seen = std::collections::HashMap::new();
    for Prepared {
        resource, contents, ..
    } in prepared
    {
        for (kind, id, _) in contents.ids() {
            if let Some(other) = seen.insert((kind, id.clone()), resource.name.clone()) {
                let (code, what) = match kind {
                    DefinitionKind::Process => ("duplicate-process", "process"),
                    DefinitionKind::Decision => ("duplicate-decision", "decision"),
                };
                let diagnostic = Diagnostic::error(code, format!("{what} `{id}` stands in `{other}` too"))
                    .hint("deploy one of them, or give one another id")
                    .element(Some(&id))
                    .resource(&resource.name);
                diagnostics.push(diagnostic);
            }
        }
    }
}

/// What is told when reading the files panicked: the runtime goes on, and nothing was deployed.
fn unread() -> Diagnostic {
    Diagnostic::error(
        "internal-error",
        "the files could not be read because of a bug in Tidegate; nothing was deployed",
    )
    .hint("deploy the files one by one to find the one concerned, and report it with the panic from the log")
}

/// The first turn of each timer start event.
pub(crate) fn first_turns(loaded: &Loaded, now: Timestamp) -> Vec<TimerRow> {
    let starters = loaded.definition.starters().into_iter();
    starters
        .filter(|starter| matches!(starter.trigger, StarterTrigger::Timer(_)))
        .filter_map(|starter| {
            let due_at = loaded.definition.next_start_timer(starter.element, now, 0)?;
            let owner = loaded.row.key.get();
            Some(TimerRow {
                due_at,
                owner,
                element: starter.element,
                instance: None,
                fired: 0,
            })
        })
        .collect()
}

pub(crate) fn disarm_starts(loaded: &Loaded) -> Vec<Write> {
    let starters = loaded.definition.starters().into_iter();
    starters
        .filter(|starter| matches!(starter.trigger, StarterTrigger::Timer(_)))
        .map(|starter| Write::DisarmTimer {
            owner: loaded.row.key.get(),
            element: starter.element,
        })
        .collect()
}

/// The timers of start events whose removal was committed.
pub(crate) fn forget_timers(shared: &Shared, loaded: &Loaded) {
    for write in disarm_starts(loaded) {
        if let Write::DisarmTimer { owner, element } = write {
            shared.timers.disarmed(owner, element);
        }
    }
}

fn view(row: &DefinitionRow) -> DeployedDefinition {
    DeployedDefinition {
        definition_key: row.key,
        process_id: row.process_id.to_string(),
        version: row.version,
        name: row.name.clone(),
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
