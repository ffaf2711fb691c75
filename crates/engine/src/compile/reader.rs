//! What an element reads itself with: its XML, and the place its findings go.

use std::sync::Arc;

use tidegate_expression::SyntaxError;
use tidegate_model::document::{Document, Element, Extension, NodeId, Position};
use tidegate_model::{Diagnostic, ElementIndex};

use crate::compile::{CompileOptions, VENDORS, boxed_text};
use crate::element::{
    Catch, Correlations, ErrorCatch, EventPart, Trigger, read_condition, read_escalation, read_message,
    read_signal, read_timer,
};
use crate::text::{Computed, Text};

/// One element that is being read.
pub(crate) struct Reader<'a> {
    pub(crate) document: &'a Document,
    pub(crate) node: NodeId,
    pub(crate) element: &'a Element,
    /// The sub-process around it.
    pub(crate) parent: Option<ElementIndex>,
    pub(crate) options: &'a CompileOptions,
    pub(crate) correlations: &'a Correlations,
    /// The parts of an event with several definitions.
    pub(super) parts: Vec<Part>,
    diagnostics: &'a mut Vec<Diagnostic>,
}

/// One of several definitions of an event.
pub(super) struct Part {
    pub(super) id: Arc<str>,
    pub(super) behaviour: EventPart,
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
        (options, correlations): (&'a CompileOptions, &'a Correlations),
        diagnostics: &'a mut Vec<Diagnostic>,
    ) -> Self {
        Self {
            document,
            node,
            element: document.get(node),
            parent,
            options,
            correlations,
            parts: Vec::new(),
            diagnostics,
        }
    }

    /// Reads another element of the file in the place of this one.
    pub(crate) fn inside(&mut self, node: NodeId) -> Reader<'_> {
        Reader {
            parts: Vec::new(),
            document: self.document,
            node,
            element: self.document.get(node),
            parent: self.parent,
            options: self.options,
            correlations: self.correlations,
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

    /// Reads what an event definition catches.
    fn catch(&mut self, definition: NodeId) -> Option<Catch> {
        let trigger = match self.tag(definition) {
            "timerEventDefinition" => read_timer(self, definition).map(Trigger::Timer),
            "messageEventDefinition" => read_message(self, definition).map(Trigger::Message),
            "signalEventDefinition" => read_signal(self, definition).map(Trigger::Signal),
            "conditionalEventDefinition" => read_condition(self, definition).map(Trigger::Condition),
            "errorEventDefinition" => return self.error_catch(definition).map(Catch::Error),
            "escalationEventDefinition" => return read_escalation(self, definition).map(Catch::Escalation),
            _ => self.unsupported_event(&[definition]),
        };
        trigger.map(Catch::Trigger)
    }

    /// Reads everything that the element catches: itself where there is one definition, as parts where there are several.
    /// `starts` where it creates instances.
    pub(crate) fn catch_all(
        &mut self,
        definitions: &[NodeId],
        is_interrupting: bool,
        starts: bool,
    ) -> Option<Option<Catch>> {
        let all = self.needs_all_parts(definitions);
        let mut read = Vec::with_capacity(definitions.len());
        for &definition in definitions {
            read.push(
                self.catch(definition)
                    .and_then(|catch| self.checked(catch, definition, starts, all)),
            );
        }
        let mut caught: Vec<Catch> = read.into_iter().collect::<Option<_>>()?;
        if caught.len() == 1 {
            return Some(caught.pop());
        }
        let (id, document) = (self.element.id().unwrap_or_default(), self.document);
        for (position, (catch, definition)) in caught.into_iter().zip(definitions).enumerate() {
            let own = document.get(*definition).id().map(Arc::from);
            let part = Part {
                id: own.unwrap_or_else(|| format!("{id}/{}", position + 1).into()),
                behaviour: EventPart {
                    catch,
                    once: is_interrupting || all,
                    starts,
                },
            };
            self.parts.push(part);
        }
        Some(None)
    }

    /// True if all of several definitions must come.
    pub(crate) fn needs_all_parts(&self, definitions: &[NodeId]) -> bool {
        definitions.len() > 1 && self.element.attribute("parallelMultiple") == Some("true")
    }

    /// Refuses what cannot be caught where the event stands.
    fn checked(&mut self, catch: Catch, definition: NodeId, starts: bool, all: bool) -> Option<Catch> {
        let position = self.document.get(definition).position;
        let computed =
            |what: &str, hint: &str| (format!("{what}: there are no variables yet"), hint.to_owned());
        let (message, hint) = match &catch {
            Catch::Error(_) | Catch::Escalation(_) if all => {
                return self.refuse_at(
                    position,
                    "event-definition-misplaced",
                    "an error or escalation cannot be one of several events that must all come",
                    "give it a boundary event of its own",
                );
            }
            Catch::Error(_) | Catch::Escalation(_) if starts => {
                return self.refuse_at(
                    position,
                    "event-definition-misplaced",
                    "nothing throws an error or escalation before there is an instance",
                    "put the start event into an event sub-process",
                );
            }
            Catch::Trigger(Trigger::Message(message)) if starts && message.name.literal().is_none() => {
                computed(
                    "a message start event needs a fixed message name",
                    "write the name without `=`",
                )
            }
            Catch::Trigger(Trigger::Signal(signal)) if starts && signal.name.literal().is_none() => computed(
                "a signal start event needs a fixed signal name",
                "write the name without `=`",
            ),
            Catch::Trigger(Trigger::Timer(timer)) if starts && timer.fixed().is_none() => computed(
                "a timer start event needs a fixed time",
                "write an ISO 8601 date, duration or repetition",
            ),
            Catch::Trigger(Trigger::Condition(_)) if starts => {
                self.warn(
                    "condition-without-instance",
                    "a conditional start event at the top is not watched: there are no variables outside an instance",
                    "start the process by a request, a message or a signal",
                );
                return Some(catch);
            }
            Catch::Trigger(_) | Catch::Error(_) | Catch::Escalation(_) => return Some(catch),
        };
        self.refuse_at(position, "start-event-computed", &message, &hint)
    }

    /// The element of the file that an attribute of `holder` refers to; none inside when it refers to none.
    pub(crate) fn referred(
        &mut self,
        holder: NodeId,
        attribute: &str,
        tag: &str,
    ) -> Option<Option<&'a Element>> {
        let document = self.document;
        let Some(reference) = document.get(holder).attribute(attribute) else {
            return Some(None);
        };
        let found = document.by_id(reference).map(|node| document.get(node));
        match found.filter(|element| element.tag == tag) {
            Some(element) => Some(Some(element)),
            None => {
                let position = document.get(holder).attribute_position(attribute);
                let message = format!("there is no {tag} `{reference}`");
                let hint = format!("set {attribute} to the id of a `{tag}` element");
                self.refuse_at(position, "dangling-reference", &message, &hint)
            }
        }
    }

    /// Warns of something about the element.
    pub(crate) fn warn(&mut self, code: &str, message: &str, hint: &str) {
        self.warn_at(self.element.position, code, message, hint);
    }

    /// Warns of something about the element at `position`.
    pub(crate) fn warn_at(&mut self, position: Position, code: &str, message: &str, hint: &str) {
        let diagnostic = Diagnostic::warning(code, message)
            .hint(hint)
            .at(position)
            .element(self.element.id());
        self.diagnostics.push(diagnostic);
    }

    /// Reads an element whose text is an expression, in its own language or that of the file.
    pub(crate) fn expression_of(&mut self, element: &Element) -> Option<Computed> {
        let of_file = || {
            self.document
                .get(self.document.root())
                .attribute("expressionLanguage")
        };
        let language = element.attribute("language").or_else(of_file);
        self.expression(element.text.trim(), language, element.position)
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
        let read = Text::read(text)
            .map_err(|error| self.syntax(text, &error, position))
            .ok()?;
        if let Text::Computed(computed) = &read {
            self.tell_unknown(computed, position);
        }
        Some(read)
    }

    /// Reads an attribute of an extension whose text may be marked as an expression. None if it was refused; inside,
    /// none if it is absent or empty.
    pub(crate) fn text_of(&mut self, extension: &Extension, name: &str) -> Option<Option<Text>> {
        match extension.attribute(name).filter(|text| !text.trim().is_empty()) {
            Some(text) => self.text(text, extension.position).map(Some),
            None => Some(None),
        }
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
        let read = boxed_text::read(text, language)
            .map_err(|error| self.syntax(text, &error, position))
            .ok()?;
        self.tell_unknown(&read, position);
        Some(read)
    }

    fn tell_unknown(&mut self, computed: &Computed, position: Position) {
        let told = unknown_functions(computed, position);
        let element = self.element.id();
        self.diagnostics
            .extend(told.map(|warning| warning.element(element)));
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
        let read = Computed::feel(bare)
            .map_err(|error| self.syntax(text, &error, position))
            .ok()?;
        self.tell_unknown(&read, position);
        Some(read)
    }

    fn syntax(&mut self, text: &str, error: &SyntaxError, position: Position) {
        self.diagnostics
            .push(syntax_error(text, error, position).element(self.element.id()));
    }
}

/// Warnings of functions that do not exist: a call of one gives null, which nobody would see.
pub(super) fn unknown_functions(
    computed: &Computed,
    position: Position,
) -> impl Iterator<Item = Diagnostic> + use<> {
    let unknown: Vec<String> = computed
        .unknown_functions()
        .into_iter()
        .map(|name| {
            let shown: String = name.chars().take(80).collect();
            format!("there is no function `{shown}`: a call of it gives null")
        })
        .collect();
    unknown.into_iter().map(move |message| {
        Diagnostic::warning("function-unknown", message)
            .hint("use one of those in docs/feel.md, or let a worker make the value")
            .at(position)
    })
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
