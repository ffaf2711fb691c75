//! What waits for events: how much an event costs, and that a waiter is there once.

mod support;

use std::sync::Arc;
use std::time::Duration;

use support::{
    BEGINNING, Stand, eventually, faulty, flow, line, message, process_with, stand_on, stores, task,
    waits_for_message, waits_for_timer,
};
use tidegate::clock::ManualClock;
use tidegate::model::{SubStatus, Variables};
use tidegate::store::faulty::FaultyStore;
use tidegate::{Error, Options, ShutdownMode};

/// Waits for a signal.
fn waits_for_signal(id: &str) -> tidegate::api::Resource {
    let body = format!(
        r#"<bpmn:startEvent id="start"/><bpmn:intermediateCatchEvent id="catch"><bpmn:signalEventDefinition signalRef="s"/></bpmn:intermediateCatchEvent>
        <bpmn:endEvent id="end"/>{}{}"#,
        flow("start", "catch"),
        flow("catch", "end")
    );
    process_with(id, r#"<bpmn:signal id="s" name="all"/>"#, &body)
}

async fn finished(stand: &Stand) -> u64 {
    stand.runtime.counts().await.unwrap()[usize::from(SubStatus::Finished.code())]
}

/// How many instances were brought into memory until so many more have finished. Nothing stays in memory at rest.
async fn touched(stand: &Stand, store: &FaultyStore, ends: u64, happen: impl AsyncFnOnce()) -> u64 {
    stand.idle().await;
    let (loads, before) = (store.reads_of("load"), finished(stand).await);
    happen().await;
    eventually("its takers finish", async || {
        finished(stand).await == before + ends
    })
    .await;
    stand.idle().await;
    store.reads_of("load") - loads
}

#[tokio::test(flavor = "multi_thread")]
async fn e10_an_event_costs_the_number_of_its_catchers() {
    const WAITING: usize = 400;
    const BY_SIGNAL: u64 = 7;
    let store = faulty();
    let options = Options {
        owners: 2,
        cache_bytes: 0,
        ..Options::default()
    };
    let stand = stand_on(store.clone(), ManualClock::new(BEGINNING), |b| b.options(options)).await;
    stand.deploy(waits_for_message("by-message", 1)).await;
    stand.deploy(waits_for_signal("by-signal")).await;
    stand.deploy(waits_for_timer("by-timer", "PT1H")).await;
    stand.deploy(waits_for_timer("soon", "PT30S")).await;
    for turn in 0..WAITING {
        stand
            .start("by-message", &format!(r#"{{"key": "k{turn}"}}"#))
            .await;
        stand.start("by-timer", "{}").await;
    }
    for _ in 0..BY_SIGNAL {
        stand.start("by-signal", "{}").await;
    }
    stand.start("soon", "{}").await;

    let by_message = touched(&stand, &store, 1, async || {
        let published = stand.publish("go", "k17", "{}").await;
        assert_eq!(published.delivered_to.len(), 1);
    });
    assert_eq!(by_message.await, 1);
    let nobody = touched(&stand, &store, 0, async || {
        assert!(stand.publish("go", "nobody", "{}").await.is_buffered);
    });
    assert_eq!(nobody.await, 0);
    let by_signal = touched(&stand, &store, BY_SIGNAL, async || {
        let request = tidegate::api::SignalRequest {
            name: "all".to_owned(),
            variables: Variables::new(),
            tenant: None,
            actor: "test".to_owned(),
            source: None,
        };
        stand.runtime.broadcast(request).await.unwrap();
    });
    assert_eq!(by_signal.await, BY_SIGNAL);
    let by_timer = touched(&stand, &store, 1, async || stand.clock.advance(30_000));
    assert_eq!(by_timer.await, 1);
    // What is cancelled no longer waits: its timer wakes nobody.
    let row = stand.start("soon", "{}").await;
    stand.runtime.cancel(row.instance, None, "test").await.unwrap();
    let cancelled = touched(&stand, &store, 1, async || {
        stand.start("soon", "{}").await;
        stand.clock.advance(30_000);
    });
    assert_eq!(
        cancelled.await,
        1,
        "the one that waits, and not the cancelled one"
    );
}

/// Catches message `go` again and again, and counts.
fn catches_for_ever(id: &str) -> tidegate::api::Resource {
    let body = format!(
        r#"<bpmn:startEvent id="start"/><bpmn:exclusiveGateway id="again"/>
        <bpmn:intermediateCatchEvent id="catch"><bpmn:messageEventDefinition messageRef="m"/></bpmn:intermediateCatchEvent>{}{}{}"#,
        flow("start", "again"),
        flow("again", "catch"),
        flow("catch", "again")
    );
    let message = r#"<bpmn:message id="m" name="go"><bpmn:extensionElements><zeebe:subscription correlationKey="=key"/></bpmn:extensionElements></bpmn:message>"#;
    process_with(id, message, &body)
}

#[tokio::test(flavor = "multi_thread")]
async fn e12_a_removal_that_races_a_registration_leaves_the_newer_one() {
    const SENDERS: usize = 4;
    const EACH: usize = 25;
    for (store, _folder) in stores() {
        let stand = stand_on(store, ManualClock::new(BEGINNING), |b| b).await;
        stand.deploy(catches_for_ever("p")).await;
        let instance = stand.start("p", r#"{"key": "k"}"#).await.instance;
        // Every message takes the waiter away and registers the next one, while others come.
        let sending: Vec<_> = (0..SENDERS)
            .map(|_| {
                let runtime = stand.runtime.clone();
                tokio::spawn(async move {
                    for _ in 0..EACH {
                        runtime.publish(message("go", "k", "{}")).await.unwrap();
                    }
                })
            })
            .collect();
        for one in sending {
            one.await.unwrap();
        }
        eventually("every message is caught, each once", async || {
            stand.times(instance, "MessageCorrelated catch").await == SENDERS * EACH
        })
        .await;
        stand.idle().await;
        assert_eq!(
            stand.times(instance, "MessageSubscribed catch").await,
            SENDERS * EACH + 1
        );
        let detail = stand.runtime.instance(instance).await.unwrap();
        assert_eq!(detail.waiting_for.len(), 1);
        stand
            .runtime
            .shutdown(ShutdownMode::Park, Duration::from_secs(20))
            .await
            .unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn e10_after_the_end_no_waiter_is_left_and_none_is_taken() {
    let store = Arc::new(tidegate::store::memory::MemoryStore::new());
    let stand = stand_on(store, ManualClock::new(BEGINNING), |b| b).await;
    stand.deploy(waits_for_message("waits", 1)).await;
    stand
        .deploy(line("job", &[("t", task("t", "outside", &[]))]))
        .await;
    let instance = stand.start("waits", r#"{"key": "k"}"#).await.instance;
    let ample = Duration::from_secs(20);
    // Somebody waits for the end of the instance, and somebody for a job.
    let waiting = tokio::spawn({
        let runtime = stand.runtime.clone();
        async move { runtime.wait(instance, Duration::from_secs(3_600)).await }
    });
    let polling = tokio::spawn({
        let runtime = stand.runtime.clone();
        async move {
            runtime
                .activate_jobs(support::jobs("outside", Duration::from_secs(3_600)))
                .await
        }
    });
    tokio::task::yield_now().await;
    stand.runtime.shutdown(ShutdownMode::Drain, ample).await.unwrap();
    let waited = waiting.await.unwrap();
    assert!(
        matches!(
            waited,
            Err(Error::Stopped | Error::WaitRanOut(_) | Error::Store(_))
        ),
        "{waited:?}"
    );
    assert!(polling.await.unwrap().is_ok_and(|jobs| jobs.is_empty()));
    assert_eq!(stand.runtime.survivors(), Vec::<String>::new());
    let waited = stand.runtime.wait(instance, ample).await;
    assert!(matches!(waited, Err(Error::Stopped)), "{waited:?}");
    stand.runtime.shutdown(ShutdownMode::Drain, ample).await.unwrap();
}
