//! Values by their rank: of the rows of a task, equal values have one number, in the values' order. Frames of numbers can be counted, and
//! searched for the value at a place, in the logarithm of their number, however they slide.

use crate::{NO_MATCH, Vector, sink::order::compare};

use super::slide::RowSet;

/// The rank of each row's value.
pub(super) struct Ranks {
    /// By row; `NO_MATCH` where the row does not contribute.
    of: Vec<u32>,
    /// A row of each rank: the first.
    rows: Vec<u32>,
}

impl Ranks {
    /// Ranks the values of those rows that contribute.
    pub(super) fn new(vector: &Vector, contributes: impl Fn(usize) -> bool) -> Ranks {
        let mut order: Vec<u32> = (0..vector.len() as u32).filter(|row| contributes(*row as usize)).collect();
        let compare = |left: u32, right: u32| compare::plain((vector, left as usize), (vector, right as usize));
        order.sort_by(|left, right| compare(*left, *right));
        let (mut of, mut rows) = (vec![NO_MATCH; vector.len()], Vec::<u32>::new());
        for row in order {
            if rows.last().is_none_or(|last| compare(*last, row).is_ne()) {
                rows.push(row);
            }
            of[row as usize] = rows.len() as u32 - 1;
        }
        Ranks { of, rows }
    }

    /// Returns how many values there are.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns a row that has the value of a rank.
    pub(super) fn row(&self, rank: usize) -> usize {
        self.rows[rank] as usize
    }
}

/// Which values a frame has, and how often.
struct Counts<'r> {
    ranks: &'r Ranks,
    counts: Vec<u32>,
}

impl<'r> Counts<'r> {
    fn new(ranks: &'r Ranks) -> Counts<'r> {
        Counts { ranks, counts: vec![0; ranks.len()] }
    }

    /// Counts a row's value once more; returns its rank and count, if the row contributes.
    fn add(&mut self, row: usize) -> Option<(usize, u32)> {
        let rank = self.ranks.of[row];
        let count = self.counts.get_mut(rank as usize)?;
        *count += 1;
        Some((rank as usize, *count))
    }

    /// Counts a row's value once less; returns its rank and count, if the row contributes.
    fn remove(&mut self, row: usize) -> Option<(usize, u32)> {
        let rank = self.ranks.of[row];
        let count = self.counts.get_mut(rank as usize)?;
        *count -= 1;
        Some((rank as usize, *count))
    }
}

/// The values of a frame in order: a tree of counts.
pub(super) struct OrderedSet<'r> {
    counts: Counts<'r>,
    /// A value that is there twice counts once.
    distinct: bool,
    /// Counts of ranks, each of as many ranks up to its own as the lowest set bit of its place says, from 1.
    tree: Vec<u32>,
    total: usize,
}

impl<'r> OrderedSet<'r> {
    pub(super) fn new(ranks: &'r Ranks, distinct: bool) -> OrderedSet<'r> {
        OrderedSet { counts: Counts::new(ranks), distinct, tree: vec![0; ranks.len() + 1], total: 0 }
    }

    /// Returns how many values there are.
    pub(super) fn count(&self) -> usize {
        self.total
    }

    /// Returns a row that has the value at a place of the order, which is less than the count.
    pub(super) fn row_at(&self, place: usize) -> usize {
        let (mut rank, mut left) = (0, place as u32);
        let mut step = self.tree.len().next_power_of_two();
        while step > 0 {
            if let Some(&count) = self.tree.get(rank + step)
                && count <= left
            {
                (rank, left) = (rank + step, left - count);
            }
            step /= 2;
        }
        self.counts.ranks.row(rank)
    }

    fn change(&mut self, rank: usize, more: bool) {
        self.total = if more { self.total + 1 } else { self.total - 1 };
        let mut at = rank + 1;
        while let Some(count) = self.tree.get_mut(at) {
            *count = if more { *count + 1 } else { *count - 1 };
            at += at & at.wrapping_neg();
        }
    }
}

impl RowSet for OrderedSet<'_> {
    fn add(&mut self, row: usize) {
        if let Some((rank, count)) = self.counts.add(row)
            && (!self.distinct || count == 1)
        {
            self.change(rank, true);
        }
    }

    fn remove(&mut self, row: usize) {
        if let Some((rank, count)) = self.counts.remove(row)
            && (!self.distinct || count == 0)
        {
            self.change(rank, false);
        }
    }
}

/// How many different values a frame has.
pub(super) struct DistinctCount<'r> {
    counts: Counts<'r>,
    pub(super) values: i64,
}

impl<'r> DistinctCount<'r> {
    pub(super) fn new(ranks: &'r Ranks) -> DistinctCount<'r> {
        DistinctCount { counts: Counts::new(ranks), values: 0 }
    }
}

impl RowSet for DistinctCount<'_> {
    fn add(&mut self, row: usize) {
        self.values += i64::from(self.counts.add(row).is_some_and(|(_, count)| count == 1));
    }

    fn remove(&mut self, row: usize) {
        self.values -= i64::from(self.counts.remove(row).is_some_and(|(_, count)| count == 0));
    }
}

/// A state over the different values of a frame: a tree of merged states, each of the two below it.
pub(super) struct DistinctStates<'r, S, L, M> {
    counts: Counts<'r>,
    empty: S,
    leaf: L,
    merge: M,
    /// The states of ranks from the middle on; before them, those of two each.
    tree: Vec<S>,
}

impl<'r, S: Copy, L: Fn(usize) -> S, M: Fn(S, S) -> S> DistinctStates<'r, S, L, M> {
    pub(super) fn new(ranks: &'r Ranks, empty: S, leaf: L, merge: M) -> DistinctStates<'r, S, L, M> {
        let tree = vec![empty; 2 * ranks.len().next_power_of_two()];
        DistinctStates { counts: Counts::new(ranks), empty, leaf, merge, tree }
    }

    /// Returns the state of all values.
    pub(super) fn state(&self) -> S {
        self.tree[1]
    }

    fn put(&mut self, rank: usize, state: S) {
        let mut at = self.tree.len() / 2 + rank;
        self.tree[at] = state;
        while at > 1 {
            at /= 2;
            self.tree[at] = (self.merge)(self.tree[2 * at], self.tree[2 * at + 1]);
        }
    }
}

impl<S: Copy, L: Fn(usize) -> S, M: Fn(S, S) -> S> RowSet for DistinctStates<'_, S, L, M> {
    fn add(&mut self, row: usize) {
        if let Some((rank, 1)) = self.counts.add(row) {
            self.put(rank, (self.leaf)(self.counts.ranks.row(rank)));
        }
    }

    fn remove(&mut self, row: usize) {
        if let Some((rank, 0)) = self.counts.remove(row) {
            self.put(rank, self.empty);
        }
    }
}
