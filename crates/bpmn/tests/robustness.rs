//! Random and hostile bytes: never a panic, never much time or memory.

#[path = "../../engine/tests/common/cost.rs"]
mod cost;

use std::time::Duration;

use proptest::prelude::*;
use tidegate_bpmn::{BPMN_URI, Limits, Parsed, parse};

fn read(bytes: &[u8]) -> Parsed {
    parse("test.bpmn", bytes, &Limits::default())
}

fn valid() -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<b:definitions xmlns:b=\"{BPMN_URI}\" xmlns:z=\"urn:z\" \
         xmlns:t=\"urn:t\" targetNamespace=\"urn:t\">\n<!-- née -->\n<b:message id=\"m\"/>\n<b:process id=\"p\">\
         <b:startEvent id=\"s\"><b:outgoing>f</b:outgoing></b:startEvent><?pi x?>\n\
         <b:sequenceFlow id=\"f\" sourceRef=\"t:s\" targetRef=\"r\"><b:conditionExpression><![CDATA[a < b]]>&lt;&#x20AC;\
         </b:conditionExpression></b:sequenceFlow>\n<b:receiveTask id=\"r\" messageRef='t:m' z:x='é'>\
         <b:extensionElements><z:a><z:b/>text</z:a></b:extensionElements></b:receiveTask></b:process></b:definitions>"
    )
}

const FRAGMENTS: &[&str] = &[
    "<",
    ">",
    "/",
    "\"",
    "'",
    "=",
    "&",
    ";",
    "&#",
    "<!--",
    "-->",
    "<![CDATA[",
    "]]>",
    "<?",
    "?>",
    "<?xml ",
    "<!DOCTYPE a [",
    "xmlns",
    "xmlns:",
    ":",
    "\0",
    "\r",
    "é",
    "\u{fffe}",
    "<b:task id='",
    "</b:process>",
    " ",
    "]",
    "\u{feff}",
    "encoding='utf-16'",
    "id=\"p\"",
    "t:",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let parsed = read(&bytes);
        prop_assert!(parsed.document.is_some() || parsed.has_errors());
    }

    #[test]
    fn random_markup(parts in prop::collection::vec(prop::sample::select(FRAGMENTS), 0..30), prefix in 0..3) {
        let start = ["", "<", "\u{feff}<a "][prefix as usize];
        let parsed = read(format!("{start}{}", parts.concat()).as_bytes());
        prop_assert!(parsed.document.is_some() || parsed.has_errors());
    }

    #[test]
    fn mutated_bytes(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)) {
        let mut bytes = valid().into_bytes();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let parsed = read(&bytes);
        prop_assert!(parsed.document.is_some() || parsed.has_errors());
    }

    #[test]
    fn mutated_markup(
        changes in prop::collection::vec(
            (any::<prop::sample::Index>(), 0..12_usize, prop::sample::select(FRAGMENTS)),
            1..5,
        ),
        cut in any::<prop::sample::Index>(),
        whole in any::<bool>(),
    ) {
        let mut characters: Vec<char> = valid().chars().collect();
        for (at, removed, inserted) in changes {
            let at = at.index(characters.len());
            let end = (at + removed).min(characters.len());
            characters.splice(at..end, inserted.chars());
        }
        if !whole {
            characters.truncate(cut.index(characters.len()));
        }
        let text: String = characters.into_iter().collect();
        let parsed = read(text.as_bytes());
        prop_assert!(parsed.document.is_some() || parsed.has_errors());
    }
}

#[test]
fn the_unchanged_file_is_clean() {
    assert_eq!(read(valid().as_bytes()).diagnostics, []);
}

