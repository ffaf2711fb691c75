//! BPMN 2.0 XML to a neutral document with positions and diagnostics.
//!
//! [`parse`] takes the bytes of a file and gives the tree of its BPMN elements and everything that is
//! wrong with its structure at once: encoding, XML, namespaces, ids and references. What an element does
//! is not known here; the engine's elements read themselves from the document.
//!
//! A hostile file costs no more than its size allows: the text is scanned against [`Limits`] before the
//! XML parser sees it, a document type is refused before anything is expanded, and nothing recurses with
//! the depth of the document.

mod encoding;
mod limits;
mod namespace;
mod position;
mod report;
mod resolve;
mod rule;
mod scan;
mod sniff;
mod syntax;
mod tree;

use tidegate_model::diagnostic::Diagnostic;
use tidegate_model::document::Document;

pub use limits::Limits;
pub use namespace::BPMN_URI;

use position::Lines;
use report::Report;

/// The result of [`parse`].
#[derive(Debug, Clone)]
pub struct Parsed {
    /// The tree; `None` when the file cannot be read at all. It is there also when `diagnostics` holds
    /// errors about ids and references, so that a reader can go on and report its own findings.
    pub document: Option<Document>,
    /// What is wrong or doubtful, in the order of the file.
    pub diagnostics: Vec<Diagnostic>,
}

impl Parsed {
    /// True if a diagnostic refuses the file.
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(Diagnostic::is_error)
    }
}

/// Reads the bytes of a `.bpmn` file. `resource` is the name that the diagnostics carry.
///
/// Never panics and never fails otherwise than by diagnostics. Time and memory are linear in the size of
/// the file.
pub fn parse(resource: &str, bytes: &[u8], limits: &Limits) -> Parsed {
    let mut report = Report::new(resource);
    let document = read(resource, bytes, limits, &mut report);
    Parsed {
        document,
        diagnostics: report.finish(),
    }
}

fn read(resource: &str, bytes: &[u8], limits: &Limits, report: &mut Report) -> Option<Document> {
    if bytes.len() > limits.bytes {
        report.push(
            Diagnostic::error(
                "too-large",
                format!(
                    "the file has {} bytes; the limit is {}",
                    bytes.len(),
                    limits.bytes
                ),
            )
            .hint("split the model into several files, or raise the limit"),
        );
        return None;
    }
    if let Some(diagnostic) = sniff::not_xml(bytes) {
        report.push(diagnostic);
        return None;
    }
    let text = encoding::decode(bytes, report)?;
    let lines = Lines::new(&text);
    let scan = match scan::scan(&text, limits) {
        Ok(scan) => scan,
        Err(finding) => {
            report.push(finding.locate(&lines));
            return None;
        }
    };
    let options = roxmltree::ParsingOptions {
        allow_dtd: false,
        nodes_limit: u32::try_from(limits.nodes()).unwrap_or(u32::MAX),
        entity_resolver: None,
    };
    let xml = match roxmltree::Document::parse_with_options(&text, options) {
        Ok(xml) => xml,
        Err(error) => {
            report.push(syntax::diagnostic(&error, &text, &scan, &lines));
            return None;
        }
    };
    if let Some(finding) = namespace::wrong_root(&xml) {
        report.push(finding.locate(&lines));
        return None;
    }
    let mut built = tree::build(resource, &xml, &lines, report);
    resolve::resolve(&mut built, report);
    Some(built.document)
}
