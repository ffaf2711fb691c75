//! The vocabularies by their URIs, and what a root element tells about a file.

use tidegate_model::document::Namespace;

use crate::report::{Finding, shorten};

/// The namespace of BPMN 2.0 models.
pub const BPMN_URI: &str = "http://www.omg.org/spec/BPMN/20100524/MODEL";

const KNOWN: &[(&str, Namespace)] = &[
    (BPMN_URI, Namespace::Bpmn),
    ("http://www.w3.org/2001/XMLSchema-instance", Namespace::Xsi),
    ("http://camunda.org/schema/zeebe/1.0", Namespace::Zeebe),
    ("http://camunda.org/schema/1.0/bpmn", Namespace::Camunda),
    ("http://operaton.org/schema/1.0/bpmn", Namespace::Operaton),
    ("http://flowable.org/bpmn", Namespace::Flowable),
    ("http://activiti.org/bpmn", Namespace::Activiti),
];

/// The vocabulary of a namespace URI.
pub fn of(uri: Option<&str>) -> Namespace {
    match uri {
        None | Some("") => Namespace::None,
        Some(uri) => KNOWN.iter().find(|(known, _)| *known == uri).map_or_else(
            || Namespace::Other(uri.to_owned()),
            |(_, namespace)| namespace.clone(),
        ),
    }
}

/// Says why the root element is not that of a BPMN 2.0 model.
pub fn wrong_root(xml: &roxmltree::Document<'_>) -> Option<Finding> {
    let root = xml.root_element();
    let (name, uri) = (root.tag_name().name(), root.tag_name().namespace().unwrap_or(""));
    if name == "definitions" && uri == BPMN_URI {
        return None;
    }
    let name = shorten(name);
    let offset = root.range().start;
    let right = format!("the root element must be definitions in the namespace {BPMN_URI}");
    let finding = if uri == BPMN_URI {
        Finding::error(
            offset,
            "wrong-root",
            format!("the root element is {name}, not definitions"),
        )
        .hint(right)
    } else if uri.contains("/DMN/") {
        Finding::error(offset, "wrong-root", "this is a DMN file, not a BPMN model")
            .hint("deploy it under a name that ends with .dmn")
    } else if uri.contains("/CMMN/") {
        Finding::error(
            offset,
            "wrong-root",
            "this is a CMMN case model, not a BPMN model",
        )
        .hint("case models are not executed; model it as a BPMN process")
    } else if uri.contains("/XPDL") || name == "Package" {
        Finding::error(offset, "wrong-root", "this is an XPDL file, not a BPMN model")
            .hint("export it as BPMN 2.0 XML")
    } else if name.eq_ignore_ascii_case("definitions") && uri.is_empty() {
        Finding::error(offset, "wrong-namespace", "the root element has no namespace")
            .hint(format!("declare xmlns=\"{BPMN_URI}\" at the root element"))
    } else if uri.to_ascii_lowercase().contains("bpmn") {
        Finding::error(
            offset,
            "wrong-namespace",
            format!("the root element is in the namespace {uri}, which is not that of BPMN 2.0"),
        )
        .hint(format!(
            "the namespace of BPMN 2.0 is exactly {BPMN_URI}; export files of older versions again as BPMN 2.0 XML"
        ))
    } else if name.eq_ignore_ascii_case("definitions") {
        Finding::error(
            offset,
            "wrong-namespace",
            format!("the root element is in the namespace {uri}, which is not that of BPMN 2.0"),
        )
        .hint(right)
    } else {
        Finding::error(
            offset,
            "wrong-root",
            format!("the root element is {name}; this is no BPMN model"),
        )
        .hint(right)
    };
    Some(finding)
}
