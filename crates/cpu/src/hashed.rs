//! Looking keys up in a build's hash table, a block of rows at a time.
//!
//! A look-up touches a word of the directory, then the bucket's values, then, of keys that do not fit 64 bits, the key
//! columns. Each of these may be far away, so a block of rows takes one of these steps after the other, and asks for the
//! memory of the next while it is at one: the CPU waits for many at once. Rows whose hash the bucket's filter does not
//! know end at the first.

use std::{cmp::Ordering, rc::Rc, sync::Arc};

use tandem_column::Column;
use tandem_plan::{HashTable, Keys, Packed, spread};

use crate::{
    Vector,
    frame::fetch_matches,
    hash::{hash_rows, keep_equal, prefetch_keys},
    lookup::{Asked, ints, write_key},
    parallel::prefetch,
};

/// Rows of a block: what they ask for stays in the first level of the cache.
const BLOCK: usize = 256;

/// Entries of a bucket that are looked at one after the other; more are searched by halves.
const FEW: u32 = 32;

/// A row that may have a match, and where.
#[derive(Clone, Copy, Default)]
struct Candidate {
    row: u32,
    start: u32,
    end: u32,
}

/// Finds the entries of each row's key: a range, empty where there is no match.
pub(crate) fn find(table: &HashTable, keys: &[Rc<Vector>], rows: usize, asked: Asked) -> Vec<(u32, u32)> {
    let (values, mut present) = match &table.keys {
        Keys::Packed(packing) => pack_rows(packing, keys, rows),
        Keys::Columns { .. } => {
            let references: Vec<&Vector> = keys.iter().map(Rc::as_ref).collect();
            let mut hashes = vec![0; rows];
            if !table.collide {
                hash_rows(&references, 0, &mut hashes);
            }
            (hashes, None)
        }
    };
    if !asked.null_equals_null {
        for valid in keys.iter().filter_map(|key| key.valid.as_ref()) {
            let present = present.get_or_insert_with(|| vec![1; rows]);
            present.iter_mut().zip(valid).for_each(|(present, valid)| *present &= (*valid != 0) as u8);
        }
    }
    // The first entry of a hash stands for all of them only if they have one key.
    let first = asked.first && !matches!(table.keys, Keys::Columns { exact: false, .. });
    let mut found = vec![(0, 0); rows];
    let mut candidates = [Candidate::default(); BLOCK];
    let packed = matches!(table.keys, Keys::Packed(_));
    for begin in (0..rows).step_by(BLOCK) {
        let block = begin..rows.min(begin + BLOCK);
        let present = present.as_ref().map(|present| &present[block.clone()]);
        let values = &values[block];
        let kept = match packed {
            true => filter(table, values, present, spread, &mut candidates),
            false => filter(table, values, present, |hash| hash, &mut candidates),
        };
        let candidates = &mut candidates[..kept];
        for candidate in candidates.iter_mut() {
            let value = values[candidate.row as usize];
            (candidate.start, candidate.end) = equal_range(&table.values, *candidate, value, first);
            candidate.row += begin as u32;
        }
        if let Keys::Columns { columns, exact } = &table.keys {
            compare(columns, *exact, keys, candidates);
        }
        candidates.iter().for_each(|candidate| found[candidate.row as usize] = (candidate.start, candidate.end));
    }
    found
}

/// Lists the rows of a block whose hash may be in its bucket; returns how many. Their values are on the way.
#[inline(always)]
fn filter(
    table: &HashTable,
    values: &[u64],
    present: Option<&[u8]>,
    hash: impl Fn(u64) -> u64,
    candidates: &mut [Candidate; BLOCK],
) -> usize {
    let (bits, directory) = (table.bits(), table.directory.as_slice());
    let mut buckets = [0u32; BLOCK];
    for (bucket, value) in buckets.iter_mut().zip(values) {
        let at = HashTable::bucket(hash(*value), bits);
        *bucket = at as u32;
        prefetch(directory, at);
    }
    let mut kept = 0;
    for (row, (value, bucket)) in values.iter().zip(&buckets).enumerate() {
        let (word, next) = (directory[*bucket as usize], directory[*bucket as usize + 1]);
        let wanted = HashTable::filter(hash(*value), bits);
        let candidate = Candidate { row: row as u32, start: word as u32, end: next as u32 };
        candidates[kept] = candidate;
        // No branch: whether a row has a match is mostly hard to predict.
        let known = (word >> 32) as u32 & wanted == wanted;
        kept += (known & present.is_none_or(|present| present[row] != 0)) as usize;
    }
    candidates[..kept].iter().for_each(|candidate| prefetch(&table.values, candidate.start as usize));
    kept
}

