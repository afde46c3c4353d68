//! Sorting of integers with a row number by their digits, on all workers.
//!
//! All workers divide the rows by the highest digit; each bucket is then a task of its own, small enough for a core's cache. A bucket that
//! holds a large share of the rows is divided by all workers again. Every pass keeps the order of equal digits.

use std::{
    cmp::Ordering,
    ops::Range,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use tandem_column::Result;

use super::disjoint::{Disjoint, filled};
use crate::settings::ParallelTasks;

/// Bits of the digit that all workers divide by: 1024 buckets of ten million rows fit a cache of the second level.
const FIRST_DIGIT: u32 = 10;
/// Bits of other digits.
const DIGIT: u32 = 8;
/// Rows of a task of a pass that all workers make.
const TASK_ROWS: usize = 1 << 16;
/// Fewer rows than this are sorted by one worker.
const ALONE: usize = 1 << 15;
/// Fewer rows than this are sorted by comparison: a pass has to count and add up its digits.
const FEW: usize = 256;
/// With more bits than this, passes from the lowest digit take longer than dividing by the highest.
const FROM_LOWEST: u32 = 32;

/// Orders two rows whose integers are equal.
pub(super) type Ties<'t> = &'t (dyn Fn(u32, u32) -> Ordering + Sync);

/// An integer that rows are sorted by.
pub(super) trait RadixKey: Copy + Ord + Default + Send + Sync {
    /// Appends bits at the low end.
    fn push(self, place: u128, bits: u32) -> Self;
    /// Returns `count` bits from `shift` on.
    fn digit(self, shift: u32, count: u32) -> usize;
}

/// 128 bits, with the alignment of 64.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct WideKey {
    high: u64,
    low: u64,
}

/// A row and the integer it is sorted by.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Entry<K> {
    pub(super) key: K,
    pub(super) row: u32,
}

impl RadixKey for u64 {
    #[inline]
    fn push(self, place: u128, bits: u32) -> u64 {
        self.checked_shl(bits).unwrap_or(0) | place as u64
    }

    #[inline]
    fn digit(self, shift: u32, count: u32) -> usize {
        (self >> shift) as usize & ((1 << count) - 1)
    }
}

impl RadixKey for WideKey {
    #[inline]
    fn push(self, place: u128, bits: u32) -> WideKey {
        let all = (u128::from(self.high) << 64 | u128::from(self.low)).checked_shl(bits).unwrap_or(0) | place;
        WideKey { high: (all >> 64) as u64, low: all as u64 }
    }

    #[inline]
    fn digit(self, shift: u32, count: u32) -> usize {
        ((u128::from(self.high) << 64 | u128::from(self.low)) >> shift) as usize & ((1 << count) - 1)
    }
}

/// A run of rows that are equal in all bits above the lowest `bits`, and where they lie.
struct Bucket {
    range: Range<usize>,
    bits: u32,
    moved: bool,
}

/// Sorts entries, which come in the order of their rows, by the lowest `bits` of their keys; returns the rows.
pub(super) fn sort<K: RadixKey>(
    mut entries: Vec<Entry<K>>,
    bits: u32,
    ties: Option<Ties<'_>>,
    parallel: ParallelTasks<'_>,
) -> Result<Vec<u32>> {
    let rows = entries.len();
    if rows <= ALONE || bits == 0 {
        entries.sort_unstable_by_key(|entry| (entry.key, entry.row));
        break_ties(&mut entries, ties);
        return Ok(entries.into_iter().map(|entry| entry.row).collect());
    }
    let mut spare: Vec<Entry<K>> = Vec::with_capacity(rows);
    // There are more rows than a bucket may have: the first division writes all of the spare half.
    let (from, to) = (Disjoint::new(&mut entries), Disjoint::unwritten(&mut spare.spare_capacity_mut()[..rows]));
    let mut waiting = vec![Bucket { range: 0..rows, bits, moved: false }];
    let mut buckets = Vec::new();
    while let Some(bucket) = waiting.pop() {
        if bucket.bits == 0 || bucket.range.len() <= (rows / 8).max(ALONE) {
            buckets.push(bucket);
            continue;
        }
        let (from, to) = if bucket.moved { (&to, &from) } else { (&from, &to) };
        waiting.extend(divide(&bucket, from, to, parallel)?);
    }
    buckets.sort_unstable_by_key(|bucket| bucket.range.start);
    // Small buckets share a task.
    let mut tasks: Vec<Range<usize>> = Vec::new();
    let mut held = usize::MAX;
    for (index, bucket) in buckets.iter().enumerate() {
        match tasks.last_mut() {
            Some(task) if held + bucket.range.len() <= TASK_ROWS => task.end = index + 1,
            _ => {
                held = 0;
                tasks.push(index..index + 1);
            }
        }
        held += bucket.range.len();
    }
    let fill = |order: &Disjoint<'_, u32>| {
        parallel(tasks.len(), &|task| {
            for bucket in &buckets[tasks[task].clone()] {
                let (from, to) = if bucket.moved { (&to, &from) } else { (&from, &to) };
                // SAFETY: buckets do not overlap and each is of one task; what lies in the other half is only written before it is read.
                let (from, to) = unsafe { (from.slice(bucket.range.clone()), to.slice(bucket.range.clone())) };
                sort_bucket(from, to, bucket.bits);
                break_ties(from, ties);
                for (place, entry) in bucket.range.clone().zip(from) {
                    // SAFETY: the places are the bucket's.
                    unsafe { order.write(place, entry.row) };
                }
            }
            Ok(())
        })
    };
    // SAFETY: the buckets are all rows.
    unsafe { filled(rows, fill) }
}

