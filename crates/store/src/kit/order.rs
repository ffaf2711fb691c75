//! Order, threads and outcomes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use tidegate_model::{InstanceKey, SubStatus};

use super::rows::*;
use super::{Make, PATIENCE, Subject, submit_to};
use crate::Store;
use crate::commit::{Batch, Commit, CommitError, CommitResult, Write};

/// Batches handed over one after the other are applied in that order, without waiting in between.
pub fn batches_keep_their_order(make: Make<'_>) {
    let subject = Subject::new(make);
    subject.write(vec![create(1)]);
    let told: Vec<_> = (2..400)
        .map(|revision| {
            subject.submit(vec![Commit {
                expect: vec![],
                writes: vec![update(1, revision)],
            }])
        })
        .collect();
    for one in told {
        assert!(one.recv_timeout(PATIENCE).unwrap()[0].is_ok());
    }
    assert_eq!(
        subject.store.instance(InstanceKey(1)).unwrap().unwrap().revision,
        399
    );
}

/// Outcomes are told in the order of the batches.
pub fn outcomes_are_told_in_order(make: Make<'_>) {
    let subject = Subject::new(make);
    let (tell, told) = mpsc::channel();
    let epoch = subject.epoch;
    thread::scope(|scope| {
        for owner in 1..=3_u64 {
            let (tell, store) = (tell.clone(), &subject.store);
            scope.spawn(move || {
                for turn in 0..100_u64 {
                    let tell = tell.clone();
                    let done = Box::new(move |_: Vec<CommitResult>| {
                        let _ = tell.send((owner, turn));
                    });
                    let commits = vec![Commit {
                        expect: vec![],
                        writes: vec![create(owner * 1_000 + turn)],
                    }];
                    store.submit(Batch {
                        epoch,
                        key_high: 0,
                        commits,
                        done,
                    });
                }
            });
        }
    });
    let mut expected = [0; 4];
    for _ in 0..300 {
        let (owner, turn) = told.recv_timeout(PATIENCE).unwrap();
        assert_eq!(
            turn, expected[owner as usize],
            "outcomes of one submitter are told in its order"
        );
        expected[owner as usize] += 1;
    }
}

/// Every batch is told exactly once: written, refused, empty, fenced or closed.
pub fn done_is_called_exactly_once(make: Make<'_>) {
    let subject = Subject::new(make);
    let calls: Arc<Vec<AtomicUsize>> = Arc::new((0..100).map(|_| AtomicUsize::new(0)).collect());
    for turn in 0..100_usize {
        if turn == 90 {
            subject.store.close();
        }
        let calls = Arc::clone(&calls);
        let writes = if turn % 2 == 0 {
            vec![create(turn as u64 + 1)]
        } else {
            vec![update(turn as u64 + 500, 9)]
        };
        let commits = if turn % 10 == 5 {
            vec![]
        } else {
            vec![Commit {
                expect: vec![],
                writes,
            }]
        };
        let expected = commits.len();
        let epoch = if turn % 7 == 0 {
            subject.epoch + 1
        } else {
            subject.epoch
        };
        let done = Box::new(move |results: Vec<CommitResult>| {
            assert_eq!(results.len(), expected);
            calls[turn].fetch_add(1, Ordering::SeqCst);
        });
        subject.store.submit(Batch {
            epoch,
            key_high: 0,
            commits,
            done,
        });
    }
    // Closing waits for what was submitted before it, and later batches are told at once.
    assert!(
        calls.iter().all(|calls| calls.load(Ordering::SeqCst) == 1),
        "{calls:?}"
    );
}

/// An outcome may bring forth the next batch, for as long as it likes.
pub fn a_done_may_submit_again(make: Make<'_>) {
    fn step(store: Arc<dyn Store>, epoch: u64, revision: u64, end: mpsc::Sender<u64>) {
        let next_store = Arc::clone(&store);
        let done = Box::new(move |results: Vec<CommitResult>| {
            if results[0].is_err() || revision == 3_000 {
                let _ = end.send(revision);
            } else {
                step(next_store, epoch, revision + 1, end);
            }
        });
        let commits = vec![Commit {
            expect: vec![],
            writes: vec![update(1, revision)],
        }];
        store.submit(Batch {
            epoch,
            key_high: 0,
            commits,
            done,
        });
    }
    let subject = Subject::new(make);
    subject.write(vec![create(1)]);
    let (end, ended) = mpsc::channel();
    step(Arc::clone(&subject.store), subject.epoch, 2, end);
    assert_eq!(ended.recv_timeout(PATIENCE), Ok(3_000));
}

