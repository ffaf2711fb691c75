//! A file of medium size, read and compiled: thirty blocks of a task, a choice, a timer and a mapping.

use std::hint::black_box;
use std::sync::Arc;

use tidegate_bpmn::Limits;
use tidegate_engine::{CompileOptions, Definition};

pub fn run(rounds: u64) {
    let file = chain(30, block);
    for _ in 0..rounds {
        black_box(definition(black_box(&file)));
    }
}

/// Reads and compiles a file with one process and nothing wrong.
pub fn definition(file: &str) -> Arc<Definition> {
    let parsed = tidegate_bpmn::parse("guard.bpmn", file.as_bytes(), &Limits::default());
    let document = parsed.document.expect("the file can be read");
    let mut compiled = tidegate_engine::compile(&document, &CompileOptions::default());
    assert!(
        !parsed
            .diagnostics
            .iter()
            .chain(&compiled.diagnostics)
            .any(|found| found.is_error())
    );
    compiled.definitions.remove(0)
}

/// A file with a process of so many blocks in a row. Block `n` begins with the element `inN` and ends with
/// a flow to the element of the next one.
pub fn chain(blocks: usize, block: fn(usize) -> String) -> String {
    let body: String = (0..blocks).map(block).collect();
    format!(
        "<definitions xmlns='http://www.omg.org/spec/BPMN/20100524/MODEL' \
         xmlns:zeebe='http://camunda.org/schema/zeebe/1.0' targetNamespace='urn:guard'>\
         <process id='guard' isExecutable='true'><startEvent id='start'/>\
         <sequenceFlow id='begin' sourceRef='start' targetRef='in0'/>{body}<endEvent id='in{blocks}'/>\
         </process></definitions>"
    )
}

/// A service task.
pub fn service(number: usize) -> String {
    let next = number + 1;
    format!(
        "<serviceTask id='in{number}'><extensionElements><zeebe:taskDefinition type='work'/></extensionElements>\
         </serviceTask><sequenceFlow id='flow{number}' sourceRef='in{number}' targetRef='in{next}'/>"
    )
}

fn block(number: usize) -> String {
    let next = number + 1;
    format!(
        "<serviceTask id='in{number}' name='Work {number}'><extensionElements>\
         <zeebe:taskDefinition type='work' retries='3'/>\
         <zeebe:ioMapping><zeebe:input source='= order.amount * {next}' target='amount'/>\
         <zeebe:output source='= result' target='result{number}'/></zeebe:ioMapping></extensionElements></serviceTask>\
         <boundaryEvent id='late{number}' attachedToRef='in{number}'><timerEventDefinition>\
         <timeDuration>PT{next}H</timeDuration></timerEventDefinition></boundaryEvent>\
         <sequenceFlow id='work{number}' sourceRef='in{number}' targetRef='choice{number}'/>\
         <exclusiveGateway id='choice{number}' default='no{number}'/>\
         <sequenceFlow id='yes{number}' sourceRef='choice{number}' targetRef='wait{number}'>\
         <conditionExpression>= amount > {number} and status = \"open\"</conditionExpression></sequenceFlow>\
         <intermediateCatchEvent id='wait{number}'><timerEventDefinition><timeDuration>PT5M</timeDuration>\
         </timerEventDefinition></intermediateCatchEvent>\
         <sequenceFlow id='no{number}' sourceRef='choice{number}' targetRef='join{number}'/>\
         <sequenceFlow id='waited{number}' sourceRef='wait{number}' targetRef='join{number}'/>\
         <sequenceFlow id='was-late{number}' sourceRef='late{number}' targetRef='join{number}'/>\
         <exclusiveGateway id='join{number}'/>\
         <sequenceFlow id='on{number}' sourceRef='join{number}' targetRef='in{next}'/>"
    )
}
