//! The registry: what lives by a permit, by name. It answers "which?" where the gate answers "how many?", without a
//! store and without asking those who are in it.

use crate::gate::Permit;
use crate::sync::{Arc, Mutex};

/// The live cycles of a shell. Clones are the same registry.
///
/// Each shard has a lock of its own: whoever always uses one shard never meets another.
#[derive(Debug)]
pub struct Registry<T> {
    shards: Arc<Vec<Mutex<Shard<T>>>>,
}

impl<T> Clone for Registry<T> {
    fn clone(&self) -> Self {
        Self {
            shards: self.shards.clone(),
        }
    }
}

#[derive(Debug)]
struct Shard<T> {
    slots: Vec<Option<T>>,
    free: Vec<usize>,
}

impl<T> Default for Shard<T> {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<T> Registry<T> {
    /// An empty registry of `shards` shards, at least one.
    pub fn new(shards: usize) -> Self {
        Self {
            shards: Arc::new((0..shards.max(1)).map(|_| Mutex::default()).collect()),
        }
    }

    /// Makes something live of a permit. The entry is in the registry for as long as the permit is held, and never
    /// longer.
    pub fn enter(&self, shard: usize, permit: Permit, entry: T) -> Live<T> {
        let shard = shard % self.shards.len();
        let slot = self.shards[shard].with(|shard| match shard.free.pop() {
            Some(slot) => {
                shard.slots[slot] = Some(entry);
                slot
            }
            None => {
                shard.slots.push(Some(entry));
                shard.slots.len() - 1
            }
        });
        Live {
            registry: self.clone(),
            shard,
            slot,
            _permit: permit,
        }
    }

    /// How many are in it.
    pub fn len(&self) -> usize {
        self.shards
            .iter()
            .map(|shard| shard.with(|shard| shard.slots.len() - shard.free.len()))
            .sum()
    }

    /// True if nothing is live.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T: Clone> Registry<T> {
    /// What is live now.
    pub fn list(&self) -> Vec<T> {
        let mut all = Vec::new();
        for shard in self.shards.iter() {
            shard.with(|shard| all.extend(shard.slots.iter().flatten().cloned()));
        }
        all
    }
}

/// A permit that is registered. Dropping it takes the entry out, then gives the permit back.
#[derive(Debug)]
pub struct Live<T> {
    registry: Registry<T>,
    shard: usize,
    slot: usize,
    // Dropped after `drop` has taken the entry out.
    _permit: Permit,
}

impl<T> Drop for Live<T> {
    fn drop(&mut self) {
        let gone = self.registry.shards[self.shard].with(|shard| {
            shard.free.push(self.slot);
            shard.slots[self.slot].take()
        });
        // Outside of the lock: what it does when it is dropped is its own affair.
        drop(gone);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::Gate;

    #[test]
    fn q08_the_registry_and_the_count_agree() {
        let gate = Gate::new();
        let registry = Registry::new(2);
        let enter = |n: usize| registry.enter(n, gate.admit().unwrap(), n);
        let mut live: Vec<_> = (0..5).map(enter).collect();
        assert_eq!((registry.len(), gate.read().live()), (5, 5));
        live.remove(1);
        live.remove(0);
        live.push(enter(7));
        let mut listed = registry.list();
        listed.sort_unstable();
        assert_eq!(listed, [2, 3, 4, 7]);
        assert_eq!(gate.read().live(), 4);
        live.clear();
        assert!(registry.is_empty());
        assert_eq!(gate.read().live(), 0);
    }
}
