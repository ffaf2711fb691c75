//! Ids of every kind, and files that come back as they were.

use crate::support::stand;
use crate::{BPMN, codes, deploy, file};

fn process(id: &str) -> String {
    format!(
        r#"<process id="{id}" isExecutable="true"><startEvent id="s-{id}"/><endEvent id="e-{id}"/><sequenceFlow id="f-{id}" sourceRef="s-{id}" targetRef="e-{id}"/></process>"#
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn case_167_ids_that_are_names_work_end_to_end() {
    let long = "x".repeat(300);
    for id in ["größe", "日本", &long] {
        let stand = stand().await;
        let deployed = deploy(&stand, "p.bpmn", &file(&process(id))).await.unwrap();
        assert!(deployed.warnings.is_empty(), "{id}: {:?}", deployed.warnings);
        assert_eq!(deployed.definitions[0].process_id, id);
        let instance = stand.run(id, "{}").await.instance;
        assert_eq!(
            stand.times(instance, &format!("ElementCompleted e-{id}")).await,
            1
        );
        let row = stand.runtime.instance(instance).await.unwrap().row;
        assert_eq!(&*row.process_id, id);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn case_167_an_id_that_is_no_name_is_told_once_and_readably() {
    for id in ["01p", "a b"] {
        let text = format!(r#"<process id="{id}" isExecutable="true"><startEvent id="s"/></process>"#);
        let found = deploy(&stand().await, "p.bpmn", &file(&text)).await.unwrap_err();
        assert_eq!(codes(&found), ["invalid-id"]);
        assert!(found[0].is_error() && found[0].message.contains(id));
        assert!(found[0].line > 0 && found[0].column > 0 && found[0].hint.is_some());
        assert_eq!(found[0].element_id.as_deref(), Some(id));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn case_167_ids_that_two_processes_share_are_all_told() {
    let twice = format!("{}{}", process("p"), process("p"));
    let found = deploy(&stand().await, "p.bpmn", &file(&twice)).await.unwrap_err();
    let doubled = found.iter().filter(|found| found.code == "duplicate-id");
    let ids: Vec<_> = doubled.filter_map(|found| found.element_id.as_deref()).collect();
    assert_eq!(ids, ["p", "s-p", "e-p", "f-p"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn case_172_a_file_comes_back_byte_for_byte() {
    let inner = r#"<startEvent id="s"/>"#;
    let files = [
        // One namespace as default and with a prefix.
        format!(
            r#"<definitions xmlns="{BPMN}" xmlns:bpmn2="{BPMN}" targetNamespace="urn:n"><bpmn2:process id="p" isExecutable="true">{inner}</bpmn2:process></definitions>"#
        ),
        // Unknown extensions, their attributes in single quotes, a tab, a comment at the end.
        format!(
            "<?xml version='1.0'?>\n<d:definitions xmlns:d='{BPMN}' targetNamespace='urn:n'\txmlns:v=\"urn:vendor\" v:tool='1'><d:process id='p' isExecutable='true' v:colour='red'><d:extensionElements><v:meta  key = 'a'><v:deep/></v:meta></d:extensionElements><d:startEvent id='s' v:x=''/></d:process></d:definitions>\n<!-- exported -->"
        ),
        // The same vendor namespace under two prefixes.
        format!(
            r#"<definitions xmlns="{BPMN}" xmlns:a="urn:vendor" xmlns:b="urn:vendor" targetNamespace="urn:n"><process id="p" isExecutable="true"><extensionElements><a:x b:y="1"/></extensionElements>{inner}</process></definitions>"#
        ),
        // A mark, Windows line ends, character references.
        format!(
            "\u{feff}<definitions xmlns=\"{BPMN}\" targetNamespace=\"urn:n\">\r\n<process id=\"p\" name=\"&#228;&quot;\" isExecutable=\"true\">\r\n{inner}\r\n</process>\r\n</definitions>\r\n"
        ),
        // A diagram with a vendor's attributes, and an unknown root element beside it.
        format!(
            r#"<definitions xmlns="{BPMN}" xmlns:di="http://www.omg.org/spec/BPMN/20100524/DI" xmlns:c="urn:colour" targetNamespace="urn:n"><process id="p" isExecutable="true">{inner}</process><di:BPMNDiagram id="d"><di:BPMNPlane id="dp" bpmnElement="p"><di:BPMNShape id="sh" bpmnElement="s" c:fill="red"/></di:BPMNPlane></di:BPMNDiagram></definitions>"#
        ),
    ];
    for text in files {
        let stand = stand().await;
        let deployed = deploy(&stand, "p.bpmn", text.as_bytes()).await.unwrap();
        let key = deployed.definitions[0].definition_key;
        let kept = stand.runtime.definition_xml(key).await.unwrap();
        assert_eq!(*kept, *text.as_bytes());
        let instance = stand.run("p", "{}").await.instance;
        assert_eq!(stand.times(instance, "ElementCompleted s").await, 1);
    }
}
