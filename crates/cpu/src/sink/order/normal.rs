//! Normalised keys: all keys of a row as one integer that compares as they do.
//!
//! The first key takes the highest bits. A key takes as many as its values need, from the smallest to the largest and a place for nulls.
//! Text takes its first bytes behind those that all values have in common, and one for its length. A key that finds too few bits left
//! gives its highest, and ends the integer.

use std::sync::{Mutex, PoisonError};

use tandem_column::{Result, float_order};
use tandem_pipeline::SortKey;

use super::{
    disjoint::filled,
    radix::{Entry, RadixKey},
};
use crate::{Values, Vector, settings::ParallelTasks};

/// Rows that one task normalises.
const TASK_ROWS: usize = 1 << 16;

/// The bits of the largest integer.
const MOST_BITS: u32 = 128;

/// How the keys of rows become integers.
pub(super) struct NormalKeys<'v> {
    fields: Vec<Field<'v>>,
    rows: usize,
    /// How many bits the integers have.
    pub(super) bits: u32,
    /// How many of the keys integers stand for exactly.
    pub(super) exact: usize,
}

/// The bits of one key.
struct Field<'v> {
    vector: &'v Vector,
    descending: bool,
    /// The place of null, where there are any.
    null: u128,
    /// The place of the first value in order.
    first: u128,
    /// The value (or text) that others are measured from: the smallest, or the largest where that comes first.
    base: i128,
    /// The bytes of text that are the same in all values.
    common: usize,
    /// The bytes of text that are looked at, without that of the length.
    looked_at: usize,
    bits: u32,
    /// Bits that find no room.
    dropped: u32,
}

/// What the values of a key range over.
#[derive(Clone, Copy, Default)]
struct Extent {
    range: Option<(i128, i128)>,
    common: Option<usize>,
    longest: usize,
    nulls: bool,
}

impl Extent {
    fn join(&mut self, other: Extent) {
        self.range = match (self.range, other.range) {
            (Some((low, high)), Some((low2, high2))) => Some((low.min(low2), high.max(high2))),
            (one, other) => one.or(other),
        };
        self.common = match (self.common, other.common) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        self.longest = self.longest.max(other.longest);
        self.nulls |= other.nulls;
    }

    /// Measures some rows of a vector; `sample` is any text of it.
    fn of(vector: &Vector, rows: std::ops::Range<usize>, sample: &[u8]) -> Extent {
        fn range<T: Copy, O: Ord + Copy + Into<i128>>(
            values: &[T],
            valid: Option<&[u8]>,
            ordinal: impl Fn(T) -> O,
        ) -> Option<(i128, i128)> {
            let first = match valid {
                None => 0,
                Some(valid) => valid.iter().position(|valid| *valid != 0)?,
            };
            let first = ordinal(*values.get(first)?);
            let (mut low, mut high) = (first, first);
            match valid {
                None => values.iter().for_each(|value| {
                    let value = ordinal(*value);
                    (low, high) = (low.min(value), high.max(value));
                }),
                Some(valid) => values.iter().zip(valid).filter(|(_, valid)| **valid != 0).for_each(|(value, _)| {
                    let value = ordinal(*value);
                    (low, high) = (low.min(value), high.max(value));
                }),
            }
            Some((low.into(), high.into()))
        }
        let valid = vector.valid.as_ref().map(|valid| &valid[rows.clone()]);
        let mut extent = Extent { nulls: valid.is_some_and(|valid| valid.contains(&0)), ..Extent::default() };
        extent.range = match &vector.values {
            Values::Boolean(values) => range(&values[rows], valid, i64::from),
            Values::Int(values) => range(&values[rows], valid, |value| value),
            Values::Wide(values) => range(&values[rows], valid, |value| value),
            Values::Float(values) => range(&values[rows], valid, float_order),
            Values::Code { codes, .. } => range(&codes[rows], valid, i64::from),
            Values::Bytes(values) => {
                for row in rows.filter(|row| vector.is_valid(*row)) {
                    let text = values.get(row);
                    let most = extent.common.unwrap_or(sample.len()).min(text.len());
                    let common = text[..most].iter().zip(sample).take_while(|(one, other)| one == other).count();
                    extent.common = Some(common);
                    extent.longest = extent.longest.max(text.len());
                }
                None
            }
        };
        extent
    }
}

impl<'v> NormalKeys<'v> {
    /// Looks at the keys' values, and decides on the bits of each.
    pub(super) fn new(
        keys: &[SortKey],
        vectors: &[&'v Vector],
        rows: usize,
        parallel: ParallelTasks<'_>,
    ) -> Result<NormalKeys<'v>> {
        let sample = |vector: &&'v Vector| match &vector.values {
            Values::Bytes(values) => (0..rows).find(|row| vector.is_valid(*row)).map_or(&[][..], |row| values.get(row)),
            _ => &[],
        };
        let samples: Vec<&[u8]> = vectors.iter().map(sample).collect();
        let extents = Mutex::new(vec![Extent::default(); vectors.len()]);
        parallel(rows.div_ceil(TASK_ROWS), &|task| {
            let range = task * TASK_ROWS..rows.min((task + 1) * TASK_ROWS);
            let found: Vec<Extent> = vectors
                .iter()
                .zip(&samples)
                .map(|(vector, sample)| Extent::of(vector, range.clone(), sample))
                .collect();
            let mut extents = extents.lock().unwrap_or_else(PoisonError::into_inner);
            extents.iter_mut().zip(found).for_each(|(extent, found)| extent.join(found));
            Ok(())
        })?;
        let extents = extents.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut normal = NormalKeys { fields: Vec::new(), rows, bits: 0, exact: 0 };
        for ((key, vector), extent) in keys.iter().zip(vectors).zip(extents) {
            let left = MOST_BITS - normal.bits;
            let (field, exact) = Field::new(key, vector, &extent, left);
            normal.bits += field.bits;
            normal.fields.push(field);
            if !exact {
                break;
            }
            normal.exact += 1;
        }
        Ok(normal)
    }

    /// Makes the integer of each row.
    pub(super) fn entries<K: RadixKey>(&self, parallel: ParallelTasks<'_>) -> Result<Vec<Entry<K>>> {
        let fill = |entries: &super::Disjoint<'_, Entry<K>>| {
            parallel(self.rows.div_ceil(TASK_ROWS), &|task| {
                let range = task * TASK_ROWS..self.rows.min((task + 1) * TASK_ROWS);
                let mut keys = vec![K::default(); range.len()];
                self.fields.iter().for_each(|field| field.add(range.clone(), &mut keys));
                for (row, key) in range.zip(keys) {
                    // SAFETY: each row is of one task.
                    unsafe { entries.write(row, Entry { key, row: row as u32 }) };
                }
                Ok(())
            })
        };
        // SAFETY: the tasks' ranges are all rows.
        unsafe { filled(self.rows, fill) }
    }
}

