//! Commits as units, fences, and what survives.

use tidegate_model::{
    DefinitionKey, ElementIndex, ElementInstanceKey, IncidentKey, InstanceKey, StimulusKey,
};

use super::rows::*;
use super::{Make, PATIENCE, Subject, at, failure_of, refusal_of, submit_to};
use crate::commit::{Batch, Commit, Expect, Refusal, Write};
use crate::error::ErrorKind;
use crate::row::{Page, QueueDepth};

/// One of every kind of write.
fn one_of_each() -> Vec<Write> {
    vec![
        journal(1, 2),
        Write::ArmTimer(timer(1, 10)),
        subscribe(subscription(1, "order"), 0),
        publish(message(90), 0),
        open_job(job(91)),
        Write::OpenUserTask(Box::new(user_task(92, 1))),
        Write::OpenIncident(Box::new(incident(93, 1))),
        Write::AddStimulus(stimulus("s", 1)),
        Write::AddResource {
            key: 94,
            bytes: b"<xml/>".as_slice().into(),
        },
        Write::AddDefinition(Box::new(definition(95, "order", 1))),
        Write::SetValue {
            key: "k".to_owned(),
            value: b"v".to_vec(),
            expires_at: None,
        },
        Write::Audit(Box::new(audit("Deployed"))),
        create(96),
    ]
}

fn assert_nothing_of_it(subject: &Subject) {
    let store = &subject.store;
    assert_eq!(store.journal(InstanceKey(1), 0, 10).unwrap(), []);
    assert_eq!(store.timers(at(i64::MAX), None, 10).unwrap(), []);
    assert_eq!(store.job(ElementInstanceKey(91)).unwrap(), None);
    assert_eq!(store.user_task(ElementInstanceKey(92)).unwrap(), None);
    assert_eq!(store.incident(IncidentKey(93)).unwrap(), None);
    assert_eq!(store.stimuli(None, 10).unwrap(), []);
    assert_eq!(store.queue().unwrap(), QueueDepth::default());
    assert_eq!(store.resource(94).unwrap(), None);
    assert_eq!(store.definition(DefinitionKey(95)).unwrap(), None);
    assert_eq!(store.value("k", at(0)).unwrap(), None);
    assert_eq!(store.audit(Page::first(10)).unwrap(), []);
    assert_eq!(store.instance(InstanceKey(96)).unwrap(), None);
    assert_eq!(store.counts().unwrap().iter().sum::<u64>(), 1);
}

/// Whatever refuses a commit, nothing of it is there.
pub fn a_refused_commit_leaves_nothing(make: Make<'_>) {
    let subject = Subject::new(make);
    subject.write(vec![create(1)]);
    subject.refusal(vec![Expect::Stimulus(StimulusKey(5))], one_of_each());
    assert_nothing_of_it(&subject);
    let mut writes = one_of_each();
    writes.push(update(1, 5));
    subject.refusal(vec![], writes);
    assert_nothing_of_it(&subject);
    let outcome = subject.write(one_of_each());
    // The message met the subscription of the same commit: none were there before.
    assert_eq!(outcome.deliveries.len(), 1);
    assert_eq!(outcome.stimuli.len(), 1);
}

/// A refused commit refuses itself alone.
pub fn a_refused_commit_spares_its_neighbours(make: Make<'_>) {
    let subject = Subject::new(make);
    let results = subject.batch(vec![
        Commit {
            expect: vec![],
            writes: vec![create(1), journal(1, 1)],
        },
        Commit {
            expect: vec![],
            writes: vec![update(2, 1), journal(2, 1)],
        },
        Commit {
            expect: vec![],
            writes: vec![create(3), journal(3, 1)],
        },
    ]);
    assert!(results[0].is_ok() && results[2].is_ok());
    assert_eq!(
        refusal_of(results[1].clone()),
        Refusal::Revision {
            instance: InstanceKey(2),
            found: None
        }
    );
    assert_eq!(
        subject.store.journal(InstanceKey(3), 0, 10).unwrap(),
        [entry(3, 1)]
    );
    assert_eq!(subject.store.journal(InstanceKey(2), 0, 10).unwrap(), []);
}

