//! The stimulus queue.

use tidegate_model::StimulusKey;

use super::rows::*;
use super::{Make, Subject, at};
use crate::commit::{Expect, Refusal, Write};
use crate::row::QueueDepth;

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
