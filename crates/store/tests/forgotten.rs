//! Forgetting in a SQLite file: nothing anywhere refers to what is gone, and files of earlier versions are brought along.

use std::sync::mpsc;

use rusqlite::Connection;
use tidegate_model::{
    DefinitionKey, ElementIndex, ElementInstanceKey, IncidentKey, InstanceKey, StimulusKey, SubStatus,
    TaskDetails, Timestamp,
};
use tidegate_store::sqlite::SqliteStore;
use tidegate_store::*;

fn commit(store: &SqliteStore, epoch: u64, expect: Vec<Expect>, writes: Vec<Write>) -> CommitResult {
    let (tell, told) = mpsc::channel();
    store.submit(Batch {
        epoch,
        key_high: 0,
        commits: vec![Commit { expect, writes }],
        done: Box::new(move |mut results| tell.send(results.remove(0)).unwrap()),
    });
    told.recv().unwrap()
}

fn row(key: u64, parent: Option<u64>, sub_status: SubStatus) -> InstanceRow {
    InstanceRow {
        key: InstanceKey(key),
        definition: DefinitionKey(7),
        process_id: "order".into(),
        version: 1,
        tenant: "<default>".into(),
        business_key: Some("B".to_owned()),
        parent: parent.map(InstanceKey),
        parent_element: parent.map(|key| ElementInstanceKey(key + 1)),
        depth: 0,
        revision: 1,
        sub_status,
        incident_count: 0,
        attempts: 0,
        started_at: Timestamp::from_ms(1),
        ended_at: sub_status.is_finished().then_some(Timestamp::from_ms(5)),
    }
}

/// An instance with a row in every table that has rows of instances.
fn everything(key: u64, parent: Option<u64>, sub_status: SubStatus) -> Vec<Write> {
    let instance = InstanceKey(key);
    let now = Timestamp::from_ms(6);
    let stimulus = StimulusRow {
        key: StimulusKey(0),
        domain: format!("instance/{key}"),
        source: "queue".to_owned(),
        payload: vec![1],
        accepted_at: now,
        attempts: 0,
    };
    vec![
        Write::CreateInstance {
            row: Box::new(row(key, parent, sub_status)),
            state: Some(vec![1; 5_000]),
        },
        Write::Journal(JournalRow {
            instance,
            revision: 1,
            first_sequence: 1,
            payload: vec![1],
        }),
        Write::ArmTimer(TimerRow {
            due_at: now,
            owner: key + 10,
            element: ElementIndex(1),
            instance: Some(instance),
            fired: 0,
        }),
        Write::Subscribe {
            row: SubscriptionRow {
                awaited: Awaited::Message,
                owner: ElementInstanceKey(key + 20),
                element: ElementIndex(2),
                instance,
                process_id: "order".into(),
                tenant: "<default>".into(),
                message_name: "paid".into(),
                correlation_key: key.to_string(),
                once: true,
            },
            now,
        },
        Write::OpenJob(Box::new(JobRow {
            key: ElementInstanceKey(key + 30),
            instance,
            definition: DefinitionKey(7),
            process_id: "order".into(),
            tenant: "<default>".into(),
            element_id: "e".into(),
            job_type: "t".into(),
            headers: "{}".to_owned(),
            variables: "{}".to_owned(),
            retries: 1,
            state: JobState::Available,
            not_before: now,
            worker: None,
            lease_token: None,
            lease_until: None,
        })),
        Write::OpenUserTask(Box::new(UserTaskRow {
            key: ElementInstanceKey(key + 40),
            instance,
            process_id: "order".into(),
            tenant: "<default>".into(),
            element_id: "u".into(),
            name: None,
            assignee: Some("eve".to_owned()),
            candidate_groups: Vec::new(),
            details: TaskDetails::default(),
            created_at: now,
        })),
        Write::OpenIncident(Box::new(IncidentRow {
            key: IncidentKey(key + 50),
            instance,
            process_id: "order".into(),
            tenant: "<default>".into(),
            element_id: None,
            element_instance: Some(ElementInstanceKey(key + 30)),
            code: "c".to_owned(),
            message: "m".to_owned(),
            raised_at: now,
        })),
        Write::AddStimulus(stimulus.clone()),
        Write::AddDeadLetter(Box::new(DeadLetterRow {
            stimulus: StimulusRow {
                key: StimulusKey(key + 60),
                ..stimulus
            },
            code: "c".to_owned(),
            error: "e".to_owned(),
            died_at: now,
        })),
    ]
}

/// Where a value of a key's family (`key` to `key + 99`) stands: every column of every table, found in the schema itself. Texts
/// are looked through for the key.
fn mentions(conn: &Connection, key: u64) -> Vec<String> {
    let names = |sql: &str| -> Vec<String> {
        let mut statement = conn.prepare(sql).unwrap();
        let rows = statement.query_map([], |row| row.get(0)).unwrap();
        rows.map(Result::unwrap).collect()
    };
    let mut found = Vec::new();
    for table in names("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'") {
        for column in names(&format!("SELECT name FROM pragma_table_info('{table}')")) {
            let sql = format!(
                "SELECT count(*) FROM \"{table}\" WHERE (typeof(\"{column}\") = 'integer' AND \"{column}\" BETWEEN {key} AND {key} + 99) \
                 OR (typeof(\"{column}\") = 'text' AND instr(\"{column}\", '{key}') > 0)"
            );
            let count: i64 = conn.query_row(&sql, [], |row| row.get(0)).unwrap();
            if count > 0 {
                found.push(format!("{table}.{column}"));
            }
        }
    }
    found
}

