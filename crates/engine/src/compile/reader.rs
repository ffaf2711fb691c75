//! What an element reads itself with: its XML, and the place its findings go.

use tidegate_expression::SyntaxError;
use tidegate_model::document::{Document, Element, NodeId, Position};
use tidegate_model::{Diagnostic, ElementIndex};

use crate::compile::{CompileOptions, VENDORS};
use crate::element::{ErrorCatch, Trigger, read_message, read_timer};
use crate::text::{Computed, Text};

/// One element that is being read.
pub(crate) struct Reader<'a> {
    pub(crate) document: &'a Document,
    pub(crate) node: NodeId,
    pub(crate) element: &'a Element,
    /// The sub-process around it.
    pub(crate) parent: Option<ElementIndex>,
    pub(crate) options: &'a CompileOptions,
    diagnostics: &'a mut Vec<Diagnostic>,
}

/// An `error` element of the file.
pub(crate) struct ErrorReference {
    pub(crate) code: Box<str>,
    pub(crate) name: Option<Box<str>>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(
        document: &'a Document,
        node: NodeId,
        parent: Option<ElementIndex>,
        options: &'a CompileOptions,
        diagnostics: &'a mut Vec<Diagnostic>,
    ) -> Self {
        Self {
            document,
            node,
            element: document.get(node),
            parent,
            options,
            diagnostics,
        }
    }

