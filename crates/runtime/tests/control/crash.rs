//! A state in between does not outlive those who were to end it: the process dies between any two commits of a verb, and
//! the next one comes to an end with what it finds.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tidegate::activity::{Activity, ActivityContext, ActivityError, ActivityFuture};
use tidegate::clock::ManualClock;
use tidegate::model::{Beginning, Ending, InstanceKey, Modification, Place, SubStatus, Variables};
use tidegate::status::DrainTrigger;
use tidegate::store::faulty::FaultyStore;
use tidegate::store::{InstanceFilter, Page, Store};
use tidegate::{CancelRequest, Options};

use super::hold::held;
use crate::support::model::{call, model, work};
use crate::support::{BEGINNING, Stand, eventually, jobs, latest, line, slow, stand_on, stores, task};

const LONG: Duration = Duration::from_secs(20);

/// What is under way when the process dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verb {
    /// A call tree is cancelled, in steps.
    Cancel,
    /// A call tree is suspended.
    Suspend,
    /// It is let go, with stimuli that waited.
    Release,
    /// An incident is retried.
    Retry,
    /// Tokens are moved.
    Modify,
    /// The instance changes its version.
    Migrate,
    /// An interrupted instance is resumed by a new generation.
    Reload,
}

impl Verb {
    const ALL: [Self; 7] = [
        Self::Cancel,
        Self::Suspend,
        Self::Release,
        Self::Retry,
        Self::Modify,
        Self::Migrate,
        Self::Reload,
    ];
}

/// Fails until it is mended.
struct Broken(Arc<AtomicBool>);

impl Activity for Broken {
    fn run(&self, _: ActivityContext) -> ActivityFuture {
        let is_mended = self.0.load(Ordering::SeqCst);
        Box::pin(async move {
            match is_mended {
                true => Ok(Variables::new()),
                false => Err(ActivityError::Failed {
                    message: "broken".to_owned(),
                    retries: Some(0),
                    backoff: None,
                }),
            }
        })
    }
}

async fn generation(store: Arc<dyn Store>, clock: &ManualClock, mended: &Arc<AtomicBool>) -> Stand {
    let (clock, broken) = (clock.clone(), Arc::new(Broken(mended.clone())));
    let options = Options {
        owners: 2,
        drain_deadline: Duration::from_millis(10),
        ..Options::default()
    };
    stand_on(store, clock, |builder| {
        builder.options(options).activity("broken", broken)
    })
    .await
}

fn steps(ids: &[&str]) -> tidegate::api::Resource {
    let tasks: Vec<(&str, String)> = ids.iter().map(|id| (*id, task(id, id, &[]))).collect();
    line("steps", &tasks)
}

