//! FEEL texts and unary tests.

use std::sync::Arc;

use roxmltree::Node;
use tidegate_expression::{Expression, SyntaxError, Vocabulary, unary_tests_with};
use tidegate_model::diagnostic::Diagnostic;

use crate::parse::Compiler;
use crate::parse::xml::Read;
use crate::program::{Code, Place, TestCode, Tests, Text};
use crate::types::Type;

const CDATA: &str = "<![CDATA[";

impl<'a, 'i: 'a> Compiler<'a, 'i> {
    /// The FEEL text in the `text` element of a node.
    pub(super) fn text(&mut self, node: Node<'a, 'i>) -> Text {
        let (source, place) = self.source(node);
        if source.trim().is_empty() {
            return Text {
                place,
                code: Code::Empty,
            };
        }
        if !self.is_feel(node) {
            return Text {
                place,
                code: Code::Broken,
            };
        }
        let code = self.feel(node, &source, &place);
        Text { place, code }
    }

    /// A text that is FEEL.
    pub(super) fn feel(&mut self, node: Node<'a, 'i>, source: &str, place: &Place) -> Code {
        let names = self.names.of(source);
        let names: Vec<&str> = names.iter().map(|name| &**name).collect();
        let types = |name: &str| self.written_type(name, node);
        match Expression::feel_with(
            source,
            &Vocabulary {
                names: &names,
                types: Some(&types),
            },
        ) {
            Ok(expression) => {
                self.read.extend(expression.names().into_iter().map(Arc::from));
                Code::Feel(expression)
            }
            Err(error) => {
                self.syntax(node, place, &error);
                Code::Broken
            }
        }
    }

    /// The unary tests in the `text` element of a node.
    pub(super) fn tests(&mut self, node: Node<'a, 'i>) -> Tests {
        let (source, place) = self.source(node);
        if source.trim().is_empty() {
            return Tests {
                place,
                code: TestCode::Any,
            };
        }
        if !self.is_feel(node) {
            return Tests {
                place,
                code: TestCode::Broken,
            };
        }
        let names = self.names.of(&source);
        let names: Vec<&str> = names.iter().map(|name| &**name).collect();
        let types = |name: &str| self.written_type(name, node);
        let code = match unary_tests_with(
            &source,
            &Vocabulary {
                names: &names,
                types: Some(&types),
            },
        ) {
            Ok(tests) => {
                self.read.extend(tests.names().into_iter().map(Arc::from));
                TestCode::Tests(tests)
            }
            Err(error) => {
                self.syntax(node, &place, &error);
                TestCode::Broken
            }
        };
        Tests { place, code }
    }

    /// The text of the `text` element and where it begins.
    pub(super) fn source(&self, node: Node<'a, 'i>) -> (String, Place) {
        let inner = node.kid("text");
        let texts = inner
            .into_iter()
            .flat_map(|inner| inner.children())
            .filter(|child| child.is_text());
        let source: String = texts.clone().filter_map(|child| child.text()).collect();
        let first = texts.clone().next().map_or(node.range().start, |child| {
            let range = child.range();
            let raw = node
                .document()
                .input_text()
                .get(range.clone())
                .unwrap_or_default();
            range.start + if raw.starts_with(CDATA) { CDATA.len() } else { 0 }
        });
        let id = node
            .value("id")
            .or_else(|| node.ancestors().find_map(|node| node.value("id")));
        (source, self.place_at(first, id))
    }

    /// A type of the models as FEEL writes it.
    fn written_type(&self, name: &str, node: Node<'a, 'i>) -> Option<String> {
        match self.find_type(name, node)? {
            Type::Item(number) => Some(self.types.written(Type::Item(number))),
            _ => None,
        }
    }

    fn is_feel(&mut self, node: Node<'a, 'i>) -> bool {
        let language = node.value("expressionLanguage").or_else(|| {
            self.here()
                .and_then(|model| model.root.value("expressionLanguage"))
        });
        let feel = language.is_none_or(|language| language.to_ascii_lowercase().contains("feel"));
        if !feel {
            let message = format!(
                "the expression language \"{}\" is not known",
                language.unwrap_or_default()
            );
            let finding = Diagnostic::error("unsupported-language", message);
            self.complain(
                finding.hint("write the expression in FEEL and remove the attribute"),
                node,
            );
        }
        feel
    }

    fn syntax(&mut self, node: Node<'a, 'i>, place: &Place, error: &SyntaxError) {
        let (line, column) = within(place, error.line, error.column);
        let hint = if error.hint.is_empty() {
            "correct the expression; it is read as FEEL"
        } else {
            &error.hint
        };
        let finding = Diagnostic::error("feel-syntax", error.message.clone()).hint(hint);
        let id: Option<Arc<str>> = place.id.clone().or_else(|| self.place(node).id);
        let mut finding = finding.element(id.as_deref()).resource(&place.resource);
        (finding.line, finding.column) = (line, column);
        self.report(finding);
    }
}

/// A place in a text as a place in the file. Entities make columns on their line smaller than they are.
pub(crate) fn within(place: &Place, line: u32, column: u32) -> (u32, u32) {
    let line = line.max(1);
    if line == 1 {
        (place.line, place.column + column.max(1) - 1)
    } else {
        (place.line + line - 1, column)
    }
}
