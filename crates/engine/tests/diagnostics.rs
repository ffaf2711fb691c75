//! What is refused, and what is doubtful: each case is a process body and the codes it leads to, with element and line.

mod common;

use std::sync::Arc;

use common::{load, load_with};
use tidegate_engine::{CompileOptions, ScriptCheck, ScriptFault};

/// Name, body of the process, and the findings as `code element line`. The body begins in line 6.
const CASES: &[(&str, &str, &[&str])] = &[
    ("an empty process", "", &["no-start P 5"]),
    (
        "a flow into a start event and out of an end event",
        r#"<startEvent id="s"/><task id="t"/><endEvent id="e"/>
<sequenceFlow id="a" sourceRef="s" targetRef="t"/><sequenceFlow id="b" sourceRef="t" targetRef="s"/>
<sequenceFlow id="c" sourceRef="e" targetRef="t"/>"#,
        &[
            "start-event-with-incoming s 6",
            "end-event-with-outgoing e 6",
            "unreachable e 6",
        ],
    ),
    (
        "boundary events in the wrong place",
        r#"<startEvent id="s"/><exclusiveGateway id="g"/><task id="t"/>
<boundaryEvent id="b1" attachedToRef="g"><timerEventDefinition><timeDuration>PT1S</timeDuration></timerEventDefinition></boundaryEvent>
<boundaryEvent id="b2" attachedToRef="t"><timerEventDefinition><timeDuration>PT1S</timeDuration></timerEventDefinition></boundaryEvent>
<boundaryEvent id="b3" attachedToRef="t"/>
<sequenceFlow id="a" sourceRef="s" targetRef="g"/><sequenceFlow id="b" sourceRef="g" targetRef="t"/>
<sequenceFlow id="c" sourceRef="t" targetRef="b2"/>"#,
        &[
            "wrong-reference-kind b1 7",
            "event-definition-missing b3 9",
            "boundary-host-not-activity b1 7",
            "boundary-event-with-incoming b2 8",
        ],
    ),
    (
        "a boundary event with a flow into it",
        r#"<startEvent id="s"/><task id="t"/>
<boundaryEvent id="b" attachedToRef="t"><timerEventDefinition><timeDuration>PT1S</timeDuration></timerEventDefinition></boundaryEvent>
<sequenceFlow id="a" sourceRef="s" targetRef="t"/><sequenceFlow id="c" sourceRef="t" targetRef="b"/>"#,
        &["boundary-event-with-incoming b 7"],
    ),
    (
        "event-based gateways",
        r#"<startEvent id="s"/><eventBasedGateway id="g"/><task id="t"/><sequenceFlow id="a" sourceRef="s" targetRef="g"/>
<sequenceFlow id="b" sourceRef="g" targetRef="t"/>"#,
        &[
            "event-gateway-too-few-events g 6",
            "event-gateway-without-event g 6",
        ],
    ),
    (
        "a default flow that leaves another element",
        r#"<startEvent id="s"/><task id="t" default="a"/><sequenceFlow id="a" sourceRef="s" targetRef="t"/>"#,
        &["default-flow-not-outgoing t 6"],
    ),
    (
        "flows over a border",
        r#"<startEvent id="s"/><subProcess id="p"><startEvent id="i"/><task id="in"/><sequenceFlow id="x" sourceRef="i" targetRef="in"/></subProcess>
<sequenceFlow id="a" sourceRef="s" targetRef="in"/><sequenceFlow id="b" sourceRef="s" targetRef="p"/>"#,
        &["flow-crosses-scope a 7"],
    ),
    (
        "conditions that cannot be read",
        r#"<startEvent id="s"/><exclusiveGateway id="g"/><task id="t"/><sequenceFlow id="a" sourceRef="s" targetRef="g"/>
<sequenceFlow id="b" sourceRef="g" targetRef="t">
  <conditionExpression>= amount &gt;</conditionExpression></sequenceFlow>
<sequenceFlow id="c" sourceRef="g" targetRef="t"><conditionExpression>${a b}</conditionExpression></sequenceFlow>"#,
        &[
            "expression-syntax b 8",
            "expression-syntax c 9",
            "gateway-without-default g 6",
        ],
    ),
    (
        "a service task without work",
        r#"<startEvent id="s"/><serviceTask id="t" camunda:class="com.example.Work"/><sequenceFlow id="a" sourceRef="s" targetRef="t"/>"#,
        &["java-delegate t 6"],
    ),
    (
        "an empty job type and wrong retries",
        r#"<startEvent id="s"/>
<serviceTask id="t"><extensionElements><zeebe:taskDefinition type=" "/></extensionElements></serviceTask>
<serviceTask id="u"><extensionElements><zeebe:taskDefinition type="x" retries="many"/></extensionElements></serviceTask>
<sequenceFlow id="a" sourceRef="s" targetRef="t"/><sequenceFlow id="b" sourceRef="t" targetRef="u"/>"#,
        &["job-type-missing t 7", "job-retries-invalid u 8"],
    ),
    (
        "events without their definition's content",
        r#"<startEvent id="s"/><intermediateCatchEvent id="m"><messageEventDefinition/></intermediateCatchEvent>
<intermediateCatchEvent id="t"><timerEventDefinition/></intermediateCatchEvent>
<intermediateCatchEvent id="u"><timerEventDefinition><timeDuration>5 minutes</timeDuration></timerEventDefinition></intermediateCatchEvent>
<endEvent id="e"><errorEventDefinition/></endEvent>"#,
        &[
            "message-reference-missing m 6",
            "timer-missing t 7",
            "timer-invalid u 8",
            "error-reference-missing e 9",
        ],
    ),
    (
        "what is incomplete is named",
        r#"<startEvent id="s"/><inclusiveGateway id="i"/><complexGateway id="c"/><callActivity id="ca"/>
<subProcess id="ev" triggeredByEvent="true"><startEvent id="es"/></subProcess>
<task id="mi"><multiInstanceLoopCharacteristics/></task><task id="lo"><standardLoopCharacteristics/></task>
<sendTask id="se"/><businessRuleTask id="br"/><task id="co" isForCompensation="true"/>
<intermediateThrowEvent id="th"><signalEventDefinition/></intermediateThrowEvent>
<endEvent id="en"><escalationEventDefinition/></endEvent>
<intermediateCatchEvent id="li"><linkEventDefinition name="x"/></intermediateCatchEvent>
<receiveTask id="re" instantiate="true"/><eventBasedGateway id="eb" instantiate="true"/>"#,
        &[
            "called-element-missing ca 6",
            "event-definition-missing es 7",
            "loop-without-cardinality mi 8",
            "loop-without-end lo 8",
            "job-type-missing se 9",
            "decision-missing br 9",
            "signal-reference-missing th 10",
            "escalation-reference-missing en 11",
            "message-reference-missing re 13",
            "event-gateway-too-few-events eb 13",
        ],
    ),
    (
        "events where they cannot be",
        r#"<startEvent id="s"><errorEventDefinition/></startEvent><startEvent id="c"><conditionalEventDefinition><condition>= x = 1</condition></conditionalEventDefinition></startEvent>
<intermediateCatchEvent id="e"><escalationEventDefinition/></intermediateCatchEvent>
<intermediateCatchEvent id="n"><conditionalEventDefinition/></intermediateCatchEvent>
<eventBasedGateway id="g" eventGatewayType="Parallel"/>
<intermediateCatchEvent id="t"><timerEventDefinition><timeCycle>every day</timeCycle></timerEventDefinition></intermediateCatchEvent>"#,
        &[
            "event-definition-misplaced s 6",
            "condition-without-instance c 6",
            "event-definition-misplaced e 7",
            "condition-missing n 8",
            "event-gateway-parallel g 9",
            "timer-invalid t 10",
            "event-gateway-too-few-events g 9",
        ],
    ),
    (
        "links, and event sub-processes that are connected or empty",
        r#"<startEvent id="s"/><intermediateThrowEvent id="t"><linkEventDefinition name="a"/></intermediateThrowEvent>
<intermediateCatchEvent id="x"><linkEventDefinition name="b"/></intermediateCatchEvent>
<intermediateCatchEvent id="y"><linkEventDefinition name="b"/></intermediateCatchEvent>
<subProcess id="e" triggeredByEvent="true"><task id="i"/></subProcess>
<sequenceFlow id="f" sourceRef="s" targetRef="t"/><sequenceFlow id="g" sourceRef="x" targetRef="e"/>"#,
        &[
            "duplicate-link y 8",
            "link-without-target t 6",
            "event-sub-process-with-flow e 9",
            "event-sub-process-without-start e 9",
            "unreachable x 7",
            "unreachable y 8",
            "unreachable i 9",
        ],
    ),
    (
        "scripts that nothing runs, and FEEL that cannot be read",
        r#"<startEvent id="s"/><scriptTask id="j" scriptFormat="javascript"><script>1</script></scriptTask><scriptTask id="n"/>
<scriptTask id="f"><extensionElements><zeebe:script expression="= 1 +" resultVariable="x"/></extensionElements></scriptTask>"#,
        &[
            "script-format-unknown j 6",
            "script-format-unknown n 6",
            "expression-syntax f 7",
        ],
    ),
    (
        "functions that do not exist, in a condition, a mapping, a script and a job type",
        r#"<startEvent id="s"/><exclusiveGateway id="g" default="d"/><endEvent id="e"/><scriptTask id="n"><extensionElements><zeebe:script expression="= for x in list return shout(x)" resultVariable="x"/></extensionElements></scriptTask>
<serviceTask id="t"><extensionElements><zeebe:taskDefinition type="= kind(uuid())"/><zeebe:ioMapping><zeebe:input source="= { f: function(a) a, b: f(1), c: date(d) }" target="y"/></zeebe:ioMapping></extensionElements></serviceTask>
<sequenceFlow id="a" sourceRef="s" targetRef="g"/><sequenceFlow id="b" sourceRef="g" targetRef="n"><conditionExpression>= random number() &gt; 1</conditionExpression></sequenceFlow>
<sequenceFlow id="d" sourceRef="g" targetRef="t"/><sequenceFlow id="c" sourceRef="t" targetRef="e"/>"#,
        &[
            "function-unknown n 6",
            "function-unknown t 7",
            "function-unknown t 7",
            "function-unknown b 8",
        ],
    ),
    (
        "sub-processes that cannot begin",
        r#"<startEvent id="s"/><subProcess id="empty"/><subProcess id="two"><startEvent id="a"/><startEvent id="b"/></subProcess>
<subProcess id="ev"><startEvent id="t"><timerEventDefinition><timeDuration>PT1S</timeDuration></timerEventDefinition></startEvent></subProcess>
<sequenceFlow id="f" sourceRef="s" targetRef="empty"/><sequenceFlow id="g" sourceRef="empty" targetRef="two"/>"#,
        &[
            "sub-process-start-not-none t 7",
            "sub-process-empty empty 6",
            "sub-process-with-several-starts two 6",
        ],
    ),
    (
        "sub-processes that cannot begin, the rest being right",
        r#"<startEvent id="s"/><subProcess id="empty"/><subProcess id="two"><startEvent id="a"/><startEvent id="b"/></subProcess>
<sequenceFlow id="f" sourceRef="s" targetRef="empty"/><sequenceFlow id="g" sourceRef="empty" targetRef="two"/>"#,
        &[
            "sub-process-empty empty 6",
            "sub-process-with-several-starts two 6",
            "unreachable a 6",
            "unreachable b 6",
        ],
    ),
    (
        "sub-processes with nothing to begin, one of which waits for itself",
        r#"<startEvent id="s"/><subProcess id="round"><task id="a"/><task id="b"/><sequenceFlow id="x" sourceRef="a" targetRef="b"/><sequenceFlow id="y" sourceRef="b" targetRef="a"/></subProcess>
<transaction id="hears"><subProcess id="ev" triggeredByEvent="true"><startEvent id="es"><timerEventDefinition><timeDuration>PT1S</timeDuration></timerEventDefinition></startEvent></subProcess></transaction>
<sequenceFlow id="f" sourceRef="s" targetRef="round"/><sequenceFlow id="g" sourceRef="round" targetRef="hears"/>"#,
        &[
            "sub-process-without-start round 6",
            "sub-process-empty hears 7",
            "unreachable a 6",
            "unreachable b 6",
        ],
    ),
    (
        "activities that wait for more tokens than can come",
        r#"<startEvent id="s"/><parallelGateway id="g"/><task id="one" startQuantity="2"/><task id="two" startQuantity="2"/><task id="twice" completionQuantity="2"/>
<task id="again" startQuantity="3"/><task id="late" startQuantity="3"/><boundaryEvent id="b" attachedToRef="twice" cancelActivity="false"><timerEventDefinition><timeDuration>PT1S</timeDuration></timerEventDefinition></boundaryEvent>
<sequenceFlow id="a" sourceRef="s" targetRef="g"/><sequenceFlow id="c" sourceRef="g" targetRef="one"/><sequenceFlow id="d" sourceRef="g" targetRef="twice"/>
<sequenceFlow id="e" sourceRef="twice" targetRef="two"/><sequenceFlow id="f" sourceRef="b" targetRef="late"/><sequenceFlow id="h" sourceRef="two" targetRef="again"/>
<sequenceFlow id="i" sourceRef="again" targetRef="again"/>"#,
        &["start-quantity-out-of-reach one 6"],
    ),
    (
        "nothing follows from what was refused",
        r#"<startEvent id="s"><timerEventDefinition/></startEvent><task id="t"/>
<boundaryEvent id="b" attachedToRef="t"><compensateEventDefinition/><timerEventDefinition/></boundaryEvent>
<serviceTask id="undo" isForCompensation="true"/><association id="as" sourceRef="b" targetRef="undo"/>
<subProcess id="ev" triggeredByEvent="true"><startEvent id="es"><timerEventDefinition/></startEvent><task id="in"/><sequenceFlow id="x" sourceRef="es" targetRef="in"/></subProcess>
<eventBasedGateway id="g"/><receiveTask id="r"/><intermediateCatchEvent id="c"><timerEventDefinition/></intermediateCatchEvent>
<sequenceFlow id="a" sourceRef="s" targetRef="t"/><sequenceFlow id="f" sourceRef="t" targetRef="g"/>
<sequenceFlow id="gr" sourceRef="g" targetRef="r"/><sequenceFlow id="gc" sourceRef="g" targetRef="lost"/>"#,
        &[
            "dangling-reference gc 12",
            "timer-missing s 6",
            "element-not-supported b 7",
            "timer-missing b 7",
            "job-type-missing undo 8",
            "timer-missing es 9",
            "message-reference-missing r 10",
            "timer-missing c 10",
            // The reader has said so already; whoever puts the two together leaves it out.
            "dangling-reference gc 12",
        ],
    ),
    (
        "everything about one job is said",
        r#"<startEvent id="s"/><serviceTask id="t"><extensionElements><zeebe:taskDefinition type="= 1 +" retries="many"/></extensionElements></serviceTask>"#,
        &["expression-syntax t 6", "job-retries-invalid t 6"],
    ),
    (
        "quantities",
        r#"<startEvent id="s"/><task id="t" startQuantity="0" completionQuantity="many"/><sequenceFlow id="f" sourceRef="s" targetRef="t"/>"#,
        &["quantity-invalid t 6", "quantity-invalid t 6"],
    ),
    (
        "computed start events",
        r#"<startEvent id="s"><timerEventDefinition><timeCycle>=cycle</timeCycle></timerEventDefinition></startEvent>"#,
        &["start-event-computed s 6"],
    ),
    (
        "doubtful gateways",
        r#"<startEvent id="s"/><exclusiveGateway id="g"/><parallelGateway id="p"/><task id="lost"/><startEvent id="s2"/>
<sequenceFlow id="a" sourceRef="s" targetRef="g"/><sequenceFlow id="b" sourceRef="g" targetRef="p"><conditionExpression>x</conditionExpression></sequenceFlow>
<sequenceFlow id="c" sourceRef="p" targetRef="t"><conditionExpression>x</conditionExpression></sequenceFlow><task id="t"/>"#,
        &[
            "gateway-without-default g 6",
            "condition-ignored p 6",
            "several-none-start-events s2 6",
            "unreachable lost 6",
        ],
    ),
    (
        "mappings",
        r#"<startEvent id="s"/><task id="t"><extensionElements><zeebe:ioMapping><zeebe:input source="= 1"/>
<zeebe:output source="= 1 1" target="x"/></zeebe:ioMapping></extensionElements></task><sequenceFlow id="f" sourceRef="s" targetRef="t"/>"#,
        &["mapping-target-missing t 6", "expression-syntax t 7"],
    ),
];