/// A commit that no store can take (a journal row written twice) fails, and only that one.
pub fn a_failed_commit_spares_its_neighbours(make: Make<'_>) {
    let subject = Subject::new(make);
    let results = subject.batch(vec![
        Commit {
            expect: vec![],
            writes: vec![create(1), journal(1, 1), Write::AddStimulus(stimulus("a", 1))],
        },
        Commit {
            expect: vec![],
            writes: vec![update(1, 2), Write::AddStimulus(stimulus("b", 1)), journal(1, 1)],
        },
        Commit {
            expect: vec![],
            writes: vec![update(1, 2), journal(1, 2), Write::AddStimulus(stimulus("c", 1))],
        },
    ]);
    assert!(results[0].is_ok() && results[2].is_ok(), "{results:?}");
    assert_eq!(failure_of(results[1].clone()), ErrorKind::Internal);
    assert_eq!(
        subject.store.journal(InstanceKey(1), 0, 10).unwrap(),
        [entry(1, 1), entry(1, 2)]
    );
    let queued = subject.store.stimuli(None, 10).unwrap();
    assert_eq!(
        queued
            .iter()
            .map(|row| row.payload.as_slice())
            .collect::<Vec<_>>(),
        [b"a", b"c"]
    );
    assert_eq!(subject.store.queue().unwrap().depth, 2);
    assert_eq!(subject.store.counts().unwrap().iter().sum::<u64>(), 1);
}

/// Expectations look at everything before them, in the same batch as well.
pub fn a_batch_sees_its_own_earlier_commits(make: Make<'_>) {
    let subject = Subject::new(make);
    let set = |value: &str| Commit {
        expect: vec![Expect::ValueAbsent {
            key: "k".to_owned(),
            now: at(0),
        }],
        writes: vec![Write::SetValue {
            key: "k".to_owned(),
            value: value.as_bytes().to_vec(),
            expires_at: None,
        }],
    };
    let results = subject.batch(vec![
        set("first"),
        set("second"),
        Commit {
            expect: vec![],
            writes: vec![create(1)],
        },
        Commit {
            expect: vec![Expect::InstanceLive(InstanceKey(1))],
            writes: vec![update(1, 2)],
        },
        Commit {
            expect: vec![],
            writes: vec![update(1, 2)],
        },
    ]);
    assert!(results[0].is_ok() && results[2].is_ok() && results[3].is_ok());
    assert_eq!(
        refusal_of(results[1].clone()),
        Refusal::ValuePresent(b"first".to_vec())
    );
    assert_eq!(
        refusal_of(results[4].clone()),
        Refusal::Revision {
            instance: InstanceKey(1),
            found: Some(2)
        }
    );
}