/// Tells whether entries are in order already. Those that are not are mostly known by the first few.
pub(super) fn is_sorted<K: RadixKey>(
    entries: &[Entry<K>],
    ties: Option<Ties<'_>>,
    parallel: ParallelTasks<'_>,
) -> Result<bool> {
    let follows = |pair: &[Entry<K>]| match pair[0].key.cmp(&pair[1].key) {
        Ordering::Less => true,
        Ordering::Equal => ties.is_none_or(|ties| ties(pair[0].row, pair[1].row).is_le()),
        Ordering::Greater => false,
    };
    let sorted = AtomicBool::new(entries[..entries.len().min(FEW)].windows(2).all(follows));
    if sorted.load(Relaxed) {
        parallel(entries.len().div_ceil(TASK_ROWS), &|task| {
            // With the first entry of the next task.
            let range = task * TASK_ROWS..entries.len().min((task + 1) * TASK_ROWS + 1);
            if sorted.load(Relaxed) && !entries[range].windows(2).all(follows) {
                sorted.store(false, Relaxed);
            }
            Ok(())
        })?;
    }
    Ok(sorted.into_inner())
}

/// Divides a bucket by its highest digit, on all workers, from one half to the other.
fn divide<K: RadixKey>(
    bucket: &Bucket,
    from: &Disjoint<'_, Entry<K>>,
    to: &Disjoint<'_, Entry<K>>,
    parallel: ParallelTasks<'_>,
) -> Result<Vec<Bucket>> {
    let count = FIRST_DIGIT.min(bucket.bits);
    let shift = bucket.bits - count;
    let Range { start, end } = bucket.range;
    let tasks = (end - start).div_ceil(TASK_ROWS);
    let rows = |task: usize| start + task * TASK_ROWS..end.min(start + (task + 1) * TASK_ROWS);
    let counted: Vec<Mutex<Vec<u32>>> = (0..tasks).map(|_| Mutex::new(Vec::new())).collect();
    parallel(tasks, &|task| {
        let mut counts = vec![0u32; 1 << count];
        // SAFETY: nobody writes this half now, and each row is of one task.
        unsafe { from.slice(rows(task)) }.iter().for_each(|entry| counts[entry.key.digit(shift, count)] += 1);
        *counted[task].lock().unwrap_or_else(PoisonError::into_inner) = counts;
        Ok(())
    })?;
    let mut counted: Vec<Vec<u32>> =
        counted.into_iter().map(|counts| counts.into_inner().unwrap_or_else(PoisonError::into_inner)).collect();
    // Counts become places: digit by digit, within a digit task by task.
    let mut place = start;
    let mut buckets = Vec::new();
    for digit in 0..1 << count {
        let first = place;
        for counts in &mut counted {
            let found = counts[digit] as usize;
            counts[digit] = (place - start) as u32;
            place += found;
        }
        if place > first {
            buckets.push(Bucket { range: first..place, bits: shift, moved: !bucket.moved });
        }
    }
    parallel(tasks, &|task| {
        let mut places = counted[task].clone();
        // SAFETY: as above.
        for entry in unsafe { from.slice(rows(task)) } {
            let place = &mut places[entry.key.digit(shift, count)];
            // SAFETY: the places of a task and a digit are nobody else's, and as many as this task has counted rows of it.
            unsafe { to.write(start + *place as usize, *entry) };
            *place += 1;
        }
        Ok(())
    })?;
    Ok(buckets)
}

/// Sorts a bucket in place; `spare` is as long.
fn sort_bucket<K: RadixKey>(entries: &mut [Entry<K>], spare: &mut [Entry<K>], bits: u32) {
    if bits == 0 || entries.len() <= 1 {
        return;
    }
    if entries.len() <= FEW {
        entries.sort_unstable_by_key(|entry| (entry.key, entry.row));
    } else if bits <= FROM_LOWEST {
        let mut moved = false;
        let mut shift = 0;
        while shift < bits {
            let count = DIGIT.min(bits - shift);
            match moved {
                false => pass(entries, spare, shift, count),
                true => pass(spare, entries, shift, count),
            };
            moved = !moved;
            shift += count;
        }
        if moved {
            entries.copy_from_slice(spare);
        }
    } else {
        let shift = bits - DIGIT;
        let ends = pass(entries, spare, shift, DIGIT);
        entries.copy_from_slice(spare);
        let mut start = 0;
        for end in ends {
            sort_bucket(&mut entries[start..end], &mut spare[start..end], shift);
            start = end;
        }
    }
}

/// Moves entries to the places of their digits; returns where each digit ends.
fn pass<K: RadixKey>(from: &[Entry<K>], to: &mut [Entry<K>], shift: u32, count: u32) -> [usize; 1 << DIGIT] {
    let mut places = [0; 1 << DIGIT];
    from.iter().for_each(|entry| places[entry.key.digit(shift, count)] += 1);
    let mut sum = 0;
    for place in &mut places {
        sum += std::mem::replace(place, sum);
    }
    for entry in from {
        let place = &mut places[entry.key.digit(shift, count)];
        to[*place] = *entry;
        *place += 1;
    }
    places
}

/// Orders rows whose integers are equal, though their keys need not be; those that are keep their order.
fn break_ties<K: RadixKey>(entries: &mut [Entry<K>], ties: Option<Ties<'_>>) {
    let Some(ties) = ties else { return };
    for run in entries.chunk_by_mut(|left, right| left.key == right.key).filter(|run| run.len() > 1) {
        run.sort_by(|left, right| ties(left.row, right.row));
    }
}
