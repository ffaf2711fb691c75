//! Work that was under way when the runtime cut it, or when the process went away: each activity says what becomes of it.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use support::{BEGINNING, Stand, eventually, faulty, flow, process, stand_on, unreachable};
use tidegate::activity::{Activity, ActivityContext, ActivityError, ActivityFuture};
use tidegate::api::Resource;
use tidegate::clock::ManualClock;
use tidegate::model::{InstanceKey, SubStatus, Variables};
use tidegate::status::DrainTrigger;
use tidegate::store::memory::MemoryStore;
use tidegate::store::{Store, Write};
use tidegate::{Builder, Options};

/// An activity that counts how often it begins, and ends when it is let go or told to stop.
struct Step {
    begun: AtomicUsize,
    go: tokio::sync::Semaphore,
}

impl Step {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            begun: AtomicUsize::new(0),
            go: tokio::sync::Semaphore::new(0),
        })
    }

    /// Whoever has begun may end, also a handler of a generation that is fenced.
    fn let_go(&self) {
        self.go.add_permits(10);
    }

    fn begun(&self) -> usize {
        self.begun.load(Ordering::SeqCst)
    }
}

/// The handler: tests keep the step, every generation has a handler of its own on it.
struct Handler(Arc<Step>);

impl Activity for Handler {
    fn run(&self, context: ActivityContext) -> ActivityFuture {
        let step = self.0.clone();
        step.begun.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move {
            tokio::select! {
                permit = step.go.acquire() => permit.map_err(|_| ActivityError::Stopped)?.forget(),
                () = context.stop.stopped() => return Err(ActivityError::Stopped),
            }
            Ok(Variables::new())
        })
    }
}

