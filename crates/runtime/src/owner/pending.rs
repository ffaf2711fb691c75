//! What waits for its turn: queued stimuli and due timers, in the order of acceptance and of due time.

use std::collections::{BTreeMap, HashMap};

use tidegate_model::{ElementIndex, InstanceKey, StimulusKey, Timestamp};
use tidegate_store::{StimulusRow, TimerRow};
use tokio::time::Instant;

/// What must stay in order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Domain {
    Instance(InstanceKey),
    /// A message's name and correlation key, or a signal's name.
    Message(String),
}

impl Domain {
    pub(super) fn message(tenant: &str, name: &str, correlation_key: &str) -> Self {
        Self::Message(format!("message/{tenant}/{name}/{correlation_key}"))
    }

    pub(super) fn signal(tenant: &str, name: &str) -> Self {
        Self::Message(format!("signal/{tenant}/{name}"))
    }

    pub(super) fn text(&self) -> String {
        match self {
            Self::Instance(key) => format!("instance/{key}"),
            Self::Message(text) => text.clone(),
        }
    }

    pub(super) fn parse(text: &str) -> Self {
        match text.strip_prefix("instance/").and_then(|key| key.parse().ok()) {
            Some(key) => Self::Instance(key),
            None => Self::Message(text.to_owned()),
        }
    }
}

/// A place in the line: time first, then what was accepted before timers of the same moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    Stimulus(Timestamp, StimulusKey),
    Timer(Timestamp, u64, ElementIndex),
}

impl Place {
    fn order(self) -> (Timestamp, u8, u64, u32) {
        match self {
            Self::Stimulus(at, key) => (at, 0, key.get(), 0),
            Self::Timer(at, owner, element) => (at, 1, owner, element.0),
        }
    }
}

#[derive(Debug)]
pub(super) enum Item {
    Stimulus(StimulusRow),
    Timer(TimerRow),
}

#[derive(Debug, Default)]
pub(super) struct Pending {
    line: BTreeMap<(Timestamp, u8, u64, u32), Item>,
    /// How many stimuli of a domain are in the line, or on their way into it.
    domains: HashMap<Domain, u32>,
    /// What is put by while the rest of the line goes on, by domain: nothing of a domain overtakes what is put by.
    parked: HashMap<Domain, Parked>,
}

/// What is put by of one domain.
#[derive(Debug)]
struct Parked {
    /// Until when; none until a narrow gate opens.
    until: Option<Instant>,
    items: Vec<Item>,
}

impl Item {
    /// What it must stay in order with. A start timer stays in order with the other turns of its definition.
    pub(super) fn domain(&self) -> Domain {
        match self {
            Self::Stimulus(row) => Domain::parse(&row.domain),
            Self::Timer(row) => match row.instance {
                Some(instance) => Domain::Instance(instance),
                None => Domain::Message(format!("definition/{}", row.owner)),
            },
        }
    }
}

impl Pending {
    pub(super) fn is_empty(&self) -> bool {
        self.line.is_empty()
    }

    pub(super) fn has(&self, domain: &Domain) -> bool {
        !self.domains.is_empty() && self.domains.contains_key(domain)
    }

    /// Counts a stimulus that is being made durable.
    pub(super) fn expect(&mut self, domain: Domain) {
        *self.domains.entry(domain).or_default() += 1;
    }

    /// A counted stimulus has left the line, or did not come.
    pub(super) fn left(&mut self, domain: &Domain) {
        if let Some(count) = self.domains.get_mut(domain) {
            *count -= 1;
            if *count == 0 {
                self.domains.remove(domain);
            }
        }
    }

    /// Puts in a stimulus that was counted before.
    pub(super) fn add_expected(&mut self, row: StimulusRow) {
        let place = Place::Stimulus(row.accepted_at, row.key).order();
        self.line.insert(place, Item::Stimulus(row));
    }

