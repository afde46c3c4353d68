//! Ordering collected rows by several keys.
//!
//! Keys become one comparable value per row: packed into 128 bits where their ranges allow it, otherwise bytes whose
//! order is the order asked for. Then one sort of (key, row) decides everything.

use tandem_column::float_order;
use tandem_pipeline::SortKey;

use crate::{Values, Vector};

/// Returns the rows in the order of the keys, at most `limit` of them; rows that compare equal keep their order.
pub(crate) fn order(keys: &[SortKey], vectors: &[&Vector], rows: usize, limit: usize) -> Vec<u32> {
    match packed(keys, vectors, rows) {
        Some(packed) => finish(packed.into_iter().zip(0u32..).collect(), limit),
        None => {
            let encoded: Vec<Vec<u8>> = (0..rows).map(|row| encode(keys, vectors, row)).collect();
            finish(encoded.into_iter().zip(0u32..).collect(), limit)
        }
    }
}

fn finish<K: Ord>(mut rows: Vec<(K, u32)>, limit: usize) -> Vec<u32> {
    if limit < rows.len() {
        if limit == 0 {
            return Vec::new();
        }
        rows.select_nth_unstable(limit - 1);
        rows.truncate(limit);
    }
    rows.sort_unstable();
    rows.into_iter().map(|(_, row)| row).collect()
}

/// Reads a vector as integers in value order; `None` if it has no such form.
fn ordinals(vector: &Vector) -> Option<Vec<i64>> {
    match &vector.values {
        Values::Boolean(values) => Some(values.iter().map(|v| i64::from(*v)).collect()),
        Values::Int(values) => Some(values.clone()),
        Values::Float(values) => Some(values.iter().map(|v| float_order(*v)).collect()),
        Values::Code { codes, .. } => Some(codes.iter().map(|c| i64::from(*c)).collect()),
        Values::Wide(_) | Values::Bytes(_) => None,
    }
}

/// Packs all keys of each row into 128 bits.
fn packed(keys: &[SortKey], vectors: &[&Vector], rows: usize) -> Option<Vec<u128>> {
    let mut out = vec![0u128; rows];
    let mut used = 0;
    for (key, vector) in keys.iter().zip(vectors) {
        let values = ordinals(vector)?;
        let (min, max) = (values.iter().min().copied().unwrap_or(0), values.iter().max().copied().unwrap_or(0));
        // One place on each side of the values for nulls first and last.
        let span = (i128::from(max) - i128::from(min)) as u128 + 2;
        let bits = 128 - span.leading_zeros();
        used += bits;
        if used > 128 {
            return None;
        }
        for (row, (out, value)) in out.iter_mut().zip(&values).enumerate() {
            let place = if !vector.is_valid(row) {
                if key.nulls_first { 0 } else { span }
            } else if key.descending {
                (i128::from(max) - i128::from(*value)) as u128 + 1
            } else {
                (i128::from(*value) - i128::from(min)) as u128 + 1
            };
            *out = (*out << bits) | place;
        }
    }
    Some(out)
}

/// Writes a row's keys as bytes that compare as the keys do.
fn encode(keys: &[SortKey], vectors: &[&Vector], row: usize) -> Vec<u8> {
    let mut out = Vec::new();
    for (key, vector) in keys.iter().zip(vectors) {
        if !vector.is_valid(row) {
            out.push(if key.nulls_first { 0 } else { 2 });
            continue;
        }
        out.push(1);
        let start = out.len();
        match &vector.values {
            Values::Boolean(values) => out.push(values[row]),
            Values::Int(values) => out.extend_from_slice(&(values[row] as u64 ^ 1 << 63).to_be_bytes()),
            Values::Float(values) => {
                out.extend_from_slice(&(float_order(values[row]) as u64 ^ 1 << 63).to_be_bytes());
            }
            Values::Wide(values) => out.extend_from_slice(&(values[row] as u128 ^ 1 << 127).to_be_bytes()),
            Values::Code { .. } | Values::Bytes(_) => {
                // 0 is written as 0 1 and the end as 0 0, so that a prefix sorts before what it begins.
                for byte in vector.values.bytes(row) {
                    out.push(*byte);
                    if *byte == 0 {
                        out.push(1);
                    }
                }
                out.extend_from_slice(&[0, 0]);
            }
        }
        if key.descending {
            out[start..].iter_mut().for_each(|byte| *byte = !*byte);
        }
    }
    out
}
