//! A finished build as rows again: a device may have finished its share of a build while others have rows of it.

use tandem_column::Type;
use tandem_plan::{Build, HashTable, KeyIndex, Keys};

use crate::{
    Values, Vector,
    frame::{NO_MATCH, fetch_matches},
};

/// Returns the rows of a build, as one vector per key and payload column. Of keys that are null somewhere and never match,
/// all are null.
pub(super) fn rows_of_build(build: &Build, kinds: &[Type]) -> (usize, Vec<Vector>) {
    let (mut entries, mut key_vectors) = (Vec::new(), Vec::new());
    match &build.index {
        KeyIndex::All => entries.extend(0..build.rows as u32),
        KeyIndex::Unique(set) => {
            let found: Vec<i64> = set.members().collect();
            entries.extend(found.iter().map(|key| key.wrapping_sub(set.min) as u32));
            key_vectors.push(int_vector(&kinds[0], found.into_iter().map(Some)));
        }
        KeyIndex::Dense { set, starts } => {
            entries.extend(0..starts.last().copied().unwrap_or(0));
            let places = starts.windows(2).enumerate();
            let repeated = places.flat_map(|(place, ends)| (ends[0]..ends[1]).map(move |_| set.min + place as i64));
            key_vectors.push(int_vector(&kinds[0], repeated.map(Some)));
        }
        KeyIndex::Hash(HashTable { keys: Keys::Packed(packing), values, .. }) => {
            entries.extend(0..build.stored as u32);
            let unkeyed = build.stored - values.len();
            for (packed, kind) in packing.iter().zip(kinds) {
                let keyed = values.iter().map(|key| packed.unpack(*key));
                key_vectors.push(int_vector(kind, keyed.chain(std::iter::repeat_n(None, unkeyed))));
            }
        }
        KeyIndex::Hash(HashTable { keys: Keys::Columns { columns, .. }, values, .. }) => {
            entries.extend(0..build.stored as u32);
            let keyed =
                (0..build.stored as u32).map(|entry| if (entry as usize) < values.len() { entry } else { NO_MATCH });
            let keyed: Vec<u32> = keyed.collect();
            key_vectors.extend(columns.iter().map(|column| fetch_matches(column, &keyed)));
        }
    }
    // Rows that no lookup finds were left out: those with null keys, and, where only existence matters, repeated keys.
    let left_out = build.rows - entries.len();
    if build.null_key {
        key_vectors.iter_mut().zip(kinds).for_each(|(keys, kind)| keys.append(&Vector::nulls(kind, left_out)));
        entries.extend(std::iter::repeat_n(NO_MATCH, left_out));
    } else if let Some(last) = (entries.len() as u32).checked_sub(1) {
        let again: Vec<u32> = (0..=last).chain(std::iter::repeat_n(last, left_out)).collect();
        key_vectors.iter_mut().for_each(|keys| *keys = keys.take(&again));
        entries = again.iter().map(|at| entries[*at as usize]).collect();
    }
    let payload = build.payload.iter().map(|column| fetch_matches(column, &entries));
    let vectors = key_vectors.into_iter().chain(payload).collect();
    (entries.len(), vectors)
}

fn int_vector(kind: &Type, values: impl Iterator<Item = Option<i64>>) -> Vector {
    let (mut out, mut valid) = (Vec::new(), Vec::new());
    for value in values {
        out.push(value.unwrap_or(0));
        valid.push(value.is_some() as u8);
    }
    let values = match *kind == Type::Boolean {
        true => Values::Boolean(out.iter().map(|value| *value as u8).collect()),
        false => Values::Int(out),
    };
    Vector { values, valid: valid.contains(&0).then_some(valid) }
}
