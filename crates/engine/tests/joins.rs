//! Joins that wait for what can still come cost little where there are many branches.

mod common;

use std::fmt::Write;
use std::time::{Duration, Instant};

use common::{Host, errors, load};
use tidegate_engine::advance;
use tidegate_model::{Cause, Command, CommandKind, SubStatus, Variables};

const BRANCHES: usize = 2_000;

#[test]
fn a_wide_inclusive_join_waits_for_all_and_costs_little() {
    let mut inside = String::new();
    for branch in 0..BRANCHES {
        write!(
            inside,
            "<userTask id='t{branch}'/><sequenceFlow id='i{branch}' sourceRef='split' targetRef='t{branch}'/>\
             <sequenceFlow id='o{branch}' sourceRef='t{branch}' targetRef='join'/>"
        )
        .unwrap();
    }
    let xml = format!(
        "<definitions xmlns='http://www.omg.org/spec/BPMN/20100524/MODEL' targetNamespace='urn:wide'>\
         <process id='wide' isExecutable='true'><startEvent id='s'/><inclusiveGateway id='split'/>\
         <inclusiveGateway id='join'/><endEvent id='e'/>\
         <sequenceFlow id='a' sourceRef='s' targetRef='split'/>\
         <sequenceFlow id='b' sourceRef='join' targetRef='e'/>{inside}</process></definitions>"
    );
    let compiled = load("wide.bpmn", xml.as_bytes(), &[]);
    assert!(
        errors(&compiled.diagnostics).is_empty(),
        "{:?}",
        compiled.diagnostics
    );
    let mut host = Host::new(&compiled.definitions[0]);
    host.checks_prefixes = false;
    host.command(CommandKind::Start {
        element: None,
        variables: Variables::new(),
    })
    .unwrap();
    let tokens = host.instance.tokens(&host.definition);
    let tasks: Vec<_> = tokens
        .into_iter()
        .filter_map(|token| token.element_instance)
        .collect();
    assert_eq!(tasks.len(), BRANCHES);
    // The checks of the host look at the whole state at each command, so the engine is asked directly.
    let (mut events, mut effects) = (Vec::new(), Vec::new());
    let begun = Instant::now();
    for task in tasks {
        assert_eq!(host.instance.ended(), None);
        let complete = CommandKind::CompleteUserTask {
            task,
            variables: Variables::new(),
        };
        advance(
            &host.definition,
            &mut host.instance,
            Command::new(complete, Cause::Engine),
            host.now,
            &mut host.keys,
            &mut events,
            &mut effects,
        )
        .unwrap();
    }
    assert_eq!(host.instance.ended(), Some(SubStatus::Finished));
    let spent = begun.elapsed();
    assert!(spent < Duration::from_secs(20), "it took {spent:?}");
}
