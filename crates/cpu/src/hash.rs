//! Hashes of values: 64 bits, each of which depends on all of a value's. Tables take the upper half of a hash, partitions its
//! lowest bits, so that the keys of a partition spread over a table of their own.

use crate::{Values, Vector};

/// Odd numbers without a pattern, from the digits of the golden ratio and of pi.
const FIRST: u64 = 0x9E37_79B9_7F4A_7C15;
const SECOND: u64 = 0x2437_54A3_D313_1985;
/// What a null hashes as.
const NULL: u64 = 0x13A5_9D15_7C6E_4B2B;

/// Multiplies to 128 bits and folds the halves: each half alone would leave bits that depend on few others.
#[inline(always)]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// Hashes a number.
#[inline(always)]
pub(crate) fn hash_word(word: u64) -> u64 {
    fold(word ^ SECOND, FIRST)
}

/// Adds a number to the hash of what came before it.
#[inline(always)]
fn hash_next(hash: u64, word: u64) -> u64 {
    fold(hash.rotate_left(23) ^ word ^ SECOND, FIRST)
}

/// Hashes bytes: sixteen at a time, the last ones overlapping.
#[inline]
pub(crate) fn hash_text(bytes: &[u8]) -> u64 {
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    let half = |at: usize| u64::from(u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes")));
    let length = bytes.len();
    let mut hash = FIRST ^ length as u64;
    let (a, b) = match length {
        0 => (0, 0),
        1..=3 => (u64::from(bytes[0]) << 16 | u64::from(bytes[length / 2]) << 8 | u64::from(bytes[length - 1]), 0),
        4..=7 => (half(0), half(length - 4)),
        8..=16 => (word(0), word(length - 8)),
        _ => {
            let mut at = 0;
            while at + 16 < length {
                hash = fold(word(at) ^ FIRST, word(at + 8) ^ hash);
                at += 16;
            }
            (word(length - 16), word(length - 8))
        }
    };
    hash_next(fold(a ^ FIRST, b ^ hash), hash)
}

/// Hashes the rows of several columns together. Equal rows have equal hashes, also where one has codes and the other text.
pub(crate) fn hash_rows<'v>(vectors: impl IntoIterator<Item = &'v Vector>, rows: usize) -> Vec<u64> {
    let mut hashes = vec![0; rows];
    for vector in vectors {
        let hashes = &mut hashes[..];
        match &vector.values {
            Values::Boolean(values) => add(hashes, vector, |row| values[row].into()),
            Values::Int(values) => add(hashes, vector, |row| values[row] as u64),
            Values::Wide(values) => {
                add(hashes, vector, |row| values[row] as u64 ^ hash_word((values[row] >> 64) as u64))
            }
            Values::Float(values) => add(hashes, vector, |row| values[row].to_bits()),
            Values::Code { .. } | Values::Bytes(_) => add(hashes, vector, |row| hash_text(vector.values.bytes(row))),
        }
    }
    hashes
}

#[inline(always)]
fn add(hashes: &mut [u64], vector: &Vector, word: impl Fn(usize) -> u64) {
    match &vector.valid {
        None => hashes.iter_mut().enumerate().for_each(|(row, hash)| *hash = hash_next(*hash, word(row))),
        Some(valid) => hashes.iter_mut().enumerate().for_each(|(row, hash)| {
            *hash = hash_next(*hash, if valid[row] == 0 { NULL } else { word(row) });
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn texts_of_all_lengths_differ_in_both_halves() {
        let text: Vec<u8> = (0..200u8).collect();
        let mut hashes: Vec<u64> = (0..text.len()).map(|length| hash_text(&text[..length])).collect();
        // A change of any one byte changes the hash.
        for length in 1..64 {
            for at in 0..length {
                let mut changed = text[..length].to_vec();
                changed[at] ^= 1;
                hashes.push(hash_text(&changed));
            }
        }
        let distinct = |of: &dyn Fn(&u64) -> u64| hashes.iter().map(of).collect::<HashSet<_>>().len();
        assert_eq!(distinct(&|hash| *hash), hashes.len());
        assert!(distinct(&|hash| hash >> 32) + 4 >= hashes.len(), "the upper half tells them apart");
    }

    #[test]
    fn numbers_spread_over_partitions_and_tables() {
        for stride in [1u64, 8, 1 << 20, 1 << 32, 1 << 40] {
            let hashes = || (0..1u64 << 16).map(|i| hash_word(i * stride));
            let (mut low, mut high) = ([0; 256], [0; 256]);
            hashes().for_each(|hash| (low[hash as usize & 255] += 1, high[(hash >> 56) as usize] += 1).0);
            let even = |counts: &[i32; 256]| counts.iter().all(|count| (128..512).contains(count));
            assert!(even(&low) && even(&high), "numbers {stride} apart: {low:?} {high:?}");
        }
    }
}