#[test]
fn findings_are_as_listed() {
    let mut wrong = Vec::new();
    for (name, body, expected) in CASES {
        let file = format!(
            "<?xml version=\"1.0\"?>\n<definitions xmlns=\"http://www.omg.org/spec/BPMN/20100524/MODEL\"\n \
             xmlns:zeebe=\"http://camunda.org/schema/zeebe/1.0\" targetNamespace=\"urn:test\"\n \
             xmlns:camunda=\"http://camunda.org/schema/1.0/bpmn\">\n<process id=\"P\" isExecutable=\"true\">\n{body}\n\
             </process>\n</definitions>\n"
        );
        let compiled = load("case.bpmn", file.as_bytes(), &[]);
        let got: Vec<String> = compiled
            .diagnostics
            .iter()
            .map(|found| {
                format!(
                    "{} {} {}",
                    found.code,
                    found.element_id.as_deref().unwrap_or("-"),
                    found.line
                )
            })
            .collect();
        if got != *expected {
            wrong.push(format!("{name}:\n  expected {expected:?}\n  got      {got:?}"));
        }
        for found in &compiled.diagnostics {
            assert!(found.hint.is_some(), "{name}: {} has no hint", found.code);
            assert!(found.column > 0, "{name}: {} has no place", found.code);
            assert_eq!(found.resource, "case.bpmn");
        }
        let refused = compiled.diagnostics.iter().any(|found| found.is_error());
        assert_eq!(refused, compiled.definitions.is_empty(), "{name}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_the_host_says_of_a_script_is_told_at_its_line() {
    let fault = |line: Option<u32>| {
        let read = move |format: &str, text: &str| {
            assert_eq!((format, text), ("js", "one\n  two"));
            Err(ScriptFault {
                message: "two is wrong".to_owned(),
                line,
                column: line.map(|_| 3),
            })
        };
        ScriptCheck(Arc::new(read))
    };
    let file = "<definitions xmlns='http://www.omg.org/spec/BPMN/20100524/MODEL' targetNamespace='urn:t'>\n\
                <process id='p' isExecutable='true'>\n<scriptTask id='t' scriptFormat='js'><script>\n\n one\n  two\n\
                </script></scriptTask></process></definitions>";
    for (line, place) in [(Some(2), (6, 3)), (Some(1), (5, 1)), (None, (5, 1))] {
        let options = CompileOptions {
            script_formats: vec!["js".to_owned()],
            script_check: Some(fault(line)),
            ..CompileOptions::default()
        };
        let compiled = load_with("case.bpmn", file.as_bytes(), &options);
        let [found] = compiled.diagnostics.as_slice() else {
            panic!("{:?}", compiled.diagnostics);
        };
        assert_eq!(found.code, "script-syntax");
        assert!(found.message.contains("two is wrong"), "{found}");
        assert_eq!((found.line, found.column), place);
    }
}

#[test]
fn files_without_an_executable_process() {
    let file = |processes: &str| {
        let file = format!(
            "<definitions xmlns='http://www.omg.org/spec/BPMN/20100524/MODEL' targetNamespace='urn:t'>{processes}</definitions>"
        );
        let compiled = load("case.bpmn", file.as_bytes(), &[]);
        let codes: Vec<String> = compiled
            .diagnostics
            .iter()
            .map(|found| found.code.clone())
            .collect();
        (codes, compiled.definitions.len())
    };
    assert_eq!(
        file("<process id='p' isExecutable='false'/>"),
        (vec!["no-executable-process".to_owned()], 0)
    );
    assert_eq!(
        file("<process id='p'><task id='t'/></process>"),
        (vec!["executable-not-stated".to_owned()], 1)
    );
    let two = "<process id='p' isExecutable='true'><task id='t'/></process><process id='q' isExecutable='true'><task id='u'/></process>";
    assert_eq!(file(two), (Vec::new(), 2));
}
