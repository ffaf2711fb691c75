//! An attempt that is over does not move the flow any more, and work that two want to resume is done once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tidegate::activity::{Activity, ActivityContext, ActivityError, ActivityFuture};
use tidegate::api::LeasedJob;
use tidegate::clock::ManualClock;
use tidegate::model::{InstanceKey, SubStatus, Variables};
use tidegate::status::DrainTrigger;
use tidegate::{Error, Options, SuspendRequest};
use tokio::sync::Semaphore;

use super::hold::held;
use crate::support::{BEGINNING, Stand, eventually, flow, jobs, line, process, stand_on, stores, task};

const MINUTE: i64 = 60_000;

/// How an attempt ends.
#[derive(Debug, Clone, Copy)]
enum End {
    Completes,
    Fails,
    Throws,
}

const ENDS: [End; 3] = [End::Completes, End::Fails, End::Throws];

impl Stand {
    async fn report(&self, job: &LeasedJob, end: End, by: &str) -> Result<(), Error> {
        let result = Variables::parse(&format!(r#"{{"by": "{by}"}}"#)).unwrap();
        let (key, token) = (job.job, &job.lease_token);
        let told = match end {
            End::Completes => self.runtime.complete_job(key, token, result).await,
            End::Fails => {
                self.runtime
                    .fail_job(key, token, by.to_owned(), Some(0), None)
                    .await
            }
            End::Throws => {
                let (code, message) = ("E".to_owned(), by.to_owned());
                self.runtime
                    .throw_job_error(key, token, code, message, result)
                    .await
            }
        };
        told.map(drop)
    }

    /// The step behind the work was begun once, with what the second attempt brought, and nothing is left open.
    async fn went_on_once(&self, key: InstanceKey, case: &str) {
        self.complete("next", "{}").await;
        let ended = self.finished(key).await;
        assert_eq!(ended.variables.unwrap().to_json(), r#"{"by":"second"}"#, "{case}");
        assert_eq!(self.times(key, "ElementActivated next").await, 1, "{case}");
        assert_eq!(self.times(key, "JobCompleted work").await, 1, "{case}");
        assert_eq!(
            self.runtime.instance(key).await.unwrap().row.incident_count,
            0,
            "{case}"
        );
        assert_eq!(self.store.queue().unwrap().depth, 0, "{case}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn case_058_a_job_that_outlived_its_lease_and_its_retry_do_not_both_go_on() {
    for (store, _folder) in stores() {
        let stand = stand_on(store, ManualClock::new(BEGINNING), |b| b).await;
        let steps = [
            ("work", task("work", "work", &[])),
            ("next", task("next", "next", &[])),
        ];
        stand.deploy(line("p", &steps)).await;
        for late in ENDS {
            for is_first in [true, false] {
                let case = format!("the first attempt {late:?}, before the second: {is_first}");
                let key = stand.start("p", "{}").await.instance;
                let first = stand.job("work").await;
                stand.clock.advance(MINUTE + 5_000);
                let second = stand.job("work").await;
                assert_eq!(first.job, second.job, "{case}");
                if is_first {
                    let refused = stand.report(&first, late, "first").await.unwrap_err();
                    assert_eq!(refused.code(), "stale-lease", "{case}");
                    stand.report(&second, End::Completes, "second").await.unwrap();
                } else {
                    stand.report(&second, End::Completes, "second").await.unwrap();
                    let refused = stand.report(&first, late, "first").await.unwrap_err();
                    assert_eq!(refused.code(), "job-not-found", "{case}");
                }
                stand.went_on_once(key, &case).await;
            }
            // Both at once, while the gate is closed: what is accepted is the second's, and it stands in the queue once.
            let key = stand.start("p", "{}").await.instance;
            let first = stand.job("work").await;
            stand.clock.advance(MINUTE + 5_000);
            let second = stand.job("work").await;
            stand.runtime.pause(None, None, "op").await.unwrap();
            let (one, two) = tokio::join!(
                stand.report(&first, late, "first"),
                stand.report(&second, End::Completes, "second")
            );
            assert_eq!((one.is_ok(), two.is_ok()), (false, true));
            stand.runtime.resume("op").await.unwrap();
            stand.went_on_once(key, "both, while it is paused").await;

            // One that reports in time is the only one, however late its report is executed.
            let key = stand.start("p", "{}").await.instance;
            let only = stand.job("work").await;
            stand.runtime.pause(None, None, "op").await.unwrap();
            stand.report(&only, End::Completes, "second").await.unwrap();
            stand.clock.advance(MINUTE + 5_000);
            stand.runtime.resume("op").await.unwrap();
            stand.went_on_once(key, "reported in time").await;
            let again = stand.runtime.activate_jobs(jobs("work", Duration::ZERO)).await;
            assert!(again.unwrap().is_empty());
        }
        stand.runtime.close().await;
    }
}

/// A handler whose attempts end when they are let go, and heed nobody.
struct Attempts {
    begun: AtomicUsize,
    go: [Semaphore; 2],
    late: End,
}

struct Attempt(Arc<Attempts>);

impl Activity for Attempt {
    fn run(&self, _: ActivityContext) -> ActivityFuture {
        let attempts = self.0.clone();
        let turn = attempts.begun.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move {
            attempts.go[turn.min(1)].acquire().await.unwrap().forget();
            let by = if turn == 0 { "first" } else { "second" };
            let result = Variables::parse(&format!(r#"{{"by": "{by}"}}"#)).unwrap();
            let message = by.to_owned();
            match if turn == 0 { attempts.late } else { End::Completes } {
                End::Completes => Ok(result),
                End::Fails => Err(ActivityError::Failed {
                    message,
                    retries: Some(0),
                    backoff: None,
                }),
                End::Throws => Err(ActivityError::Error {
                    code: "E".to_owned(),
                    message,
                    variables: result,
                }),
            }
        })
    }
}

fn refused_late(stand: &Stand) -> u64 {
    let name = "tidegate_late_outcomes_refused_total";
    let figures = stand.runtime.figures();
    figures.iter().find(|figure| figure.name == name).unwrap().value
}

#[tokio::test(flavor = "multi_thread")]
async fn case_058_a_handler_that_outlived_its_timeout_and_its_retry_do_not_both_go_on() {
    let body = [
        r#"<bpmn:startEvent id="start"/><bpmn:exclusiveGateway id="again"/>"#,
        &task("work", "attempt", &[]),
        r#"<bpmn:boundaryEvent id="late" attachedToRef="work"><bpmn:timerEventDefinition><bpmn:timeDuration>PT1M</bpmn:timeDuration></bpmn:timerEventDefinition></bpmn:boundaryEvent>"#,
        &task("next", "next", &[]),
        r#"<bpmn:endEvent id="end"/>"#,
        &flow("start", "again"),
        &flow("again", "work"),
        &flow("late", "again"),
        &flow("work", "next"),
        &flow("next", "end"),
    ]
    .concat();
    for late in ENDS {
        for is_first in [true, false] {
            for (store, _folder) in stores() {
                let case = format!("the first attempt {late:?}, before the second: {is_first}");
                let attempts = Arc::new(Attempts {
                    begun: AtomicUsize::new(0),
                    go: [Semaphore::new(0), Semaphore::new(0)],
                    late,
                });
                let handler = Arc::new(Attempt(attempts.clone()));
                let stand = stand_on(store, ManualClock::new(BEGINNING), |b| {
                    b.activity("attempt", handler)
                })
                .await;
                stand.deploy(process("p", &body)).await;
                let begun = async |times| {
                    eventually(&case, async || attempts.begun.load(Ordering::SeqCst) == times).await;
                };
                let key = stand.start("p", "{}").await.instance;
                begun(1).await;
                stand.clock.advance(MINUTE + 5_000);
                begun(2).await;
                let ends_late = async || {
                    attempts.go[0].add_permits(1);
                    eventually(&case, async || refused_late(&stand) == 1).await;
                };
                if is_first {
                    ends_late().await;
                    assert_eq!(stand.times(key, "ElementActivated next").await, 0, "{case}");
                    attempts.go[1].add_permits(1);
                } else {
                    attempts.go[1].add_permits(1);
                    eventually(&case, async || {
                        stand.times(key, "ElementActivated next").await == 1
                    })
                    .await;
                    ends_late().await;
                }
                stand.went_on_once(key, &case).await;
                stand.runtime.close().await;
            }
        }
    }
}

/// Counts its runs; its first is slow.
struct Counted(Arc<AtomicUsize>);

impl Activity for Counted {
    fn run(&self, context: ActivityContext) -> ActivityFuture {
        let turn = self.0.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move {
            if turn == 0 {
                context.stop.stopped().await;
                return Err(ActivityError::Stopped);
            }
            Ok(Variables::new())
        })
    }
}

async fn generation(
    store: Arc<dyn tidegate::store::Store>,
    clock: &ManualClock,
    runs: &Arc<AtomicUsize>,
) -> Stand {
    let counted = Arc::new(Counted(runs.clone()));
    stand_on(store, clock.clone(), |builder| {
        let options = Options {
            owners: 2,
            drain_deadline: Duration::from_millis(10),
            pause_persistence: tidegate::PausePersistence::AcrossReactivations,
            ..Options::default()
        };
        builder.options(options).activity("counted", counted)
    })
    .await
}

/// An instance whose work a drain has cut, held or not, and a runtime that is paused or not.
async fn interrupted(
    store: Arc<dyn tidegate::store::Store>,
    clock: &ManualClock,
    runs: &Arc<AtomicUsize>,
    is_held: bool,
    is_paused: bool,
) -> InstanceKey {
    let first = generation(store, clock, runs).await;
    let steps = [
        ("work", task("work", "counted", &[])),
        ("next", task("next", "demo.noop", &[])),
    ];
    first.deploy(line("p", &steps)).await;
    let key = first.start("p", "{}").await.instance;
    eventually("it runs", async || runs.load(Ordering::SeqCst) == 1).await;
    if is_held {
        let request = SuspendRequest {
            wait: Duration::ZERO,
            ..held()
        };
        first.runtime.suspend(key, request).await.unwrap();
    }
    if is_paused {
        first.runtime.pause(None, None, "op").await.unwrap();
    }
    first.runtime.drain(DrainTrigger::HostStopSignal).await;
    assert!(first.runtime.release().await);
    key
}

/// Several operators resume an instance at the same time.
async fn resumed_by_many(stand: &Arc<Stand>, key: InstanceKey) -> Vec<SubStatus> {
    const OPERATORS: usize = 8;
    let one = |operator: usize| {
        let stand = stand.clone();
        tokio::spawn(async move {
            let actor = format!("operator {operator}");
            stand.runtime.resume_instance(key, None, &actor).await
        })
    };
    let mut told = Vec::new();
    for operator in (0..OPERATORS).map(one).collect::<Vec<_>>() {
        match operator.await.unwrap() {
            Ok(row) => told.push(row.sub_status),
            Err(error) => assert_eq!(error.code(), "instance-ended"),
        }
    }
    told
}

#[tokio::test(flavor = "multi_thread")]
async fn case_059_what_operators_and_recovery_resume_together_runs_once() {
    const ROUNDS: usize = 2;
    for kind in 0..stores().len() {
        for round in 0..4 * ROUNDS {
            let (is_held, is_paused) = (round % 2 == 1, round % 4 >= 2);
            let case = format!("held {is_held}, paused {is_paused}");
            let (store, _folder) = stores().swap_remove(kind);
            let (clock, runs) = (ManualClock::new(BEGINNING), Arc::new(AtomicUsize::new(0)));
            let key = interrupted(store.clone(), &clock, &runs, is_held, is_paused).await;
            let next = Arc::new(generation(store, &clock, &runs).await);
            if is_paused {
                // The gate opens while they ask.
                let opening = next.clone();
                let opened = tokio::spawn(async move { opening.runtime.resume("op").await.map(drop) });
                resumed_by_many(&next, key).await;
                opened.await.unwrap().unwrap();
            } else {
                let told = resumed_by_many(&next, key).await;
                assert!(!told.contains(&SubStatus::Held), "{case}: {told:?}");
            }
            next.finished(key).await;
            assert_eq!(runs.load(Ordering::SeqCst), 2, "{case}: cut once, run once");
            for (event, times) in [
                ("JobCompleted work", 1),
                ("ElementActivated next", 1),
                ("InstanceCompleted", 1),
                ("InstanceHeld", usize::from(is_held)),
                ("InstanceReleased", usize::from(is_held)),
                ("CrashRecovered", 0),
            ] {
                assert_eq!(next.times(key, event).await, times, "{case}: {event}");
            }
            // One of them did it, and says who; the others changed nothing.
            let audited = next.audited().await;
            let resumes = audited
                .iter()
                .filter(|action| *action == "InstanceResumeRequested");
            assert_eq!(resumes.count(), usize::from(is_held), "{case}: {audited:?}");
            next.runtime.close().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn case_059_a_retry_by_hand_beside_others_is_one_retry() {
    for (store, _folder) in stores() {
        let stand = Arc::new(stand_on(store, ManualClock::new(BEGINNING), |b| b).await);
        stand
            .deploy(line("p", &[("work", task("work", "work", &[]))]))
            .await;
        for _ in 0..20 {
            let key = stand.start("p", "{}").await.instance;
            let stuck = stand.job("work").await;
            stand.report(&stuck, End::Fails, "stuck").await.unwrap();
            let incident = stand.incident().await.key;
            let retry = |_| {
                let stand = stand.clone();
                tokio::spawn(async move { stand.runtime.retry_incident(incident, None, "op").await })
            };
            let poll = |_| {
                let stand = stand.clone();
                tokio::spawn(async move {
                    let wanted = jobs("work", Duration::from_millis(50));
                    stand.runtime.activate_jobs(wanted).await.unwrap()
                })
            };
            let (polls, retries): (Vec<_>, Vec<_>) =
                ((0..4).map(poll).collect(), (0..8).map(retry).collect());
            let mut done = 0;
            for retry in retries {
                match retry.await.unwrap() {
                    Ok(_) => done += 1,
                    Err(error) => {
                        assert_eq!(error.code(), "incident-not-found", "somebody else has retried it")
                    }
                }
            }
            assert_eq!(done, 1);
            let mut handed_out = Vec::new();
            for poll in polls {
                handed_out.extend(poll.await.unwrap());
            }
            if handed_out.is_empty() {
                // They had all gone home before it was offered.
                handed_out.push(stand.job("work").await);
            }
            assert_eq!(handed_out.len(), 1);
            let late = stand.report(&stuck, End::Completes, "stuck").await;
            assert_eq!(late.unwrap_err().code(), "stale-lease");
            stand
                .report(&handed_out[0], End::Completes, "second")
                .await
                .unwrap();
            stand.finished(key).await;
            assert_eq!(stand.times(key, "JobCompleted work").await, 1);
        }
        stand.runtime.close().await;
    }
}
