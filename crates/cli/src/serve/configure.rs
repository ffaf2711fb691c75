//! From the command line, the environment and the file to a checked configuration, with the log set up on the way.

use std::path::Path;

use tidegate_server::auth::{Credential, Oidc};

use super::arguments::ServeArguments;
use super::config::{self, Config, Wrong};
use super::files;
use super::oidc;
use super::settings::{self, Tables, Values};
use super::token::{self, Token};
use crate::{exit, terminal};

/// A configuration as it was read, and everything that is wrong with it.
pub struct Read {
    pub config: Config,
    /// The operator's token, where one was given; and who else is known.
    pub operator: Option<Token>,
    pub others: Vec<Credential>,
    pub oidc: Option<Oidc>,
    pub wrong: Wrong,
    /// Environment variables that look like settings and are none.
    unknown: Vec<String>,
}

/// Reads and checks everything. Changes nothing, so that a reload can do it again.
pub fn read(arguments: &ServeArguments) -> Read {
    let mut values = Values::default();
    let mut wrong = Wrong::new();
    for (key, text) in &arguments.given {
        values.offer(key, text.clone(), format!("--{key}"));
    }
    let environment = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let unknown = settings::from_environment(&mut values, environment);
    let tables = match &arguments.config {
        Some(file) => settings::from_file(&mut values, file, &mut wrong),
        None => Tables::default(),
    };
    let config = config::check(&values, &tables.shells, &mut wrong);
    let others = config::credentials(&tables, &mut wrong);
    let oidc = tables.oidc.and_then(|table| oidc::check(table, &mut wrong));
    let file = values.get("token-file").map(|written| Path::new(&written.text));
    let operator = token::given(std::env::var("TIDEGATE_TOKEN").ok(), file).unwrap_or_else(|error| {
        wrong.push(error);
        None
    });
    Read {
        config,
        operator,
        others,
        oidc,
        wrong,
        unknown,
    }
}

/// Reads everything at the start of the process, with the log set up on the way.
pub fn configure(arguments: &ServeArguments) -> Result<Read, Wrong> {
    let mut read = read(arguments);
    let config = &mut read.config;
    log_to_stderr(config);
    config.connections.max_connections = files::room_for(config.connections.max_connections);
    for name in &read.unknown {
        tracing::warn!(name, "this environment variable is no setting and is ignored");
    }
    for shell in &config.shells {
        let options = &shell.options;
        if options.effective_deadline() < options.drain_deadline {
            tracing::warn!(
                shell = shell.id,
                effective_ms = options.effective_deadline().as_millis(),
                "the drain deadline does not fit into the host's grace and is shortened"
            );
        }
    }
    if read.wrong.is_empty() {
        Ok(read)
    } else {
        Err(read.wrong)
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
