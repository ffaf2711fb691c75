//! What small files give: diagnostics with their places, and the tree.

use tidegate_bpmn::{BPMN_URI, Limits, Parsed, parse};
use tidegate_model::document::{Namespace, Position};

/// A model around `body`, which begins at line 2. The prefix `t` stands for the target namespace, `i` for
/// an imported one, `o` for one that nothing else says anything about.
fn model(body: &str) -> String {
    format!(
        "<definitions xmlns='{BPMN_URI}' xmlns:xsi='http://www.w3.org/2001/XMLSchema-instance' \
         xmlns:t='urn:t' xmlns:i='urn:i' xmlns:o='urn:o' targetNamespace='urn:t'>\
         <import namespace='urn:i' location='i.bpmn' importType='{BPMN_URI}'/>\n{body}\n</definitions>"
    )
}

fn read(text: &str) -> Parsed {
    parse("test.bpmn", text.as_bytes(), &Limits::default())
}

fn codes(parsed: &Parsed) -> Vec<String> {
    parsed
        .diagnostics
        .iter()
        .map(|d| {
            assert_eq!(d.resource, "test.bpmn");
            assert!(d.hint.is_some(), "no cure: {d}");
            let sign = if d.is_error() { "" } else { "?" };
            format!("{}{sign} {}:{}", d.code, d.line, d.column)
        })
        .collect()
}

#[test]
fn files_that_cannot_be_read() {
    let definitions = format!("<definitions xmlns='{BPMN_URI}'>");
    let table: Vec<(String, &str)> = vec![
        (String::new(), "empty-file 0:0"),
        ("\u{feff}".to_owned(), "empty-file 0:0"),
        ("hello".to_owned(), "not-xml 0:0"),
        ("<html><body/></html>".to_owned(), "not-xml 0:0"),
        ("<p>".to_owned(), "xml-syntax 1:4"),
        ("<?xml version='1.0'?>".to_owned(), "xml-syntax 1:22"),
        ("\n<?xml version='1.0'?><a/>".to_owned(), "xml-syntax 2:1"),
        (format!("\n{definitions}\n<process\n"), "xml-syntax 3:9"),
        (
            format!("\n{definitions}\n<process></definitions>"),
            "xml-syntax 3:10",
        ),
        (format!("{definitions}</definitions>\n <x/>"), "xml-syntax 2:2"),
        (
            format!("{definitions}\né<foo:bar/></definitions>"),
            "undeclared-prefix 2:3",
        ),
        (
            format!("{definitions}\n<process id='a' é='' é=''/></definitions>"),
            "duplicate-attribute 2:22",
        ),
        (
            format!("{definitions}\n&nbsp;</definitions>"),
            "unknown-entity 2:1",
        ),
        (format!("{definitions}\n&#1;</definitions>"), "xml-syntax 2:1"),
        (format!("{definitions}\na & b</definitions>"), "xml-syntax 2:3"),
        (
            format!("{definitions}\n<process id='a < b'/></definitions>"),
            "xml-syntax 2:16",
        ),
        (
            format!("<!-- -->\n <!DOCTYPE x>{definitions}</definitions>"),
            "dtd-refused 2:2",
        ),
        ("<!-- -->\n<process/>".to_owned(), "wrong-root 2:1"),
        ("<definitions/>".to_owned(), "wrong-namespace 1:1"),
        (format!("<process xmlns='{BPMN_URI}'/>"), "wrong-root 1:1"),
        (
            format!("<definitions xmlns='{BPMN_URI}/'/>"),
            "wrong-namespace 1:1",
        ),
        (
            "<definitions xmlns='http://schema.omg.org/spec/BPMN/2.0'/>".to_owned(),
            "wrong-namespace 1:1",
        ),
        ("<definitions xmlns='urn:x'/>".to_owned(), "wrong-namespace 1:1"),
        (
            "<definitions xmlns='https://www.omg.org/spec/DMN/20191111/MODEL/'/>".to_owned(),
            "wrong-root 1:1",
        ),
    ];
    for (text, expected) in table {
        let parsed = read(&text);
        assert!(parsed.document.is_none(), "{text}");
        assert_eq!(codes(&parsed), [expected], "{text}: {}", parsed.diagnostics[0]);
    }
}

