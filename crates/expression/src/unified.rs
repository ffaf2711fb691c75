//! The unified expression language: its parser, its coercions and its methods. Unlike FEEL it fails where FEEL gives
//! null.

mod methods;
mod operators;
mod parser;
mod template;

pub(crate) use operators::{arithmetic, compare, index, is_empty, property, truth, unknown_variable};
pub(crate) use template::parse;
