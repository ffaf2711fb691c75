//! The bare store: commits of two rows, one after the other, each synced before the next. What the disk alone would allow.

use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use tidegate::model::{DefinitionKey, InstanceKey, SubStatus, Timestamp};
use tidegate::store::sqlite::SqliteStore;
use tidegate::store::{Batch, Commit, CommitResult, InstanceRow, InstanceUpdate, JournalRow, Store, Write};

/// Instances that are written in turn.
const INSTANCES: usize = 1_000;

/// Commits a second, `size` in a batch, for so long.
pub fn commits_per_s(size: usize, time: Duration) -> f64 {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let store = SqliteStore::open(&folder.path().join("bare.db")).expect("the store opens");
    let epoch = store.activate().expect("the store is ours").epoch;
    submit(&store, epoch, (0..INSTANCES).map(create).collect());
    let mut revisions = vec![1_u64; INSTANCES];
    let (mut commits, mut at) = (0, 0);
    let began = Instant::now();
    while began.elapsed() < time {
        let batch = (0..size)
            .map(|_| {
                at = (at + 1) % INSTANCES;
                revisions[at] += 1;
                update(at, revisions[at])
            })
            .collect();
        submit(&store, epoch, batch);
        commits += size;
    }
    commits as f64 / began.elapsed().as_secs_f64()
}

fn submit(store: &SqliteStore, epoch: u64, commits: Vec<Commit>) {
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

fn key(at: usize) -> InstanceKey {
    InstanceKey(at as u64 + 1)
}

fn create(at: usize) -> Commit {
    let row = InstanceRow {
        key: key(at),
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
            state: Some(vec![1; 200]),
        }],
    }
}

fn update(at: usize, revision: u64) -> Commit {
    let update = InstanceUpdate {
        key: key(at),
        revision,
        sub_status: SubStatus::Suspended,
        incident_count: 0,
        attempts: 0,
        ended_at: None,
        state: Some(vec![revision as u8; 200]),
    };
    let journal = JournalRow {
        instance: key(at),
        revision,
        first_sequence: revision * 4,
        payload: vec![revision as u8; 150],
    };
    Commit {
        expect: vec![],
        writes: vec![Write::UpdateInstance(update), Write::Journal(journal)],
    }
}
