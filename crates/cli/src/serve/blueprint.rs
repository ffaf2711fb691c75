//! Where the shells of the binary come from: the configuration, read anew for each generation.

use std::path::Path;
use std::sync::Arc;

use tidegate::Runtime;
use tidegate::shell::{Blueprint, Shell, Wrong};
use tidegate::store::{self, Store};
use tidegate_server::Auth;
use tidegate_server::host::{DEFAULT_SHELL, Refresh};

use super::arguments::ServeArguments;
use super::config::{self, ShellConfig};
use super::configure;
use crate::scripts;

/// One shell of the configuration.
struct FromConfiguration {
    arguments: Arc<ServeArguments>,
    /// As it was when the shell was made; its store stays.
    first: ShellConfig,
}

/// A shell without a generation yet.
pub fn shell(arguments: &Arc<ServeArguments>, config: &ShellConfig) -> Shell {
    let blueprint = FromConfiguration {
        arguments: arguments.clone(),
        first: config.clone(),
    };
    Shell::new(&config.id, blueprint)
}

impl Blueprint for FromConfiguration {
    fn store(&self) -> Result<Arc<dyn Store>, store::Error> {
        let url = &self.first.store;
        if let Some(directory) = url
            .strip_prefix("sqlite:")
            .and_then(|file| Path::new(file).parent())
        {
            std::fs::create_dir_all(directory).map_err(|error| {
                let message = format!("`{}` cannot be made: {error}", directory.display());
                store::Error::new(store::ErrorKind::Unavailable, message)
            })?;
        }
        store::open_in(url, &self.first.namespace)
    }

    fn generation(&self) -> Result<tidegate::Builder, Wrong> {
        let read = configure::read(&self.arguments);
        let id = &self.first.id;
        let mut wrong = concerning(id, read.wrong);
        let shells = read.config.shells.into_iter();
        let Some(config) = shells.into_iter().find(|shell| shell.id == *id) else {
            if wrong.is_empty() {
                let message =
                    format!("`{id}` is no longer among the `[[shells]]`; retire it if it is to end");
                wrong.push((config::prefix(id), message));
            }
            return Err(wrong);
        };
        if config.store != self.first.store {
            let message = format!(
                "cannot change from `{}` to `{}` in a reload; retire the shell or restart the server",
                self.first.store, config.store
            );
            wrong.push(("store".to_owned(), message));
        }
        if config.namespace != self.first.namespace {
            let message = format!(
                "cannot change from `{}` to `{}` in a reload; retire the shell or restart the server",
                self.first.namespace, config.namespace
            );
            wrong.push(("namespace".to_owned(), message));
        }
        if !wrong.is_empty() {
            return Err(wrong);
        }
        // The generation holds its handler; the handler's workers end with it.
        let builder = scripts::with_scripts(Runtime::builder().options(config.options), &scripts::handler());
        let builder = scripts::with_delegates(builder, &config.delegates);
        Ok(if config.demo {
            builder.demo_activities()
        } else {
            builder
        })
    }
}

/// What is wrong with this shell or with everything; another shell's mistakes are its own.
fn concerning(id: &str, wrong: Wrong) -> Wrong {
    let own = config::prefix(id);
    let is_of_another = |key: &str| key.starts_with("shells.") && !key.to_ascii_lowercase().starts_with(&own);
    wrong.into_iter().filter(|(key, _)| !is_of_another(key)).collect()
}

/// Brings the host up to the newest configuration: its tokens, and shells that are new. Everything that needs a
/// restart (the address, the base path) stays as it is.
pub fn refresh(arguments: Arc<ServeArguments>, auth: Arc<Auth>, operator: Option<String>) -> Refresh {
    Box::new(move |host| {
        let read = configure::read(&arguments);
        let wrong = concerning(DEFAULT_SHELL, read.wrong);
        if !wrong.is_empty() {
            return Err(wrong);
        }
        let given = read.operator.as_ref().map(|token| token.text().to_owned());
        let operator = given
            .or_else(|| operator.clone())
            .map(|token| config::operator(&token));
        auth.replace(read.others.into_iter().chain(operator).collect(), read.oidc);
        for config in &read.config.shells {
            if host.shell(&config.id).is_none() {
                host.add(shell(&arguments, config));
            }
        }
        Ok(())
    })
}
