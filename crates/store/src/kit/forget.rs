//! Forgetting, its fence, trimming, and what retention asks for; operations on many.

use tidegate_model::{InstanceKey, SubStatus};

use super::rows::*;
use super::{Make, Subject, at};
use crate::commit::{Expect, Outcome, Refusal, Write};
use crate::forget::{ForgetRequest, ForgottenJournal, OperationItemRow, OperationRow, Unforgettable};
use crate::row::{DeadLetterRow, InstanceFilter, Page};

fn ended_with(key: u64, ended_at: i64, parent: Option<u64>) -> Vec<Write> {
    let mut row = instance(key);
    row.parent = parent.map(InstanceKey);
    row.sub_status = SubStatus::Finished;
    row.ended_at = Some(at(ended_at));
    vec![
        Write::CreateInstance {
            row: Box::new(row),
            state: Some(vec![7; 2_000]),
        },
        journal(key, 1),
    ]
}

fn ended(key: u64) -> Vec<Write> {
    ended_with(key, 50, None)
}

fn request(keys: &[u64]) -> ForgetRequest {
    ForgetRequest {
        instances: keys.iter().copied().map(InstanceKey).collect(),
        now: at(100),
        fenced_until: at(200),
        keeps_journal: false,
        limit: 1_000,
    }
}

fn forget(request: ForgetRequest) -> (Vec<Expect>, Vec<Write>) {
    (
        vec![Expect::Forgettable(request.instances.clone())],
        vec![Write::ForgetInstances(Box::new(request))],
    )
}

fn forgets(subject: &Subject, request: ForgetRequest) -> Outcome {
    let (expect, writes) = forget(request);
    subject.commit(expect, writes).expect("they are forgotten")
}

fn sweep(subject: &Subject, now: i64, limit: usize) -> u64 {
    subject
        .write(vec![Write::SweepForgotten { now: at(now), limit }])
        .removed
}

/// One live or unknown instance among many: it is named, and none is forgotten.
pub fn a_live_or_unknown_instance_keeps_a_forget_from_happening(make: Make<'_>) {
    let subject = Subject::new(make);
    for key in [1, 2] {
        subject.write(ended(key));
    }
    subject.write(vec![create(3)]);
    for (odd, why) in [(3, Unforgettable::Live), (9, Unforgettable::Unknown)] {
        let (expect, writes) = forget(request(&[1, odd, 2]));
        assert_eq!(
            subject.refusal(expect, writes),
            Refusal::NotForgettable {
                instance: InstanceKey(odd),
                why
            }
        );
    }
    for key in 1..=3 {
        assert!(subject.store.instance(InstanceKey(key)).unwrap().is_some());
        assert_eq!(subject.store.forgotten(InstanceKey(key)).unwrap(), None);
    }
    assert_eq!(subject.store.counts().unwrap(), [0, 0, 1, 0, 0, 0, 2, 0, 0]);
}

/// A called instance is forgotten before, or with, its caller.
pub fn a_caller_is_not_forgotten_before_whom_it_called(make: Make<'_>) {
    let subject = Subject::new(make);
    subject.write(ended(1));
    subject.write(ended_with(2, 40, Some(1)));
    let (expect, writes) = forget(request(&[1]));
    assert_eq!(
        subject.refusal(expect, writes),
        Refusal::NotForgettable {
            instance: InstanceKey(1),
            why: Unforgettable::Called(InstanceKey(2))
        }
    );
    forgets(&subject, request(&[1, 2]));
    assert_eq!(subject.store.counts().unwrap(), [0; 9]);
}

