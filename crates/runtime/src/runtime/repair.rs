//! Putting instances right: variables, incidents, tokens, and the change to another version. Each of these moves an
//! instance, and so waits in the queue while the gate is closed; each leaves an audit entry in the commit that does it, or
//! that accepts it. What was asked is looked at first, on the instance as it is stored: a request that cannot be met is
//! refused with every reason.

use std::collections::BTreeMap;
use std::sync::Arc;

use tidegate_engine::{Change, Definition as DefinitionGraph, rehearse, rehearse_migration};
use tidegate_model::{
    Cause, CommandKind, DefinitionKey, Diagnostic, ElementInstanceKey, IncidentKey, InstanceKey, Migration,
    Modification, Plan, Rejection, Stimulus, Variables,
};
use tidegate_store::{AuditRow, InstanceFilter, Page};

use super::Runtime;
use crate::api::{Acceptance, Definition, MigrationCheck, Obstructed, Repaired, Resolution, Resource};
use crate::builder::blocking;
use crate::definitions::{Loaded, compile};
use crate::error::Error;
use crate::query::{Read, read_instance};
use crate::shared::Shared;

impl Runtime {
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
        self.set_variables_in(instance, None, variables, None, actor)
            .await
    }

    /// Changes variables of one scope: an element instance, or the instance itself for none.
    ///
    /// # Errors
    /// Unknown or ended instance, a scope that is not alive, a failing store.
    pub async fn set_variables_in(
        &self,
        instance: InstanceKey,
        scope: Option<ElementInstanceKey>,
        variables: Variables,
        reason: Option<String>,
        actor: &str,
    ) -> Result<Acceptance, Error> {
        let audit = self.repair_audit("InstanceVariablesSet", instance, actor, reason.clone());
        let stimulus = Stimulus::SetVariables {
            instance,
            variables,
            actor: actor.to_owned(),
            scope,
            reason,
        };
        self.move_audited(instance, stimulus, None, Some(audit)).await
    }

    /// Corrects variables and tries once more what an incident stopped, as one step.
    ///
    /// # Errors
    /// Unknown incident, a scope that is not alive, a failing store.
    pub async fn resolve_incident(
        &self,
        incident: IncidentKey,
        resolution: Resolution,
        actor: &str,
    ) -> Result<Acceptance, Error> {
        let store = self.shared().store.clone();
        let row = blocking(move || store.incident(incident))
            .await?
            .ok_or(Error::NoSuchIncident(incident))?;
        let Resolution {
            retries,
            scope,
            variables,
            reason,
        } = resolution;
        let mut audit = self.repair_audit("IncidentResolveRequested", row.instance, actor, reason.clone());
        audit.subject = Some(incident.to_string());
        let stimulus = Stimulus::ResolveIncident {
            instance: row.instance,
            incident,
            retries,
            scope,
            variables,
            cause: operator(actor, reason),
        };
        self.move_audited(row.instance, stimulus, None, Some(audit)).await
    }

    /// What moving tokens would do, as of the last commits. Changes nothing.
    ///
    /// # Errors
    /// Unknown or ended instance; it would be refused: every reason; a failing store.
    pub async fn plan_modification(
        &self,
        instance: InstanceKey,
        modification: Modification,
    ) -> Result<Plan, Error> {
        let shared = self.shared().clone();
        let read = read(&shared, instance).await?;
        let kind = CommandKind::Modify(Box::new(modification));
        let now = shared.now();
        let planned = rehearsed(move || rehearse(&read.loaded.definition, &read.instance, kind, now)).await?;
        Ok(planned?)
    }

    /// Moves tokens: ends what the modification names, and goes on where it says. Everything happens, or nothing.
    ///
    /// # Errors
    /// As [`Runtime::plan_modification`].
    pub async fn modify(
        &self,
        instance: InstanceKey,
        modification: Modification,
        reason: Option<String>,
        actor: &str,
    ) -> Result<Repaired, Error> {
        let plan = self.plan_modification(instance, modification.clone()).await?;
        let audit = self.repair_audit("InstanceModificationRequested", instance, actor, reason.clone());
        let stimulus = Stimulus::Modify {
            instance,
            modification,
            cause: operator(actor, reason),
        };
        let acceptance = self.move_audited(instance, stimulus, None, Some(audit)).await?;
        Ok(Repaired { acceptance, plan })
    }

    /// What changing to another version would do, as of the last commits. Changes nothing.
    ///
    /// # Errors
    /// Unknown or ended instance; no such definition, or not one of its process; it would be refused: every reason; a
    /// failing store.
    pub async fn plan_migration(
        &self,
        instance: InstanceKey,
        to: &Definition,
        mapping: BTreeMap<String, String>,
    ) -> Result<Plan, Error> {
        let read = read(self.shared(), instance).await?;
        let new = self.target(&read, to).await?;
        rehearse_change(self.shared(), read, &Target::of(&new), mapping).await
    }

    /// Changes an instance to another version of its process, newer or older. `mapping` gives for ids of elements and flows
    /// their ids there; what it does not name keeps its id.
    ///
    /// # Errors
    /// As [`Runtime::plan_migration`].
    pub async fn migrate(
        &self,
        instance: InstanceKey,
        to: &Definition,
        mapping: BTreeMap<String, String>,
        reason: Option<String>,
        actor: &str,
    ) -> Result<Repaired, Error> {
        let read = read(self.shared(), instance).await?;
        let new = self.target(&read, to).await?;
        let mut audit = self.repair_audit("InstanceMigrationRequested", instance, actor, reason.clone());
        audit.before = Some(format!("version {}", read.row.version));
        audit.after = Some(format!("version {}", new.row.version));
        let target = Target::of(&new);
        let plan = rehearse_change(self.shared(), read, &target, mapping.clone()).await?;
        let stimulus = Stimulus::Migrate {
            instance,
            migration: Migration {
                definition: new.row.key,
                mapping,
            },
            cause: operator(actor, reason),
        };
        let acceptance = self.move_audited(instance, stimulus, None, Some(audit)).await?;
        Ok(Repaired { acceptance, plan })
    }

    /// Tries the change to a version with the live instances of all other versions of its process, and changes none: what it
    /// finds is what would stand in the way. Looks at one page of instances, newest first.
    ///
    /// # Errors
    /// No such definition; a failing store.
    pub async fn check_migration(
        &self,
        to: &Definition,
        tenant: &str,
        mapping: BTreeMap<String, String>,
        page: Page,
    ) -> Result<MigrationCheck, Error> {
        let new = self.find(to, tenant).await?;
        self.check_against(&Target::of(&new), mapping, page).await
    }

    /// As [`Runtime::check_migration`], for a version that is not deployed: the process of this id in `file`.
    ///
    /// # Errors
    /// [`Error::NotDeployable`] with everything that is wrong with the file; no such process in it; a failing store.
    pub async fn check_migration_to_file(
        &self,
        file: Resource,
        process_id: Option<&str>,
        tenant: &str,
        mapping: BTreeMap<String, String>,
        page: Page,
    ) -> Result<MigrationCheck, Error> {
        let target = self.not_deployed(file, process_id, tenant).await?;
        self.check_against(&target, mapping, page).await
    }

    /// What changing to a version that is not deployed would do: the process in `file`. Changes nothing.
    ///
    /// # Errors
    /// As for [`Runtime::plan_migration`]; [`Error::NotDeployable`].
    pub async fn plan_migration_to_file(
        &self,
        instance: InstanceKey,
        file: Resource,
        mapping: BTreeMap<String, String>,
    ) -> Result<Plan, Error> {
        let read = read(self.shared(), instance).await?;
        let process_id = read.row.process_id.to_string();
        let tenant = read.row.tenant.clone();
        let target = self.not_deployed(file, Some(&process_id), &tenant).await?;
        rehearse_change(self.shared(), read, &target, mapping).await
    }

    /// The process of a file as the next version of it.
    async fn not_deployed(
        &self,
        file: Resource,
        process_id: Option<&str>,
        tenant: &str,
    ) -> Result<Target, Error> {
        let (shared, name) = (self.shared().clone(), file.name.clone());
        let read =
            crate::tasks::blocking(move || compile(&file.name, &file.bytes, &shared.definitions.options));
        let compiled = read.await.map_err(|_| Error::Stopped)?;
        if compiled.diagnostics.iter().any(Diagnostic::is_error) {
            return Err(Error::NotDeployable(compiled.diagnostics));
        }
        let is_wanted = |id: &str| process_id.is_none_or(|wanted| wanted == id);
        let mut found = compiled.definitions.into_iter();
        let mut found = found
            .by_ref()
            .filter(|definition| is_wanted(definition.process_id()));
        let (definition, others) = (found.next(), found.count());
        let refuse = |message| {
            Err(Error::Invalid {
                code: "process-not-in-file",
                message,
            })
        };
        let definition = match (definition, process_id) {
            (Some(definition), _) if others == 0 => definition,
            (Some(_), _) => return refuse(format!("`{name}` has several processes; say which, by its id")),
            (None, Some(id)) => return refuse(format!("`{name}` has no executable process `{id}`")),
            (None, None) => return refuse(format!("`{name}` has no executable process")),
        };
        let id = definition.process_id().to_string();
        let (store, of_tenant, of_process) = (self.shared().store.clone(), tenant.to_owned(), id.clone());
        let highest = blocking(move || store.highest_version(&of_process, &of_tenant)).await?;
        Ok(Target {
            key: NOT_DEPLOYED,
            version: highest + 1,
            process_id: id,
            tenant: tenant.to_owned(),
            definition,
        })
    }

    async fn check_against(
        &self,
        new: &Target,
        mapping: BTreeMap<String, String>,
        page: Page,
    ) -> Result<MigrationCheck, Error> {
        let filter = InstanceFilter {
            process_id: Some(new.process_id.clone()),
            tenant: Some(new.tenant.clone()),
            ..InstanceFilter::running()
        };
        let rows = self.instances(filter, page).await?;
        let mut check = MigrationCheck {
            definition_key: (new.key != NOT_DEPLOYED).then_some(new.key),
            version: new.version,
            next: (rows.len() == page.limit)
                .then(|| rows.last().map(|row| row.key))
                .flatten(),
            there_already: 0,
            can_change: 0,
            obstructed: Vec::new(),
        };
        for row in rows {
            if row.definition == new.key {
                check.there_already += 1;
                continue;
            }
            let read = match read(self.shared(), row.key).await {
                Ok(read) => read,
                // It was forgotten while the others were looked at.
                Err(Error::NoSuchInstance(_)) => continue,
                Err(error) => return Err(error),
            };
            match rehearse_change(self.shared(), read, new, mapping.clone()).await {
                Ok(_) => check.can_change += 1,
                Err(Error::Rejected(Rejection::Obstructed(reasons))) => check.obstructed.push(Obstructed {
                    instance_key: row.key,
                    version: row.version,
                    reasons,
                }),
                // It has ended meanwhile.
                Err(Error::Rejected(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(check)
    }

    async fn target(&self, read: &Read, to: &Definition) -> Result<Arc<Loaded>, Error> {
        let (is, new) = (&read.row, self.find(to, &read.row.tenant).await?);
        let refuse = |code, message| Err(Error::Invalid { code, message });
        if new.row.is_deleted || is.tenant != new.row.tenant {
            return Err(Error::NoSuchDefinition(new.row.key));
        }
        if is.process_id != new.row.process_id {
            let message = format!(
                "instance {} is of process `{}`; it can change to another version of that, not to `{}`",
                is.key, is.process_id, new.row.process_id
            );
            return refuse("other-process", message);
        }
        if is.definition == new.row.key {
            let message = format!("instance {} has version {} already", is.key, is.version);
            return refuse("same-version", message);
        }
        Ok(new)
    }

    fn repair_audit(
        &self,
        action: &str,
        instance: InstanceKey,
        actor: &str,
        reason: Option<String>,
    ) -> AuditRow {
        let mut audit = self.shared().audit(action, actor, reason);
        audit.subject = Some(instance.to_string());
        audit.scope = "instance".to_owned();
        audit
    }
}

/// What an instance changes to.
struct Target {
    key: DefinitionKey,
    version: u32,
    process_id: String,
    tenant: String,
    definition: Arc<DefinitionGraph>,
}

/// The key of a definition that is not deployed.
const NOT_DEPLOYED: DefinitionKey = DefinitionKey(0);

impl Target {
    fn of(loaded: &Loaded) -> Self {
        Self {
            key: loaded.row.key,
            version: loaded.row.version,
            process_id: loaded.row.process_id.to_string(),
            tenant: loaded.row.tenant.to_string(),
            definition: loaded.definition.clone(),
        }
    }
}

/// Tries a change of version on an instance as it is stored.
///
/// # Errors
/// Unknown or ended instance; no such definition; it would be refused: every reason; a failing store.
pub(crate) async fn try_migration(
    shared: &Arc<Shared>,
    instance: InstanceKey,
    migration: &Migration,
) -> Result<Plan, Error> {
    let read = read(shared, instance).await?;
    let (of, key) = (shared.clone(), migration.definition);
    let found = blocking(move || of.definitions.get(&*of.store, key)).await?;
    let new = found
        .filter(|new| !new.row.is_deleted)
        .ok_or(Error::NoSuchDefinition(key))?;
    rehearse_change(shared, read, &Target::of(&new), migration.mapping.clone()).await
}

async fn rehearse_change(
    shared: &Shared,
    read: Read,
    new: &Target,
    mapping: BTreeMap<String, String>,
) -> Result<Plan, Error> {
    let (key, definition, now) = (new.key, new.definition.clone(), shared.now());
    let planned = rehearsed(move || {
        let migration = Migration {
            definition: key,
            mapping,
        };
        let change = Change {
            old: &read.loaded.definition,
            from: read.row.definition,
            new: &definition,
            migration: &migration,
            cause: Cause::Engine,
        };
        rehearse_migration(&change, &read.instance, now)
    });
    Ok(planned.await??)
}

async fn read(shared: &Arc<Shared>, key: InstanceKey) -> Result<Read, Error> {
    let shared = shared.clone();
    let found = blocking(move || read_instance(&shared, key)).await?;
    found.ok_or(Error::NoSuchInstance(key))
}

/// Runs what takes as long as the model makes it, on a thread that may.
async fn rehearsed(
    plan: impl FnOnce() -> Result<Plan, Rejection> + Send + 'static,
) -> Result<Result<Plan, Rejection>, Error> {
    blocking(move || Ok(plan())).await
}

fn operator(actor: &str, reason: Option<String>) -> Cause {
    Cause::Operator {
        actor: actor.to_owned(),
        reason,
    }
}
