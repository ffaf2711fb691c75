//! What people met when they brought in files of other tools. Each test is named after its case.

mod support;

#[path = "field_n/encodings.rs"]
mod encodings;
#[path = "field_n/hardened.rs"]
mod hardened;
#[path = "field_n/ids.rs"]
mod ids;
#[path = "field_n/pools.rs"]
mod pools;
#[path = "field_n/spelling.rs"]
mod spelling;

use support::Stand;
use tidegate::Error;
use tidegate::api::{Deployment, Resource};
use tidegate::model::Diagnostic;

/// The namespace of BPMN.
const BPMN: &str = "http://www.omg.org/spec/BPMN/20100524/MODEL";

/// A file of definitions around `body`.
fn file(body: &str) -> Vec<u8> {
    format!(r#"<definitions xmlns="{BPMN}" targetNamespace="urn:n">{body}</definitions>"#).into_bytes()
}

/// What deploying `bytes` leads to.
async fn deploy(stand: &Stand, name: &str, bytes: &[u8]) -> Result<Deployment, Vec<Diagnostic>> {
    let resource = Resource {
        name: name.to_owned(),
        bytes: bytes.to_vec(),
    };
    match stand.runtime.deploy(vec![resource], None, "test").await {
        Ok(deployment) => Ok(deployment),
        Err(Error::NotDeployable(found)) => Err(found),
        Err(other) => panic!("{other}"),
    }
}

/// The codes of what was found.
fn codes(found: &[Diagnostic]) -> Vec<&str> {
    found.iter().map(|found| found.code.as_str()).collect()
}

/// What a file says, without its places: tags, attributes, texts in their order.
fn content(bytes: &[u8]) -> Vec<String> {
    let parsed = tidegate_bpmn::parse("file.bpmn", bytes, &tidegate_bpmn::Limits::default());
    assert!(!parsed.has_errors(), "{:?}", parsed.diagnostics);
    let document = parsed.document.expect("a document");
    let element = |element: &tidegate::model::document::Element| {
        let attributes = element
            .attributes
            .iter()
            .map(|a| format!(" {}={:?}", a.name, a.value));
        format!(
            "{}{} {:?}",
            element.tag,
            attributes.collect::<String>(),
            element.text
        )
    };
    document.elements.iter().map(element).collect()
}
