//! Which partition a row belongs to. It is a part of the language, so that rows of equal keys meet in one partition
//! wherever they were divided: by the interpreter, by any executor, on any machine.
//!
//! A row's hash starts from [`SEED`] and takes its keys in, one after the other. Equal keys, in the sense of grouping, give
//! equal hashes: null equals null, floats are their bits, numbers of all widths are the same number.

use crate::Value;

/// The hash of no keys.
pub const SEED: u64 = 0x9E37_79B9_7F4A_7C15;

/// Takes a null in.
#[inline]
pub fn hash_null(hash: u64) -> u64 {
    mix(hash ^ 0xA076_1D64_78BD_642F)
}

/// Takes an integer of 64 bits in; booleans are 0 and 1, floats the bits of their double precision.
#[inline]
pub fn hash_integer(hash: u64, value: i64) -> u64 {
    mix(hash.rotate_left(5) ^ value as u64)
}

/// Takes an integer of 128 bits in: one that fits 64 bits as that.
#[inline]
pub fn hash_wide(hash: u64, value: i128) -> u64 {
    match i64::try_from(value) {
        Ok(value) => hash_integer(hash, value),
        Err(_) => hash_integer(hash_integer(hash, value as i64), (value >> 64) as i64),
    }
}

/// Takes text or bytes in.
pub fn hash_bytes(hash: u64, bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let hash = words
        .iter()
        .fold(hash_integer(hash, bytes.len() as i64), |hash, word| hash_integer(hash, i64::from_le_bytes(*word)));
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    hash_integer(hash, i64::from_le_bytes(last))
}

/// Takes a value in.
pub fn hash_value(hash: u64, value: &Value) -> u64 {
    match value {
        Value::Null => hash_null(hash),
        Value::Boolean(value) => hash_integer(hash, (*value).into()),
        Value::Integer(value) => hash_wide(hash, *value),
        Value::Float(value) => hash_integer(hash, value.to_bits() as i64),
        Value::String(text) => hash_bytes(hash, text.as_bytes()),
        Value::Binary(bytes) => hash_bytes(hash, bytes),
        Value::Interval { months, days, nanoseconds } => {
            hash_integer(hash_integer(hash_integer(hash, (*months).into()), (*days).into()), *nanoseconds)
        }
        Value::List(values) => values.iter().fold(hash_integer(hash, values.len() as i64), hash_value),
    }
}

/// Returns the partition, of so many, that a hash belongs to.
#[inline]
pub fn part(hash: u64, parts: usize) -> usize {
    ((u128::from(hash) * parts as u128) >> 64) as usize
}

/// Returns the partition, of so many, that a row with these keys belongs to.
pub fn part_of(keys: &[Value], parts: usize) -> usize {
    part(keys.iter().fold(SEED, hash_value), parts)
}

#[inline]
fn mix(hash: u64) -> u64 {
    let hash = (hash ^ hash >> 32).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    let hash = (hash ^ hash >> 32).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    hash ^ hash >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_spread_evenly_and_numbers_of_any_width_meet() {
        let mut counts = [0; 7];
        (0..7000).for_each(|i| counts[part_of(&[Value::Integer(i), Value::Null], 7)] += 1);
        assert!(counts.iter().all(|count| (850..1150).contains(count)), "{counts:?}");
        assert_eq!(hash_wide(SEED, -5), hash_integer(SEED, -5));
        assert_ne!(hash_wide(SEED, 1 << 64), hash_wide(SEED, 2 << 64));
        assert_ne!(hash_bytes(SEED, b"a"), hash_bytes(SEED, b"a\0"));
    }
}
