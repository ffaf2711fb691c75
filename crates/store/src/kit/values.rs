//! Key-value entries.

use super::rows::*;
use super::{Make, Subject, at};
use crate::commit::{Expect, Refusal, Write};

fn set(key: &str, value: &str, expires_at: Option<i64>) -> Write {
    Write::SetValue {
        key: key.to_owned(),
        value: value.as_bytes().to_vec(),
        expires_at: expires_at.map(at),
    }
}

fn absent(key: &str, now: i64) -> Vec<Expect> {
    vec![Expect::ValueAbsent {
        key: key.to_owned(),
        now: at(now),
    }]
}

/// With its expectation an entry is set once, and the second one learns what is there (an idempotency key).
pub fn a_value_is_set_once(make: Make<'_>) {
    let mut subject = Subject::new(make);
    assert!(
        subject
            .commit(absent("k", 0), vec![set("k", "one", None), create(1)])
            .is_ok()
    );
    let refusal = subject.refusal(absent("k", 0), vec![set("k", "two", None), create(2)]);
    assert_eq!(refusal, Refusal::ValuePresent(b"one".to_vec()));
    subject = subject.reopen();
    assert_eq!(
        subject.store.value("k", at(i64::MAX)).unwrap(),
        Some(b"one".to_vec())
    );
    assert_eq!(subject.store.value("K", at(0)).unwrap(), None);
    subject.write(vec![set("k", "", None)]);
    assert_eq!(subject.store.value("k", at(0)).unwrap(), Some(vec![]));
    subject.write(vec![
        Write::RemoveValue("k".to_owned()),
        Write::RemoveValue("k".to_owned()),
    ]);
    assert_eq!(subject.store.value("k", at(0)).unwrap(), None);
}

/// From its time on an expired entry is not there, for reads and expectations alike, cleared away or not.
pub fn a_value_expires(make: Make<'_>) {
    let subject = Subject::new(make);
    subject.write(vec![
        set("k", "one", Some(10)),
        set("other", "x", Some(20)),
        set("for ever", "y", None),
    ]);
    assert_eq!(subject.store.value("k", at(9)).unwrap(), Some(b"one".to_vec()));
    assert_eq!(subject.store.value("k", at(10)).unwrap(), None);
    assert_eq!(
        subject.refusal(absent("k", 9), vec![]),
        Refusal::ValuePresent(b"one".to_vec())
    );
    subject.write(vec![Write::ExpireMessages {
        now: at(9),
        limit: 10,
    }]);
    assert_eq!(subject.store.value("k", at(9)).unwrap(), Some(b"one".to_vec()));
    assert!(
        subject
            .commit(absent("k", 10), vec![set("k", "two", Some(30))])
            .is_ok()
    );
    subject.write(vec![Write::ExpireMessages {
        now: at(20),
        limit: 10,
    }]);
    assert_eq!(subject.store.value("k", at(29)).unwrap(), Some(b"two".to_vec()));
    assert_eq!(subject.store.value("other", at(20)).unwrap(), None);
    assert_eq!(
        subject.store.value("for ever", at(20)).unwrap(),
        Some(b"y".to_vec())
    );
}
