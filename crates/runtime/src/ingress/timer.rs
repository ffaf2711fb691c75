//! The `timer` source: the timers of the next minute in memory, everything else in the store.
//!
//! Firing deletes the timer's row in the cycle's commit, so having one twice in memory is harmless: the second
//! firing finds nobody waiting. While the gate or the source is closed nothing is popped; afterwards timers leave
//! in the order of their due times.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;
use tidegate_model::{ElementIndex, InstanceKey, Timestamp};
use tidegate_store::TimerRow;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::owner::{Message, Owners};
use crate::shared::Shared;

/// How far ahead timers are held in memory.
const HORIZON_MS: i64 = 60_000;
/// How many rows one read takes; a full page moves the horizon nearer.
const PAGE: usize = 10_000;
/// Behind a full page the next one is read when so few timers are left in memory.
const FEW: usize = PAGE / 2;
/// How soon a read that failed is tried again.
const AGAIN_MS: i64 = 1_000;
/// How many due timers are handed over at a time.
const HANDFUL: usize = 1_000;

/// The timers in memory.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    armed: Mutex<Armed>,
    wake: Notify,
}

#[derive(Debug, Default)]
struct Armed {
    /// Every timer of the store due by then is in `due`.
    loaded_until: Option<Timestamp>,
    /// The last row of a read that was full: the next read goes on behind it.
    read_up_to: Option<TimerRow>,
    due: BTreeSet<Entry>,
    /// The newest of each owner and element: what replaces it or takes it away costs no search.
    newest: HashMap<(u64, ElementIndex), Entry>,
}

impl Armed {
    /// In the place of one of the same owner and element.
    fn put(&mut self, entry: Entry) {
        if let Some(older) = self.newest.insert((entry.owner, entry.element), entry) {
            self.due.remove(&older);
        }
        self.due.insert(entry);
    }

    /// As read from the store: what was armed since that read is newer.
    fn put_read(&mut self, entry: Entry) {
        self.newest.entry((entry.owner, entry.element)).or_insert(entry);
        self.due.insert(entry);
    }

    fn take(&mut self, owner: u64, element: ElementIndex) {
        if let Some(entry) = self.newest.remove(&(owner, element)) {
            self.due.remove(&entry);
        }
    }

    /// The next read begins anew.
    fn forget_read(&mut self) {
        self.loaded_until = None;
        self.read_up_to = None;
    }

    /// When more is to be read; now where what is in memory runs out.
    fn read_at(&self, now: Timestamp) -> Timestamp {
        match (self.loaded_until, &self.read_up_to) {
            (None, _) => now,
            (Some(_), Some(_)) if self.due.len() < FEW => now,
            // Those behind the page are due from then on.
            (Some(until), Some(_)) => until,
            (Some(until), None) => until.plus_ms(-HORIZON_MS / 2),
        }
    }

    fn pop(&mut self) -> Option<Entry> {
        let entry = self.due.pop_first()?;
        let key = (entry.owner, entry.element);
        if self.newest.get(&key) == Some(&entry) {
            self.newest.remove(&key);
        }
        Some(entry)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    due_at: Timestamp,
    owner: u64,
    element: ElementIndex,
    instance: Option<InstanceKey>,
    fired: u32,
}

impl Timers {
    /// A timer was committed.
    pub(crate) fn armed(&self, row: &TimerRow) {
        let mut armed = self.armed.lock();
        if armed.loaded_until.is_some_and(|until| row.due_at <= until) {
            let is_first = armed.due.first().is_none_or(|first| row.due_at < first.due_at);
            armed.put(Entry::from(row));
            if is_first {
                self.wake.notify_one();
            }
        } else {
            // It is armed for later: what is in memory of it is no longer so.
            armed.take(row.owner, row.element);
        }
    }

    /// The removal of a timer was committed.
    pub(crate) fn disarmed(&self, owner: u64, element: ElementIndex) {
        self.armed.lock().take(owner, element);
    }

    /// Reads the timers of the next minute once more: one that is not in memory may be armed in the store.
    pub(crate) fn reload(&self) {
        self.armed.lock().forget_read();
        self.wake.notify_one();
    }