/// Every row of it goes: state, journal, timers, subscriptions, jobs, tasks, incidents, stimuli and dead letters. Rows of
/// others stay.
pub fn nothing_of_a_forgotten_instance_is_left(make: Make<'_>) {
    let mut subject = Subject::new(make);
    for key in [1, 2] {
        subject.write(ended(key));
        let mut of_timer = timer(key + 10, 500);
        of_timer.instance = Some(InstanceKey(key));
        let mut waits = subscription(key + 20, "order");
        waits.instance = InstanceKey(key);
        let mut work = job(key + 30);
        work.instance = InstanceKey(key);
        let mut queued = stimulus("late", 60);
        queued.domain = format!("instance/{key}");
        let mut letter = stimulus("dead", 60);
        letter.domain = format!("instance/{key}");
        letter.key = tidegate_model::StimulusKey(key + 40);
        subject.write(vec![
            Write::ArmTimer(of_timer),
            subscribe(waits, 60),
            open_job(work),
            Write::OpenUserTask(Box::new(user_task(key + 50, key))),
            Write::OpenIncident(Box::new(incident(key + 60, key))),
            Write::AddStimulus(queued),
            Write::AddDeadLetter(Box::new(DeadLetterRow {
                stimulus: letter,
                code: "x".to_owned(),
                error: "x".to_owned(),
                died_at: at(61),
            })),
        ]);
    }
    let stimuli = subject.store.stimuli(None, 10).unwrap();
    let outcome = forgets(&subject, request(&[1]));
    assert_eq!(outcome.dropped, [stimuli[0].key]);
    assert!(outcome.removed >= 9, "{outcome:?}");
    subject = subject.reopen();
    let store = &subject.store;
    assert_eq!(store.load(InstanceKey(1)).unwrap(), None);
    assert_eq!(store.journal(InstanceKey(1), 0, 10).unwrap(), []);
    assert_eq!(store.journal(InstanceKey(2), 0, 10).unwrap(), [entry(2, 1)]);
    assert_eq!(store.timers(at(9_000), None, 10).unwrap().len(), 1);
    assert_eq!(store.job(tidegate_model::ElementInstanceKey(31)).unwrap(), None);
    assert!(
        store
            .job(tidegate_model::ElementInstanceKey(32))
            .unwrap()
            .is_some()
    );
    assert_eq!(
        store
            .user_tasks(&Default::default(), Page::first(9))
            .unwrap()
            .len(),
        1
    );
    assert_eq!(
        store
            .incidents(&Default::default(), Page::first(9))
            .unwrap()
            .len(),
        1
    );
    assert_eq!(store.dead_letters(Page::first(9)).unwrap().len(), 1);
    assert_eq!(store.stimuli(None, 10).unwrap(), stimuli[1..]);
    assert_eq!(store.queue().unwrap().depth, 1);
    assert_eq!(store.counts().unwrap(), [0, 0, 0, 0, 0, 0, 1, 0, 0]);
    let found = subject.write(vec![publish(message(1), 70)]);
    assert_eq!(found.deliveries.len(), 1);
    assert_eq!(found.deliveries[0].instance, InstanceKey(2));
}

/// Nothing of a forgotten key is written again while its fence stands: not the instance, not its next revision.
pub fn a_forgotten_key_stays_fenced_until_its_time(make: Make<'_>) {
    let mut subject = Subject::new(make);
    subject.write(ended(1));
    forgets(&subject, request(&[1]));
    subject = subject.reopen();
    let fenced = subject
        .store
        .forgotten(InstanceKey(1))
        .unwrap()
        .expect("remembered");
    assert_eq!(fenced.sub_status, SubStatus::Finished);
    assert_eq!((fenced.forgotten_at, fenced.expires_at), (at(100), Some(at(200))));
    assert_eq!(
        subject.refusal(vec![], vec![create(1), journal(1, 1)]),
        Refusal::InstanceForgotten(InstanceKey(1))
    );
    assert_eq!(
        subject.refusal(vec![], vec![update(1, 2), journal(1, 2)]),
        Refusal::Revision {
            instance: InstanceKey(1),
            found: None
        }
    );
    assert_eq!(subject.store.journal(InstanceKey(1), 0, 9).unwrap(), []);
    assert_eq!(sweep(&subject, 199, 10), 0);
    assert!(subject.store.forgotten(InstanceKey(1)).unwrap().is_some());
    assert_eq!(sweep(&subject, 200, 10), 1);
    assert_eq!(subject.store.forgotten(InstanceKey(1)).unwrap(), None);
    subject.write(vec![create(1)]);
}

/// A long journal goes in slices; the instance is gone at once, and the fence stands until the last slice.
pub fn a_long_journal_goes_in_slices(make: Make<'_>) {
    let mut subject = Subject::new(make);
    subject.write(ended(1));
    for revision in 2..=25 {
        let mut row = next(1, revision);
        row.sub_status = SubStatus::Finished;
        row.ended_at = Some(at(50));
        subject.write(vec![Write::UpdateInstance(row), journal(1, revision)]);
    }
    let mut slice = request(&[1]);
    slice.limit = 10;
    forgets(&subject, slice);
    assert_eq!(subject.store.instance(InstanceKey(1)).unwrap(), None);
    let left = |subject: &Subject| subject.store.journal(InstanceKey(1), 0, 99).unwrap().len();
    assert_eq!(left(&subject), 15);
    subject = subject.reopen();
    assert_eq!(sweep(&subject, 500, 10), 10);
    assert_eq!(left(&subject), 5);
    let fenced = subject
        .store
        .forgotten(InstanceKey(1))
        .unwrap()
        .expect("remembered");
    assert_eq!(fenced.journal, ForgottenJournal::Going);
    assert!(sweep(&subject, 150, 10) < 10);
    assert_eq!(left(&subject), 0);
    let fenced = subject
        .store
        .forgotten(InstanceKey(1))
        .unwrap()
        .expect("remembered");
    assert_eq!(fenced.journal, ForgottenJournal::Gone);
}

