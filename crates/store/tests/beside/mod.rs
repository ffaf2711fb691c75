//! A namespace in a file that others use: one store whose every table is full of rows that look like the kit's own, and
//! one that commits all the while. Neither may be touched, nor be seen.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::Connection;
use tidegate_model::{DefinitionKey, InstanceKey, SubStatus, Timestamp};
use tidegate_store::kit::Place;
use tidegate_store::sqlite::{Options, SqliteStore};
use tidegate_store::{Batch, Commit, InstanceRow, Queries, Store, Write};

const PATIENCE: Duration = Duration::from_secs(60);
/// Rows in each table of the neighbour that is at rest.
const ROWS: i64 = 12;

pub struct Beside {
    folder: tempfile::TempDir,
    before: Vec<String>,
    stop: Arc<AtomicBool>,
    at_work: Option<JoinHandle<()>>,
}

impl Beside {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = file(folder.path());
        drop(open(&file, "default"));
        fill(&file);
        let before = dump(&file);
        let stop = Arc::new(AtomicBool::new(false));
        let other = open(&file, "other");
        let at_work = std::thread::spawn({
            let stop = Arc::clone(&stop);
            move || work(&other, &stop)
        });
        Self {
            folder,
            before,
            stop,
            at_work: Some(at_work),
        }
    }
}

impl Place for Beside {
    fn open(&self) -> Arc<dyn Store> {
        Arc::new(open(&file(self.folder.path()), "billing"))
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let worked = self.at_work.take().expect("it was begun").join();
        if !std::thread::panicking() {
            worked.expect("the other store went on undisturbed");
            assert_eq!(
                dump(&file(self.folder.path())),
                self.before,
                "the neighbour's rows"
            );
        }
    }
}

fn file(folder: &Path) -> PathBuf {
    folder.join("all.db")
}

fn open(file: &Path, namespace: &str) -> SqliteStore {
    let options = Options {
        namespace: namespace.parse().expect("a name"),
        ..Options::default()
    };
    SqliteStore::open_with(file, &options).expect("the store opens")
}

/// The plain tables with their columns, as (name, type).
fn tables(conn: &Connection) -> Vec<(String, Vec<(String, String)>)> {
    let all = |sql: &str| -> Vec<(String, String)> {
        let mut statement = conn.prepare(sql).expect("a statement");
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
        rows.and_then(Iterator::collect).expect("rows")
    };
    let named = "SELECT name, type FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE '%$%' \
                 AND name NOT LIKE 'sqlite_%' AND name <> 'namespaces' ORDER BY name";
    all(named)
        .into_iter()
        .map(|(table, _)| {
            let columns = all(&format!("SELECT name, type FROM pragma_table_info('{table}')"));
            (table, columns)
        })
        .collect()
}

/// Rows in every table, with the names and the small keys that the kit uses.
fn fill(file: &Path) {
    let conn = Connection::open(file).expect("the file opens");
    for (table, columns) in tables(&conn) {
        if table == "meta" {
            conn.execute(
                "UPDATE meta SET key_high = 7777, queued = 12, suspended = 12, finished = 12",
                [],
            )
            .expect("the totals");
            continue;
        }
        for row in 1..=ROWS {
            let values: Vec<String> = columns
                .iter()
                .map(|(name, kind)| match (name.as_str(), kind.as_str()) {
                    ("tenant", _) => "'<default>'".to_owned(),
                    ("process_id", _) => "'order'".to_owned(),
                    ("domain", _) => "'instance/1'".to_owned(),
                    ("key", "TEXT") => format!("'k{row}'"),
                    ("details", _) => "'{}'".to_owned(),
                    (_, "TEXT") => "'x'".to_owned(),
                    (_, "BLOB") => "x'00'".to_owned(),
                    _ => row.to_string(),
                })
                .collect();
            conn.execute(&format!("INSERT INTO {table} VALUES ({})", values.join(", ")), [])
                .expect("a row");
        }
    }
}

/// Every row of the plain tables.
fn dump(file: &Path) -> Vec<String> {
    let conn = Connection::open(file).expect("the file opens");
    let mut all = Vec::new();
    for (table, columns) in tables(&conn) {
        let columns: Vec<_> = columns.iter().map(|(name, _)| format!("quote({name})")).collect();
        let sql = format!("SELECT {} FROM {table} ORDER BY 1", columns.join(" || ',' || "));
        let mut statement = conn.prepare(&sql).expect("a statement");
        let rows = statement
            .query_map([], |row| row.get::<_, String>(0))
            .expect("rows");
        all.extend(rows.map(|row| format!("{table}: {}", row.expect("a row"))));
    }
    assert!(all.len() > 18 * ROWS as usize, "{}", all.len());
    all
}

/// Creates one instance after the other until it is told to stop; each must succeed, and all be there at the end.
fn work(store: &SqliteStore, stop: &AtomicBool) {
    let epoch = store.activate().expect("it can be activated").epoch;
    let mut key = 0;
    while !stop.load(Ordering::Relaxed) {
        key += 1;
        let (tell, told) = mpsc::channel();
        store.submit(Batch {
            epoch,
            key_high: key,
            commits: vec![Commit {
                expect: vec![],
                writes: vec![create(key)],
            }],
            done: Box::new(move |results| {
                let _ = tell.send(results);
            }),
        });
        let results = told.recv_timeout(PATIENCE).expect("an outcome is told");
        assert!(results.iter().all(Result::is_ok), "{results:?}");
    }
    assert_eq!(store.counts().expect("they are read").iter().sum::<u64>(), key);
}

fn create(key: u64) -> Write {
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
        state: None,
    }
}
