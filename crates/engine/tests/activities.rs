//! What is refused about loops, calls, compensation and transactions, and the dialects they are read in.

mod common;

use common::{Host, errors, load};
use tidegate_model::{CommandKind, Effect, Variables};

const HEAD: &str = "<definitions xmlns='http://www.omg.org/spec/BPMN/20100524/MODEL' \
    xmlns:zeebe='http://camunda.org/schema/zeebe/1.0' xmlns:camunda='http://camunda.org/schema/1.0/bpmn' \
    xmlns:operaton='http://operaton.org/schema/1.0/bpmn' xmlns:flowable='http://flowable.org/bpmn' \
    xmlns:activiti='http://activiti.org/bpmn' targetNamespace='urn:activities'><process id='p' isExecutable='true'>";

fn file(body: &str) -> String {
    format!("{HEAD}{body}</process></definitions>")
}

/// The codes of the errors; the reader and the engine may both find a dangling reference.
fn refused(body: &str) -> Vec<String> {
    let compiled = load("activities.bpmn", file(body).as_bytes(), &[]);
    let mut codes: Vec<String> = errors(&compiled.diagnostics)
        .into_iter()
        .map(str::to_owned)
        .collect();
    codes.dedup();
    codes
}

/// A process of one activity between a start and an end.
fn around(activity: &str) -> String {
    format!(
        "<startEvent id='s'/><endEvent id='e'/>{activity}<sequenceFlow id='a' sourceRef='s' targetRef='t'/>\
         <sequenceFlow id='b' sourceRef='t' targetRef='e'/>"
    )
}

#[test]
fn what_cannot_run_is_refused() {
    let looped = |inside: &str| around(&format!("<task id='t'>{inside}</task>"));
    let called = |attributes: &str, inside: &str| {
        around(&format!(
            "<callActivity id='t' {attributes}><extensionElements>{inside}</extensionElements></callActivity>"
        ))
    };
    let cases = [
        (
            looped("<standardLoopCharacteristics loopMaximum='-1'/>"),
            "loop-maximum-invalid",
        ),
        (looped("<standardLoopCharacteristics/>"), "loop-without-end"),
        (
            looped("<multiInstanceLoopCharacteristics/>"),
            "loop-without-cardinality",
        ),
        (
            looped(
                "<multiInstanceLoopCharacteristics><loopCardinality>-2</loopCardinality>\
                 </multiInstanceLoopCharacteristics>",
            ),
            "loop-cardinality-invalid",
        ),
        (
            looped(
                "<multiInstanceLoopCharacteristics behavior='One' oneBehaviorEventRef='x'><loopCardinality>2\
                    </loopCardinality></multiInstanceLoopCharacteristics>",
            ),
            "dangling-reference",
        ),
        (called("", ""), "called-element-missing"),
        (
            called(
                "calledElement='x' xmlns:drools='http://www.jboss.org/drools' drools:waitForCompletion='false'",
                "",
            ),
            "call-without-waiting",
        ),
        (called("", "<zeebe:calledElement/>"), "called-element-missing"),
        (
            called("", "<zeebe:calledElement processId='x' bindingType='some'/>"),
            "call-binding-invalid",
        ),
        (
            called("calledElement='x' camunda:calledElementBinding='version'", ""),
            "call-binding-invalid",
        ),
        (
            called("calledElement='x'", "<camunda:in target='y'/>"),
            "mapping-source-missing",
        ),
        (
            around(
                "<task id='t'/><boundaryEvent id='c' attachedToRef='t'><compensateEventDefinition/></boundaryEvent>",
            ),
            "compensation-without-handler",
        ),
        (
            around("<task id='t' isForCompensation='true'/>"),
            "compensation-handler-in-flow",
        ),
        (
            around(
                "<intermediateThrowEvent id='t'><compensateEventDefinition activityRef='x'/></intermediateThrowEvent>",
            ),
            "dangling-reference",
        ),
        (
            around("<task id='t'/><endEvent id='c'><cancelEventDefinition/></endEvent>"),
            "cancel-outside-transaction",
        ),
        (
            around(
                "<task id='t'/><boundaryEvent id='c' attachedToRef='t'><cancelEventDefinition/></boundaryEvent>",
            ),
            "cancel-outside-transaction",
        ),
        (around("<businessRuleTask id='t'/>"), "decision-missing"),
        (
            around("<businessRuleTask id='t' camunda:class='x.Y'/>"),
            "java-delegate",
        ),
        (
            around("<serviceTask id='t' flowable:delegateExpression='${x}'/>"),
            "java-delegate",
        ),
    ];
    for (body, code) in cases {
        assert_eq!(refused(&body), [code], "{body}");
    }
}

#[test]
fn the_dialects_of_the_java_engines_are_read_alike() {
    for dialect in ["camunda", "operaton", "flowable", "activiti"] {
        let body = around(&format!(
            "<callActivity id='t' calledElement='other' {dialect}:asyncBefore='true'><extensionElements>\
             <{dialect}:in source='item' target='number'/></extensionElements><multiInstanceLoopCharacteristics \
             isSequential='true' {dialect}:collection='${{items}}' {dialect}:elementVariable='item'/></callActivity>"
        ));
        let compiled = load("dialect.bpmn", file(&body).as_bytes(), &[]);
        assert!(
            errors(&compiled.diagnostics).is_empty(),
            "{:?}",
            compiled.diagnostics
        );
        let mut host = Host::new(&compiled.definitions[0]);
        let variables = Variables::parse("{\"items\":[7,8]}").unwrap();
        let element = None;
        host.command(CommandKind::Start { element, variables }).unwrap();
        let sent = host.open().find_map(|effect| match effect {
            Effect::StartChild(child) => child.variables.get("number").map(|value| value.text().to_owned()),
            _ => None,
        });
        assert_eq!(sent.as_deref(), Some("7"), "{dialect}");
    }
}

#[test]
fn an_escalation_of_the_child_is_caught_at_the_call() {
    let body = around(
        "<callActivity id='t' calledElement='other'/><boundaryEvent id='c' attachedToRef='t' \
         cancelActivity='false'><escalationEventDefinition/></boundaryEvent><userTask id='u'/>\
         <sequenceFlow id='d' sourceRef='c' targetRef='u'/>",
    );
    let compiled = load("escalation.bpmn", file(&body).as_bytes(), &[]);
    assert!(
        errors(&compiled.diagnostics).is_empty(),
        "{:?}",
        compiled.diagnostics
    );
    let mut host = Host::new(&compiled.definitions[0]);
    let start = CommandKind::Start {
        element: None,
        variables: Variables::new(),
    };
    host.command(start).unwrap();
    let called = host.open().find_map(|effect| match effect {
        Effect::StartChild(child) => Some((child.owner, child.instance)),
        _ => None,
    });
    let (owner, child) = called.unwrap();
    let escalated = CommandKind::ChildEscalated {
        owner,
        child,
        code: "LATE".to_owned(),
        variables: Variables::parse("{\"days\":3}").unwrap(),
    };
    host.command(escalated).unwrap();
    assert!(host.find("u").is_some() && host.find("t").is_some());
    assert_eq!(
        host.instance.variables().get("days").map(|value| value.text()),
        Some("3")
    );
}
