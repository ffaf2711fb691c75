//! The FEEL parser.

mod names;
mod parser;
mod ranges;
mod types;

use crate::error::SyntaxError;
use crate::expression::Vocabulary;
use crate::lexer::{Dialect, tokens};
use crate::tree::Tree;

/// Parses an expression.
pub(crate) fn parse(text: &str, known: &Vocabulary<'_>) -> Result<Tree, SyntaxError> {
    parser::Parser::new(text, tokens(text, Dialect::Feel)?, known)?.whole_expression()
}

/// Parses unary tests, as a decision table's cells hold them.
pub(crate) fn parse_unary_tests(text: &str, known: &Vocabulary<'_>) -> Result<Tree, SyntaxError> {
    parser::Parser::new(text, tokens(text, Dialect::Feel)?, known)?.whole_unary_tests()
}
