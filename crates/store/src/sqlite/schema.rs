//! The tables, by the version that brought them. Never edit a step that has shipped: add one.

/// "TdGt": marks a SQLite file as ours.
pub(super) const APPLICATION_ID: i32 = 0x5464_4774;

/// Schema steps; step `n` (from 1) leads from version `n - 1` to version `n`.
pub(super) const STEPS: &[&str] = &[FIRST, TASK_DETAILS, SENDERS, FORGETTING];

/// `meta` holds what each transaction brings up to date once: the fence, the key marks and the totals that
/// would otherwise have to be counted.
///
/// The conditions of the partial indexes are spelled with OR: for a list in IN, SQLite builds a table at each update.
const FIRST: &str = "
CREATE TABLE meta (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    epoch INTEGER NOT NULL,
    key_high INTEGER NOT NULL,
    stimulus_high INTEGER NOT NULL,
    queued INTEGER NOT NULL,
    pending INTEGER NOT NULL,
    executing INTEGER NOT NULL,
    suspended INTEGER NOT NULL,
    interrupted INTEGER NOT NULL,
    held INTEGER NOT NULL,
    cancelling INTEGER NOT NULL,
    finished INTEGER NOT NULL,
    cancelled INTEGER NOT NULL,
    faulted INTEGER NOT NULL
) STRICT;
INSERT INTO meta VALUES (1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);

CREATE TABLE instances (
    key INTEGER PRIMARY KEY,
    revision INTEGER NOT NULL,
    sub_status INTEGER NOT NULL,
    incident_count INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    state_revision INTEGER NOT NULL,
    is_split INTEGER NOT NULL,
    ended_at INTEGER,
    started_at INTEGER NOT NULL,
    definition INTEGER NOT NULL,
    version INTEGER NOT NULL,
    parent INTEGER,
    parent_element INTEGER,
    depth INTEGER NOT NULL,
    process_id TEXT NOT NULL,
    tenant TEXT NOT NULL,
    business_key TEXT,
    state BLOB
) STRICT;
CREATE INDEX instances_recoverable ON instances (key)
    WHERE sub_status = 1 OR sub_status = 3 OR sub_status = 5;
CREATE INDEX instances_waiting ON instances (sub_status) WHERE sub_status = 0 OR sub_status = 4;
CREATE INDEX instances_troubled ON instances (key) WHERE incident_count > 0;
CREATE INDEX instances_by_business_key ON instances (business_key) WHERE business_key IS NOT NULL;
CREATE INDEX instances_by_parent ON instances (parent) WHERE parent IS NOT NULL;

CREATE TABLE snapshots (
    instance INTEGER PRIMARY KEY,
    state BLOB NOT NULL
) STRICT;

