//! Several stores in one SQLite file: they share the file and nothing else.

use std::fs::{self, OpenOptions};
use std::io::{Seek, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use rusqlite::Connection;
use tidegate_model::{DefinitionKey, InstanceKey, SubStatus, Timestamp};
use tidegate_store::sqlite::{Options, SqliteStore};
use tidegate_store::{
    Batch, Commit, CommitError, CommitResult, Error, ErrorKind, InstanceRow, Queries, Store, Write,
};

const PATIENCE: Duration = Duration::from_secs(60);
const PAGE: u64 = 8_192;

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self) -> PathBuf {
        self.0.path().join("all.db")
    }

    fn open(&self, namespace: &str) -> Open {
        Open::new(try_open(&self.file(), namespace).unwrap())
    }

    /// Everything that was committed is in the database file.
    fn flush(&self) {
        let conn = Connection::open(self.file()).unwrap();
        conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
            .unwrap();
    }

    /// Damages the first page of a table.
    fn damage(&self, table: &str) {
        let conn = Connection::open(self.file()).unwrap();
        let page: u32 = conn
            .query_row(
                "SELECT rootpage FROM sqlite_schema WHERE name = ?1",
                [table],
                |row| row.get(0),
            )
            .unwrap();
        drop(conn);
        let mut file = OpenOptions::new().write(true).open(self.file()).unwrap();
        file.seek(SeekFrom::Start((u64::from(page) - 1) * PAGE)).unwrap();
        file.write_all(&[0xA5; PAGE as usize]).unwrap();
    }
}

fn try_open(file: &Path, namespace: &str) -> Result<SqliteStore, Error> {
    let options = Options {
        namespace: namespace.parse()?,
        ..Options::default()
    };
    SqliteStore::open_with(file, &options)
}

fn refused(file: &Path, namespace: &str) -> Error {
    try_open(file, namespace).err().expect("the store must not open")
}

/// A store in its present generation.
struct Open {
    store: Arc<SqliteStore>,
    epoch: u64,
}

impl Open {
    fn new(store: SqliteStore) -> Self {
        let epoch = store.activate().unwrap().epoch;
        Self {
            store: Arc::new(store),
            epoch,
        }
    }

    fn submit(&self, writes: Vec<Write>) -> mpsc::Receiver<CommitResult> {
        let (tell, told) = mpsc::channel();
        self.store.submit(Batch {
            epoch: self.epoch,
            key_high: 0,
            commits: vec![Commit {
                expect: vec![],
                writes,
            }],
            done: Box::new(move |mut results| {
                let _ = tell.send(results.remove(0));
            }),
        });
        told
    }

    fn create(&self, key: u64) -> CommitResult {
        self.submit(vec![create(key, 100)])
            .recv_timeout(PATIENCE)
            .unwrap()
    }

    fn count(&self) -> u64 {
        self.store.counts().unwrap().iter().sum()
    }
}

