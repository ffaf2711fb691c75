//! A small pool of connections that only read.

use parking_lot::Mutex;
use rusqlite::Connection;

use super::error::Trouble;
use super::names::Tables;
use super::{SqliteStore, open};
use crate::error::Error;

/// How many connections are kept. More may read at once; theirs are closed afterwards.
const KEPT: usize = 4;

/// Connections at rest.
#[derive(Default)]
pub(super) struct Readers(Mutex<Vec<Connection>>);

impl Readers {
    pub fn clear(&self) {
        self.0.lock().clear();
    }
}

impl SqliteStore {
    /// Reads in one transaction: everything `read` sees is of one moment.
    pub(super) fn read<T>(&self, read: impl FnOnce(&Tables<'_>) -> Result<T, Trouble>) -> Result<T, Error> {
        if self.is_closed() {
            return Err(self.file.closed());
        }
        let kept = self.readers.0.lock().pop();
        let result = match kept {
            Some(conn) => self.read_with(conn, read),
            None => {
                open::reader(&self.file.path, &self.file.options).and_then(|conn| self.read_with(conn, read))
            }
        };
        result.map_err(|trouble| trouble.into_error(&self.place))
    }

    fn read_with<T>(
        &self,
        conn: Connection,
        read: impl FnOnce(&Tables<'_>) -> Result<T, Trouble>,
    ) -> Result<T, Trouble> {
        conn.prepare_cached("BEGIN")?.execute([])?;
        let result = read(&Tables::new(&conn, &self.names));
        let is_over = conn.prepare_cached("COMMIT")?.execute([]).is_ok();
        if is_over && !self.is_closed() {
            let mut kept = self.readers.0.lock();
            if kept.len() < KEPT {
                kept.push(conn);
            }
        }
        result
    }
}
