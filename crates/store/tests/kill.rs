//! `kill -9` at any moment: every commit that was told is there afterwards, and no commit is there by half.
//!
//! The test starts itself as a child that commits as fast as it can and prints each revision it was told.

use std::io::{BufRead, BufReader, Write as _};
use std::process::{Command, Stdio};
use std::sync::{Arc, mpsc};

use tidegate_model::{DefinitionKey, InstanceKey, SubStatus, Timestamp};
use tidegate_store::sqlite::SqliteStore;
use tidegate_store::{
    Batch, Commit, CommitResult, InstanceRow, InstanceUpdate, JournalRow, Queries, Store, Write,
};

const CHILD: &str = "TIDEGATE_STORE_KILL_CHILD";
const INSTANCES: u64 = 8;
const ROUNDS: u64 = 6;

#[test]
fn told_commits_survive_a_kill() {
    if let Ok(path) = std::env::var(CHILD) {
        commit_for_ever(&path);
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tidegate.db");
    let mut told = [0_u64; INSTANCES as usize + 1];
    for round in 0..ROUNDS {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "told_commits_survive_a_kill", "--nocapture"])
            .env(CHILD, &path)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        // Killed after so many outcomes: at a different point of a commit or a checkpoint each time.
        let mut outcomes = 0;
        for line in lines.by_ref() {
            let line = line.unwrap();
            if let Some((key, revision)) = line.strip_prefix("told ").and_then(|rest| rest.split_once(' ')) {
                told[key.parse::<usize>().unwrap()] = revision.parse().unwrap();
                outcomes += 1;
            }
            if outcomes > 40 + round * 97 {
                break;
            }
        }
        child.kill().unwrap();
        child.wait().unwrap();
        // What it told before it died and we had not read yet.
        for line in lines.map_while(Result::ok) {
            let said = line.strip_prefix("told ").and_then(|rest| rest.split_once(' '));
            if let Some((key, Ok(revision))) = said.map(|(key, revision)| (key, revision.parse())) {
                told[key.parse::<usize>().unwrap()] = revision;
            }
        }
        let store = SqliteStore::open(&path).unwrap();
        for key in 1..=INSTANCES {
            let found = store.load(InstanceKey(key)).unwrap();
            let revision = found.as_ref().map_or(0, |found| found.row.revision);
            assert!(
                revision >= told[key as usize],
                "instance {key}: told {}, found {revision}",
                told[key as usize]
            );
            let journal = store.journal(InstanceKey(key), 0, usize::MAX).unwrap();
            let revisions: Vec<u64> = journal.iter().map(|row| row.revision).collect();
            assert_eq!(
                revisions,
                (1..=revision).collect::<Vec<_>>(),
                "row and journal are one unit"
            );
        }
        assert_eq!(store.counts().unwrap().iter().sum::<u64>(), INSTANCES);
    }
    assert!(told[1] > 10);
}

fn commit_for_ever(path: &str) -> ! {
    let store = SqliteStore::open(path.as_ref()).unwrap();
    let epoch = store.activate().unwrap().epoch;
    let mut revisions: Vec<u64> = (0..=INSTANCES)
        .map(|key| {
            store
                .instance(InstanceKey(key))
                .unwrap()
                .map_or(0, |row| row.revision)
        })
        .collect();
    loop {
        let commits = (1..=INSTANCES).map(|key| {
            revisions[key as usize] += 1;
            next(key, revisions[key as usize])
        });
        let (tell, told) = mpsc::channel();
        let done = Box::new(move |results: Vec<CommitResult>| {
            let _ = tell.send(results.iter().all(Result::is_ok));
        });
        store.submit(Batch {
            epoch,
            key_high: 0,
            commits: commits.collect(),
            done,
        });
        assert_eq!(told.recv(), Ok(true));
        let mut out = std::io::stdout().lock();
        for key in 1..=INSTANCES {
            // A parent that is gone ends the child.
            if writeln!(out, "told {key} {}", revisions[key as usize])
                .and_then(|()| out.flush())
                .is_err()
            {
                std::process::exit(0);
            }
        }
    }
}

fn next(key: u64, revision: u64) -> Commit {
    let key = InstanceKey(key);
    let journal = JournalRow {
        instance: key,
        revision,
        first_sequence: revision,
        payload: vec![3; 300],
    };
    let instance = if revision == 1 {
        let row = InstanceRow {
            key,
            definition: DefinitionKey(7),
            process_id: Arc::from("order"),
            version: 3,
            tenant: Arc::from("<default>"),
            business_key: None,
            parent: None,
            parent_element: None,
            enclosing: Vec::new(),
            depth: 0,
            revision,
            sub_status: SubStatus::Suspended,
            incident_count: 0,
            attempts: 0,
            started_at: Timestamp::from_ms(1_000),
            ended_at: None,
        };
        Write::CreateInstance {
            row: Box::new(row),
            state: None,
        }
    } else {
        Write::UpdateInstance(InstanceUpdate {
            key,
            revision,
            sub_status: SubStatus::Executing,
            incident_count: 0,
            attempts: 0,
            ended_at: None,
            state: revision.is_multiple_of(3).then(|| vec![4; 30_000]),
        })
    };
    Commit {
        expect: vec![],
        writes: vec![instance, Write::Journal(journal)],
    }
}