/// A journal may be kept; it goes when the instance is forgotten once more, without it.
pub fn a_kept_journal_stays_until_it_is_forgotten_too(make: Make<'_>) {
    let subject = Subject::new(make);
    subject.write(ended(1));
    let mut kept = request(&[1]);
    kept.keeps_journal = true;
    forgets(&subject, kept);
    sweep(&subject, 9_000, 100);
    assert_eq!(subject.store.instance(InstanceKey(1)).unwrap(), None);
    assert_eq!(
        subject.store.journal(InstanceKey(1), 0, 9).unwrap(),
        [entry(1, 1)]
    );
    let row = subject
        .store
        .forgotten(InstanceKey(1))
        .unwrap()
        .expect("remembered");
    assert_eq!((row.journal, row.expires_at), (ForgottenJournal::Kept, None));
    forgets(&subject, request(&[1]));
    sweep(&subject, 9_000, 100);
    assert_eq!(subject.store.journal(InstanceKey(1), 0, 9).unwrap(), []);
    assert_eq!(subject.store.forgotten(InstanceKey(1)).unwrap(), None);
}

/// Journal rows that a state covers may go, oldest first, in slices; what is needed to load the instance stays.
pub fn only_what_a_state_covers_is_trimmed(make: Make<'_>) {
    let subject = Subject::new(make);
    subject.write(vec![create(1), journal(1, 1)]);
    for revision in 2..=9 {
        let mut row = next(1, revision);
        row.state = (revision == 6).then(|| b"at six".to_vec());
        subject.write(vec![Write::UpdateInstance(row), journal(1, revision)]);
    }
    let trim = |up_to, limit| {
        let instance = InstanceKey(1);
        subject
            .write(vec![Write::TrimJournal {
                instance,
                up_to,
                limit,
            }])
            .removed
    };
    assert_eq!(trim(4, 3), 3);
    assert_eq!(subject.store.load(InstanceKey(1)).unwrap().unwrap().trimmed, 3);
    assert_eq!(trim(4, 3), 1);
    assert_eq!(trim(u64::MAX, 100), 2);
    assert_eq!(trim(u64::MAX, 100), 0);
    let loaded = subject.store.load(InstanceKey(1)).unwrap().unwrap();
    assert_eq!(loaded.trimmed, 6);
    assert_eq!(loaded.journal, [entry(1, 7), entry(1, 8), entry(1, 9)]);
    let whole = subject.store.journal(InstanceKey(1), 0, 99).unwrap();
    assert_eq!(whole, loaded.journal);
}

/// Finished instances come by their end, in pages that do not move while others go.
pub fn what_has_ended_is_listed_by_its_end(make: Make<'_>) {
    let subject = Subject::new(make);
    for (key, end) in [(1, 30), (2, 10), (3, 20), (4, 20), (5, 99)] {
        subject.write(ended_with(key, end, None));
    }
    subject.write(vec![create(6)]);
    let list = |until, after: Option<(i64, u64)>, limit| -> Vec<u64> {
        let after = after.map(|(end, key)| (at(end), InstanceKey(key)));
        let rows = subject.store.ended(("order", TENANT), at(until), after, limit);
        rows.unwrap().iter().map(|row| row.key.get()).collect()
    };
    assert_eq!(list(30, None, 9), [2, 3, 4, 1]);
    assert_eq!(list(20, None, 2), [2, 3]);
    forgets(&subject, request(&[2, 3]));
    assert_eq!(list(30, Some((20, 3)), 9), [4, 1]);
    assert_eq!(
        subject.store.ended(("other", TENANT), at(99), None, 9).unwrap(),
        []
    );
}

/// The newest instance beyond a count is where a limit by count cuts.
pub fn the_end_beyond_a_count_is_found(make: Make<'_>) {
    let subject = Subject::new(make);
    for (key, end) in [(1, 30), (2, 10), (3, 20), (4, 20)] {
        subject.write(ended_with(key, end, None));
    }
    let beyond = |keep| {
        let found = subject.store.ended_beyond(("order", TENANT), keep).unwrap();
        found.map(|(_, key)| key.get())
    };
    assert_eq!([beyond(0), beyond(1), beyond(2)], [Some(1), Some(4), Some(3)]);
    assert_eq!([beyond(3), beyond(4), beyond(5)], [Some(2), None, None]);
}

