//! What becomes of a SQLite store whose file, folder or disk is not as it should be. Every refusal says which file,
//! what is wrong and what to do.

use std::fs::{self, OpenOptions};
use std::io::{Seek, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use tidegate_model::{DefinitionKey, InstanceKey, StimulusKey, SubStatus, Timestamp};
use tidegate_store::sqlite::{Options, SqliteStore};
use tidegate_store::{
    Batch, Commit, CommitError, CommitResult, Error, ErrorKind, Expect, InstanceRow, InstanceUpdate, Queries,
    Store, Write,
};

const PATIENCE: Duration = Duration::from_secs(60);

struct Folder {
    _folder: tempfile::TempDir,
    file: PathBuf,
}

impl Folder {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("data").join("tidegate.db");
        Self {
            _folder: folder,
            file,
        }
    }

    /// A closed store with `instances` instances, all of it in the database file.
    fn with_instances(instances: u64) -> Self {
        let folder = Self::new();
        let store = SqliteStore::open(&folder.file).unwrap();
        let epoch = store.activate().unwrap().epoch;
        let results = run(
            &store,
            epoch,
            (1..=instances).map(|key| commit(vec![create(key)])).collect(),
        );
        assert!(results.iter().all(Result::is_ok));
        store.close();
        let conn = rusqlite::Connection::open(&folder.file).unwrap();
        conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
            .unwrap();
        folder
    }

    fn overwrite(&self, from: u64, bytes: &[u8]) {
        let mut file = OpenOptions::new().write(true).open(&self.file).unwrap();
        file.seek(SeekFrom::Start(from)).unwrap();
        file.write_all(bytes).unwrap();
    }
}

fn commit(writes: Vec<Write>) -> Commit {
    Commit {
        expect: vec![],
        writes,
    }
}

fn create(key: u64) -> Write {
    create_with(key, 100)
}

fn create_with(key: u64, state_bytes: usize) -> Write {
    let row = InstanceRow {
        key: InstanceKey(key),
        definition: DefinitionKey(7),
        process_id: Arc::from("order"),
        version: 3,
        tenant: Arc::from("<default>"),
        business_key: None,
        parent: None,
        parent_element: None,
        enclosing: Vec::new(),
        depth: 0,
        revision: 1,
        sub_status: SubStatus::Suspended,
        incident_count: 0,
        attempts: 0,
        started_at: Timestamp::from_ms(1_000),
        ended_at: None,
    };
    Write::CreateInstance {
        row: Box::new(row),
        state: Some(vec![7; state_bytes]),
    }
}

fn update(key: u64, revision: u64) -> Write {
    Write::UpdateInstance(InstanceUpdate {
        key: InstanceKey(key),
        revision,
        sub_status: SubStatus::Suspended,
        incident_count: 0,
        attempts: 0,
        ended_at: None,
        state: None,
    })
}

fn run(store: &SqliteStore, epoch: u64, commits: Vec<Commit>) -> Vec<CommitResult> {
    let (tell, told) = mpsc::channel();
    let done = Box::new(move |results| {
        let _ = tell.send(results);
    });
    store.submit(Batch {
        epoch,
        key_high: 0,
        commits,
        done,
    });
    told.recv_timeout(PATIENCE).unwrap()
}

fn kind_of(result: &CommitResult) -> ErrorKind {
    match result {
        Err(CommitError::Failed {
            error,
            may_have_happened: false,
        }) => error.kind(),
        other => panic!("expected a failure that left nothing, found {other:?}"),
    }
}

/// The error of opening, which must name the file.
fn refused(path: &Path) -> Error {
    let error = SqliteStore::open(path).err().expect("the store must not open");
    assert!(
        error
            .to_string()
            .contains(path.file_name().unwrap().to_str().unwrap()),
        "{error}"
    );
    error
}

#[test]
fn a_folder_is_made_where_it_is_missing() {
    let folder = Folder::new();
    let store = tidegate_store::open(&format!("sqlite:{}", folder.file.display())).unwrap();
    assert_eq!(store.activate().unwrap().epoch, 1);
    assert!(folder.file.is_file());
    assert_eq!(
        tidegate_store::open("postgres:x").err().unwrap().kind(),
        ErrorKind::Configuration
    );
    assert_eq!(
        tidegate_store::open("sqlite:").err().unwrap().kind(),
        ErrorKind::Configuration
    );
}

