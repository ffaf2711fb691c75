//! Errors and interruptions that cross scopes and calls.

use tidegate::model::SubStatus;
use tidegate::store::{InstanceFilter, Page};

use crate::support::model::{ERROR, MESSAGE, ON_ERROR, ON_MESSAGE, boundary, call, flows, model, work};
use crate::support::{Stand, stand};

/// Two branches: one throws, the other waits for a worker.
fn throws_beside_work() -> String {
    format!(
        r#"<startEvent id="s1"/><parallelGateway id="fork"/><endEvent id="throw">{ON_ERROR}</endEvent>{}{}"#,
        work("sibling"),
        flows("s1>fork>throw fork>sibling")
    )
}

/// A process that does that.
fn thrower(id: &str) -> tidegate::api::Resource {
    model(id, ERROR, &throws_beside_work(), "")
}

async fn statuses(stand: &Stand, process_id: &str) -> Vec<SubStatus> {
    let all = stand
        .runtime
        .instances(InstanceFilter::default(), Page::first(100))
        .await
        .unwrap();
    let of_process = all.iter().filter(|row| &*row.process_id == process_id);
    of_process.map(|row| row.sub_status).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn case_151_the_nearest_handler_outside_catches_an_error_from_any_depth() {
    let inner = throws_beside_work();
    let many = r#"<multiInstanceLoopCharacteristics><loopCardinality>3</loopCardinality></multiInstanceLoopCharacteristics>"#;
    let hosts = [
        (
            "a sub-process",
            format!(r#"<subProcess id="host">{inner}</subProcess>"#),
        ),
        (
            "a multi-instance",
            format!(r#"<subProcess id="host">{many}{inner}</subProcess>"#),
        ),
        ("a call", call("host", "thrower")),
        (
            "two levels down",
            format!(
                r#"<subProcess id="host"><startEvent id="s2"/>{}{}</subProcess>"#,
                call("inside", "caller"),
                flows("s2>inside")
            ),
        ),
        (
            "a multi-instance of calls",
            call("host", "thrower").replace("</callActivity>", &format!("{many}</callActivity>")),
        ),
    ];
    for (name, host) in hosts {
        let stand = stand().await;
        stand.deploy(thrower("thrower")).await;
        let between = format!(r#"<startEvent id="s"/>{}"#, call("call", "thrower"));
        stand.deploy(model("caller", "", &between, "s>call")).await;
        let body = format!(
            r#"<startEvent id="s"/>{host}{}<endEvent id="e"/><endEvent id="caught"/>"#,
            boundary("b", "host", ON_ERROR)
        );
        stand.deploy(model("p", ERROR, &body, "s>host>e b>caught")).await;
        let instance = stand.start("p", "{}").await.instance;
        stand.finished(instance).await;
        assert_eq!(
            stand.times(instance, "ElementCompleted caught").await,
            1,
            "{name}"
        );
        assert_eq!(stand.times(instance, "ElementCompleted e").await, 0, "{name}");
        let wanted = crate::support::jobs("sibling", std::time::Duration::ZERO);
        let left = stand.runtime.activate_jobs(wanted).await.unwrap();
        assert!(left.is_empty(), "{name}: siblings go on");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn case_151_the_same_code_inside_and_outside_is_caught_inside() {
    let stand = stand().await;
    let inside = format!(
        r#"<startEvent id="s2"/><subProcess id="deep">{}</subProcess>{}<endEvent id="near"/>{}"#,
        throws_beside_work(),
        boundary("b2", "deep", ON_ERROR),
        flows("s2>deep b2>near")
    );
    let body = format!(
        r#"<startEvent id="s"/><subProcess id="host">{inside}</subProcess>{}<endEvent id="e"/><endEvent id="far"/>"#,
        boundary("b", "host", ON_ERROR)
    );
    stand.deploy(model("p", ERROR, &body, "s>host>e b>far")).await;
    let instance = stand.start("p", "{}").await.instance;
    stand.finished(instance).await;
    let mut paths = Vec::new();
    for end in ["near", "e", "far"] {
        paths.push(stand.times(instance, &format!("ElementCompleted {end}")).await);
    }
    assert_eq!(paths, [1, 1, 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn case_145_the_outer_of_two_interrupting_events_wins_and_one_path_is_taken() {
    let stand = stand().await;
    stand
        .deploy(model(
            "inner",
            "",
            &format!(r#"<startEvent id="s"/>{}"#, work("work")),
            "s>work",
        ))
        .await;
    let level = |called: &str| {
        format!(
            r#"<startEvent id="s"/>{}{}<endEvent id="e"/><endEvent id="interrupted"/>"#,
            call("call", called),
            boundary("b", "call", ON_MESSAGE)
        )
    };
    stand
        .deploy(model(
            "middle",
            MESSAGE,
            &level("inner"),
            "s>call>e b>interrupted",
        ))
        .await;
    stand
        .deploy(model(
            "outer",
            MESSAGE,
            &level("middle"),
            "s>call>e b>interrupted",
        ))
        .await;
    let outer = stand.start("outer", r#"{"key": "k"}"#).await.instance;
    // The job is there once every level waits.
    let job = stand.job("work").await;
    stand.publish("go", "k", "{}").await;
    stand.finished(outer).await;
    assert_eq!(stand.times(outer, "ElementCompleted interrupted").await, 1);
    assert_eq!(stand.times(outer, "ElementCompleted e").await, 0);
    stand
        .until(job.instance, |d| d.row.sub_status.is_finished())
        .await;
    // The middle one is another process and takes the message too; whether it is told to end before or after that, it
    // takes no second way, what it called does nothing more, and nothing of it is left.
    for (process, never) in [("middle", "e"), ("inner", "work")] {
        let rows = stand
            .runtime
            .instances(InstanceFilter::default(), Page::first(10))
            .await
            .unwrap();
        let row = rows
            .iter()
            .find(|row| &*row.process_id == process)
            .expect(process);
        assert_eq!(
            stand.times(row.key, &format!("ElementCompleted {never}")).await,
            0,
            "{process}"
        );
    }
    for process in ["outer", "middle", "inner"] {
        let statuses = statuses(&stand, process).await;
        assert!(
            statuses.len() == 1 && statuses[0].is_finished(),
            "{process}: {statuses:?}"
        );
    }
    assert!(
        stand
            .runtime
            .incidents(Default::default(), Page::first(1))
            .await
            .unwrap()
            .is_empty()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn case_145_a_tree_with_two_interrupting_events_can_be_cancelled() {
    let stand = stand().await;
    stand
        .deploy(model(
            "inner",
            "",
            &format!(r#"<startEvent id="s"/>{}"#, work("work")),
            "s>work",
        ))
        .await;
    let level = |called: &str| {
        format!(
            r#"<startEvent id="s"/>{}{}"#,
            call("call", called),
            boundary("b", "call", ON_MESSAGE)
        )
    };
    stand
        .deploy(model("middle", MESSAGE, &level("inner"), "s>call"))
        .await;
    stand
        .deploy(model("outer", MESSAGE, &level("middle"), "s>call"))
        .await;
    let outer = stand.start("outer", r#"{"key": "k"}"#).await.instance;
    let job = stand.job("work").await;
    stand.runtime.cancel(outer, None, "op").await.unwrap();
    stand
        .until(job.instance, |d| d.row.sub_status == SubStatus::Cancelled)
        .await;
    for process in ["outer", "middle", "inner"] {
        assert_eq!(
            statuses(&stand, process).await,
            [SubStatus::Cancelled],
            "{process}"
        );
    }
}
