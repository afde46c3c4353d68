//! About how many distinct values there are: HyperLogLog. Equal values have equal hashes wherever they are hashed
//! (`crate::partition`), and the order of values makes no difference, so all executors give one estimate.
//!
//! While few registers are set, only those are kept: a group of few values takes few bytes, one of many 16 KiB.

use crate::{
    Value,
    partition::{SEED, hash_value},
};

/// log2 of the number of registers: 16,384, for a standard error of 0.8 %.
const BITS: u32 = 14;
/// From this many set registers on, all are kept: then they take less than a list of those that are set.
const SPARSE: usize = 1 << (BITS - 3);

/// What is kept of the values met so far: for each register the longest run of leading zeros among the hashes that fall to it, plus
/// one.
#[derive(Clone, Debug)]
pub enum Sketch {
    /// The registers that are set, ascending, each before its rank.
    Sparse(Vec<(u16, u8)>),
    /// The rank of each register.
    Dense(Box<[u8; 1 << BITS]>),
}

impl Default for Sketch {
    fn default() -> Self {
        Sketch::Sparse(Vec::new())
    }
}

impl Sketch {
    /// Adds a value that is not null.
    pub fn add(&mut self, value: &Value) {
        self.add_hash(hash_value(SEED, value));
    }

    /// Adds the hash of a value.
    #[inline]
    pub fn add_hash(&mut self, hash: u64) {
        let (register, rank) = place(hash);
        self.raise(register, rank);
    }

    /// Adds the hashes of many values.
    pub fn add_hashes(&mut self, hashes: impl Iterator<Item = u64>) {
        let mut hashes = hashes;
        if matches!(self, Sketch::Sparse(_)) {
            for hash in hashes.by_ref() {
                self.add_hash(hash);
                if matches!(self, Sketch::Dense(_)) {
                    break;
                }
            }
        }
        if let Sketch::Dense(ranks) = self {
            for hash in hashes {
                let (register, rank) = place(hash);
                let known = &mut ranks[usize::from(register) & ((1 << BITS) - 1)];
                *known = rank.max(*known);
            }
        }
    }

    /// Raises a register to a rank.
    #[inline]
    fn raise(&mut self, register: u16, rank: u8) {
        match self {
            Sketch::Dense(ranks) => {
                let known = &mut ranks[usize::from(register)];
                *known = rank.max(*known);
            }
            Sketch::Sparse(set) => match set.binary_search_by_key(&register, |(register, _)| *register) {
                Ok(at) => set[at].1 = rank.max(set[at].1),
                Err(at) if set.len() < SPARSE => set.insert(at, (register, rank)),
                Err(_) => {
                    let mut ranks = Box::new([0; 1 << BITS]);
                    set.iter().for_each(|(register, rank)| ranks[usize::from(*register)] = *rank);
                    ranks[usize::from(register)] = rank;
                    *self = Sketch::Dense(ranks);
                }
            },
        }
    }

    /// Adds everything another sketch has seen.
    pub fn merge(&mut self, other: &Sketch) {
        match other {
            Sketch::Sparse(set) => set.iter().for_each(|(register, rank)| self.raise(*register, *rank)),
            Sketch::Dense(ranks) => {
                let set = ranks.iter().enumerate().filter(|(_, rank)| **rank > 0);
                set.for_each(|(register, rank)| self.raise(register as u16, *rank));
            }
        }
    }

    /// Estimates the number of distinct values.
    pub fn estimate(&self) -> i64 {
        let all = f64::from(1u32 << BITS);
        let (set, sum) = match self {
            Sketch::Sparse(set) => (set.len(), powers(set.iter().map(|(_, rank)| *rank))),
            Sketch::Dense(ranks) => {
                let set = ranks.iter().filter(|rank| **rank > 0);
                (set.clone().count(), powers(set.copied()))
            }
        };
        let empty = all - set as f64;
        let raw = 0.7213 / (1.0 + 1.079 / all) * all * all / (sum + empty);
        // While many registers are empty, their number tells more.
        let estimate = if raw <= 2.5 * all && empty > 0.0 { all * (all / empty).ln() } else { raw };
        estimate.round() as i64
    }

    /// Returns the bytes that the sketch takes on the heap.
    pub fn byte_len(&self) -> usize {
        match self {
            Sketch::Sparse(set) => set.capacity() * size_of::<(u16, u8)>(),
            Sketch::Dense(_) => 1 << BITS,
        }
    }
}

/// Returns the register that a hash falls to, and its rank there.
#[inline(always)]
fn place(hash: u64) -> (u16, u8) {
    // The bit that is set behind the hash bounds the run.
    ((hash >> (64 - BITS)) as u16, (hash << BITS | 1 << (BITS - 1)).leading_zeros() as u8 + 1)
}

/// Returns the sum of 2^−rank.
fn powers(ranks: impl Iterator<Item = u8>) -> f64 {
    ranks.map(|rank| (-f64::from(rank)).exp2()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_are_within_three_percent_and_do_not_depend_on_how_values_were_divided() {
        for distinct in [0i128, 1, 10, 400, 1000, 5000, 20_000, 300_000] {
            let mut whole = Sketch::default();
            let mut halves = [Sketch::default(), Sketch::default()];
            for number in 0..distinct * 2 {
                let value = Value::Integer(number % distinct);
                whole.add(&value);
                halves[(number % 2) as usize].add(&value);
            }
            let [mut first, second] = halves;
            first.merge(&second);
            assert_eq!(first.estimate(), whole.estimate());
            let mut at_once = Sketch::default();
            at_once.add_hashes((0..distinct).map(|number| hash_value(SEED, &Value::Integer(number))));
            assert_eq!(at_once.estimate(), whole.estimate());
            let error = (whole.estimate() as f64 - distinct as f64).abs() / (distinct as f64).max(1.0);
            assert!(error < 0.03, "{distinct} estimated as {}", whole.estimate());
            assert!(whole.byte_len() <= 1 << BITS);
        }
    }
}