    /// Reads another element of the file in the place of this one.
    pub(crate) fn inside(&mut self, node: NodeId) -> Reader<'_> {
        Reader {
            document: self.document,
            node,
            element: self.document.get(node),
            parent: self.parent,
            options: self.options,
            diagnostics: self.diagnostics,
        }
    }

    /// Refuses the element.
    pub(crate) fn refuse<T>(&mut self, code: &str, message: &str, hint: &str) -> Option<T> {
        self.refuse_at(self.element.position, code, message, hint)
    }

    /// Refuses the element for something at `position`.
    pub(crate) fn refuse_at<T>(
        &mut self,
        position: Position,
        code: &str,
        message: &str,
        hint: &str,
    ) -> Option<T> {
        let diagnostic = Diagnostic::error(code, message)
            .hint(hint)
            .at(position)
            .element(self.element.id());
        self.diagnostics.push(diagnostic);
        None
    }

    /// Refuses what the standard has and this engine has not.
    pub(crate) fn unsupported<T>(&mut self, what: &str) -> Option<T> {
        let message = format!("{what} is not executed yet");
        self.refuse(
            "element-not-supported",
            &message,
            "model it with elements that are supported",
        )
    }

    /// Refuses event definitions that the element cannot have yet.
    pub(crate) fn unsupported_event<T>(&mut self, definitions: &[NodeId]) -> Option<T> {
        let tag = self.element.tag.as_str();
        match definitions {
            [only] => self.unsupported(&format!("a `{tag}` with a `{}`", self.tag(*only))),
            several => self.unsupported(&format!("a `{tag}` with {} event definitions", several.len())),
        }
    }

    pub(crate) fn is_in_event_sub_process(&self) -> bool {
        let around = self.element.parent.map(|parent| self.document.get(parent));
        around.is_some_and(|element| element.attribute("triggeredByEvent") == Some("true"))
    }

    pub(crate) fn tag(&self, node: NodeId) -> &'a str {
        &self.document.get(node).tag
    }

    /// The event definitions of the element, written inside it or referred to.
    pub(crate) fn event_definitions(&mut self) -> Vec<NodeId> {
        let document = self.document;
        let mut found = Vec::new();
        for (node, child) in document.children(self.node) {
            if child.tag.ends_with("EventDefinition") {
                found.push(node);
            } else if child.tag == "eventDefinitionRef" {
                let reference = child.text.trim();
                let target = document.by_id(reference);
                match target.filter(|target| self.tag(*target).ends_with("EventDefinition")) {
                    Some(target) => found.push(target),
                    None => {
                        let message = format!("there is no event definition `{reference}`");
                        let hint = "refer to an event definition of this file";
                        let _: Option<()> =
                            self.refuse_at(child.position, "dangling-reference", &message, hint);
                    }
                }
            }
        }
        found
    }

    /// Reads the timer or message that the element waits for.
    pub(crate) fn trigger(&mut self, definition: &NodeId) -> Option<Trigger> {
        match self.tag(*definition) {
            "timerEventDefinition" => read_timer(self, *definition).map(Trigger::Timer),
            "messageEventDefinition" => read_message(self, *definition).map(Trigger::Message),
            _ => self.unsupported_event(std::slice::from_ref(definition)),
        }
    }

    /// Reads the error that an error event definition refers to; none inside when it refers to none.
    pub(crate) fn error(&mut self, definition: NodeId) -> Option<Option<ErrorReference>> {
        let document = self.document;
        let Some(reference) = document.get(definition).attribute("errorRef") else {
            return Some(None);
        };
        let found = document.by_id(reference).map(|node| document.get(node));
        match found.filter(|element| element.tag == "error") {
            Some(error) => {
                let code = error.attribute("errorCode").filter(|code| !code.is_empty());
                let code = code.or(error.name()).or(error.id()).unwrap_or_default().into();
                Some(Some(ErrorReference {
                    code,
                    name: error.name().map(Box::from),
                }))
            }
            None => {
                let position = document.get(definition).attribute_position("errorRef");
                let message = format!("there is no error `{reference}`");
                self.refuse_at(
                    position,
                    "dangling-reference",
                    &message,
                    "set errorRef to the id of an `error`",
                )
            }
        }
    }

    /// Reads what an error boundary event catches.
    pub(crate) fn error_catch(&mut self, definition: NodeId) -> Option<ErrorCatch> {
        let code = self.error(definition)?.map(|error| error.code);
        let element = self.document.get(definition);
        let variable = |name: &str| {
            VENDORS
                .iter()
                .find_map(|vendor| element.attribute_in(vendor, name))
                .map(Box::from)
        };
        Some(ErrorCatch {
            code,
            code_variable: variable("errorCodeVariable"),
            message_variable: variable("errorMessageVariable"),
        })
    }

    /// An attribute of the element in the vocabulary of one of the Java engines.
    pub(crate) fn vendor_attribute(&self, name: &str) -> Option<&'a str> {
        VENDORS
            .iter()
            .find_map(|vendor| self.element.attribute_in(vendor, name))
    }

    /// Reads a text that may be marked as an expression.
    pub(crate) fn text(&mut self, text: &str, position: Position) -> Option<Text> {
        Text::read(text)
            .map_err(|error| self.syntax(text, &error, position))
            .ok()
    }

    /// Reads a text that is an expression, marked as one or not. Without a language of its own, that of the file.
    pub(crate) fn expression(
        &mut self,
        text: &str,
        language: Option<&str>,
        position: Position,
    ) -> Option<Computed> {
        let document = self.document;
        let language = language.or_else(|| document.get(document.root()).attribute("expressionLanguage"));
        Computed::read(text, language)
            .map_err(|error| self.syntax(text, &error, position))
            .ok()
    }

    /// The data objects and properties that stand in the element.
    pub(crate) fn declared(&self) -> Vec<std::sync::Arc<str>> {
        let own = self.document.children(self.node);
        let own = own.filter(|(_, child)| matches!(child.tag.as_str(), "dataObject" | "property"));
        let names = own.filter_map(|(_, child)| Some(self.data_name(child.id().or(child.name())?)));
        names.map(std::sync::Arc::from).collect()
    }

    /// The variable that a reference to a data object, property, input, output or store stands for: its name, else its
    /// id.
    pub(crate) fn data_name(&self, reference: &str) -> String {
        let found = self.document.by_id(reference).map(|node| self.document.get(node));
        let Some(element) = found else {
            return reference.to_owned();
        };
        let name = element.name().map(str::trim).filter(|name| !name.is_empty());
        let behind = ["dataObjectRef", "dataStoreRef"]
            .into_iter()
            .find_map(|attribute| self.document.by_id(element.attribute(attribute)?))
            .map(|node| self.document.get(node));
        // All references to one data object are one variable.
        let of_object = behind
            .and_then(|object| object.name())
            .map(str::trim)
            .filter(|name| !name.is_empty());
        of_object.or(name).unwrap_or(reference).to_owned()
    }

    /// Reads FEEL, with or without the leading `=`.
    pub(crate) fn feel(&mut self, text: &str, position: Position) -> Option<Computed> {
        let bare = text.trim();
        let bare = bare.strip_prefix('=').unwrap_or(bare);
        Computed::feel(bare)
            .map_err(|error| self.syntax(text, &error, position))
            .ok()
    }

    fn syntax(&mut self, text: &str, error: &SyntaxError, position: Position) {
        self.diagnostics
            .push(syntax_error(text, error, position).element(self.element.id()));
    }
}

/// The diagnostic of an expression that cannot be read.
pub(super) fn syntax_error(text: &str, error: &SyntaxError, position: Position) -> Diagnostic {
    let shown: String = text.trim().chars().take(80).collect();
    let message = format!(
        "the expression `{shown}` cannot be read at its line {}, column {}: {}",
        error.line, error.column, error.message
    );
    let hint = if error.hint.is_empty() {
        "correct the expression"
    } else {
        error.hint.as_str()
    };
    let line = position.line + error.line.saturating_sub(1);
    Diagnostic::error("expression-syntax", message)
        .hint(hint)
        .at(Position { line, ..position })
}