impl<'v> Field<'v> {
    /// Decides on a key's bits, of which `left` are left; tells whether they stand for its values exactly.
    fn new(key: &SortKey, vector: &'v Vector, extent: &Extent, left: u32) -> (Field<'v>, bool) {
        let mut field = Field {
            vector,
            descending: key.descending,
            null: 0,
            first: u128::from(extent.nulls && key.nulls_first),
            base: 0,
            common: 0,
            looked_at: 0,
            bits: 0,
            dropped: 0,
        };
        // The largest distance of a value from the first.
        let (span, mut exact) = match (&vector.values, extent.range) {
            (Values::Bytes(_), _) => {
                field.common = extent.common.unwrap_or(0);
                let length = extent.longest - field.common;
                // One byte for the length, and one bit for nulls.
                field.looked_at = length.min(((left.saturating_sub(9) / 8) as usize).min(14));
                (
                    if extent.common.is_none() { 0 } else { (1 << (8 * (field.looked_at + 1))) - 1 },
                    length <= field.looked_at,
                )
            }
            (_, Some((low, high))) => {
                field.base = if key.descending { high } else { low };
                (high.wrapping_sub(low) as u128, true)
            }
            (_, None) => (0, true),
        };
        let values = field.first.checked_add(span);
        field.null = if key.nulls_first { 0 } else { values.unwrap_or(span).saturating_add(1) };
        let last = values.and_then(|last| last.checked_add(u128::from(extent.nulls && !key.nulls_first)));
        let needed = match last {
            Some(last) => u128::BITS - last.leading_zeros(),
            None => {
                // No room for a null beside all 128-bit values: leave the key to comparison.
                field.vector = vector;
                return (Field { bits: 0, dropped: u128::BITS, ..field }, false);
            }
        };
        field.bits = needed.min(left);
        field.dropped = needed - field.bits;
        exact &= field.dropped == 0;
        (field, exact)
    }

    /// Shifts the key's bits into the integers of some rows.
    fn add<K: RadixKey>(&self, rows: std::ops::Range<usize>, keys: &mut [K]) {
        if self.bits == 0 {
            return;
        }
        let valid = self.vector.valid.as_ref().map(|valid| &valid[rows.clone()]);
        match &self.vector.values {
            Values::Boolean(values) => self.add_values(&values[rows], valid, keys, i128::from),
            Values::Int(values) => self.add_values(&values[rows], valid, keys, i128::from),
            Values::Wide(values) => self.add_values(&values[rows], valid, keys, |value| value),
            Values::Float(values) => self.add_values(&values[rows], valid, keys, |value| float_order(value).into()),
            Values::Code { codes, .. } => self.add_values(&codes[rows], valid, keys, i128::from),
            Values::Bytes(values) => {
                for (row, key) in rows.zip(keys) {
                    let place = if self.vector.is_valid(row) { self.text(values.get(row)) } else { self.null };
                    *key = key.push(place >> self.dropped, self.bits);
                }
            }
        }
    }

    fn add_values<T: Copy, K: RadixKey>(
        &self,
        values: &[T],
        valid: Option<&[u8]>,
        keys: &mut [K],
        ordinal: impl Fn(T) -> i128,
    ) {
        let place = |value: T| {
            let distance = if self.descending {
                self.base.wrapping_sub(ordinal(value))
            } else {
                ordinal(value).wrapping_sub(self.base)
            };
            (distance as u128).wrapping_add(self.first) >> self.dropped
        };
        match valid {
            None => keys.iter_mut().zip(values).for_each(|(key, value)| *key = key.push(place(*value), self.bits)),
            Some(valid) => {
                for ((key, value), valid) in keys.iter_mut().zip(values).zip(valid) {
                    let place = if *valid != 0 { place(*value) } else { self.null >> self.dropped };
                    *key = key.push(place, self.bits);
                }
            }
        }
    }

    /// Returns the place of a text: its first bytes, then how many there are, which tells a value from one that goes on with zeros.
    fn text(&self, text: &[u8]) -> u128 {
        let text = &text[self.common..];
        let mut bytes = [0; 16];
        let looked_at = &text[..text.len().min(self.looked_at)];
        bytes[15 - self.looked_at..][..looked_at.len()].copy_from_slice(looked_at);
        bytes[15] = text.len().min(self.looked_at + 1) as u8;
        let place = u128::from_be_bytes(bytes);
        let place = if self.descending { ((1u128 << (8 * (self.looked_at + 1))) - 1) - place } else { place };
        place + self.first
    }
}