/// How a policy is written.
#[derive(Clone, Copy)]
enum Written {
    Nowhere,
    Attribute(&'static str),
    Property(&'static str),
}

fn step(id: &str, policy: Written) -> String {
    let work = format!(r#"<zeebe:taskDefinition type="{id}"/>"#);
    match policy {
        Written::Nowhere => {
            format!(
                r#"<bpmn:serviceTask id="{id}"><bpmn:extensionElements>{work}</bpmn:extensionElements></bpmn:serviceTask>"#
            )
        }
        Written::Attribute(policy) => {
            format!(
                r#"<bpmn:serviceTask id="{id}" tidegate:interrupted="{policy}"><bpmn:extensionElements>{work}</bpmn:extensionElements></bpmn:serviceTask>"#
            )
        }
        Written::Property(policy) => {
            format!(
                r#"<bpmn:serviceTask id="{id}"><bpmn:extensionElements>{work}<zeebe:properties><zeebe:property name="tidegate:interrupted" value="{policy}"/></zeebe:properties></bpmn:extensionElements></bpmn:serviceTask>"#
            )
        }
    }
}

/// Start, `first`, `work`, end; an error `interrupted` at `work` leads to `mended`, where one is caught.
fn model(policy: Written, is_caught: bool) -> Resource {
    let mut body = String::from(r#"<bpmn:startEvent id="start"/><bpmn:endEvent id="end"/>"#);
    body.push_str(&step("first", Written::Nowhere));
    body.push_str(&step("work", policy));
    for (from, to) in [("start", "first"), ("first", "work"), ("work", "end")] {
        body.push_str(&flow(from, to));
    }
    if is_caught {
        body.push_str(
            r#"<bpmn:boundaryEvent id="caught" attachedToRef="work"><bpmn:errorEventDefinition errorRef="e"/></bpmn:boundaryEvent>
            <bpmn:endEvent id="mended"/>"#,
        );
        body.push_str(&flow("caught", "mended"));
    }
    let error = r#"<bpmn:error id="e" errorCode="interrupted"/>"#;
    support::process_with("p", error, &body)
}

/// One generation after another on one store.
struct Generations {
    store: Arc<dyn Store>,
    clock: ManualClock,
    first: Arc<Step>,
    work: Arc<Step>,
}

impl Generations {
    fn on(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            clock: ManualClock::new(BEGINNING),
            first: Step::new(),
            work: Step::new(),
        }
    }

    fn new() -> Self {
        Self::on(Arc::new(MemoryStore::new()))
    }

    async fn next(&self) -> Stand {
        let handlers = |builder: Builder| {
            let options = Options {
                owners: 2,
                drain_deadline: Duration::from_millis(20),
                ..Options::default()
            };
            builder
                .options(options)
                .activity("first", Arc::new(Handler(self.first.clone())))
                .activity("work", Arc::new(Handler(self.work.clone())))
        };
        stand_on(self.store.clone(), self.clock.clone(), handlers).await
    }

    /// A generation with one instance whose `work` has begun.
    async fn at_work(&self, model: Resource) -> (Stand, InstanceKey) {
        let stand = self.next().await;
        stand.deploy(model).await;
        self.first.go.add_permits(1);
        let key = stand.start("p", "{}").await.instance;
        self.work_begins(1).await;
        (stand, key)
    }

    async fn work_begins(&self, times: usize) {
        eventually("the work begins", async || self.work.begun() >= times).await;
    }
}

/// How the work was interrupted.
#[derive(Debug, Clone, Copy, PartialEq)]
enum How {
    Drain,
    Crash,
}

const BOTH: [How; 2] = [How::Drain, How::Crash];

/// Interrupts the work and gives the next generation. After a crash the one before is fenced, and must be kept.
async fn interrupt(generations: &Generations, before: &Stand, how: How) -> Stand {
    if how == How::Drain {
        before.runtime.drain(DrainTrigger::HostStopSignal).await;
    }
    generations.next().await
}

#[tokio::test(flavor = "multi_thread")]
async fn case_037_a_step_is_rerun_by_itself_where_nothing_else_is_said() {
    for how in BOTH {
        for policy in [Written::Nowhere, Written::Attribute("rerun")] {
            let generations = Generations::new();
            let (before, key) = generations.at_work(model(policy, false)).await;
            let next = interrupt(&generations, &before, how).await;
            generations.work_begins(2).await;
            generations.work.let_go();
            next.finished(key).await;
            let events = next.events(key).await;
            assert!(
                !events.contains(&"ActivityInterrupted work".to_owned()),
                "{how:?}: {events:?}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn case_037_a_step_that_asks_waits_for_a_person_with_the_reason() {
    for how in BOTH {
        for policy in [Written::Attribute("ask"), Written::Property("ask")] {
            let generations = Generations::new();
            let (before, key) = generations.at_work(model(policy, true)).await;
            let next = interrupt(&generations, &before, how).await;
            let incident = next.incident().await;
            assert_eq!(
                (incident.code.as_str(), incident.element_id.as_deref()),
                ("interrupted", Some("work")),
                "{how:?}"
            );
            assert!(incident.message.contains("was under way"), "{}", incident.message);
            next.idle().await;
            assert_eq!(generations.work.begun(), 1, "{how:?}: it is not rerun");
            assert_eq!(next.times(key, "ActivityInterrupted work").await, 1, "{how:?}");

            // Another start changes nothing: it waits for a person.
            let last = interrupt(&generations, &next, how).await;
            assert_eq!(last.incident().await.key, incident.key);
            last.runtime
                .retry_incident(incident.key, None, "op")
                .await
                .unwrap();
            generations.work_begins(2).await;
            generations.work.let_go();
            last.finished(key).await;
            assert_eq!(generations.work.begun(), 2, "{how:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn case_037_a_step_that_fails_throws_an_error_that_the_model_can_catch() {
    for how in BOTH {
        let generations = Generations::new();
        let (before, key) = generations.at_work(model(Written::Attribute("fail"), true)).await;
        let next = interrupt(&generations, &before, how).await;
        next.finished(key).await;
        assert_eq!(next.times(key, "ElementCompleted mended").await, 1, "{how:?}");
        assert_eq!(generations.work.begun(), 1, "{how:?}");

        let generations = Generations::new();
        let (before, key) = generations
            .at_work(model(Written::Attribute("fail"), false))
            .await;
        let next = interrupt(&generations, &before, how).await;
        next.until(key, |detail| detail.row.sub_status == SubStatus::Faulted)
            .await;
        next.idle().await;
        assert_eq!(generations.work.begun(), 1, "{how:?}");
    }
}

/// Ends well as soon as it is told to stop.
struct Obeys;

impl Activity for Obeys {
    fn run(&self, context: ActivityContext) -> ActivityFuture {
        Box::pin(async move {
            context.stop.stopped().await;
            Ok(Variables::new())
        })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn case_037_nobody_is_asked_about_a_step_that_had_not_begun() {
    let generations = Generations::new();
    let obeys = |builder: Builder| {
        let options = Options {
            drain_deadline: Duration::from_millis(20),
            ..Options::default()
        };
        builder
            .options(options)
            .activity("first", Arc::new(Obeys))
            .activity("work", Arc::new(Handler(generations.work.clone())))
    };
    let stand = stand_on(generations.store.clone(), generations.clock.clone(), obeys).await;
    stand.deploy(model(Written::Attribute("ask"), false)).await;
    let key = stand.start("p", "{}").await.instance;
    // The result of `first` still counts; `work` is due then, and does not begin.
    stand.runtime.drain(DrainTrigger::HostStopSignal).await;
    assert_eq!(stand.times(key, "ElementActivated work").await, 1);
    assert_eq!(generations.work.begun(), 0);

    let next = generations.next().await;
    generations.work_begins(1).await;
    generations.work.let_go();
    next.finished(key).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn case_037_a_step_whose_result_the_store_lost_asks_too() {
    let store = faulty();
    let generations = Generations::on(store.clone());
    let (stand, key) = generations.at_work(model(Written::Attribute("ask"), false)).await;
    store.fail_commits(|commit| {
        let is_journal = |write: &Write| matches!(write, Write::Journal(_));
        commit.writes.iter().any(is_journal).then(unreachable)
    });
    generations.work.let_go();
    eventually("the commit of the result fails", async || store.failed() > 0).await;
    store.mend();
    assert_eq!(stand.incident().await.code, "interrupted");
    assert_eq!(generations.work.begun(), 1);
    stand.runtime.cancel(key, None, "op").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn case_037_a_policy_that_is_none_is_refused_where_it_stands() {
    let stand = Generations::new().next().await;
    for written in [Written::Attribute("maybe"), Written::Property("")] {
        let deployed = stand.runtime.deploy(vec![model(written, true)], None, "op").await;
        let Err(tidegate::Error::NotDeployable(diagnostics)) = deployed else {
            panic!("{deployed:?}");
        };
        let [only] = diagnostics.as_slice() else {
            panic!("{diagnostics:?}");
        };
        assert_eq!(only.code, "interrupted-invalid");
        assert_eq!(only.element_id.as_deref(), Some("work"));
        assert!(only.to_string().contains("`rerun`, `ask` or `fail`"), "{only}");
    }
    let idle = process(
        "idle",
        &format!(
            r#"<bpmn:startEvent id="start"/><bpmn:userTask id="person" tidegate:interrupted="ask"/>{}"#,
            flow("start", "person")
        ),
    );
    let deployed = stand.runtime.deploy(vec![idle], None, "op").await.unwrap();
    let codes: Vec<_> = deployed.warnings.iter().map(|warning| &*warning.code).collect();
    assert_eq!(codes, ["interrupted-without-work"]);
}