#[test]
fn a_second_opener_is_told_who_holds_the_store() {
    let folder = Folder::new();
    let store = SqliteStore::open(&folder.file).unwrap();
    let error = refused(&folder.file);
    assert_eq!(error.kind(), ErrorKind::Locked);
    assert!(
        error
            .to_string()
            .contains(&format!("process {}", std::process::id())),
        "{error}"
    );
    assert!(SqliteStore::open_wait(&folder.file, Duration::from_millis(1)).is_err());
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| SqliteStore::open_wait(&folder.file, PATIENCE).map(drop));
        store.close();
        assert_eq!(waiting.join().unwrap(), Ok(()));
    });
    drop(SqliteStore::open(&folder.file).unwrap());
}

#[test]
fn a_file_that_is_no_database_is_refused() {
    let folder = Folder::new();
    fs::create_dir_all(folder.file.parent().unwrap()).unwrap();
    for content in ["Dear diary, ".repeat(1_000), "short".to_owned()] {
        fs::write(&folder.file, &content).unwrap();
        assert_eq!(refused(&folder.file).kind(), ErrorKind::Damaged);
        assert_eq!(
            fs::read_to_string(&folder.file).unwrap(),
            content,
            "it is left as it was"
        );
    }
}

#[test]
fn a_database_of_another_program_is_refused() {
    let folder = Folder::new();
    fs::create_dir_all(folder.file.parent().unwrap()).unwrap();
    rusqlite::Connection::open(&folder.file)
        .unwrap()
        .execute_batch("CREATE TABLE birds (name TEXT)")
        .unwrap();
    let error = refused(&folder.file);
    assert_eq!(error.kind(), ErrorKind::Damaged);
    assert!(error.to_string().contains("another program"), "{error}");
}

#[test]
fn a_newer_schema_is_refused() {
    let folder = Folder::with_instances(1);
    rusqlite::Connection::open(&folder.file)
        .unwrap()
        .pragma_update(None, "user_version", 99)
        .unwrap();
    let error = refused(&folder.file);
    assert_eq!(error.kind(), ErrorKind::NewerSchema);
    assert!(error.to_string().contains("99"), "{error}");
}

#[test]
fn a_damaged_header_is_refused() {
    let folder = Folder::with_instances(100);
    folder.overwrite(0, &[0xA5; 4_096]);
    assert_eq!(refused(&folder.file).kind(), ErrorKind::Damaged);
}

#[test]
fn damaged_pages_are_found_at_the_start_of_a_small_store() {
    let folder = Folder::with_instances(2_000);
    let pages = fs::metadata(&folder.file).unwrap().len() / 8_192;
    for page in 2..pages {
        folder.overwrite(page * 8_192, &[0xA5; 8_192]);
    }
    assert_eq!(refused(&folder.file).kind(), ErrorKind::Damaged);
}

#[test]
fn a_truncated_file_is_refused() {
    let folder = Folder::with_instances(2_000);
    let length = fs::metadata(&folder.file).unwrap().len();
    OpenOptions::new()
        .write(true)
        .open(&folder.file)
        .unwrap()
        .set_len(length / 2 / 8_192 * 8_192)
        .unwrap();
    assert_eq!(refused(&folder.file).kind(), ErrorKind::Damaged);
}

