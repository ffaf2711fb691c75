//! Who asks, and what they may do.
//!
//! Bearer tokens are kept as SHA-256 digests and compared in constant time, each presented token with every known
//! one, so that an unknown token takes as long as a wrong one.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header, uri::Authority};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::{App, Problem};

/// One thing that a caller may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permission {
    /// See the runtime's status, events, shells and metrics.
    RuntimeView,
    /// Pause and resume.
    RuntimePause,
    /// Every runtime action; includes view and pause.
    RuntimeControl,
    /// See definitions and starters.
    DefinitionsRead,
    /// Deploy and unregister.
    DefinitionsWrite,
    /// See instances, their variables and history.
    InstancesRead,
    /// Start, change and cancel instances.
    InstancesWrite,
    /// Publish messages.
    MessagesWrite,
    /// Lease jobs and report their outcomes.
    JobsWork,
    /// See user tasks.
    TasksRead,
    /// Claim and complete user tasks.
    TasksWrite,
    /// See incidents.
    IncidentsRead,
    /// Retry and resolve incidents.
    IncidentsWrite,
    /// See the audit.
    AuditRead,
}

/// Every permission with its name; `:write` includes `:read`.
const NAMES: [(&str, &[Permission]); 16] = {
    use Permission::*;
    [
        ("workflows/runtime:view", &[RuntimeView]),
        ("read:workflow-runtime", &[RuntimeView]),
        ("workflows/runtime:pause", &[RuntimePause]),
        (
            "workflows/runtime:control",
            &[RuntimeView, RuntimePause, RuntimeControl],
        ),
        (
            "ManageWorkflowRuntime",
            &[RuntimeView, RuntimePause, RuntimeControl],
        ),
        ("definitions:read", &[DefinitionsRead]),
        ("definitions:write", &[DefinitionsRead, DefinitionsWrite]),
        ("instances:read", &[InstancesRead]),
        ("instances:write", &[InstancesRead, InstancesWrite]),
        ("messages:write", &[MessagesWrite]),
        ("jobs:work", &[JobsWork]),
        ("tasks:read", &[TasksRead]),
        ("tasks:write", &[TasksRead, TasksWrite]),
        ("incidents:read", &[IncidentsRead]),
        ("incidents:write", &[IncidentsRead, IncidentsWrite]),
        ("audit:read", &[AuditRead]),
    ]
};

impl Permission {
    const fn bit(self) -> u32 {
        1 << self as u32
    }

    /// The name under which it is granted.
    pub fn name(self) -> &'static str {
        NAMES
            .iter()
            .find(|(_, grants)| grants.last() == Some(&self))
            .map_or("*", |(name, _)| name)
    }
}

/// A set of permissions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Permissions(u32);

impl Permissions {
    /// Everything.
    pub const ALL: Self = Self(u32::MAX);

    /// Reads names such as `*`, `workflows/runtime:view` or `jobs:work`.
    ///
    /// # Errors
    /// A name is unknown; the message lists those that are known.
    pub fn parse<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Self, String> {
        let mut set = 0;
        for name in names {
            if matches!(name, "*" | "*:*") {
                return Ok(Self::ALL);
            }
            let Some((_, grants)) = NAMES.iter().find(|(known, _)| *known == name) else {
                let known: Vec<_> = NAMES.iter().map(|(known, _)| *known).collect();
                return Err(format!(
                    "no permission `{name}`; there are `*`, {}",
                    known.join(", ")
                ));
            };
            set |= grants.iter().fold(0, |bits, grant| bits | grant.bit());
        }
        Ok(Self(set))
    }

    /// True if `permission` is granted.
    pub const fn allow(self, permission: Permission) -> bool {
        self.0 & permission.bit() != 0
    }
}

/// A caller that has shown who it is.
#[derive(Debug, Clone)]
pub struct Identity {
    /// Its name, as records show it.
    pub name: Arc<str>,
    /// What it may do.
    pub permissions: Permissions,
}

/// How callers are recognised.
#[derive(Debug)]
pub enum Auth {
    /// Everybody may do everything: for a loopback address only.
    Open,
    /// Bearer tokens.
    Tokens(Vec<Credential>),
}

/// A bearer token's digest and whom it stands for.
#[derive(Debug)]
pub struct Credential {
    digest: [u8; 32],
    identity: Identity,
}

