//! Keys of several columns or of text: hashed and compared where they lie, column by column, nothing written out.
//!
//! A hash has 64 bits, each of which depends on all of a key's: tables take the upper ones, partitions the lowest, so that the keys
//! of a partition spread over a table of their own.

use std::rc::Rc;

use tandem_column::{Code, Column, Data, with_codes};

use crate::{Values, Vector, parallel::prefetch, vector::word};

const FIRST: u64 = 0x243F_6A88_85A3_08D3;
const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
const OTHER: u64 = 0xD6E8_FEB8_6659_FD93;
const NULL: u64 = 0xA409_3822_299F_31D0;

/// Multiplies to 128 bits and folds the halves.
#[inline(always)]
fn fold(left: u64, right: u64) -> u64 {
    let product = u128::from(left) * u128::from(right);
    product as u64 ^ (product >> 64) as u64
}

/// Hashes a number.
#[inline(always)]
pub(crate) fn hash_word(word: u64) -> u64 {
    fold(FIRST ^ word, FACTOR)
}

/// Hashes text or bytes.
#[inline]
pub(crate) fn hash_text(bytes: &[u8]) -> u64 {
    let (mut hash, mut rest) = (FIRST ^ bytes.len() as u64, bytes);
    while rest.len() > 16 {
        let (low, high) = (eight(rest, 0), eight(rest, 8));
        hash = fold(hash ^ low, high ^ OTHER);
        rest = &rest[16..];
    }
    // The last bytes as two words that may overlap.
    let (low, high) = match rest.len() {
        8.. => (eight(rest, 0), eight(rest, rest.len() - 8)),
        4.. => (four(rest, 0), four(rest, rest.len() - 4)),
        0 => (0, 0),
        length => (u64::from(rest[0]) << 8 | u64::from(rest[length / 2]), u64::from(rest[length - 1])),
    };
    fold(hash ^ low, high ^ OTHER)
}

#[inline(always)]
fn eight(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

#[inline(always)]
fn four(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |bytes| u32::from_le_bytes(*bytes).into())
}

/// Hashes the keys of rows `first .. first + out.len()`; equal keys have equal hashes, however their columns are encoded.
pub(crate) fn hash_rows(keys: &[&Vector], first: usize, out: &mut [u64]) {
    out.fill(FIRST);
    for key in keys {
        let rows = first..first + out.len();
        let before = key.valid.as_ref().map(|valid| (valid, out.to_vec()));
        match &key.values {
            Values::Boolean(values) => add(out, values[rows.clone()].iter().map(|value| u64::from(*value))),
            Values::Int(values) => add(out, values[rows.clone()].iter().map(|value| *value as u64)),
            Values::Wide(values) => {
                add(
                    out,
                    values[rows.clone()]
                        .iter()
                        .map(|value| fold(*value as u64 ^ FACTOR, (*value >> 64) as u64 ^ OTHER)),
                );
            }
            Values::Float(values) => add(out, values[rows.clone()].iter().map(|value| value.to_bits())),
            Values::Code { codes, dictionary } if dictionary.len() < out.len() => {
                let words: Vec<u64> =
                    (0..dictionary.len() as u32).map(|code| hash_text(word(dictionary, code))).collect();
                let empty = hash_text(&[]);
                add(out, codes[rows.clone()].iter().map(|code| words.get(*code as usize).copied().unwrap_or(empty)));
            }
            Values::Code { codes, dictionary } => {
                add(out, codes[rows.clone()].iter().map(|code| hash_text(word(dictionary, *code))));
            }
            Values::Bytes(values) => add(out, rows.clone().map(|row| hash_text(values.get(row)))),
        }
        if let Some((valid, before)) = before {
            for ((hash, before), valid) in out.iter_mut().zip(before).zip(&valid[rows]) {
                if *valid == 0 {
                    *hash = fold(before ^ NULL, FACTOR);
                }
            }
        }
    }
}

#[inline(always)]
fn add(out: &mut [u64], values: impl Iterator<Item = u64>) {
    for (hash, value) in out.iter_mut().zip(values) {
        *hash = fold(*hash ^ value, FACTOR);
    }
}

