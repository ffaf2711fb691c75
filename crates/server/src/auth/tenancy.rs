//! Tenants, for callers that are bound to some of them.
//!
//! A row of the table of routes says how its route is kept inside a tenant. One that says nothing serves no caller that is
//! bound: a new route cannot forget. What belongs to another tenant is answered as if it were not there, after the same
//! look into the store.

use std::str::FromStr;
use std::sync::Arc;

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use tidegate::model::{DefinitionKey, ElementInstanceKey, IncidentKey, InstanceKey};
use tidegate::{Error, Subject};

use crate::extract::Shell;
use crate::{App, Identity, Problem};

/// How a route is kept inside a caller's tenants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tenancy {
    /// It is about the whole runtime, and for callers without bounds alone.
    Whole,
    /// The key in its path belongs to a tenant.
    Key(Keyed),
    /// Its handler asks `Tenants` which tenants the request is about.
    Asked,
    /// It tells a state that concerns every tenant, and its handler leaves out what all of them add up to. Who has no
    /// tenant at all has no part in it.
    State,
    /// It tells a caller about itself.
    Own,
}

/// What the key in a path is the key of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keyed {
    /// An instance.
    Instance,
    /// A definition.
    Definition,
    /// A job.
    Job,
    /// A user task.
    UserTask,
    /// An incident.
    Incident,
    /// A batch.
    Batch,
}

impl Keyed {
    fn subject(self, key: &str) -> Option<Subject> {
        fn read<K: FromStr>(key: &str) -> Option<K> {
            key.parse().ok()
        }
        match self {
            Self::Instance => read::<InstanceKey>(key).map(Subject::Instance),
            Self::Definition => read::<DefinitionKey>(key).map(Subject::Definition),
            Self::Job => read::<ElementInstanceKey>(key).map(Subject::Job),
            Self::UserTask => read::<ElementInstanceKey>(key).map(Subject::UserTask),
            Self::Incident => read::<IncidentKey>(key).map(Subject::Incident),
            Self::Batch => read::<u64>(key).map(Subject::Batch),
        }
    }
}

/// Refuses a bound caller what is not of its tenants.
pub(super) async fn check(
    app: &App,
    parts: &mut Parts,
    identity: &Identity,
    tenancy: Tenancy,
) -> Result<(), Problem> {
    let Some(tenants) = &identity.tenants else {
        return Ok(());
    };
    match tenancy {
        Tenancy::Asked | Tenancy::Own => Ok(()),
        Tenancy::State if !tenants.is_empty() => Ok(()),
        Tenancy::Whole | Tenancy::State => {
            let detail = format!(
                "`{}` is bound to tenants, and this concerns all of them",
                identity.name
            );
            Err(Problem::forbidden(detail))
        }
        Tenancy::Key(keyed) => {
            // A key that is none is the handler's to refuse.
            let Some(subject) = key_of(parts).await.and_then(|key| keyed.subject(&key)) else {
                return Ok(());
            };
            let shell = Shell::from_request_parts(parts, app).await?;
            let tenant = shell.0.tenant_of(subject).await;
            let tenant = tenant.map_err(|error| shell.problem(error))?;
            match tenants.contains(&tenant) {
                true => Ok(()),
                false => Err(shell.problem(subject.missing())),
            }
        }
    }
}

async fn key_of(parts: &mut Parts) -> Option<String> {
    let parameters = RawPathParams::from_request_parts(parts, &()).await.ok()?;
    let mut parameters = parameters.iter();
    parameters.find_map(|(name, value)| (name == "key").then(|| value.to_owned()))
}

/// Which tenants a caller's request can be about.
pub(crate) struct Tenants(Option<Arc<[Arc<str>]>>);

impl FromRequestParts<App> for Tenants {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Problem> {
        let identity = parts.extensions.get::<Identity>();
        identity
            .map(|identity| Self(identity.tenants.clone()))
            .ok_or_else(Problem::internal)
    }
}

impl Tenants {
    /// True if the caller is bound to some tenants.
    pub(crate) fn is_bound(&self) -> bool {
        self.0.is_some()
    }

    /// True if the caller may know of this tenant.
    pub(crate) fn knows(&self, tenant: &str) -> bool {
        let bound = self.0.as_deref();
        bound.is_none_or(|tenants| tenants.iter().any(|own| **own == *tenant))
    }

    /// The tenant that a request is about. Who is bound to one alone need not say it.
    pub(crate) fn one(&self, asked: Option<String>) -> Result<Option<String>, Problem> {
        let Some(tenants) = &self.0 else { return Ok(asked) };
        match (asked, &**tenants) {
            (Some(asked), _) if self.knows(&asked) => Ok(Some(asked)),
            (Some(asked), _) => Err(Problem::no_tenant(&asked)),
            (None, [only]) => Ok(Some(only.to_string())),
            (None, _) if self.knows(tidegate::api::DEFAULT_TENANT) => Ok(None),
            (None, _) => Err(Problem::bad_request(
                "tenant-required",
                "this token is bound to tenants, and not to the default one: say which with `tenantId`",
            )),
        }
    }

    /// The tenant that a caller follows; none for all of them, which a bound caller never gets.
    pub(crate) fn followed(&self, asked: Option<String>) -> Result<Option<String>, Problem> {
        let tenant = self.one(asked)?;
        Ok(match &self.0 {
            Some(_) => Some(tenant.unwrap_or_else(|| tidegate::api::DEFAULT_TENANT.to_owned())),
            None => tenant,
        })
    }

    /// The rows of a list, newest first: of the tenant asked for, or of all that the caller may know of.
    pub(crate) async fn rows<T, F>(
        &self,
        asked: Option<String>,
        position: impl Fn(&T) -> u64,
        fetch: impl Fn(Option<String>) -> F,
    ) -> Result<Vec<T>, Error>
    where
        F: Future<Output = Result<Vec<T>, Error>>,
    {
        let Some(tenants) = &self.0 else {
            return fetch(asked).await;
        };
        let wanted = tenants
            .iter()
            .filter(|tenant| asked.as_deref().is_none_or(|asked| *asked == ***tenant));
        let mut rows = Vec::new();
        for tenant in wanted {
            rows.append(&mut fetch(Some(tenant.to_string())).await?);
        }
        // Each tenant's page is the newest of its own: together they hold the newest of all.
        rows.sort_by_key(|row| std::cmp::Reverse(position(row)));
        Ok(rows)
    }
}
