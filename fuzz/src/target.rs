//! The table of targets: one file and one row each.

mod bpmn;
mod dmn;
mod feel;
#[cfg(feature = "http")]
mod http;
mod journal;
mod juel;
mod snapshot;

/// Takes any bytes.
pub type Target = fn(&[u8]);

/// Every target by its name, which is also the name of its folder in `fuzz/corpus`.
pub const TARGETS: &[(&str, Target)] = &[
    ("bpmn", bpmn::run),
    ("dmn", dmn::run),
    ("feel", feel::run),
    #[cfg(feature = "http")]
    ("http", http::run),
    ("journal", journal::run),
    ("juel", juel::run),
    ("snapshot", snapshot::run),
];

/// The target with this name.
pub fn named(name: &str) -> Option<Target> {
    TARGETS
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, target)| *target)
}
