//! The FEEL parser.

mod names;
mod parser;
mod ranges;
mod types;

use crate::error::SyntaxError;
use crate::lexer::{Dialect, tokens};
use crate::tree::Tree;

/// Parses an expression. `known` are variable names that hold more than one word or special characters.
pub(crate) fn parse(text: &str, known: &[&str]) -> Result<Tree, SyntaxError> {
    parser::Parser::new(text, tokens(text, Dialect::Feel)?, known)?.whole_expression()
}

/// Parses unary tests, as a decision table's cells hold them.
pub(crate) fn parse_unary_tests(text: &str, known: &[&str]) -> Result<Tree, SyntaxError> {
    parser::Parser::new(text, tokens(text, Dialect::Feel)?, known)?.whole_unary_tests()
}
