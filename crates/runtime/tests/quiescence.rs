//! Pausing and resuming, the whole and its parts: each answer is the truth, and it outlives what it must.

mod support;

use std::sync::Arc;
use std::time::Duration;

use support::{
    BEGINNING, Stand, eventually, faulty, jobs, line, message, slow, stand, stand_on, stand_with, stores,
    task, unreachable, waits_for_message, waits_for_timer,
};
use tidegate::api::{MessageRequest, StartRequest};
use tidegate::clock::ManualClock;
use tidegate::model::{SubStatus, Variables};
use tidegate::options::ExpiryUnderPause;
use tidegate::parts::{Part, PauseScope};
use tidegate::status::{DrainTrigger, SourceState};
use tidegate::store::memory::MemoryStore;
use tidegate::store::{Page, Store, Write};
use tidegate::{Options, PausePersistence};

fn kept() -> Options {
    Options {
        pause_persistence: PausePersistence::AcrossReactivations,
        drain_deadline: Duration::from_millis(20),
        owners: 2,
        ..Options::default()
    }
}

fn is_pause_record(write: &Write) -> bool {
    matches!(write, Write::SetValue { key, .. } | Write::RemoveValue(key) if key.starts_with("runtime/pause"))
}

fn noop(id: &str) -> tidegate::api::Resource {
    line(id, &[("t", task("t", "demo.noop", &[]))])
}

