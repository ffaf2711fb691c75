//! Instances, their states and journals, and the lists of them.

use tidegate_model::{DefinitionKey, InstanceKey, SubStatus};

use super::rows::*;
use super::{Make, Subject, at};
use crate::commit::{Refusal, Write};
use crate::row::{InstanceFilter, InstanceRow, Page};

fn keys(rows: &[InstanceRow]) -> Vec<u64> {
    rows.iter().map(|row| row.key.get()).collect()
}

/// An update makes exactly the next revision, or is refused with the one that was found.
pub fn a_stale_revision_is_refused(make: Make<'_>) {
    let subject = Subject::new(make);
    subject.write(vec![create(1)]);
    for revision in [0, 1, 3, 4, u64::MAX] {
        let refusal = subject.refusal(vec![], vec![update(1, revision)]);
        assert_eq!(
            refusal,
            Refusal::Revision {
                instance: InstanceKey(1),
                found: Some(1)
            }
        );
    }
    let refusal = subject.refusal(vec![], vec![update(9, 1)]);
    assert_eq!(
        refusal,
        Refusal::Revision {
            instance: InstanceKey(9),
            found: None
        }
    );
    let mut changed = next(1, 2);
    changed.sub_status = SubStatus::Faulted;
    changed.incident_count = 3;
    changed.attempts = 2;
    changed.ended_at = Some(at(77));
    subject.write(vec![Write::UpdateInstance(changed)]);
    let mut expected = instance(1);
    expected.revision = 2;
    expected.sub_status = SubStatus::Faulted;
    expected.incident_count = 3;
    expected.attempts = 2;
    expected.ended_at = Some(at(77));
    assert_eq!(subject.store.instance(InstanceKey(1)).unwrap(), Some(expected));
}

/// The definition of an instance changes with its next revision, and nothing else of it; an unknown one changes nothing.
pub fn an_instance_changes_its_definition(make: Make<'_>) {
    let subject = Subject::new(make);
    subject.write(vec![create(1), create(2)]);
    let change = |key| Write::ChangeDefinition {
        instance: InstanceKey(key),
        definition: DefinitionKey(77),
        version: 9,
    };
    subject.write(vec![update(1, 2), change(1), change(99)]);
    let mut expected = instance(1);
    expected.revision = 2;
    let row = subject.store.instance(InstanceKey(1)).unwrap().unwrap();
    expected.sub_status = row.sub_status;
    expected.definition = DefinitionKey(77);
    expected.version = 9;
    assert_eq!(row, expected);
    let filter = InstanceFilter {
        definition: Some(DefinitionKey(77)),
        ..InstanceFilter::default()
    };
    let found = subject.store.instances(&filter, Page::first(10)).unwrap();
    assert_eq!(keys(&found), [1]);
    assert_eq!(subject.store.instance(InstanceKey(2)).unwrap(), Some(instance(2)));
}

/// A key is created once; a second creation is refused with the revision that is there.
pub fn a_second_creation_is_refused(make: Make<'_>) {
    let subject = Subject::new(make);
    subject.write(vec![create(1)]);
    subject.write(vec![update(1, 2)]);
    let refusal = subject.refusal(vec![], vec![create(1), journal(1, 1)]);
    assert_eq!(
        refusal,
        Refusal::Revision {
            instance: InstanceKey(1),
            found: Some(2)
        }
    );
    assert_eq!(
        subject.store.instance(InstanceKey(1)).unwrap().unwrap().revision,
        2
    );
    assert_eq!(subject.store.journal(InstanceKey(1), 0, 10).unwrap(), []);
}

/// An accepted start has revision 0; one commit may also create and update.
pub fn a_commit_may_create_and_update(make: Make<'_>) {
    let subject = Subject::new(make);
    let mut pending = instance(1);
    pending.revision = 0;
    pending.sub_status = SubStatus::Pending;
    pending.business_key = Some("B-1".to_owned());
    pending.parent = Some(InstanceKey(8));
    subject.write(vec![
        Write::CreateInstance {
            row: Box::new(pending.clone()),
            state: None,
        },
        update(1, 1),
        journal(1, 1),
    ]);
    let mut expected = pending;
    expected.revision = 1;
    expected.sub_status = SubStatus::Suspended;
    assert_eq!(subject.store.instance(InstanceKey(1)).unwrap(), Some(expected));
    assert_eq!(subject.store.counts().unwrap(), [0, 0, 1, 0, 0, 0, 0, 0, 0]);
}

