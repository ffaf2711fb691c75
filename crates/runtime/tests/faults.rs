//! What the store's failures look like from outside: a clear error, nothing lost, and work goes on by itself.

mod support;

use std::sync::Arc;
use std::time::Duration;

use support::{BEGINNING, jobs, line, stand, stand_on, task, waits_for_message};
use tidegate::Grade;
use tidegate::api::StartRequest;
use tidegate::clock::ManualClock;
use tidegate::model::{SubStatus, Variables};
use tidegate::status::DrainTrigger;
use tidegate::store::sqlite::SqliteStore;

#[tokio::test(flavor = "multi_thread")]
async fn case_120_a_full_disk_is_told_loses_nothing_and_is_survived() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(SqliteStore::open(&folder.path().join("t.db")).unwrap());
    let stand = stand_on(store.clone(), ManualClock::new(BEGINNING), |b| b).await;
    stand.deploy(waits_for_message("waits", 1)).await;
    let waiting = stand.start("waits", r#"{"key": "k"}"#).await.instance;

    store.limit_pages(1).unwrap();
    let large = format!(r#"{{"key": "x", "large": "{}"}}"#, "x".repeat(200_000));
    let variables = Variables::parse(&large).unwrap();
    let mut refused = None;
    for _ in 0..50 {
        let start = StartRequest::latest("waits").variables(variables.clone());
        if let Err(error) = stand.runtime.start(start).await {
            refused = Some(error);
            break;
        }
    }
    let refused = refused.expect("a full disk refuses");
    assert_eq!(refused.code(), "store-full", "{refused}");
    assert!(refused.to_string().contains("t.db"), "{refused}");
    let store_check = || {
        stand
            .runtime
            .readiness()
            .into_iter()
            .find(|check| check.name == "store")
            .unwrap()
    };
    assert_eq!(store_check().grade, Grade::Unhealthy);
    assert_eq!(
        stand.runtime.instance(waiting).await.unwrap().row.sub_status,
        SubStatus::Suspended
    );

    store.limit_pages(1_000_000).unwrap();
    stand.publish("go", "k", "{}").await;
    let ended = stand
        .runtime
        .wait(waiting, Duration::from_secs(20))
        .await
        .unwrap();
    assert_eq!(ended.sub_status, SubStatus::Finished);
    assert_eq!(store_check().grade, Grade::Healthy);
    stand.idle().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn case_009_after_the_end_every_call_is_answered_and_no_thread_is_left() {
    let stand = stand().await;
    stand
        .deploy(line("t", &[("a", task("a", "demo.noop", &[]))]))
        .await;
    stand.runtime.drain(DrainTrigger::ShellDeactivation).await;
    stand.runtime.close().await;
    stand.runtime.close().await;
    let refused = stand.runtime.start(StartRequest::latest("t")).await.unwrap_err();
    assert_eq!(refused.code(), "runtime-stopped");
    assert!(
        stand
            .runtime
            .activate_jobs(jobs("x", Duration::from_secs(60)))
            .await
            .unwrap()
            .is_empty()
    );
    let threads = std::fs::read_dir("/proc/self/task")
        .unwrap()
        .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
    let left: Vec<String> = threads.filter(|name| name.starts_with("tidegate-own")).collect();
    // The other tests of this file have owners of their own; this one's are joined.
    assert!(left.len() <= 2, "{left:?}");
}
