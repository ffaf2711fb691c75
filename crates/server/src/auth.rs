//! Who asks, and what they may do.
//!
//! Bearer tokens are kept as SHA-256 digests and compared in constant time, each presented token with every known
//! one, so that an unknown token takes as long as a wrong one. Where an issuer is configured, a token that is none
//! of ours and looks like a signed one is checked against the issuer's keys.

mod foreign;
mod oidc;
mod permission;
mod tenancy;

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{FromRequestParts, RawPathParams, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use parking_lot::RwLock;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

pub(crate) use foreign::refuse_foreign_pages;
pub use oidc::{Oidc, OidcOptions};
pub use permission::{Permission, Permissions};
pub(crate) use tenancy::Tenants;
pub use tenancy::{Keyed, Tenancy};

use crate::host::DEFAULT_SHELL;
use crate::{App, Problem};

/// A caller that has shown who it is.
#[derive(Debug, Clone)]
pub struct Identity {
    /// Its name, as records show it.
    pub name: Arc<str>,
    /// What it may do.
    pub permissions: Permissions,
    /// The only shell that it knows of, in lower case; none for the whole host.
    pub shell: Option<Arc<str>>,
    /// The only tenants that it knows of; none for all.
    pub tenants: Option<Arc<[Arc<str>]>>,
}

impl Identity {
    /// True if the identity may know of this shell.
    pub fn knows(&self, shell: &str) -> bool {
        self.shell
            .as_deref()
            .is_none_or(|own| own.eq_ignore_ascii_case(shell))
    }
}

/// How callers are recognised.
#[derive(Debug)]
pub struct Auth {
    /// Everybody may do everything.
    is_open: bool,
    credentials: RwLock<Arc<[Credential]>>,
    oidc: RwLock<Option<Arc<Oidc>>>,
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
            shell: None,
            tenants: None,
        };
        Self {
            digest: Sha256::digest(token.as_bytes()).into(),
            identity,
        }
    }

    /// For one shell alone: the others do not exist for it.
    #[must_use]
    pub fn of_shell(mut self, shell: &str) -> Self {
        self.identity.shell = Some(shell.to_ascii_lowercase().into());
        self
    }

    /// For these tenants alone: what others have does not exist for it.
    #[must_use]
    pub fn of_tenants(mut self, tenants: &[String]) -> Self {
        self.identity.tenants = Some(tenants.iter().map(|tenant| Arc::from(&**tenant)).collect());
        self
    }
}

impl Auth {
    /// Everybody may do everything: for a loopback address only.
    pub fn open() -> Self {
        Self {
            is_open: true,
            ..Self::tokens(Vec::new())
        }
    }

    /// Bearer tokens.
    pub fn tokens(credentials: Vec<Credential>) -> Self {
        Self {
            is_open: false,
            credentials: RwLock::new(credentials.into()),
            oidc: RwLock::default(),
        }
    }

    /// One token that may do everything.
    pub fn single(token: &str) -> Self {
        Self::tokens(vec![Credential::of_token(token, "operator", Permissions::ALL)])
    }

    /// The same, and signed tokens of an issuer too.
    #[must_use]
    pub fn with_oidc(self, oidc: Option<Oidc>) -> Self {
        *self.oidc.write() = oidc.map(Arc::new);
        self
    }

    /// Recognises these callers instead of those before, from the next request on.
    pub fn replace(&self, credentials: Vec<Credential>, oidc: Option<Oidc>) {
        *self.credentials.write() = credentials.into();
        *self.oidc.write() = oidc.map(Arc::new);
    }

    pub(crate) fn is_open(&self) -> bool {
        self.is_open
    }

    async fn identify(&self, headers: &HeaderMap) -> Option<Identity> {
        if self.is_open {
            return Some(Identity {
                name: "anonymous".into(),
                permissions: Permissions::ALL,
                shell: None,
                tenants: None,
            });
        }
        let token = bearer(headers)?;
        let known = self.of_static(token);
        let oidc = self.oidc.read().clone();
        match (known, oidc) {
            (None, Some(oidc)) => oidc.identify(token).await,
            (known, _) => known,
        }
    }

    fn of_static(&self, token: &str) -> Option<Identity> {
        let presented: [u8; 32] = Sha256::digest(token.as_bytes()).into();
        let mut found = None;
        for credential in self.credentials.read().iter() {
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

/// What a route is about, and so whom of those with the permission it serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// One shell: the one in the path, else the default one.
    Shell,
    /// Every shell that the caller may know of.
    Known,
    /// The whole host.
    Host,
}

/// What a route asks of its caller.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Needs {
    pub(crate) permission: Permission,
    pub(crate) reach: Reach,
    pub(crate) tenancy: Tenancy,
}

/// Lets a request pass that shows an identity with the permission, for a shell that the identity may know of.
pub(crate) async fn check(
    State((app, needs)): State<(App, Needs)>,
    request: Request,
    next: Next,
) -> Response {
    let (mut parts, body) = request.into_parts();
    let Some(identity) = app.auth.identify(&parts.headers).await else {
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
    let shell = match needs.reach {
        Reach::Shell => Some(shell_of(&mut parts).await),
        Reach::Known | Reach::Host => None,
    };
    if let Some(foreign) = shell.filter(|shell| !identity.knows(shell)) {
        return Problem::no_shell(&foreign).into_response();
    }
    let permission = needs.permission.name();
    if !identity.permissions.allow(needs.permission) {
        let detail = format!("`{}` lacks the permission `{permission}`", identity.name);
        return Problem::forbidden(detail).into_response();
    }
    if needs.reach == Reach::Host && identity.shell.is_some() {
        let detail = format!(
            "`{}` has `{permission}` for one shell alone, and this concerns all",
            identity.name
        );
        return Problem::forbidden(detail).into_response();
    }
    if let Err(refused) = tenancy::check(&app, &mut parts, &identity, needs.tenancy).await {
        return refused.into_response();
    }
    let is_control = matches!(
        needs.permission,
        Permission::RuntimePause | Permission::RuntimeControl
    );
    if is_control && !app.control.admit(&identity.name, Instant::now()) {
        let detail = "these are more control actions than one caller may ask for; wait a second between them";
        return Problem::new(StatusCode::TOO_MANY_REQUESTS, "too-many-requests", detail)
            .header(header::RETRY_AFTER, HeaderValue::from(1))
            .into_response();
    }
    parts.extensions.insert(identity);
    next.run(Request::from_parts(parts, body)).await
}

/// The shell in the path, or the default one.
pub(crate) async fn shell_of(parts: &mut axum::http::request::Parts) -> String {
    let parameters = RawPathParams::from_request_parts(parts, &()).await;
    let named = parameters.ok().and_then(|parameters| {
        let mut parameters = parameters.iter();
        parameters.find_map(|(name, value)| (name == "shell").then(|| value.to_owned()))
    });
    named.unwrap_or_else(|| DEFAULT_SHELL.to_owned())
}
