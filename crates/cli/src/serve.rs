//! `tidegate serve`: configuration, wiring, and the ordered end of the process.

mod arguments;
mod config;
mod files;
mod settings;
mod signals;
mod token;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tidegate::Runtime;
use tidegate::status::{DrainOutcome, DrainTrigger};
use tidegate::store::{ErrorKind, Store};
use tidegate_server::listen::{self, Listening};
use tidegate_server::{Auth, Host};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::Instant;

pub use arguments::ServeArguments;
use config::{Config, Wrong};
use settings::Values;
use signals::{Asked, Signals};
use token::Token;

use crate::{exit, terminal};

/// A start that is nearly over is let come to its end when a stop is asked for, so that what it began is drained.
const START_GRACE: Duration = Duration::from_secs(1);
/// Open connections get this long once the drain is over.
const CLOSE_CONNECTIONS: Duration = Duration::from_millis(500);
/// The runtime's own tasks end within this; they have nothing left to do by then.
const CLOSE_RUNTIME: Duration = Duration::from_secs(2);
/// How often a held lock is tried again.
const LOCK_INTERVAL: Duration = Duration::from_millis(200);

/// Why the server did not start.
struct Failure {
    code: u8,
    message: String,
}

/// How a start may end without a failure.
enum Started {
    Running(Box<Server>),
    /// Told to stop before it ran.
    Stopped,
}

struct Server {
    host: Host,
    runtime: Runtime,
    listening: Listening,
}

/// Runs the server to its end and gives the exit code.
pub async fn serve(arguments: ServeArguments) -> u8 {
    let mut signals = match Signals::install() {
        Ok(signals) => signals,
        Err(error) => {
            terminal::error(&format!("the signal handlers could not be installed: {error}"));
            return exit::FAILED;
        }
    };
    let (config, auth) = match configure(arguments) {
        Ok(configured) => configured,
        Err(wrong) => return refuse(&wrong),
    };
    match start(&config, auth, &mut signals).await {
        Ok(Started::Running(server)) => {
            let asked = signals.stop().await;
            server.stop(asked, &config, signals).await
        }
        Ok(Started::Stopped) => {
            tracing::info!("stopped while starting");
            report(None, exit::DRAINED)
        }
        Err(failure) => {
            terminal::error(&failure.message);
            failure.code
        }
    }
}

/// What of the identities does not need the store to be open.
struct Callers {
    operator: Option<Token>,
    others: Vec<tidegate_server::auth::Credential>,
}

fn configure(arguments: ServeArguments) -> Result<(Config, Callers), Wrong> {
    let mut values = Values::default();
    let mut wrong = Wrong::new();
    for (key, text) in arguments.given {
        values.offer(key, text, format!("--{key}"));
    }
    let environment = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let unknown = settings::from_environment(&mut values, environment);
    let tokens = match &arguments.config {
        Some(file) => settings::from_file(&mut values, file, &mut wrong),
        None => Vec::new(),
    };
    let mut config = config::check(&values, &mut wrong);
    log_to_stderr(&config);
    config.connections.max_connections = files::room_for(config.connections.max_connections);
    for name in unknown {
        tracing::warn!(name, "this environment variable is no setting and is ignored");
    }
    let others = config::credentials(&tokens, &mut wrong);
    let file = values.get("token-file").map(|written| Path::new(&written.text));
    let operator = token::given(std::env::var("TIDEGATE_TOKEN").ok(), file).unwrap_or_else(|error| {
        wrong.push(error);
        None
    });
    if config.options.effective_deadline() < config.options.drain_deadline {
        tracing::warn!(
            effective_ms = config.options.effective_deadline().as_millis(),
            "the drain deadline does not fit into the host's grace and is shortened"
        );
    }
    if wrong.is_empty() {
        Ok((config, Callers { operator, others }))
    } else {
        Err(wrong)
    }
}

fn refuse(wrong: &Wrong) -> u8 {
    terminal::error("the configuration is wrong:");
    for (key, message) in wrong {
        terminal::error_line(&format!("  {key}: {message}"));
    }
    exit::CONFIGURATION
}

