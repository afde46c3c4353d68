//! Finding the entries of a build by keys.

use std::rc::Rc;

use tandem_column::float_order;
use tandem_plan::{Build, KeyIndex};

use crate::{Values, Vector, hashed};

/// What a look-up is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    /// Null keys find null keys.
    pub(crate) null_equals_null: bool,
    /// The first entry of a key stands for all: there is one, or only existence matters.
    pub(crate) first: bool,
}

/// Finds the entries of each row's key: a range, empty where there is no match.
pub(crate) fn find(build: &Build, keys: &[Rc<Vector>], rows: usize, asked: Asked) -> Vec<(u32, u32)> {
    let mut found: Vec<(u32, u32)> = match &build.index {
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
        KeyIndex::Hash(table) => return hashed::find(table, keys, rows, asked),
    };
    // Dense lookups hold no null key, so that a null finds nothing there in either case.
    for key in keys {
        for (range, valid) in found.iter_mut().zip(key.valid.iter().flatten()) {
            if *valid == 0 {
                *range = (0, 0);
            }
        }
    }
    found
}

/// Reads a vector of integers, booleans or codes.
pub(crate) fn ints(vector: &Vector) -> std::borrow::Cow<'_, [i64]> {
    match &vector.values {
        Values::Int(values) => values.into(),
        Values::Boolean(values) => values.iter().map(|v| i64::from(*v)).collect(),
        Values::Code { codes, .. } => codes.iter().map(|code| i64::from(*code)).collect(),
        // Text that has codes elsewhere is null where it has none.
        _ => vec![0; vector.len()].into(),
    }
}

/// Returns integers of the same order as a vector's values, `null` for what is null.
pub(crate) fn ordinals(vector: &Vector, null: i64) -> Vec<i64> {
    let mut ordinals = match &vector.values {
        Values::Int(values) => values.clone(),
        Values::Float(values) => values.iter().map(|value| float_order(*value)).collect(),
        // Planning asks for numbers only.
        _ => vec![null; vector.len()],
    };
    for (ordinal, valid) in ordinals.iter_mut().zip(vector.valid.iter().flatten()) {
        if *valid == 0 {
            *ordinal = null;
        }
    }
    ordinals
}

/// Tells whether a vector holds integers or booleans.
pub(crate) fn is_int(vector: &Vector) -> bool {
    matches!(vector.values, Values::Int(_) | Values::Boolean(_))
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