/// Closing from an outcome does not wait for itself.
pub fn a_done_may_close_the_store(make: Make<'_>) {
    let subject = Subject::new(make);
    let (tell, told) = mpsc::channel();
    let store = Arc::clone(&subject.store);
    let done = Box::new(move |results: Vec<CommitResult>| {
        store.close();
        drop(store);
        let _ = tell.send(results);
    });
    let commits = vec![Commit {
        expect: vec![],
        writes: vec![create(1)],
    }];
    subject.store.submit(Batch {
        epoch: subject.epoch,
        key_high: 0,
        commits,
        done,
    });
    assert!(told.recv_timeout(PATIENCE).unwrap()[0].is_ok());
    let reopened = subject.reopen();
    assert!(reopened.store.instance(InstanceKey(1)).unwrap().is_some());
}

/// A read that begins after an outcome was told sees it, from any thread.
pub fn reads_see_told_commits(make: Make<'_>) {
    let subject = Subject::new(make);
    subject.write(vec![create(1)]);
    let (tell, told) = mpsc::channel::<u64>();
    let (read, was_read) = mpsc::channel::<u64>();
    let store = Arc::clone(&subject.store);
    let reader = thread::spawn(move || {
        for revision in told {
            let found = store.instance(InstanceKey(1)).unwrap().unwrap().revision;
            assert!(found >= revision, "told revision {revision}, read {found}");
            let loaded = store.load(InstanceKey(1)).unwrap().unwrap();
            assert_eq!(
                loaded.journal.last().map(|row| row.revision),
                Some(loaded.row.revision)
            );
            let _ = read.send(found);
        }
    });
    for revision in 2..150 {
        subject.write(vec![update(1, revision), journal(1, revision)]);
        tell.send(revision).unwrap();
    }
    drop(tell);
    reader.join().unwrap();
    assert_eq!(was_read.iter().count(), 148);
}

/// Of several writers of one revision exactly one succeeds.
pub fn one_of_many_writers_wins_each_revision(make: Make<'_>) {
    let subject = Subject::new(make);
    subject.write(vec![create(1)]);
    let wins = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for revision in 2..52 {
                    let commits = vec![Commit {
                        expect: vec![],
                        writes: vec![update(1, revision), journal(1, revision)],
                    }];
                    let told = submit_to(&*subject.store, subject.epoch, commits);
                    match told.recv_timeout(PATIENCE).unwrap().remove(0) {
                        Ok(_) => {
                            wins.fetch_add(1, Ordering::SeqCst);
                        }
                        Err(CommitError::Refused(_)) => {}
                        other => panic!("{other:?}"),
                    }
                }
            });
        }
    });
    let revision = subject.store.instance(InstanceKey(1)).unwrap().unwrap().revision;
    assert_eq!(wins.into_inner() as u64, revision - 1);
    let entries = subject.store.journal(InstanceKey(1), 0, 1_000).unwrap();
    assert_eq!(
        entries.iter().map(|row| row.revision).collect::<Vec<_>>(),
        (2..=revision).collect::<Vec<_>>()
    );
}

/// Two hundred rounds: an instance finishes while a drain marks it as interrupted. Whoever comes first, both expect
/// the same revision, so a finished instance is never turned back.
pub fn a_finish_that_races_a_mark_is_never_undone(make: Make<'_>) {
    let subject = Subject::new(make);
    subject.write((1..=200).map(create).collect());
    let submit = |key: u64, sub_status: SubStatus| {
        let mut row = next(key, 2);
        row.sub_status = sub_status;
        let commits = vec![Commit {
            expect: vec![],
            writes: vec![Write::UpdateInstance(row)],
        }];
        submit_to(&*subject.store, subject.epoch, commits)
            .recv_timeout(PATIENCE)
            .unwrap()
            .remove(0)
    };
    for key in 1..=200 {
        let (finish, mark) = thread::scope(|scope| {
            let finish = scope.spawn(|| submit(key, SubStatus::Finished));
            let mark = submit(key, SubStatus::Interrupted);
            (finish.join().unwrap(), mark)
        });
        assert!(
            finish.is_ok() != mark.is_ok(),
            "exactly one of the two: {finish:?}, {mark:?}"
        );
        let found = subject.store.instance(InstanceKey(key)).unwrap().unwrap();
        let expected = if finish.is_ok() {
            SubStatus::Finished
        } else {
            SubStatus::Interrupted
        };
        assert_eq!((found.sub_status, found.revision), (expected, 2));
    }
    let counts = subject.store.counts().unwrap();
    assert_eq!(counts.iter().sum::<u64>(), 200);
    assert_eq!(
        counts[usize::from(SubStatus::Finished.code())] + counts[usize::from(SubStatus::Interrupted.code())],
        200
    );
}