    /// Looks again at the gate, the switch and the clock.
    pub(crate) fn wake(&self) {
        self.wake.notify_one();
    }
}

impl From<&TimerRow> for Entry {
    fn from(row: &TimerRow) -> Self {
        Self {
            due_at: row.due_at,
            owner: row.owner,
            element: row.element,
            instance: row.instance,
            fired: row.fired,
        }
    }
}

impl From<Entry> for TimerRow {
    fn from(entry: Entry) -> Self {
        let Entry {
            due_at,
            owner,
            element,
            instance,
            fired,
        } = entry;
        Self {
            due_at,
            owner,
            element,
            instance,
            fired,
        }
    }
}

/// Hands due timers to their owners until `stop`.
pub(crate) async fn run(shared: Arc<Shared>, owners: Owners, stop: CancellationToken) {
    loop {
        let is_open = shared.switches.timer.is_on() && shared.gate.read().is_accepting();
        let mut wake_at = None;
        if is_open {
            load(&shared).await;
            hand_over(&shared, &owners).await;
            let armed = shared.timers.armed.lock();
            let read_at = match armed.loaded_until {
                Some(_) => armed.read_at(shared.now()),
                // They could not be read.
                None => shared.now().plus_ms(AGAIN_MS),
            };
            let first = armed.due.first().map(|entry| entry.due_at);
            wake_at = Some(first.map_or(read_at, |first| first.min(read_at)));
        }
        let woken = shared.timers.wake.notified();
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = woken => {}
            () = async {
                match wake_at {
                    Some(at) => shared.clock.sleep_until(at).await,
                    None => std::future::pending().await,
                }
            } => {}
        }
    }
}

async fn load(shared: &Arc<Shared>) {
    let now = shared.now();
    let until = now.plus_ms(HORIZON_MS);
    let after = {
        let mut armed = shared.timers.armed.lock();
        if armed.read_at(now) > now {
            return;
        }
        // Set before the read: what is committed meanwhile is put in by its owner.
        armed.loaded_until = Some(until);
        armed.read_up_to.take()
    };
    let store = shared.store.clone();
    let read = crate::tasks::blocking(move || store.timers(until, after.as_ref(), PAGE)).await;
    let rows = match read {
        Ok(Ok(rows)) => rows,
        Ok(Err(error)) => {
            tracing::warn!("timers could not be read, trying again: {error}");
            shared.timers.armed.lock().forget_read();
            return;
        }
        Err(_) => return,
    };
    let mut armed = shared.timers.armed.lock();
    if rows.len() == PAGE
        && armed.loaded_until == Some(until)
        && let Some(last) = rows.last()
    {
        armed.loaded_until = Some(last.due_at);
        armed.read_up_to = Some(last.clone());
    }
    for row in &rows {
        armed.put_read(Entry::from(row));
    }
}

async fn hand_over(shared: &Arc<Shared>, owners: &Owners) {
    loop {
        let now = shared.now();
        let mut due: Vec<TimerRow> = Vec::new();
        {
            let mut armed = shared.timers.armed.lock();
            while due.len() < HANDFUL && armed.due.first().is_some_and(|entry| entry.due_at <= now) {
                due.extend(armed.pop().map(TimerRow::from));
            }
        }
        if due.is_empty() {
            return;
        }
        for (owner, rows) in owners.split(due, |row| row.instance.map_or(row.owner, InstanceKey::get)) {
            owners.send_to(owner, Message::TimersDue(rows));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(owner: u64, due_at: i64) -> TimerRow {
        TimerRow {
            due_at: Timestamp::from_ms(due_at),
            owner,
            element: ElementIndex(1),
            instance: None,
            fired: 0,
        }
    }

    fn loaded() -> Timers {
        let timers = Timers::default();
        timers.armed.lock().loaded_until = Some(Timestamp::from_ms(1_000));
        timers
    }

    fn due(timers: &Timers) -> Vec<(u64, i64)> {
        let armed = timers.armed.lock();
        assert!(armed.newest.len() <= armed.due.len());
        armed
            .due
            .iter()
            .map(|entry| (entry.owner, entry.due_at.as_ms()))
            .collect()
    }

    #[test]
    fn e12_a_timer_armed_twice_is_one_timer_and_its_removal_takes_the_newer() {
        let timers = loaded();
        timers.armed(&row(1, 10));
        timers.armed(&row(2, 20));
        timers.armed(&row(1, 30));
        assert_eq!(due(&timers), [(2, 20), (1, 30)]);
        timers.disarmed(1, ElementIndex(1));
        timers.disarmed(1, ElementIndex(1));
        assert_eq!(due(&timers), [(2, 20)]);
        // Armed again for a time beyond what is in memory: the store has it.
        timers.armed(&row(2, 5_000));
        assert_eq!(due(&timers), []);
    }

    #[test]
    fn e12_a_read_that_is_older_than_an_arming_does_not_take_its_place() {
        let timers = loaded();
        timers.armed(&row(1, 30));
        timers.armed.lock().put_read(Entry::from(&row(1, 10)));
        timers.armed.lock().put_read(Entry::from(&row(1, 30)));
        // The older one fires for nobody; the newer one is still there.
        assert_eq!(due(&timers), [(1, 10), (1, 30)]);
        assert_eq!(
            timers.armed.lock().pop().map(|entry| entry.due_at.as_ms()),
            Some(10)
        );
        timers.disarmed(1, ElementIndex(1));
        assert_eq!(due(&timers), []);
    }
}
