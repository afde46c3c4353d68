//! The last row that a top-k still wants, so far: rows that do not come before it are dropped at once.

use std::{cmp::Ordering, rc::Rc, sync::Arc};

use tandem_column::{Column, Data, float_order};
use tandem_pipeline::SortKey;

use super::compare;
use crate::{Values, Vector, kernel::RowRun, simd::simd};

/// The keys of one row, a vector of one row each.
#[derive(Debug)]
pub(crate) struct Bound {
    keys: Vec<Vector>,
}

impl Bound {
    /// Makes the bound of a row, given the keys of many.
    pub(crate) fn of(vectors: &[Vector], row: u32) -> Bound {
        Bound { keys: vectors.iter().map(|vector| vector.take(&[row])).collect() }
    }

    /// Tells whether this bound comes before another.
    pub(crate) fn is_before(&self, other: &Bound, keys: &[SortKey]) -> bool {
        let pairs = keys.iter().zip(self.keys.iter().zip(&other.keys));
        let mut orders = pairs.map(|(key, (left, right))| compare::values(key, (left, 0), (right, 0)));
        orders.find(|order| order.is_ne()) == Some(Ordering::Less)
    }

    /// Returns the bound of the first key as block statistics of a column have it, if it is not null and they have it so.
    pub(crate) fn first_ordinal(&self, column: &Column) -> Option<i64> {
        let Some(Vector { values, valid: None }) = self.keys.first() else { return None };
        match (values, &column.data) {
            (Values::Int(values), Data::Int { .. }) => values.first().copied(),
            (Values::Float(values), Data::Float32(_) | Data::Float64(_)) => {
                values.first().map(|value| float_order(*value))
            }
            (Values::Code { codes, dictionary }, Data::Dictionary { dictionary: same, .. })
                if Arc::ptr_eq(dictionary, same) =>
            {
                codes.first().map(|code| (*code).into())
            }
            _ => None,
        }
    }

    /// Returns which of some rows of a column of plain text, the first key's, do not come after the bound, by their positions; `None`
    /// if the column holds something else or the bound is null. Texts are compared where they lie.
    pub(crate) fn up_to_text(&self, key: &SortKey, column: &Column, rows: RowRun<'_>) -> Option<Vec<u32>> {
        let (Data::Bytes { offsets, bytes }, Some(first)) = (&column.data, self.keys.first()) else { return None };
        let bound = match &first.values {
            Values::Bytes(_) | Values::Code { .. } if first.is_valid(0) => first.values.bytes(0),
            _ => return None,
        };
        let beginning = prefix(bound, 0, bound.len());
        let text = |row: usize| (offsets[row] as usize, offsets[row + 1] as usize);
        // Most texts differ from the bound in their first bytes.
        let ordered = |row: usize| {
            let (start, end) = text(row);
            let order = prefix(bytes, start, end).cmp(&beginning);
            if order.is_eq() { bytes[start..end].cmp(bound) } else { order }
        };
        let keeps = |row: usize| match column.is_valid(row) {
            true => {
                if key.descending {
                    ordered(row).is_ge()
                } else {
                    ordered(row).is_le()
                }
            }
            false => key.nulls_first,
        };
        Some(match rows {
            RowRun::Run { start, count } => (0..count as u32).filter(|at| keeps(start + *at as usize)).collect(),
            RowRun::List(list) => {
                list.iter().zip(0..).filter(|(row, _)| keeps(**row as usize)).map(|(_, at)| at).collect()
            }
        })
    }

    /// Returns which rows do not come after the bound by the first key, whose values these are, ascending.
    pub(crate) fn up_to(&self, key: &SortKey, vector: &Vector) -> Vec<u32> {
        let Some(bound) = self.keys.first() else { return (0..vector.len() as u32).collect() };
        // Once the bound is near the end, most vectors have no such row: that is found without looking at each.
        if vector.valid.is_none() && bound.valid.is_none() {
            let any = match (&vector.values, &bound.values) {
                (Values::Int(values), Values::Int(bound)) => any_integer(values, bound[0], key.descending),
                (Values::Float(values), Values::Float(bound)) => {
                    any_float(values, float_order(bound[0]), key.descending)
                }
                _ => true,
            };
            if !any {
                return Vec::new();
            }
        }
        candidates(key, vector, bound, &(0..vector.len() as u32).collect::<Vec<_>>())
    }