/// The instances, with rows in every table, are forgotten; the whole schema is looked through for what refers to them.
#[test]
fn case_184_no_row_of_any_table_refers_to_a_forgotten_instance() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tidegate.db");
    let store = SqliteStore::open(&path).unwrap();
    let epoch = store.activate().unwrap().epoch;
    let (caller, called, other) = (7_000_000_100, 7_000_000_300, 7_000_000_500);
    for (key, parent, sub_status) in [
        (caller, None, SubStatus::Finished),
        (called, Some(caller), SubStatus::Cancelled),
        (other, None, SubStatus::Suspended),
    ] {
        commit(&store, epoch, vec![], everything(key, parent, sub_status)).unwrap();
    }
    let conn = Connection::open(&path).unwrap();
    let before = mentions(&conn, called);
    for table in [
        "instances",
        "snapshots",
        "journal",
        "timers",
        "subscriptions",
        "jobs",
        "user_tasks",
        "incidents",
        "stimuli",
        "dead_letters",
    ] {
        assert!(
            before.iter().any(|at| at.starts_with(&format!("{table}."))),
            "{table} has no row to lose: {before:?}"
        );
    }
    let of_other = mentions(&conn, other);
    let instances = vec![InstanceKey(caller), InstanceKey(called)];
    let forget = Write::ForgetInstances(Box::new(ForgetRequest {
        instances: instances.clone(),
        now: Timestamp::from_ms(10),
        fenced_until: Timestamp::from_ms(20),
        keeps_journal: false,
        limit: 1_000,
    }));
    commit(&store, epoch, vec![Expect::Forgettable(instances)], vec![forget]).unwrap();
    for key in [caller, called] {
        assert_eq!(mentions(&conn, key), ["forgotten.instance"]);
    }
    let sweep = Write::SweepForgotten {
        now: Timestamp::from_ms(20),
        limit: 100,
    };
    commit(&store, epoch, vec![], vec![sweep]).unwrap();
    for key in [caller, called] {
        assert_eq!(mentions(&conn, key), Vec::<String>::new());
    }
    assert_eq!(mentions(&conn, other), of_other);
}

/// A file of the first schema, with what had ended and what had not, is brought along with its rows.
#[test]
fn a_file_of_the_first_schema_is_brought_along() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tidegate.db");
    {
        let store = SqliteStore::open(&path).unwrap();
        let epoch = store.activate().unwrap().epoch;
        for (key, sub_status) in [(100, SubStatus::Finished), (300, SubStatus::Suspended)] {
            commit(&store, epoch, vec![], everything(key, None, sub_status)).unwrap();
        }
        store.close();
    }
    {
        // Back to the first step: what later steps brought is taken away again.
        let conn = Connection::open(&path).unwrap();
        let made: Vec<(String, String)> = conn
            .prepare(
                "SELECT type, name FROM sqlite_schema WHERE type = 'index' AND name IN ('instances_ended', \
                      'timers_by_instance', 'subscriptions_by_instance', 'jobs_by_instance') \
                      OR type = 'table' AND name IN ('forgotten', 'operations', 'operation_items')",
            )
            .unwrap()
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
            .unwrap()
            .map(Result::unwrap)
            .collect();
        assert_eq!(made.len(), 7);
        for (kind, name) in made {
            conn.execute_batch(&format!("DROP {kind} {name}")).unwrap();
        }
        conn.execute_batch(
            "ALTER TABLE instances DROP COLUMN trimmed; ALTER TABLE user_tasks DROP COLUMN details; \
                            ALTER TABLE messages DROP COLUMN sender; PRAGMA user_version = 1;",
        )
        .unwrap();
    }
    let store = SqliteStore::open(&path).unwrap();
    let epoch = store.activate().unwrap().epoch;
    let ended = store
        .ended(("order", "<default>"), Timestamp::from_ms(9), None, 9)
        .unwrap();
    assert_eq!(ended.iter().map(|row| row.key.get()).collect::<Vec<_>>(), [100]);
    assert_eq!(store.load(InstanceKey(300)).unwrap().unwrap().trimmed, 0);
    let forget = Write::ForgetInstances(Box::new(ForgetRequest {
        instances: vec![InstanceKey(100)],
        now: Timestamp::from_ms(10),
        fenced_until: Timestamp::from_ms(20),
        keeps_journal: false,
        limit: 9,
    }));
    let expect = vec![Expect::Forgettable(vec![InstanceKey(100)])];
    commit(&store, epoch, expect, vec![forget]).unwrap();
    assert_eq!(store.instance(InstanceKey(100)).unwrap(), None);
    assert!(store.instance(InstanceKey(300)).unwrap().is_some());
}