/// The processes that have finished instances, one after the other.
pub fn processes_with_an_end_are_listed(make: Make<'_>) {
    let subject = Subject::new(make);
    assert_eq!(subject.store.next_ended_process(None).unwrap(), None);
    let pairs = [(1, "b", "t1"), (2, "a", "t2"), (3, "a", "t1"), (4, "a", "t1")];
    for (key, process_id, tenant) in pairs {
        let mut row = instance(key);
        row.process_id = process_id.into();
        row.tenant = tenant.into();
        row.sub_status = SubStatus::Cancelled;
        row.ended_at = Some(at(5));
        let row = Box::new(row);
        subject.write(vec![Write::CreateInstance { row, state: None }]);
    }
    subject.write(vec![create(9)]);
    let mut found = Vec::new();
    let mut after: Option<(String, String)> = None;
    loop {
        let from = after.as_ref().map(|(id, tenant)| (id.as_str(), tenant.as_str()));
        match subject.store.next_ended_process(from).unwrap() {
            Some(next) => {
                found.push(format!("{}/{}", next.0, next.1));
                after = Some(next);
            }
            None => break,
        }
    }
    assert_eq!(found, ["a/t1", "a/t2", "b/t1"]);
}

/// An operation keeps one outcome for each instance, and goes only when it is over.
pub fn operations_keep_an_outcome_for_each_instance(make: Make<'_>) {
    let mut subject = Subject::new(make);
    let row = |key, ended_at: Option<i64>, body: &str| {
        Write::PutOperation(Box::new(OperationRow {
            key,
            ended_at: ended_at.map(at),
            body: body.to_owned(),
        }))
    };
    let item = |operation, instance, outcome: &str| OperationItemRow {
        operation,
        instance: InstanceKey(instance),
        outcome: outcome.to_owned(),
        detail: None,
    };
    let put = |item: OperationItemRow| Write::PutOperationItem(Box::new(item));
    subject.write(vec![
        row(1, None, "{}"),
        row(2, None, "{}"),
        put(item(1, 7, "pending")),
        put(item(1, 8, "pending")),
        put(item(2, 7, "pending")),
    ]);
    subject.write(vec![put(item(1, 7, "done")), row(1, None, "{\"n\":1}")]);
    subject = subject.reopen();
    let keys = |rows: Vec<OperationRow>| rows.iter().map(|row| row.key).collect::<Vec<_>>();
    assert_eq!(keys(subject.store.open_operations().unwrap()), [1, 2]);
    assert_eq!(keys(subject.store.operations(Page::first(9)).unwrap()), [2, 1]);
    assert_eq!(subject.store.operation(1).unwrap().unwrap().body, "{\"n\":1}");
    let items = |outcome, after: Option<u64>| {
        let found = subject
            .store
            .operation_items(1, outcome, after.map(InstanceKey), 9)
            .unwrap();
        found
            .into_iter()
            .map(|item| item.instance.get())
            .collect::<Vec<_>>()
    };
    assert_eq!(items(None, None), [7, 8]);
    assert_eq!(items(None, Some(7)), [8]);
    assert_eq!(items(Some("pending"), None), [8]);
    let remove = |limit| {
        subject
            .write(vec![Write::RemoveOperation { key: 1, limit }])
            .removed
    };
    subject.write(vec![row(1, Some(50), "{}")]);
    assert_eq!(keys(subject.store.open_operations().unwrap()), [2]);
    assert_eq!([remove(1), remove(9), remove(9)], [1, 2, 0]);
    assert_eq!(subject.store.operation(1).unwrap(), None);
    assert_eq!(subject.store.operation_items(2, None, None, 9).unwrap().len(), 1);
}

/// A list goes on where it was while rows before and behind its place come and go.
pub fn a_list_goes_on_while_instances_are_forgotten(make: Make<'_>) {
    let subject = Subject::new(make);
    for key in 1..=6 {
        subject.write(ended(key));
    }
    let list = |page| -> Vec<u64> {
        let rows = subject.store.instances(&InstanceFilter::default(), page).unwrap();
        rows.iter().map(|row| row.key.get()).collect()
    };
    assert_eq!(list(Page::first(2)), [6, 5]);
    forgets(&subject, request(&[5, 3]));
    subject.write(ended(7));
    let rest = Page {
        after: Some(5),
        limit: 9,
    };
    assert_eq!(list(rest), [4, 2, 1]);
}