/// Asks for the cache lines of the keys of some entries.
pub(crate) fn prefetch_keys(columns: &[impl AsRef<Column>], entries: &[u32]) {
    for column in columns {
        match &column.as_ref().data {
            Data::Int { codes, .. } | Data::Dictionary { codes, .. } => {
                with_codes!(codes, c => entries.iter().for_each(|entry| prefetch(c, *entry as usize)));
            }
            Data::Wide(values) => entries.iter().for_each(|entry| prefetch(values, *entry as usize)),
            Data::Float32(values) => entries.iter().for_each(|entry| prefetch(values, *entry as usize)),
            Data::Float64(values) => entries.iter().for_each(|entry| prefetch(values, *entry as usize)),
            Data::Bytes { offsets, bytes } => {
                entries.iter().for_each(|entry| prefetch(offsets, *entry as usize));
                entries.iter().for_each(|entry| prefetch(bytes, offsets[*entry as usize] as usize));
            }
            Data::Remote(_) => {}
        }
    }
}

/// Clears the flags of those pairs of an entry and a row whose keys differ. Null equals null.
pub(crate) fn keep_equal(
    columns: &[impl AsRef<Column>],
    keys: &[Rc<Vector>],
    pairs: (&[u32], &[u32]),
    equal: &mut [u8],
) {
    for (column, key) in columns.iter().zip(keys) {
        let column = column.as_ref();
        if column.validity.is_some() || key.valid.is_some() {
            // Null rows hold any value: they are told from others first, and of two null rows nothing else is asked.
            keep_if(pairs, equal, |entry, row| match (column.is_valid(entry), key.is_valid(row)) {
                (true, true) => same(column, key, entry, row),
                (left, right) => left == right,
            });
            continue;
        }
        match (&column.data, &key.values) {
            (Data::Int { base, codes }, Values::Int(values)) => {
                with_codes!(codes, c => keep_if(pairs, equal, |entry, row| {
                    base.wrapping_add(c[entry].widen() as i64) == values[row]
                }));
            }
            (Data::Bytes { offsets, bytes }, Values::Bytes(values)) => {
                let text = |entry: usize| &bytes[offsets[entry] as usize..offsets[entry + 1] as usize];
                keep_if(pairs, equal, |entry, row| text(entry) == values.get(row));
            }
            _ => keep_if(pairs, equal, |entry, row| same(column, key, entry, row)),
        }
    }
}

#[inline(always)]
fn keep_if((entries, rows): (&[u32], &[u32]), equal: &mut [u8], same: impl Fn(usize, usize) -> bool) {
    for ((entry, row), equal) in entries.iter().zip(rows).zip(equal) {
        *equal &= same(*entry as usize, *row as usize) as u8;
    }
}

/// Tells whether an entry and a row, neither null, have the same key.
fn same(column: &Column, key: &Vector, entry: usize, row: usize) -> bool {
    match &key.values {
        Values::Boolean(values) => column.int(entry) == i64::from(values[row]),
        Values::Int(values) => column.int(entry) == values[row],
        Values::Wide(values) => column.wide(entry) == values[row],
        Values::Float(values) => column.float(entry).to_bits() == values[row].to_bits(),
        Values::Code { codes, dictionary } => match &column.data {
            Data::Dictionary { codes: others, dictionary: other } if std::sync::Arc::ptr_eq(dictionary, other) => {
                others.get(entry) == u64::from(codes[row])
            }
            _ => column.bytes_at(entry) == word(dictionary, codes[row]),
        },
        Values::Bytes(values) => column.bytes_at(entry) == values.get(row),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_all_lengths_have_hashes_of_their_own() {
        let text: Vec<u8> = (0..100u8).collect();
        let mut hashes: Vec<u64> = (0..=100).map(|length| hash_text(&text[..length])).collect();
        for length in 1..=100 {
            for at in 0..length {
                let mut other = text[..length].to_vec();
                other[at] ^= 0x40;
                hashes.push(hash_text(&other));
            }
        }
        let count = hashes.len();
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), count);
    }

    #[test]
    fn numbers_spread_over_partitions_and_tables() {
        for stride in [1u64, 8, 1 << 20, 1 << 32, 1 << 40] {
            let (mut low, mut high) = ([0; 256], [0; 256]);
            for hash in (0..1u64 << 16).map(|i| hash_word(i * stride)) {
                low[hash as usize & 255] += 1;
                high[(hash >> 56) as usize] += 1;
            }
            let even = |counts: &[i32; 256]| counts.iter().all(|count| (128..512).contains(count));
            assert!(even(&low) && even(&high), "numbers {stride} apart: {low:?} {high:?}");
        }
    }
}
