//! Definitions and resources.

use std::sync::Arc;

use tidegate_model::DefinitionKey;

use super::rows::*;
use super::{Make, Subject, failure_of};
use crate::commit::{Expect, Refusal, Write};
use crate::error::ErrorKind;
use crate::row::{DefinitionFilter, DefinitionRow, Page};

fn add(row: DefinitionRow) -> Write {
    Write::AddDefinition(Box::new(row))
}

fn keys(rows: &[DefinitionRow]) -> Vec<u64> {
    rows.iter().map(|row| row.key.get()).collect()
}

/// A version is given once, also after its definition was unregistered.
pub fn versions_are_never_reused(make: Make<'_>) {
    let mut subject = Subject::new(make);
    assert_eq!(subject.store.highest_version("order", TENANT).unwrap(), 0);
    let free = |version| Expect::VersionFree {
        process_id: "order".to_owned(),
        tenant: TENANT.to_owned(),
        version,
    };
    assert!(
        subject
            .commit(vec![free(1)], vec![add(definition(1, "order", 1))])
            .is_ok()
    );
    assert!(
        subject
            .commit(vec![free(2)], vec![add(definition(2, "order", 2))])
            .is_ok()
    );
    subject.write(vec![
        Write::DeleteDefinition(DefinitionKey(2)),
        Write::DeleteDefinition(DefinitionKey(99)),
    ]);
    subject = subject.reopen();
    assert_eq!(subject.store.highest_version("order", TENANT).unwrap(), 2);
    assert_eq!(subject.store.highest_version("order", "acme").unwrap(), 0);
    assert_eq!(subject.store.highest_version("Order", TENANT).unwrap(), 0);
    assert_eq!(
        subject.refusal(vec![free(2)], vec![add(definition(3, "order", 2))]),
        Refusal::VersionTaken
    );
    // Without the expectation the same mistake is a failure.
    assert_eq!(
        failure_of(subject.commit(vec![], vec![add(definition(3, "order", 2))])),
        ErrorKind::Internal
    );
    let mut of_acme = definition(4, "order", 2);
    of_acme.tenant = Arc::from("acme");
    subject.write(vec![add(of_acme)]);
}

/// An unregistered definition is found by its key, for its live instances, and not listed.
pub fn deleted_definitions_are_found_but_not_listed(make: Make<'_>) {
    let subject = Subject::new(make);
    subject.write(vec![
        add(definition(1, "order", 1)),
        add(definition(2, "order", 2)),
        add(definition(3, "refund", 1)),
    ]);
    subject.write(vec![Write::DeleteDefinition(DefinitionKey(2))]);
    let listed =
        |filter: &DefinitionFilter| keys(&subject.store.definitions(filter, Page::first(10)).unwrap());
    assert_eq!(listed(&DefinitionFilter::default()), [3, 1]);
    let of_order = DefinitionFilter {
        process_id: Some("order".to_owned()),
        ..DefinitionFilter::default()
    };
    assert_eq!(listed(&of_order), [1]);
    let mut expected = definition(2, "order", 2);
    expected.is_deleted = true;
    assert_eq!(
        subject.store.definition(DefinitionKey(2)).unwrap(),
        Some(expected)
    );
    assert_eq!(subject.store.definition(DefinitionKey(9)).unwrap(), None);
}

/// The newest version of each process id and tenant that is registered.
pub fn the_latest_versions_can_be_listed(make: Make<'_>) {
    let subject = Subject::new(make);
    for (key, process_id, version) in [
        (1, "order", 1),
        (2, "order", 2),
        (3, "refund", 1),
        (4, "order", 3),
        (5, "refund", 2),
        (6, "archive", 1),
    ] {
        subject.write(vec![add(definition(key, process_id, version))]);
    }
    let mut of_acme = definition(7, "order", 1);
    of_acme.tenant = Arc::from("acme");
    subject.write(vec![add(of_acme)]);
    let latest = DefinitionFilter {
        latest: true,
        ..DefinitionFilter::default()
    };
    let list = |filter: &DefinitionFilter, page| keys(&subject.store.definitions(filter, page).unwrap());
    assert_eq!(list(&latest, Page::first(10)), [7, 6, 5, 4]);
    assert_eq!(
        list(
            &latest,
            Page {
                after: Some(6),
                limit: 1
            }
        ),
        [5]
    );
    let of_tenant = DefinitionFilter {
        tenant: Some(TENANT.to_owned()),
        ..latest.clone()
    };
    assert_eq!(list(&of_tenant, Page::first(10)), [6, 5, 4]);
    subject.write(vec![Write::DeleteDefinition(DefinitionKey(4))]);
    let of_order = DefinitionFilter {
        process_id: Some("order".to_owned()),
        ..of_tenant
    };
    assert_eq!(list(&of_order, Page::first(10)), [2]);
}

/// Resources come back byte by byte.
pub fn resources_come_back(make: Make<'_>) {
    let mut subject = Subject::new(make);
    let bytes: Arc<[u8]> = (0..300_000_u32).map(|at| (at % 253) as u8).collect();
    subject.write(vec![Write::AddResource {
        key: 5,
        bytes: Arc::clone(&bytes),
    }]);
    subject = subject.reopen();
    assert_eq!(subject.store.resource(5).unwrap(), Some(bytes));
    assert_eq!(subject.store.resource(6).unwrap(), None);
}
