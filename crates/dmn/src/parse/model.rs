//! One file: its namespace, its imports, and places in it.

use std::sync::Arc;

use roxmltree::{Document, Node};
use tidegate_model::diagnostic::Diagnostic;
use tidegate_model::document::Position;

use crate::parse::Compiler;
use crate::parse::xml::{Lines, Read, is_edition};
use crate::program::Place;

pub(super) struct Model<'a, 'i> {
    pub resource: Arc<str>,
    lines: &'a Lines<'a>,
    pub root: Node<'a, 'i>,
    pub namespace: &'a str,
    pub imports: Vec<Import<'a>>,
}

pub(super) struct Import<'a> {
    /// Without a name, what is imported is read as if it stood in the model itself.
    pub name: Option<Arc<str>>,
    pub namespace: &'a str,
    location: Option<&'a str>,
    /// The imported model, if it was given.
    pub model: Option<usize>,
    node: usize,
}

impl<'a, 'i: 'a> Model<'a, 'i> {
    pub(super) fn read(
        resource: &str,
        lines: &'a Lines<'a>,
        document: &'a Document<'i>,
    ) -> Result<Self, Box<Diagnostic>> {
        let root = document.root_element();
        let position = lines.position(root.range().start);
        if root.local() != "definitions" {
            let message = format!("the root element is <{}>, not <definitions>", root.local());
            let hint = "give a DMN file; a process belongs to the BPMN reader";
            return Err(Box::new(
                Diagnostic::error("not-dmn", message).hint(hint).at(position),
            ));
        }
        let namespace = root.tag_name().namespace().unwrap_or_default();
        if !is_edition(namespace) {
            let message = format!("\"{namespace}\" is not the namespace of a DMN edition that is read");
            let hint = "save the model as DMN 1.1 to 1.5, for example with \
                        xmlns=\"https://www.omg.org/spec/DMN/20191111/MODEL/\"";
            return Err(Box::new(
                Diagnostic::error("unknown-namespace", message)
                    .hint(hint)
                    .at(position),
            ));
        }
        let imports = root.named("import").map(|node| Import {
            name: node.value("name").map(name),
            namespace: node.value("namespace").unwrap_or_default(),
            location: node.value("locationURI"),
            model: None,
            node: node.range().start,
        });
        Ok(Model {
            resource: resource.into(),
            lines,
            root,
            namespace: root.value("namespace").unwrap_or_default(),
            imports: imports.collect(),
        })
    }

    pub(super) fn position(&self, offset: usize) -> Position {
        self.lines.position(offset)
    }

    /// The import whose model has a namespace.
    pub(super) fn import_of(&self, model: usize) -> Option<&Import<'a>> {
        self.imports.iter().find(|import| import.model == Some(model))
    }
}

/// A name with its white space as FEEL reads it.
pub(super) fn name(text: &str) -> Arc<str> {
    if text.split_whitespace().map(|word| word.len() + 1).sum::<usize>() == text.len() + 1
        && !text.contains(['\t', '\n'])
    {
        text.into()
    } else {
        text.split_whitespace().collect::<Vec<_>>().join(" ").into()
    }
}

impl<'a, 'i: 'a> Compiler<'a, 'i> {
    /// Finds the models that are imported.
    pub(super) fn connect(&mut self) {
        let known: Vec<(&str, Arc<str>)> = self
            .models
            .iter()
            .map(|model| (model.namespace, model.resource.clone()))
            .collect();
        let mut missing = Vec::new();
        for (number, model) in self.models.iter_mut().enumerate() {
            for import in &mut model.imports {
                let found = known
                    .iter()
                    .position(|(namespace, _)| *namespace == import.namespace);
                let by_file = || {
                    let location = import.location?;
                    let file = location.rsplit('/').next().unwrap_or(location);
                    known
                        .iter()
                        .position(|(_, resource)| **resource == *location || **resource == *file)
                };
                import.model = found.or_else(by_file).filter(|found| *found != number);
                if import.model.is_none() {
                    missing.push((number, import.node, import.namespace));
                }
            }
        }
        for (model, offset, namespace) in missing {
            self.model = model;
            let finding = Diagnostic::error(
                "unknown-import",
                format!("no file with the namespace \"{namespace}\" is given"),
            );
            self.complain_at(
                finding.hint("deploy the imported model together with this one"),
                offset,
                None,
            );
        }
    }

    pub(super) fn here(&self) -> Option<&Model<'a, 'i>> {
        self.models.get(self.model)
    }

    pub(super) fn place(&self, node: Node<'a, 'i>) -> Place {
        self.place_at(node.range().start, node.value("id"))
    }

    pub(super) fn place_at(&self, offset: usize, id: Option<&str>) -> Place {
        let position = self
            .here()
            .map_or_else(Position::default, |model| model.position(offset));
        Place {
            resource: self
                .here()
                .map_or_else(|| "".into(), |model| model.resource.clone()),
            line: position.line,
            column: position.column,
            id: id.map(Arc::from),
        }
    }

    /// Reports something about a node.
    pub(super) fn complain(&mut self, diagnostic: Diagnostic, node: Node<'a, 'i>) {
        // The nearest id is what a person can search for.
        let id = node.ancestors().find_map(|node| node.value("id"));
        self.complain_at(diagnostic, node.range().start, id);
    }

    pub(super) fn complain_at(&mut self, diagnostic: Diagnostic, offset: usize, id: Option<&str>) {
        let Some(model) = self.models.get(self.model) else {
            return;
        };
        let diagnostic = diagnostic
            .at(model.position(offset))
            .element(id)
            .resource(&model.resource);
        self.report(diagnostic);
    }
}
