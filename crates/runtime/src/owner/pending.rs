//! What waits for its turn: queued stimuli and due timers, in the order of acceptance and of due time.

use std::collections::{BTreeMap, HashMap};

use tidegate_model::{ElementIndex, ElementInstanceKey, InstanceKey, Stimulus, StimulusKey, Timestamp};
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
    /// What of a domain is in the line, or on its way into it.
    domains: HashMap<Domain, Waiting>,
    /// What is put by while the rest of the line goes on, by domain: nothing of a domain overtakes what is put by.
    parked: HashMap<Domain, Parked>,
}

/// What waits of one domain.
#[derive(Debug, Default)]
struct Waiting {
    count: u32,
    /// The highest key, and its time of acceptance.
    latest: (u64, Timestamp),
}

impl Waiting {
    /// The keys have the order of acceptance. The wall clock may have stepped meanwhile: the time follows the keys.
    fn put(&mut self, row: &mut StimulusRow) {
        let (key, time) = self.latest;
        if row.key.get() >= key {
            row.accepted_at = row.accepted_at.max(time);
            self.latest = (row.key.get(), row.accepted_at);
        } else {
            row.accepted_at = row.accepted_at.min(time);
        }
    }
}

/// What is put by of one domain.
#[derive(Debug, Default)]
struct Parked {
    /// Until when; none until a narrow gate opens.
    until: Option<Instant>,
    /// What went before is not told to be on disk.
    is_held: bool,
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
        self.domains.contains_key(domain)
    }

    /// Counts a stimulus that is being made durable.
    pub(super) fn expect(&mut self, domain: Domain) {
        self.domains.entry(domain).or_default().count += 1;
    }

    /// A counted stimulus has left the line, or did not come.
    pub(super) fn left(&mut self, domain: &Domain) {
        if let Some(waiting) = self.domains.get_mut(domain) {
            waiting.count -= 1;
            if waiting.count == 0 {
                self.domains.remove(domain);
            }
        }
    }

    /// Puts in a stimulus that was counted before.
    pub(super) fn add_expected(&mut self, mut row: StimulusRow) {
        if let Some(waiting) = self.domains.get_mut(&Domain::parse(&row.domain)) {
            waiting.put(&mut row);
        }
        let place = Place::Stimulus(row.accepted_at, row.key).order();
        self.line.insert(place, Item::Stimulus(row));
    }

    /// Puts in a stimulus. A second time changes nothing.
    pub(super) fn add(&mut self, mut row: StimulusRow) {
        let waiting = self.domains.entry(Domain::parse(&row.domain)).or_default();
        waiting.put(&mut row);
        let place = Place::Stimulus(row.accepted_at, row.key).order();
        if let std::collections::btree_map::Entry::Vacant(vacant) = self.line.entry(place) {
            waiting.count += 1;
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
                self.domains.entry(domain).or_default().count += 1;
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
        let parked = self.parked.entry(item.domain()).or_default();
        parked.until = until;
        parked.is_held = false;
        parked.items.push(item);
    }

    /// Puts by what follows in a domain until [`Pending::release`]: what went before is on its way to disk, and must not
    /// be overtaken if it does not arrive.
    pub(super) fn hold(&mut self, domain: &Domain) {
        self.parked.entry(domain.clone()).or_default().is_held = true;
    }

    /// What was held is known: what follows in the domain comes back into the line.
    pub(super) fn release(&mut self, domain: &Domain) {
        for item in self
            .parked
            .remove(domain)
            .into_iter()
            .flat_map(|parked| parked.items)
        {
            self.put_back(item);
        }
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
        let is_back =
            |parked: &Parked| !parked.is_held && parked.until.map_or(is_opened, |until| until <= now);
        let back: Vec<Item> = self
            .parked
            .extract_if(|_, parked| is_back(parked))
            .flat_map(|(_, parked)| parked.items)
            .collect();
        for item in back {
            self.put_back(item);
        }
    }

    /// Puts back into the line what of one domain was put by.
    pub(super) fn unpark_domain(&mut self, domain: &Domain) {
        for item in self
            .parked
            .remove(domain)
            .into_iter()
            .flat_map(|parked| parked.items)
        {
            self.put_back(item);
        }
    }

    /// The in-process jobs of an instance whose outcome waits for its turn.
    pub(super) fn reported_jobs(&self, domain: &Domain) -> Vec<ElementInstanceKey> {
        if !self.has(domain) {
            return Vec::new();
        }
        let parked = self
            .parked
            .get(domain)
            .into_iter()
            .flat_map(|parked| &parked.items);
        let of_domain = self.line.values().filter(|item| item.domain() == *domain);
        parked
            .chain(of_domain)
            .filter_map(|item| match item {
                Item::Stimulus(row) if Stimulus::is_job_outcome(&row.payload) => {
                    match minicbor::decode::<Stimulus>(&row.payload) {
                        Ok(Stimulus::JobOutcome { job, .. }) => Some(job),
                        _ => None,
                    }
                }
                Item::Stimulus(_) | Item::Timer(_) => None,
            })
            .collect()
    }

    /// Takes stimuli out of the line; their domains are still counted.
    pub(super) fn take_stimuli(&mut self, is_wanted: impl Fn(&StimulusRow) -> bool) -> Vec<StimulusRow> {
        let wanted = |item: &Item| matches!(item, Item::Stimulus(row) if is_wanted(row));
        let places = self.line.iter().filter(|(_, item)| wanted(item));
        let places: Vec<_> = places.map(|(place, _)| *place).collect();
        let taken = places.iter().filter_map(|place| self.line.remove(place));
        taken
            .filter_map(|item| match item {
                Item::Stimulus(row) => Some(row),
                Item::Timer(_) => None,
            })
            .collect()
    }

    /// How many stimuli of a domain wait.
    pub(super) fn count(&self, domain: &Domain) -> u32 {
        self.domains.get(domain).map_or(0, |waiting| waiting.count)
    }

    /// Takes everything of one domain out of the line.
    pub(super) fn take_domain(&mut self, domain: &Domain) -> Vec<Item> {
        if !self.has(domain) {
            return Vec::new();
        }
        let mut items = self
            .parked
            .remove(domain)
            .map_or(Vec::new(), |parked| parked.items);
        let places: Vec<_> = self
            .line
            .iter()
            .filter(|(_, item)| item.domain() == *domain)
            .map(|(place, _)| *place)
            .collect();
        items.extend(places.iter().filter_map(|place| self.line.remove(place)));
        for _ in &items {
            self.left(domain);
        }
        items
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

    #[test]
    fn a_clock_that_steps_back_does_not_change_the_order_of_a_domain() {
        let mut pending = Pending::default();
        for (key, at) in [(1, 50), (2, 10), (3, 20)] {
            pending.add(stimulus(key, at));
        }
        let order: Vec<_> = std::iter::from_fn(|| pending.pop())
            .map(|item| match item {
                Item::Stimulus(row) => row.key.get(),
                Item::Timer(row) => row.owner,
            })
            .collect();
        assert_eq!(order, [1, 2, 3]);
    }
}