/// Each expectation, unmet, is named in the refusal; met, it is no hindrance.
pub fn an_unmet_expectation_names_itself(make: Make<'_>) {
    let subject = Subject::new(make);
    let lease_of = |job: u64, token: &str| Expect::Lease {
        job: ElementInstanceKey(job),
        token: token.to_owned(),
    };
    let free = |version| Expect::VersionFree {
        process_id: "order".to_owned(),
        tenant: TENANT.to_owned(),
        version,
    };
    let absent = || Expect::ValueAbsent {
        key: "k".to_owned(),
        now: at(0),
    };
    let live = |key| Expect::InstanceLive(InstanceKey(key));

    assert_eq!(
        subject.refusal(vec![Expect::Stimulus(StimulusKey(1))], vec![]),
        Refusal::StimulusGone(StimulusKey(1))
    );
    assert_eq!(
        subject.refusal(vec![lease_of(91, "t")], vec![]),
        Refusal::LeaseStale(ElementInstanceKey(91))
    );
    assert_eq!(
        subject.refusal(vec![live(1)], vec![]),
        Refusal::InstanceEnded(InstanceKey(1))
    );

    let mut ended = next(2, 2);
    ended.sub_status = tidegate_model::SubStatus::Finished;
    let added = subject.write(vec![
        create(1),
        create(2),
        Write::AddStimulus(stimulus("s", 1)),
        open_job(job(91)),
        lease(1, "t", 0),
        Write::AddDefinition(Box::new(definition(95, "order", 4))),
        Write::SetValue {
            key: "k".to_owned(),
            value: b"v".to_vec(),
            expires_at: None,
        },
    ]);
    subject.write(vec![Write::UpdateInstance(ended)]);

    assert_eq!(
        subject.refusal(vec![absent()], vec![]),
        Refusal::ValuePresent(b"v".to_vec())
    );
    assert_eq!(subject.refusal(vec![free(4)], vec![]), Refusal::VersionTaken);
    assert_eq!(subject.refusal(vec![free(3)], vec![]), Refusal::VersionTaken);
    assert_eq!(
        subject.refusal(vec![live(2)], vec![]),
        Refusal::InstanceEnded(InstanceKey(2))
    );
    // The first one that is not met is the one that is named.
    assert_eq!(
        subject.refusal(vec![live(1), free(4), live(2)], vec![]),
        Refusal::VersionTaken
    );
    let met = vec![
        Expect::Stimulus(added.stimuli[0]),
        lease_of(91, "t"),
        free(5),
        live(1),
        Expect::ValueAbsent {
            key: "other".to_owned(),
            now: at(0),
        },
        Expect::VersionFree {
            process_id: "order".to_owned(),
            tenant: "other".to_owned(),
            version: 1,
        },
    ];
    assert!(subject.commit(met, vec![]).is_ok());
}

/// A commit that writes several instances happens for all of them or for none.
pub fn a_commit_of_several_instances_is_a_unit(make: Make<'_>) {
    let subject = Subject::new(make);
    subject.write(vec![create(1), create(2)]);
    let refusal = subject.refusal(vec![], vec![update(1, 2), update(2, 3)]);
    assert_eq!(
        refusal,
        Refusal::Revision {
            instance: InstanceKey(2),
            found: Some(1)
        }
    );
    assert_eq!(
        subject.store.instance(InstanceKey(1)).unwrap().unwrap().revision,
        1
    );
    subject.write(vec![update(1, 2), update(2, 2)]);
    subject.write(vec![update(1, 3), update(1, 4), update(2, 3)]);
    assert_eq!(
        subject.store.instance(InstanceKey(1)).unwrap().unwrap().revision,
        4
    );
    let refusal = subject.refusal(vec![], vec![update(1, 5), update(1, 7)]);
    assert_eq!(
        refusal,
        Refusal::Revision {
            instance: InstanceKey(1),
            found: Some(4)
        }
    );
}

/// From an activation on, batches of earlier epochs are refused whole; the new epoch is higher.
pub fn activation_fences_earlier_epochs(make: Make<'_>) {
    let subject = Subject::new(make);
    subject.write(vec![create(1)]);
    let second = subject.store.activate().unwrap();
    assert!(second.epoch > subject.epoch);
    let late = vec![
        Commit {
            expect: vec![],
            writes: vec![update(1, 2)],
        },
        Commit {
            expect: vec![],
            writes: vec![create(2)],
        },
    ];
    for result in subject.batch(late) {
        assert_eq!(failure_of(result), ErrorKind::Fenced);
    }
    assert_eq!(
        subject.store.instance(InstanceKey(1)).unwrap().unwrap().revision,
        1
    );
    let told = submit_to(
        &*subject.store,
        second.epoch,
        vec![Commit {
            expect: vec![],
            writes: vec![update(1, 2)],
        }],
    );
    assert!(told.recv_timeout(PATIENCE).unwrap()[0].is_ok());
    let reopened = subject.reopen();
    assert!(reopened.epoch > second.epoch);
}

