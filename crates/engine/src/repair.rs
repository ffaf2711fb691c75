//! Putting an instance right: the change to another version, and what a repair would do without doing it.

mod crossing;
mod migrate;
mod plan;

pub use migrate::{Change, migrate};
pub use plan::{rehearse, rehearse_migration};