    /// Returns the rows that come before the bound, ascending.
    pub(crate) fn before(&self, keys: &[SortKey], vectors: &[Rc<Vector>], rows: usize) -> Vec<u32> {
        let mut before = Vec::new();
        let mut tied: Vec<u32> = (0..rows as u32).collect();
        for ((key, vector), bound) in keys.iter().zip(vectors).zip(&self.keys) {
            let left = candidates(key, vector, bound, &tied);
            tied.clear();
            for row in left {
                match compare::values(key, (vector, row as usize), (bound, 0)) {
                    Ordering::Less => before.push(row),
                    _ => tied.push(row),
                }
            }
            if tied.is_empty() {
                break;
            }
        }
        before.sort_unstable();
        before
    }
}

simd! {
    /// Tells whether an integer does not come after a bound.
    fn any_integer(values: &[i64], bound: i64, descending: bool) -> bool {
        let mut any = false;
        if descending {
            values.iter().for_each(|value| any |= *value >= bound);
        } else {
            values.iter().for_each(|value| any |= *value <= bound);
        }
        any
    }
    /// Tells whether a float does not come after a bound.
    fn any_float(values: &[f64], bound: i64, descending: bool) -> bool {
        let mut any = false;
        if descending {
            values.iter().for_each(|value| any |= float_order(*value) >= bound);
        } else {
            values.iter().for_each(|value| any |= float_order(*value) <= bound);
        }
        any
    }
}

/// Returns the first eight bytes of a text, of those from `start` to `end`, as an integer; zeros where it is shorter.
#[inline(always)]
pub(crate) fn prefix(bytes: &[u8], start: usize, end: usize) -> u64 {
    let length = end - start;
    match bytes.get(start..).and_then(|rest| rest.first_chunk()) {
        Some(eight) if length >= 8 => u64::from_be_bytes(*eight),
        Some(eight) => u64::from_be_bytes(*eight) & !(u64::MAX >> (8 * length)),
        None => {
            bytes[start..end]
                .iter()
                .take(8)
                .fold((0, 56u32), |(all, shift), byte| (all | u64::from(*byte) << shift, shift.saturating_sub(8)))
                .0
        }
    }
}

/// Returns those of some rows whose key does not come after the bound's.
fn candidates(key: &SortKey, vector: &Vector, bound: &Vector, rows: &[u32]) -> Vec<u32> {
    if vector.valid.is_none() && bound.valid.is_none() {
        match (&vector.values, &bound.values) {
            (Values::Int(values), Values::Int(bound)) => return up_to(key, values, bound[0], rows, |value| value),
            (Values::Float(values), Values::Float(bound)) => {
                return up_to(key, values, float_order(bound[0]), rows, float_order);
            }
            (Values::Code { codes, dictionary }, Values::Code { codes: bound, dictionary: same })
                if Arc::ptr_eq(dictionary, same) =>
            {
                return up_to(key, codes, bound[0], rows, |code| code);
            }
            _ => {}
        }
    }
    let after = |row: &u32| compare::values(key, (vector, *row as usize), (bound, 0)).is_gt();
    rows.iter().copied().filter(|row| !after(row)).collect()
}

/// Keeps rows without a branch for each: which of them are kept cannot be foreseen.
fn up_to<T: Copy, O: Ord + Copy>(
    key: &SortKey,
    values: &[T],
    bound: O,
    rows: &[u32],
    ordinal: impl Fn(T) -> O,
) -> Vec<u32> {
    let mut kept = vec![0; rows.len()];
    let mut count = 0;
    let mut keep = |row: u32, keeps: bool| {
        kept[count] = row;
        count += usize::from(keeps);
    };
    match key.descending {
        true => rows.iter().for_each(|row| keep(*row, ordinal(values[*row as usize]) >= bound)),
        false => rows.iter().for_each(|row| keep(*row, ordinal(values[*row as usize]) <= bound)),
    }
    kept.truncate(count);
    kept
}
