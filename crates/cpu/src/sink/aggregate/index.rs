//! A hash table from hashes to numbers, by linear probing. What a number stands for its owner knows.
//!
//! A slot holds the upper half of a hash and a number plus one; 0 is empty. Slots are in the order of hashes, but for collisions, so
//! that growing needs no key and moves slots in sequence.

/// The first slots.
const SMALLEST: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Index {
    slots: Vec<u64>,
    /// How far the upper half of a hash is shifted to give a slot.
    shift: u32,
    used: usize,
}

impl Index {
    /// Makes room for so many numbers, so that they are added without growing.
    pub(super) fn reserve(&mut self, numbers: usize) {
        if 2 * (self.used + numbers) > self.slots.len() {
            self.grow((2 * (self.used + numbers)).next_power_of_two().max(SMALLEST));
        }
    }

    /// Returns the number of a hash that `equal` accepts, or adds `next`; tells whether it did.
    #[inline(always)]
    pub(super) fn find_or_add(&mut self, hash: u64, next: u32, equal: impl Fn(u32) -> bool) -> (u32, bool) {
        if 2 * (self.used + 1) > self.slots.len() {
            self.grow((2 * self.slots.len()).max(SMALLEST));
        }
        let tag = hash >> 32;
        let mask = self.slots.len() - 1;
        let mut at = (tag >> self.shift) as usize & mask;
        loop {
            let slot = self.slots[at];
            if slot == 0 {
                self.slots[at] = tag << 32 | u64::from(next + 1);
                self.used += 1;
                return (next, true);
            }
            if slot >> 32 == tag && equal(slot as u32 - 1) {
                return (slot as u32 - 1, false);
            }
            at = (at + 1) & mask;
        }
    }

    #[cold]
    fn grow(&mut self, slots: usize) {
        let old = std::mem::replace(&mut self.slots, vec![0; slots]);
        self.shift = 32 - slots.trailing_zeros().min(32);
        let mask = slots - 1;
        for slot in old.into_iter().filter(|slot| *slot != 0) {
            let mut at = (slot >> 32 >> self.shift) as usize & mask;
            while self.slots[at] != 0 {
                at = (at + 1) & mask;
            }
            self.slots[at] = slot;
        }
    }

    pub(super) fn byte_len(&self) -> usize {
        self.slots.len() * 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::hash_word;

    #[test]
    fn numbers_are_found_again_after_growing_and_with_colliding_hashes() {
        for hash in [hash_word, |key| key & 1, |_| u64::MAX] {
            let mut index = Index::default();
            for round in 0..2 {
                for key in 0..3000u32 {
                    // A number is its key.
                    let (number, added) = index.find_or_add(hash(key.into()), key, |number| number == key);
                    assert_eq!((number, added), (key, round == 0));
                }
            }
        }
    }
}