#[tokio::test(flavor = "multi_thread")]
async fn q01_q02_a_fresh_runtime_accepts_and_a_second_drain_keeps_the_first_time() {
    let stand = stand().await;
    let status = stand.runtime.status().await.unwrap();
    assert_eq!(
        (status.state.reason.as_str(), status.state.is_accepting_new_work),
        ("None", true)
    );
    assert_eq!(status.state.generation_id.len(), 32);
    stand.runtime.drain(DrainTrigger::HostStopSignal).await;
    let first = stand.runtime.status().await.unwrap().state.drain_started_at;
    stand.clock.advance(5_000);
    stand.runtime.drain(DrainTrigger::ShellDeactivation).await;
    assert_eq!(
        stand.runtime.status().await.unwrap().state.drain_started_at,
        first
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn q08_the_count_is_the_number_of_live_cycles() {
    let stand = stand().await;
    stand.deploy(slow("slow", "demo.sleep", "PT1H")).await;
    let mut started = Vec::new();
    for n in 1..=5 {
        started.push(stand.start("slow", "{}").await.instance);
        assert_eq!(
            stand.runtime.status().await.unwrap().active_execution_cycle_count,
            n
        );
    }
    for instance in started {
        stand.runtime.cancel(instance, None, "op").await.unwrap();
    }
    stand.runtime.idle().await;
    assert_eq!(stand.runtime.quiescence().live(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn q08_idle_ends_when_no_cycle_is_live_and_not_before() {
    let stand = stand().await;
    stand.deploy(slow("slow", "demo.sleep", "PT1H")).await;
    let instance = stand.start("slow", "{}").await.instance;
    let part = Part::definition("slow");
    let mut whole = Box::pin(stand.runtime.idle());
    let mut of_part = Box::pin(stand.runtime.part_idle(&part));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(whole.as_mut().poll(&mut context).is_pending());
    assert!(of_part.as_mut().poll(&mut context).is_pending());
    stand.runtime.cancel(instance, None, "op").await.unwrap();
    whole.await;
    of_part.await;
    assert_eq!(stand.runtime.quiescence().live(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn q12_two_pauses_at_the_same_instant_are_one_change() {
    let stand = stand().await;
    let pause = |name: &'static str| {
        let runtime = stand.runtime.clone();
        tokio::spawn(async move { runtime.pause(Some(name.into()), None, name).await.unwrap() })
    };
    let (a, b) = (pause("ann"), pause("bob"));
    let (a, b) = (a.await.unwrap(), b.await.unwrap());
    assert_eq!(a.state, b.state);
    assert_eq!(stand.audited().await, ["RuntimePauseRequested"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn q13_a_manual_resume_takes_the_end_of_a_pause_away() {
    let stand = stand().await;
    stand
        .runtime
        .pause(None, Some(BEGINNING.plus_ms(60_000)), "ann")
        .await
        .unwrap();
    stand.runtime.resume("ann").await.unwrap();
    stand.runtime.pause(None, None, "bob").await.unwrap();
    stand.clock.advance(120_000);
    let status = stand.runtime.status().await.unwrap();
    assert_eq!(status.state.pause_requested_by.as_deref(), Some("bob"));
    stand.runtime.resume("bob").await.unwrap();
    stand
        .runtime
        .pause(None, Some(BEGINNING.plus_ms(180_000)), "cid")
        .await
        .unwrap();
    stand.clock.advance(60_000);
    eventually("it ends by itself", async || {
        stand.runtime.quiescence().is_accepting()
    })
    .await;
    eventually("and is audited as such", async || {
        let rows = stand.runtime.audit(Page::first(1)).await.unwrap();
        rows[0].action == "RuntimeResumeRequested" && rows[0].actor == "pause-until"
    })
    .await;
    let refused = stand
        .runtime
        .pause(None, Some(BEGINNING), "late")
        .await
        .unwrap_err();
    assert_eq!(refused.code(), "until-in-the-past");
}

#[tokio::test(flavor = "multi_thread")]
async fn p01_p02_a_pause_outlives_its_generation_only_where_it_is_kept() {
    for (store, _folder) in stores() {
        let clock = ManualClock::new(BEGINNING);
        let first = stand_on(store.clone(), clock.clone(), |b| b.options(kept())).await;
        first
            .runtime
            .pause(Some("night".into()), None, "ann")
            .await
            .unwrap();
        let at = first.runtime.status().await.unwrap().state.paused_at;
        first.runtime.drain(DrainTrigger::ShellDeactivation).await;
        clock.advance(3_600_000);
        let session = stand_on(store.clone(), clock.clone(), |b| b).await;
        assert!(
            session.runtime.quiescence().is_accepting(),
            "p01: session-scoped ignores an old record"
        );
        session.runtime.drain(DrainTrigger::ShellDeactivation).await;
        let next = stand_on(store, clock, |b| b.options(kept())).await;
        let status = next.runtime.status().await.unwrap();
        assert_eq!(status.state.paused_at, at);
        assert_eq!(status.state.pause_reason_text.as_deref(), Some("night"));
        assert!(
            status
                .sources
                .iter()
                .all(|source| source.state == SourceState::Paused),
            "before any source starts"
        );
        next.runtime.drain(DrainTrigger::ShellDeactivation).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn p03_p04_the_record_is_durable_and_gone_before_the_answer() {
    for (store, _folder) in stores() {
        let stand = stand_on(store.clone(), ManualClock::new(BEGINNING), |b| b.options(kept())).await;
        stand.runtime.pause(None, None, "ann").await.unwrap();
        assert!(store.value("runtime/pause", BEGINNING).unwrap().is_some());
        stand.runtime.resume("ann").await.unwrap();
        assert!(store.value("runtime/pause", BEGINNING).unwrap().is_none());
        stand.runtime.drain(DrainTrigger::ShellDeactivation).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn p05_two_shells_have_two_records() {
    let stores = [(); 2].map(|()| Arc::new(MemoryStore::new()));
    let [a, b] = &stores;
    let a = stand_on(a.clone(), ManualClock::new(BEGINNING), |b| {
        b.options(kept()).shell("a")
    })
    .await;
    let b = stand_on(b.clone(), ManualClock::new(BEGINNING), |b| {
        b.options(kept()).shell("b")
    })
    .await;
    a.runtime.pause(Some("a".into()), None, "ann").await.unwrap();
    assert!(b.runtime.quiescence().is_accepting());
    b.runtime.pause(Some("b".into()), None, "bob").await.unwrap();
    a.runtime.resume("ann").await.unwrap();
    assert!(b.runtime.quiescence().is_paused() && !a.runtime.quiescence().is_paused());
}

#[tokio::test(flavor = "multi_thread")]
async fn p06_memory_and_store_agree_after_pauses_and_resumes_on_a_slow_store() {
    let store = faulty();
    let stand = stand_on(store.clone(), ManualClock::new(BEGINNING), |b| b.options(kept())).await;
    store.hang();
    let steps: Vec<_> = (0..20)
        .map(|turn| {
            let runtime = stand.runtime.clone();
            tokio::spawn(async move {
                match turn % 2 {
                    0 => runtime.pause(None, None, "a").await.map(drop),
                    _ => runtime.resume("b").await.map(drop),
                }
            })
        })
        .collect();
    eventually("the store holds a record", async || store.held() > 0).await;
    assert!(
        stand.runtime.quiescence().is_accepting(),
        "not paused before the record is durable"
    );
    store.mend();
    for step in steps {
        step.await.unwrap().unwrap();
    }
    let is_kept = store.value("runtime/pause", BEGINNING).unwrap().is_some();
    assert_eq!(stand.runtime.quiescence().is_paused(), is_kept);
}

#[tokio::test(flavor = "multi_thread")]
async fn p07_p08_what_cannot_be_kept_does_not_happen_and_a_retry_works() {
    let store = faulty();
    let stand = stand_on(store.clone(), ManualClock::new(BEGINNING), |b| b.options(kept())).await;
    let break_it =
        || store.fail_commits(|commit| commit.writes.iter().any(is_pause_record).then(unreachable));
    break_it();
    let error = stand.runtime.pause(None, None, "ann").await.unwrap_err();
    assert_eq!(error.code(), "pause-not-persisted");
    assert!(stand.runtime.quiescence().is_accepting());
    assert!(store.value("runtime/pause", BEGINNING).unwrap().is_none());
    store.mend();
    stand.runtime.pause(None, None, "ann").await.unwrap();
    break_it();
    let error = stand.runtime.resume("ann").await.unwrap_err();
    assert_eq!(error.code(), "pause-not-persisted");
    let status = stand.runtime.status().await.unwrap();
    assert_eq!(status.state.reason, "AdministrativePause");
    assert!(
        status
            .sources
            .iter()
            .all(|source| source.state == SourceState::Paused)
    );
    store.mend();
    stand.runtime.resume("ann").await.unwrap();
    assert_eq!(
        stand.audited().await,
        ["RuntimePauseRequested", "RuntimeResumeRequested"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn p09_a_drain_that_begins_in_a_failing_pause_stays() {
    let store = faulty();
    let stand = stand_on(store.clone(), ManualClock::new(BEGINNING), |b| b.options(kept())).await;
    store.hang();
    let runtime = stand.runtime.clone();
    let pausing = tokio::spawn(async move { runtime.pause(None, None, "ann").await });
    eventually("the pause waits for the store", async || store.held() > 0).await;
    let runtime = stand.runtime.clone();
    let draining = tokio::spawn(async move { runtime.drain(DrainTrigger::HostStopSignal).await });
    eventually("the drain has begun", async || {
        stand.runtime.quiescence().is_draining()
    })
    .await;
    // A store of another generation refuses what comes from this one.
    store.fail_all(unreachable());
    tidegate::store::Store::activate(&*store).unwrap();
    store.mend();
    assert_eq!(pausing.await.unwrap().unwrap_err().code(), "pause-not-persisted");
    draining.await.unwrap();
    assert_eq!(stand.runtime.quiescence().reason(), "Drain");
}

#[tokio::test(flavor = "multi_thread")]
async fn p10_what_came_in_during_a_reload_waits_for_the_resume() {
    for (store, _folder) in stores() {
        let clock = ManualClock::new(BEGINNING);
        let first = stand_on(store.clone(), clock.clone(), |b| b.options(kept())).await;
        first.deploy(noop("n")).await;
        first.runtime.pause(None, None, "ann").await.unwrap();
        first.runtime.drain(DrainTrigger::ShellDeactivation).await;
        let pending = first.start("n", "{}").await.instance;
        let next = stand_on(store, clock, |b| b.options(kept())).await;
        assert_eq!(next.runtime.status().await.unwrap().stimulus_queue.depth, 1);
        assert_eq!(next.listed(SubStatus::Pending).await, [pending]);
        next.runtime.resume("ann").await.unwrap();
        next.runtime.wait(pending, Duration::from_secs(20)).await.unwrap();
        next.runtime.drain(DrainTrigger::ShellDeactivation).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn p11_a_store_that_keeps_nothing_is_refused_where_a_pause_must_be_kept() {
    let error = tidegate::Runtime::builder()
        .options(kept())
        .start()
        .await
        .unwrap_err();
    assert_eq!(error.code(), "pause-cannot-be-kept");
    let store = tidegate::store::open("memory:").unwrap();
    assert!(
        tidegate::Runtime::builder()
            .store(store)
            .options(kept())
            .start()
            .await
            .is_err()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kept_pause_that_is_over_is_removed_and_audited_at_activation() {
    for (store, _folder) in stores() {
        let clock = ManualClock::new(BEGINNING);
        let first = stand_on(store.clone(), clock.clone(), |b| b.options(kept())).await;
        first.deploy(noop("n")).await;
        first
            .runtime
            .pause(None, Some(BEGINNING.plus_ms(60_000)), "ann")
            .await
            .unwrap();
        let scope = PauseScope::NewStarts;
        first
            .runtime
            .pause_definition("n", scope, None, Some(BEGINNING.plus_ms(50_000)), "ann")
            .await
            .unwrap();
        first.runtime.drain(DrainTrigger::ShellDeactivation).await;
        clock.advance(60_000);
        let next = stand_on(store.clone(), clock, |b| b.options(kept())).await;
        assert!(next.runtime.quiescence().is_accepting());
        assert!(next.runtime.partial_pauses().is_empty());
        assert!(store.value("runtime/pause", BEGINNING).unwrap().is_none());
        assert!(store.value("runtime/pauses", BEGINNING).unwrap().is_none());
        let ends = next.runtime.audit(Page::first(10)).await.unwrap();
        let ends: Vec<_> = ends.iter().filter(|row| row.actor == "pause-until").collect();
        assert_eq!(ends.len(), 2, "{ends:?}");
        next.run("n", "{}").await;
        next.runtime.drain(DrainTrigger::ShellDeactivation).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_scoped_pause_never_needs_the_store_and_its_audit_comes_later() {
    let store = faulty();
    let stand = stand_on(store.clone(), ManualClock::new(BEGINNING), |b| b).await;
    stand.deploy(noop("n")).await;
    store.fail_all(unreachable());
    store.fail_reads(unreachable());
    let status = stand
        .runtime
        .pause(Some("fire".into()), None, "ann")
        .await
        .unwrap();
    assert_eq!(status.state.reason, "AdministrativePause");
    stand.runtime.resume("ann").await.unwrap();
    stand.runtime.pause(None, None, "bob").await.unwrap();
    assert!(stand.runtime.quiescence().is_paused());
    store.mend();
    eventually("the trail is whole, in its order", async || {
        stand.audited().await
            == [
                "RuntimePauseRequested",
                "RuntimeResumeRequested",
                "RuntimePauseRequested",
            ]
    })
    .await;
    // A store that says nothing at all does not hold it up for long either.
    store.hang();
    stand.runtime.resume("bob").await.unwrap();
    assert!(stand.runtime.quiescence().is_accepting());
    store.mend();
}

#[tokio::test(flavor = "multi_thread")]
async fn b07_the_life_of_buffered_messages_stands_still_under_a_pause() {
    for (store, _folder) in stores() {
        for expiry_under_pause in [ExpiryUnderPause::StandsStill, ExpiryUnderPause::Runs] {
            let options = Options {
                expiry_under_pause,
                owners: 2,
                ..Options::default()
            };
            let stand = stand_on(store.clone(), ManualClock::new(BEGINNING), |b| b.options(options)).await;
            stand.deploy(waits_for_message("waits", 1)).await;
            let key = format!("{expiry_under_pause:?}");
            let ttl = Some(Duration::from_secs(10));
            stand
                .runtime
                .publish(MessageRequest {
                    ttl,
                    ..message("go", &key, "{}")
                })
                .await
                .unwrap();
            stand.clock.advance(4_000);
            stand.runtime.pause(None, None, "op").await.unwrap();
            // One that comes in the pause begins its life when it is published, after it.
            let late = format!("{key}-late");
            stand
                .runtime
                .publish(MessageRequest {
                    ttl,
                    ..message("go", &late, "{}")
                })
                .await
                .unwrap();
            stand.clock.advance(3_600_000);
            stand.runtime.resume("op").await.unwrap();
            stand.clock.advance(5_000);
            let late = stand
                .start("waits", &format!(r#"{{"key": "{late}"}}"#))
                .await
                .instance;
            stand.runtime.wait(late, Duration::from_secs(20)).await.unwrap();
            let taker = stand
                .start("waits", &format!(r#"{{"key": "{key}"}}"#))
                .await
                .instance;
            if expiry_under_pause == ExpiryUnderPause::StandsStill {
                stand.runtime.wait(taker, Duration::from_secs(20)).await.unwrap();
            } else {
                stand.idle().await;
                assert_eq!(
                    stand.runtime.instance(taker).await.unwrap().row.sub_status,
                    SubStatus::Suspended
                );
            }
            stand.runtime.drain(DrainTrigger::ShellDeactivation).await;
        }
    }
}

// --- parts ---

async fn parts_stand(store: Arc<dyn Store>) -> Stand {
    let stand = stand_on(store, ManualClock::new(BEGINNING), |b| b).await;
    stand.deploy(waits_for_message("waits", 20)).await;
    stand.deploy(waits_for_timer("naps", "PT1M")).await;
    stand.deploy(noop("n")).await;
    stand
}

#[tokio::test(flavor = "multi_thread")]
async fn case_064_new_starts_of_a_definition_wait_and_what_is_there_goes_on() {
    for (store, _folder) in stores() {
        let stand = parts_stand(store).await;
        let going = stand.start("naps", "{}").await.instance;
        let pause = stand
            .runtime
            .pause_definition("naps", PauseScope::NewStarts, Some("v2".into()), None, "ann")
            .await;
        let pause = pause.unwrap();
        assert_eq!(
            (pause.scope, pause.reason.as_deref()),
            (PauseScope::NewStarts, Some("v2"))
        );
        let queued = stand.start("naps", "{}").await;
        assert_eq!(
            (queued.sub_status, queued.accepted.is_some()),
            (SubStatus::Pending, true)
        );
        // What is there goes on, and so does everything else.
        stand.clock.advance(60_000);
        stand.runtime.wait(going, Duration::from_secs(20)).await.unwrap();
        stand.run("n", "{}").await;
        assert_eq!(stand.listed(SubStatus::Pending).await, [queued.instance]);
        // The same again keeps the first reason; further is a change.
        let again = stand
            .runtime
            .pause_definition("naps", PauseScope::NewStarts, None, None, "bob")
            .await
            .unwrap();
        assert_eq!(again.requested_by, "ann");
        let further = stand
            .runtime
            .pause_definition("naps", PauseScope::Everything, None, None, "bob")
            .await;
        assert_eq!(further.unwrap().requested_by, "bob");
        let nothing = stand
            .runtime
            .pause_definition("naps", PauseScope::NewStarts, None, None, "cid")
            .await
            .unwrap();
        assert_eq!(nothing.scope, PauseScope::Everything);
        assert!(stand.runtime.resume_definition("naps", "ann").await.unwrap());
        assert!(!stand.runtime.resume_definition("naps", "ann").await.unwrap());
        stand
            .until(queued.instance, |d| d.row.sub_status == SubStatus::Suspended)
            .await;
        assert_eq!(
            stand.audited().await.len(),
            3,
            "one entry for each effective change"
        );
        let unknown = stand
            .runtime
            .pause_definition("nope", PauseScope::Everything, None, None, "ann")
            .await;
        assert_eq!(unknown.unwrap_err().code(), "process-not-found");
        stand.runtime.drain(DrainTrigger::ShellDeactivation).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_definition_holds_everything_in_its_order_and_spares_the_others() {
    for (store, _folder) in stores() {
        let stand = parts_stand(store).await;
        let waiting = stand.start("waits", r#"{"key": "k"}"#).await.instance;
        let napping = stand.start("naps", "{}").await.instance;
        stand.idle().await;
        for part in ["waits", "naps"] {
            stand
                .runtime
                .pause_definition(part, PauseScope::Everything, None, None, "op")
                .await
                .unwrap();
        }
        assert_eq!(stand.runtime.partial_pauses().len(), 2);
        for n in 0..10 {
            stand.publish("go", "k", &format!(r#"{{"n": {n}}}"#)).await;
        }
        stand.clock.advance(120_000);
        stand.run("n", "{}").await;
        let changed = stand
            .runtime
            .set_variables(waiting, Variables::new(), "op")
            .await
            .unwrap();
        assert!(matches!(changed, tidegate::api::Acceptance::Queued(_)));
        stand.runtime.part_idle(&Part::definition("waits")).await;
        for instance in [waiting, napping] {
            let detail = stand.runtime.instance(instance).await.unwrap();
            assert_eq!(detail.row.sub_status, SubStatus::Suspended);
        }
        assert!(stand.runtime.quiescence().is_accepting(), "the shell is open");
        // A pause of the whole on top, and its end, opens nothing of the parts.
        stand.runtime.pause(None, None, "op").await.unwrap();
        stand.runtime.resume("op").await.unwrap();
        stand.run("n", "{}").await;
        assert!(
            stand
                .runtime
                .instance(waiting)
                .await
                .unwrap()
                .waiting_for
                .iter()
                .any(|w| w.element_id == "catch0")
        );

        stand.runtime.resume_definition("waits", "op").await.unwrap();
        stand.publish("go", "k", r#"{"n": 10}"#).await;
        let detail = stand
            .until(waiting, |d| {
                d.waiting_for.iter().any(|w| w.element_id == "catch11")
            })
            .await;
        assert_eq!(
            detail.variables.get("n").unwrap().text(),
            "10",
            "the newest came last"
        );
        let taken = stand.runtime.history(waiting, 0, 10_000).await.unwrap();
        let order = taken.iter().filter(|item| item.event == "MessageCorrelated");
        let order: Vec<_> = order
            .filter_map(|item| item.element_id.as_ref().map(ToString::to_string))
            .collect();
        assert_eq!(order, (0..11).map(|n| format!("catch{n}")).collect::<Vec<_>>());
        assert_eq!(
            stand.runtime.instance(napping).await.unwrap().row.sub_status,
            SubStatus::Suspended
        );
        stand.runtime.resume_definition("naps", "op").await.unwrap();
        stand
            .runtime
            .wait(napping, Duration::from_secs(20))
            .await
            .unwrap();
        eventually("the queue is empty", async || {
            stand.runtime.status().await.unwrap().stimulus_queue.depth == 0
        })
        .await;
        stand.runtime.drain(DrainTrigger::ShellDeactivation).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn case_067_pausing_a_definition_without_instances_leaves_nothing_behind() {
    let stand = stand().await;
    stand.deploy(noop("n")).await;
    stand
        .runtime
        .pause_definition("n", PauseScope::Everything, None, None, "op")
        .await
        .unwrap();
    stand.runtime.resume_definition("n", "op").await.unwrap();
    // A new version is of the same part, paused or not.
    stand
        .deploy(line(
            "n",
            &[
                ("t", task("t", "demo.noop", &[])),
                ("u", task("u", "demo.noop", &[])),
            ],
        ))
        .await;
    stand.run("n", "{}").await;
    // And what starts by itself is started.
    let timer = r#"<bpmn:startEvent id="start"><bpmn:timerEventDefinition><bpmn:timeCycle>R1/PT1M</bpmn:timeCycle></bpmn:timerEventDefinition></bpmn:startEvent><bpmn:endEvent id="end"/>"#;
    let body = format!("{timer}{}", support::flow("start", "end"));
    stand.deploy(support::process("n", &body)).await;
    stand.clock.advance(61_000);
    support::eventually("the timer fires", async || {
        stand.listed(SubStatus::Finished).await.len() == 2
    })
    .await;
    stand
        .runtime
        .pause_definition("n", PauseScope::NewStarts, None, None, "op")
        .await
        .unwrap();
    stand.deploy(noop("n")).await;
    assert_eq!(stand.start("n", "{}").await.sub_status, SubStatus::Pending);
}

#[tokio::test(flavor = "multi_thread")]
async fn case_191_a_paused_tenant_is_alone_in_it() {
    let stand = stand().await;
    let deploy = |tenant: &'static str| stand.runtime.deploy(vec![noop("n")], Some(tenant.into()), "test");
    deploy("a").await.unwrap();
    deploy("b").await.unwrap();
    let pays = || line("pays", &[("work", task("work", "pay", &[]))]);
    for tenant in ["a", "b"] {
        stand
            .runtime
            .deploy(vec![pays()], Some(tenant.into()), "test")
            .await
            .unwrap();
    }
    let start = |process: &str, tenant: &str| {
        let mut request = StartRequest::latest(process);
        request.tenant = Some(tenant.to_owned());
        stand.runtime.start(request)
    };
    for tenant in ["a", "b"] {
        start("pays", tenant).await.unwrap();
    }
    let part = Part::tenant("a");
    let pause = stand
        .runtime
        .pause_part(part.clone(), PauseScope::Everything, None, None, "op")
        .await
        .unwrap();
    assert_eq!(pause.part.to_string(), "tenant/a");
    let of_a = start("n", "a").await.unwrap();
    assert_eq!(of_a.sub_status, SubStatus::Pending);
    let of_b = start("n", "b").await.unwrap();
    stand
        .runtime
        .wait(of_b.instance, Duration::from_secs(20))
        .await
        .unwrap();
    let poll = |tenant: &str| {
        let mut request = jobs("pay", Duration::ZERO);
        request.tenant = Some(tenant.to_owned());
        stand.runtime.activate_jobs(request)
    };
    assert!(poll("a").await.unwrap().is_empty(), "its workers get nothing");
    assert_eq!(poll("b").await.unwrap().len(), 1);
    assert_eq!(
        stand.runtime.quiescence().reason(),
        "None",
        "the shell is not shown as paused"
    );
    stand.runtime.resume_part(part, "op").await.unwrap();
    stand
        .runtime
        .wait(of_a.instance, Duration::from_secs(20))
        .await
        .unwrap();
    assert_eq!(poll("a").await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_gets_what_stands_behind_the_jobs_of_a_paused_definition() {
    let stand = stand().await;
    let pays = |id: &str| line(id, &[("work", task("work", "pay", &[]))]);
    stand.deploy(pays("orders")).await;
    stand.deploy(pays("bills")).await;
    let of_b = stand
        .runtime
        .deploy(vec![pays("orders")], Some("b".into()), "test");
    of_b.await.unwrap();
    for process in ["orders", "bills"] {
        stand.start(process, "{}").await;
    }
    let mut request = StartRequest::latest("orders");
    request.tenant = Some("b".to_owned());
    stand.runtime.start(request).await.unwrap();
    let pause = |process: &'static str| {
        let pausing = stand
            .runtime
            .pause_definition(process, PauseScope::Everything, None, None, "op");
        async move { pausing.await.unwrap() }
    };
    pause("orders").await;
    let poll = async |tenant: Option<&str>| {
        let mut request = jobs("pay", Duration::ZERO);
        (request.max_jobs, request.tenant) = (1, tenant.map(str::to_owned));
        let leased = stand.runtime.activate_jobs(request).await.unwrap();
        let of: Vec<_> = leased.into_iter().map(|job| job.process_id).collect();
        of
    };
    // The job of the paused one is the older one, and only one is asked for.
    assert_eq!(poll(None).await, ["bills"]);
    assert_eq!(poll(None).await, [""; 0]);
    assert_eq!(
        poll(Some("b")).await,
        ["orders"],
        "another tenant's is not paused"
    );
    stand.runtime.resume_definition("orders", "op").await.unwrap();
    assert_eq!(poll(None).await, ["orders"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_audit_trail_says_how_far_a_part_was_paused_before_and_after() {
    let stand = stand().await;
    stand.deploy(noop("n")).await;
    let part = Part::definition("n");
    assert_eq!(
        (part.of_tenant(), Part::tenant("a").of_tenant()),
        ("<default>", "a")
    );
    for scope in [
        PauseScope::NewStarts,
        PauseScope::Everything,
        PauseScope::NewStarts,
    ] {
        let pause = stand
            .runtime
            .pause_part(part.clone(), scope, Some(format!("{scope:?}")), None, "op");
        pause.await.unwrap();
    }
    assert!(stand.runtime.resume_part(part.clone(), "op").await.unwrap());
    assert!(!stand.runtime.resume_part(part, "op").await.unwrap());
    let rows = stand.runtime.audit(Page::first(100)).await.unwrap();
    let told: Vec<_> = rows
        .iter()
        .rev()
        .filter(|row| row.subject.as_deref() == Some("definition/<default>/n"))
        .map(|row| (row.before.as_deref().unwrap(), row.after.as_deref().unwrap()))
        .collect();
    assert_eq!(
        told,
        [
            ("None", "newStarts"),
            ("newStarts", "everything"),
            ("everything", "None")
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_pause_of_a_part_is_kept_ends_by_itself_and_holds_recovery() {
    for (store, _folder) in stores() {
        let clock = ManualClock::new(BEGINNING);
        let first = stand_on(store.clone(), clock.clone(), |b| b.options(kept())).await;
        first.deploy(slow("slow", "demo.sleep", "PT1H")).await;
        first.deploy(slow("other", "demo.sleep", "PT1H")).await;
        let cut = first.start("slow", "{}").await.instance;
        let other = first.start("other", "{}").await.instance;
        let until = Some(BEGINNING.plus_ms(60_000));
        first
            .runtime
            .pause_definition("slow", PauseScope::Everything, Some("bad".into()), until, "ann")
            .await
            .unwrap();
        first.runtime.drain(DrainTrigger::ShellDeactivation).await;
        let next = stand_on(store, clock.clone(), |b| b.options(kept())).await;
        let pauses = next.runtime.partial_pauses();
        assert_eq!((pauses.len(), pauses[0].requested_by.as_str()), (1, "ann"));
        next.until(other, |d| d.row.sub_status == SubStatus::Executing)
            .await;
        assert_eq!(
            next.listed(SubStatus::Interrupted).await,
            [cut],
            "recovery waits for this part, not for that one"
        );
        clock.advance(60_000);
        next.until(cut, |d| d.row.sub_status == SubStatus::Executing)
            .await;
        assert!(next.runtime.partial_pauses().is_empty());
        for instance in [cut, other] {
            next.runtime.cancel(instance, None, "op").await.unwrap();
        }
        next.runtime.drain(DrainTrigger::ShellDeactivation).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pauses_and_resumes_of_a_part_at_random_moments_lose_nothing() {
    let stand = stand_with(|b| b).await;
    stand.deploy(noop("n")).await;
    let toggling = stand.runtime.clone();
    let toggle = tokio::spawn(async move {
        for turn in 0..100 {
            let scope = if turn % 3 == 0 {
                PauseScope::NewStarts
            } else {
                PauseScope::Everything
            };
            toggling
                .pause_definition("n", scope, None, None, "op")
                .await
                .unwrap();
            let part = Part::definition("n");
            if scope == PauseScope::Everything {
                toggling.part_idle(&part).await;
                let pause = &toggling.partial_pauses()[0];
                assert_eq!(
                    pause.active_execution_cycle_count, 0,
                    "nothing began while it was closed"
                );
            }
            toggling.resume_definition("n", "op").await.unwrap();
        }
    });
    let mut started = Vec::new();
    while !toggle.is_finished() || started.len() < 200 {
        started.push(stand.start("n", "{}").await.instance);
    }
    toggle.await.unwrap();
    for instance in started {
        stand
            .runtime
            .wait(instance, Duration::from_secs(20))
            .await
            .unwrap();
    }
}
