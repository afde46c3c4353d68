//! Finding the entries of a build by keys.

use std::rc::Rc;

use tandem_column::{Repr, Type};
use tandem_pipeline::Value;
use tandem_plan::{Build, HashTable, KeyIndex, Keys, Packed};

use crate::{Values, Vector, vector::bytes_value};

/// Finds the entries of each row's key: a range, empty where there is no match.
pub(crate) fn find(build: &Build, keys: &[Rc<Vector>], rows: usize, null_equals_null: bool) -> Vec<(u32, u32)> {
    let mut found = match &build.index {
        KeyIndex::All => vec![(0, build.rows as u32); rows],
        KeyIndex::Unique(set) => ints(&keys[0])
            .iter()
            .map(|key| {
                let place = key.wrapping_sub(set.min) as u32;
                if set.contains(*key) { (place, place + 1) } else { (0, 0) }
            })
            .collect(),
        KeyIndex::Dense { set, starts } => ints(&keys[0])
            .iter()
            .map(|key| {
                let place = key.wrapping_sub(set.min) as u64;
                if place < set.domain { (starts[place as usize], starts[place as usize + 1]) } else { (0, 0) }
            })
            .collect(),
        KeyIndex::Hash(directory) => find_hashed(directory, keys, rows),
    };
    // Dense lookups hold no null key, so that a null finds nothing there in either case.
    if !null_equals_null || matches!(build.index, KeyIndex::Unique(_) | KeyIndex::Dense { .. }) {
        for key in keys {
            for (range, valid) in found.iter_mut().zip(key.valid.iter().flatten()) {
                if *valid == 0 {
                    *range = (0, 0);
                }
            }
        }
    }
    found
}

/// Reads a vector of integers or booleans.
pub(crate) fn ints(vector: &Vector) -> std::borrow::Cow<'_, [i64]> {
    match &vector.values {
        Values::Int(values) => values.into(),
        Values::Boolean(values) => values.iter().map(|v| i64::from(*v)).collect(),
        _ => (&[]).into(),
    }
}

/// Tells whether a vector holds integers or booleans.
pub(crate) fn is_int(vector: &Vector) -> bool {
    matches!(vector.values, Values::Int(_) | Values::Boolean(_))
}

/// Spreads a packed key over 64 bits.
#[inline(always)]
pub(crate) fn spread(key: u64) -> u64 {
    // Fibonacci hashing after folding the high half in; the top bits choose the bucket.
    (key ^ (key >> 32)).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// Hashes the bytes of a written key.
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

/// Reads written keys back, one vector for each; `None` is a row whose keys are null.
pub(crate) fn read_key<'a>(rows: impl Iterator<Item = Option<&'a [u8]>>, kinds: &[Type]) -> Vec<Vector> {
    fn take<const N: usize>(bytes: &mut &[u8]) -> [u8; N] {
        let (value, rest) = bytes.split_first_chunk().expect("a written key is whole");
        *bytes = rest;
        *value
    }
    let mut vectors: Vec<Vector> = kinds.iter().map(Vector::empty).collect();
    for row in rows {
        let mut bytes = row.unwrap_or_default();
        for (vector, kind) in vectors.iter_mut().zip(kinds) {
            if row.is_none() || take::<1>(&mut bytes) == [0] {
                vector.push(&Value::Null);
                continue;
            }
            vector.push(&match kind.repr() {
                Repr::Boolean => Value::Boolean(take::<1>(&mut bytes) != [0]),
                Repr::Int => Value::Integer(i64::from_le_bytes(take(&mut bytes)).into()),
                Repr::Wide => Value::Integer(i128::from_le_bytes(take(&mut bytes))),
                Repr::Float => Value::Float(f64::from_bits(u64::from_le_bytes(take(&mut bytes)))),
                Repr::Bytes | Repr::Other => {
                    let length = u64::from_le_bytes(take(&mut bytes)) as usize;
                    let (text, rest) = bytes.split_at(length);
                    bytes = rest;
                    bytes_value(text, kind)
                }
            });
        }
    }
    vectors
}

fn find_hashed(directory: &HashTable, keys: &[Rc<Vector>], rows: usize) -> Vec<(u32, u32)> {
    let buckets = directory.starts.len() - 1;
    let shift = 64 - buckets.trailing_zeros();
    let bucket = |hash: u64| if directory.collide || shift == 64 { 0 } else { (hash >> shift) as usize };
    match &directory.keys {
        Keys::Packed { packing, values } => {
            let packed = pack_vector(packing, keys, rows);
            packed
                .iter()
                .map(|key| match key {
                    Some(key) => equal_range(&directory.starts, bucket(spread(*key)), |e| values[e as usize].cmp(key)),
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
                    equal_range(&directory.starts, bucket, |e| bytes.get(e as usize).cmp(key.as_slice()))
                })
                .collect()
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

fn pack_vector(packing: &[Packed], keys: &[Rc<Vector>], rows: usize) -> Vec<Option<u64>> {
    let mut out = vec![Some(0u64); rows];
    for (p, key) in packing.iter().zip(keys) {
        let values = ints(key);
        match &key.valid {
            None => out.iter_mut().zip(values.iter()).for_each(|(out, value)| {
                *out = out.and_then(|packed| Some(packed | p.pack(Some(*value))?));
            }),
            Some(valid) => out.iter_mut().zip(values.iter().zip(valid)).for_each(|(out, (value, valid))| {
                let value = (*valid != 0).then_some(*value);
                *out = out.and_then(|packed| Some(packed | p.pack(value)?));
            }),
        }
    }
    out
}
