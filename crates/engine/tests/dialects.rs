//! One small process for each thing that no larger fixture has: what is completed, and what is then open.

mod common;

use common::{BEGIN, Host, errors, load, load_with};
use tidegate_engine::{CompileOptions, history};
use tidegate_model::{CommandKind, Effect, Variables};

/// Name, what stands beside the process, its body, its start variables, and what follows: the elements that were
/// completed, and what is open.
const CASES: &[(&str, &str, &str, &str, &str)] = &[
    (
        "a condition that names its language",
        "",
        r#"<startEvent id="s"/><exclusiveGateway id="g" default="d"/><endEvent id="a"/><endEvent id="b"/>
<sequenceFlow id="f" sourceRef="s" targetRef="g"/><sequenceFlow id="d" sourceRef="g" targetRef="b"/>
<sequenceFlow id="c" sourceRef="g" targetRef="a"><conditionExpression language="https://www.omg.org/spec/DMN/20191111/FEEL/">n = 1 and not(false)</conditionExpression></sequenceFlow>"#,
        r#"{"n": 1}"#,
        "s g a",
    ),
    (
        "a date",
        "",
        r#"<startEvent id="s"/><intermediateCatchEvent id="c"><timerEventDefinition><timeDate>2026-01-01T00:00:05Z</timeDate></timerEventDefinition></intermediateCatchEvent><sequenceFlow id="f" sourceRef="s" targetRef="c"/>"#,
        "{}",
        "s; timer c after 5000 ms",
    ),
    (
        "a boundary event that needs two signals",
        r#"<signal id="one" name="one"/><signal id="two" name="two"/>"#,
        r#"<startEvent id="s"/><userTask id="t"/><boundaryEvent id="b" attachedToRef="t" parallelMultiple="true"><signalEventDefinition id="d1" signalRef="one"/><signalEventDefinition id="d2" signalRef="two"/></boundaryEvent><sequenceFlow id="f" sourceRef="s" targetRef="t"/>"#,
        "{}",
        "s; signal one; signal two; task t",
    ),
    (
        "the default of a complex gateway",
        "",
        r#"<startEvent id="s"/><complexGateway id="g" default="d"/><endEvent id="a"/><endEvent id="b"/>
<sequenceFlow id="f" sourceRef="s" targetRef="g"/><sequenceFlow id="d" sourceRef="g" targetRef="b"/>
<sequenceFlow id="c" sourceRef="g" targetRef="a"><conditionExpression>=false</conditionExpression></sequenceFlow>"#,
        "{}",
        "s g b",
    ),
    (
        "a message that a send task names",
        r#"<message id="m" name="sent"/>"#,
        r#"<startEvent id="s"/><sendTask id="t" messageRef="m"/><sequenceFlow id="f" sourceRef="s" targetRef="t"/>"#,
        "{}",
        "s t; publish sent",
    ),
    (
        "a message under a key, an id and a time of its own",
        r#"<message id="m" name="sent"><extensionElements><zeebe:subscription correlationKey="=other"/></extensionElements></message>"#,
        r#"<startEvent id="s"/><sendTask id="t" messageRef="m"><extensionElements><zeebe:publishMessage correlationKey="=&quot;order &quot; + string(n)" messageId="=&quot;once-&quot; + string(n)" timeToLive="PT1H"/></extensionElements></sendTask><sequenceFlow id="f" sourceRef="s" targetRef="t"/>"#,
        r#"{"n": 7}"#,
        "s t; publish sent key order 7 id once-7 for 3600000 ms",
    ),
    (
        "a message at an event, its time to live by an expression",
        r#"<message id="m" name="sent"/>"#,
        r#"<startEvent id="s"/><intermediateThrowEvent id="t"><messageEventDefinition id="d" messageRef="m"><extensionElements><zeebe:publishMessage correlationKey="k" timeToLive="=duration(&quot;PT&quot; + string(n) + &quot;S&quot;)"/></extensionElements></messageEventDefinition></intermediateThrowEvent><sequenceFlow id="f" sourceRef="s" targetRef="t"/><endEvent id="e"><extensionElements><zeebe:publishMessage messageId="last"/></extensionElements><messageEventDefinition id="d2" messageRef="m"/></endEvent><sequenceFlow id="g" sourceRef="t" targetRef="e"/>"#,
        r#"{"n": 2}"#,
        "s t e; publish sent id last; publish sent key k for 2000 ms",
    ),
    (
        "a time to live that is none",
        r#"<message id="m" name="sent"/>"#,
        r#"<startEvent id="s"/><sendTask id="t" messageRef="m"><extensionElements><zeebe:publishMessage timeToLive="=n"/></extensionElements></sendTask><sequenceFlow id="f" sourceRef="s" targetRef="t"/>"#,
        r#"{"n": "soon"}"#,
        "s; incident the time to live: `soon` is not an ISO 8601 duration, for example PT30S or P1DT12H. Correct the variables and retry.",
    ),
    (
        "an ad-hoc sub-process whose rest goes on",
        "",
        r#"<startEvent id="s"/><adHocSubProcess id="a" cancelRemainingInstances="false"><userTask id="t"/><task id="u"/><completionCondition>=true</completionCondition></adHocSubProcess><sequenceFlow id="f" sourceRef="s" targetRef="a"/>"#,
        "{}",
        "s u; task t",
    ),
    (
        "an ad-hoc sub-process that begins what a list names",
        "",
        r#"<startEvent id="s"/><adHocSubProcess id="a"><extensionElements><zeebe:adHoc activeElementsCollection="=[&quot;u&quot;]"/></extensionElements><userTask id="t"/><task id="u"/></adHocSubProcess><sequenceFlow id="f" sourceRef="s" targetRef="a"/>"#,
        "{}",
        "s u a",
    ),
    (
        "a loop whose condition is asked first",
        "",
        r#"<startEvent id="s"/><userTask id="t"><standardLoopCharacteristics testBefore="true"><loopCondition>=false</loopCondition></standardLoopCharacteristics></userTask><sequenceFlow id="f" sourceRef="s" targetRef="t"/>"#,
        "{}",
        "s t",
    ),
    (
        "results that are collected as the plain standard says",
        "",
        r#"<dataObject id="all" isCollection="true"/><dataObject id="in" isCollection="true"/><startEvent id="s"/>
<scriptTask id="t"><extensionElements><zeebe:script expression="=item + 1" resultVariable="one"/></extensionElements>
<multiInstanceLoopCharacteristics isSequential="true"><loopDataInputRef>in</loopDataInputRef><loopDataOutputRef>all</loopDataOutputRef><inputDataItem id="i" name="item"/><outputDataItem id="o" name="one"/></multiInstanceLoopCharacteristics></scriptTask>
<sequenceFlow id="f" sourceRef="s" targetRef="t"/>"#,
        r#"{"in": [1, 2]}"#,
        "s t t t; all = [2,3]",
    ),
    (
        "data that is transformed on its way",
        "",
        r#"<dataObject id="d"/><dataStoreReference id="store"/><startEvent id="s"/><scriptTask id="t"><extensionElements><zeebe:script expression="=x" resultVariable="all"/></extensionElements><ioSpecification><dataInput id="x"/><inputSet><dataInputRefs>x</dataInputRefs></inputSet><outputSet/></ioSpecification><dataInputAssociation><sourceRef>d</sourceRef><targetRef>x</targetRef><transformation>=d * 2</transformation></dataInputAssociation></scriptTask><sequenceFlow id="f" sourceRef="s" targetRef="t"/>"#,
        r#"{"d": 4}"#,
        "s t; all = 8",
    ),
    (
        "a transformation as DMN writes it",
        "",
        r#"<dataObject id="d"/><startEvent id="s"/><scriptTask id="t"><extensionElements><zeebe:script expression="=x" resultVariable="all"/></extensionElements><ioSpecification><dataInput id="x"/><inputSet><dataInputRefs>x</dataInputRefs></inputSet><outputSet/></ioSpecification><dataInputAssociation><sourceRef>d</sourceRef><targetRef>x</targetRef><transformation language="https://www.omg.org/spec/DMN/20191111/MODEL/">&lt;n:literalExpression xmlns:n="https://www.omg.org/spec/DMN/20191111/MODEL/"&gt;&lt;n:text&gt;if d &amp;lt; 5 then d * 3 else d&lt;/n:text&gt;&lt;/n:literalExpression&gt;</transformation></dataInputAssociation></scriptTask><sequenceFlow id="f" sourceRef="s" targetRef="t"/>"#,
        r#"{"d": 4}"#,
        "s t; all = 12",
    ),
    (
        "a called element by its tag, without the variables around it",
        "",
        r#"<startEvent id="s"/><callActivity id="c"><extensionElements><zeebe:calledElement processId="q" bindingType="versionTag" versionTag="1.2" propagateAllParentVariables="false"/></extensionElements></callActivity><sequenceFlow id="f" sourceRef="s" targetRef="c"/>"#,
        r#"{"a": 1}"#,
        r#"s; child q VersionTag("1.2") {}"#,
    ),
    (
        "all variables into a called element",
        "",
        r#"<startEvent id="s"/><callActivity id="c" calledElement="q"><extensionElements><camunda:in variables="all"/></extensionElements></callActivity><sequenceFlow id="f" sourceRef="s" targetRef="c"/>"#,
        r#"{"a": 1}"#,
        r#"s; child q Latest {"a":1}"#,
    ),
    (
        "tries of external work",
        "",
        r#"<startEvent id="s"/><serviceTask id="t" camunda:type="external" camunda:topic="x"><extensionElements><camunda:failedJobRetryTimeCycle>R7/PT1M</camunda:failedJobRetryTimeCycle></extensionElements></serviceTask><sequenceFlow id="f" sourceRef="s" targetRef="t"/>"#,
        "{}",
        "s; job x 7 tries",
    ),
    (
        "who has a user task",
        "",
        r#"<startEvent id="s"/><userTask id="t" camunda:assignee="ann" camunda:candidateGroups="a, b"/><sequenceFlow id="f" sourceRef="s" targetRef="t"/>"#,
        "{}",
        r#"s; task t of ann ["a", "b"]"#,
    ),
];

