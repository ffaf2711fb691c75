//! From written values to a checked configuration. Everything that is wrong is found in one go.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tidegate::options::ExpiryUnderPause;
use tidegate::status::OverflowPolicy;
use tidegate::store::Namespace;
use tidegate::{CommitPolicy, ForceDuringDrain, Options, PausePersistence, Retention};
use tidegate_server::ApiOptions;
use tidegate_server::auth::{Credential, Permissions};
use tidegate_server::host::DEFAULT_SHELL;
use tidegate_server::listen::ListenOptions;

use super::settings::{ShellTable, Tables, Token, Values, Written};
use crate::duration;

/// A checked configuration.
#[derive(Debug)]
pub struct Config {
    pub listen: SocketAddr,
    /// None when the stores are elsewhere.
    pub data: Option<PathBuf>,
    pub wait_for_lock: bool,
    pub no_auth: bool,
    pub log: String,
    pub log_as_json: bool,
    pub listener_lead: Duration,
    pub api: ApiOptions,
    pub connections: ListenOptions,
    /// The default shell first.
    pub shells: Vec<ShellConfig>,
}

/// What one shell is made of.
#[derive(Debug, Clone)]
pub struct ShellConfig {
    pub id: String,
    pub store: String,
    /// Which of the stores there.
    pub namespace: Namespace,
    pub demo: bool,
    /// Names of Java code with the job types that stand in for it.
    pub delegates: Vec<(String, String)>,
    pub options: Options,
}

/// What is wrong with the configuration: keys and messages.
pub type Wrong = Vec<(String, String)>;

/// The prefix of the keys of one shell beside the default one.
pub fn prefix(shell: &str) -> String {
    format!("shells.{shell}.")
}

/// Checks every value.
pub fn check(values: &Values, shells: &[ShellTable], wrong: &mut Wrong) -> Config {
    let mut read = Reader {
        values,
        prefix: String::new(),
        wrong,
    };
    let store = read.text("store");
    let data = match &store {
        Some(_) => read
            .values
            .get("data")
            .map(|written| PathBuf::from(&written.text)),
        None => Some(PathBuf::from(
            read.text("data").unwrap_or_else(|| "tidegate-data".to_owned()),
        )),
    };
    let in_data = data
        .as_ref()
        .map(|data| format!("sqlite:{}", data.join("tidegate.db").display()));
    let host_grace = read.duration("host-grace");
    let store = store.or(in_data).unwrap_or_default();
    let namespace = namespace(&mut read, &store);
    let default = ShellConfig {
        id: DEFAULT_SHELL.to_owned(),
        demo: read.switch("demo"),
        delegates: delegates(&mut read),
        options: options(&mut read, host_grace, &store, &namespace),
        store,
        namespace,
    };
    let no_auth = read.switch("no-auth");
    let listen = read.address("listen");
    if no_auth && !listen.ip().is_loopback() {
        read.refuse(
            "no-auth",
            format!("without authentication the server listens on a loopback address only, not on {listen}"),
        );
    }
    let base = read
        .text("base-path")
        .unwrap_or_else(|| ApiOptions::default().base);
    if let Err(message) = ApiOptions::check_base(&base) {
        read.refuse("base-path", message);
    }
    let max_connections = read
        .number("max-connections")
        .unwrap_or(ListenOptions::default().max_connections);
    if max_connections == 0 {
        read.refuse("max-connections", "must be greater than 0".to_owned());
    }
    let log = read.text("log").unwrap_or_else(|| "info".to_owned());
    if let Err(error) = log.parse::<tracing_subscriber::filter::EnvFilter>() {
        read.refuse("log", format!("`{log}` is no filter: {error}"));
    }
    let config = Config {
        listen,
        wait_for_lock: read.switch("wait-for-lock"),
        no_auth,
        log,
        log_as_json: read.word("log-format", &[("text", false), ("json", true)], false),
        listener_lead: read.duration("listener-lead").unwrap_or_default(),
        api: ApiOptions {
            base,
            ready_while_paused: read.switch("ready-while-paused"),
            ..ApiOptions::default()
        },
        connections: ListenOptions {
            max_connections,
            ..ListenOptions::default()
        },
        shells: all_shells(default, shells, values, data.as_deref(), wrong),
        data,
    };
    for shell in &config.shells {
        let prefix = if shell.id == DEFAULT_SHELL {
            String::new()
        } else {
            prefix(&shell.id)
        };
        let already: Vec<_> = wrong.iter().map(|(key, _)| key.clone()).collect();
        let found = shell.options.validate().into_iter();
        let found = found.map(|(key, message)| (format!("{prefix}{key}"), message));
        wrong.extend(found.filter(|(key, _)| !already.contains(key)));
    }
    config
}

