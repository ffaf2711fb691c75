//! From the command line, the environment and the file to a checked configuration, with the log set up on the way.

use std::path::Path;

use tidegate_server::auth::Credential;

use super::arguments::ServeArguments;
use super::config::{self, Config, Wrong};
use super::files;
use super::settings::{self, Values};
use super::token::{self, Token};
use crate::{exit, terminal};

/// What of the identities does not need the store to be open.
pub struct Callers {
    pub operator: Option<Token>,
    pub others: Vec<Credential>,
}

/// Reads and checks everything.
pub fn configure(arguments: ServeArguments) -> Result<(Config, Callers), Wrong> {
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

/// Says what is wrong, and gives the exit code.
pub fn refuse(wrong: &Wrong) -> u8 {
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
