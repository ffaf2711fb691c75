//! Joins: tokens that die, that come twice, that come again.

use tidegate::model::SubStatus;

use crate::support::model::{ERROR, MESSAGE, ON_ERROR, ON_MESSAGE, boundary, flow_if, model, work};
use crate::support::{Stand, stand};

const START_END: &str = r#"<startEvent id="s"/><endEvent id="e"/>"#;

#[tokio::test(flavor = "multi_thread")]
async fn case_135_an_inclusive_join_does_not_wait_for_a_branch_that_left_through_its_error_boundary() {
    let stand = stand().await;
    let body = format!(
        r#"{START_END}<inclusiveGateway id="fork"/><inclusiveGateway id="join"/>{}{}{}<endEvent id="apart"/>"#,
        work("a"),
        work("b"),
        boundary("left", "b", ON_ERROR)
    );
    let flows = "s>fork>a>join>e fork>b>join left>apart";
    stand.deploy(model("p", ERROR, &body, flows)).await;
    for a_first in [true, false] {
        let instance = stand.start("p", "{}").await.instance;
        if a_first {
            stand.complete("a", "{}").await;
        }
        stand.throw("b", "E").await;
        if !a_first {
            stand.complete("a", "{}").await;
        }
        stand.finished(instance).await;
        assert_eq!(stand.times(instance, "ElementCompleted join").await, 1);
        assert_eq!(stand.times(instance, "ElementCompleted apart").await, 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn case_137_an_inclusive_join_in_a_loop_does_not_wait_for_itself() {
    // Graphs in which a token behind the join can come back to it only through the join; how often the join fires.
    let graphs = [
        ("one way in", "s>join>work>g g>join", 3),
        ("two ways in", "s>fork>join fork>x>join join>work>g g>join", 3),
        ("a longer way back", "s>join>work>g g>x>y>join", 3),
        ("a fork behind the join", "s>join>fork>x>y fork>work>g g>join", 3),
    ];
    for (name, flows, fires) in graphs {
        let stand = stand().await;
        let mut body = format!(
            r#"<startEvent id="s"/><endEvent id="e"/><inclusiveGateway id="join"/>{}"#,
            work("work")
        );
        // The flow of the loop carries the condition; the way out is the default.
        let back = flows.split(" g>").nth(1).and_then(|rest| rest.split('>').next());
        let back = back.expect("a way back");
        for id in ["fork", "x", "y"] {
            if flows.contains(id) {
                body += &match id {
                    "fork" => r#"<parallelGateway id="fork"/>"#.to_owned(),
                    task => format!(r#"<task id="{task}"/>"#),
                };
            }
        }
        body += r#"<exclusiveGateway id="g" default="g-e"/>"#;
        body += &flow_if("g", back, "=n<3");
        let rest: String = flows.replace(&format!(" g>{back}"), &format!(" g>e {back}"));
        stand.deploy(model("p", "", &body, &rest)).await;
        let instance = stand.start("p", r#"{"n": 0}"#).await.instance;
        for turn in 1..=fires {
            stand.complete("work", &format!(r#"{{"n": {turn}}}"#)).await;
        }
        stand.finished(instance).await;
        let fired = stand.times(instance, "ElementCompleted join").await;
        assert_eq!(fired, fires, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn case_138_a_parallel_join_takes_one_token_of_each_flow_and_leaves_the_rest() {
    let stand = stand().await;
    let body = format!(
        r#"{START_END}<parallelGateway id="fork"/><task id="a1"/><task id="a2"/><exclusiveGateway id="x"/>
        <parallelGateway id="join"/>{}"#,
        work("b")
    );
    stand
        .deploy(model("p", "", &body, "s>fork>a1>x>join>e fork>a2>x fork>b>join"))
        .await;
    let instance = stand.start("p", "{}").await.instance;
    stand
        .until(instance, |d| d.row.sub_status == SubStatus::Suspended)
        .await;
    assert_eq!(stand.times(instance, "ElementCompleted x").await, 2);
    assert_eq!(stand.times(instance, "ElementActivated join").await, 0);
    stand.complete("b", "{}").await;
    let left = stand
        .until(instance, |d| {
            d.tokens.len() == 1 && d.row.sub_status == SubStatus::Suspended
        })
        .await;
    assert_eq!(stand.times(instance, "ElementCompleted join").await, 1);
    assert_eq!(stand.times(instance, "ElementCompleted e").await, 1);
    let token = &left.tokens[0];
    assert_eq!((&*token.element_id, token.element_instance_key), ("join", None));
}

#[tokio::test(flavor = "multi_thread")]
async fn case_139_each_turn_of_a_loop_joins_its_own_tokens() {
    let stand = stand().await;
    let body = format!(
        r#"{START_END}<exclusiveGateway id="m"/><parallelGateway id="fork"/><parallelGateway id="join"/>
        <exclusiveGateway id="g" default="g-e"/>{}{}{}"#,
        work("a"),
        work("b"),
        flow_if("g", "m", "=n<3")
    );
    stand
        .deploy(model("p", "", &body, "s>m>fork>a>join>g>e fork>b>join"))
        .await;
    let instance = stand.start("p", r#"{"n": 0}"#).await.instance;
    for turn in 1..=3 {
        // The branches come first by turns.
        let (first, second) = if turn % 2 == 0 { ("a", "b") } else { ("b", "a") };
        stand.complete(first, "{}").await;
        assert_eq!(stand.times(instance, "ElementCompleted join").await, turn - 1);
        stand.complete(second, &format!(r#"{{"n": {turn}}}"#)).await;
    }
    stand.finished(instance).await;
    assert_eq!(stand.times(instance, "ElementCompleted join").await, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn case_140_an_interrupting_event_takes_the_tokens_that_wait_before_a_join() {
    let inside = format!(
        r#"<startEvent id="s1"/><parallelGateway id="fork"/><task id="a"/>{}<parallelGateway id="join"/><endEvent id="e1"/>{}"#,
        work("b"),
        crate::support::model::flows("s1>fork>a>join>e1 fork>b>join")
    );
    let by_boundary = format!(
        r#"{START_END}<subProcess id="sub">{inside}</subProcess>{}<task id="handler"/>"#,
        boundary("event", "sub", ON_MESSAGE)
    );
    let by_sub_process = format!(
        r#"{START_END}<subProcess id="sub">{inside}<subProcess id="on" triggeredByEvent="true"><startEvent id="event">{ON_MESSAGE}</startEvent><task id="handler"/>{}</subProcess></subProcess>"#,
        crate::support::model::flows("event>handler")
    );
    let cases = [
        (by_boundary, "s>sub>e event>handler"),
        (by_sub_process, "s>sub>e"),
    ];
    for (body, flows) in cases {
        let stand = stand().await;
        stand.deploy(model("p", MESSAGE, &body, flows)).await;
        let instance = stand.start("p", r#"{"key": "k"}"#).await.instance;
        stand
            .until(instance, |d| d.row.sub_status == SubStatus::Suspended)
            .await;
        stand.publish("go", "k", "{}").await;
        stand.finished(instance).await;
        assert_eq!(stand.times(instance, "ElementCompleted handler").await, 1);
        assert_eq!(stand.times(instance, "ElementCompleted join").await, 0);
        assert!(no_job(&stand, "b").await);
    }
}

async fn no_job(stand: &Stand, job_type: &str) -> bool {
    let wanted = crate::support::jobs(job_type, std::time::Duration::ZERO);
    stand.runtime.activate_jobs(wanted).await.unwrap().is_empty()
}
