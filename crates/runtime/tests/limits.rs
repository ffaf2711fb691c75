//! Processes whose number of live instances is limited.

mod support;

use std::sync::Arc;
use std::time::Duration;

use support::{BEGINNING, Stand, process_with, stand, stand_on};
use tidegate::Error;
use tidegate::api::StartRequest;
use tidegate::clock::ManualClock;
use tidegate::model::{InstanceKey, SubStatus};
use tidegate::settings::{DefinitionSettings, WhenFull};
use tidegate::status::DrainTrigger;
use tidegate::store::memory::MemoryStore;
use tidegate::store::{InstanceFilter, Page};

/// A process that waits for a message, with attributes at the process.
fn limited(attributes: &str) -> tidegate::api::Resource {
    let message = r#"<bpmn:message id="m" name="go"><bpmn:extensionElements><zeebe:subscription correlationKey="=key"/></bpmn:extensionElements></bpmn:message>"#;
    let body = r#"<bpmn:startEvent id="s"/><bpmn:intermediateCatchEvent id="c"><bpmn:messageEventDefinition messageRef="m"/></bpmn:intermediateCatchEvent><bpmn:endEvent id="e"/><bpmn:sequenceFlow id="a" sourceRef="s" targetRef="c"/><bpmn:sequenceFlow id="b" sourceRef="c" targetRef="e"/>"#;
    let mut resource = process_with("limited", message, body);
    let xml = String::from_utf8(resource.bytes).unwrap();
    let xml = xml.replace(
        r#"isExecutable="true""#,
        &format!(r#"isExecutable="true" xmlns:tidegate="urn:tidegate:bpmn" {attributes}"#),
    );
    resource.bytes = xml.into_bytes();
    resource
}

async fn sub_status(stand: &Stand, key: InstanceKey) -> SubStatus {
    stand.runtime.instance(key).await.unwrap().row.sub_status
}

async fn becomes(stand: &Stand, key: InstanceKey, wanted: SubStatus) {
    let mut seen = None;
    for _ in 0..20_000 {
        seen = Some(sub_status(stand, key).await);
        if seen == Some(wanted) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("instance {key} is {seen:?} and not {wanted:?}");
}

async fn start(stand: &Stand, key: &str) -> InstanceKey {
    stand
        .start("limited", &format!(r#"{{"key":"{key}"}}"#))
        .await
        .instance
}

#[tokio::test]
async fn case_131_the_place_of_a_cancelled_run_goes_to_the_next_also_after_a_restart() {
    let store = Arc::new(MemoryStore::new());
    let clock = ManualClock::new(BEGINNING);
    let first_life = stand_on(store.clone(), clock.clone(), |builder| builder).await;
    first_life.deploy(limited(r#"tidegate:maxInstances="1""#)).await;
    let first = start(&first_life, "1").await;
    let second = start(&first_life, "2").await;
    becomes(&first_life, first, SubStatus::Suspended).await;
    first_life.runtime.progress().await;
    assert_eq!(sub_status(&first_life, second).await, SubStatus::Pending);
    let view = first_life
        .runtime
        .definition_settings("limited", None)
        .await
        .unwrap();
    assert_eq!(view.effective.max_instances, Some(1));
    assert_eq!((view.live.as_slice(), view.waiting), ([first].as_slice(), 1));
    first_life.runtime.drain(DrainTrigger::HostStopSignal).await;
    first_life.runtime.close().await;

    let stand = stand_on(Arc::new(store.reopen()), clock, |builder| builder).await;
    for _ in 0..5 {
        stand.runtime.progress().await;
    }
    assert_eq!(sub_status(&stand, second).await, SubStatus::Pending);
    let third = start(&stand, "3").await;
    stand.runtime.cancel(first, None, "test").await.unwrap();
    becomes(&stand, second, SubStatus::Suspended).await;
    assert_eq!(sub_status(&stand, third).await, SubStatus::Pending);
    // A waiting one that is cancelled holds nobody back.
    let fourth = start(&stand, "4").await;
    stand.runtime.cancel(third, None, "test").await.unwrap();
    stand.publish("go", "2", "{}").await;
    becomes(&stand, fourth, SubStatus::Suspended).await;
    assert_eq!(sub_status(&stand, third).await, SubStatus::Cancelled);
    assert_eq!(sub_status(&stand, second).await, SubStatus::Finished);
    let view = stand.runtime.definition_settings("limited", None).await.unwrap();
    assert_eq!((view.live.as_slice(), view.waiting), ([fourth].as_slice(), 0));
}

#[tokio::test]
async fn starts_beyond_a_limit_are_skipped_where_the_definition_says_so() {
    let stand = stand().await;
    stand
        .deploy(limited(r#"tidegate:maxInstances="2" tidegate:whenFull="skip""#))
        .await;
    let first = start(&stand, "1").await;
    start(&stand, "2").await;
    let refused = stand
        .runtime
        .start(StartRequest::latest("limited"))
        .await
        .unwrap_err();
    assert!(
        matches!(refused, Error::TooManyInstances { limit: 2, .. }),
        "{refused}"
    );
    assert_eq!(refused.code(), "too-many-instances");
    // One that was accepted while paused finds no room: it ends before it began.
    stand.runtime.pause(None, None, "test").await.unwrap();
    let late = start(&stand, "3").await;
    stand.runtime.resume("test").await.unwrap();
    becomes(&stand, late, SubStatus::Cancelled).await;
    let history = stand.runtime.history(late, 0, 10).await.unwrap();
    let cause = serde_json::to_string(&history[0].cause).unwrap();
    assert!(cause.contains("as many as it may"), "{cause}");
    stand.publish("go", "1", "{}").await;
    becomes(&stand, first, SubStatus::Finished).await;
    start(&stand, "4").await;
}

#[tokio::test]
async fn a_newer_start_replaces_the_one_that_lives_where_the_definition_says_so() {
    let stand = stand().await;
    stand
        .deploy(limited(
            r#"tidegate:maxInstances="1" tidegate:whenFull="replace""#,
        ))
        .await;
    let first = start(&stand, "1").await;
    let second = start(&stand, "2").await;
    becomes(&stand, first, SubStatus::Cancelled).await;
    becomes(&stand, second, SubStatus::Suspended).await;
    let third = start(&stand, "3").await;
    becomes(&stand, second, SubStatus::Cancelled).await;
    becomes(&stand, third, SubStatus::Suspended).await;
    let history = stand.runtime.history(first, 0, 100).await.unwrap();
    let last = serde_json::to_string(&history.last().unwrap().cause).unwrap();
    assert!(last.contains("replaced by a newer start"), "{last}");
}

#[tokio::test]
async fn a_limit_can_be_set_and_lifted_while_instances_live() {
    let stand = stand().await;
    stand.deploy(limited("")).await;
    let mut live = Vec::new();
    for turn in 0..3 {
        live.push(start(&stand, &turn.to_string()).await);
    }
    let limit = |max_instances, when_full| DefinitionSettings {
        max_instances,
        when_full,
        ..DefinitionSettings::default()
    };
    let set = |settings| {
        stand
            .runtime
            .set_definition_settings("limited", None, settings, "eve")
    };
    let view = set(limit(Some(2), Some(WhenFull::Queue))).await.unwrap();
    live.sort_unstable();
    assert_eq!(view.live, live);
    let waiting = start(&stand, "9").await;
    stand.runtime.cancel(live[0], None, "test").await.unwrap();
    stand.runtime.progress().await;
    // There are still two.
    assert_eq!(sub_status(&stand, waiting).await, SubStatus::Pending);
    set(limit(Some(0), None)).await.unwrap();
    becomes(&stand, waiting, SubStatus::Suspended).await;
    let audit = stand.runtime.audit(Page::first(50)).await.unwrap();
    let changes = audit
        .iter()
        .filter(|row| row.action == "DefinitionSettingsChanged");
    assert_eq!(changes.count(), 2);
    let unknown = stand
        .runtime
        .definition_settings("nobody", None)
        .await
        .unwrap_err();
    assert_eq!(unknown.code(), "process-not-found");
}

#[tokio::test]
async fn a_bad_setting_of_a_model_is_refused_with_its_place() {
    let stand = stand().await;
    for (attributes, named) in [
        (r#"tidegate:maxInstances="0""#, "maxInstances"),
        (r#"tidegate:whenFull="drop""#, "whenFull"),
        (r#"tidegate:retention="3 days""#, "retention"),
    ] {
        let refused = stand
            .runtime
            .deploy(vec![limited(attributes)], None, "test")
            .await;
        let Err(Error::NotDeployable(diagnostics)) = refused else {
            panic!("{attributes} is taken: {refused:?}");
        };
        assert!(diagnostics[0].message.contains(named), "{diagnostics:?}");
        assert!(diagnostics[0].line > 0);
    }
    stand
        .deploy(limited(
            r#"tidegate:retention="P3D" tidegate:retentionCount="7" tidegate:journalLimit="99""#,
        ))
        .await;
    let view = stand.runtime.definition_settings("limited", None).await.unwrap();
    assert_eq!(view.effective.retention_ms, Some(3 * 24 * 3_600_000));
    assert_eq!(view.effective.retention_count, Some(7));
    assert_eq!(view.effective.journal_limit, Some(99));
}

/// Many starts at once, with a limit: never more live than it says, and all of them end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_holds_under_many_starts() {
    let stand = stand().await;
    let work = support::task("work", "demo.sleep", &[("duration", "PT0.002S")]);
    let mut resource = support::line("busy", &[("work", work)]);
    let xml = String::from_utf8(resource.bytes).unwrap();
    let limit = r#"isExecutable="true" xmlns:tidegate="urn:tidegate:bpmn" tidegate:maxInstances="3""#;
    resource.bytes = xml.replace(r#"isExecutable="true""#, limit).into_bytes();
    stand.deploy(resource).await;
    for _ in 0..60 {
        stand.start("busy", "{}").await;
    }
    let live = InstanceFilter {
        sub_statuses: vec![SubStatus::Executing, SubStatus::Suspended],
        ..InstanceFilter::default()
    };
    for _ in 0..20_000 {
        let rows = stand
            .runtime
            .instances(live.clone(), Page::first(100))
            .await
            .unwrap();
        assert!(rows.len() <= 3, "{} are live", rows.len());
        let counts = stand.runtime.counts().await.unwrap();
        if counts[usize::from(SubStatus::Finished.code())] == 60 {
            let view = stand.runtime.definition_settings("busy", None).await.unwrap();
            assert_eq!((view.live.len(), view.waiting), (0, 0));
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("not all have ended: {:?}", stand.runtime.counts().await.unwrap());
}

/// Starts by a timer and by a message stand in the same line as those that are asked for.
#[tokio::test]
async fn a_limit_holds_for_starts_by_timer_and_message() {
    let stand = stand().await;
    for (when_full, waiting) in [("queue", SubStatus::Pending), ("skip", SubStatus::Cancelled)] {
        let id = format!("by-{when_full}");
        let message = format!(r#"<bpmn:message id="m" name="begin-{when_full}"/>"#);
        let body = r#"<bpmn:startEvent id="s"><bpmn:timerEventDefinition><bpmn:timeCycle xsi:type="bpmn:tFormalExpression">R/PT1H</bpmn:timeCycle></bpmn:timerEventDefinition></bpmn:startEvent>
          <bpmn:startEvent id="s2"><bpmn:messageEventDefinition messageRef="m"/></bpmn:startEvent>
          <bpmn:userTask id="u"/><bpmn:endEvent id="e"/>
          <bpmn:sequenceFlow id="a" sourceRef="s" targetRef="u"/><bpmn:sequenceFlow id="a2" sourceRef="s2" targetRef="u"/>
          <bpmn:sequenceFlow id="b" sourceRef="u" targetRef="e"/>"#;
        let mut resource = process_with(&id, &message, body);
        let xml = String::from_utf8(resource.bytes).unwrap();
        let limit = format!(
            r#"isExecutable="true" xmlns:tidegate="urn:tidegate:bpmn" tidegate:maxInstances="1" tidegate:whenFull="{when_full}""#
        );
        resource.bytes = xml.replace(r#"isExecutable="true""#, &limit).into_bytes();
        stand.deploy(resource).await;
        let filter = InstanceFilter {
            process_id: Some(id.clone()),
            ..InstanceFilter::default()
        };
        let all = || async {
            let rows = stand
                .runtime
                .instances(filter.clone(), Page::first(100))
                .await
                .unwrap();
            let mut all: Vec<SubStatus> = rows.into_iter().map(|row| row.sub_status).collect();
            all.sort_unstable();
            all
        };
        let become_so = |wanted: Vec<SubStatus>| {
            let all = &all;
            async move {
                let mut seen = Vec::new();
                for _ in 0..20_000 {
                    seen = all().await;
                    if seen == wanted {
                        return;
                    }
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                panic!("{seen:?} and not {wanted:?}");
            }
        };
        stand.clock.advance(3_600_000);
        become_so(vec![SubStatus::Suspended]).await;
        // The second turn finds no room: it waits, or is skipped without an instance.
        stand.clock.advance(3_600_000);
        stand.publish(&format!("begin-{when_full}"), "", "{}").await;
        let mut wanted = vec![SubStatus::Suspended, waiting];
        if when_full == "queue" {
            wanted.push(waiting);
        }
        wanted.sort_unstable();
        become_so(wanted).await;
    }
}
