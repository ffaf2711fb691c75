//! The start: stores and listener, then the shells, in this order, each of them given up when a stop is asked for.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tidegate::shell::{Shell, ShellError};
use tidegate::store::ErrorKind;
use tidegate_server::listen::{self, Listening};
use tidegate_server::{Auth, Host};
use tokio::net::TcpListener;

use super::Server;
use super::arguments::ServeArguments;
use super::blueprint;
use super::config::{self, Config};
use super::configure::Read;
use super::greeting::greet;
use super::notify::Notify;
use super::signals::Signals;
use super::token;
use crate::exit;

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
pub async fn start(
    arguments: &Arc<ServeArguments>,
    read: Read,
    notify: Arc<Notify>,
    signals: &mut Signals,
) -> Result<Started, Failure> {
    let config = read.config;
    make_directories(&config)?;
    let shells: Vec<Shell> = config
        .shells
        .iter()
        .map(|shell| blueprint::shell(arguments, shell))
        .collect();
    // The default shell's store is opened before anything else, so that a second process ends without a trace.
    let opened = tokio::select! {
        opened = open(&config, &shells[0], &notify) => opened,
        _ = signals.stop() => return Ok(Started::Stopped),
    };
    opened?;
    let operator = match read.operator {
        _ if config.no_auth => None,
        Some(token) => Some(token),
        None => Some(token::kept_or_made(config.data.as_deref()).map_err(failed)?),
    };
    let auth = Arc::new(if config.no_auth {
        Auth::open()
    } else {
        let operator = operator.as_ref().map(|token| config::operator(token.text()));
        Auth::tokens(read.others.into_iter().chain(operator).collect()).with_oidc(read.oidc)
    });
    let host = Host::new();
    let listening = match listen_on(&config, &host, &auth).await {
        Ok(listening) => listening,
        Err(failure) => {
            shells[0].close().await;
            return Err(failure);
        }
    };
    let mut starting = tokio::spawn(activate(shells.clone(), config.wait_for_lock));
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
    let started = match started {
        Ok(started) => started,
        Err(error) => Err(failed(format!("the runtime panicked while starting: {error}"))),
    };
    if let Err(failure) = started {
        listening.close(Duration::ZERO).await;
        join_all(shells.iter().map(Shell::close)).await;
        return Err(failure);
    }
    for shell in shells {
        host.add(shell);
    }
    let operator_token = operator.as_ref().map(|token| token.text().to_owned());
    host.refresh_with(blueprint::refresh(arguments.clone(), auth, operator_token));
    host.mark_started();
    greet(&config, &listening, operator.as_ref());
    Ok(Started::Running(Box::new(Server {
        host,
        listening,
        config,
        notify,
    })))
}

fn make_directories(config: &Config) -> Result<(), Failure> {
    let Some(data) = &config.data else { return Ok(()) };
    std::fs::create_dir_all(data).map_err(|error| Failure {
        code: exit::STORE,
        message: format!("the data directory `{}` cannot be made: {error}", data.display()),
    })
}

/// Opens the default shell's store, waiting for its lock where that is asked for.
async fn open(config: &Config, shell: &Shell, notify: &Notify) -> Result<(), Failure> {
    let mut has_told = false;
    loop {
        match shell.open().await {
            Ok(()) => return Ok(()),
            Err(ShellError::Store(error)) if error.kind() == ErrorKind::Locked && config.wait_for_lock => {
                if !has_told {
                    tracing::info!(%error, "waiting until the other process lets go of the store");
                    has_told = true;
                }
                notify.extend(
                    "waiting until another process lets go of the store",
                    LOCK_INTERVAL * 50,
                );
                tokio::time::sleep(LOCK_INTERVAL).await;
            }
            Err(error) => return Err(not_started(&error)),
        }
    }
}

/// Begins the first generation of every shell. The default shell must start; another one that does not is told of
/// and takes nobody down with it: a reload tries again.
async fn activate(shells: Vec<Shell>, wait_for_lock: bool) -> Result<(), Failure> {
    let started = join_all(shells.iter().map(|shell| begin(shell, wait_for_lock))).await;
    for (position, (shell, started)) in shells.iter().zip(started).enumerate() {
        match started {
            Ok(()) => {}
            Err(error) if position == 0 => return Err(not_started(&error)),
            Err(error) => tracing::error!(
                shell = shell.id(),
                "the shell did not start; reload it to try again: {error}"
            ),
        }
    }
    Ok(())
}

async fn begin(shell: &Shell, wait_for_lock: bool) -> Result<(), ShellError> {
    loop {
        match shell.activate().await {
            Err(ShellError::Store(error)) if error.kind() == ErrorKind::Locked && wait_for_lock => {
                tokio::time::sleep(LOCK_INTERVAL).await;
            }
            started => return started.map(drop),
        }
    }
}

async fn listen_on(config: &Config, host: &Host, auth: &Arc<Auth>) -> Result<Listening, Failure> {
    let listener = TcpListener::bind(config.listen).await.map_err(|error| {
        failed(format!(
            "cannot listen on {}: {error}; choose another address with --listen",
            config.listen
        ))
    })?;
    let router = tidegate_server::router(host.clone(), auth.clone(), config.api.clone());
    listen::serve(listener, router, config.connections).map_err(|error| failed(error.to_string()))
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

fn not_started(error: &ShellError) -> Failure {
    match error {
        ShellError::Store(error)
        | ShellError::NotStarted {
            error: tidegate::Error::Store(error),
            ..
        } => store_failed(error),
        ShellError::Invalid(_) => Failure {
            code: exit::CONFIGURATION,
            message: error.to_string(),
        },
        error => failed(format!("the runtime could not start: {error}")),
    }
}
