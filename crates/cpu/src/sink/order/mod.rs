//! Ordering collected rows by several keys, on all workers.
//!
//! The keys of a row become one integer whose order is the order asked for ([`normal`]): 64 or 128 bits, of which each key takes what its
//! range needs, and text its first bytes. Integers are sorted by radix ([`radix`]); only rows whose integers are equal though their keys
//! need not be are compared key by key ([`compare`]). Rows that compare equal keep their order. Rows that are in order already, as a
//! window leaves them for the next, or for a final ORDER BY, are found to be so and stay.

pub(crate) mod bound;
pub(crate) mod compare;
mod disjoint;
mod normal;
pub(crate) mod place;
mod radix;

#[cfg(test)]
mod tests;

use std::cmp::Ordering;

use tandem_column::Result;
use tandem_pipeline::SortKey;

pub(crate) use disjoint::Disjoint;
use normal::NormalKeys;
use radix::{Entry, RadixKey, WideKey};

use crate::{Vector, settings::ParallelTasks};

/// The bytes of memory that ordering takes for each row: entries of the larger kind twice, and the row's place.
pub(crate) const ROW_BYTES: usize = 2 * size_of::<Entry<WideKey>>() + size_of::<u32>();

/// Runs tasks one after the other, for orders of few rows.
pub(crate) fn alone(tasks: usize, task: &(dyn Fn(usize) -> Result<()> + Sync)) -> Result<()> {
    (0..tasks).try_for_each(task)
}

/// Returns the rows in the order of the keys, at most `limit` of them; rows that compare equal keep their order.
///
/// # Errors
/// Cancellation.
pub(crate) fn order(
    keys: &[SortKey],
    vectors: &[&Vector],
    rows: usize,
    limit: usize,
    parallel: ParallelTasks<'_>,
) -> Result<Vec<u32>> {
    let normal = NormalKeys::new(keys, vectors, rows, parallel)?;
    // Keys that the integers stand for exactly need not be compared again.
    let (keys, vectors) = (&keys[normal.exact..], &vectors[normal.exact..]);
    let ties = |left: u32, right: u32| compare::rows(keys, vectors, left as usize, right as usize);
    let ties: Option<radix::Ties<'_>> = if keys.is_empty() { None } else { Some(&ties) };
    if normal.bits <= 64 {
        sort::<u64>(&normal, ties, limit, parallel)
    } else {
        sort::<WideKey>(&normal, ties, limit, parallel)
    }
}

fn sort<K: RadixKey>(
    normal: &NormalKeys<'_>,
    ties: Option<radix::Ties<'_>>,
    limit: usize,
    parallel: ParallelTasks<'_>,
) -> Result<Vec<u32>> {
    let mut entries = normal.entries::<K>(parallel)?;
    if radix::is_sorted(&entries, ties, parallel)? {
        return Ok((0..entries.len().min(limit) as u32).collect());
    }
    if limit < entries.len() {
        if limit == 0 {
            return Ok(Vec::new());
        }
        entries.select_nth_unstable_by(limit - 1, |left, right| {
            let tied = || ties.map_or(Ordering::Equal, |ties| ties(left.row, right.row));
            left.key.cmp(&right.key).then_with(tied).then(left.row.cmp(&right.row))
        });
        entries.truncate(limit);
        // Sorting keeps the order of equal rows as it finds them.
        entries.sort_unstable_by_key(|entry| entry.row);
    }
    radix::sort(entries, normal.bits, ties, parallel)
}
