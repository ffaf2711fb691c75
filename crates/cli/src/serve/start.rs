//! The start: store, listener, runtime, in this order, each of them given up when a stop is asked for.

use std::sync::Arc;
use std::time::Duration;

use tidegate::Runtime;
use tidegate::store::{ErrorKind, Store};
use tidegate_server::listen::{self, Listening};
use tidegate_server::{Auth, Host};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::Server;
use super::config::{self, Config};
use super::configure::Callers;
use super::greeting::greet;
use super::signals::Signals;
use super::token::{self, Token};
use crate::{exit, scripts};

/// A start that is nearly over is let come to its end when a stop is asked for, so that what it began is drained.
const START_GRACE: Duration = Duration::from_secs(1);
/// How often a held lock is tried again.
const LOCK_INTERVAL: Duration = Duration::from_millis(200);

/// Why the server did not start.
pub struct Failure {
    pub code: u8,
    pub message: String,
}

/// How a start may end without a failure.
pub enum Started {
    /// It serves.
    Running(Box<Server>),
    /// Told to stop before it ran.
    Stopped,
}

/// Starts everything.
pub async fn start(config: &Config, callers: Callers, signals: &mut Signals) -> Result<Started, Failure> {
    let store = tokio::select! {
        store = open_store(config) => store?,
        _ = signals.stop() => return Ok(Started::Stopped),
    };
    let operator = match callers.operator {
        _ if config.no_auth => None,
        Some(token) => Some(token),
        None => Some(token::kept_or_made(config.data.as_deref()).map_err(failed)?),
    };
    let auth = config::auth(config.no_auth, operator.as_ref().map(Token::text), callers.others);
    let host = Host::new();
    let listening = match listen_on(config, &host, auth).await {
        Ok(listening) => listening,
        Err(failure) => {
            store.close();
            return Err(failure);
        }
    };
    let mut starting = begin(config, store);
    let started = tokio::select! {
        started = &mut starting => started,
        _ = signals.stop() => {
            host.begin_stop();
            match tokio::time::timeout(START_GRACE, starting).await {
                Ok(started) => started,
                Err(_) => {
                    listening.close(Duration::ZERO).await;
                    return Ok(Started::Stopped);
                }
            }
        }
    };
    let runtime = match started {
        Ok(Ok(runtime)) => runtime,
        Ok(Err(error)) => {
            listening.close(Duration::ZERO).await;
            return Err(not_started(&error));
        }
        Err(error) => {
            listening.close(Duration::ZERO).await;
            return Err(failed(format!("the runtime panicked while starting: {error}")));
        }
    };
    host.add(tidegate_server::host::DEFAULT_SHELL, runtime.clone());
    host.mark_started();
    greet(config, &listening, operator.as_ref());
    Ok(Started::Running(Box::new(Server {
        host,
        runtime,
        listening,
    })))
}

async fn open_store(config: &Config) -> Result<Arc<dyn Store>, Failure> {
    if let Some(data) = &config.data {
        std::fs::create_dir_all(data).map_err(|error| Failure {
            code: exit::STORE,
            message: format!("the data directory `{}` cannot be made: {error}", data.display()),
        })?;
    }
    let mut has_told = false;
    loop {
        let url = config.store.clone();
        let opened = tokio::task::spawn_blocking(move || tidegate::store::open(&url)).await;
        let opened = opened.map_err(|error| failed(format!("the store panicked while opening: {error}")))?;
        match opened {
            Ok(store) => return Ok(store),
            Err(error) if error.kind() == ErrorKind::Locked && config.wait_for_lock => {
                if !has_told {
                    tracing::info!(%error, "waiting until the other process lets go of the store");
                    has_told = true;
                }
                tokio::time::sleep(LOCK_INTERVAL).await;
            }
            Err(error) => return Err(store_failed(&error)),
        }
    }
}

async fn listen_on(config: &Config, host: &Host, auth: Auth) -> Result<Listening, Failure> {
    let listener = TcpListener::bind(config.listen).await.map_err(|error| {
        failed(format!(
            "cannot listen on {}: {error}; choose another address with --listen",
            config.listen
        ))
    })?;
    let router = tidegate_server::router(host.clone(), auth, config.api.clone());
    listen::serve(listener, router, config.connections).map_err(|error| failed(error.to_string()))
}

fn begin(config: &Config, store: Arc<dyn Store>) -> JoinHandle<Result<Runtime, tidegate::Error>> {
    let mut builder = Runtime::builder()
        .store(store)
        .options(config.options.clone())
        .shell(tidegate_server::host::DEFAULT_SHELL);
    if config.demo {
        builder = builder.demo_activities();
    }
    // The runtime holds it; its workers end with the runtime.
    builder = scripts::with_scripts(builder, &scripts::handler());
    tokio::spawn(builder.start())
}

fn failed(message: impl Into<String>) -> Failure {
    Failure {
        code: exit::FAILED,
        message: message.into(),
    }
}

fn store_failed(error: &tidegate::store::Error) -> Failure {
    let code = match error.kind() {
        ErrorKind::Locked | ErrorKind::Unavailable | ErrorKind::Full | ErrorKind::ReadOnly => exit::STORE,
        ErrorKind::Configuration => exit::CONFIGURATION,
        ErrorKind::Damaged
        | ErrorKind::NewerSchema
        | ErrorKind::Fenced
        | ErrorKind::Closed
        | ErrorKind::Internal => exit::FAILED,
    };
    Failure {
        code,
        message: format!("the store could not be opened: {error}"),
    }
}

fn not_started(error: &tidegate::Error) -> Failure {
    match error {
        tidegate::Error::Store(error) => store_failed(error),
        error => failed(format!("the runtime could not start: {error}")),
    }
}
