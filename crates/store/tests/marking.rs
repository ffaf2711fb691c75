//! Marking an instance interrupted is one conditional write, on every store: it takes the revision before it, or it does
//! nothing at all.

use std::sync::{Arc, mpsc};

use tidegate_model::{DefinitionKey, InstanceKey, SubStatus, Timestamp};
use tidegate_store::memory::MemoryStore;
use tidegate_store::{
    Batch, Commit, CommitError, CommitResult, InstanceFilter, InstanceRow, InstanceUpdate, JournalRow, Page,
    Refusal, Store, Write, sqlite::SqliteStore,
};

struct Subject {
    store: Arc<dyn Store>,
    epoch: u64,
    _folder: Option<tempfile::TempDir>,
}

fn subjects() -> Vec<Subject> {
    let folder = tempfile::tempdir().unwrap();
    let file: Arc<dyn Store> = Arc::new(SqliteStore::open(&folder.path().join("t.db")).unwrap());
    let memory: Arc<dyn Store> = Arc::new(MemoryStore::new());
    [(memory, None), (file, Some(folder))]
        .into_iter()
        .map(|(store, _folder)| Subject {
            epoch: store.activate().unwrap().epoch,
            store,
            _folder,
        })
        .collect()
}

impl Subject {
    fn submit(&self, writes: Vec<Write>) -> mpsc::Receiver<CommitResult> {
        let (sender, told) = mpsc::channel();
        self.store.submit(Batch {
            epoch: self.epoch,
            key_high: 0,
            commits: vec![Commit {
                expect: Vec::new(),
                writes,
            }],
            done: Box::new(move |mut results| sender.send(results.remove(0)).unwrap()),
        });
        told
    }

    fn commit(&self, writes: Vec<Write>) -> CommitResult {
        self.submit(writes).recv().unwrap()
    }

    fn create(&self, key: u64, tenant: &str, sub_status: SubStatus) {
        let row = InstanceRow {
            key: InstanceKey(key),
            definition: DefinitionKey(1),
            process_id: "p".into(),
            version: 1,
            tenant: tenant.into(),
            business_key: None,
            parent: None,
            parent_element: None,
            enclosing: Vec::new(),
            depth: 0,
            revision: 1,
            sub_status,
            incident_count: 0,
            attempts: 0,
            started_at: Timestamp::from_ms(1),
            ended_at: sub_status.is_finished().then_some(Timestamp::from_ms(2)),
        };
        self.commit(vec![Write::CreateInstance {
            row: Box::new(row),
            state: Some(b"first".to_vec()),
        }])
        .unwrap();
    }

    fn row(&self, key: u64) -> InstanceRow {
        self.store.instance(InstanceKey(key)).unwrap().unwrap()
    }
}

fn change(key: u64, revision: u64, sub_status: SubStatus) -> Vec<Write> {
    let key = InstanceKey(key);
    let update = InstanceUpdate {
        key,
        revision,
        sub_status,
        incident_count: 0,
        attempts: 0,
        ended_at: sub_status.is_finished().then_some(Timestamp::from_ms(9)),
        state: None,
    };
    let payload = format!("{sub_status:?}").into_bytes();
    let journal = JournalRow {
        instance: key,
        revision,
        first_sequence: revision,
        payload,
    };
    vec![Write::UpdateInstance(update), Write::Journal(journal)]
}

fn mark(key: u64, revision: u64) -> Vec<Write> {
    change(key, revision, SubStatus::Interrupted)
}

#[test]
fn s01_a_running_instance_is_marked_at_its_revision() {
    for subject in subjects() {
        subject.create(10, "a", SubStatus::Executing);
        subject.commit(mark(10, 2)).unwrap();
        let row = subject.row(10);
        assert_eq!((row.sub_status, row.revision), (SubStatus::Interrupted, 2));
        let stored = subject.store.load(InstanceKey(10)).unwrap().unwrap();
        assert_eq!(
            stored.state.as_deref(),
            Some(&b"first"[..]),
            "what it holds is untouched"
        );
        assert_eq!(stored.journal.len(), 1);
    }
}

