//! Forgetting, retention and trimming, as a program sees them.

mod support;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use support::{
    BEGINNING, Stand, line, process_with, stand, stand_on, stand_with, task, waits_for_message,
    waits_for_timer,
};
use tidegate::api::StartRequest;
use tidegate::clock::ManualClock;
use tidegate::forget::JournalFate;
use tidegate::model::{InstanceKey, SubStatus, Timestamp, Variables};
use tidegate::settings::DefinitionSettings;
use tidegate::store::faulty::FaultyStore;
use tidegate::store::memory::MemoryStore;
use tidegate::store::sqlite::SqliteStore;
use tidegate::store::{
    Batch, Commit, InstanceFilter, InstanceRow, JournalRow, Page, Queries as _, Store, Write,
};
use tidegate::{Builder, Error, Options, Retention};

const DAY_MS: i64 = 24 * 3_600_000;

fn short() -> tidegate::api::Resource {
    line("short", &[("work", task("work", "demo.noop", &[]))])
}

fn retention(change: impl FnOnce(&mut Retention)) -> impl FnOnce(Builder) -> Builder {
    let mut retention = Retention::default();
    change(&mut retention);
    move |builder| {
        builder.options(Options {
            owners: 2,
            retention,
            ..Options::default()
        })
    }
}

