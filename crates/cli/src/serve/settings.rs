//! The settings of the server: one table, from which flags, environment variables, the file's keys and the help
//! all come.

use std::collections::BTreeMap;
use std::path::Path;

/// One setting.
#[derive(Debug)]
pub struct Setting {
    /// Its key: the flag is `--KEY`, the variable `TIDEGATE_KEY` in upper case with `_`.
    pub key: &'static str,
    /// What stands for the value in the help; empty for a switch.
    pub value: &'static str,
    /// What it does.
    pub help: &'static str,
}

const fn setting(key: &'static str, value: &'static str, help: &'static str) -> Setting {
    Setting { key, value, help }
}

/// Every setting, in the order of the help.
pub const SETTINGS: &[Setting] = &[
    setting(
        "listen",
        "ADDRESS",
        "Where to listen [default: 127.0.0.1:8088]; port 0 takes a free one",
    ),
    setting("data", "DIR", "The data directory [default: tidegate-data]"),
    setting(
        "store",
        "URL",
        "The store instead of the data directory's own: `sqlite:PATH` or `memory:`",
    ),
    setting(
        "namespace",
        "NAME",
        "Which of several stores at that place [default: the one without a name]",
    ),
    setting(
        "wait-for-lock",
        "",
        "Wait while another process holds the store, instead of giving up",
    ),
    setting(
        "demo",
        "",
        "Offer the built-in trial handlers (demo.noop, demo.sleep, …)",
    ),
    setting(
        "delegates",
        "NAME=TYPE,…",
        "Job types that stand in for Java classes and delegates that models name",
    ),
    setting(
        "no-auth",
        "",
        "Let everybody do everything; for a loopback address only",
    ),
    setting(
        "token-file",
        "FILE",
        "The file that holds the operator's token [default: made at first start, in the data directory]",
    ),
    setting(
        "base-path",
        "PATH",
        "The path in front of the API's routes [default: /api/v1]",
    ),
    setting(
        "log",
        "FILTER",
        "What to log, for example `info` or `tidegate=debug` [default: info]",
    ),
    setting("log-format", "FORMAT", "`text` or `json` [default: text]"),
    setting(
        "drain-deadline",
        "DURATION",
        "How long a drain waits for running work [default: 30s]",
    ),
    setting(
        "host-grace",
        "DURATION",
        "How long the host waits before it kills; the drain stays inside it",
    ),
    setting(
        "persist-reserve",
        "DURATION",
        "The part of the grace kept for saving outcomes [default: 500ms]",
    ),
    setting(
        "listener-lead",
        "DURATION",
        "Go on listening this long after a stop signal, for slow routers [default: 0s]",
    ),
    setting(
        "ingress-pause-timeout",
        "DURATION",
        "How long pausing one source may take [default: 5s]",
    ),
    setting(
        "queue-max-depth",
        "NUMBER",
        "The limit of the queue while closed, or `none` [default: 10000]",
    ),
    setting(
        "overflow-policy",
        "POLICY",
        "Beyond that limit: `buffer` or `reject` [default: buffer]",
    ),
    setting(
        "pause-persistence",
        "SCOPE",
        "A pause is `session-scoped` or holds `across-reactivations` [default: session-scoped]",
    ),
    setting(
        "force-during-drain",
        "WHAT",
        "Force in a graceful drain does `escalate` or `reject` [default: escalate]",
    ),
    setting(
        "commit-policy",
        "POLICY",
        "Commit at each `activity` or at the end of a `cycle` [default: activity]",
    ),
    setting(
        "reported-ids",
        "NUMBER",
        "How many ids a drain report lists [default: 100]",
    ),
    setting(
        "recovery-batch",
        "NUMBER",
        "How many interrupted instances are recovered at a time [default: 100]",
    ),
    setting(
        "inactivity-threshold",
        "DURATION",
        "When a silent node's work is recovered [default: 5m]",
    ),
    setting(
        "message-ttl",
        "DURATION",
        "How long a message waits for a taker [default: 1h]",
    ),
    setting(
        "max-live-cycles",
        "NUMBER",
        "How many cycles may be live at once [default: 100000]",
    ),
    setting(
        "stimulus-attempts",
        "NUMBER",
        "Failed attempts until a queued stimulus becomes a dead letter [default: 3]",
    ),
    setting(
        "expiry-under-pause",
        "WHAT",
        "The time of buffered messages `stands-still` in a pause, or `runs` [default: stands-still]",
    ),
    setting(
        "cancel-patience",
        "DURATION",
        "How long handlers of a cancelled instance may take to stop before they are abandoned [default: 30s]",
    ),
    setting(
        "held-timers",
        "WHAT",
        "Timers of a suspended instance `keep-running`, or `stand-still` [default: keep-running]",
    ),
    setting(
        "deepest-call",
        "NUMBER",
        "How many levels deep processes may call each other [default: 1000]",
    ),
    setting(
        "quarantine-after",
        "NUMBER",
        "Crashes in a row until an instance's work is set aside [default: 3]",
    ),
    setting(
        "retention",
        "DURATION",
        "How long finished instances are kept, or `none` for ever [default: 30d]",
    ),
    setting(
        "retention-count",
        "NUMBER",
        "How many finished instances of each process are kept, or `none` [default: none]",
    ),
    setting(
        "journal-limit",
        "NUMBER",
        "Journal entries of a live instance that are kept, or `none` for all [default: 10000]",
    ),
    setting(
        "retention-fence",
        "DURATION",
        "How long the keys of forgotten instances are remembered [default: 1h]",
    ),
    setting(
        "retention-every",
        "DURATION",
        "How often it is looked for what is to be forgotten [default: 1m]",
    ),
    setting(
        "owners",
        "NUMBER",
        "Threads that execute instances [default: one per core, at most 8]",
    ),
    setting(
        "cache-bytes",
        "NUMBER",
        "The budget of the instance cache [default: 67108864]",
    ),
    setting(
        "max-connections",
        "NUMBER",
        "HTTP connections at once [default: 4096]",
    ),
    setting(
        "ready-while-paused",
        "",
        "Readiness stays 200 under an administrative pause",
    ),
];

