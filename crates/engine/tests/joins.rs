//! Joins that wait for what can still come cost little where there are many branches.

mod common;
#[path = "common/cost.rs"]
mod cost;

use std::fmt::Write;

use common::model::{Bare, START_END, chain, flow, job, large};
use common::{errors, load};
use tidegate_model::{CommandKind, ElementInstanceKey, SubStatus, Variables};

/// An instance of a split to so many user tasks, and the tasks, which the inclusive join waits for.
fn wide(branches: usize) -> (Bare, Vec<ElementInstanceKey>) {
    let mut inside = String::new();
    for branch in 0..branches {
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
    let mut run = Bare::new(compiled.definitions[0].clone());
    run.start();
    let tokens = run.instance.tokens(&run.definition);
    let tasks: Vec<_> = tokens
        .into_iter()
        .filter_map(|token| token.element_instance)
        .collect();
    assert_eq!(tasks.len(), branches);
    (run, tasks)
}

#[test]
fn a_wide_inclusive_join_waits_for_all_and_each_branch_costs_the_same() {
    cost::grows_in_proportion("an inclusive join", 500, wide, |(mut run, tasks), _| {
        for task in tasks {
            assert_eq!(run.instance.ended(), None);
            run.command(CommandKind::CompleteUserTask {
                task,
                variables: Variables::new(),
            });
        }
        assert_eq!(run.instance.ended(), Some(SubStatus::Finished));
    });
}

/// Every element before a split leads to every branch of it: that is not remembered for each where it would be too much, and
/// the join waits all the same.
#[test]
fn a_wide_join_behind_a_long_row_waits_for_all_within_bounds() {
    const ROW: usize = 8_000;
    const BRANCHES: usize = 1_000;
    const JOBS: usize = 10;
    let mut body = format!("{START_END}<inclusiveGateway id='split'/><inclusiveGateway id='join'/>");
    let row: Vec<String> = (0..ROW).map(|position| format!("r{position}")).collect();
    for id in &row {
        write!(body, "<task id='{id}'/>").unwrap();
    }
    let mut way = vec!["s"];
    way.extend(row.iter().map(String::as_str));
    way.push("split");
    body += &chain(&way);
    for branch in 0..BRANCHES {
        let id = format!("t{branch}");
        let work = if branch < JOBS {
            job(&id, "", "")
        } else {
            format!("<task id='{id}'/>")
        };
        write!(body, "{work}{}", chain(&["split", &id, "join"])).unwrap();
    }
    body += &flow("join", "e");
    let mut run = Bare::new(large(&body));
    let ((), cost) = cost::of(|| {
        run.start();
        assert_eq!(run.jobs.len(), JOBS);
        for job in std::mem::take(&mut run.jobs) {
            assert_eq!(run.instance.ended(), None);
            run.complete(job);
        }
    });
    assert_eq!(run.instance.ended(), Some(SubStatus::Finished));
    eprintln!("a row of {ROW} and {BRANCHES} branches: {cost:?}");
    assert!(cost.peak < 64 * 1024 * 1024, "{cost:?}");
}
