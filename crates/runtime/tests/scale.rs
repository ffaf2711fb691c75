//! Ten thousand of a kind, through the runtime and on disk: what each costs does not grow with what came before.

mod support;

use std::sync::Arc;

use support::model::{flow_if, model};
use support::{BEGINNING, Stand, faulty, stand_on, task, waits_for_timer};
use tidegate::clock::ManualClock;
use tidegate::store::sqlite::SqliteStore;
use tidegate::{CommitPolicy, Options};

const MANY: usize = 10_000;

async fn on_disk(folder: &tempfile::TempDir, commit_policy: CommitPolicy) -> Stand {
    let store = Arc::new(SqliteStore::open(&folder.path().join("tidegate.db")).unwrap());
    let options = Options {
        commit_policy,
        ..Options::default()
    };
    stand_on(store, ManualClock::new(BEGINNING), |builder| {
        builder.options(options)
    })
    .await
}

/// A task that the runtime does itself, in the default namespace.
fn noop(more: &str) -> String {
    let task = task("work", "demo.noop", &[]).replace("bpmn:", "");
    task.replace("</serviceTask>", &format!("{more}</serviceTask>"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parallel_multi_instance_of_ten_thousand_completes_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let stand = on_disk(&folder, CommitPolicy::Activity).await;
    let many = format!(
        r#"<multiInstanceLoopCharacteristics><extensionElements><zeebe:loopCharacteristics inputCollection="=for i in 1..{MANY} return i" inputElement="i" outputCollection="out" outputElement="=i * 2"/></extensionElements></multiInstanceLoopCharacteristics>"#
    );
    let body = format!(r#"<startEvent id="s"/>{}<endEvent id="e"/>"#, noop(&many));
    stand.deploy(model("p", "", &body, "s>work>e")).await;
    let instance = stand.start("p", "{}").await.instance;
    let ended = stand
        .runtime
        .wait(instance, std::time::Duration::from_secs(120))
        .await
        .unwrap();
    let out = ended.variables.expect("it has ended");
    let expected: Vec<String> = (1..=MANY).map(|i| (i * 2).to_string()).collect();
    assert_eq!(
        out.get("out").unwrap().text(),
        format!("[{}]", expected.join(","))
    );
    stand.idle().await;
    assert_eq!(stand.times(instance, "JobCompleted work").await, MANY);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_of_ten_thousand_turns_writes_the_same_and_keeps_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let stand = on_disk(&folder, CommitPolicy::Cycle).await;
    let body = format!(
        r#"<startEvent id="s"/><exclusiveGateway id="m"/><scriptTask id="count"><extensionElements><zeebe:script expression="=n + 1" resultVariable="n"/></extensionElements></scriptTask>{}<exclusiveGateway id="g" default="g-e"/><endEvent id="e"/>{}"#,
        noop(""),
        flow_if("g", "m", &format!("=n<{MANY}"))
    );
    stand.deploy(model("p", "", &body, "s>m>count>work>g>e")).await;
    let instance = stand.start("p", r#"{"n": 0}"#).await.instance;
    let ended = stand
        .runtime
        .wait(instance, std::time::Duration::from_secs(120))
        .await
        .unwrap();
    assert_eq!(
        ended.variables.unwrap().get("n").unwrap().text(),
        MANY.to_string()
    );
    stand.idle().await;
    // The events of a turn: as many in the first as in any other.
    let events = stand.events(instance).await;
    let begins = events
        .iter()
        .enumerate()
        .filter(|(_, event)| *event == "ElementActivated m");
    let begins: Vec<usize> = begins.map(|(at, _)| at).collect();
    assert_eq!(begins.len(), MANY);
    let length = begins[1] - begins[0];
    assert!(begins.windows(2).all(|pair| pair[1] - pair[0] == length));
    // What is kept: a state without a trace of the turns, and behind it no more than the commits of a moment.
    let stored = stand.store.load(instance).unwrap().expect("it is kept");
    let state = stored.state.expect("a state").len();
    assert!(state < 1_024, "the state has {state} bytes");
    assert!(
        stored.journal.len() <= 64,
        "{} commits since",
        stored.journal.len()
    );
    let journal = stand.store.journal(instance, 0, 1_000_000).unwrap();
    let bytes: usize = journal.iter().map(|row| row.payload.len()).sum();
    assert!(bytes / MANY < 200, "{} bytes a turn", bytes / MANY);
}

#[tokio::test(flavor = "multi_thread")]
async fn more_timers_than_one_read_takes_are_read_once_and_all_fire() {
    const TIMERS: u64 = 10_500;
    let (store, clock) = (faulty(), ManualClock::new(BEGINNING));
    let before = stand_on(store.clone(), clock.clone(), |builder| builder).await;
    before.deploy(waits_for_timer("naps", "PT20S")).await;
    for _ in 0..TIMERS {
        before.start("naps", "{}").await;
    }
    before
        .runtime
        .drain(tidegate::status::DrainTrigger::HostStopSignal)
        .await;
    let reads = store.reads_of("timers");
    let stand = stand_on(store.clone(), clock, |builder| builder).await;
    // The others are behind the first page, and due at the same moment.
    stand.clock.advance(20_000);
    let finished = usize::from(tidegate::model::SubStatus::Finished.code());
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while stand.runtime.counts().await.unwrap()[finished] < TIMERS {
        assert!(std::time::Instant::now() < deadline, "a timer does not fire");
        tokio::task::yield_now().await;
    }
    let reads = store.reads_of("timers") - reads;
    assert!(reads <= 4, "they were read {reads} times");
}
