//! Versions: which there are, which owns what starts by itself, and what becomes of instances when one goes.

mod support;

use std::time::Duration;

use support::{
    BEGINNING, Stand, eventually, faulty, line, process_with, stand, stand_on, stand_with, stores, task,
    unreachable,
};
use tidegate::api::{Definition, Resource, StartRequest};
use tidegate::clock::ManualClock;
use tidegate::model::{DefinitionKey, InstanceKey, SubStatus, Variables};
use tidegate::store::{DefinitionFilter, InstanceFilter, InstanceRow, Page};
use tidegate::unregister::{DefinitionState, LiveInstances};
use tidegate::{Error, Options};

const AMPLE: Duration = Duration::from_secs(20);

/// A process that `trigger` starts and that waits for a person. `mark` makes it another version.
fn started_by(id: &str, trigger: &str, mark: &str) -> Resource {
    let extra = r#"<bpmn:message id="m" name="go"/><bpmn:signal id="s" name="all"/>"#;
    let body = format!(
        r#"<bpmn:documentation>{mark}</bpmn:documentation><bpmn:startEvent id="start">{trigger}</bpmn:startEvent>
        <bpmn:userTask id="u"/><bpmn:sequenceFlow id="f" sourceRef="start" targetRef="u"/>"#
    );
    process_with(id, extra, &body)
}

const MESSAGE: &str = r#"<bpmn:messageEventDefinition messageRef="m"/>"#;
const SIGNAL: &str = r#"<bpmn:signalEventDefinition signalRef="s"/>"#;
const TIMER: &str = r#"<bpmn:timerEventDefinition><bpmn:timeCycle xsi:type="bpmn:tFormalExpression">R/PT5M</bpmn:timeCycle></bpmn:timerEventDefinition>"#;

async fn deployed(stand: &Stand, resource: Resource) -> (DefinitionKey, u32) {
    let deployment = stand.runtime.deploy(vec![resource], None, "test").await.unwrap();
    let definition = &deployment.definitions[0];
    (definition.definition_key, definition.version)
}

async fn rows(stand: &Stand) -> Vec<InstanceRow> {
    stand.idle().await;
    stand
        .runtime
        .instances(InstanceFilter::default(), Page::first(10_000))
        .await
        .unwrap()
}

/// The versions of all instances of a process, sorted, as soon as there are so many.
async fn versions(stand: &Stand, process_id: &str, count: usize) -> Vec<u32> {
    let found = async || {
        let rows = rows(stand).await.into_iter();
        let mut found: Vec<_> = rows
            .filter(|row| *row.process_id == *process_id)
            .map(|row| row.version)
            .collect();
        found.sort_unstable();
        found
    };
    eventually("the instances are there", async || found().await.len() >= count).await;
    found().await
}

async fn starters(stand: &Stand) -> Vec<(String, u32, String, String, String)> {
    let starters = stand.runtime.starters().await.unwrap();
    let mut lines: Vec<_> = starters
        .into_iter()
        .map(|s| (s.process_id, s.version, s.start_element_id, s.kind, s.trigger))
        .collect();
    lines.sort();
    lines
}

fn starter(id: &str, version: u32, kind: &str, trigger: &str) -> (String, u32, String, String, String) {
    (id.into(), version, "start".into(), kind.into(), trigger.into())
}

async fn broadcast(stand: &Stand) {
    let request = tidegate::api::SignalRequest {
        name: "all".to_owned(),
        variables: Variables::new(),
        tenant: None,
        actor: "test".to_owned(),
        source: None,
    };
    stand.runtime.broadcast(request).await.unwrap();
}