/// What the verb needs, made by an earlier generation that ends in good order.
async fn prepare(verb: Verb, stand: &Stand) -> InstanceKey {
    match verb {
        Verb::Cancel | Verb::Suspend | Verb::Release => {
            // More tokens than are ended with one commit.
            let tokens = if verb == Verb::Cancel { 1_100 } else { 3 };
            stand
                .deploy(line("inner", &[("pay", task("pay", "pay", &[]))]))
                .await;
            let body = format!(
                r#"<startEvent id="s"/><parallelGateway id="f"/>{}<userTask id="u"/>
                <serviceTask id="w"><extensionElements><zeebe:taskDefinition type="w"/></extensionElements>
                <multiInstanceLoopCharacteristics><loopCardinality>{tokens}</loopCardinality></multiInstanceLoopCharacteristics></serviceTask>"#,
                call("c", "inner"),
            );
            stand.deploy(model("outer", "", &body, "s>f>c f>u f>w")).await;
            let key = stand.start("outer", "{}").await.instance;
            stand.until(key, |d| d.waiting_for.len() == tokens + 2).await;
            eventually("the child waits", async || {
                stand.listed(SubStatus::Suspended).await.len() == 2
            })
            .await;
            if verb == Verb::Release {
                let job = stand.job("pay").await;
                let waits = stand.runtime.instance(key).await.unwrap().waiting_for;
                let person = waits.iter().find(|wait| wait.kind == "userTask").unwrap();
                assert!(stand.runtime.suspend(key, held()).await.unwrap().is_effective);
                let none = Variables::new();
                let told = stand
                    .runtime
                    .complete_job(job.job, &job.lease_token, none.clone());
                told.await.unwrap();
                let told = stand
                    .runtime
                    .complete_user_task(person.element_instance_key, none, "bob");
                told.await.unwrap();
            }
            key
        }
        Verb::Retry => {
            stand
                .deploy(line("fails", &[("work", task("work", "broken", &[]))]))
                .await;
            let key = stand.start("fails", "{}").await.instance;
            stand.incident().await;
            key
        }
        Verb::Modify | Verb::Migrate => {
            stand.deploy(steps(&["a", "b"])).await;
            let key = stand.start("steps", "{}").await.instance;
            stand.idle().await;
            stand.deploy(steps(&["z", "a", "b"])).await;
            key
        }
        Verb::Reload => {
            stand.deploy(slow("slow", "demo.sleep", "PT0.02S")).await;
            stand.deploy(slow("long", "demo.sleep", "PT1H")).await;
            let body = format!(
                r#"<startEvent id="s"/><parallelGateway id="f"/>{}{}<parallelGateway id="j"/>{}<endEvent id="e"/>"#,
                call("c", "slow"),
                call("d", "slow"),
                work("last"),
            );
            stand
                .deploy(model("calls", "", &body, "s>f>c>j f>d>j j>last>e"))
                .await;
            let key = stand.start("calls", "{}").await.instance;
            let children = async || stand.listed(SubStatus::Executing).await;
            eventually("the children work", async || !children().await.is_empty()).await;
            key
        }
    }
}

/// The verb itself. True if it was told to be done.
async fn act(verb: Verb, stand: &Stand, key: InstanceKey) -> bool {
    let runtime = &stand.runtime;
    match verb {
        Verb::Cancel => {
            let request = CancelRequest::by("op", LONG);
            runtime.ask_to_cancel(key, &request).await.is_ok()
        }
        Verb::Suspend => match runtime.suspend(key, held()).await {
            Ok(suspension) => suspension.is_effective,
            Err(_) => false,
        },
        Verb::Release => runtime.resume_instance(key, None, "op").await.is_ok(),
        Verb::Retry => {
            let rows = runtime.incidents(Default::default(), Page::first(1)).await;
            match rows.unwrap().first() {
                Some(row) => runtime.retry_incident(row.key, None, "op").await.is_ok(),
                None => true,
            }
        }
        Verb::Modify => {
            let modification = Modification {
                variables: Variables::new(),
                end: vec![Ending::Element("a".to_owned())],
                begin: vec![Beginning {
                    place: Place::Before("b".to_owned()),
                    scope: None,
                    variables: Variables::new(),
                }],
            };
            runtime.modify(key, modification, None, "op").await.is_ok()
        }
        Verb::Migrate => {
            let newest = latest("steps");
            let change = runtime.migrate(key, &newest, BTreeMap::new(), None, "op");
            change.await.is_ok()
        }
        Verb::Reload => {
            runtime.recovered().await;
            true
        }
    }
}

/// True while nothing is on its way: every instance is at rest, and nothing waits in the queue but for one that is held.
async fn is_stable(stand: &Stand) -> bool {
    let count = stand.runtime.counts().await.unwrap();
    let of = |sub_status: SubStatus| count[usize::from(sub_status.code())];
    let in_between = [
        SubStatus::Pending,
        SubStatus::Executing,
        SubStatus::Interrupted,
        SubStatus::Cancelling,
    ];
    let waits = stand.store.queue().unwrap().depth;
    in_between.into_iter().all(|state| of(state) == 0) && (waits == 0 || of(SubStatus::Held) > 0)
}