/// Returns the entries of a bucket that have a value.
#[inline(always)]
fn equal_range(values: &[u64], bucket: Candidate, value: u64, first: bool) -> (u32, u32) {
    let Candidate { mut start, end, .. } = bucket;
    if end - start > FEW {
        // A crowded bucket (many equal keys, or forced collisions) is searched by halves: it is sorted by value.
        start += values[start as usize..end as usize].partition_point(|other| *other < value) as u32;
    } else {
        while start < end && values[start as usize] < value {
            start += 1;
        }
    }
    let mut last = start;
    while last < end && values[last as usize] == value {
        last += 1;
        if first {
            break;
        }
    }
    (start, last)
}

/// Keeps, of entries with a row's hash, those with its key.
fn compare(columns: &[Arc<Column>], exact: bool, keys: &[Rc<Vector>], candidates: &mut [Candidate]) {
    if !exact {
        return candidates.iter_mut().for_each(|candidate| {
            (candidate.start, candidate.end) = equal_keys(columns, keys, *candidate);
        });
    }
    let (mut entries, mut rows) = ([0; BLOCK], [0; BLOCK]);
    let mut equal = [0u8; BLOCK];
    for (at, candidate) in candidates.iter().enumerate() {
        // Of no entry, any will do.
        let some = candidate.start < candidate.end;
        (entries[at], rows[at], equal[at]) = (if some { candidate.start } else { 0 }, candidate.row, some as u8);
    }
    let count = candidates.len();
    prefetch_keys(columns, &entries[..count]);
    keep_equal(columns, keys, (&entries[..count], &rows[..count]), &mut equal[..count]);
    for (candidate, equal) in candidates.iter_mut().zip(equal) {
        if equal == 0 {
            candidate.end = candidate.start;
        }
    }
}

/// Returns the entries that have a row's key, of those with its hash, which are in the order of their keys.
fn equal_keys(columns: &[Arc<Column>], keys: &[Rc<Vector>], candidate: Candidate) -> (u32, u32) {
    let references: Vec<&Vector> = keys.iter().map(Rc::as_ref).collect();
    let mut wanted = Vec::new();
    write_key(&references, candidate.row as usize, &mut wanted);
    let first_not = |mut low: u32, before: &dyn Fn(Ordering) -> bool| {
        let mut high = candidate.end;
        while low < high {
            let middle = low + (high - low) / 2;
            if before(written(columns, middle).as_slice().cmp(&wanted)) { low = middle + 1 } else { high = middle }
        }
        low
    };
    let start = first_not(candidate.start, &|order| order.is_lt());
    (start, first_not(start, &|order| order.is_le()))
}

/// Writes an entry's key, in a form that others of the build are compared by.
pub(crate) fn written(columns: &[Arc<Column>], entry: u32) -> Vec<u8> {
    let vectors: Vec<Vector> = columns.iter().map(|column| fetch_matches(column, &[entry])).collect();
    let mut bytes = Vec::new();
    write_key(&vectors.iter().collect::<Vec<_>>(), 0, &mut bytes);
    bytes
}

/// Packs the keys of rows; a flag of 0 says that no key of the build packs like that.
fn pack_rows(packing: &[Packed], keys: &[Rc<Vector>], rows: usize) -> (Vec<u64>, Option<Vec<u8>>) {
    let mut packed = vec![0u64; rows];
    let mut present = vec![1u8; rows];
    for (packing, key) in packing.iter().zip(keys) {
        pack_values(*packing, &ints(key), key.valid.as_deref(), &mut packed, &mut present);
    }
    (packed, Some(present))
}

/// Adds one key's share to packed keys.
pub(crate) fn pack_values(
    packing: Packed,
    values: &[i64],
    valid: Option<&[u8]>,
    packed: &mut [u64],
    present: &mut [u8],
) {
    let Packed { min, span, shift } = packing;
    let offset = |value: i64| value.wrapping_sub(min) as u64;
    let within = |value: i64| (value >= min) as u8 & (offset(value) < span) as u8;
    let all = packed.iter_mut().zip(present).zip(values);
    match valid {
        None => all.for_each(|((packed, present), value)| {
            *packed |= offset(*value).wrapping_add(1) << shift;
            *present &= within(*value);
        }),
        Some(valid) => all.zip(valid).for_each(|(((packed, present), value), valid)| {
            if *valid != 0 {
                *packed |= offset(*value).wrapping_add(1) << shift;
                *present &= within(*value);
            }
        }),
    }
}
