//! How much a file may ask for. What one evaluation may use is in [`tidegate_expression::Limits`].

/// Bytes of one file.
pub(crate) const MAX_BYTES: usize = 16 << 20;
/// Files that are read together.
pub(crate) const MAX_FILES: usize = 256;
/// Elements inside each other. Models of people stay below 50.
pub(crate) const MAX_DEPTH: usize = 256;
/// Nodes of the XML tree: elements, texts, comments.
pub(crate) const MAX_NODES: u32 = 1_000_000;
/// Attributes of one element: the XML parser compares each with every other.
pub(crate) const MAX_ATTRIBUTES: usize = 256;
/// Namespace declarations of a file: the XML parser copies those in sight at each element that has one.
pub(crate) const MAX_NAMESPACES: usize = 4_096;
/// Boxed expressions inside each other.
pub(crate) const MAX_BOXES: usize = 64;
/// Types that are defined by another type, in a row.
pub(crate) const MAX_TYPE_CHAIN: usize = 32;
/// Bytes of a type that is written out.
pub(crate) const MAX_WRITTEN: usize = 8 << 10;
/// Diagnostics of one file; what follows is counted only.
pub(crate) const MAX_DIAGNOSTICS: usize = 500;
/// Rules that an error or a trail lists for one table.
pub(crate) const MAX_RULES_SHOWN: usize = 200;
/// Steps, tables and problems that a trail holds.
pub(crate) const MAX_TRAIL: usize = 2_000;
/// Values of inputs that an error shows.
pub(crate) const MAX_INPUTS_SHOWN: usize = 32;
/// Characters of a value that an error shows.
pub(crate) const MAX_VALUE_SHOWN: usize = 120;