fn create(key: u64, state_bytes: usize) -> Write {
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

/// Submits to both while an outcome is being told, so that what they say shares a transaction.
fn together(first: &Open, second: &Open, key: u64) -> (CommitResult, CommitResult) {
    let (tell, told) = mpsc::channel();
    let begun = Batch {
        epoch: first.epoch,
        key_high: 0,
        commits: vec![],
        done: Box::new({
            let (first, second) = (
                (Arc::clone(&first.store), first.epoch),
                (Arc::clone(&second.store), second.epoch),
            );
            move |_| {
                let both = [first, second]
                    .map(|(store, epoch)| Open { store, epoch }.submit(vec![create(key, 100)]));
                let _ = tell.send(both);
            }
        }),
    };
    first.store.submit(begun);
    let [first, second] = told.recv_timeout(PATIENCE).unwrap();
    (
        first.recv_timeout(PATIENCE).unwrap(),
        second.recv_timeout(PATIENCE).unwrap(),
    )
}

#[test]
fn stores_in_one_file_have_their_own_rows_epochs_and_ends() {
    let folder = Folder::new();
    let (plain, billing, sales) = (
        folder.open("default"),
        folder.open("billing"),
        folder.open("sales"),
    );
    for key in 1..=3 {
        assert!(plain.create(key).is_ok() && billing.create(key).is_ok());
    }
    assert!(sales.create(3).is_ok(), "the same key as elsewhere");
    assert_eq!((plain.count(), billing.count(), sales.count()), (3, 3, 1));

    // A new generation of one fences that one alone.
    let newer = billing.store.activate().unwrap().epoch;
    assert!(newer > billing.epoch);
    let late = billing.create(4);
    assert!(
        matches!(&late, Err(CommitError::Failed { error, .. }) if error.kind() == ErrorKind::Fenced),
        "{late:?}"
    );
    assert!(plain.create(4).is_ok() && sales.create(4).is_ok());

    // One closes: the others go on, and it can come back.
    billing.store.close();
    let closed = billing.create(5);
    assert!(matches!(&closed, Err(CommitError::Failed { error, .. }) if error.kind() == ErrorKind::Closed));
    assert_eq!(
        billing.store.instance(InstanceKey(1)).unwrap_err().kind(),
        ErrorKind::Closed
    );
    assert!(plain.create(5).is_ok());
    let again = folder.open("billing");
    assert_eq!(again.count(), 3);
    // The handle that was closed before has no say in it.
    drop(billing);
    assert!(again.create(4).is_ok());

    // The last one takes the file with it.
    drop((plain, again, sales));
    let (plain, billing) = (folder.open("default"), folder.open("billing"));
    assert_eq!((plain.count(), billing.count()), (5, 4));
}

#[test]
fn one_namespace_is_opened_once_however_it_and_its_file_are_spelled() {
    let folder = Folder::new();
    let billing = folder.open("billing");
    let link = folder.0.path().join("link.db");
    std::os::unix::fs::symlink(folder.file(), &link).unwrap();
    let to_folder = folder.0.path().join("elsewhere");
    std::os::unix::fs::symlink(folder.0.path(), &to_folder).unwrap();
    let winding = folder.0.path().join(".").join("elsewhere").join("all.db");
    for (file, name) in [
        (folder.file(), "billing"),
        (folder.file(), "Billing"),
        (link.clone(), "billing"),
        (to_folder.join("all.db"), "BILLING"),
        (winding, "billing"),
    ] {
        let error = refused(&file, name);
        assert_eq!(error.kind(), ErrorKind::Locked, "{error}");
        let message = error.to_string();
        assert!(
            message.contains("all.db, namespace billing") && message.contains("a namespace of its own"),
            "{message}"
        );
    }
    // Another namespace by another spelling shares the open file; there is one lock, beside the file itself.
    let sales = Open::new(try_open(&link, "sales").unwrap());
    let plain = Open::new(try_open(&to_folder.join("all.db"), "default").unwrap());
    assert!(together(&billing, &sales, 1).0.is_ok() && plain.create(1).is_ok());
    assert!(!folder.0.path().join("link.db.lock").exists());
    assert!(folder.0.path().join("all.db.lock").exists());
    assert_eq!(refused(&link, "default").kind(), ErrorKind::Locked);
}

/// What was there before there were namespaces is the store without a name, as it was.
#[test]
fn a_file_without_namespaces_is_the_default_one_and_gets_others_beside_it() {
    let folder = Folder::new();
    let plain = Open::new(SqliteStore::open(&folder.file()).unwrap());
    assert!(plain.create(1).is_ok());
    drop(plain);
    let schema = || -> Vec<(String, Option<String>)> {
        let conn = Connection::open(folder.file()).unwrap();
        let sql = "SELECT name, sql FROM sqlite_schema WHERE name NOT LIKE '%$%' AND name <> 'namespaces' ORDER BY name";
        let mut statement = conn.prepare(sql).unwrap();
        let rows = statement
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
            .unwrap();
        rows.map(Result::unwrap).collect()
    };
    let before = schema();
    let billing = folder.open("billing");
    assert_eq!(billing.count(), 0);
    assert!(billing.create(1).is_ok());
    assert_eq!(schema(), before);
    let plain = folder.open("default");
    assert_eq!((plain.count(), plain.epoch), (1, 2));
}

#[test]
fn a_store_whose_fence_was_moved_spares_the_others_in_its_transaction() {
    let folder = Folder::new();
    let (billing, sales) = (folder.open("billing"), folder.open("sales"));
    assert!(billing.create(1).is_ok());
    Connection::open(folder.file())
        .unwrap()
        .execute("UPDATE \"billing$meta\" SET epoch = 99", [])
        .unwrap();
    let (bad, good) = together(&billing, &sales, 2);
    assert!(matches!(&bad, Err(CommitError::Failed { .. })), "{bad:?}");
    assert!(good.is_ok(), "{good:?}");
    assert_eq!((billing.count(), sales.count()), (1, 1));
}

/// Small files are checked at the start, each store for itself.
#[test]
fn a_damaged_store_does_not_open_and_keeps_no_other_from_opening() {
    let folder = Folder::new();
    for name in ["default", "billing", "sales"] {
        assert!(folder.open(name).create(1).is_ok());
    }
    folder.flush();
    folder.damage("billing$instances");
    let sales = folder.open("sales");
    let error = refused(&folder.file(), "billing");
    assert_eq!(error.kind(), ErrorKind::Damaged, "{error}");
    assert!(error.to_string().contains("namespace billing"), "{error}");
    assert!(sales.create(2).is_ok());
    assert!(folder.open("default").create(2).is_ok());
    // Also where it is the first to be opened.
    drop(sales);
    assert_eq!(refused(&folder.file(), "billing").kind(), ErrorKind::Damaged);
    assert_eq!(folder.open("sales").count(), 2);
}

/// Damage that is met later, in a transaction that another store shares.
#[test]
fn damaged_pages_of_one_store_spare_the_others_in_its_transaction() {
    let folder = Folder::new();
    let (billing, sales) = (folder.open("billing"), folder.open("sales"));
    let large = (1..=100).map(|key| create(key, 100_000)).collect();
    assert!(sales.submit(large).recv_timeout(PATIENCE).unwrap().is_ok());
    assert!(billing.create(1).is_ok());
    drop((billing, sales));
    folder.flush();
    assert!(fs::metadata(folder.file()).unwrap().len() > 8 << 20);
    folder.damage("billing$instances");
    let (billing, sales) = (folder.open("billing"), folder.open("sales"));
    let (bad, good) = together(&billing, &sales, 200);
    assert!(
        matches!(&bad, Err(CommitError::Failed { error, .. }) if error.kind() == ErrorKind::Damaged),
        "{bad:?}"
    );
    assert!(good.is_ok(), "{good:?}");
    assert!(sales.create(201).is_ok());
    assert_eq!(sales.count(), 102);
}

#[test]
fn a_newer_store_keeps_no_other_out() {
    let folder = Folder::new();
    drop((folder.open("billing"), folder.open("sales")));
    Connection::open(folder.file())
        .unwrap()
        .execute("UPDATE namespaces SET version = 99 WHERE name = 'billing'", [])
        .unwrap();
    let sales = folder.open("sales");
    let error = refused(&folder.file(), "billing");
    assert_eq!(error.kind(), ErrorKind::NewerSchema, "{error}");
    assert!(sales.create(1).is_ok());
}

/// A store that floods the file waits for its own turn.
#[test]
fn many_stores_commit_at_once_and_each_in_its_order() {
    const STORES: usize = 6;
    const COMMITS: u64 = 60;
    let folder = Folder::new();
    let stores: Vec<_> = (0..STORES)
        .map(|number| folder.open(&format!("shell-{number}")))
        .collect();
    std::thread::scope(|scope| {
        for open in &stores {
            scope.spawn(move || {
                let told: Vec<_> = (1..=COMMITS)
                    .map(|key| open.submit(vec![create(key, 100)]))
                    .collect();
                for told in told {
                    assert!(told.recv_timeout(PATIENCE).unwrap().is_ok());
                }
            });
        }
    });
    assert!(stores.iter().all(|open| open.count() == COMMITS));
}

#[test]
fn a_fleeting_store_has_no_namespaces() {
    let error = tidegate_store::open_in("memory:", &"billing".parse().unwrap())
        .err()
        .unwrap();
    assert_eq!(error.kind(), ErrorKind::Configuration);
    assert!(error.to_string().contains("`billing`"), "{error}");
}