async fn rows(stand: &Stand) -> Vec<tidegate::store::InstanceRow> {
    let page = Page::first(1_000);
    stand
        .runtime
        .instances(InstanceFilter::default(), page)
        .await
        .unwrap()
}

/// Does whatever work is offered, until the instance has ended.
async fn finish(stand: &Stand, key: InstanceKey) {
    let deadline = std::time::Instant::now() + LONG;
    loop {
        for job_type in ["pay", "w", "a", "b", "z", "last"] {
            let leased = stand.runtime.activate_jobs(jobs(job_type, Duration::ZERO)).await;
            for job in leased.unwrap() {
                let none = Variables::new();
                let told = stand.runtime.complete_job(job.job, &job.lease_token, none);
                told.await.unwrap();
            }
        }
        let detail = stand.runtime.instance(key).await.unwrap();
        let person = detail.waiting_for.iter().find(|wait| wait.kind == "userTask");
        if let Some(person) = person {
            let task = person.element_instance_key;
            let told = stand.runtime.complete_user_task(task, Variables::new(), "bob");
            told.await.unwrap();
        }
        if detail.row.sub_status.is_finished() {
            assert_eq!(detail.row.sub_status, SubStatus::Finished);
            return;
        }
        assert!(std::time::Instant::now() < deadline, "{detail:?}");
        tokio::task::yield_now().await;
    }
}

/// Nobody else has to come: what the next process finds comes to an end, and asking again is fine.
async fn check(verb: Verb, stand: &Stand, key: InstanceKey, was_told: bool, point: &str) {
    stand.runtime.recovered().await;
    eventually(point, async || is_stable(stand).await).await;
    let found = rows(stand).await;
    let all: Vec<SubStatus> = found.iter().map(|row| row.sub_status).collect();
    let is_one = |state: SubStatus| all.iter().all(|other| *other == state);
    match verb {
        Verb::Cancel => {
            assert!(
                is_one(SubStatus::Cancelled) || (is_one(SubStatus::Suspended) && !was_told),
                "{point}: {all:?}"
            );
            let ended = stand
                .runtime
                .cancel_and_wait(key, CancelRequest::by("op", LONG))
                .await;
            assert_eq!(ended.unwrap().sub_status, SubStatus::Cancelled, "{point}");
            for row in &found {
                assert_eq!(stand.times(row.key, "InstanceCancelled").await, 1, "{point}");
            }
            eventually(point, async || is_stable(stand).await).await;
            for job_type in ["pay", "w"] {
                let left = stand.runtime.activate_jobs(jobs(job_type, Duration::ZERO)).await;
                assert!(left.unwrap().is_empty(), "{point}: work of it is still offered");
            }
            return;
        }
        Verb::Suspend => {
            assert!(
                is_one(SubStatus::Held) || (is_one(SubStatus::Suspended) && !was_told),
                "{point}: {all:?}"
            );
            assert!(act(verb, stand, key).await, "{point}");
            assert!(act(Verb::Release, stand, key).await, "{point}");
        }
        Verb::Release => {
            let is_done = !all.contains(&SubStatus::Held);
            assert!(
                is_done || (!was_told && is_one(SubStatus::Held)),
                "{point}: {all:?}"
            );
            assert!(act(verb, stand, key).await, "{point}");
            // What is held with it is let go behind it.
            eventually(point, async || {
                is_stable(stand).await && stand.store.queue().unwrap().depth == 0
            })
            .await;
        }
        Verb::Retry => {
            let open = found[0].incident_count;
            assert!(
                open == 0 || !was_told,
                "{point}: the retry was told and is not there"
            );
            assert!(act(verb, stand, key).await, "{point}");
        }
        Verb::Modify | Verb::Migrate => {
            let moved = match verb {
                Verb::Modify => stand.times(key, "ElementTerminated a").await == 1,
                _ => found[0].version == 2,
            };
            assert!(moved || !was_told, "{point}: it was told and is not there");
            assert_eq!(act(verb, stand, key).await, !moved, "{point}");
        }
        Verb::Reload => {
            let turns = stand.times(key, "WorkflowInterrupted").await;
            assert!(turns <= 1, "{point}: no second cut is invented");
        }
    }
    finish(stand, key).await;
    let events = stand.events(key).await;
    let ends = events
        .iter()
        .filter(|event| *event == "InstanceCompleted")
        .count();
    assert_eq!(ends, 1, "{point}");
    for job in ["work", "a", "b", "last"] {
        assert!(
            stand.times(key, &format!("JobCompleted {job}")).await <= 1,
            "{point}"
        );
    }
    eventually(point, async || is_stable(stand).await).await;
    let page = Page::first(10);
    let incidents = stand.runtime.incidents(Default::default(), page).await.unwrap();
    assert!(incidents.is_empty(), "{point}: {incidents:?}");
}

