//! The one row of `meta` in each namespace: the fence, the key marks and the running totals, brought up to date once a transaction.

use rusqlite::params;

use super::error::Trouble;
use super::names::Tables;
use crate::Activation;
use crate::error::{Error, ErrorKind};

/// The totals as of the end of the last transaction, or as the present one would leave them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Totals {
    pub epoch: i64,
    pub key_high: i64,
    pub stimulus_high: i64,
    pub queued: i64,
    /// By sub-status code.
    pub instances: [i64; 9],
    /// The highest key that was ever forgotten and is still remembered, or a higher one: a key above it needs no look.
    pub forgotten_high: i64,
}

impl Totals {
    pub fn read(conn: &Tables<'_>) -> Result<Self, Trouble> {
        let mut statement = conn.prepare_cached(
            "SELECT epoch, key_high, stimulus_high, queued, pending, executing, suspended, interrupted, held, \
             cancelling, finished, cancelled, faulted, coalesce((SELECT max(instance) FROM forgotten), 0) \
             FROM meta WHERE id = 1",
        )?;
        let totals = statement.query_row([], |row| {
            let mut instances = [0; 9];
            for (position, count) in instances.iter_mut().enumerate() {
                *count = row.get(4 + position)?;
            }
            Ok(Self {
                epoch: row.get(0)?,
                key_high: row.get(1)?,
                stimulus_high: row.get(2)?,
                queued: row.get(3)?,
                instances,
                forgotten_high: row.get(13)?,
            })
        });
        match totals {
            Err(rusqlite::Error::QueryReturnedNoRows) => {
                Err(Trouble::Damaged("its `meta` row is missing".to_owned()))
            }
            other => Ok(other?),
        }
    }

    /// Writes them, if the file still has this epoch.
    pub fn write(&self, conn: &Tables<'_>) -> Result<(), Trouble> {
        let n = &self.instances;
        let hit = conn
            .prepare_cached(
                "UPDATE meta SET key_high = ?2, stimulus_high = ?3, queued = ?4, pending = ?5, executing = ?6, \
                 suspended = ?7, interrupted = ?8, held = ?9, cancelling = ?10, finished = ?11, cancelled = ?12, \
                 faulted = ?13 WHERE id = 1 AND epoch = ?1",
            )?
            .execute(params![
                self.epoch,
                self.key_high,
                self.stimulus_high,
                self.queued,
                n[0],
                n[1],
                n[2],
                n[3],
                n[4],
                n[5],
                n[6],
                n[7],
                n[8]
            ])?;
        if hit == 1 {
            Ok(())
        } else {
            Err(fenced(self.epoch as u64).into())
        }
    }

    /// Raises the epoch in the file. The caller's transaction makes it durable.
    pub fn activate(&mut self, conn: &Tables<'_>) -> Result<Activation, Trouble> {
        conn.prepare_cached("UPDATE meta SET epoch = ?1 WHERE id = 1")?
            .execute(params![self.epoch + 1])?;
        self.epoch += 1;
        Ok(Activation {
            epoch: self.epoch as u64,
            key_high: self.key_high as u64,
        })
    }
}

pub(super) fn fenced(epoch: u64) -> Error {
    Error::new(
        ErrorKind::Fenced,
        format!("epoch {epoch} is fenced: a later generation has taken hold of the store"),
    )
}
