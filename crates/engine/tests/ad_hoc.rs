//! Ad-hoc sub-processes: how they end, and what event sub-processes do inside them.

mod common;

use common::Host;
use common::model::{Play, START_END, chain, flow, host, job};
use tidegate_model::SubStatus;

fn ad_hoc(attributes: &str, condition: &str, inside: &str, around: &str) -> Host {
    let condition = match condition {
        "" => String::new(),
        text => format!("<completionCondition>{text}</completionCondition>"),
    };
    let body = format!(
        "{START_END}<adHocSubProcess id='adhoc' {attributes}>{}{}{}{inside}{condition}</adHocSubProcess>{around}{}{}",
        job("a", "", ""),
        job("b", "", ""),
        job("c", "", ""),
        job("next", "", ""),
        chain(&["s", "adhoc", "next", "e"])
    );
    host(&body)
}

/// An event sub-process that does one job.
fn on_signal(interrupting: bool) -> String {
    format!(
        "<subProcess id='listen' triggeredByEvent='true'><startEvent id='heard' isInterrupting='{interrupting}'>\
         <signalEventDefinition signalRef='stop'/></startEvent><endEvent id='e3'/>{}{}</subProcess>",
        job("react", "", ""),
        chain(&["heard", "react", "e3"])
    )
}

#[test]
fn an_interrupting_event_sub_process_is_all_that_goes_on() {
    for ordering in ["Sequential", "Parallel"] {
        for condition in ["", "= done = true"] {
            let attributes = format!("ordering='{ordering}'");
            let mut host = ad_hoc(&attributes, condition, &on_signal(true), "");
            host.begin("{\"done\":false}");
            host.finish("a", "{}");
            host.signal("heard");
            assert_eq!(host.open_jobs(), ["react"], "{ordering} {condition}");
            // Neither the next activity nor the condition has a say any more.
            host.finish("react", "{\"done\":true}");
            assert_eq!(host.open_jobs(), ["next"], "{ordering} {condition}");
        }
    }
}

#[test]
fn an_error_inside_is_caught_inside() {
    let inside = format!(
        "<subProcess id='listen' triggeredByEvent='true'><startEvent id='caught'><errorEventDefinition errorRef='bad'/>\
         </startEvent><endEvent id='e3'/>{}{}</subProcess><endEvent id='broken'><errorEventDefinition errorRef='bad'/>\
         </endEvent>{}",
        job("react", "", ""),
        chain(&["caught", "react", "e3"]),
        flow("a", "broken")
    );
    let mut host = ad_hoc("ordering='Sequential'", "", &inside, "");
    host.begin("{}");
    host.finish("a", "{}");
    assert_eq!(host.open_jobs(), ["react"]);
    host.finish("react", "{}");
    assert_eq!(host.open_jobs(), ["next"]);
}

#[test]
fn an_event_sub_process_that_does_not_interrupt_runs_beside_the_activities() {
    let mut host = ad_hoc("ordering='Sequential'", "", &on_signal(false), "");
    host.begin("{}");
    host.signal("heard");
    assert_eq!(host.open_jobs(), ["a", "react"]);
    host.finish("a", "{}");
    assert_eq!(
        host.open_jobs(),
        ["b", "react"],
        "it is not one of the activities in order"
    );
    host.finish("b", "{}");
    host.finish("c", "{}");
    assert_eq!(host.open_jobs(), ["react"], "the sub-process waits for it");
    host.finish("react", "{}");
    assert_eq!(host.open_jobs(), ["next"]);
}

#[test]
fn the_condition_ends_what_remains_or_waits_for_it() {
    let mut host = ad_hoc("", "= done = true", &on_signal(false), "");
    host.begin("{\"done\":false}");
    host.signal("heard");
    host.finish("a", "{\"done\":true}");
    assert_eq!(
        host.open_jobs(),
        ["react"],
        "activities are cancelled, a reaction is not"
    );
    assert!(
        !host
            .open()
            .any(|effect| matches!(effect, tidegate_model::Effect::Subscribe(_)))
    );
    host.finish("react", "{}");
    assert_eq!(host.open_jobs(), ["next"]);

    let mut host = ad_hoc("cancelRemainingInstances='false'", "= done = true", "", "");
    host.begin("{\"done\":false}");
    host.finish("a", "{\"done\":true}");
    assert_eq!(host.open_jobs(), ["b", "c"]);
    host.finish("b", "{\"done\":false}");
    host.finish("c", "{}");
    assert_eq!(host.open_jobs(), ["next"]);

    // Once the condition has held, nothing more begins.
    let mut host = ad_hoc(
        "ordering='Sequential' cancelRemainingInstances='false'",
        "= done = true",
        &on_signal(false),
        "",
    );
    host.begin("{\"done\":false}");
    host.signal("heard");
    host.finish("a", "{\"done\":true}");
    host.finish("react", "{\"done\":false}");
    assert_eq!(host.open_jobs(), ["next"]);
}

#[test]
fn each_turn_of_a_repeated_one_has_its_own_activities() {
    let repetition = "<multiInstanceLoopCharacteristics isSequential='true'><loopCardinality>2</loopCardinality>\
                      </multiInstanceLoopCharacteristics>";
    let mut host = ad_hoc("ordering='Sequential'", "", repetition, "");
    host.begin("{}");
    for _ in 0..2 {
        for id in ["a", "b", "c"] {
            assert_eq!(host.open_jobs(), [id]);
            host.finish(id, "{}");
        }
    }
    assert_eq!(host.open_jobs(), ["next"]);
    host.finish("next", "{}");
    assert_eq!(host.instance.ended(), Some(SubStatus::Finished));
}
