//! The stimulus queue.

use tidegate_model::StimulusKey;

use super::rows::*;
use super::{Make, Subject, at};
use crate::commit::{Expect, Refusal, Write};
use crate::row::{DeadLetterRow, Page, QueueDepth};

/// Keys grow in the order of acceptance, and the queue is read in it, in pages.
pub fn stimuli_keep_the_order_of_acceptance(make: Make<'_>) {
    let mut subject = Subject::new(make);
    let mut given = Vec::new();
    for turn in 0..20 {
        let outcome = subject.write(vec![
            Write::AddStimulus(stimulus(&format!("{turn}a"), 100 - turn)),
            Write::AddStimulus(stimulus(&format!("{turn}b"), 200)),
        ]);
        given.extend(outcome.stimuli);
    }
    assert!(
        given.is_sorted() && given.windows(2).all(|pair| pair[0] != pair[1]) && given[0] > StimulusKey(0)
    );
    subject = subject.reopen();
    let all = subject.store.stimuli(None, 100).unwrap();
    assert_eq!(all.iter().map(|row| row.key).collect::<Vec<_>>(), given);
    assert_eq!(all[5].payload, b"2b");
    let mut expected = stimulus("3a", 97);
    expected.key = given[6];
    assert_eq!(subject.store.stimuli(Some(given[5]), 1).unwrap(), [expected]);
    assert_eq!(
        subject.store.queue().unwrap(),
        QueueDepth {
            depth: 40,
            oldest_accepted_at: Some(at(100))
        }
    );
    subject.write(vec![
        Write::RemoveStimulus(given[0]),
        Write::RemoveStimulus(given[0]),
    ]);
    assert_eq!(
        subject.store.queue().unwrap(),
        QueueDepth {
            depth: 39,
            oldest_accepted_at: Some(at(200))
        }
    );
}

/// A key is never given again, also when the queue was empty and the store was opened again: a late expectation
/// must not meet another stimulus.
pub fn stimulus_keys_are_never_reused(make: Make<'_>) {
    let mut subject = Subject::new(make);
    let mut last = StimulusKey(0);
    for _ in 0..3 {
        let key = subject.write(vec![Write::AddStimulus(stimulus("s", 1))]).stimuli[0];
        assert!(key > last);
        subject.write(vec![Write::RemoveStimulus(key)]);
        assert_eq!(subject.store.queue().unwrap(), QueueDepth::default());
        last = key;
        subject = subject.reopen();
    }
}

/// The commit that consumes a stimulus expects it: a second one is refused.
pub fn a_stimulus_is_consumed_once(make: Make<'_>) {
    let subject = Subject::new(make);
    let key = subject.write(vec![Write::AddStimulus(stimulus("s", 1))]).stimuli[0];
    let consume = || (vec![Expect::Stimulus(key)], vec![Write::RemoveStimulus(key)]);
    let (expect, writes) = consume();
    assert!(subject.commit(expect, writes).is_ok());
    let (expect, writes) = consume();
    assert_eq!(subject.refusal(expect, writes), Refusal::StimulusGone(key));
}

/// Failed attempts are counted on the row.
pub fn failed_attempts_are_counted(make: Make<'_>) {
    let subject = Subject::new(make);
    let key = subject.write(vec![Write::AddStimulus(stimulus("s", 1))]).stimuli[0];
    subject.write(vec![
        Write::StimulusFailed(key),
        Write::StimulusFailed(StimulusKey(key.get() + 1)),
    ]);
    subject.write(vec![Write::StimulusFailed(key)]);
    assert_eq!(subject.store.stimuli(None, 1).unwrap()[0].attempts, 2);
}

/// A stimulus that is put aside leaves the queue with its last error; it is put back once, also when two ask for it.
pub fn a_dead_letter_is_replayed_once(make: Make<'_>) {
    let mut subject = Subject::new(make);
    let row = put_aside(&subject, "s");
    let key = row.stimulus.key;
    subject = subject.reopen();
    assert_eq!(subject.store.stimuli(None, 10).unwrap(), []);
    assert_eq!(subject.store.queue().unwrap(), QueueDepth::default());
    assert_eq!(subject.store.dead_letter(key).unwrap(), Some(row.clone()));
    let replay = || {
        let writes = vec![
            Write::RemoveDeadLetter(key),
            Write::AddStimulus(row.stimulus.clone()),
        ];
        (vec![Expect::DeadLetter(key)], writes)
    };
    let (expect, writes) = replay();
    let outcome = subject.commit(expect, writes).unwrap();
    assert!(
        outcome.stimuli[0] > key,
        "it stands at the end of the queue under a new key"
    );
    let (expect, writes) = replay();
    assert_eq!(subject.refusal(expect, writes), Refusal::DeadLetterGone(key));
    assert_eq!(subject.store.queue().unwrap().depth, 1);
    assert_eq!(subject.store.dead_letter(key).unwrap(), None);
    subject.write(vec![Write::RemoveDeadLetter(key)]);
}

/// Dead letters are listed newest first, in pages.
pub fn dead_letters_are_listed_newest_first(make: Make<'_>) {
    let subject = Subject::new(make);
    let rows: Vec<_> = ["a", "b", "c"]
        .map(|payload| put_aside(&subject, payload))
        .into_iter()
        .rev()
        .collect();
    assert_eq!(subject.store.dead_letters(Page::first(10)).unwrap(), rows);
    let page = Page {
        after: Some(rows[0].stimulus.key.get()),
        limit: 1,
    };
    assert_eq!(subject.store.dead_letters(page).unwrap(), rows[1..2]);
}

fn put_aside(subject: &Subject, payload: &str) -> DeadLetterRow {
    let mut stimulus = stimulus(payload, 1);
    stimulus.key = subject.write(vec![Write::AddStimulus(stimulus.clone())]).stimuli[0];
    stimulus.attempts = 3;
    let key = stimulus.key;
    let row = DeadLetterRow {
        stimulus,
        code: "store-internal".to_owned(),
        error: "It failed.".to_owned(),
        died_at: at(9),
    };
    subject.write(vec![
        Write::RemoveStimulus(key),
        Write::AddDeadLetter(Box::new(row.clone())),
    ]);
    row
}