/// A file too large to be checked whole at each start: the damage is named where it is met, and nothing panics.
#[test]
fn damaged_pages_of_a_large_store_are_named_where_they_are_met() {
    let folder = Folder::new();
    let store = SqliteStore::open(&folder.file).unwrap();
    let epoch = store.activate().unwrap().epoch;
    let results = run(
        &store,
        epoch,
        (1..=100)
            .map(|key| commit(vec![create_with(key, 200_000)]))
            .collect(),
    );
    assert!(results.iter().all(Result::is_ok));
    store.close();
    drop(store);
    let conn = rusqlite::Connection::open(&folder.file).unwrap();
    conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .unwrap();
    drop(conn);
    let pages = fs::metadata(&folder.file).unwrap().len() / 8_192;
    for page in (pages / 4)..pages {
        folder.overwrite(page * 8_192, &[0xA5; 64]);
    }
    let store = SqliteStore::open(&folder.file).unwrap();
    let epoch = store.activate().unwrap().epoch;
    let mut damaged = 0;
    for key in 1..=100 {
        match store.load(InstanceKey(key)) {
            Ok(found) => assert!(found.is_some()),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Damaged, "{error}");
                damaged += 1;
            }
        }
    }
    assert!(damaged > 10, "{damaged}");
    for key in 1..=100 {
        if let Err(error) = &run(&store, epoch, vec![commit(vec![update(key, 2)])])[0] {
            assert!(
                matches!(error, CommitError::Failed { error, .. } if error.kind() == ErrorKind::Damaged),
                "{error:?}"
            );
        }
    }
}

/// Above a kilobyte a state stands beside the row, so that no update has to move it.
#[test]
fn states_up_to_a_kilobyte_stand_in_the_row_of_their_instance() {
    let folder = Folder::new();
    let store = SqliteStore::open(&folder.file).unwrap();
    let epoch = store.activate().unwrap().epoch;
    let done = |write| {
        assert_eq!(
            run(&store, epoch, vec![commit(vec![write])]),
            [Ok(Default::default())]
        )
    };
    let holds = |key, bytes: usize, is_beside: bool| {
        let loaded = store.load(InstanceKey(key)).unwrap().unwrap();
        assert_eq!(loaded.state, Some(vec![7; bytes]));
        let conn = rusqlite::Connection::open(&folder.file).unwrap();
        let beside: i64 = conn
            .query_row(
                "SELECT count(*) FROM snapshots WHERE instance = ?1",
                [key as i64],
                |row| row.get(0),
            )
            .unwrap();
        assert_eq!(beside, i64::from(is_beside), "{bytes} bytes");
    };
    for (key, bytes, is_beside) in [(1, 1_023, false), (2, 1_024, false), (3, 1_025, true)] {
        done(create_with(key, bytes));
        holds(key, bytes, is_beside);
    }
    let sizes = [
        (1_025, true),
        (1_024, false),
        (2_000, true),
        (3_000, true),
        (10, false),
    ];
    for (revision, (bytes, is_beside)) in (2..).zip(sizes) {
        let Write::UpdateInstance(update) = update(1, revision) else {
            panic!("an update");
        };
        done(Write::UpdateInstance(InstanceUpdate {
            state: Some(vec![7; bytes]),
            ..update
        }));
        holds(1, bytes, is_beside);
    }
    store.close();
}

/// A row that SQLite can read and we cannot.
#[test]
fn an_impossible_row_is_damage_and_no_panic() {
    let folder = Folder::with_instances(3);
    let conn = rusqlite::Connection::open(&folder.file).unwrap();
    conn.execute("UPDATE instances SET sub_status = 77 WHERE key = 2", [])
        .unwrap();
    conn.execute("UPDATE instances SET is_split = 1 WHERE key = 3", [])
        .unwrap();
    drop(conn);
    let store = SqliteStore::open(&folder.file).unwrap();
    let epoch = store.activate().unwrap().epoch;
    for error in [
        store.instance(InstanceKey(2)).unwrap_err(),
        store.load(InstanceKey(3)).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Damaged, "{error}");
    }
    let results = run(
        &store,
        epoch,
        vec![commit(vec![update(1, 2)]), commit(vec![update(2, 2)])],
    );
    assert!(results[0].is_ok());
    assert_eq!(kind_of(&results[1]), ErrorKind::Damaged);
}