#[test]
fn ids_and_references() {
    let table: &[(&str, &[&str])] = &[
        ("", &[]),
        ("<process id='p'/>", &[]),
        // Ids.
        ("<process/>", &["missing-id 2:1"]),
        ("<process id=''/>", &["missing-id 2:1"]),
        (
            "<process id='p'>\n  <task/><sequenceFlow sourceRef='a' targetRef='a'/><task id='a'/></process>",
            &["missing-id 3:3"],
        ),
        ("<message/><process id='p'><dataObject/></process>", &[]),
        ("<process id='p'/>\n<process id='p'/>", &["duplicate-id 3:10"]),
        ("<process id='a b'/>", &["invalid-id 2:10"]),
        ("<process id='1'/>", &["invalid-id 2:10"]),
        // Everything at once, in the order of the file.
        (
            "<process id='p'><sequenceFlow id='f' sourceRef='x'\n targetRef='y'/>\n<task/><boundaryEvent id='p'/></process>",
            &[
                "dangling-reference 2:38",
                "dangling-reference 3:2",
                "missing-id 4:1",
                "missing-reference 4:8",
                "duplicate-id 4:23",
            ],
        ),
        // Sequence flows.
        (
            "<process id='p'><task id='a'/><sequenceFlow sourceRef='a'/></process>",
            &["missing-reference 2:31"],
        ),
        (
            "<process id='p'><task id='a'/><sequenceFlow sourceRef='a' targetRef=' '/></process>",
            &["missing-reference 2:59"],
        ),
        (
            "<process id='p'><task id='a'/><sequenceFlow sourceRef='a' targetRef='p'/></process>",
            &["wrong-reference-kind 2:59"],
        ),
        (
            "<process id='p'><task id='a' default='a'/></process>",
            &["wrong-reference-kind 2:30"],
        ),
        // Incoming and outgoing only repeat.
        (
            "<process id='p'><task id='a'><incoming>f</incoming><outgoing>g</outgoing></task>\
             <sequenceFlow id='f' sourceRef='a' targetRef='b'/><task id='b'/></process>",
            &["flow-mismatch? 2:30", "dangling-reference? 2:52"],
        ),
        (
            "<process id='p'><task id='a'><outgoing>\n t:f </outgoing></task>\
             <sequenceFlow id='f' sourceRef='t:a' targetRef='t:b'/><task id='b'/></process>",
            &[],
        ),
        (
            "<process id='p'><task id='a'><incoming>p</incoming></task></process>",
            &["wrong-reference-kind 2:30"],
        ),
        // Events.
        (
            "<error id='e'/><receiveTask id='r' messageRef='e'/>",
            &["wrong-reference-kind 2:36"],
        ),
        (
            "<receiveTask id='r' messageRef='m'/>",
            &["dangling-reference 2:21"],
        ),
        (
            "<receiveTask id='r' messageRef=''/>",
            &["dangling-reference 2:21"],
        ),
        (
            "<startEvent id='s'><signalEventDefinition signalRef='x'/></startEvent>",
            &["dangling-reference 2:43"],
        ),
        (
            "<startEvent id='s'><eventDefinitionRef>x</eventDefinitionRef></startEvent>",
            &["dangling-reference 2:20"],
        ),
        (
            "<exclusiveGateway id='g'/><boundaryEvent id='b' attachedToRef='g'/>",
            &["wrong-reference-kind 2:49"],
        ),
        // What cannot change a run.
        (
            "<lane><flowNodeRef>x</flowNodeRef></lane>",
            &["dangling-reference? 2:7"],
        ),
        ("<group categoryValueRef='x'/>", &["dangling-reference? 2:8"]),
        // Elsewhere, or not ours.
        ("<callActivity id='c' calledElement='x'/>", &[]),
        ("<itemDefinition structureRef='xsd:string'/>", &[]),
        ("<relationship><source>x</source></relationship>", &[]),
        (
            "<task id='t'><extensionElements><o:x messageRef='y' id='t'/></extensionElements></task>",
            &[],
        ),
        // Other namespaces.
        (
            "<receiveTask id='r' messageRef='i:m'/>",
            &["external-reference 2:21"],
        ),
        (
            "<message id='m'/><receiveTask id='r' messageRef='i:m'/>",
            &["external-reference 2:38"],
        ),
        (
            "<receiveTask id='r' messageRef='o:m'/>",
            &["external-reference 2:21"],
        ),
        (
            "<receiveTask id='r' messageRef='none:m'/>",
            &["dangling-reference 2:21"],
        ),
        ("<group categoryValueRef='i:x'/>", &["external-reference? 2:8"]),
        // Foreign elements.
        ("<o:x><process/></o:x>", &[]),
        (
            "<process id='p'><task xmlns='' id='t'/></process>",
            &["no-namespace? 2:17"],
        ),
    ];
    for (body, expected) in table {
        let parsed = read(&model(body));
        assert!(parsed.document.is_some(), "{body}");
        assert_eq!(codes(&parsed), *expected, "{body}");
    }
}

#[test]
fn references_become_plain_ids() {
    let table = [
        ("m", "m"),
        (" m\n", "m"),
        ("t:m", "m"),
        ("o:m", "m"),
        ("none:m", "m"),
    ];
    for (written, plain) in table {
        let parsed = read(&model(&format!(
            "<message id='m'/><receiveTask id='r' messageRef='{written}'/>\
             <operation><inMessageRef>{written}</inMessageRef></operation>"
        )));
        assert_eq!(codes(&parsed), [""; 0], "{written}");
        let document = parsed.document.expect("a document");
        let task = document.get(document.by_id("r").expect("the task"));
        assert_eq!(task.attribute("messageRef"), Some(plain), "{written}");
        let text = document.elements.iter().find(|e| e.tag == "inMessageRef");
        assert_eq!(text.map(|e| e.text.as_str()), Some(plain), "{written}");
    }
}

