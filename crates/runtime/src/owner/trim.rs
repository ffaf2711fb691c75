//! The journal of an instance that lives long: what its state covers goes, up to the limit of its definition.

use tidegate_engine::{Event, apply, encode_events};
use tidegate_model::{Cause, Timestamp};
use tidegate_store::Write;

use crate::shared::Shared;

use super::resident::Resident;

/// How many entries one commit removes at most, and from how many on it is worth the while.
const MOST: u64 = 500;
const LEAST: u64 = 16;

/// A trim that goes with the commit of a state.
pub(super) struct Trim {
    /// The commit's events, with the record of the trim.
    pub(super) payload: Vec<u8>,
    pub(super) write: Write,
}

/// What is to be trimmed in the commit that writes the next state with these events. The record of it is applied.
pub(super) fn due(
    shared: &Shared,
    resident: &mut Resident,
    mut events: Vec<Event>,
    now: Timestamp,
) -> Option<Trim> {
    let keep = resident.loaded.process.journal_limit()?;
    let untrimmed = resident.row.revision.saturating_sub(resident.trimmed);
    let too_many = untrimmed.saturating_sub(keep);
    if too_many < LEAST.max((keep / 8).min(MOST)) {
        return None;
    }
    let up_to = resident.trimmed + too_many.min(MOST);
    // The entry behind the last that goes is told already, since there are so many after it; else this waits.
    let kept = shared.store.journal(resident.key(), up_to, 1).ok()?;
    let first_kept = kept.first()?.first_sequence;
    if events.is_empty() {
        resident.first_sequence = resident.instance.sequence() + 1;
    }
    let record = Event::HistoryTrimmed { first_kept };
    apply(&resident.loaded.definition, &mut resident.instance, &record);
    events.push(Event::Caused {
        time: now,
        cause: Cause::Engine,
    });
    events.push(record);
    resident.trimmed = up_to;
    Some(Trim {
        payload: encode_events(&events),
        write: Write::TrimJournal {
            instance: resident.key(),
            up_to,
            limit: usize::try_from(MOST).unwrap_or(usize::MAX),
        },
    })
}
