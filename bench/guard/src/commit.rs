//! A commit in the memory store: an update of the instance's row with its state, and a row of the journal.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tidegate_model::{DefinitionKey, InstanceKey, SubStatus, Timestamp};
use tidegate_store::memory::MemoryStore;
use tidegate_store::{Batch, Commit, InstanceRow, InstanceUpdate, JournalRow, Store, Write};

const INSTANCE: InstanceKey = InstanceKey(1);
const NOW: Timestamp = Timestamp::from_ms(1_800_000_000_000);

pub fn run(rounds: u64) {
    let store = MemoryStore::new();
    let epoch = store.activate().expect("the store is ours").epoch;
    let told = Arc::new(AtomicU64::new(0));
    for revision in 1..=rounds + 1 {
        let told = told.clone();
        let write = if revision == 1 { create() } else { update(revision) };
        store.submit(Batch {
            epoch,
            key_high: revision,
            commits: vec![write],
            done: Box::new(move |results| {
                assert!(results.iter().all(Result::is_ok), "every commit succeeds");
                told.fetch_add(1, Ordering::Relaxed);
            }),
        });
    }
    assert_eq!(told.load(Ordering::Relaxed), rounds + 1);
}

fn create() -> Commit {
    let row = InstanceRow {
        key: INSTANCE,
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
        started_at: NOW,
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

fn update(revision: u64) -> Commit {
    let update = InstanceUpdate {
        key: INSTANCE,
        revision,
        sub_status: SubStatus::Suspended,
        incident_count: 0,
        attempts: 0,
        ended_at: None,
        state: Some(vec![revision as u8; 200]),
    };
    let journal = JournalRow {
        instance: INSTANCE,
        revision,
        first_sequence: revision * 4,
        payload: vec![revision as u8; 150],
    };
    Commit {
        expect: vec![],
        writes: vec![Write::UpdateInstance(update), Write::Journal(journal)],
    }
}