#[test]
fn each_thing_does_what_it_says() {
    let mut wrong = Vec::new();
    for (name, beside, body, variables, expected) in CASES {
        let got = play(beside, body, variables);
        if got != *expected {
            wrong.push(format!("{name}:\n  expected {expected}\n  got      {got}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn file(attributes: &str, beside: &str, process: &str) -> String {
    format!(
        r#"<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:zeebe="http://camunda.org/schema/zeebe/1.0"
 xmlns:camunda="http://camunda.org/schema/1.0/bpmn" targetNamespace="urn:t"{attributes}>{beside}<process id="p" isExecutable="true">{process}</process></definitions>"#
    )
}

fn play(beside: &str, body: &str, variables: &str) -> String {
    let compiled = load("p.bpmn", file("", beside, body).as_bytes(), &[]);
    let refused = errors(&compiled.diagnostics);
    let Some(definition) = compiled.definitions.first() else {
        return format!("refused: {refused:?}");
    };
    let mut host = Host::new(definition);
    let start = CommandKind::Start {
        element: None,
        variables: Variables::parse(variables).unwrap(),
    };
    let (_, effects) = host.command(start).expect("it starts");
    let lines = history(definition, &host.journal, 1);
    let completed = lines.iter().filter(|line| line.event == "ElementCompleted");
    let completed: Vec<_> = completed.filter_map(|line| line.element_id.clone()).collect();
    let mut open: Vec<String> = effects.iter().filter_map(opened).collect();
    open.sort();
    open.extend(
        host.instance
            .variables()
            .get("all")
            .map(|all| format!("all = {}", all.text())),
    );
    std::iter::once(completed.join(" "))
        .chain(open)
        .collect::<Vec<_>>()
        .join("; ")
}

fn opened(effect: &Effect) -> Option<String> {
    Some(match effect {
        Effect::ArmTimer(timer) => format!("timer c after {} ms", timer.due_at.since(BEGIN)),
        Effect::Subscribe(wait) => format!("signal {}", wait.message_name),
        Effect::PublishMessage {
            name,
            correlation_key,
            ttl_ms,
            message_id,
            ..
        } => {
            let more = [
                (!correlation_key.is_empty()).then(|| format!(" key {correlation_key}")),
                message_id.as_ref().map(|id| format!(" id {id}")),
                ttl_ms.map(|ms| format!(" for {ms} ms")),
            ];
            format!("publish {name}{}", more.into_iter().flatten().collect::<String>())
        }
        Effect::RunJob(job) => format!("job {} {} tries", job.job_type, job.retries),
        Effect::OpenUserTask(task) => match &task.assignee {
            Some(assignee) => format!(
                "task {} of {assignee} {:?}",
                task.element_id, task.candidate_groups
            ),
            None => format!("task {}", task.element_id),
        },
        Effect::StartChild(child) => {
            format!(
                "child {} {:?} {}",
                child.process_id,
                child.binding,
                child.variables.to_json()
            )
        }
        Effect::RaiseIncident(incident) => format!("incident {}", incident.message),
        _ => return None,
    })
}

#[test]
fn the_language_of_a_file_is_that_of_its_conditions() {
    let body = r#"<startEvent id="s"/><exclusiveGateway id="g" default="d"/><endEvent id="a"/><endEvent id="b"/>
<sequenceFlow id="f" sourceRef="s" targetRef="g"/><sequenceFlow id="d" sourceRef="g" targetRef="b"/>
<sequenceFlow id="c" sourceRef="g" targetRef="a"><conditionExpression>if true then true else false</conditionExpression></sequenceFlow>"#;
    let feel = r#"<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" targetNamespace="urn:t" expressionLanguage="https://www.omg.org/spec/DMN/20191111/FEEL/"><process id="p" isExecutable="true">"#;
    let file = format!("{feel}{body}</process></definitions>");
    let compiled = load("p.bpmn", file.as_bytes(), &[]);
    assert_eq!(errors(&compiled.diagnostics), [] as [&str; 0]);
}

#[test]
fn a_definition_has_the_tag_of_its_version() {
    let body =
        r#"<extensionElements><zeebe:versionTag value="1.2"/></extensionElements><startEvent id="s"/>"#;
    let compiled = load("p.bpmn", file("", "", body).as_bytes(), &[]);
    assert_eq!(
        compiled.definitions[0].version_tag().map(|tag| &**tag),
        Some("1.2")
    );
}

#[test]
fn what_is_not_run_is_told() {
    for extension in [
        r#"<zeebe:executionListeners><zeebe:executionListener eventType="start" type="x"/></zeebe:executionListeners>"#,
        r#"<zeebe:taskListeners><zeebe:taskListener eventType="creating" type="x"/></zeebe:taskListeners>"#,
        r#"<camunda:executionListener class="a.B" event="start"/>"#,
        r#"<camunda:taskListener class="a.B" event="create"/>"#,
        r#"<camunda:connector><camunda:connectorId>http</camunda:connectorId></camunda:connector>"#,
    ] {
        let body = format!(
            r#"<startEvent id="s"/><userTask id="t"><extensionElements>{extension}</extensionElements></userTask><sequenceFlow id="f" sourceRef="s" targetRef="t"/>"#
        );
        let compiled = load("p.bpmn", file("", "", &body).as_bytes(), &[]);
        let codes: Vec<_> = compiled
            .diagnostics
            .iter()
            .map(|found| (found.code.as_str(), found.is_error()))
            .collect();
        assert_eq!(codes, [("extension-ignored", false)], "{extension}");
    }
}

/// What changes a run elsewhere and not here, and what is told of it.
const UNREAD: &[(&str, &str)] = &[
    (
        r#"<startEvent id="s"/><serviceTask id="t" camunda:type="external" camunda:topic="x"><extensionElements><camunda:errorEventDefinition id="e" errorRef="bad" expression="${true}"/></extensionElements></serviceTask>"#,
        "extension-ignored",
    ),
    (
        r#"<startEvent id="s"/><userTask id="t"><extensionElements><camunda:formData><camunda:formField id="a" type="string"/></camunda:formData></extensionElements></userTask>"#,
        "extension-ignored",
    ),
    (
        r#"<startEvent id="s"/><userTask id="t"><extensionElements><camunda:formProperty id="a" type="string"/></extensionElements></userTask>"#,
        "extension-ignored",
    ),
    (
        r#"<startEvent id="s"/><userTask id="t"><extensionElements><camunda:failedJobRetryTimeCycle>R3/PT1M</camunda:failedJobRetryTimeCycle></extensionElements></userTask>"#,
        "extension-ignored",
    ),
    (
        r#"<startEvent id="s" camunda:initiator="boss"/><task id="t"/>"#,
        "extension-ignored",
    ),
    (
        r#"<startEvent id="s"/><serviceTask id="t" camunda:type="external" camunda:topic="x" camunda:taskPriority="7"/>"#,
        "extension-ignored",
    ),
    (
        r#"<startEvent id="s"/><serviceTask id="t" camunda:type="external" camunda:topic="x" camunda:jobPriority="7"/>"#,
        "extension-ignored",
    ),
    (
        r#"<startEvent id="s"/><serviceTask id="t" camunda:type="external" camunda:topic="x" camunda:skipExpression="${skip}"/>"#,
        "extension-ignored",
    ),
    (
        r#"<startEvent id="s"/><serviceTask id="t" camunda:type="external" camunda:topic="x" camunda:triggerable="true"/>"#,
        "extension-ignored",
    ),
    (
        r#"<startEvent id="s"/><intermediateCatchEvent id="t"><conditionalEventDefinition camunda:variableName="x"><condition>= x</condition></conditionalEventDefinition></intermediateCatchEvent>"#,
        "extension-ignored",
    ),
    (
        r#"<startEvent id="s"/><intermediateCatchEvent id="t"><conditionalEventDefinition camunda:variableEvents="create"><condition>= x</condition></conditionalEventDefinition></intermediateCatchEvent>"#,
        "extension-ignored",
    ),
    (
        r#"<startEvent id="s"/><callActivity id="t" calledElement="q" camunda:calledElementTenantId="other"/>"#,
        "extension-ignored",
    ),
    (
        r#"<startEvent id="s"/><businessRuleTask id="t" camunda:decisionRef="d" camunda:decisionRefTenantId="other"/>"#,
        "extension-ignored",
    ),
    (
        r#"<startEvent id="s"/><callActivity id="t" calledElement="q" camunda:variableMappingClass="a.B"/>"#,
        "java-delegate",
    ),
    (
        r#"<startEvent id="s"/><callActivity id="t" calledElement="q" camunda:variableMappingDelegateExpression="${b}"/>"#,
        "java-delegate",
    ),
];

#[test]
fn what_would_change_a_run_elsewhere_is_told() {
    for (body, expected) in UNREAD {
        let body = format!(r#"{body}<sequenceFlow id="f" sourceRef="s" targetRef="t"/>"#);
        let compiled = load("p.bpmn", file("", "", &body).as_bytes(), &[]);
        let [told] = compiled.diagnostics.as_slice() else {
            panic!("{body}: {:?}", compiled.diagnostics)
        };
        assert_eq!(told.code, *expected, "{body}");
        assert_eq!(told.is_error(), *expected == "java-delegate", "{body}");
        assert!(told.line > 0 && told.hint.is_some(), "{told}");
    }
}

#[test]
fn what_a_process_says_of_starters_and_history_is_told() {
    let told = |process: &str| {
        let file = format!(
            r#"<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:camunda="http://camunda.org/schema/1.0/bpmn"
 xmlns:tidegate="urn:tidegate:bpmn" targetNamespace="urn:t">{process}<startEvent id="s"/></process></definitions>"#
        );
        let compiled = load("p.bpmn", file.as_bytes(), &[]);
        assert_eq!(errors(&compiled.diagnostics), [] as [&str; 0]);
        let told = compiled.diagnostics.iter();
        told.map(|told| told.message.split('`').nth(1).unwrap_or_default().to_owned())
            .collect::<Vec<_>>()
    };
    let all = r#"<process id="p" isExecutable="true" camunda:candidateStarterGroups="boss" camunda:candidateStarterUsers="ann" camunda:historyTimeToLive="P30D">"#;
    assert_eq!(
        told(all),
        [
            "candidateStarterGroups",
            "candidateStarterUsers",
            "historyTimeToLive"
        ]
    );
    let said =
        r#"<process id="p" isExecutable="true" camunda:historyTimeToLive="P30D" tidegate:retention="P30D">"#;
    assert_eq!(told(said), [] as [&str; 0]);
    let empty = r#"<process id="p" isExecutable="true" camunda:historyTimeToLive="">"#;
    assert_eq!(told(empty), [] as [&str; 0]);
}

#[test]
fn a_job_stands_in_for_java_code_where_the_host_says_so() {
    let options = CompileOptions {
        delegates: [("a.B", "pay"), ("pay", "pay"), ("bean.pay(x)", "pay")]
            .map(|(java, job)| (java.to_owned(), job.to_owned()))
            .into(),
        ..CompileOptions::default()
    };
    for element in [
        r#"<serviceTask id="t" camunda:class="a.B">FIELDS</serviceTask>"#,
        r#"<sendTask id="t" camunda:delegateExpression="${pay}">FIELDS</sendTask>"#,
        r#"<businessRuleTask id="t" camunda:expression="${ bean.pay(x) }">FIELDS</businessRuleTask>"#,
        r#"<endEvent id="t"><messageEventDefinition camunda:class="a.B">FIELDS</messageEventDefinition></endEvent>"#,
    ] {
        let fields = r#"<extensionElements><camunda:failedJobRetryTimeCycle>R5/PT1M</camunda:failedJobRetryTimeCycle><camunda:field name="a" stringValue="1"/><camunda:field name="b"><camunda:string>2</camunda:string></camunda:field><camunda:field name="c" expression="${x}"/></extensionElements>"#;
        let body = format!(
            r#"<startEvent id="s"/>{}<sequenceFlow id="f" sourceRef="s" targetRef="t"/>"#,
            element.replace("FIELDS", fields)
        );
        let compiled = load_with("p.bpmn", file("", "", &body).as_bytes(), &options);
        let told: Vec<_> = compiled
            .diagnostics
            .iter()
            .map(|found| found.code.as_str())
            .collect();
        assert_eq!(told, ["extension-ignored"], "{element}");
        let mut host = Host::new(&compiled.definitions[0]);
        let start = CommandKind::Start {
            element: None,
            variables: Variables::new(),
        };
        let (_, effects) = host.command(start).expect("it starts");
        let job = effects.iter().find_map(|effect| match effect {
            Effect::RunJob(job) => Some(job),
            _ => None,
        });
        let job = job.expect("a job");
        let headers: Vec<_> = job
            .headers
            .iter()
            .map(|(key, value)| (&**key, &**value))
            .collect();
        assert_eq!(
            (&*job.job_type, headers),
            ("pay", vec![("a", "1"), ("b", "2")]),
            "{element}"
        );
    }
}

/// What nothing can run, with the code that it is refused with.
const REFUSED: &[(&str, &str)] = &[
    (r#"<choreographyTask id="t"/>"#, "element-not-supported"),
    (r#"<subChoreography id="t"/>"#, "element-not-supported"),
    (r#"<callChoreography id="t"/>"#, "element-not-supported"),
    (r#"<serviceTask id="t" camunda:class="a.B"/>"#, "java-delegate"),
    (
        r#"<sendTask id="t" messageRef="m"><extensionElements><zeebe:publishMessage timeToLive="soon"/></extensionElements></sendTask>"#,
        "time-to-live-invalid",
    ),
    (
        r#"<userTask id="t"><extensionElements><zeebe:taskSchedule dueDate="soon"/></extensionElements></userTask>"#,
        "user-task-date-invalid",
    ),
    (
        r#"<dataObject id="x"/><task id="t"><dataInputAssociation><targetRef>x</targetRef><transformation>&lt;context/&gt;</transformation></dataInputAssociation></task>"#,
        "expression-syntax",
    ),
    (
        r#"<userTask id="t" camunda:followUpDate="12/31/2026"/>"#,
        "user-task-date-invalid",
    ),
    (
        r#"<userTask id="t"><extensionElements><zeebe:priorityDefinition priority="high"/></extensionElements></userTask>"#,
        "user-task-priority-invalid",
    ),
    (
        r#"<userTask id="t"><extensionElements><zeebe:formDefinition formKey="=1 +"/></extensionElements></userTask>"#,
        "expression-syntax",
    ),
    (
        r#"<serviceTask id="t" camunda:delegateExpression="${b}"/>"#,
        "java-delegate",
    ),
    (r#"<sendTask id="t" camunda:class="a.B"/>"#, "java-delegate"),
    (
        r#"<businessRuleTask id="t" camunda:class="a.B"/>"#,
        "java-delegate",
    ),
    (
        r#"<intermediateThrowEvent id="t"><messageEventDefinition camunda:class="a.B"/></intermediateThrowEvent>"#,
        "java-delegate",
    ),
    (
        r#"<serviceTask id="t" camunda:expression="${b.c()}"/>"#,
        "java-delegate",
    ),
];

#[test]
fn what_nothing_can_run_is_refused_by_name() {
    for (element, code) in REFUSED {
        let body =
            format!(r#"<startEvent id="s"/>{element}<sequenceFlow id="f" sourceRef="s" targetRef="t"/>"#);
        let message = r#"<message id="m" name="m"/>"#;
        let compiled = load("p.bpmn", file("", message, &body).as_bytes(), &[]);
        assert_eq!(errors(&compiled.diagnostics), [*code], "{element}");
    }
}
