//! The definitions that were in force along a journal. An instance may change to another version; what stands in its journal
//! before that speaks of the elements of the former one.

use std::sync::Arc;

use tidegate_engine::{Event, HistoryItem, Instance, decode_events, history_across};
use tidegate_model::{DefinitionKey, InstanceKey};
use tidegate_store::Error as StoreError;

use crate::definitions::Loaded;
use crate::query::damaged;
use crate::shared::Shared;

/// Journal entries that are read at once.
const PAGE: usize = 500;

/// Reads a journal from its beginning, always with the definition that was in force.
pub(crate) struct Versions {
    key: InstanceKey,
    now: Arc<Loaded>,
}

impl Versions {
    /// At the first entry that is there of the journal of `key`, whose definition is `newest` today.
    pub(crate) fn begin(
        shared: &Shared,
        key: InstanceKey,
        newest: DefinitionKey,
    ) -> Result<Self, StoreError> {
        let first = match has_migrated(shared, key)? {
            true => former(shared, key)?.unwrap_or(newest),
            false => newest,
        };
        Ok(Self {
            key,
            now: definition(shared, key, first)?,
        })
    }

    /// The next events of the journal as people read them.
    pub(crate) fn history(
        &mut self,
        shared: &Shared,
        events: &[Event],
        first: u64,
    ) -> Result<Vec<HistoryItem>, StoreError> {
        let mut later = Vec::new();
        for event in events {
            if let Event::Migrated { to, .. } = event {
                later.push((*to, definition(shared, self.key, *to)?));
            }
        }
        let of = |key| {
            let found = later.iter().find(|(known, _)| *known == key);
            found.map(|(_, loaded)| &*loaded.definition)
        };
        let items = history_across(&self.now.definition, events, first, &of);
        if let Some((_, last)) = later.pop() {
            self.now = last;
        }
        Ok(items)
    }
}

/// True if the instance has, or may have, changed its definition.
fn has_migrated(shared: &Shared, key: InstanceKey) -> Result<bool, StoreError> {
    let Some(stored) = shared.store.load(key)? else {
        // Only its journal is left: that alone says so.
        return Ok(true);
    };
    // The commit of a change holds the state.
    let Some(state) = &stored.state else {
        return Ok(false);
    };
    let instance = Instance::decode(state).map_err(|error| damaged(key, &error.to_string()))?;
    Ok(instance.origin().is_some())
}

/// The definition before the first change that is still in the journal; none where that holds no change.
fn former(shared: &Shared, key: InstanceKey) -> Result<Option<DefinitionKey>, StoreError> {
    let mut after = 0;
    loop {
        let rows = shared.store.journal(key, after, PAGE)?;
        let is_last = rows.len() < PAGE;
        for row in rows {
            after = row.revision;
            let events = decode_events(&row.payload).map_err(|error| damaged(key, &error.to_string()))?;
            for event in events {
                if let Event::Migrated { from, .. } = event {
                    return Ok(Some(from));
                }
            }
        }
        if is_last {
            return Ok(None);
        }
    }
}

fn definition(shared: &Shared, key: InstanceKey, wanted: DefinitionKey) -> Result<Arc<Loaded>, StoreError> {
    let found = shared.definitions.get(&*shared.store, wanted)?;
    found.ok_or_else(|| damaged(key, &format!("its definition {wanted} is missing")))
}