fn log_to_stderr(config: &Config) {
    use std::io::IsTerminal;
    // A wrong filter is refused with the other values; until then the usual one serves.
    let filter = config
        .log
        .parse::<tracing_subscriber::EnvFilter>()
        .unwrap_or_default();
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .log_internal_errors(false);
    let set = if config.log_as_json {
        log.json().try_init()
    } else {
        log.try_init()
    };
    debug_assert!(set.is_ok(), "the log is set up once");
}

async fn start(config: &Config, callers: Callers, signals: &mut Signals) -> Result<Started, Failure> {
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

/// What a newcomer needs next.
fn greet(config: &Config, listening: &Listening, token: Option<&Token>) {
    let address = listening.address();
    terminal::line(&format!(
        "Tidegate {} listens on http://{address}{}",
        env!("CARGO_PKG_VERSION"),
        config.api.base
    ));
    terminal::line(&format!("Store: {}", config.store));
    match token {
        None => terminal::line("Authentication is off: everybody on this machine may do everything."),
        Some(Token::Given(_)) => terminal::line("Token: as given"),
        Some(Token::Kept(_, file)) => terminal::line(&format!("Token: in {}", file.display())),
        Some(Token::Made(text, Some(file))) => {
            terminal::line(&format!("Token: {text}"));
            terminal::line(&format!(
                "  (made now and shown this once; kept in {})",
                file.display()
            ));
        }
        Some(Token::Made(text, None)) => {
            terminal::line(&format!("Token: {text}"));
            terminal::line("  (made for this run; set TIDEGATE_TOKEN to keep one)");
        }
    }
    let server = match address.port() {
        8088 => String::new(),
        _ => format!(" --server http://{address}"),
    };
    terminal::line("Try:");
    match token {
        Some(Token::Kept(_, file) | Token::Made(_, Some(file))) => {
            terminal::line(&format!("  export TIDEGATE_TOKEN_FILE={}", file.display()));
        }
        Some(Token::Made(text, None)) => terminal::line(&format!("  export TIDEGATE_TOKEN={text}")),
        Some(Token::Given(_)) | None => {}
    }
    terminal::line(&format!("  tidegate deploy{server} examples/hello.bpmn"));
    terminal::line(&format!("  tidegate start{server} hello --wait"));
    terminal::line(&format!("  tidegate status{server}"));
}

impl Server {
    /// Readiness and the gate fall at once; the listener closes after the marks; the store last.
    async fn stop(self, asked: Asked, config: &Config, mut signals: Signals) -> u8 {
        let began = Instant::now();
        self.host.begin_stop();
        let runtime = self.runtime.clone();
        let mut draining = tokio::spawn(async move { runtime.drain(DrainTrigger::HostStopSignal).await });
        let outcome = tokio::select! {
            outcome = &mut draining => outcome,
            () = signals.force() => {
                self.force().await;
                draining.await
            }
        };
        if asked
            == (Asked::Drain {
                is_interactive: false,
            })
        {
            tokio::select! {
                () = tokio::time::sleep_until(began + config.listener_lead) => {}
                () = signals.force() => {}
            }
        }
        self.host.end_streams();
        self.listening
            .close(CLOSE_CONNECTIONS.min(config.options.reserve()))
            .await;
        if tokio::time::timeout(CLOSE_RUNTIME, self.runtime.close())
            .await
            .is_err()
        {
            tracing::warn!("the runtime did not close in time; the process ends without it");
        }
        match outcome {
            Ok(outcome) => {
                let code = exit::of_drain(&outcome);
                report(Some(&outcome), code)
            }
            Err(error) => {
                tracing::error!(%error, "the drain panicked");
                report(None, exit::ABORTED)
            }
        }
    }

    async fn force(&self) {
        let forced = self
            .runtime
            .force_drain(Some("second SIGINT".to_owned()), "signal")
            .await;
        if let Err(error) = forced {
            tracing::warn!(%error, "the drain could not be forced");
        }
    }
}

/// The last log line: one JSON object.
fn report(outcome: Option<&DrainOutcome>, code: u8) -> u8 {
    terminal::error_line(&serde_json::json!({ "outcome": outcome, "exitCode": code }).to_string());
    code
}