#[test]
fn a_folder_that_cannot_be_written_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::with_instances(1);
    let parent = folder.file.parent().unwrap();
    fs::remove_file(parent.join("tidegate.db.lock")).unwrap();
    fs::set_permissions(parent, fs::Permissions::from_mode(0o500)).unwrap();
    let is_superuser = fs::write(parent.join("probe"), b"").is_ok();
    if !is_superuser {
        assert_eq!(refused(&folder.file).kind(), ErrorKind::ReadOnly);
    }
    fs::set_permissions(parent, fs::Permissions::from_mode(0o700)).unwrap();
    let under_a_file = folder.file.join("store.db");
    let error = SqliteStore::open(&under_a_file).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Configuration);
    assert!(error.to_string().contains("tidegate.db"), "{error}");
    assert!(refused(parent).to_string().contains("data"));
}

/// No space: commits fail as full and leave nothing, small ones among large ones still succeed, and with space again
/// the same store goes on.
#[test]
fn a_full_disk_fails_commits_until_there_is_space() {
    let folder = Folder::new();
    let store = SqliteStore::open_with(
        &folder.file,
        &Options {
            max_pages: Some(120),
            ..Options::default()
        },
    )
    .unwrap();
    let epoch = store.activate().unwrap().epoch;
    assert!(run(&store, epoch, vec![commit(vec![create(1)])])[0].is_ok());

    // The large one alone is refused, its neighbours are not.
    let results = run(
        &store,
        epoch,
        vec![
            commit(vec![create(2)]),
            commit(vec![create_with(3, 5_000_000)]),
            commit(vec![create(4)]),
        ],
    );
    assert!(results[0].is_ok() && results[2].is_ok(), "{results:?}");
    assert_eq!(kind_of(&results[1]), ErrorKind::Full);

    let mut key = 10;
    let error = loop {
        match run(&store, epoch, vec![commit(vec![create_with(key, 20_000)])]).remove(0) {
            Ok(_) => key += 1,
            Err(error) => break error,
        }
    };
    let CommitError::Failed {
        error,
        may_have_happened: false,
    } = error
    else {
        panic!("{error:?}")
    };
    assert_eq!(error.kind(), ErrorKind::Full);
    assert!(
        error.kind().is_retryable() && error.to_string().contains("tidegate.db"),
        "{error}"
    );
    assert!(key > 12);
    assert_eq!(store.instance(InstanceKey(key)).unwrap(), None);
    assert_eq!(store.counts().unwrap().iter().sum::<u64>(), key - 10 + 3);
    let many = run(
        &store,
        epoch,
        (1_000..1_050)
            .map(|key| commit(vec![create_with(key, 20_000)]))
            .collect(),
    );
    assert!(many.iter().all(|result| kind_of(result) == ErrorKind::Full));

    store.limit_pages(100_000).unwrap();
    assert!(run(&store, epoch, vec![commit(vec![create_with(key, 20_000)])])[0].is_ok());
    store.close();
    drop(store);
    let store = SqliteStore::open(&folder.file).unwrap();
    assert_eq!(
        store.load(InstanceKey(key)).unwrap().unwrap().state,
        Some(vec![7; 20_000])
    );
    assert_eq!(store.counts().unwrap().iter().sum::<u64>(), key - 10 + 4);
}

/// The WAL keeps its size under a constant load, checkpoints running beside it.
#[test]
fn the_wal_stays_bounded() {
    let folder = Folder::new();
    let store = SqliteStore::open(&folder.file).unwrap();
    let epoch = store.activate().unwrap().epoch;
    let wal = folder.file.with_file_name("tidegate.db-wal");
    let mut largest = 0;
    for key in 1..=400 {
        assert!(run(&store, epoch, vec![commit(vec![create_with(key, 1_000_000)])])[0].is_ok());
        largest = largest.max(fs::metadata(&wal).unwrap().len());
    }
    assert!(largest < 128 << 20, "the WAL grew to {largest} bytes");
    assert!(fs::metadata(&folder.file).unwrap().len() > 200 << 20);
}

