//! Putting instances right: variables, incidents, tokens that move, and the change to another version.

mod support;

use std::collections::BTreeMap;

use support::{BEGINNING, Stand, flow, process, process_with, stand, stand_on, stores, task};
use tidegate::Error;
use tidegate::api::{Acceptance, Definition, Repaired, Resolution, Resource};
use tidegate::clock::ManualClock;
use tidegate::model::{
    Beginning, ElementInstanceKey, Ending, InstanceKey, Modification, Place, Plan, Rejection, SubStatus,
    Variables,
};
use tidegate::store::Page;

const MESSAGE: &str = r#"<bpmn:message id="m" name="go"><bpmn:extensionElements><zeebe:subscription correlationKey="=key"/></bpmn:extensionElements></bpmn:message>"#;

/// A task that waits for a worker.
fn first_version() -> Resource {
    let body = [
        r#"<bpmn:startEvent id="start"/>"#,
        &task("work", "outside", &[]),
        r#"<bpmn:endEvent id="end"/>"#,
        &flow("start", "work"),
        &flow("work", "end"),
    ];
    process("p", &body.concat())
}

/// The same with a timer and a message attached to it, and with other elements in front.
fn second_version() -> Resource {
    let boundary = |id: &str, event: &str| {
        format!(
            r#"<bpmn:boundaryEvent id="{id}" attachedToRef="work" cancelActivity="false">{event}</bpmn:boundaryEvent>"#
        )
    };
    let timer = r#"<bpmn:timerEventDefinition><bpmn:timeDuration>PT1H</bpmn:timeDuration></bpmn:timerEventDefinition>"#;
    let message = r#"<bpmn:messageEventDefinition messageRef="m"/>"#;
    let body = [
        r#"<bpmn:startEvent id="start"/><bpmn:task id="new"/><bpmn:task id="reminded"/><bpmn:task id="told"/>"#,
        &task("work", "outside", &[]),
        &boundary("late", timer),
        &boundary("news", message),
        r#"<bpmn:endEvent id="end"/>"#,
        &flow("start", "new"),
        &flow("new", "work"),
        &flow("work", "end"),
        &flow("late", "reminded"),
        &flow("news", "told"),
    ];
    process_with("p", MESSAGE, &body.concat())
}

fn newest() -> Definition {
    support::latest("p")
}

fn version(version: u32) -> Definition {
    Definition::Version("p".to_owned(), version)
}

fn mapping(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let pairs = pairs.iter();
    pairs
        .map(|(from, to)| ((*from).to_owned(), (*to).to_owned()))
        .collect()
}

fn kinds(lines: &[tidegate::model::Planned]) -> Vec<String> {
    let text = |line: &tidegate::model::Planned| {
        format!("{} {}", line.kind, line.element_id.as_deref().unwrap_or_default())
    };
    lines.iter().map(text).collect()
}

/// The codes of the reasons for a refusal, with what they are about.
fn reasons<T: std::fmt::Debug>(answer: Result<T, Error>) -> Vec<String> {
    match answer {
        Err(Error::Rejected(Rejection::Obstructed(reasons))) => reasons
            .iter()
            .map(|reason| {
                format!(
                    "{} {}",
                    reason.code,
                    reason.element_id.as_deref().unwrap_or_default()
                )
            })
            .collect(),
        other => panic!("not refused with reasons: {other:?}"),
    }
}

async fn waits(stand: &Stand, instance: InstanceKey) -> Vec<String> {
    let detail = stand.runtime.instance(instance).await.unwrap();
    let waits = detail.waiting_for.iter();
    let mut waits: Vec<String> = waits
        .map(|wait| format!("{} {}", wait.kind, wait.element_id))
        .collect();
    waits.sort();
    waits
}

fn before(id: &str) -> Beginning {
    Beginning {
        place: Place::Before(id.to_owned()),
        scope: None,
        variables: Variables::new(),
    }
}