/// The default shell and those of the file, no two with one id or one store.
fn all_shells(
    default: ShellConfig,
    tables: &[ShellTable],
    values: &Values,
    data: Option<&Path>,
    wrong: &mut Wrong,
) -> Vec<ShellConfig> {
    let host_grace = default.options.host_grace;
    let mut shells = vec![default];
    for table in tables {
        let id = table.id.to_ascii_lowercase();
        let mut own = Values::default();
        own.inherit(&table.values);
        own.take_own(&table.values);
        own.inherit(values);
        let mut read = Reader {
            values: &own,
            prefix: prefix(&table.id),
            wrong,
        };
        if !is_shell_id(&id) {
            let message = format!(
                "`{}` is no shell id: up to 63 letters, digits, `-` and `_`",
                table.id
            );
            read.refuse("id", message);
            continue;
        }
        if shells.iter().any(|shell| shell.id == id) {
            read.refuse(
                "id",
                "is taken; ids are matched without regard to case".to_owned(),
            );
            continue;
        }
        // A namespace says that a store is shared: with the default shell, if it does not say with whom.
        let shared = own.get("namespace").map(|_| shells[0].store.clone());
        let store = match (read.text("store").or(shared), data) {
            (Some(store), _) => store,
            (None, Some(data)) => {
                let file = data.join("shells").join(&id).join("tidegate.db");
                format!("sqlite:{}", file.display())
            }
            (None, None) => {
                read.refuse("store", "is needed: the host has no data directory".to_owned());
                continue;
            }
        };
        let namespace = namespace(&mut read, &store);
        if let Some(other) = shells
            .iter()
            .find(|shell| is_same_store(shell, &store, &namespace))
        {
            let message = format!(
                "`{store}` is the store of `{}`, in the namespace `{namespace}`; give each shell a `store` or a \
                 `namespace` of its own",
                other.id
            );
            read.refuse("store", message);
        }
        let demo = read.switch("demo");
        let delegates = delegates(&mut read);
        let options = options(&mut read, host_grace, &store, &namespace);
        shells.push(ShellConfig {
            id,
            store,
            namespace,
            demo,
            delegates,
            options,
        });
    }
    shells
}

/// Which of the stores at this place; the one without a name if none is said.
fn namespace(read: &mut Reader, store: &str) -> Namespace {
    let named = read.read("namespace", |text| {
        text.parse()
            .map_err(|error: tidegate::store::Error| error.to_string())
    });
    let namespace: Namespace = named.unwrap_or_default();
    if is_fleeting(store) && !namespace.is_default() {
        read.refuse("namespace", format!("`{store}` is nobody else's; leave it out"));
    }
    namespace
}

fn is_same_store(shell: &ShellConfig, store: &str, namespace: &Namespace) -> bool {
    !is_fleeting(store)
        && shell.namespace == *namespace
        && tidegate::store::place(&shell.store) == tidegate::store::place(store)
}

/// Every memory is its own.
fn is_fleeting(store: &str) -> bool {
    store.starts_with("memory:")
}

fn delegates(read: &mut Reader) -> Vec<(String, String)> {
    let text = read.text("delegates").unwrap_or_default();
    crate::scripts::delegates(&text).unwrap_or_else(|message| {
        read.refuse("delegates", message);
        Vec::new()
    })
}

fn is_shell_id(id: &str) -> bool {
    const MAX: usize = 63;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (1..=MAX).contains(&id.len()) && id.bytes().all(plain) && id.as_bytes()[0].is_ascii_alphanumeric()
}

