//! What tells hashed groups apart: the parts of the numbers that stand for their keys.
//!
//! One number of at most 63 bits stands for keys that fit it. Keys of more bits take several numbers in a row, each with a hash
//! table of its own: a number's place in its table stands for it in the next one, and the last one's place is the group's. So a
//! place is taken by one exchange of 64 bits, whatever the keys are.

use tandem_pipeline::SlotId;
use tandem_plan::sink::GroupKey;

/// Bits of the only number: all ones stand for none.
const ONLY: u32 = 63;
/// Bits of one of several numbers: two words of 31 bits, for devices whose exchanges have 32.
const EACH: u32 = 62;
/// Bits of a place in a hash table.
pub const PLACE_BITS: u32 = 31;

/// A run of bits of what tells groups apart, and where it lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HashKey {
    /// What it says.
    pub of: KeyOf,
    /// How many of its bits lie below, in earlier runs.
    pub from: u32,
    /// How many bits there are.
    pub bits: u32,
    /// Which of the numbers has them.
    pub number: usize,
    /// How many bits of the number lie below.
    pub shift: u32,
}

/// What tells one group from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyOf {
    /// The place of a key's value.
    Place(GroupKey),
    /// The entry of a lookup, plus 1; 0 for none. It stands for all keys that are payload of it: groups may then be finer than
    /// asked for, until their keys' values are known.
    Entry(usize),
    /// The place of a text in a hash table of texts, plus 1; 0 for null.
    Text(SlotId),
    /// The lower 64 bits of a value (of a float: its bits); 0 for null.
    Low(SlotId),
    /// The higher 64 bits of a value of 128; 0 for null.
    High(SlotId),
    /// 1 for null.
    Null(SlotId),
}

impl HashKey {
    /// Lays parts of so many bits out in as few numbers as they take.
    pub fn lay_out(parts: &[(KeyOf, u32)]) -> Vec<HashKey> {
        let all: u32 = parts.iter().map(|(_, bits)| bits).sum();
        let most = if all <= ONLY { ONLY } else { EACH };
        let (mut number, mut shift) = (0, 0);
        let mut keys = Vec::with_capacity(parts.len());
        for &(of, bits) in parts {
            let mut from = 0;
            loop {
                let here = (bits - from).min(most - shift);
                if here > 0 || bits == 0 {
                    keys.push(HashKey { of, from, bits: here, number, shift });
                }
                (from, shift) = (from + here, shift + here);
                if from == bits {
                    break;
                }
                (number, shift) = (number + 1, PLACE_BITS);
            }
        }
        keys
    }

    /// Returns the bits of a number that it has.
    pub fn of_number(&self, number: u64) -> u64 {
        if self.bits == 0 { 0 } else { (number >> self.shift & self.mask()) << self.from }
    }

    /// Returns as many ones as it has bits, of which there are some.
    pub(crate) fn mask(&self) -> u64 {
        u64::MAX >> (64 - self.bits.clamp(1, 64))
    }

    /// Returns how many numbers some keys take.
    pub fn numbers(keys: &[HashKey]) -> usize {
        keys.iter().map(|key| key.number + 1).max().unwrap_or(1)
    }
}

#[cfg(test)]
mod tests {
    use super::{HashKey, KeyOf};

    #[test]
    fn what_fits_is_one_number() {
        let keys = HashKey::lay_out(&[(KeyOf::Entry(0), 3), (KeyOf::Entry(1), 0), (KeyOf::Entry(2), 60)]);
        let found: Vec<_> = keys.iter().map(|key| (key.from, key.bits, key.number, key.shift)).collect();
        assert_eq!(found, [(0, 3, 0, 0), (0, 0, 0, 3), (0, 60, 0, 3)]);
        assert_eq!(HashKey::numbers(&keys), 1);
    }

    #[test]
    fn what_does_not_fit_goes_on_in_the_next_number() {
        let keys = HashKey::lay_out(&[(KeyOf::Low(0), 64), (KeyOf::Null(0), 1), (KeyOf::Low(1), 64)]);
        let found: Vec<_> = keys.iter().map(|key| (key.of, key.from, key.bits, key.number, key.shift)).collect();
        let wanted = [
            (KeyOf::Low(0), 0, 62, 0, 0),
            (KeyOf::Low(0), 62, 2, 1, 31),
            (KeyOf::Null(0), 0, 1, 1, 33),
            (KeyOf::Low(1), 0, 28, 1, 34),
            (KeyOf::Low(1), 28, 31, 2, 31),
            (KeyOf::Low(1), 59, 5, 3, 31),
        ];
        assert_eq!(found, wanted);
        // All bits of a value come back.
        let value = 0xfedc_ba98_7654_3210u64;
        let numbers: Vec<u64> = (0..HashKey::numbers(&keys))
            .map(|number| {
                let runs = keys.iter().filter(|key| key.of == KeyOf::Low(1) && key.number == number);
                runs.fold(0x7fff_ffff, |all, key| all | (value >> key.from & key.mask()) << key.shift)
            })
            .collect();
        let runs = keys.iter().filter(|key| key.of == KeyOf::Low(1));
        assert_eq!(runs.fold(0, |all, key| all | key.of_number(numbers[key.number])), value);
    }
}
