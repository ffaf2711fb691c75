//! Ids: positive 63-bit integers, roughly time-ordered, decimal strings in JSON.
//!
//! Layout, high to low: 41 bits of milliseconds since 2024-01-01, 10 bits of shard, 12 bits of sequence.

use std::fmt;
use std::str::FromStr;

use minicbor::{Decode, Encode};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Timestamp;

/// How many shards the id space has. Fixed for good: a shard is part of every id.
pub const SHARDS: u16 = 1024;

const SHARD_SHIFT: u32 = 12;
const TIME_SHIFT: u32 = 22;
/// 2024-01-01T00:00:00Z in milliseconds since the Unix epoch.
const ORIGIN_MS: i64 = 1_704_067_200_000;

/// What is wrong with a text that should be a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a key: expected a positive decimal number of at most 63 bits")]
pub struct InvalidKey(pub String);

macro_rules! key {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
        #[cbor(transparent)]
        pub struct $name(#[n(0)] pub u64);

        impl $name {
            /// The raw number.
            pub const fn get(self) -> u64 {
                self.0
            }

            /// The shard this key belongs to.
            pub const fn shard(self) -> u16 {
                shard_of(self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }

        impl FromStr for $name {
            type Err = InvalidKey;
            fn from_str(text: &str) -> Result<Self, InvalidKey> {
                parse(text).map($name)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

key!(
    /// A process instance.
    InstanceKey
);
key!(
    /// One activation of a flow node. It is also the key of the job or user task that the activation made.
    ElementInstanceKey
);
key!(
    /// One version of a process definition.
    DefinitionKey
);
key!(
    /// One deployment: one or more resources accepted together.
    DeploymentKey
);
key!(
    /// An incident.
    IncidentKey
);
key!(
    /// A published message.
    MessageKey
);
key!(
    /// An accepted stimulus. Keys of one shard grow in the order of acceptance.
    StimulusKey
);

impl ElementInstanceKey {
    /// The scope of the process itself, the parent of top-level elements.
    pub const ROOT: Self = Self(0);
}

/// A flow node of a definition: its position in document order. Stable for the bytes that were deployed.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode, Serialize, Deserialize,
)]
#[cbor(transparent)]
#[serde(transparent)]
pub struct ElementIndex(#[n(0)] pub u32);

impl ElementIndex {
    /// As an index into a slice.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The shard of a raw key.
pub const fn shard_of(key: u64) -> u16 {
    ((key >> SHARD_SHIFT) & (SHARDS as u64 - 1)) as u16
}

/// About when a raw key was made: keys run ahead of the clock only where many are made in one millisecond.
pub const fn made_at(key: u64) -> Timestamp {
    Timestamp::from_ms((key >> TIME_SHIFT) as i64 + ORIGIN_MS)
}

fn parse(text: &str) -> Result<u64, InvalidKey> {
    let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    match text.parse::<u64>() {
        Ok(key) if plain && key > 0 && key <= i64::MAX as u64 => Ok(key),
        _ => Err(InvalidKey(text.chars().take(40).collect())),
    }
}

/// Makes the keys of one shard. They only grow: a clock that steps back cannot repeat one.
///
/// A plain value, passed into the engine, so that the same input gives the same keys.
#[derive(Debug, Clone)]
pub struct KeyGenerator {
    shard: u16,
    last: u64,
}

impl KeyGenerator {
    /// A generator for `shard` whose keys are all above `floor`, the highest key known to have been used.
    pub fn new(shard: u16, floor: u64) -> Self {
        assert!(shard < SHARDS, "shard {shard} is outside the id space");
        Self { shard, last: floor }
    }

    /// Lets the time part catch up with `now`. Never moves backwards.
    pub fn observe(&mut self, now: Timestamp) {
        let ms = now.as_ms().saturating_sub(ORIGIN_MS).clamp(0, (1 << 41) - 1) as u64;
        let at_now = (ms << TIME_SHIFT) | (u64::from(self.shard) << SHARD_SHIFT);
        // One below, so that the first key of the millisecond has sequence 0.
        self.last = self.last.max(at_now.saturating_sub(1));
    }

    /// Lets the next key be above `key`, which may be of another shard.
    pub fn exceed(&mut self, key: u64) {
        self.last = self.last.max(key);
    }

    /// The next key of this shard.
    pub fn next_key(&mut self) -> u64 {
        let mut key = self.last + 1;
        if shard_of(key) != self.shard {
            // The sequence overflowed into a neighbour's shard, or the floor came from another shard.
            let shard_bits = u64::from(self.shard) << SHARD_SHIFT;
            let base = (key >> TIME_SHIFT) << TIME_SHIFT;
            key = base | shard_bits;
            if key <= self.last {
                key += 1 << TIME_SHIFT;
            }
        }
        self.last = key;
        key
    }

    /// The highest key made so far.
    pub fn high(&self) -> u64 {
        self.last
    }

    /// The shard whose keys this makes.
    pub fn shard(&self) -> u16 {
        self.shard
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_grow_and_keep_their_shard() {
        for shard in [0, 1, 511, 1023] {
            let mut keys = KeyGenerator::new(shard, 0);
            keys.observe(Timestamp::from_ms(1_800_000_000_000));
            let mut last = 0;
            for turn in 0..20_000 {
                if turn == 10_000 {
                    keys.observe(Timestamp::from_ms(1_700_000_000_000));
                }
                let key = keys.next_key();
                if turn == 0 {
                    assert_eq!(made_at(key), Timestamp::from_ms(1_800_000_000_000));
                }
                assert!(key > last && key <= i64::MAX as u64);
                assert_eq!(shard_of(key), shard);
                last = key;
            }
        }
    }

    #[test]
    fn keys_of_several_shards_can_be_made_in_one_order() {
        let mut generators = [9, 4, 7].map(|shard| KeyGenerator::new(shard, 0));
        let mut last = 0;
        for turn in 0..30 {
            // The clock steps back in the middle.
            let now = if turn < 15 {
                1_800_000_000_000
            } else {
                1_700_000_000_000
            };
            let keys = &mut generators[turn % 3];
            keys.observe(Timestamp::from_ms(now));
            keys.exceed(last);
            let key = keys.next_key();
            assert!(key > last, "{key} after {last}");
            assert_eq!(shard_of(key), keys.shard());
            last = key;
        }
    }

    #[test]
    fn a_generator_starts_above_its_floor() {
        let mut first = KeyGenerator::new(3, 0);
        first.observe(Timestamp::from_ms(1_900_000_000_000));
        let used = first.next_key();
        let mut second = KeyGenerator::new(3, used);
        second.observe(Timestamp::from_ms(1_700_000_000_000));
        assert!(second.next_key() > used);
    }

    #[test]
    fn texts_that_are_no_keys_are_refused() {
        for text in ["", "0", "-1", "+5", "abc", "9223372036854775808", "1.0", " 1"] {
            assert!(text.parse::<InstanceKey>().is_err(), "{text:?}");
        }
        assert_eq!("42".parse(), Ok(InstanceKey(42)));
    }
}
