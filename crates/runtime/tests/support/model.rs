//! Processes in few words: the vocabulary of BPMN as the default namespace, flows as `a>b>c`.

use tidegate::api::Resource;

/// A file with one process: `beside` stands beside it (messages, errors), `body` in it, and `flows` are chains of ids
/// with `>` between, chains apart by blanks. The flow from `a` to `b` is called `a-b`.
pub fn model(id: &str, beside: &str, body: &str, flows: &str) -> Resource {
    let xml = format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:zeebe="http://camunda.org/schema/zeebe/1.0"
    xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" targetNamespace="urn:tests">
{beside}<process id="{id}" isExecutable="true">{body}{}</process></definitions>"#,
        self::flows(flows)
    );
    Resource {
        name: format!("{id}.bpmn"),
        bytes: xml.into_bytes(),
    }
}

/// The flows of chains like `a>b>c d>e`.
pub fn flows(chains: &str) -> String {
    let mut xml = String::new();
    for chain in chains.split_whitespace() {
        let ids: Vec<_> = chain.split('>').collect();
        for pair in ids.windows(2) {
            let (from, to) = (pair[0], pair[1]);
            xml += &format!(r#"<sequenceFlow id="{from}-{to}" sourceRef="{from}" targetRef="{to}"/>"#);
        }
    }
    xml
}

/// A flow with a condition.
pub fn flow_if(from: &str, to: &str, condition: &str) -> String {
    let condition = condition.replace('<', "&lt;");
    format!(
        r#"<sequenceFlow id="{from}-{to}" sourceRef="{from}" targetRef="{to}"><conditionExpression>{condition}</conditionExpression></sequenceFlow>"#
    )
}

/// A service task whose work has its id as its type; `more` stands in it.
pub fn work_with(id: &str, extensions: &str, more: &str) -> String {
    format!(
        r#"<serviceTask id="{id}"><extensionElements><zeebe:taskDefinition type="{id}"/>{extensions}</extensionElements>{more}</serviceTask>"#
    )
}

/// A service task whose work has its id as its type.
pub fn work(id: &str) -> String {
    work_with(id, "", "")
}

/// A call of another process that takes over all results.
pub fn call(id: &str, called: &str) -> String {
    format!(
        r#"<callActivity id="{id}"><extensionElements><zeebe:calledElement processId="{called}" propagateAllChildVariables="true"/></extensionElements></callActivity>"#
    )
}

/// A boundary event with its definition.
pub fn boundary(id: &str, host: &str, definition: &str) -> String {
    format!(r#"<boundaryEvent id="{id}" attachedToRef="{host}">{definition}</boundaryEvent>"#)
}

/// The definition of an event on message `m`.
pub const ON_MESSAGE: &str = r#"<messageEventDefinition messageRef="m"/>"#;

/// The definition of an event on error `er`.
pub const ON_ERROR: &str = r#"<errorEventDefinition errorRef="er"/>"#;

/// Message `m`, named `go`, correlated by the variable `key`.
pub const MESSAGE: &str = r#"<message id="m" name="go"><extensionElements><zeebe:subscription correlationKey="=key"/></extensionElements></message>"#;

/// Error `er`, with the code `E`.
pub const ERROR: &str = r#"<error id="er" errorCode="E"/>"#;