CREATE TABLE journal (
    id INTEGER PRIMARY KEY,
    instance INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    first_sequence INTEGER NOT NULL,
    payload BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX journal_by_instance ON journal (instance, revision);

CREATE TABLE timers (
    owner INTEGER NOT NULL,
    element INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    instance INTEGER,
    fired INTEGER NOT NULL,
    PRIMARY KEY (owner, element)
) STRICT, WITHOUT ROWID;
CREATE INDEX timers_by_due ON timers (due_at, owner, element);

CREATE TABLE subscriptions (
    id INTEGER PRIMARY KEY,
    owner INTEGER NOT NULL,
    element INTEGER NOT NULL,
    instance INTEGER NOT NULL,
    process_id TEXT NOT NULL,
    tenant TEXT NOT NULL,
    message_name TEXT NOT NULL,
    correlation_key TEXT NOT NULL,
    once INTEGER NOT NULL,
    is_signal INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX subscriptions_by_owner ON subscriptions (owner, element);
CREATE INDEX subscriptions_by_message ON subscriptions (correlation_key, message_name, tenant, is_signal, process_id);

CREATE TABLE messages (
    key INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    name TEXT NOT NULL,
    correlation_key TEXT NOT NULL,
    variables TEXT NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT;
CREATE INDEX messages_by_name ON messages (correlation_key, name, tenant);
CREATE INDEX messages_by_expiry ON messages (expires_at);

CREATE TABLE jobs (
    key INTEGER PRIMARY KEY,
    instance INTEGER NOT NULL,
    definition INTEGER NOT NULL,
    process_id TEXT NOT NULL,
    tenant TEXT NOT NULL,
    element_id TEXT NOT NULL,
    job_type TEXT NOT NULL,
    headers TEXT NOT NULL,
    variables TEXT NOT NULL,
    retries INTEGER NOT NULL,
    state INTEGER NOT NULL,
    not_before INTEGER NOT NULL,
    worker TEXT,
    lease_token TEXT,
    lease_until INTEGER
) STRICT;
CREATE INDEX jobs_available ON jobs (job_type, tenant, key) WHERE state = 0;
CREATE INDEX jobs_leased ON jobs (job_type, tenant, lease_until) WHERE state = 1;

CREATE TABLE user_tasks (
    key INTEGER PRIMARY KEY,
    instance INTEGER NOT NULL,
    process_id TEXT NOT NULL,
    tenant TEXT NOT NULL,
    element_id TEXT NOT NULL,
    name TEXT,
    assignee TEXT,
    candidate_groups TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX user_tasks_by_instance ON user_tasks (instance);
CREATE INDEX user_tasks_by_assignee ON user_tasks (assignee) WHERE assignee IS NOT NULL;

CREATE TABLE incidents (
    key INTEGER PRIMARY KEY,
    instance INTEGER NOT NULL,
    process_id TEXT NOT NULL,
    tenant TEXT NOT NULL,
    element_id TEXT,
    element_instance INTEGER,
    code TEXT NOT NULL,
    message TEXT NOT NULL,
    raised_at INTEGER NOT NULL
) STRICT;
CREATE INDEX incidents_by_instance ON incidents (instance);

CREATE TABLE stimuli (
    key INTEGER PRIMARY KEY,
    domain TEXT NOT NULL,
    source TEXT NOT NULL,
    payload BLOB NOT NULL,
    accepted_at INTEGER NOT NULL,
    attempts INTEGER NOT NULL
) STRICT;

CREATE TABLE dead_letters (
    key INTEGER PRIMARY KEY,
    domain TEXT NOT NULL,
    source TEXT NOT NULL,
    payload BLOB NOT NULL,
    accepted_at INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    code TEXT NOT NULL,
    error TEXT NOT NULL,
    died_at INTEGER NOT NULL
) STRICT;

CREATE TABLE resources (
    key INTEGER PRIMARY KEY,
    bytes BLOB NOT NULL
) STRICT;

CREATE TABLE definitions (
    key INTEGER PRIMARY KEY,
    is_decision INTEGER NOT NULL,
    deployment INTEGER NOT NULL,
    resource INTEGER NOT NULL,
    resource_name TEXT NOT NULL,
    checksum TEXT NOT NULL,
    process_id TEXT NOT NULL,
    version INTEGER NOT NULL,
    name TEXT,
    tenant TEXT NOT NULL,
    deployed_at INTEGER NOT NULL,
    is_deleted INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX definitions_by_version ON definitions (process_id, tenant, version);

CREATE TABLE entries (
    key TEXT PRIMARY KEY,
    value BLOB NOT NULL,
    expires_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX entries_by_expiry ON entries (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE audit (
    key INTEGER PRIMARY KEY,
    time INTEGER NOT NULL,
    action TEXT NOT NULL,
    actor TEXT NOT NULL,
    reason TEXT,
    shell TEXT NOT NULL,
    subject TEXT,
    before TEXT,
    after TEXT,
    outcome TEXT NOT NULL,
    scope TEXT NOT NULL,
    request_id TEXT
) STRICT;
";

/// Candidate users, form, dates and priority of a user task, as JSON.
const TASK_DETAILS: &str = "
ALTER TABLE user_tasks ADD COLUMN details TEXT NOT NULL DEFAULT '{}';
";

/// Who sent a message that waits, encoded.
const SENDERS: &str = "ALTER TABLE messages ADD COLUMN sender BLOB;";

/// Forgetting and retention: what has ended by its end, everything of an instance by its instance, what was forgotten, and
/// operations on many. Indexes by instance grow at their right edge, since keys do.
const FORGETTING: &str = "
ALTER TABLE instances ADD COLUMN trimmed INTEGER NOT NULL DEFAULT 0;
CREATE INDEX instances_ended ON instances (process_id, tenant, ended_at, key) WHERE ended_at IS NOT NULL;
CREATE INDEX timers_by_instance ON timers (instance) WHERE instance IS NOT NULL;
CREATE INDEX subscriptions_by_instance ON subscriptions (instance);
CREATE INDEX jobs_by_instance ON jobs (instance);

CREATE TABLE forgotten (
    instance INTEGER PRIMARY KEY,
    definition INTEGER NOT NULL,
    sub_status INTEGER NOT NULL,
    forgotten_at INTEGER NOT NULL,
    expires_at INTEGER,
    journal INTEGER NOT NULL
) STRICT;
CREATE INDEX forgotten_by_expiry ON forgotten (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX forgotten_going ON forgotten (instance) WHERE journal = 1;

CREATE TABLE operations (
    key INTEGER PRIMARY KEY,
    ended_at INTEGER,
    body TEXT NOT NULL
) STRICT;
CREATE INDEX operations_open ON operations (key) WHERE ended_at IS NULL;
CREATE TABLE operation_items (
    operation INTEGER NOT NULL,
    instance INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    detail TEXT,
    PRIMARY KEY (operation, instance)
) STRICT, WITHOUT ROWID;
";