/// What a shell may have of its own: everything that concerns the runtime and not the host.
const OF_SHELLS: [&str; 30] = [
    "store",
    "namespace",
    "demo",
    "delegates",
    "drain-deadline",
    "persist-reserve",
    "ingress-pause-timeout",
    "queue-max-depth",
    "overflow-policy",
    "pause-persistence",
    "force-during-drain",
    "commit-policy",
    "reported-ids",
    "recovery-batch",
    "inactivity-threshold",
    "message-ttl",
    "max-live-cycles",
    "stimulus-attempts",
    "expiry-under-pause",
    "cancel-patience",
    "held-timers",
    "deepest-call",
    "quarantine-after",
    "retention",
    "retention-count",
    "journal-limit",
    "retention-fence",
    "retention-every",
    "owners",
    "cache-bytes",
];

/// What a shell has of its own in any case.
const NEVER_INHERITED: [&str; 2] = ["store", "namespace"];

/// Names that the environment also has and that are no settings.
const OTHER_VARIABLES: [&str; 4] = ["config", "token", "server", "shell"];

/// A value as it was written, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    pub text: String,
    pub origin: String,
}

/// The values that were given, by key; what comes later in flag, environment, file is overruled.
#[derive(Debug, Default)]
pub struct Values {
    values: BTreeMap<&'static str, Written>,
}

impl Values {
    /// Adds a value unless a stronger place gave one.
    pub fn offer(&mut self, key: &'static str, text: String, origin: String) {
        self.values.entry(key).or_insert(Written { text, origin });
    }

    /// Takes what only a shell can say itself from its own table.
    pub fn take_own(&mut self, table: &Values) {
        for key in NEVER_INHERITED {
            if let Some(written) = table.values.get(key) {
                self.values.insert(key, written.clone());
            }
        }
    }

    /// Takes what a shell does not say itself from the default shell. Its store is its own in any case.
    pub fn inherit(&mut self, from: &Values) {
        for key in OF_SHELLS.into_iter().filter(|key| !NEVER_INHERITED.contains(key)) {
            if let Some(written) = from.values.get(key) {
                self.values.entry(key).or_insert_with(|| written.clone());
            }
        }
    }