/// Files at the limits. Each takes far below a second when optimised; a quadratic step would take minutes.
#[test]
fn time_is_linear() {
    let model = |body: String| format!("<definitions xmlns='{BPMN_URI}'>{body}</definitions>");
    let many = |count: usize, part: &str| part.repeat(count);
    let numbered = |count: usize, part: fn(usize) -> String| (0..count).map(part).collect::<String>();
    let scope: String = numbered(120, |n| format!(" xmlns:n{n}='urn:{n}'"));
    let table: Vec<(&str, String)> = vec![
        (
            "elements on one line",
            model(numbered(100_000, |n| format!("<task id='é{n}' name='é'/>"))),
        ),
        (
            "dangling references",
            model(numbered(50_000, |n| {
                format!("<sequenceFlow id='f{n}' sourceRef='x' targetRef='y'/>")
            })),
        ),
        ("equal ids", model(many(100_000, "<task id='a'/>"))),
        ("comments", model(many(200_000, "<!---->"))),
        ("open comments", model(many(200_000, "<!--"))),
        (
            "attributes",
            model(many(
                300,
                &format!("<task id='a'{}/>", numbered(250, |n| format!(" a{n}=''"))),
            )),
        ),
        (
            "attributes of one element",
            model(format!("<task{}/>", numbered(100_000, |n| format!(" a{n}=''")))),
        ),
        (
            "declarations",
            model(format!(
                "<task id='t'{scope}>{}</task>",
                many(20_000, "<n119:a xmlns:n1='x' xmlns:n2='y'/>")
            )),
        ),
        (
            "prefixes",
            model(format!(
                "<task id='t'{scope}>{}</task>",
                many(100_000, "<n119:a n118:b=''/>")
            )),
        ),
        (
            "distinct namespaces",
            model(numbered(60_000, |n| format!("<a xmlns='urn:{n}'/>"))),
        ),
        ("open tags", many(500_000, "<a>")),
        ("quotes", format!("<a {}", many(500_000, "'x' "))),
        ("equals signs", model(many(8_000_000, "="))),
        ("less-than signs", many(8_000_000, "<")),
        (
            "references",
            model(format!("<task id='{}'/>", many(500_000, "&amp;"))),
        ),
        (
            "cdata",
            model(format!("<task id='a'>{}</task>", many(100_000, "<![CDATA[x]]>y"))),
        ),
        ("line ends", model(many(4_000_000, "\r\n"))),
        (
            "long id around many mistakes",
            model(format!(
                "<subProcess id='{}'>{}</subProcess>",
                many(3_000_000, "x"),
                many(100_000, "<task/>")
            )),
        ),
        (
            "long end of a flow with many mentions",
            model(format!(
                "<task id='t'>{}</task><sequenceFlow id='f' sourceRef='t' targetRef='{}'/>",
                many(100_000, "<incoming>f</incoming>"),
                many(3_000_000, "x")
            )),
        ),
        (
            "long prefix",
            model(format!("<a:{} xmlns:a='urn:a'/>", many(3_000_000, "x"))),
        ),
        (
            "long tag",
            model(format!("<{0} id='a'/><{0} id='a'/>", many(3_000_000, "x"))),
        ),
        (
            "deep extensions",
            model(format!(
                "<task id='t'><extensionElements>{}{}</extensionElements></task>",
                many(250, "<a xmlns='urn:a'>"),
                many(250, "</a>")
            )),
        ),
    ];
    for (name, text) in table {
        let (parsed, took) = cost::of(|| read(text.as_bytes()));
        eprintln!(
            "{name}: {} bytes, {took:?}, {} diagnostics",
            text.len(),
            parsed.diagnostics.len()
        );
        assert!(took.time < Duration::from_secs(20), "{name}: {took:?}");
        assert!(took.peak < 256 * 1024 * 1024, "{name}: {took:?}");
        let told: usize = parsed.diagnostics.iter().map(|d| d.message.len()).sum();
        assert!(
            parsed.diagnostics.len() <= 2_002 && told < 1_000_000,
            "{name}: {told} bytes"
        );
    }
}

#[test]
fn suppressed_errors_still_refuse() {
    let warnings = "<lane><flowNodeRef>x</flowNodeRef></lane>".repeat(3_000);
    let errors = "<task/>".repeat(3_000);
    let text = format!("<definitions xmlns='{BPMN_URI}'>{warnings}{errors}</definitions>");
    let parsed = read(text.as_bytes());
    assert!(parsed.has_errors());
    let more: Vec<&str> = parsed
        .diagnostics
        .iter()
        .filter(|d| d.code == "too-many-diagnostics")
        .map(|d| d.message.as_str())
        .collect();
    assert_eq!(
        more,
        [
            "2000 more errors are not shown",
            "2000 more warnings are not shown"
        ]
    );
}

#[test]
fn sizes_are_checked_first() {
    let limits = Limits {
        bytes: 10,
        ..Limits::default()
    };
    let parsed = parse("test.bpmn", b"<a>........", &limits);
    assert_eq!(parsed.diagnostics[0].code, "too-large");
}
