//! A deployment is refused with every reason at once, and with none that only follows from another.

mod support;

use support::stand;
use tidegate::api::Resource;
use tidegate::model::Diagnostic;

const PROCESS: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" targetNamespace="urn:t">
<process id="p" isExecutable="true">
<startEvent id="s"/>
<serviceTask id="twice"/>
<serviceTask id="twice"/>
<boundaryEvent id="b" attachedToRef="nowhere"/>
<exclusiveGateway id="g"/>
<task id="t"/>
<subProcess id="two"><startEvent id="one"/><startEvent id="other"/></subProcess>
<sequenceFlow id="f1" sourceRef="s" targetRef="g"/>
<sequenceFlow id="f2" sourceRef="g" targetRef="t"><conditionExpression>= 1 +</conditionExpression></sequenceFlow>
<sequenceFlow id="f3" sourceRef="t" targetRef="two"/>
<sequenceFlow id="f4" sourceRef="two" targetRef="lost"/>
<sequenceFlow id="f5" sourceRef="t" targetRef="s"/>
</process></definitions>"#;

const DECISION: &str = r#"<definitions xmlns="https://www.omg.org/spec/DMN/20191111/MODEL/" id="d" name="d" namespace="urn:t">
<decision id="rate" name="rate"><variable name="rate"/><literalExpression><text>1 +</text></literalExpression></decision>
</definitions>"#;

fn resource(name: &str, text: &str) -> Resource {
    Resource {
        name: name.to_owned(),
        bytes: text.as_bytes().to_vec(),
    }
}

fn errors(diagnostics: &[Diagnostic]) -> Vec<String> {
    let errors = diagnostics.iter().filter(|d| d.is_error());
    errors
        .map(|d| format!("{} {}:{}", d.code, d.resource, d.line))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_reason_is_told_at_once() {
    let stand = stand().await;
    let files = vec![resource("p.bpmn", PROCESS), resource("d.dmn", DECISION)];
    let Err(tidegate::Error::NotDeployable(found)) = stand.runtime.deploy(files, None, "test").await else {
        panic!("it is not deployable");
    };
    let expected = [
        "job-type-missing p.bpmn:5",
        "duplicate-id p.bpmn:6",
        "job-type-missing p.bpmn:6",
        "dangling-reference p.bpmn:7",
        "event-definition-missing p.bpmn:7",
        "start-event-with-incoming p.bpmn:4",
        "sub-process-with-several-starts p.bpmn:10",
        "expression-syntax p.bpmn:12",
        "dangling-reference p.bpmn:14",
        "feel-syntax d.dmn:2",
    ];
    let mut told = errors(&found);
    let mut expected: Vec<_> = expected.iter().map(|line| (*line).to_owned()).collect();
    told.sort();
    expected.sort();
    assert_eq!(told, expected, "{found:#?}");
}