/// The options of a runtime on this store; what the store cannot take is kept beside it.
fn options(read: &mut Reader, host_grace: Option<Duration>, store: &str, namespace: &Namespace) -> Options {
    let before = Options::default();
    Options {
        commit_policy: read.word(
            "commit-policy",
            &[
                ("activity", CommitPolicy::Activity),
                ("cycle", CommitPolicy::Cycle),
            ],
            before.commit_policy,
        ),
        drain_deadline: read.duration("drain-deadline").unwrap_or(before.drain_deadline),
        host_grace,
        persist_reserve: read.duration("persist-reserve").unwrap_or(before.persist_reserve),
        ingress_pause_timeout: read
            .duration("ingress-pause-timeout")
            .unwrap_or(before.ingress_pause_timeout),
        queue_max_depth: read.limit("queue-max-depth", before.queue_max_depth),
        overflow_policy: read.word(
            "overflow-policy",
            &[
                ("buffer", OverflowPolicy::Buffer),
                ("reject", OverflowPolicy::Reject),
            ],
            before.overflow_policy,
        ),
        pause_persistence: read.word(
            "pause-persistence",
            &[
                ("session-scoped", PausePersistence::SessionScoped),
                ("across-reactivations", PausePersistence::AcrossReactivations),
            ],
            before.pause_persistence,
        ),
        force_during_drain: read.word(
            "force-during-drain",
            &[
                ("escalate", ForceDuringDrain::Escalate),
                ("reject", ForceDuringDrain::Reject),
            ],
            before.force_during_drain,
        ),
        reported_ids: read.number("reported-ids").unwrap_or(before.reported_ids),
        recovery_batch: read.number("recovery-batch").unwrap_or(before.recovery_batch),
        inactivity_threshold: read
            .duration("inactivity-threshold")
            .unwrap_or(before.inactivity_threshold),
        message_ttl: read.duration("message-ttl").unwrap_or(before.message_ttl),
        owners: read.number("owners").unwrap_or(before.owners),
        cache_bytes: read.number("cache-bytes").unwrap_or(before.cache_bytes),
        max_live_cycles: read.number("max-live-cycles").unwrap_or(before.max_live_cycles),
        stimulus_attempts: read
            .number("stimulus-attempts")
            .unwrap_or(before.stimulus_attempts),
        expiry_under_pause: read.word(
            "expiry-under-pause",
            &[
                ("stands-still", ExpiryUnderPause::StandsStill),
                ("runs", ExpiryUnderPause::Runs),
            ],
            before.expiry_under_pause,
        ),
        spill: store.strip_prefix("sqlite:").map(|file| {
            PathBuf::from(match namespace.is_default() {
                true => format!("{file}.spill"),
                false => format!("{file}.{namespace}.spill"),
            })
        }),
        cancel_patience: read.duration("cancel-patience").unwrap_or(before.cancel_patience),
        held_timers: read.word(
            "held-timers",
            &[
                ("keep-running", tidegate::model::HeldTimers::KeepRunning),
                ("stand-still", tidegate::model::HeldTimers::StandStill),
            ],
            before.held_timers,
        ),
        deepest_call: read.number("deepest-call").unwrap_or(before.deepest_call),
        quarantine_after: read.number("quarantine-after").unwrap_or(before.quarantine_after),
        retention: retention(read),
    }
}

/// How long what has ended is remembered.
fn retention(read: &mut Reader) -> Retention {
    let before = Retention::default();
    let age = read.read("retention", |text| match text {
        "none" => Ok(None),
        text => duration::parse(text).map(Some),
    });
    Retention {
        age: age.unwrap_or(before.age),
        count: read.limit("retention-count", before.count),
        journal_limit: read.limit("journal-limit", before.journal_limit),
        fence: read.duration("retention-fence").unwrap_or(before.fence),
        every: read.duration("retention-every").unwrap_or(before.every),
    }
}

/// The credentials of the file's static tokens: of the host's, and of each shell's.
pub fn credentials(tables: &Tables, wrong: &mut Wrong) -> Vec<Credential> {
    let mut credentials = read_tokens("tokens", &tables.tokens, wrong);
    for shell in &tables.shells {
        let own = read_tokens(&format!("{}tokens", prefix(&shell.id)), &shell.tokens, wrong);
        credentials.extend(own.into_iter().map(|credential| credential.of_shell(&shell.id)));
    }
    credentials
}

