//! The HTTP face of Tidegate: the `/api/v1` routes over a [`Host`] of shells, health and metrics beside them, and
//! the accept loop that serves them.
//!
//! This crate knows HTTP and nothing of signals, files or exit codes; the binary wires it. The table of routes is
//! in [`routes`], the wire form of every error in [`problem`].

pub mod auth;
mod body;
mod cursor;
mod extract;
mod health;
pub mod host;
mod limit;
pub mod listen;
mod page;
pub mod problem;
mod request;
pub mod routes;
mod views;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};

pub use auth::{Auth, Identity, Permissions};
pub use host::Host;
pub use problem::Problem;

/// Where the API is, and its limits.
#[derive(Debug, Clone)]
pub struct ApiOptions {
    /// The path in front of every route but health and metrics, for example `/api/v1`.
    pub base: String,
    /// Readiness stays 200 under an administrative pause.
    pub ready_while_paused: bool,
    /// The largest deployment, in bytes.
    pub max_deployment_bytes: usize,
    /// The largest body of every other request, in bytes.
    pub max_body_bytes: usize,
    /// How long a client may take to send a body.
    pub body_timeout: Duration,
    /// Control actions of one caller at once.
    pub control_burst: u32,
    /// Control actions of one caller in a second, beyond a burst.
    pub control_per_second: u32,
}

impl Default for ApiOptions {
    fn default() -> Self {
        Self {
            base: "/api/v1".to_owned(),
            ready_while_paused: false,
            max_deployment_bytes: 16 << 20,
            max_body_bytes: 4 << 20,
            body_timeout: Duration::from_secs(30),
            control_burst: 100,
            control_per_second: 20,
        }
    }
}

impl ApiOptions {
    /// Checks a base path: it begins with `/`, ends without one, and names no parameters.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check_base(base: &str) -> Result<(), String> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '-' | '_' | '.' | '~');
        let sound = base.starts_with('/') && base.len() > 1 && !base.ends_with('/') && !base.contains("//");
        if sound && base.chars().all(plain) && !base.starts_with("/health") && !base.starts_with("/metrics") {
            return Ok(());
        }
        Err(format!(
            "`{base}` is no base path: expected something like `/api/v1` (it must not end with `/`)"
        ))
    }
}

/// What every handler can reach.
#[derive(Clone)]
pub(crate) struct App {
    pub(crate) host: Host,
    pub(crate) auth: Arc<Auth>,
    pub(crate) options: Arc<ApiOptions>,
    pub(crate) control: Arc<limit::Limiter>,
}

/// The whole HTTP face as one service.
pub fn router(host: Host, auth: impl Into<Arc<Auth>>, options: ApiOptions) -> Router {
    let app = App {
        host,
        auth: auth.into(),
        control: Arc::new(limit::Limiter::new(
            options.control_burst,
            options.control_per_second,
        )),
        options: Arc::new(options),
    };
    Router::new()
        .merge(routes::api(&app))
        .merge(health::routes(&app))
        .merge(page::routes())
        .layer(from_fn_with_state(app.clone(), auth::refuse_foreign_pages))
        .layer(from_fn_with_state(app.clone(), host::mark_closing))
        .layer(from_fn(problem::finish))
        .layer(from_fn(request::name))
        .with_state(app)
}
