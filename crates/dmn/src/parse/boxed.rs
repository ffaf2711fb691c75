//! Boxed expressions.

use std::sync::Arc;

use roxmltree::Node;
use tidegate_model::diagnostic::Diagnostic;

use crate::limits::MAX_BOXES;
use crate::parse::Compiler;
use crate::parse::model::name;
use crate::parse::xml::Read;
use crate::program::{Body, Boxed, Column, Definition, Entry};
use crate::types::Type;

const EXPRESSIONS: &[&str] = &[
    "literalExpression",
    "decisionTable",
    "context",
    "list",
    "relation",
    "functionDefinition",
    "invocation",
    "conditional",
    "filter",
    "for",
    "some",
    "every",
];

impl<'a, 'i: 'a> Compiler<'a, 'i> {
    /// The expression inside a node, if there is one.
    pub(super) fn expression(&mut self, node: Node<'a, 'i>) -> Option<Boxed> {
        let inner = node.kids().find(|kid| EXPRESSIONS.contains(&kid.local()))?;
        Some(self.boxed(inner))
    }

    /// The expression in a child of a node, where one must be.
    fn part(&mut self, node: Node<'a, 'i>, part: &str) -> Box<Boxed> {
        let holder = node.kid(part);
        let found = holder.and_then(|holder| self.expression(holder));
        Box::new(found.unwrap_or_else(|| {
            let finding = Diagnostic::error(
                "missing-expression",
                format!("<{}> has no <{part}> with an expression", node.local()),
            );
            self.complain(finding.hint("add the expression"), node);
            self.broken(holder.unwrap_or(node))
        }))
    }

    fn broken(&mut self, node: Node<'a, 'i>) -> Boxed {
        Boxed {
            place: self.place(node),
            result: Type::Any,
            body: Body::Broken,
        }
    }

    fn boxed(&mut self, node: Node<'a, 'i>) -> Boxed {
        if self.boxes >= MAX_BOXES {
            let finding = Diagnostic::error(
                "too-deep",
                format!("boxed expressions nest deeper than {MAX_BOXES} levels"),
            );
            self.complain(finding.hint("move a part of it into a decision of its own"), node);
            return self.broken(node);
        }
        self.boxes += 1;
        let body = self.body(node);
        self.boxes -= 1;
        Boxed {
            place: self.place(node),
            result: self.type_of(node),
            body,
        }
    }

    fn body(&mut self, node: Node<'a, 'i>) -> Body {
        match node.local() {
            "literalExpression" => Body::Literal(self.text(node)),
            "decisionTable" => self.table(node),
            "context" => self.context(node),
            "list" => {
                let items: Vec<Node<'a, 'i>> = node
                    .kids()
                    .filter(|kid| EXPRESSIONS.contains(&kid.local()))
                    .collect();
                Body::List(items.into_iter().map(|item| self.boxed(item)).collect())
            }
            "relation" => self.relation(node),
            "functionDefinition" => Body::Function(Arc::new(self.definition(node))),
            "invocation" => self.invocation(node),
            "conditional" => Body::Conditional {
                condition: self.part(node, "if"),
                then: self.part(node, "then"),
                otherwise: self.part(node, "else"),
            },
            "filter" => {
                let domain = self.part(node, "in");
                Body::Filter {
                    domain,
                    test: self.part(node, "match"),
                }
            }
            _ => self.iteration(node),
        }
    }

    fn iteration(&mut self, node: Node<'a, 'i>) -> Body {
        let domain = self.part(node, "in");
        let Some(variable) = node.value("iteratorVariable").map(name) else {
            let finding = Diagnostic::error(
                "missing-name",
                format!("<{}> has no iteratorVariable", node.local()),
            );
            self.complain(finding.hint("add iteratorVariable=\"item\""), node);
            return Body::Broken;
        };
        let added = self.names.add(&variable);
        let inner = self.part(
            node,
            if node.local() == "for" {
                "return"
            } else {
                "satisfies"
            },
        );
        if added {
            self.names.remove(&variable);
        }
        match node.local() {
            "for" => {
                let mut texts = node.descendants().filter_map(|node| node.text());
                let partial = texts.any(|text| text.contains("partial"));
                Body::For {
                    name: variable,
                    domain,
                    body: inner,
                    partial,
                }
            }
            kind => Body::Quantified {
                some: kind == "some",
                name: variable,
                domain,
                test: inner,
            },
        }
    }

    fn context(&mut self, node: Node<'a, 'i>) -> Body {
        let (mut entries, mut added) = (Vec::new(), Vec::new());
        let nodes: Vec<Node<'a, 'i>> = node.named("contextEntry").collect();
        for entry in nodes {
            let variable = entry.kid("variable");
            let kind = variable.map_or(Type::Any, |variable| self.type_of(variable));
            let label = variable.and_then(|variable| variable.value("name")).map(name);
            let value = self.expression(entry);
            if value.is_none() {
                let finding = Diagnostic::warning(
                    "no-logic",
                    "the context entry has no expression; its value is null",
                );
                self.complain(finding, entry);
            }
            if let Some(label) = &label
                && self.names.add(label)
            {
                added.push(label.clone());
            }
            entries.push(Entry {
                name: label,
                kind,
                value,
                place: self.place(entry),
            });
        }
        for name in added {
            self.names.remove(&name);
        }
        Body::Context(entries)
    }

    fn relation(&mut self, node: Node<'a, 'i>) -> Body {
        let mut columns = Vec::new();
        let heads: Vec<Node<'a, 'i>> = node.named("column").collect();
        for column in heads {
            let kind = self.type_of(column);
            columns.push(Column {
                name: name(column.value("name").unwrap_or_default()),
                kind,
            });
        }
        let mut rows = Vec::new();
        let nodes: Vec<Node<'a, 'i>> = node.named("row").collect();
        for row in nodes {
            let cells: Vec<Node<'a, 'i>> = row
                .kids()
                .filter(|kid| EXPRESSIONS.contains(&kid.local()))
                .collect();
            if cells.len() != columns.len() {
                let message = format!("the row has {} cells for {} columns", cells.len(), columns.len());
                self.complain(
                    Diagnostic::error("row-length", message).hint("give each column one cell"),
                    row,
                );
            }
            rows.push(cells.into_iter().map(|cell| self.boxed(cell)).collect());
        }
        Body::Relation { columns, rows }
    }

    fn invocation(&mut self, node: Node<'a, 'i>) -> Body {
        let Some(function) = self.expression(node) else {
            let finding =
                Diagnostic::error("missing-expression", "the invocation does not say what it calls");
            self.complain(
                finding.hint("add a literal expression with the name of the function"),
                node,
            );
            return Body::Broken;
        };
        let mut bindings = Vec::new();
        let nodes: Vec<Node<'a, 'i>> = node.named("binding").collect();
        for binding in nodes {
            let Some(label) = binding
                .kid("parameter")
                .and_then(|parameter| parameter.value("name"))
            else {
                let finding = Diagnostic::error("missing-name", "the binding names no parameter");
                self.complain(finding.hint("add <parameter name=\"...\"/>"), binding);
                continue;
            };
            let value = self.expression(binding);
            bindings.push((name(label), value));
        }
        Body::Invocation {
            function: Box::new(function),
            bindings,
        }
    }

    /// A function: a boxed one, or the logic of a business knowledge model.
    pub(super) fn definition(&mut self, node: Node<'a, 'i>) -> Definition {
        let external = node.value("kind").is_some_and(|kind| kind != "FEEL");
        let (mut parameters, mut kinds, mut added): (Vec<Arc<str>>, Vec<Type>, Vec<Arc<str>>) =
            Default::default();
        let nodes: Vec<Node<'a, 'i>> = node.named("formalParameter").collect();
        for parameter in nodes {
            let label = name(parameter.value("name").unwrap_or_default());
            if label.is_empty() || parameters.contains(&label) {
                let finding = Diagnostic::error(
                    "bad-parameter",
                    "a parameter has no name, or one that is used twice",
                );
                self.complain(finding.hint("give each parameter its own name"), parameter);
            }
            kinds.push(self.type_of(parameter));
            if self.names.add(&label) {
                added.push(label.clone());
            }
            parameters.push(label);
        }
        if external {
            let message = "functions of other languages are never called; the result is null";
            let finding = Diagnostic::warning("external-function", message);
            self.complain(finding.hint("write the function in FEEL"), node);
        }
        let body = if external { None } else { self.expression(node) };
        for name in added {
            self.names.remove(&name);
        }
        Definition {
            parameters: parameters.into(),
            kinds,
            body,
            external,
            place: self.place(node),
        }
    }
}