async fn pass(stand: &Stand, minutes: i64) {
    stand.clock.advance(minutes * 60_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn f05_starters_are_listed_with_what_triggers_them() {
    let stand = stand().await;
    let (key, _) = deployed(&stand, started_by("by-message", MESSAGE, "")).await;
    deployed(&stand, started_by("by-signal", SIGNAL, "")).await;
    deployed(&stand, started_by("by-timer", TIMER, "")).await;
    deployed(&stand, started_by("by-hand", "", "")).await;
    assert_eq!(
        starters(&stand).await,
        [
            starter("by-message", 1, "message", "go"),
            starter("by-signal", 1, "signal", "all"),
            starter("by-timer", 1, "timer", "R/PT5M"),
        ]
    );
    let listed = stand.runtime.starters().await.unwrap();
    assert!(
        listed
            .iter()
            .any(|s| s.key == key && s.process_id == "by-message")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn f06_f07_case_174_case_175_the_latest_version_owns_what_starts_by_itself() {
    for (store, _folder) in stores() {
        let stand = stand_on(store, ManualClock::new(BEGINNING), |b| b).await;
        for (trigger, kind, name) in [(MESSAGE, "message", "go"), (SIGNAL, "signal", "all")] {
            let (_, first) = deployed(&stand, started_by(kind, trigger, "one")).await;
            let (second, version) = deployed(&stand, started_by(kind, trigger, "two")).await;
            assert_eq!((first, version), (1, 2));
            // The same file again is the same version: programs may register at every start.
            assert_eq!(
                deployed(&stand, started_by(kind, trigger, "two")).await,
                (second, 2)
            );
            assert_eq!(starters(&stand).await, [starter(kind, 2, kind, name)]);
            let happen = async || match kind {
                "message" => drop(stand.publish("go", "", "{}").await),
                _ => broadcast(&stand).await,
            };
            happen().await;
            assert_eq!(versions(&stand, kind, 1).await, [2], "one {kind}, one instance");

            stand.runtime.delete_definition(second, "test").await.unwrap();
            assert_eq!(starters(&stand).await, [starter(kind, 1, kind, name)]);
            happen().await;
            assert_eq!(versions(&stand, kind, 2).await, [1, 2]);
            let (first, _) = deployed(&stand, started_by(kind, trigger, "one")).await;
            stand.runtime.delete_definition(first, "test").await.unwrap();
            assert_eq!(starters(&stand).await, []);
        }
        stand
            .runtime
            .drain(tidegate::status::DrainTrigger::HostStopSignal)
            .await;
        stand.runtime.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn f06_f07_case_174_case_175_the_timer_of_the_latest_version_fires_and_no_other() {
    for (store, _folder) in stores() {
        let stand = stand_on(store, ManualClock::new(BEGINNING), |b| b).await;
        // Minute 0: version 1, due at 5. Minute 2: version 2, which begins its grid anew: due at 7.
        deployed(&stand, started_by("p", TIMER, "one")).await;
        pass(&stand, 2).await;
        let (second, _) = deployed(&stand, started_by("p", TIMER, "two")).await;
        pass(&stand, 4).await;
        stand.runtime.progress().await;
        assert_eq!(rows(&stand).await.len(), 0, "version 1 does not fire any more");
        pass(&stand, 1).await;
        assert_eq!(versions(&stand, "p", 1).await, [2]);
        // Minute 8: version 1 again, due at 13; what version 2 had for minute 12 is gone.
        pass(&stand, 1).await;
        stand.runtime.delete_definition(second, "test").await.unwrap();
        pass(&stand, 4).await;
        stand.runtime.progress().await;
        assert_eq!(versions(&stand, "p", 1).await, [2]);
        pass(&stand, 1).await;
        assert_eq!(versions(&stand, "p", 2).await, [1, 2]);
        pass(&stand, 5).await;
        assert_eq!(versions(&stand, "p", 3).await, [1, 1, 2]);
        stand
            .runtime
            .drain(tidegate::status::DrainTrigger::HostStopSignal)
            .await;
        stand.runtime.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn case_174_messages_that_race_a_new_version_start_one_instance_each() {
    const MESSAGES: usize = 200;
    let stand = stand().await;
    deployed(&stand, started_by("p", MESSAGE, "0")).await;
    let runtime = stand.runtime.clone();
    let changing = tokio::spawn(async move {
        for turn in 1..=20 {
            let file = started_by("p", MESSAGE, &turn.to_string());
            let deployment = runtime.deploy(vec![file], None, "test").await.unwrap();
            if turn % 2 == 0 {
                let key = deployment.definitions[0].definition_key;
                runtime.delete_definition(key, "test").await.unwrap();
            }
        }
    });
    for _ in 0..MESSAGES {
        let published = stand.publish("go", "", "{}").await;
        assert_eq!(
            published.delivered_to.len(),
            1,
            "one message, one instance: {published:?}"
        );
    }
    changing.await.unwrap();
    assert_eq!(versions(&stand, "p", MESSAGES).await.len(), MESSAGES);
}

#[tokio::test(flavor = "multi_thread")]
async fn f08_starts_by_handle_newest_and_version() {
    let stand = stand().await;
    let (first, _) = deployed(&stand, started_by("p", "", "one")).await;
    deployed(&stand, started_by("p", "", "two")).await;
    let start = async |definition: Definition| stand.runtime.start(StartRequest::new(definition)).await;
    assert_eq!(start(Definition::Key(first)).await.unwrap().version, 1);
    assert_eq!(start(Definition::Latest("p".into())).await.unwrap().version, 2);
    assert_eq!(
        start(Definition::Version("p".into(), 1)).await.unwrap().version,
        1
    );
    assert_eq!(
        start(Definition::Version("p".into(), 2)).await.unwrap().version,
        2
    );
    for unknown in [0, 3, u32::MAX] {
        match start(Definition::Version("p".into(), unknown)).await {
            Err(Error::NoSuchProcess { process_id, version }) => {
                assert_eq!((process_id.as_str(), version), ("p", Some(unknown)));
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(matches!(
        start(Definition::Key(DefinitionKey(99))).await,
        Err(Error::NoSuchDefinition(_))
    ));
    assert!(matches!(
        start(Definition::Latest("q".into())).await,
        Err(Error::NoSuchProcess { .. })
    ));
    stand.runtime.delete_definition(first, "test").await.unwrap();
    assert!(matches!(
        start(Definition::Key(first)).await,
        Err(Error::NoSuchDefinition(_))
    ));
    assert!(matches!(
        start(Definition::Version("p".into(), 1)).await,
        Err(Error::NoSuchProcess { .. })
    ));
    let twice = stand.runtime.delete_definition(first, "test").await;
    assert!(matches!(twice, Err(Error::NoSuchDefinition(_))), "{twice:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn f09_version_numbers_are_never_given_twice() {
    for (store, _folder) in stores() {
        let stand = stand_on(store.clone(), ManualClock::new(BEGINNING), |b| b).await;
        for expected in 1..=3 {
            let (key, version) = deployed(&stand, started_by("p", "", "same")).await;
            assert_eq!(version, expected);
            let gone = stand
                .runtime
                .unregister(key, LiveInstances::GoOn, "test")
                .await
                .unwrap();
            assert_eq!(gone.state, DefinitionState::Deleted);
            assert_eq!(
                stand.runtime.definition_state(key).await.unwrap(),
                DefinitionState::Deleted
            );
        }
        stand
            .runtime
            .drain(tidegate::status::DrainTrigger::ShellDeactivation)
            .await;
        stand.runtime.release().await;
        let next = stand_on(store, ManualClock::new(BEGINNING), |b| b).await;
        assert_eq!(deployed(&next, started_by("p", "", "same")).await.1, 4);
    }
}

/// Completes the only open user task of an instance.
async fn finish(stand: &Stand, instance: InstanceKey) -> SubStatus {
    let filter = tidegate::store::UserTaskFilter::default();
    let tasks = stand
        .runtime
        .user_tasks(filter, Page::first(10_000))
        .await
        .unwrap();
    let task = tasks
        .iter()
        .find(|task| task.instance == instance)
        .expect("it waits for a person");
    stand
        .runtime
        .complete_user_task(task.key, Variables::new(), "test")
        .await
        .unwrap();
    stand.finished(instance).await.sub_status
}

#[tokio::test(flavor = "multi_thread")]
async fn f10_live_instances_finish_on_their_own_version_resident_or_parked() {
    for cache_bytes in [8 << 20, 0] {
        for (store, _folder) in stores() {
            let clock = ManualClock::new(BEGINNING);
            let options = Options {
                owners: 2,
                cache_bytes,
                ..Options::default()
            };
            let stand = stand_on(store, clock, |b| b.options(options)).await;
            let (key, _) = deployed(&stand, started_by("p", "", "one")).await;
            let instance = stand.start("p", "{}").await.instance;
            stand.idle().await;
            let gone = stand
                .runtime
                .unregister(key, LiveInstances::GoOn, "test")
                .await
                .unwrap();
            assert_eq!((gone.state, gone.cancelled), (DefinitionState::Retiring, 0));
            let listed = stand
                .runtime
                .definitions(DefinitionFilter::default(), Page::first(10))
                .await
                .unwrap();
            assert!(listed.is_empty());
            assert!(matches!(
                stand.runtime.start(StartRequest::latest("p")).await,
                Err(Error::NoSuchProcess { .. })
            ));
            assert_eq!(finish(&stand, instance).await, SubStatus::Finished);
            assert_eq!(
                stand.runtime.definition_state(key).await.unwrap(),
                DefinitionState::Deleted
            );
            stand
                .runtime
                .drain(tidegate::status::DrainTrigger::HostStopSignal)
                .await;
            stand.runtime.close().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn case_179_live_instances_are_awaited_or_cancelled_by_choice() {
    let stand = stand().await;
    let (key, _) = deployed(&stand, started_by("p", "", "one")).await;
    let instance = stand.start("p", "{}").await.instance;
    // Nobody finishes it in time: it is retiring.
    let awaited = LiveInstances::AreAwaited(Duration::from_millis(1));
    let gone = stand.runtime.unregister(key, awaited, "test").await.unwrap();
    assert_eq!(gone.state, DefinitionState::Retiring);
    finish(&stand, instance).await;

    let (key, _) = deployed(&stand, started_by("p", "", "two")).await;
    let instance = stand.start("p", "{}").await.instance;
    let runtime = stand.runtime.clone();
    let waiting = tokio::spawn(async move {
        runtime
            .unregister(key, LiveInstances::AreAwaited(AMPLE), "test")
            .await
    });
    eventually("it is retiring", async || {
        stand.runtime.definition_state(key).await.unwrap() == DefinitionState::Retiring
    })
    .await;
    finish(&stand, instance).await;
    assert_eq!(waiting.await.unwrap().unwrap().state, DefinitionState::Deleted);

    let (key, _) = deployed(&stand, started_by("p", "", "three")).await;
    for _ in 0..5 {
        stand.start("p", "{}").await;
    }
    let other = stand.start_of(started_by("other", "", "")).await;
    let gone = stand
        .runtime
        .unregister(key, LiveInstances::AreCancelled(AMPLE), "test")
        .await
        .unwrap();
    assert_eq!((gone.state, gone.cancelled), (DefinitionState::Deleted, 5));
    assert_eq!(
        stand.listed(SubStatus::Suspended).await,
        [other],
        "others are not touched"
    );
}

impl Stand {
    async fn start_of(&self, resource: Resource) -> InstanceKey {
        let id = resource.name.trim_end_matches(".bpmn").to_owned();
        self.deploy(resource).await;
        let instance = self.start(&id, "{}").await.instance;
        self.idle().await;
        instance
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn case_179_a_delete_that_races_starts_leaves_no_instance_without_a_definition() {
    const ROUNDS: usize = 1_000;
    const STARTS: usize = 3;
    for (store, _folder) in stores() {
        let is_durable = _folder.is_some();
        // Every sync of a disk takes its time: there the rounds are fewer.
        let rounds = if is_durable { ROUNDS / 20 } else { ROUNDS };
        let stand = stand_on(store, ManualClock::new(BEGINNING), |b| b).await;
        let file = || line("p", &[("t", task("t", "demo.noop", &[]))]);
        let mut refused = 0;
        for _ in 0..rounds {
            let (key, _) = deployed(&stand, file()).await;
            let starting: Vec<_> = (0..STARTS)
                .map(|turn| {
                    let runtime = stand.runtime.clone();
                    tokio::spawn(async move {
                        let definition = match turn {
                            0 => Definition::Key(key),
                            _ => Definition::Latest("p".to_owned()),
                        };
                        runtime.start(StartRequest::new(definition)).await
                    })
                })
                .collect();
            let unregistered = stand
                .runtime
                .unregister(key, LiveInstances::AreAwaited(AMPLE), "test")
                .await
                .unwrap();
            // What is answered as deleted has no live instance, and none comes after it.
            assert_eq!(unregistered.state, DefinitionState::Deleted);
            for one in starting {
                match one.await.unwrap() {
                    Ok(started) => {
                        let detail = stand.runtime.instance(started.instance).await.unwrap();
                        assert_eq!(detail.row.definition, key);
                        assert_eq!(detail.row.sub_status, SubStatus::Finished);
                    }
                    Err(Error::NoSuchDefinition(_) | Error::NoSuchProcess { .. }) => refused += 1,
                    Err(other) => panic!("{other}"),
                }
            }
        }
        let began = rows(&stand).await.len();
        assert_eq!(began + refused, rounds * STARTS);
        stand
            .runtime
            .drain(tidegate::status::DrainTrigger::HostStopSignal)
            .await;
        stand.runtime.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn case_179_a_delete_that_fails_changes_nothing() {
    let store = faulty();
    let stand = stand_on(store.clone(), ManualClock::new(BEGINNING), |b| b).await;
    deployed(&stand, started_by("p", MESSAGE, "one")).await;
    let (second, _) = deployed(&stand, started_by("p", MESSAGE, "two")).await;
    store.fail_all(unreachable());
    let failed = stand.runtime.delete_definition(second, "test").await;
    assert!(matches!(failed, Err(Error::Store(_))), "{failed:?}");
    store.mend();
    assert_eq!(starters(&stand).await, [starter("p", 2, "message", "go")]);
    assert_eq!(stand.start("p", "{}").await.version, 2);
    stand.publish("go", "", "{}").await;
    assert_eq!(versions(&stand, "p", 2).await, [2, 2]);
}

/// Three tasks of workers one after the other; the second has another job type in version 2.
fn steps(second: &str) -> Resource {
    let types = ["one", second, "three"];
    let ids = ["a", "b", "c"];
    let tasks: Vec<_> = ids
        .into_iter()
        .zip(types)
        .map(|(id, job_type)| (id, task(id, job_type, &[])))
        .collect();
    line("steps", &tasks)
}

#[tokio::test(flavor = "multi_thread")]
async fn case_180_every_instance_finishes_on_the_version_it_is_pinned_to() {
    const INSTANCES: usize = 100;
    let stand = stand_with(|b| {
        b.options(Options {
            owners: 2,
            cache_bytes: 0,
            ..Options::default()
        })
    })
    .await;
    let mut pinned = Vec::new();
    let mut begin = async |count: usize| {
        for _ in 0..count {
            let started = stand.start("steps", "{}").await;
            pinned.push((started.instance, started.version));
        }
    };
    let (first, _) = deployed(&stand, steps("two")).await;
    begin(INSTANCES / 2).await;
    // At various points: some before the first, some before the second, some before the third step.
    for turn in 0..30 {
        stand.complete("one", "{}").await;
        if turn % 2 == 0 {
            stand.complete("two", "{}").await;
        }
    }
    let (second, version) = deployed(&stand, steps("changed")).await;
    assert_eq!(version, 2);
    begin(INSTANCES / 2).await;
    for turn in 0..30 {
        stand.complete("one", "{}").await;
        if turn % 3 == 0 {
            stand.complete("two", "{}").await;
        }
    }
    // Roll back: version 2 goes, those that moved on stay on it, and what starts now is of version 1.
    let gone = stand
        .runtime
        .unregister(second, LiveInstances::GoOn, "test")
        .await
        .unwrap();
    assert_eq!(gone.state, DefinitionState::Retiring);
    begin(1).await;
    assert_eq!(pinned.last().unwrap().1, 1);
    for job_type in ["one", "two", "changed", "three"] {
        loop {
            let jobs = stand
                .runtime
                .activate_jobs(support::jobs(job_type, Duration::ZERO))
                .await
                .unwrap();
            if jobs.is_empty() {
                break;
            }
            for job in jobs {
                let done = stand
                    .runtime
                    .complete_job(job.job, &job.lease_token, Variables::new());
                done.await.unwrap();
            }
            stand.idle().await;
        }
    }
    for (instance, version) in &pinned {
        stand.finished(*instance).await;
        let row = stand.runtime.instance(*instance).await.unwrap().row;
        assert_eq!((row.sub_status, row.version), (SubStatus::Finished, *version));
        // It went through the step of its own version.
        let items = stand.runtime.history(*instance, 0, 1_000).await.unwrap();
        let job_type = items
            .iter()
            .find(|item| item.event == "JobCreated" && item.element_id.as_deref() == Some("b"))
            .map(|item| item.payload["jobType"].clone());
        let expected = if *version == 1 { "two" } else { "changed" };
        assert_eq!(job_type, Some(expected.into()));
    }
    assert_eq!(
        pinned.iter().filter(|(_, version)| *version == 2).count(),
        INSTANCES / 2
    );
    assert_eq!(
        stand.runtime.definition_state(second).await.unwrap(),
        DefinitionState::Deleted
    );
    assert_eq!(
        stand.runtime.definition_state(first).await.unwrap(),
        DefinitionState::Active
    );
}