fn read_tokens(key: &str, tokens: &[Token], wrong: &mut Wrong) -> Vec<Credential> {
    let mut credentials = Vec::new();
    for token in tokens {
        let mut refuse =
            |message: String| wrong.push((key.to_owned(), format!("`{}`: {message}", token.name)));
        let permissions = Permissions::parse(token.permissions.iter().map(String::as_str));
        match (permissions, std::fs::read_to_string(&token.file)) {
            (Err(message), _) => refuse(message),
            (_, Err(error)) => refuse(format!(
                "its file `{}` cannot be read: {error}",
                token.file.display()
            )),
            (_, Ok(text)) if text.trim().is_empty() => {
                refuse(format!("its file `{}` is empty", token.file.display()))
            }
            (Ok(_), Ok(_)) if token.tenants.as_ref().is_some_and(Vec::is_empty) => {
                refuse("`tenants` names none; leave it out for all tenants".to_owned());
            }
            (Ok(permissions), Ok(text)) => {
                let credential = Credential::of_token(text.trim(), &token.name, permissions);
                credentials.push(match &token.tenants {
                    Some(tenants) => credential.of_tenants(tenants),
                    None => credential,
                });
            }
        }
    }
    credentials
}

/// The operator's token may do everything.
pub fn operator(token: &str) -> Credential {
    Credential::of_token(token, "operator", Permissions::ALL)
}

struct Reader<'a> {
    values: &'a Values,
    /// Stands before keys in what is refused.
    prefix: String,
    wrong: &'a mut Wrong,
}

impl Reader<'_> {
    fn refuse(&mut self, key: &str, message: String) {
        self.wrong.push((format!("{}{key}", self.prefix), message));
    }

    fn read<T>(&mut self, key: &str, parse: impl FnOnce(&str) -> Result<T, String>) -> Option<T> {
        let Written { text, origin } = self.values.get(key)?;
        match parse(text.trim()) {
            Ok(value) => Some(value),
            Err(message) => {
                self.refuse(key, format!("{message} (from {origin})"));
                None
            }
        }
    }

    fn text(&mut self, key: &str) -> Option<String> {
        self.read(key, |text| {
            if text.is_empty() {
                Err("is empty".to_owned())
            } else {
                Ok(text.to_owned())
            }
        })
    }

    fn duration(&mut self, key: &str) -> Option<Duration> {
        self.read(key, duration::parse)
    }

    fn number<T: std::str::FromStr>(&mut self, key: &str) -> Option<T> {
        self.read(key, |text| {
            text.parse()
                .map_err(|_| format!("`{text}` is no whole number in range"))
        })
    }

    fn limit(&mut self, key: &str, default: Option<u64>) -> Option<u64> {
        let given = self.read(key, |text| match text {
            "none" => Ok(None),
            number => number
                .parse()
                .map(Some)
                .map_err(|_| format!("`{number}` is neither a whole number nor `none`")),
        });
        given.unwrap_or(default)
    }

    fn switch(&mut self, key: &str) -> bool {
        self.word(
            key,
            &[("true", true), ("false", false), ("1", true), ("0", false)],
            false,
        )
    }

    fn word<T: Copy>(&mut self, key: &str, words: &[(&str, T)], default: T) -> T {
        let plain = |word: &str| word.replace(['-', '_'], "").to_ascii_lowercase();
        let given = self.read(key, |text| {
            let found = words.iter().find(|(word, _)| plain(word) == plain(text));
            found.map(|(_, value)| *value).ok_or_else(|| {
                let words: Vec<_> = words.iter().map(|(word, _)| format!("`{word}`")).collect();
                format!("`{text}` is not one of {}", words.join(", "))
            })
        });
        given.unwrap_or(default)
    }

    fn address(&mut self, key: &str) -> SocketAddr {
        let default = SocketAddr::from(([127, 0, 0, 1], 8088));
        let given = self.read(key, |text| {
            let mut found = text.to_socket_addrs().map_err(|error| {
                format!(
                    "`{text}` is no address to listen on ({error}); expected for example `127.0.0.1:8088`"
                )
            })?;
            found.next().ok_or_else(|| format!("`{text}` has no address"))
        });
        given.unwrap_or(default)
    }
}
