//! The complex gateway whose condition asks the variables.

mod common;

use common::Host;
use common::model::{Play, START_END, chain, flow, host, job};
use tidegate_model::SubStatus;

/// Three branches into a gateway that lets the first tokens through as soon as `condition` holds.
fn three(condition: &str) -> Host {
    let body = format!(
        "{START_END}<parallelGateway id='fork'/><complexGateway id='join'><activationCondition>{condition}\
         </activationCondition></complexGateway>{}{}{}{}{}{}{}",
        job("a", "", ""),
        job("b", "", ""),
        job("c", "", ""),
        job("after", "", ""),
        chain(&["s", "fork", "a", "join", "after", "e"]),
        chain(&["fork", "b", "join"]),
        chain(&["fork", "c", "join"]),
    );
    host(&body)
}

#[test]
fn a_condition_on_variables_is_asked_when_they_change() {
    let mut host = three("= activationCount >= 1 and go = true");
    host.begin("{\"go\":false}");
    host.finish("a", "{}");
    assert_eq!(host.open_jobs(), ["b", "c"]);
    // No token comes: a variable is enough.
    host.set("{\"go\":true}");
    assert_eq!(host.open_jobs(), ["after", "b", "c"]);
    // Until the rest has come it is not asked again.
    host.finish("b", "{\"go\":false}");
    host.set("{\"go\":true}");
    host.finish("c", "{}");
    assert_eq!(host.open_jobs(), ["after"]);
    host.finish("after", "{}");
    assert_eq!(host.instance.ended(), Some(SubStatus::Finished));
}

#[test]
fn the_result_of_another_branch_is_enough() {
    let body = format!(
        "{START_END}<parallelGateway id='fork'/><subProcess id='sub'><startEvent id='s2'/><endEvent id='e2'/>\
         <parallelGateway id='fork2'/><complexGateway id='join'><activationCondition>= activationCount >= n\
         </activationCondition></complexGateway>{}{}{}{}{}</subProcess>{}{}{}",
        job("a", "", ""),
        job("b", "", ""),
        job("after", "", ""),
        chain(&["s2", "fork2", "a", "join", "after", "e2"]),
        chain(&["fork2", "b", "join"]),
        job("c", "", ""),
        chain(&["s", "fork", "sub", "e"]),
        chain(&["fork", "c", "e"]),
    );
    let mut host = host(&body);
    host.begin("{\"n\":2}");
    host.finish("a", "{}");
    assert_eq!(host.open_jobs(), ["b", "c"]);
    host.finish("c", "{\"n\":1}");
    assert_eq!(host.open_jobs(), ["after", "b"]);
}

#[test]
fn a_gateway_in_a_loop_begins_again_after_its_reset() {
    let body = format!(
        "{START_END}<exclusiveGateway id='merge'/><parallelGateway id='fork'/><complexGateway id='join'>\
         <activationCondition>= activationCount >= n</activationCondition></complexGateway>{}{}{}\
         <exclusiveGateway id='decide' default='decide-e'/>{}{}{}\
         <sequenceFlow id='again' sourceRef='decide' targetRef='merge'><conditionExpression>= again = true\
         </conditionExpression></sequenceFlow>",
        job("a", "", ""),
        job("b", "", ""),
        job("after", "", ""),
        chain(&["s", "merge", "fork", "a", "join", "after", "decide", "e"]),
        chain(&["fork", "b"]),
        flow("b", "join"),
    );
    let mut host = host(&body);
    host.begin("{\"n\":1,\"again\":true}");
    host.finish("a", "{}");
    assert_eq!(host.open_jobs(), ["after", "b"]);
    host.finish("b", "{}");
    assert_eq!(
        host.open_jobs(),
        ["after"],
        "the token of the rest is taken, and nothing leaves"
    );
    host.finish("after", "{\"n\":2}");
    assert_eq!(host.open_jobs(), ["a", "b"]);
    host.finish("b", "{}");
    assert_eq!(host.open_jobs(), ["a"], "it waits for two now");
    host.finish("a", "{\"again\":false}");
    host.finish("after", "{}");
    assert_eq!(host.instance.ended(), Some(SubStatus::Finished));
}

#[test]
fn a_condition_that_fails_is_an_incident_until_the_variables_are_right() {
    let mut host = three("= activationCount >= n");
    host.begin("{\"n\":\"many\"}");
    host.finish("a", "{}");
    assert_eq!(host.instance.incident_count(), 1);
    host.set("{\"other\":1}");
    assert_eq!(host.instance.incident_count(), 1);
    host.set("{\"n\":1}");
    assert_eq!(host.open_jobs(), ["after", "b", "c"]);
    assert_eq!(host.instance.incident_count(), 0);
}