/// A state comes back byte by byte, whatever its size, also when it grows and shrinks; `None` leaves it.
pub fn states_of_any_size_come_back(make: Make<'_>) {
    let mut subject = Subject::new(make);
    let state = |size: usize, seed: usize| {
        (0..size)
            .map(|at| ((at * 31 + seed) % 251) as u8)
            .collect::<Vec<u8>>()
    };
    subject.write(vec![Write::CreateInstance {
        row: Box::new(instance(1)),
        state: Some(state(5_000, 1)),
    }]);
    let mut last = state(5_000, 1);
    for (position, size) in [0, 10, 1_023, 1_024, 1_025, 70_000, 3_000_000, 5, 200_000]
        .into_iter()
        .enumerate()
    {
        let revision = 2 + 2 * position as u64;
        let loaded = subject.store.load(InstanceKey(1)).unwrap().unwrap();
        assert_eq!(loaded.state.as_ref(), Some(&last));
        last = state(size, position);
        let mut row = next(1, revision);
        row.state = Some(last.clone());
        subject.write(vec![Write::UpdateInstance(row)]);
        subject.write(vec![update(1, revision + 1)]);
    }
    subject = subject.reopen();
    let loaded = subject.store.load(InstanceKey(1)).unwrap().unwrap();
    assert_eq!(loaded.state, Some(last));
    assert_eq!(loaded.row.revision, 19);
    subject.write(vec![create(2)]);
    assert_eq!(subject.store.load(InstanceKey(2)).unwrap().unwrap().state, None);
    assert_eq!(subject.store.load(InstanceKey(3)).unwrap(), None);
}

/// `load` gives the journal rows after the revision of the state, in order, and no others.
pub fn load_gives_the_journal_after_the_state(make: Make<'_>) {
    let subject = Subject::new(make);
    subject.write(vec![create(1), journal(1, 1), create(2), journal(2, 1)]);
    assert_eq!(
        subject.store.load(InstanceKey(1)).unwrap().unwrap().journal,
        [entry(1, 1)]
    );
    for revision in 2..=9 {
        let mut row = next(1, revision);
        row.state = (revision == 6).then(|| b"at six".to_vec());
        subject.write(vec![Write::UpdateInstance(row), journal(1, revision)]);
    }
    let loaded = subject.store.load(InstanceKey(1)).unwrap().unwrap();
    assert_eq!(loaded.state.as_deref(), Some(b"at six".as_slice()));
    assert_eq!(loaded.journal, [entry(1, 7), entry(1, 8), entry(1, 9)]);
    assert_eq!(loaded.row.revision, 9);
}

/// Executing, interrupted and cancelling instances, by key, in pages.
pub fn recoverable_lists_what_was_cut(make: Make<'_>) {
    let subject = Subject::new(make);
    for (position, sub_status) in SubStatus::ALL.into_iter().cycle().take(27).enumerate() {
        let mut row = instance(position as u64 + 1);
        row.sub_status = sub_status;
        subject.write(vec![Write::CreateInstance {
            row: Box::new(row),
            state: None,
        }]);
    }
    let all = subject.store.recoverable(None, 100).unwrap();
    assert_eq!(keys(&all), [2, 4, 6, 11, 13, 15, 20, 22, 24]);
    let page = subject.store.recoverable(Some(InstanceKey(6)), 2).unwrap();
    assert_eq!(keys(&page), [11, 13]);
    let mut row = next(11, 2);
    row.sub_status = SubStatus::Finished;
    subject.write(vec![Write::UpdateInstance(row)]);
    assert_eq!(
        keys(&subject.store.recoverable(Some(InstanceKey(6)), 2).unwrap()),
        [13, 15]
    );
}

/// The counts are those of the rows, after any change and after reopening.
pub fn counts_follow_every_change(make: Make<'_>) {
    let mut subject = Subject::new(make);
    let mut expected = [0_u64; 9];
    let mut held: Vec<(u64, u64, SubStatus)> = Vec::new();
    let mut seed = 12_345_u64;
    for turn in 0..300_u64 {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let sub_status = SubStatus::ALL[(seed >> 33) as usize % 9];
        let pick = (seed >> 40) as usize % (held.len() + 1);
        if let Some((key, revision, now)) = held.get_mut(pick) {
            let mut row = next(*key, *revision + 1);
            row.sub_status = sub_status;
            row.state = (turn % 3 == 0).then(|| vec![1; (seed >> 20) as usize % 3_000]);
            if turn % 5 == 0 {
                row.revision += 1;
                subject.refusal(vec![], vec![Write::UpdateInstance(row)]);
                continue;
            }
            subject.write(vec![Write::UpdateInstance(row)]);
            expected[usize::from(now.code())] -= 1;
            *revision += 1;
            *now = sub_status;
        } else {
            let mut row = instance(turn + 1);
            row.sub_status = sub_status;
            subject.write(vec![Write::CreateInstance {
                row: Box::new(row),
                state: None,
            }]);
            held.push((turn + 1, 1, sub_status));
        }
        expected[usize::from(sub_status.code())] += 1;
        if turn == 150 {
            subject = subject.reopen();
        }
    }
    assert_eq!(subject.store.counts().unwrap(), expected);
    for sub_status in SubStatus::ALL {
        let filter = InstanceFilter {
            sub_statuses: vec![sub_status],
            ..InstanceFilter::default()
        };
        let listed = subject.store.instances(&filter, Page::first(1_000)).unwrap();
        assert_eq!(listed.len() as u64, expected[usize::from(sub_status.code())]);
    }
}