    /// What was given for `key`.
    pub fn get(&self, key: &str) -> Option<&Written> {
        debug_assert!(
            SETTINGS.iter().any(|setting| setting.key == key),
            "no setting `{key}`"
        );
        self.values.get(key)
    }
}

/// The environment variable of a key.
pub fn variable(key: &str) -> String {
    format!("TIDEGATE_{}", key.replace('-', "_").to_ascii_uppercase())
}

/// Takes settings from the environment. Gives the names that look like settings and are none.
pub fn from_environment(
    values: &mut Values,
    environment: impl Iterator<Item = (String, String)>,
) -> Vec<String> {
    let mut unknown = Vec::new();
    for (name, text) in environment {
        let Some(rest) = name.strip_prefix("TIDEGATE_") else {
            continue;
        };
        let key = rest.to_ascii_lowercase().replace('_', "-");
        match SETTINGS.iter().find(|setting| setting.key == key) {
            Some(setting) => values.offer(setting.key, text, name),
            None if OTHER_VARIABLES.contains(&key.as_str()) => {}
            None => unknown.push(name),
        }
    }
    unknown
}

/// A static token of the file.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Token {
    /// Whom it stands for.
    pub name: String,
    /// The file that holds it.
    pub file: std::path::PathBuf,
    /// What it allows.
    pub permissions: Vec<String>,
    /// The only tenants that it knows of; all if not given.
    pub tenants: Option<Vec<String>>,
}

/// A shell of the file beside the default one.
#[derive(Debug, Default)]
pub struct ShellTable {
    /// Its id, as written.
    pub id: String,
    /// Its own settings; what it does not say is as for the default shell.
    pub values: Values,
    /// Tokens that know this shell alone.
    pub tokens: Vec<Token>,
}

/// What a file has beside plain settings.
#[derive(Debug, Default)]
pub struct Tables {
    /// Static tokens for the whole host.
    pub tokens: Vec<Token>,
    /// Shells, in their order.
    pub shells: Vec<ShellTable>,
    /// An issuer of signed tokens.
    pub oidc: Option<OidcTable>,
}

/// The issuer of signed tokens, as written.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct OidcTable {
    /// The `iss` of its tokens.
    pub issuer: String,
    /// One of these must be in a token's `aud`.
    pub audience: Vec<String>,
    /// Where its keys are; found through the issuer's discovery document if not given.
    pub jwks_url: Option<String>,
    /// Which algorithms count.
    pub algorithms: Option<Vec<String>>,
    /// The claim that names the caller.
    pub name_claim: Option<String>,
    /// The claim whose words are mapped, with dots between nested names.
    pub permissions_claim: Option<String>,
    /// The claim that lists a caller's tenants, likewise.
    pub tenants_claim: Option<String>,
    /// What each word of that claim allows.
    pub permissions: BTreeMap<String, Vec<String>>,
}

/// Takes settings from a TOML file. Gives its tables, and adds what is wrong with it.
pub fn from_file(values: &mut Values, path: &Path, wrong: &mut Vec<(String, String)>) -> Tables {
    let mut tables = Tables::default();
    let refuse = |message: String| ("config".to_owned(), message);
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) => {
            wrong.push(refuse(format!("`{}` cannot be read: {error}", path.display())));
            return tables;
        }
    };
    let table = match text.parse::<toml::Table>() {
        Ok(table) => table,
        Err(error) => {
            let message = error.to_string();
            wrong.push(refuse(format!(
                "`{}` is no TOML: {}",
                path.display(),
                message.trim_end()
            )));
            return tables;
        }
    };
    for (name, value) in table {
        match (name.replace('_', "-").as_str(), value) {
            ("tokens", value) => tables.tokens = entries("tokens", value, wrong),
            ("oidc", value) => match value.try_into() {
                Ok(oidc) => tables.oidc = Some(oidc),
                Err(error) => wrong.push(("oidc".to_owned(), error.to_string().trim_end().to_owned())),
            },
            ("shells", toml::Value::Array(shells)) => {
                let shells = shells.into_iter().enumerate();
                tables.shells = shells
                    .filter_map(|(position, shell)| read_shell(position, shell, path, wrong))
                    .collect();
            }
            (_, value) => take(values, &name, value, path, &|_| true, "", wrong),
        }
    }
    tables
}