impl Credential {
    /// From the token itself, which is not kept.
    pub fn of_token(token: &str, name: &str, permissions: Permissions) -> Self {
        let identity = Identity {
            name: name.into(),
            permissions,
        };
        Self {
            digest: Sha256::digest(token.as_bytes()).into(),
            identity,
        }
    }
}

impl Auth {
    /// One token that may do everything.
    pub fn single(token: &str) -> Self {
        Self::Tokens(vec![Credential::of_token(token, "operator", Permissions::ALL)])
    }

    fn identify(&self, headers: &HeaderMap) -> Option<Identity> {
        let credentials = match self {
            Self::Open => {
                return Some(Identity {
                    name: "anonymous".into(),
                    permissions: Permissions::ALL,
                });
            }
            Self::Tokens(credentials) => credentials,
        };
        let presented: [u8; 32] = Sha256::digest(bearer(headers)?.as_bytes()).into();
        let mut found = None;
        for credential in credentials {
            if bool::from(credential.digest.ct_eq(&presented)) {
                found = Some(credential.identity.clone());
            }
        }
        found
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let (value, None) = (values.next()?, values.next()) else {
        return None;
    };
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Lets a request pass that shows an identity with the permission.
pub(crate) async fn check(
    State((app, permission)): State<(App, Permission)>,
    mut request: Request,
    next: Next,
) -> Response {
    let Some(identity) = app.auth.identify(request.headers()) else {
        return Problem::new(
            StatusCode::UNAUTHORIZED,
            "unauthenticated",
            "this needs a valid token: send `Authorization: Bearer TOKEN`",
        )
        .header(
            header::WWW_AUTHENTICATE,
            HeaderValue::from_static("Bearer realm=\"tidegate\""),
        )
        .into_response();
    };
    if !identity.permissions.allow(permission) {
        let detail = format!("`{}` lacks the permission `{}`", identity.name, permission.name());
        return Problem::new(StatusCode::FORBIDDEN, "permission-denied", detail).into_response();
    }
    request.extensions_mut().insert(identity);
    next.run(request).await
}

/// Without authentication, a page in the operator's own browser must not be able to reach the loopback address:
/// neither under a foreign name (DNS rebinding) nor from a foreign origin.
pub(crate) async fn refuse_foreign_pages(State(app): State<App>, request: Request, next: Next) -> Response {
    if matches!(*app.auth, Auth::Open) && is_foreign(&request) {
        return Problem::new(
            StatusCode::FORBIDDEN,
            "foreign-origin",
            "this server runs without authentication and answers only to `localhost` and loopback addresses, \
             and to no page of another origin",
        )
        .into_response();
    }
    next.run(request).await
}

fn is_foreign(request: &Request) -> bool {
    let text = |name| {
        request
            .headers()
            .get(name)
            .map(|v: &HeaderValue| v.to_str().unwrap_or("?"))
    };
    let host = text(header::HOST).or_else(|| request.uri().authority().map(Authority::as_str));
    let Some(host) = host else { return false };
    let foreign_origin = text(header::ORIGIN).is_some_and(|origin| origin != format!("http://{host}"));
    foreign_origin || !is_loopback(host)
}

fn is_loopback(host: &str) -> bool {
    let Ok(authority) = host.parse::<Authority>() else {
        return false;
    };
    let name = authority.host().trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost")
        || name
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_includes_view_and_pause_and_aliases_mean_the_same() {
        let control = Permissions::parse(["workflows/runtime:control"]).unwrap();
        assert!(control.allow(Permission::RuntimeView) && control.allow(Permission::RuntimePause));
        assert!(!control.allow(Permission::JobsWork));
        assert_eq!(Permissions::parse(["ManageWorkflowRuntime"]), Ok(control));
        assert_eq!(
            Permissions::parse(["read:workflow-runtime"]),
            Permissions::parse(["workflows/runtime:view"])
        );
        assert_eq!(Permissions::parse(["*:*"]), Ok(Permissions::ALL));
        assert!(
            Permissions::parse(["jobs:wrok"])
                .unwrap_err()
                .contains("jobs:work")
        );
        assert_eq!(Permission::RuntimeControl.name(), "workflows/runtime:control");
        assert_eq!(Permission::RuntimeView.name(), "workflows/runtime:view");
    }

    #[test]
    fn loopback_names_are_told_from_others() {
        for host in ["localhost:8088", "127.0.0.1", "[::1]:8088", "LOCALHOST"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in ["evil.example:8088", "10.0.0.1", "127.0.0.1.evil.example", ""] {
            assert!(!is_loopback(host), "{host}");
        }
    }
}
