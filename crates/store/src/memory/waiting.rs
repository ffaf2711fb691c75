//! Open subscriptions, found by what they wait for: a message or signal costs as much as it has takers, however many
//! others wait.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use tidegate_model::{ElementIndex, ElementInstanceKey, InstanceKey};

use crate::row::{Awaited, SubscriptionRow};

/// What is waited for: a message by tenant, name and correlation key, or a signal by tenant and name.
type Wanted = (bool, Arc<str>, Arc<str>, String);

/// The open subscriptions, each with a number that grows.
#[derive(Default)]
pub(super) struct Waiting {
    last: u64,
    rows: BTreeMap<u64, SubscriptionRow>,
    by_owner: HashMap<(ElementInstanceKey, ElementIndex), u64>,
    by_wanted: HashMap<Wanted, BTreeSet<u64>>,
}

fn wanted(awaited: Awaited, tenant: &Arc<str>, name: &Arc<str>, correlation_key: &str) -> Wanted {
    let is_signal = awaited == Awaited::Signal;
    let correlation_key = if is_signal { "" } else { correlation_key };
    (
        is_signal,
        tenant.clone(),
        name.clone(),
        correlation_key.to_owned(),
    )
}

fn wanted_by(row: &SubscriptionRow) -> Wanted {
    wanted(row.awaited, &row.tenant, &row.message_name, &row.correlation_key)
}

impl Waiting {
    /// In the place of one of the same owner and element.
    pub fn open(&mut self, row: SubscriptionRow) {
        self.close(row.owner, row.element);
        self.last += 1;
        self.by_owner.insert((row.owner, row.element), self.last);
        self.by_wanted
            .entry(wanted_by(&row))
            .or_default()
            .insert(self.last);
        self.rows.insert(self.last, row);
    }

    /// The subscription of an owner and element, if there is one.
    pub fn close(&mut self, owner: ElementInstanceKey, element: ElementIndex) {
        if let Some(number) = self.by_owner.get(&(owner, element)) {
            self.take(*number);
        }
    }

    /// Every one of an instance.
    pub fn close_all_of(&mut self, instance: InstanceKey) {
        let of_it = self.rows.iter().filter(|(_, row)| row.instance == instance);
        let numbers: Vec<u64> = of_it.map(|(number, _)| *number).collect();
        for number in numbers {
            self.take(number);
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// One by its number.
    pub fn take(&mut self, number: u64) -> Option<SubscriptionRow> {
        let row = self.rows.remove(&number)?;
        self.by_owner.remove(&(row.owner, row.element));
        let wanted = wanted_by(&row);
        if let Some(numbers) = self.by_wanted.get_mut(&wanted) {
            numbers.remove(&number);
            if numbers.is_empty() {
                self.by_wanted.remove(&wanted);
            }
        }
        Some(row)
    }

    /// Those that wait for this, the one opened first before the others.
    pub fn takers<'a>(
        &'a self,
        awaited: Awaited,
        tenant: &Arc<str>,
        name: &str,
        correlation_key: &str,
    ) -> impl Iterator<Item = (u64, &'a SubscriptionRow)> + use<'a> {
        let numbers = self
            .by_wanted
            .get(&wanted(awaited, tenant, &Arc::from(name), correlation_key));
        let numbers = numbers.into_iter().flatten();
        numbers.filter_map(|number| Some((*number, self.rows.get(number)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(owner: u64, key: &str) -> SubscriptionRow {
        SubscriptionRow {
            awaited: Awaited::Message,
            owner: ElementInstanceKey(owner),
            element: ElementIndex(1),
            instance: InstanceKey(owner),
            process_id: "p".into(),
            tenant: "t".into(),
            message_name: "m".into(),
            correlation_key: key.to_owned(),
            once: true,
        }
    }

    fn owners(waiting: &Waiting, key: &str) -> Vec<u64> {
        let takers = waiting.takers(Awaited::Message, &"t".into(), "m", key);
        takers.map(|(_, row)| row.owner.get()).collect()
    }

    #[test]
    fn e10_e12_takers_are_found_without_looking_at_others_and_each_waits_once() {
        let mut waiting = Waiting::default();
        for owner in 1..=1_000 {
            waiting.open(row(owner, &format!("k{}", owner % 500)));
        }
        assert_eq!(owners(&waiting, "k7"), [7, 507]);
        // Registered twice it waits once, for what it said last, and behind those that were there.
        waiting.open(row(7, "k8"));
        waiting.open(row(7, "k8"));
        assert_eq!(
            (owners(&waiting, "k7"), owners(&waiting, "k8")),
            (vec![507], vec![8, 508, 7])
        );
        waiting.close(ElementInstanceKey(7), ElementIndex(1));
        waiting.close(ElementInstanceKey(7), ElementIndex(1));
        assert_eq!(owners(&waiting, "k8"), [8, 508]);
        for owner in 1..=1_000 {
            waiting.close(ElementInstanceKey(owner), ElementIndex(1));
        }
        assert!(waiting.rows.is_empty() && waiting.by_owner.is_empty() && waiting.by_wanted.is_empty());
    }
}
