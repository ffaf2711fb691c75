//! Ingress sources: their states are real, a liar is found out, and nothing of them holds up the rest.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use support::sources::{Does, TestSource};
use support::{Stand, line, message, stand, stand_with, task, waits_for_message, waits_for_timer};
use tidegate::Runtime;
use tidegate::api::StartRequest;
use tidegate::ingress::{Ingress, IngressSource, Offer, OfferFate, Transition, kit};
use tidegate::model::{SubStatus, Variables};
use tidegate::status::{DrainResult, DrainTrigger, SourceErrorKind, SourceState};

/// What is bounded has ended long before.
const PATIENCE: Duration = Duration::from_secs(60);

async fn with(sources: &[&Arc<TestSource>]) -> Stand {
    stand_with(|mut builder| {
        for source in sources {
            builder = builder.source((*source).clone());
        }
        builder
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn i01_i02_sources_are_sorted_and_a_name_is_given_once() {
    let (b, a) = (
        TestSource::new("broker.b", Does::Well).shared(),
        TestSource::new("broker.a", Does::Well).shared(),
    );
    let stand = with(&[&b, &a]).await;
    let names: Vec<String> = stand
        .runtime
        .status()
        .await
        .unwrap()
        .sources
        .into_iter()
        .map(|source| source.name)
        .collect();
    assert!(names.is_sorted(), "{names:?}");
    assert!(names.contains(&"broker.a".to_owned()) && names.contains(&"timer".to_owned()));
    let twice = Runtime::builder()
        .source(a.clone())
        .source(a)
        .start()
        .await
        .unwrap_err();
    assert_eq!(twice.code(), "duplicate-source");
    assert!(twice.to_string().contains("broker.a"), "{twice}");
}

/// Ends a pause that hangs.
type End = tokio::sync::oneshot::Sender<Result<(), String>>;

/// A source whose every transition ends when the test says how.
#[derive(Default)]
struct Stepped {
    ends: Arc<Mutex<Option<End>>>,
}

impl Stepped {
    fn transition(&self) -> Transition {
        let (sender, end) = tokio::sync::oneshot::channel();
        *self.ends.lock() = Some(sender);
        Box::pin(async move { end.await.unwrap_or_else(|_| Err("given up".to_owned())) })
    }
}

impl IngressSource for Stepped {
    fn name(&self) -> &str {
        "stepped"
    }

    fn pause(&self) -> Transition {
        self.transition()
    }

    fn resume(&self) -> Transition {
        self.transition()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn i03_every_transition_of_the_table_is_seen_and_no_other() {
    use SourceState::{PauseFailed, Paused, Pausing, ResumeFailed, Resuming, Running};
    let source = Arc::new(Stepped::default());
    let stand = stand_with(|b| b.source(source.clone())).await;
    let bad = || Err("no".to_owned());
    let steps = [
        (true, Pausing, Ok(()), Paused),
        (false, Resuming, Ok(()), Running),
        (true, Pausing, bad(), PauseFailed),
        (false, Resuming, bad(), ResumeFailed),
        (false, Resuming, Ok(()), Running),
        (true, Pausing, Ok(()), Paused),
        (false, Resuming, bad(), ResumeFailed),
        // A source that does not run is not asked to pause.
        (true, ResumeFailed, Ok(()), ResumeFailed),
    ];
    for (is_pause, meanwhile, end, afterwards) in steps {
        let runtime = stand.runtime.clone();
        let step = tokio::spawn(async move {
            match is_pause {
                true => runtime.pause(None, None, "op").await,
                false => runtime.resume("op").await,
            }
        });
        if meanwhile != afterwards {
            let is_seen = async || stand.source("stepped").await.state == meanwhile;
            support::eventually("the state on the way is seen", is_seen).await;
            let has_asked = async || source.ends.lock().is_some();
            support::eventually("it is asked", has_asked).await;
            let sender = source.ends.lock().take().unwrap();
            sender.send(end).unwrap();
        }
        step.await.unwrap().unwrap();
        let state = stand.source("stepped").await.state;
        assert_eq!(state, afterwards);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn i04_i05_i07_i11_what_fails_or_hangs_is_shown_and_holds_up_nothing() {
    let fails = TestSource::new("fails", Does::Fail).shared();
    let hanging: Vec<_> = (0..3)
        .map(|n| TestSource::new(&format!("hangs{n}"), Does::Hang).shared())
        .collect();
    let well: Vec<_> = (0..6)
        .map(|n| TestSource::new(&format!("well{n}"), Does::Well).shared())
        .collect();
    let place = Arc::new(tokio::sync::Barrier::new(3));
    let together: Vec<_> = (0..3)
        .map(|n| {
            TestSource::new(&format!("together{n}"), Does::Well)
                .meeting(&place)
                .shared()
        })
        .collect();
    let all: Vec<&Arc<TestSource>> = [&fails]
        .into_iter()
        .chain(&hanging)
        .chain(&well)
        .chain(&together)
        .collect();
    let stand = with(&all).await;
    stand.runtime.pause(None, None, "op").await.unwrap();
    let failed = stand.source("fails").await;
    assert_eq!(
        (failed.state, failed.last_error_kind),
        (SourceState::PauseFailed, Some(SourceErrorKind::Failed))
    );
    assert_eq!(failed.last_error.as_deref(), Some("the broker said no"));
    for source in &hanging {
        let status = stand.source(source.name()).await;
        assert_eq!(
            (status.state, status.last_error_kind),
            (SourceState::PauseFailed, Some(SourceErrorKind::Timeout))
        );
    }
    // All are asked at once: it takes as long as the slowest, not the sum.
    for source in well.iter().chain(&together) {
        assert_eq!(stand.source(source.name()).await.state, SourceState::Paused);
        assert_eq!(source.pauses(), 1, "d02: each is asked once");
    }
    // A success clears the error.
    stand.runtime.resume("op").await.unwrap();
    assert_eq!(stand.source("fails").await.last_error, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn i06_i08_force_stop_comes_once_with_the_time_left_and_is_bounded() {
    let stops = TestSource::new("stops", Does::Hang).forced(Does::Well).shared();
    let fails = TestSource::new("fails", Does::Hang).forced(Does::Fail).shared();
    let hangs = TestSource::new("hangs", Does::Hang).forced(Does::Hang).shared();
    let stand = with(&[&stops, &fails, &hangs]).await;
    let drain = stand.runtime.drain(DrainTrigger::HostStopSignal);
    let outcome = tokio::time::timeout(PATIENCE, drain)
        .await
        .expect("it is bounded");
    assert_eq!(outcome.overall_result, DrainResult::CompletedWithinDeadline);
    for source in [&stops, &fails, &hangs] {
        assert_eq!(source.forced.load(Ordering::SeqCst), 1, "{}", source.name());
        assert!(
            source
                .time_left
                .get()
                .is_some_and(|left| !left.is_zero() && *left <= Duration::from_secs(5))
        );
    }
    let reported = |name: &str| outcome.sources.iter().find(|source| source.name == name).unwrap();
    assert!(reported("stops").was_force_stopped);
    assert!(!reported("fails").was_force_stopped && !reported("hangs").was_force_stopped);
    // Asked for by an operator: what is stopped stays stopped, what is unknown or running is said.
    stand.runtime.force_stop_source("stops", "op").await.unwrap();
    assert_eq!(stops.forced.load(Ordering::SeqCst), 1);
    assert_eq!(
        stand
            .runtime
            .force_stop_source("nobody", "op")
            .await
            .unwrap_err()
            .code(),
        "source-not-found"
    );
    let running = support::stand().await;
    assert_eq!(
        running
            .runtime
            .force_stop_source("timer", "op")
            .await
            .unwrap_err()
            .code(),
        "not-paused"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_stops_a_paused_source_by_force_once_and_only_where_it_can_be() {
    let stops = TestSource::new("stops", Does::Well).forced(Does::Well).shared();
    let cannot = TestSource::new("cannot", Does::Well).shared();
    let stand = with(&[&stops, &cannot]).await;
    stand.runtime.pause(None, None, "op").await.unwrap();
    for name in ["stops", "stops", "cannot", "timer"] {
        stand.runtime.force_stop_source(name, "op").await.unwrap();
    }
    let forced = [&stops, &cannot].map(|source| source.forced.load(Ordering::SeqCst));
    assert_eq!(forced, [1, 0]);
    assert_eq!(
        stand.audited().await,
        ["RuntimePauseRequested", "IngressSourceForceStopRequested"],
        "what was not done is not written down"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn i04_a_source_that_panics_is_shown_with_its_last_words() {
    let panics = TestSource::new("panics", Does::Panic).shared();
    let stand = with(&[&panics]).await;
    stand.runtime.pause(None, None, "op").await.unwrap();
    let status = stand.source("panics").await;
    assert_eq!(
        (status.state, status.last_error_kind, status.last_error.as_deref()),
        (
            SourceState::PauseFailed,
            Some(SourceErrorKind::Failed),
            Some("it panicked: the broker is gone")
        )
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn i09_i10_q11_a_hundred_transitions_at_once_leave_one_state() {
    let source = TestSource::new("s", Does::Well).shared();
    let stand = with(&[&source]).await;
    let mut steps = Vec::new();
    for turn in 0..100 {
        let runtime = stand.runtime.clone();
        steps.push(tokio::spawn(async move {
            if turn % 2 == 0 {
                runtime.pause(None, None, "op").await.unwrap()
            } else {
                runtime.resume("op").await.unwrap()
            }
        }));
    }
    for step in steps {
        step.await.unwrap();
    }
    let is_paused = stand.runtime.quiescence().is_paused();
    let expected = if is_paused {
        SourceState::Paused
    } else {
        SourceState::Running
    };
    assert!(
        stand
            .runtime
            .status()
            .await
            .unwrap()
            .sources
            .iter()
            .all(|source| source.state == expected)
    );
    let audited = stand.audited().await;
    for pair in audited.windows(2) {
        assert_ne!(pair[0], pair[1], "q11: effective changes alternate: {audited:?}");
    }
    assert_eq!(audited.len() % 2 == 1, is_paused, "{audited:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn i12_case_085_a_source_that_lies_is_found_out_by_its_first_offer() {
    for (store, _folder) in support::stores() {
        let liar = TestSource::new("broker.liar", Does::Well).shared();
        let source = liar.clone();
        let clock = tidegate::clock::ManualClock::new(support::BEGINNING);
        let stand = support::stand_on(store, clock, |b| b.source(source)).await;
        stand
            .deploy(line("new", &[("t", task("t", "demo.noop", &[]))]))
            .await;
        stand.runtime.pause(None, None, "op").await.unwrap();
        assert_eq!(stand.source("broker.liar").await.state, SourceState::Paused);
        let ingress = liar.ingress.get().unwrap();

        // Accepting while paused is honest.
        let receipt = ingress
            .accept(Offer::Start(StartRequest::latest("new")))
            .await
            .unwrap();
        assert_eq!(receipt.fate, OfferFate::Accepted);
        assert_eq!(stand.source("broker.liar").await.state, SourceState::Paused);

        // Offering is not.
        let receipt = ingress
            .offer(Offer::Start(StartRequest::latest("new")))
            .await
            .unwrap();
        assert_eq!(receipt.fate, OfferFate::RefusedAndKept);
        let status = stand.source("broker.liar").await;
        assert_eq!(status.state, SourceState::PauseFailed);
        assert_eq!(
            status.last_error_kind,
            Some(SourceErrorKind::DeliveredWhilePaused)
        );
        let message = ingress
            .offer(Offer::Message(message("go", "k", "{}")))
            .await
            .unwrap();
        assert_eq!(message.fate, OfferFate::RefusedAndKept);
        let status = stand.runtime.status().await.unwrap();
        assert_eq!(
            (status.stimulus_queue.depth, status.active_execution_cycle_count),
            (3, 0)
        );
        assert_eq!(stand.listed(SubStatus::Pending).await.len(), 2, "nothing ran");

        stand.runtime.resume("op").await.unwrap();
        assert_eq!(stand.source("broker.liar").await.last_error, None);
        for instance in receipt.instances {
            let ended = stand
                .runtime
                .wait(instance, Duration::from_secs(20))
                .await
                .unwrap();
            assert_eq!(
                ended.sub_status,
                SubStatus::Finished,
                "what was kept runs after the pause"
            );
        }
        let receipt = ingress
            .offer(Offer::Start(StartRequest::latest("new")))
            .await
            .unwrap();
        assert_eq!(receipt.fate, OfferFate::Admitted);
        stand.runtime.drain(DrainTrigger::ShellDeactivation).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn i13_case_071_case_075_after_a_pause_nothing_of_any_kind_begins() {
    let broker = TestSource::new("broker.b", Does::Well).shared();
    let stand = with(&[&broker]).await;
    stand.deploy(waits_for_message("waits", 50)).await;
    stand.deploy(waits_for_timer("naps", "PT1S")).await;
    stand
        .deploy(line("pays", &[("work", task("work", "pay", &[]))]))
        .await;
    let waiting = stand.start("waits", r#"{"key": "k"}"#).await.instance;
    let napping = stand.start("naps", "{}").await.instance;
    let paying = stand.start("pays", "{}").await.instance;
    let again = stand.start("pays", "{}").await.instance;
    let leased = stand
        .runtime
        .activate_jobs(support::jobs("pay", Duration::ZERO))
        .await
        .unwrap();
    assert_eq!(leased.len(), 2);
    stand.idle().await;
    stand.runtime.pause(None, None, "op").await.unwrap();
    let before = stand.runtime.counts().await.unwrap();

    stand.clock.advance(10_000);
    stand.publish("go", "k", "{}").await;
    let job = &leased[0];
    let none = Variables::new();
    stand
        .runtime
        .complete_job(job.job, &job.lease_token, none.clone())
        .await
        .unwrap();
    stand.runtime.set_variables(again, none, "op").await.unwrap();
    stand.start("naps", "{}").await;
    broker
        .ingress
        .get()
        .unwrap()
        .accept(Offer::Message(message("go", "k", "{}")))
        .await
        .unwrap();
    assert!(
        stand
            .runtime
            .activate_jobs(support::jobs("pay", Duration::ZERO))
            .await
            .unwrap()
            .is_empty()
    );

    assert_eq!(stand.runtime.quiescence().live(), 0);
    let after = stand.runtime.counts().await.unwrap();
    assert_eq!(
        after[usize::from(SubStatus::Pending.code())],
        1,
        "the new start waits"
    );
    assert_eq!(&before[1..], &after[1..], "nothing else has moved");
    for instance in [waiting, napping, paying] {
        assert_eq!(
            stand.runtime.instance(instance).await.unwrap().row.sub_status,
            SubStatus::Suspended
        );
    }
    stand.runtime.resume("op").await.unwrap();
    stand
        .runtime
        .wait(napping, Duration::from_secs(20))
        .await
        .unwrap();
    let done = if job.instance == paying { paying } else { again };
    stand.runtime.wait(done, Duration::from_secs(20)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn i14_a_source_that_does_not_resume_is_shown_and_a_later_resume_repairs_it() {
    let bad = TestSource::new("bad", Does::Well)
        .resuming(Does::FailOnce)
        .shared();
    let good = TestSource::new("good", Does::Well).shared();
    let stand = with(&[&bad, &good]).await;
    stand.runtime.pause(None, None, "op").await.unwrap();
    stand.runtime.resume("op").await.unwrap();
    let status = stand.source("bad").await;
    assert_eq!(
        (status.state, status.last_error.as_deref()),
        (SourceState::ResumeFailed, Some("the broker said no"))
    );
    assert_eq!(stand.source("good").await.state, SourceState::Running);
    assert!(stand.runtime.quiescence().is_accepting());
    stand.runtime.resume("op").await.unwrap();
    let status = stand.source("bad").await;
    assert_eq!((status.state, status.last_error), (SourceState::Running, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn i15_a_source_registered_after_the_activation_is_told_when_it_takes_effect() {
    let stand = stand().await;
    let late = TestSource::new("late", Does::Well);
    let error = stand.runtime.register_source(&late).unwrap_err();
    assert_eq!(error.code(), "sources-are-fixed");
    assert!(error.to_string().contains("next activation"), "{error}");
}

/// An honest source: items arrive, each is offered as a message, and acknowledged when it is durable.
#[derive(Clone, Default)]
struct Honest(Arc<Inner>);

#[derive(Default)]
struct Inner {
    ingress: std::sync::OnceLock<Ingress>,
    waiting: Mutex<std::collections::VecDeque<usize>>,
    is_open: std::sync::atomic::AtomicBool,
    one_at_a_time: tokio::sync::Mutex<()>,
    arrived: AtomicUsize,
    acknowledged: AtomicUsize,
}

impl Honest {
    fn go(&self) {
        let (inner, Some(ingress)) = (self.0.clone(), self.0.ingress.get().cloned()) else {
            return;
        };
        tokio::spawn(async move {
            let _turn = inner.one_at_a_time.lock().await;
            while inner.is_open.load(Ordering::SeqCst) {
                let Some(item) = inner.waiting.lock().front().copied() else {
                    return;
                };
                let mut request = message(kit::MESSAGE, "", "{}");
                request.message_id = Some(item.to_string());
                if ingress.offer(Offer::Message(request)).await.is_ok() {
                    inner.waiting.lock().pop_front();
                    inner.acknowledged.fetch_add(1, Ordering::SeqCst);
                } else {
                    // A runtime that is gone refuses at once: without this the task would never end.
                    tokio::task::yield_now().await;
                }
            }
        });
    }
}

impl IngressSource for Honest {
    fn name(&self) -> &str {
        "broker.honest"
    }

    fn attach(&self, ingress: Ingress) {
        self.0.is_open.store(!ingress.starts_paused(), Ordering::SeqCst);
        let _ = self.0.ingress.set(ingress);
        self.go();
    }

    fn pause(&self) -> Transition {
        self.0.is_open.store(false, Ordering::SeqCst);
        let inner = self.0.clone();
        Box::pin(async move {
            // The offer in flight has ended.
            drop(inner.one_at_a_time.lock().await);
            Ok(())
        })
    }

    fn resume(&self) -> Transition {
        self.0.is_open.store(true, Ordering::SeqCst);
        self.go();
        Box::pin(std::future::ready(Ok(())))
    }
}

impl kit::Probe for Honest {
    fn source(&self) -> Arc<dyn IngressSource> {
        Arc::new(self.clone())
    }

    fn arrive(&self, count: usize) {
        let first = self.0.arrived.fetch_add(count, Ordering::SeqCst);
        self.0.waiting.lock().extend(first..first + count);
        self.go();
    }

    fn acknowledged(&self) -> usize {
        self.0.acknowledged.load(Ordering::SeqCst)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_honest_source_passes_the_kit() {
    kit::run(|| Box::new(Honest::default())).await;
}

/// One that goes on delivering whatever it says.
#[derive(Clone, Default)]
struct Liar(Honest);

impl IngressSource for Liar {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn attach(&self, ingress: Ingress) {
        self.0.attach(ingress);
    }

    fn pause(&self) -> Transition {
        Box::pin(std::future::ready(Ok(())))
    }

    fn resume(&self) -> Transition {
        self.0.resume()
    }
}

impl kit::Probe for Liar {
    fn source(&self) -> Arc<dyn IngressSource> {
        Arc::new(self.clone())
    }

    fn arrive(&self, count: usize) {
        self.0.arrive(count);
    }

    fn acknowledged(&self) -> usize {
        self.0.acknowledged()
    }
}

#[tokio::test(flavor = "multi_thread")]
#[should_panic(expected = "it delivered")]
async fn the_kit_finds_a_liar() {
    kit::run(|| Box::new(Liar::default())).await;
}
