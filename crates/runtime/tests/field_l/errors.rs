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

/// Processes `p0`, `p1` and so on: each but the last calls the next, which waits for a worker. `host` makes the activity with
/// the call in it; every level has event `b` attached to it, which leads to `interrupted`.
async fn nested(stand: &Stand, levels: usize, host: &impl Fn(&str) -> String, event: &str, more: &str) {
    let last = format!(r#"<startEvent id="s"/>{}<endEvent id="e"/>"#, work("work"));
    stand
        .deploy(model(&format!("p{}", levels - 1), "", &last, "s>work>e"))
        .await;
    for level in (0..levels - 1).rev() {
        let body = format!(
            r#"<startEvent id="s"/>{}<boundaryEvent id="b" attachedToRef="host" {more}>{event}</boundaryEvent>
               <endEvent id="e"/><endEvent id="interrupted"/>"#,
            host(&format!("p{}", level + 1))
        );
        let beside = format!(r#"{MESSAGE}<signal id="si" name="go"/>"#);
        stand
            .deploy(model(
                &format!("p{level}"),
                &beside,
                &body,
                "s>host>e b>interrupted",
            ))
            .await;
    }
}

/// The instance of each level, the outermost first, where each level has one.
async fn levels(stand: &Stand) -> Vec<tidegate::store::InstanceRow> {
    let page = Page::first(100);
    let mut rows = stand
        .runtime
        .instances(InstanceFilter::default(), page)
        .await
        .unwrap();
    rows.sort_by_key(|row| row.depth);
    rows
}

/// Makes the activity with a call of this process in it.
type Host = fn(&str) -> String;

fn hosts() -> [(&'static str, Host); 4] {
    [
        ("a call", |called| call("host", called)),
        ("a call in a sub-process", |called| {
            let call = call("call", called);
            let flow = flows("s1>call");
            format!(r#"<subProcess id="host"><startEvent id="s1"/>{call}{flow}</subProcess>"#)
        }),
        ("a call in sub-processes", |called| {
            let (call, flow) = (call("call", called), flows("s2>call"));
            let deep = format!(r#"<subProcess id="deep"><startEvent id="s2"/>{call}{flow}</subProcess>"#);
            let flow = flows("s1>deep");
            format!(r#"<subProcess id="host"><startEvent id="s1"/>{deep}{flow}</subProcess>"#)
        }),
        ("a multi-instance of calls", |called| {
            let one = r#"<multiInstanceLoopCharacteristics><loopCardinality>1</loopCardinality></multiInstanceLoopCharacteristics>"#;
            call("host", called).replace("</callActivity>", &format!("{one}</callActivity>"))
        }),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn case_145_the_outer_of_many_interrupting_events_wins_and_one_path_is_taken() {
    for (name, host) in hosts() {
        for depth in 3..=5 {
            let what = format!("{name}, {depth} levels");
            let stand = stand().await;
            nested(&stand, depth, &host, ON_MESSAGE, "").await;
            let outer = stand.start("p0", r#"{"key": "k"}"#).await.instance;
            // The job is there once every level waits.
            stand.job("work").await;
            let published = stand.publish("go", "k", "{}").await;
            assert_eq!(published.delivered_to, [outer], "{what}");
            stand.finished(outer).await;
            // Those in between end when they are told that what they called has ended.
            for row in levels(&stand).await {
                stand.until(row.key, |d| d.row.sub_status.is_finished()).await;
            }
            let rows = levels(&stand).await;
            assert_eq!(rows.len(), depth, "{what}");
            for row in &rows {
                let is_outer = row.key == outer;
                let wanted = if is_outer {
                    SubStatus::Finished
                } else {
                    SubStatus::Cancelled
                };
                assert_eq!(row.sub_status, wanted, "{what}: {}", row.process_id);
                let events = stand.events(row.key).await;
                let taken = events
                    .iter()
                    .filter(|event| event.starts_with("MessageCorrelated"));
                assert_eq!(taken.count(), usize::from(is_outer), "{what}: {}", row.process_id);
                let ends = ["interrupted", "e"].map(|end| format!("ElementCompleted {end}"));
                let ends = ends.map(|end| events.contains(&end));
                assert_eq!(ends, [is_outer, false], "{what}: {}", row.process_id);
            }
            let incidents = stand.runtime.incidents(Default::default(), Page::first(1)).await;
            assert!(incidents.unwrap().is_empty(), "{what}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn case_145_the_outer_of_many_events_wins_by_a_signal_too() {
    for (name, host) in hosts() {
        let stand = stand().await;
        nested(&stand, 4, &host, r#"<signalEventDefinition signalRef="si"/>"#, "").await;
        let outer = stand.start("p0", "{}").await.instance;
        let job = stand.job("work").await;
        let signal = tidegate::api::SignalRequest {
            name: "go".to_owned(),
            variables: tidegate::model::Variables::new(),
            tenant: None,
            actor: "test".to_owned(),
            source: None,
        };
        stand.runtime.broadcast(signal).await.unwrap();
        stand.finished(outer).await;
        stand
            .until(job.instance, |d| d.row.sub_status.is_finished())
            .await;
        for row in levels(&stand).await {
            let caught = stand.times(row.key, "SignalCaught b").await;
            let wanted = usize::from(row.key == outer);
            assert_eq!(caught, wanted, "{name}: {}", row.process_id);
            let paths = stand.times(row.key, "ElementCompleted interrupted").await;
            assert_eq!(paths, wanted, "{name}: {}", row.process_id);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn case_145_events_that_interrupt_nothing_come_on_every_level() {
    for (name, host) in hosts() {
        let stand = stand().await;
        nested(&stand, 4, &host, ON_MESSAGE, r#"cancelActivity="false""#).await;
        let outer = stand.start("p0", r#"{"key": "k"}"#).await.instance;
        let job = stand.job("work").await;
        let published = stand.publish("go", "k", "{}").await;
        assert_eq!(published.delivered_to.len(), 3, "{name}");
        let variables = tidegate::model::Variables::new();
        let done = stand.runtime.complete_job(job.job, &job.lease_token, variables);
        done.await.unwrap();
        stand.finished(outer).await;
        for row in &levels(&stand).await[..3] {
            for end in ["interrupted", "e"] {
                let times = stand.times(row.key, &format!("ElementCompleted {end}")).await;
                assert_eq!(times, 1, "{name}: {} {end}", row.process_id);
            }
        }
    }
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