/// Kills the process after so many batches of the verb. False if it was done before.
async fn dies(verb: Verb, inner: Arc<dyn Store>, after: u64) -> bool {
    let point = format!("{verb:?}, dead after {after} batches");
    let clock = ManualClock::new(BEGINNING);
    let mended = Arc::new(AtomicBool::new(false));
    let first = generation(inner.clone(), &clock, &mended).await;
    let key = prepare(verb, &first).await;
    first.runtime.drain(DrainTrigger::HostStopSignal).await;
    assert!(first.runtime.release().await);
    mended.store(true, Ordering::SeqCst);

    let faulty = Arc::new(FaultyStore::new(inner.clone()));
    if verb == Verb::Reload {
        faulty.die_after(after);
    }
    let (store, of, flag) = (faulty.clone(), clock.clone(), mended.clone());
    let mut second = tokio::spawn(async move { generation(store, &of, &flag).await });
    let second = loop {
        if second.is_finished() || faulty.held() > 0 {
            break tokio::time::timeout(Duration::from_millis(200), &mut second)
                .await
                .ok();
        }
        tokio::task::yield_now().await;
    };
    let second = second.map(|second| Arc::new(second.unwrap()));
    let mut was_told = false;
    if let Some(second) = &second {
        if verb != Verb::Reload {
            faulty.die_after(after);
        }
        let acting = second.clone();
        let acting = tokio::spawn(async move { act(verb, &acting, key).await });
        let deadline = std::time::Instant::now() + LONG;
        while faulty.held() == 0 && !(acting.is_finished() && is_stable(second).await) {
            assert!(
                std::time::Instant::now() < deadline,
                "{point}: it neither dies nor ends"
            );
            tokio::task::yield_now().await;
        }
        was_told = acting.is_finished() && acting.await.unwrap();
    }
    let died = faulty.held() > 0;

    let next = generation(inner, &clock, &mended).await;
    check(verb, &next, key, was_told, &point).await;
    // What the dead one had on its way arrives late, and is refused.
    let before = rows(&next).await;
    faulty.mend();
    next.runtime.progress().await;
    assert_eq!(rows(&next).await, before, "{point}");
    drop(second);
    next.runtime.close().await;
    died
}

#[tokio::test(flavor = "multi_thread")]
async fn case_044_whatever_was_under_way_when_the_process_died_comes_to_an_end() {
    /// Each verb is done in fewer batches than this.
    const MOST: u64 = 60;
    for verb in Verb::ALL {
        for kind in 0..stores().len() {
            let mut points = 0;
            loop {
                let (store, _folder) = stores().swap_remove(kind);
                if !dies(verb, store, points).await {
                    break;
                }
                points += 1;
                assert!(points < MOST, "{verb:?} has no end");
            }
            println!("{verb:?} on store {kind}: the process died at {points} points");
            assert!(points > 0, "{verb:?} wrote nothing");
        }
    }
}