/// Opening does not read what is parked.
#[test]
fn recoverable_instances_are_found_by_their_index() {
    let folder = Folder::with_instances(10);
    let conn = rusqlite::Connection::open(&folder.file).unwrap();
    let plan = |sql: &str| -> String {
        let mut statement = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let rows = statement.query_map([], |row| row.get::<_, String>(3)).unwrap();
        rows.map(Result::unwrap).collect::<Vec<_>>().join("; ")
    };
    for (sql, index) in [
        (
            "SELECT key FROM instances WHERE key < 9 AND sub_status IN (1) AND (sub_status = 1 OR sub_status = 3 OR sub_status = 5) ORDER BY key DESC LIMIT 5",
            "instances_recoverable",
        ),
        (
            "SELECT key FROM instances WHERE key < 9 AND sub_status IN (4) AND (sub_status = 0 OR sub_status = 4) ORDER BY key DESC LIMIT 5",
            "instances_waiting",
        ),
        (
            "SELECT key FROM instances WHERE key < 9 AND business_key = 'x' ORDER BY key DESC LIMIT 5",
            "instances_by_business_key",
        ),
        (
            "SELECT key FROM instances WHERE key < 9 AND parent = 3 ORDER BY key DESC LIMIT 5",
            "instances_by_parent",
        ),
        (
            "SELECT key FROM instances WHERE key < 9 AND incident_count > 0 ORDER BY key DESC LIMIT 5",
            "instances_troubled",
        ),
        (
            "SELECT key FROM jobs WHERE state = 0 AND job_type = 'a' AND tenant = 'b' AND not_before <= 5 ORDER BY key LIMIT 5",
            "jobs_available",
        ),
        (
            "SELECT key FROM jobs WHERE state = 1 AND job_type = 'a' AND tenant = 'b' AND (lease_until IS NULL OR lease_until <= 5) ORDER BY key LIMIT 5",
            "jobs_leased",
        ),
        (
            "SELECT due_at FROM timers WHERE due_at <= 9 AND (due_at, owner, element) > (1, 2, 3) ORDER BY due_at, owner, element LIMIT 5",
            "timers_by_due",
        ),
        (
            "SELECT id FROM subscriptions WHERE correlation_key = 'a' AND message_name = 'b' AND tenant = 'c' AND process_id > '' ORDER BY process_id, id LIMIT 1",
            "subscriptions_by_message",
        ),
        (
            "SELECT key FROM instances INDEXED BY instances_ended WHERE process_id = 'a' AND tenant = 'b' AND ended_at IS NOT NULL AND ended_at <= 9 AND (ended_at, key) > (1, 2) ORDER BY ended_at, key LIMIT 5",
            "instances_ended",
        ),
        (
            "SELECT process_id, tenant FROM instances INDEXED BY instances_ended WHERE ended_at IS NOT NULL AND (process_id, tenant) > ('a', 'b') ORDER BY process_id, tenant LIMIT 1",
            "SEARCH instances USING COVERING INDEX instances_ended (",
        ),
        (
            "SELECT instance FROM forgotten WHERE journal = 1 ORDER BY instance LIMIT 1",
            "forgotten_going",
        ),
        ("DELETE FROM timers WHERE instance = 5", "timers_by_instance"),
        ("DELETE FROM jobs WHERE instance = 5", "jobs_by_instance"),
    ] {
        let plan = plan(sql);
        assert!(
            plan.contains(index) && !plan.contains("SCAN instances;"),
            "{sql}: {plan}"
        );
    }
}

/// Expectations on rows that are gone after a crash of an earlier generation stay unmet.
#[test]
fn a_late_batch_of_a_former_process_is_fenced() {
    let folder = Folder::with_instances(1);
    let store = SqliteStore::open(&folder.file).unwrap();
    let old = store.activate().unwrap().epoch;
    store.close();
    drop(store);
    let store = SqliteStore::open(&folder.file).unwrap();
    let new = store.activate().unwrap().epoch;
    assert!(new > old);
    assert_eq!(
        kind_of(&run(&store, old, vec![commit(vec![update(1, 2)])])[0]),
        ErrorKind::Fenced
    );
    let gone = Commit {
        expect: vec![Expect::Stimulus(StimulusKey(1))],
        writes: vec![update(1, 2)],
    };
    assert!(matches!(
        run(&store, new, vec![gone])[0],
        Err(CommitError::Refused(_))
    ));
    assert!(run(&store, new, vec![commit(vec![update(1, 2)])])[0].is_ok());
}