#[test]
fn s02_what_has_ended_is_not_marked() {
    for subject in subjects() {
        for (key, ended) in [
            (10, SubStatus::Finished),
            (11, SubStatus::Cancelled),
            (12, SubStatus::Faulted),
        ] {
            subject.create(key, "a", SubStatus::Executing);
            subject.commit(change(key, 2, ended)).unwrap();
            let before = subject.row(key);
            let refused = subject.commit(mark(key, 2)).unwrap_err();
            let expected = Refusal::Revision {
                instance: InstanceKey(key),
                found: Some(2),
            };
            assert_eq!(refused, CommitError::Refused(expected));
            assert_eq!(subject.row(key), before);
        }
    }
}

#[test]
fn s03_a_stale_mark_keeps_what_is_newer() {
    for subject in subjects() {
        subject.create(10, "a", SubStatus::Executing);
        subject.commit(change(10, 2, SubStatus::Suspended)).unwrap();
        subject.commit(change(10, 3, SubStatus::Executing)).unwrap();
        for stale in [1, 2, 3, 5] {
            assert!(matches!(
                subject.commit(mark(10, stale)),
                Err(CommitError::Refused(Refusal::Revision { .. }))
            ));
        }
        let row = subject.row(10);
        assert_eq!((row.sub_status, row.revision), (SubStatus::Executing, 3));
        assert_eq!(
            subject
                .store
                .load(InstanceKey(10))
                .unwrap()
                .unwrap()
                .journal
                .len(),
            2,
            "nothing half-written"
        );
    }
}

#[test]
fn s04_of_two_hundred_races_of_an_end_and_a_mark_each_has_one_winner() {
    for subject in subjects() {
        for key in 100..300 {
            subject.create(key, "a", SubStatus::Executing);
            let (end, interrupt) = std::thread::scope(|scope| {
                let end = scope.spawn(|| subject.commit(change(key, 2, SubStatus::Finished)));
                let interrupt = scope.spawn(|| subject.commit(mark(key, 2)));
                (end.join().unwrap(), interrupt.join().unwrap())
            });
            assert_ne!(end.is_ok(), interrupt.is_ok());
            let expected = if end.is_ok() {
                SubStatus::Finished
            } else {
                SubStatus::Interrupted
            };
            let row = subject.row(key);
            assert_eq!((row.sub_status, row.ended_at.is_some()), (expected, end.is_ok()));
        }
    }
}

#[test]
fn s05_a_mark_touches_its_own_instance_only() {
    for subject in subjects() {
        subject.create(10, "a", SubStatus::Executing);
        subject.create(11, "b", SubStatus::Executing);
        subject.commit(mark(10, 2)).unwrap();
        assert_eq!(subject.row(11).sub_status, SubStatus::Executing);
        let filter = InstanceFilter {
            sub_statuses: vec![SubStatus::Interrupted],
            tenant: Some("b".to_owned()),
            ..Default::default()
        };
        assert!(
            subject
                .store
                .instances(&filter, Page::first(10))
                .unwrap()
                .is_empty()
        );
    }
    // Another shell has another store: an epoch of this one opens nothing there.
    let [one, other] = <[Subject; 2]>::try_from(subjects()).ok().unwrap();
    one.create(10, "a", SubStatus::Executing);
    other.create(10, "a", SubStatus::Executing);
    one.commit(mark(10, 2)).unwrap();
    assert_eq!(other.row(10).sub_status, SubStatus::Executing);
}

#[test]
fn s06_an_instance_that_is_missing_is_reported_and_not_invented() {
    for subject in subjects() {
        let refused = subject.commit(mark(10, 2)).unwrap_err();
        let expected = Refusal::Revision {
            instance: InstanceKey(10),
            found: None,
        };
        assert_eq!(refused, CommitError::Refused(expected));
        assert_eq!(subject.store.instance(InstanceKey(10)).unwrap(), None);
        assert!(subject.store.journal(InstanceKey(10), 0, 10).unwrap().is_empty());
    }
}

#[test]
fn case_118_many_who_read_and_then_write_meet_no_locked_store() {
    const ROUNDS: u64 = 250;
    for subject in subjects() {
        std::thread::scope(|scope| {
            for key in 1..=4 {
                let subject = &subject;
                scope.spawn(move || {
                    subject.create(key, "a", SubStatus::Executing);
                    for revision in 2..=ROUNDS {
                        assert_eq!(subject.row(key).revision, revision - 1);
                        subject
                            .commit(change(key, revision, SubStatus::Suspended))
                            .unwrap();
                    }
                });
            }
        });
        assert!((1..=4).all(|key| subject.row(key).revision == ROUNDS));
    }
}