/// Activation tells the highest key that was ever committed.
pub fn the_highest_key_is_remembered(make: Make<'_>) {
    let mut subject = Subject::new(make);
    assert_eq!(subject.key_high, 0);
    for key_high in [500, 1 << 62, 20] {
        let (tell, told) = std::sync::mpsc::channel();
        let commits = vec![Commit {
            expect: vec![],
            writes: vec![create(key_high)],
        }];
        let done = Box::new(move |results| drop(tell.send(results)));
        subject.store.submit(Batch {
            epoch: subject.epoch,
            key_high,
            commits,
            done,
        });
        assert!(told.recv_timeout(PATIENCE).unwrap()[0].is_ok());
    }
    subject = subject.reopen();
    assert_eq!(subject.key_high, 1 << 62);
}

/// What was told is there in the next process.
pub fn told_commits_survive(make: Make<'_>) {
    let mut subject = Subject::new(make);
    subject.write(vec![create(1)]);
    subject.write(one_of_each());
    for revision in 2..40 {
        subject.write(vec![update(1, revision)]);
    }
    for _ in 0..2 {
        subject = subject.reopen();
        let store = &subject.store;
        assert_eq!(store.instance(InstanceKey(1)).unwrap().unwrap().revision, 39);
        assert_eq!(
            store.load(InstanceKey(1)).unwrap().unwrap().journal,
            [entry(1, 2)]
        );
        assert_eq!(store.timers(at(i64::MAX), None, 10).unwrap(), [timer(1, 10)]);
        assert_eq!(store.job(ElementInstanceKey(91)).unwrap(), Some(job(91)));
        assert_eq!(
            store.user_task(ElementInstanceKey(92)).unwrap(),
            Some(user_task(92, 1))
        );
        assert_eq!(store.incident(IncidentKey(93)).unwrap(), Some(incident(93, 1)));
        assert_eq!(store.stimuli(None, 10).unwrap().len(), 2);
        assert_eq!(store.resource(94).unwrap().as_deref(), Some(b"<xml/>".as_slice()));
        assert_eq!(
            store.definition(DefinitionKey(95)).unwrap(),
            Some(definition(95, "order", 1))
        );
        assert_eq!(store.value("k", at(0)).unwrap(), Some(b"v".to_vec()));
        assert_eq!(store.audit(Page::first(10)).unwrap().len(), 1);
        assert_eq!(store.counts().unwrap().iter().sum::<u64>(), 2);
    }
    subject.write(vec![
        Write::DisarmTimer {
            owner: 1,
            element: ElementIndex(2),
        },
        Write::CloseJob(ElementInstanceKey(91)),
        Write::CloseUserTask(ElementInstanceKey(92)),
        Write::CloseIncident(IncidentKey(93)),
        Write::RemoveValue("k".to_owned()),
    ]);
    subject = subject.reopen();
    assert_eq!(subject.store.timers(at(i64::MAX), None, 10).unwrap(), []);
    assert_eq!(subject.store.job(ElementInstanceKey(91)).unwrap(), None);
    assert_eq!(subject.store.user_task(ElementInstanceKey(92)).unwrap(), None);
    assert_eq!(subject.store.incident(IncidentKey(93)).unwrap(), None);
    assert_eq!(subject.store.value("k", at(0)).unwrap(), None);
}

/// After a close batches fail as closed, and closing again does nothing.
pub fn a_closed_store_refuses_batches(make: Make<'_>) {
    let subject = Subject::new(make);
    subject.write(vec![create(1)]);
    subject.store.close();
    subject.store.close();
    let result = subject.commit(vec![], vec![update(1, 2)]);
    assert_eq!(failure_of(result), ErrorKind::Closed);
    assert_eq!(
        subject.store.instance(InstanceKey(1)).unwrap_err().kind(),
        ErrorKind::Closed
    );
    assert_eq!(subject.store.activate().unwrap_err().kind(), ErrorKind::Closed);
    let reopened = subject.reopen();
    assert_eq!(
        reopened.store.instance(InstanceKey(1)).unwrap().unwrap().revision,
        1
    );
}
