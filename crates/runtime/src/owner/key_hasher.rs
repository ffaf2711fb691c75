//! A hasher for keys that this program has made: every step of an instance looks itself up a few times.

use std::hash::Hasher;

/// Spreads one 64-bit key over the whole word, by a multiplication.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, key: u64) {
        // An odd number whose bits look random: 2^64 divided by the golden ratio. A table takes the place from the low
        // bits and a tag from the high ones, and the product is best in its high ones.
        self.0 = (self.0 ^ key).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::hash::{BuildHasher, BuildHasherDefault};

    use tidegate_model::{InstanceKey, KeyGenerator, Timestamp, id};

    use super::*;

    #[test]
    fn keys_of_one_moment_and_of_one_shard_are_spread() {
        let build = BuildHasherDefault::<KeyHasher>::default();
        let mut keys = Vec::new();
        for shard in 0..id::SHARDS {
            let mut generator = KeyGenerator::new(shard, 0);
            generator.observe(Timestamp::from_ms(1_800_000_000_000));
            keys.extend((0..16).map(|_| InstanceKey(generator.next_key())));
        }
        // As a table of as many places would see them: about 63 of 100 places are taken where chance spreads them.
        let places = keys.len().next_power_of_two() as u64;
        let hashes = || keys.iter().map(|key| build.hash_one(key));
        let taken: HashSet<u64> = hashes().map(|hash| hash % places).collect();
        assert!(taken.len() * 2 > keys.len(), "{} of {}", taken.len(), keys.len());
        let tags: HashSet<u64> = hashes().map(|hash| hash >> 57).collect();
        assert_eq!(tags.len(), 128);
    }
}
