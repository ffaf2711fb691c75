//! Files to [`Decisions`], with all diagnostics at once.

mod boxed;
mod element;
mod item;
mod model;
mod names;
mod table;
mod text;
mod xml;

pub(crate) use text::within;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use roxmltree::Document;
use tidegate_model::diagnostic::Diagnostic;

use crate::Decisions;
use crate::limits::{MAX_DIAGNOSTICS, MAX_FILES};
use crate::parse::model::Model;
use crate::parse::names::Names;
use crate::parse::xml::Lines;
use crate::program::{Kind, Program};
use crate::requirement;
use crate::types::Types;

/// Reads a model that imports no other. See [`parse_all`].
pub fn parse(resource: &str, bytes: &[u8]) -> (Option<Decisions>, Vec<Diagnostic>) {
    parse_all(&[(resource, bytes)])
}

/// Reads models that import each other, each with the name of its file. Where two of them have a decision of the same
/// name, that of the earlier is found.
///
/// The decisions are `None` where a file cannot be read at all. If a diagnostic is an error, something in the models
/// is not as it should be and they should be refused; decisions that do not need it can still be evaluated.
pub fn parse_all(files: &[(&str, &[u8])]) -> (Option<Decisions>, Vec<Diagnostic>) {
    let mut diagnostics = Vec::new();
    if files.len() > MAX_FILES {
        let message = format!(
            "{} files are given; at most {MAX_FILES} are read together",
            files.len()
        );
        return (
            None,
            vec![Diagnostic::error("too-many-files", message).hint("deploy fewer of them together")],
        );
    }
    let mut texts = Vec::new();
    for (resource, bytes) in files {
        match xml::text(bytes) {
            Ok(text) => texts.push((*resource, text)),
            Err(diagnostic) => diagnostics.push(diagnostic.resource(resource)),
        }
    }
    let lines: Vec<Lines<'_>> = texts.iter().map(|(_, text)| Lines::new(text)).collect();
    let mut documents: Vec<Document<'_>> = Vec::new();
    for ((resource, text), lines) in texts.iter().zip(&lines) {
        match xml::tree(text, lines) {
            Ok(document) => documents.push(document),
            Err(diagnostic) => diagnostics.push(diagnostic.resource(resource)),
        }
    }
    if !diagnostics.is_empty() {
        return (None, diagnostics);
    }
    let mut models = Vec::new();
    for (((resource, _), lines), document) in texts.iter().zip(&lines).zip(&documents) {
        match Model::read(resource, lines, document) {
            Ok(model) => models.push(model),
            Err(diagnostic) => diagnostics.push(diagnostic.resource(resource)),
        }
    }
    if !diagnostics.is_empty() {
        return (None, diagnostics);
    }
    let mut compiler = Compiler::new(models);
    let program = compiler.program();
    let dropped = compiler.dropped;
    let mut diagnostics = compiler.diagnostics;
    if dropped > 0 {
        let finding = Diagnostic::error(
            "too-many-diagnostics",
            format!("{dropped} more findings are not shown"),
        );
        diagnostics.push(finding.hint("correct those that are shown first"));
    }
    (Some(Decisions::new(program)), diagnostics)
}

/// Models on their way to a program.
struct Compiler<'a, 'i> {
    models: Vec<Model<'a, 'i>>,
    /// The model that is being read.
    model: usize,
    types: Types,
    type_numbers: HashMap<(usize, &'a str), usize>,
    /// Elements by model and id.
    element_numbers: HashMap<(usize, Arc<str>), usize>,
    names: Names,
    /// The names that the texts of the element read so far.
    read: BTreeSet<Arc<str>>,
    /// Boxed expressions around the one that is being read.
    boxes: usize,
    diagnostics: Vec<Diagnostic>,
    dropped: usize,
}

impl<'a, 'i: 'a> Compiler<'a, 'i> {
    fn new(models: Vec<Model<'a, 'i>>) -> Self {
        Compiler {
            models,
            model: 0,
            types: Types::default(),
            type_numbers: HashMap::new(),
            element_numbers: HashMap::new(),
            names: Names::default(),
            read: BTreeSet::new(),
            boxes: 0,
            diagnostics: Vec::new(),
            dropped: 0,
        }
    }

    fn program(&mut self) -> Program {
        self.connect();
        self.items();
        self.member_names();
        let mut elements = self.elements();
        let cycles = requirement::cycles(&elements);
        for cycle in cycles {
            self.cycle(&mut elements, &cycle);
        }
        let (mut by_id, mut by_name, mut services) = (HashMap::new(), HashMap::new(), HashMap::new());
        for (number, element) in elements.iter().enumerate() {
            match element.kind {
                Kind::Decision(_) => {
                    by_id.entry(element.id.clone()).or_insert(number);
                    by_name.entry(element.name.clone()).or_insert(number);
                }
                Kind::Service(_) => {
                    services.entry(element.id.clone()).or_insert(number);
                    services.entry(element.name.clone()).or_insert(number);
                }
                _ => {}
            }
        }
        Program {
            elements,
            types: std::mem::take(&mut self.types),
            by_id,
            by_name,
            services,
        }
    }

    fn report(&mut self, diagnostic: Diagnostic) {
        if self.diagnostics.len() < MAX_DIAGNOSTICS {
            self.diagnostics.push(diagnostic);
        } else {
            self.dropped += 1;
        }
    }
}
