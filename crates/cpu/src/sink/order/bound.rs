//! The last row that a top-k still wants, so far: rows that do not come before it are dropped at once.

use std::{cmp::Ordering, rc::Rc, sync::Arc};

use tandem_column::float_order;
use tandem_pipeline::SortKey;

use super::compare;
use crate::{Values, Vector};

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

    /// Returns the bound of the first key, if it is an integer that is not null.
    pub(crate) fn first_integer(&self) -> Option<i64> {
        match self.keys.first() {
            Some(Vector { values: Values::Int(values), valid: None }) => values.first().copied(),
            _ => None,
        }
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
