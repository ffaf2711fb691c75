//! The stimulus queue, and the recovery of what an earlier generation left: nothing is lost, nothing runs twice.

mod support;

use std::sync::Arc;
use std::time::{Duration, Instant};

use support::simulated::{ms, simulated};
use support::{
    BEGINNING, Stand, eventually, faulty, jobs, line, message, slow, stand, stand_on, stores, task,
    unreachable, waits_for_message, waits_for_timer,
};
use tidegate::api::StartRequest;
use tidegate::clock::ManualClock;
use tidegate::model::{InstanceKey, SubStatus, Variables};
use tidegate::status::{DrainTrigger, OverflowPolicy};
use tidegate::store::faulty::FaultyStore;
use tidegate::store::memory::MemoryStore;
use tidegate::store::{Commit, Error, ErrorKind, InstanceFilter, Page, Store, Write};
use tidegate::{Grade, Options};

const DOWN: DrainTrigger = DrainTrigger::ShellDeactivation;

fn quick() -> Options {
    Options {
        drain_deadline: Duration::from_millis(10),
        owners: 2,
        ..Options::default()
    }
}

fn noop(id: &str) -> tidegate::api::Resource {
    line(id, &[("t", task("t", "demo.noop", &[]))])
}

#[tokio::test(flavor = "multi_thread")]
async fn b03_beyond_the_limit_a_buffer_degrades_readiness_with_the_figures() {
    let options = Options {
        queue_max_depth: Some(2),
        ..quick()
    };
    let stand = stand_on(Arc::new(MemoryStore::new()), ManualClock::new(BEGINNING), |b| {
        b.options(options)
    })
    .await;
    stand.deploy(noop("n")).await;
    stand.runtime.pause(None, None, "op").await.unwrap();
    stand.clock.advance(5_000);
    for _ in 0..3 {
        assert!(stand.start("n", "{}").await.accepted.is_some());
    }
    stand.clock.advance(5_000);
    let check = stand
        .runtime
        .readiness()
        .into_iter()
        .find(|check| check.name == "queue")
        .unwrap();
    assert_eq!(check.grade, Grade::Degraded);
    assert_eq!(check.reason.as_deref(), Some("3 stimuli wait; the limit is 2"));
    let queue = stand.runtime.status().await.unwrap().stimulus_queue;
    assert_eq!(
        queue.oldest_accepted_at,
        Some(BEGINNING.plus_ms(5_000)),
        "the oldest age keeps counting"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn b04_beyond_the_limit_reject_is_a_typed_error_and_nothing_is_half_written() {
    for (store, _folder) in stores() {
        let options = Options {
            queue_max_depth: Some(2),
            overflow_policy: OverflowPolicy::Reject,
            ..quick()
        };
        let stand = stand_on(store.clone(), ManualClock::new(BEGINNING), |b| b.options(options)).await;
        stand.deploy(noop("n")).await;
        stand.runtime.pause(None, None, "op").await.unwrap();
        stand.start("n", "{}").await;
        stand.publish("go", "k", "{}").await;
        let mut request = StartRequest::latest("n");
        request.idempotency_key = Some("once".into());
        let refused = stand.runtime.start(request.clone()).await.unwrap_err();
        assert_eq!(refused.code(), "stimulus-queue-full");
        assert_eq!(
            stand
                .runtime
                .publish(message("go", "k", "{}"))
                .await
                .unwrap_err()
                .code(),
            "stimulus-queue-full"
        );
        assert_eq!(stand.listed(SubStatus::Pending).await.len(), 1);
        assert_eq!(store.queue().unwrap().depth, 2);
        // The refused key is free: the same request starts it later.
        stand.runtime.resume("op").await.unwrap();
        let started = stand.runtime.start(request).await.unwrap();
        stand
            .runtime
            .wait(started.instance, Duration::from_secs(20))
            .await
            .unwrap();
        stand.runtime.drain(DOWN).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn b05_case_045_what_is_buffered_is_there_after_a_kill_and_runs_once() {
    for (store, _folder) in stores() {
        let clock = ManualClock::new(BEGINNING);
        let stand = stand_on(store.clone(), clock.clone(), |b| b).await;
        stand.deploy(waits_for_message("waits", 10)).await;
        let waiting = stand.start("waits", r#"{"key": "k"}"#).await.instance;
        stand.idle().await;
        stand.runtime.pause(None, None, "op").await.unwrap();
        for n in 0..10 {
            stand.publish("go", "k", &format!(r#"{{"n": {n}}}"#)).await;
        }
        // Killed: the next generation takes hold of the store without a word.
        let next = stand_on(store, clock, |b| b).await;
        let ended = next.runtime.wait(waiting, Duration::from_secs(20)).await.unwrap();
        assert_eq!(ended.variables.unwrap().get("n").unwrap().text(), "9");
        let events = next.events(waiting).await;
        assert_eq!(
            events
                .iter()
                .filter(|e| e.starts_with("MessageCorrelated"))
                .count(),
            10
        );
        assert_eq!(next.runtime.status().await.unwrap().stimulus_queue.depth, 0);
        next.runtime.drain(DOWN).await;
    }
}

/// A stand whose store refuses what executes a queued start, until it is mended.
async fn poisoned() -> (Stand, Arc<FaultyStore>, InstanceKey) {
    let store = faulty();
    let options = Options {
        stimulus_attempts: 2,
        ..quick()
    };
    let stand = stand_on(store.clone(), ManualClock::new(BEGINNING), |b| b.options(options)).await;
    stand.deploy(noop("n")).await;
    stand.runtime.pause(None, None, "op").await.unwrap();
    let poison = stand.start("n", "{}").await.instance;
    let broken = Error::new(ErrorKind::Internal, "this one cannot be written");
    let is_poison = move |commit: &Commit| {
        commit
            .writes
            .iter()
            .any(|write| matches!(write, Write::UpdateInstance(update) if update.key == poison))
    };
    store.fail_commits(move |commit| is_poison(commit).then(|| broken.clone()));
    (stand, store, poison)
}

#[tokio::test(flavor = "multi_thread")]
async fn b06_what_fails_again_and_again_is_put_aside_and_replayed_once() {
    let (stand, store, poison) = poisoned().await;
    let healthy = stand.start("n", "{}").await.instance;
    stand.runtime.resume("op").await.unwrap();
    stand
        .runtime
        .wait(healthy, Duration::from_secs(20))
        .await
        .unwrap();
    let letters = async || stand.runtime.dead_letters(Page::first(10)).await.unwrap();
    eventually("it becomes a dead letter", async || letters().await.len() == 1).await;
    let letter = letters().await.remove(0);
    assert_eq!(
        (letter.code.as_str(), letter.stimulus.attempts),
        ("store-internal", 2)
    );
    assert!(letter.error.contains("cannot be written"), "{}", letter.error);
    assert_eq!(stand.runtime.status().await.unwrap().stimulus_queue.depth, 0);
    assert_eq!(
        stand.listed(SubStatus::Pending).await,
        [poison],
        "its instance waits with it"
    );
    stand.run("n", "{}").await;

    store.mend();
    let replay = || {
        let (runtime, key) = (stand.runtime.clone(), letter.stimulus.key);
        tokio::spawn(async move { runtime.replay_dead_letter(key, "op").await })
    };
    let answers = [replay(), replay(), replay()];
    let mut taken = 0;
    for answer in answers {
        match answer.await.unwrap() {
            Ok(_) => taken += 1,
            Err(error) => assert_eq!(error.code(), "dead-letter-not-found"),
        }
    }
    assert_eq!(taken, 1);
    stand.runtime.wait(poison, Duration::from_secs(20)).await.unwrap();
    assert!(letters().await.is_empty());
    let audited = stand.audited().await;
    assert_eq!(
        audited
            .iter()
            .filter(|action| *action == "DeadLetterReplayRequested")
            .count(),
        1
    );
}

#[tokio::test(start_paused = true)]
async fn b06_what_failed_rests_for_a_second_before_it_is_tried_or_put_aside_again() {
    let (_pace, _stepping) = simulated();
    let (stand, store, poison) = poisoned().await;
    let letters = async || stand.runtime.dead_letters(Page::first(10)).await.unwrap().len();
    stand.runtime.resume("op").await.unwrap();
    tokio::time::sleep(ms(999)).await;
    assert_eq!((store.failed(), letters().await), (1, 0));
    // Now it cannot be put aside either.
    let broken = Error::new(ErrorKind::Internal, "this one cannot be written");
    store.fail_commits(move |commit| {
        let is_bad = |write: &Write| match write {
            Write::UpdateInstance(update) => update.key == poison,
            Write::AddDeadLetter(_) => true,
            _ => false,
        };
        commit.writes.iter().any(is_bad).then(|| broken.clone())
    });
    tokio::time::sleep(ms(2)).await;
    assert_eq!(
        (store.failed(), letters().await),
        (3, 0),
        "its last attempt, and the letter"
    );
    tokio::time::sleep(ms(998)).await;
    assert_eq!(store.failed(), 3);
    tokio::time::sleep(ms(2)).await;
    assert_eq!(store.failed(), 5);
    store.mend();
    tokio::time::sleep(ms(1_000)).await;
    assert_eq!(letters().await, 0, "what works again is not put aside");
    stand.runtime.wait(poison, Duration::from_secs(20)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn b06_case_122_an_outage_of_the_store_kills_no_stimulus() {
    let store = faulty();
    let options = Options {
        stimulus_attempts: 1,
        ..quick()
    };
    let stand = stand_on(store.clone(), ManualClock::new(BEGINNING), |b| b.options(options)).await;
    stand.deploy(noop("n")).await;
    stand.runtime.pause(None, None, "op").await.unwrap();
    let queued = stand.start("n", "{}").await.instance;
    store.fail_all(unreachable());
    stand.runtime.resume("op").await.unwrap();
    eventually("it has failed", async || store.failed() > 1).await;
    store.mend();
    stand.runtime.wait(queued, Duration::from_secs(20)).await.unwrap();
    assert!(
        stand
            .runtime
            .dead_letters(Page::first(1))
            .await
            .unwrap()
            .is_empty()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn b08_the_same_key_twice_is_one_instance_also_after_its_end_and_a_restart() {
    for (store, _folder) in stores() {
        let clock = ManualClock::new(BEGINNING);
        let stand = stand_on(store.clone(), clock.clone(), |b| b).await;
        stand.deploy(noop("n")).await;
        let mut request = StartRequest::latest("n");
        request.idempotency_key = Some("order-7".into());
        let first = stand.runtime.start(request.clone()).await.unwrap();
        stand
            .runtime
            .wait(first.instance, Duration::from_secs(20))
            .await
            .unwrap();
        let again = stand.runtime.start(request.clone()).await.unwrap();
        assert_eq!(
            (again.instance, again.sub_status),
            (first.instance, SubStatus::Finished)
        );
        stand.runtime.drain(DOWN).await;
        let next = stand_on(store, clock, |b| b).await;
        let again = next.runtime.start(request).await.unwrap();
        assert_eq!(
            (again.instance, again.sub_status),
            (first.instance, SubStatus::Finished)
        );
        assert_eq!(
            next.runtime
                .instances(InstanceFilter::default(), Page::first(10))
                .await
                .unwrap()
                .len(),
            1
        );
        next.runtime.drain(DOWN).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn b08_another_key_or_another_tenant_is_another_instance() {
    for (store, _folder) in stores() {
        let stand = stand_on(store, ManualClock::new(BEGINNING), |b| b).await;
        for tenant in [None, Some("b".to_owned())] {
            let deployed = stand.runtime.deploy(vec![noop("n")], tenant, "test").await;
            deployed.unwrap();
        }
        let start = async |key: &str, tenant: Option<&str>| {
            let mut request = StartRequest::latest("n");
            request.idempotency_key = Some(key.into());
            request.tenant = tenant.map(str::to_owned);
            stand.runtime.start(request).await.unwrap().instance
        };
        let first = start("order-7", None).await;
        let others = [start("order-8", None).await, start("order-7", Some("b")).await];
        assert!(others[0] != others[1] && !others.contains(&first));
        assert_eq!(start("order-8", None).await, others[0]);
        assert_eq!(start("order-7", Some("b")).await, others[1]);
        stand.runtime.drain(DOWN).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn case_107_jobs_leased_for_a_poll_that_hung_up_go_back_at_once() {
    let store = faulty();
    let stand = stand_on(store.clone(), ManualClock::new(BEGINNING), |b| b).await;
    stand
        .deploy(line("pays", &[("work", task("work", "pay", &[]))]))
        .await;
    let instance = stand.start("pays", "{}").await.instance;
    stand.idle().await;
    let job = stand.runtime.instance(instance).await.unwrap().waiting_for[0].element_instance_key;
    let retries = store.job(job).unwrap().unwrap().retries;
    for _ in 0..3 {
        store.hang();
        let mut poll = Box::pin(stand.runtime.activate_jobs(jobs("pay", Duration::from_secs(60))));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        while store.held() == 0 {
            assert!(poll.as_mut().poll(&mut context).is_pending());
        }
        drop(poll);
        store.mend();
        let row = store.job(job).unwrap().unwrap();
        assert_eq!(
            (row.lease_token, row.retries),
            (None, retries),
            "no try is used up"
        );
    }
    let taken = stand
        .runtime
        .activate_jobs(jobs("pay", Duration::ZERO))
        .await
        .unwrap();
    assert_eq!(taken.len(), 1);
    // What has arrived is the worker's own.
    let done = stand
        .runtime
        .complete_job(taken[0].job, &taken[0].lease_token, Variables::new())
        .await;
    done.unwrap();
    stand
        .runtime
        .wait(instance, Duration::from_secs(20))
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn case_057_a_worker_that_outlived_the_server_completes_what_it_holds() {
    for (store, _folder) in stores() {
        let clock = ManualClock::new(BEGINNING);
        let stand = stand_on(store.clone(), clock.clone(), |b| b).await;
        stand
            .deploy(line("pays", &[("work", task("work", "pay", &[]))]))
            .await;
        let instance = stand.start("pays", "{}").await.instance;
        stand.idle().await;
        let leased = stand
            .runtime
            .activate_jobs(jobs("pay", Duration::ZERO))
            .await
            .unwrap();
        stand.runtime.drain(DOWN).await;
        clock.advance(30_000);
        let next = stand_on(store, clock, |b| b).await;
        let again = next
            .runtime
            .activate_jobs(jobs("pay", Duration::ZERO))
            .await
            .unwrap();
        assert!(again.is_empty(), "it is not handed out a second time");
        let job = &leased[0];
        next.runtime
            .complete_job(job.job, &job.lease_token, Variables::new())
            .await
            .unwrap();
        next.runtime
            .wait(instance, Duration::from_secs(20))
            .await
            .unwrap();
        next.runtime.drain(DOWN).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn case_129_case_130_what_was_cancelled_is_cancelled_after_a_restart_too() {
    for (store, _folder) in stores() {
        let clock = ManualClock::new(BEGINNING);
        let impatient = Options {
            cancel_patience: Duration::from_millis(1),
            ..quick()
        };
        let stand = stand_on(store.clone(), clock.clone(), |b| b.options(impatient)).await;
        stand.deploy(slow("deaf", "demo.stubborn", "PT1H")).await;
        let key = stand.start("deaf", "{}").await.instance;
        stand.runtime.cancel(key, None, "op").await.unwrap();
        stand.idle().await;
        // Its place is free. Killed with the step still running.
        let next = stand_on(store, clock, |b| b).await;
        let detail = next.runtime.instance(key).await.unwrap();
        assert_eq!(detail.row.sub_status, SubStatus::Cancelled);
        assert!(next.listed(SubStatus::Executing).await.is_empty());
        next.runtime.drain(DOWN).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn case_131_a_cancelled_run_gives_its_place_to_the_next() {
    let options = Options {
        max_live_cycles: 1,
        ..quick()
    };
    let stand = stand_on(Arc::new(MemoryStore::new()), ManualClock::new(BEGINNING), |b| {
        b.options(options)
    })
    .await;
    stand.deploy(slow("slow", "demo.sleep", "PT1H")).await;
    stand.deploy(noop("n")).await;
    let first = stand.start("slow", "{}").await.instance;
    let second = stand.start("n", "{}").await;
    assert_eq!(second.sub_status, SubStatus::Pending, "one place, one cycle");
    stand.runtime.cancel(first, None, "op").await.unwrap();
    stand
        .runtime
        .wait(second.instance, Duration::from_secs(20))
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn case_069_jobs_fetched_while_the_gate_closed_are_handed_back() {
    let store = faulty();
    let stand = stand_on(store.clone(), ManualClock::new(BEGINNING), |b| b).await;
    stand
        .deploy(line("pays", &[("work", task("work", "pay", &[]))]))
        .await;
    let instance = stand.start("pays", "{}").await.instance;
    stand.idle().await;
    let job = stand.runtime.instance(instance).await.unwrap().waiting_for[0].element_instance_key;
    store.hang();
    let runtime = stand.runtime.clone();
    let poll =
        tokio::spawn(async move { runtime.activate_jobs(jobs("pay", Duration::from_millis(1))).await });
    eventually("the lease waits for the store", async || store.held() > 0).await;
    stand.runtime.pause(None, None, "op").await.unwrap();
    store.mend();
    assert!(
        poll.await.unwrap().unwrap().is_empty(),
        "no worker of a paused runtime holds a job"
    );
    let is_back = async || {
        store
            .job(job)
            .unwrap()
            .is_some_and(|row| row.lease_token.is_none())
    };
    eventually("it is handed back", is_back).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn case_056_a_report_under_a_stale_lease_changes_nothing() {
    for (store, _folder) in stores() {
        let stand = stand_on(store, ManualClock::new(BEGINNING), |b| b).await;
        stand
            .deploy(line("pays", &[("work", task("work", "pay", &[]))]))
            .await;
        let instance = stand.start("pays", "{}").await.instance;
        stand.idle().await;
        let slow = stand
            .runtime
            .activate_jobs(jobs("pay", Duration::ZERO))
            .await
            .unwrap()
            .remove(0);
        stand.clock.advance(61_000);
        let quick = stand
            .runtime
            .activate_jobs(jobs("pay", Duration::ZERO))
            .await
            .unwrap()
            .remove(0);
        let fail = || {
            stand
                .runtime
                .fail_job(slow.job, &slow.lease_token, "late".into(), Some(0), None)
        };
        assert_eq!(fail().await.unwrap_err().code(), "stale-lease");
        let done = Variables::parse(r#"{"by": "quick"}"#).unwrap();
        stand
            .runtime
            .complete_job(quick.job, &quick.lease_token, done)
            .await
            .unwrap();
        let ended = stand
            .runtime
            .wait(instance, Duration::from_secs(20))
            .await
            .unwrap();
        assert_eq!(fail().await.unwrap_err().code(), "job-not-found");
        let late = stand
            .runtime
            .complete_job(slow.job, &slow.lease_token, Variables::new())
            .await;
        assert_eq!(late.unwrap_err().code(), "job-not-found");
        assert_eq!(ended.variables.unwrap().to_json(), r#"{"by":"quick"}"#);
        let row = stand.runtime.instance(instance).await.unwrap().row;
        assert_eq!((row.sub_status, row.incident_count), (SubStatus::Finished, 0));
        stand.runtime.drain(DOWN).await;
    }
}

/// Notes the job of each of its runs.
struct Notes(Arc<parking_lot::Mutex<Vec<u64>>>);

impl tidegate::activity::Activity for Notes {
    fn run(&self, context: tidegate::activity::ActivityContext) -> tidegate::activity::ActivityFuture {
        self.0.lock().push(context.job.get());
        Box::pin(std::future::ready(Ok(Variables::new())))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn case_036_a_step_whose_save_failed_runs_again_under_the_same_key() {
    let store = faulty();
    let runs = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let notes = Arc::new(Notes(runs.clone()));
    let stand = stand_on(store.clone(), ManualClock::new(BEGINNING), |b| {
        b.activity("notes", notes)
    })
    .await;
    stand
        .deploy(line(
            "n",
            &[
                ("work", task("work", "notes", &[])),
                ("then", task("then", "pay", &[])),
            ],
        ))
        .await;
    // The commit that follows the step fails: the one that opens the next job.
    let opens = |commit: &Commit| {
        commit
            .writes
            .iter()
            .any(|write| matches!(write, Write::OpenJob(_)))
    };
    store.fail_commits(move |commit| opens(commit).then(unreachable));
    let key = stand.start("n", "{}").await.instance;
    eventually("the save fails", async || store.failed() > 0).await;
    let detail = stand.runtime.instance(key).await.unwrap();
    assert!(
        detail.tokens.iter().all(|token| token.element_id != "then"),
        "the state claims nothing that is not saved"
    );
    store.mend();
    stand
        .until(key, |d| d.tokens.iter().any(|token| token.element_id == "then"))
        .await;
    let runs = runs.lock().clone();
    assert!(
        runs.len() >= 2 && runs.iter().all(|job| *job == runs[0]),
        "{runs:?}"
    );
    assert_eq!(
        stand
            .events(key)
            .await
            .iter()
            .filter(|e| *e == "JobCompleted work")
            .count(),
        1
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn case_125_awkward_payloads_end_in_a_result_or_a_refusal() {
    for (store, _folder) in stores() {
        let stand = stand_on(store, ManualClock::new(BEGINNING), |b| b).await;
        stand
            .deploy(line("pays", &[("work", task("work", "pay", &[]))]))
            .await;
        for refused in ["[1]", "7", r#"{"a": "#, "\u{0}"] {
            assert!(Variables::parse(refused).is_err(), "{refused:?}");
        }
        let large = format!(r#"{{"large": "{}"}}"#, "x".repeat(5 << 20));
        for taken in [
            r#"{"null": "a\u0000b"}"#,
            r#"{"deep": [[[[{"a": [null]}]]]]}"#,
            &large,
        ] {
            let instance = stand.start("pays", "{}").await.instance;
            stand.idle().await;
            let job = stand
                .runtime
                .activate_jobs(jobs("pay", Duration::ZERO))
                .await
                .unwrap()
                .remove(0);
            let output = Variables::parse(taken).unwrap();
            stand
                .runtime
                .complete_job(job.job, &job.lease_token, output.clone())
                .await
                .unwrap();
            let ended = stand
                .runtime
                .wait(instance, Duration::from_secs(20))
                .await
                .unwrap();
            assert_eq!(ended.variables.unwrap().to_json(), output.to_json());
        }
        stand.runtime.drain(DOWN).await;
    }
}

// --- recovery ---

#[tokio::test(flavor = "multi_thread")]
async fn case_039_case_050_case_051_recovery_holds_up_nothing_and_comes_in_portions() {
    let inner: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let clock = ManualClock::new(BEGINNING);
    let keys = cut(&inner, &clock, 100).await;
    let store = Arc::new(FaultyStore::new(inner));
    store.hang();
    let options = Options {
        recovery_batch: 10,
        ..quick()
    };
    let next = stand_on(store.clone(), clock, |b| b.options(options)).await;
    // The store takes no commit, and yet the runtime is there: recovery goes on behind it.
    assert_eq!(
        next.runtime.status().await.unwrap().interrupted_instance_count,
        100
    );
    eventually("the first portion is under way", async || store.held() > 0).await;
    for _ in 0..100 {
        assert!(next.runtime.quiescence().live() <= 10, "not all at once");
        tokio::task::yield_now().await;
    }
    store.mend();
    eventually("all are back", async || {
        next.listed(SubStatus::Executing).await.len() == keys.len()
    })
    .await;
    next.runtime.drain(DOWN).await;
}

async fn cut(store: &Arc<dyn Store>, clock: &ManualClock, count: usize) -> Vec<InstanceKey> {
    let stand = stand_on(store.clone(), clock.clone(), |b| b.options(quick())).await;
    stand.deploy(slow("slow", "demo.sleep", "PT1H")).await;
    let start = |runtime: tidegate::Runtime| async move { runtime.start(StartRequest::latest("slow")).await };
    let starts: Vec<_> = (0..count)
        .map(|_| tokio::spawn(start(stand.runtime.clone())))
        .collect();
    let mut keys = Vec::new();
    for started in starts {
        keys.push(started.await.unwrap().unwrap().instance);
    }
    stand.runtime.drain(DOWN).await;
    keys.sort();
    keys
}

#[tokio::test(flavor = "multi_thread")]
async fn r02_one_ten_a_hundred_a_thousand_all_come_back() {
    for (store, _folder) in stores() {
        let clock = ManualClock::new(BEGINNING);
        let mut keys = Vec::new();
        // What came back is cut again and comes back again, with more.
        for more in [1, 9, 90, 900] {
            keys.extend(cut(&store, &clock, more).await);
            let began = Instant::now();
            let next = stand_on(store.clone(), clock.clone(), |b| b.options(quick())).await;
            let is_back = async || next.listed(SubStatus::Executing).await.len() == keys.len();
            eventually("all are back", is_back).await;
            let took = began.elapsed();
            println!("{} came back in {took:?}", keys.len());
            let mut back = next.listed(SubStatus::Executing).await;
            back.sort();
            keys.sort();
            assert_eq!(back, keys);
            next.runtime.drain(DOWN).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn r03_one_that_cannot_come_back_holds_up_no_other() {
    let inner: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let clock = ManualClock::new(BEGINNING);
    let keys = cut(&inner, &clock, 5).await;
    let store = Arc::new(FaultyStore::new(inner));
    let bad = keys[2];
    store.fail_commits(move |commit| {
        let is_bad = |write: &Write| matches!(write, Write::UpdateInstance(update) if update.key == bad);
        commit
            .writes
            .iter()
            .any(is_bad)
            .then(|| Error::new(ErrorKind::Damaged, "this row is damaged"))
    });
    let next = stand_on(store, clock, |b| b.options(quick())).await;
    eventually("the others are back", async || {
        next.listed(SubStatus::Executing).await.len() == 4
    })
    .await;
    assert_eq!(
        next.listed(SubStatus::Interrupted).await,
        [bad],
        "it is still on the list"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn r04_r08_r12_case_040_only_what_was_cut_is_taken_and_nothing_at_rest() {
    for (store, _folder) in stores() {
        let clock = ManualClock::new(BEGINNING);
        let stand = stand_on(store.clone(), clock.clone(), |b| b.options(quick())).await;
        stand.deploy(waits_for_message("waits", 1)).await;
        stand.deploy(noop("n")).await;
        stand.deploy(slow("slow", "demo.sleep", "PT1H")).await;
        let mut waiting = Vec::new();
        for n in 0..50 {
            waiting.push(
                stand
                    .start("waits", &format!(r#"{{"key": "k{n}"}}"#))
                    .await
                    .instance,
            );
        }
        stand.run("n", "{}").await;
        let cancelled = stand.start("slow", "{}").await.instance;
        stand.runtime.cancel(cancelled, None, "op").await.unwrap();
        let interrupted = stand.start("slow", "{}").await.instance;
        stand.idle_but(1).await;
        stand.runtime.drain(DOWN).await;
        assert_eq!(stand.listed(SubStatus::Interrupted).await, [interrupted]);
        let revisions = |stand: &Stand| {
            let rows = stand
                .store
                .instances(&InstanceFilter::default(), Page::first(1_000))
                .unwrap();
            rows.into_iter()
                .filter(|row| row.key != interrupted)
                .map(|row| row.revision)
                .collect::<Vec<_>>()
        };
        let before = revisions(&stand);
        let mut last = stand;
        for _ in 0..3 {
            let next = stand_on(store.clone(), clock.clone(), |b| b.options(quick())).await;
            next.until(interrupted, |d| d.row.sub_status == SubStatus::Executing)
                .await;
            assert_eq!(
                next.runtime.status().await.unwrap().stimulus_queue.depth,
                0,
                "case 40: no wake-ups pile up"
            );
            next.runtime.drain(DOWN).await;
            last = next;
        }
        assert_eq!(revisions(&last), before, "nothing at rest was touched");
        assert_eq!(last.listed(SubStatus::Suspended).await.len(), waiting.len());
    }
}

impl Stand {
    async fn idle_but(&self, count: u64) {
        eventually("the others rest", async || {
            self.runtime.quiescence().live() == count
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn r07_r13_the_record_stays_in_the_history_and_the_tenant_with_its_instance() {
    let stand = stand().await;
    stand
        .runtime
        .deploy(
            vec![slow("slow", "demo.sleep", "PT1H")],
            Some("acme".into()),
            "test",
        )
        .await
        .unwrap();
    let mut request = StartRequest::latest("slow");
    request.tenant = Some("acme".into());
    let key = stand.runtime.start(request).await.unwrap().instance;
    stand.runtime.force_drain(Some("now".into()), "op").await.unwrap();
    let next = stand_on(stand.store.clone(), stand.clock.clone(), |b| b).await;
    let detail = next
        .until(key, |d| d.row.sub_status == SubStatus::Executing)
        .await;
    assert_eq!(&*detail.row.tenant, "acme");
    let of = |tenant: &str| InstanceFilter {
        tenant: Some(tenant.into()),
        ..Default::default()
    };
    assert_eq!(
        next.runtime
            .instances(of("acme"), Page::first(10))
            .await
            .unwrap()
            .len(),
        1
    );
    assert!(
        next.runtime
            .instances(of("<default>"), Page::first(10))
            .await
            .unwrap()
            .is_empty()
    );
    next.runtime.cancel(key, None, "op").await.unwrap();
    let events = next.events(key).await;
    let at = |event: &str| events.iter().position(|e| e.starts_with(event)).unwrap();
    assert!(at("WorkflowInterrupted") < at("InstanceCancelled"), "{events:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn case_088_a_timer_that_fell_due_while_nobody_ran_fires_once() {
    for (store, _folder) in stores() {
        let clock = ManualClock::new(BEGINNING);
        let stand = stand_on(store.clone(), clock.clone(), |b| b).await;
        stand.deploy(waits_for_timer("naps", "PT10S")).await;
        let key = stand.start("naps", "{}").await.instance;
        stand.runtime.drain(DOWN).await;
        clock.advance(60_000);
        let next = stand_on(store, clock, |b| b).await;
        next.runtime.wait(key, Duration::from_secs(20)).await.unwrap();
        assert_eq!(
            next.events(key)
                .await
                .iter()
                .filter(|e| e.starts_with("TimerFired"))
                .count(),
            1
        );
        next.runtime.drain(DOWN).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn case_065_a_thousand_pauses_and_resumes_lose_nothing_and_keep_the_order() {
    const ROUNDS: usize = 1_000;
    let stand = stand().await;
    stand.deploy(waits_for_message("waits", 500)).await;
    stand.deploy(waits_for_timer("naps", "PT0.01S")).await;
    stand.deploy(noop("n")).await;
    stand
        .deploy(line("pays", &[("work", task("work", "pay", &[]))]))
        .await;
    let waiting = stand.start("waits", r#"{"key": "k"}"#).await.instance;
    let runtime = stand.runtime.clone();
    let toggle = tokio::spawn(async move {
        for _ in 0..ROUNDS {
            runtime.pause(None, None, "op").await.unwrap();
            runtime.idle().await;
            for _ in 0..3 {
                assert_eq!(
                    runtime.quiescence().live(),
                    0,
                    "a cycle began while the gate was closed"
                );
                tokio::task::yield_now().await;
            }
            runtime.resume("op").await.unwrap();
        }
    });
    let worker = stand.runtime.clone();
    let working = tokio::spawn(async move {
        loop {
            let Ok(leased) = worker.activate_jobs(jobs("pay", Duration::from_secs(5))).await else {
                return;
            };
            for job in leased {
                worker
                    .complete_job(job.job, &job.lease_token, Variables::new())
                    .await
                    .unwrap();
            }
        }
    });
    let mut started = Vec::new();
    let mut published = 0;
    while published < 500 || !toggle.is_finished() {
        if published < 500 {
            stand
                .publish("go", "k", &format!(r#"{{"n": {published}}}"#))
                .await;
            published += 1;
        }
        if started.len() < 300 {
            for process in ["n", "naps", "pays"] {
                started.push(stand.start(process, "{}").await.instance);
            }
        }
        stand.clock.advance(5);
        tokio::task::yield_now().await;
    }
    toggle.await.unwrap();
    stand.clock.advance(1_000);
    let ended = stand
        .runtime
        .wait(waiting, Duration::from_secs(30))
        .await
        .unwrap();
    assert_eq!(ended.variables.unwrap().get("n").unwrap().text(), "499");
    let items = stand.runtime.history(waiting, 0, 1_000_000).await.unwrap();
    let order = items.iter().filter(|item| item.event == "MessageCorrelated");
    let order: Vec<String> = order
        .filter_map(|item| Some(item.element_id.as_ref()?.to_string()))
        .collect();
    assert_eq!(order, (0..500).map(|n| format!("catch{n}")).collect::<Vec<_>>());
    for instance in started {
        stand
            .runtime
            .wait(instance, Duration::from_secs(30))
            .await
            .unwrap();
    }
    working.abort();
    assert_eq!(stand.runtime.status().await.unwrap().stimulus_queue.depth, 0);
}
