//! The flags of `serve`, made from the table of settings.

use std::path::PathBuf;

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};

use super::settings::{SETTINGS, variable};

/// The flags that were given, as texts: they are checked together with the environment and the file.
#[derive(Debug, Clone, Default)]
pub struct ServeArguments {
    /// The configuration file.
    pub config: Option<PathBuf>,
    /// Keys and texts.
    pub given: Vec<(&'static str, String)>,
}

impl Args for ServeArguments {
    fn augment_args(command: Command) -> Command {
        let config = Arg::new("config")
            .long("config")
            .env("TIDEGATE_CONFIG")
            .value_name("FILE")
            .help("A TOML file with settings, under the names of the flags")
            .value_parser(clap::value_parser!(PathBuf));
        let with_config = command.arg(config).after_help(
            "Every setting can also be given in the file, or as TIDEGATE_ and its name in upper case with `_`, for \
             example TIDEGATE_DRAIN_DEADLINE=1s. A flag overrules the environment, which overrules the file. \
             Durations are written 500ms, 30s, 1m30s, or in ISO 8601.\n\n\
             The operator's token comes from TIDEGATE_TOKEN, else from the token file; else one is made at the first \
             start, printed once and kept in the data directory.",
        );
        SETTINGS.iter().fold(with_config, |command, setting| {
            let arg = Arg::new(setting.key).long(setting.key).help(setting.help);
            let is_switch = setting.value.is_empty();
            command.arg(if is_switch {
                arg.value_name("true|false")
                    .num_args(0..=1)
                    .require_equals(true)
                    .default_missing_value("true")
            } else {
                arg.value_name(setting.value).help(format!(
                    "{} [env: {}]",
                    setting.help,
                    variable(setting.key)
                ))
            })
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for ServeArguments {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = SETTINGS.iter().filter_map(|setting| {
            let text = matches.get_one::<String>(setting.key)?;
            Some((setting.key, text.clone()))
        });
        Ok(Self {
            config: matches.get_one::<PathBuf>("config").cloned(),
            given: given.collect(),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