/// Waits for something that comes about without any clock.
async fn until<F: Future<Output = bool>>(what: &str, mut is_so: impl FnMut() -> F) {
    for _ in 0..60_000 {
        if is_so().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("it never came about: {what}");
}

async fn keys(stand: &Stand, filter: InstanceFilter) -> Vec<InstanceKey> {
    let rows = stand
        .runtime
        .instances(filter, Page::first(10_000))
        .await
        .unwrap();
    rows.into_iter().map(|row| row.key).collect()
}

#[tokio::test]
async fn f01_running_and_completed_are_exact_and_paging_stands_still() {
    let stand = stand().await;
    stand.deploy(short()).await;
    stand.deploy(waits_for_message("parked", 1)).await;
    let mut finished = Vec::new();
    for _ in 0..5 {
        finished.push(stand.run("short", "{}").await.instance);
    }
    let parked = stand.start("parked", r#"{"key":"1"}"#).await.instance;
    let cancelled = stand.start("parked", r#"{"key":"2"}"#).await.instance;
    stand.runtime.cancel(cancelled, None, "test").await.unwrap();
    until("the instance is parked", || async {
        stand.runtime.instance(parked).await.unwrap().row.sub_status == SubStatus::Suspended
    })
    .await;
    assert_eq!(keys(&stand, InstanceFilter::running()).await, [parked]);
    let mut completed = keys(&stand, InstanceFilter::completed()).await;
    completed.sort_unstable();
    let mut ended = [finished.clone(), vec![cancelled]].concat();
    ended.sort_unstable();
    assert_eq!(completed, ended);
    assert_eq!(keys(&stand, InstanceFilter::default()).await.len(), 7);

    let all = keys(&stand, InstanceFilter::default()).await;
    let first = stand
        .runtime
        .instances(InstanceFilter::default(), Page::first(3))
        .await
        .unwrap();
    let gone = *all[3..].iter().find(|key| finished.contains(key)).unwrap();
    stand
        .runtime
        .forget(vec![gone], JournalFate::Dropped, "test")
        .await
        .unwrap();
    stand.run("short", "{}").await;
    let rest = Page {
        after: first.last().map(|row| row.key.get()),
        limit: 100,
    };
    let rest = stand
        .runtime
        .instances(InstanceFilter::default(), rest)
        .await
        .unwrap();
    let rest: Vec<InstanceKey> = rest.into_iter().map(|row| row.key).collect();
    let expected: Vec<InstanceKey> = all[3..].iter().copied().filter(|key| *key != gone).collect();
    assert_eq!(rest, expected);
}

#[tokio::test]
async fn f02_forgotten_instances_are_gone_and_their_journal_stays_by_choice() {
    let stand = stand().await;
    stand.deploy(short()).await;
    let (dropped, kept) = (
        stand.run("short", "{}").await.instance,
        stand.run("short", "{}").await.instance,
    );
    let before = stand.runtime.history(kept, 0, 100).await.unwrap();
    stand
        .runtime
        .forget(vec![dropped], JournalFate::Dropped, "eve")
        .await
        .unwrap();
    stand
        .runtime
        .forget(vec![kept], JournalFate::Kept, "eve")
        .await
        .unwrap();
    for key in [dropped, kept] {
        let error = stand.runtime.instance(key).await.unwrap_err();
        assert_eq!(error.code(), "instance-not-found");
    }
    assert!(stand.runtime.history(dropped, 0, 100).await.is_err());
    assert_eq!(stand.runtime.history(kept, 0, 100).await.unwrap(), before);
    stand
        .runtime
        .forget(vec![kept], JournalFate::Dropped, "eve")
        .await
        .unwrap();
    assert!(stand.runtime.history(kept, 0, 100).await.is_err());
    let audit = stand.runtime.audit(Page::first(100)).await.unwrap();
    let of_forget: Vec<_> = audit
        .iter()
        .filter(|row| row.action == "InstancesForgotten")
        .collect();
    assert_eq!(of_forget.len(), 3);
    assert!(of_forget.iter().all(|row| row.actor == "eve"));
}

#[tokio::test]
async fn f03_one_live_or_unknown_instance_is_named_and_nothing_is_forgotten() {
    let stand = stand().await;
    stand.deploy(short()).await;
    stand.deploy(waits_for_message("parked", 1)).await;
    let finished = stand.run("short", "{}").await.instance;
    let live = stand.start("parked", r#"{"key":"1"}"#).await.instance;
    let unknown = InstanceKey(123);
    for (odd, code) in [(live, "instance-live"), (unknown, "instance-not-found")] {
        let error = stand
            .runtime
            .forget(vec![finished, odd], JournalFate::Dropped, "test")
            .await
            .unwrap_err();
        assert_eq!(error.code(), code);
        assert!(error.to_string().contains(&odd.to_string()), "{error}");
    }
    assert!(stand.runtime.instance(finished).await.is_ok());
    assert!(stand.runtime.instance(live).await.is_ok());
}

#[tokio::test]
async fn f04_what_completed_lists_can_be_swept() {
    let stand = stand().await;
    stand.deploy(short()).await;
    let caller = r#"<bpmn:startEvent id="s"/><bpmn:callActivity id="call"><bpmn:extensionElements><zeebe:calledElement processId="short"/></bpmn:extensionElements></bpmn:callActivity><bpmn:endEvent id="e"/><bpmn:sequenceFlow id="a" sourceRef="s" targetRef="call"/><bpmn:sequenceFlow id="b" sourceRef="call" targetRef="e"/>"#;
    stand.deploy(process_with("caller", "", caller)).await;
    for _ in 0..3 {
        stand.run("short", "{}").await;
        stand.run("caller", "{}").await;
    }
    let completed = keys(&stand, InstanceFilter::completed()).await;
    assert_eq!(completed.len(), 9);
    // Callers alone take those along that they called.
    let filter = InstanceFilter {
        process_id: Some("caller".to_owned()),
        ..InstanceFilter::completed()
    };
    let callers = keys(&stand, filter).await;
    let gone = stand
        .runtime
        .forget(callers, JournalFate::Dropped, "test")
        .await
        .unwrap();
    assert_eq!(gone.instances.len(), 6);
    let completed = keys(&stand, InstanceFilter::completed()).await;
    stand
        .runtime
        .forget(completed, JournalFate::Dropped, "test")
        .await
        .unwrap();
    assert_eq!(keys(&stand, InstanceFilter::default()).await, []);
    assert_eq!(stand.runtime.counts().await.unwrap(), [0; 9]);
}

/// An activity that runs on after its instance was cancelled and forgotten: what it reports is dropped, and nothing comes
/// back. The key of an idempotent start still answers, and starts nothing.
#[tokio::test]
async fn case_133_what_comes_late_for_a_forgotten_instance_is_dropped() {
    let stand = stand().await;
    stand
        .deploy(line("long", &[("work", task("work", "external", &[]))]))
        .await;
    let request = StartRequest {
        idempotency_key: Some("once".to_owned()),
        ..StartRequest::latest("long")
    };
    let key = stand.runtime.start(request.clone()).await.unwrap().instance;
    let job = stand.job("external").await;
    stand.runtime.cancel(key, None, "test").await.unwrap();
    stand
        .runtime
        .forget(vec![key], JournalFate::Dropped, "test")
        .await
        .unwrap();
    let late = stand
        .runtime
        .complete_job(job.job, &job.lease_token, Variables::default())
        .await
        .unwrap_err();
    assert_eq!(late.code(), "job-not-found");
    let error = stand
        .runtime
        .set_variables(key, Variables::default(), "test")
        .await
        .unwrap_err();
    assert_eq!(error.code(), "instance-not-found");
    let again = stand.runtime.start(request).await.unwrap_err();
    assert!(
        matches!(again, Error::InstanceForgotten(forgotten) if forgotten == key),
        "{again}"
    );
    assert_eq!(keys(&stand, InstanceFilter::default()).await, []);
    assert_eq!(stand.store.journal(key, 0, 10).unwrap(), []);
}

/// While paused, a stimulus is queued for an instance that is then cancelled and forgotten: it goes with it.
#[tokio::test]
async fn case_133_queued_stimuli_go_with_their_instance() {
    let stand = stand().await;
    stand.deploy(waits_for_message("parked", 1)).await;
    let key = stand.start("parked", r#"{"key":"1"}"#).await.instance;
    stand.runtime.pause(None, None, "test").await.unwrap();
    stand
        .runtime
        .set_variables(key, Variables::parse(r#"{"a":1}"#).unwrap(), "test")
        .await
        .unwrap();
    stand.runtime.cancel(key, None, "test").await.unwrap();
    assert_eq!(stand.runtime.status().await.unwrap().stimulus_queue.depth, 1);
    stand
        .runtime
        .forget(vec![key], JournalFate::Dropped, "test")
        .await
        .unwrap();
    assert_eq!(stand.runtime.status().await.unwrap().stimulus_queue.depth, 0);
    stand.runtime.resume("test").await.unwrap();
    stand.runtime.progress().await;
    assert!(stand.runtime.instance(key).await.is_err());
    let rows = stand.store.stimuli(None, 10).unwrap();
    assert_eq!(rows, []);
}

#[tokio::test]
async fn an_instance_is_forgotten_by_age_and_by_count_of_its_definition() {
    let stand = stand_with(retention(|retention| {
        retention.age = Some(Duration::from_secs(3 * 24 * 3_600))
    }))
    .await;
    stand.deploy(short()).await;
    stand
        .deploy(line("counted", &[("work", task("work", "demo.noop", &[]))]))
        .await;
    let settings = DefinitionSettings {
        retention_count: Some(2),
        retention_ms: Some(0),
        ..DefinitionSettings::default()
    };
    let view = stand
        .runtime
        .set_definition_settings("counted", None, settings, "eve")
        .await
        .unwrap();
    assert_eq!(
        (view.effective.retention_count, view.effective.retention_ms),
        (Some(2), None)
    );
    let old = stand.run("short", "{}").await.instance;
    let mut counted = Vec::new();
    for _ in 0..5 {
        counted.push(stand.run("counted", "{}").await.instance);
        stand.clock.advance(1_000);
    }
    stand.clock.advance(2 * DAY_MS);
    let young = stand.run("short", "{}").await.instance;
    stand.clock.advance(DAY_MS);
    until("the old ones are forgotten", || async {
        let mut left = keys(&stand, InstanceFilter::default()).await;
        left.sort_unstable();
        let mut expected = vec![young, counted[3], counted[4]];
        expected.sort_unstable();
        left == expected
    })
    .await;
    assert!(stand.runtime.instance(old).await.is_err());
    // The fence goes in its time, and nothing else is left.
    stand.clock.advance(2 * 3_600_000);
    until("the fence goes", || async {
        stand.store.forgotten(old).unwrap().is_none()
    })
    .await;
}

/// What batches that forget came to the store: how many, and how large those were that it took.
#[derive(Default)]
struct Seen {
    tried: AtomicUsize,
    taken: Mutex<Vec<usize>>,
}

/// Lets the store take so many batches that forget, and no more.
fn counting(store: &FaultyStore, most: usize) -> Arc<Seen> {
    let seen: Arc<Seen> = Arc::default();
    let counts = seen.clone();
    store.fail_commits(move |commit| {
        let size = commit.writes.iter().find_map(|write| match write {
            Write::ForgetInstances(request) => Some(request.instances.len()),
            _ => None,
        })?;
        counts.tried.fetch_add(1, Ordering::SeqCst);
        let mut taken = counts.taken.lock().unwrap();
        if taken.len() >= most {
            let kind = tidegate::store::ErrorKind::Unavailable;
            return Some(tidegate::store::Error::new(kind, "no more for now"));
        }
        taken.push(size);
        None
    });
    seen
}

/// Fills a store with instances that ended long ago.
fn fill(store: &dyn Store, definition: &tidegate::store::DefinitionRow, count: u64) {
    let epoch = store.activate().unwrap().epoch;
    let first = 1_000_000_000_u64;
    let row = |key: u64| InstanceRow {
        key: InstanceKey(key),
        definition: definition.key,
        process_id: definition.process_id.clone(),
        version: definition.version,
        tenant: definition.tenant.clone(),
        business_key: None,
        parent: None,
        parent_element: None,
        enclosing: Vec::new(),
        depth: 0,
        revision: 1,
        sub_status: SubStatus::Finished,
        incident_count: 0,
        attempts: 0,
        started_at: Timestamp::from_ms(0),
        ended_at: Some(Timestamp::from_ms(1)),
    };
    for slice in (first..first + count).collect::<Vec<_>>().chunks(1_000) {
        let (tell, told) = std::sync::mpsc::channel();
        let writes = slice.iter().flat_map(|key| {
            [
                Write::CreateInstance {
                    row: Box::new(row(*key)),
                    state: None,
                },
                Write::Journal(JournalRow {
                    instance: InstanceKey(*key),
                    revision: 1,
                    first_sequence: 1,
                    payload: vec![0x80],
                }),
            ]
        });
        store.submit(Batch {
            epoch,
            key_high: 0,
            commits: vec![Commit {
                expect: Vec::new(),
                writes: writes.collect(),
            }],
            done: Box::new(move |results| tell.send(results.iter().all(Result::is_ok)).unwrap()),
        });
        assert!(told.recv().unwrap());
    }
}

/// Expired instances in a file: batches are small, a pause and a drain stop them between two, a restart goes on, and what is
/// started meanwhile is served.
async fn clean_up(count: u64) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tidegate.db");
    let clock = ManualClock::new(BEGINNING);
    {
        let store = Arc::new(SqliteStore::open(&path).unwrap());
        let stand = stand_on(store.clone(), clock.clone(), |builder| builder).await;
        stand.deploy(short()).await;
        let definitions = store.definitions(&Default::default(), Page::first(1)).unwrap();
        stand
            .runtime
            .drain(tidegate::status::DrainTrigger::HostStopSignal)
            .await;
        stand.runtime.release().await;
        fill(&*store, &definitions[0], count);
        stand.runtime.close().await;
        store.close();
    }
    let mut left = count;
    for round in 0.. {
        let inner = Arc::new(SqliteStore::open(&path).unwrap());
        let faulty = Arc::new(FaultyStore::new(inner.clone()));
        let seen = counting(&faulty, if round < 2 { 3 } else { usize::MAX });
        let stand = stand_on(faulty.clone(), clock.clone(), |builder| builder).await;
        let tried = || seen.tried.load(Ordering::SeqCst);
        if round < 2 {
            until("a few batches", || async { tried() > 3 }).await;
            assert!(stand.run("short", "{}").await.sub_status.is_finished());
        } else {
            until("nothing expired is left", || async {
                let old = inner.ended(("short", "<default>"), Timestamp::from_ms(9), None, 1);
                old.unwrap().is_empty()
            })
            .await;
        }
        if round == 0 {
            stand.runtime.pause(None, None, "test").await.unwrap();
            let at_pause = tried();
            for _ in 0..50 {
                stand.clock.advance(60_000);
                stand.runtime.progress().await;
            }
            // One that was under way may have come after the pause; none begins.
            assert!(
                tried() <= at_pause + 1,
                "{} batches after the pause",
                tried() - at_pause
            );
        }
        stand
            .runtime
            .drain(tidegate::status::DrainTrigger::HostStopSignal)
            .await;
        stand.runtime.close().await;
        let sizes = seen.taken.lock().unwrap().clone();
        assert!(sizes.iter().all(|size| *size <= 250), "{sizes:?}");
        let forgotten = sizes.iter().sum::<usize>() as u64;
        assert!(
            forgotten > 0 && (round >= 2 || forgotten < left),
            "round {round}: {forgotten} of {left}"
        );
        left -= forgotten;
        if round >= 2 {
            break;
        }
    }
    assert_eq!(left, 0);
}

#[tokio::test]
async fn case_183_clean_up_is_done_in_small_batches_and_goes_on_after_a_restart() {
    clean_up(3_000).await;
}

#[tokio::test]
#[ignore = "long"]
async fn case_183_clean_up_of_two_hundred_thousand() {
    clean_up(200_000).await;
}

/// A process that goes round by a timer of an hour for as long as it lives.
fn looping() -> tidegate::api::Resource {
    let body = r#"<bpmn:startEvent id="s"/><bpmn:exclusiveGateway id="again"/>
      <bpmn:intermediateCatchEvent id="wait"><bpmn:timerEventDefinition><bpmn:timeDuration xsi:type="bpmn:tFormalExpression">PT1H</bpmn:timeDuration></bpmn:timerEventDefinition></bpmn:intermediateCatchEvent>
      <bpmn:sequenceFlow id="a" sourceRef="s" targetRef="again"/>
      <bpmn:sequenceFlow id="b" sourceRef="again" targetRef="wait"/>
      <bpmn:sequenceFlow id="c" sourceRef="wait" targetRef="again"/>"#;
    process_with("looping", "", body)
}

/// Thirty days on a manual clock: short instances every day, and one that goes round every hour. Neither the instances nor
/// the journal grow, and the long one says what was trimmed and goes on.
#[tokio::test]
async fn case_182_history_stays_flat_over_thirty_days() {
    let store = Arc::new(MemoryStore::new());
    let clock = ManualClock::new(BEGINNING);
    let change = retention(|retention| {
        retention.age = Some(Duration::from_secs(3 * 24 * 3_600));
        retention.journal_limit = Some(50);
    });
    let stand = stand_on(store.clone(), clock, change).await;
    stand.deploy(short()).await;
    stand.deploy(looping()).await;
    let long = stand.start("looping", "{}").await.instance;
    let rows = || {
        let all = store
            .instances(&InstanceFilter::default(), Page::first(100_000))
            .unwrap();
        let of_long = store.journal(long, 0, 100_000).unwrap().len();
        (all.len(), of_long)
    };
    let mut most = (0, 0);
    let turn_of = |row: InstanceRow| row.revision;
    for day in 0..30 {
        for _ in 0..10 {
            stand.run("short", "{}").await;
        }
        for _ in 0..24 {
            let before = turn_of(store.instance(long).unwrap().unwrap());
            stand.clock.advance(3_600_000);
            until("the timer fires", || async {
                let row = store.instance(long).unwrap().unwrap();
                turn_of(row.clone()) > before && row.sub_status == SubStatus::Suspended
            })
            .await;
        }
        let kept = 10 * 3;
        until("old instances go", || async { rows().0 <= kept + 1 }).await;
        if day >= 5 {
            let now = rows();
            most = (most.0.max(now.0), most.1.max(now.1));
        }
    }
    assert!(most.0 <= 31, "{most:?}");
    // The limit, and what gathers until the next state is written.
    assert!(most.1 <= 50 + 50, "{most:?}");
    let history = stand.runtime.history(long, 0, 100_000).await.unwrap();
    assert!(history[0].sequence > 100, "{}", history[0].sequence);
    let trims: Vec<_> = history
        .iter()
        .filter(|item| item.event == "HistoryTrimmed")
        .collect();
    assert!(!trims.is_empty());
    assert!(
        trims
            .iter()
            .all(|item| item.payload["firstKeptSequence"].as_u64().is_some())
    );
    // It is brought back from what is left.
    stand
        .runtime
        .drain(tidegate::status::DrainTrigger::HostStopSignal)
        .await;
    stand.runtime.close().await;
    let next = stand_on(Arc::new(store.reopen()), stand.clock.clone(), |builder| builder).await;
    let before = next.store.instance(long).unwrap().unwrap().revision;
    next.clock.advance(3_600_000);
    until("it goes on", || async {
        next.runtime.instance(long).await.unwrap().row.revision > before
    })
    .await;
}

/// What called others stays as long as one of them lives, and keeps nobody else from going.
#[tokio::test]
async fn a_caller_goes_with_those_it_called() {
    let stand = stand_with(retention(|retention| {
        retention.age = Some(Duration::from_secs(3_600))
    }))
    .await;
    stand.deploy(short()).await;
    let caller = r#"<bpmn:startEvent id="s"/><bpmn:callActivity id="call"><bpmn:extensionElements><zeebe:calledElement processId="short"/></bpmn:extensionElements></bpmn:callActivity><bpmn:endEvent id="e"/><bpmn:sequenceFlow id="a" sourceRef="s" targetRef="call"/><bpmn:sequenceFlow id="b" sourceRef="call" targetRef="e"/>"#;
    stand.deploy(process_with("caller", "", caller)).await;
    for _ in 0..4 {
        stand.run("caller", "{}").await;
    }
    let settings = DefinitionSettings {
        retention_ms: Some(0),
        ..DefinitionSettings::default()
    };
    stand
        .runtime
        .set_definition_settings("short", None, settings, "test")
        .await
        .unwrap();
    stand.clock.advance(2 * 3_600_000);
    until("all of them go", || async {
        keys(&stand, InstanceFilter::default()).await.is_empty()
    })
    .await;
}

#[tokio::test]
async fn instances_are_exported_with_their_journals_as_lines() {
    let stand = stand().await;
    stand.deploy(short()).await;
    stand.deploy(waits_for_timer("parked", "PT1H")).await;
    let finished = stand.run("short", "{}").await.instance;
    stand.start("parked", "{}").await;
    let mut export = stand.runtime.export(InstanceFilter::completed());
    let mut text = Vec::new();
    let pieces = AtomicUsize::new(0);
    while let Some(piece) = export.next().await.unwrap() {
        assert_eq!(piece.last(), Some(&b'\n'));
        pieces.fetch_add(1, Ordering::Relaxed);
        text.extend(piece);
    }
    let lines: Vec<serde_json::Value> = String::from_utf8(text)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines[0]["type"], "instance");
    assert_eq!(lines[0]["instanceKey"], finished.to_string());
    let history = stand.runtime.history(finished, 0, 1_000).await.unwrap();
    assert_eq!(lines.len(), 1 + history.len());
    for (line, item) in lines[1..].iter().zip(&history) {
        assert_eq!(
            (line["type"].as_str(), line["event"].as_str()),
            (Some("event"), Some(item.event))
        );
    }
}

/// A handler that hears nothing until it is let go.
struct Deaf {
    begun: std::sync::atomic::AtomicBool,
    go: (std::sync::Mutex<bool>, std::sync::Condvar),
}

struct Hung(Arc<Deaf>);

impl tidegate::activity::Activity for Hung {
    fn run(&self, _: tidegate::activity::ActivityContext) -> tidegate::activity::ActivityFuture {
        let deaf = self.0.clone();
        Box::pin(async move {
            deaf.begun.store(true, std::sync::atomic::Ordering::SeqCst);
            let (is_open, opened) = &deaf.go;
            let _open = opened.wait_while(is_open.lock().unwrap(), |is_open| !*is_open);
            Ok(Variables::parse(r#"{"late": true}"#).unwrap())
        })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn case_133_what_a_hung_handler_brings_for_a_forgotten_instance_is_dropped() {
    for (store, _folder) in support::stores() {
        let deaf = Arc::new(Deaf {
            begun: false.into(),
            go: (std::sync::Mutex::new(false), std::sync::Condvar::new()),
        });
        let handler = Arc::new(Hung(deaf.clone()));
        let stand = stand_on(store, ManualClock::new(BEGINNING), |b| {
            b.activity("hung", handler)
        })
        .await;
        stand
            .deploy(line("hangs", &[("work", task("work", "hung", &[]))]))
            .await;
        let key = stand.start("hangs", "{}").await.instance;
        support::eventually("it hangs", async || {
            deaf.begun.load(std::sync::atomic::Ordering::SeqCst)
        })
        .await;
        let request = tidegate::CancelRequest {
            patience: Some(Duration::ZERO),
            ..tidegate::CancelRequest::by("test", Duration::from_secs(20))
        };
        stand.runtime.cancel_and_wait(key, request).await.unwrap();
        let forgotten = stand
            .runtime
            .forget(vec![key], JournalFate::Dropped, "test")
            .await;
        assert_eq!(forgotten.unwrap().instances, [key]);
        *deaf.go.0.lock().unwrap() = true;
        deaf.go.1.notify_all();
        let refused = || {
            let name = "tidegate_late_outcomes_refused_total";
            let figures = stand.runtime.figures();
            figures.iter().find(|figure| figure.name == name).unwrap().value
        };
        support::eventually("it is told", async || refused() == 1).await;
        stand.idle().await;
        assert_eq!(stand.store.instance(key).unwrap(), None);
        assert_eq!(stand.store.journal(key, 0, 10).unwrap(), []);
        assert_eq!(stand.runtime.counts().await.unwrap().iter().sum::<u64>(), 0);
        stand.runtime.close().await;
    }
}
