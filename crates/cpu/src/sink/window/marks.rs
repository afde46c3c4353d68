//! Where partitions and groups of peers begin, in rows that lie in order.

use std::ops::Range;

use tandem_column::{PART_ROWS, Result};

use crate::{
    Values, Vector,
    settings::ParallelTasks,
    sink::order::{Disjoint, compare},
};

/// The first row of a partition.
const PARTITION: u8 = 2;
/// The first row of a group of peers.
const PEERS: u8 = 1;
/// Rows that one task compares with the row before.
const TASK_ROWS: usize = 1 << 16;

/// Tells of each row in order whether a partition or a group of peers begins with it.
///
/// # Errors
/// Cancellation.
pub(super) fn find(
    partition: &[&Vector],
    order: &[&Vector],
    rows: &[u32],
    parallel: ParallelTasks<'_>,
) -> Result<Vec<u8>> {
    let mut marks = vec![0; rows.len()];
    let shared = Disjoint::new(&mut marks);
    parallel(rows.len().div_ceil(TASK_ROWS), &|task| {
        let range = task * TASK_ROWS..rows.len().min((task + 1) * TASK_ROWS);
        // SAFETY: each row is of one task.
        let marks = unsafe { shared.slice(range.clone()) };
        let first = range.start.saturating_sub(1);
        // The row before the task's first is gathered too.
        let skipped = range.start - first;
        let keys = partition.iter().map(|key| (key, PARTITION | PEERS)).chain(order.iter().map(|key| (key, PEERS)));
        for (key, mark) in keys {
            differences(&key.take(&rows[first..range.end]), skipped, mark, marks);
        }
        if range.start == 0 {
            marks[0] = PARTITION | PEERS;
        }
        Ok(())
    })?;
    Ok(marks)
}

/// Marks rows whose value is not that of the row before; the first `skipped` rows have no mark.
fn differences(vector: &Vector, skipped: usize, mark: u8, marks: &mut [u8]) {
    fn compare_all<T: PartialEq>(values: &[T], skipped: usize, mark: u8, marks: &mut [u8]) {
        let from = 1 - skipped;
        for (pair, into) in values.windows(2).zip(&mut marks[from..]) {
            *into |= if pair[0] != pair[1] { mark } else { 0 };
        }
    }
    if vector.valid.is_none() {
        match &vector.values {
            Values::Boolean(values) => return compare_all(values, skipped, mark, marks),
            Values::Int(values) => return compare_all(values, skipped, mark, marks),
            Values::Wide(values) => return compare_all(values, skipped, mark, marks),
            Values::Code { codes, .. } => return compare_all(codes, skipped, mark, marks),
            Values::Float(_) | Values::Bytes(_) => {}
        }
    }
    for row in 1..vector.len() {
        let same = match (vector.is_valid(row - 1), vector.is_valid(row)) {
            (true, true) => compare::plain((vector, row - 1), (vector, row)).is_eq(),
            (left, right) => left == right,
        };
        if !same {
            marks[row - skipped] |= mark;
        }
    }
}

/// Divides rows into runs of whole partitions, of about the rows of a small part.
pub(super) fn tasks(marks: &[u8]) -> Vec<Range<usize>> {
    let (mut tasks, mut start) = (Vec::new(), 0);
    while start < marks.len() {
        let least = (start + PART_ROWS / 16).min(marks.len());
        let length = marks[least..].iter().position(|mark| mark & PARTITION != 0);
        let end = length.map_or(marks.len(), |length| least + length);
        tasks.push(start..end);
        start = end;
    }
    tasks
}

/// The marks of rows that begin with a partition.
pub(super) struct Marks<'m> {
    marks: &'m [u8],
}

impl<'m> Marks<'m> {
    pub(super) fn new(marks: &'m [u8]) -> Marks<'m> {
        Marks { marks }
    }

    /// Returns how many rows there are.
    pub(super) fn rows(&self) -> usize {
        self.marks.len()
    }

    /// Returns the rows of each partition.
    pub(super) fn partitions(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        let mut start = 0;
        std::iter::from_fn(move || {
            let begin = start;
            if begin == self.marks.len() {
                return None;
            }
            start = self.next(begin, self.marks.len(), PARTITION);
            Some(begin..start)
        })
    }

    /// Calls `f` with each partition, the rows of each group of peers in it, and the group's number.
    pub(super) fn peers(&self, mut f: impl FnMut(&Range<usize>, Range<usize>, usize)) {
        for partition in self.partitions() {
            let (mut start, mut group) = (partition.start, 0);
            while start < partition.end {
                let end = self.next(start, partition.end, PEERS);
                f(&partition, start..end, group);
                (start, group) = (end, group + 1);
            }
        }
    }

    /// Returns the next row behind `start` with a mark, or `end`.
    fn next(&self, start: usize, end: usize, mark: u8) -> usize {
        let found = self.marks[start + 1..end].iter().position(|found| found & mark != 0);
        found.map_or(end, |length| start + 1 + length)
    }
}
