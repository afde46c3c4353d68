//! A static hash directory: how keys that are not dense integers lead to a build's entries.

use std::rc::Rc;

use tandem_column::Result;
use tandem_pipeline::fused::Packed;

use crate::{
    BytesVector, Values, Vector,
    build::{Lookup, Order, Use, ints, is_int},
};

/// A static hash table: a bucket's entries lie next to each other, equal keys adjacent.
#[derive(Debug)]
pub(crate) struct Directory {
    pub(crate) keys: Keys,
    /// Entries of bucket `b` are `starts[b] .. starts[b + 1]`; their number is a power of two plus one.
    pub(crate) starts: Vec<u32>,
    collide: bool,
}

#[derive(Debug)]
pub(crate) enum Keys {
    /// All key columns packed into one integer, per entry.
    Packed { packing: Vec<Packed>, values: Vec<u64> },
    /// All key columns written one after the other, per entry.
    Bytes(BytesVector),
}

/// Spreads a packed key over 64 bits.
#[inline(always)]
fn spread(key: u64) -> u64 {
    // Fibonacci hashing after folding the high half in; the top bits choose the bucket.
    (key ^ (key >> 32)).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

pub(crate) fn hash_bytes(bytes: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325u64 ^ bytes.len() as u64;
    let mut chunks = bytes.chunks_exact(8);
    for chunk in &mut chunks {
        let word = u64::from_le_bytes(chunk.try_into().expect("eight bytes"));
        hash = (hash ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
    }
    for byte in chunks.remainder() {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01B3);
    }
    spread(hash)
}

/// Writes one row's keys so that equal keys give equal bytes and others do not.
pub(crate) fn write_key(keys: &[&Vector], row: usize, out: &mut Vec<u8>) {
    for key in keys {
        if !key.is_valid(row) {
            out.push(0);
            continue;
        }
        out.push(1);
        match &key.values {
            Values::Boolean(values) => out.push(values[row]),
            Values::Int(values) => out.extend_from_slice(&values[row].to_le_bytes()),
            Values::Wide(values) => out.extend_from_slice(&values[row].to_le_bytes()),
            Values::Float(values) => out.extend_from_slice(&values[row].to_bits().to_le_bytes()),
            Values::Code { .. } | Values::Bytes(_) => {
                let bytes = key.values.bytes(row);
                out.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
                out.extend_from_slice(bytes);
            }
        }
    }
}

impl Directory {
    /// Takes a directory that a device laid out.
    pub(crate) fn laid_out(packing: Vec<Packed>, values: Vec<u64>, starts: Vec<u32>) -> Directory {
        Directory { keys: Keys::Packed { packing, values }, starts, collide: false }
    }

    pub(crate) fn lay_out(keys: &[Vector], keyed: Vec<u32>, rows: usize, used: Use) -> Result<(Lookup, Order)> {
        let buckets = keyed.len().max(1).next_power_of_two();
        let shift = 64 - buckets.trailing_zeros();
        let bucket = |hash: u64| if used.collide || shift == 64 { 0 } else { (hash >> shift) as usize };
        let references: Vec<&Vector> = keys.iter().collect();
        let packing = pack(keys, &keyed);
        let mut bytes = BytesVector::default();
        let packed: Vec<u64> = match &packing {
            Some(packing) => keyed.iter().map(|row| pack_row(packing, keys, *row as usize).unwrap_or(0)).collect(),
            None => {
                bytes = BytesVector::with_capacity(keyed.len(), keyed.len() * 16);
                keyed.iter().for_each(|row| bytes.push_with(|out| write_key(&references, *row as usize, out)));
                Vec::new()
            }
        };
        let hashes: Vec<u64> = match &packing {
            Some(_) => packed.iter().map(|key| spread(*key)).collect(),
            None => bytes.iter().map(hash_bytes).collect(),
        };
        let mut starts = vec![0u32; buckets + 1];
        hashes.iter().for_each(|hash| starts[bucket(*hash) + 1] += 1);
        (0..buckets).for_each(|i| starts[i + 1] += starts[i]);
        let mut next = starts.clone();
        let mut order = vec![0u32; keyed.len()];
        for (i, hash) in hashes.iter().enumerate() {
            let slot = &mut next[bucket(*hash)];
            order[*slot as usize] = i as u32;
            *slot += 1;
        }
        // Equal keys of a bucket become neighbours, so that a lookup gives one range.
        for range in starts.windows(2).filter(|r| r[1] - r[0] > 1) {
            let entries = &mut order[range[0] as usize..range[1] as usize];
            match &packing {
                Some(_) => entries.sort_by_key(|i| packed[*i as usize]),
                None => entries.sort_by(|a, b| bytes.get(*a as usize).cmp(bytes.get(*b as usize))),
            }
        }
        let keys = match packing {
            Some(packing) => Keys::Packed { packing, values: order.iter().map(|i| packed[*i as usize]).collect() },
            None => Keys::Bytes(order.iter().map(|i| bytes.get(*i as usize)).collect()),
        };
        let mut order: Vec<u32> = order.iter().map(|i| keyed[*i as usize]).collect();
        if used.outer && order.len() < rows {
            let mut kept = vec![false; rows];
            order.iter().for_each(|row| kept[*row as usize] = true);
            order.extend((0..rows as u32).filter(|row| !kept[*row as usize]));
        }
        Ok((Lookup::Hash(Directory { keys, starts, collide: used.collide }), Order::Each(order)))
    }

    /// Returns how many bits of a hash choose the bucket.
    pub(crate) fn bits(&self) -> u32 {
        if self.collide { 0 } else { (self.starts.len() - 1).trailing_zeros() }
    }

    pub(crate) fn is_unique(&self) -> bool {
        let equal = |i: u32| match &self.keys {
            Keys::Packed { values, .. } => values[i as usize] == values[i as usize - 1],
            Keys::Bytes(bytes) => bytes.get(i as usize) == bytes.get(i as usize - 1),
        };
        self.starts.windows(2).all(|range| !(range[0] + 1..range[1].max(range[0] + 1)).any(equal))
    }

    pub(crate) fn find(&self, keys: &[Rc<Vector>], rows: usize) -> Vec<(u32, u32)> {
        let buckets = self.starts.len() - 1;
        let shift = 64 - buckets.trailing_zeros();
        let bucket = |hash: u64| if self.collide || shift == 64 { 0 } else { (hash >> shift) as usize };
        match &self.keys {
            Keys::Packed { packing, values } => {
                let packed = pack_vector(packing, keys, rows);
                packed
                    .iter()
                    .map(|key| match key {
                        Some(key) => equal_range(&self.starts, bucket(spread(*key)), |e| values[e as usize].cmp(key)),
                        None => (0, 0),
                    })
                    .collect()
            }
            Keys::Bytes(bytes) => {
                let references: Vec<&Vector> = keys.iter().map(Rc::as_ref).collect();
                let mut key = Vec::new();
                (0..rows)
                    .map(|row| {
                        key.clear();
                        write_key(&references, row, &mut key);
                        let bucket = bucket(hash_bytes(&key));
                        equal_range(&self.starts, bucket, |e| bytes.get(e as usize).cmp(key.as_slice()))
                    })
                    .collect()
            }
        }
    }
}

#[inline(always)]
fn equal_range(starts: &[u32], bucket: usize, compare: impl Fn(u32) -> std::cmp::Ordering) -> (u32, u32) {
    let (start, end) = (starts[bucket], starts[bucket + 1]);
    let mut entry = start;
    if end - start > 32 {
        // A crowded bucket (many equal keys, or forced collisions) is searched by halves: it is sorted by key.
        let (mut low, mut high) = (start, end);
        while low < high {
            let middle = low + (high - low) / 2;
            if compare(middle).is_lt() { low = middle + 1 } else { high = middle }
        }
        entry = low;
    } else {
        while entry < end && compare(entry).is_lt() {
            entry += 1;
        }
    }
    let first = entry;
    while entry < end && compare(entry).is_eq() {
        entry += 1;
    }
    (first, entry)
}

/// Packs integer keys into 64 bits if their ranges allow it; one value of each range is left for null.
fn pack(keys: &[Vector], keyed: &[u32]) -> Option<Vec<Packed>> {
    let mut ranges = Vec::with_capacity(keys.len());
    for key in keys.iter() {
        if !is_int(key) {
            return None;
        }
        let values = ints(key);
        let present = || keyed.iter().filter(|row| key.is_valid(**row as usize)).map(|row| values[*row as usize]);
        ranges.push((present().min().unwrap_or(0), present().max().unwrap_or(0)));
    }
    packing(&ranges)
}

/// Packs keys of such ranges into 64 bits, if they fit.
pub(crate) fn packing(ranges: &[(i64, i64)]) -> Option<Vec<Packed>> {
    let mut shift = 0;
    let mut packing = Vec::with_capacity(ranges.len());
    for &(min, max) in ranges {
        let span = u64::try_from(i128::from(max) - i128::from(min) + 1).ok()?;
        let bits = 64 - span.leading_zeros();
        if shift + bits > 64 {
            return None;
        }
        packing.push(Packed { min, span, shift });
        shift += bits;
    }
    Some(packing)
}

fn pack_row(packing: &[Packed], keys: &[Vector], row: usize) -> Option<u64> {
    packing.iter().zip(keys).try_fold(0, |packed, (p, key)| {
        let value = if key.is_valid(row) { Some(ints_at(key, row)) } else { None };
        Some(packed | pack_value(p, value)?)
    })
}

fn ints_at(vector: &Vector, row: usize) -> i64 {
    match &vector.values {
        Values::Int(values) => values[row],
        Values::Boolean(values) => values[row].into(),
        _ => 0,
    }
}

#[inline(always)]
fn pack_value(p: &Packed, value: Option<i64>) -> Option<u64> {
    match value {
        None => Some(0),
        Some(value) => {
            let offset = value.wrapping_sub(p.min) as u64;
            (value >= p.min && offset < p.span).then(|| (offset + 1) << p.shift)
        }
    }
}

fn pack_vector(packing: &[Packed], keys: &[Rc<Vector>], rows: usize) -> Vec<Option<u64>> {
    let mut out = vec![Some(0u64); rows];
    for (p, key) in packing.iter().zip(keys) {
        let values = ints(key);
        match &key.valid {
            None => out.iter_mut().zip(values.iter()).for_each(|(out, value)| {
                *out = out.and_then(|packed| Some(packed | pack_value(p, Some(*value))?));
            }),
            Some(valid) => out.iter_mut().zip(values.iter().zip(valid)).for_each(|(out, (value, valid))| {
                let value = (*valid != 0).then_some(*value);
                *out = out.and_then(|packed| Some(packed | pack_value(p, value)?));
            }),
        }
    }
    out
}
