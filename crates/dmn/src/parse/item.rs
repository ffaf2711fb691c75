//! Item definitions: the types of a model.

use std::sync::Arc;

use roxmltree::Node;
use tidegate_expression::UnaryTests;
use tidegate_model::diagnostic::Diagnostic;

use crate::limits::MAX_TYPE_CHAIN;
use crate::parse::Compiler;
use crate::parse::model::name;
use crate::parse::xml::Read;
use crate::program::TestCode;
use crate::types::{Item, Type};

const DMN_FEEL: &str = "/FEEL/";

impl<'a, 'i: 'a> Compiler<'a, 'i> {
    /// Reads the types of all models: first their names, since they may be used before they are defined.
    pub(super) fn items(&mut self) {
        let mut pending = Vec::new();
        for model in 0..self.models.len() {
            self.model = model;
            let Some(root) = self.here().map(|model| model.root) else {
                continue;
            };
            for node in root.named("itemDefinition") {
                let number = self.types.items.len() + pending.len();
                let Some(label) = node.value("name") else {
                    self.complain(
                        Diagnostic::error("missing-name", "an item definition has no name"),
                        node,
                    );
                    continue;
                };
                if self.type_numbers.insert((model, label), number).is_some() {
                    let finding =
                        Diagnostic::error("duplicate-type", format!("the type \"{label}\" is defined twice"));
                    self.complain(finding.hint("rename one of them"), node);
                }
                pending.push((model, node));
            }
        }
        let empty = |node: &Node<'_, '_>| Item {
            name: name(node.value("name").unwrap_or_default()),
            base: Type::Any,
            collection: false,
            components: Vec::new(),
            function: None,
            allowed: None,
            constraint: None,
        };
        self.types.items = pending.iter().map(|(_, node)| empty(node)).collect();
        // Components are types of their own; they are appended and read in turn.
        let mut queue: Vec<(usize, usize, Node<'a, 'i>)> = pending
            .into_iter()
            .enumerate()
            .map(|(number, (model, node))| (number, model, node))
            .collect();
        let mut at = 0;
        while let Some((number, model, node)) = queue.get(at).copied() {
            at += 1;
            self.model = model;
            let mut components = Vec::new();
            for component in node.named("itemComponent") {
                let Some(label) = component.value("name") else {
                    self.complain(
                        Diagnostic::error("missing-name", "an item component has no name"),
                        component,
                    );
                    continue;
                };
                let inner = self.types.items.len();
                self.types.items.push(empty(&component));
                queue.push((inner, model, component));
                components.push((name(label), Type::Item(inner)));
            }
            let base = self.base_of(node);
            let function = node
                .kid("functionItem")
                .map(|function| self.function_type(function));
            let (allowed, constraint) = (
                self.constraint(node, "allowedValues"),
                self.constraint(node, "typeConstraint"),
            );
            if let Some(item) = self.types.items.get_mut(number) {
                item.base = base;
                item.collection = node.value("isCollection") == Some("true");
                item.components = components;
                item.function = function;
                item.allowed = allowed;
                item.constraint = constraint;
            }
        }
        for (number, model, node) in queue {
            self.model = model;
            self.check_chain(number, node);
        }
    }

    fn base_of(&mut self, node: Node<'a, 'i>) -> Type {
        if node.kid("functionItem").is_some() {
            return Type::Function;
        }
        match node.kid("typeRef") {
            Some(reference) => self.type_named(reference.text().unwrap_or_default().trim(), reference),
            None => self.type_of(node),
        }
    }

    fn function_type(&mut self, node: Node<'a, 'i>) -> (Vec<Type>, Type) {
        let parameters: Vec<Node<'a, 'i>> = node.named("parameters").collect();
        let parameters = parameters
            .into_iter()
            .map(|parameter| self.type_of(parameter))
            .collect();
        let result = node
            .value("outputTypeRef")
            .map_or(Type::Any, |reference| self.type_named(reference, node));
        (parameters, result)
    }

    fn constraint(&mut self, node: Node<'a, 'i>, name: &str) -> Option<UnaryTests> {
        let tests = self.tests(node.kid(name)?);
        match tests.code {
            TestCode::Tests(tests) => Some(tests),
            TestCode::Any | TestCode::Broken => None,
        }
    }

    /// Types that are defined by each other without anything between them would be followed for ever.
    fn check_chain(&mut self, number: usize, node: Node<'a, 'i>) {
        let mut kind = Type::Item(number);
        for _ in 0..MAX_TYPE_CHAIN {
            match kind {
                Type::Item(number) => match self.types.items.get(number) {
                    Some(item) if item.components.is_empty() => kind = item.base,
                    _ => return,
                },
                _ => return,
            }
        }
        if let Some(item) = self.types.items.get_mut(number) {
            item.base = Type::Any;
        }
        let message = "the type is defined by itself, or by too many others in a row";
        self.complain(
            Diagnostic::error("type-cycle", message).hint("base it on a type of FEEL"),
            node,
        );
    }

    /// The type that the `typeRef` attribute of a node names.
    pub(super) fn type_of(&mut self, node: Node<'a, 'i>) -> Type {
        node.value("typeRef")
            .map_or(Type::Any, |reference| self.type_named(reference, node))
    }

    fn type_named(&mut self, reference: &'a str, node: Node<'a, 'i>) -> Type {
        if reference.is_empty() {
            return Type::Any;
        }
        match self.find_type(reference, node) {
            Some(kind) => kind,
            None => {
                let finding =
                    Diagnostic::error("unknown-type", format!("the type \"{reference}\" is not defined"));
                let hint = "define it as an item definition, or use a type of FEEL such as number or string";
                self.complain(finding.hint(hint), node);
                Type::Any
            }
        }
    }

    pub(super) fn find_type<'n>(&'n self, reference: &'n str, node: Node<'a, 'i>) -> Option<Type> {
        let item = |model: usize, name: &'n str| {
            self.type_numbers
                .get(&(model, name))
                .map(|number| Type::Item(*number))
        };
        // A model may define a type with the name of one of FEEL's.
        if let Some(found) = item(self.model, reference).or_else(|| Type::named(reference)) {
            return Some(found);
        }
        if let Some((prefix, local)) = reference.split_once(':') {
            let namespace = node.lookup_namespace_uri(Some(prefix));
            if namespace.is_some_and(|namespace| namespace.contains(DMN_FEEL)) || prefix == "feel" {
                return Type::named(local);
            }
            let model = self
                .models
                .iter()
                .position(|model| Some(model.namespace) == namespace)?;
            return item(model, local);
        }
        let here = self.here()?;
        for import in &here.imports {
            let Some(model) = import.model else {
                continue;
            };
            let local = match &import.name {
                Some(name) => reference
                    .strip_prefix(&**name)
                    .and_then(|rest| rest.strip_prefix('.')),
                None => Some(reference),
            };
            if let Some(found) = local.and_then(|local| item(model, local)) {
                return Some(found);
            }
        }
        reference.strip_prefix("feel.").and_then(Type::named)
    }

    /// Names behind a dot: components of types, entries of contexts, columns and outputs.
    pub(super) fn member_names(&mut self) {
        let mut members: Vec<Arc<str>> = Vec::new();
        for model in &self.models {
            for node in model.root.descendants().filter(|node| node.is_element()) {
                let declares = match node.local() {
                    "itemComponent" | "column" | "output" => true,
                    "variable" => node
                        .parent()
                        .is_some_and(|parent| parent.local() == "contextEntry"),
                    _ => false,
                };
                if declares {
                    members.extend(node.value("name").map(name));
                }
            }
        }
        for member in members {
            self.names.add(&member);
        }
    }
}
