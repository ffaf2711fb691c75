//! Putting instances right: variables, incidents, tokens, and the change to another version.

use std::collections::BTreeMap;

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use tidegate::Error;
use tidegate::api::{Acceptance, DEFAULT_TENANT, Definition, Repaired, Resolution, Resource};
use tidegate::model::{
    Beginning, DefinitionKey, ElementInstanceKey, Ending, IncidentKey, InstanceKey, Modification, Place,
    Plan, Variables,
};

use tidegate::restart::{RestartRequest, Restarted};

use crate::auth::Tenants;
use crate::cursor::Paging;
use crate::extract::{Actor, Key, Query, Shell, name, reason, required, to_the_end};
use crate::{Problem, body, views};

/// Entries of a mapping: more than any model has elements.
const MAX_MAPPING: usize = 10_000;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Where {
    scope_key: Option<ElementInstanceKey>,
    reason: Option<String>,
}

pub(super) async fn set_variables(
    shell: Shell,
    Actor(actor): Actor,
    Key(key): Key<InstanceKey>,
    Query(place): Query<Where>,
    body::Body(variables): body::Body<Variables>,
) -> Result<Response, Problem> {
    let reason = reason(place.reason)?;
    let scope = place.scope_key;
    let set = shell.0.set_variables_in(key, scope, variables, reason, &actor);
    let acceptance = set.await.map_err(|error| shell.problem(error))?;
    if let Acceptance::Queued(_) = acceptance {
        return Ok(views::acceptance(acceptance, Some(key)).into_response());
    }
    super::instances::variables(shell, Key(key))
        .await
        .map(IntoResponse::into_response)
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Resolve {
    retries: Option<u32>,
    scope_key: Option<ElementInstanceKey>,
    #[serde(default)]
    variables: Variables,
    reason: Option<String>,
}

pub(super) async fn resolve(
    shell: Shell,
    Actor(actor): Actor,
    Key(key): Key<IncidentKey>,
    body::Optional(resolve): body::Optional<Resolve>,
) -> Result<(StatusCode, Json<Value>), Problem> {
    let resolution = Resolution {
        retries: resolve.retries,
        scope: resolve.scope_key,
        variables: resolve.variables,
        reason: reason(resolve.reason)?,
    };
    let acceptance = shell.0.resolve_incident(key, resolution, &actor).await;
    acceptance
        .map(|acceptance| views::acceptance(acceptance, None))
        .map_err(|error| shell.problem(error))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Terminate {
    element_id: Option<String>,
    element_instance_key: Option<ElementInstanceKey>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Activate {
    element_id: Option<String>,
    after_element_id: Option<String>,
    flow_id: Option<String>,
    scope_key: Option<ElementInstanceKey>,
    #[serde(default)]
    variables: Variables,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Modify {
    #[serde(default)]
    terminate: Vec<Terminate>,
    #[serde(default)]
    activate: Vec<Activate>,
    #[serde(default)]
    variables: Variables,
    reason: Option<String>,
    #[serde(default)]
    dry_run: bool,
}

/// Where something begins.
fn beginnings(activate: Vec<Activate>) -> Result<Vec<Beginning>, Problem> {
    let begin = activate.into_iter().map(|activate| {
        let place = match (activate.element_id, activate.after_element_id, activate.flow_id) {
            (Some(id), None, None) => Place::Before(required("elementId", id)?),
            (None, Some(id), None) => Place::After(required("afterElementId", id)?),
            (None, None, Some(id)) => Place::Flow(required("flowId", id)?),
            _ => {
                return Err(Problem::bad_request(
                    "invalid-request",
                    "each of `activate` names one place: `elementId`, `afterElementId` or `flowId`",
                ));
            }
        };
        Ok(Beginning {
            place,
            scope: activate.scope_key,
            variables: activate.variables,
        })
    });
    begin.collect()
}

impl Modify {
    fn modification(self) -> Result<Modification, Problem> {
        let end = self.terminate.into_iter().map(|terminate| {
            match (terminate.element_id, terminate.element_instance_key) {
                (Some(id), None) => Ok(Ending::Element(required("elementId", id)?)),
                (None, Some(key)) => Ok(Ending::Instance(key)),
                (Some(_), Some(_)) | (None, None) => Err(Problem::bad_request(
                    "invalid-request",
                    "each of `terminate` names one thing: `elementId` or `elementInstanceKey`",
                )),
            }
        });
        let end = end.collect::<Result<Vec<_>, _>>()?;
        let begin = beginnings(self.activate)?;
        if end.is_empty() && begin.is_empty() {
            return Err(Problem::bad_request(
                "invalid-request",
                "say what ends in `terminate`, or where the instance goes on in `activate`",
            ));
        }
        Ok(Modification {
            variables: self.variables,
            end,
            begin,
        })
    }
}

pub(super) async fn modify(
    shell: Shell,
    Actor(actor): Actor,
    Key(key): Key<InstanceKey>,
    body::Body(modify): body::Body<Modify>,
) -> Result<(StatusCode, Json<Value>), Problem> {
    let (reason, dry_run) = (reason(modify.reason.clone())?, modify.dry_run);
    let modification = modify.modification()?;
    if dry_run {
        let plan = shell.0.plan_modification(key, modification).await;
        return plan.map(planned).map_err(|error| shell.problem(error));
    }
    repaired(
        &shell,
        key,
        shell.0.modify(key, modification, reason, &actor).await,
    )
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Migrate {
    definition_key: Option<DefinitionKey>,
    process_id: Option<String>,
    version: Option<u32>,
    #[serde(default)]
    mapping: BTreeMap<String, String>,
    /// A version that is not deployed: for a dry run.
    resource: Option<File>,
    reason: Option<String>,
    #[serde(default)]
    dry_run: bool,
}

/// A file in a request.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: Option<String>,
    content: String,
}

impl File {
    fn resource(self) -> Result<Resource, Problem> {
        let file = self.name.unwrap_or_else(|| "process.bpmn".to_owned());
        Ok(Resource {
            name: required("name", file)?,
            bytes: self.content.into_bytes(),
        })
    }
}

impl Migrate {
    async fn target(&self, shell: &Shell, key: InstanceKey) -> Result<Definition, Problem> {
        match (self.definition_key, self.process_id.clone(), self.version) {
            (Some(key), None, None) => Ok(Definition::Key(key)),
            (None, Some(id), None) => Ok(Definition::Latest(required("processId", id)?)),
            (None, Some(id), Some(version)) => Ok(Definition::Version(required("processId", id)?, version)),
            (None, None, version) => {
                let detail = shell
                    .0
                    .instance(key)
                    .await
                    .map_err(|error| shell.problem(error))?;
                let id = detail.row.process_id.to_string();
                Ok(match version {
                    Some(version) => Definition::Version(id, version),
                    None => Definition::Latest(id),
                })
            }
            (Some(_), _, _) => Err(Problem::bad_request(
                "invalid-request",
                "a `definitionKey` has its process and version; give it alone, or `version`, or neither for the newest",
            )),
        }
    }
}

pub(super) fn checked(mapping: BTreeMap<String, String>) -> Result<BTreeMap<String, String>, Problem> {
    if mapping.len() > MAX_MAPPING {
        let detail = format!("`mapping` has more than {MAX_MAPPING} entries");
        return Err(Problem::bad_request("invalid-request", detail));
    }
    for (from, to) in &mapping {
        name("mapping", Some(from.clone()))?;
        name("mapping", Some(to.clone()))?;
    }
    Ok(mapping)
}

pub(super) async fn migrate(
    shell: Shell,
    Actor(actor): Actor,
    Key(key): Key<InstanceKey>,
    body::Optional(migrate): body::Optional<Migrate>,
) -> Result<(StatusCode, Json<Value>), Problem> {
    let reason = reason(migrate.reason.clone())?;
    let mut migrate = migrate;
    if let Some(file) = migrate.resource.take() {
        let is_alone =
            migrate.definition_key.is_none() && migrate.process_id.is_none() && migrate.version.is_none();
        if !migrate.dry_run || !is_alone {
            return Err(Problem::bad_request(
                "invalid-request",
                "`resource` is a version that is not deployed: it goes with `dryRun`, and with no `definitionKey`, `processId` or `version`",
            ));
        }
        let mapping = checked(migrate.mapping)?;
        let plan = shell
            .0
            .plan_migration_to_file(key, file.resource()?, mapping)
            .await;
        return plan.map(planned).map_err(|error| shell.problem(error));
    }
    let to = migrate.target(&shell, key).await?;
    let (dry_run, mapping) = (migrate.dry_run, checked(migrate.mapping)?);
    if dry_run {
        let plan = shell.0.plan_migration(key, &to, mapping).await;
        return plan.map(planned).map_err(|error| shell.problem(error));
    }
    let done = shell.0.migrate(key, &to, mapping, reason, &actor).await;
    repaired(&shell, key, done)
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub(super) struct Check {
    #[serde(default)]
    mapping: BTreeMap<String, String>,
    limit: Option<usize>,
    after: Option<String>,
}

pub(super) async fn check_migration(
    shell: Shell,
    Key(key): Key<DefinitionKey>,
    body::Optional(check): body::Optional<Check>,
) -> Result<Json<Value>, Problem> {
    let paging = Paging::of(check.limit, check.after.as_deref())?;
    let row = shell
        .0
        .definition(key)
        .await
        .map_err(|error| shell.problem(error))?;
    let mapping = checked(check.mapping)?;
    let found = shell
        .0
        .check_migration(&Definition::Key(key), &row.tenant, mapping, paging.page())
        .await;
    found
        .map(|check| Json(json!(check)))
        .map_err(|error| shell.problem(error))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct CheckFile {
    resource: File,
    process_id: Option<String>,
    tenant_id: Option<String>,
    #[serde(default)]
    mapping: BTreeMap<String, String>,
    limit: Option<usize>,
    after: Option<String>,
}

/// As [`check_migration`], for a version that is not deployed.
pub(super) async fn check_migration_to_file(
    shell: Shell,
    tenants: Tenants,
    body::Body(check): body::Body<CheckFile>,
) -> Result<Json<Value>, Problem> {
    let paging = Paging::of(check.limit, check.after.as_deref())?;
    let tenant = tenants.one(name("tenantId", check.tenant_id)?)?;
    let tenant = tenant.unwrap_or_else(|| DEFAULT_TENANT.to_owned());
    let process_id = name("processId", check.process_id)?;
    let (file, mapping) = (check.resource.resource()?, checked(check.mapping)?);
    let found = shell
        .0
        .check_migration_to_file(file, process_id.as_deref(), &tenant, mapping, paging.page())
        .await;
    found
        .map(|check| Json(json!(check)))
        .map_err(|error| shell.problem(error))
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Restart {
    #[serde(default)]
    activate: Vec<Activate>,
    #[serde(default)]
    variables: Variables,
    definition_key: Option<DefinitionKey>,
    reason: Option<String>,
    #[serde(default)]
    dry_run: bool,
}

/// Another instance goes on where a finished one is to be done again.
pub(super) async fn restart(
    shell: Shell,
    Actor(actor): Actor,
    Key(key): Key<InstanceKey>,
    body::Optional(restart): body::Optional<Restart>,
) -> Result<Response, Problem> {
    let request = RestartRequest {
        instance: key,
        begin: beginnings(restart.activate)?,
        variables: restart.variables,
        definition: restart.definition_key.map(Definition::Key),
        reason: reason(restart.reason)?,
        actor: actor.to_string(),
    };
    if restart.dry_run {
        let plan = shell.0.plan_restart(request).await;
        return plan
            .map(|plan| Json(json!({ "plan": plan })).into_response())
            .map_err(|error| shell.problem(error));
    }
    let runtime = shell.0.clone();
    let done = to_the_end(async move { runtime.restart(request).await }).await?;
    let Restarted { started, plan } = done.map_err(|error| shell.problem(error))?;
    let status = match started.accepted {
        Some(_) => StatusCode::ACCEPTED,
        None => StatusCode::OK,
    };
    let mut view = json!(views::Started::of(started));
    view["restartOf"] = json!(key);
    view["plan"] = json!(plan);
    Ok((status, Json(view)).into_response())
}

fn planned(plan: Plan) -> (StatusCode, Json<Value>) {
    (StatusCode::OK, Json(json!({ "advanced": false, "plan": plan })))
}

fn repaired(
    shell: &Shell,
    key: InstanceKey,
    done: Result<Repaired, Error>,
) -> Result<(StatusCode, Json<Value>), Problem> {
    let Repaired { acceptance, plan } = done.map_err(|error| shell.problem(error))?;
    let (status, Json(mut view)) = views::acceptance(acceptance, Some(key));
    view["plan"] = json!(plan);
    Ok((status, Json(view)))
}
