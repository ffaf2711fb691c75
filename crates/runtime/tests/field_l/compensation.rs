//! Compensation in the order of the standard.

use tidegate::model::SubStatus;

use crate::support::model::{model, work};
use crate::support::{Stand, stand, stand_on};

/// `a`, `b`, `c` in a row, each with its undo, and then compensation of them all.
fn undone() -> tidegate::api::Resource {
    let mut body = String::from(r#"<startEvent id="s"/>"#);
    for id in ["a", "b", "c"] {
        let undo =
            work(&format!("undo-{id}")).replace("<serviceTask ", r#"<serviceTask isForCompensation="true" "#);
        body += &format!(
            r#"<task id="{id}"/><boundaryEvent id="on-{id}" attachedToRef="{id}"><compensateEventDefinition/></boundaryEvent>{undo}<association id="to-{id}" associationDirection="One" sourceRef="on-{id}" targetRef="undo-{id}"/>"#
        );
    }
    body += r#"<intermediateThrowEvent id="undo"><compensateEventDefinition/></intermediateThrowEvent><endEvent id="e"/>"#;
    model("p", "", &body, "s>a>b>c>undo>e")
}

async fn open(stand: &Stand, instance: tidegate::model::InstanceKey) -> Vec<String> {
    let detail = stand
        .until(instance, |d| d.row.sub_status == SubStatus::Suspended)
        .await;
    let waits = detail.waiting_for.iter().map(|wait| wait.element_id.clone());
    waits.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn case_147_handlers_of_compensation_run_one_after_the_other_in_reverse_order() {
    let stand = stand().await;
    stand.deploy(undone()).await;
    let instance = stand.start("p", "{}").await.instance;
    for undo in ["undo-c", "undo-b", "undo-a"] {
        assert_eq!(open(&stand, instance).await, [undo]);
        stand.complete(undo, "{}").await;
    }
    stand.finished(instance).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn case_147_compensation_goes_on_at_the_right_handler_after_a_crash() {
    let stand = stand().await;
    stand.deploy(undone()).await;
    let instance = stand.start("p", "{}").await.instance;
    assert_eq!(open(&stand, instance).await, ["undo-c"]);
    stand.complete("undo-c", "{}").await;
    assert_eq!(open(&stand, instance).await, ["undo-b"]);
    // The next generation takes over without a word of the one before.
    let next = stand_on(stand.store.clone(), stand.clock.clone(), |builder| builder).await;
    assert_eq!(open(&next, instance).await, ["undo-b"]);
    next.complete("undo-b", "{}").await;
    next.complete("undo-a", "{}").await;
    next.finished(instance).await;
    for undo in ["undo-a", "undo-b", "undo-c"] {
        assert_eq!(next.times(instance, &format!("ElementCompleted {undo}")).await, 1);
    }
}
