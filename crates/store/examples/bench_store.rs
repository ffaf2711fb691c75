//! What a commit costs: the bare SQLite store, without runtime and engine.
//!
//! One commit is `UpdateInstance` with a state of 200 bytes and a `Journal` row of 150 bytes. A batch goes to
//! `submit`, and the next one follows its outcome, so each batch is one transaction and one sync. One line of JSON
//! for each batch size: commits and rows a second, wall and CPU microseconds for each commit (user and system time
//! of the whole process, checkpoints included), and how long the store takes to open again with all of it.
//!
//! `cargo run --release -p tidegate-store --example bench_store [SECONDS [INSTANCES]]`; files go to `TMPDIR`.

use std::sync::{Arc, mpsc};
use std::time::Instant;

use tidegate_model::{DefinitionKey, InstanceKey, SubStatus, Timestamp};
use tidegate_store::sqlite::SqliteStore;
use tidegate_store::{Batch, Commit, CommitResult, InstanceRow, InstanceUpdate, JournalRow, Store, Write};

const BATCHES: [usize; 5] = [1, 10, 64, 128, 512];
const STATE_BYTES: usize = 200;
const JOURNAL_BYTES: usize = 150;

fn main() {
    let mut arguments = std::env::args()
        .skip(1)
        .map(|text| text.parse::<u64>().expect("a number"));
    let seconds = arguments.next().unwrap_or(3);
    let instances = arguments.next().unwrap_or(10_000);
    for size in BATCHES {
        measure(size, instances, seconds);
    }
}

fn measure(size: usize, instances: u64, seconds: u64) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("bench.db");
    let store = SqliteStore::open(&path).expect("the store opens");
    let epoch = store.activate().expect("the store is ours").epoch;
    let mut revisions = vec![1_u64; instances as usize];
    for keys in (0..instances).collect::<Vec<_>>().chunks(512) {
        run(&store, epoch, keys.iter().map(|key| create(*key)).collect());
    }

    let (begun, cpu) = (Instant::now(), cpu_us());
    let (mut commits, mut at) = (0_u64, 0_usize);
    while begun.elapsed().as_secs() < seconds {
        let batch = (0..size)
            .map(|_| {
                at = (at + 1) % revisions.len();
                revisions[at] += 1;
                update(at as u64, revisions[at])
            })
            .collect();
        run(&store, epoch, batch);
        commits += size as u64;
    }
    let (wall, cpu) = (begun.elapsed().as_secs_f64(), cpu_us() - cpu);
    store.close();
    drop(store);
    let begun = Instant::now();
    let store = SqliteStore::open(&path).expect("the store opens again");
    let parked = store.recoverable(None, 100).expect("a list").len();
    assert_eq!(parked, 0);
    let reopen_ms = begun.elapsed().as_secs_f64() * 1e3;
    println!(
        "{{\"batch\":{size},\"instances\":{instances},\"commits_per_s\":{:.0},\"rows_per_s\":{:.0},\"wall_us_per_commit\":{:.2},\"cpu_us_per_commit\":{:.2},\"reopen_ms\":{reopen_ms:.1}}}",
        commits as f64 / wall,
        2.0 * commits as f64 / wall,
        wall * 1e6 / commits as f64,
        cpu / commits as f64,
    );
}

fn run(store: &SqliteStore, epoch: u64, commits: Vec<Commit>) {
    let (tell, told) = mpsc::channel();
    let done = Box::new(move |results: Vec<CommitResult>| {
        let _ = tell.send(results.iter().all(Result::is_ok));
    });
    store.submit(Batch {
        epoch,
        key_high: 0,
        commits,
        done,
    });
    assert_eq!(told.recv(), Ok(true), "every commit succeeds");
}

fn create(key: u64) -> Commit {
    let row = InstanceRow {
        key: InstanceKey(key + 1),
        definition: DefinitionKey(1),
        process_id: Arc::from("order-fulfilment"),
        version: 1,
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
        started_at: Timestamp::from_ms(1_800_000_000_000),
        ended_at: None,
    };
    Commit {
        expect: vec![],
        writes: vec![Write::CreateInstance {
            row: Box::new(row),
            state: Some(vec![1; STATE_BYTES]),
        }],
    }
}

fn update(key: u64, revision: u64) -> Commit {
    let key = InstanceKey(key + 1);
    let update = InstanceUpdate {
        key,
        revision,
        sub_status: SubStatus::Suspended,
        incident_count: 0,
        attempts: 0,
        ended_at: None,
        state: Some(vec![revision as u8; STATE_BYTES]),
    };
    let journal = JournalRow {
        instance: key,
        revision,
        first_sequence: revision * 4,
        payload: vec![revision as u8; JOURNAL_BYTES],
    };
    Commit {
        expect: vec![],
        writes: vec![Write::UpdateInstance(update), Write::Journal(journal)],
    }
}

/// User and system time of this process, from `/proc` in ticks of 10 ms.
fn cpu_us() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux");
    let fields: Vec<&str> = stat
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .collect();
    let ticks: f64 =
        fields[11].parse::<f64>().expect("a number") + fields[12].parse::<f64>().expect("a number");
    ticks * 10_000.0
}
