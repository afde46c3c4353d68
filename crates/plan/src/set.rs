//! Sets of integers as bits.

/// A set of integers: bit `i` stands for `min + i`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Set {
    /// What bit 0 stands for.
    pub min: i64,
    /// How many integers from `min` on are described; all others are outside.
    pub domain: u64,
    /// The bits, in bytes, with at least one byte behind the domain.
    pub bits: Vec<u8>,
}

impl Set {
    /// Makes an empty set of integers from `min` on, `domain` of them at most.
    pub fn new(min: i64, domain: usize) -> Set {
        Set { min, domain: domain as u64, bits: vec![0; domain / 8 + 1] }
    }

    /// Adds a member.
    #[inline]
    pub fn insert(&mut self, value: i64) {
        let i = value.wrapping_sub(self.min) as u64;
        debug_assert!(i < self.domain, "set value outside of its domain");
        self.bits[(i >> 3) as usize] |= 1 << (i & 7);
    }

    /// Tells whether an integer is a member.
    #[inline]
    pub fn contains(&self, value: i64) -> bool {
        let i = value.wrapping_sub(self.min) as u64;
        i < self.domain && (self.bits[(i >> 3) as usize] >> (i & 7)) & 1 == 1
    }

    /// Lists the members, smallest first.
    pub fn members(&self) -> impl Iterator<Item = i64> {
        self.bits.iter().enumerate().filter(|(_, bits)| **bits != 0).flat_map(move |(byte, bits)| {
            let of_byte = (0..8).filter(move |bit| bits >> bit & 1 == 1);
            of_byte.map(move |bit| self.min.wrapping_add((byte * 8 + bit) as i64))
        })
    }

    /// Returns the members from `low` to `low + last` as bits from `low` on.
    pub fn words(&self, low: i64, last: u64) -> Vec<u32> {
        let first = i128::from(low) - i128::from(self.min);
        let mut words = vec![0; (last >> 5) as usize + 1];
        // Only those that the set's own bits reach.
        let count = words.len() as i128;
        let from = (-first).div_euclid(32).clamp(0, count) as usize;
        let to = (self.bits.len() as i128 * 8 - first + 31).div_euclid(32).clamp(from as i128, count) as usize;
        for (at, word) in words.iter_mut().enumerate().take(to).skip(from) {
            *word = self.word(first + at as i128 * 32);
        }
        if let Some(word) = words.last_mut() {
            *word &= u32::MAX >> (31 - (last & 31));
        }
        words
    }

    /// Returns 32 bits from a place on; those before and behind all are 0.
    fn word(&self, place: i128) -> u32 {
        let within = usize::try_from(place >> 3).ok().and_then(|byte| self.bits.get(byte..)?.first_chunk());
        match within {
            Some(bytes) => (u64::from_le_bytes(*bytes) >> (place & 7)) as u32,
            None => (0..32).fold(0, |word, bit| {
                let byte = usize::try_from((place + bit) >> 3).ok().and_then(|byte| self.bits.get(byte));
                word | u32::from(byte.copied().unwrap_or(0) >> ((place + bit) & 7) & 1) << bit
            }),
        }
    }

    /// Counts the members.
    pub fn len(&self) -> usize {
        self.bits.iter().map(|b| b.count_ones() as usize).sum()
    }

    /// Tells whether there is no member.
    pub fn is_empty(&self) -> bool {
        self.bits.iter().all(|bits| *bits == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that look random, the same in every run.
    fn scramble(i: u64) -> u64 {
        (i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20
    }

    #[test]
    fn words_are_the_bits_of_members() {
        for (min, domain) in [(7i64, 0usize), (7, 1), (-5, 200), (i64::MIN, 100), (i64::MAX - 90, 91)] {
            let mut set = Set::new(min, domain);
            (0..domain as u64).filter(|i| scramble(*i).is_multiple_of(3)).for_each(|i| set.insert(min + i as i64));
            for low in (-70..130).map(|i| min.saturating_add(i)).chain([0, i64::MIN, i64::MAX - 300]) {
                for last in [0, 1, 30, 31, 32, 63, 64, 300] {
                    let last = last.min(i64::MAX.wrapping_sub(low) as u64);
                    let words = set.words(low, last);
                    assert_eq!(words.len() as u64, last / 32 + 1);
                    for i in 0..words.len() as u64 * 32 {
                        let member = i <= last && set.contains(low.wrapping_add(i as i64));
                        assert_eq!(
                            words[(i / 32) as usize] >> (i % 32) & 1 == 1,
                            member,
                            "{min} {domain} {low} {last} {i}"
                        );
                    }
                }
            }
        }
    }
}