#[test]
fn called_elements_lose_their_prefix_and_expressions_stay() {
    let table = [
        ("q", "q"),
        ("t:q", "q"),
        ("i:q", "q"),
        ("o:q", "q"),
        ("none:q", "none:q"),
        ("${a ? t:b}", "${a ? t:b}"),
        ("= if t:q", "= if t:q"),
    ];
    for (written, plain) in table {
        let parsed = read(&model(&format!(
            "<callActivity id='c' calledElement='{written}'/>"
        )));
        assert_eq!(codes(&parsed), [""; 0], "{written}");
        let document = parsed.document.expect("a document");
        let call = document.get(document.by_id("c").expect("the call"));
        assert_eq!(call.attribute("calledElement"), Some(plain));
    }
}

#[test]
fn the_element_concerned_is_the_nearest_with_an_id() {
    let parsed = read(&model(
        "<startEvent id='s'><messageEventDefinition messageRef='x'/></startEvent>",
    ));
    assert_eq!(parsed.diagnostics[0].element_id.as_deref(), Some("s"));
}

#[test]
fn the_tree_holds_bpmn_and_extensions() {
    let text = format!(
        "<?xml version='1.0'?>\n<b:definitions xmlns:b='{BPMN_URI}' xmlns:z='http://camunda.org/schema/zeebe/1.0'\
         \n  xmlns:xsi='http://www.w3.org/2001/XMLSchema-instance' xmlns:di='http://www.omg.org/spec/BPMN/20100524/DI'\
         \n  xmlns:f='http://flowable.org/bpmn'><b:process id='p'>\
         \n<b:extensionElements>text<z:a x='1'>one<z:b z:y='2'/><!-- c -->two<z:c/></z:a><o xmlns='urn:o'/></b:extensionElements>\
         \n<z:skipped><b:task id='no'/></z:skipped>\
         \n<b:scriptTask id='t' f:async='true'><b:script>a<![CDATA[ < ]]>b<?pi?>c</b:script><b:documentation> \n </b:documentation></b:scriptTask>\
         \n<b:sequenceFlow id='f' sourceRef='t' targetRef='t'><b:conditionExpression xsi:type='b:tFormalExpression'>${{x:y}}</b:conditionExpression></b:sequenceFlow>\
         \n</b:process><di:BPMNDiagram id='p'><di:BPMNPlane bpmnElement='nothing'/></di:BPMNDiagram></b:definitions>"
    );
    let parsed = read(&text);
    assert_eq!(codes(&parsed), [""; 0]);
    let document = parsed.document.expect("a document");
    let tags: Vec<&str> = document.elements.iter().map(|e| e.tag.as_str()).collect();
    assert_eq!(
        tags,
        [
            "definitions",
            "process",
            "scriptTask",
            "script",
            "documentation",
            "sequenceFlow",
            "conditionExpression"
        ]
    );
    let (_, process) = document.child(document.root(), "process").expect("the process");
    assert_eq!(process.position, Position { line: 4, column: 38 });
    let children: Vec<&str> = process
        .children
        .iter()
        .map(|id| document.get(*id).tag.as_str())
        .collect();
    assert_eq!(children, ["scriptTask", "sequenceFlow"]);

    assert_eq!(process.extensions.len(), 2);
    let extension = process.extension(&Namespace::Zeebe, "a").expect("the extension");
    assert_eq!(extension.attribute("x"), Some("1"));
    assert_eq!(extension.text, "onetwo");
    assert_eq!(extension.position, Position { line: 5, column: 26 });
    let inner: Vec<&str> = extension.children.iter().map(|e| e.tag.as_str()).collect();
    assert_eq!(inner, ["b", "c"]);
    assert_eq!(extension.children[0].attributes[0].namespace, Namespace::Zeebe);
    assert_eq!(
        process.extensions[1].namespace,
        Namespace::Other("urn:o".to_owned())
    );

    let task = document.by_id("t").expect("the task");
    assert_eq!(
        document.get(task).attribute_in(&Namespace::Flowable, "async"),
        Some("true")
    );
    assert_eq!(
        document.child(task, "script").map(|(_, e)| e.text.as_str()),
        Some("a < bc")
    );
    assert_eq!(
        document
            .child(task, "documentation")
            .map(|(_, e)| e.text.as_str()),
        Some("")
    );
    let condition = document.elements.last().expect("the condition");
    assert_eq!(
        condition.attribute_in(&Namespace::Xsi, "type"),
        Some("tFormalExpression")
    );
    assert_eq!(condition.text, "${x:y}");
}

#[test]
fn the_first_of_two_equal_ids_counts() {
    let parsed = read(&model("<message id='a' name='1'/><message id='a' name='2'/>"));
    let document = parsed.document.expect("a document");
    let first = document.by_id("a").map(|id| document.get(id));
    assert_eq!(first.and_then(|e| e.name()), Some("1"));
    let message = &parsed.diagnostics[0].message;
    assert!(message.contains("line 2, column 10"), "{message}");
}
