//! Links that are connected by more than a name written inside them.

mod common;

use common::model::{Play, chain, file, job};
use common::{Host, errors, load};

/// A process that jumps by a link, with definitions beside it.
fn jumps(definitions: &str, throw: &str, catch: &str) -> Result<Host, Vec<String>> {
    let body = format!(
        "<startEvent id='s'/><endEvent id='e'/><intermediateThrowEvent id='throw'>{throw}</intermediateThrowEvent>\
         <intermediateCatchEvent id='catch'>{catch}</intermediateCatchEvent>{}{}{}",
        job("after", "", ""),
        chain(&["s", "throw"]),
        chain(&["catch", "after", "e"])
    );
    let xml = file(&body).replace("<process", &format!("{definitions}<process"));
    let compiled = load("links.bpmn", xml.as_bytes(), &[]);
    let found = errors(&compiled.diagnostics);
    match compiled.definitions.first() {
        Some(definition) if found.is_empty() => Ok(Host::new(definition)),
        _ => Err(found.into_iter().map(str::to_owned).collect()),
    }
}

#[test]
fn links_are_connected_by_reference_target_source_or_name() {
    let cases = [
        // One definition at the root that both refer to.
        (
            "<linkEventDefinition id='l' name='x'/>",
            "<eventDefinitionRef>l</eventDefinitionRef>",
            "<eventDefinitionRef>l</eventDefinitionRef>",
        ),
        (
            "<linkEventDefinition id='l'/>",
            "<eventDefinitionRef>l</eventDefinitionRef>",
            "<eventDefinitionRef>l</eventDefinitionRef>",
        ),
        // One for each, of the same name.
        (
            "<linkEventDefinition id='l' name='x'/><linkEventDefinition id='m' name='x'/>",
            "<eventDefinitionRef>l</eventDefinitionRef>",
            "<eventDefinitionRef>m</eventDefinitionRef>",
        ),
        (
            "<linkEventDefinition id='l' name='x'/>",
            "<linkEventDefinition name='x'/>",
            "<eventDefinitionRef>l</eventDefinitionRef>",
        ),
        // By target, and by source.
        (
            "",
            "<linkEventDefinition id='l' name='x'><target>m</target></linkEventDefinition>",
            "<linkEventDefinition id='m' name='y'/>",
        ),
        (
            "",
            "<linkEventDefinition id='l' name='x'/>",
            "<linkEventDefinition id='m' name='y'><source>l</source></linkEventDefinition>",
        ),
    ];
    for (definitions, throw, catch) in cases {
        let mut host = match jumps(definitions, throw, catch) {
            Ok(host) => host,
            Err(found) => panic!("{definitions} {throw} {catch}: {found:?}"),
        };
        host.begin("{}");
        assert_eq!(host.open_jobs(), ["after"], "{definitions} {throw} {catch}");
    }
}

#[test]
fn links_that_lead_nowhere_are_refused() {
    let cases = [
        (
            "<linkEventDefinition id='l' name='x'/><linkEventDefinition id='m' name='y'/>",
            "<eventDefinitionRef>l</eventDefinitionRef>",
            "<eventDefinitionRef>m</eventDefinitionRef>",
            "link-without-target",
        ),
        (
            "",
            "<linkEventDefinition name='x'/>",
            "<linkEventDefinition name='y'/>",
            "link-without-target",
        ),
        (
            "",
            "<eventDefinitionRef>none</eventDefinitionRef>",
            "<linkEventDefinition name='y'/>",
            "dangling-reference",
        ),
    ];
    for (definitions, throw, catch, code) in cases {
        let found = jumps(definitions, throw, catch).err().unwrap_or_default();
        assert!(
            found.iter().any(|found| found == code),
            "{throw} {catch}: {found:?}"
        );
    }
}
