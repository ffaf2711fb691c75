//! Instances with their journals as lines of JSON, in pieces of bounded size.
//!
//! Each instance is a line of `type` `instance`, and each entry of its journal one of `type` `event` behind it.

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::json;
use tidegate_engine::decode_events;
use tidegate_store::{Error as StoreError, ErrorKind, InstanceFilter, InstanceRow, Page};

use crate::builder::blocking;
use crate::error::Error;
use crate::runtime::Runtime;
use crate::shared::Shared;
use crate::versions::Versions;

/// Instances that are read at a time.
const INSTANCES: usize = 100;
/// Journal rows that one piece holds at most.
const ROWS: usize = 200;

/// An export that is under way. What comes and goes meanwhile does not move its place.
pub struct Export {
    shared: Arc<Shared>,
    filter: InstanceFilter,
    page: Page,
    is_last: bool,
    waiting: VecDeque<InstanceRow>,
    /// The instance whose journal is being read, and up to which revision.
    reading: Option<(InstanceRow, u64, Option<Versions>)>,
}

impl Runtime {
    /// Begins to export the instances that match, newest first, each with its journal.
    pub fn export(&self, filter: InstanceFilter) -> Export {
        Export {
            shared: self.shared().clone(),
            filter,
            page: Page::first(INSTANCES),
            is_last: false,
            waiting: VecDeque::new(),
            reading: None,
        }
    }
}

impl Export {
    /// The next piece: whole lines. `None` at the end. An instance that is forgotten meanwhile ends where it was.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>, Error> {
        loop {
            if let Some((row, after, versions)) = self.reading.take() {
                let lines = self.events(row, after, versions).await?;
                if lines.is_empty() {
                    continue;
                }
                return Ok(Some(lines));
            }
            if let Some(row) = self.waiting.pop_front() {
                let line = instance_line(&row);
                self.reading = Some((row, 0, None));
                return Ok(Some(line));
            }
            if self.is_last {
                return Ok(None);
            }
            let (shared, filter, page) = (self.shared.clone(), self.filter.clone(), self.page);
            let rows = blocking(move || shared.store.instances(&filter, page)).await?;
            self.is_last = rows.len() < INSTANCES;
            self.page.after = rows.last().map(|row| row.key.get());
            self.waiting.extend(rows);
        }
    }

    async fn events(
        &mut self,
        row: InstanceRow,
        after: u64,
        versions: Option<Versions>,
    ) -> Result<Vec<u8>, Error> {
        let shared = self.shared.clone();
        let (row, last, versions, lines) = blocking(move || {
            let rows = shared.store.journal(row.key, after, ROWS)?;
            let mut versions = match versions {
                Some(versions) => versions,
                None => Versions::begin(&shared, row.key, row.definition)?,
            };
            let mut lines = Vec::new();
            let last = (rows.len() == ROWS).then(|| rows.last().map_or(after, |entry| entry.revision));
            for entry in rows {
                let events =
                    decode_events(&entry.payload).map_err(|error| damaged(&row, &error.to_string()))?;
                for item in versions.history(&shared, &events, entry.first_sequence)? {
                    line(
                        &mut lines,
                        &json!({
                            "type": "event",
                            "instanceKey": row.key,
                            "sequence": item.sequence,
                            "time": item.time,
                            "event": item.event,
                            "elementId": item.element_id,
                            "elementInstanceKey": item.element_instance_key,
                            "cause": item.cause,
                            "payload": item.payload,
                        }),
                    );
                }
            }
            Ok((row, last, versions, lines))
        })
        .await?;
        self.reading = last.map(|last| (row, last, Some(versions)));
        Ok(lines)
    }
}

fn instance_line(row: &InstanceRow) -> Vec<u8> {
    let mut lines = Vec::new();
    line(
        &mut lines,
        &json!({
            "type": "instance",
            "instanceKey": row.key,
            "definitionKey": row.definition,
            "processId": row.process_id,
            "version": row.version,
            "tenantId": row.tenant,
            "subStatus": row.sub_status,
            "businessKey": row.business_key,
            "parentKey": row.parent,
            "startedAt": row.started_at,
            "endedAt": row.ended_at,
        }),
    );
    lines
}

fn line(lines: &mut Vec<u8>, value: &serde_json::Value) {
    lines.extend_from_slice(value.to_string().as_bytes());
    lines.push(b'\n');
}

fn damaged(row: &InstanceRow, what: &str) -> StoreError {
    StoreError::new(
        ErrorKind::Damaged,
        format!("instance {} cannot be read: {what}", row.key),
    )
}
