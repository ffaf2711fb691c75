//! Bytes of every kind: marks, UTF-16, Latin-1, line ends, files without a diagram.

use crate::support::stand;
use crate::{BPMN, codes, content, deploy};

/// A model with an umlaut in a name, and a condition; `declaration` begins it, `diagram` ends it.
fn text(declaration: &str, diagram: &str) -> String {
    format!(
        "{declaration}<definitions xmlns=\"{BPMN}\" targetNamespace=\"urn:n\">\n<process id=\"p\" isExecutable=\"true\">\n\
         <startEvent id=\"s\"/><task id=\"t\" name=\"prüfen – geöffnet\"/>\n<endEvent id=\"e\"/>\n\
         <sequenceFlow id=\"a\" sourceRef=\"s\" targetRef=\"t\"/><sequenceFlow id=\"b\" sourceRef=\"t\" targetRef=\"e\"/>\n\
         </process>{diagram}</definitions>\n"
    )
}

fn utf16(text: &str, order: fn(u16) -> [u8; 2]) -> Vec<u8> {
    text.encode_utf16().flat_map(order).collect()
}

const DIAGRAM: &str = "<di:BPMNDiagram xmlns:di=\"http://www.omg.org/spec/BPMN/20100524/DI\" id=\"d\"><di:BPMNPlane id=\"dp\" bpmnElement=\"p\"/></di:BPMNDiagram>";

#[tokio::test(flavor = "multi_thread")]
async fn case_173_a_model_is_the_same_in_every_encoding() {
    let utf8 = text("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n", DIAGRAM);
    let sixteen = text("<?xml version=\"1.0\" encoding=\"UTF-16\"?>\n", DIAGRAM);
    // A dash that Latin-1 lacks is written as a reference there.
    let latin = text("<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>\n", DIAGRAM).replace('–', "&#8211;");
    let marked = |text: &str| format!("\u{feff}{text}");
    let files = [
        ("UTF-8", utf8.clone().into_bytes()),
        ("UTF-8 with a mark", marked(&utf8).into_bytes()),
        (
            "UTF-16 LE with a mark",
            utf16(&marked(&sixteen), u16::to_le_bytes),
        ),
        (
            "UTF-16 BE with a mark",
            utf16(&marked(&sixteen), u16::to_be_bytes),
        ),
        ("UTF-16 LE without a mark", utf16(&sixteen, u16::to_le_bytes)),
        ("UTF-16 BE without a mark", utf16(&sixteen, u16::to_be_bytes)),
        (
            "UTF-16 that does not say so",
            utf16(&marked(&text("", DIAGRAM)), u16::to_le_bytes),
        ),
        (
            "Latin-1",
            latin
                .chars()
                .map(|c| u8::try_from(u32::from(c)).unwrap())
                .collect(),
        ),
        ("without a declaration", text("", DIAGRAM).into_bytes()),
        ("without a diagram", text("", "").into_bytes()),
        ("line ends of Windows", utf8.replace('\n', "\r\n").into_bytes()),
    ];
    let expected = content(&files[0].1);
    assert!(expected.iter().any(|line| line.contains("prüfen – geöffnet")));
    for (name, bytes) in files {
        assert_eq!(content(&bytes), expected, "{name}");
        let stand = stand().await;
        let deployed = deploy(&stand, "p.bpmn", &bytes).await;
        let deployed = deployed.unwrap_or_else(|found| panic!("{name}: {found:?}"));
        assert!(deployed.warnings.is_empty(), "{name}: {:?}", deployed.warnings);
        let instance = stand.run("p", "{}").await.instance;
        assert_eq!(stand.times(instance, "ElementCompleted t").await, 1, "{name}");
        let kept = stand
            .runtime
            .definition_xml(deployed.definitions[0].definition_key)
            .await
            .unwrap();
        assert_eq!(*kept, *bytes, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn case_173_a_wrong_declaration_is_a_clear_error() {
    let utf8_as_16 = text("<?xml version=\"1.0\" encoding=\"UTF-16\"?>\n", "").into_bytes();
    let latin_as_utf8: Vec<u8> = text("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n", "")
        .replace('–', "-")
        .chars()
        .map(|c| u8::try_from(u32::from(c)).unwrap())
        .collect();
    for (bytes, code, line) in [
        (utf8_as_16, "encoding-mismatch", 1),
        (latin_as_utf8, "invalid-bytes", 4),
    ] {
        let found = deploy(&stand().await, "p.bpmn", &bytes).await.unwrap_err();
        assert_eq!(codes(&found), [code]);
        assert_eq!(found[0].line, line, "{}", found[0]);
        assert!(found[0].hint.is_some());
    }
}
