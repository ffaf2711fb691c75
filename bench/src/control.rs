//! `park` and `control`: how soon an engine with very many instances at rest is shut down, and what it costs to suspend,
//! cancel and forget one instance that has gone through very many turns, or has called very many others. On SQLite with
//! full sync.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::json;
use tidegate::api::{Resource, StartRequest};
use tidegate::batch::{BatchRequest, Selection, Verb};
use tidegate::forget::JournalFate;
use tidegate::model::{InstanceKey, SubStatus};
use tidegate::{CancelRequest, Runtime, ShutdownMode, SuspendRequest};

use crate::measure::rounded;
use crate::parked;
use crate::setting::on_tokio;
use crate::stop::{count, start};

/// Longer than any of it takes.
const LONG: Duration = Duration::from_secs(600);

/// Shutting down in mode `park` with `count` (100,000) instances that wait for a message.
pub fn park(options: &BTreeMap<String, String>) {
    let count = count(options, 100_000);
    on_tokio(async {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let runtime = start(folder.path(), LONG).await;
        parked::deploy(&runtime).await;
        parked::park(&runtime, 0, count as u64).await;
        let began = Instant::now();
        let report = runtime.shutdown(ShutdownMode::Park, LONG).await;
        let took = began.elapsed();
        report.expect("everything settles");
        let again = start(folder.path(), LONG).await;
        let still = again.counts().await.expect("the instances can be counted");
        let line = json!({
            "bench": "park",
            "store": "sqlite",
            "parked": still[usize::from(SubStatus::Suspended.code())],
            "shutdown_ms": ms(took),
        });
        println!("{line}");
        again.close().await;
    });
}

/// One instance with a tenth of `count` (10,000) turns or called instances, and one with all of them: a line for each.
pub fn control(options: &BTreeMap<String, String>) {
    let most = count(options, 10_000);
    for shape in ["turns", "children"] {
        for size in [most / 10, most] {
            on_tokio(one(shape, size));
        }
    }
}

async fn one(shape: &str, size: usize) {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let runtime = start(folder.path(), LONG).await;
    let (inner, outer) = models(shape, size);
    for (name, xml) in [("inner.bpmn", inner), ("outer.bpmn", outer)] {
        let file = Resource {
            name: name.to_owned(),
            bytes: xml.into_bytes(),
        };
        let deployed = runtime.deploy(vec![file], None, "bench").await;
        deployed.expect("the process deploys");
    }
    let children = if shape == "children" { size } else { 0 };
    let began = Instant::now();
    let started = runtime.start(StartRequest::latest("outer")).await;
    let key = started.expect("the start is taken").instance;
    until(&runtime, SubStatus::Suspended, children + 1).await;
    let reached = began.elapsed();

    let began = Instant::now();
    let request = SuspendRequest {
        wait: LONG,
        ..SuspendRequest::by("bench")
    };
    let suspended = runtime.suspend(key, request).await.expect("it is suspended");
    assert!(suspended.is_effective && suspended.held_instances == children + 1);
    let suspended = began.elapsed();

    let began = Instant::now();
    let released = runtime.resume_instance(key, None, "bench").await;
    released.expect("it is let go");
    until(&runtime, SubStatus::Suspended, children + 1).await;
    let released = began.elapsed();

    let began = Instant::now();
    let request = CancelRequest::by("bench", LONG);
    let asked = runtime.ask_to_cancel(key, &request).await;
    asked.expect("the request is taken");
    let asked = began.elapsed();
    let ended = runtime.cancel_and_wait(key, request).await;
    ended.expect("it ends");
    let cancelled = began.elapsed();
    until(&runtime, SubStatus::Cancelled, children + 1).await;

    let began = Instant::now();
    forget(&runtime, key, children).await;
    let forgotten = began.elapsed();
    let left = runtime.counts().await.expect("the instances can be counted");
    assert_eq!(left.iter().sum::<u64>(), 0, "all of it is forgotten");
    let line = json!({
        "bench": "control",
        "store": "sqlite",
        "shape": shape,
        "count": size,
        "reached_ms": ms(reached),
        "suspend_ms": ms(suspended),
        "release_ms": ms(released),
        "cancel_answer_ms": ms(asked),
        "cancel_ms": ms(cancelled),
        "forget_ms": ms(forgotten),
    });
    println!("{line}");
    runtime.close().await;
}

/// By name where so many may be named, else by a batch.
async fn forget(runtime: &Runtime, key: InstanceKey, children: usize) {
    if children < 1_000 {
        let done = runtime.forget(vec![key], JournalFate::Dropped, "bench").await;
        done.expect("it is forgotten");
        return;
    }
    for process in ["inner", "outer"] {
        let request = BatchRequest {
            verb: Verb::Forget,
            selection: Selection {
                process_id: Some(process.to_owned()),
                ..Selection::default()
            },
            dry_run: false,
            keeps_journal: false,
            migration: None,
            reason: None,
            actor: "bench".to_owned(),
        };
        let batch = runtime.create_batch(request).await.expect("the batch is taken");
        let over = runtime.batch_over(batch.batch_key, LONG).await;
        assert_eq!(over.expect("the batch ends").counts.failed, 0);
    }
}

async fn until(runtime: &Runtime, sub_status: SubStatus, many: usize) {
    let many = many as u64;
    while runtime.counts().await.expect("the instances can be counted")[usize::from(sub_status.code())] < many
    {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

fn ms(duration: Duration) -> f64 {
    rounded(duration.as_secs_f64() * 1e3)
}

/// The called process, and the one that is controlled: as many turns of a loop and then a wait, or as many calls at once.
fn models(shape: &str, size: usize) -> (String, String) {
    let file = |id: &str, body: &str| {
        format!(
            r#"<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:z="http://camunda.org/schema/zeebe/1.0" targetNamespace="urn:bench">
<process id="{id}" isExecutable="true"><startEvent id="s"/><sequenceFlow id="a" sourceRef="s" targetRef="t"/>{body}<endEvent id="e"/></process></definitions>"#
        )
    };
    let work = |id: &str, job: &str, more: &str| {
        format!(
            r#"<serviceTask id="{id}"><extensionElements><z:taskDefinition type="{job}"/></extensionElements>{more}</serviceTask>"#
        )
    };
    let waits = work("t", "outside", "") + r#"<sequenceFlow id="b" sourceRef="t" targetRef="e"/>"#;
    let many = |how: &str| {
        format!(
            r#"<multiInstanceLoopCharacteristics{how}><loopCardinality>{size}</loopCardinality></multiInstanceLoopCharacteristics>"#
        )
    };
    let outer = match shape {
        "turns" => [
            work("t", "demo.noop", &many(r#" isSequential="true""#)),
            work("w", "outside", ""),
            r#"<sequenceFlow id="b" sourceRef="t" targetRef="w"/><sequenceFlow id="c" sourceRef="w" targetRef="e"/>"#
                .to_owned(),
        ]
        .concat(),
        _ => format!(
            r#"<callActivity id="t"><extensionElements><z:calledElement processId="inner"/></extensionElements>{}</callActivity><sequenceFlow id="b" sourceRef="t" targetRef="e"/>"#,
            many("")
        ),
    };
    (file("inner", &waits), file("outer", &outer))
}
