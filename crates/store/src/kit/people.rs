//! What people see: user tasks, incidents, the audit trail.

use std::sync::Arc;

use tidegate_model::{ElementInstanceKey, IncidentKey, InstanceKey};

use super::rows::*;
use super::{Make, Subject};
use crate::commit::Write;
use crate::row::{IncidentFilter, Page, UserTaskFilter};

/// User tasks: listed by instance, assignee and tenant, replaced, closed.
pub fn user_tasks_are_listed_and_closed(make: Make<'_>) {
    let mut subject = Subject::new(make);
    let mut rows: Vec<_> = (1..=6).map(|key| user_task(key, key % 2)).collect();
    rows[2].assignee = Some("eve".to_owned());
    rows[4].assignee = Some("eve".to_owned());
    rows[5].tenant = Arc::from("acme");
    rows[0].candidate_groups.clear();
    rows[0].name = None;
    subject.write(
        rows.iter()
            .cloned()
            .map(|row| Write::OpenUserTask(Box::new(row)))
            .collect(),
    );
    subject = subject.reopen();
    assert_eq!(
        subject.store.user_task(ElementInstanceKey(1)).unwrap().as_ref(),
        Some(&rows[0])
    );
    assert_eq!(
        subject.store.user_task(ElementInstanceKey(3)).unwrap().as_ref(),
        Some(&rows[2])
    );
    let keys = |filter: &UserTaskFilter, page: Page| {
        let rows = subject.store.user_tasks(filter, page).unwrap();
        rows.iter().map(|row| row.key.get()).collect::<Vec<_>>()
    };
    let none = UserTaskFilter::default;
    let of_instance = UserTaskFilter {
        instance: Some(InstanceKey(1)),
        ..none()
    };
    let of_eve = UserTaskFilter {
        assignee: Some("eve".to_owned()),
        ..none()
    };
    let of_acme = UserTaskFilter {
        tenant: Some("acme".to_owned()),
        ..none()
    };
    assert_eq!(keys(&none(), Page::first(10)), [6, 5, 4, 3, 2, 1]);
    assert_eq!(
        keys(
            &none(),
            Page {
                after: Some(4),
                limit: 2
            }
        ),
        [3, 2]
    );
    assert_eq!(keys(&of_instance, Page::first(10)), [5, 3, 1]);
    assert_eq!(keys(&of_eve, Page::first(10)), [5, 3]);
    assert_eq!(keys(&of_acme, Page::first(10)), [6]);
    assert_eq!(
        keys(
            &UserTaskFilter {
                instance: Some(InstanceKey(0)),
                ..of_eve.clone()
            },
            Page::first(10)
        ),
        [] as [u64; 0]
    );
    let mut given_back = rows[4].clone();
    given_back.assignee = None;
    subject.write(vec![
        Write::OpenUserTask(Box::new(given_back)),
        Write::CloseUserTask(ElementInstanceKey(6)),
        Write::CloseUserTask(ElementInstanceKey(60)),
    ]);
    assert_eq!(keys(&of_eve, Page::first(10)), [3]);
    assert_eq!(keys(&of_acme, Page::first(10)), [] as [u64; 0]);
}

/// Incidents: listed by instance, process id and tenant, closed.
pub fn incidents_are_listed_and_closed(make: Make<'_>) {
    let mut subject = Subject::new(make);
    let mut rows: Vec<_> = (1..=6).map(|key| incident(key, key % 2)).collect();
    rows[1].process_id = Arc::from("refund");
    rows[3].tenant = Arc::from("acme");
    rows[4].element_id = None;
    rows[4].element_instance = None;
    subject.write(
        rows.iter()
            .cloned()
            .map(|row| Write::OpenIncident(Box::new(row)))
            .collect(),
    );
    subject = subject.reopen();
    assert_eq!(
        subject.store.incident(IncidentKey(5)).unwrap().as_ref(),
        Some(&rows[4])
    );
    let keys = |filter: &IncidentFilter, page| {
        let rows = subject.store.incidents(filter, page).unwrap();
        rows.iter().map(|row| row.key.get()).collect::<Vec<_>>()
    };
    let none = IncidentFilter::default;
    assert_eq!(
        keys(
            &none(),
            Page {
                after: Some(5),
                limit: 3
            }
        ),
        [4, 3, 2]
    );
    assert_eq!(
        keys(
            &IncidentFilter {
                instance: Some(InstanceKey(0)),
                ..none()
            },
            Page::first(10)
        ),
        [6, 4, 2]
    );
    assert_eq!(
        keys(
            &IncidentFilter {
                process_id: Some("refund".to_owned()),
                ..none()
            },
            Page::first(10)
        ),
        [2]
    );
    assert_eq!(
        keys(
            &IncidentFilter {
                tenant: Some("acme".to_owned()),
                ..none()
            },
            Page::first(10)
        ),
        [4]
    );
    subject.write(vec![
        Write::CloseIncident(IncidentKey(4)),
        Write::CloseIncident(IncidentKey(40)),
    ]);
    assert_eq!(subject.store.incident(IncidentKey(4)).unwrap(), None);
    assert_eq!(keys(&none(), Page::first(10)), [6, 5, 3, 2, 1]);
}

/// Audit entries get growing keys and are read from the newest on.
pub fn audit_entries_stay_in_order(make: Make<'_>) {
    let mut subject = Subject::new(make);
    for turn in 0..9 {
        subject.write(vec![Write::Audit(Box::new(audit(&format!("Action{turn}"))))]);
        if turn == 4 {
            subject = subject.reopen();
        }
    }
    let all = subject.store.audit(Page::first(100)).unwrap();
    assert!(all.windows(2).all(|pair| pair[0].key > pair[1].key));
    let actions: Vec<_> = all.iter().map(|row| row.action.clone()).collect();
    assert_eq!(
        actions,
        (0..9)
            .rev()
            .map(|turn| format!("Action{turn}"))
            .collect::<Vec<_>>()
    );
    let page = subject
        .store
        .audit(Page {
            after: Some(all[2].key),
            limit: 2,
        })
        .unwrap();
    assert_eq!(page, all[3..5]);
    let mut expected = audit("Action8");
    expected.key = all[0].key;
    assert_eq!(all[0], expected);
}
