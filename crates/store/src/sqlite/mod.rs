//! The SQLite store.
use std::path::Path;
use std::sync::Arc;
use crate::{Error, Store};

/// SQLite, for now held in memory.
pub struct SqliteStore;
impl SqliteStore {
    /// Opens.
    ///
    /// # Errors
    /// It cannot.
    #[allow(clippy::new_ret_no_self)]
    pub fn open(_path: &Path) -> Result<crate::memory::MemoryStore, Error> {
        Ok(crate::memory::MemoryStore::new())
    }
}
#[allow(dead_code)]
fn _unused(_: Arc<dyn Store>) {}
