//! `asyncBefore` and `asyncAfter`: what must be in the store before the work goes on, under a policy that commits rarely.

mod support;

use std::sync::Arc;

use parking_lot::Mutex;
use support::model::model;
use support::{Stand, stand_on};
use tidegate::activity::{Activity, ActivityContext, ActivityFuture};
use tidegate::clock::ManualClock;
use tidegate::model::Variables;
use tidegate::store::Store;
use tidegate::store::memory::MemoryStore;
use tidegate::{CommitPolicy, Options};

/// Notes how far its instance is in the store, at each run, and is done at once.
struct Looks {
    store: Arc<dyn Store>,
    seen: Mutex<Vec<(String, u64)>>,
}

impl Activity for Looks {
    fn run(&self, context: ActivityContext) -> ActivityFuture {
        let stored = self.store.instance(context.instance).unwrap();
        let revision = stored.map_or(0, |row| row.revision);
        self.seen.lock().push((context.element_id.to_string(), revision));
        Box::pin(async { Ok(Variables::new()) })
    }

    fn is_quick(&self) -> bool {
        true
    }
}

/// Runs `first`, `second` and `third` under policy `cycle`; the revision that each finds in the store.
async fn revisions(second: &str) -> Vec<(String, u64)> {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let looks = Arc::new(Looks {
        store: store.clone(),
        seen: Mutex::default(),
    });
    let clock = ManualClock::new(support::BEGINNING);
    let handler = looks.clone();
    let stand: Stand = stand_on(store, clock, |builder| {
        let options = Options {
            owners: 1,
            commit_policy: CommitPolicy::Cycle,
            ..Options::default()
        };
        builder.options(options).activity("looks", handler)
    })
    .await;
    let task = |start_tag: &str| {
        let kind = r#"<extensionElements><zeebe:taskDefinition type="looks"/></extensionElements>"#;
        format!("{start_tag}{kind}</serviceTask>")
    };
    let body = format!(
        r#"<startEvent id="s"/>{}{}{}<endEvent id="e"/>"#,
        task(r#"<serviceTask id="first">"#),
        task(second),
        task(r#"<serviceTask id="third">"#)
    );
    stand
        .deploy(model("p", "", &body, "s>first>second>third>e"))
        .await;
    stand.run("p", "{}").await;
    looks.seen.lock().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn work_that_the_model_makes_a_commit_point_waits_for_its_commit() {
    let names = |seen: &[(String, u64)]| seen.iter().map(|(id, _)| id.clone()).collect::<Vec<_>>();
    let before = revisions(r#"<serviceTask id="second" xmlns:camunda="http://camunda.org/schema/1.0/bpmn" camunda:asyncBefore="true">"#).await;
    assert_eq!(names(&before), ["first", "second", "third"]);
    assert!(
        before[0].1 < before[1].1,
        "the activation of the second is in the store: {before:?}"
    );
    let after = revisions(r#"<serviceTask id="second" xmlns:camunda="http://operaton.org/schema/1.0/bpmn" camunda:asyncAfter="true">"#).await;
    assert_eq!(names(&after), ["first", "second", "third"]);
    assert!(
        after[1].1 < after[2].1,
        "the completion of the second is in the store: {after:?}"
    );
}
