//! What the model of a process says of the number of its instances and of how long they are remembered; and the record of a
//! journal that was trimmed.

use tidegate_engine::{CompileOptions, Event, WhenFull, compile, decode_events, encode_events};
use tidegate_model::{Cause, Timestamp};

const LIMITED: &str = r#"<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:tidegate="urn:tidegate:bpmn" targetNamespace="test">
<process id="p" isExecutable="true" tidegate:maxInstances="3" tidegate:whenFull="replace" tidegate:retention="P1DT1H" tidegate:retentionCount="7" tidegate:journalLimit="99">
<startEvent id="s"/><sequenceFlow id="f" sourceRef="s" targetRef="e"/><endEvent id="e"/></process></definitions>"#;

fn compiled(xml: &str) -> tidegate_engine::Compiled {
    let parsed = tidegate_bpmn::parse("p.bpmn", xml.as_bytes(), &tidegate_bpmn::Limits::default());
    compile(
        &parsed.document.expect("it can be read"),
        &CompileOptions::default(),
    )
}

#[test]
fn a_model_says_how_many_instances_there_may_be_and_how_long_they_stay() {
    let compiled = compiled(LIMITED);
    let settings = compiled.definitions[0].settings();
    assert_eq!(settings.max_instances, Some(3));
    assert_eq!(settings.when_full, Some(WhenFull::Replace));
    assert_eq!(settings.retention_ms, Some(25 * 3_600_000));
    assert_eq!(
        (settings.retention_count, settings.journal_limit),
        (Some(7), Some(99))
    );
}

#[test]
fn every_bad_setting_is_told_at_its_place() {
    let bad = LIMITED
        .replace("\"3\"", "\"none\"")
        .replace("replace", "drop")
        .replace("P1DT1H", "a day")
        .replace("\"7\"", "\"-7\"")
        .replace("\"99\"", "\"many\"");
    let compiled = compiled(&bad);
    assert!(compiled.definitions.is_empty());
    let told: Vec<_> = compiled
        .diagnostics
        .iter()
        .filter(|d| d.code == "setting-invalid")
        .collect();
    assert_eq!(told.len(), 5, "{told:?}");
    assert!(told.iter().all(|d| d.line == 2 && d.column > 1));
}

#[test]
fn a_trimmed_journal_says_so() {
    let events = vec![
        Event::Caused {
            time: Timestamp::from_ms(5),
            cause: Cause::Engine,
        },
        Event::HistoryTrimmed { first_kept: 1_234 },
    ];
    assert_eq!(decode_events(&encode_events(&events)).unwrap(), events);
    let compiled = compiled(LIMITED);
    let lines = tidegate_engine::history(&compiled.definitions[0], &events, 2_000);
    assert_eq!((lines[0].event, lines[0].sequence), ("HistoryTrimmed", 2_000));
    assert_eq!(lines[0].payload["firstKeptSequence"], 1_234);
}