fn element(id: &str) -> Ending {
    Ending::Element(id.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn case_176_a_migrated_instance_is_armed_for_what_the_new_version_added() {
    for (store, _folder) in stores() {
        let clock = ManualClock::new(BEGINNING);
        let stand = stand_on(store.clone(), clock.clone(), |b| b).await;
        stand.deploy(first_version()).await;
        let instance = stand.start("p", r#"{"key": "k"}"#).await.instance;
        let job = stand.job("outside").await;
        stand.deploy(second_version()).await;

        let planned = stand
            .runtime
            .plan_migration(instance, &newest(), BTreeMap::new())
            .await
            .unwrap();
        assert_eq!(kinds(&planned.armed), ["timer late", "message news"]);
        assert_eq!(planned.armed[1].detail, "go / k");
        let nothing = Plan {
            armed: planned.armed.clone(),
            ..Plan::default()
        };
        assert_eq!(planned, nothing, "nothing ends, begins or is disarmed");
        assert_eq!(
            waits(&stand, instance).await,
            ["job work"],
            "a dry run changes nothing"
        );
        assert_eq!(stand.runtime.instance(instance).await.unwrap().row.version, 1);

        let done = stand
            .runtime
            .migrate(
                instance,
                &newest(),
                BTreeMap::new(),
                Some("the reminder".to_owned()),
                "ada",
            )
            .await
            .unwrap();
        assert_eq!(done.acceptance, Acceptance::Done);
        assert_eq!(done.plan, planned);
        assert_eq!(
            waits(&stand, instance).await,
            ["job work", "message news", "timer late"]
        );
        let row = stand.runtime.instance(instance).await.unwrap().row;
        assert_eq!((row.version, row.sub_status), (2, SubStatus::Suspended));

        stand.publish("go", "k", "{}").await;
        stand.idle().await;
        clock.advance(3_601_000);
        stand
            .until(instance, |detail| {
                !detail.waiting_for.iter().any(|wait| wait.kind == "timer")
            })
            .await;
        stand.idle().await;
        for event in ["ElementCompleted told", "ElementCompleted reminded"] {
            support::eventually(event, async || stand.times(instance, event).await == 1).await;
        }
        stand
            .runtime
            .drain(tidegate::status::DrainTrigger::HostStopSignal)
            .await;

        // Another process takes it up: the state is of the new version, and the journal tells of both.
        let stand = stand_on(store, clock, |b| b).await;
        let none = Variables::new();
        stand
            .runtime
            .complete_job(job.job, &job.lease_token, none)
            .await
            .unwrap();
        stand.finished(instance).await;
        let events = stand.events(instance).await;
        let at = |event: &str| events.iter().position(|found| found == event);
        assert!(at("ElementActivated work") < at("Migrated"), "{events:?}");
        assert!(at("Migrated") < at("TimerArmed late"), "{events:?}");
        assert_eq!(at("ElementActivated new"), None, "it was past that already");
        let items = stand.runtime.history(instance, 0, 1_000).await.unwrap();
        let migrated = items.iter().find(|item| item.event == "Migrated").unwrap();
        assert_eq!(
            serde_json::to_value(&migrated.cause).unwrap()["reason"],
            "the reminder"
        );
        let audit = stand.runtime.audit(Page::first(10)).await.unwrap();
        let entry = audit
            .iter()
            .find(|row| row.action == "InstanceMigrationRequested")
            .unwrap();
        assert_eq!(
            (entry.before.as_deref(), entry.after.as_deref()),
            (Some("version 1"), Some("version 2"))
        );
        assert_eq!(entry.subject, Some(instance.to_string()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn case_180_instances_in_flight_are_tried_on_a_version_before_they_change_to_it() {
    for (store, _folder) in stores() {
        let stand = stand_on(store, ManualClock::new(BEGINNING), |b| b).await;
        let line = |tasks: &[&str]| {
            let tasks: Vec<(&str, String)> = tasks.iter().map(|id| (*id, task(id, id, &[]))).collect();
            support::line("p", &tasks)
        };
        stand.deploy(line(&["a", "b", "c"])).await;
        let mut instances = Vec::new();
        for _ in 0..6 {
            instances.push(stand.start("p", "{}").await.instance);
        }
        // The first two stand in `a`, the next in `b`.
        for _ in 0..4 {
            stand.complete("a", "{}").await;
        }
        stand.complete("b", "{}").await;
        stand.complete("b", "{}").await;
        stand.idle().await;
        // `b` is gone.
        stand.deploy(line(&["z", "a", "c"])).await;

        let check = stand
            .runtime
            .check_migration(
                &newest(),
                tidegate::api::DEFAULT_TENANT,
                BTreeMap::new(),
                Page::first(100),
            )
            .await
            .unwrap();
        assert_eq!((check.can_change, check.there_already, check.next), (4, 0, None));
        assert_eq!(check.obstructed.len(), 2);
        for stuck in &check.obstructed {
            assert_eq!((stuck.reasons[0].code, stuck.version), ("unmapped-element", 1));
        }
        let stuck: Vec<InstanceKey> = check.obstructed.iter().map(|stuck| stuck.instance_key).collect();
        let all = mapping(&[("b", "c")]);
        let check = stand
            .runtime
            .check_migration(&newest(), tidegate::api::DEFAULT_TENANT, all, Page::first(100))
            .await
            .unwrap();
        assert_eq!(check.can_change, 6, "{check:?}");

        // Forward, and back again: whoever moved on finishes on what it has.
        for instance in &instances {
            let moved = stand
                .runtime
                .migrate(*instance, &newest(), BTreeMap::new(), None, "ada")
                .await;
            assert_eq!(moved.is_err(), stuck.contains(instance));
        }
        let movers: Vec<InstanceKey> = instances
            .iter()
            .copied()
            .filter(|key| !stuck.contains(key))
            .collect();
        for instance in movers.iter().take(2) {
            stand
                .runtime
                .migrate(*instance, &version(1), BTreeMap::new(), None, "ada")
                .await
                .unwrap();
        }
        let detail = stand.runtime.instance(movers[0]).await.unwrap();
        assert_eq!(detail.row.version, 1);
        let mut left = instances.clone();
        while !left.is_empty() {
            for job_type in ["a", "b", "c"] {
                let leased = stand
                    .runtime
                    .activate_jobs(support::jobs(job_type, std::time::Duration::ZERO))
                    .await
                    .unwrap();
                for job in leased {
                    let none = Variables::new();
                    stand
                        .runtime
                        .complete_job(job.job, &job.lease_token, none)
                        .await
                        .unwrap();
                }
            }
            stand.idle().await;
            let mut still = Vec::new();
            for key in left {
                let detail = stand.runtime.instance(key).await.unwrap();
                if detail.row.sub_status != SubStatus::Finished {
                    still.push(key);
                }
            }
            left = still;
        }
        for instance in &stuck {
            let items = stand.events(*instance).await;
            assert!(
                items.contains(&"ElementCompleted b".to_owned()) && !items.contains(&"Migrated".to_owned())
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_migration_that_cannot_be_is_refused_with_every_reason_and_changes_nothing() {
    let stand = stand().await;
    let body = |inner: &str| {
        [
            r#"<bpmn:startEvent id="start"/><bpmn:parallelGateway id="fork"/>"#,
            inner,
            &flow("start", "fork"),
        ]
        .concat()
    };
    let user = |id: &str| format!(r#"<bpmn:userTask id="{id}"/>{}"#, flow("fork", id));
    let one = body(&[user("a"), user("b"), user("c"), user("d")].concat());
    stand.deploy(process("p", &one)).await;
    let instance = stand.start("p", "{}").await.instance;
    let many = format!(
        r#"<bpmn:userTask id="d"><bpmn:multiInstanceLoopCharacteristics><bpmn:loopCardinality>2</bpmn:loopCardinality></bpmn:multiInstanceLoopCharacteristics></bpmn:userTask>{}"#,
        flow("fork", "d")
    );
    let service = format!("{}{}", task("b", "x", &[]), flow("fork", "b"));
    let inner = format!(
        r#"<bpmn:subProcess id="s"><bpmn:startEvent id="s0"/><bpmn:userTask id="c"/>{}</bpmn:subProcess>{}"#,
        flow("s0", "c"),
        flow("fork", "s")
    );
    stand
        .deploy(process("p", &body(&[service, inner, many].concat())))
        .await;
    let given = mapping(&[("nobody", "b"), ("a", "nowhere")]);
    let refused = stand
        .runtime
        .migrate(instance, &newest(), given, None, "ada")
        .await;
    let expected = [
        "unknown-target a",
        "unknown-source nobody",
        "unmapped-element a",
        "type-changed b",
        "scope-changed c",
        "repetition-changed d",
    ];
    assert_eq!(reasons(refused), expected);
    let detail = stand.runtime.instance(instance).await.unwrap();
    assert_eq!((detail.row.version, detail.tokens.len()), (1, 4));
    assert!(
        !stand
            .audited()
            .await
            .contains(&"InstanceMigrationRequested".to_owned())
    );
    // Another process, or the version it has.
    stand
        .deploy(process("other", r#"<bpmn:startEvent id="start"/>"#))
        .await;
    for (to, code) in [
        (support::latest("other"), "other-process"),
        (version(1), "same-version"),
    ] {
        let refused = stand
            .runtime
            .migrate(instance, &to, BTreeMap::new(), None, "ada")
            .await;
        assert_eq!(refused.unwrap_err().code(), code);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_migrated_instance_keeps_its_timers_and_the_tokens_that_wait_at_a_join() {
    for (store, _folder) in stores() {
        let clock = ManualClock::new(BEGINNING);
        let stand = stand_on(store, clock.clone(), |b| b).await;
        let version = |front: &str, wait: &str, nap: &str| {
            let body = [
                front,
                r#"<bpmn:startEvent id="start"/><bpmn:parallelGateway id="fork"/><bpmn:parallelGateway id="join"/>"#,
                r#"<bpmn:task id="quick"/>"#,
                &format!(
                    r#"<bpmn:intermediateCatchEvent id="{nap}"><bpmn:timerEventDefinition><bpmn:timeDuration>{wait}</bpmn:timeDuration></bpmn:timerEventDefinition></bpmn:intermediateCatchEvent>"#
                ),
                r#"<bpmn:endEvent id="end"/>"#,
                &flow("start", "fork"),
                &flow("fork", "quick"),
                &flow("fork", nap),
                &flow("quick", "join"),
                &flow(nap, "join"),
                &flow("join", "end"),
            ];
            process("p", &body.concat())
        };
        stand.deploy(version("", "PT1H", "nap")).await;
        let instance = stand.start("p", "{}").await.instance;
        let due = |detail: &tidegate::api::InstanceDetail| detail.waiting_for[0].detail.clone();
        let was = due(&stand.runtime.instance(instance).await.unwrap());
        clock.advance(60_000);
        stand
            .deploy(version(r#"<bpmn:task id="extra"/>"#, "PT9H", "rest"))
            .await;
        let refused = stand
            .runtime
            .plan_migration(instance, &newest(), BTreeMap::new())
            .await;
        assert_eq!(reasons(refused), ["unmapped-element nap"]);
        let given = mapping(&[("nap", "rest")]);
        let plan = stand
            .runtime
            .migrate(instance, &newest(), given, None, "ada")
            .await
            .unwrap()
            .plan;
        assert_eq!(
            (plan.armed.len(), plan.disarmed.len(), plan.moved.len()),
            (0, 0, 1),
            "{plan:?}"
        );
        let detail = stand.runtime.instance(instance).await.unwrap();
        assert_eq!(due(&detail), was, "the timer keeps its time");
        assert!(
            detail.tokens.iter().any(|token| token.element_id == "join"),
            "{:?}",
            detail.tokens
        );
        clock.advance(3_600_000);
        stand.finished(instance).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn repairs_wait_while_the_runtime_is_paused_with_their_audit_written() {
    for (store, _folder) in stores() {
        let stand = stand_on(store, ManualClock::new(BEGINNING), |b| b).await;
        stand.deploy(first_version()).await;
        let moved = stand.start("p", r#"{"key": "k"}"#).await.instance;
        let changed = stand.start("p", r#"{"key": "k"}"#).await.instance;
        stand.deploy(second_version()).await;
        stand.runtime.pause(None, None, "op").await.unwrap();
        let modification = Modification {
            end: vec![element("work")],
            begin: vec![before("end")],
            ..Modification::default()
        };
        let modified = stand
            .runtime
            .modify(moved, modification, Some("done by hand".to_owned()), "ada")
            .await;
        assert!(matches!(modified.unwrap().acceptance, Acceptance::Queued(_)));
        let migrated = stand
            .runtime
            .migrate(changed, &newest(), BTreeMap::new(), None, "ada")
            .await
            .unwrap();
        assert!(matches!(migrated.acceptance, Acceptance::Queued(_)));
        assert_eq!(kinds(&migrated.plan.armed), ["timer late", "message news"]);
        let set = Variables::parse(r#"{"n": 1}"#).unwrap();
        let set = stand
            .runtime
            .set_variables_in(changed, None, set, Some("why".to_owned()), "ada")
            .await;
        assert!(matches!(set.unwrap(), Acceptance::Queued(_)));
        assert_eq!(waits(&stand, moved).await, ["job work"]);
        let audited = stand.audited().await;
        for action in [
            "InstanceModificationRequested",
            "InstanceMigrationRequested",
            "InstanceVariablesSet",
        ] {
            assert!(audited.contains(&action.to_owned()), "{audited:?}");
        }
        stand.runtime.resume("op").await.unwrap();
        stand.finished(moved).await;
        let detail = stand.until(changed, |detail| detail.row.version == 2).await;
        assert_eq!(detail.waiting_for.len(), 3);
        stand
            .until(changed, |detail| detail.variables.get("n").is_some())
            .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_move_and_sub_processes_begin_and_end_with_them() {
    for (store, _folder) in stores() {
        let stand = stand_on(store, ManualClock::new(BEGINNING), |b| b).await;
        let inner = [
            r#"<bpmn:subProcess id="outer"><bpmn:startEvent id="o0"/><bpmn:task id="first"/>"#,
            &task("deep", "deep", &[]),
            r#"<bpmn:endEvent id="o1"/>"#,
            &flow("o0", "first"),
            &flow("first", "deep"),
            &flow("deep", "o1"),
            r#"</bpmn:subProcess><bpmn:boundaryEvent id="late" attachedToRef="outer"><bpmn:timerEventDefinition><bpmn:timeDuration>PT1H</bpmn:timeDuration></bpmn:timerEventDefinition></bpmn:boundaryEvent>"#,
        ];
        let body = [
            r#"<bpmn:startEvent id="start"/>"#,
            &task("a", "a", &[]),
            &inner.concat(),
            r#"<bpmn:endEvent id="end"/><bpmn:endEvent id="over"/>"#,
            &flow("start", "a"),
            &flow("a", "outer"),
            &flow("outer", "end"),
            &flow("late", "over"),
        ];
        stand.deploy(process("p", &body.concat())).await;
        let instance = stand.start("p", "{}").await.instance;
        // Into the sub-process, past its own start.
        let into = Modification {
            end: vec![element("a")],
            begin: vec![Beginning {
                variables: Variables::parse(r#"{"local": 7}"#).unwrap(),
                ..before("deep")
            }],
            variables: Variables::parse(r#"{"global": 1}"#).unwrap(),
        };
        let plan = stand
            .runtime
            .plan_modification(instance, into.clone())
            .await
            .unwrap();
        assert_eq!(kinds(&plan.ended), ["serviceTask a"]);
        assert_eq!(kinds(&plan.started), ["subProcess outer", "serviceTask deep"]);
        assert_eq!(kinds(&plan.armed), ["timer late", "job deep"]);
        assert_eq!(kinds(&plan.disarmed), ["job a"]);
        assert_eq!(waits(&stand, instance).await, ["job a"]);
        let done = stand.runtime.modify(instance, into, None, "ada").await.unwrap();
        assert_eq!(done.plan, plan);
        assert_eq!(waits(&stand, instance).await, ["job deep", "timer late"]);
        let job = stand.job("deep").await;
        let seen: serde_json::Value = serde_json::from_str(&job.variables).unwrap();
        assert_eq!((&seen["local"], &seen["global"]), (&7.into(), &1.into()));
        let detail = stand.runtime.instance(instance).await.unwrap();
        assert!(detail.variables.get("local").is_none() && detail.variables.get("global").is_some());
        // And out of it: the sub-process has nothing left, and ends with its timer.
        let out = Modification {
            end: vec![Ending::Instance(job.job)],
            begin: vec![before("a")],
            ..Modification::default()
        };
        let done = stand.runtime.modify(instance, out, None, "ada").await.unwrap();
        assert_eq!(kinds(&done.plan.ended), ["subProcess outer", "serviceTask deep"]);
        assert_eq!(waits(&stand, instance).await, ["job a"]);
        let gone = stand
            .runtime
            .complete_job(job.job, &job.lease_token, Variables::new())
            .await;
        assert!(gone.is_err(), "a job that was ended takes no result");
        stand.complete("a", "{}").await;
        stand.complete("deep", "{}").await;
        stand.finished(instance).await;
        assert_eq!(stand.times(instance, "ElementCompleted first").await, 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_modification_that_cannot_be_is_refused_with_every_reason() {
    let stand = stand().await;
    let many = r#"<bpmn:subProcess id="each"><bpmn:startEvent id="e0"/><bpmn:userTask id="in"/><bpmn:sequenceFlow id="e0-in" sourceRef="e0" targetRef="in"/><bpmn:multiInstanceLoopCharacteristics><bpmn:loopCardinality>2</bpmn:loopCardinality></bpmn:multiInstanceLoopCharacteristics></bpmn:subProcess>"#;
    let body = [
        r#"<bpmn:startEvent id="start"/>"#,
        many,
        r#"<bpmn:userTask id="x"/><bpmn:endEvent id="end"/><bpmn:endEvent id="e2"/>"#,
        &flow("start", "each"),
        &flow("each", "x"),
        &flow("x", "end"),
        &flow("x", "e2"),
    ];
    stand.deploy(process("p", &body.concat())).await;
    let instance = stand.start("p", "{}").await.instance;
    let refused = async |end: Vec<Ending>, begin: Vec<Beginning>| {
        let modification = Modification {
            end,
            begin,
            ..Modification::default()
        };
        reasons(stand.runtime.modify(instance, modification, None, "ada").await)
    };
    let after = Beginning {
        place: Place::After("x".to_owned()),
        ..before("x")
    };
    let nowhere = Ending::Instance(ElementInstanceKey(5));
    assert_eq!(
        refused(
            vec![element("nothing"), element("x"), nowhere],
            vec![before("in"), before("none"), after],
        )
        .await,
        [
            "unknown-element nothing",
            "not-active x",
            "not-active ",
            "scope-ambiguous each",
            "unknown-element none",
            "flow-ambiguous x"
        ]
    );
    assert_eq!(refused(vec![element("each")], vec![]).await, ["nothing-left "]);
    let detail = stand.runtime.instance(instance).await.unwrap();
    let inner: Vec<_> = detail
        .tokens
        .iter()
        .filter(|token| token.element_id == "in")
        .collect();
    let one = Ending::Instance(inner[0].element_instance_key.unwrap());
    assert_eq!(
        refused(vec![one], vec![before("x")]).await,
        ["multi-instance-turn each"]
    );
    // One more inside the first turn, named by what lives there.
    let turns: Vec<_> = detail
        .tokens
        .iter()
        .filter(|token| token.element_id == "each")
        .collect();
    let modification = Modification {
        begin: vec![Beginning {
            scope: turns[1].element_instance_key,
            ..before("in")
        }],
        ..Modification::default()
    };
    stand
        .runtime
        .modify(instance, modification, None, "ada")
        .await
        .unwrap();
    let detail = stand.runtime.instance(instance).await.unwrap();
    assert_eq!(
        detail
            .tokens
            .iter()
            .filter(|token| token.element_id == "in")
            .count(),
        3
    );
    stand.runtime.cancel(instance, None, "ada").await.unwrap();
    let modification = Modification {
        begin: vec![before("x")],
        ..Modification::default()
    };
    let ended = stand.runtime.modify(instance, modification, None, "ada").await;
    assert_eq!(ended.unwrap_err().code(), "instance-ended");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_incident_is_resolved_with_corrected_variables_as_one_step() {
    for (store, _folder) in stores() {
        let stand = stand_on(store, ManualClock::new(BEGINNING), |b| b).await;
        let body = [
            r#"<bpmn:startEvent id="start"/><bpmn:exclusiveGateway id="choose"/><bpmn:endEvent id="end"/>"#,
            &flow("start", "choose"),
            r#"<bpmn:sequenceFlow id="f" sourceRef="choose" targetRef="end"><bpmn:conditionExpression xsi:type="bpmn:tFormalExpression">= ok = true</bpmn:conditionExpression></bpmn:sequenceFlow>"#,
        ];
        stand.deploy(process("p", &body.concat())).await;
        let instance = stand.start("p", "{}").await.instance;
        let incident = stand.incident().await;
        let resolution = |text: &str, scope| Resolution {
            variables: Variables::parse(text).unwrap(),
            reason: Some("looked it up".to_owned()),
            scope,
            ..Resolution::default()
        };
        let nowhere = resolution("{}", Some(ElementInstanceKey(5)));
        let refused = stand.runtime.resolve_incident(incident.key, nowhere, "ada").await;
        assert_eq!(refused.unwrap_err().code(), "scope-not-found");
        let given = resolution(r#"{"ok": true}"#, None);
        assert_eq!(
            stand
                .runtime
                .resolve_incident(incident.key, given, "ada")
                .await
                .unwrap(),
            Acceptance::Done
        );
        stand.finished(instance).await;
        let events = stand.events(instance).await;
        let at = |event: &str| events.iter().position(|found| found == event).unwrap();
        assert_eq!(at("IncidentResolved"), at("VariablesSet") + 1);
        assert_eq!(stand.audited().await, ["IncidentResolveRequested"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn case_180_a_version_that_is_not_deployed_is_tried_on_what_is_in_flight() {
    let stand = stand().await;
    let line = |tasks: &[&str]| {
        let tasks: Vec<(&str, String)> = tasks.iter().map(|id| (*id, task(id, id, &[]))).collect();
        support::line("p", &tasks)
    };
    stand.deploy(line(&["a", "b"])).await;
    let in_a = stand.start("p", "{}").await.instance;
    let in_b = stand.start("p", "{}").await.instance;
    while stand.runtime.instance(in_b).await.unwrap().tokens[0].element_id != "b" {
        let job = stand.job("a").await;
        let none = Variables::new();
        if job.instance == in_b {
            stand
                .runtime
                .complete_job(job.job, &job.lease_token, none)
                .await
                .unwrap();
        }
    }
    let check = async |file: Resource, mapping| {
        let tenant = tidegate::api::DEFAULT_TENANT;
        let page = Page::first(100);
        stand
            .runtime
            .check_migration_to_file(file, None, tenant, mapping, page)
            .await
    };
    let found = check(line(&["a", "c"]), BTreeMap::new()).await.unwrap();
    assert_eq!(
        (found.definition_key, found.version, found.can_change),
        (None, 2, 1)
    );
    let stuck: Vec<_> = found.obstructed.iter().map(|stuck| stuck.instance_key).collect();
    assert_eq!(stuck, [in_b]);
    let found = check(line(&["a", "c"]), mapping(&[("b", "c")])).await.unwrap();
    assert_eq!(found.can_change, 2);
    let plan = |instance| {
        stand
            .runtime
            .plan_migration_to_file(instance, line(&["a", "c"]), BTreeMap::new())
    };
    assert!(plan(in_a).await.is_ok());
    assert_eq!(reasons(plan(in_b).await), ["unmapped-element b"]);
    // A file that could not be deployed says why, and none of it has left anything.
    let broken = process(
        "p",
        r#"<bpmn:startEvent id="s"/><bpmn:sequenceFlow id="f" sourceRef="s" targetRef="x"/>"#,
    );
    assert!(matches!(
        check(broken, BTreeMap::new()).await,
        Err(Error::NotDeployable(_))
    ));
    let other = process("other", r#"<bpmn:startEvent id="start"/>"#);
    let refused = stand
        .runtime
        .plan_migration_to_file(in_a, other, BTreeMap::new())
        .await;
    assert_eq!(refused.unwrap_err().code(), "process-not-in-file");
    let versions = stand
        .runtime
        .definitions(Default::default(), Page::first(10))
        .await
        .unwrap();
    assert_eq!(versions.len(), 1);
    assert_eq!(stand.runtime.instance(in_a).await.unwrap().row.version, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_migration_overtook_is_an_incident_or_looks_for_another_taker() {
    for (store, _folder) in stores() {
        let stand = stand_on(store, ManualClock::new(BEGINNING), |b| b).await;
        stand.deploy(first_version()).await;
        stand.deploy(second_version()).await;
        let instance = stand.start("p", r#"{"key": "k"}"#).await.instance;
        stand.idle().await;
        let request = tidegate::SuspendRequest::by("ada");
        stand.runtime.suspend(instance, request).await.unwrap();
        // All of it fits the version that it has now, and waits behind the change to one without these elements.
        let moved = stand
            .runtime
            .migrate(instance, &version(1), BTreeMap::new(), None, "ada")
            .await
            .unwrap();
        assert!(matches!(moved.acceptance, Acceptance::Queued(_)));
        let published = stand.publish("go", "k", "{}").await;
        assert_eq!(published.deferred_for, [instance]);
        let modification = Modification {
            variables: Variables::new(),
            end: Vec::new(),
            begin: vec![before("told")],
        };
        let repaired = stand
            .runtime
            .modify(instance, modification, None, "bob")
            .await
            .unwrap();
        assert!(matches!(repaired.acceptance, Acceptance::Queued(_)));
        let fine = Variables::parse(r#"{"fine": true}"#).unwrap();
        let set = stand.runtime.set_variables(instance, fine, "bob").await.unwrap();
        assert!(matches!(set, Acceptance::Queued(_)));
        stand
            .runtime
            .resume_instance(instance, None, "ada")
            .await
            .unwrap();

        let incident = stand.incident().await;
        assert_eq!(
            (incident.code.as_str(), incident.instance),
            ("stimulus-refused", instance)
        );
        assert!(
            incident.message.contains("bob") && incident.message.contains("told"),
            "{}",
            incident.message
        );
        support::eventually("the queue is empty", async || {
            stand.store.queue().unwrap().depth == 0
        })
        .await;
        let detail = stand.runtime.instance(instance).await.unwrap();
        assert_eq!(detail.row.version, 1);
        assert_eq!(detail.variables.get("fine").unwrap().text(), "true");
        assert_eq!(stand.times(instance, "MessageCorrelated news").await, 0);
        let taker = stand.start("p", r#"{"key": "k"}"#).await.instance;
        support::eventually("another takes it", async || {
            stand.times(taker, "ElementCompleted told").await == 1
        })
        .await;
        stand.runtime.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repair_and_a_message_race_a_migration_and_nothing_of_it_is_lost() {
    const ROUNDS: usize = 40;
    for (store, _folder) in stores() {
        let stand = std::sync::Arc::new(stand_on(store, ManualClock::new(BEGINNING), |b| b).await);
        stand.deploy(first_version()).await;
        stand.deploy(second_version()).await;
        for round in 0..ROUNDS {
            let variables = format!(r#"{{"key": "{round}"}}"#);
            let instance = stand.start("p", &variables).await.instance;
            let (mover, repairer) = (stand.clone(), stand.clone());
            let migrate = tokio::spawn(async move {
                let to = version(1);
                mover
                    .runtime
                    .migrate(instance, &to, BTreeMap::new(), None, "ada")
                    .await
            });
            let repair = tokio::spawn(async move {
                let modification = Modification {
                    variables: Variables::new(),
                    end: Vec::new(),
                    begin: vec![before("told")],
                };
                repairer.runtime.modify(instance, modification, None, "bob").await
            });
            stand.publish("go", &round.to_string(), "{}").await;
            migrate.await.unwrap().unwrap();
            let repaired = repair.await.unwrap();
            stand.until(instance, |detail| detail.row.version == 1).await;
            stand.idle().await;
            support::eventually("the queue is empty", async || {
                stand.store.queue().unwrap().depth == 0
            })
            .await;
            let filter = tidegate::store::IncidentFilter {
                instance: Some(instance),
                ..Default::default()
            };
            let incidents = stand
                .runtime
                .incidents(filter, Page::first(10))
                .await
                .unwrap()
                .len();
            let correlated = stand.times(instance, "MessageCorrelated news").await;
            let told = stand.times(instance, "ElementCompleted told").await;
            match repaired {
                Ok(Repaired { acceptance, .. }) => {
                    let is_told = acceptance == Acceptance::Done;
                    assert_eq!(told + incidents, correlated + 1, "round {round}");
                    assert!(!is_told || incidents == 0, "round {round}");
                }
                Err(refused) => {
                    assert!(matches!(refused, Error::Rejected(_)), "{refused}");
                    assert_eq!((told, incidents), (correlated, 0), "round {round}");
                }
            }
            if correlated == 0 {
                let taker = stand.start("p", &variables).await.instance;
                support::eventually("another takes it", async || {
                    stand.times(taker, "MessageCorrelated news").await == 1
                })
                .await;
            }
        }
        stand.runtime.close().await;
    }
}
