//! From a document to definitions. All findings at once; no definition comes out when one of them is an error.

mod boxed_text;
mod collect;
mod compensation;
mod graph;
mod process;
mod quantity;
mod reader;
mod settings;
mod structure;
mod unread;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use tidegate_model::Diagnostic;
use tidegate_model::document::{Document, Namespace};

use crate::definition::Definition;
use crate::element::Correlations;
pub(crate) use reader::Reader;
pub use settings::{ProcessSettings, WhenFull};

/// The vocabularies of the Java engines, which share their attributes.
pub(crate) const VENDORS: [Namespace; 4] = [
    Namespace::Camunda,
    Namespace::Operaton,
    Namespace::Flowable,
    Namespace::Activiti,
];

/// What compiling depends on besides the document.
#[derive(Debug, Clone, Default)]
pub struct CompileOptions {
    /// The script formats that the host runs as jobs of type `script`; the empty text stands for a script task
    /// without the attribute. FEEL needs no entry: the engine runs it.
    pub script_formats: Vec<String>,
    /// Reads a script of one of these formats without running it, so that a bad one refuses the deployment. Left out
    /// where a file that was deployed before is compiled again.
    pub script_check: Option<ScriptCheck>,
    /// The job types that stand in for Java code, by the class name, or by what is inside of `${…}` in a delegate
    /// expression or an expression. Java code that is not here is refused.
    pub delegates: BTreeMap<String, String>,
    /// What an instance may use.
    pub limits: Limits,
}

/// What a host says of a script: its format and its text go in.
#[derive(Clone)]
pub struct ScriptCheck(pub Arc<ReadScript>);

/// How a host reads a script.
pub type ReadScript = dyn Fn(&str, &str) -> Result<(), ScriptFault> + Send + Sync;

impl std::fmt::Debug for ScriptCheck {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ScriptCheck")
    }
}

/// What is wrong in a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptFault {
    /// What is wrong.
    pub message: String,
    /// The line in the script, from 1; none where no place is to blame.
    pub line: Option<u32>,
    /// The column in that line, from 1.
    pub column: Option<u32>,
}

/// What an instance may use, so that a model that never ends cannot take everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Activations by tokens on flows that follow one command; as many as the process has flows, if those are more.
    pub steps: usize,
    /// Live element instances of one instance.
    pub live_elements: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            steps: 10_000,
            live_elements: 100_000,
        }
    }
}

/// What a document compiles to.
#[derive(Debug, Default)]
pub struct Compiled {
    /// Every executable process of the file; empty when the file is refused.
    pub definitions: Vec<Arc<Definition>>,
    /// Everything that is wrong or doubtful.
    pub diagnostics: Vec<Diagnostic>,
}

/// Compiles every executable process of a document.
pub fn compile(document: &Document, options: &CompileOptions) -> Compiled {
    let mut diagnostics = Vec::new();
    let mut definitions = Vec::new();
    let correlations = Correlations::of(document);
    let mut seen = HashSet::new();
    let mut executable = 0;
    let mut passed_over = Vec::new();
    for (node, process) in document
        .children(document.root())
        .filter(|(_, element)| element.tag == "process")
    {
        match process.attribute("isExecutable").map(str::trim) {
            Some("false" | "0") => {
                passed_over.push((process.position, process.id()));
                continue;
            }
            Some(_) => {}
            None => diagnostics.push(
                Diagnostic::warning(
                    "executable-not-stated",
                    "the process does not say whether it is executable",
                )
                .hint("set isExecutable=\"true\"")
                .at(process.position)
                .element(process.id()),
            ),
        }
        executable += 1;
        match process.id().filter(|id| !id.trim().is_empty()) {
            Some(id) if seen.insert(id) => {}
            Some(id) => diagnostics.push(
                Diagnostic::error(
                    "duplicate-process-id",
                    format!("there is more than one process `{id}`"),
                )
                .hint("give each process its own id")
                .at(process.position)
                .element(Some(id)),
            ),
            None => diagnostics.push(
                Diagnostic::error("process-id-missing", "the process has no id")
                    .hint("give it an id: it is the key it is started by")
                    .at(process.position),
            ),
        }
        definitions.extend(process::compile(
            document,
            node,
            options,
            &correlations,
            &mut diagnostics,
        ));
    }
    if executable == 0 {
        let (position, id) = passed_over
            .first()
            .copied()
            .unwrap_or((document.get(document.root()).position, None));
        diagnostics.push(
            Diagnostic::error("no-executable-process", "the file has no executable process")
                .hint("add a process with isExecutable=\"true\"")
                .at(position)
                .element(id),
        );
    } else {
        diagnostics.extend(passed_over.into_iter().map(|(position, id)| {
            Diagnostic::warning(
                "not-executable",
                "the process is not executable and is passed over; the others of the file are deployed",
            )
            .hint("set isExecutable=\"true\" if it is to run")
            .at(position)
            .element(id)
        }));
    }
    if diagnostics.iter().any(Diagnostic::is_error) {
        definitions.clear();
    }
    let resource = |diagnostic: Diagnostic| diagnostic.resource(&document.resource);
    Compiled {
        definitions,
        diagnostics: diagnostics.into_iter().map(resource).collect(),
    }
}