    /// Puts in a stimulus. A second time changes nothing.
    pub(super) fn add(&mut self, row: StimulusRow) {
        let place = Place::Stimulus(row.accepted_at, row.key).order();
        if let std::collections::btree_map::Entry::Vacant(vacant) = self.line.entry(place) {
            *self.domains.entry(Domain::parse(&row.domain)).or_default() += 1;
            vacant.insert(Item::Stimulus(row));
        }
    }

    pub(super) fn add_timers(&mut self, rows: Vec<TimerRow>) {
        for row in rows {
            let domain = row.instance.map(Domain::Instance);
            let place = Place::Timer(row.due_at, row.owner, row.element).order();
            if self.line.insert(place, Item::Timer(row)).is_none()
                && let Some(domain) = domain
            {
                *self.domains.entry(domain).or_default() += 1;
            }
        }
    }

    pub(super) fn pop(&mut self) -> Option<Item> {
        loop {
            let (_, item) = self.line.pop_first()?;
            if self.parked.is_empty() {
                return Some(item);
            }
            match self.parked.get_mut(&item.domain()) {
                Some(parked) => parked.items.push(item),
                None => return Some(item),
            }
        }
    }

    /// Puts an item by: until then, or until a narrow gate opens. Its domain is still counted, and what follows in it
    /// waits behind it.
    pub(super) fn park(&mut self, item: Item, until: Option<Instant>) {
        let parked = self.parked.entry(item.domain()).or_insert_with(|| Parked {
            until,
            items: Vec::new(),
        });
        parked.until = until;
        parked.items.push(item);
    }

    /// When the first item that is put by for a time comes back.
    pub(super) fn back_at(&self) -> Option<Instant> {
        self.parked.values().filter_map(|parked| parked.until).min()
    }

    /// Puts back into the line what was put by until `now`, and, if a narrow gate was opened, everything that waits
    /// for one.
    pub(super) fn unpark(&mut self, now: Instant, is_opened: bool) {
        if self.parked.is_empty() {
            return;
        }
        let is_back = |parked: &Parked| parked.until.map_or(is_opened, |until| until <= now);
        let back: Vec<Item> = self
            .parked
            .extract_if(|_, parked| is_back(parked))
            .flat_map(|(_, parked)| parked.items)
            .collect();
        for item in back {
            self.put_back(item);
        }
    }

    /// Puts an item back where it was; its domain is still counted.
    pub(super) fn put_back(&mut self, item: Item) {
        let place = match &item {
            Item::Stimulus(row) => Place::Stimulus(row.accepted_at, row.key),
            Item::Timer(row) => Place::Timer(row.due_at, row.owner, row.element),
        };
        let domain = item.domain();
        if self.line.insert(place.order(), item).is_some() {
            // It was loaded a second time meanwhile.
            self.left(&domain);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stimulus(key: u64, at: i64) -> StimulusRow {
        StimulusRow {
            key: StimulusKey(key),
            domain: "instance/7".to_owned(),
            source: "http.api".to_owned(),
            payload: Vec::new(),
            accepted_at: Timestamp::from_ms(at),
            attempts: 0,
        }
    }

    #[test]
    fn a_timer_takes_its_place_by_its_due_time() {
        let mut pending = Pending::default();
        pending.add(stimulus(2, 30));
        pending.add(stimulus(1, 10));
        pending.add(stimulus(1, 10));
        let timer = TimerRow {
            due_at: Timestamp::from_ms(20),
            owner: 9,
            element: ElementIndex(0),
            instance: Some(InstanceKey(7)),
            fired: 0,
        };
        pending.add_timers(vec![timer]);
        let order: Vec<_> = std::iter::from_fn(|| pending.pop())
            .map(|item| match item {
                Item::Stimulus(row) => row.key.get(),
                Item::Timer(row) => row.owner,
            })
            .collect();
        assert_eq!(order, [1, 9, 2]);
        let domain = Domain::Instance(InstanceKey(7));
        for _ in 0..3 {
            assert!(pending.has(&domain));
            pending.left(&domain);
        }
        assert!(!pending.has(&domain));
    }
}