/// Takes one plain setting.
fn take(
    values: &mut Values,
    name: &str,
    value: toml::Value,
    path: &Path,
    is_allowed: &dyn Fn(&str) -> bool,
    prefix: &str,
    wrong: &mut Vec<(String, String)>,
) {
    let key = name.replace('_', "-");
    let origin = format!("{}: {prefix}{name}", path.display());
    let Some(setting) = SETTINGS.iter().find(|setting| setting.key == key) else {
        wrong.push((
            format!("{prefix}{name}"),
            format!("is no setting{}", nearest(&key)),
        ));
        return;
    };
    if !is_allowed(setting.key) {
        let message = "concerns the whole host; set it outside `[[shells]]`".to_owned();
        wrong.push((format!("{prefix}{key}"), message));
        return;
    }
    match value {
        toml::Value::String(text) => values.offer(setting.key, text, origin),
        toml::Value::Integer(number) => values.offer(setting.key, number.to_string(), origin),
        toml::Value::Boolean(is_on) => values.offer(setting.key, is_on.to_string(), origin),
        other => {
            let message = format!(
                "is a {} in `{}`; expected a text",
                other.type_str(),
                path.display()
            );
            wrong.push((format!("{prefix}{key}"), message));
        }
    }
}

fn read_shell(
    position: usize,
    shell: toml::Value,
    path: &Path,
    wrong: &mut Vec<(String, String)>,
) -> Option<ShellTable> {
    let unnamed = format!("shells.{position}");
    let toml::Value::Table(mut shell) = shell else {
        wrong.push((unnamed, "is no table; write `[[shells]]`".to_owned()));
        return None;
    };
    let Some(toml::Value::String(id)) = shell.remove("id") else {
        wrong.push((unnamed, "has no `id`, a text".to_owned()));
        return None;
    };
    let prefix = format!("shells.{id}.");
    let mut read = ShellTable {
        id,
        ..ShellTable::default()
    };
    for (name, value) in shell {
        match name.as_str() {
            "tokens" => read.tokens = entries(&format!("{prefix}tokens"), value, wrong),
            _ => {
                let is_allowed = |key: &str| OF_SHELLS.contains(&key);
                take(&mut read.values, &name, value, path, &is_allowed, &prefix, wrong);
            }
        }
    }
    Some(read)
}

fn entries(key: &str, value: toml::Value, wrong: &mut Vec<(String, String)>) -> Vec<Token> {
    value.try_into().unwrap_or_else(|error: toml::de::Error| {
        wrong.push((key.to_owned(), error.to_string().trim_end().to_owned()));
        Vec::new()
    })
}

/// A hint at the setting that was probably meant.
fn nearest(key: &str) -> String {
    let shared = |known: &str| known.chars().zip(key.chars()).take_while(|(a, b)| a == b).count();
    let best = SETTINGS.iter().max_by_key(|setting| shared(setting.key));
    match best {
        Some(setting) if shared(setting.key) >= 3 => format!("; did you mean `{}`?", setting.key),
        _ => "; `tidegate serve --help` lists them".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_overrules_the_environment_and_unknown_variables_are_told() {
        let mut values = Values::default();
        values.offer("listen", "a".to_owned(), "--listen".to_owned());
        let environment = [
            ("TIDEGATE_LISTEN", "b"),
            ("TIDEGATE_DRAIN_DEADLINE", "1s"),
            ("TIDEGATE_LISTN", "c"),
            ("X", ""),
        ];
        let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(
            from_environment(&mut values, environment.into_iter()),
            ["TIDEGATE_LISTN"]
        );
        assert_eq!(values.get("listen").unwrap().text, "a");
        assert_eq!(
            values.get("drain-deadline").unwrap().origin,
            "TIDEGATE_DRAIN_DEADLINE"
        );
    }

    #[test]
    fn near_misses_are_named() {
        assert_eq!(nearest("drain-dedline"), "; did you mean `drain-deadline`?");
        assert!(nearest("zzz").contains("--help"));
    }
}