/// Each condition of the filter is honoured, alone and with others; the newest come first.
pub fn filters_find_their_instances(make: Make<'_>) {
    let subject = Subject::new(make);
    let mut rows = Vec::new();
    for key in 1..=60_u64 {
        let mut row = instance(key);
        row.process_id = if key % 2 == 0 {
            "order".into()
        } else {
            "refund".into()
        };
        row.definition = DefinitionKey(key % 3 + 1);
        row.business_key = (key % 4 == 0).then(|| format!("B-{}", key % 8));
        row.parent = (key % 5 == 0).then_some(InstanceKey(key % 10 + 1));
        row.tenant = if key % 6 == 0 {
            "acme".into()
        } else {
            TENANT.into()
        };
        row.sub_status = SubStatus::ALL[key as usize % 9];
        row.incident_count = u32::from(key % 7 == 0);
        row.started_at = at(key as i64 * 10);
        subject.write(vec![Write::CreateInstance {
            row: Box::new(row.clone()),
            state: None,
        }]);
        rows.push(row);
    }
    let none = InstanceFilter::default;
    let filters = [
        none(),
        InstanceFilter {
            process_id: Some("order".to_owned()),
            ..none()
        },
        InstanceFilter {
            definition: Some(DefinitionKey(2)),
            ..none()
        },
        InstanceFilter {
            business_key: Some("B-4".to_owned()),
            ..none()
        },
        InstanceFilter {
            parent: Some(InstanceKey(6)),
            ..none()
        },
        InstanceFilter {
            tenant: Some("acme".to_owned()),
            ..none()
        },
        InstanceFilter {
            has_incident: Some(true),
            ..none()
        },
        InstanceFilter {
            has_incident: Some(false),
            ..none()
        },
        InstanceFilter {
            sub_statuses: vec![SubStatus::Held],
            ..none()
        },
        InstanceFilter {
            sub_statuses: vec![SubStatus::Held, SubStatus::Finished],
            ..none()
        },
        InstanceFilter {
            sub_statuses: vec![SubStatus::Interrupted, SubStatus::Executing],
            ..none()
        },
        InstanceFilter {
            started_after: Some(at(200)),
            started_before: Some(at(300)),
            ..none()
        },
        InstanceFilter {
            process_id: Some("nobody".to_owned()),
            ..none()
        },
        InstanceFilter {
            process_id: Some("order".to_owned()),
            has_incident: Some(true),
            tenant: Some(TENANT.to_owned()),
            sub_statuses: SubStatus::ALL.to_vec(),
            ..none()
        },
    ];
    for filter in filters {
        let expected: Vec<InstanceRow> = rows
            .iter()
            .rev()
            .filter(|row| filter.admits(row))
            .cloned()
            .collect();
        assert_eq!(
            subject.store.instances(&filter, Page::first(100)).unwrap(),
            expected,
            "{filter:?}"
        );
        let mut paged = Vec::new();
        let mut page = Page::first(3);
        loop {
            let rows = subject.store.instances(&filter, page).unwrap();
            page.after = rows.last().map(|row| row.key.get());
            if rows.is_empty() {
                break;
            }
            paged.extend(rows);
        }
        assert_eq!(paged, expected, "{filter:?} in pages");
    }
    assert_eq!(subject.store.instances(&none(), Page::first(0)).unwrap(), []);
}

/// Rows that come or go between two pages neither repeat nor hide others.
pub fn paging_is_stable_while_rows_come_and_go(make: Make<'_>) {
    let subject = Subject::new(make);
    subject.write((10..=40).map(create).collect());
    let filter = InstanceFilter {
        sub_statuses: vec![SubStatus::Suspended],
        ..InstanceFilter::default()
    };
    let mut seen = Vec::new();
    let mut page = Page::first(4);
    for turn in 0_u64.. {
        let rows = subject.store.instances(&filter, page).unwrap();
        let Some(last) = rows.last() else { break };
        page.after = Some(last.key.get());
        seen.extend(keys(&rows));
        // One comes at the top, and the very row that the page ended with leaves the list.
        let mut gone = next(last.key.get(), 2);
        gone.sub_status = SubStatus::Finished;
        subject.write(vec![create(100 + turn), Write::UpdateInstance(gone)]);
    }
    assert_eq!(seen, (10..=40).rev().collect::<Vec<_>>());
}

/// The journal of one instance in order, in pages.
pub fn the_journal_is_read_in_pages(make: Make<'_>) {
    let subject = Subject::new(make);
    for key in [1, 2, 3] {
        subject.write(vec![create(key)]);
    }
    for revision in 1..=10 {
        subject.write([3, 1, 2].map(|key| journal(key, revision)).to_vec());
    }
    let all = subject.store.journal(InstanceKey(2), 0, 100).unwrap();
    assert_eq!(
        all,
        (1..=10).map(|revision| entry(2, revision)).collect::<Vec<_>>()
    );
    assert_eq!(
        subject.store.journal(InstanceKey(2), 4, 2).unwrap(),
        [entry(2, 5), entry(2, 6)]
    );
    assert_eq!(subject.store.journal(InstanceKey(2), 10, 2).unwrap(), []);
    assert_eq!(subject.store.journal(InstanceKey(2), u64::MAX, 2).unwrap(), []);
}
